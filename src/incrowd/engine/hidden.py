"""What a released file holds besides its rows, and whether it is safe to read at all.

Whichever engine made a release, its files are read on this machine by whoever checks it.
"""

from __future__ import annotations

import filecmp
import tempfile
from pathlib import Path

from incrowd.engine.local.parquet import chunks
from incrowd.engine.local.parquet_bytes import claims, refuse_heavy
from incrowd.engine.source import local_engine

__all__ = ["hidden", "refuse_heavy"]


def hidden(path: Path) -> list[str]:
    """What a file holds besides its rows, in words; raises if it is not even safe to read."""
    if path.suffix == ".csv":
        with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:
            again = Path(folder) / path.name
            local_engine().open(path, empty=True, delimiter=",").write(again)
            same = filecmp.cmp(again, path, shallow=False)
        return [] if same else [f"The file '{path.name}' is not written as a release is."]
    claimed = claims(path)
    entries: set[tuple[str, object]] = set()
    used: set[tuple[str, object]] = set()
    for claim, chunk in zip(claimed, chunks(path), strict=True):
        said = (claim.column, claim.nulls, claim.text)
        true = (
            chunk.column,
            None if claim.nulls is None else chunk.nulls,
            None if claim.text is None else chunk.text,
        )
        if said != true or claim.entries != len(chunk.entries):
            return [f"The file '{path.name}' says of its column '{chunk.column}' what is not so."]
        entries |= {(chunk.column, value) for value in chunk.entries}
        used |= {(chunk.column, value) for value in chunk.used}
    if entries - used:
        column, value = min(entries - used, key=str)
        return [f"The file '{path.name}' holds '{value}' in '{column}', which no row has."]
    return []
