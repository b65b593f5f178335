"""What paper B (Holohan and others) was measured on: its grids, data sets and printed numbers.

The paper's tables are not public in the form it used, so ours are samples of the same size and
shape, decided by their seed; the real Adult table may take the place of the first.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.arrays import Members, Steps
from incrowd.codes.counted_table import DistinctRows
from incrowd.curate.demo_tables import _draw_heights, make_demo_table
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.measure.linkage import RunMean
from incrowd.methods.k_anonymity.classes import EquivalenceClasses, form_classes
from incrowd.methods.k_epsilon.rows import NoisyRows, make_noisy_rows
from incrowd.privacy.discrete_noise import sample_laplace
from incrowd.privacy.k_epsilon import ClassNoise, make_laplace_noise, split_epsilon
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.spec.model import Column
from incrowd.spec.release import KEpsilonSpec

SEED = 1
ALGORITHMS = ("ola", "mondrian")
SHOWN = {"ola": "OLA", "mondrian": "Mondrian"}
SUPPRESSION = 0.05
CONFIDENCE = 0.99
STEP = Decimal("0.1")
YEARS = (2, 4, 8)
WIDTHS = ("0.5", "1", "2", "4", "8", "16")  # of height in cm and weight in kg, above steps of 0.1
MARITAL = {
    "in marriage": ["Married-civ-spouse", "Married-AF-spouse"],
    "alone": ["Never-married", "Divorced", "Separated", "Widowed", "Married-spouse-absent"],
}
TABLE_4_K = (2, 5, 10, 20, 50, 100)
TABLE_4_PRINTED = {
    "Adult": (0.0167, 0.0242, 0.0371, 0.0147, 0.0176, 0.0480),
    "Florida": (0.0477, 0.0391, 0.0415, 0.0418, 0.0347, 0.0348),
    "Michigan": (0.0483, 0.0188, 0.0373, 0.0396, 0.0153, 0.0134),
}
TABLE_3_PRINTED = {"Adult": 32_440, "Florida": 134_791, "Michigan": 72_825}


@dataclass(frozen=True)
class ExperimentGrid:
    """What is varied, and how often each run is repeated."""

    ks: tuple[int, ...]
    epsilons: tuple[float, ...]
    confidences: tuple[float, ...]
    runs: int
    rows: int | None


FULL = ExperimentGrid(
    TABLE_4_K, (0.05, 0.5, 1, 2, 4, 8, 16), (0.7, 0.9, 0.99, 0.999, 0.9999, 0.99999), 30, None
)
QUICK = ExperimentGrid((2, 10), (0.5, 8), (0.9, 0.99), 3, 3_000)


@dataclass(frozen=True, eq=False)
class DataSet:
    """A table, its k-quasis with their hierarchies, and its one epsilon-quasi.

    ``paper`` is the paper's name of the table whose place it takes. ``widened`` has the
    epsilon-quasi as one more k-quasi, with a hierarchy of intervals.
    """

    paper: str
    name: str
    table: Table
    rows: int
    quasi: dict[str, Column]
    attribute: str
    lowest: int
    noisy: Column
    widened: dict[str, Column]

    @property
    def unit(self) -> str:
        """The unit of the epsilon-quasi."""
        return "cm" if self.attribute == "height" else "kg"


def make_data_sets(grid: ExperimentGrid, adult: Path | None) -> list[DataSet]:
    """Make our three tables, as large as the paper's unless the grid says otherwise."""
    voters = make_demo_table("voters", rows=grid.rows, seed=SEED)
    patients = make_demo_table("patients", rows=grid.rows, seed=SEED)
    zips, flat, born = (
        _make_quasi_column(mask={"length": 5}),
        _make_quasi_column(flat={}),
        "birth_year",
    )
    people = (
        _load_adult(adult, grid.rows)
        if adult is not None
        else make_demo_table("census", rows=grid.rows, seed=SEED)
    )
    census_name = "the Adult table, with heights made up" if adult else "census sample"
    marital = _make_quasi_column(groups=MARITAL)
    return [
        _make_data_set(
            ("Adult", census_name),
            people,
            {
                "age": _make_year_column(people, "age"),
                "sex": flat,
                "race": flat,
                "marital_status": marital,
            },
            "height",
        ),
        _make_data_set(
            ("Florida", "voters sample"),
            voters,
            {"zip": zips, "sex": flat, born: _make_year_column(voters, born), "race": flat},
            "height",
        ),
        _make_data_set(
            ("Michigan", "patients sample"),
            patients,
            {"zip": zips, "sex": flat, born: _make_year_column(patients, born)},
            "weight",
        ),
    ]


