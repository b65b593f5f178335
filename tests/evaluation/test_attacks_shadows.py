"""Shadow releases: neighbors as if the table were counted anew, and what attacks by them find.

All seeds are fixed. The chance in brackets is that of a correct program failing for another seed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from incrowd.codes.counted_table import CountedTable, DistinctRows
from incrowd.errors import ParameterError
from incrowd.evaluation.attacks.membership import (
    attack_by_shadows,
    max_success_of_events,
    max_success_rate,
)
from incrowd.evaluation.attacks.shadows import FIELDS, ShadowReleases, run_shadow_attack
from incrowd.methods.base import MakeContext, Method
from incrowd.methods.safe import draw
from incrowd.privacy.randomness import SeededRandomness

AGES = {"intervals": {"from": 0, "to": 99, "widths": [5, 20]}}
COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi", "hierarchy": AGES},
    "sex": {"role": "quasi", "hierarchy": {"groups": {"*": ["f", "m"]}}},
    "town": {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b", "c"]}}},
    "ill": {"role": "sensitive", "hierarchy": {"flat": {"values": ["yes", "no"]}}},
}
MONDRIAN = {"method": "k-anonymity", "k": 4, "algorithm": "mondrian"}
OLA = {"method": "k-anonymity", "k": 4, "algorithm": "ola", "suppression": 0.1}
SEARCH = {"method": "safe", "epsilon": 1, "delta": 1e-3, "scheme": "search"}


def table(rows: int, seed: int = 1) -> pl.DataFrame:
    """People from 20 to 69, and one of 97 who is alone at the upper end."""
    rng = np.random.default_rng(seed)
    ages = np.append(rng.integers(20, 70, rows - 1), 97)
    return pl.DataFrame(
        {
            "age": ages,
            "sex": rng.choice(["f", "m"], rows),
            "town": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "ill": rng.choice(["yes", "no"], rows, p=[0.2, 0.8]),
        }
    )


def shadows_of(frame: pl.DataFrame, release: dict[str, Any], **columns: Any) -> ShadowReleases:
    spec = {"columns": {**COLUMNS, **columns}, "release": release}
    return ShadowReleases.from_table(frame, spec, rng=np.random.default_rng(0))


def oldest(shadows: ShadowReleases) -> int:
    """The place of the person of 97."""
    return int(np.argmax(shadows.frequencies.codes[:, 0]))


@pytest.mark.parametrize("release", [MONDRIAN, SEARCH])
def test_a_neighbor_is_the_table_counted_without_the_row(release: dict[str, Any]) -> None:
    frame = pl.concat([table(60), table(60)[:20]])  # so that some tuples have two rows
    shadows = shadows_of(frame, release)
    assert set(shadows.frequencies.counts.tolist()) >= {1, 2}
    for row in (0, 17, 59):
        counts = shadows_of(frame[[row]], release).counted  # a table of that row alone
        code = counts.frequencies.codes[0].copy()
        if isinstance(shadows.counted, DistinctRows):  # kept values are numbered as they are met
            assert isinstance(counts, DistinctRows)
            code[-1] = shadows.counted.kept["ill"].index(counts.kept["ill"][0])
        (at,) = np.flatnonzero((shadows.frequencies.codes == code).all(axis=1))
        less = shadows.remove_row(int(at))
        anew = shadows_of(frame[[other for other in range(80) if other != row]], release).counted
        assert less.frequencies.codes.tolist() == anew.frequencies.codes.tolist()
        assert less.frequencies.counts.tolist() == anew.frequencies.counts.tolist()
        if isinstance(less, DistinctRows):
            assert isinstance(anew, DistinctRows)
            assert less.owner.tolist() == anew.owner.tolist()
            item, other = less.counted.frequencies, anew.counted.frequencies
            assert item.codes.tolist() == other.codes.tolist()
            assert item.counts.tolist() == other.counts.tolist()
    for wrong in (-1, len(shadows.frequencies)):
        with pytest.raises(ParameterError, match="place of a tuple"):
            shadows.remove_row(wrong)


def test_who_is_alone_at_an_end_is_most_exposed() -> None:
    rng = np.random.default_rng(2)
    for release in (MONDRIAN, SEARCH, {**SEARCH, "scheme": "fixed", "levels": {"age": 1}}):
        shadows = shadows_of(table(80), release)
        result = shadows.find_exposed(3, rng)
        assert (shadows.frequencies.counts[result] == 1).all()
        assert oldest(shadows) in result
        assert len(set(result.tolist())) == len(result) <= 3
        assert len(shadows.sample_people(5, rng)) == 5
    everybody = shadows_of(pl.concat([table(30)] * 2), SEARCH)
    assert len(everybody.find_exposed(3, rng)) == 0
    assert len(everybody.sample_people(1000, rng)) == 60


@pytest.mark.parametrize("release", [MONDRIAN, OLA])
def test_k_anonymity_tells_of_exposed_people_for_certain(release: dict[str, Any]) -> None:
    frame = table(120)
    spec = {"columns": COLUMNS, "release": release}
    exposed, some = run_shadow_attack(
        frame, spec, rng=np.random.default_rng(3), targets=3, tries=40
    )
    assert exposed.name != some.name
    assert exposed.bound is None
    assert exposed.details["worst"] == 1.0
    assert exposed.success.tries == 120
    if release is MONDRIAN:  # which suppresses nobody
        assert exposed.success.value == some.success.value == 1.0
    assert exposed.succeeds


class Counting:
    """A method that counts what it makes."""

    def __init__(self, method: Method) -> None:
        self.method, self.made = method, 0

    def make(self, counts: Any, context: MakeContext) -> Any:
        self.made += 1
        return self.method.make(counts, context)


def test_what_draws_nothing_is_made_once() -> None:
    for release, fewest in ((MONDRIAN, 2), (SEARCH, 40)):
        shadows = shadows_of(table(60), release)
        counting: Any = Counting(shadows.method)
        target = replace(shadows, method=counting).make_shadow(oldest(shadows))
        attack_by_shadows([target], tries=20, rng=np.random.default_rng(4))
        assert counting.made == fewest


def test_a_searched_safe_release_stays_within_its_bound() -> None:
    """Up to chance: the interval of 95 % is not above the bound, nor that of the worst [0.1]."""
    spec = {"columns": COLUMNS, "release": SEARCH}
    rng = np.random.default_rng(5)
    for item in run_shadow_attack(table(150), spec, rng=rng, targets=2, tries=60):
        assert item.bound is not None
        assert item.bound <= max_success_rate(1.0, 1e-3)
        assert item.success.low <= item.bound
        assert float(item.details["worst_low"]) <= item.bound


def test_without_its_noise_a_search_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same counts without noise tell whoever is shown, so the attack would have seen it."""
    frame = table(150)
    shadows = shadows_of(frame, {**SEARCH, "levels": {"age": 2, "sex": 1, "town": 1, "ill": 1}})
    bound = max_success_of_events(shadows.method.events)
    assert bound is not None
    monkeypatch.setattr(draw, "draw_noisy_counts", lambda cells, *_args, **_more: cells)
    result = attack_by_shadows(
        [shadows.make_shadow(oldest(shadows))], tries=100, rng=np.random.default_rng(6), bound=bound
    )
    assert result.success.low > bound


