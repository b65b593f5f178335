"""What the proof of safe Mondrian rests on, seen in the code; and columns that list no values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.mondrian_law import (
    MASK,
    MET,
    NEVER,
    NUMBERS,
    PAIR,
    TREE,
    Choice,
    MondrianLaw,
    MondrianProblem,
    Output,
    Row,
    Table,
    add_empty_cells,
    compute_cached_law,
)
from support.mondrian_problems import (
    HALF,
    ONCE,
    PLAIN,
    SMALL,
    TWICE,
    make_crowded_problem,
    make_cut_problem,
)
from support.search_law import FixedCoins, list_coin_outcomes
from support.unjudged import publish_unjudged

from incrowd.anonymize import safe_mondrian as cutting
from incrowd.anonymize import safe_search as searching
from incrowd.anonymize.safe_mondrian import CellPartition, cut_cells
from incrowd.anonymize.safe_search import Ramp, W, make_ramp
from incrowd.arrays import Counts
from incrowd.codes.axis import locate_points
from incrowd.codes.counted_table import CountedTable
from incrowd.engine.source import local_engine
from incrowd.errors import IncrowdError
from incrowd.methods.base import MakeContext
from incrowd.methods.safe import scheme as schemes
from incrowd.methods.safe.method import Safe
from incrowd.methods.safe.scheme import make_contiguous
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import OneOf, SafeRelease, Selection
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.product import Product
from incrowd.release.write import write_scheme

# Claims that the proof rests on.


@pytest.mark.parametrize(
    ("problem", "table", "ghosts"),
    [
        (PLAIN, (("0",),) * 3 + (("1",),), [(3,), (4,), (5,)]),
        (
            make_cut_problem(NUMBERS, start=[1], pair=(2, 0.5)),
            (("0",),) * 4,
            [(1,), (2,), (3,), (4,)],
        ),
        (
            make_cut_problem(NUMBERS, PAIR, start=[1, 1], pair=(1, 0.5)),
            (("0", "x"),) * 2 + (("1", "x"),) * 2,
            [(0, 1), (3, 0), (3, 1)],
        ),
        (make_cut_problem(TREE, start=[1], pair=(2, 0.5)), (("a",),) * 3, [(1,), (2,), (3,)]),
    ],
)
def test_looking_at_cells_without_rows_would_change_no_output(
    problem: MondrianProblem, table: Table, ghosts: list[tuple[int, ...]]
) -> None:
    law = MondrianLaw(problem)
    counted_table = law.count_table(table)
    ways, ways_with_ghosts = (
        law.list_ways(counted_table),
        law.list_ways(add_empty_cells(counted_table, ghosts)),
    )
    assert len(add_empty_cells(counted_table, ghosts).frequencies) > len(counted_table.frequencies)
    assert ways_with_ghosts == pytest.approx(ways, rel=1e-9)


class FirstScores(MondrianLaw):
    """Stops at the first round."""

    def _list_next_choices(
        self, table: CountedTable, number: int
    ) -> Iterator[tuple[Choice, float]]:
        return iter(()) if number else super()._list_next_choices(table, number)


def test_scores_are_what_the_docstring_says() -> None:
    """Of rows that repeat, with weights, beside columns that are not cut; from root and halves."""
    columns, first = (MASK, f"weight: 2, {NUMBERS}", TREE, PAIR), Ramp(2, 0.5, 1, 5, 9)
    # The mask keeps a half, the group of c all: three tenths together.
    table = tuple(("01", value, "c", "x") for value in (*"0000", *"11", *"333", None, None))
    bonus = math.ceil(0.5 * W * 9 / 0.5 * math.log(3))

    def w(numbers: float, pair: float) -> int:
        return int(W * (0.4 * numbers + 0.2 * pair + 0.3) ** 2)

    expected = {
        # psi is 55 of all eleven rows; 30, 15 and 9 of the halves and of null.
        2: [[w(2 / 3, 0) * 45 + w(1, 0) * 9, w(0, 1) * 55, w(0, 0) * 55 + bonus]],
        1: [  # it is 20 and 9 of the values in the first half
            [w(1, 0) * 29, w(2 / 3, 1) * 30, w(2 / 3, 0) * 30 + bonus],
            [w(1, 0) * 15, w(2 / 3, 1) * 15, w(2 / 3, 0) * 15 + bonus],
            [NEVER, w(1, 1) * 9, w(1, 0) * 9 + bonus],
        ],
    }
    for start, scored in expected.items():
        limits = (1, start, 1, 1)
        first_scores = FirstScores(
            MondrianProblem(columns, limits, (first,), (ONCE, HALF), "balanced", levels="2: 1")
        )
        assert not list(first_scores.list_products(first_scores.count_table(table)))
        assert first_scores._heard.tolist() == scored


def test_a_cell_that_stays_is_not_cut_later() -> None:
    """It keeps its box with the probability of its first choice, however many rounds follow."""
    table = (("0",),) * 4 + (("3",),)
    shares = []
    for rounds in ((HALF,), (HALF, ONCE), (HALF, ONCE, TWICE)):
        law = MondrianLaw(make_cut_problem(NUMBERS, start=[2], pair=(2, 0.5), rounds=rounds))
        ways = law.list_ways(law.count_table(table))
        shares.append(sum(share for (_, _, cells), share in ways.items() if cells[0][0] == ("*",)))
    assert 0.01 < shares[0] < 0.99
    assert shares == pytest.approx([shares[0]] * 3)


def test_what_noise_is_asked_for_is_what_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The epsilons and the sensitivity of the search and of each round, as published."""
    request: list[tuple[float, float]] = []
    for module in (searching, cutting):
        inner = module.sample_one_sided_noise

        def heard(count: int, inner: Any = inner, **more: Any) -> Counts:
            request.append((float(more["epsilon"]), more["sensitivity"]))
            return inner(count, **more)  # type: ignore[no-any-return]

        monkeypatch.setattr(module, "sample_one_sided_noise", heard)
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({"0": draw.integers(0, 4, 400), "1": draw.choice(["x", "y"], 400)})
    release = publish_unjudged(
        frame, make_crowded_problem(ONCE, ONCE).file, bits=SeededRandomness(1)
    )
    *selections, one_of = release.certificate.events
    assert [epsilon for epsilon, _ in request] == [event["epsilon"] for event in selections]
    pairs = [make_ramp(event["k"], event["beta"]) for event in one_of["events"]]
    chosen = make_ramp(release.certificate.k, float(release.certificate.parameters["beta"]))
    expected = [max(pair.d for pair in pairs), chosen.d, chosen.d]
    assert [sensitivity for _, sensitivity in request] == [W * d for d in expected]
    spent = Accountant([*(Selection(event["epsilon"]) for event in selections), OneOf(
        SafeRelease(event["k"], event["beta"]) for event in one_of["events"]
    )])  # fmt: skip
    assert spent.delta(epsilon=3.0) <= 0.01


