"""Small domains and tables for tests of synthetic rows."""

from __future__ import annotations

import math

import numpy as np

from incrowd.anonymize.synthetic.domain import Domain, make_column
from incrowd.anonymize.synthetic.fit import fit
from incrowd.anonymize.synthetic.measurement import TableEstimate
from incrowd.anonymize.synthetic.model import Model, make_structure
from incrowd.anonymize.synthetic.tree import make_graph
from incrowd.arrays import Codes, Floats


def nested(leaves: int, *widths: int) -> list[list[int]]:
    """Levels whose groups are runs of so many leaves."""
    return [list(range(leaves)), *([leaf // width for leaf in range(leaves)] for width in widths)]


def small_domain() -> Domain:
    """Four columns of 2, 6, 3 and 8 leaves, two of them with levels."""
    levels = (nested(2), nested(6, 2), nested(3), nested(8, 2, 4))
    return Domain(tuple(make_column(level) for level in levels))


def related_rows(domain: Domain, rows: int, seed: int) -> Codes:
    """Rows in which every column follows the one before it, more or less."""
    rng = np.random.default_rng(seed)
    sizes = [column.sizes[0] for column in domain.columns]
    result = np.empty((rows, len(sizes)), dtype=np.int32)
    result[:, 0] = rng.random(rows) < 0.4
    for at, size in enumerate(sizes[1:], start=1):
        near = result[:, at - 1] * size // sizes[at - 1]
        free = np.minimum(rng.geometric(0.35, rows) - 1, size - 1)
        result[:, at] = np.where(rng.random(rows) < 0.6, near, free)
    return result


def full_joint(model: Model) -> Floats:
    """The probabilities of all leaves, by multiplying conditionals: no inference."""
    structure = model.structure
    tree, sizes = structure.tree, structure.sizes
    joint = np.ones(sizes)
    for at, clique in enumerate(tree.cliques):
        table = model.marginals[at]
        separator = tree.separators[at]
        axes = tuple(axis for axis, column in enumerate(clique) if column not in separator)
        margin = table.sum(axis=axes, keepdims=True)
        part = np.divide(table, margin, out=np.zeros_like(table), where=margin > 0)
        joint = joint * part.reshape([sizes[x] if x in clique else 1 for x in range(len(sizes))])
    for axis, column in enumerate(structure.domain.columns):
        groups = column.groups[structure.levels[axis]]
        shape = [-1 if other == axis else 1 for other in range(len(sizes))]
        joint = np.take(joint, groups, axis=axis) * model.shares[axis].reshape(shape)
    return joint


def exact_estimates(domain: Domain, joint: Floats, rows: float) -> list[TableEstimate]:
    """The one-way tables of a joint law, as if measured very precisely."""
    result = []
    for column in range(len(domain)):
        others = tuple(axis for axis in range(joint.ndim) if axis != column)
        result.append(TableEstimate((column,), (0,), joint.sum(axis=others) * rows, 100.0, 1.0))
    return result


def fit_pairs(
    domain: Domain, joint: Floats, rows: float, pairs: list[tuple[int, int]], levels: list[int]
) -> Model:
    """A model fitted to pairs of a joint law, each at the columns' levels."""
    estimates = exact_estimates(domain, joint, rows)
    for pair in pairs:
        others = tuple(axis for axis in range(joint.ndim) if axis not in pair)
        table = joint.sum(axis=others) * rows
        high = (levels[pair[0]], levels[pair[1]])
        table = domain.roll_up(table, pair, (0, 0), high)
        estimates.append(TableEstimate(pair, high, table, 100.0, 1.0))
    structure = make_structure(domain, levels, make_graph(len(domain), pairs))
    return fit(structure, estimates, rows, gap=1e-6, steps=500)[0]


def random_joint(domain: Domain, seed: int) -> Floats:
    """A joint law without zeros."""
    shape = domain.shape(tuple(range(len(domain))), (0,) * len(domain))
    weights = np.random.default_rng(seed).gamma(0.7, size=math.prod(shape)).reshape(shape) + 0.05
    result: Floats = weights / weights.sum()
    return result
