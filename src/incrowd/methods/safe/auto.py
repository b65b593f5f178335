"""Which draw and scheme to use where the spec leaves it open, from facts that depend on no data."""

from __future__ import annotations

import hashlib
import math
from typing import Literal

from incrowd.errors import IncrowdError
from incrowd.measure.forecast import OPEN_VALUES
from incrowd.methods.safe.budget import SMALL_TABLE_SHARES, compute_search_share
from incrowd.methods.safe.scheme import FixedScheme, MondrianScheme, SafeScheme, SearchedScheme
from incrowd.methods.safe.series import SeriesScheme
from incrowd.methods.safe.shares import ShareCounter
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.release import SafeSpec

MANY_SCHEMES = 300_000
_FEWER = ((2_000, 20_000), (10_000, 60_000))  # below so many people, so many schemes
_STEPS = (*_FEWER, *SMALL_TABLE_SHARES)
_SIZES = (None, *sorted({below - 1 for below, _ in _STEPS}))  # one of each step


def choose_draw(
    release: SafeSpec, rows: int = 1, per_group: int = 1
) -> tuple[SafeSpec, tuple[str, ...]]:
    """Choose the draw that the spec names, or an expert would take; and why, in sentences.

    Counts show far smaller crowds for the same budget. A sample is taken where the spec asks for
    what only a sample has: a rate, a k without a whole budget, or cuts. Of people with several
    ``rows`` a sample would draw whole people, into several cells at once, whose sizes then depend
    on each other; no tight bound of what that costs is known, so it is refused.
    """
    if release.series is not None:
        words = f"Draw: noisy counts, with noise planned for a series of {release.series.of}."
        return release.model_copy(update={"draw": "counts", "scheme": "fixed"}), (words,)
    if rows > 1:
        return _choose_counts_of_people(release, rows, per_group)
    if release.draw in ("sample", "counts"):
        return release, (f"Draw: {_DRAWS[release.draw]}, set by the spec.",)
    draw, reason = _choose_fitting_draw(release)
    words = f"Draw: {_DRAWS[draw]}, because {reason}."
    if draw == "counts" and release.k is not None:
        words += (
            f" With noisy counts, k = {release.k} is the least number of original rows per group; "
            "with `draw: sample`, of sampled rows."
        )
    return release.model_copy(update={"draw": draw}), (words,)


def _choose_counts_of_people(
    release: SafeSpec, rows: int, per_group: int
) -> tuple[SafeSpec, tuple[str, ...]]:
    draw = release.draw
    reason = "the spec asks for `draw: sample`"
    if draw in (None, "auto"):
        draw, reason = _choose_fitting_draw(release)
    if draw == "sample":
        raise IncrowdError(
            f"Unit: `rows: {rows}` needs `draw: counts`, but {reason}. No tight bound is known for "
            "a sample of whole people, each of whom is drawn into several groups at once. Use "
            "`draw: counts` with ε and δ, or `rows: 1`."
        )
    words = f"Draw: noisy counts of people, because a person may have up to {rows} rows."
    if per_group > 1:
        words = (
            f"Draw: noisy counts of rows, up to {per_group} of a person per group, because the "
            "spec sets `per_group`."
        )
    return release.model_copy(update={"draw": "counts"}), (words,)


_DRAWS = {"sample": "a sample", "counts": "noisy counts"}


def _choose_fitting_draw(release: SafeSpec) -> tuple[Literal["sample", "counts"], str]:
    for name in ("beta", "keep"):
        if getattr(release, name) is not None:
            return "sample", f"the spec sets `{name}`, the rate of a sample"
    if release.epsilon is None or release.delta is None:
        return "sample", "noisy counts need ε and δ, and the spec does not set both"
    if release.scheme == "mondrian":
        return "sample", "`scheme: mondrian` makes noisy counts too expensive"
    return "counts", (
        "for the same budget they publish smaller groups than a sample, with all of their rows"
    )


