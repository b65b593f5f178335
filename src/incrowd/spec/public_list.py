"""Public lists that come with the package, as CSV files in ``lists/``."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from importlib.resources import files

FEWEST = 3  # distinct texts that are needed to tell anything
NEARLY_ALL = 0.95


def find_distinct_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct texts without blanks around them; none where too few to tell."""
    distinct_texts = tuple(dict.fromkeys(stripped for text in texts if (stripped := text.strip())))
    return distinct_texts if len(distinct_texts) >= FEWEST else ()


def fits_nearly_all(texts: tuple[str, ...], fits: Callable[[str], object]) -> bool:
    """Return whether at least 95 % of the texts fit; no texts do not."""
    return bool(texts) and sum(1 for text in texts if fits(text)) >= NEARLY_ALL * len(texts)


def read_list(name: str) -> list[dict[str, str]]:
    """Return the rows of a list, each by the names of its columns.

    >>> read_list("countries")[0]["name"]
    'Andorra'
    """
    text = (files("incrowd.spec") / "lists" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), strict=True))
