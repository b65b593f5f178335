"""Paper A's attacks carried out: each on the methods that it breaks, and on a safe release.

Every exhibit draws people of its own, publishes them by a baseline of
:mod:`incrowd.papers.baselines` and by a safe release of the same people, and attacks both.
:func:`reproduce` writes the table, a figure and a page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from incrowd.arrays import Codes
from incrowd.codes.axis import Boxes
from incrowd.codes.frequency import between, merged
from incrowd.evaluation.attacks.intersection import Listed, Persons, intersection
from incrowd.measure.estimate import Estimate
from incrowd.papers import extreme as rich
from incrowd.papers.baselines import clustered, delta_sample, k_duplication, line
from incrowd.papers.downcode import Villages, at_levels, downcoding
from incrowd.papers.duplicates import duplicates
from incrowd.papers.extreme import Publish, extreme
from incrowd.papers.recoder import recoded
from incrowd.papers.safe_steps import SafeSteps, most, shown_of
from incrowd.papers.whole import whole
from incrowd.privacy.events import GeometricCounts, SafeRelease
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.release.folder import fill

SEED = 2011
DELTA = 1e-6
SAMPLE = SafeRelease(k=20, beta=0.2)
COUNTS = GeometricCounts(r=14, epsilon=1.0)
SAFE: dict[str, SafeRelease | GeometricCounts] = {
    "safe release, by a sample": SAMPLE,
    "safe release, by counts": COUNTS,
}
K = 20  # of the baselines, where nothing else is said
FIGURE = "attacks"


@dataclass(frozen=True)
class Exhibit:
    """One attack: in words, on the methods that it breaks, and on a safe release."""

    title: str
    words: str
    broken: tuple[Estimate, ...]
    held: tuple[Estimate, ...]


def attacks(seed: int = SEED, progress: Callable[[str], None] = lambda _: None) -> list[Exhibit]:
    """All attacks; ``progress`` hears of each before it starts. The seed decides everything."""
    found = []
    for at, (title, exhibit) in enumerate(EXHIBITS.items()):
        progress(title)
        found.append(exhibit(title, np.random.default_rng([seed, at])))
    return found


def _extreme(title: str, rng: np.random.Generator) -> Exhibit:
    towns = 60

    def recoded_by(by: str) -> Publish:
        return lambda points, _: clustered(rich.axes(), points, k=K, by=by).boxes

    def safely(scheme: SafeSteps) -> Publish:
        return lambda points, rng: scheme.publish(points, _bits(rng))

    return Exhibit(
        title,
        f"{towns} towns of 200 people, in each of which one has more than 10 million, as is known. "
        f"Classes have at least {K} rows.",
        tuple(
            extreme(recoded_by(by), name=name, rng=rng, towns=towns)
            for by, name in (
                ("cluster", "clustering and local recoding"),
                ("mondrian", "Mondrian, boxes from the data"),
            )
        ),
        tuple(
            extreme(
                safely(scheme),
                name=name,
                rng=rng,
                towns=towns,
                bound=most([scheme], 1 / rich.VALUES, delta=DELTA),
            )
            for name, scheme in _schemes((rich.AREAS, 125))
        ),
    )


def _schemes(widths: tuple[int, ...]) -> list[tuple[str, SafeSteps]]:
    """A public scheme, for either kind of safe release."""
    return [(name, SafeSteps(widths, event)) for name, event in SAFE.items()]


_SIZES = (100, 1000, 50, 100, 20)  # of columns: how many values each has
_WIDTHS = (25, 250, 50, 25, 20)


def _register(number: int, rng: np.random.Generator) -> Codes:
    """People whose columns are independent and uniform: nothing can be told but by the release."""
    return np.column_stack([rng.integers(0, size, number) for size in _SIZES]).astype(np.int32)


def _duplicates(title: str, rng: np.random.Generator) -> Exhibit:
    members, others = _register(10_000, rng), _register(10_000, rng)

    def attacked(shown: Boxes, name: str) -> Estimate:
        return duplicates(shown, members, others, known=(0, 1, 2), name=name, rng=rng)

    copies = k_duplication([line(size) for size in _SIZES], members, k=K, bits=_bits(rng))
    return Exhibit(
        title,
        "A table of 10,000 people; the attacker has three of five columns of them and of 10,000 "
        "others, with their names.",
        (attacked(copies, f"{K}-Duplication"),),
        tuple(
            attacked(scheme.publish(members, _bits(rng)), name)
            for name, scheme in _schemes(_WIDTHS)
        ),
    )


def _whole(title: str, rng: np.random.Generator) -> Exhibit:
    members, others = _register(10_000, rng), _register(10_000, rng)
    delta = 0.005

    def attacked(shown: Boxes, name: str, bound: float) -> Estimate:
        return whole(shown, members, others, name=name, rng=rng, bound=bound)

    drawn = delta_sample(members, delta=delta, bits=_bits(rng))
    return Exhibit(
        title,
        f"A table of 10,000 people: δ-sampling is (0, {delta:g})-private and is expected to show "
        f"{delta * len(members):g} of them whole.",
        (attacked(drawn, f"δ-sampling, δ = {delta:g}", delta),),
        tuple(
            # Of people outside the table it shows no whole record: the chance is 0.
            attacked(scheme.publish(members, _bits(rng)), name, most([scheme], 0.0, delta=DELTA))
            for name, scheme in _schemes(_WIDTHS)
        ),
    )


_ILLNESSES = 100
_PLACES = (80, 60, 100)


def _patients(number: int, rng: np.random.Generator) -> Persons:
    """What is known of patients, and their illness; some illnesses are more common."""
    known = np.column_stack([rng.integers(0, size, number) for size in _PLACES])
    shares = 1 / np.arange(3, 3 + _ILLNESSES)
    illness = rng.choice(_ILLNESSES, number, p=shares / shares.sum())
    return Persons(known.astype(np.int32), illness.astype(np.int32))


def _intersection(title: str, rng: np.random.Generator) -> Exhibit:
    number, asked, k = 6000, 1000, 5
    patients, others = _patients(number, rng), _patients(asked, rng)
    known, illness = patients.points, patients.sensitive
    members = Persons(known[:asked], illness[:asked])
    axes = [line(size) for size in _PLACES]

    def listed(k: int, by: str, weights: Sequence[float]) -> Listed:
        found = clustered(axes, known, k=k, by=by, weights=np.array(weights))
        return Listed.of_classes(found.boxes, found.members, illness, _ILLNESSES)

    first = listed(k, "mondrian", (400, 20, 1))
    weighted = listed(k + 1, "mondrian", (1, 20, 400))
    greedy = listed(k + 1, "cluster", (1, 1, 1))
    table = np.column_stack([known, illness]).astype(np.int32)

    def held(name: str, event: SafeRelease | GeometricCounts) -> Estimate:
        schemes = [SafeSteps((20, 60, 100, 1), event), SafeSteps((80, 15, 100, 1), event)]
        cells = [scheme.publish(table, _bits(rng)) for scheme in schemes]
        shown = [Listed.of_cells(cell, _ILLNESSES) for cell in cells]
        found = intersection(shown, members, others, name=f"twice: {name}")
        assert found.control is not None
        return replace(found, bound=most(schemes, found.control.high, delta=DELTA))

    mondrians = f"Mondrian, k = {k}, and with other weights, k = {k + 1}"
    clusters = f"Mondrian, k = {k}, and clustering, k = {k + 1}"
    return Exhibit(
        title,
        f"A table of {number} patients with {_ILLNESSES} illnesses, published twice; the attacker "
        f"is after {asked} of them. The most that the guarantee allows is told from the upper end "
        f"of the control.",
        (
            intersection([first, weighted], members, others, name=mondrians),
            intersection([first, greedy], members, others, name=clusters),
        ),
        tuple(held(name, event) for name, event in SAFE.items()),
    )


def _downcoding(title: str, rng: np.random.Generator) -> Exhibit:
    k = 5
    villages = Villages.drawn(600, k=k, columns=8, width=4, rng=rng)
    minimal = recoded(villages.hierarchies, villages.codes, k=k).classes
    levels = (1, 0, 1, *[2] * 6)  # of a safe release: one column by values, one by groups
    counted = merged(villages.codes, np.ones(len(villages.codes), dtype=np.int64))
    cells = counted.rolled(between(villages.hierarchies, [0] * len(levels), levels))

    def held(name: str, event: SafeRelease | GeometricCounts) -> Estimate:
        shown = shown_of(cells, event, bits=_bits(rng))
        classes = at_levels(levels, shown.codes, shown.counts)
        return downcoding(classes, villages, name=name, rng=rng)

    return Exhibit(
        title,
        f"{len(villages.groups)} villages with {k} people in the table each; the recoder "
        f"generalises no record more than {k}-anonymity asks for.",
        (downcoding(minimal, villages, name="minimal local recoding", rng=rng),),
        tuple(held(name, event) for name, event in SAFE.items()),
    )


def _bits(rng: np.random.Generator) -> Randomness:
    return SeededRandomness(int(rng.integers(2**62)))


EXHIBITS: dict[str, Callable[[str, np.random.Generator], Exhibit]] = {
    "The extreme value as the end of an interval": _extreme,
    "Identical rows that are one person": _duplicates,
    "People published whole": _whole,
    "Two releases of one table, intersected": _intersection,
    "Downcoding": _downcoding,
}
STEPS = len(EXHIBITS) + 1


def reproduce(folder: Path, progress: Callable[[str], None] = lambda _: None) -> list[Exhibit]:
    """Write the figure (SVG and PNG), ``numbers.json`` and ``index.html`` to a folder.

    The folder appears whole or not at all; one that holds an earlier reproduction is
    replaced, one that holds anything else is left alone. ``progress`` hears of each of the
    ``STEPS`` steps.
    """
    from incrowd.papers import paper_a_attacks_figure as drawn

    names = [f"{FIGURE}.{form}" for form in ("svg", "png")]
    with fill(folder, replacing=[*names, "numbers.json", "index.html"]) as draft:
        found = attacks(progress=progress)
        progress("The figure")
        drawn.save(found, FIGURE, draft)
        (draft / "numbers.json").write_text(_json(found), encoding="utf-8")
        (draft / "index.html").write_text(_page(found), encoding="utf-8")
    return found


def _json(found: Sequence[Exhibit]) -> str:
    exhibits = [asdict(exhibit) for exhibit in found]
    return json.dumps({"seed": SEED, "exhibits": exhibits}, indent=1) + "\n"


def _page(found: Sequence[Exhibit]) -> str:
    from incrowd.release.render import render

    return render(
        "incrowd.papers", "paper_a_attacks.html",
        exhibits=found, figure=FIGURE, sample=SAMPLE, counts=COUNTS, delta=DELTA,
    )  # fmt: skip
