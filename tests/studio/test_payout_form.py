"""Costs and benefits of a release, from a form to the spec and back."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, parse_spec
from incrowd.spec.release import KAnonymitySpec
from incrowd.studio.payout_form import read_payout, set_payout
from incrowd.studio.spec_edits import set_method, set_release_fields

SPEC = """
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 99, widths: [10, 50]}}}
release: {method: k-anonymity, k: 5, loss: entropy}
"""
AMOUNTS = {"benefit": "1.200,5", "publisher_loss": "300", "attacker_gain": "0", "attack_cost": "4"}


def release_of(file: SpecFile) -> KAnonymitySpec:
    assert isinstance(file.spec.release, KAnonymitySpec)
    return file.spec.release


def changed(form: Mapping[str, str], spec: str = SPEC) -> SpecFile:
    file = parse_spec(spec)
    return file.with_entries(set_payout(file, form))


def test_amounts_take_the_place_of_a_loss_and_go_again() -> None:
    file = changed({**AMOUNTS, "attacker": ""})
    release = release_of(file)
    assert release.loss is None
    assert release.payout is not None
    assert (release.payout.benefit, release.payout.attacker_gain) == (1200.5, 0)
    texts = read_payout(file)
    assert texts is not None
    assert texts["benefit"] == "1200.5"
    assert file.with_entries(set_payout(file, texts)).spec == file.spec
    assert release_of(file.with_entries(set_payout(file, {}))).payout is None
    other = file.with_entries(set_release_fields(file, {"algorithm": "mondrian"}))
    assert release_of(other).payout is None  # which weighs no amounts
    assert read_payout(other) is None
    safe = file.with_entries(set_method(file, "safe"))
    assert safe.spec.release is not None
    assert "payout" not in safe.text()


def test_who_knows_the_population_needs_its_size() -> None:
    with pytest.raises(IncrowdError, match="needs its size"):
        changed({**AMOUNTS, "attacker": "journalist"})
    file = changed(
        {**AMOUNTS, "attacker": "journalist"}, SPEC.replace("k: 5", "k: 5, population: 90000")
    )
    assert release_of(file).payout is not None
    texts = read_payout(file)
    assert texts is not None
    assert texts["attacker"] == "journalist"
    with pytest.raises(IncrowdError, match="journalist"):  # the size cannot go alone
        file.with_entries(set_release_fields(file, {"population": ""}))


@pytest.mark.parametrize(
    ("form", "spec", "words"),
    [
        ({"benefit": "1200"}, SPEC, "Missing: Your loss, Attacker's gain, Cost of an attack"),
        ({**AMOUNTS, "benefit": "0"}, SPEC, "must be above 0"),
        ({**AMOUNTS, "attack_cost": "-1"}, SPEC, "'Cost of an attack' must not be negative"),
        ({**AMOUNTS, "attack_cost": "four"}, SPEC, "must be a number; got 'four'"),
        ({**AMOUNTS, "benefit": "1,200"}, SPEC, "may be 1200 or 1.200"),
        (AMOUNTS, SPEC.replace("loss: entropy", "algorithm: mondrian"), "algorithm OLA"),
        (AMOUNTS, SPEC.replace("k-anonymity, k: 5, loss: entropy", "safe, epsilon: 1, delta: 1e-6"),
         "need k-anonymity"),
    ],
)  # fmt: skip
def test_what_is_no_payout_is_refused(form: Mapping[str, str], spec: str, words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        changed(form, spec)