def _make_quasi_column(**hierarchy: Any) -> Column:
    return Column.model_validate({"role": "quasi", "hierarchy": hierarchy})


def _make_year_column(table: Table, name: str) -> Column:
    met = [int(str(year)) for year in table.values(name)]
    return _make_quasi_column(intervals={"from": min(met), "to": max(met), "widths": YEARS})


def _make_data_set(
    names: tuple[str, str], table: Table, quasi: dict[str, Column], attribute: str
) -> DataSet:
    met = [Decimal(str(value)) for value in table.values(attribute)]
    intervals = {"from": min(met), "to": max(met), "step": STEP, "widths": WIDTHS}
    return DataSet(
        paper=names[0],
        name=names[1],
        table=table,
        rows=table.rows(),
        quasi=quasi,
        attribute=attribute,
        lowest=int(min(met) / STEP),
        noisy=Column(role="noisy", precision=STEP),
        widened={**quasi, attribute: _make_quasi_column(intervals=intervals)},
    )


def _load_adult(path: Path, rows: int | None) -> Table:
    """Load the real Adult table, with heights drawn by sex and age from a fixed seed."""
    from incrowd.engine.source import open_table

    table = open_table(path)
    table = table.head(rows) if rows is not None else table
    column_names = {re.sub(r"\W", "_", name.strip().lower()): name for name in table.columns}
    required = ("sex", "age", "race", "marital_status")
    missing = [name for name in required if name not in column_names]
    if missing:
        raise IncrowdError(
            f"File '{path.name}': no column '{missing[0]}'. The Adult table needs "
            f"{', '.join(required)}."
        )
    frame = table.to_frame()
    columns = {
        name: [str(value).strip() for value in frame[column_names[name]]] for name in required
    }
    try:
        age = np.array([int(text) for text in columns["age"]], dtype=np.int64)
    except ValueError as error:
        raise IncrowdError(
            f"File '{path.name}': column 'age' must hold whole numbers. Correct it."
        ) from error
    sex = np.char.lower(np.array(columns["sex"]))
    height = _draw_heights(sex, age.astype(np.float64), np.random.default_rng(SEED))
    texts = {name: np.array(columns[name]) for name in ("race", "marital_status")}
    return table.engine.from_columns({"sex": sex, "age": age, **texts, "height": height})


# Classes and noise -----------------------------------------------------------------------


def make_release_spec(algorithm: str, k: int) -> KEpsilonSpec:
    """Return the search for classes as the paper has it: by OLA, or by Mondrian."""
    ola = {"suppression": SUPPRESSION, "loss": "precision", "candidates": "minimal"}
    settings = {"method": "k-epsilon", "epsilon": 1.0, "algorithm": algorithm, "k": k}
    return KEpsilonSpec.model_validate(settings | (ola if algorithm == "ola" else {}))


def make_seeded_bits(*names: object) -> Randomness:
    """Return random bits that the names of an experiment decide, whatever ran before it."""
    return SeededRandomness(zlib.crc32("/".join(map(str, names)).encode()))


def group_rows(
    rows: DistinctRows, columns: dict[str, Column], algorithm: str, k: int
) -> EquivalenceClasses:
    """Group the rows in classes of at least k."""
    return form_classes(
        rows, columns, make_release_spec(algorithm, k), bits=make_seeded_bits(algorithm, k)
    )


def group_noisy_rows(
    data: DataSet, rows: DistinctRows, algorithm: str, k: int
) -> tuple[EquivalenceClasses, NoisyRows]:
    """Return the classes of a data set and the rows in them, with noise for epsilon = 1."""
    classes = group_rows(rows, {**data.quasi, data.attribute: data.noisy}, algorithm, k)
    noisy = make_noisy_rows(
        rows, classes, {data.attribute: data.noisy}, make_release_spec(algorithm, k)
    )
    return classes, noisy


def make_noises(widths: Steps, epsilons: Sequence[float]) -> list[tuple[int, ClassNoise]]:
    """Return for each epsilon its noise, and how many times the smallest epsilon it is."""
    exact = [split_epsilon(epsilon, [1.0])[0] for epsilon in epsilons]
    times = [epsilon / min(exact) for epsilon in exact]
    assert all(ratio.denominator == 1 for ratio in times)
    pairs = zip(times, exact, strict=True)
    return [(int(ratio), make_laplace_noise(widths, epsilon)) for ratio, epsilon in pairs]


