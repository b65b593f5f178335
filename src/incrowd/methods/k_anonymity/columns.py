"""The columns of a k-anonymous table: which are generalised, which are kept, what that means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from incrowd.anonymize.lattice import MOST_NODES
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.methods.base import Settled, published
from incrowd.release.parameters import RULES
from incrowd.spec.build import Declared
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Closeness, Column, Diversity
from incrowd.spec.release import ClassesSpec

_NEARLY_ALL, _FEW_ROWS = 0.9, 20


class Columns:
    """Quasi columns, to be generalised, and sensitive ones, to be kept; or the reason why not."""

    def __init__(self, file: SpecFile, release: ClassesSpec) -> None:
        self.quasi = published(file.spec, "quasi")
        self.kept = published(file.spec, "sensitive")
        self.declared = Declared(self.quasi, file.folder)
        self.release, self.reasons = _searchable(release, self.declared)
        if release.k is None:
            raise IncrowdError("Spec: `k` is missing. Add it under `release`.")
        self.k = release.k
        if not self.quasi:
            raise IncrowdError("Spec: no quasi-identifier. Give a column the role `quasi`.")
        for name in release.levels:
            if name not in self.quasi:
                raise IncrowdError(
                    f"Column '{name}': `levels` names it, but it is not generalized. Give it the "
                    "role `quasi`, or remove it from `levels`."
                )

    @property
    def settled(self) -> Settled:
        """Classes are shown from k rows on."""
        names, given = self.declared.names, self.release.levels
        limits = {}
        for name in names:
            level = given.get(name, (0, self.declared.height(name) - 1))
            limits[name] = (level, level) if isinstance(level, int) else level
        return Settled(
            self.declared, (limits,), lambda rows: (rows >= self.k).astype(float), float(self.k)
        )

    def parameters(self) -> dict[str, float | str]:
        """What the certificate says: k, the algorithm, how rows are suppressed, the rules."""
        known: dict[str, float | str] = {
            "k": float(self.k),
            "algorithm": self.release.algorithm or "ola",
            "suppressed": self.release.suppressed or "dropped",
        }
        for name, column in self.kept.items():
            for kind, value in _rules(column):
                known[f"rule {name}: {kind}"] = float(value)
        return known

    def findings(self, kept: Mapping[str, Sequence[object]], total: int) -> tuple[Finding, ...]:
        """Return what the curator should know: kept columns that name people, baselines."""
        found = []
        for name in self.kept:
            values = len(kept[name])
            if values > _NEARLY_ALL * total and total >= _FEW_ROWS:
                found.append(make_finding("COLUMN_NAMES_PEOPLE", name, values=values, rows=total))
        if self.release.algorithm == "duplicate":
            found.append(make_finding("ROWS_DUPLICATED"))
        return tuple(found)


def _searchable(release: ClassesSpec, declared: Declared) -> tuple[ClassesSpec, tuple[str, ...]]:
    """The spec with an algorithm that surely ends: cuts where OLA may not search all schemes.

    Only where the spec leaves that open. It depends on no data.
    """
    schemes = math.prod(declared.height(name) for name in declared.names)
    named = (
        release.algorithm, release.loss, release.candidates, release.suppression,
        release.search_seconds,
    )  # fmt: skip
    if schemes <= MOST_NODES or release.levels or any(one is not None for one in named):
        return release, ()
    words = (
        "Algorithm: mondrian, because there are too many schemes to search. Narrower `levels` "
        "leave fewer; `algorithm: ola` uses the best scheme that it finds."
    )
    return release.model_copy(update={"algorithm": "mondrian"}), (words,)


def _rules(column: Column) -> list[tuple[str, float]]:
    asked, close = column.diversity or Diversity(), column.closeness or Closeness()
    values = (asked.distinct, asked.entropy, close.equal, close.ordered)
    pairs = zip(RULES, values, strict=True)
    return [(kind, float(value)) for kind, value in pairs if value is not None]
