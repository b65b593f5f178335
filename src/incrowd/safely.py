"""A safe release of a table: what is spent, and the cells that are shown.

k and beta are settled from the spec, the table is grouped once at the levels of the spec, and
its counts are thinned by beta and cut at k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from incrowd.anonymize.cutting import Cells, cut
from incrowd.anonymize.frequency import between, keys, merged
from incrowd.anonymize.lattice import Rollups
from incrowd.anonymize.recoding import Axis, positions
from incrowd.anonymize.safe import safe
from incrowd.anonymize.search import Chosen, ramp, search
from incrowd.builders import build, is_open
from incrowd.certificate import Guarantee
from incrowd.engine import Table
from incrowd.engine.count import Counted, count
from incrowd.errors import Floats, IncrowdError
from incrowd.evaluating import Shown, axes_of, evaluate
from incrowd.grouping import lattice_between
from incrowd.outcome import outcome_of
from incrowd.pairing import RATES, paired
from incrowd.planning import plan
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event, SafeRelease, Sampled
from incrowd.privacy.randomness import Randomness, realised
from incrowd.privacy.selection import payable
from incrowd.product import Product, Progress, Recoded, Step, cells, published, unit_of
from incrowd.spec import Column, Spec
from incrowd.specfile import SpecFile
from incrowd.statements import parameters_of, safe_statement

SEARCH_SHARE = 0.05
ROUNDS = 2
POWERS = {"rows": 1, "balanced": 2, "detail": 3}


class Safe:
    """Sample, generalise by a scheme that depends on no single person, drop what is rare."""

    def __init__(self, file: SpecFile) -> None:
        self._file = file
        assert file.spec.release is not None
        self._release = file.spec.release
        self._columns = _generalised(file.spec)
        self._settle()

    def _settle(self) -> None:
        """The levels of the spec, one k and one beta."""
        self._levels = _levels(self._file, self._columns)
        self.events, (self._epsilon, self._delta) = _settled(self._file.spec)
        (self._known,) = parameters_of(self.events)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta)-differential privacy."""
        unit = unit_of(self._file.spec)
        said = safe_statement(self._known, epsilon=self._epsilon, delta=self._delta, unit=unit)
        return Guarantee(
            kind="differential privacy",
            statement=said,
            epsilon=self._epsilon,
            delta=self._delta,
            unit=unit,
        )

    def make(self, table: Table, bits: Randomness, step: Step, progress: Progress) -> Product:
        """Count, draw, cut."""
        step("count")
        counted = self._counted(table, bits, step, progress).by_label()
        step("draw")
        k, beta = int(self._known["k"]), float(self._known["beta"])
        released = safe(counted.frequencies, k=k, beta=beta, bits=bits)
        columns = list(zip(counted.names, counted.hierarchies, counted.levels, strict=True))
        return Product(
            data=cells(
                {name: hierarchy.labels[level] for name, hierarchy, level in columns},
                released,
                by_text=[name for name in counted.names if is_open(self._columns[name])],
                weighted=self._release.rows == "weighted",
            ),
            rows=released.total,
            classes=len(released),
            smallest_class=int(released.counts.min()) if len(released) else 0,
            scheme={
                name: Recoded(self._columns[name], hierarchy, level)
                for name, hierarchy, level in columns
            },
            evaluation=outcome_of(counted, released, k=k, beta=beta),
            parameters=dict(self._known),
        )

    def _counted(self, table: Table, bits: Randomness, step: Step, progress: Progress) -> Counted:  # noqa: ARG002
        """The table at the levels of the scheme."""
        return count(table, self._columns, folder=self._file.folder, levels=self._levels)


