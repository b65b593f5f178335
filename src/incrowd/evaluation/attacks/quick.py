"""A release that was just made, attacked by what takes a second; for the curator's report.

There is no control group, so success stands beside guessing alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from incrowd.codes.counted import COUNT, Counted, Rows, Shown
from incrowd.codes.frequency import merged
from incrowd.engine.count import read_shown
from incrowd.evaluation.attacks.scene import VALUES, Scene, scene_of
from incrowd.evaluation.attacks.trial import tried
from incrowd.evaluation.attacks.view import fewer
from incrowd.measure.estimate import CONFIDENCE, Attacked, Estimate
from incrowd.measure.lost_values import shows_nothing
from incrowd.release.product import Made, Product
from incrowd.spec.build import build
from incrowd.spec.model import KEPT

TRIES = 1000
QUICK = ("linkage", "join", "inference", "membership", "extreme")
_BY_LEVELS = QUICK[:-1]  # the last needs people's values
_TUPLES = 300_000  # distinct ones; of a table that has more, some rows stand for all
_SOME = 20_000
_ROWS = 2_000_000  # of a release whose kept columns are read again


def quick_attacks(made: Made, counted: object) -> Attacked:
    """What is tried by default; of slices, the one that each attack does best on.

    Intervals are such that those of all slices hold together with the usual confidence.

    ``counted`` is what the release was made from: where that is here, its kept columns are read.
    People are drawn by a fixed seed, so the same release is attacked in the same way. A release
    that is made and paid for must not fail by what is tried against it: what cannot be tried is
    said.
    """
    if not any(product.rows for product in made.products):
        return Attacked((), 0, 0, ("No attack was run: nothing is published.",))
    try:
        return _attacked(made, counted)
    except Exception as error:  # noqa: BLE001 - whatever a table can do to an attack
        reason = (str(error).splitlines() or [""])[0]
        words = f"The attacks could not be run ({type(error).__name__}: {reason[:200]})."
        return Attacked((), 0, 0, (words,))


def _attacked(made: Made, counted: object) -> Attacked:
    # The best of many is often good by chance: the intervals of all slices hold together.
    confidence = 1 - (1 - CONFIDENCE) / len(made.products)
    each = [_quick(product, counted, made, confidence) for product in made.products]
    first = each[0]
    if len(each) == 1:
        return first
    best: dict[str, Estimate] = {}
    for number, found in enumerate(each, 1):
        for one in found.estimates:
            known = best.get(one.attack)
            if known is None or one.excess > known.excess:
                best[one.attack] = replace(one, name=f"{one.name} (slice {number})")
    return replace(first, estimates=tuple(best.values()), notes=tuple(_notes(each)))


def _notes(each: Sequence[Attacked]) -> Iterator[str]:
    """Return the notes of all slices; one that does not hold for all names its slices."""
    for note in dict.fromkeys(note for found in each for note in found.notes):
        slices = [str(at) for at, found in enumerate(each, 1) if note in found.notes]
        if len(slices) == len(each):
            yield note
        else:
            yield f"Slice{'s' if len(slices) > 1 else ''} {', '.join(slices)}: {note}"


def _quick(product: Product, counted: object, made: Made, confidence: float) -> Attacked:
    """Try the quick attacks on one table.

    A secret of which nothing is shown is not guessed: every guess would be right.
    """
    only: tuple[str, ...] = QUICK if not any(product.original.levels) else _BY_LEVELS
    scene, silent = _scene(product, counted, made), _silent(product)
    if silent and not scene.secrets:
        only = tuple(name for name in only if name != "inference")
    found = tried(
        scene, only=only, tries=TRIES, confidence=confidence, rng=np.random.default_rng(0)
    )
    notes = [f"Inference of '{name}' was not run: the column is suppressed." for name in silent]
    return replace(found, notes=(*found.notes, *notes))


def _silent(product: Product) -> list[str]:
    """The secrets of which a table by levels shows nothing."""
    return [
        name
        for name, recoded in product.scheme.items()
        if recoded.level is not None
        and (recoded.column.role == "sensitive" or name == product.target)
        and shows_nothing(
            recoded.hierarchy, recoded.hierarchy.labels[recoded.level][:1], recoded.level
        )
    ]


def _scene(product: Product, counted: object, made: Made) -> Scene:
    drawn = float(product.parameters.get("beta", 1.0))
    everybody = product.original if product.apart is None else product.apart.some
    if product.apart is not None or len(everybody.frequencies) > _TUPLES:
        some = fewer(everybody.frequencies, _SOME, np.random.default_rng(0))
        original = replace(everybody, frequencies=some).by_values()
        return replace(scene_of(original, product.shown, secrets=(), drawn=drawn), whole=False)
    if isinstance(counted, Rows) and product.rows <= _ROWS:
        kept = tuple(name for name in product.kept if len(counted.kept[name]) <= VALUES)
        if kept:
            return scene_of(*with_kept(product, counted, kept), secrets=kept, drawn=drawn)
    original = product.original.by_values()
    silent = _silent(product)
    secrets = [
        name
        for name in original.names
        if (product.columns[name].role == "sensitive" or name == product.target)
        and name not in silent
    ]
    wanted = secrets if len(secrets) < len(original.names) else []  # something must be known
    law = None
    if made.events:
        from incrowd.evaluation.attacks.laws import law_told

        law = law_told(product.parameters)
    return scene_of(
        original,
        product.shown,
        secrets=tuple(wanted),
        drawn=drawn,
        law=law,
        events=tuple(made.events),
    )


def with_kept(product: Product, rows: Rows, kept: Sequence[str]) -> tuple[Counted, Shown]:
    """The table and the release, with some of the columns that are kept as they are."""
    original, width = product.original, len(product.original.names)
    names = (*original.names, *kept)
    own = [build(KEPT, folder=Path(), values=rows.kept[name]) for name in kept]
    columns = [*range(width), *(width + product.kept.index(name) for name in kept)]
    codes = rows.frequencies.codes[:, columns].copy()
    for at, (name, hierarchy) in enumerate(zip(kept, own, strict=True), width):
        codes[:, at] = hierarchy.encode(rows.kept[name])[codes[:, at]]
    counted = Counted(
        names,
        (*original.hierarchies, *own),
        (0,) * len(names),
        merged(codes, rows.frequencies.counts),
    )
    weighted = COUNT in product.data.columns and COUNT not in (*names, *product.kept)
    shown = read_shown(product.data, names, weighted=weighted)
    levels = product.shown.levels or (None,) * width
    return counted, replace(shown, levels=(*levels, *(0,) * len(own)))
