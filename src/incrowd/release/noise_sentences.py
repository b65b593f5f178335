"""The sentences of a statement on the noise of counts, from the parameters of a table."""

from __future__ import annotations

from incrowd.findings import format_percent
from incrowd.privacy.counts import build_event_law
from incrowd.release.parameters import Parameters, make_noise_event

_SHARE = 0.95


def format_exact(value: float | str | None) -> str:
    """Return a number with all its digits, without a decimal point where it is whole.

    >>> format_exact(1.0), format_exact(1e-06), format_exact(0.95)
    ('1', '1e-06', '0.95')
    """
    return repr(value).removesuffix(".0")


def describe_noise(known: Parameters) -> str:
    """Return what noise counts carry, and which groups are suppressed."""
    r, k = int(known["r"]), int(known["k"])
    kind = "two-sided geometric" if known["noise"] == "geometric" else "discrete Gaussian"
    return (
        f"Counts carry {kind} noise, truncated at ±{r} (standard deviation {_spread(known)}). "
        f"Groups with a noisy count below {r + k} are suppressed."
    )


def _spread(known: Parameters) -> str:
    return f"{build_event_law(make_noise_event(known)).variance ** 0.5:.3g}"


def describe_accuracy(known: Parameters) -> str:
    """Return how large the noise of a group is, and where published counts are biased."""
    return (
        f"The noise of each group, published or not, is within ±{noise_within(known)} with a "
        f"probability of at least {format_percent(_SHARE)}. Published counts near the threshold of "
        f"{int(known['r']) + int(known['k'])} are biased upward, because groups with negative "
        "noise are suppressed there."
    )


def noise_within(known: Parameters) -> int:
    """Return the number that the noise of a group stays within with probability 0.95."""
    return build_event_law(make_noise_event(known)).find_error_bound(_SHARE)


def describe_law(known: Parameters) -> str:
    """Return the distribution of the noise of a group."""
    r, k = int(known["r"]), int(known["k"])
    law = (
        f"e^(−s |x|) with s = {format_exact(known['noise_epsilon'])}"
        if known["noise"] == "geometric"
        else f"e^(−x² / (2 v)) with v = {format_exact(known['noise_variance'])}"
    )
    return (
        f"The noise of a group is x with a probability proportional to {law}, for whole numbers x "
        f"from −r to r = {r}. The threshold is r + k = {r} + {k}."
    )


def describe_coin(known: Parameters) -> str:
    """Return how the bound of the noise was drawn."""
    most = int(known["coin_r"])
    return (
        f"The bound r was drawn at random, independently of the input: {most - 1} with probability "
        f"{known['coin']!r}, otherwise {most}. ε and δ account for both cases, with these "
        "probabilities."
    )


def describe_sums(known: Parameters) -> str:
    """Return how accurate sums of counts are."""
    return (
        "The noise of different groups is independent: a sum over c groups far above the threshold "
        f"has a standard error of {_spread(known)} × √c. Suppressed groups are missing from sums."
    )
