"""What a certificate guarantees, in a line, and how much that protects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.cli.protection import describe_meaning
from incrowd.privacy.presentation import format_parameter
from incrowd.release.parameters import has_wildcards, list_subsets

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate


def describe_guarantee(certificate: Certificate) -> str:
    """Return the guarantee of a certificate, in short."""
    guarantee = certificate.guarantee
    if guarantee.epsilon is None or guarantee.delta is None:
        return f"{_describe_anonymity(certificate)}, which is NOT differential privacy."
    epsilon, delta = (
        format_parameter("epsilon", guarantee.epsilon, 4),
        format_parameter("delta", guarantee.delta, 3),
    )
    both = certificate.has_noisy_counts and certificate.k > 1
    also = f" and {certificate.k}-anonymity" if both else ""
    return f"({epsilon}, {delta})-differential privacy{also}."


def _describe_anonymity(certificate: Certificate) -> str:
    if certificate.guarantee.kind == "k-anonymity":
        return f"{certificate.k}-anonymity"
    if has_wildcards(certificate.parameters):
        subsets = list_subsets(certificate.parameters).items()
        parts = [f"k = {certificate.k}", *(f"any {n} columns {least}" for n, least in subsets)]
        return f"{certificate.guarantee.kind} ({', '.join(parts)})"
    parts = [f"k = {certificate.k}"]
    for name, symbol in (("epsilon", "ε"), ("delta", "δ")):
        value = certificate.parameters.get(name)
        parts += [f"{symbol} = {value:g}"] if isinstance(value, float) else []
    return f"{certificate.guarantee.kind.replace('epsilon', ' ε')} with {', '.join(parts)}"


def describe_unit(certificate: Certificate) -> str:
    """Return what is protected: a row, or a person."""
    of = " of the population from which the table was sampled" if certificate.is_sampled else ""
    if certificate.guarantee.unit == "one row":
        return f"one row{of}, not all rows of a person together"
    guarantee = certificate.guarantee
    if guarantee.period is not None:
        length = "period" if guarantee.period == "value" else guarantee.period
        of = f" within one {length} ({guarantee.part}){of}"
    rows = certificate.rows_per_person
    unit = guarantee.protects or "person"
    used = f"one row of each {unit} is used" if rows == 1 else f"up to {rows} rows of each are used"
    if certificate.rows_per_group > 1:
        used += f", up to {certificate.rows_per_group} of them in a group"
    return f"one {unit}{of}; {used}"


def describe_protection(certificate: Certificate) -> str:
    """Return how much a release protects; empty where nothing is guaranteed."""
    from incrowd.release.pages import describe_protected_people

    guarantee = certificate.guarantee
    if not certificate.is_private:
        return ""
    return describe_meaning(
        guarantee.epsilon, guarantee.delta, describe_protected_people(certificate)
    )


def format_strength(certificate: Certificate) -> str:
    """Return how much a release protects, in words; empty where nothing can be said."""
    from incrowd.release.pages import describe_strength, describe_success

    strength = describe_strength(certificate)
    return "" if strength is None else f"{strength.text} {describe_success(certificate)}"


def is_reassuring(certificate: Certificate) -> bool:
    """Return whether a guarantee may be shown in the color of success."""
    from incrowd.release.pages import describe_strength

    strength = describe_strength(certificate)
    return strength is not None and not strength.is_warning
