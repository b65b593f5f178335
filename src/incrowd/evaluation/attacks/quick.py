"""A release that was just made, attacked by what takes a second; for the curator's report.

A dossier answers every question of a framework: for it, all attacks are tried, and a column is
inferred also where none is declared sensitive.

There is no control group, so success stands beside guessing alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from incrowd.codes.counted_table import COUNT, CountedTable, DistinctRows, PublishedTable
from incrowd.codes.frequency import merge_tuples
from incrowd.engine.count import read_labels
from incrowd.evaluation.attacks.catalog import ATTACKS, NEEDS_SECRET, NEEDS_VALUES, QUICK
from incrowd.evaluation.attacks.scene import KEYS_UNUSED, VALUES, AttackScene, make_scene
from incrowd.evaluation.attacks.trial import run_attacks
from incrowd.evaluation.attacks.view import AttackerView, subsample
from incrowd.measure.estimate import CONFIDENCE, AttackReport, Estimate
from incrowd.measure.labels import LabelCover
from incrowd.measure.lost_values import shows_nothing
from incrowd.release.product import MethodResult, Product
from incrowd.spec.build import build_hierarchy
from incrowd.spec.model import KEPT

TRIES, FEWEST = 1000, 100
_WORK = 50_000_000  # comparisons of a person with a label of a class: about half a second
_SHARE = 4  # comparisons for each value of the table: about a tenth of the time of making
_TUPLES = 300_000  # distinct ones; of a table that has more, some rows stand for all
_SOME = 20_000
_ROWS = 2_000_000  # of a release whose kept columns are read again


def quick_attacks(
    made: MethodResult, counted: object, *, for_dossier: bool = False
) -> AttackReport:
    """Run the attacks that are tried by default; of slices, keep the one each does best on.

    Intervals are such that those of all slices hold together with the usual confidence.

    ``counted`` is what the release was made from: where that is here, its kept columns are read.
    People are drawn by a fixed seed, and their number depends on counted work, never on a clock
    (:func:`count_tries`), so the same release is attacked in the same way. A release that is made
    and paid for must not fail by what is tried against it: what cannot be tried is said.
    """
    if not any(product.rows for product in made.products):
        return AttackReport((), 0, 0, ("No attack was run: nothing is published.",))
    try:
        return _attack_products(made, counted, for_dossier)
    except Exception as error:  # noqa: BLE001 - whatever a table can do to an attack
        reason = (str(error).splitlines() or [""])[0]
        words = f"The attacks could not be run ({type(error).__name__}: {reason[:200]})."
        return AttackReport((), 0, 0, (words,))


def _attack_products(made: MethodResult, counted: object, for_dossier: bool) -> AttackReport:
    # The best of many is often good by chance: the intervals of all slices hold together.
    confidence = 1 - (1 - CONFIDENCE) / len(made.products)
    each = [
        _attack_product(product, counted, made, confidence, for_dossier=for_dossier)
        for product in made.products
    ]
    first = each[0]
    if len(each) == 1:
        return first
    best: dict[str, Estimate] = {}
    for number, result in enumerate(each, 1):
        for estimate in result.estimates:
            known = best.get(estimate.attack)
            if known is None or estimate.excess > known.excess:
                best[estimate.attack] = replace(estimate, name=f"{estimate.name} (slice {number})")
    return replace(
        first,
        estimates=tuple(best.values()),
        notes=(*_notes(each), *((KEYS_UNUSED,) if made.links is not None else ())),
        people=min(item.people for item in each),
    )


def count_tries(view: AttackerView, rows: int, tables: int = 1) -> int:
    """Return how many people to try, so that attacks take a tenth of the time of making, or 0.5 s.

    A person is held against every class of the ``view`` where labels overlap; where they do not,
    only people who fit no class are, and all others are looked up. The table has so many ``rows``,
    and there are so many ``tables`` to attack.
    """
    share = 1.0
    if not any(cover.sets or _overlap(cover) for cover in view.covers):
        share = max(0.0, 1 - view.rows / max(rows, 1))
    cost = len(view.names) * (1 + share * len(view))
    budget = max(_WORK, _SHARE * rows * len(view.names)) / tables
    return int(min(max(budget / cost, FEWEST), TRIES))


def _overlap(cover: LabelCover) -> bool:
    """Return whether two labels cover one value."""
    order = np.argsort(cover.low, kind="stable")
    return bool((cover.low[order][1:] <= cover.high[order][:-1]).any())


def _notes(each: Sequence[AttackReport]) -> Iterator[str]:
    """Return the notes of all slices; one that does not hold for all names its slices."""
    for note in dict.fromkeys(note for item in each for note in item.notes):
        slices = [str(at) for at, item in enumerate(each, 1) if note in item.notes]
        if len(slices) == len(each):
            yield note
        else:
            yield f"Slice{'s' if len(slices) > 1 else ''} {', '.join(slices)}: {note}"


def _attack_product(
    product: Product,
    counted: object,
    made: MethodResult,
    confidence: float,
    *,
    for_dossier: bool,
) -> AttackReport:
    """Try the quick attacks on one table, or all that a dossier asks for.

    A secret of which nothing is shown is not guessed: every guess would be right.
    """
    scene, silent = _make_scene(product, counted, made), _list_silent_secrets(product)
    view, people = scene.release.select_columns(scene.quasi)[0], scene.everybody.total
    tries = TRIES if for_dossier else count_tries(view, people, len(made.products))
    skipped = {*NEEDS_VALUES} if any(product.original.levels) else set()
    if silent and not scene.secrets:
        skipped |= {*NEEDS_SECRET}
    names = ATTACKS if for_dossier else QUICK
    only = tuple(name for name in names if name not in skipped)
    secret = _choose_secret(product) if for_dossier and not scene.secrets else None
    if secret is None:
        attacks = _run(scene, only, confidence, tries)
    else:  # what is inferred is not known: the other attacks keep their knowledge
        others = [name for name in only if name not in NEEDS_SECRET]
        attacks = _run(scene, others, confidence, tries)
        secret_scene = _make_scene(product, counted, made, secret)
        inferred = _run(secret_scene, NEEDS_SECRET, confidence, tries)
        attacks = replace(
            attacks,
            estimates=(*attacks.estimates, *inferred.estimates),
            notes=tuple(dict.fromkeys((*attacks.notes, *inferred.notes))),
        )
    notes = [f"Inference of '{name}' was not run: the column is suppressed." for name in silent]
    if tries < min(TRIES, people):
        notes.append(
            f"The attacks tried {tries:,} people instead of {TRIES:,}, because each is compared "
            f"with {len(view):,} groups. `incrowd attack` tries more."
        )
    return replace(attacks, notes=(*attacks.notes, *notes))


def _list_silent_secrets(product: Product) -> list[str]:
    """Return the secrets of which a table by levels shows nothing."""
    return [
        name
        for name, recoded in product.scheme.items()
        if recoded.level is not None
        and (recoded.column.role == "sensitive" or name == product.target)
        and shows_nothing(
            recoded.hierarchy, recoded.hierarchy.labels[recoded.level][:1], recoded.level
        )
    ]


def _run(scene: AttackScene, only: Sequence[str], confidence: float, tries: int) -> AttackReport:
    rng = np.random.default_rng(0)
    return run_attacks(scene, only=tuple(only), tries=tries, confidence=confidence, rng=rng)


def _choose_secret(product: Product) -> str | None:
    """Return the column to infer where none is sensitive: of few values, the last that is shown."""
    shown = [
        name
        for name, recoded in product.scheme.items()
        if recoded.level is None or recoded.level < recoded.hierarchy.height - 1
    ]
    few = [name for name in shown if len(product.scheme[name].hierarchy.values) <= VALUES]
    return few[-1] if few and len(shown) > 1 else None


def _make_scene(
    product: Product, counted: object, made: MethodResult, secret: str | None = None
) -> AttackScene:
    """Return what is attacked; ``secret`` is inferred where the spec names nothing to infer."""
    drawn = float(product.parameters.get("beta", 1.0))
    everybody = product.original if product.apart is None else product.apart.some
    if product.apart is not None or len(everybody.frequencies) > _TUPLES:
        some = subsample(everybody.frequencies, _SOME, np.random.default_rng(0))
        original = replace(everybody, frequencies=some).represent_by_values()
        return replace(
            make_scene(original, product.shown, secrets=(), sample_rate=drawn), whole=False
        )
    if isinstance(counted, DistinctRows) and product.rows <= _ROWS:
        kept = tuple(name for name in product.kept if len(counted.kept[name]) <= VALUES)
        if kept:
            return make_scene(
                *add_kept_columns(product, counted, kept), secrets=kept, sample_rate=drawn
            )
    original = product.original.represent_by_values()
    silent = _list_silent_secrets(product)
    secrets = [
        name
        for name in original.names
        if (product.columns[name].role == "sensitive" or name in (product.target, secret))
        and name not in silent
    ]
    wanted = secrets if len(secrets) < len(original.names) else []  # something must be known
    law = None
    if made.events and made.synthetic is None and made.links is None:
        from incrowd.evaluation.attacks.laws import law_from_parameters

        law = law_from_parameters(product.parameters)
    return make_scene(
        original,
        product.shown,
        secrets=tuple(wanted),
        sample_rate=drawn,
        law=law,
        events=tuple(made.events),
    )


def add_kept_columns(
    product: Product, rows: DistinctRows, kept: Sequence[str]
) -> tuple[CountedTable, PublishedTable]:
    """Return the table and the release, with some of the columns that are kept as they are."""
    original, width = product.original, len(product.original.names)
    names = (*original.names, *kept)
    own = [build_hierarchy(KEPT, folder=Path(), values=rows.kept[name]) for name in kept]
    columns = [*range(width), *(width + product.kept.index(name) for name in kept)]
    codes = rows.frequencies.codes[:, columns].copy()
    for at, (name, hierarchy) in enumerate(zip(kept, own, strict=True), width):
        codes[:, at] = hierarchy.encode(rows.kept[name])[codes[:, at]]
    counted = CountedTable(
        names,
        (*original.hierarchies, *own),
        (0,) * len(names),
        merge_tuples(codes, rows.frequencies.counts),
    )
    weighted = COUNT in product.data.columns and COUNT not in (*names, *product.kept)
    shown = read_labels(product.data, names, weighted=weighted)
    levels = product.shown.levels or (None,) * width
    return counted, replace(shown, levels=(*levels, *(0,) * len(own)))
