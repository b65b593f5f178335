"""Rows put into classes of at least k, by the algorithm that a spec names.

From rows counted at level 0 to classes, and from classes to what each row shows. What comes
out is k-anonymous by its labels; that is counted again at the end, not assumed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.cluster import cluster_points, duplicate_rows, merge_clusters
from incrowd.anonymize.lattice import MOST_NODES, SEARCH_SECONDS, Lattice, Rollups, build_lattice
from incrowd.anonymize.mondrian import PersonPoints, make_person_points, partition_points
from incrowd.anonymize.ola import find_minimal_nodes, find_optimal_node
from incrowd.anonymize.person_rollups import ClassRollups
from incrowd.arrays import Codes, Floats, Members, Places, Progress
from incrowd.codes.axis import bound_classes, locate_points
from incrowd.codes.counted_table import DistinctRows
from incrowd.codes.frequency import Frequencies, merge_tuples, number_tuples
from incrowd.engine.count import count_people
from incrowd.engine.table import Table, TableError
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.measure.diversity import SensitiveColumn
from incrowd.measure.loss import LossName
from incrowd.measure.outcome import SearchResult
from incrowd.measure.payout import PayoutModel
from incrowd.methods.base import PlannedRelease, published_columns, refuse_unconfirmed
from incrowd.methods.k_anonymity.class_rules import (
    list_column_rules,
    list_protected,
    refuse_unsatisfiable,
)
from incrowd.methods.k_anonymity.payout import make_payout_model
from incrowd.privacy.draw_parameters import ROWS_PER_PERSON
from incrowd.privacy.randomness import Randomness
from incrowd.release.kept_roles import KEEP, name_role
from incrowd.release.parameters import name_aggregate, name_subset
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Column, PersonId
from incrowd.spec.release import ClassesSpec, KAnonymitySpec

_NEARLY_ALL, _FEW_ROWS = 0.9, 20

_BY_PEOPLE = (None, "ola", "mondrian", "cluster")  # algorithms in which k can count people


class KAnonymityColumns:
    """Quasi columns, to be generalized, and others, to be kept; or the reason why not."""

    def __init__(self, file: SpecFile, release: ClassesSpec) -> None:
        refuse_unconfirmed(file, roles_suffice=True)
        self.quasi = published_columns(file.spec, "quasi")
        self.kept = published_columns(file.spec, "sensitive", "keep", "weight")
        self.folder = file.folder
        self.declared = ColumnHierarchies(self.quasi, file.folder)
        self.release, self.reasons = _choose_algorithm(release, self.declared)
        if release.k is None:
            raise IncrowdError("Spec: `k` is missing. Add it under `release`.")
        self.k = release.k
        self.population: tuple[int, int] | None = None  # the k of people, and their number
        unit = file.spec.unit
        self.person = unit if isinstance(unit, PersonId) and unit.rows > 1 else None
        if self.person is not None and self.release.algorithm not in _BY_PEOPLE:
            raise IncrowdError(
                f"Algorithm '{self.release.algorithm}' counts rows, not people. Use `ola`, "
                "`mondrian` or `cluster`, or `rows: 1` under `unit`."
            )
        for name in ("population", "payout"):
            if self.person is not None and getattr(release, name, None) is not None:
                raise IncrowdError(
                    f"`{name}` counts rows as people. Remove it, or use `rows: 1` under `unit`."
                )
        if self.person is not None and getattr(release, "confidence", None) is not None:
            raise IncrowdError(
                "`confidence` counts rows, not people. Remove it, or use `rows: 1` under `unit`."
            )
        if not self.quasi:
            raise IncrowdError("Spec: no quasi-identifier. Give a column the role `quasi`.")
        self._refuse_links()
        self._refuse_aggregates()
        for name in release.levels:
            if name not in self.quasi:
                raise IncrowdError(
                    f"Column '{name}': `levels` names it, but it is not generalized. Give it the "
                    "role `quasi`, or remove it from `levels`."
                )
        names = (
            self.declared.names
        )  # a level that does not exist is refused before the table is read
        build_lattice(names, [self.declared.height(name) for name in names], release.levels)

    def _refuse_aggregates(self) -> None:
        """Refuse numbers by class where rows keep their own, and MDAV with rules."""
        aggregated = [name for name, column in self.kept.items() if column.aggregate]
        algorithm = self.release.algorithm
        if aggregated and (algorithm in ("suppress", "duplicate") or self.person is not None):
            what = "people with several rows" if self.person else f"`algorithm: {algorithm}`"
            raise IncrowdError(
                f"Column '{aggregated[0]}': `aggregate` does not support {what}. Remove one of "
                "them."
            )
        ruled = [name for name, column in self.kept.items() if column.has_class_rules]
        if algorithm == "mdav" and ruled:
            raise IncrowdError(
                f"Column '{ruled[0]}': `algorithm: mdav` does not support rules on sensitive "
                "values. Use `ola`, `mondrian` or `cluster`, or remove the rules."
            )

    def _refuse_links(self) -> None:
        """Refuse columns linked to none that has cells suppressed, and rules on what they show."""
        suppresses = self.release.algorithm == "suppress"
        for name, column in self.kept.items():
            if suppresses and column.has_class_rules:
                raise IncrowdError(
                    f"Column '{name}': `algorithm: suppress` does not support rules on sensitive "
                    "values. Use `ola`, `mondrian` or `cluster`, or remove the rules."
                )
            if column.linked is None:
                continue
            if not suppresses:
                raise IncrowdError(
                    f"Column '{name}': `linked` needs `algorithm: suppress`. Add it, or remove "
                    "`linked`."
                )
            if column.linked not in self.quasi:
                raise IncrowdError(
                    f"Column '{name}': `linked` names '{column.linked}', which is no quasi column. "
                    "Name one."
                )

    @property
    def weight(self) -> str | None:
        """The column of survey weights; None without one."""
        return next((name for name, column in self.kept.items() if column.role == "weight"), None)

    @property
    def planned_release(self) -> PlannedRelease:
        """Classes are shown from k rows on."""
        names, spec_levels = self.declared.names, self.release.levels
        limits = {}
        for name in names:
            level = spec_levels.get(name, (0, self.declared.height(name) - 1))
            limits[name] = (level, level) if isinstance(level, int) else level
        return PlannedRelease(
            self.declared, (limits,), lambda rows: (rows >= self.k).astype(float), float(self.k)
        )

    def parameters(self) -> dict[str, float | str]:
        """Return what the certificate says: k, algorithm, how rows are suppressed, the rules."""
        entries: dict[str, float | str] = {
            "k": float(self.k),
            "algorithm": self.release.algorithm or "ola",
            "suppressed": self.release.suppressed or "dropped",
        }
        if self.person is not None:
            entries[ROWS_PER_PERSON] = float(self.person.rows)
        if isinstance(self.release, KAnonymitySpec) and self.release.algorithm == "suppress":
            entries |= {"suppressed": "cells", "reading": self.release.reading or "category"}
            for size, least in sorted((self.release.subsets or {}).items()):
                entries[name_subset(size)] = float(least)
            for name, column in self.kept.items():
                if column.linked is not None:
                    entries[f"linked {name}"] = column.linked
        if getattr(self.release, "labels", None) == "free":
            entries["labels"] = "free"
        if self.population is not None:
            entries |= dict(zip(("map_k", "population"), map(float, self.population), strict=True))
        for name, column in self.kept.items():
            if column.role == KEEP:
                entries[name_role(name)] = KEEP
        for name, column in self.kept.items():
            for kind, value in list_column_rules(column):
                entries[f"rule {name}: {kind}"] = float(value)
            if column.aggregate:
                entries[name_aggregate(name)] = column.aggregate
        return entries

    def count_people(self, rows: DistinctRows, table: Table, *, by_row: bool) -> DistinctRows:
        """Return the tuples with the people who have them, where k counts people."""
        if self.person is None or by_row:
            return rows
        people = count_people(table, self.declared, self.person.id)
        if not np.array_equal(people.frequencies.codes, rows.counted.frequencies.codes):
            raise TableError(
                "Table: it changed while it was read, or some rows have no id. Publish a copy that "
                "stays as it is, or add `without_id: drop`."
            )
        return replace(rows, people=people.sets)

    def findings(
        self, kept_values: Mapping[str, Sequence[object]], total: int
    ) -> tuple[Finding, ...]:
        """Return what the curator should know: kept columns that name people, baselines."""
        findings = []
        for name in self.kept:
            if self.kept[name].aggregate:
                continue  # whose values are not published
            values = len(kept_values[name])
            if values > _NEARLY_ALL * total and total >= _FEW_ROWS:
                findings.append(
                    make_finding("COLUMN_NAMES_PEOPLE", name, values=values, rows=total)
                )
        if self.release.algorithm == "duplicate":
            findings.append(make_finding("ROWS_DUPLICATED"))
        return tuple(findings)


def _choose_algorithm(
    release: ClassesSpec, declared: ColumnHierarchies
) -> tuple[ClassesSpec, tuple[str, ...]]:
    """Return the spec with an algorithm that surely ends: cuts where OLA may search in part.

    Only where the spec leaves that open. It depends on no data.
    """
    schemes = math.prod(declared.height(name) for name in declared.names)
    settings = (
        release.algorithm, release.loss, release.candidates, release.suppression,
        release.search_seconds, getattr(release, "payout", None),
    )  # fmt: skip
    if schemes <= MOST_NODES or release.levels or any(setting is not None for setting in settings):
        return release, ()
    words = (
        "Algorithm: mondrian, because there are too many schemes to search. Narrower `levels` "
        "leave fewer; `algorithm: ola` uses the best scheme that it finds."
    )
    return release.model_copy(update={"algorithm": "mondrian"}), (words,)


SUPPRESSION = 0.05


@dataclass(frozen=True, eq=False)
class EquivalenceClasses:
    """What the generalized columns show, for each distinct tuple of them.

    ``members`` numbers the class of each tuple, and is -1 where it is suppressed.
    ``levels`` are those of a full-domain scheme, None where recoding is local; ``search`` tells
    whether it is the best of all. ``published``, under k-Duplication alone, is how often each
    tuple of all columns is published.
    """

    labels: tuple[list[str | None], ...]
    codes: Codes
    members: Members
    levels: tuple[int, ...] | None
    published: npt.NDArray[np.int64] | None = None
    search: SearchResult | None = None

    @property
    def published_mask(self) -> npt.NDArray[np.bool_]:
        """Which tuples are shown."""
        return self.members >= 0


def form_classes(
    rows: DistinctRows,
    columns: Mapping[str, Column],
    release: ClassesSpec,
    *,
    bits: Randomness,
    folder: Path = Path(),
    progress: Progress = lambda _done, _all: None,
) -> EquivalenceClasses:
    """Put the rows into classes of at least k; ``folder`` is that of the spec."""
    k = release.k
    if k is None:
        raise IncrowdError("Spec: `k` is missing. Add it under `release`.")
    total = rows.frequencies.total
    if total < k:
        raise IncrowdError(f"Table: {total} rows, fewer than k = {k}. Nothing was written.")
    if rows.people is not None and rows.people.people < k:
        raise IncrowdError(
            f"Table: {rows.people.people} people, fewer than k = {k}. Nothing was written."
        )
    names = rows.counted.names
    weights = np.array([columns[name].weight for name in names])
    loss = make_payout_model(release, columns, names, total) or release.loss or "normalized"
    sensitive_columns = list_protected(rows, columns, folder)
    refuse_unsatisfiable(sensitive_columns)
    algorithm = release.algorithm or "ola"
    if algorithm == "ola":
        classes = _search_full_domain(rows, release, k, loss, weights, sensitive_columns, progress)
    elif sensitive_columns and algorithm not in ("mondrian", "cluster"):
        raise IncrowdError(
            f"Algorithm '{algorithm}' does not support rules on sensitive values. Use `ola`, "
            "`mondrian` or `cluster`."
        )
    elif algorithm == "duplicate":
        classes = _duplicate_rows(rows, k, weights, bits, progress)
    else:
        classes = _recode_locally(rows, release, k, weights, sensitive_columns, progress)
    _check_class_sizes(rows, classes, k)
    return classes


def count_suppressible(release: ClassesSpec, total: int) -> int:
    """Return how many rows may be suppressed."""
    share = SUPPRESSION if release.suppression is None else release.suppression
    return int(np.floor(share * total * (1 + 1e-12)))


def make_lattice(rows: DistinctRows, release: ClassesSpec) -> Lattice:
    """Return the schemes that the spec allows."""
    heights = [hierarchy.height for hierarchy in rows.counted.hierarchies]
    return build_lattice(rows.counted.names, heights, release.levels)


def make_rollups(rows: DistinctRows, sensitive_columns: Sequence[SensitiveColumn]) -> Rollups:
    """Return the classes at any scheme; by all tuples where sensitive values matter."""
    counted_table, quasi = rows.counted, len(rows.counted.names)
    base = (
        Frequencies(rows.frequencies.codes[:, :quasi], rows.frequencies.counts)
        if sensitive_columns
        else counted_table.frequencies
    )
    if rows.people is not None:
        codes = counted_table.frequencies.codes
        return ClassRollups(counted_table.hierarchies, base, sensitive_columns, codes, rows.people)
    return Rollups(counted_table.hierarchies, base, sensitive_columns)


def _search_full_domain(
    rows: DistinctRows,
    release: ClassesSpec,
    k: int,
    loss: LossName | PayoutModel,
    weights: Floats,
    sensitive_columns: Sequence[SensitiveColumn],
    progress: Progress,
) -> EquivalenceClasses:
    counted_table, rollups = rows.counted, make_rollups(rows, sensitive_columns)
    arguments: dict[str, Any] = {
        "k": k,
        "limit": count_suppressible(release, rows.frequencies.total),
        "loss": loss,
        "weights": weights,
        "progress": progress,
    }
    lattice, search = make_lattice(rows, release), None
    if release.candidates == "minimal":
        scheme = find_minimal_nodes(rollups, lattice, **arguments)[0]
    else:
        most_seconds = SEARCH_SECONDS if lattice.size > MOST_NODES else None
        seconds = release.search_seconds or most_seconds
        scheme = find_optimal_node(rollups, lattice, seconds=seconds, **arguments)
        name = "payout" if isinstance(loss, PayoutModel) else loss
        search = SearchResult(
            name, scheme.loss, scheme.least, scheme.is_exact, lattice.size, scheme.evaluated
        )
    classes = rollups.count_classes(scheme.levels, k=k)
    assert classes is not None
    members = rollups.find_members(scheme.levels, classes)
    members = np.where(classes.lost[members], -1, members)
    if sensitive_columns:  # one for each tuple of the generalized columns
        members = members[np.searchsorted(rows.owner, np.arange(len(counted_table.frequencies)))]
    labels, codes = [], []
    for at, (hierarchy, level) in enumerate(
        zip(counted_table.hierarchies, scheme.levels, strict=True)
    ):
        by_label = hierarchy.map_equal_labels(level)
        labels.append(list(hierarchy.labels[level]))
        codes.append(by_label[hierarchy.groups[level][counted_table.frequencies.codes[:, at]]])
    return EquivalenceClasses(
        tuple(labels), np.column_stack(codes), members, scheme.levels, search=search
    )


def _recode_locally(
    rows: DistinctRows,
    release: ClassesSpec,
    k: int,
    weights: Floats,
    sensitive_columns: Sequence[SensitiveColumn],
    progress: Progress,
) -> EquivalenceClasses:
    counted_table, quasi = rows.counted, len(rows.counted.names)
    axes = counted_table.axes
    points = locate_points(axes, counted_table.frequencies.codes)
    if release.algorithm == "cluster":
        members = cluster_points(
            axes, points, counted_table.frequencies.counts, k=k, weights=weights, progress=progress
        )
        if sensitive_columns or rows.people is not None:
            members = merge_clusters(
                axes, points, counted_table.frequencies.counts, members,
                weights=weights, owner=rows.owner, row_counts=rows.frequencies.counts,
                sensitive_columns=sensitive_columns,
                people=_locate_people(rows, np.arange(len(points))), k=k,
            )  # fmt: skip
    elif sensitive_columns:
        row_points = locate_points(axes, rows.frequencies.codes[:, :quasi])
        by_row = partition_points(
            axes, row_points, rows.frequencies.counts,
            k=k, weights=weights, cut=release.cut or "balanced",
            sensitive_columns=sensitive_columns, people=_locate_people(rows, rows.owner),
        )  # fmt: skip
        members = by_row[np.searchsorted(rows.owner, np.arange(len(points)))]
    else:
        members = partition_points(
            axes, points, counted_table.frequencies.counts,
            k=k, weights=weights, cut=release.cut or "balanced",
            people=_locate_people(rows, np.arange(len(points))),
        )  # fmt: skip
    bounds = bound_classes(points, counted_table.frequencies.counts, members)
    labels, codes = [], []
    has_sets = getattr(release, "labels", None) == "free"
    for at, axis in enumerate(axes):
        if has_sets and not axis.ordered and not axis.hierarchy.open:
            texts, places = axis.make_set_labels(points[:, at], members)
        else:
            texts, places = axis.make_labels(bounds.low[:, at], bounds.high[:, at])
        labels.append(texts)
        codes.append(places[members])
    return EquivalenceClasses(tuple(labels), np.column_stack(codes).astype(np.int32), members, None)


def _locate_people(rows: DistinctRows, owner: Places) -> PersonPoints | None:
    """Return people by points, whose tuples are their owners; None where k counts rows."""
    return None if rows.people is None else make_person_points(rows.people, owner)


def _duplicate_rows(
    rows: DistinctRows,
    k: int,
    weights: Floats,
    bits: Randomness,
    progress: Progress,
) -> EquivalenceClasses:
    counted_table, axes = rows.counted, rows.counted.axes
    points = locate_points(axes, counted_table.frequencies.codes)
    members = cluster_points(
        axes, points, counted_table.frequencies.counts, k=k, weights=weights, progress=progress
    )
    labels = tuple(list(hierarchy.labels[0]) for hierarchy in counted_table.hierarchies)
    codes = [
        hierarchy.map_equal_labels(0)[hierarchy.groups[0][counted_table.frequencies.codes[:, at]]]
        for at, hierarchy in enumerate(counted_table.hierarchies)
    ]
    times = duplicate_rows(members[rows.owner], rows.frequencies.counts, bits)
    return EquivalenceClasses(
        labels, np.column_stack(codes), members, (0,) * len(axes), published=times
    )


def _check_class_sizes(rows: DistinctRows, classes: EquivalenceClasses, k: int) -> None:
    """Count every class, told by its labels, and raise if one has fewer than k rows."""
    counts = rows.counted.frequencies.counts
    codes = classes.codes[rows.owner]
    if classes.published is not None:
        is_published, counts = classes.published > 0, classes.published
    else:
        is_published, codes = classes.published_mask, classes.codes
    sizes = merge_tuples(codes[is_published], counts[is_published]).counts
    if len(sizes) and int(sizes.min()) < k:
        raise AssertionError(f"a class of {sizes.min()} rows, fewer than k = {k}")
    if rows.people is not None and is_published.any():
        keys = np.zeros(len(is_published), dtype=np.int64)
        _, keys[is_published] = np.unique(
            number_tuples(classes.codes[is_published]), return_inverse=True
        )
        keys[~is_published] = (size := int(keys.max()) + 1)
        people = rows.people.count_by_key(keys, size + 1)[:size]
        if int(people.min()) < k:
            raise AssertionError(f"a class of {people.min()} people, fewer than k = {k}")
