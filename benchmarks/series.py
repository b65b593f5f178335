"""Noise of running totals: a series planned for all periods, beside the sum of single releases.

python benchmarks/series.py [OF]

For each number of rows per person: the largest standard deviation of a running total over OF
periods (by default 8), as planned and as drawn for 20,000 cells, and the group size that is
published with probability 1/2 in the last period. Epsilon is 1, delta 1e-6, k 5 throughout.
"""

from __future__ import annotations

import argparse
import math
import os

import numpy as np

from incrowd.privacy.counts import build_event_law
from incrowd.privacy.draw_parameters import CountsEvent
from incrowd.privacy.events import SeriesCounts
from incrowd.privacy.series import compute_reach, compute_total_error, sample_series_noise
from incrowd.privacy.split import split_for_counts
from incrowd.privacy.split_series import split_for_series

ROWS = (1, 2, 3, 4, 6, 11)
CELLS, K = 20_000, 5


def main() -> None:
    """Print a line for each number of rows per person."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("of", nargs="?", type=int, default=8)
    of = parser.parse_args().of
    print("| rows per person | single, summed | series | ratio | drawn | crowd single, series |")
    print("| --- | --- | --- | --- | --- | --- |")
    for rows in ROWS:
        single = split_for_counts(epsilon=1.0, delta=1e-6, rows=rows).draws[-1]
        assert isinstance(single, CountsEvent)
        summed = math.sqrt(of * build_event_law(single).variance)
        event = split_for_series(epsilon=1.0, delta=1e-6, of=of, rows=rows).event
        assert isinstance(event, SeriesCounts)
        errors = [compute_total_error(event, range(1, t + 1)).spread for t in range(1, of + 1)]
        key = os.urandom(32)
        noise = [sample_series_noise(event, t, CELLS, key) for t in range(1, of + 1)]
        observed = max(np.sum(noise[:t], axis=0).std() for t in range(1, of + 1))
        crowds = f"{single.r + K} {compute_reach(event, of) + K}"
        worst = max(errors)
        print(
            f"| {rows} | {summed:.2f} | {worst:.2f} | {worst / summed:.3f} | {observed:.2f} | "
            f"{crowds} |"
        )


if __name__ == "__main__":
    main()
