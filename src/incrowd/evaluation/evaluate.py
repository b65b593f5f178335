"""Evaluate: open a release and its original, and measure the one against the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.codes.counted_table import (
    COUNT,
    CountedTable,
    CountNoise,
    DistinctRows,
    PublishedTable,
)
from incrowd.codes.frequency import merge_tuples
from incrowd.codes.person_sets import PeopleTable
from incrowd.codes.values import canonicalize_value
from incrowd.engine.count import build_hierarchies, count_tuples_with_kept, read_labels
from incrowd.engine.source import open_spec_table, open_table
from incrowd.engine.table import Engine, Table, TableError, TooManyTuplesError
from incrowd.errors import IncrowdError, check_choice
from incrowd.evaluation.noise import measure_file_noise, relink_rows, simulate_noise
from incrowd.findings import make_finding
from incrowd.measure.evaluation import Evaluation, LabelEvaluation
from incrowd.measure.label_evaluation import assign_levels, evaluate_labels
from incrowd.measure.lost_values import KeptRows
from incrowd.measure.outcome import measure_at_levels, measure_utility_of_levels
from incrowd.measure.slices import compare_slices
from incrowd.methods.k_anonymity.payout import make_payout_model
from incrowd.methods.people import count_by_unit, draw_rows, read_key
from incrowd.privacy.randomness import Randomness, SystemRandomness
from incrowd.release.certificate import FILE, Certificate, Slice, hash_file
from incrowd.release.folder import locate_curator_folder
from incrowd.release.formulas import unescape_formula
from incrowd.release.parameters import make_count_noise
from incrowd.release.release import Release
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, SpecSource, load_spec
from incrowd.spec.model import KEPT, Column, PersonId, Spec
from incrowd.spec.release import SyntheticSpec


def evaluate(
    original: Any,
    released: Any,
    spec: SpecSource,
    *,
    target: str | None = None,
    holdout: Any = None,
    identity: str | None = None,
    curator: Path | str | None = None,
    bits: Randomness | None = None,
    engine: Engine | None = None,
) -> Evaluation:
    """Measure loss, risk and utility of a release.

    The result is for the curator alone: it is computed from the original table. A file beside its
    certificate is read at the levels that the certificate states, and the noise of counts is taken
    into account. The figures of a release are then those of its report.

    Args:
        original: The table that was published, in any form that :func:`incrowd.publish` takes.
        released: A release, its folder, its data, or a file that another tool made. The slices of a
            release are measured together.
        spec: The spec that explains the labels.
        target: A column to predict. A classifier is trained on the release and tested on original
            rows.
        holdout: Rows that are not in the table, to test the classifier on.
        identity: A column that names the same row in both tables. For the method "k-epsilon" alone.
            Without it, errors and linking risk of single rows are None and simulated beside it.
        curator: The private folder of the release; by default ``NAME.curator`` beside it. Needed
            with ``unit: {id: COLUMN}`` to find the rows that were used.
        bits: Source of random bits, for tests.
        engine: The engine that opens the tables.

    Returns:
        All measures. What was not measured is None, or empty.

    Raises:
        IncrowdError: A table cannot be opened, or its labels do not fit the spec.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> original = pl.DataFrame({"sex": ["female", "male"] * 10})
        >>> released = pl.DataFrame({"sex": ["*"] * 20})
        >>> sex = {"role": "quasi", "hierarchy": {"flat": {"values": ["female", "male"]}}}
        >>> ic.evaluate(original, released, {"columns": {"sex": sex}}).loss
        1.0
    """
    file = load_spec(spec)
    before = open_spec_table(file, original, engine=engine)
    bits = bits or SystemRandomness()
    tabulated = find_tables(released)
    if tabulated is not None:
        if target is not None or holdout is not None or identity is not None:
            raise IncrowdError(
                "--target, --holdout and --id do not apply to tables of counts. Drop them."
            )
        hidden = locate_curator_folder(tabulated[0]) if curator is None else Path(curator)
        key = read_key(hidden, tabulated[1])
        return _evaluate_tables(file, draw_rows(before, file.spec, bits, key), *tabulated)
    files = _list_files(released)
    if len(files) > 1 and target is None and holdout is None and identity is None:
        private = released.curator if isinstance(released, Release) else None
        slices = [open_release(path, engine=engine, curator=curator or private) for path in files]
        return evaluate_slices(before, slices, file.spec, folder=file.folder)
    after, facts = open_release(released, engine=engine, curator=curator)
    held_out = None if holdout is None else open_spec_table(file, holdout, engine=engine)
    synthetic = find_synthetic(released)
    uncertified = isinstance(file.spec.release, SyntheticSpec) and not facts.certified
    if synthetic is not None or uncertified:
        if identity is not None:
            raise IncrowdError("--id applies to `method: k-epsilon` only. Drop it.")
        before = draw_rows(before, file.spec, bits, facts.rows_key)
        return _evaluate_rows(file, before, after, synthetic, target=target, held_out=held_out)
    tables = evaluate_tables(
        before,
        after,
        file.spec,
        folder=file.folder,
        target=target,
        held_out=held_out,
        facts=facts,
    )
    if file.spec.release is None or file.spec.release.method != "k-epsilon":
        if identity is not None:
            raise IncrowdError("--id applies to `method: k-epsilon` only. Drop it.")
        return tables
    before = draw_rows(before, file.spec, bits, facts.rows_key)
    if identity is not None:
        return replace(tables, noise=relink_rows(file, before, after, identity))
    noise = measure_file_noise(file, before, after, facts.levels)
    fresh = simulate_noise(file, before, bits=bits) if noise.columns else None
    return replace(tables, noise=replace(noise, simulated=fresh))


def _evaluate_rows(
    file: SpecFile,
    original: Table,
    released: Table,
    synthetic: tuple[Path, Certificate] | None,
    *,
    target: str | None,
    held_out: Table | None,
) -> Evaluation:
    """Measure synthetic rows, with their model where a certificate stands beside them."""
    # They load the whole synthesis, which no other method needs
    from incrowd.evaluation.synthetic import get_rows, measure_synthetic
    from incrowd.evaluation.synthetic_release import RowsReader

    reader = RowsReader.from_spec(file, None if synthetic is None else synthetic[1])
    if synthetic is None:
        outcome = reader.read_rows(released, original)
    else:
        outcome = reader.read_folder(*synthetic, released, original)
    if target is not None:
        rows = get_rows(outcome)
        check_choice("target", target, rows.original.names)
        outcome = replace(outcome, products=(replace(rows, target=target),))
    unseen = None if held_out is None else reader.count(held_out).frequencies
    return measure_synthetic(outcome, original, held_out=unseen)[0]


def _evaluate_tables(
    file: SpecFile, original: Table, folder: Path, certificate: Certificate
) -> Evaluation:
    """Measure the tables of counts of a folder."""
    from incrowd.evaluation.tables import measure_folder

    return measure_folder(file, original, folder, certificate)


def information_loss(original: Any, released: Any, spec: SpecSource) -> dict[str, float | None]:
    """Return every measure of information loss of one released table, by name.

    Suppressed rows count as in :class:`~incrowd.measure.evaluation.Losses`.

    Args:
        original: The table that was published, in any form that :func:`incrowd.publish` takes.
        released: A release, its data, or a file that another tool made.
        spec: The spec that explains the labels.

    Returns:
        The losses ``normalized`` (as in ARX), ``precision``, ``entropy``, ``discernibility`` and
        ``average_class_size``.

    Raises:
        IncrowdError: A table cannot be opened, or its labels do not fit the spec.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> original = pl.DataFrame({"sex": ["female", "male"] * 10})
        >>> sex = {"role": "quasi", "hierarchy": {"flat": {"values": ["female", "male"]}}}
        >>> ic.information_loss(original, original, {"columns": {"sex": sex}})["normalized"]
        0.0
    """
    file = load_spec(spec)
    after, facts = open_release(released)
    before = open_spec_table(file, original)
    tables = evaluate_tables(before, after, file.spec, folder=file.folder, facts=facts)
    return {"normalized": tables.loss, **vars(tables.losses)}


def evaluate_tables(
    original: Table,
    released: Table,
    spec: Spec,
    *,
    folder: Path = Path(),
    target: str | None = None,
    held_out: Table | None = None,
    facts: ReleaseFacts | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> LabelEvaluation:
    """Hold one table against another by the quasi columns of a spec.

    ``facts`` is what a certificate tells of the release. Of a person who has several rows, by the
    unit of the spec, the row that the release used is looked at, or any, where that is not known.
    """
    columns = list_quasi_columns(spec)
    quasi = len(columns)
    if target is not None and target not in columns:
        columns[check_choice("target", target, _list_targets(spec))] = KEPT
    for table, name in ((original, "original"), (held_out, "held-out")):
        missing = [column for column in columns if table and column not in table.columns]
        if missing:
            raise TableError(
                f"Column '{missing[0]}': not in the {name} table. Correct the table or the spec."
            )
    if not set(columns) & set(released.columns):
        raise TableError("Released table: no quasi-identifier of the spec. Name the right spec.")
    if held_out is not None and target is None:
        raise IncrowdError("--holdout needs a column to predict. Add --target COLUMN.")
    step("count the original")
    release_facts = facts or ReleaseFacts()
    every_row, generalized = original, dict([*columns.items()][:quasi])
    original = draw_rows(original, spec, SystemRandomness(), release_facts.rows_key)
    sensitive = _list_kept_columns(spec, original, released)
    declared = _declare_columns(generalized, folder, every_row, original)
    rows = _count_with_kept(original, declared, sensitive)
    if rows is not None and quasi == len(columns):
        counts = rows.counted
    else:
        declared = _declare_columns(columns, folder, every_row, original)
        counts = _take_levels(count_by_unit(original, declared, spec), release_facts.levels)
    step("read the release")
    weighted = COUNT in released.columns and COUNT not in spec.columns
    published = read_labels(released, tuple(columns), weighted=weighted)
    beside = None
    if rows is not None:
        every = read_labels(released, (*generalized, *sensitive), weighted=weighted)
        weight = next((name for name in sensitive if spec.columns[name].role == "weight"), None)
        aggregated = tuple(name for name in sensitive if spec.columns[name].aggregate)
        beside = replace(_pair_kept_rows(rows, every), weight=weight, aggregated=aggregated)
    published, readings = assign_levels(
        counts, replace(published, noise=release_facts.noise), release_facts.levels
    )
    unseen = None
    if held_out is not None:
        # Codes of an open domain come from the original; what only the other has is outside.
        coders = {
            name: hierarchy.encode
            for name, hierarchy in zip(counts.names, counts.hierarchies, strict=True)
        }
        unseen = held_out.count(counts.names, coders)
    step("measure")
    kept_count = len(columns) - quasi
    labels = evaluate_labels(
        counts,
        counts.axes,
        published,
        kept_count=kept_count,
        target=target,
        held_out=unseen,
        kept_rows=beside,
        payout=make_payout_model(
            spec.release, spec.columns, tuple(generalized), counts.frequencies.total
        ),
    )
    crowd = None if kept_count or not {*columns} <= {*release_facts.levels} else release_facts.crowd
    if crowd is not None and not published.is_local:
        aim = getattr(spec.release, "target", None)
        labels = measure_at_levels(labels, counts, published, crowd=crowd, target=aim)
    elif not kept_count:
        labels = _add_levels(labels, counts, published)
    lacking = tuple(name for name in columns if name not in released.columns)
    unknown = (
        isinstance(spec.unit, PersonId)
        and release_facts.certified
        and release_facts.rows_key is None
    )
    readings += (make_finding("USED_ROWS_UNKNOWN"),) if unknown else ()
    return replace(labels, missing_columns=lacking, readings=readings)


def evaluate_slices(
    original: Table,
    slices: Sequence[tuple[Table, ReleaseFacts]],
    spec: Spec,
    *,
    folder: Path = Path(),
) -> Evaluation:
    """Hold the tables of one release against the original, each by itself and all together."""
    key = slices[0][1].rows_key
    original = draw_rows(original, spec, SystemRandomness(), key)
    declared = list_quasi_columns(spec)
    every = {name for table, _ in slices for name in table.columns}
    columns = {name: column for name, column in declared.items() if name in every}
    counts = count_by_unit(original, ColumnHierarchies(columns, folder), spec)
    axes = dict(zip(counts.names, counts.axes, strict=True))
    parts: list[tuple[tuple[str, ...], PublishedTable]] = []
    each: list[Evaluation] = []
    for table, facts in slices:
        names = tuple(name for name in table.columns if name in axes)
        part = _take_levels(counts.select_columns(names), facts.levels)
        weighted = COUNT in table.columns and COUNT not in spec.columns
        published = replace(read_labels(table, names, weighted=weighted), noise=facts.noise)
        published, readings = assign_levels(part, published, facts.levels)
        labels = evaluate_labels(part, [axes[name] for name in names], published)
        parts.append((names, published))
        each.append(replace(_add_levels(labels, part, published), readings=readings))
    missing = tuple(name for name in declared if name not in every)
    unknown = isinstance(spec.unit, PersonId) and slices[0][1].certified and key is None
    readings = (make_finding("USED_ROWS_UNKNOWN"),) if unknown else ()
    return replace(compare_slices(counts, parts, each), missing_columns=missing, readings=readings)


def _take_levels(table: CountedTable, levels: Mapping[str, int]) -> CountedTable:
    """Return the counts of people once per tuple that a release can show; other counts as is.

    Each group of a published level is represented by one of its values.
    """
    if not isinstance(table, PeopleTable):
        return table
    published = tuple(levels.get(name, 0) for name in table.names)
    return table.roll_up(published).represent_by_values().plain


def _add_levels(
    labels: LabelEvaluation, original: CountedTable, published: PublishedTable
) -> LabelEvaluation:
    """Add the utility at published levels beside that by value, where columns have levels."""
    silent = labels.lost.nothing_shown
    return replace(labels, utility_of_levels=measure_utility_of_levels(original, published, silent))


def _list_targets(spec: Spec) -> tuple[str, ...]:
    return spec.columns_with_role("quasi", "sensitive", "keep")


def _declare_columns(
    columns: Mapping[str, Column], folder: Path, every_row: Table, used: Table
) -> ColumnHierarchies:
    """Return the declared columns; an open domain has the values of all rows, as published."""
    declared = ColumnHierarchies(columns, folder)
    if used is not every_row:
        build_hierarchies(every_row, declared)
    return declared


def _list_kept_columns(spec: Spec, original: Table, released: Table) -> tuple[str, ...]:
    """Return the columns that both tables have and that are published as they are."""
    if _is_safe(spec):
        return ()
    both = {*original.columns} & {*released.columns}
    names = spec.columns_with_role("sensitive", "keep", "weight")
    return tuple(name for name in names if name in both)


def _count_with_kept(
    original: Table, declared: ColumnHierarchies, kept_names: Sequence[str]
) -> DistinctRows | None:
    """Count the tuples of a table with the columns that are kept; None if these are too many."""
    try:
        return count_tuples_with_kept(original, declared, kept_names) if kept_names else None
    except TooManyTuplesError:
        return None


def _pair_kept_rows(rows: DistinctRows, every: PublishedTable) -> KeptRows:
    """Return both tables by quasi columns and those that are kept; equal values have one code."""
    width, kept_values = len(rows.counted.names), {}
    after = [*every.frequencies.codes[:, :width].T]
    for at, (name, values) in enumerate(rows.kept.items(), width):
        listed = list(values)
        places = {canonicalize_value(x): place for place, x in reversed([*enumerate(listed)])}
        codes = []
        for label in every.labels[at]:
            text = canonicalize_value(label)
            if text not in places:
                places[text] = len(listed)
                listed.append(label)
            codes.append(places[text])
        kept_values[name] = listed
        after.append(np.array(codes, dtype=np.int32)[every.frequencies.codes[:, at]])
    looks = np.column_stack(after).astype(np.int32)
    return KeptRows(kept_values, rows.frequencies, merge_tuples(looks, every.frequencies.counts))


def list_quasi_columns(spec: Spec) -> dict[str, Column]:
    """Return the columns that are measured: those that are generalized."""
    roles = ("quasi", "sensitive") if _is_safe(spec) else ("quasi",)
    quasi_columns = {
        name: spec.columns[name]
        for name in spec.columns_with_role(*roles)
        if spec.columns[name].hierarchy is not None
    }
    if not quasi_columns:
        raise IncrowdError("Spec: no quasi-identifier to measure. Give a column the role `quasi`.")
    return quasi_columns


def _is_safe(spec: Spec) -> bool:
    return spec.release is not None and spec.release.method == "safe"


@dataclass(frozen=True)
class ReleaseFacts:
    """What the certificate beside a released file tells: levels, noise of counts, parameters.

    ``promise`` are the epsilon and delta of the whole release, None where it promises none, and
    ``events`` what was spent on it, as it is written. ``rows_key`` draws the row of each person
    that it used, where the curator's folder has it. Files that are ``is_linked`` by a key follow no
    law of cells one by one.
    """

    certified: bool = False
    levels: Mapping[str, int] = field(default_factory=dict)
    noise: CountNoise | None = None
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    promise: tuple[float, float] | None = None
    events: tuple[Mapping[str, Any], ...] = ()
    rows_key: bytes | None = None
    is_linked: bool = False

    @property
    def crowd(self) -> float | None:
        """The size of cells that a safe release shows as often as not; None of another release."""
        if self.is_linked:
            return None
        if "beta" in self.parameters:
            return float(self.parameters["k"]) / float(self.parameters["beta"])
        return None if self.noise is None else self.noise.crowd


def open_release(
    released: Any, engine: Engine | None = None, curator: Path | str | None = None
) -> tuple[Table, ReleaseFacts]:
    """Open a released table, with what the certificate beside it tells.

    What was escaped for spreadsheets is read back. ``engine`` opens what is no file here, and
    ``curator`` is the private folder of the release, where it is not beside it.
    """
    if isinstance(released, Release):
        curator = curator or released.curator
    files = _list_files(released)
    if len(files) > 1:
        raise IncrowdError(
            f"Release: it has several tables. Name the file of one, such as '{files[0].name}' in "
            f"'{files[0].parent}'."
        )
    released = files[0] if files else released
    is_local_file = isinstance(released, str | Path) and Path(released).is_file()
    table = open_table(released, empty=True, engine=None if is_local_file else engine)
    certified = _find_certificate(released)
    if certified is None:
        return table, ReleaseFacts()
    release, certificate = certified
    levels = {name: column.level for name, column in release.scheme.items()}
    plain = table.respell_texts(unescape_formula) if release.release.formulas else table
    tables = {name: level for name, level in levels.items() if level is not None}
    epsilon, delta = certificate.guarantee.epsilon, certificate.guarantee.delta
    private = locate_curator_folder(Path(released).parent) if curator is None else Path(curator)
    return plain, ReleaseFacts(
        True,
        tables,
        None if certificate.links else make_count_noise(release.parameters),
        release.parameters,
        None if epsilon is None else (epsilon, delta or 0.0),
        tuple(certificate.events),
        read_key(private, certificate),
        certificate.links is not None,
    )


def find_synthetic(released: Any) -> tuple[Path, Certificate] | None:
    """Return the folder and the certificate of synthetic rows; None for any other release."""
    files = _list_files(released)
    path = files[0] if len(files) == 1 else released
    certified = _find_certificate(path)
    if certified is None or certified[1].synthetic is None:
        return None
    return Path(path).parent, certified[1]


def find_tables(released: Any) -> tuple[Path, Certificate] | None:
    """Return the folder and the certificate of tables of counts; None for any other release."""
    files = _list_files(released)
    certified = _find_certificate(files[0] if files else released)
    if certified is None or certified[1].tabulation is None:
        return None
    return Path(files[0] if files else released).parent, certified[1]


def _list_files(released: Any) -> tuple[Path, ...]:
    """Return the files of a release or of its folder; none for what is a table already."""
    if isinstance(released, Release):
        folder, certificate = released.folder, released.certificate
    elif isinstance(released, str | Path) and (Path(released) / FILE).is_file():
        folder = Path(released)
        try:
            certificate = Certificate.model_validate_json((folder / FILE).read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise IncrowdError(
                f"Folder '{folder}': its {FILE} cannot be read. Name the file of the released "
                "table."
            ) from error
    else:
        return ()
    return tuple(folder / table.release.file for table in certificate.tables)


def _find_certificate(released: Any) -> tuple[Slice, Certificate] | None:
    """Return what the certificate beside a file says of it, and the whole; None if none fits.

    It must be whole (its seal fits) and name the file with its hash.
    """
    if not isinstance(released, str | Path) or not Path(released).is_file():
        return None
    path = Path(released)
    try:
        certificate = Certificate.model_validate_json((path.parent / FILE).read_bytes())
        is_sealed = certificate.with_seal().seal == certificate.seal
        digest = hash_file(path)
    except (OSError, ValueError, RecursionError):
        return None
    for table in certificate.tables if is_sealed else ():
        if (table.release.file, table.release.sha256) == (path.name, digest):
            return table, certificate
    return None
