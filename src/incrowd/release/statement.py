"""The statement of a certificate: what is guaranteed, one sentence after the other.

Every sentence follows from facts in the certificate alone, so that anyone who verifies a release
can write the statement again and compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from incrowd.privacy.presentation import format_parameter
from incrowd.release.class_statement import write_k_anonymity, write_k_epsilon
from incrowd.release.facts import HOUSEHOLD, Facts, Sentence, make_sentence, quote_names
from incrowd.release.household_statement import (
    HOUSEHOLD_UNIT,
    describe_linked_k_anonymity,
    describe_shared_levels,
    write_household_files,
)
from incrowd.release.layout import LINKED_HOUSEHOLDS
from incrowd.release.noise_sentences import (
    describe_accuracy,
    describe_coin,
    describe_law,
    describe_noise,
    describe_series,
    describe_sums,
    format_exact,
)
from incrowd.release.parameters import Parameters, list_aggregates
from incrowd.release.shares_statement import describe_shares
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
        "safe": _write_safe, "k-anonymity": write_k_anonymity, "k-epsilon": write_k_epsilon,
        "synthetic": _synthetic, "tables": _write_tables,
    }[facts.method]  # fmt: skip
    return [
        *_write_reservations(facts),
        *write(facts),
        *_write_columns(facts),
        *_write_assertions(facts),
        *_technical(facts),
    ]


def _write_reservations(facts: Facts) -> Iterator[Sentence]:
    if facts.rehearsal:
        yield make_sentence(
            "rehearsal",
            "DRY RUN: the table was generated from the spec and describes no real person. Nothing "
            "is guaranteed. The following sentences would hold for a release of the real table.",
        )
    if facts.seeded:
        yield make_sentence(
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
    for table in facts.shares:
        yield make_sentence("shares", describe_shares(table, facts))
    yield from _write_assumptions(facts)


def _synthetic(facts: Facts) -> Iterator[Sentence]:
    yield from _write_differential_privacy(facts)
    yield from _write_unit(facts)
    assert facts.synthetic is not None
    for key, text in describe_synthetic(facts.synthetic, facts.common):
        yield make_sentence(key, text)
    yield from _write_assumptions(facts)


def _write_tables(facts: Facts) -> Iterator[Sentence]:
    yield from _write_differential_privacy(facts)
    yield from _write_unit(facts)
    assert facts.tabulation is not None
    for key, text in describe_tables(facts.tabulation, by_person=facts.by_person):
        yield make_sentence(key, text)
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
    if facts.period is not None:
        unit += f" within {_PERIODS[facts.period]}"
    yield make_sentence(
        "differential_privacy",
        f"{subject} (ε, δ)-differential privacy with ε = {format_exact(facts.epsilon)} and δ = "
        f"{format_exact(facts.delta)}. Adding or removing {unit} changes the probability of any "
        "set of outcomes by a factor of at most e^ε, plus δ.",
    )
    if facts.period is not None:
        yield from _write_period(facts)
    if sampled:
        yield make_sentence(
            "population",
            "The guarantee holds for each member of the population whose presence in the input is "
            "unknown to the attacker, even if the attacker knows the presence of everyone else. "
            "For a person who is known to be in the input it is weaker.",
        )


_PERIODS = {
    "value": "one period", **{name: f"one {name}" for name in
                             ("year", "quarter", "month", "week", "day")},
}  # fmt: skip
_PRESENT = 4  # periods of somebody who is in several


def _write_period(facts: Facts) -> Iterator[Sentence]:
    """Write what is protected of a person within a period, and of one who is in several."""
    if "series_of" in facts.common:
        yield from _write_series(facts)
        return
    epsilon = float(format_parameter("epsilon", _PRESENT * (facts.epsilon or 0.0), 6))
    delta = float(format_parameter("delta", min(_PRESENT * (facts.delta or 0.0), 1.0), 6))
    yield make_sentence(
        "period",
        f"It protects everything about one person within {_PERIODS[facts.period or 'value']}; the "
        f"input is the period {facts.part} alone. A person present in n periods is protected n "
        "times less: n releases, one of each of these periods and each with this guarantee, "
        f"together satisfy (nε, nδ) for all rows of that person, with n = {_PRESENT} "
        f"({format_exact(epsilon)}, {format_exact(delta)}).",
    )


def _write_series(facts: Facts) -> Iterator[Sentence]:
    """Write what a release of a series protects, and of a person who is in several periods."""
    small, delta = facts.epsilon or 0.0, facts.delta or 0.0
    present = min(_PRESENT, int(facts.common["series_of"]))
    factor = sum(math.exp(at * small) for at in range(present))
    epsilon = float(format_parameter("epsilon", present * small, 6))
    delta = float(format_parameter("delta", min(factor * delta, 1.0), 6))
    yield make_sentence(
        "period",
        f"It protects everything about one person within {_PERIODS[facts.period or 'value']}; the "
        f"input is the period {facts.part} alone. A person present in n periods is protected less: "
        "all releases of the series together satisfy (nε, δ (1 + e^ε + … + e^((n−1)ε))) for all "
        f"rows of that person, with n = {present} "
        f"({format_exact(epsilon)}, {format_exact(delta)}).",
    )
    yield make_sentence("series", describe_series(facts.common))


def _write_counts_k_anonymity(facts: Facts) -> Iterator[Sentence]:
    k = min(int(table["k"]) for table in facts.tables)
    if facts.layout == LINKED_HOUSEHOLDS:
        yield make_sentence("k_anonymity", describe_linked_k_anonymity(k))
        return
    subject = "It is" if len(facts.tables) == 1 else "Each file is"
    if facts.shares:
        subject = "Its rows are" if len(facts.tables) == 1 else "Each file of rows is"
    people = ", each of a different person" if facts.by_person else ""
    rows = f"at least {k} input rows" if k > 1 else "at least 1 input row"
    if facts.rows_per_person > 1 and k > 1:
        rows, people = f"the rows of at least {k} different people", ""
    yield make_sentence(
        "k_anonymity",
        f"{subject} {k}-anonymous: each published combination of values occurs in {rows}"
        f"{people if k > 1 else ''}.",
    )


def _write_choices(facts: Facts) -> Iterator[Sentence]:
    """Write who chose what is published how: a private search, or nobody who saw the table."""
    if "slices_epsilon" in facts.shared:
        yield make_sentence(
            "slices",
            "The columns of each file were chosen by a differentially private search (ε = "
            f"{format_exact(facts.shared['slices_epsilon'])}, included above).",
        )
    if facts.layout is not None:
        yield make_sentence("generalization", describe_shared_levels(facts))
        return
    yield make_sentence("generalization", _describe_per_file(facts, _describe_generalization))


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
    yield make_sentence(
        "noise", _describe_per_file(facts, lambda _, parameters: describe_noise(parameters))
    )
    yield make_sentence(
        "accuracy", _describe_per_file(facts, lambda _, parameters: describe_accuracy(parameters))
    )
    rows = "households" if facts.layout == LINKED_HOUSEHOLDS else "rows"
    yield make_sentence(
        "rows",
        f"Published {rows} are not copies of individual records; they reproduce noisy group "
        "counts.",
    )


def _technical(facts: Facts) -> Iterator[Sentence]:
    if facts.tabulation is not None:
        for key, text in describe_tables_details(facts.tabulation, facts.common):
            yield make_sentence(key, text)
    if facts.synthetic is not None:
        for key, text in describe_synthetic_details(facts.common):
            yield make_sentence(key, text)
    if not facts.by_counts:
        return
    yield make_sentence(
        "noise_law", _describe_per_file(facts, lambda _, parameters: describe_law(parameters))
    )
    if any("coin" in table for table in facts.tables):
        yield make_sentence(
            "noise_bound",
            _describe_per_file(facts, lambda _, parameters: describe_coin(parameters)),
        )
    yield make_sentence(
        "noise_sums", _describe_per_file(facts, lambda _, parameters: describe_sums(parameters))
    )


def _write_sample(facts: Facts) -> Iterator[Sentence]:
    yield make_sentence("sample", _describe_per_file(facts, _describe_sampling))


def _describe_sampling(facts: Facts, parameters: Parameters) -> str:
    if facts.layout == LINKED_HOUSEHOLDS:
        return (
            "Each household, with its used people, was drawn at random with probability β = "
            f"{parameters['beta']!r}, independently. Types with fewer than k = "
            f"{int(parameters['k'])} drawn households are suppressed."
        )
    several = len(facts.tables) > 1
    each = "For each file, a separate sample was drawn: each" if several else "Each"
    row = "used row" if facts.by_person else "input row"
    return (
        f"{each} {row} was drawn at random with probability β = {parameters['beta']!r}, "
        f"independently. Groups with fewer than k = {int(parameters['k'])} drawn rows are "
        "suppressed."
    )


def _write_unit(facts: Facts) -> Iterator[Sentence]:
    if facts.layout is not None:
        yield make_sentence("unit", HOUSEHOLD_UNIT)
    elif facts.rows_per_group > 1:
        yield make_sentence(
            "unit",
            f"The unit of the guarantee is a person: up to {facts.rows_per_person} rows per person "
            "were used, chosen at random. Numbers of rows are numbers of used rows, of which up to "
            f"{facts.rows_per_group} of one person count in each group"
            f"{' of each file' if len(facts.tables) > 1 else ''}; k counts people.",
        )
    elif facts.rows_per_person > 1:
        yield make_sentence(
            "unit",
            f"The unit of the guarantee is a person: up to {facts.rows_per_person} rows per person "
            "were used, chosen at random. Numbers of rows are numbers of people: a person counts "
            "once in each group that one of these rows belongs to, so in up to "
            f"{facts.rows_per_person} groups{' of each file' if len(facts.tables) > 1 else ''}.",
        )
    elif facts.by_person:
        yield make_sentence(
            "unit",
            "The unit of the guarantee is a person: one row per person was used, chosen at random. "
            "Numbers of rows are numbers of people, each counted in the group of the chosen row.",
        )
    else:
        yield make_sentence(
            "unit",
            ("The unit of the guarantee is a row: for a person with several rows it is weaker."),
        )
    if facts.protects == "household":
        yield make_sentence("household", HOUSEHOLD)
    if facts.layout is not None:
        yield from write_household_files(facts)
    if facts.without_id:
        yield make_sentence("without_id", "Rows without an id were not used.")


def _write_assumptions(facts: Facts) -> Iterator[Sentence]:
    yield make_sentence(
        "assumption_public",
        "Assumption: the columns, hierarchies and domains, and every other setting that no search "
        f"named above chose, are public knowledge and do not depend on the input. {_ASSERTED}",
    )
    common = facts.common
    if "already_sampled" in common:
        yield make_sentence(
            "assumption_sample",
            "Assumption: each member of the population was included in the input with probability "
            f"{format_exact(common['already_sampled'])}, independently of all others. {_ASSERTED}",
        )
    if "size" in common:
        yield make_sentence(
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


def _write_columns(facts: Facts) -> Iterator[Sentence]:
    unchanged = [name for name in facts.kept if name not in list_aggregates(facts.common)]
    if unchanged:
        yield make_sentence(
            "unchanged_columns",
            f"Published unchanged, not generalized: {quote_names(unchanged)}.",
        )
    if facts.local:
        yield make_sentence(
            "mixed_levels",
            f"Labels of different levels may occur side by side in: {quote_names(facts.local)}. "
            "The "
            "level of a label may depend on the other values of the row, so rows with a fine label "
            "need not represent all people whom it describes: compare rows at a common level.",
        )


def _write_assertions(facts: Facts) -> Iterator[Sentence]:
    if facts.assertions is not None:
        yield make_sentence(
            "assertions",
            "What the curator says besides about this release is in metadata/assertions.json; the "
            f"certificate holds the hash of that file. {_ASSERTED}",
        )
