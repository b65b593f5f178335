"""How good the scheme of a search is: the best of all, or by how much it may miss that."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.findings import Finding, make_finding


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
        """That the scheme is the best, in a sentence; nothing where it may not be."""
        if not self.optimum:
            return ""
        return f"optimal: no other of {self.schemes:,} schemes has a smaller {self.measure} loss"

    def findings(self) -> tuple[Finding, ...]:
        """Return that the search was stopped, if it was; figures rounded to the safe side."""
        if self.optimum:
            return ()
        finding = make_finding(
            "SEARCH_STOPPED", looked_at=self.looked_at, schemes=self.schemes, measure=self.measure,
            loss=math.ceil(1e4 * self.loss) / 1e4,
            least=max(math.floor(1e4 * self.least) / 1e4, 0.0),
        )  # fmt: skip
        return (finding,)
