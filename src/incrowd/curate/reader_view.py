"""What readers of a release see of each column: as it is, coarser, or nothing of it.

Of a release that was made it is read from what was published. Before, a differentially private
release is tried on a fictional table of the spec's domain, so that nothing of the data is used;
a release by classes, whose guarantee allows it, on the table itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from incrowd.codes.hierarchy import SUPPRESSED, UNCHANGED
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.findings import format_count, format_percent, format_points
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.lost_values import LostValue
from incrowd.measure.noise_loss import NoiseEvaluation
from incrowd.measure.synthetic import SyntheticEvaluation
from incrowd.measure.tables import TablesEvaluation
from incrowd.methods.base import MakeContext, published_columns
from incrowd.methods.expect import expect
from incrowd.methods.fictional import make_fictional_table
from incrowd.methods.k_epsilon.loss import LARGE_ERROR
from incrowd.methods.people import draw_rows
from incrowd.methods.registry import make_method
from incrowd.methods.synthetic.expect import SyntheticExpectation
from incrowd.methods.table_fit import refuse_unfit_table
from incrowd.privacy.randomness import SystemRandomness
from incrowd.release.examples import Examples, list_example_columns, make_examples, sample_rows
from incrowd.release.release import Release
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId
from incrowd.spec.problem import Place
from incrowd.spec.release import ClassesSpec, SyntheticSpec, TablesSpec

State: TypeAlias = Literal["unchanged", "coarse", "noisy", "nothing"]
Verdict: TypeAlias = Literal["good", "doubtful", "bad"]
MOST_TRIED = 100_000  # people of a dry run
FEW_ROWS, VERY_FEW_ROWS = 0.9, 0.5  # shares of rows below which a release is doubtful, or bad
_LARGE_ERROR, _LARGE_DISTANCE = 0.05, 0.1  # of a share; of a table from the true one


@dataclass(frozen=True)
class ReaderColumn:
    """What readers see of one column.

    Attributes:
        name: The column.
        state: Published as it is, coarser, with noise, or not at all.
        shows: The same in words, such as "decade".
        example: A label as readers see it; empty where there is none.
        is_vague: Whether noise is as large as the values.
    """

    name: str
    state: State
    shows: str
    example: str = ""
    is_vague: bool = False


@dataclass(frozen=True)
class ReaderView:
    """What readers see of a release, or will see of one.

    Attributes:
        columns: The published columns.
        left_out: The columns that are never published: identifiers, and dropped ones.
        rows: Share of rows that are published; None where no row is, of tables of counts.
        lost: Values that lose far more rows than others, in words.
        rare: Of a dry run, the share of rows below which values are lost; None if none is.
        error: Of synthetic rows and tables, the error of a share or a count, in words.
        people: Number of fictional people of a dry run; None where the table itself was used.
        warnings: What else a forecast warns of.
    """

    columns: tuple[ReaderColumn, ...]
    left_out: tuple[str, ...]
    rows: float | None
    lost: tuple[str, ...] = ()
    rare: float | None = None
    error: str = ""
    people: int | None = None
    warnings: tuple[str, ...] = ()

    def list_columns(self, *states: State) -> list[str]:
        """Return the names of the columns in some states."""
        return [column.name for column in self.columns if column.state in states]

    @property
    def verdict(self) -> Verdict:
        """How much is left: only what shows every column and most rows is good."""
        silent = self.list_columns("nothing")
        if (self.rows is not None and self.rows < VERY_FEW_ROWS) or (
            2 * len(silent) >= len(self.columns)
        ):
            return "bad"
        few = self.rows is not None and self.rows < FEW_ROWS
        if any(column.is_vague for column in self.columns):
            return "doubtful"
        if silent or self.lost or self.warnings or few:
            return "doubtful"
        return "good"

    @property
    def headline(self) -> str:
        """What is left, in one line."""
        silent = self.list_columns("nothing")
        parts = []
        if self.rows is not None:
            parts.append(f"{format_percent(self.rows, 0)} of rows")
        total = len(self.columns)
        parts.append(
            f"{total - len(silent)} of {total} columns show something"
            if silent
            else f"all {total} columns show something"
        )
        vague = [column.name for column in self.columns if column.is_vague]
        if vague:
            parts.append(f"noise as large as the values in {', '.join(vague)}")
        if self.lost and self.people is None:
            kind = "table" if self.rows is None else "column" if self.error else "value"
            parts.append(f"{format_count(len(self.lost), kind, f'{kind}s')} at risk")
        elif self.rare:
            parts.append(f"values rarer than about {format_percent(self.rare, 0)} may vanish")
        return "; ".join(parts)


def view_release(file: SpecFile, release: Release) -> ReaderView:
    """Return what readers see of a release that was made by a spec."""
    return _make_view(file, release.examples, release.evaluation)


def foresee_release(
    file: SpecFile, *, people: int | None = None, table: Table | None = None
) -> ReaderView:
    """Return what readers will see of a release, before it is made.

    Args:
        file: The spec; whatever is left to confirm in it does not matter.
        people: Number of fictional people that a differentially private release is tried on; by
            default the number that the spec states.
        table: The table of a release by classes. It is not read for any other.

    Returns:
        The columns and rows that readers will see.

    Raises:
        IncrowdError: The release cannot be made, or no number of people is known.

    """
    file = file.with_all_confirmed()
    if isinstance(file.spec.release, ClassesSpec):
        if table is None:
            raise IncrowdError("The table is missing.")
        return _try_release(file, table)
    size = people if people is not None else file.spec.size
    if not isinstance(size, int):
        raise IncrowdError("The number of people is missing. Enter about how many there are.")
    if isinstance(file.spec.release, SyntheticSpec | TablesSpec):
        return _expect_release(file, size)
    size = min(size, MOST_TRIED)
    plain = _write_usually(file)
    view = _try_release(plain, make_fictional_table(plain, size))
    return _describe_fictional(view, size)


def _write_usually(file: SpecFile) -> SpecFile:
    """Return the spec with values written in the usual way, as fictional tables have them."""
    plain: dict[Place, Any] = {
        ("columns", name, "written"): None
        for name, column in file.spec.columns.items()
        if column.written is not None
    }
    return file.preview_entries(plain).with_all_confirmed() if plain else file


def _try_release(file: SpecFile, source: Table) -> ReaderView:
    """Make a release of a table in memory, and look at it; nothing of it is kept."""
    method = make_method(file)
    refuse_unfit_table(file.spec, source)
    bits = SystemRandomness()
    rows = draw_rows(source, file.spec, bits) if isinstance(file.spec.unit, PersonId) else source
    outcome = method.make(method.count(rows), MakeContext(bits, source.engine))
    before = sample_rows(rows, list_example_columns(outcome.products[0]))
    return _make_view(file, make_examples(outcome.products, before), outcome.measure()[0])


def _describe_fictional(view: ReaderView, size: int) -> ReaderView:
    """Name no value that only a fictional table lost: say how rare the lost ones were."""
    return ReaderView(
        view.columns, view.left_out, view.rows, rare=view.rare, error=view.error, people=size
    )


def _expect_release(file: SpecFile, size: int) -> ReaderView:
    """Return what a release that suppresses no group shows, from its spec and size alone."""
    expectation = expect(None, file.preview_entries({("size",): size}).with_all_confirmed())
    columns, left_out = tuple(_list_finest(file)), _list_left_out(file)
    warnings = tuple(finding.message for finding in expectation.warnings())
    if isinstance(expectation, SyntheticExpectation):
        share = min(expectation.error / size, 1.0)
        error = f"Shares of single values within ±{format_points(share)} (95 %)."
        return ReaderView(
            columns, left_out, 1.0, rare=share, error=error, people=size, warnings=warnings
        )
    error = expectation.summarize().removeprefix("Forecast: ")
    return ReaderView(
        columns, left_out, None, error=f"{error[:1].upper()}{error[1:]}", people=size,
        warnings=warnings,
    )  # fmt: skip


def _list_finest(file: SpecFile) -> Iterator[ReaderColumn]:
    """Yield the published columns of a release whose columns have their finest declared values."""
    release = file.spec.release
    names = published_columns(file.spec, "quasi", "sensitive")
    kind = "counted" if isinstance(release, TablesSpec) else "synthetic"
    if isinstance(release, TablesSpec) and release.tables:
        names = {name: names[name] for name in release.named_columns if name in names}
    for name, column in names.items():
        intervals = column.hierarchy is not None and column.hierarchy.intervals is not None
        yield ReaderColumn(name, "unchanged", f"{kind}, finest intervals" if intervals else kind)


def _list_left_out(file: SpecFile) -> tuple[str, ...]:
    return file.spec.columns_with_role("identifier", "drop")


def _make_view(file: SpecFile, examples: Examples | None, evaluation: Evaluation) -> ReaderView:
    left_out = _list_left_out(file)
    if isinstance(evaluation, SyntheticEvaluation):
        worst = max(evaluation.distance_by_column.values(), default=0.0)
        error = f"Distributions of single columns differ by at most {format_points(worst)}."
        return ReaderView(
            tuple(_list_finest(file)), left_out, evaluation.share,
            lost=tuple(_list_distorted(evaluation)), error=error,
        )  # fmt: skip
    if isinstance(evaluation, TablesEvaluation):
        error = f"{format_percent(evaluation.coverage, 0)} of 95 % intervals hold the true count."
        distorted = tuple(
            f"{' by '.join(table.columns)} ({format_percent(table.distance, 0)} in another cell)"
            for table in evaluation.tables
            if table.distance > _LARGE_DISTANCE
        )
        return ReaderView(tuple(_list_finest(file)), left_out, None, lost=distorted, error=error)
    assert examples is not None
    parts = (evaluation, *evaluation.slices)
    values = [value for part in parts for value in part.lost.values]
    columns = tuple(_list_columns(file, examples, evaluation.noise))
    if not evaluation.rows_released:
        columns = tuple(ReaderColumn(column.name, "nothing", SUPPRESSED) for column in columns)
    return ReaderView(
        columns=columns,
        left_out=left_out,
        rows=_find_share(evaluation),
        lost=tuple(dict.fromkeys(value.description for value in values)),
        rare=_find_rare(values),
    )


def _find_share(evaluation: Evaluation) -> float:
    """Return the share of rows that are published; of slices, the smallest."""
    parts = evaluation.slices or (evaluation,)
    return min((min(part.share, 1.0) for part in parts), default=0.0)


def _find_rare(values: Iterable[LostValue]) -> float | None:
    return max((value.share_before for value in values), default=None)


def _list_distorted(evaluation: SyntheticEvaluation) -> Iterator[str]:
    """Yield the columns whose distribution is far from the table's."""
    for name, distance in evaluation.distance_by_column.items():
        if distance > _LARGE_ERROR:
            yield f"{name} (off by {format_points(distance)})"


