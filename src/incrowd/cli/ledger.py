"""Commands about the privacy budget of a table: those below `incrowd ledger`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli import terminal
from incrowd.cli.options import Json, Verbose, number_option, parse_number
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError
from incrowd.release.ledger_entries import PARALLEL_RULE, RULE, format_guarantee, format_remaining

if TYPE_CHECKING:
    from incrowd.privacy.filter import Charge
    from incrowd.release.ledger import Ledger
    from incrowd.release.ledger_entries import Spend

ledgers = typer.Typer(help="Keep the privacy budget of a table.", no_args_is_help=True)
_File = Annotated[Path, typer.Argument(metavar="FILE", help="Path of the ledger.")]


@ledgers.command()
def budget(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Path of the ledger; created if it is new.")
    ],
    epsilon: Annotated[str, number_option("Total ε of all releases.")],
    delta: Annotated[str, number_option("Total δ of all releases.")],
    raising: Annotated[
        bool, typer.Option("--raise", help="Confirm a larger budget than before.")
    ] = False,
) -> None:
    """Set the privacy budget of a table, and create its ledger. Earlier budgets stay on record."""
    from incrowd.release.ledger import Ledger

    Ledger(file).set_budget(
        epsilon=parse_number("epsilon", epsilon),
        delta=parse_number("delta", delta),
        raising=raising,
    )
    print(f"Budget of {file}: (ε, δ) = ({epsilon}, {delta})")
    terminal.print_facts(
        [("Composition", RULE), ("Next", f"add `ledger: {file.name}` to the spec")]
    )


@ledgers.command()
def unit(
    file: _File,
    row: Annotated[bool, typer.Option("--row", help="Protect one row.")] = False,
    id_: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Protect one person, identified by a column."),
    ] = None,
) -> None:
    """Set the unit that the releases under a ledger protect, before the first one."""
    from incrowd.release.ledger import ONE_ROW, Ledger, name_person_unit

    if row == (id_ is not None):
        raise IncrowdError("Expected either --row or --id COLUMN. Give one of them.")
    protected = ONE_ROW if id_ is None else name_person_unit(id_)
    Ledger(file).set_unit(protected)
    print(f"Unit of {file}: {protected}")


@ledgers.command()
def plan(
    file: _File,
    spec: Annotated[
        Path, typer.Option(metavar="SPEC", help="Path of the spec of every release of the block.")
    ],
    releases: Annotated[
        str | None, number_option("Number of releases. Default: `releases` of the spec.")
    ] = None,
    delta: Annotated[
        str | None, number_option("δ of the block. Default: the sum over its releases.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Book a block of releases in advance, which compose tightly.

    If the spec sets `releases`, its ε and δ are those of the whole block.
    """
    from incrowd.methods.spec_ledger import plan_block
    from incrowd.privacy.events import describe_event, serialize_event
    from incrowd.release.ledger import Ledger
    from incrowd.spec.file import read_spec_file

    loaded = read_spec_file(spec)
    block = plan_block(
        loaded,
        Ledger(file),
        releases=parse_number("releases", releases),
        delta=parse_number("delta", delta),
    )
    if as_json:
        terminal.print_json({"plan": convert_entry(block), "event": serialize_event(block.event)})
        return
    named = "" if loaded.spec.ledger is not None else f" --ledger {file}"
    print(f"Booked block {block.number} of {file}: {block.releases:,} planned releases")
    facts = [
        ("Guarantee", f"(ε, δ) = {format_guarantee(block.guarantee)}, all releases together"),
        ("Each release", describe_event(block.event)),
        ("Next", f"incrowd publish {spec} -o FOLDER{named}"),
        ("Note", "keep `release` and `unit` of the spec; other releases are booked separately"),
    ]
    terminal.print_facts(facts)


