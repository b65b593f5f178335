"""Choosing k and epsilon before publishing: what each pair would cost and risk.

Nothing is drawn: errors are expected values, and with one noisy column so is the linking risk.
All of it is read from the table, for the curator alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.methods.k_anonymity.classes import form_classes
from incrowd.methods.k_epsilon.loss import (
    compute_expected_error,
    compute_link_chances,
    simulate_linking,
)
from incrowd.methods.k_epsilon.method import KEpsilon
from incrowd.methods.k_epsilon.rows import NoisyRows, make_noisy_rows
from incrowd.methods.people import draw_rows
from incrowd.privacy.randomness import Randomness
from incrowd.spec.file import SpecFile

KS = (2, 5, 10, 20, 50, 100)
EPSILONS = (0.05, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_RUNS = 3


@dataclass(frozen=True)
class TradeoffPoint:
    """What one k and epsilon would give: relative error, linking risk, rows suppressed."""

    k: int
    epsilon: float
    error: float
    linking: float
    suppressed: int


@dataclass(frozen=True)
class TradeoffGrid:
    """A grid of choices; ``simulated`` where the linking risk had to be tried out."""

    choices: tuple[TradeoffPoint, ...]
    rows: int
    simulated: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the choices as plain values, for JSON."""
        return asdict(self)


def compute_tradeoff(
    file: SpecFile,
    table: Table,
    *,
    bits: Randomness,
    ks: tuple[int, ...] = KS,
    epsilons: tuple[float, ...] = EPSILONS,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> TradeoffGrid:
    """Compute error and risk for each k and epsilon, with all else as the spec says."""
    release = file.spec.release
    if release is None or release.method != "k-epsilon":
        raise IncrowdError(
            "--spec is for `method: k-epsilon`. For a safe release: incrowd plan --epsilon 1 "
            "--delta 1e-6"
        )
    method = KEpsilon(file)
    numbers = [name for name in method.noisy if name not in method.randomized]
    if not numbers:
        raise IncrowdError(
            "--spec compares the errors of noisy numbers, and this spec has none. Give a column of "
            "numbers the role `noisy`; README.md states the error of randomized categories."
        )
    release = method.release
    rows = method.count_tuples(draw_rows(table, file.spec, bits))
    total = rows.frequencies.total
    fitting = [k for k in ks if k <= total]
    tradeoff = []
    for at, k in enumerate(fitting):
        progress(at, len(fitting))
        groups = form_classes(
            rows,
            method.all_columns,
            release.model_copy(update={"k": k}),
            bits=bits,
            folder=method.columns.folder,
        )
        for epsilon in epsilons:
            update = {"k": k, "epsilon": epsilon}
            data = make_noisy_rows(rows, groups, method.noisy, release.model_copy(update=update))
            errors = [compute_expected_error(column, data.members) for column in data.columns]
            suppressed = total - len(data.members)
            risk = _compute_linking_risk(data, bits)
            tradeoff.append(TradeoffPoint(k, epsilon, float(np.mean(errors)), risk, suppressed))
    return TradeoffGrid(tuple(tradeoff), total, simulated=len(numbers) > 1)


def _compute_linking_risk(data: NoisyRows, bits: Randomness) -> float:
    """Compute the expected linking risk, in closed form where one column is noisy."""
    if len(data.columns) > 1:
        return simulate_linking(data, bits, _RUNS)[0].mean
    (column,) = data.columns
    link_chances = compute_link_chances(column, data.members)[~column.null]
    return float(link_chances.mean()) if len(link_chances) else 0.0
