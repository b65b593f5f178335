"""Audit a command of anybody that maps a CSV file to a CSV file.

The neighbors are the table and the table without one row. Rows worth trying are one of the rarest
combination of values, and the most extreme of each column: the largest and smallest of numbers, the
rarest of other values. What is looked at is the whole output with its rows in order, its number of
rows, how often it holds the row in question, which values its columns have, and where the sums of
its first columns of numbers lie among those of a few runs that are then put away. Statistics and
confidence are those of :mod:`incrowd.evaluation.audit.audit`: the bound holds if runs of the
command are independent. A command that is seeded and always gives the same shows nothing secret of
its coins, and is rightly told apart by any difference.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import shlex
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from textwrap import shorten
from typing import TypeAlias

import numpy as np

from incrowd.codes.values import parse_number
from incrowd.errors import (
    IncrowdError,
    ParameterError,
    check_at_least_zero,
    check_fraction,
    check_whole,
)
from incrowd.evaluation.audit.audit import (
    DELTA,
    LEAST,
    SECONDS,
    TRIED,
    Audit,
    Histogram,
    alternate_runs,
    check_seconds,
    conclude_bound,
    describe_direction,
    find_best_view,
    make_stop_rule,
    merge_histograms,
)
from incrowd.evaluation.audit.bound import compute_largest_bound
from incrowd.evaluation.audit.pairs import Outcome
from incrowd.measure.estimate import CONFIDENCE

_PLACES = ("{input}", "{output}")
_CANDIDATES = 6
_SUMS = 4  # columns of numbers whose sums are looked at
_FIRST = 5  # runs on each table that say among which sums others lie
# The output, its number of rows, those like the row, its values; then the sums.
_VIEWS = tuple((at,) for at in range(4 + _SUMS))

Row: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class _CsvTable:
    """A CSV file as it is written."""

    names: Row
    rows: list[Row]

    @classmethod
    def read(cls, path: Path) -> _CsvTable:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [tuple(line) for line in csv.reader(file) if line]
        return cls(lines[0], lines[1:]) if lines else cls((), [])

    def sum_columns(self) -> list[float]:
        """Return the sums of the first columns of numbers; 0 for each that is not there."""
        columns = []
        for column in zip(*self.rows, strict=False):
            numbers = [float(x) for value in column if (x := parse_number(value)) is not None]
            columns += [sum(numbers)] if len(numbers) == len(column) else []
        return [*columns[:_SUMS], *[0.0] * (_SUMS - len(columns))]

    def write(self, path: Path, without: int | None = None) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.names)
            writer.writerows(row for at, row in enumerate(self.rows) if at != without)


@dataclass(frozen=True)
class _AuditedCommand:
    """The command, where it works, and how long it may take."""

    parts: tuple[str, ...]
    folder: Path
    limit: float
    places: Iterator[int]  # numbers of outputs; taking the next is one step, whatever the thread

    def run_once(
        self, row: Row, without: Path, cuts: Sequence[Sequence[float]], *, first: bool
    ) -> Counter[Outcome]:
        """Return what one run shows: on the table, or on the table without the row."""
        output = self.read_output(self.folder / "table.csv" if first else without)
        values = [sorted(set(column)) for column in zip(*output.rows, strict=False)]
        same = sum(line == row for line in output.rows)
        everything = _hash_value((output.names, sorted(output.rows)))
        sums = zip(cuts, output.sum_columns(), strict=True)
        places = [int(np.searchsorted(column_cuts, total)) for column_cuts, total in sums]
        return Counter([(everything, len(output.rows), same, _hash_value(values), *places)])

    def read_output(self, source: Path) -> _CsvTable:
        """Return the output of one run."""
        output = self.folder / f"output-{next(self.places)}.csv"
        self._run_command(source, output)
        try:
            table = _CsvTable.read(output)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise IncrowdError(
                f"Command '{self.parts[0]}': it wrote no CSV file to {{output}}. Correct it."
            ) from error
        output.unlink()
        return table

    def _run_command(self, source: Path, output: Path) -> None:
        pairs = ((_PLACES[0], str(source)), (_PLACES[1], str(output)))
        parts = list(self.parts)
        for place, path in pairs:
            parts = [part.replace(place, path) for part in parts]
        try:
            done = subprocess.run(  # noqa: S603 - the user's own command, without a shell
                parts, capture_output=True, timeout=self.limit, check=False, text=True
            )
        except OSError as error:
            raise IncrowdError(
                f"Command '{parts[0]}': it cannot be started ({error.strerror}). Correct it."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise IncrowdError(
                f"Command '{parts[0]}': it took longer than {self.limit:g} seconds. Use a smaller "
                "table; an audit needs many runs."
            ) from error
        if done.returncode:
            text = (done.stderr.strip() or done.stdout.strip()).splitlines()
            last = f" It said: {text[-1]}" if text else ""
            raise IncrowdError(
                f"Command '{parts[0]}': it failed with exit status {done.returncode}.{last}"
            )


def audit_command(
    command: str,
    table: Path | str,
    *,
    claim: float,
    claim_delta: float = 0.0,
    delta: float = DELTA,
    confidence: float = CONFIDENCE,
    seconds: float = SECONDS,
    workers: int | None = None,
    runs: int | None = None,
    limit: float = 60.0,
) -> Audit:
    """Audit a command such as "tool {input} {output}" that claims an epsilon, on a CSV file.

    ``seconds`` are those of all workers together; ``runs`` on each table, instead, take as long as
    they take. A run that takes longer than ``limit`` seconds is an error.
    """
    check_fraction("delta", delta)
    check_at_least_zero("claim", claim)
    check_seconds(seconds)
    if runs is not None:
        check_whole("runs", runs, LEAST)
    if not 0 <= claim_delta <= delta:
        raise ParameterError(
            "claim_delta", f"be from 0 to the delta of the audit ({delta:g})", claim_delta
        )
    try:
        parts = tuple(shlex.split(command))
    except ValueError as error:
        raise ParameterError("command", f"be a command ({error})", command) from error
    if not all(any(place in part for part in parts) for place in _PLACES):
        raise ParameterError("command", "name {input} and {output}", command)
    try:
        plain = _CsvTable.read(Path(table))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise IncrowdError(f"File '{table}': not a CSV file in UTF-8. Convert it.") from error
    if len(plain.rows) < 2:
        raise IncrowdError(f"File '{table}': fewer than two rows. Use a larger table.")
    number_of = int(check_whole("workers", workers or os.cpu_count() or 1))
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="incrowd-audit-") as home:
        audited = _AuditedCommand(parts, Path(home), limit, count())
        plain.write(Path(home) / "table.csv")

        def bound_pair(at: int, share: float) -> Histogram:
            without = Path(home) / f"without-{at}.csv"
            if not without.exists():
                plain.write(without, without=at)
            sources = (Path(home) / "table.csv", without)
            few = [
                audited.read_output(source).sum_columns()
                for source in sources
                for _ in range(_FIRST)
            ]
            cuts = [sorted(totals) for totals in zip(*few, strict=True)]
            run = partial(audited.run_once, plain.rows[at], without, cuts)
            each = None if runs is None else max(math.ceil(share * runs / number_of), LEAST)
            enough = make_stop_rule(share * seconds / number_of, each, time.monotonic)
            with ThreadPoolExecutor(number_of) as pool:
                return merge_histograms(
                    pool.map(lambda _: alternate_runs(run, enough), range(number_of))
                )

        begin = time.monotonic()
        places = find_extreme_rows(plain.rows)
        audited.read_output(Path(home) / "table.csv")
        once = time.monotonic() - begin
        costs = 2 * (LEAST + _FIRST) * max(once, 1e-3)
        tries = places[: max(int(TRIED * seconds / costs), 1)]
        best, left = tries[0], 1.0
        if len(tries) > 1:
            left = 1 - TRIED
            epsilons = [
                find_best_view(
                    bound_pair(at, TRIED / len(tries)), _VIEWS, delta=delta, confidence=confidence
                )[0]
                for at in tries
            ]
            best = tries[int(np.argmax(epsilons))]
        bound, event = conclude_bound(
            bound_pair(best, left), _VIEWS, delta=delta, confidence=confidence
        )
    tested_by = (bound.likely.tries, bound.unlikely.tries)
    row = shorten(", ".join(plain.rows[best]), 80)
    return Audit(
        epsilon=bound.epsilon,
        delta=delta,
        confidence=confidence,
        claim=claim,
        claim_delta=claim_delta,
        accounted=None,
        expected=None,
        most=compute_largest_bound(min(tested_by), delta=delta, confidence=confidence),
        runs=tested_by if bound.on_first else (tested_by[1], tested_by[0]),
        tables=f"the table of {len(plain.rows):,} rows against the same without the row ({row})",
        event=f"{len(event):,} outcomes, such as {event[0][0]}" + describe_direction(bound),
        likely=bound.likely,
        unlikely=bound.unlikely,
        seconds=time.monotonic() - start,
    )


def find_extreme_rows(rows: Sequence[Row]) -> list[int]:
    """Return the places of rows worth leaving out, the rarest combination first."""
    combinations = Counter(rows)
    extreme_rows = [min(range(len(rows)), key=lambda at: combinations[rows[at]])]
    for column in zip(*rows, strict=False):
        numbers = [parse_number(value) for value in column]
        if all(x is not None for x in numbers):
            order = sorted(range(len(rows)), key=lambda at: numbers[at] or 0)
            extreme_rows += [order[-1], order[0]]
        else:
            often = Counter(column)
            extreme_rows.append(min(range(len(rows)), key=lambda at: often[column[at]]))
    return list(dict.fromkeys(extreme_rows))[:_CANDIDATES]


def _hash_value(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]
