"""How long a planning question takes, beside scipy's bare binomial survival calls.

Run with ``make bench``. Times are medians of repeated calls in this process; the import and
the command are timed in processes of their own.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

import incrowd as ic


def measure_median_ms(call: Callable[[], object], repeats: int = 15) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def measure_process_ms(*arguments: str) -> float:
    command = [sys.executable, *arguments]
    return measure_median_ms(
        lambda: subprocess.run(command, check=True, capture_output=True), repeats=7
    )


def main() -> None:
    release = ic.SafeRelease(k=20, beta=0.1)
    curve = np.linspace(0, 2, 1000)
    calls: dict[str, Callable[[], object]] = {
        "delta(k, beta, epsilon)": lambda: ic.delta(k=20, beta=0.1, epsilon=1.0),
        "epsilon(k, beta, delta)": lambda: ic.epsilon(k=20, beta=0.1, delta=1e-6),
        "plan(epsilon, delta)": lambda: ic.plan(epsilon=1, delta=1e-6),
        "plan(epsilon, delta, keep)": lambda: ic.plan(epsilon=1, delta=1e-6, keep=0.6),
        "epsilon of 64 releases": lambda: ic.Accountant([release] * 64).epsilon(delta=1e-6),
        "plan for 16 releases": lambda: ic.plan(epsilon=1, delta=1e-6, releases=16),
    }
    commands = {
        "import incrowd": ["-c", "import incrowd"],
        "incrowd plan, whole command": [
            "-m",
            "incrowd",
            "plan",
            "--epsilon",
            "1",
            "--delta",
            "1e-6",
        ],
    }
    bare = measure_median_ms(lambda: stats.binom.sf(19, 38, 0.2))
    bare_curve = measure_median_ms(lambda: stats.binom.sf(19, np.full(1000, 38), 0.2))
    empty = measure_process_ms("-c", "import numpy")

    print(f"{'':32}{'ms':>10}{'ratio':>10}  to")
    for name, call in calls.items():
        print_time(name, measure_median_ms(call), bare, "one scipy binom.sf")
    many = measure_median_ms(lambda: ic.delta(k=20, beta=0.1, epsilon=curve))
    print_time("delta on a curve of 1,000", many, bare_curve, "scipy binom.sf on 1,000")
    for name, command in commands.items():
        print_time(name, measure_process_ms(*command), empty, "import numpy")


def print_time(name: str, took: float, beside: float, what: str) -> None:
    print(f"{name:32}{took:>10.2f}{took / beside:>10.3g}  {what} ({beside:.2f} ms)")


if __name__ == "__main__":
    main()
