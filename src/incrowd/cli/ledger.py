"""Commands about the privacy budget of a table: those below `incrowd ledger`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli import terminal
from incrowd.cli.options import number, parsed
from incrowd.cli.terminal import say as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError
from incrowd.release.entries import RULE, write_left, write_pair

if TYPE_CHECKING:
    from incrowd.privacy.filter import Charge
    from incrowd.release.entries import Spend
    from incrowd.release.ledger import Ledger

ledgers = typer.Typer(help="The privacy budget of a table.", no_args_is_help=True)


@ledgers.command()
def budget(
    file: Annotated[Path, typer.Argument(help="The ledger; made if it is new.")],
    epsilon: Annotated[str, number("What may be spent in all: epsilon.")],
    delta: Annotated[str, number("What may be spent in all: delta.")],
    raising: Annotated[
        bool, typer.Option("--raise", help="Confirm that more may be spent than before.")
    ] = False,
) -> None:
    """Set the budget of a table; this makes its ledger. All decisions stay on record."""
    from incrowd.release.ledger import Ledger

    Ledger(file).set_budget(
        epsilon=parsed("epsilon", epsilon), delta=parsed("delta", delta), raising=raising
    )
    print(f"The budget of {file} is epsilon = {epsilon}, delta = {delta}.")
    print(RULE)
    print(f"Name it in the spec: ledger: {file.name}")


@ledgers.command()
def unit(
    file: Annotated[Path, typer.Argument(help="The ledger.")],
    row: Annotated[bool, typer.Option("--row", help="Its releases protect one row.")] = False,
    id_: Annotated[
        str | None, typer.Option("--id", help="They protect one person, by this column.")
    ] = None,
) -> None:
    """Say what the releases under a ledger protect, where an older version has not written it."""
    from incrowd.release.ledger import ONE_ROW, Ledger, unit_of_id

    if row == (id_ is not None):
        raise IncrowdError("Say --row, or --id COLUMN.")
    protected = ONE_ROW if id_ is None else unit_of_id(id_)
    Ledger(file).set_unit(protected)
    print(f"The releases under {file} protect {protected}.")


@ledgers.command()
def plan(
    file: Annotated[Path, typer.Argument(help="The ledger.")],
    spec: Annotated[Path, typer.Option(help="The spec of every release of the block.")],
    releases: Annotated[
        str | None, number("How many releases; else 'releases' of the spec.")
    ] = None,
    delta: Annotated[
        str | None, number("Delta of the block; by default the sum of the releases'.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Book several releases in advance: their events are fixed, and compose tightly.

    With `releases` in the spec, its epsilon and delta are those of the whole block.
    """
    from incrowd.methods.outlay import plan_block
    from incrowd.privacy.events import as_dict, words
    from incrowd.release.ledger import Ledger
    from incrowd.spec.file import load

    loaded = load(spec)
    block = plan_block(
        loaded, Ledger(file), releases=parsed("releases", releases), delta=parsed("delta", delta)
    )
    if as_json:
        terminal.print_json({"plan": as_entry(block), "event": as_dict(block.event)})
        return
    print(
        f"Planned block {block.number} of {file}: {block.releases} releases, together (ε, δ) = "
        f"{write_pair(block.guarantee)}, composed tightly. All of it is booked."
    )
    print(f"Each release: {words(block.event)}")
    named = "" if loaded.spec.ledger is not None else f" --ledger {file}"
    print(f"For each release: incrowd publish {spec} -o FOLDER{named}")
    if named:
        print(f"Or name the ledger in the spec, once: ledger: {file.name}")
    print(
        "Leave 'release' and 'unit' of the spec as they are. A release with other events is "
        "unplanned and is booked besides the block."
    )


