"""Parameters that are allowed and guarantee next to nothing."""

from __future__ import annotations

from incrowd.privacy.protection import LARGE_DELTA
from incrowd.spec.release import Budget, ReleaseSpec, SafeSpec


def describe_weak_parameters(
    release: ReleaseSpec | None, epsilon: float | None = None, delta: float | None = None
) -> list[str]:
    """Name parameters that are allowed and guarantee next to nothing, each with the reason.

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
        found.append("k = 1 asks for no crowd: somebody alone may be shown.")
    return found


def _weak_budget(budget: Budget, epsilon: float | None, delta: float | None) -> list[str]:
    found = []
    epsilon = budget.epsilon if epsilon is None else epsilon
    delta = budget.delta if delta is None else delta
    if epsilon is not None and epsilon > budget.most:
        what = budget.beyond.format(epsilon)
        found.append(f"epsilon = {epsilon:g} protects hardly anybody: {what}.")
    if delta is not None and delta > LARGE_DELTA:
        found.append(
            f"delta = {delta:.3g} is far too large: by so much any probability may change, "
            "whatever epsilon is. It should be far below one in the number of people, such as 1e-6."
        )
    return found