class Searched(Safe):
    """The same by a scheme, and a pair of k and beta, that the table has chosen privately.

    The choice is made on the whole table, before and apart from the sample that is published:
    chosen from that sample, it would tell of the rows that are in it.
    """

    def _settle(self) -> None:
        """Pairs of k and beta to choose among, each within the budget with the search."""
        release = self._release
        if release.epsilon is None or release.delta is None:
            raise IncrowdError("'scheme: search' needs both 'epsilon' and 'delta'.")
        self._epsilon, self._delta = release.epsilon, release.delta
        self._selections = [payable(spent) for spent in self._split(release.epsilon)]
        if not min(self._selections) > 0:
            raise IncrowdError("The search needs an epsilon of at least a millionth.")
        rate = release.beta or release.keep
        self._pairs, self.events = paired(
            epsilon=release.epsilon,
            delta=release.delta,
            selections=self._selections,
            rates=RATES if rate is None else (rate,),
            population=release.already_sampled,
        )
        if release.k is not None:
            raise IncrowdError("'scheme: search' finds k itself; leave 'k' out.")
        if release.scheme == "mondrian" and release.levels:
            raise IncrowdError("'levels' do not go with 'scheme: mondrian': its cuts go as deep.")
        heights = [build(c, folder=self._file.folder).height for c in self._columns.values()]
        self._lattice = lattice_between(tuple(self._columns), heights, release.levels)
        self._known = {}

    def _split(self, epsilon: float) -> list[float]:
        """What the search spends: one choice."""
        return [self._release.search_epsilon or SEARCH_SHARE * epsilon]

    def _counted(self, table: Table, bits: Randomness, step: Step, progress: Progress) -> Counted:
        """The table at level 0, a scheme chosen, and rolled up to it."""
        whole = count(table, self._columns, folder=self._file.folder)
        levels = self._chosen(whole, bits, step, progress).levels
        maps = between(whole.hierarchies, whole.levels, levels)
        return replace(whole, levels=levels, frequencies=whole.frequencies.rolled(maps))

    def _chosen(self, whole: Counted, bits: Randomness, step: Step, progress: Progress) -> Chosen:
        """Choose a scheme and a pair, and remember the pair."""
        step("search")
        chosen = search(
            Rollups(whole.hierarchies, whole.frequencies),
            self._lattice,
            [ramp(pair.k, pair.beta) for pair in self._pairs],
            epsilon=Fraction(repr(self._selections[0])),
            power=self._power,
            weights=self._weights,
            bits=bits,
            progress=progress,
        )
        (self._known,) = (
            known
            for known in parameters_of(self.events)
            if (known["k"], known["beta"]) == (chosen.ramp.k, chosen.ramp.beta)
        )
        return chosen

    @property
    def _power(self) -> int:
        return POWERS[self._release.objective or "rows"]

    @property
    def _weights(self) -> Floats:
        return np.array([column.weight for column in self._columns.values()])


class Cut(Searched):
    """Safe Mondrian: a scheme is chosen as above, and its cells are cut further, privately."""

    def _settle(self) -> None:
        """As above. A box of values that nobody listed would reach as far as the values met."""
        for name, column in self._columns.items():
            if is_open(column):
                raise IncrowdError(
                    f"'scheme: mondrian' needs columns whose values are listed, and '{name}' has a "
                    "mask, or is flat without values. List them (an ARX file, 'groups', or "
                    "'flat: {values: [...]}'), or use 'scheme: search'."
                )
        super()._settle()

    def _split(self, epsilon: float) -> list[float]:
        """What the search and each round of cuts spend, in equal parts."""
        spent = self._release.search_epsilon or (1 + ROUNDS) * SEARCH_SHARE * epsilon
        return [spent / (1 + ROUNDS)] * (1 + ROUNDS)

    def make(self, table: Table, bits: Randomness, step: Step, progress: Progress) -> Product:
        """Count, search, cut the cells, draw, cut at k."""
        step("count")
        whole = count(table, self._columns, folder=self._file.folder)
        axes = [contiguous(axis) for axis in axes_of(whole, self._columns)]
        chosen = self._chosen(whole, bits, step, progress)
        points = positions(axes, whole.frequencies.codes)
        boxes = cut(
            axes, points, whole.frequencies.counts, _cells_of(axes, whole, chosen.levels),
            ramp=chosen.ramp,
            epsilons=[Fraction(repr(epsilon)) for epsilon in self._selections[1:]],
            power=self._power, weights=self._weights, bits=bits,
        )  # fmt: skip
        step("draw")
        shown = [axis.labels(boxes.low[:, at], boxes.high[:, at]) for at, axis in enumerate(axes)]
        codes = np.column_stack([codes[boxes.members] for _, codes in shown]).astype(np.int32)
        k, beta = chosen.ramp.k, chosen.ramp.beta
        released = safe(merged(codes, whole.frequencies.counts), k=k, beta=beta, bits=bits)
        labels = tuple(texts for texts, _ in shown)
        return Product(
            data=cells(
                dict(zip(whole.names, labels, strict=True)), released,
                by_text=whole.names, weighted=self._release.rows == "weighted",
            ),
            rows=released.total,
            classes=len(released),
            smallest_class=int(released.counts.min()) if len(released) else 0,
            scheme={
                name: Recoded(self._columns[name], hierarchy, None, axis.ordered)
                for name, hierarchy, axis in zip(whole.names, whole.hierarchies, axes, strict=True)
            },
            evaluation=evaluate(whole, axes, Shown(labels, released), stars=False),
            parameters=dict(self._known),
        )  # fmt: skip


