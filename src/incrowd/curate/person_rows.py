"""What several rows per person cost and keep, and which columns may tell people apart.

How many rows of each person a release uses is chosen before the table is looked at: the cost
follows from the budget alone, what is kept from a typical number of rows that the curator states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from incrowd.engine.table import Table
from incrowd.errors import IncrowdError, ParameterError
from incrowd.methods.person_id import KINDS, Kind, find_ids
from incrowd.methods.registry import make_method
from incrowd.methods.safe.method import Safe
from incrowd.privacy.draw_parameters import build_noise_spread
from incrowd.privacy.plan_counts import SHARE
from incrowd.privacy.presentation import round_crowd_size
from incrowd.release.parameters import parameters_from_events
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId

CHOICES = (1, 2, 3, 4, 6, 8, 12)
MOST_PROPOSED = 4  # rows per person: a draft proposes no more


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
    """

    rows: int
    noise: int
    crowd: int
    share: float | None
    error: float | None

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
    unit = file.spec.unit
    if not isinstance(unit, PersonId):
        raise IncrowdError("Spec: `unit` names no id. Add `unit: {id: COLUMN}`.")
    if typical is not None and not 1 <= typical < math.inf:
        raise ParameterError("typical", "be at least 1", typical)
    listed = []
    for rows in sorted({*choices, unit.rows}):
        changed = file.with_entry(("unit", "rows"), rows).with_all_confirmed()
        method = make_method(changed)
        layout = method.layout if isinstance(method, Safe) else None
        implied = parameters_from_events(list(method.events), layout)
        parameters = None if implied is None else implied.tables[0][-1]
        if parameters is None or "noise" not in parameters:
            raise IncrowdError("Unit: rows per person are for noisy counts. Use `draw: counts`.")
        law = build_noise_spread(parameters)
        share = None if typical is None else 1 - 2 ** (-rows / typical)
        relative = None if share is None else math.sqrt(law.variance) / share
        crowd = round_crowd_size(method.planned_release.crowd)
        listed.append(RowsPerPerson(rows, law.find_error_bound(SHARE), crowd, share, relative))
    first = listed[0].error
    if first is None:
        return tuple(listed)
    return tuple(
        RowsPerPerson(x.rows, x.noise, x.crowd, x.share, (x.error or 0.0) / first) for x in listed
    )


@dataclass(frozen=True)
class UnitCandidate:
    """A column that may tell people apart, with its counts over the whole table.

    Attributes:
        column: The column.
        kind: What its values identify: a person, a household, an event, or something unnamed.
        ids: Number of different ids.
        rows: Number of rows of the table.
        median: Rows per id, the median.
        largest: Rows of the most frequent id.
        proposed: Rows per id that a draft proposes to use.
    """

    column: str
    kind: Kind
    ids: int
    rows: int
    median: float
    largest: int
    proposed: int


def list_unit_candidates(table: Table) -> tuple[UnitCandidate, ...]:
    """List the columns that may answer "What is one person?", the most likely first.

    The counts are read from the table; they are for the curator alone.
    """
    ids = find_ids(table)
    candidates = [
        UnitCandidate(
            name, counts.kind, counts.ids, counts.rows, counts.median, counts.largest,
            propose_rows(counts.median),
        )
        for name, counts in ids.items()
    ]  # fmt: skip
    return tuple(sorted(candidates, key=lambda x: (KINDS.index(x.kind), x.largest == 1)))


def propose_rows(median: float) -> int:
    """Return how many rows per person a draft proposes, by the median of the table.

    >>> [propose_rows(median) for median in (1, 1.5, 3, 40)]
    [1, 2, 3, 4]
    """
    return max(1, min(math.ceil(median), MOST_PROPOSED))
