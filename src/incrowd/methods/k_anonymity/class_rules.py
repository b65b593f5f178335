"""Rules on sensitive columns, from what a spec says to what is checked of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from incrowd.arrays import Codes
from incrowd.codes.counted_table import DistinctRows
from incrowd.codes.values import canonicalize_value
from incrowd.errors import IncrowdError
from incrowd.measure import diversity
from incrowd.measure.diversity import SensitiveColumn
from incrowd.release.parameters import RULES, name_recursive_rule, name_share_rule
from incrowd.spec.build import build_hierarchy
from incrowd.spec.class_rules import Closeness, Disclosure, Diversity, Likeness
from incrowd.spec.model import Column


def list_column_rules(column: Column) -> list[tuple[str, float]]:
    """Return the rules on a column, as a certificate has them."""
    request, close = column.diversity or Diversity(), column.closeness or Closeness()
    likeness, disclosure = column.likeness or Likeness(), column.disclosure or Disclosure()
    values = (
        request.distinct, request.entropy, close.equal, close.ordered, close.hierarchical,
        request.alpha, likeness.basic, likeness.enhanced, disclosure.every, disclosure.present,
    )  # fmt: skip
    pairs = [*zip(RULES, values, strict=True)]
    if request.recursive is not None:
        pairs.append((name_recursive_rule(request.recursive.l), request.recursive.c))
    if column.presence is not None:
        value = canonicalize_value(column.presence.value) or ""
        for side, bound in (("least", column.presence.least), ("most", column.presence.most)):
            if bound != {"least": 0.0, "most": 1.0}[side]:
                pairs.append((name_share_rule(value, side), bound))
    return [(kind, float(value)) for kind, value in pairs if value is not None]


def list_protected(
    rows: DistinctRows, columns: Mapping[str, Column], folder: Path = Path()
) -> list[SensitiveColumn]:
    """Return the sensitive columns with rules, coded in the order of their values.

    Hierarchies in files are looked for in ``folder``.
    """
    sensitive_columns = []
    quasi = len(rows.counted.names)
    for at, name in enumerate(rows.kept):
        places = _order_values(columns[name], rows.kept[name], folder)
        rules = _make_rules(columns[name], rows.kept[name], places, folder)
        if rules:
            codes = places[rows.frequencies.codes[:, quasi + at]]
            overall = np.bincount(
                codes, weights=rows.frequencies.counts, minlength=len(rows.kept[name])
            )
            sensitive_columns.append(
                SensitiveColumn(codes, overall.astype(np.int64), tuple(rules), name)
            )
    return sensitive_columns


def _make_rules(
    column: Column, values: Sequence[object], places: Codes, folder: Path
) -> list[diversity.DiversityRule]:
    """Return the rules on a column, whose values are put at some places."""
    request, close = column.diversity or Diversity(), column.closeness or Closeness()
    likeness, disclosure = column.likeness or Likeness(), column.disclosure or Disclosure()
    rules: list[diversity.DiversityRule] = []
    if request.distinct is not None:
        rules.append(diversity.DistinctRule(request.distinct))
    if request.entropy is not None:
        rules.append(diversity.EntropyRule(request.entropy))
    if request.recursive is not None:
        rules.append(diversity.RecursiveRule(request.recursive.c, request.recursive.l))
    if request.alpha is not None:
        rules.append(diversity.AlphaRule(request.alpha))
    if close.equal is not None:
        rules.append(diversity.ClosenessRule(close.equal))
    if close.ordered is not None:
        rules.append(diversity.ClosenessRule(close.ordered, ordered=True))
    if close.hierarchical is not None:
        groups = _group_values(column, values, places, folder)
        rules.append(diversity.HierarchyClosenessRule(close.hierarchical, groups))
    if likeness.basic is not None:
        rules.append(diversity.LikenessRule(likeness.basic))
    if likeness.enhanced is not None:
        rules.append(diversity.LikenessRule(likeness.enhanced, enhanced=True))
    if disclosure.every is not None:
        rules.append(diversity.DisclosureRule(disclosure.every))
    if disclosure.present is not None:
        rules.append(diversity.DisclosureRule(disclosure.present, every=False))
    if column.presence is not None:
        text = canonicalize_value(column.presence.value)
        met = [canonicalize_value(value) for value in values]
        if text not in met:
            raise IncrowdError(
                f"`presence` names the value '{column.presence.value}', which no row has. Correct "
                "the value."
            )
        place = int(places[met.index(text)])
        rules.append(diversity.ShareRule(place, column.presence.least, column.presence.most))
    return rules


def _group_values(
    column: Column, values: Sequence[object], places: Codes, folder: Path
) -> tuple[Codes, ...]:
    """Return the group of each value at each level below the root of its hierarchy."""
    hierarchy = build_hierarchy(column, folder=folder, values=values)
    codes = np.empty(len(values), dtype=np.int64)
    codes[places] = hierarchy.encode(values)
    levels = hierarchy.groups[: hierarchy.height - hierarchy.is_rooted]
    return tuple(group[codes] for group in levels)


def _order_values(column: Column, values: Sequence[object], folder: Path) -> Codes:
    """Return the place of each value: as declared, where the hierarchy is ordered."""
    places = np.arange(len(values), dtype=np.int32)
    if column.hierarchy is None or not column.hierarchy.declaration.order:
        return places
    codes = build_hierarchy(column, folder=folder).encode(values)
    places[np.argsort(codes, kind="stable")] = np.arange(len(values), dtype=np.int32)
    return places


def refuse_unsatisfiable(sensitive_columns: Sequence[SensitiveColumn]) -> None:
    """Refuse what not even the whole table as one class would satisfy."""
    for column in sensitive_columns:
        for rule in column.rules:
            if not rule.check_classes(column.overall[None, :], column.overall).all():
                raise IncrowdError(
                    f"Column '{column.name}': even the whole table as one class violates {rule} "
                    f"({column.value_count} values). Weaken the rule."
                )
