"""Audit: run a method again and again on neighboring tables, and bound epsilon from below.

What a certificate claims is an upper bound, proved. An audit is the other side: what somebody who
sees many runs, on two tables that differ by one row and were chosen to be worst, can show. It
errs with a probability of at most 1 - confidence (:mod:`incrowd.evaluation.audit.bound`); where it
shows more than is claimed, the claim is wrong. Tables are made up
(:mod:`incrowd.evaluation.audit.pairs`); none of anybody is opened, and nothing is spent.

A third of the runs chooses the event, the others test it. Where there are several pairs of tables
to try, a part of the time goes into trying each; these runs are put away, so that they decide
where to look and nothing else. Runs end when the time does; how long a run takes is not looked at.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from incrowd.codes.counted_table import COUNT
from incrowd.engine.source import local_engine
from incrowd.errors import IncrowdError, ParameterError, check_fraction, check_whole
from incrowd.evaluation.audit.bound import (
    PARTS,
    EpsilonBound,
    Runs,
    bound_from_runs,
    choose_event,
    compute_expected_bound,
    compute_largest_bound,
)
from incrowd.evaluation.audit.pairs import NeighborPair, Outcome, make_pairs
from incrowd.measure.estimate import CONFIDENCE, Rate
from incrowd.methods.base import MakeContext, Method
from incrowd.methods.registry import make_method
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.randomness import Randomness, SystemRandomness
from incrowd.spec.file import SpecFile, SpecSource, load_spec
from incrowd.spec.release import SafeSpec

DELTA = 0.01
SECONDS = 60.0
TRIED = 0.15  # the share of the time in which pairs of tables are tried
LEAST = PARTS  # runs that are made however little time there is

# Of each of the parts (order, cut, test): how often each outcome came out, on both tables.
Histogram: TypeAlias = tuple[tuple[Counter[Outcome], Counter[Outcome]], ...]


@dataclass(frozen=True)
class Audit:
    """A lower bound on epsilon at a delta, beside the claimed and the accounted epsilon.

    Attributes:
        epsilon: The lower bound.
        delta: The delta at which epsilon is bounded.
        confidence: Confidence of the bound.
        claim: The epsilon that is claimed with ``claim_delta``; None without a claim.
        claim_delta: The delta of the claim.
        accounted: The epsilon of the accountant at ``delta``.
        expected: The bound that this number of runs is expected to show, where the distribution of
            the outcome is known.
        most: The largest bound that this number of runs can show.
        runs: Number of outcomes on each table that tested the event.
        tables: The two neighboring tables, in words.
        event: The event that was tested, in words.
        likely: How often the event occurred on the table that makes it likely.
        unlikely: How often it occurred on the other table.
        seconds: Processor time.
        inside: An epsilon that is claimed for values inside a class alone.
    """

    epsilon: float
    delta: float
    confidence: float
    claim: float | None
    claim_delta: float
    accounted: float | None
    expected: float | None
    most: float
    runs: tuple[int, int]
    tables: str
    event: str
    likely: Rate
    unlikely: Rate
    seconds: float
    inside: float | None = None

    @property
    def is_above_claim(self) -> bool:
        """Whether more was shown than the claim allows.

        A claim with a smaller delta than the audit's holds at the audit's as well. With a larger
        one it says nothing there. What is accounted at the audit's delta must hold in any case.
        """
        if self.claim is None:
            return False
        limits = [self.claim] if self.claim_delta <= self.delta else []
        limits += [] if self.accounted is None else [self.accounted]
        return self.epsilon > min(limits, default=math.inf)

    @property
    def verdict(self) -> str:
        """What the bound says of the claim."""
        if self.claim is None:
            words = "the method guarantees no ε for the table, and any smaller one would be false"
            if self.likely.hits == self.likely.tries and not self.unlikely.hits:
                words += "; every run distinguished the tables, so ε is probably infinite"
            if self.inside is not None:
                words += f" (ε = {self.inside:g} holds for values inside a class)"
            return words
        if self.is_above_claim and self.epsilon <= self.claim:
            return "ABOVE the accounted ε: the claim is false"
        if self.is_above_claim:
            return "ABOVE the claim, which is false"
        if self.claim_delta > self.delta:
            return f"the claim does not apply below δ = {self.claim_delta:g}"
        if self.most <= self.claim:
            return f"below the claim, but this number of runs can show at most ε = {self.most:.3g}"
        if self.expected is not None and self.expected <= 0:
            return "below the claim, but this number of runs is expected to show nothing"
        return "consistent with the claim"

    def format_lines(self) -> list[str]:
        """Return the audit in a few lines."""
        first, second = self.runs
        bound = f"ε ≥ {self.epsilon:.4g} at δ = {self.delta:g}"
        lines = [f"Audited     {bound} with {100 * self.confidence:g} % confidence: {self.verdict}"]
        if self.claim is not None:
            lines.append(f"Claimed     ε = {self.claim:g}, δ = {self.claim_delta:g}")
        if self.accounted is not None:
            some = 0 < self.accounted < math.inf
            share = f" ({100 * self.epsilon / self.accounted:.0f} % of it audited)" if some else ""
            lines.append(f"Accounted   ε = {self.accounted:.4g} at δ = {self.delta:g}{share}")
        power = f"this number of runs can show at most ε = {self.most:.3g}"
        if self.expected is not None:
            power += f", for this mechanism {self.expected:.3g}"
        likely, unlikely = (f"{x.hits:,} of {x.tries:,}" for x in (self.likely, self.unlikely))
        return [
            *lines,
            f"Tables      {self.tables}",
            f"Event       {self.event}: {likely} runs on the first table, {unlikely} on the second",
            f"Runs        {first:,} and {second:,} in {self.seconds:.0f} s; {power}",
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values; None for what is not finite."""
        values = asdict(self) | {"above": self.is_above_claim, "verdict": self.verdict}
        for name in ("claim", "accounted"):
            value = values[name]
            values[name] = value if value is not None and math.isfinite(value) else None
        return values


