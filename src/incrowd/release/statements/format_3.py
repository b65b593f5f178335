"""The words of certificates of format 3, as versions before format 4 wrote them.

What it says more than format 2: counts with noise, and both promises that they keep.
"""

from __future__ import annotations

from incrowd.codes.counted import CountNoise
from incrowd.privacy.counts import law_of
from incrowd.privacy.events import GaussianCounts, GeometricCounts
from incrowd.release.statements import Facts, Parameters, Wording
from incrowd.release.statements.format_1 import files, satisfied
from incrowd.release.statements.format_2 import METHODS as BEFORE
from incrowd.release.statements.format_2 import PUBLIC, framed, people, population

BOTH = "differential privacy and k-anonymity"
_SHARE = 0.95


def statement(method: str, facts: Facts) -> str:
    """The guarantee in words."""
    return framed(METHODS[method].of(facts.tables).words(facts), facts)


def _counts(facts: Facts) -> str:
    tables, shared = facts.tables, facts.shared
    words = satisfied(facts)
    least = {int(known["k"]) for known in tables}
    k = f"{min(least)}"
    of_people = ", each of another person," if facts.unit == "one person" else ""
    words += (
        f"{'It is' if len(tables) == 1 else 'Each of them by itself is'} also k-anonymous with k = "
        f"{k}: whatever is shown, at least {k} rows of the original table{of_people} have these "
        "values, for certain. "
    )
    if "slices_epsilon" in shared:
        words += (
            "Which columns stand together was chosen from the table by a mechanism of its own "
            f"that spent epsilon = {shared['slices_epsilon']!r}, which is included. "
        )
    found: dict[str, list[str]] = {}
    for number, known in enumerate(tables, 1):
        found.setdefault(_drawn(known), []).append(str(number))
    if len(found) == 1:
        words += next(iter(found))
    else:
        words += " ".join(f"Of {files(numbers)}: {text}" for text, numbers in found.items())
    words += (
        " So a single row is nobody's record: what is told is how many rows of a kind there are, "
        "up to that noise. What is said of the noise is true of cells, not of those that happen to "
        "be shown: numbers just above the least tend to be too large, because cells whose noise "
        "was low are missing there. Rows may be added up: the noise of different cells is "
        "independent and far above the least has mean 0, so a sum over c cells is off by about the "
        "square root of c times the standard deviation. Rows in cells that are not shown are in no "
        "sum."
    )
    return words + people(facts) + population({**shared, **tables[0]}) + PUBLIC


def _drawn(known: Parameters) -> str:
    """How the rows of one file were counted."""
    law, r = law_of(noise_of(known)), int(known["r"])
    kind = (
        f"two-sided geometric noise (epsilon = {known['noise_epsilon']!r})"
        if known["noise"] == "geometric"
        else f"discrete Gaussian noise (variance = {known['noise_variance']!r})"
    )
    scheme = (
        "by a scheme that does not depend on the table"
        if "search_epsilon" not in known
        else "by a scheme that was chosen from the table by a mechanism of its own that spent "
        f"epsilon = {known['search_epsilon']!r}, which is included"
    )
    return (
        f"Every column was generalised {scheme}. To the number of rows of each cell, all rows that "
        f"are alike, {kind} of at most r = {r} either way was added, and cells are shown from a "
        f"number of r + k = {r + int(known['k'])} on, with that number of rows. The noise of a "
        f"cell is at most {law.within(_SHARE)} with probability {_SHARE} or more, never more than "
        f"{r}, and its standard deviation is {law.variance**0.5:.3g}.{_coin(known)}"
    )


def _coin(known: Parameters) -> str:
    """How r was settled, where a coin did it: delta is not that of this r, but the average."""
    if "coin" not in known:
        return ""
    most = int(known["coin_r"])
    return (
        f" A coin that saw no data settled r: {most - 1} with probability {known['coin']!r}, else "
        f"{most}; delta is the average of both."
    )


def noise_of(known: Parameters) -> GeometricCounts | GaussianCounts:
    """The event that the parameters of a table of counts tell of."""
    r = int(known["r"])
    if known["noise"] == "geometric":
        return GeometricCounts(r, float(known["noise_epsilon"]))
    return GaussianCounts(r, float(known["noise_variance"]))


def noise_in(known: Parameters) -> CountNoise | None:
    """What the parameters of a table tell of the noise in its counts; None if nothing is told."""
    try:
        return CountNoise(law_of(noise_of(known)).variance, float(known["r"]) + float(known["k"]))
    except (KeyError, ValueError):  # a sample; or a certificate that somebody made up
        return None


_SAFE = BEFORE["safe"]
METHODS = {
    **BEFORE,
    "safe": Wording(
        _SAFE.kind, _SAFE.words, accounted=True, by_counts=Wording(BOTH, _counts, accounted=True)
    ),
}