def drawn_boxes(law: MondrianLaw, table: Table, copies: int) -> dict[Any, int]:
    """How often real cuts, of so many copies of a table at once, make each set of cells."""
    problem, counted_table = law.problem, law.count_table(table)
    axes = {at: make_contiguous(axis) for at, axis in enumerate(counted_table.axes)}
    points = locate_points(list(axes.values()), counted_table.frequencies.codes)
    weights = law.scheme._list_weights(counted_table.names)
    levels = [limit if isinstance(limit, int) else limit[1] for limit in problem.limits]
    start = schemes._make_boxes(axes, counted_table, levels, weights / weights.sum())
    many = CellPartition(
        np.tile(start.low, (copies, 1)),
        np.tile(start.high, (copies, 1)),
        (start.members + len(start.low) * np.arange(copies)[:, None]).ravel(),
        np.tile(start.beside, copies),
    )
    counts = np.tile(counted_table.frequencies.counts, copies)
    partition = cut_cells(
        list(axes.values()), np.tile(points, (copies, 1)), counts, many,
        ramp=problem.ramps[0], epsilons=problem.epsilons[1:],
        power=law.scheme._release.detail_power,
        shares=weights / weights.sum(), bits=SeededRandomness(7),
    )  # fmt: skip
    labels = [
        axis.make_labels(partition.low[:, at], partition.high[:, at]) for at, axis in axes.items()
    ]
    label_codes = np.stack(
        [codes[partition.members].reshape(copies, -1) for _, codes in labels], axis=2
    )
    result: dict[Any, int] = {}
    for ways, times in zip(*np.unique(label_codes, axis=0, return_counts=True), strict=True):
        cells: dict[Row, int] = {}
        for codes, size in zip(ways, counted_table.frequencies.counts.tolist(), strict=True):
            row = tuple(texts[code] for (texts, _), code in zip(labels, codes, strict=True))
            cells[row] = cells.get(row, 0) + size
        output = tuple(sorted(cells.items(), key=str))
        result[output] = result.get(output, 0) + int(times)
    return result


@pytest.mark.parametrize(
    ("problem", "table"),
    [
        (PLAIN, (("0",),) * 3 + (("1",), ("2",), ("3",), (None,))),
        (SMALL[4][0], (("a", "x"),) * 3 + (("b", "x"), ("c", "y"))),
        (SMALL[5][0], (("0", "x"),) * 3 + (("1", "y"), ("3", "x"))),
    ],
)
def test_real_cuts_follow_the_law(problem: MondrianProblem, table: Table) -> None:
    """Within six deviations, so a false alarm is rarer than 1e-7; with 1.2 times less noise not."""
    copies = 20_000

    def worst(law: MondrianLaw) -> float:
        laws = {
            cells: share for (_, _, cells), share in law.list_ways(law.count_table(table)).items()
        }
        result = drawn_boxes(law, table, copies)
        assert result.keys() <= laws.keys()
        return max(
            abs(result.get(cells, 0) - copies * share) / math.sqrt(copies * share * (1 - share) + 1)
            for cells, share in laws.items()
        )

    class Less(MondrianLaw):
        def compute_law(self, number: int, raised: tuple[int, ...]) -> list[float]:
            return compute_cached_law(raised, self._rate * 1.2)

    assert worst(MondrianLaw(problem)) < 6
    assert worst(Less(problem)) > 6


