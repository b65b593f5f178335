"""Attack: open a table, a release of it and a control group, and try to break the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.codes.counted_table import COUNT
from incrowd.codes.values import canonicalize_value
from incrowd.engine.count import count_tuples, read_labels
from incrowd.engine.source import open_spec_table
from incrowd.engine.table import Engine, Table, TableError
from incrowd.errors import IncrowdError, check_choice, check_whole
from incrowd.evaluation.attacks.catalog import ATTACKS, NEEDS_SECRET
from incrowd.evaluation.attacks.inference import make_targets, split_secret
from incrowd.evaluation.attacks.intersection import ReleaseView, intersect_views
from incrowd.evaluation.attacks.laws import law_from_parameters
from incrowd.evaluation.attacks.scene import (
    KEYS_UNUSED,
    NO_SECRET,
    ROWS_UNKNOWN,
    VALUES,
    AttackScene,
    make_scene,
)
from incrowd.evaluation.attacks.shadows import run_shadow_attack
from incrowd.evaluation.attacks.trial import TRIES, run_attacks
from incrowd.evaluation.attacks.view import sample_people
from incrowd.evaluation.evaluate import (
    ReleaseFacts,
    find_synthetic,
    find_tables,
    list_quasi_columns,
    open_release,
)
from incrowd.evaluation.noise import relink_rows, simulate_noise
from incrowd.measure.estimate import CONFIDENCE, AttackReport, Estimate, Rate
from incrowd.measure.label_evaluation import assign_levels
from incrowd.measure.labels import assign_bins
from incrowd.measure.noise_loss import NOT_MEASURED
from incrowd.methods.people import draw_rows
from incrowd.privacy.events import parse_event
from incrowd.privacy.randomness import SystemRandomness
from incrowd.release.certificate import Certificate
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, SpecSource, load_spec
from incrowd.spec.model import KEPT, PersonId, Spec


def attack(
    original: Any,
    released: Any,
    spec: SpecSource,
    *,
    control: Any = None,
    secrets: Sequence[str] | None = None,
    knows: int | None = None,
    errors: float = 0.0,
    only: Sequence[str] = ATTACKS,
    tries: int = TRIES,
    confidence: float = CONFIDENCE,
    classifier: bool = False,
    shadows: bool = False,
    also: Sequence[Any] = (),
    identity: str | None = None,
    curator: Path | str | None = None,
    seed: int | None = None,
    engine: Engine | None = None,
) -> AttackReport:
    """Attack a release, and return how often each attack succeeds.

    The result is for the curator alone: it is computed from the original table.

    Args:
        original: The table that was published, in any form that :func:`incrowd.publish` takes.
        released: A release, its folder, its data, or a file that another tool made.
        spec: The spec that explains the labels. Its quasi-identifiers are what the attacker knows.
        control: People who are not in the table, as rows with the same columns. Keep some rows back
            at random before you publish.
        secrets: Columns that the attacker wants to learn; by default the sensitive columns with at
            most 256 values.
        knows: Number of quasi-identifiers that the attacker knows; the most useful ones are taken.
            By default all.
        errors: Probability that a value the attacker knows is wrong.
        only: Attacks to try: "linkage", "join", "singling-out", "inference", "membership",
            "extreme".
        tries: Largest number of people to attack, drawn at random.
        confidence: Confidence of the intervals.
        classifier: Also train a classifier on the release. Needs a control group.
        shadows: Also learn membership from releases made with and without single people. Takes
            minutes.
        also: Other releases of the same table, to intersect with this one.
        identity: A column that names the same row in both tables. For the method "k-epsilon" alone.
            Without it, linkage of noisy values is simulated with fresh noise.
        curator: The private folder of the release; by default ``NAME.curator`` beside it. Needed
            with ``unit: {id: COLUMN}`` to find the rows that were used.
        seed: Seed of the random choices, to repeat an attack.
        engine: The engine that opens the tables.

    Returns:
        One estimate per attack, with its success, guessing, control group and bound.

    Raises:
        IncrowdError: A table cannot be opened, a column is unknown, the original has no rows, or
            inference alone is asked for without a secret.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> people = pl.DataFrame({"ward": ["A", "B"] * 50, "ill": ["yes", "no", "no", "no"] * 25})
        >>> ward = {"role": "quasi", "hierarchy": {"flat": {"values": ["A", "B"]}}}
        >>> spec = {"columns": {"ward": ward, "ill": {"role": "sensitive"}}}
        >>> result = ic.attack(people, people, spec, only=["inference"], seed=1)
        >>> result.estimates[0].success.value >= 0.75
        True
    """
    file = load_spec(spec)
    release = file.spec.release
    noisy = release is not None and release.method == "k-epsilon"
    if identity is not None and not noisy:
        raise IncrowdError("--id applies to `method: k-epsilon` only. Drop it.")
    if find_tables(released) is not None:
        raise IncrowdError(
            "Attacks on groups of rows do not apply to tables of counts, in which no line stands "
            "for a person. Test the guarantee itself: incrowd audit SPEC"
        )
    start = None if seed is None else int(check_whole("seed", seed, 0))
    after, told = open_release(released, engine, curator)
    before = open_spec_table(file, original, engine=engine)
    others = None if control is None else open_spec_table(file, control, engine=engine)
    synthetic = find_synthetic(released)
    if synthetic is not None:
        if also or classifier or errors or knows is not None:
            raise IncrowdError(
                "--also, --classifier, --errors and --knows do not apply to synthetic rows. Drop "
                "them."
            )
        report = _attack_rows(
            file, before, after, synthetic, told, control=others, secrets=secrets, only=only,
            tries=tries, confidence=confidence, seed=start,
        )  # fmt: skip
        _require_secret(report, only)
        more = run_shadow_attack(before, file, rng=np.random.default_rng(start)) if shadows else ()
        return replace(report, estimates=(*report.estimates, *more))
    scene = _make_scene(file, before, after, told, control=others, secrets=secrets)
    attacks = run_attacks(
        scene, knows=knows, errors=errors, only=only, tries=tries, confidence=confidence,
        classifier=classifier, rng=np.random.default_rng(start),
    )  # fmt: skip
    _require_secret(attacks, only)
    estimates = list(attacks.estimates)
    if told.is_linked:
        attacks = replace(attacks, notes=(*attacks.notes, KEYS_UNUSED))
    if "linkage" in only and noisy:
        used = draw_rows(before, file.spec, SystemRandomness(), told.rows_key)
        estimates.insert(0, _link_by_noise(file, used, after, identity, attacks))
    if also:
        scenes = [_make_other_scene(file, before, scene, item) for item in also]
        estimates += intersect_releases(
            [scene, *scenes], tries, confidence, np.random.default_rng(start)
        )
    if shadows:
        estimates += run_shadow_attack(before, file, rng=np.random.default_rng(start))
    return replace(attacks, estimates=tuple(estimates))


def _require_secret(report: AttackReport, only: Sequence[str]) -> None:
    """Refuse a request for nothing but attacks on a secret where there is none."""
    if NO_SECRET in report.notes and {*only} <= {*NEEDS_SECRET}:
        raise IncrowdError(NO_SECRET)


def _are_rows_known(spec: Spec, told: ReleaseFacts) -> bool:
    """Return whether the attacked rows are those of the release: of a person any may be drawn."""
    return not isinstance(spec.unit, PersonId) or told.rows_key is not None


def _attack_rows(
    file: SpecFile,
    original: Table,
    released: Table,
    synthetic: tuple[Path, Certificate],
    told: ReleaseFacts,
    *,
    control: Table | None,
    **how: Any,
) -> AttackReport:
    """Attack the synthetic rows of a folder, whose model is fitted again."""
    # They load the whole synthesis, which no other method needs
    from incrowd.evaluation.attacks.synthetic import attack_synthetic
    from incrowd.evaluation.synthetic_release import RowsReader

    folder, certificate = synthetic
    reader = RowsReader.from_spec(file, certificate)
    used = draw_rows(original, file.spec, SystemRandomness(), told.rows_key)
    made = reader.read_folder(folder, certificate, released, used)
    outside = None if control is None else reader.count(control).frequencies
    report = attack_synthetic(made, control=outside, **how)
    if _are_rows_known(file.spec, told):
        return report
    return replace(report, notes=(*report.notes, ROWS_UNKNOWN))


def _link_by_noise(
    file: SpecFile, original: Table, released: Table, identity: str | None, found: AttackReport
) -> Estimate:
    """Link rows of a class by the nearest values of its noisy columns.

    Who does not look at them guesses among the rows of the class.
    """
    name, rows = "by the nearest noisy values", released.rows()
    if identity is not None:
        linked = relink_rows(file, original, released, identity).linking_shared
        assert linked is not None
        whose = next(estimate for estimate in found.estimates if estimate.attack == "linkage")
        guess, how = float(whose.details["expected"]), "measured on this release"
    else:
        fresh = simulate_noise(file, original, bits=SystemRandomness())
        linked, guess, how = fresh.linking_shared, fresh.guessing, NOT_MEASURED
        name += ", simulated"
    return Estimate(
        attack="linkage",
        name=name,
        knows="the class of each person, and the true values of the noisy columns",
        success=Rate(round(linked.mean * rows), rows, linked.mean, linked.low, linked.high),
        guess=Rate.from_value(guess),
        says=f"The nearest row of the class belongs to the person ({how}).",
    )


def _make_scene(
    file: SpecFile,
    original: Table,
    released: Table,
    told: ReleaseFacts,
    *,
    control: Table | None,
    secrets: Sequence[str] | None,
) -> AttackScene:
    """Count both tables by the columns that the release shows."""
    spec = file.spec
    wanted = _choose_secrets(spec, original, released, secrets)
    quasi = list_quasi_columns(spec)
    columns = {
        name: column
        for name, column in quasi.items()
        if name not in wanted and name in released.columns
    }
    if not columns:
        raise TableError("Released table: no quasi-identifier of the spec. Name the right spec.")
    for name in wanted:
        own = spec.columns[name]
        kept = name not in quasi and _shows_values(name, original, released)
        columns[name] = KEPT if kept or own.hierarchy is None else own
    for table, which in ((original, "original"), (control, "control")):
        missing = [name for name in columns if table is not None and name not in table.columns]
        if missing:
            raise TableError(
                f"Column '{missing[0]}': not in the {which} table. Correct the table or the spec."
            )
    original = draw_rows(original, spec, SystemRandomness(), told.rows_key)
    counted = count_tuples(original, ColumnHierarchies(columns, file.folder))
    weighted = COUNT in released.columns and COUNT not in spec.columns
    shown = read_labels(released, tuple(columns), weighted=weighted)
    shown, _ = assign_levels(counted, replace(shown, noise=told.noise), told.levels)
    others = None
    if control is not None:
        coders = dict(zip(counted.names, (h.encode for h in counted.hierarchies), strict=True))
        others = control.count(counted.names, coders)
    drawn = float(told.parameters.get("beta", 1.0))
    rows_known = _are_rows_known(spec, told)
    synthetic = "information" in told.parameters  # rows of a model follow no law of cells
    attack_scene = bool(told.events) and rows_known and not synthetic and not told.is_linked
    return make_scene(
        counted, shown, secrets=wanted, control=others, sample_rate=drawn,
        law=law_from_parameters(told.parameters) if attack_scene else None,
        rows_known=rows_known,
        promise=told.promise, events=tuple(parse_event(event) for event in told.events),
    )  # fmt: skip


def _shows_values(name: str, original: Table, released: Table) -> bool:
    """Return whether a column shows only values of the original, which are then not generalized.

    Labels of its hierarchy may overlap: a diagnosis is a value and the head of a block.
    """
    values = {canonicalize_value(value) for value in original.values(name)}
    return all(canonicalize_value(value) in values for value in released.values(name))


def _make_other_scene(
    file: SpecFile, original: Table, first: AttackScene, released: Any
) -> AttackScene:
    """Return another release of the table, with the secrets of the first that it has."""
    after, told = open_release(released)
    known = [first.release.names[at] for at in first.secrets]
    secrets = [name for name in known if name in after.columns]
    return _make_scene(file, original, after, told, control=None, secrets=secrets)


def intersect_releases(
    scenes: Sequence[AttackScene], tries: int, confidence: float, rng: np.random.Generator
) -> list[Estimate]:
    """Attack every secret that all releases show; people and control group are the first's."""
    first = scenes[0]
    targets = sample_people(first.everybody, tries, rng)
    outside = None if first.control is None else sample_people(first.control, tries, rng)
    places = {name: at for at, name in enumerate(first.release.names)}
    result = []
    for secret in (first.release.names[at] for at in first.secrets):
        if any(secret not in scene.release.names for scene in scenes):
            continue
        views = []
        for scene in scenes:
            at = scene.release.names.index(secret)
            seen, own = split_secret(scene.release, scene.quasi, at)
            columns = [places[name] for name in seen.names]
            bins = assign_bins(first.axes[places[secret]])
            members = make_targets(targets, columns, places[secret], bins)
            others = None
            if outside is not None:
                others = make_targets(outside, columns, places[secret], bins)
            views.append(ReleaseView(seen, own, members, others))
        result.append(intersect_views(views, confidence=confidence))
    return result


def _choose_secrets(
    spec: Spec, original: Table, released: Table, asked: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the columns named; else the sensitive ones with not too many values to be said."""
    if asked is None:
        return tuple(
            name
            for name in spec.columns_with_role("sensitive")
            if name in released.columns
            and name in original.columns
            and len(original.values(name)) <= VALUES
        )
    shown = [
        name
        for name in spec.columns_with_role("quasi", "sensitive", "keep")
        if name in released.columns
    ]
    return tuple(check_choice("secret", name, shown) for name in asked)
