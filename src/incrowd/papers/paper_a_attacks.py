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
from incrowd.codes.axis import ClassBounds
from incrowd.codes.frequency import map_levels, merge_tuples
from incrowd.evaluation.attacks.intersection import KnownPeople, SensitiveBoxes, intersect_boxes
from incrowd.measure.estimate import Estimate
from incrowd.papers import extreme_value as rich
from incrowd.papers.baselines import (
    draw_delta_sample,
    make_number_axis,
    publish_duplicates,
    recode_clusters,
)
from incrowd.papers.downcode import Villages, attack_by_downcoding, make_level_classes
from incrowd.papers.duplicates import attack_duplicates
from incrowd.papers.extreme_value import Publish, attack_extreme_value
from incrowd.papers.full_disclosure import attack_full_disclosure
from incrowd.papers.minimal_recoder import recode_minimally
from incrowd.papers.safe_steps import SteppedRelease, bound_attack_success, draw_cells
from incrowd.privacy.events import GeometricCounts, SafeRelease
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.release.folder import fill_folder

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


def run_attacks(
    seed: int = SEED, progress: Callable[[str], None] = lambda _: None
) -> list[Exhibit]:
    """Run all attacks; ``progress`` hears of each before it starts."""
    attacks = []
    for at, (title, exhibit) in enumerate(EXHIBITS.items()):
        progress(title)
        attacks.append(exhibit(title, np.random.default_rng([seed, at])))
    return attacks


def _exhibit_extreme_value(title: str, rng: np.random.Generator) -> Exhibit:
    towns = 60

    def recode_by(by: str) -> Publish:
        return lambda points, _: recode_clusters(rich.make_town_axes(), points, k=K, by=by).boxes

    def publish_safely(scheme: SteppedRelease) -> Publish:
        return lambda points, rng: scheme.publish(points, _make_bits(rng))

    return Exhibit(
        title,
        f"{towns} towns of 200 people, in each of which one has more than 10 million, as is known. "
        f"Classes have at least {K} rows.",
        tuple(
            attack_extreme_value(recode_by(by), name=name, rng=rng, towns=towns)
            for by, name in (
                ("cluster", "clustering and local recoding"),
                ("mondrian", "Mondrian, boxes from the data"),
            )
        ),
        tuple(
            attack_extreme_value(
                publish_safely(scheme),
                name=name,
                rng=rng,
                towns=towns,
                bound=bound_attack_success([scheme], 1 / rich.VALUES, delta=DELTA),
            )
            for name, scheme in _make_safe_schemes((rich.AREAS, 125))
        ),
    )


def _make_safe_schemes(widths: tuple[int, ...]) -> list[tuple[str, SteppedRelease]]:
    """Return a public scheme for either kind of safe release."""
    return [(name, SteppedRelease(widths, event)) for name, event in SAFE.items()]


_SIZES = (100, 1000, 50, 100, 20)  # of columns: how many values each has
_WIDTHS = (25, 250, 50, 25, 20)


def _draw_register(number: int, rng: np.random.Generator) -> Codes:
    """Draw people whose columns are independent and uniform."""
    return np.column_stack([rng.integers(0, size, number) for size in _SIZES]).astype(np.int32)


def _exhibit_duplicates(title: str, rng: np.random.Generator) -> Exhibit:
    members, others = _draw_register(10_000, rng), _draw_register(10_000, rng)

    def attack_groups(published: ClassBounds, name: str) -> Estimate:
        return attack_duplicates(
            published, members, others, known_columns=(0, 1, 2), name=name, rng=rng
        )

    copies = publish_duplicates(
        [make_number_axis(size) for size in _SIZES], members, k=K, bits=_make_bits(rng)
    )
    return Exhibit(
        title,
        "A table of 10,000 people; the attacker has three of five columns of them and of 10,000 "
        "others, with their names.",
        (attack_groups(copies, f"{K}-Duplication"),),
        tuple(
            attack_groups(scheme.publish(members, _make_bits(rng)), name)
            for name, scheme in _make_safe_schemes(_WIDTHS)
        ),
    )


def _exhibit_disclosure(title: str, rng: np.random.Generator) -> Exhibit:
    members, others = _draw_register(10_000, rng), _draw_register(10_000, rng)
    delta = 0.005

    def attack_rows(published: ClassBounds, name: str, bound: float) -> Estimate:
        return attack_full_disclosure(published, members, others, name=name, rng=rng, bound=bound)

    sample = draw_delta_sample(members, delta=delta, bits=_make_bits(rng))
    return Exhibit(
        title,
        f"A table of 10,000 people: δ-sampling is (0, {delta:g})-private and is expected to show "
        f"{delta * len(members):g} of them whole.",
        (attack_rows(sample, f"δ-sampling, δ = {delta:g}", delta),),
        tuple(
            # Of people outside the table it shows no whole record: the chance is 0.
            attack_rows(
                scheme.publish(members, _make_bits(rng)),
                name,
                bound_attack_success([scheme], 0.0, delta=DELTA),
            )
            for name, scheme in _make_safe_schemes(_WIDTHS)
        ),
    )


_ILLNESSES = 100
_PLACES = (80, 60, 100)


def _draw_patients(number: int, rng: np.random.Generator) -> KnownPeople:
    """Draw what is known of patients, and their illness; some are more common."""
    known_people = np.column_stack([rng.integers(0, size, number) for size in _PLACES])
    shares = 1 / np.arange(3, 3 + _ILLNESSES)
    illness = rng.choice(_ILLNESSES, number, p=shares / shares.sum())
    return KnownPeople(known_people.astype(np.int32), illness.astype(np.int32))