# Columns that do not list their values.


def files(law: MondrianLaw, table: Table, folder: Path) -> dict[Output, set[bytes]]:
    """Whatever a reader gets, over all choices and coins: what it shows, and every byte of it."""
    result: dict[Output, set[bytes]] = {}
    counted_table = law.count_table(table)
    for coins in list_coin_outcomes(len(table)):
        for product, pair, _ in law.list_products(counted_table, partial(FixedCoins, coins)):
            rows = tuple(product.data.to_frame().rows())
            output = tuple(sorted(((row, rows.count(row)) for row in set(rows)), key=str))
            levels = tuple(column.level for column in product.scheme.values())
            result.setdefault(((pair, levels), output), set()).add(written(product, folder))
    return result


def written(product: Product, folder: Path) -> bytes:
    """The data, and the scheme as the certificate has it."""
    (folder / "scheme").mkdir(exist_ok=True)
    parts = [f"{product.rows} {product.classes} {product.smallest_class}".encode()]
    for ending in ("csv", "parquet"):
        product.data.write(folder / f"data.{ending}")
        parts.append((folder / f"data.{ending}").read_bytes())
    for name, recoded in product.scheme.items():
        parts.append(
            write_scheme(name, recoded, folder, form=recoded.form).model_dump_json().encode()
        )
    return b"\n".join(parts)


@pytest.mark.parametrize(
    ("column", "level", "others", "lonely"),
    [
        (MASK, 0, ("10", "11"), ("00", "1q")),
        (MET, 0, ("m", "n"), ("a", None)),
        # At level 1 the first value met decides which of *0 and *1 has the smaller code.
        (MASK.replace("2,", "2, hide: left,"), 1, ("01", "10"), ("00",)),
    ],
)
def test_nothing_tells_of_a_value_that_only_one_person_has(
    column: str, level: int, others: tuple[str, str], lonely: tuple[str | None, ...], tmp_path: Path
) -> None:
    """What shows the same is the same to the byte, and a crowd of one changes nothing at all."""
    law = MondrianLaw(
        make_cut_problem(column, PAIR, start=[level, 1], pair=(2, 0.5), rounds=(HALF,))
    )
    table: Table = ((others[0], "x"),) * 2 + ((others[1], "y"),) * 2
    without = files(law, table, tmp_path)
    assert len(without) > 5
    for value in lonely:
        with_ = files(law, (*table, (value, "x")), tmp_path)
        assert len(with_.keys() & without.keys()) > 5
        for same in with_.keys() | without.keys():
            assert len(with_.get(same, set()) | without.get(same, set())) == 1
        if level == 0:
            assert with_.keys() == without.keys()


def test_a_listed_value_may_show_its_box_but_an_open_one_its_level_alone() -> None:
    """All labels are known from the spec and the levels: none is made of values met."""
    law = MondrianLaw(make_cut_problem(MASK, NUMBERS, start=[1, 2], pair=(1, 0.5)))
    table = (("00", "0"), ("01", "3"), ("10", "3"), ("11", None))
    published_rows = {
        row
        for _, _, cells in law.list_ways(law.count_table(table))
        for row, _ in cells
    }  # fmt: skip
    assert {row[0] for row in published_rows} == {"0*", "1*"}
    assert {row[1] for row in published_rows} == {"*", "0-1", "2-3", "0", "3", None}


def test_an_empty_table_is_made_like_any_other() -> None:
    """It neighbors a table of one row; who learns that it failed knows which of them it was."""
    law = MondrianLaw(PLAIN)
    context = MakeContext(SeededRandomness(1), local_engine())
    product = law.scheme.make_product(law.count_table((("0",),)), law.problem.split, context)
    assert product.rows == 0
    none = law.scheme.make_product(law.count_table(()), law.problem.split, context)
    assert none.rows == 0


def test_a_slice_of_open_columns_alone_is_made_or_refused_without_the_table() -> None:
    file = make_cut_problem(MASK, MET, PAIR, start=[0, 0, 0], pair=(2, 0.5)).file
    release = file.spec.release
    assert release is not None
    slices = release.model_copy(update={"slices": [("0", "1"), ("1", "2")]})
    spec = file.spec.model_copy(update={"release": slices})
    frame = pl.DataFrame({"0": ["00", "01"] * 40, "1": ["p", "q"] * 40, "2": ["x", "y"] * 40})
    try:
        Safe(replace(file, spec=spec))
    except IncrowdError:
        return
    assert (
        len(publish_unjudged(frame, replace(file, spec=spec), bits=SeededRandomness(1)).tables) == 2
    )
