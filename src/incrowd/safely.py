"""A safe release of a table: what is spent, and the cells that are shown.

k and beta are settled from the spec, the table is grouped once at the levels of the spec, and
its counts are thinned by beta and cut at k.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from incrowd.anonymize.frequency import between
from incrowd.anonymize.lattice import Rollups
from incrowd.anonymize.safe import safe
from incrowd.anonymize.search import ramp, search
from incrowd.builders import build, is_open
from incrowd.certificate import Guarantee, parameters_of, statement
from incrowd.engine import Table
from incrowd.engine.count import Counted, count
from incrowd.errors import IncrowdError
from incrowd.grouping import lattice_between
from incrowd.outcome import outcome_of
from incrowd.pairing import RATES, paired
from incrowd.planning import plan
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event, SafeRelease, Sampled
from incrowd.privacy.randomness import Randomness, realised
from incrowd.product import Product, Progress, Recoded, Step, cells, published, unit_of
from incrowd.spec import Column, Spec
from incrowd.specfile import SpecFile

SEARCH_SHARE = 0.05
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
        promised = Guarantee(
            kind="differential privacy",
            statement="",
            epsilon=self._epsilon,
            delta=self._delta,
            unit=unit_of(self._file.spec),
        )
        return promised.model_copy(update={"statement": statement(self._known, promised)})

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
        self._search = release.search_epsilon or SEARCH_SHARE * release.epsilon
        rate = release.beta or release.keep
        self._pairs, self.events = paired(
            epsilon=release.epsilon,
            delta=release.delta,
            search_epsilon=self._search,
            rates=RATES if rate is None else (rate,),
            population=release.already_sampled,
        )
        if release.k is not None:
            raise IncrowdError("'scheme: search' finds k itself; leave 'k' out.")
        heights = [build(c, folder=self._file.folder).height for c in self._columns.values()]
        self._lattice = lattice_between(tuple(self._columns), heights, release.levels)
        self._known = {}

    def _counted(self, table: Table, bits: Randomness, step: Step, progress: Progress) -> Counted:
        """The table at level 0, a scheme chosen, and rolled up to it."""
        whole = count(table, self._columns, folder=self._file.folder)
        step("search")
        weights = np.array([column.weight for column in self._columns.values()])
        chosen = search(
            Rollups(whole.hierarchies, whole.frequencies),
            self._lattice,
            [ramp(pair.k, pair.beta) for pair in self._pairs],
            epsilon=Fraction(repr(self._search)),
            power=POWERS[self._release.objective or "rows"],
            weights=weights,
            bits=bits,
            progress=progress,
        )
        (self._known,) = (
            known
            for known in parameters_of(self.events)
            if (known["k"], known["beta"]) == (chosen.ramp.k, chosen.ramp.beta)
        )
        maps = between(whole.hierarchies, whole.levels, chosen.levels)
        return replace(whole, levels=chosen.levels, frequencies=whole.frequencies.rolled(maps))


def _generalised(spec: Spec) -> dict[str, Column]:
    """The columns that are published, all of them generalised; or the reason why not."""
    release = spec.release
    assert release is not None
    if release.scheme not in (None, "fixed", "search"):
        raise IncrowdError(f"'scheme: {release.scheme}' cannot be published so far.")
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
