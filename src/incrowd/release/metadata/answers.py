"""Answers to what registries and regulators ask of a release, each with who answers.

An answer is computed, if it follows from the certificate and from how Incrowd works, or asserted
by the curator. What nobody has answered is "not stated".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from incrowd.codes.household_type import HOUSEHOLD_KEY
from incrowd.privacy.protection import describe_attacker
from incrowd.release.metadata.description import ReleaseDescription
from incrowd.release.noise_sentences import format_exact
from incrowd.release.pages import describe_protected_people, describe_strength

_MECHANISMS = {
    "safe release": "a random sample of rows with a threshold on the size of groups",
    "geometric counts": "truncated two-sided geometric (discrete Laplace) noise on counts of "
    "groups, with a threshold",
    "gaussian counts": "truncated discrete Gaussian noise on counts of groups, with a threshold",
    "selection": "report noisy max with one-sided geometric noise",
    "bounded choice": "the exponential mechanism",
    "gaussian measurements": "discrete Gaussian noise on tables of counts",
    "mechanism": "a mechanism of stated ε and δ",
}
IMPLEMENTATION = "Incrowd {version} (Python library, command line and local web app; Apache-2.0)."
FLOATING_POINT = (
    "Noise and samples are drawn exactly, in whole numbers, from random bits; no floating-point "
    "number is added to a value. Reported ε and δ are rounded up."
)
SIDE_CHANNELS = (
    "The release is not interactive: a recipient sees finished files and cannot time a query. Rows "
    "are sorted by their published values; the files hold no statistics, indexes or other metadata "
    "of the rows."
)
RANDOM_BITS = (
    "Random bits are the key stream of AES-256 in counter mode under a key of the operating system."
)
SEEDED_BITS = "Random numbers came from a seed, for tests: this release is NOT private."
CHECKS = (
    "Anyone can recompute ε and δ from the events in the certificate, and check every file of the "
    "release against it: incrowd verify."
)
COMPOSITION = (
    "ε and δ hold for all files of the release together: its mechanisms are composed by their "
    "privacy loss distributions, rounded up."
)
NO_INTERACTION = (
    "Recipients get files; they cannot query the original table. All noise is in the files."
)


def list_mechanisms(release: ReleaseDescription) -> list[str]:
    """Return the mechanisms that the events of the certificate name."""
    kinds = dict.fromkeys(_iterate_kinds(release.certificate.events))
    return [_MECHANISMS.get(kind, kind) for kind in kinds if kind not in _COMPOUND]


_COMPOUND = ("composition", "one of", "sampled", "coin")


def _iterate_kinds(events: object) -> Iterator[str]:
    """Yield the kinds of events, and of the events within them."""
    if isinstance(events, list):
        for event in events:
            yield from _iterate_kinds(event)
    elif isinstance(events, dict):
        yield str(events.get("kind", ""))
        for part in ("events", "event", "first", "second"):
            yield from _iterate_kinds(events.get(part))


def describe_guarantee(release: ReleaseDescription) -> str:
    """Return the guarantee in one sentence."""
    guarantee = release.certificate.guarantee
    if guarantee.epsilon is None:
        return f"{guarantee.kind}; not differential privacy"
    return (
        f"{guarantee.kind} with ε = {format_exact(guarantee.epsilon)} and "
        f"δ = {format_exact(guarantee.delta)}; unit: {guarantee.unit}"
    )


def describe_meaning(release: ReleaseDescription) -> str:
    """Return what an attacker can achieve at most; empty where nothing bounds it."""
    certificate = release.certificate
    guarantee = certificate.guarantee
    strength = describe_strength(certificate)
    if strength is None or guarantee.epsilon is None or guarantee.delta is None:
        return ""
    attacker = describe_attacker(
        guarantee.epsilon, guarantee.delta, members=describe_protected_people(certificate)
    )
    return f"{strength.text} {attacker}"


def describe_random_bits(release: ReleaseDescription) -> str:
    """Return where the random bits came from."""
    return RANDOM_BITS if release.certificate.randomness == "system" else SEEDED_BITS


def describe_composition(release: ReleaseDescription) -> str:
    """Return how the parts of the release compose, and what the ledger says of others."""
    return f"{COMPOSITION} {describe_ledger(release)}"


def describe_ledger(release: ReleaseDescription) -> str:
    """Return the total of the ledger after the release; the curator asserts it."""
    ledger = release.ledger
    if ledger is None:
        return "No ledger is stated: other releases of the same table are not accounted for."
    times = "1 release" if ledger.releases == 1 else f"{ledger.releases} releases"
    return (
        f"Ledger after this release, as the curator asserts: {times} of the table, in total "
        f"ε = {format_exact(ledger.epsilon)} and δ = {format_exact(ledger.delta)} of a budget of "
        f"ε = {format_exact(ledger.budget_epsilon)} and δ = {format_exact(ledger.budget_delta)}."
    )


def list_unprotected(release: ReleaseDescription) -> list[str]:
    """Return what the release publishes without protection, and what it takes for public."""
    certificate = release.certificate
    listed = list(certificate.guarantee.unprotected)
    parameters = [certificate.parameters, *(table.parameters for table in certificate.tables)]
    sizes = {values["size"] for values in parameters if "size" in values}
    listed += [
        f"the table size of {format_exact(size)}, which the curator asserts to be public"
        for size in sorted(sizes, key=str)
    ]
    return listed


def list_limits(release: ReleaseDescription) -> list[str]:
    """Return what a user of the data must know of their limits."""
    certificate = release.certificate
    limits = []
    if certificate.synthetic is not None:
        limits.append(
            "Rows are synthetic. Relations that no measured table holds are not reproduced; take "
            "counts with their errors from the measured tables."
        )
    elif certificate.tabulation is not None:
        limits.append(
            "Counts carry noise: use the estimates with their standard deviations and intervals. "
            "Whole counts that add up are less exact than the estimates."
        )
    elif certificate.method == "safe":
        limits.append(
            "Rare groups are suppressed: a missing group need not be empty, and small populations "
            "are underrepresented."
        )
        limits.append("Counts of groups are not exact; the statement gives their error.")
    else:
        limits.append("Generalized columns are coarser than the original, and rows are suppressed.")
        limits.append("Nothing is guaranteed about what several releases together reveal.")
    if certificate.links is not None:
        limits.append(
            f"Join the files by {HOUSEHOLD_KEY} alone. Large and unusual households are missing "
            "most."
        )
    elif len(release.files) > 1 and certificate.tabulation is None:
        limits.append("The files hold different columns of one table and must not be joined.")
    if certificate.guarantee.unit == "one row":
        limits.append("The unit is a row: for a person with several rows the guarantee is weaker.")
    if certificate.rehearsal:
        limits.append("This is a dry run: the table was generated and describes no real person.")
    return limits


def list_domains(release: ReleaseDescription) -> dict[str, Any]:
    """Return the declared content of each published column."""
    return {column.name: column.content for file in release.files for column in file.columns}