def covers(label: object, value: str) -> bool:
    """Whether a label of the table above covers a value."""
    text = str(label)
    low, dash, high = text.partition("-")
    return text in ("*", value) or (bool(dash) and int(low) <= int(value) <= int(high))


@pytest.mark.parametrize("release", [OLA, MONDRIAN, {**OLA, "suppressed": "starred"}])
def test_rows_that_fit_are_counted_in_what_is_published(release: dict[str, Any]) -> None:
    shadows, rng = shadows_of(table(100), release), np.random.default_rng(7)
    assert isinstance(shadows.counted, DistinctRows)
    outcome = shadows.method.make(shadows.counted, MakeContext(SeededRandomness(1), shadows.engine))
    published = outcome.products[0].data.to_frame().select("age", "sex", "town")
    stars = ("*",) * 3  # rows that show nothing fit everybody, and are not counted
    hierarchies = shadows.counted.counted.hierarchies
    numbers = set()
    for place in range(0, len(shadows.frequencies), 5):
        codes = shadows.frequencies.codes[place].tolist()[:3]
        person = [h.values[code] for h, code in zip(hierarchies, codes, strict=True)]
        fitting = [
            row for row in published.rows() if row != stars and all(map(covers, row, person))
        ]
        described = shadows.make_shadow(place)(True, rng)
        assert described[:2] == (len(published), len({*published.rows()} - {stars}))
        assert described[FIELDS.index("rows that fit")] == len(fitting)
        numbers.add(len(fitting))
    assert len(numbers) > 2


def test_every_kind_of_release_has_its_shadows() -> None:
    """Each release is described by as many numbers, also those whose slices are chosen."""
    frame = table(120).with_columns(weight=pl.Series(np.linspace(50, 90, 120).round(1)))
    safe = {"method": "safe", "epsilon": 1, "delta": 1e-3}
    noisy = {"method": "k-epsilon", "k": 4, "epsilon": 1, "algorithm": "mondrian"}
    for release, tables in (
        ({**safe, "levels": {"age": 2}}, 1),
        ({**safe, "draw": "sample"}, 1),
        ({**safe, "scheme": "mondrian"}, 1),
        ({**safe, "slices": [["age", "sex"], ["town", "ill"]]}, 2),
        ({**safe, "slices": {"columns": 2, "tables": 2}}, 2),
        (noisy, 1),
        ({**MONDRIAN, "algorithm": "cluster"}, 1),
        ({**MONDRIAN, "algorithm": "duplicate"}, 1),
    ):
        role = "noisy" if release is noisy else "drop"
        weight = {"role": role, **({"bounds": [0, 200]} if role == "noisy" else {})}
        shadows = shadows_of(frame, release, weight=weight)
        assert shadows.fields == FIELDS * tables
        target, rng = shadows.make_shadow(0), np.random.default_rng(8)
        for present in (True, False):
            assert len(target(present, rng)) == len(shadows.fields)


def test_that_nothing_can_be_released_tells_as_well() -> None:
    """Four people are enough for k = 4, three are not."""
    shadows = shadows_of(table(4), MONDRIAN)
    assert isinstance(shadows.counted, DistinctRows)
    target, rng = shadows.make_shadow(0), np.random.default_rng(9)
    assert target(False, rng) == (-1,) * len(FIELDS)
    assert attack_by_shadows([target], tries=10, rng=rng).success.value == 1.0


def test_people_with_several_rows_have_one_each() -> None:
    frame = table(60).with_columns(id=pl.Series([f"p{at % 40}" for at in range(60)]))
    spec = {
        "unit": {"id": "id"},
        "size": "public",
        "columns": {**COLUMNS, "id": {"role": "identifier"}},
        "release": SEARCH,
    }
    shadows = ShadowReleases.from_table(frame, spec, rng=np.random.default_rng(10))
    assert isinstance(shadows.counted, CountedTable)
    assert shadows.frequencies.total == 40
