"""How well an attack does: the share of its tries that succeed, beside what needs no release.

The interval of Clopper and Pearson holds its confidence whatever the true share is: ``low`` is the
share at which so many hits, or more, would have half the error's chance, ``high`` the same for so
many or fewer.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from incrowd.arrays import Floats
from incrowd.errors import ParameterError, check_fraction

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """A success rate with its confidence interval.

    Attributes:
        hits: Number of successes.
        tries: Number of tries.
        value: Their ratio.
        low: Lower end of the interval.
        high: Upper end of the interval.

    Examples:
        >>> Rate.from_hits(3, 100)
        Rate(hits=3, tries=100, value=0.03, low=0.00623, high=0.0852)
        >>> Rate.from_hits(0, 0)
        Rate(hits=0, tries=0, value=0, low=0, high=1)
    """

    hits: int
    tries: int
    value: float
    low: float
    high: float

    @classmethod
    def from_hits(cls, hits: int, tries: int, confidence: float = CONFIDENCE) -> Rate:
        """Return the share of hits, with its interval."""
        low, high = compute_interval(hits, tries, confidence)
        return cls(hits, tries, hits / tries if tries else 0.0, low, high)

    @classmethod
    def from_value(cls, value: float) -> Rate:
        """Return a share that is computed and not estimated: its interval is itself."""
        return cls(0, 0, value, value, value)

    @classmethod
    def from_chances(
        cls, chances: Floats, rng: np.random.Generator, confidence: float = CONFIDENCE
    ) -> Rate:
        """Return the rate of tries with given chances each, decided by a draw of each.

        So the tries are what they would be in the world, and the interval holds.
        """
        hits = int((rng.random(len(chances)) < chances).sum())
        return cls.from_hits(hits, len(chances), confidence)

    def __repr__(self) -> str:
        return (
            f"Rate(hits={self.hits}, tries={self.tries}, value={self.value:.4g}, "
            f"low={self.low:.3g}, high={self.high:.3g})"
        )


def compute_interval(hits: int, tries: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson; from 0 to 1 where nothing was tried."""
    check_fraction("confidence", confidence)
    if not 0 <= hits <= tries:
        raise ParameterError("hits", f"be from 0 to the tries ({tries})", hits)
    error = (1 - confidence) / 2
    low = _solve_share(hits, tries, error) if hits else 0.0
    high = 1 - _solve_share(tries - hits, tries, error) if hits < tries else 1.0
    return low, high


def _solve_share(hits: int, tries: int, chance: float) -> float:
    """Return the share p at which so many hits, or more, have a chance.

    Newton's method in ln p, in which the logarithm of the chance is concave: after one step it
    comes nearer from below. Hits x have a chance f(x), with f(x + 1) = f(x) p (n - x) / (1 - p)
    (x + 1). (SciPy has it, but takes longer to load than a small release takes.)
    """
    odds = math.log(hits / tries)
    for _ in range(100):
        share = math.exp(odds)
        if share >= 1:  # all hits: f is p**n
            odds = math.log(chance) / tries
            continue
        term = at = math.exp(
            math.lgamma(tries + 1) - math.lgamma(hits + 1) - math.lgamma(tries - hits + 1)
            + hits * odds + (tries - hits) * math.log1p(-share)
        )  # fmt: skip
        total, ratio = 0.0, share / (1 - share)
        for count in range(hits, tries + 1):
            total += term
            term *= ratio * (tries - count) / (count + 1)
            if term < 1e-18 * total:
                break
        step = math.log(total / chance) * total / (hits * at)
        odds -= step
        if abs(step) < 1e-14:
            break
    return math.exp(odds)


@dataclass(frozen=True)
class Estimate:
    """One attack: its success, beside guessing and beside people who are not in the table.

    Attributes:
        attack: The kind of attack.
        name: The form of the attack.
        knows: What the attacker knows.
        success: Success rate on people of the table.
        guess: Success rate without the release.
        control: Success rate of the same attack on people who are not in the table.
        says: What counts as a success.
        bound: The largest success rate that the guarantee allows; None without a guarantee.
        details: Further figures of this attack.
    """

    attack: str
    name: str
    knows: str
    success: Rate
    guess: Rate
    control: Rate | None = None
    says: str = ""
    bound: float | None = None
    details: dict[str, float | str] = field(default_factory=dict)

    @property
    def baseline(self) -> Rate:
        """The success without the release, by the better of guessing and the control group."""
        if self.control is None or self.control.value < self.guess.value:
            return self.guess
        return self.control

    @property
    def excess(self) -> tuple[float, float, float]:
        """The share of people hit who would not have been hit without the release.

        This is ``(success - rest) / (1 - rest)``, at least 0. Its ends are those at which both
        intervals are worst, so its confidence is at least that of both together.
        """
        baselines = [self.guess] if self.control is None else [self.guess, self.control]
        return (
            _compute_residual(self.success.value, max(baseline.value for baseline in baselines)),
            _compute_residual(self.success.low, max(baseline.high for baseline in baselines)),
            _compute_residual(self.success.high, max(baseline.low for baseline in baselines)),
        )

    @property
    def succeeds(self) -> bool:
        """Whether its interval lies above the intervals of guessing and of the control group."""
        baselines = [self.guess] if self.control is None else [self.guess, self.control]
        return self.success.low > max(baseline.high for baseline in baselines)

    @property
    def verdict(self) -> str:
        """The advantage that the release gives this attacker, in words."""
        if not self.succeeds:
            return "none detected"
        people = "people who were safe without it"
        if self.control is None:
            people = "people whom guessing would not find"
        words = f"finds {_format_share(self.excess[0])} {people}"
        is_within_bound = self.bound is not None and self.success.low <= self.bound
        return f"{words}, within the theoretical bound" if is_within_bound else words


@dataclass(frozen=True)
class AttackReport:
    """The attacks tried against a release, and those not tried with the reason.

    Attributes:
        estimates: One estimate per attack.
        people: Number of people of the table who were attacked.
        control: Number of attacked people who are not in the table.
        notes: Attacks that could not be tried, and why.
    """

    estimates: tuple[Estimate, ...]
    people: int
    control: int
    notes: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule by which a gain is detected, in a sentence."""
        if not self.control:
            return "A gain is detected if the interval of success lies above that of guessing."
        return (
            "A gain is detected if the interval of success lies above those of guessing and of the "
            "control group."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the attacks as plain values, for JSON."""
        return {
            "people": self.people,
            "control": self.control,
            "attacks": [
                {
                    **asdict(estimate),
                    "excess": dict(zip(("value", "low", "high"), estimate.excess, strict=True)),
                    "succeeds": estimate.succeeds,
                }
                for estimate in self.estimates
            ],
            "notes": list(self.notes),
        }


def _format_share(share: float) -> str:
    """Return a share as a number of people.

    >>> _format_share(0.468), _format_share(0.0021), _format_share(0.00001)
    ('47 of 100', '2 of 1,000', '1 of 100,000')
    """
    of = 100
    while share * of < 1 and of < 1_000_000:
        of *= 10
    return f"{share * of:.0f} of {of:,}"


def _compute_residual(success: float, baseline: float) -> float:
    return max(0.0, (success - baseline) / (1 - baseline)) if baseline < 1 else 0.0