def draw_nested_noise(
    members: Members, noises: Sequence[tuple[int, ClassNoise]], bits: Randomness
) -> Iterator[Steps]:
    """Draw the noise of one run for each epsilon, from one draw.

    Claim: for each epsilon, alone, exactly the noise that it asks for. If X is geometric with
    ratio q, X // m is geometric with ratio q^m. With a fair sign, where a negative zero is
    drawn again, that is the noise for m times the epsilon; a negative zero of the finer noise
    would be one of the coarser as well.
    """
    (finest,) = (noise for times, noise in noises if times == 1)
    fine = finest.draw(members, bits)
    size, negative = np.abs(fine), fine < 0
    coarse_sizes = [size // times for times, _ in noises]
    redraw_rows = [np.flatnonzero(negative & (coarse == 0)) for coarse in coarse_sizes]
    # What is drawn again is drawn at once, with t and s of each multiplied to the same s.
    common = math.lcm(*(noise.s for _, noise in noises))
    wide = [
        noise.t[members[rows]] * (common // noise.s)
        for rows, (_, noise) in zip(redraw_rows, noises, strict=True)
    ]
    fresh = sample_laplace(np.concatenate(wide), common, bits)
    ends = np.cumsum([len(rows) for rows in redraw_rows])[:-1]
    for coarse, rows, redrawn in zip(coarse_sizes, redraw_rows, np.split(fresh, ends), strict=True):
        noise_values = np.where(negative, -coarse, coarse)
        noise_values[rows] = redrawn
        yield noise_values


# What is measured ------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassSummary:
    """A data set in classes.

    ``suppressed`` is a share of the table's rows. Means over the rows shown: ``prosecutor`` of
    one over the size of the class, ``spread`` of its diameter over the row's own value.
    """

    data: str
    algorithm: str
    k: int
    levels: tuple[int, ...] | None
    suppressed: float
    classes: int
    smallest: int
    prosecutor: float
    spread: float


@dataclass(frozen=True)
class ResultCell:
    """One point of Figures 3 to 6.

    ``linking`` counts a tie for nearest as a success, ``linking_shared`` one of t as 1 / t.
    ``suppressed`` is, for each confidence, the share of the table's rows that confidence-based
    k-anonymity takes away, those that the algorithm suppressed not counted.
    """

    data: str
    algorithm: str
    k: int
    epsilon: float
    predicted_error: float
    error: RunMean
    linking: RunMean
    linking_shared: RunMean
    suppressed: dict[float, RunMean]


@dataclass(frozen=True)
class RunTimes:
    """Seconds: counting the table, searching for classes, and drawing noise (or none)."""

    count: float
    search: float
    noise: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.count + self.search + self.noise


@dataclass(frozen=True)
class WidenedResult:
    """The epsilon-quasi as one more k-quasi, against (k,epsilon)-anonymity.

    Losses are precisions over the rows shown, the mean over the other k-quasis: without the
    attribute among them and with it. ``midpoint_error`` is the mean relative error of a reader
    who takes the middle of each interval of the attribute.
    """

    data: str
    algorithm: str
    k: int
    loss: float
    loss_widened: float
    attribute_loss: float
    midpoint_error: float
    suppressed_widened: float
    lattice: int | None
    lattice_widened: int | None
    times: RunTimes
    times_widened: RunTimes


@dataclass(frozen=True)
class NoiseComparison:
    """Figure 2 for one data set: shares of rows with at most so large a relative error.

    Under uniform noise ``excluded_uniform`` is the mean share of a class that a released value
    cannot come from, and ``alone_uniform`` the share of rows whose original alone is left.
    """

    data: str
    errors: tuple[float, ...]
    by_class: tuple[float, ...]
    overall: tuple[float, ...]
    mean_by_class: float
    mean_overall: float
    small_errors: tuple[float, ...]
    laplace: tuple[float, ...]
    uniform: tuple[float, ...]
    matching_epsilon: float
    mean_laplace: float
    mean_uniform: float
    linking_laplace: float
    linking_uniform: float
    excluded_uniform: float
    alone_uniform: float


@dataclass(frozen=True)
class PaperNumbers:
    """Everything computed."""

    grid: ExperimentGrid
    grouped: tuple[ClassSummary, ...]
    cells: tuple[ResultCell, ...]
    widened: tuple[WidenedResult, ...]
    compared: tuple[NoiseComparison, ...]


@dataclass(frozen=True)
class PaperFinding:
    """Whether each data set shows a finding of the paper, which the page puts into words."""

    key: str
    figure: str
    agrees: dict[str, bool]
    seen: dict[str, str]

    @property
    def verdict(self) -> str:
        """In how many tables we see the same."""
        good = sum(self.agrees.values())
        if good == len(self.agrees):
            return "agrees"
        return f"agrees in {good} of {len(self.agrees)} tables" if good else "differs"
