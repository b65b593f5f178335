"""Rehearse a release: publish a made-up table of the spec's domain, to see the journey for nothing.

The table of the spec, a ledger and the record of released tables are never opened. The values of
each column are drawn independently; the i-th value in the order of its declaration is 1/i times as
frequent as the first. The certificate says that it is a rehearsal, and whoever verifies it is told.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from incrowd.arrays import Progress, Step
from incrowd.errors import IncrowdError, ParameterError, check_whole
from incrowd.methods.fictional import make_fictional_table
from incrowd.publication import RunContext, make_release, publish_into
from incrowd.release.release import Release
from incrowd.spec.file import SpecFile, SpecSource, load_spec
from incrowd.spec.model import PersonId

_MOST_ROWS = 1000  # of a fictional person, typically


def rehearse(
    spec: SpecSource,
    *,
    size: int | None = None,
    typical: float | None = None,
    output: Path | str | None = None,
    curator: Path | str | None = None,
    step: Step = lambda _: None,
    progress: Progress = lambda _done, _all: None,
) -> Release:
    """Publish a generated table as the spec asks, without opening your own table.

    A dry run makes the same files as a release: data, certificate, README and report. No budget is
    spent. Its statement begins with "DRY RUN", and :func:`incrowd.verify` rejects it. Entries that
    are not confirmed do not matter, because nothing of the data is used.

    Args:
        spec: Path of a spec, its YAML text, a mapping, or a draft.
        size: Number of people to generate; by default the size that the spec states.
        typical: Median number of rows of a person, where the unit is an id; by default 1, or the
            `rows` of the unit.
        output: Folder for the release; it must not exist, or be empty. None writes nothing.
        curator: Folder for the private report; by default ``NAME.curator`` beside ``output``.
        step: Called with the name of each step before it is taken.
        progress: Called with the done and the total amount of work of a long search.

    Returns:
        The release of the generated table.

    Raises:
        IncrowdError: The spec is invalid, or neither the call nor the spec gives a size.

    Examples:
        >>> import incrowd as ic
        >>> sex = {"role": "quasi", "hierarchy": {"flat": {"values": ["female", "male"]}}}
        >>> asked = {"method": "safe", "epsilon": 1.0, "delta": 1e-6}
        >>> release = ic.rehearse({"columns": {"sex": sex}, "release": asked}, size=1000)
        >>> release.certificate.rehearsal
        True
    """
    file = load_spec(spec)
    size = int(check_whole("size", size)) if size is not None else _read_size(file)
    if typical is not None and not 1 <= typical <= _MOST_ROWS:
        raise ParameterError("typical", f"be from 1 to {_MOST_ROWS:,}", typical)
    if typical is not None and not isinstance(file.spec.unit, PersonId):
        raise ParameterError("typical", "be given with `unit: {id: COLUMN}` only", typical)
    table = make_fictional_table(file, size, typical=typical)
    plain = _confirm_everything(file)

    def make_rehearsal(folder: Path) -> Release:
        private = None if curator is None else Path(curator)
        run = RunContext(
            table, plain, folder, private, step=step, progress=progress, rehearsal=True
        )
        return make_release(run)

    return publish_into(output, make_rehearsal)


def _read_size(spec: SpecFile) -> int:
    if isinstance(spec.spec.size, int):
        return spec.spec.size
    if spec.spec.size == "public":
        raise IncrowdError(
            "Dry run: `size: public` would count the table, which a dry run does not open. Name "
            "the number of fictional people: --size NUMBER."
        )
    raise IncrowdError(
        "Dry run: the number of fictional people is missing. Add `size: NUMBER` to the spec, or "
        "--size NUMBER."
    )


def _confirm_everything(spec: SpecFile) -> SpecFile:
    """Return the spec with nothing left to confirm, and values written in the usual way."""
    spec_file = spec.with_all_confirmed()
    columns = {
        name: column.model_copy(update={"written": None})
        for name, column in spec_file.spec.columns.items()
    }
    return replace(spec_file, spec=spec_file.spec.model_copy(update={"columns": columns}))
