"""Groups of commands: those below `incrowd ledger` and `incrowd hierarchy`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from incrowd.errors import IncrowdError
from incrowd.privacy.rounded import rounded
from incrowd.ui import results, terminal
from incrowd.ui.options import number, parsed
from incrowd.ui.terminal import say as print  # noqa: A004 - names and values come from anywhere

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
def show(
    file: Annotated[Path, typer.Argument(help="The ledger.")],
    k: Annotated[str | None, number("What would a further release with this k")] = None,
    beta: Annotated[str | None, number("... and this beta cost?")] = None,
    epsilon: Annotated[str | None, number("Or one by counts, with this epsilon")] = None,
    delta: Annotated[str | None, number("... and this delta?")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what was spent, what is left, and what a further release would cost."""
    from incrowd.privacy.events import Event, SafeRelease, as_dict, words
    from incrowd.privacy.split_counts import counted
    from incrowd.release.ledger import Ledger

    book = Ledger(file)
    allowed, spends, spent = book.budget(), book.spends(), book.spent()
    further, what = None, "the last one's parameters"
    if k is not None and beta is not None:
        event: Event = SafeRelease(parsed("k", k), parsed("beta", beta))
        further, what = book.spent([book.as_before(event)]), f"k = {k}, beta = {beta}"
    elif epsilon is not None and delta is not None:
        event = counted(epsilon=parsed("epsilon", epsilon), delta=parsed("delta", delta)).event
        further = book.spent([book.as_before(event)])
        what = f"counts of epsilon = {epsilon}, delta = {delta}"
    elif spends:
        further = book.spent([spends[-1].event])
    if as_json:
        listed = [{"day": spend.day, "event": as_dict(spend.event)} for spend in spends]
        terminal.print_json(
            {
                "budget": vars(allowed),
                "budgets": [vars(one) for one in book.budgets()],
                "unit": book.unit(),
                "spent": spent,
                "left": max(allowed.epsilon - spent, 0.0),
                "with_one_more": None if further == math.inf else further,
                "spends": listed,
            }
        )
        return
    for spend in spends:
        print(f"{spend.number:4}  {spend.day}  {words(spend.event)}")
    for one in book.budgets()[:-1]:
        print(f"Before  epsilon = {one.epsilon:g} at delta = {one.delta:g}, from {one.day}")
    since = f", since {allowed.day}" if len(book.budgets()) > 1 else ""
    print(f"Budget  epsilon = {allowed.epsilon:g} at delta = {allowed.delta:g}{since}")
    if book.unit() is not None:
        print(f"Unit    {book.unit()}")
    print(f"Spent   epsilon = {rounded('epsilon', spent, 4)} by {len(spends)} release(s)")
    left = rounded("left", max(allowed.epsilon - spent, 0.0), 4)
    print(f"Left    epsilon = {left}")
    if further is not None:
        fits = "fits" if further <= allowed.epsilon else "does not fit"
        total = "inf" if math.isinf(further) else rounded("epsilon", further, 4)
        print(f"A further release with {what} would bring it to {total}, which {fits}.")


hierarchies = typer.Typer(help="Look at hierarchies and convert them.", no_args_is_help=True)


@hierarchies.command()
def preview(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    column: Annotated[str, typer.Argument(help="The column.")],
    counts: Annotated[bool, typer.Option("--counts", help="Count the table's rows.")] = False,
    most: Annotated[int, typer.Option(help="Show so many values at most.")] = 40,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a hierarchy: one row per value, one column per level."""
    from incrowd.spec.file import load
    from incrowd.tasks.preview import preview as look

    shown = look(load(spec), column, counted=counts)
    terminal.print_json(shown.as_dict()) if as_json else results.print_preview(shown, counts, most)


@hierarchies.command()
def tree(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    column: Annotated[str, typer.Argument(help="The column.")],
    counts: Annotated[bool, typer.Option("--counts", help="Count the table's rows.")] = False,
    most: Annotated[int, typer.Option(help="Show so many groups and values at most.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a hierarchy as a tree, with the groups of each level; large ones are folded."""
    from incrowd.spec.file import load
    from incrowd.tasks.tree import tree as look

    shown = look(load(spec), column, counted=counts, most=most)
    terminal.print_json(shown.as_dict()) if as_json else results.print_tree(shown)


@hierarchies.command()
def convert(
    source: Annotated[Path, typer.Argument(help="A spec, or a hierarchy in ARX form (.csv).")],
    column: Annotated[str | None, typer.Argument(help="The column of the spec.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file.")] = None,
    delimiter: Annotated[str, typer.Option(help="Between the levels.")] = ";",
    values_are_public: Annotated[
        bool,
        typer.Option("--values-are-public", help="Take unlisted values from the table."),
    ] = False,
) -> None:
    """Turn a column's hierarchy into ARX form, or an ARX file into YAML for a spec."""
    from incrowd.spec.arx import read_rows, write_rows
    from incrowd.spec.file import load
    from incrowd.tasks.preview import as_groups, hierarchy_of

    if source.suffix.lower() not in (".yaml", ".yml"):
        text = f"hierarchy: {as_groups(read_rows(source))}\n"
    elif column is None:
        raise IncrowdError("Name the column of the spec whose hierarchy is to be written.")
    else:
        found = hierarchy_of(load(source), column, values_are_public=values_are_public)
        text = write_rows(found, delimiter)
    if output is None:
        terminal.hand_out(text)
    elif output.exists():
        raise IncrowdError(f"'{output}' exists already. Name another file with -o.")
    else:
        output.write_text(text, encoding="utf-8")
