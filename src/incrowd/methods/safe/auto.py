"""Which draw and scheme to use where the spec leaves it open, from facts that depend on no data."""

from __future__ import annotations

import math
from typing import Literal

from incrowd.errors import IncrowdError
from incrowd.methods.safe.scheme import (
    SEARCH_SHARE,
    SMALL,
    Cut,
    Fixed,
    Scheme,
    Searched,
    search_share,
)
from incrowd.spec.build import Declared
from incrowd.spec.release import SafeSpec

MANY_SCHEMES = 300_000
_FEWER = ((2_000, 20_000), (10_000, 60_000))  # below so many people, so many schemes
_SIZES = (None, *sorted({below - 1 for below, _ in (*_FEWER, *SMALL)}))  # one of each step


def drawn(release: SafeSpec) -> tuple[SafeSpec, tuple[str, ...]]:
    """The spec with the draw that it names, or that an expert would take; and why, in sentences.

    Counts show far smaller crowds for the same budget. A sample is taken where the spec asks for
    what only a sample has: a rate, a k without a whole budget, or cuts.
    """
    if release.draw in ("sample", "counts"):
        return release, (f"The spec asks for {_DRAWS[release.draw]}.",)
    draw, reason = _fitting(release)
    words = f"The release is made of {_DRAWS[draw]}: {reason}."
    if draw == "counts" and release.k is not None:
        words += (
            f" Of counts, k = {release.k} is the least number of rows of the table behind each row "
            "that is shown; of a sample ('draw: sample') it is the least number of rows drawn."
        )
    return release.model_copy(update={"draw": draw}), (words,)


_DRAWS = {"sample": "a sample", "counts": "counts with noise"}


def _fitting(release: SafeSpec) -> tuple[Literal["sample", "counts"], str]:
    for name in ("beta", "keep"):
        if getattr(release, name) is not None:
            return "sample", f"the spec names '{name}', the rate of a sample"
    if release.epsilon is None or release.delta is None:
        return "sample", "counts need both epsilon and delta, and the spec does not give them"
    if release.scheme == "mondrian":
        return "sample", "the spec asks for cuts, which cost counts more than they show"
    return "counts", (
        "for the same budget they show smaller groups than a sample, and count all of their rows; "
        "in turn, every count carries noise"
    )


def decided(
    release: SafeSpec, declared: Declared, size: int | None = None
) -> tuple[Scheme, tuple[str, ...]]:
    """The scheme that the spec names, or that an expert would take; and why, in sentences.

    Fixed levels are the only scheme where there is nothing to choose, or no budget to choose
    with. Otherwise the table chooses levels, privately. Its cells are not cut further unless the
    spec asks for it: fine and coarse labels side by side tell of associations that are not there
    (see :mod:`incrowd.measure.fineness`). Of very many schemes the finest are left out unseen. For
    the ``size`` that the curator states, if any, a larger share of epsilon goes into the choice.
    """
    scheme, reasons = _decided(release, declared, size)
    share = search_share(size)
    if share > SEARCH_SHARE and release.search_epsilon is None and scheme.shares():
        words = (
            f"By the size that the spec states, {share:g} of epsilon goes into each choice: among "
            "few people its noise would drown what is chosen by."
        )
        return scheme, (*reasons, words)
    return scheme, reasons


def depends_on_size(release: SafeSpec, declared: Declared) -> bool:
    """Whether some other size in the spec would settle another split, or another set of schemes.

    If so, a size that the spec states may have decided parameters that are published, so the
    certificate names it. Sizes count by their steps, so one of each step stands for all sizes.
    """
    settled = set()
    for size in _SIZES:
        scheme, _ = _decided(release, declared, size)
        spent = scheme.shares() if release.search_epsilon is None else ()
        limits = () if release.slices else tuple(scheme.limits(declared.names).items())
        settled.add((spent, limits))
    return len(settled) > 1


