"""How easily people are found again: class sizes and the three classical attackers.

The prosecutor knows that the target is in the release; the chance to name the right row is
one over the size of the class. The journalist only knows that the target is in a larger
table (here the original), and has one over the number of its rows that fit the class. The
marketer tries everybody, and counts the share of hits to be expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.frequency import Counts, Frequencies, keys
from incrowd.errors import Floats

_CELLS = 500_000_000  # so many comparisons of a class with a tuple are made
_FEWEST = 100  # but so many classes are looked at in any case


@dataclass(frozen=True)
class Risk:
    """Risks from 0 to 1 over the rows shown. Suppressed rows are in no class and at no risk.

    ``highest`` and ``mean`` are the prosecutor's. ``journalist`` is the highest, and
    ``marketer`` the mean, of one over the number of original rows that fit a row's class;
    where recoding is local and classes are many, over a random choice of classes.
    ``uniques`` is the share of rows that are alone in their class, of the release and of the
    original. ``sizes`` counts rows by the size of their class: 1, 2-3, 4-7, and so on.
    """

    highest: float
    mean: float
    journalist: float
    marketer: float
    uniques: float
    uniques_original: float
    sizes: list[int]
    sizes_original: list[int]


def risk(
    original: Frequencies, released: Frequencies, shares: Sequence[Floats], *, seed: int = 0
) -> Risk:
    """The risks of a release: ``original`` in bins, ``released`` in labels.

    ``shares[c][label, bin]`` is above 0 where a row with that label may lie in that bin.
    """
    sizes = released.counts
    if not len(sizes):
        return Risk(0.0, 0.0, 0.0, 0.0, 0.0, uniques(original), [], histogram(original.counts))
    fitting, rows = _fitting(original, released, shares, seed)
    return Risk(
        highest=float(1 / sizes.min()),
        mean=float(len(sizes) / sizes.sum()),
        journalist=float(1 / fitting.min()),
        marketer=float((rows / fitting).sum() / rows.sum()),
        uniques=uniques(released),
        uniques_original=uniques(original),
        sizes=histogram(sizes),
        sizes_original=histogram(original.counts),
    )


def uniques(frequencies: Frequencies) -> float:
    """The share of rows that are alone in their class."""
    return float((frequencies.counts == 1).sum() / max(frequencies.total, 1))


def histogram(sizes: Counts) -> list[int]:
    """Rows in classes of size 1, 2-3, 4-7, 8-15, ... (entry i: sizes from 2**i)."""
    if not len(sizes):
        return []
    place = np.floor(np.log2(sizes)).astype(int)
    return [int(x) for x in np.bincount(place, weights=sizes)]


def _fitting(
    original: Frequencies, released: Frequencies, shares: Sequence[Floats], seed: int
) -> tuple[Floats, Counts]:
    """How many original rows fit each class (at least its own), and the class's rows.

    Where no value fits two labels of a column, every original tuple fits one class and they
    are counted through. Elsewhere each class is held against all tuples.
    """
    fits = [share > 0 for share in shares]
    if all((fit.sum(axis=0) <= 1).all() for fit in fits):
        label = [np.where(fit.any(axis=0), fit.argmax(axis=0), -1) for fit in fits]
        codes = np.column_stack([label[at][original.codes[:, at]] for at in range(len(fits))])
        known = (codes >= 0).all(axis=1)
        named = keys(np.vstack([released.codes, codes[known]]))
        places, at_ = np.unique(named, return_inverse=True)
        rows = np.bincount(at_[len(released) :], original.counts[known], minlength=len(places))
        return np.maximum(rows[at_[: len(released)]], released.counts), released.counts
    chosen = np.arange(len(released))
    most = max(_FEWEST, _CELLS // max(len(original) * len(fits), 1))
    if len(chosen) > most:
        chosen = np.random.default_rng(seed).choice(len(chosen), most, replace=False)
    found = []
    for codes in released.codes[chosen]:
        fit = fits[0][codes[0]][original.codes[:, 0]]
        for at in range(1, len(fits)):
            fit = fit & fits[at][codes[at]][original.codes[:, at]]
        found.append(int(original.counts[fit].sum()))
    rows_ = released.counts[chosen]
    return np.maximum(np.array(found, dtype=np.float64), rows_), rows_
