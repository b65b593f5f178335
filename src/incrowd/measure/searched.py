"""How good the scheme of a search is: the best of all, or by how much it may miss that."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Searched:
    """What a search for the scheme of least loss has found.

    The scheme loses ``loss``, by the measure named; no scheme that was allowed loses less than
    ``least``. It is the ``optimum`` where the two are one, as whenever the search came to its end.
    """

    measure: str
    loss: float
    least: float
    optimum: bool
    schemes: int
    looked_at: int

    @property
    def words(self) -> str:
        """The same in a sentence, rounded to the safe side."""
        if self.optimum:
            return f"No other of {self.schemes:,} schemes has a smaller loss ({self.measure})."
        loss, least = math.ceil(1e4 * self.loss) / 1e4, math.floor(1e4 * self.least) / 1e4
        return (
            f"The search was stopped before its end, after {self.looked_at:,} of {self.schemes:,} "
            f"schemes, and there may be a better one. The loss ({self.measure}) is {loss:.4f}; no "
            f"scheme has less than {max(least, 0.0):.4f}. More 'search_seconds' tell more, and so "
            "do narrower 'levels'."
        )
