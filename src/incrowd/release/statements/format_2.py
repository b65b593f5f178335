"""The words of certificates of format 2, as versions before format 3 wrote them.

What it says more than format 1: what only the curator can assert, whose rows were used, whose
membership must be secret, that fine and coarse labels stand side by side, and that a release from
a seed is not private.
"""

from __future__ import annotations

from incrowd.release.statements import CLASSES, NOISE, Facts, Parameters, Wording
from incrowd.release.statements.format_1 import k_anonymity, k_epsilon, safe

_SEEDED = (
    "NOT PRIVATE: the random numbers of this release came from a seed, for tests; whoever knows or "
    "guesses the seed can undo them. Nothing is promised. Had they come from the system, this "
    "would hold: "
)
PUBLIC = (
    " The curator asserts that the choice of columns, and of levels, weights and files as far as "
    "no mechanism named here has chosen them, and the values, ranges and groups that are listed, "
    "are public knowledge and do not depend on the table; nothing in this folder can prove that."
)


def statement(method: str, facts: Facts) -> str:
    """The guarantee in words."""
    return framed(METHODS[method].words(facts), facts)


def framed(words: str, facts: Facts) -> str:
    """The words for a method, with what is said whichever method it is."""
    words += _kept(facts.kept) + _side_by_side(facts.local)
    return f"{_SEEDED}{words}" if facts.seeded else words


def _safe(facts: Facts) -> str:
    known = {**facts.shared, **facts.tables[0]}
    return safe(facts) + people(facts) + population(known) + PUBLIC


def _k_anonymity(facts: Facts) -> str:
    return k_anonymity(facts.tables[0], facts.unit) + _left_out(facts)


def _k_epsilon(facts: Facts) -> str:
    words = k_epsilon(facts.tables[0], facts.noisy, facts.unit) + _left_out(facts)
    return words + _confident(facts.tables[0])


def people(facts: Facts) -> str:
    """Whose rows were used."""
    if facts.unit == "one row":
        return ""
    return f" Of each person one row was used, drawn at random.{_left_out(facts)}"


def _left_out(facts: Facts) -> str:
    return " Rows without an id were left out." if facts.without_id else ""


def _confident(known: Parameters) -> str:
    if "confidence" not in known:
        return ""
    return (
        " Rows were suppressed whose released value would have pointed, with confidence "
        f"{known['confidence']!r}, to some but fewer than k members of their class, and then "
        "classes that were left with fewer than k rows."
    )


def population(known: Parameters) -> str:
    """For whom the guarantee is, where the table is a sample."""
    if "already_sampled" not in known:
        return ""
    return (
        " The guarantee is for the population of which the table is a random sample: above, 'in "
        "the original table' stands for 'in that population'. It holds for everybody whose own "
        "membership of the table is unknown to the attacker, who may know that of all others; for "
        "somebody who is known to be in the table it is weaker. The curator asserts that everybody "
        f"was in the table with probability {known['already_sampled']!r}, independently."
    )


def _kept(columns: tuple[str, ...]) -> str:
    if not columns:
        return ""
    listed = ", ".join(f"'{name}'" for name in columns)
    return f" Shown as they are, and not generalised: {listed}."


def _side_by_side(columns: tuple[str, ...]) -> str:
    if not columns:
        return ""
    listed = ", ".join(f"'{name}'" for name in columns)
    return (
        f" Labels of different fineness may stand side by side in: {listed}. How fine a label is "
        "may go with the row's other values, so that what is true of the rows with a fine label "
        "need not be true of all people it fits: compare rows by what their labels have in common."
    )


METHODS = {
    "safe": Wording("differential privacy", _safe, accounted=True),
    "k-anonymity": Wording("k-anonymity", _k_anonymity, parameters=CLASSES),
    "k-epsilon": Wording(
        "(k,epsilon)-anonymity", _k_epsilon,
        parameters=NOISE, optional=frozenset({"delta", "confidence"}), noisy=True,
    ),
}  # fmt: skip