def _exhibit_intersection(title: str, rng: np.random.Generator) -> Exhibit:
    number, targets, k = 6000, 1000, 5
    patients, others = _draw_patients(number, rng), _draw_patients(targets, rng)
    points, illness = patients.points, patients.sensitive
    members = KnownPeople(points[:targets], illness[:targets])
    axes = [make_number_axis(size) for size in _PLACES]

    def list_illnesses(k: int, by: str, weights: Sequence[float]) -> SensitiveBoxes:
        illnesses = recode_clusters(axes, points, k=k, by=by, weights=np.array(weights))
        return SensitiveBoxes.from_classes(illnesses.boxes, illnesses.members, illness, _ILLNESSES)

    first_boxes = list_illnesses(k, "mondrian", (400, 20, 1))
    second_boxes = list_illnesses(k + 1, "mondrian", (1, 20, 400))
    greedy = list_illnesses(k + 1, "cluster", (1, 1, 1))
    table = np.column_stack([points, illness]).astype(np.int32)

    def attack_safe_releases(name: str, event: SafeRelease | GeometricCounts) -> Estimate:
        schemes = [SteppedRelease((20, 60, 100, 1), event), SteppedRelease((80, 15, 100, 1), event)]
        cells = [scheme.publish(table, _make_bits(rng)) for scheme in schemes]
        published = [SensitiveBoxes.from_cells(cell, _ILLNESSES) for cell in cells]
        estimate = intersect_boxes(published, members, others, name=f"twice: {name}")
        assert estimate.control is not None
        return replace(
            estimate,
            bound=bound_attack_success(schemes, estimate.control.high, delta=DELTA),
        )

    mondrians = f"Mondrian, k = {k}, and with other weights, k = {k + 1}"
    clusters = f"Mondrian, k = {k}, and clustering, k = {k + 1}"
    return Exhibit(
        title,
        f"A table of {number} patients with {_ILLNESSES} illnesses, published twice; the attacker "
        f"is after {targets} of them. The most that the guarantee allows is told from the upper "
        f"end of the control.",
        (
            intersect_boxes([first_boxes, second_boxes], members, others, name=mondrians),
            intersect_boxes([first_boxes, greedy], members, others, name=clusters),
        ),
        tuple(attack_safe_releases(name, event) for name, event in SAFE.items()),
    )


def _exhibit_downcoding(title: str, rng: np.random.Generator) -> Exhibit:
    k = 5
    villages = Villages.draw_villages(600, k=k, columns=8, width=4, rng=rng)
    minimal = recode_minimally(villages.hierarchies, villages.codes, k=k).classes
    levels = (1, 0, 1, *[2] * 6)  # of a safe release: one column by values, one by groups
    frequencies = merge_tuples(villages.codes, np.ones(len(villages.codes), dtype=np.int64))
    cells = frequencies.roll_up(map_levels(villages.hierarchies, [0] * len(levels), levels))

    def attack_safe_release(name: str, event: SafeRelease | GeometricCounts) -> Estimate:
        published = draw_cells(cells, event, bits=_make_bits(rng))
        classes = make_level_classes(levels, published.codes, published.counts)
        return attack_by_downcoding(classes, villages, name=name, rng=rng)

    return Exhibit(
        title,
        f"{len(villages.groups)} villages with {k} people in the table each; the recoder "
        f"generalizes no record more than {k}-anonymity asks for.",
        (attack_by_downcoding(minimal, villages, name="minimal local recoding", rng=rng),),
        tuple(attack_safe_release(name, event) for name, event in SAFE.items()),
    )


def _make_bits(rng: np.random.Generator) -> Randomness:
    return SeededRandomness(int(rng.integers(2**62)))


EXHIBITS: dict[str, Callable[[str, np.random.Generator], Exhibit]] = {
    "The extreme value as the end of an interval": _exhibit_extreme_value,
    "Identical rows that are one person": _exhibit_duplicates,
    "People published whole": _exhibit_disclosure,
    "Two releases of one table, intersected": _exhibit_intersection,
    "Downcoding": _exhibit_downcoding,
}
STEPS = len(EXHIBITS) + 1


def reproduce(folder: Path, progress: Callable[[str], None] = lambda _: None) -> list[Exhibit]:
    """Write the figure (SVG and PNG), ``numbers.json`` and ``index.html`` to a folder.

    The folder appears whole or not at all; one that holds an earlier reproduction is
    replaced, one that holds anything else is left alone. ``progress`` hears of each of the
    ``STEPS`` steps.
    """
    from incrowd.papers import paper_a_attacks_figure

    names = [f"{FIGURE}.{form}" for form in ("svg", "png")]
    with fill_folder(folder, replacing=[*names, "numbers.json", "index.html"]) as draft:
        attacks = run_attacks(progress=progress)
        progress("The figure")
        paper_a_attacks_figure.save_figure(attacks, FIGURE, draft)
        (draft / "numbers.json").write_text(_format_json(attacks), encoding="utf-8")
        (draft / "index.html").write_text(_render_page(attacks), encoding="utf-8")
    return attacks


def _format_json(exhibits: Sequence[Exhibit]) -> str:
    records = [asdict(exhibit) for exhibit in exhibits]
    return json.dumps({"seed": SEED, "exhibits": records}, indent=1) + "\n"


def _render_page(exhibits: Sequence[Exhibit]) -> str:
    from incrowd.release.render import render_page

    return render_page(
        "incrowd.papers", "paper_a_attacks.html",
        exhibits=exhibits, figure=FIGURE, sample=SAMPLE, counts=COUNTS, delta=DELTA,
    )  # fmt: skip
