"""What every method is, what all refuse alike, and the order in which rows are published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import quote

import numpy as np

from incrowd.arrays import Codes, Counts, Floats, Progress, Step
from incrowd.codes.counted_table import COUNT, CountedTable, DistinctRows
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.codes.values import make_sort_key
from incrowd.engine.table import Engine, Table, TableError
from incrowd.errors import IncrowdError
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.series import SeriesTurn
from incrowd.release.certificate import CertifiedGuarantee
from incrowd.release.product import MethodResult
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile
from incrowd.spec.model import HARMLESS_ENTRIES, Column, Spec


@dataclass(frozen=True)
class MakeContext:
    """What goes along with the making of a release.

    Random bits, the engine that makes the tables to be published, and who hears of each step. A
    release of a series has its ``turn``. ``measured`` are noisy counts of the values of some
    columns, by code; each stands under its column and the level that was measured and paid for.
    """

    bits: Randomness
    engine: Engine
    step: Step = lambda _: None
    progress: Progress = lambda _done, _all: None
    turn: SeriesTurn | None = None
    measured: Mapping[tuple[str, int], Counts] = field(default_factory=dict)


@dataclass(frozen=True)
class PlannedRelease:
    """What is settled of a release before its table is seen.

    For each table the levels that its columns may take, lowest and highest; a cell of n rows is
    shown with probability ``likely(n)``, at least as often as not from ``crowd`` rows on.
    ``counted_unit`` says what they are: people, or rows of which a person may have several.
    Households that are published ``whole`` are cells together with their people.
    """

    declared: ColumnHierarchies
    tables: tuple[Mapping[str, tuple[int, int]], ...]
    likely: Callable[[Floats], Floats]
    crowd: float
    counted_unit: Literal["people", "rows"] = "people"
    whole: WholeHouseholds | None = None


@dataclass(frozen=True)
class WholeHouseholds:
    """The columns of households that are published whole, and the most people of one."""

    own_columns: tuple[str, ...]
    people: int


class Method(Protocol):
    """A way to publish. Making one refuses whatever can be refused without the table."""

    @property
    def events(self) -> list[Event]:
        """What is spent of a privacy budget; nothing where there is no differential privacy."""
        ...

    @property
    def promise(self) -> CertifiedGuarantee:
        """What is promised, in numbers; the certificate finds the words."""
        ...

    @property
    def joint_guarantee(self) -> Guarantee | None:
        """What all planned releases satisfy, where the spec says ``releases``."""
        ...

    @property
    def planned_release(self) -> PlannedRelease:
        """What is settled without the table."""
        ...

    def count(
        self, table: Table, *, by_row: bool = False
    ) -> CountedTable | DistinctRows | RemoteCounts:
        """Count the table as distinct tuples; draw nothing.

        ``by_row`` counts rows also where people are to be counted: it shows which values there are.
        """
        ...

    def make(self, counts: Any, context: MakeContext) -> MethodResult:
        """Make the rows to be published, from what :meth:`count` has found."""
        ...


def get_unit_fields(spec: Spec) -> dict[str, Any]:
    """Return what the guarantee protects, as the certificate has it."""
    if isinstance(spec.unit, str):
        return {"unit": "one row"}
    fields: dict[str, Any] = {
        "unit": "one person", "without_id": "dropped" if spec.unit.without_id else None,
    }  # fmt: skip
    if spec.unit.protects is not None:
        fields["protects"] = spec.unit.protects
    if spec.unit.period is not None and spec.part is not None:
        fields |= {"period": spec.unit.period.every, "part": spec.part.value}
    return fields


def require_local(
    counts: CountedTable | DistinctRows | RemoteCounts,
) -> CountedTable | DistinctRows:
    """Return tuples that are on this machine; refuse others."""
    if not isinstance(counts, CountedTable | DistinctRows):
        raise TableError(
            "Table: its distinct tuples are on other machines, and this needs all of them. Use a "
            "part of the table."
        )
    return counts


class RemoteCounts(Protocol):
    """Counted tuples that are not on this machine."""

    @property
    def names(self) -> tuple[str, ...]: ...  # noqa: D102

    def column(self, at: int) -> CountedTable: ...  # noqa: D102


def refuse_outside_domain(table: CountedTable | DistinctRows | RemoteCounts) -> None:
    """Refuse columns none of whose values is in the declared domain: a mistake, not data.

    At the root nothing is shown of a column, whatever its values are.
    """
    counted_table = table.counted if isinstance(table, DistinctRows) else table
    if not isinstance(counted_table, CountedTable):
        # It is elsewhere, and is looked at column by column.
        for at in range(len(counted_table.names)):
            refuse_outside_domain(counted_table.column(at))
        return
    for at, (name, hierarchy, level) in enumerate(
        zip(counted_table.names, counted_table.hierarchies, counted_table.levels, strict=True)
    ):
        groups = len(hierarchy.labels[level]) - 2  # null, and what is outside
        codes = counted_table.frequencies.codes[:, at]
        if groups > 0 and (codes == groups + 1).any() and not (codes < groups).any():
            raise TableError(
                f"Column '{name}': no value is in the declared domain. Correct the hierarchy (see "
                "incrowd check), or drop the column."
            )


def refuse_unconfirmed(file: SpecFile, *, roles_suffice: bool = False) -> None:
    """Refuse a draft that is not confirmed.

    The unit, roles and formats must be correct. Ranges and lists of values must be public
    knowledge: a guarantee takes them for it. ``roles_suffice`` for methods without one.
    """
    entries = file.spec.unconfirmed_entries
    correct = [name for name, left in entries.items() if set(left) & set(HARMLESS_ENTRIES)]
    public = [name for name, left in entries.items() if set(left) - set(HARMLESS_ENTRIES)]
    if roles_suffice:
        correct, public = [name for name, left in entries.items() if "role" in left], []
    parts = ["the unit must be correct"] if file.spec.confirm else []
    if correct:
        parts.append(f"roles and formats must be correct ({_shorten_list(correct)})")
    if public:
        parts.append(f"ranges and lists of values must be public ({_shorten_list(public)})")
    if parts:
        raise IncrowdError(
            f"Spec: not confirmed: {', '.join(parts)}. Run `incrowd confirm {file.shell_name}`."
        )


def _shorten_list(names: Sequence[str], most: int = 4) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def published_columns(spec: Spec, *roles: str) -> dict[str, Column]:
    """Return the columns of some roles; refuse names that no file can have."""
    columns = {name: column for name, column in spec.columns.items() if column.role in roles}
    for name in columns:
        if "\0" in name or name.startswith("\ufeff"):
            raise IncrowdError(
                f"Column {name!r}: its name holds a character that text files cannot keep. Rename "
                "it."
            )
        if len(quote(name, safe=" ")) > 200:
            raise IncrowdError(
                f"Column '{name[:40]}...': its name is too long for a file. Rename it."
            )
    if spec.release is not None and spec.release.rows == "counted" and COUNT in columns:
        raise IncrowdError(
            f"Column '{COUNT}': `rows: counted` adds a column of this name. Rename yours."
        )
    return columns


def make_cell_table(
    labels: Mapping[str, Sequence[object]],
    frequencies: Frequencies,
    *,
    weighted: bool,
    engine: Engine,
) -> Table:
    """Make cells into a table of an engine, in the order of what they show.

    Codes may come from the values met in the table, suppressed ones among them, so their order
    must not be seen.
    """
    sorted_labels, codes = {}, frequencies.codes.copy()
    for at, (name, texts) in enumerate(labels.items()):
        sorted_labels[name], rank = sort_labels(texts)
        codes[:, at] = rank[codes[:, at]]
    merged_ = merge_tuples(codes, frequencies.counts)
    columns = {
        name: (texts, merged_.codes[:, at])
        for at, (name, texts) in enumerate(sorted_labels.items())
    }
    return engine.from_cells(columns, merged_.counts, count_column=COUNT if weighted else None)


def sort_labels(texts: Sequence[object]) -> tuple[list[object], Codes]:
    """Return labels in the order of a reader, and the place of each."""
    order = sorted(range(len(texts)), key=lambda code: make_sort_key(texts[code]))
    rank = np.empty(len(texts), dtype=np.int32)
    rank[order] = np.arange(len(texts))
    return [texts[code] for code in order], rank
