"""What generalizing and suppressing cost: the measures of information loss.

Three losses are sums over rows and columns of a cost that each shown code has, so a search
can bound them column by column; two look at the sizes of classes alone. All are scaled so
that less is better. A suppressed row has lost everything: it costs 1 in every column
under the first three, and as much as the whole table's size under discernibility. The
average class size does not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from incrowd.arrays import Counts, Floats
from incrowd.codes.hierarchy import Hierarchy

LossName: TypeAlias = Literal["normalized", "precision", "entropy", "discernibility", "class-size"]
LOSSES: tuple[LossName, ...] = get_args(LossName)
Costs: TypeAlias = list[list[Floats]]


def compute_normalized_costs(hierarchy: Hierarchy) -> list[Floats]:
    """Return the cost of each code at each level: (a - 1) / (m - 1), a of m values covered.

    The same as the loss of ARX. A code that stands for nothing known (null, or outside the
    domain and shown as such) is one value; the root covers all.
    """
    return [
        hierarchy.normalize_loss(hierarchy.count_covered(level))
        for level in range(hierarchy.height)
    ]


def compute_precision_costs(hierarchy: Hierarchy) -> list[Floats]:
    """Return the cost of each level: l / (h - 1) at level l of h (paper B's precision)."""
    return [
        np.full(len(labels), compute_precision_loss(hierarchy, level))
        for level, labels in enumerate(hierarchy.labels)
    ]


def compute_precision_loss(hierarchy: Hierarchy, level: int) -> float:
    """Return l / (h - 1) for level l of h."""
    return level / max(hierarchy.height - 1, 1)


def compute_entropy_costs(hierarchy: Hierarchy, value_counts: Floats) -> list[Floats]:
    """Return non-uniform entropy as costs of the bits lost: see :func:`compute_entropy_scale`.

    ``value_counts`` counts the rows of each value. Generalizing a value held by v rows to a group
    held by g loses log2(g / v) bits. The part log2(v) is the same at every node, so a code
    costs log2(g) here, scaled so that the values themselves cost 0 in all and a table of
    roots 1.
    """
    floor, ceiling = compute_entropy_scale(value_counts)
    costs = []
    for group, labels in zip(hierarchy.groups, hierarchy.labels, strict=True):
        rows = np.bincount(group, weights=value_counts, minlength=len(labels))
        bits = np.log2(np.maximum(rows, 1.0))
        costs.append((bits - floor) / (ceiling - floor) if ceiling > floor else 0 * bits)
    return costs


def compute_entropy_scale(value_counts: Floats) -> tuple[float, float]:
    """Return the mean of log2(v) over rows, v the rows with the value, and log2 of all rows."""
    counts = value_counts[value_counts > 0]
    total = float(counts.sum())
    if not total:
        return 0.0, 0.0
    if len(counts) == 1:  # it loses nothing, and rounding must not say otherwise
        return float(np.log2(total)), float(np.log2(total))
    return float((counts * np.log2(counts)).sum() / total), float(np.log2(total))


def compute_release_loss(costs: Floats, counts: Counts, *, missing: int, surplus: int) -> float:
    """Return the mean loss of a column over the rows of the table and those that are surplus.

    ``counts`` rows of each cell are shown rightly, and lose ``costs`` each. A missing row has lost
    everything, and so has a surplus one: no loss is above 1, and without any rows it is 1.
    """
    rows = int(counts.sum()) + missing + surplus
    return (float((costs * counts).sum()) + missing + surplus) / rows if rows else 1.0


def compute_discernibility(sizes: Counts, suppressed: int, total: int) -> float:
    """Return (sum of squared class sizes + total per suppressed row) over the squared total."""
    squares = float((sizes.astype(np.float64) ** 2).sum())
    return (squares + float(suppressed) * total) / max(float(total) ** 2, 1.0)


def compute_average_class_size(sizes: Counts) -> float:
    """Return the mean number of rows in a class that is published; infinite where none is."""
    return float(sizes.sum()) / len(sizes) if len(sizes) else float("inf")


def compute_separable_costs(
    name: LossName, hierarchies: Sequence[Hierarchy], value_counts: Sequence[Floats]
) -> Costs | None:
    """Return the costs of a loss that is a sum over columns, or None; counts are per column."""
    match name:
        case "normalized":
            return [compute_normalized_costs(hierarchy) for hierarchy in hierarchies]
        case "precision":
            return [compute_precision_costs(hierarchy) for hierarchy in hierarchies]
        case "entropy":
            pairs = zip(hierarchies, value_counts, strict=True)
            return [compute_entropy_costs(hierarchy, rows) for hierarchy, rows in pairs]
        case _:
            return None
