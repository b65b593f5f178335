"""Public lists that come with the package, as CSV files in ``lists/``."""

from __future__ import annotations

import csv
from importlib.resources import files


def read_list(name: str) -> list[dict[str, str]]:
    """Return the rows of a list, each by the names of its columns.

    >>> read_list("countries")[0]["name"]
    'Andorra'
    """
    text = (files("incrowd.spec") / "lists" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), strict=True))
