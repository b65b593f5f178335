"""Rehearse a release: publish a made-up table of the spec's domain, to see the journey for nothing.

The table of the spec, a ledger and the record of released tables are never opened. The values of
each column are drawn independently; the i-th value in the order of its declaration is 1/i times as
frequent as the first. The certificate says that it is a rehearsal, and whoever verifies it is told.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from incrowd.arrays import Progress, Step
from incrowd.errors import IncrowdError, check_whole
from incrowd.methods.fictional import make_fictional_table
from incrowd.publication import RunContext, make_release, publish_into
from incrowd.release.release import Release
from incrowd.spec.file import SpecFile, SpecSource, taken


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
    table, plain = make_fictional_table(file, size), _plain(file)

    def make(folder: Path) -> Release:
        private = None if curator is None else Path(curator)
        run = RunContext(
            table, plain, folder, private, step=step, progress=progress, rehearsal=True
        )
        return make_release(run)

    return publish_into(output, make)


def _stated(spec: SpecFile) -> int:
    if isinstance(spec.spec.size, int):
        return spec.spec.size
    raise IncrowdError(
        "Dry run: the number of fictional people is not given. Add `size: NUMBER` to the spec, or "
        "--size NUMBER."
    )


def _plain(spec: SpecFile) -> SpecFile:
    """The spec with nothing left to confirm; made-up values are written in the usual way."""
    known = spec.confirmed()
    columns = {
        name: column.model_copy(update={"written": None})
        for name, column in known.spec.columns.items()
    }
    return replace(known, spec=known.spec.model_copy(update={"columns": columns}))
