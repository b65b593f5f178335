"""A release in four cards for the curator who decides on it: private, as the report is.

Every figure is one of the evaluation, of the attacks, of the certificate or of the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incrowd.evaluation.report.origin import LedgerStatus
from incrowd.findings import Finding, format_percent
from incrowd.measure.estimate import AttackReport, Estimate
from incrowd.measure.evaluation import AT_LEVELS, BY_VALUE, Evaluation
from incrowd.measure.subgroups import Subgroup, SuppressionBurden, measure_burden
from incrowd.privacy.protection import classify_guarantee
from incrowd.release.certificate import SEEDED, Certificate
from incrowd.release.ledger_entries import format_guarantee, format_remaining
from incrowd.release.pages import describe_success

_MOST_WARNINGS = 3


@dataclass(frozen=True)
class Card:
    """A number with its unit, and sentences that can be read aloud after it."""

    number: str
    unit: str
    sentences: list[str]


@dataclass(frozen=True)
class ReleaseSummary:
    """What was published and guaranteed, what was lost, and what to review."""

    published: Card
    guarantee: Card
    loss: Card
    review: Card


def summarize_release(
    certificate: Certificate,
    evaluation: Evaluation,
    *,
    attacked: AttackReport | None = None,
    findings: Sequence[Finding] = (),
    standing: LedgerStatus | None = None,
    unused: int = 0,
) -> ReleaseSummary:
    """Summarize the whole in sentences."""
    return ReleaseSummary(
        _published(certificate, evaluation, unused),
        _guarantee(certificate),
        _loss(certificate, evaluation),
        _review(certificate, evaluation, attacked, findings, standing),
    )


def _published(certificate: Certificate, evaluation: Evaluation, unused: int) -> Card:
    tables = certificate.tables
    rows = sum(table.release.rows for table in tables)
    groups = sum(table.release.classes for table in tables)
    names = dict.fromkeys(name for table in tables for name in table.scheme)
    columns = [*names, *certificate.kept, *certificate.noisy]
    by_person = certificate.guarantee.unit == "one person"
    source = f"a table of {evaluation.rows_original:,} rows"
    most = certificate.rows_per_person
    if most > 1:
        source = f"{evaluation.rows_original:,} rows, up to {most} of each person"
        if certificate.links is not None:
            source = f"the {evaluation.rows_original:,} used people of all households"
        elif certificate.has_noisy_counts:
            source = f"{evaluation.rows_original:,} pairs of a person and a group"
        if certificate.rows_per_group > 1:
            source = f"{evaluation.rows_original:,} used rows, up to {most} of each person"
    elif by_person:
        source = f"one row of each of {evaluation.rows_original:,} people"
    words = [
        f"{groups:,} group{'' if groups == 1 else 's'}, made from {source}.",
        f"Columns: {_list_names(columns)}.",
    ]
    if most > 1:
        words.append(
            f"Up to {most} rows of each person were used, chosen at random; {unused:,} rows of the "
            f"table were not used. {_describe_counting(certificate)}"
        )
    elif by_person:
        words.append(
            f"The row of each person was chosen at random; {unused:,} of the table's "
            f"{evaluation.rows_original + unused:,} rows were not used."
        )
    if certificate.links is not None:
        words.append(_describe_whole_households(certificate))
    elif certificate.has_noisy_counts:
        words.append(
            f"Noisy counts of {certificate.counted_unit} by group; no row is a record of a person."
        )
    elif certificate.method == "safe":
        words.append("A random sample of the rows, generalized.")
    else:
        words.append("Rows of the table, generalized.")
    files = "" if len(tables) == 1 else f" in {len(tables)} files"
    return Card(f"{rows:,}", f"row{'' if rows == 1 else 's'} published{files}", words)


def _describe_whole_households(certificate: Certificate) -> str:
    """Return what linked files show of households."""
    assert certificate.links is not None
    draw = "noisy counts" if certificate.has_noisy_counts else "a sample"
    return (
        f"Households are published whole, with their people: {draw} of "
        f"{certificate.tables[0].release.rows:,} households of {certificate.links.types:,} types. "
        "A type is all labels of a household and its people; a key links the files."
    )


def _describe_counting(certificate: Certificate) -> str:
    """Return how the rows of a person count in a group."""
    if certificate.links is not None:
        return "A household counts once, with all of its used people."
    if not certificate.has_noisy_counts:
        return "k counts people."
    if certificate.rows_per_group > 1:
        return f"Up to {certificate.rows_per_group} of them count in each group; k counts people."
    return "A person counts once in each group."


def _guarantee(certificate: Certificate) -> Card:
    card, k = certificate.guarantee, certificate.k
    if certificate.rehearsal:
        words = "The table was generated from the spec. Nothing is guaranteed."
        return Card("None", "dry run", [words])
    if certificate.randomness == SEEDED:
        words = "The random numbers came from a seed. Nothing is guaranteed."
        return Card("None", "not private", [words])
    if card.epsilon is None or card.delta is None:
        words = f"In the generalized columns, each row is identical to at least {k - 1} others."
        noise = [_describe_noise(certificate)] if certificate.noisy else []
        return Card(f"k = {k}", card.kind, [words, *noise, "This is not differential privacy."])
    who = "person" if card.unit == "one person" else "row"
    of = " of the population from which the table was sampled" if certificate.is_sampled else ""
    sentences = [
        classify_guarantee(card.epsilon, card.delta).text,
        describe_success(certificate),
    ]
    if certificate.has_noisy_counts:
        each = ", each of a different person" if who == "person" and k > 1 else ""
        what = f"{k} {'row' if k == 1 else 'rows'} of the table{each}"
        if certificate.rows_per_person > 1:
            what = f"{k} {'person' if k == 1 else 'different people'} of the table"
        subject = "every published group has at least"
        if certificate.links is not None:
            subject, what = "every published household agrees with at least", f"{k} of the table"
        sentences.append(f"k = {k}: {subject} {what}.")
    return Card(
        f"ε = {card.epsilon:g}, δ = {card.delta:g}",
        f"differential privacy of one {who}{of}",
        sentences,
    )


def _describe_noise(certificate: Certificate) -> str:
    """Describe which columns have noise, and how much: by epsilon, and delta if there is one."""
    parameters = certificate.parameters
    signs = {"epsilon": "ε", "delta": "δ"}
    much = [f"{signs[name]} = {parameters[name]:g}" for name in signs if name in parameters]
    words = f"Random noise in {_list_names(list(certificate.noisy))}"
    return f"{words} with {' and '.join(much)}." if much else f"{words}."


def _loss(certificate: Certificate, evaluation: Evaluation) -> Card:
    if not evaluation.rows_released:
        return Card("100 %", "of the rows suppressed", ["Every group was suppressed."])
    words = [] if evaluation.slices else _missing_words(certificate, evaluation)
    words += _lost_words(evaluation)
    if evaluation.utility is not None:
        scale = AT_LEVELS if evaluation.risk is None else BY_VALUE
        words.append(
            "Share of rows in a random range: median relative error "
            f"{format_percent(evaluation.utility.query_error)} {scale}. Associations of columns "
            f"(Cramér's V): mean error {evaluation.utility.association_error:.3f} {scale}."
        )
    which = "generalized" if certificate.kept or certificate.noisy else "all"
    words.append(
        f"Information loss over {which} columns and all rows: {format_percent(evaluation.loss)}. "
        "It would be 100 % if nothing were published."
    )
    if evaluation.slices:
        together = sum(pair.slice is not None for pair in evaluation.associations)
        pairs = f"{together} of {len(evaluation.associations)} pairs of columns occur in one file."
        error = f"{evaluation.association_error:.3f}"
        return Card(error, "mean error of associations (Cramér's V)", [pairs, *words])
    is_sample = certificate.method == "safe" and not certificate.has_noisy_counts
    unit = (
        "missing"
        if certificate.has_noisy_counts
        else "not drawn or suppressed"
        if is_sample
        else ("suppressed")
    )
    share = format_percent(evaluation.suppressed / max(evaluation.rows_original, 1))
    return Card(share, f"of the rows {unit}", words)


def _lost_words(evaluation: Evaluation) -> list[str]:
    """Describe which values lost most, and which columns are suppressed; the rest is below."""
    lost, words = evaluation.lost, []
    if lost.values:
        number = len(lost.values) + lost.more_values
        verb = "value lost" if number == 1 else "values lost"
        words.append(
            f"{number:,} {verb} far more rows than the others, most of all "
            f"{lost.values[0].description}. See Suppression."
        )
    if lost.nothing_shown:
        words.append(f"Suppressed columns: {_list_names(lost.nothing_shown)}.")
    return words


def _missing_words(certificate: Certificate, evaluation: Evaluation) -> list[str]:
    rows = f"{evaluation.suppressed:,} of {evaluation.rows_original:,} rows"
    if certificate.has_noisy_counts:
        surplus = f"noise added {evaluation.surplus:,} surplus rows"
        return [f"{rows} are missing because of suppression or noise; {surplus}."]
    if certificate.method == "safe":
        return [f"{rows} were not drawn, or their group was suppressed."]
    return [f"{rows} were suppressed."]


def _review(
    certificate: Certificate,
    evaluation: Evaluation,
    attacked: AttackReport | None,
    findings: Sequence[Finding],
    standing: LedgerStatus | None,
) -> Card:
    number, unit = f"{len(findings)}", f"warning{'' if len(findings) == 1 else 's'}"
    words = []
    if certificate.randomness == SEEDED:
        words.append("Not private: the random numbers came from a seed.")
    if certificate.guarantee.epsilon is None:
        words.append(
            "An attacker who knows more than the generalized columns may distinguish people."
        )
    if attacked is not None and attacked.estimates:
        hit = [estimate for estimate in attacked.estimates if estimate.succeeds]
        number = f"{len(hit)} of {len(attacked.estimates)}"
        unit = "quick attacks beat guessing"
        words += [f"Better than guessing: {_format_hits(hit)}."] if hit else []
    if (
        text := describe_burden(measure_burden(evaluation.subgroups))
        if not evaluation.slices
        else _describe_slice_burden(certificate, evaluation)
    ):
        words.append(text)
    if standing is not None:
        words.append(
            f"Privacy budget: (ε, δ) = {format_guarantee(standing.total)} is booked, "
            f"{format_remaining(standing.remaining_budget)} is left."
        )
    few = list(findings)[:_MOST_WARNINGS]
    words += [_shorten_message(finding.message) for finding in few]
    if len(findings) > len(few):
        words.append(f"{len(findings) - len(few)} more warnings are below.")
    return Card(number, unit, words)


def _describe_slice_burden(certificate: Certificate, evaluation: Evaluation) -> str:
    """Return on whom suppression falls in slices; nothing where nobody knows."""
    slice_burden = [
        (table.release.file, burden)
        for table, part in zip(certificate.tables, evaluation.slices, strict=True)
        if (burden := measure_burden(part.subgroups)) is not None
    ]
    uneven = [(file, burden) for file, burden in slice_burden if burden.is_uneven]
    if not uneven:
        even = "In no file does suppression affect small groups more than large groups."
        return even if slice_burden else ""
    file, worst = max(uneven, key=lambda pair: pair[1].small or 0.0)
    return (
        f"In {len(uneven)} of {len(slice_burden)} files, most in {file}: {describe_burden(worst)}"
    )


def _format_hits(estimates: Sequence[Estimate]) -> str:
    parts = []
    for estimate in estimates:
        allowed = estimate.bound is not None and estimate.success.low <= estimate.bound
        within = ", within the theoretical bound" if allowed else ""
        success, guess = (format_percent(x.value) for x in (estimate.success, estimate.guess))
        parts.append(f"{estimate.attack} ({success}, guessing {guess}{within})")
    return "; ".join(parts)


def describe_burden(burden: SuppressionBurden | None) -> str:
    """Return on whom suppression falls, in a plain sentence; nothing where nobody knows."""
    if burden is None:
        return ""
    if not burden.worst:
        return "No group was suppressed."
    hit = (
        f" Most affected: {name_group(burden.worst)}, {format_percent(burden.worst.share or 0)} of "
        f"{burden.worst.rows:,} rows; overall {format_percent(burden.overall)}."
    )
    if burden.small is None:
        return f"No group is small (less than 10 % of the rows).{hit}"
    sizes = (
        f"{format_percent(burden.small)} of the rows of small groups (less than 10 % of the "
        "table) are "
        f"suppressed, and {format_percent(burden.large or 0)} of the rows of large groups."
    )
    if burden.is_uneven:
        return f"Suppression affects small groups more: {sizes}{hit}"
    return f"Suppression does not affect small groups more: {sizes}{hit}"


def name_group(group: Subgroup) -> str:
    """Return a group by its column and its label."""
    return f"{group.column} {'null' if group.label is None else group.label}"


def _list_names(names: Sequence[str], most: int = 8) -> str:
    rest = len(names) - most
    listed = names if rest <= 1 else names[:most]
    return ", ".join(listed) + (f" and {rest} more" if rest > 1 else "")


def _shorten_message(text: str) -> str:
    """Return as much of a message as fits a summary."""
    return text if len(text) <= 240 else f"{text[:239]}…"
