"""A safe release: one table or slices, what is spent on it, and what it promises."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from incrowd.arrays import Progress, Step
from incrowd.codes.counted import Counted
from incrowd.engine.count import count
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.measure.slices import sliced
from incrowd.methods.base import Made, Product, alone, protection, published
from incrowd.methods.safe.auto import decided
from incrowd.methods.safe.budget import fixed, searched
from incrowd.methods.safe.scheme import Walk
from incrowd.methods.safe.slices import Slicer
from incrowd.privacy.events import Event, SafeRelease
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.split import Budget
from incrowd.release.certificate import Guarantee
from incrowd.release.statements import Told, told
from incrowd.spec.build import Declared
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Column, Spec
from incrowd.spec.release import SafeSpec

SLICES_SHARE = 0.05


class Safe:
    """Sample, generalise by a scheme that depends on no single person, drop what is rare."""

    def __init__(self, file: SpecFile) -> None:
        self._file, self._columns = file, _generalised(file.spec)
        assert isinstance(file.spec.release, SafeSpec)
        self._release = file.spec.release
        self._slicing = Slicer(self._release.slices, tuple(self._columns))
        self._declared = Declared(self._columns, file.folder)
        self._scheme, self._reasons = decided(self._release, self._declared)
        self._budget = self._settled()

    def _settled(self) -> Budget:
        """What is spent, on all tables together.

        Choices of many tables, or many choices, compose better than they add up; so each may
        spend more than its part.
        """
        release, tables, steps = self._release, self._slicing.tables, self._slicing.choices
        epsilon = release.epsilon or 0.0
        chosen = [SLICES_SHARE * epsilon / math.sqrt(steps)] * steps if steps else []
        shares = self._scheme.shares()
        if not shares:
            return fixed(release, choices=chosen, tables=tables)
        own = [share * epsilon / math.sqrt(tables) for share in shares]
        if release.search_epsilon is not None:
            own = [release.search_epsilon / len(own)] * len(own)
        return searched(release, selections=own, choices=chosen, tables=tables)

    @property
    def events(self) -> list[Event]:
        """Selections and safe releases."""
        return self._budget.events

    def guarantee(self) -> Guarantee:
        """(epsilon, delta)-differential privacy of everything that is made."""
        return Guarantee(
            kind="differential privacy",
            epsilon=self._budget.epsilon,
            delta=self._budget.delta,
            **protection(self._file.spec),
        )

    def count(self, table: Table) -> Counted:
        """The tuples that the scheme works on; of slices, those of all columns."""
        if self._slicing.tables == 1:
            return self._scheme.counted(table)
        return count(table, self._declared)

    def make(self, counted: Counted, bits: Randomness, step: Step, progress: Progress) -> Made:
        """Choose what is to be chosen, draw, drop what is rare."""
        walk = Walk(bits, step, progress)
        if self._slicing.tables == 1:
            product, pair = self._scheme.product(counted, self._budget, walk)
            return replace(alone(self._known(product, pair, 0)), reasons=self._reasons)
        products = []
        step("slice")
        epsilons = [Fraction(repr(epsilon)) for epsilon in self._budget.choices]
        parts = self._slicing.slices(counted, epsilons, bits, self._budget.pairs)
        for number, names in enumerate(parts):
            product, pair = self._scheme.product(counted.part(names), self._budget, walk)
            products.append(self._known(product, pair, number))
        step("associate")
        return Made(
            products=tuple(products),
            evaluation=sliced(counted, counted.axes, products),
            parameters=self._told.shared,
            reasons=tuple(filter(None, (*self._reasons, self._slicing.reason))),
        )

    @property
    def _told(self) -> Told:
        found = told(self.events)
        assert found is not None
        return found

    def _known(self, product: Product, pair: SafeRelease, number: int) -> Product:
        """The product with the parameters that its events tell."""
        (known,) = (
            known
            for known in self._told.tables[number]
            if (known["k"], known["beta"]) == (pair.k, pair.beta)
        )
        return replace(product, parameters=known)


def _generalised(spec: Spec) -> dict[str, Column]:
    """The columns that are published, all of them generalised; or the reason why not."""
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
