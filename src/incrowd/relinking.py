"""Linking risk and noise of a released table, held against its original.

Two ways. With a column that names the same person in both tables, the release itself is
linked. Without one, a release is made again as the spec says, with fresh noise, thirty times.
"""

from __future__ import annotations

import numpy as np

from incrowd.engine import Table, TableError
from incrowd.engine.count import count_rows
from incrowd.errors import IncrowdError
from incrowd.evaluating import NoiseLoss, Noisiness, axes_of
from incrowd.grid import grid_of
from incrowd.grouping import classes
from incrowd.measure.linking import Estimate, linking_risk
from incrowd.noisy import KEpsilon, linked, noise_loss, noisy_rows
from incrowd.privacy.randomness import Randomness
from incrowd.specfile import SpecFile
from incrowd.values import canonical


def simulated(file: SpecFile, table: Table, *, bits: Randomness) -> Noisiness:
    """What the spec's noise does to the table, over runs with fresh noise."""
    method = KEpsilon(file)
    release = file.spec.release
    assert release is not None
    rows = count_rows(table, method.quasi, (*method.kept, *method.noisy), folder=file.folder)
    axes = axes_of(rows.counted, method.quasi)
    every = {**method.quasi, **method.kept, **method.noisy}
    found = classes(rows, axes, every, release, bits=bits)
    data = noisy_rows(rows, found, method.noisy, release)
    everyone = np.ones(len(data.members), dtype=bool)
    losses = {
        column.name: noise_loss(column, data, column.released(data.members, bits), everyone)
        for column in data.columns
    }
    risk, shared = linked(data, bits)
    return Noisiness(losses, risk, shared, suppressed_by_confidence=0)


def relinked(file: SpecFile, original: Table, released: Table, identity: str) -> Noisiness:
    """Link the rows of a release that still names each person, in a column of both tables."""
    method = KEpsilon(file)
    for table, which in ((original, "original"), (released, "released")):
        missing = {identity, *method.noisy} - set(table.columns)
        if missing:
            raise TableError(f"The {which} table has no column '{sorted(missing)[0]}'.")
    names = list(method.noisy)
    quasi = [name for name in method.quasi if name in released.columns]
    before = _by_person(original, identity, names)
    after = _by_person(released, identity, [*quasi, *names])
    people = [person for person in after if person in before]
    if not people:
        raise IncrowdError(f"No value of '{identity}' occurs in both tables.")
    labels = [tuple(after[person][: len(quasi)]) for person in people]
    places = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    members = np.array([places[label] for label in labels])
    known, shown, losses = [], [], {}
    usable = np.ones(len(people), dtype=bool)
    for at, name in enumerate(names):
        values = [before[person][at] for person in people]
        noisy = [after[person][len(quasi) + at] for person in people]
        _, steps = grid_of(name, method.noisy[name], [*values, *noisy])
        one, other = steps[: len(people)], steps[len(people) :]
        pairs = zip(values, noisy, strict=True)
        there = np.array([x is not None and y is not None for x, y in pairs])
        usable &= there
        known.append(one)
        shown.append(other)
        counted = there & (one != 0)
        error = np.abs(other[counted] - one[counted]) / np.abs(one[counted])
        losses[name] = NoiseLoss(
            measured_error=float(error.mean()) if len(error) else 0.0,
            zeros=int((there & (one == 0)).sum()),
            nulls=int((~there).sum()),
        )
    _, members = np.unique(members[usable], return_inverse=True)
    found = linking_risk(
        classes=members, originals=[x[usable] for x in known], released=[x[usable] for x in shown]
    )
    return Noisiness(losses, _exactly(found.risk), _exactly(found.shared), 0)


def _exactly(value: float) -> Estimate:
    return Estimate(value, value, value, 1)


def _by_person(table: Table, identity: str, names: list[str]) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for tally in table.tallies([identity, *names]):
        for codes, count in zip(tally.codes.tolist(), tally.counts.tolist(), strict=True):
            person = canonical(tally.values[0][codes[0]])
            if person is None or person in found or count > 1:
                raise TableError(
                    f"The column '{identity}' does not name one row each: {person!r} occurs twice, "
                    "or a row has none."
                )
            found[person] = [tally.values[at][code] for at, code in enumerate(codes)][1:]
    return found