def _list_columns(
    file: SpecFile, examples: Examples, noise: NoiseEvaluation | None
) -> Iterator[ReaderColumn]:
    """Yield each published column, in the order of the spec, at the finest of its slices."""
    labels = _find_labels(examples)
    words: dict[str, str] = {}
    for scheme in examples.of_slices or (examples.levels,):
        for name, shows in scheme.items():
            if words.get(name, SUPPRESSED) == SUPPRESSED:
                words[name] = shows
    for name, column in file.spec.columns.items():
        if name in words:
            shows, bare = words[name], "(" not in words[name]
            example = labels.get(name, "") if bare and shows not in (SUPPRESSED, UNCHANGED) else ""
            yield ReaderColumn(name, _choose_state(shows), shows, example)
        elif column.role == "noisy":
            yield _describe_noisy(name, noise, labels.get(name, ""))
        elif column.role in ("sensitive", "keep", "weight") and name in examples.names:
            yield ReaderColumn(name, "unchanged", UNCHANGED)


def _describe_noisy(name: str, noise: NoiseEvaluation | None, label: str) -> ReaderColumn:
    """Return what readers see of a noisy column: how large the errors are, or how often it lies."""
    if noise is not None and name in noise.categories:
        keep = format_percent(noise.categories[name].keep, 0)
        return ReaderColumn(name, "noisy", f"own category in {keep} of rows", label)
    error = noise.columns[name].expected_error if noise and name in noise.columns else None
    if error is None:
        return ReaderColumn(name, "noisy", "with noise", label)
    shows = f"error {format_percent(error, 0)} on average"
    return ReaderColumn(name, "noisy", shows, label, is_vague=error > LARGE_ERROR)


def _choose_state(shows: str) -> State:
    return {SUPPRESSED: "nothing", UNCHANGED: "unchanged"}.get(shows, "coarse")  # type: ignore[return-value]


def _find_labels(examples: Examples) -> Mapping[str, str]:
    """Return a published label of each column."""
    rows = [row.after for row in examples.rows if row.after is not None]
    return {
        name: label
        for at, name in enumerate(examples.names)
        if rows and (label := rows[0][at]) is not None
    }
