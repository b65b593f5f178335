"""The sentences of a statement on the noise of counts, from the parameters of a table."""

from __future__ import annotations

from incrowd.findings import format_percent
from incrowd.privacy.draw_parameters import (
    ROWS_PER_GROUP,
    SERIES,
    build_noise_spread,
    get_threshold,
    make_series_event,
)
from incrowd.privacy.events import SERIES_GRID
from incrowd.privacy.series import compute_total_error, list_noise_weights
from incrowd.release.parameters import Parameters

_SHARE = 0.95


def format_exact(value: float | str | None) -> str:
    """Return a number with all its digits, without a decimal point where it is whole.

    >>> format_exact(1.0), format_exact(1e-06), format_exact(0.95)
    ('1', '1e-06', '0.95')
    """
    return repr(value).removesuffix(".0")


def describe_noise(parameters: Parameters) -> str:
    """Return what noise counts carry, and which groups are suppressed."""
    r, threshold = int(parameters["r"]), get_threshold(parameters)
    if parameters["noise"] == SERIES:
        return (
            f"Counts carry the noise of release {int(parameters['series_number'])} of a series of "
            f"{int(parameters['series_of'])}, at most ±{r} (standard deviation "
            f"{_spread(parameters)}). Groups with a noisy count below {threshold} are suppressed."
        )
    kind = "two-sided geometric" if parameters["noise"] == "geometric" else "discrete Gaussian"
    return (
        f"Counts carry {kind} noise, truncated at ±{r} (standard deviation {_spread(parameters)}). "
        f"Groups with a noisy count below {threshold} are suppressed."
    )


def _spread(parameters: Parameters) -> str:
    return f"{build_noise_spread(parameters).variance ** 0.5:.3g}"


def describe_accuracy(parameters: Parameters) -> str:
    """Return how large the noise of a group is, and where published counts are biased."""
    return (
        f"The noise of each group, published or not, is within ±{noise_within(parameters)} with a "
        f"probability of at least {format_percent(_SHARE)}. Published counts near the threshold of "
        f"{get_threshold(parameters)} are biased upward, because groups with "
        "negative noise are suppressed there."
    )


def noise_within(parameters: Parameters) -> int:
    """Return the number that the noise of a group stays within with probability 0.95."""
    return build_noise_spread(parameters).find_error_bound(_SHARE)


def describe_law(parameters: Parameters) -> str:
    """Return the distribution of the noise of a group."""
    r = int(parameters["r"])
    if parameters["noise"] == SERIES:
        return _describe_series_law(parameters)
    law = (
        f"e^(−s |x|) with s = {format_exact(parameters['noise_epsilon'])}"
        if parameters["noise"] == "geometric"
        else f"e^(−x² / (2 v)) with v = {format_exact(parameters['noise_variance'])}"
    )
    return (
        f"The noise of a group is x with a probability proportional to {law}, for whole numbers x "
        f"from −r to r = {r}. {_explain_threshold(parameters)}"
    )


def _explain_threshold(parameters: Parameters) -> str:
    """Return how the threshold follows from r and k."""
    r, k, per_group = (int(parameters.get(name, 1)) for name in ("r", "k", ROWS_PER_GROUP))
    if per_group == 1:
        return f"The threshold is r + k = {r} + {k}."
    return (
        f"The threshold is r + c (k − 1) + 1 = {r} + {per_group * (k - 1)} + 1 with c = "
        f"{per_group}, the rows of one person that count in a group: fewer than k people do not "
        "reach it."
    )


def _describe_series_law(parameters: Parameters) -> str:
    event, number = make_series_event(parameters), int(parameters["series_number"])
    weights = ", ".join(str(weight) for weight in list_noise_weights(event.of)[:number])
    grid = event.grid_event
    return (
        "The noise of a group is the sum of basic noises of this release and of each one before, "
        f"backwards, with the weights {weights}, rounded. A basic noise is x / {SERIES_GRID} with "
        "a probability proportional to e^(−x² / (2 v)), v = "
        f"{format_exact(grid.variance)}, for whole numbers x from −{grid.r} to {grid.r}. "
        f"{_explain_threshold(parameters)}"
    )


def describe_series(parameters: Parameters) -> str:
    """Return what the releases of a series guarantee together, and how far off their sum is."""
    event = make_series_event(parameters)
    error = compute_total_error(event, range(1, event.of + 1))
    return (
        f"It is release {int(parameters['series_number'])} of a series of {event.of}, one for each "
        f"period, whose noise was planned together. All {event.of} releases together satisfy the "
        "same (ε, δ) for a person within one period. The sum of a group's counts over all of them "
        f"has a standard error of {error.spread:.3g}; the noise of one release is partly undone by "
        "those that follow."
    )


def describe_coin(parameters: Parameters) -> str:
    """Return how the bound of the noise was drawn."""
    bound = int(parameters["coin_r"])
    return (
        f"The bound r was drawn at random, independently of the input: {bound - 1} with "
        f"probability {parameters['coin']!r}, otherwise {bound}. ε and δ account for both cases, "
        "with these probabilities."
    )


def describe_sums(parameters: Parameters) -> str:
    """Return how accurate sums of counts are."""
    return (
        "The noise of different groups is independent: a sum over c groups far above the threshold "
        f"has a standard error of {_spread(parameters)} × √c. Suppressed groups are missing from "
        "sums."
    )
