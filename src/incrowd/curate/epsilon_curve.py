"""What an attacker gains and what readers lose as epsilon moves: from the spec and a size alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from incrowd.errors import IncrowdError
from incrowd.methods.expect import expect
from incrowd.methods.registry import make_method
from incrowd.methods.synthetic.expect import SyntheticExpectation
from incrowd.methods.tables.expect import TablesExpectation
from incrowd.privacy.information import plan_information
from incrowd.privacy.protection import max_true_positive_rate
from incrowd.spec.file import SpecFile
from incrowd.spec.release import TablesSpec

FALSE_ALARMS = 0.01  # of people outside the table, that an attacker takes for members
EPSILONS = (0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 1.6, 2.5, 4.0, 6.0, 10.0)
_TABLE_ERROR = "people of error in a cell of the worst table (95 %)"


@dataclass(frozen=True)
class EpsilonPoint:
    """What one epsilon means.

    Attributes:
        epsilon: The bound on the privacy loss.
        attacker: Largest share of the people in the table whom an attacker with 1 % false alarms
            recognizes as being in it.
        readers: What readers lose, in the unit of the curve; smaller is better.
    """

    epsilon: float
    attacker: float
    readers: float


@dataclass(frozen=True)
class EpsilonCurve:
    """Points by rising epsilon; ``unit`` says what ``readers`` of a point counts."""

    points: tuple[EpsilonPoint, ...]
    unit: str


def trace_epsilon(file: SpecFile, *, epsilons: Sequence[float] = EPSILONS) -> EpsilonCurve:
    """Trace what a release by a spec would mean at each epsilon; nothing of the table is read.

    What readers lose is, for groups, the size from which they are published with probability 1/2;
    for synthetic rows and tables of counts the largest error of a count (95 %).

    Raises:
        IncrowdError: The method has no epsilon of differential privacy, or the spec is incomplete.

    """
    release = file.spec.release
    if release is None or release.method not in ("safe", "synthetic", "tables"):
        raise IncrowdError("Only a differentially private release has such an epsilon.")
    files = [
        file.preview_entries({("release", "epsilon"): epsilon}).with_all_confirmed()
        for epsilon in epsilons
    ]
    if release.method == "tables":
        losses, unit = _list_table_errors(files), _TABLE_ERROR
    else:
        losses, units = zip(*map(_find_loss, files), strict=True)
        unit = units[-1]
    delta = release.budget.delta if release.budget else 0.0
    points = [
        EpsilonPoint(epsilon, max_true_positive_rate(FALSE_ALARMS, epsilon, delta or 0.0), readers)
        for epsilon, readers in zip(epsilons, losses, strict=True)
    ]
    return EpsilonCurve(tuple(points), unit)


def _list_table_errors(files: Sequence[SpecFile]) -> tuple[float, ...]:
    """Return the error of the worst table by each spec, where they differ in epsilon alone.

    A plan divides its information in the same way whatever that is, and each variance is
    inversely proportional to it but for rounding to whole numbers: thousands of tables are planned
    once.
    """
    expectation = expect(None, files[0])
    assert isinstance(expectation, TablesExpectation)
    first_error = max(table.error for table in expectation.errors)
    information = [_plan_information(file) for file in files]
    return tuple(first_error * math.sqrt(information[0] / each) for each in information)


def _plan_information(file: SpecFile) -> float:
    """Return the information of all measurements of tables, as their method plans it."""
    release = file.spec.release
    assert isinstance(release, TablesSpec)
    assert release.epsilon is not None
    assert release.delta is not None
    return plan_information(epsilon=release.epsilon, delta=release.delta, choices=0).information


def _find_loss(file: SpecFile) -> tuple[float, str]:
    """Return what readers lose, and in which unit."""
    release = file.spec.release
    assert release is not None
    if release.method == "safe":
        crowd = make_method(file).planned_release.crowd
        return crowd, "people in the smallest group that readers see"
    expectation = expect(None, file)
    assert isinstance(expectation, SyntheticExpectation)
    return expectation.error, "rows of error in the count of a single value (95 %)"
