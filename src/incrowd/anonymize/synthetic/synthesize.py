"""From a private table to synthetic rows: measure, choose, fit, draw.

1. The number of rows and every one-way table are measured, then the tables that are asked for.
2. Pairs: in rounds, tables that the model explains badly are chosen privately and measured; those
   that turn out to be more than noise are kept, and the model is fitted anew.
3. Triples, in the same way.
4. What is left of the budget goes to the tables that the model holds.
5. The model is fitted to all of it, and rows are drawn: as many as the measurements say.

Where no relation between columns turns out to be more than noise, no table but the one-ways is
held, and they get all that is left: the rows then are those of independent columns.

**Claim.** What is released, the measurements and with them the choices, costs at most the events of
the plan: one :class:`~incrowd.privacy.events.GaussianMeasurements` and so many
:class:`~incrowd.privacy.events.BoundedChoice`.

**Proof.** The private table is read in two places. A
:class:`~incrowd.anonymize.synthetic.stage.Bench` measures tables with parts of one
:class:`~incrowd.privacy.information.InformationBudget` (:mod:`incrowd.privacy.gaussian`); and
scores are computed from it, of which only a choice is told
(:mod:`incrowd.anonymize.synthetic.choice`). A stage makes at most the choices it was given, whose
sum is that of the plan. Everything else that is decided on the way (parts of the budget, levels,
which tables are held, when to stop) is a function of declarations and of what was released before
(:mod:`incrowd.anonymize.synthetic.released`). The model and the rows are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from incrowd.anonymize.synthetic.allocation import (
    MODEL_CELLS,
    ONE_WAY_NEED,
    PAIR_SHARE,
    TOTAL_SHARE,
    TRIPLE_SHARE,
    ChoiceCounts,
    allows_relations,
    average_cells,
    count_choices,
    fill_up,
    find_rows_need,
    limit_cells,
    share_one_ways,
)
from incrowd.anonymize.synthetic.choice import (
    Candidate,
    CountTable,
    PrivateTables,
    limit_levels,
    list_pairs,
    list_triples,
    make_candidate,
)
from incrowd.anonymize.synthetic.domain import Columns, Domain, RulesError
from incrowd.anonymize.synthetic.measurement import Measurement, centered_axes
from incrowd.anonymize.synthetic.model import Model, make_structure
from incrowd.anonymize.synthetic.refit import fit_measurements
from incrowd.anonymize.synthetic.released import Key, Released
from incrowd.anonymize.synthetic.rows import draw_rows
from incrowd.anonymize.synthetic.stage import ROUND_GAP, ROUND_STEPS, Bench, Stage
from incrowd.arrays import Codes
from incrowd.errors import ParameterError
from incrowd.privacy.events import Event
from incrowd.privacy.information import InformationBudget, InformationPlan, plan_information
from incrowd.privacy.randomness import Randomness

TABLE_CELLS = 2**16
COUNTED_CELLS = 2**26  # of all pairs together
TRIPLE_CELLS = (2048, 256)
MOST_TRIPLES = 3000


@dataclass(frozen=True, eq=False)
class Synthesis:
    """Synthetic rows and all that was released for them.

    ``rows`` are codes, one column for each of the domain's. ``measurements`` and ``model`` may be
    published: ``events`` pay for them. Tables ``aside`` were measured, and the model does not hold
    them.
    """

    rows: Codes
    measurements: tuple[Measurement, ...]
    aside: frozenset[Key]
    model: Model
    events: tuple[Event, ...]


def plan_synthesis(
    domain: Domain, *, epsilon: float, delta: float, size: int | None = None
) -> InformationPlan:
    """Return the budget of a synthesis of a table within (epsilon, delta).

    Where a size that is public knowledge leaves no relation worth measuring, no choice is planned
    or paid for: the rows then are those of independent columns, with the whole budget.
    """
    columns, cells = len(domain), average_cells(domain.leaves)
    independent = plan_information(epsilon=epsilon, delta=delta, choices=0)
    choices = count_choices(columns).total
    if not choices or (
        size is not None and not allows_relations(size, columns, independent.information, cells)
    ):
        return independent
    return plan_information(epsilon=epsilon, delta=delta, choices=choices)


def synthesize(
    domain: Domain,
    count: CountTable,
    plan: InformationPlan,
    *,
    bits: Randomness,
    tables: Sequence[Columns] = (),
    target: int | None = None,
) -> Synthesis:
    """Synthesize rows of a private table.

    Args:
        domain: the columns, and the rules that every row obeys.
        count: the private table; see :class:`~incrowd.anonymize.synthetic.domain.TableCounter`.
        plan: the budget, of :func:`plan_synthesis` for this domain. Without choices,
            only one-way tables and ``tables`` are measured.
        bits: the source of randomness.
        tables: sets of columns whose table is measured in any case.
        target: a column whose relations matter more than others.

    Raises:
        ParameterError: if the plan is for another number of columns, or a table cannot be held.
        RulesError: if the rules contradict each other, or are too large; nothing is spent then.

    """
    released = measure_tables(domain, count, plan, bits=bits, tables=tables, target=target)
    model = fit_measurements(domain, released.measurements, released.aside)
    rng = np.random.default_rng([int(word) for word in bits.draw_words(4)])
    rows = draw_rows(model, max(round(model.rows), 1), rng)
    return Synthesis(
        domain.decode(rows), tuple(released.measurements), released.aside, model, plan.events
    )


def measure_tables(
    domain: Domain,
    count: CountTable,
    plan: InformationPlan,
    *,
    bits: Randomness,
    tables: Sequence[Columns] = (),
    target: int | None = None,
) -> Released:
    """Choose and measure tables: all of a synthesis that sees the private table.

    Its arguments are those of :func:`synthesize`.
    """
    choices = count_choices(len(domain))
    if plan.choices not in (0, choices.total):
        raise ParameterError("plan", f"have {choices.total} choices, or none", plan.choices)
    request = [tuple(sorted(set(columns))) for columns in tables]
    _check_rules(domain)
    _check_tables(domain, request, target)
    released = Released(domain)
    required = _hold_required(released, request)
    bench = Bench(
        PrivateTables(domain, count),
        InformationBudget(plan.information),
        Fraction(repr(plan.choice_epsilon)),
        bits,
        target,
    )
    _measure_first(bench, released, required, chooses=plan.choices > 0)
    if plan.choices:
        _run_stages(bench, released, choices, limit_cells(released.model.rows, plan.information))
    _top_up(bench, released)
    return released


def _run_stages(bench: Bench, released: Released, choices: ChoiceCounts, cells: int) -> None:
    """Choose and measure pairs, then triples, for a model of so many cells."""
    domain, left = released.domain, float(bench.budget.left)
    if len(domain) > 1:
        most = min(TABLE_CELLS, COUNTED_CELLS // math.comb(len(domain), 2))
        pairs = Stage(
            bench,
            released,
            list(list_pairs(domain, most)),
            choices=choices.pairs,
            information=PAIR_SHARE * left,
        )
        pairs.run(batch=choices.batch, cells=cells, grow=True)
    if len(domain) > 2:
        triples = Stage(
            bench,
            released,
            list(list_triples(domain, TRIPLE_CELLS, _wants_triple(released))),
            choices=choices.triples,
            information=TRIPLE_SHARE * left,
        )
        triples.run(batch=choices.batch, cells=cells, grow=False)


def check_request(domain: Domain, tables: Sequence[Columns], target: int | None) -> None:
    """Refuse, before anything is spent, what :func:`synthesize` would refuse.

    Raises:
        ParameterError: if a table cannot be held.
        RulesError: if the rules contradict each other, or are too large.

    """
    request = [tuple(sorted(set(columns))) for columns in tables]
    _check_rules(domain)
    _check_tables(domain, request, target)
    _hold_required(Released(domain), request)


def _check_rules(domain: Domain) -> None:
    """Refuse, before anything is spent, rules that no row obeys or no model can hold."""
    released = Released(domain)
    if not released.fits((), (), MODEL_CELLS):
        raise RulesError(
            "The rules join too many values for one model. Write them about groups of values, or "
            "about fewer columns."
        )
    structure = make_structure(domain, released.levels, released.graph)
    structure.calibrate([np.zeros(shape) for shape in structure.shapes])


def _check_tables(domain: Domain, tables: Sequence[Columns], target: int | None) -> None:
    """Refuse columns that do not exist."""
    places = range(len(domain))
    for columns in tables:
        if len(columns) not in (2, 3) or any(column not in places for column in columns):
            raise ParameterError("tables", "hold two or three columns each", columns)
    if target is not None and target not in places:
        raise ParameterError("target", f"be a column from 0 to {len(domain) - 1}", target)


def _hold_required(released: Released, tables: Sequence[Columns]) -> list[Candidate]:
    """Hold the tables that are asked for, at the finest levels at which a model can.

    Raises:
        ParameterError: if it cannot; nothing is spent yet.

    """
    domain, candidates = released.domain, []
    for columns in tables:
        levels = limit_levels(
            domain, columns, TABLE_CELLS if len(columns) == 2 else TRIPLE_CELLS[0]
        )
        while levels is not None and not released.fits(columns, levels, MODEL_CELLS):
            levels = limit_levels(domain, columns, domain.cells(columns, levels) - 1, levels)
        if levels is None:
            raise ParameterError("tables", "fit into one model: leave some out", columns)
        candidates.append(make_candidate(domain, columns, levels))
        released.hold(columns, levels)
    return candidates


def _measure_first(
    bench: Bench, released: Released, required: Sequence[Candidate], *, chooses: bool
) -> None:
    """Measure the number of rows, the one-way tables and those asked for; fit a first model."""
    domain = released.domain
    total = float(bench.budget.total)
    bench.measure(released, (), (), TOTAL_SHARE * total)
    share = (
        share_one_ways(len(domain), released.count_rows(), total)
        if chooses or required
        else 1.0 - TOTAL_SHARE
    ) * total
    one_ways = [make_candidate(domain, (column,), (0,)) for column in range(len(domain))]
    needs = sum(way.need for way in one_ways)
    rows_need = find_rows_need(sum(bool(centered_axes((size,))) for size in domain.leaves))
    missing = (share + TOTAL_SHARE * total) * rows_need / (needs + rows_need) - TOTAL_SHARE * total
    if missing > TOTAL_SHARE * total:  # less is not worth a measurement of its own
        bench.measure(released, (), (), missing)
        share -= missing
    for first in one_ways:
        bench.measure(released, first.columns, first.levels, share * first.need / needs)
    released.fit_model(gap=ROUND_GAP, steps=ROUND_STEPS)
    left = PAIR_SHARE / 2 * float(bench.budget.left)
    needs = sum(candidate.need for candidate in required)
    for first in required:
        bench.measure(released, first.columns, first.levels, left * first.need / needs)
    if required:
        released.fit_model(gap=ROUND_GAP, steps=ROUND_STEPS)


def _wants_triple(released: Released) -> Callable[[Columns], bool]:
    """All triples; of very many, those of which the model holds two pairs."""
    many = math.comb(len(released.domain), 3) > MOST_TRIPLES

    def wants(columns: Columns) -> bool:
        joined = sum(released.graph[a] >> b & 1 for a, b in combinations(columns, 2))
        return not many or joined >= 2

    return wants


def _top_up(bench: Bench, released: Released) -> None:
    """Give what is left of the budget to the tables that the model holds."""
    if not bench.budget.left:
        return
    estimates = released.estimates()
    needs = [
        make_candidate(released.domain, *key).need * (ONE_WAY_NEED if len(key[0]) == 1 else 1.0)
        for key in estimates
    ]
    have = [estimate.information for estimate in estimates.values()]
    for key, part in zip(estimates, fill_up(have, needs, float(bench.budget.left)), strict=True):
        bench.measure(released, *key, float(part))
