"""What every method of publishing gives to the one that writes releases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias
from urllib.parse import quote

import numpy as np

from incrowd.anonymize.frequency import Frequencies, merged
from incrowd.associating import Sliced
from incrowd.certificate import Guarantee, NoisyColumn
from incrowd.engine import Table
from incrowd.engine.local import from_cells
from incrowd.errors import IncrowdError
from incrowd.evaluating import COUNT, Evaluation, Shown
from incrowd.hierarchy import Hierarchy
from incrowd.outcome import Outcome
from incrowd.privacy.events import Event
from incrowd.privacy.randomness import Randomness
from incrowd.spec import Column, Spec

Step: TypeAlias = Callable[[str], None]
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Recoded:
    """How one column was generalised: to a level, or locally (then whether it is ordered)."""

    column: Column
    hierarchy: Hierarchy
    level: int | None
    ordered: bool | None = None


@dataclass(frozen=True, eq=False)
class Product:
    """The rows of one table, the facts about them, and what only the curator may see."""

    data: Table
    rows: int
    classes: int
    smallest_class: int
    scheme: dict[str, Recoded]
    evaluation: Outcome | Evaluation
    kept: tuple[str, ...] = ()
    noisy: dict[str, NoisyColumn] = field(default_factory=dict)
    parameters: dict[str, float | str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    shown: Shown | None = None


@dataclass(frozen=True, eq=False)
class Made:
    """All that a method has made: one table or slices, and what is said of them together.

    ``reasons`` tell why a scheme was used; they depend on no data.
    """

    products: tuple[Product, ...]
    evaluation: Outcome | Evaluation | Sliced
    parameters: dict[str, float | str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the custodian should know of the tables, each once."""
        found = (warning for product in self.products for warning in product.warnings)
        return tuple(dict.fromkeys(found))


def alone(product: Product) -> Made:
    """One table."""
    return Made((product,), product.evaluation)


class Method(Protocol):
    """A way to publish. Making one refuses whatever can be refused without the table."""

    @property
    def events(self) -> list[Event]:
        """What is spent of a privacy budget; nothing where there is no differential privacy."""
        ...

    def guarantee(self) -> Guarantee:
        """What is promised."""
        ...

    def make(self, table: Table, bits: Randomness, step: Step, progress: Progress) -> Made:
        """The rows to be published."""
        ...


def unit_of(spec: Spec) -> Literal["one row", "one person"]:
    """What the guarantee protects."""
    return "one row" if isinstance(spec.unit, str) else "one person"


def published(spec: Spec, *roles: str) -> dict[str, Column]:
    """The columns of some roles; refuses names that no file can have."""
    columns = {name: column for name, column in spec.columns.items() if column.role in roles}
    for name in columns:
        if len(quote(name, safe=" ")) > 200:
            raise IncrowdError(f"The name of the column '{name[:40]}...' is too long for a file.")
    guessed = [name for name, entries in spec.unconfirmed.items() if "role" in entries]
    if guessed:
        raise IncrowdError(
            f"The role of '{guessed[0]}' was guessed and nobody has confirmed it. Check every "
            "role, then delete 'confirm'."
        )
    if spec.release is not None and spec.release.rows == "weighted" and COUNT in columns:
        raise IncrowdError(f"A weighted release has a column '{COUNT}'; rename yours.")
    return columns


def cells(
    labels: Mapping[str, Sequence[object]],
    frequencies: Frequencies,
    *,
    by_text: Collection[str],
    weighted: bool,
) -> Table:
    """Cells as a table, in an order that they themselves decide.

    Codes of an open domain, or of local recoding, come from the values met in the table,
    suppressed ones among them; there (``by_text``) labels are put in the order of their texts
    first.
    """
    shown, codes = {}, frequencies.codes.copy()
    for at, (name, texts) in enumerate(labels.items()):
        shown[name] = list(texts)
        if name in by_text:
            order = sorted(range(len(texts)), key=lambda code: _in_text_order(texts[code]))
            rank = np.empty(len(texts), dtype=np.int32)
            rank[order] = np.arange(len(texts))
            codes[:, at] = rank[codes[:, at]]
            shown[name] = [texts[code] for code in order]
    merged_ = merged(codes, frequencies.counts)
    columns = {
        name: (texts, merged_.codes[:, at]) for at, (name, texts) in enumerate(shown.items())
    }
    return from_cells(columns, merged_.counts, weighted=COUNT if weighted else None)


def _in_text_order(text: object) -> tuple[bool, str]:
    return (text is None, str(text))
