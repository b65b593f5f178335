"""What every method is, what all refuse alike, and the order in which rows are published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import numpy as np

from incrowd.arrays import Codes, Floats, Progress, Step
from incrowd.codes.counted import COUNT, Counted, Rows
from incrowd.codes.frequency import Frequencies, merged
from incrowd.codes.values import reading_order
from incrowd.engine.table import Engine, Table, TableError
from incrowd.errors import IncrowdError
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.privacy.randomness import Randomness
from incrowd.release.certificate import Promise
from incrowd.release.product import Made
from incrowd.spec.build import Declared
from incrowd.spec.model import Column, Spec


@dataclass(frozen=True)
class MakeContext:
    """What goes along with the making of a release.

    Random bits, the engine that makes the tables to be published, and who hears of each step.
    """

    bits: Randomness
    engine: Engine
    step: Step = lambda _: None
    progress: Progress = lambda _done, _all: None


@dataclass(frozen=True)
class Settled:
    """What is settled of a release before its table is seen.

    For each table the levels that its columns may take, lowest and highest; a cell of n rows is
    shown with probability ``likely(n)``, at least as often as not from ``crowd`` rows on.
    """

    declared: Declared
    tables: tuple[Mapping[str, tuple[int, int]], ...]
    likely: Callable[[Floats], Floats]
    crowd: float


class Method(Protocol):
    """A way to publish. Making one refuses whatever can be refused without the table."""

    @property
    def events(self) -> list[Event]:
        """What is spent of a privacy budget; nothing where there is no differential privacy."""
        ...

    @property
    def promise(self) -> Promise:
        """What is promised, in numbers; the certificate finds the words."""
        ...

    @property
    def together(self) -> Guarantee | None:
        """What all planned releases satisfy, where the spec says ``releases``."""
        ...

    @property
    def settled(self) -> Settled:
        """What is settled without the table."""
        ...

    def count(self, table: Table) -> Counted | Rows | Elsewhere:
        """The table as distinct tuples. Nothing is drawn."""
        ...

    def make(self, counted: Any, context: MakeContext) -> Made:
        """The rows to be published, from what :meth:`count` has found."""
        ...


def protection(spec: Spec) -> dict[str, Any]:
    """What the guarantee protects, as the certificate has it."""
    if isinstance(spec.unit, str):
        return {"unit": "one row"}
    return {"unit": "one person", "without_id": "dropped" if spec.unit.without_id else None}


def here(counted: Counted | Rows | Elsewhere) -> Counted | Rows:
    """Tuples that are on this machine; refuses others."""
    if not isinstance(counted, Counted | Rows):
        raise TableError(
            "Table: its distinct tuples are on other machines, and this needs all of them. Use a "
            "part of the table."
        )
    return counted


class Elsewhere(Protocol):
    """Counted tuples that are not on this machine."""

    @property
    def names(self) -> tuple[str, ...]: ...  # noqa: D102

    def column(self, at: int) -> Counted: ...  # noqa: D102


def refuse_outside(table: Counted | Rows | Elsewhere) -> None:
    """Refuse columns none of whose values is in the declared domain: a mistake, not data.

    At the root nothing is shown of a column, whatever its values are.
    """
    counted = table.counted if isinstance(table, Rows) else table
    if not isinstance(counted, Counted):  # it is elsewhere, and is looked at column by column
        for at in range(len(counted.names)):
            refuse_outside(counted.column(at))
        return
    for at, (name, hierarchy, level) in enumerate(
        zip(counted.names, counted.hierarchies, counted.levels, strict=True)
    ):
        groups = len(hierarchy.labels[level]) - 2  # null, and what is outside
        held = counted.frequencies.codes[:, at]
        if groups > 0 and (held == groups + 1).any() and not (held < groups).any():
            raise TableError(
                f"Column '{name}': no value is in the declared domain. Correct the hierarchy (see "
                "incrowd check), or drop the column."
            )


def published(spec: Spec, *roles: str) -> dict[str, Column]:
    """The columns of some roles; refuses names that no file can have."""
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
    if "unit" in spec.confirm:
        raise IncrowdError(
            "Spec: the unit (row or person) is not confirmed. Confirm it: incrowd confirm SPEC."
        )
    guessed = [name for name, entries in spec.unconfirmed.items() if "role" in entries]
    if guessed:
        raise IncrowdError(
            f"Column '{guessed[0]}': its role is not confirmed. Confirm it: incrowd confirm SPEC."
        )
    if spec.release is not None and spec.release.rows == "counted" and COUNT in columns:
        raise IncrowdError(f"With 'rows: counted' a release has a column '{COUNT}'; rename yours.")
    return columns


def cells(
    labels: Mapping[str, Sequence[object]],
    frequencies: Frequencies,
    *,
    weighted: bool,
    engine: Engine,
) -> Table:
    """Cells as a table of an engine, in the order of what they show.

    Codes may come from the values met in the table, suppressed ones among them, so their order
    must not be seen.
    """
    shown, codes = {}, frequencies.codes.copy()
    for at, (name, texts) in enumerate(labels.items()):
        shown[name], rank = in_reading_order(texts)
        codes[:, at] = rank[codes[:, at]]
    merged_ = merged(codes, frequencies.counts)
    columns = {
        name: (texts, merged_.codes[:, at]) for at, (name, texts) in enumerate(shown.items())
    }
    return engine.from_cells(columns, merged_.counts, weighted=COUNT if weighted else None)


def in_reading_order(texts: Sequence[object]) -> tuple[list[object], Codes]:
    """Labels in the order of a reader, and the place of each."""
    order = sorted(range(len(texts)), key=lambda code: reading_order(texts[code]))
    rank = np.empty(len(texts), dtype=np.int32)
    rank[order] = np.arange(len(texts))
    return [texts[code] for code in order], rank