@ledgers.command()
def show(
    file: _File,
    k: Annotated[
        str | None, number_option("k of a further sample, to test whether it fits.")
    ] = None,
    beta: Annotated[str | None, number_option("β of that sample.")] = None,
    epsilon: Annotated[
        str | None, number_option("ε of a further release, to test whether it fits.")
    ] = None,
    delta: Annotated[str | None, number_option("δ of that release.")] = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Show the budget, its entries, and whether a further release fits."""
    from incrowd.privacy.events import describe_event
    from incrowd.release.ledger import Ledger

    book = Ledger(file)
    allowed, spends, total, left = (
        book.budget(),
        book.spends(),
        book.total(),
        book.remaining_budget(),
    )
    further = _price_further_release(book, *map(parse_number, _OPTIONS, (k, beta, epsilon, delta)))
    after = None if further is None else book.total([further[1]])
    if as_json:
        finite = after is not None and math.isfinite(after.epsilon)
        terminal.print_json(
            {
                "budget": vars(allowed),
                "budgets": [vars(entry) for entry in book.budgets()],
                "unit": book.unit(),
                "rule": RULE,
                "booked": vars(total),
                "remaining": vars(left),
                "after_next_release": vars(after) if after is not None and finite else None,
                "entries": [convert_entry(spend) for spend in spends],
            }
        )
        return
    print(f"Ledger {file}")
    releases = _count(sum(spend.used for spend in spends), "release", "releases")
    entries = _count(len(spends), "entry", "entries")
    facts = [
        ("Budget", f"(ε, δ) = ({allowed.epsilon:g}, {allowed.delta:g}){_since(book)}"),
        ("Unit", book.unit() or ""),
        ("Booked", f"(ε, δ) = {format_guarantee(total)} by {entries}, {releases} made"),
        ("Remaining", f"(ε, δ) = {format_remaining(left)}"),
    ]
    if further is not None and after is not None:
        facts.append(("Next release", _describe_next(book, *further)))
    if len({spend.charge.rate for spend in spends}) > 1:
        facts.append(("Sampling", "entries state different rates, so nothing is amplified"))
    if any(spend.part is not None for spend in spends):
        facts.append(("Parts", PARALLEL_RULE))
    if verbose:
        facts.append(("Composition", RULE))
        facts += [
            (
                "Earlier budget",
                f"(ε, δ) = ({earlier.epsilon:g}, {earlier.delta:g}), from {earlier.day}",
            )
            for earlier in book.budgets()[:-1]
        ]
    terminal.print_facts(facts)
    if spends:
        print("Entries")
    for spend in spends:
        kind = "unplanned release"
        if spend.releases is not None:
            kind = f"planned block, {spend.used} of {spend.releases} releases made"
        print(
            f"  {spend.number:>3}  {spend.day}  (ε, δ) = {format_guarantee(spend.guarantee)}  "
            f"{kind}{'' if spend.part is None else f', part {spend.part}'}"
        )
        if verbose:
            each = "each release: " if spend.releases is not None else ""
            terminal.print_wrapped(f"{each}{describe_event(spend.event)}", indent=7)


def _since(book: Ledger) -> str:
    return f", since {book.budget().day}" if len(book.budgets()) > 1 else ""


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number:,} {singular if number == 1 else plural}"


def _describe_next(book: Ledger, name: str, charge: Charge) -> str:
    """Return whether a further release fits, and the total with it."""
    after = book.total([charge])
    if book.allows_charges([charge]):
        return f"{name} fits; total (ε, δ) = {format_guarantee(after)}"
    left = book.remaining_budget()
    if left.delta <= 0:
        return "δ is used up: the ledger allows no further release"
    if left.epsilon <= 0:
        return "ε is used up: the ledger allows no further release"
    if math.isinf(after.epsilon):
        return f"{name} does not fit: δ is too small for it"
    return f"{name} does not fit; total (ε, δ) would be {format_guarantee(after)}"


_OPTIONS = ("k", "beta", "epsilon", "delta")


def _price_further_release(
    book: Ledger, k: int | None, beta: float | None, epsilon: float | None, delta: float | None
) -> tuple[str, Charge] | None:
    """Return a further unplanned release in words, and its charge; by default the last one."""
    from incrowd.privacy.accountant import Accountant
    from incrowd.privacy.amplification import Guarantee, invert_amplification
    from incrowd.privacy.events import Mechanism, SafeRelease, SampledEvent
    from incrowd.privacy.filter import Charge

    if k is not None and beta is not None:
        event = book.match_sampling(SafeRelease(k, beta))
        share = book.remaining_budget().delta if delta is None else delta
        words = f"k = {k}, β = {beta:g} at δ = {share:g}"
        cost = Accountant(event).epsilon(delta=share) if share > 0 else math.inf
        if math.isinf(cost):
            return words, Charge(Guarantee(math.inf, share), Guarantee(math.inf, share))
        return words, book.compute_charge([event], Guarantee(cost, share))
    if epsilon is not None and delta is not None:
        stated = Guarantee(epsilon, delta)
        event = book.match_sampling(Mechanism(epsilon, delta))
        if isinstance(event, SampledEvent):
            inside = invert_amplification(epsilon=epsilon, delta=delta, rate=event.rate)
            event = SampledEvent(Mechanism(inside.epsilon, inside.delta), event.rate)
        return f"ε = {epsilon:g}, δ = {delta:g}", book.compute_charge([event], stated)
    unplanned = [spend for spend in book.spends() if spend.releases is None]
    return ("another release like the last one", unplanned[-1].charge) if unplanned else None


def convert_entry(spend: Spend) -> dict[str, Any]:
    """Return an entry of a ledger as plain values, for JSON."""
    from incrowd.privacy.events import serialize_event

    return {
        "number": spend.number,
        "day": spend.day,
        "kind": "unplanned release" if spend.releases is None else "planned block",
        "epsilon": spend.guarantee.epsilon,
        "delta": spend.guarantee.delta,
        "releases": 1 if spend.releases is None else spend.releases,
        "releases_made": spend.used,
        "event": serialize_event(spend.event),
        "part": spend.part,
    }
