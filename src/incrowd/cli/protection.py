"""How much an ε and a δ protect, as the terminal says it."""

from __future__ import annotations

from incrowd.cli.terminal import make_console
from incrowd.privacy.protection import classify_guarantee, describe_attacker


def describe_meaning(epsilon: float | None, delta: float | None, members: str) -> str:
    """Return how much a guarantee protects, and what an attacker can achieve.

    Args:
        epsilon: The ε of the guarantee; None if there is none.
        delta: The δ of the guarantee; None if there is none.
        members: The protected people, as a noun phrase.

    Returns:
        Two sentences; empty without a guarantee, and where :func:`print_weakness` warns.

    """
    if epsilon is None or delta is None:
        return ""
    strength = classify_guarantee(epsilon, delta)
    if strength.is_warning:
        return ""
    return f"{strength.text} {describe_attacker(epsilon, delta, members=members)}"


def print_weakness(epsilon: float | None, delta: float | None) -> None:
    """Print that a guarantee hardly protects, in the color of a warning; else nothing."""
    if epsilon is None or delta is None:
        return
    strength = classify_guarantee(epsilon, delta)
    if strength.is_warning:
        make_console().print(strength.text, style="bold red", markup=False, soft_wrap=True)
