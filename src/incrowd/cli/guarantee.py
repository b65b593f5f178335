"""What a certificate guarantees, in a line, and how much that protects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.cli.terminal import console
from incrowd.privacy.rounded import rounded

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate


def promise(certificate: Certificate) -> str:
    """The guarantee of a certificate, in short."""
    known = certificate.guarantee
    if known.epsilon is None or known.delta is None:
        epsilon_ = certificate.parameters.get("epsilon")
        delta_ = certificate.parameters.get("delta")
        noise = f" and epsilon = {epsilon_:g}" if isinstance(epsilon_, float) else ""
        noise += f", delta = {delta_:g}" if isinstance(delta_, float) else ""
        return f"{known.kind} with k = {certificate.k}{noise}, which is NOT differential privacy."
    epsilon, delta = rounded("epsilon", known.epsilon, 4), rounded("delta", known.delta, 3)
    both = certificate.by_counts and certificate.k > 1
    also = f" and k-anonymity with k = {certificate.k}" if both else ""
    return f"({epsilon}, {delta})-differential privacy{also}."


def describe_unit(certificate: Certificate) -> str:
    """Say whether a row or a person is protected."""
    of = " of the population from which the table was sampled" if certificate.sampled else ""
    if certificate.guarantee.unit == "one row":
        return f"Protected: one row{of}. A person with several rows is not protected as a whole."
    return f"Protected: one person{of}, of whom one row was used."


def print_strength(epsilon: float | None, delta: float | None, members: str = "") -> None:
    """Print how much a guarantee protects, in the color of a warning where that is little."""
    from incrowd.privacy.protection import classify_guarantee, describe_attacker

    if epsilon is None or delta is None:
        return
    strength = classify_guarantee(epsilon, delta)
    success = describe_attacker(epsilon, delta, members=members) if members else ""
    style = "bold red" if strength.is_warning else None
    text = f"{strength.text} {success}".strip()
    console().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_protection(certificate: Certificate) -> None:
    """Print how much a release protects; nothing where nothing is guaranteed."""
    from incrowd.release.pages import protected_people

    known = certificate.guarantee
    if certificate.is_private:
        print_strength(known.epsilon, known.delta, protected_people(certificate))


def strength_text(certificate: Certificate) -> str:
    """Return how much a release protects, in words; empty where nothing can be said."""
    from incrowd.release.pages import describe_strength, describe_success

    strength = describe_strength(certificate)
    return "" if strength is None else f"{strength.text} {describe_success(certificate)}"


def is_reassuring(certificate: Certificate) -> bool:
    """Return whether a guarantee may be shown in the color of success."""
    from incrowd.release.pages import describe_strength

    strength = describe_strength(certificate)
    return strength is not None and not strength.is_warning
