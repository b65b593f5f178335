"""The lists of attacks agree with each other, with the help and with the reference."""

from __future__ import annotations

import itertools
import subprocess
import sys

from support.cli import run_successfully

import incrowd as ic
from incrowd.evaluation.attacks import catalog, inference, join


def test_every_list_names_attacks_that_there_are() -> None:
    lists = {name: names for name, names in vars(catalog).items() if name.isupper()}
    questions = lists.pop("QUESTIONS")
    assert sorted(itertools.chain(*questions.values())) == sorted(catalog.ATTACKS)
    assert len(lists) >= 6
    for name, names in lists.items():
        assert set(names) <= set(catalog.ATTACKS), name
    assert {inference.ATTACK, join.ATTACK} <= set(catalog.BOUNDED_BY_CONTROL)


def test_the_reference_and_the_help_name_every_attack() -> None:
    help_text = " ".join(run_successfully("attack", "--help").split())
    assert ", ".join(catalog.ATTACKS) in help_text
    reference = " ".join((ic.attack.__doc__ or "").split())
    assert ", ".join(f'"{name}"' for name in catalog.ATTACKS) in reference


def test_the_catalog_loads_nothing_that_is_slow() -> None:
    code = "import sys, incrowd.evaluation.attacks.catalog; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
