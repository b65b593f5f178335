"""What several rows per person cost and keep.

How many rows of each person a release uses is chosen before the table is looked at: the cost
follows from the budget alone, what is kept from a typical number of rows that the curator states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from incrowd.errors import IncrowdError, ParameterError
from incrowd.methods.registry import make_method
from incrowd.methods.safe.method import Safe
from incrowd.privacy.draw_parameters import build_noise_spread
from incrowd.privacy.events import find_most_per_group
from incrowd.privacy.plan_counts import SHARE
from incrowd.privacy.presentation import round_crowd_size
from incrowd.release.event_parameters import parameters_from_events
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId

CHOICES = (1, 2, 3, 4, 6, 8, 12)
GROUP_CHOICES = (1, 2, 3, 4)  # rows of a person that count in one group


@dataclass(frozen=True)
class RowsPerPerson:
    """What a number of rows per person costs and keeps.

    Attributes:
        rows: Rows of each person that are used at most.
        noise: 95 % of noise lies within ± this.
        crowd: Group size that is published with probability 1/2 or more.
        share: Share of all rows that is used; None without a typical number of rows.
        error: Noise of a count relative to all counts, where one row per person has 1; None
            without a typical number of rows.
        per_group: Rows of a person that count in one group at most; 1 where people are counted.
    """

    rows: int
    noise: int
    crowd: int
    share: float | None
    error: float | None
    per_group: int = 1

    @property
    def counted_unit(self) -> str:
        """The noun for what is counted."""
        return "people" if self.per_group == 1 else "rows"

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values, for JSON."""
        return asdict(self)


def compare_rows_per_person(
    file: SpecFile, *, typical: float | None = None, choices: Sequence[int] = CHOICES
) -> tuple[RowsPerPerson, ...]:
    """Compare numbers of rows per person for the release of a spec; its table is not opened.

    ``typical`` is the median number of rows of a person, as the curator states it. Numbers of rows
    are then taken to be geometric: a person has more than n rows with probability 2^(-n / typical).
    """
    unit = _require_person(file)
    if typical is not None and not 1 <= typical < math.inf:
        raise ParameterError("typical", "be at least 1", typical)
    listed = []
    household = file.spec.household
    fewest = 2 if household is not None and household.linked else 1  # that make a whole household
    for rows in sorted({*(rows for rows in choices if rows >= fewest), unit.rows}):
        per_group = min(unit.per_group, find_most_per_group(rows))
        cost, spread = _compute_cost(file, rows, per_group)
        share = None if typical is None else 1 - 2 ** (-rows / typical)
        relative = None if share is None else spread / share
        listed.append(replace(cost, share=share, error=relative))
    first = listed[0].error
    if first is None:
        return tuple(listed)
    return tuple(replace(cost, error=(cost.error or 0.0) / first) for cost in listed)


def compare_rows_per_group(
    file: SpecFile, choices: Sequence[int] = GROUP_CHOICES
) -> tuple[RowsPerPerson, ...]:
    """Compare counting people with counting rows, for the rows per person of a spec.

    Up to as many rows of a person count in one group as each choice says; 1 counts people. Of
    households and their people, both files count households alone.
    """
    unit = _require_person(file)
    most = find_most_per_group(unit.rows) if file.spec.household is None else 1
    chosen = sorted({*choices, unit.per_group})
    return tuple(_compute_cost(file, unit.rows, each)[0] for each in chosen if each <= most)


def _require_person(file: SpecFile) -> PersonId:
    if not isinstance(file.spec.unit, PersonId):
        raise IncrowdError("Spec: `unit` names no id. Add `unit: {id: COLUMN}`.")
    return file.spec.unit


def _compute_cost(file: SpecFile, rows: int, per_group: int) -> tuple[RowsPerPerson, float]:
    """Return what rows of a person cost, and the standard deviation of a count."""
    unit = {**file.document["unit"], "rows": rows, "per_group": per_group}
    method = make_method(file.with_entry(("unit",), unit).with_all_confirmed())
    layout = method.layout if isinstance(method, Safe) else None
    implied = parameters_from_events(list(method.events), layout)
    parameters = None if implied is None else implied.tables[0][-1]
    if parameters is None or "noise" not in parameters:
        raise IncrowdError("Unit: rows per person are for noisy counts. Use `draw: counts`.")
    law = build_noise_spread(parameters)
    crowd = round_crowd_size(method.planned_release.crowd)
    cost = RowsPerPerson(rows, law.find_error_bound(SHARE), crowd, None, None, per_group)
    return cost, math.sqrt(law.variance)
