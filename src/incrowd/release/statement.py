"""The statement of a certificate: what is guaranteed, one sentence after the other.

Every sentence follows from facts in the certificate alone, so that anyone who verifies a release
can write the statement again and compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from incrowd.release.facts import Facts, Sentence
from incrowd.release.noise_sentences import (
    describe_accuracy,
    describe_coin,
    describe_law,
    describe_noise,
    describe_sums,
    format_exact,
)
from incrowd.release.parameters import RULES, Parameters, list_rules
from incrowd.release.synthetic_statement import describe_synthetic, describe_synthetic_details
from incrowd.release.tables_statement import describe_tables, describe_tables_details

__all__ = ["Facts", "Sentence", "write_statement"]

TECHNICAL = frozenset(  # shown below the others
    {"noise_law", "noise_bound", "noise_sums", "information", "choice_range", "residuals"}
)
_ASSERTED = "The curator asserts this; the release cannot prove it."


def write_statement(facts: Facts) -> list[Sentence]:
    """Return the sentences of a statement, the most important ones first, technical ones last."""
    write = {
        "safe": _write_safe, "k-anonymity": _write_k_anonymity, "k-epsilon": _write_k_epsilon,
        "synthetic": _synthetic, "tables": _write_tables,
    }[facts.method]  # fmt: skip
    return [*_write_reservations(facts), *write(facts), *_write_columns(facts), *_technical(facts)]


def _make_sentence(key: str, text: str) -> Sentence:
    return Sentence(key=key, text=text)


def _write_reservations(facts: Facts) -> Iterator[Sentence]:
    if facts.rehearsal:
        yield _make_sentence(
            "rehearsal",
            "DRY RUN: the table was generated from the spec and describes no real person. Nothing "
            "is guaranteed. The following sentences would hold for a release of the real table.",
        )
    if facts.seeded:
        yield _make_sentence(
            "not_private",
            "NOT PRIVATE: the random numbers of this release came from a seed, for tests. Anyone "
            "who knows or guesses the seed can undo them. Nothing is guaranteed. The following "
            "sentences would hold with random numbers of the operating system.",
        )


def _write_safe(facts: Facts) -> Iterator[Sentence]:
    yield from _write_differential_privacy(facts)
    if facts.by_counts:
        yield from _write_counts_k_anonymity(facts)
    yield from _write_unit(facts)
    yield from _write_choices(facts)
    yield from _write_counts(facts) if facts.by_counts else _write_sample(facts)
    yield from _write_assumptions(facts)


def _synthetic(facts: Facts) -> Iterator[Sentence]:
    yield from _write_differential_privacy(facts)
    yield from _write_unit(facts)
    assert facts.synthetic is not None
    for key, text in describe_synthetic(facts.synthetic, facts.common):
        yield _make_sentence(key, text)
    yield from _write_assumptions(facts)


def _write_tables(facts: Facts) -> Iterator[Sentence]:
    yield from _write_differential_privacy(facts)
    yield from _write_unit(facts)
    assert facts.tabulation is not None
    for key, text in describe_tables(facts.tabulation, by_person=facts.by_person):
        yield _make_sentence(key, text)
    yield from _write_assumptions(facts)


def _write_differential_privacy(facts: Facts) -> Iterator[Sentence]:
    number = len(facts.tables)
    subject = "This release satisfies" if number == 1 else (
        f"The {number} files of this release together satisfy"
    )  # fmt: skip
    sampled = "already_sampled" in facts.common
    if sampled:
        unit = "one person" if facts.by_person else "one row"
        unit += " of the population from which the input was sampled"
    else:
        unit = "all input rows of one person" if facts.by_person else "one row of the input"
    yield _make_sentence(
        "differential_privacy",
        f"{subject} (ε, δ)-differential privacy with ε = {format_exact(facts.epsilon)} and δ = "
        f"{format_exact(facts.delta)}. Adding or removing {unit} changes the probability of any "
        "set of outcomes by a factor of at most e^ε, plus δ.",
    )
    if sampled:
        yield _make_sentence(
            "population",
            "The guarantee holds for each member of the population whose presence in the input is "
            "unknown to the attacker, even if the attacker knows the presence of everyone else. "
            "For a person who is known to be in the input it is weaker.",
        )


def _write_counts_k_anonymity(facts: Facts) -> Iterator[Sentence]:
    k = min(int(table["k"]) for table in facts.tables)
    subject = "It is" if len(facts.tables) == 1 else "Each file is"
    people = ", each of a different person" if facts.by_person else ""
    rows = f"{k} input rows" if k > 1 else "1 input row"
    yield _make_sentence(
        "k_anonymity",
        f"{subject} {k}-anonymous: each published combination of values occurs in at least {rows}"
        f"{people if k > 1 else ''}.",
    )


def _write_choices(facts: Facts) -> Iterator[Sentence]:
    """Write who chose what is published how: a private search, or nobody who saw the table."""
    if "slices_epsilon" in facts.shared:
        yield _make_sentence(
            "slices",
            "The columns of each file were chosen by a differentially private search (ε = "
            f"{format_exact(facts.shared['slices_epsilon'])}, included above).",
        )
    yield _make_sentence("generalization", _describe_per_file(facts, _describe_generalization))


def _describe_generalization(facts: Facts, parameters: Parameters) -> str:
    several = len(facts.tables) > 1
    what = "The generalization" if facts.local else "The generalization levels"
    what += " of each file" if several else ""
    verb = "was" if facts.local else "were"
    if "search_epsilon" not in parameters:
        return f"{what} {verb} fixed before the input was read."
    if not facts.by_counts:
        what, verb = f"{what}, and k and β unless they were fixed before,", "were"
    each = " per file" if several else ""
    return (
        f"{what} {verb} chosen by a differentially private search (ε = "
        f"{format_exact(parameters['search_epsilon'])}{each}, included above)."
    )


def _write_counts(facts: Facts) -> Iterator[Sentence]:
    yield _make_sentence(
        "noise", _describe_per_file(facts, lambda _, parameters: describe_noise(parameters))
    )
    yield _make_sentence(
        "accuracy", _describe_per_file(facts, lambda _, parameters: describe_accuracy(parameters))
    )
    yield _make_sentence(
        "rows",
        ("Published rows are not copies of individual records; they reproduce noisy group counts."),
    )


def _technical(facts: Facts) -> Iterator[Sentence]:
    if facts.tabulation is not None:
        for key, text in describe_tables_details(facts.tabulation, facts.common):
            yield _make_sentence(key, text)
    if facts.synthetic is not None:
        for key, text in describe_synthetic_details(facts.common):
            yield _make_sentence(key, text)
    if not facts.by_counts:
        return
    yield _make_sentence(
        "noise_law", _describe_per_file(facts, lambda _, parameters: describe_law(parameters))
    )
    if any("coin" in table for table in facts.tables):
        yield _make_sentence(
            "noise_bound",
            _describe_per_file(facts, lambda _, parameters: describe_coin(parameters)),
        )
    yield _make_sentence(
        "noise_sums", _describe_per_file(facts, lambda _, parameters: describe_sums(parameters))
    )


def _write_sample(facts: Facts) -> Iterator[Sentence]:
    yield _make_sentence("sample", _describe_per_file(facts, _describe_sampling))


def _describe_sampling(facts: Facts, parameters: Parameters) -> str:
    several = len(facts.tables) > 1
    each = "For each file, a separate sample was drawn: each" if several else "Each"
    row = "used row" if facts.by_person else "input row"
    return (
        f"{each} {row} was drawn at random with probability β = {parameters['beta']!r}, "
        f"independently. Groups with fewer than k = {int(parameters['k'])} drawn rows are "
        "suppressed."
    )


def _write_unit(facts: Facts) -> Iterator[Sentence]:
    if facts.by_person:
        yield _make_sentence(
            "unit",
            "The unit of the guarantee is a person: one row per person was used, chosen at random. "
            "Numbers of rows are numbers of people, each counted in the group of the chosen row.",
        )
    else:
        yield _make_sentence(
            "unit",
            ("The unit of the guarantee is a row: for a person with several rows it is weaker."),
        )
    if facts.without_id:
        yield _make_sentence("without_id", "Rows without an id were not used.")


def _write_assumptions(facts: Facts) -> Iterator[Sentence]:
    yield _make_sentence(
        "assumption_public",
        "Assumption: the columns, hierarchies and domains, and every other setting that no search "
        f"named above chose, are public knowledge and do not depend on the input. {_ASSERTED}",
    )
    common = facts.common
    if "already_sampled" in common:
        yield _make_sentence(
            "assumption_sample",
            "Assumption: each member of the population was included in the input with probability "
            f"{format_exact(common['already_sampled'])}, independently of all others. {_ASSERTED}",
        )
    if "size" in common:
        yield _make_sentence(
            "assumption_size",
            f"Assumption: the table size of {int(common['size']):,}, which decided parameters, is "
            f"public knowledge and does not depend on the input. {_ASSERTED}",
        )


def _describe_per_file(facts: Facts, describe: Callable[[Facts, Parameters], str]) -> str:
    """Return a text for all files; where they differ, one text for those that are alike."""
    texts: dict[str, list[str]] = {}
    for number, parameters in enumerate(facts.tables, 1):
        texts.setdefault(describe(facts, parameters), []).append(str(number))
    if len(texts) == 1:
        return next(iter(texts))
    return " ".join(f"{_format_files(numbers)}: {text}" for text, numbers in texts.items())


def _format_files(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return f"File {numbers[0]}"
    return f"Files {', '.join(numbers[:-1])} and {numbers[-1]}"


_EXTREMES = (
    "The boundaries of classes depend on individual rows: an interval may end at the value of one "
    "person, and an attacker who knows an extreme value may find it."
)
_ALGORITHMS = {
    "ola": (
        (
            "Each generalized column shows labels of one level, chosen by a search over the input "
            "unless it was fixed before."
        ),
        "A search reads the input, so the levels that it chooses may reveal information.",
    ),
    "mondrian": (
        (
            "Rows were divided into classes by cuts of the input; each class publishes labels that "
            "cover its rows."
        ),
        _EXTREMES,
    ),
    "cluster": (
        "Similar rows were combined into classes; each class publishes labels that cover its rows.",
        _EXTREMES,
    ),
    "duplicate": (
        (
            "One row of each class was drawn at random and is published unchanged in place of all "
            "rows of the class."
        ),
        "Real records are published as they are. This is a baseline for comparison, not for use.",
    ),
}
_RULES = dict(
    zip(
        RULES,
        (
            "'{}' has at least {} distinct values",
            "the entropy of '{}' is at least that of {} equally frequent values",
            "the distribution of '{}' is within {} of that in the input (equal distance)",
            "the distribution of '{}' is within {} of that in the input (ordered distance)",
        ),
        strict=True,
    )
)


def _write_k_anonymity(facts: Facts) -> Iterator[Sentence]:
    (parameters,) = facts.tables
    k = int(parameters["k"])
    yield _make_sentence(
        "k_anonymity",
        f"This release is {k}-anonymous: {_classes_hold(parameters)}.",
    )
    yield _make_sentence(
        "not_differential_privacy",
        "This is NOT differential privacy. Nothing is guaranteed about what the release as a whole "
        "reveals about one person, about other columns, or about several releases together.",
    )
    yield from _write_classes(facts, parameters)


def _classes_hold(parameters: Parameters) -> str:
    rows = "rows" if int(parameters["k"]) > 1 else "row"
    stars = ", suppressed rows aside" if parameters.get("suppressed") == "starred" else ""
    return (
        "each published combination of values in the generalized columns occurs in at least "
        f"{int(parameters['k'])} {rows}{stars}"
    )


def _write_classes(facts: Facts, parameters: Parameters) -> Iterator[Sentence]:
    how, weakness = _ALGORITHMS[str(parameters["algorithm"])]
    yield _make_sentence("generalization", how)
    if parameters.get("suppressed") == "starred":
        yield _make_sentence(
            "suppressed_rows",
            "Rows that contain * in every generalized column stand for suppressed rows and belong "
            "to no class.",
        )
    rules = list_rules(parameters)
    if rules:
        listed = "; ".join(
            _RULES[kind].format(column, repr(value).removesuffix(".0"))
            for column, kind, value in rules
        )
        unseen = any("distance" in kind for _, kind, _ in rules)
        yield _make_sentence(
            "rules",
            f"In each class, {listed}."
            + (" The release alone does not suffice to verify distances." if unseen else ""),
        )
    if facts.by_person:
        yield _make_sentence("unit", "One row per person was used, chosen at random.")
    else:
        yield _make_sentence(
            "unit", "The unit is a row: several rows of a class may belong to one person."
        )
    if facts.without_id:
        yield _make_sentence("without_id", "Rows without an id were not used.")
    yield _make_sentence(
        "known_attacks",
        "Known attacks: a class whose rows share a sensitive value reveals it. An attacker who "
        "knows more about a person can exclude other rows of the class. "
        f"{weakness}",
    )


def _write_k_epsilon(facts: Facts) -> Iterator[Sentence]:
    (parameters,) = facts.tables
    k, epsilon = int(parameters["k"]), parameters["epsilon"]
    yield _make_sentence(
        "k_epsilon_anonymity",
        f"This release is (k, ε)-anonymous with k = {k} and ε = {format_exact(epsilon)}: "
        f"{_classes_hold(parameters)}, and the noisy columns carry random noise.",
    )
    yield _make_sentence(
        "not_differential_privacy",
        "This is NOT differential privacy of the input. Nothing is guaranteed about what the "
        "release as a whole reveals about one person, about other columns, or about several "
        "releases together.",
    )
    yield from _write_value_noise(facts, parameters)
    yield from _write_classes(facts, parameters)


def _write_value_noise(facts: Facts, parameters: Parameters) -> Iterator[Sentence]:
    delta = f" and δ = {format_exact(parameters['delta'])}" if "delta" in parameters else ""
    kind = {"laplace": "Laplace", "gaussian": "Gaussian"}[str(parameters["noise"])]
    yield _make_sentence(
        "noise",
        f"Columns with {kind} noise: {_quote_names(sorted(facts.noisy))}. ε = "
        f"{format_exact(parameters['epsilon'])}{delta} is divided among them.",
    )
    if parameters["bounds"] == "declared":
        yield _make_sentence(
            "noise_scale",
            "The noise is scaled to the declared bounds. For each row, any two sets of values "
            "within the bounds lead to any set of published values with probabilities that differ "
            f"by a factor of at most e^ε{', plus δ' if delta else ''}. This is local differential "
            "privacy of these values, not of the rest of the row. Missing values are published as "
            "missing.",
        )
    else:
        yield _make_sentence(
            "noise_scale",
            "The noise is scaled to the range of values in each class. It obscures which row of "
            "the class a value came from, but the range of a class, and an extreme value in "
            "particular, can be estimated from the release. A class in which all values are equal "
            "carries no noise and publishes that value.",
        )
    if "confidence" in parameters:
        yield _make_sentence(
            "confidence",
            "Rows were suppressed whose published value would have pointed, with confidence "
            f"{parameters['confidence']!r}, to at least one but fewer than k rows of their class; "
            "then classes with fewer than k remaining rows were suppressed.",
        )


def _write_columns(facts: Facts) -> Iterator[Sentence]:
    if facts.kept:
        yield _make_sentence(
            "unchanged_columns",
            f"Published unchanged, not generalized: {_quote_names(facts.kept)}.",
        )
    if facts.local:
        yield _make_sentence(
            "mixed_levels",
            f"Labels of different levels may occur side by side in: {_quote_names(facts.local)}. "
            "The "
            "level of a label may depend on the other values of the row, so rows with a fine label "
            "need not represent all people whom it describes: compare rows at a common level.",
        )


def _quote_names(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
