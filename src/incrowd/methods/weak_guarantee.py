"""Parameters that are allowed and guarantee next to nothing."""

from __future__ import annotations

from incrowd.findings import Finding, make_finding
from incrowd.privacy.protection import LARGE_DELTA
from incrowd.spec.release import Budget, ReleaseSpec, SafeSpec


def find_weak_parameters(
    release: ReleaseSpec | None, epsilon: float | None = None, delta: float | None = None
) -> list[Finding]:
    """Find parameters that are allowed and guarantee next to nothing.

    ``epsilon`` and ``delta`` are what was settled, where that is known.
    """
    if release is None:
        return []
    found = [] if release.budget is None else _weak_budget(release.budget, epsilon, delta)
    counts = False
    if isinstance(release, SafeSpec):
        from incrowd.methods.safe.auto import drawn  # is loaded where it is asked for

        counts = drawn(release)[0].draw == "counts"
    if release.k == 1 and not counts:  # of counts, the noise asks for a crowd
        found.append(make_finding("K_IS_ONE"))
    return found


def _weak_budget(budget: Budget, epsilon: float | None, delta: float | None) -> list[Finding]:
    found = []
    epsilon = budget.epsilon if epsilon is None else epsilon
    delta = budget.delta if delta is None else delta
    if epsilon is not None and epsilon > budget.most:
        meaning = budget.beyond.format(epsilon)
        found.append(
            make_finding("EPSILON_TOO_LARGE", epsilon=epsilon, meaning=meaning, most=budget.most)
        )
    if delta is not None and delta > LARGE_DELTA:
        found.append(make_finding("DELTA_TOO_LARGE", delta=delta))
    return found
