"""What guarantees say in words, and which parameters they may have.

Every statement follows from the parameters alone, so that whoever verifies a certificate can
write it again and compare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import takewhile

from incrowd.privacy.events import Composition, Event, OneOf, SafeRelease, Sampled, Selection

Parameters = dict[str, float | str]


@dataclass(frozen=True)
class Told:
    """What the events of a safe release tell of its tables.

    ``shared`` holds for all of them; ``tables`` lists, for each, what its own k, beta and so on
    may be: a selection has told which of them it is.
    """

    shared: Parameters
    tables: list[list[Parameters]]


def told(events: list[Event]) -> Told | None:
    """What the events tell; None if they are not those of a safe release.

    One table has a safe release or, where its scheme was searched for, selections and then one
    of several. Slices have one such event each, after the selections that put them together.
    """
    match events:
        case [Sampled(event, rate)]:
            inner: list[Event] = [event]
            if isinstance(event, Composition):
                inner = list(event.events)
            if any(isinstance(part, Sampled) for part in inner) or (found := told(inner)) is None:
                return None
            sampled: Parameters = {"already_sampled": rate}
            if len(found.tables) > 1:
                return Told({**found.shared, **sampled}, found.tables)
            return Told({}, [[{**known, **sampled} for known in found.tables[0]]])
        case _:
            one = _of_one_table(events)
            return Told({}, [one]) if one else _of_slices(events)


def _of_one_table(events: list[Event]) -> list[Parameters]:
    match events:
        case [SafeRelease(k, beta)]:
            return [{"k": float(k), "beta": beta}]
        case [*choices, OneOf(parts)]:
            spent = _spent(choices)
            if spent and all(isinstance(part, SafeRelease) for part in parts):
                return [
                    {"k": float(one.k), "beta": one.beta, "search_epsilon": spent}
                    for one in parts
                    if isinstance(one, SafeRelease)
                ]
    return []


def _of_slices(events: list[Event]) -> Told | None:
    choices = list(takewhile(lambda event: isinstance(event, Selection), events))
    slices = [
        _of_one_table(list(event.events) if isinstance(event, Composition) else [event])
        for event in events[len(choices) :]
    ]
    if len(slices) < 2 or not all(slices):
        return None
    if not choices:
        return Told({}, slices)
    spent = _spent(choices)
    return Told({"slices_epsilon": spent}, slices) if spent else None


def _spent(events: list[Event]) -> float:
    """The sum of selections; 0 if anything else is among them, or one that spends nothing."""
    epsilons = [event.epsilon for event in events if isinstance(event, Selection)]
    if len(epsilons) < len(events) or not all(epsilon > 0 for epsilon in epsilons):
        return 0.0
    # Each is a multiple of a millionth (see payable), so their sum is one too.
    return round(math.fsum(epsilons), 6)


def safe_statement(
    shared: Parameters, tables: list[Parameters], *, epsilon: float, delta: float, unit: str
) -> str:
    """The guarantee in words that a reader without mathematics can follow."""
    one = len(tables) == 1
    words = (
        f"{'This file satisfies' if one else f'These {len(tables)} files together satisfy'} "
        f"(epsilon, delta)-differential privacy with epsilon = "
        f"{epsilon!r} and delta = {delta!r}. Whether or not {unit} "
        "is in the original table, whatever may be released is almost as likely: the probability "
        "of any set of releases grows by a factor of at most e^epsilon, plus delta. "
    )
    if one:
        words += f"Each row was drawn at random with probability {_drawn(tables[0])}"
    else:
        words += "For each file a sample of its own was drawn from the whole table. "
        if "slices_epsilon" in shared:
            words += (
                "Which columns stand together was chosen from the table by a mechanism of its own "
                f"that spent epsilon = {shared['slices_epsilon']!r}, which is included. "
            )
        words += " ".join(_alike(tables))
    known = {**shared, **tables[0]}
    if "already_sampled" in known:
        words += _sampled_before(known["already_sampled"])
    return words


def _sampled_before(rate: float | str) -> str:
    """The premise of a guarantee for a population; see :class:`incrowd.privacy.events.Sampled`."""
    return (
        " The guarantee is for the population of which the table is a random sample: above, 'in "
        "the original table' stands for 'in that population'. It holds for everybody whose own "
        "membership of the table is unknown to the attacker, who may know that of all others; "
        f"its custodian asserts that everybody was in the table with probability {rate!r}, "
        "independently."
    )


def _alike(tables: list[Parameters]) -> list[str]:
    """How the rows of several files were drawn, a sentence for all that were drawn alike."""
    found: dict[str, list[str]] = {}
    for number, known in enumerate(tables, 1):
        found.setdefault(_drawn(known), []).append(str(number))
    if len(found) == 1:
        return [f"For each of them rows were drawn with probability {next(iter(found))}"]
    return [
        f"For {_listed(numbers)} rows were drawn with probability {words}"
        for words, numbers in found.items()
    ]


def _listed(numbers: list[str]) -> str:
    if len(numbers) == 1:
        return f"file {numbers[0]}"
    return f"files {', '.join(numbers[:-1])} and {numbers[-1]}"


def _drawn(known: Parameters) -> str:
    """How the rows of one file were drawn, from their probability on."""
    scheme = (
        "by a scheme that does not depend on the table"
        if "search_epsilon" not in known
        else "by a scheme that was chosen from the table, together with this probability unless "
        "that was settled beforehand, by a mechanism of its own that spent epsilon = "
        f"{known['search_epsilon']!r}, which is included"
    )
    return (
        f"{known['beta']!r}, every column was generalised {scheme}, and only rows "
        f"that occur at least {int(known['k'])} times are shown."
    )


_EXTREMES = (
    "Where the classes end depends on single people: an interval may end at one person's value, "
    "and whoever knows an extreme value may find it."
)
ALGORITHMS = {
    "ola": (
        "each column was generalised to one level, chosen by a search over the table",
        "The search read the table, so the levels themselves may tell something.",
    ),
    "mondrian": (
        "rows were put into classes by cuts of the table, and each class shows what covers it",
        _EXTREMES,
    ),
    "cluster": (
        "rows were put into classes of near ones, and each class shows what covers it",
        _EXTREMES,
    ),
    "duplicate": (
        "one row of each class was drawn and is shown, unchanged, in place of all of them",
        "It publishes real people's rows as they are: a baseline to compare with, not for use.",
    ),
}


RULES = (
    "distinct values, at least",
    "entropy of so many equally frequent values, at least",
    "distance to the table (equal), at most",
    "distance to the table (ordered), at most",
)
_CHOICES = {
    "algorithm": tuple(ALGORITHMS),
    "suppressed": ("dropped", "starred"),
    "noise": ("laplace", "gaussian"),
    "bounds": ("class", "declared"),
}


def rules_of(parameters: Parameters) -> list[tuple[str, str, float]]:
    """The rules on sensitive columns among the parameters: column, kind, value."""
    found = []
    for name, value in sorted(parameters.items()):
        if name.startswith("rule "):
            column, _, kind = name.removeprefix("rule ").partition(": ")
            for known in RULES:
                if name.endswith(f": {known}"):
                    column, kind = name.removeprefix("rule ").removesuffix(f": {known}"), known
            if kind not in RULES or not isinstance(value, float) or not value >= 0:
                raise ValueError(f"'{name}' is no rule that is known")
            found.append((column, kind, value))
    return found


def check_parameters(parameters: Parameters, names: set[str], kept: list[str]) -> None:
    """Refuse parameters that such a release does not have, or values that they cannot take."""
    rules = {f"rule {column}: {kind}" for column, kind, _ in rules_of(parameters)}
    strange = sorted(set(parameters) - names - rules)
    if strange:
        raise ValueError(f"such a release has no parameter '{strange[0]}'")
    for name, choices in _CHOICES.items():
        if name in names and parameters.get(name) not in choices:
            raise ValueError(f"'{name}' is not one of {', '.join(choices)}")
    for column, _, _ in rules_of(parameters):
        if column not in kept:
            raise ValueError(f"a rule names '{column}', which is not kept")
    k = parameters.get("k")
    if not isinstance(k, float) or k < 1 or k != int(k):
        raise ValueError("'k' is no whole number from 1")


def classical_statement(parameters: Parameters, unit: str) -> str:
    """What k-anonymity promises, what it does not, and which attacks are known."""
    k = int(parameters["k"])
    if parameters["algorithm"] not in ALGORITHMS:
        raise ValueError(f"no algorithm '{parameters['algorithm']}' is known")
    how, weakness = ALGORITHMS[str(parameters["algorithm"])]
    rules = [f"'{column}', {kind} {value!r}" for column, kind, value in rules_of(parameters)]
    extra = f" Inside every class also holds: {'; '.join(rules)}." if rules else ""
    if any("distance" in kind for _, kind, _ in rules_of(parameters)):
        extra += " (The distances are to the original table and cannot be checked from this file.)"
    stars = (
        " Rows that show * in every generalised column stand for rows that were suppressed; they "
        "are in no class."
        if parameters.get("suppressed") == "starred"
        else ""
    )
    people = " Of each person one row was used." if unit == "one person" else ""
    return (
        f"This file is k-anonymous with k = {k}: {how}, and in the generalised columns every row "
        f"is alike to at least {k - 1} others.{people}{extra}{stars} This is NOT differential "
        "privacy. It promises nothing about what the release as a whole tells of one person, "
        "about other columns, or about what several releases tell together. Known attacks: a class "
        "whose members share a sensitive value reveals it; who knows more about a person can rule "
        f"out others of the class. {weakness}"
    )


def noisy_statement(parameters: Parameters, columns: list[str], unit: str) -> str:
    """What (k,epsilon)-anonymity promises, and what it does not, for a custodian."""
    epsilon, noise = parameters.get("epsilon"), parameters.get("noise")
    declared, confidence = parameters.get("bounds") == "declared", parameters.get("confidence")
    if not isinstance(epsilon, float) or not 0 < epsilon < float("inf"):
        raise ValueError("'epsilon' is no number above 0")
    if declared and confidence is not None:
        raise ValueError("with rows suppressed by confidence there is no local guarantee")
    for name in ("delta", "confidence"):
        value = parameters.get(name, 0.5)
        if not isinstance(value, float) or not 0 < value < 1:
            raise ValueError(f"'{name}' does not lie between 0 and 1")
    listed = ", ".join(f"'{name}'" for name in sorted(columns))
    delta = f" and delta = {parameters['delta']!r}" if "delta" in parameters else ""
    words = (
        f"This file is (k,epsilon)-anonymous, which is NOT differential privacy of the table. "
        f"{classical_statement(parameters, unit)} The noisy columns ({listed}) carry random noise "
        f"({noise}), epsilon = {epsilon!r}{delta} shared among them, "
    )
    if declared:
        words += (
            "as wide as their declared bounds ask for: for each row, any two values within the "
            "bounds would have led to any released values with probabilities that differ by a "
            f"factor of at most e^epsilon{', plus delta' if delta else ''} (local differential "
            "privacy of these values, not of the rest of the row; whether a value is missing is "
            "shown)."
        )
    else:
        words += (
            "as wide as the values of each class: which of its members' values a released value "
            "came from is blurred, but how far the values of a class reach can be estimated from "
            "the file, an extreme value in particular. A class in which all values are equal gets "
            "no noise and shows that value."
        )
    if isinstance(confidence, float):
        words += (
            f" Rows were suppressed whose released value would have pointed, with confidence "
            f"{confidence!r}, to fewer than k members of their class."
        )
    return words