def _decided(
    release: SafeSpec, declared: Declared, size: int | None
) -> tuple[Scheme, tuple[str, ...]]:
    if release.scheme == "fixed":
        return Fixed(release, declared), ("The spec asks for a fixed scheme.",)
    if release.scheme == "search":
        return Searched(release, declared, size=size), ("The spec asks for a search.",)
    if release.scheme == "mondrian":
        return Cut(release, declared, size=size), ("The spec asks for safe Mondrian.",)
    settled = _nothing_to_choose(release, declared)
    if settled:
        _refuse_orphans(release, settled)
        return Fixed(release, declared), (f"The scheme is fixed: {settled}.",)
    given = release.keep or release.beta or release.draw == "counts"
    if release.slices:
        reason = (
            "The spec leaves the scheme open, so levels were chosen privately, for each slice by "
            "itself."
        )
        if not given:
            reason += (
                " The sampling rate is the one at which the smallest crowds survive: slices are "
                "for how columns go together, and a small sample shows that."
            )
        return Searched(release, declared, size=size), (reason,)
    limits, thinned = _thinned(release, declared, size)
    what = "levels" if given else "levels, k and beta"
    reason = f"The spec leaves the scheme open, so {what} were chosen privately."
    found = Searched(release, declared, limits, size=size)
    return found, (reason, *thinned, *_hint(release))


def _hint(release: SafeSpec) -> tuple[str, ...]:
    """What was optimised where nobody said it, and how to have something else."""
    if release.objective is not None or release.keep is not None or release.beta is not None:
        return ()
    if release.target is not None:
        words = (
            f"What was aimed for is what the other columns tell of '{release.target}', in as many "
            "rows as possible; their detail counts one part in three."
        )
        return (words,)
    keep = "" if release.draw == "counts" else " with keep 0.25"
    words = (
        "The objective was much detail in as many rows as possible. For models or small groups, "
        f"the objective 'detail'{keep} publishes fewer rows with more detail."
    )
    return (words,)


def _nothing_to_choose(release: SafeSpec, declared: Declared) -> str:
    """Why no scheme can be chosen; nothing if one can."""
    if all(isinstance(release.levels.get(name), int) for name in declared.names):
        return "the spec names the level of every column"
    if release.k is not None and release.draw != "counts":
        return "the spec names k, which a search would find itself"
    if release.epsilon is None or release.delta is None:
        return "a choice needs a budget, and the spec does not give both epsilon and delta"
    return ""


def _refuse_orphans(release: SafeSpec, reason: str) -> None:
    for name in ("objective", "search_epsilon", "target"):
        if getattr(release, name) is not None:
            raise IncrowdError(f"'{name}' is for a scheme that is chosen, but {reason}.")


def _thinned(
    release: SafeSpec, declared: Declared, size: int | None
) -> tuple[dict[str, int | tuple[int, int]], tuple[str, ...]]:
    """Level limits that leave no more schemes than can be searched in seconds, and what they did.

    The finest level of the column with the most levels goes first, so that every column keeps
    a choice for as long as possible. Few people, if the curator says so, bear fewer fine levels.
    """
    known = math.inf if size is None else size
    most = next((schemes for below, schemes in _FEWER if known < below), MANY_SCHEMES)
    given = release.levels
    low, high = {}, {}
    for name in declared.names:
        level = given.get(name, (0, declared.height(name) - 1))
        low[name], high[name] = (level, level) if isinstance(level, int) else level
    start = dict(low)
    every = schemes = math.prod(high[name] - low[name] + 1 for name in declared.names)
    while schemes > most:
        name = max(low, key=lambda name: high[name] - low[name])
        levels = high[name] - low[name] + 1
        schemes = schemes // levels * (levels - 1)
        low[name] += 1
    if schemes == every:
        return dict(given), ()
    raised = [name for name in declared.names if low[name] > start[name]]
    limits: dict[str, int | tuple[int, int]] = dict(given)
    limits.update({name: (low[name], high[name]) for name in raised})
    removed = [
        name for name in raised if declared.rooted(name) and low[name] == declared.height(name) - 1
    ]
    listed = ", ".join(
        f"'{name}' from level {low[name]} on" for name in raised if name not in removed
    )
    words = f"Of {every:,} schemes the finest were left out, without a look at the table."
    if listed:
        words += f" What is left to choose from: {listed}."
    if removed:
        names = ", ".join(f"'{name}'" for name in removed)
        words += f" Nothing is shown of {names}: of each only its root is left."
    words += " Narrower tables ('slices') would keep more."
    return limits, (words,)
