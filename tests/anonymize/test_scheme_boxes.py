"""Box by box the search finds what it finds scheme by scheme, by the same noise."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from incrowd.anonymize import safe_search as module
from incrowd.anonymize import scheme_boxes
from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.anonymize.safe_search import ChosenScheme, _SchemeScorer, make_ramp, search_scheme
from incrowd.anonymize.scheme_balance import BalanceRule, find_balanced
from incrowd.anonymize.scheme_boxes import BoxNoise
from incrowd.arrays import Floats, Places
from incrowd.codes.frequency import merge_tuples
from incrowd.codes.hierarchy import build_from_rows
from incrowd.privacy.randomness import SeededRandomness

WIDE = build_from_rows(
    [(f"v{i}", f"g{i // 2}", f"h{i // 6}", f"k{i // 12}", "*") for i in range(24)]
)
DEEP = build_from_rows([(f"v{i}", f"g{i // 3}", "*") for i in range(9)])
UNROOTED = build_from_rows([(f"v{i}", f"g{i // 2}") for i in range(6)])
FLAG = build_from_rows([("no", "*"), ("yes", "*")])
TREES = (WIDE, DEEP, UNROOTED, FLAG, DEEP, FLAG)
LATTICE = Lattice((0,) * len(TREES), tuple(tree.height - 1 for tree in TREES))
RAMPS = (make_ramp(12, 1.0), make_ramp(9, 0.6), make_ramp(30, 0.9))


def make_rollups(rows: int = 3000) -> Rollups:
    draw = np.random.default_rng(4)
    hidden = draw.normal(size=rows)
    columns = []
    for tree in TREES:
        size = len(tree.values)
        place = (hidden + draw.normal(size=rows)) * size / 5 + size / 3
        columns.append(np.clip(place.astype(int), 0, size - 1))
    codes = np.column_stack(columns).astype(np.int32)
    return Rollups(TREES, merge_tuples(codes, np.ones(rows, dtype=np.int64)))


def search(
    rollups: Rollups, seed: int, *, ramps: Sequence[Any] = RAMPS[:1], power: int = 1,
    epsilon: Fraction = Fraction(2), weights: Sequence[float] = (1,) * len(TREES), **more: Any,
) -> ChosenScheme:  # fmt: skip
    return search_scheme(
        rollups, LATTICE, ramps, epsilon=epsilon, power=power,
        weights=np.array(weights, dtype=np.float64), bits=SeededRandomness(seed), **more,
    )  # fmt: skip


def set_boxed(patch: pytest.MonkeyPatch, *, is_boxed: bool) -> None:
    patch.setattr(module, "_BOXED", 0 if is_boxed else 10**9)
    patch.setattr(module, "_JOINTLY", 0)


CASES: dict[str, dict[str, Any]] = {
    "one ramp": {},
    "several ramps": {"ramps": RAMPS},
    "much noise": {"epsilon": Fraction(1, 50)},
    "hardly any noise": {"epsilon": Fraction(10**6)},
    "detail cubed": {"power": 3},
    "weights": {"weights": (3, 1, 1, 0.5, 2, 1)},
}


@pytest.mark.parametrize("case", CASES)
def test_boxes_hold_the_same_choice_by_the_same_seed(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollups = make_rollups()
    for seed in range(8):
        choices = []
        for is_boxed in (False, True):
            set_boxed(monkeypatch, is_boxed=is_boxed)
            choices.append(search(rollups, seed, **CASES[case]))
        assert (choices[0].levels, choices[0].ramp) == (choices[1].levels, choices[1].ramp)
        if case != "much noise":
            assert choices[1].scored < LATTICE.size / 4


class HalvedScorer(_SchemeScorer):
    def find_best_parts(self, at: int, level: int) -> list[Floats]:
        return [best / 2 for best in super().find_best_parts(at, level)]


class WorstScorer(_SchemeScorer):
    def find_best_parts(self, at: int, level: int) -> list[Floats]:
        parts = super().find_best_parts(at, level)
        return [parts[-1]] * len(parts)


class SilentNoise(BoxNoise):
    def bound(self, _large: Places, _finest: Node, _coarsest: Node) -> int:
        return 0


@pytest.mark.parametrize(
    ("name", "fault"),
    [("_SchemeScorer", HalvedScorer), ("_SchemeScorer", WorstScorer), ("BoxNoise", SilentNoise)],
)
def test_bounds_that_are_too_low_are_noticed(
    name: str, fault: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half the detail, the detail of the coarsest level, no noise: another choice by some seed."""
    rollups = make_rollups()
    choices: dict[bool, list[Node]] = {}
    for is_faulty in (False, True):
        set_boxed(monkeypatch, is_boxed=True)
        if is_faulty:
            monkeypatch.setattr(module, name, fault)
        choices[is_faulty] = [
            search(rollups, seed, epsilon=Fraction(1, 20)).levels for seed in range(12)
        ]
    assert choices[False] != choices[True]