@dataclass(frozen=True, eq=False)
class _TestBench:
    """A method, the pairs of tables to run it on, and what it is run with."""

    method: Method
    pairs: list[NeighborPair]
    context: MakeContext


@dataclass(frozen=True)
class _AuditJob:
    """What one process is told: which pairs to run, each for how long or how often."""

    file: SpecFile
    delta: float
    seed: int
    chosen: tuple[int, ...]
    seconds: float
    runs: int | None

    def make_bench(self, bits: Randomness | None) -> _TestBench:
        """Make the method and its pairs, anew in each process."""
        method = make_method(self.file)
        pairs = make_pairs(self.file, method, delta=self.delta, seed=self.seed)
        return _TestBench(method, pairs, MakeContext(bits or SystemRandomness(), local_engine()))


def audit(
    spec: SpecSource,
    *,
    delta: float = DELTA,
    confidence: float = CONFIDENCE,
    seconds: float = SECONDS,
    workers: int | None = None,
    runs: int | None = None,
    bits: Randomness | None = None,
) -> Audit:
    """Audit the method of a spec: measure a lower bound on its epsilon.

    The method runs many times on two neighboring tables that are generated from the domain of the
    spec. An audit can show that a claim is wrong; it cannot show that it is right.

    Args:
        spec: Path of a spec, its YAML text, a mapping, or a draft.
        delta: The delta at which epsilon is bounded. Larger than that of a certificate, because
            rare events need too many runs.
        confidence: Confidence of the lower bound.
        seconds: Processor time of all cores together.
        workers: Number of processes; by default one per core.
        runs: Number of runs on each table, instead of ``seconds``.
        bits: Source of random bits, for tests: with ``runs``, it determines the result.

    Returns:
        The lower bound beside the claimed and the accounted epsilon.

    Raises:
        IncrowdError: The spec is invalid.
        ParameterError: A parameter is out of range.

    Examples:
        >>> import incrowd as ic
        >>> audit = ic.audit("spec.yaml", seconds=10)  # doctest: +SKIP
        >>> audit.epsilon <= audit.accounted  # doctest: +SKIP
        True
    """
    check_fraction("delta", delta)
    check_fraction("confidence", confidence)
    check_seconds(seconds)
    if runs is not None:
        check_whole("runs", runs, LEAST)
    file = _count_cells_once(load_spec(spec))
    seed = int((bits or SystemRandomness()).draw_words(1)[0] >> np.uint64(1))
    start = time.monotonic()
    job = _AuditJob(file, delta, seed, (), seconds, runs)
    bench = job.make_bench(bits)
    method, proposed = bench.method, bench.pairs
    number = 1 if bits is not None else int(check_whole("workers", workers or os.cpu_count() or 1))

    def bound_pairs(which: Sequence[int], share: float) -> list[Histogram]:
        each = None if runs is None else max(math.ceil(share * runs / number), LEAST)
        part = replace(job, chosen=tuple(which), seconds=share * seconds / number, runs=each)
        if number == 1:
            return _run_job(part, bench)
        with ThreadPoolExecutor(number) as pool:
            parts = list(pool.map(_run_in_process, [part] * number))
        return [merge_histograms(histograms) for histograms in zip(*parts, strict=True)]

    best, left = 0, 1.0
    if len(proposed) > 1:
        left = 1 - TRIED
        tries = bound_pairs(range(len(proposed)), TRIED / len(proposed))
        epsilons = [
            find_best_view(
                tried, pair.views, delta=_scale_delta(delta, pair), confidence=confidence
            )[0]
            for tried, pair in zip(tries, proposed, strict=True)
        ]
        best = int(np.argmax(epsilons))
    pair = proposed[best]
    inside = _scale_delta(delta, pair)
    (runs_found,) = bound_pairs([best], left)
    bound, event = conclude_bound(runs_found, pair.views, delta=inside, confidence=confidence)
    laws, tested_by = pair.laws(), (bound.likely.tries, bound.unlikely.tries)
    promised, release = method.promise.epsilon if method.events else None, file.spec.release
    assert release is not None
    return Audit(
        epsilon=bound.epsilon,
        delta=delta,
        confidence=confidence,
        claim=promised,
        claim_delta=(method.promise.delta or 0.0) if method.events else 0.0,
        accounted=Accountant(method.events).epsilon(delta=delta) if method.events else None,
        expected=None
        if laws is None
        else compute_expected_bound(*laws, min(tested_by), delta=inside, confidence=confidence),
        most=compute_largest_bound(min(tested_by), delta=inside, confidence=confidence),
        runs=tested_by if bound.on_first else (tested_by[1], tested_by[0]),
        tables=pair.description,
        event=pair.describe_event(event) + describe_direction(bound),
        likely=bound.likely,
        unlikely=bound.unlikely,
        seconds=time.monotonic() - start,
        inside=None if method.events or release.budget is None else release.budget.epsilon,
    )


