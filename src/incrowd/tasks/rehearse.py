"""Rehearse a release: publish a made-up table of the spec's domain, to see the journey for nothing.

The table of the spec, a ledger and the record of released tables are never opened. The values of
each column are drawn independently; the i-th value in the order of its declaration is 1/i times as
frequent as the first. The certificate says that it is a rehearsal, and whoever verifies it is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from incrowd.arrays import Progress, Step
from incrowd.engine.source import local_engine
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError, check_whole
from incrowd.measure.expected import OPEN_VALUES, weights
from incrowd.spec.build import build, is_open
from incrowd.spec.file import SpecFile, SpecSource, taken
from incrowd.spec.model import Column, PersonId
from incrowd.tasks.publish import Release, released

_WORDS = tuple(f"value {number}" for number in range(1, OPEN_VALUES + 1))


def rehearse(
    spec: SpecSource,
    *,
    size: int | None = None,
    output: Path | str | None = None,
    curator: Path | str | None = None,
    step: Step = lambda _: None,
    progress: Progress = lambda _done, _all: None,
) -> Release:
    """Publish a made-up table as the spec says; ``size`` people, or as many as the spec says.

    What is to be confirmed in the spec does not matter here: nothing of the data is used.
    """
    file = taken(spec)
    size = int(check_whole("size", size)) if size is not None else _stated(file)
    return released(
        made_up(file, size), _plain(file), output=output, curator=curator, ledger=None, key=None,
        bits=None, engine=None, step=step, progress=progress, rehearsal=True,
    )  # fmt: skip


def _stated(spec: SpecFile) -> int:
    if isinstance(spec.spec.size, int):
        return spec.spec.size
    raise IncrowdError(
        "A rehearsal does not open the table, so it must be told how many people to make up: "
        "'size: NUMBER' in the spec, or --size NUMBER."
    )


def _plain(spec: SpecFile) -> SpecFile:
    """The spec with nothing left to confirm; made-up values are written in the usual way."""
    known = spec.confirmed()
    columns = {
        name: column.model_copy(update={"written": None})
        for name, column in known.spec.columns.items()
    }
    return replace(known, spec=known.spec.model_copy(update={"columns": columns}))


def made_up(spec: SpecFile, size: int, draws: np.random.Generator | None = None) -> Table:
    """So many people who do not exist; all columns of the spec but those that are dropped."""
    draws = draws or np.random.default_rng()  # of nobody: no secret hangs on it
    columns = {
        name: _drawn(name, column, spec.folder, size, draws)
        for name, column in spec.spec.columns.items()
        if column.role != "drop"
    }
    if isinstance(spec.spec.unit, PersonId):
        columns[spec.spec.unit.id] = [f"person {number}" for number in range(1, size + 1)]
    return local_engine().from_columns(columns)


def _drawn(
    name: str, column: Column, folder: Path, size: int, draws: np.random.Generator
) -> list[str]:
    """The values of one column."""
    if column.role == "identifier":
        return [f"{name} {number}" for number in range(1, size + 1)]
    if column.role == "noisy":
        low, high = column.bounds or (0, 100)
        return [f"{x:.2f}" for x in draws.uniform(float(low), float(high), size)]
    values = _values(column, folder)
    if column.hierarchy is not None and column.hierarchy.mask is not None:
        mask = column.hierarchy.mask
        letters = sorted(set(mask.alphabet))
        parts = draws.choice(letters, (size, mask.length), p=weights(len(letters), "skewed"))
        return ["".join(row) for row in parts]
    chosen = draws.choice(len(values), size, p=weights(len(values), "skewed"))
    return [values[at] for at in chosen.tolist()]


def _values(column: Column, folder: Path) -> Sequence[str]:
    """The declared values; where none are declared, words that stand for them."""
    if column.hierarchy is None or is_open(column):
        return _WORDS
    return build(column, folder=folder).values