def contiguous(axis: Axis) -> Axis:
    """The axis, taken for a tree where some group of its hierarchy is no run of neighbours."""
    return axis if axis.ordered and axis.has_runs else Axis(axis.hierarchy, ordered=False)


def _cells_of(axes: Sequence[Axis], whole: Counted, levels: Sequence[int]) -> Cells:
    """The cells of a scheme as boxes over the declared domain."""
    low, high, codes = [], [], []
    for at, (axis, level) in enumerate(zip(axes, levels, strict=True)):
        group = axis.hierarchy.groups[level][whole.frequencies.codes[:, at]]
        first, last = axis.runs(np.full(len(group), level), group)
        low.append(first)
        high.append(last)
        codes.append(group)
    named = keys(np.column_stack(codes).astype(np.int32))
    _, first_, place = np.unique(named, return_index=True, return_inverse=True)
    return Cells(np.column_stack(low)[first_], np.column_stack(high)[first_], place)


def _generalised(spec: Spec) -> dict[str, Column]:
    """The columns that are published, all of them generalised; or the reason why not."""
    release = spec.release
    assert release is not None
    if release.slices:
        raise IncrowdError("'slices' cannot be published so far. Publish one spec for each.")
    if spec.unconfirmed:
        listed = "; ".join(f"{name}: {', '.join(e)}" for name, e in spec.unconfirmed.items())
        raise IncrowdError(
            f"These entries were read from the data and nobody has confirmed them: {listed}. Put "
            "public knowledge in their place, then delete 'confirm'."
        )
    columns = published(spec, "quasi", "sensitive")
    for name, column in columns.items():
        if column.hierarchy is None:
            raise IncrowdError(
                f"The column '{name}' is sensitive and has no hierarchy. A safe release "
                "generalises every column it publishes; give it one ('flat' will do), or drop it."
            )
        if column.diversity or column.closeness:
            raise IncrowdError(
                f"The column '{name}' asks for 'diversity' or 'closeness', which belong to "
                "k-anonymity. A safe release protects every column alike; leave them out."
            )
    if not columns:
        raise IncrowdError("The spec publishes no column: give some the role 'quasi'.")
    return columns


def _levels(file: SpecFile, columns: dict[str, Column]) -> list[int]:
    """The levels of the spec; half way up, rounded down, where it names none."""
    assert file.spec.release is not None
    levels = []
    for name, column in columns.items():
        height = build(column, folder=file.folder).height
        level = file.spec.release.levels.get(name, (height - 1) // 2)
        if not isinstance(level, int):
            raise IncrowdError(
                f"A fixed scheme takes one level of column '{name}', not a lowest and a highest."
            )
        if level >= height:
            raise IncrowdError(
                f"Level {level} is asked for column '{name}', but its highest is {height - 1}."
            )
        levels.append(level)
    return levels


def _settled(spec: Spec) -> tuple[list[Event], tuple[float, float]]:
    """The events and the (epsilon, delta) they guarantee, from what the spec gives of k, beta, ...

    With ``already_sampled`` the table is a sample of rate b, so drawing with beta draws from
    the population with b beta: that product is planned for.
    """
    release = spec.release
    assert release is not None
    b = release.already_sampled or 1.0
    k, rate = release.k, release.beta or release.keep
    budget = {"epsilon": release.epsilon, "delta": release.delta}
    if rate is not None and k is None:
        k = plan(beta=rate * b, **budget).k  # type: ignore[arg-type]
    elif rate is None:
        planned = plan(k=k, **budget)  # type: ignore[arg-type]
        k, rate = planned.k, planned.beta / b
        if rate > 0.99:  # more than there are rows: draw nearly all of them
            rate = 0.99
            k = release.k or plan(beta=rate * b, **budget).k  # type: ignore[arg-type]
    assert k is not None
    event: Event = SafeRelease(k, realised(rate))
    if release.already_sampled:
        event = Sampled(event, release.already_sampled)
    accountant = Accountant(event)
    if release.epsilon is not None:
        epsilon, delta = release.epsilon, accountant.delta(epsilon=release.epsilon)
        if release.delta is not None and delta > release.delta:
            raise IncrowdError(
                f"k = {k} and beta = {rate:g} give delta = {delta:.3g} at epsilon = {epsilon:g}, "
                f"more than the {release.delta:g} of the spec. Use a larger k or a smaller beta."
            )
    elif release.delta is not None:
        delta, epsilon = release.delta, accountant.epsilon(delta=release.delta)
    else:
        raise IncrowdError("The spec must give epsilon, delta or both under 'release'.")
    if not epsilon < float("inf"):
        raise IncrowdError(
            f"No epsilon reaches delta = {delta:g} with k = {k} and beta = {rate:g}."
        )
    return [event], (epsilon, delta)