def choose_scheme(
    release: SafeSpec, declared: ColumnHierarchies, size: int | None = None
) -> tuple[SafeScheme, tuple[str, ...]]:
    """Choose the scheme that the spec names, or an expert would take; and why, in sentences.

    Fixed levels are the only scheme where there is nothing to choose, or no budget to choose
    with. Otherwise the table chooses levels, privately. Its cells are not cut further unless the
    spec asks for it: fine and coarse labels side by side tell of associations that are not there
    (see :mod:`incrowd.measure.fineness`). Of very many schemes the finest are left out unseen. For
    the ``size`` that the curator states, if any, a larger share of epsilon goes into the choice.
    """
    scheme, reasons = _select_scheme(release, declared, size)
    has_target = release.target is not None
    share = compute_search_share(size, has_target=has_target)
    if (
        share > compute_search_share(None, has_target=has_target)
        and release.search_epsilon is None
        and scheme.selection_shares()
    ):
        words = (
            f"The search uses a larger share of ε ({share:g} per choice), because the spec states "
            "a small table."
        )
        return scheme, (*reasons, words)
    return scheme, reasons


def depends_on_size(release: SafeSpec, declared: ColumnHierarchies) -> bool:
    """Return whether another size in the spec would settle another split or set of schemes.

    If so, a size that the spec states may have decided parameters that are published, so the
    certificate names it. Sizes count by their steps, so one of each step stands for all sizes.
    """
    outcomes = set()
    for size in _SIZES:
        scheme, _ = _select_scheme(release, declared, size)
        shares = scheme.selection_shares() if release.search_epsilon is None else ()
        limits = () if release.slices else tuple(scheme.level_limits(declared.names).items())
        counts = tuple(ShareCounter(release, declared, size).list_epsilons(1.0, 1))
        outcomes.add((shares, limits, counts))
    return len(outcomes) > 1


def _select_scheme(
    release: SafeSpec, declared: ColumnHierarchies, size: int | None
) -> tuple[SafeScheme, tuple[str, ...]]:
    if release.series is not None:
        return SeriesScheme(release, declared), (
            "Scheme: fixed levels, the same in every period of the series.",
        )
    if release.scheme == "fixed":
        return FixedScheme(release, declared), ("Scheme: fixed levels, set by the spec.",)
    if release.scheme == "search":
        return SearchedScheme(release, declared, size=size), (
            "Scheme: private search, set by the spec.",
        )
    if release.scheme == "mondrian":
        return MondrianScheme(release, declared, size=size), (
            "Scheme: safe Mondrian, set by the spec.",
        )
    explanation = _explain_fixed_scheme(release, declared)
    if explanation:
        _refuse_unused_settings(release, explanation)
        return FixedScheme(release, declared), (f"Scheme: fixed levels, because {explanation}.",)
    has_draw = release.keep or release.beta or release.draw == "counts"
    if release.slices:
        reason = "Scheme: private search of the levels of each slice, because the spec sets none."
        if not has_draw:
            reason += " The sampling rate gives the smallest crowd size."
        return SearchedScheme(release, declared, size=size), (reason,)
    limits, notes = _limit_levels(release, declared, size)
    subject = "levels" if has_draw else "levels, k and beta"
    reason = f"Scheme: private search of {subject}, because the spec sets none."
    searched_scheme = SearchedScheme(release, declared, limits, size=size)
    return searched_scheme, (reason, *notes, *_describe_objective(release))


def _describe_objective(release: SafeSpec) -> tuple[str, ...]:
    """Return what was optimized where nobody said it, and how to have something else."""
    if release.objective is not None or release.keep is not None or release.beta is not None:
        return ()
    if release.target is not None:
        words = (
            f"Objective: much detail beside '{release.target}', in as many rows as possible; its "
            "values weigh alike, and each should survive with at least seven tenths of its rows."
        )
        return (words,)
    keep = "" if release.draw == "counts" else " with `keep: 0.25`"
    words = (
        "Objective: much detail in as many rows as possible. For models or small groups, "
        f"`objective: detail`{keep} publishes fewer rows with more detail."
    )
    return (words,)