@ledgers.command()
def show(
    file: Annotated[Path, typer.Argument(help="The ledger.")],
    k: Annotated[str | None, number("Would a further sample with this k")] = None,
    beta: Annotated[str | None, number("... and this beta fit?")] = None,
    epsilon: Annotated[str | None, number("Or an unplanned release with this epsilon")] = None,
    delta: Annotated[str | None, number("... and this delta?")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is booked, what is left, and whether a further unplanned release would fit."""
    from incrowd.privacy.events import words
    from incrowd.release.ledger import Ledger

    book = Ledger(file)
    allowed, spends, total, left = book.budget(), book.spends(), book.total(), book.remaining()
    further = _further(book, *map(parsed, _OPTIONS, (k, beta, epsilon, delta)))
    after = None if further is None else book.total([further[1]])
    if as_json:
        finite = after is not None and math.isfinite(after.epsilon)
        terminal.print_json(
            {
                "budget": vars(allowed),
                "budgets": [vars(one) for one in book.budgets()],
                "unit": book.unit(),
                "rule": RULE,
                "booked": vars(total),
                "left": vars(left),
                "with_one_more": vars(after) if after is not None and finite else None,
                "entries": [as_entry(spend) for spend in spends],
            }
        )
        return
    for spend in spends:
        kind = "unplanned release"
        if spend.releases is not None:
            kind = f"planned block, {spend.used} of {spend.releases} releases made"
        print(f"{spend.number:4}  {spend.day}  {kind}  (ε, δ) = {write_pair(spend.guarantee)}")
        print(f"      {'each: ' if spend.releases is not None else ''}{words(spend.event)}")
    for one in book.budgets()[:-1]:
        print(f"Before  epsilon = {one.epsilon:g} at delta = {one.delta:g}, from {one.day}")
    since = f", since {allowed.day}" if len(book.budgets()) > 1 else ""
    print(f"Budget  epsilon = {allowed.epsilon:g} at delta = {allowed.delta:g}{since}")
    if book.unit() is not None:
        print(f"Unit    {book.unit()}")
    made = sum(spend.used for spend in spends)
    entries = "1 entry" if len(spends) == 1 else f"{len(spends)} entries"
    releases = "1 release" if made == 1 else f"{made} releases"
    print(f"Booked  (ε, δ) = {write_pair(total)} by {entries}, {releases} made")
    print(f"Left    (ε, δ) = {write_left(left)}")
    rates = {spend.charge.rate for spend in spends}
    if len(rates) > 1:
        print("        Entries state different sampling rates, so that nothing is amplified.")
    print(f"Rule    {RULE}")
    if further is not None and after is not None:
        fits = "fits" if book.fits([further[1]]) else "does not fit"
        print(
            f"A further unplanned release with {further[0]} would bring it to "
            f"{write_pair(after)}, which {fits}."
        )


_OPTIONS = ("k", "beta", "epsilon", "delta")


def _further(
    book: Ledger, k: int | None, beta: float | None, epsilon: float | None, delta: float | None
) -> tuple[str, Charge] | None:
    """A further unplanned release in words, and its charge; by default the last one again."""
    from incrowd.privacy.accountant import Accountant
    from incrowd.privacy.amplification import Guarantee, allowed
    from incrowd.privacy.events import Mechanism, SafeRelease, Sampled
    from incrowd.privacy.filter import Charge

    if k is not None and beta is not None:
        event = book.match_sampling(SafeRelease(k, beta))
        share = book.remaining().delta if delta is None else delta
        words = f"k = {k}, beta = {beta:g} at delta = {share:g}"
        cost = Accountant(event).epsilon(delta=share) if share > 0 else math.inf
        if math.isinf(cost):
            return words, Charge(Guarantee(math.inf, share), Guarantee(math.inf, share))
        return words, book.charge_of([event], Guarantee(cost, share))
    if epsilon is not None and delta is not None:
        stated = Guarantee(epsilon, delta)
        event = book.match_sampling(Mechanism(epsilon, delta))
        if isinstance(event, Sampled):
            inside = allowed(epsilon=epsilon, delta=delta, rate=event.rate)
            event = Sampled(Mechanism(inside.epsilon, inside.delta), event.rate)
        return f"epsilon = {epsilon:g}, delta = {delta:g}", book.charge_of([event], stated)
    unplanned = [spend for spend in book.spends() if spend.releases is None]
    return ("the last one's parameters", unplanned[-1].charge) if unplanned else None


def as_entry(spend: Spend) -> dict[str, Any]:
    """Return an entry of a ledger as plain values, for JSON."""
    from incrowd.privacy.events import as_dict

    return {
        "number": spend.number,
        "day": spend.day,
        "kind": "unplanned release" if spend.releases is None else "planned block",
        "epsilon": spend.guarantee.epsilon,
        "delta": spend.guarantee.delta,
        "releases": 1 if spend.releases is None else spend.releases,
        "used": spend.used,
        "event": as_dict(spend.event),
    }
