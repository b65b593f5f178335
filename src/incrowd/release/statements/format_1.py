"""The words of certificates of format 1, as versions before format 2 wrote them."""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.release.statements import CLASSES, NOISE, Facts, Parameters, Wording, rules_of


def statement(method: str, facts: Facts) -> str:
    """The guarantee in words."""
    return METHODS[method].words(facts)


def _safe(facts: Facts) -> str:
    return safe(facts) + _population({**facts.shared, **facts.tables[0]})


def _k_anonymity(facts: Facts) -> str:
    return k_anonymity(facts.tables[0], facts.unit)


def _k_epsilon(facts: Facts) -> str:
    (parameters,) = facts.tables
    return k_epsilon(parameters, facts.noisy, facts.unit) + _confident(parameters)


def safe(facts: Facts) -> str:
    """(epsilon, delta) in words that a reader without mathematics can follow."""
    shared, tables = facts.shared, facts.tables
    words = satisfied(facts)
    if len(tables) == 1:
        words += f"Each row was drawn at random with probability {_drawn(tables[0])}"
    else:
        words += "For each file a sample of its own was drawn from the whole table. "
        if "slices_epsilon" in shared:
            words += (
                "Which columns stand together was chosen from the table by a mechanism of its own "
                f"that spent epsilon = {shared['slices_epsilon']!r}, which is included. "
            )
        words += " ".join(_alike(tables))
    return words


def satisfied(facts: Facts) -> str:
    """What differential privacy promises."""
    number = len(facts.tables)
    return (
        f"{'This file satisfies' if number == 1 else f'These {number} files together satisfy'} "
        f"(epsilon, delta)-differential privacy with epsilon = "
        f"{facts.epsilon!r} and delta = {facts.delta!r}. Whether or not {facts.unit} "
        "is in the original table, whatever may be released is almost as likely: the probability "
        "of any set of releases grows by a factor of at most e^epsilon, plus delta. "
    )


def _population(known: Parameters) -> str:
    if "already_sampled" not in known:
        return ""
    return (
        f" The guarantee is for the population of which the table is a random sample: its "
        f"custodian asserts that everybody was in the table with probability "
        f"{known['already_sampled']!r}, independently, and that nobody knows who was."
    )


def _alike(tables: list[Parameters]) -> list[str]:
    """How the rows of several files were drawn, a sentence for all that were drawn alike."""
    found: dict[str, list[str]] = {}
    for number, known in enumerate(tables, 1):
        found.setdefault(_drawn(known), []).append(str(number))
    if len(found) == 1:
        return [f"For each of them rows were drawn with probability {next(iter(found))}"]
    return [
        f"For {files(numbers)} rows were drawn with probability {words}"
        for words, numbers in found.items()
    ]


def files(numbers: list[str]) -> str:
    """Some of several files, by their numbers."""
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
_ALGORITHMS = {
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


def k_anonymity(parameters: Parameters, unit: str) -> str:
    """What k-anonymity promises, what it does not, and which attacks are known."""
    k = int(parameters["k"])
    if parameters["algorithm"] not in _ALGORITHMS:
        raise ValueError(f"no algorithm '{parameters['algorithm']}' is known")
    how, weakness = _ALGORITHMS[str(parameters["algorithm"])]
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


def k_epsilon(parameters: Parameters, columns: Sequence[str], unit: str) -> str:
    """What (k,epsilon)-anonymity promises, and what it does not, for a curator."""
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
        f"{k_anonymity(parameters, unit)} The noisy columns ({listed}) carry random noise "
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
    return words


def _confident(known: Parameters) -> str:
    if "confidence" not in known:
        return ""
    return (
        f" Rows were suppressed whose released value would have pointed, with confidence "
        f"{known['confidence']!r}, to fewer than k members of their class."
    )


METHODS = {
    "safe": Wording("differential privacy", _safe, accounted=True),
    "k-anonymity": Wording("k-anonymity", _k_anonymity, parameters=CLASSES),
    "k-epsilon": Wording(
        "(k,epsilon)-anonymity", _k_epsilon,
        parameters=NOISE, optional=frozenset({"delta", "confidence"}), noisy=True,
    ),
}  # fmt: skip
