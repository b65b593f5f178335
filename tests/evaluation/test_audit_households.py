"""An audit of households that are published whole: it finds counts of people in place of them."""

from __future__ import annotations

from typing import Any

import pytest
from support.census import VALUES, make_spec

import incrowd as ic
from incrowd.codes.frequency import Frequencies
from incrowd.codes.household_type import HouseholdTypes
from incrowd.errors import IncrowdError
from incrowd.privacy.randomness import SeededRandomness


def make_linked_spec(**release: Any) -> dict[str, Any]:
    spec = make_spec(3, **({"levels": dict.fromkeys(VALUES, 0)} | release))
    spec["release"].pop("rows")
    spec["household"]["linked"] = True
    return spec


def run_audit(spec: dict[str, Any]) -> ic.Audit:
    return ic.audit(spec, runs=40, delta=1e-4, workers=1, bits=SeededRandomness(3))


@pytest.mark.parametrize(("draw", "least"), [("counts", 0.2), ("sample", 0.0)])
def test_the_claim_is_not_contradicted(draw: str, least: float) -> None:
    audited = run_audit(make_linked_spec(draw=draw))
    assert least <= audited.epsilon <= 1.0
    assert "households of 3 equal people" in audited.tables
    assert audited.runs[0] > 500


def test_people_counted_in_place_of_households_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def count_people(types: HouseholdTypes) -> Frequencies:
        numbers = households(types)
        return Frequencies(numbers.codes, numbers.counts * types.sizes)

    households = HouseholdTypes.frequencies.fget
    assert households is not None
    monkeypatch.setattr(HouseholdTypes, "frequencies", property(count_people))
    assert run_audit(make_linked_spec()).epsilon > 1.5


def test_a_search_of_levels_is_refused() -> None:
    with pytest.raises(IncrowdError, match="needs fixed levels"):
        run_audit(make_linked_spec(scheme="search"))
