"""What tables are called on pages."""

from __future__ import annotations

from pathlib import Path

from incrowd.engine.address import is_address, take_apart

TABLES = (
    ".parquet", ".csv", ".tsv", ".txt", ".csv.gz", ".xlsx", ".xls", ".ods", ".arrow", ".feather",
    ".sav", ".dta", ".sas7bdat",
)  # fmt: skip


def title_of(place: str) -> str:
    """Return the name of a table: its file without the ending, or the table of a database."""
    if is_address(place):
        return take_apart(place).table.replace('"', "").replace("/", "-")
    name = Path(place).name
    ending = max((one for one in TABLES if name.lower().endswith(one)), key=len, default="")
    return name[: len(name) - len(ending)] or name
