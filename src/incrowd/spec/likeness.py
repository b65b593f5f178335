"""Whether the texts of a column are nearly all of one kind, for drafts to propose it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

FEWEST = 3  # distinct texts that are needed to tell anything
NEARLY_ALL = 0.95


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """The distinct texts without blanks around them; none where they are too few to tell."""
    found = tuple(dict.fromkeys(stripped for text in texts if (stripped := text.strip())))
    return found if len(found) >= FEWEST else ()


def nearly_all(texts: tuple[str, ...], fits: Callable[[str], object]) -> bool:
    """Whether at least 95 % of the texts fit; no texts do not."""
    return bool(texts) and sum(1 for text in texts if fits(text)) >= NEARLY_ALL * len(texts)
