"""A release in a few sentences for whoever decides on it: private, as the report is.

Every figure is one of the evaluation, of the attacks, of the certificate or of the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from incrowd.evaluation.report.origin import Standing
from incrowd.findings import Finding
from incrowd.measure.estimate import Attacked, Estimate
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.subgroups import Burden, Subgroup, burden
from incrowd.privacy.protection import classify_guarantee
from incrowd.release.certificate import SEEDED, Certificate
from incrowd.release.entries import write_left, write_pair
from incrowd.release.pages import describe_success

_MOST_WARNINGS = 3


@dataclass(frozen=True)
class Summary:
    """What went out, what is promised, what was lost, what to watch: sentences."""

    went_out: list[str]
    promised: list[str]
    lost: list[str]
    watch: list[str]


def summary(
    certificate: Certificate,
    found: Evaluation,
    *,
    attacked: Attacked | None = None,
    findings: Sequence[Finding] = (),
    standing: Standing | None = None,
    unused: int = 0,
) -> Summary:
    """The whole in sentences."""
    return Summary(
        _went_out(certificate, found, unused),
        _promised(certificate),
        _lost(certificate, found),
        _watch(certificate, found, attacked, findings, standing),
    )


def _went_out(certificate: Certificate, found: Evaluation, unused: int) -> list[str]:
    tables = certificate.tables
    rows = sum(table.release.rows for table in tables)
    what = (
        f"{rows:,} rows" if len(tables) == 1 else f"{len(tables)} files with {rows:,} rows in all"
    )
    names = dict.fromkeys(name for table in tables for name in table.scheme)
    columns = [*names, *certificate.kept, *certificate.noisy]
    by_person = certificate.guarantee.unit == "one person"
    words = [
        f"{what}, from {_source_words(certificate, found)}.",
        f"Columns: {_some(columns)}.",
    ]
    if by_person:
        words.append(
            f"The row of each person was chosen at random; {unused:,} of the table's "
            f"{found.rows_original + unused:,} rows were not used."
        )
    if certificate.by_counts:
        unit = "people" if by_person else "rows"
        words.append(f"Noisy numbers of {unit} by group; no row is a record of a person.")
    elif certificate.method == "safe":
        words.append("A random sample of the rows, made coarser.")
    else:
        words.append("Rows of the table, made coarser until they look alike in groups.")
    return words


def _source_words(certificate: Certificate, found: Evaluation) -> str:
    """What a release was made from: the rows of a table, or one row of each person."""
    if certificate.guarantee.unit == "one person":
        return f"one row of each of {found.rows_original:,} people"
    return f"a table of {found.rows_original:,} rows"


def _promised(certificate: Certificate) -> list[str]:
    known, k = certificate.guarantee, certificate.k
    if certificate.rehearsal:
        return ["Nothing: a rehearsal, with a table that was made up."]
    if certificate.randomness == SEEDED:
        return ["Nothing: the random numbers came from a seed."]
    who = "person" if known.unit == "one person" else "row"
    if known.epsilon is None or known.delta is None:
        words = [
            (
                f"k-anonymity with k = {k}: every row looks like at least {k - 1} others in the "
                "columns that were made coarser."
            )
        ]
        if certificate.noisy:
            words.append(_noise_words(certificate))
        return [*words, "Not differential privacy."]
    of = " of the population from which the table was sampled" if certificate.sampled else ""
    words = [
        (
            f"Differential privacy of one {who}{of}: epsilon = {known.epsilon:g}, delta = "
            f"{known.delta:g}."
        ),
        classify_guarantee(known.epsilon, known.delta).text,
        describe_success(certificate),
    ]
    if certificate.by_counts:
        each = ", each of a different person" if who == "person" and k > 1 else ""
        words.append(f"Every published group has at least {k} rows of the table{each}.")
    return words


def _noise_words(certificate: Certificate) -> str:
    """Which columns have noise, and how much: by epsilon, and delta if there is one."""
    known = certificate.parameters
    much = [f"{name} = {known[name]:g}" for name in ("epsilon", "delta") if name in known]
    words = f"Random noise in {_some(list(certificate.noisy))}"
    return f"{words}, as wide as {' and '.join(much)} asks for." if much else f"{words}."


def _lost(certificate: Certificate, found: Evaluation) -> list[str]:
    if not found.rows_released:
        return ["Everything: nothing survived."]
    words = []
    if found.slices:
        together = sum(pair.slice is not None for pair in found.associations)
        words.append(
            f"{together} of {len(found.associations)} pairs of columns can be seen together; all "
            f"associations are off by {found.association_error:.3f} on average."
        )
    else:
        gone = found.suppressed / max(found.rows_original, 1)
        drawn = certificate.method == "safe" and not certificate.by_counts
        words.append(f"{_pct(gone)} of the rows are {'not drawn or ' if drawn else ''}not shown.")
    words += [finding.message for finding in found.lost.findings()]
    if found.utility is not None:
        words.append(
            f"Shares of rows in random ranges are off by {_pct(found.utility.query_error)} "
            f"(median), associations of columns by {found.utility.association_error:.3f} (mean)."
        )
    which = "generalized" if certificate.kept or certificate.noisy else "all"
    words.append(f"Detail lost over {which} columns and all rows: {_pct(found.loss)}.")
    return words


def _watch(
    certificate: Certificate,
    found: Evaluation,
    attacked: Attacked | None,
    findings: Sequence[Finding],
    standing: Standing | None,
) -> list[str]:
    words = []
    if certificate.randomness == SEEDED:
        words.append("Not private: the random numbers came from a seed.")
    if certificate.guarantee.epsilon is None:
        words.append("Whoever knows more than the coarser columns may tell people apart.")
    if attacked is not None and attacked.estimates:
        hit = [one for one in attacked.estimates if one.succeeds]
        tried = len(attacked.estimates)
        words.append(
            f"{len(hit)} of {tried} quick attacks did better than guessing: {_hits(hit)}."
            if hit
            else f"None of {tried} quick attacks did better than guessing."
        )
    if said := whom(burden(found.subgroups)) if not found.slices else _among(certificate, found):
        words.append(said)
    if standing is not None:
        words.append(
            f"Budget: (ε, δ) = {write_pair(standing.total)} is booked, "
            f"{write_left(standing.left)} is left."
        )
    few = list(findings)[:_MOST_WARNINGS]
    words += [_shorten(finding.message) for finding in few]
    if len(findings) > len(few):
        words.append(f"{len(findings) - len(few)} more warnings are below.")
    return words


def _among(certificate: Certificate, found: Evaluation) -> str:
    """On whom suppression falls in slices; nothing where nobody knows."""
    known = [
        (table.release.file, one)
        for table, own in zip(certificate.tables, found.slices, strict=True)
        if (one := burden(own.subgroups)) is not None
    ]
    uneven = [(file, one) for file, one in known if one.uneven]
    if not uneven:
        return "Suppression falls on small groups more than on others in no file." if known else ""
    file, worst = max(uneven, key=lambda pair: pair[1].small or 0.0)
    return f"In {len(uneven)} of {len(known)} files, most of all {file}: {whom(worst)}"


def _hits(found: Sequence[Estimate]) -> str:
    parts = []
    for one in found:
        allowed = one.bound is not None and one.success.low <= one.bound
        within = ", within the theoretical bound" if allowed else ""
        rates = f"{_pct(one.success.value)}, guessing {_pct(one.guess.value)}"
        parts.append(f"{one.attack} ({rates}{within})")
    return "; ".join(parts)


def whom(found: Burden | None) -> str:
    """On whom suppression falls, in a plain sentence; nothing where nobody knows."""
    if found is None:
        return ""
    if not found.worst:
        return "No group was suppressed."
    hit = (
        f" Hit most: {named(found.worst)}, {_pct(found.worst.share or 0)} of {found.worst.rows:,} "
        f"rows; overall {_pct(found.overall)}."
    )
    if found.small is None:
        return f"No group is small (less than 10 % of the rows).{hit}"
    sizes = (
        f"{_pct(found.small)} of the rows of small groups (less than 10 % of the table) are "
        f"suppressed, {_pct(found.large or 0)} of the others."
    )
    if found.uneven:
        return f"Suppression falls on minorities: {sizes}{hit}"
    return f"Suppression does not fall on small groups more than on others: {sizes}{hit}"


def named(group: Subgroup) -> str:
    """A group by its column and its label."""
    return f"{group.column} {'null' if group.label is None else group.label}"


def _pct(share: float) -> str:
    return f"{100 * share:.1f} %"


def _some(names: Sequence[str], most: int = 8) -> str:
    rest = len(names) - most
    shown = names if rest <= 1 else names[:most]
    return ", ".join(shown) + (f" and {rest} more" if rest > 1 else "")


def _shorten(text: str) -> str:
    """Return as much of a message as fits a summary."""
    return text if len(text) <= 240 else f"{text[:239]}…"
