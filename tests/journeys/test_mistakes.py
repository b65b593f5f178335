"""Mistakes that users make, and the one line each of them gets."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.cli import run_command

import incrowd as ic

NEEDS = "A plan needs epsilon and delta, or any three of k, beta, epsilon and delta."
FRACTION = "must lie strictly between 0 and 1. Got"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ic.delta(k=20, beta=1.5, epsilon=1),
            f"The 'beta' parameter {FRACTION} 1.5 instead.",
        ),
        (lambda: ic.delta(k=20, beta=0, epsilon=1), f"The 'beta' parameter {FRACTION} 0 instead."),
        (
            lambda: ic.delta(k=20, beta=1.0, epsilon=1),
            f"The 'beta' parameter {FRACTION} 1.0 instead.",
        ),
        (
            lambda: ic.delta(k=20, beta=math.nan, epsilon=1),
            f"The 'beta' parameter {FRACTION} nan instead.",
        ),
        (
            lambda: ic.delta(k=20, beta=np.array([0.1, 0.2, -3.0]), epsilon=1),
            f"The 'beta' parameter {FRACTION} -3.0 instead.",
        ),
        (
            lambda: ic.delta(k=20, beta="half", epsilon=1),
            f"The 'beta' parameter {FRACTION} 'half' instead.",
        ),
        (
            lambda: ic.delta(k=0, beta=0.1, epsilon=1),
            "The 'k' parameter must be an integer of at least 1. Got 0 instead.",
        ),
        (
            lambda: ic.delta(k=2.5, beta=0.1, epsilon=1),
            "The 'k' parameter must be an integer of at least 1. Got 2.5 instead.",
        ),
        (
            lambda: ic.delta(k=True, beta=0.1, epsilon=1),
            "The 'k' parameter must be an integer of at least 1. Got True instead.",
        ),
        (
            lambda: ic.delta(k=20, beta=0.1, epsilon=-1),
            "The 'epsilon' parameter must be a finite number of at least 0. Got -1 instead.",
        ),
        (
            lambda: ic.delta(k=20, beta=0.1, epsilon=math.inf),
            "The 'epsilon' parameter must be a finite number of at least 0. Got inf instead.",
        ),
        (
            lambda: ic.delta(k=20, beta=0.5, epsilon=0.25, definition="paper"),
            (
                "The 'epsilon' parameter must be at least -ln(1 - beta) = 0.693147 for beta = 0.5 "
                "under the paper's definition. Got 0.25 instead. Use definition='tight', which has "
                "no such limit, or a smaller beta."
            ),
        ),
        (
            lambda: ic.delta(k=20, beta=0.1, epsilon=1, definition="loose"),  # type: ignore[call-overload]
            "The 'definition' parameter must be 'tight' or 'paper'. Got 'loose' instead.",
        ),
        (
            lambda: ic.epsilon(k=20, beta=0.1, delta=1),
            f"The 'delta' parameter {FRACTION} 1 instead.",
        ),
        (
            lambda: ic.beta(k=20, epsilon=0, delta=1e-6, definition="paper"),
            (
                "The 'epsilon' parameter must be above 0 under the paper's definition. "
                "Got 0.0 instead. Use the tight one."
            ),
        ),
        (
            lambda: ic.plan(epsilon=1),
            f"{NEEDS} Got epsilon.",
        ),
        (
            lambda: ic.plan(k=20, delta=1e-6),
            f"{NEEDS} Got k, delta.",
        ),
        (
            lambda: ic.plan(k=20, beta=0.1, epsilon=1, delta=1e-6),
            f"{NEEDS} Got k, beta, epsilon, delta; leave out the one to solve for.",
        ),
        (
            lambda: ic.plan(epsilon=1, delta=1e-6, keep=0.5, beta=0.5),
            (
                "The 'keep' parameter must not be given with beta or k, which it sets. "
                "Got 0.5 instead."
            ),
        ),
        (
            lambda: ic.plan(k=2, beta=0.5, delta=1e-6),
            (
                "No ε reaches δ = 1e-06 with k = 2, β = 0.5 and 1 release: δ cannot fall below "
                "about 0.25. Use a larger k, a smaller β or a larger δ."
            ),
        ),
        (
            lambda: ic.plan(epsilon=1, delta=1e-6, releases=0),
            "The 'releases' parameter must be an integer of at least 1. Got 0 instead.",
        ),
        (
            lambda: ic.Accountant([ic.SafeRelease(20, 0.1), "release"]),  # type: ignore[list-item]
            (
                "The 'events' parameter must hold events such as SafeRelease(k=20, beta=0.1). "
                "Got 'release' instead."
            ),
        ),
        (
            lambda: ic.SafeRelease([14, 15], 0.1),  # type: ignore[arg-type]
            "The 'k' parameter must be a single number. Got [14.0, 15.0] instead.",
        ),
        (
            lambda: ic.plan(epsilon=[1, 2], delta=1e-6),  # type: ignore[call-overload]
            "The 'epsilon' parameter must be a single number. Got [1.0, 2.0] instead.",
        ),
        (
            lambda: ic.SafeRelease(10**9, 0.1),
            "The 'k' parameter must be at most 10,000,000. Got 1000000000 instead.",
        ),
        (
            lambda: ic.Accountant([ic.Selection(1.0)], step=0.0),
            "The 'step' parameter must be a finite number above 0. Got 0.0 instead.",
        ),
        (
            lambda: ic.plan(epsilon=0, delta=1e-6, definition="paper"),
            (
                "The 'epsilon' parameter must be above 0 under the paper's definition. "
                "Got 0 instead. Use the tight one."
            ),
        ),
        (
            lambda: ic.SampledEvent(ic.Selection(1.0), 1.0),
            f"The 'rate' parameter {FRACTION} 1.0 instead.",
        ),
    ],
)
def test_the_library_says_what_is_wrong(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ic.IncrowdError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["plan", "--epsilon", "1", "--beta", "0", "--k", "20"], "The 'beta' parameter must lie"),
        (["plan", "--epsilon", "1", "--beta", "1", "--k", "20"], "The 'beta' parameter must lie"),
        (["plan", "--epsilon", "1", "--beta", "nan", "--k", "20"], "Got nan instead."),
        (["plan", "--epsilon", "1", "--beta", "0.1", "--k", "0"], "Got 0 instead."),
        (["plan", "--epsilon", "1", "--beta", "0.1", "--k", "2.5"], "Got 2.5 instead."),
        (["plan", "--epsilon", "-1", "--delta", "1e-6"], "Got -1 instead."),
        (["plan", "--epsilon", "1", "--delta", "1"], "The 'delta' parameter must lie"),
        (
            ["plan", "--epsilon", "one", "--delta", "1e-6"],
            "The 'epsilon' parameter must be a number. Got 'one' instead.",
        ),
        (
            ["plan", "--epsilon", "0.2", "--beta", "0.5", "--k", "9", "--definition", "paper"],
            "must be at least -ln(1 - beta) = 0.693147",
        ),
        (["plan", "--epsilon", "1"], "A plan needs epsilon and delta"),
        (["plan", "--epsilno", "1"], "No such option"),
        (["plan", "--grid", "k"], "A grid needs δ"),
        (["plan", "--grid", "q", "--delta", "1e-6"], "must be 'k' or 'beta' or 'epsilon'"),
        (["publisch"], "No such command"),
        (["reproduce", "c", "-o", "x"], "'a' or 'b' or 'attacks' or 'all'. Got 'c' instead."),
        (["reproduce", "a", "-o", __file__], "is a file"),
        (
            ["reproduce", "a", "-o", str(Path(__file__).parent)],
            "so nothing was written. Name another folder.",
        ),
        (["reproduce", "a", "-o", "/proc/nowhere/x"], "Cannot write to"),
    ],
)
def test_the_command_says_it_in_one_line(arguments: list[str], part: str) -> None:
    done = run_command(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert part in done.stderr


def test_a_refused_table_leaves_no_thread_behind(tmp_path: Path) -> None:
    """Whatever is refused, no thread of a pool waits for work that never comes."""
    before = set(threading.enumerate())
    tables = [
        pl.DataFrame({"unknown": ["a"]}),  # a column that the spec does not have
        tmp_path / "absent.csv",
        pl.DataFrame({"a": ["far"] * 9}),  # nothing but values outside the domain
    ]
    declared = {"a": {"role": "quasi", "hierarchy": {"flat": {"values": ["x", "y"]}}}}
    request = {"columns": declared, "release": {"epsilon": 1, "delta": 1e-6}}
    for at, table in enumerate(tables):
        with pytest.raises(ic.IncrowdError):
            ic.publish(table, request, output=tmp_path / f"out{at}")
        left = [item.name for item in set(threading.enumerate()) - before if item.is_alive()]
        assert not left