def test_the_noise_of_a_box_is_bounded_whatever_is_looked_at_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = np.random.default_rng(2)
    lattice = Lattice((1, 0, 2, 0), (3, 0, 5, 4))
    values = draw.integers(0, 1000, lattice.shape)
    for few, small in itertools.product((1, 5, 1000), (0, 6, 1000)):
        monkeypatch.setattr(scheme_boxes, "_FEWEST", few)
        monkeypatch.setattr(scheme_boxes, "_SMALL_BOX", small)
        noise = BoxNoise(lattice, values)
        for _ in range(40):
            ends = [
                sorted(draw.integers(a, b + 1, 2))
                for a, b in zip(lattice.low, lattice.high, strict=True)
            ]
            finest, coarsest = (tuple(int(x[at]) for x in ends) for at in (0, 1))
            spans = (range(a, b + 1) for a, b in zip(finest, coarsest, strict=True))
            most = max(noise.get(node) for node in itertools.product(*spans))
            large = noise.select(noise.list_large(), finest, coarsest)
            bound = noise.bound(large, finest, coarsest)
            assert bound >= most
            assert bound == most or small < 1000  # then all are looked at


def is_within(node: Node, low: Sequence[int], high: Sequence[int]) -> bool:
    return all(a <= level <= b for a, level, b in zip(low, node, high, strict=True))


@pytest.mark.parametrize("weights", [(1, 1, 1), (2, 1, 1), (1, 3, 0.5)])
def test_the_rule_drops_of_boxes_what_it_leaves_out_of_the_lattice(
    weights: tuple[float, ...],
) -> None:
    """A box of one scheme is left exactly if the scheme takes part; no larger box loses one."""
    trees = (DEEP, FLAG, WIDE)
    lattice = Lattice((0, 0, 1), (2, 1, 4))
    rule = BalanceRule.from_lattice(lattice, trees, np.array(weights, dtype=float))
    takes_part = find_balanced(lattice, trees, np.array(weights, dtype=float))
    nodes = [lattice.get_node(place) for place in range(lattice.size)]
    for finest, coarsest in itertools.product(nodes, nodes):
        if any(a > b for a, b in zip(finest, coarsest, strict=True)):
            continue
        low, high = list(finest), list(coarsest)
        while rule.narrow(lattice.low, low, high):
            pass
        box = [node for node in nodes if is_within(node, finest, coarsest)]
        left = [node for node in box if is_within(node, low, high)]
        participants = [node for node in box if takes_part[lattice.locate_node(node)]]
        assert set(participants) <= set(left)
        if len(box) == 1:
            assert left == participants


def test_progress_never_falls_and_stays_within_all_schemes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_boxed(monkeypatch, is_boxed=True)
    monkeypatch.setattr(scheme_boxes, "_REPORTED", 1)
    monkeypatch.setattr(scheme_boxes, "_FIRST", 3)
    reports: list[tuple[int, int]] = []
    search(make_rollups(), 1, ramps=RAMPS, progress=lambda *report: reports.append(report))
    assert len(reports) > 10
    assert all(0 <= done <= every == 3 * LATTICE.size for done, every in reports)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
