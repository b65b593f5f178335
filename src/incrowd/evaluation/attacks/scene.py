"""The scene of an attack: a table, a release of it as it is seen, and people who are not in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from incrowd.codes.axis import Axis, positions
from incrowd.codes.counted import Counted, Shown
from incrowd.codes.frequency import Frequencies
from incrowd.codes.values import canonical
from incrowd.evaluation.attacks.view import Seen, seen
from incrowd.measure.evaluation import covered
from incrowd.measure.labels import Cover
from incrowd.privacy.events import Event

if TYPE_CHECKING:
    from incrowd.evaluation.attacks.laws import ShownLaw

VALUES = 256  # that a secret has at most, unless it is named


@dataclass(frozen=True, eq=False)
class Scene:
    """What attacks are made on: a table by positions on axes, and a release of it as it is seen.

    An attacker may know the columns ``quasi`` of people and wants one of the ``secrets``.
    ``control`` are people who are not in the table. ``cells`` are known where all columns are shown
    at levels and by a law; the rows are not known where people have several, of which another may
    have been released, and not all people are there where some stand for a ``whole`` table.
    ``promise`` are the epsilon and delta that the release promises, if it
    does, and ``events`` what was spent on it.
    """

    axes: tuple[Axis, ...]
    release: Seen
    everybody: Frequencies
    control: Frequencies | None
    quasi: tuple[int, ...]
    secrets: tuple[int, ...]
    cells: Cells | None = None
    rows_known: bool = True
    whole: bool = True
    promise: tuple[float, float] | None = None
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, eq=False)
class Cells:
    """A table and its release by the cells of the levels that are shown, and the law between them.

    People who are not in the table lie in the same cells.
    """

    law: ShownLaw
    table: Frequencies
    shown: Frequencies
    control: Frequencies | None


def scene_of(
    original: Counted,
    shown: Shown,
    *,
    secrets: Sequence[str],
    control: Frequencies | None = None,
    drawn: float = 1.0,
    law: ShownLaw | None = None,
    rows_known: bool = True,
    promise: tuple[float, float] | None = None,
    events: tuple[Event, ...] = (),
) -> Scene:
    """The scene of a table and a release, both counted by the same columns.

    ``original`` is at level 0; ``control`` has its codes. A person's row was ``drawn`` into the
    release with this chance.
    """
    _, _, covers = covered(original, original.axes, shown)
    levels = shown.levels or (None,) * len(original.axes)
    covers = [
        _without_root(cover, axis, level)
        for cover, axis, level in zip(covers, original.axes, levels, strict=True)
    ]
    noise = 0.0 if shown.noise is None else shown.noise.variance
    names = original.names
    quasi = tuple(at for at, name in enumerate(names) if name not in secrets)
    return Scene(
        axes=original.axes,
        release=seen(names, shown.frequencies, covers, quasi=quasi, drawn=drawn, noise=noise),
        everybody=_placed(original, original.frequencies),
        control=None if control is None else _placed(original, control),
        quasi=quasi,
        secrets=tuple(names.index(name) for name in secrets),
        cells=None if law is None else _cells(original, shown, control, law),
        rows_known=rows_known,
        promise=promise,
        events=events,
    )


def _without_root(cover: Cover, axis: Axis, level: int | None) -> Cover:
    """What labels cover at a level that is known: below the root, ``*`` is what is outside."""
    if level is None or level >= axis.hierarchy.height - 1:
        return cover
    outside = int(axis.positions[axis.hierarchy.outside])
    return replace(
        cover,
        low=np.where(cover.starred, outside, cover.low),
        high=np.where(cover.starred, outside, cover.high),
    )


def _cells(
    original: Counted, shown: Shown, control: Frequencies | None, law: ShownLaw
) -> Cells | None:
    """What is known by levels; None where a column has none. Labels that look alike are one."""
    levels = tuple(level for level in shown.levels if level is not None)
    if len(levels) < len(original.names):
        return None
    maps = []
    for hierarchy, level, texts in zip(original.hierarchies, levels, shown.labels, strict=True):
        known = {label: code for code, label in reversed([*enumerate(hierarchy.labels[level])])}
        maps.append(np.array([known[canonical(text)] for text in texts], dtype=np.int32))
    others = None if control is None else replace(original, frequencies=control)
    return Cells(
        law,
        original.rolled(levels).by_label().frequencies,
        shown.frequencies.rolled(maps),
        None if others is None else others.rolled(levels).by_label().frequencies,
    )


def _placed(original: Counted, frequencies: Frequencies) -> Frequencies:
    """Tuples of codes as positions on the axes."""
    return Frequencies(positions(original.axes, frequencies.codes), frequencies.counts)
