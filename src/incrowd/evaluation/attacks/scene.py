"""The scene of an attack: a table, a release of it as it is seen, and people who are not in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from incrowd.codes.axis import Axis, locate_points
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import Frequencies
from incrowd.codes.values import canonicalize_value
from incrowd.evaluation.attacks.view import AttackerView, make_view
from incrowd.measure.label_evaluation import locate_tuples
from incrowd.measure.labels import LabelCover
from incrowd.privacy.events import Event

if TYPE_CHECKING:
    from incrowd.evaluation.attacks.laws import ReleaseLaw

VALUES = 256  # that a secret has at most, unless it is named
NO_SECRET = (
    f"Inference was not run: no sensitive column with at most {VALUES} values is published. Name a "
    "column with --secret COLUMN."
)
KEYS_UNUSED = (
    "Each file was attacked by itself: no attack here uses the keys that link households and "
    "people, and membership was not tested. ε and δ cover whatever the keys show."
)
ROWS_UNKNOWN = (
    "The private folder of the release was not found, so the row that was used of each person is "
    "not known: a random row was attacked, and success may be understated. The private report of "
    "the release has stronger attackers, who know all other rows. Name its folder with --curator "
    "FOLDER to run them."
)


@dataclass(frozen=True, eq=False)
class AttackScene:
    """What attacks are made on: a table by positions on axes, and a release of it as it is seen.

    An attacker may know the columns ``quasi`` of people and wants one of the ``secrets``.
    ``control`` are people who are not in the table. ``cells`` are known where all columns are shown
    at levels and by a law; the rows are not known where people have several, of which another may
    have been released, and not all people are there where some stand for a ``whole`` table.
    ``promise`` are the epsilon and delta that the release promises, if it
    does, and ``events`` what was spent on it.
    """

    axes: tuple[Axis, ...]
    release: AttackerView
    everybody: Frequencies
    control: Frequencies | None
    quasi: tuple[int, ...]
    secrets: tuple[int, ...]
    cells: CellTables | None = None
    rows_known: bool = True
    whole: bool = True
    promise: tuple[float, float] | None = None
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, eq=False)
class CellTables:
    """A table and its release by the cells of the levels that are shown, and the law between them.

    People who are not in the table lie in the same cells.
    """

    law: ReleaseLaw
    table: Frequencies
    shown: Frequencies
    control: Frequencies | None


def make_scene(
    original: CountedTable,
    published: PublishedTable,
    *,
    secrets: Sequence[str],
    control: Frequencies | None = None,
    sample_rate: float = 1.0,
    law: ReleaseLaw | None = None,
    rows_known: bool = True,
    promise: tuple[float, float] | None = None,
    events: tuple[Event, ...] = (),
) -> AttackScene:
    """Make the scene of a table and a release, both counted by the same columns.

    ``original`` is at level 0; ``control`` has its codes. A person's row was drawn into the
    release with probability ``sample_rate``.
    """
    _, _, covers = locate_tuples(original, original.axes, published)
    levels = published.levels or (None,) * len(original.axes)
    covers = [
        _exclude_root(cover, axis, level)
        for cover, axis, level in zip(covers, original.axes, levels, strict=True)
    ]
    noise = 0.0 if published.noise is None else published.noise.variance
    names = original.names
    quasi = tuple(at for at, name in enumerate(names) if name not in secrets)
    return AttackScene(
        axes=original.axes,
        release=make_view(
            names,
            published.frequencies,
            covers,
            quasi=quasi,
            sample_rate=sample_rate,
            noise=noise,
        ),
        everybody=_place_tuples(original, original.frequencies),
        control=None if control is None else _place_tuples(original, control),
        quasi=quasi,
        secrets=tuple(names.index(name) for name in secrets),
        cells=None if law is None else _make_cells(original, published, control, law),
        rows_known=rows_known,
        promise=promise,
        events=events,
    )


def _exclude_root(cover: LabelCover, axis: Axis, level: int | None) -> LabelCover:
    """Return what labels cover at a known level: below the root, ``*`` is what is outside."""
    if level is None or level >= axis.hierarchy.height - 1:
        return cover
    outside = int(axis.positions[axis.hierarchy.outside])
    return replace(
        cover,
        low=np.where(cover.starred, outside, cover.low),
        high=np.where(cover.starred, outside, cover.high),
    )


def _make_cells(
    original: CountedTable, published: PublishedTable, control: Frequencies | None, law: ReleaseLaw
) -> CellTables | None:
    """Return what is known by levels; None where a column has none. Labels alike are one."""
    levels = tuple(level for level in published.levels if level is not None)
    if len(levels) < len(original.names):
        return None
    maps = []
    for hierarchy, level, texts in zip(original.hierarchies, levels, published.labels, strict=True):
        codes_by_label = {
            label: code for code, label in reversed([*enumerate(hierarchy.labels[level])])
        }
        maps.append(
            np.array([codes_by_label[canonicalize_value(text)] for text in texts], dtype=np.int32)
        )
    others = None if control is None else replace(original, frequencies=control)
    return CellTables(
        law,
        original.roll_up(levels).merge_labels().frequencies,
        published.frequencies.roll_up(maps),
        None if others is None else others.roll_up(levels).merge_labels().frequencies,
    )


def _place_tuples(original: CountedTable, frequencies: Frequencies) -> Frequencies:
    """Return tuples of codes as positions on the axes."""
    return Frequencies(locate_points(original.axes, frequencies.codes), frequencies.counts)