def _explain_fixed_scheme(release: SafeSpec, declared: ColumnHierarchies) -> str:
    """Return why no scheme can be chosen; nothing if one can."""
    if all(isinstance(release.levels.get(name), int) for name in declared.names):
        return "the spec sets the level of every column"
    if release.k is not None and release.draw != "counts":
        return "the spec sets k, which a search would choose"
    if release.epsilon is None or release.delta is None:
        return "a search needs ε and δ, and the spec does not set both"
    return ""


def _refuse_unused_settings(release: SafeSpec, reason: str) -> None:
    for name in ("objective", "search_epsilon", "target"):
        if getattr(release, name) is not None:
            raise IncrowdError(f"Release: `{name}` needs a search, but {reason}. Remove it.")


def _rank_level(
    declared: ColumnHierarchies, name: str, low: int, high: int
) -> tuple[bool, float, str]:
    """Return how late the finest level of a column is given up, from public facts alone.

    A level that leaves others to the column goes before the last label of any: first where many are
    left, whose finest tells little more.
    Of last labels those go first that have a small weight, or few values to tell apart, as yes/no
    has. Among equals a digest of the name decides, so that no column dies for standing first.
    """
    is_root_allowed = high == declared.height(name) - 1 and declared.is_rooted(name)
    informative = high - low + int(not is_root_allowed)
    weight = declared.columns[name].weight
    digest = hashlib.sha256(name.encode()).hexdigest()
    if informative > 1:
        return False, weight * 0.5**informative, digest
    return True, weight * (1 + math.log2(_count_values(declared, name))), digest


def _count_values(declared: ColumnHierarchies, name: str) -> float:
    """Return how many values a column declares; of an open domain, what is expected of it."""
    if declared.is_open(name):
        return OPEN_VALUES
    return max(len(declared.get_hierarchy(name, tuple).values), 1)


def _limit_levels(
    release: SafeSpec, declared: ColumnHierarchies, size: int | None
) -> tuple[dict[str, int | tuple[int, int]], tuple[str, ...]]:
    """Return limits that leave no more schemes than seconds can search, and what they did.

    Which levels go is decided by what each is worth, never by the order of columns: see
    :func:`_rank_level`. Few people, if the curator says so, bear fewer fine levels.
    """
    rows = math.inf if size is None else size
    limit = next((schemes for below, schemes in _FEWER if rows < below), MANY_SCHEMES)
    spec_levels = release.levels
    low, high = {}, {}
    for name in declared.names:
        level = spec_levels.get(name, (0, declared.height(name) - 1))
        low[name], high[name] = (level, level) if isinstance(level, int) else level
    if release.target is not None:
        high[release.target] = low[release.target]
    start = dict(low)
    all_schemes = schemes = math.prod(high[name] - low[name] + 1 for name in declared.names)
    while schemes > limit:
        name = min(
            (name for name in low if low[name] < high[name]),
            key=lambda name: (
                name in spec_levels,  # the curator has narrowed these
                *_rank_level(declared, name, low[name], high[name]),
            ),
        )
        levels = high[name] - low[name] + 1
        schemes = schemes // levels * (levels - 1)
        low[name] += 1
    if schemes == all_schemes:
        return dict(spec_levels), ()
    raised_columns = [name for name in declared.names if low[name] > start[name]]
    limits: dict[str, int | tuple[int, int]] = dict(spec_levels)
    limits.update({name: (low[name], high[name]) for name in raised_columns})
    removed_columns = [
        name
        for name in raised_columns
        if declared.is_rooted(name) and low[name] == declared.height(name) - 1
    ]
    listing = "; ".join(
        f"{name} → {declared.describe_level(name, low[name])}"
        for name in raised_columns
        if name not in removed_columns
    )
    words = "There are too many schemes to search, so the finest levels are excluded."
    if listing:
        words += f" Finest levels searched: {listing}."
    if removed_columns:
        words += f" Suppressed without search: {', '.join(removed_columns)}."
    words += " Use `slices` to keep more detail."
    return limits, (words,)
