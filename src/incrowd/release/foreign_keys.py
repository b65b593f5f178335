"""Made-up references of synthetic rows to the made-up keys of another release.

Which row refers to which key follows from a public rule: the seal of the other release, the name of
the column, the two numbers of rows, and the declared numbers of children.

**Claim.** No reference tells anything of an input. Besides declarations the rule reads the seal and
the number of rows of a published release, and the number of rows of this one, which its guarantee
covers: post-processing of both. ``verify`` computes the references again and compares, so that a
reference can carry no message either.

Random words come from PCG64, whose stream is fixed; nothing but whole numbers is computed, so that
every machine finds the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from incrowd.arrays import Counts


def assign_parents(
    seal: str, column: str, *, rows: int, parents: int, children: Mapping[int, float] | None
) -> Counts:
    """Return, for each row, the key of the parent that it refers to: 1, 2, and so on.

    Without ``children`` every row refers to a parent drawn uniformly, independently of the others.
    Otherwise ``children`` has the share of parents with each number of children. Where these
    do not add up to ``rows``, all are scaled alike, and rounded to a whole number next to it.
    """
    name = f"{seal}/{column}/{rows}/{parents}"
    if children is None:
        uniform: Counts = (_draw_words(name, rows) % np.uint64(parents)).astype(np.int64) + 1
        return uniform
    weights = list_weights(parents, children)[_shuffle(f"{name}/parents", parents)]
    slots = np.repeat(np.arange(1, parents + 1), scale_weights(weights, rows))
    shuffled: Counts = slots[_shuffle(f"{name}/rows", rows)].astype(np.int64)
    return shuffled


def list_weights(parents: int, children: Mapping[int, float]) -> Counts:
    """Return a number of children for each parent, ascending, in the declared shares.

    Numbers of parents are rounded such that they add up; of equal remainders the smaller number
    of children comes first. One parent at least has children.
    """
    numbers = sorted(children)
    exact = [Fraction(str(children[number])) * parents for number in numbers]
    sizes = [int(share) for share in exact]
    order = sorted(range(len(numbers)), key=lambda at: (sizes[at] - exact[at], numbers[at]))
    for at in range(parents - sum(sizes)):
        sizes[order[at % len(order)]] += 1
    weights = np.repeat(np.array(numbers, dtype=np.int64), sizes)[:parents]
    if not weights.any():  # so few parents that the shares leave none with children
        weights[-1] = numbers[-1]
    return weights


def scale_weights(weights: Counts, rows: int) -> Counts:
    """Return numbers in proportion to weights that add up to ``rows``, each rounded up or down."""
    total = int(weights.sum())
    ends = [(2 * end * rows + total) // (2 * total) for end in np.cumsum(weights).tolist()]
    sizes: Counts = np.array(ends, dtype=np.int64) - np.array([0, *ends[:-1]], dtype=np.int64)
    return sizes


def _draw_words(name: str, number: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest())
    words = np.random.PCG64(seed).random_raw(number)
    return np.asarray(words, dtype=np.uint64)


def _shuffle(name: str, number: int) -> Counts:
    """Return the numbers from 0 in the order of random words."""
    return np.argsort(_draw_words(name, number), kind="stable").astype(np.int64)
