"""What an attacker gains and what readers lose as epsilon moves: from the spec and a size alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from incrowd.errors import IncrowdError
from incrowd.methods.expect import expect
from incrowd.methods.registry import make_method
from incrowd.methods.synthetic.expect import SyntheticExpectation
from incrowd.methods.tables.expect import TablesExpectation
from incrowd.privacy.protection import max_true_positive_rate
from incrowd.spec.file import SpecFile

FALSE_ALARMS = 0.01  # of people outside the table, that an attacker takes for members
EPSILONS = (0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 1.6, 2.5, 4.0, 6.0, 10.0)


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
    points, unit = [], ""
    confirmed, delta = file.with_all_confirmed(), release.budget.delta if release.budget else 0.0
    for epsilon in epsilons:
        # Written as YAML and read again, a spec of many columns would take most of the time
        changed = release.model_copy(update={"epsilon": epsilon})
        spec = confirmed.spec.model_copy(update={"release": changed})
        readers, unit = _find_loss(replace(confirmed, spec=spec))
        rate = max_true_positive_rate(FALSE_ALARMS, epsilon, delta or 0.0)
        points.append(EpsilonPoint(epsilon, rate, readers))
    return EpsilonCurve(tuple(points), unit)


def _find_loss(file: SpecFile) -> tuple[float, str]:
    """Return what readers lose, and in which unit."""
    release = file.spec.release
    assert release is not None
    if release.method == "safe":
        crowd = make_method(file).planned_release.crowd
        return crowd, "people in the smallest group that readers see"
    expectation = expect(None, file)
    if isinstance(expectation, SyntheticExpectation):
        return expectation.error, "rows of error in the count of a single value (95 %)"
    assert isinstance(expectation, TablesExpectation)
    error = max(table.error for table in expectation.errors)
    return error, "people of error in a cell of the worst table (95 %)"
