"""Columns that are functions of others, as a spec declares them.

The declaration is public knowledge about what columns mean, such as that a year decides its 0/1
columns. Nothing here looks at a table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol


class DependentColumn(Protocol):
    """A column as far as it is a function of others."""

    @property
    def function_of(self) -> tuple[str, ...]:
        """The columns that determine it."""
        ...


@dataclass(frozen=True)
class ColumnDependencies:
    """Which columns are functions of which others.

    Attributes:
        sources: For each column that is a function of others, these; they need not be published.
    """

    sources: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_columns(cls, columns: Mapping[str, DependentColumn]) -> ColumnDependencies:
        """Return what the columns of a spec declare."""
        return cls(
            {name: column.function_of for name, column in columns.items() if column.function_of}
        )

    def refuse_misnamed(self, columns: Collection[str]) -> None:
        """Refuse functions of columns that are not there, and of themselves."""
        for name, sources in self.sources.items():
            if name in sources:
                raise ValueError(
                    f"column '{name}': `function_of` names the column itself. Name the columns "
                    "that determine it."
                )
            for source in sources:
                if source not in columns:
                    raise ValueError(
                        f"column '{name}': `function_of` names the column '{source}', which has no "
                        "entry. Add it, or correct its name."
                    )

    def find_determined(self, columns: Collection[str]) -> list[str]:
        """Return the columns of a set that the others of it determine, also through further ones.

        Of two that determine each other both are returned.
        """
        listed = list(dict.fromkeys(columns))
        return [
            name
            for name in listed
            if name in self.sources
            and name in self._close(column for column in listed if column != name)
        ]

    def find_sources(self, name: str, columns: Collection[str]) -> list[str]:
        """Return columns of a set that determine a column, none of which could be left out."""
        needed = [column for column in columns if column != name]
        for column in list(needed):
            rest = [other for other in needed if other != column]
            if name in self._close(rest):
                needed = rest
        return needed

    def _close(self, columns: Iterable[str]) -> set[str]:
        """Return the columns, and all that they determine."""
        closed = set(columns)
        waiting = dict(self.sources)
        while ready := [name for name, sources in waiting.items() if closed.issuperset(sources)]:
            closed.update(ready)
            for name in ready:
                del waiting[name]
        return closed


NO_DEPENDENCIES = ColumnDependencies({})