def _scale_delta(delta: float, pair: NeighborPair) -> float:
    """Return delta among the runs that are used; where that is 1, nothing can be shown."""
    return min(delta / pair.share, 1 - 1e-9)


def _count_cells_once(file: SpecFile) -> SpecFile:
    """Return the spec with cells written once, with their counts, where that is possible.

    Rows that are repeated are a function of that, so nothing more is shown by them; they only take
    longer to write.
    """
    release = file.spec.release
    if not isinstance(release, SafeSpec) or COUNT in file.spec.columns:
        return file
    weighted = release.model_copy(update={"rows": "counted"})
    return replace(file, spec=file.spec.model_copy(update={"release": weighted}))


def _run_in_process(job: _AuditJob) -> list[Histogram]:
    """Do the same in a process of its own.

    It is a new interpreter: a fork of this one could wait for ever for a lock that a thread of the
    engine held, and who calls this need not guard the script that it is called from.
    """
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", f"from {__name__} import serve; serve()"],
        input=pickle.dumps(job),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip().splitlines()
        raise IncrowdError(f"Audit: a process failed ({text[-1] if text else 'no message'}).")
    histograms: list[Histogram] = pickle.loads(done.stdout)  # noqa: S301 - from the process above
    return histograms


def serve() -> None:
    """Do a job that comes from standard input, and hand its outcomes to standard output."""
    job: _AuditJob = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    sys.stdout.buffer.write(pickle.dumps(_run_job(job)))


