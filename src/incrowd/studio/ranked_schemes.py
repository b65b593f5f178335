"""Schemes in words: what each keeps, coarsens and suppresses, so that people can compare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from incrowd.codes.level_words import NOTHING
from incrowd.curate.explore import Exploration, SchemeFigures

MOST_BESIDE = 3


@dataclass(frozen=True)
class RankedScheme:
    """A scheme with its place in the list, and its columns by what becomes of them.

    ``coarse`` are columns with what they show.
    """

    place: int
    scheme: SchemeFigures
    unchanged: tuple[str, ...]
    coarse: tuple[tuple[str, str], ...]
    suppressed: tuple[str, ...]
    rows: int

    @property
    def rows_after(self) -> int:
        """The number of rows that are published."""
        return self.rows - self.scheme.suppressed


def rank_schemes(exploration: Exploration, schemes: Sequence[SchemeFigures]) -> list[RankedScheme]:
    """Return schemes in words, with their places among those given."""
    return [describe_ranked(exploration, place, scheme) for place, scheme in enumerate(schemes, 1)]


def describe_ranked(exploration: Exploration, place: int, scheme: SchemeFigures) -> RankedScheme:
    """Return one scheme in words."""
    unchanged, coarse, suppressed = [], [], []
    for column, level in zip(exploration.columns, scheme.levels, strict=True):
        if level == 0:
            unchanged.append(column.name)
        elif column.words[level] == NOTHING:
            suppressed.append(column.name)
        else:
            coarse.append((column.name, column.words[level]))
    return RankedScheme(
        place, scheme, tuple(unchanged), tuple(coarse), tuple(suppressed), exploration.rows
    )


def find_beside(
    exploration: Exploration, names: Sequence[str], parse: Callable[[str], tuple[int, ...]]
) -> list[RankedScheme]:
    """Return the schemes that an address puts side by side: at most three, each once."""
    levels = list(dict.fromkeys(parse(name) for name in names))
    schemes = [scheme for node in levels if (scheme := exploration.find_scheme(node)) is not None]
    return rank_schemes(exploration, schemes[:MOST_BESIDE])
