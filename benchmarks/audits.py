"""What audits show: of our methods, of naive variants, and how often they are wrong.

    python benchmarks/audits.py [SECONDS [AUDITS]]

1. Every way to publish, audited at delta = 0.01 for SECONDS (60 by default) of both cores together:
   the bound, what is claimed, what the accountant says at that delta.
2. The naive variants: the bound of so many runs, and the seconds that they took.
3. AUDITS (100 by default) short ones of samples and of counts: how many show more than the
   accountant allows at that delta, which a confidence of 95 % lets at most 5 % do.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from incrowd.evaluation.audit.audit import audit
from incrowd.evaluation.audit.bound import compute_largest_bound, compute_lower_bound
from incrowd.papers.naive import VARIANTS
from incrowd.privacy.randomness import SystemRandomness
from incrowd.spec.file import SpecFile, load_spec

COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [25]}}},
    "height": {
        "role": "quasi",
        "hierarchy": {"intervals": {"from": 100, "to": 199, "widths": [25]}},
    },
}
NOISY = {"weight": {"role": "noisy", "precision": 1, "bounds": [40, 140]}}
FINE = {"age": 0, "height": 0}
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
VALUES = {"sex": 2, "pregnant": 2, "age": 20, "smoker": 2, "region": 9, "month": 18, "quarter": 6,
          "weight": 61, "diagnosis": 3}  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {
    "synthetic, 3 columns": {"method": "synthetic", **BUDGET},
    "synthetic, 9 columns": {"method": "synthetic", **BUDGET},
    "sample, fixed levels": {**BUDGET, "draw": "sample", "scheme": "fixed", "levels": FINE},
    "counts, fixed levels": {**BUDGET, "draw": "counts", "scheme": "fixed", "levels": FINE},
    "sample, searched": {**BUDGET, "draw": "sample", "scheme": "search"},
    "counts, searched": {**BUDGET, "draw": "counts", "scheme": "search"},
    "k-anonymity, OLA": {"method": "k-anonymity", "algorithm": "ola", "k": 5},
    "k-anonymity, Mondrian": {"method": "k-anonymity", "algorithm": "mondrian", "k": 5},
    "(k,ε)": {"method": "k-epsilon", "k": 5, "epsilon": 1.0},
}


def make_audit_spec(name: str, way: dict[str, Any]) -> SpecFile:
    """Return a small spec for a way to publish."""
    if way.get("method") == "synthetic":
        columns = VALUES if "9" in name else ("sex", "age", "region")
        listed = {
            column: {"role": "quasi", "hierarchy": {"flat": {"values": [*range(VALUES[column])]}}}
            for column in columns
        }
        return load_spec({"columns": listed, "release": way})
    noisy = NOISY if way.get("method") == "k-epsilon" else {}
    return load_spec({"columns": {**COLUMNS, **noisy}, "release": way})


def audit_methods(seconds: float) -> None:
    """Audit every way to publish."""
    for name, way in WAYS.items():
        start = time.perf_counter()
        result = audit(make_audit_spec(name, way), seconds=seconds)
        print(f"{name} ({time.perf_counter() - start:.0f} s by the clock)")
        for line in result.format_lines():
            print(f"  {line}")
        sys.stdout.flush()


def audit_variants() -> None:
    """Catch the naive ones."""
    for runs in (600, 6000):
        print(
            f"naive variants, {runs:,} runs on each table, which can show "
            f"{compute_largest_bound(runs * 2 // 3, delta=0.01):.2f} at most:"
        )
        for item in VARIANTS:
            start = time.perf_counter()
            first, second = (
                item.outcomes(side, runs, SystemRandomness()) for side in (True, False)
            )
            bound = compute_lower_bound(first, second, delta=0.01).epsilon
            took = time.perf_counter() - start
            print(f"  {item.name:34}{bound:6.2f}  claims {item.claim:g}  {took:6.2f} s")
        sys.stdout.flush()


def count_false_alarms(number: int) -> None:
    """How often a correct method seems wrong."""
    for name in ("sample, fixed levels", "counts, fixed levels"):
        file = make_audit_spec(name, WAYS[name])
        result = [audit(file, seconds=0.5, workers=1) for _ in range(number)]
        allowed = [item.accounted for item in result]
        wrong = sum(
            item.epsilon > limit for item, limit in zip(result, allowed, strict=True) if limit
        )
        above = sum(item.is_above_claim for item in result)
        print(
            f"{number} audits of {name}: {wrong} show more than is accounted at that delta (at "
            f"most {0.05 * number:.0f} expected), {above} more than is claimed",
            flush=True,
        )


def main() -> None:
    """Print all of it."""
    audit_methods(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
    audit_variants()
    count_false_alarms(int(sys.argv[2]) if len(sys.argv) > 2 else 100)


if __name__ == "__main__":
    main()