def _run_job(job: _AuditJob, bench: _TestBench | None = None) -> list[Histogram]:
    """Run a method on both tables of each pair, in turn, until the time is over."""
    bench = bench or job.make_bench(None)
    histograms = []
    for at in job.chosen:
        run = partial(bench.pairs[at].run_once, bench.method, bench.context)
        histograms.append(
            alternate_runs(run, make_stop_rule(job.seconds, job.runs, time.process_time))
        )
    return histograms


def make_stop_rule(
    seconds: float, runs: int | None, clock: Callable[[], float]
) -> Callable[[int], bool]:
    """Return a test of whether runs are enough: all asked for, or, if none were, by the clock."""
    start = clock()

    def enough(done: int) -> bool:
        if runs is not None:
            return done >= runs
        return done >= LEAST and clock() - start >= seconds

    return enough


def alternate_runs(
    run: Callable[..., Counter[Outcome]], enough: Callable[[int], bool]
) -> Histogram:
    """Return outcomes of runs on the first table and the second in turn, until enough.

    Of six runs one orders outcomes, one decides how many are the event, and the others test it.
    """
    histogram = _make_histogram()
    done = 0
    while not enough(done):
        part = histogram[min(done % PARTS, 2)]
        part[0].update(run(first=True))
        part[1].update(run(first=False))
        done += 1
    return histogram


def _make_histogram() -> Histogram:
    return tuple((Counter(), Counter()) for _ in range(3))


def merge_histograms(parts: Iterable[Histogram]) -> Histogram:
    """Merge the outcomes of several processes."""
    histograms = _make_histogram()
    for part in parts:
        for into, from_ in zip(histograms, part, strict=True):
            into[0].update(from_[0])
            into[1].update(from_[1])
    return histograms


def find_best_view(
    histogram: Histogram, views: Sequence[tuple[int, ...]], *, delta: float, confidence: float
) -> tuple[float, tuple[int, ...]]:
    """Find what to look at of an outcome, by the runs of the choice, and how much these show."""

    def score_view(view: tuple[int, ...]) -> float:
        order, cut, _ = _project_outcomes(histogram, view)[1]
        sides = ((order, cut), (order.exchange_tables(), cut.exchange_tables()))
        return max(choose_event(*side, delta=delta, confidence=confidence).shows for side in sides)

    return max(((score_view(view), view) for view in views), key=lambda entry: entry[0])


def conclude_bound(
    histogram: Histogram, views: Sequence[tuple[int, ...]], *, delta: float, confidence: float
) -> tuple[EpsilonBound, list[Outcome]]:
    """Return the bound by the best view, and the outcomes of its event as that view has them."""
    _, view = find_best_view(histogram, views, delta=delta, confidence=confidence)
    outcomes, runs = _project_outcomes(histogram, view)
    bound = bound_from_runs(*runs, delta=delta, confidence=confidence)
    return bound, [outcomes[at] for at in bound.event.tolist()]


def _project_outcomes(
    histogram: Histogram, view: tuple[int, ...]
) -> tuple[list[Outcome], tuple[Runs, Runs, Runs]]:
    """Return the outcomes of a view, in order, and how often each came out in each part."""
    sums: list[Counter[Outcome]] = []
    for part in histogram:
        for side in part:
            seen: Counter[Outcome] = Counter()
            for outcome, times in side.items():
                seen[tuple(outcome[at] for at in view)] += times
            sums.append(seen)
    outcomes = sorted({outcome for seen in sums for outcome in seen}, key=repr)
    arrays = [np.array([seen[outcome] for outcome in outcomes], dtype=np.int64) for seen in sums]
    order, cut, test = (Runs(arrays[at], arrays[at + 1]) for at in (0, 2, 4))
    return outcomes, (order, cut, test)


def describe_direction(bound: EpsilonBound) -> str:
    """Return on which of the tables an event is the likelier one."""
    return " (likelier with the row)" if bound.on_first else " (likelier without the row)"


def check_seconds(seconds: float) -> None:
    """Refuse a time that is none."""
    if not 0 < seconds < math.inf:
        raise ParameterError("seconds", "be a finite number above 0", seconds)
