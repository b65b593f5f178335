"""How results and progress look on a terminal, and results as JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from threading import Timer
from typing import TYPE_CHECKING, Any, TextIO

from incrowd.arrays import Progress, Step
from incrowd.privacy.plan import Plan, PlanTable
from incrowd.privacy.rounded import rounded

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from incrowd.measure.evaluation import ByLabels, Evaluation
    from incrowd.measure.noise import NoiseLoss, Noisiness, Simulated
    from incrowd.release.certificate import Certificate
    from incrowd.tasks.preview import Preview
    from incrowd.tasks.publish import Release
    from incrowd.tasks.tradeoff import Choice, Choices


def promise(certificate: Certificate) -> str:
    """The guarantee of a certificate, in short."""
    known = certificate.guarantee
    if known.epsilon is None or known.delta is None:
        epsilon_ = certificate.parameters.get("epsilon")
        delta_ = certificate.parameters.get("delta")
        noise = f" and epsilon = {epsilon_:g}" if isinstance(epsilon_, float) else ""
        noise += f", delta = {delta_:g}" if isinstance(delta_, float) else ""
        return f"{known.kind} with k = {certificate.k}{noise}, which is NOT differential privacy."
    epsilon = rounded("epsilon", known.epsilon, 4)
    return f"({epsilon}, {rounded('delta', known.delta, 3)})-differential privacy."


def chosen(certificate: Certificate) -> str:
    """What a search has chosen for the one table: k and beta, and levels where there are any."""
    known, words = certificate.parameters, ""
    if "search_epsilon" in known:
        several = len(certificate.events[-1].get("events", ())) > 1
        words = f"{'Chosen:' if several else 'With'} k = {certificate.k}, beta = {known['beta']}. "
    elif certificate.events:
        return ""
    levels = [
        f"{name} {'cut' if column.level is None else column.level}"
        for name, column in certificate.table.scheme.items()
    ]
    if any(column.level is not None for column in certificate.table.scheme.values()):
        words += f"Levels: {', '.join(levels)}."
    return words.strip()


def slice_lines(certificate: Certificate) -> list[str]:
    """One line for each slice: its file, columns and rows."""
    return [
        f"{table.release.file}: {', '.join(table.scheme)}; {table.release.rows:,} rows in "
        f"{table.release.classes:,} classes of at least {int(float(table.parameters['k']))}"
        for table in certificate.tables
    ]


def survivals(found: Evaluation) -> str:
    """Which associations survive, in a sentence; the report has the figures."""
    every = found.associations
    kept = sum(pair.slice is not None for pair in every)
    silent = sum(pair.silent is not None for pair in every)
    apart = f" ({silent} more stand together where one of the two shows nothing)" if silent else ""
    pairs = f"{kept} of {len(every)} pairs of columns"
    return (
        f"{pairs} are shown together in a slice{apart}; mean error of all associations "
        f"{found.association_error:.4f}."
    )


def published(release: Release) -> list[str]:
    """What a release is and promises, where its files are, and what to think of."""
    certificate, found = release.certificate, release.evaluation
    lines = [emptiness(release)] if release.empty else [_headline(release)]
    if found.slices:
        lines += [*slice_lines(certificate), survivals(found)]
    elif found.risk is None:
        lines += [chosen(certificate), advice(found)]
    else:
        gone = "Suppressed" if not certificate.events else "Not drawn, or suppressed:"
        lines.append(
            f"{gone} {found.suppressed:,} rows; normalised loss {found.loss:.4f}. "
            f"{chosen(certificate)}"
        )
        lines += [] if found.noise is None else noise_lines(found.noise)
    lines.insert(1, f"Private, for you alone: {release.curator / 'report.html'}")
    return [line for line in [*lines, *release.reasons] if line]


def _headline(release: Release) -> str:
    certificate = release.certificate
    satisfies = (
        f"satisfies {promise(certificate)}"
        if certificate.randomness == "system"
        else "is NOT private: its random numbers came from a seed."
    )
    if certificate.slices is not None:
        return f"Published {release.folder}. All of it together {satisfies}"
    data = certificate.table.release
    return (
        f"Published {release.folder}: {data.rows:,} rows in {data.classes:,} classes, each of at "
        f"least {certificate.k} rows. It {satisfies}"
    )


def emptiness(release: Release) -> str:
    """What to know of a release without rows: it is there, it counts, and why it is empty."""
    booked = "Published and booked, but empty: do not repeat" if release.booked else (
        "Published, but empty: do not repeat"
    )  # fmt: skip
    costs = " it unchanged." if not release.certificate.events else (
        " it unchanged. Each try spends the budget again, and this one has told already that "
        "nothing could be shown."
    )  # fmt: skip
    return f"{booked}{costs} The folder is {release.folder}."


def advice(found: Evaluation) -> str:
    """What to tell the curator when little survives; the figures are in the private report."""
    likely = found.likely_share or 0.0
    if likely > 0.5:
        return "" if found.rows_released else (
            f"Nothing survived, by chance: {likely:.0%} of the rows lie in cells "
            "that survive more often than not."
        )  # fmt: skip
    little = "Little" if found.rows_released else "Nothing"
    words = f"{little} survived: most rows lie in cells smaller than the crowd that is needed."
    better = [f"'{hint.column}'" for hint in found.advice if hint.helps(found)][:2]
    if better:
        words += (
            f" A coarser level of {' or '.join(better)} would change that, and the private report "
            "says how much;"
        )
    else:
        words += " One coarser level of a single column would not change that;"
    return (
        f"{words} so may fewer columns, a larger table or a larger budget. Levels must not be "
        "chosen by looking at the data."
    )


def print_evaluation(found: ByLabels) -> None:
    """Print an evaluation as a table and, in a few lines, risk and utility."""
    from rich.table import Table

    terminal = console()
    terminal.print(
        f"{found.rows_released:,} of {found.rows_original:,} rows are shown, {found.suppressed:,} "
        f"are not; {found.classes:,} classes, the smallest of {found.smallest_class:,}."
    )
    for name in found.missing_columns:
        terminal.print(f"It has no column '{name}', which counts as lost.", markup=False)
    for text in (*found.readings, *(found.noise.warnings if found.noise else ())):
        terminal.print(f"WARNING: {text}", markup=False, soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("column", "loss", "precision lost", "distance"):
        table.add_column(name, justify="left" if name == "column" else "right")
    for name, loss in found.loss_by_column.items():
        figures = (loss, found.precision_by_column[name], found.utility.distance_by_column[name])
        table.add_row(name, *(f"{value:.4f}" for value in figures))
    terminal.print(table, markup=False)
    losses, risk, useful = found.losses, found.risk, found.utility
    size = losses.average_class_size
    average = "none" if size is None else f"{size:.1f}"
    lines = [
        f"loss      {found.loss:.4f} normalised (a suppressed row counts 1)",
        f"          {losses.precision:.4f} precision lost, {losses.entropy:.4f} entropy",
        f"          {losses.discernibility:.4g} discernibility, {average} average class",
        f"risk      {risk.highest:.4f} highest, {risk.mean:.4f} mean (prosecutor)",
        f"          {risk.journalist:.4f} journalist, {risk.marketer:.4f} marketer",
        f"          {risk.uniques:.2%} unique, of the original {risk.uniques_original:.2%}",
        f"utility   {useful.association_error:.4f} mean error of associations",
        f"          {useful.query_error:.1%} median error of range counts",
    ]
    if found.noise is not None:
        lines += noise_lines(found.noise)
    if useful.accuracy is not None:
        known = useful.accuracy
        lines.append(
            f"          {known.released:.1%} of '{known.target}' predicted rightly from the "
            f"release, {known.original:.1%} from the original, {known.majority:.1%} by guessing"
        )
    for line in lines:
        terminal.print(line, markup=False, soft_wrap=True)


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Text with control characters spelled out, but for tabs and line breaks.

    Names and values come from anywhere; as they are, they could clear a terminal, hide what
    stands on it or turn it around.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return _CONTROL.sub(lambda found: _spelled(ord(found[0])), text)


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def say(*texts: object, end: str = "\n", file: TextIO | None = None) -> None:
    """Print texts with control characters spelled out; every plain line is said by this."""
    print(visible(" ".join(map(str, texts))), end=end, file=file)


def hand_out(text: str) -> None:
    """Print what is meant for another program: exactly, unless it goes to a terminal."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def console(*, stderr: bool = False) -> Console:
    """A terminal that shows text as it is, with control characters spelled out."""
    from rich.console import Console

    class Spelled(Console):
        def render_str(self, text: str, **more: Any) -> Text:
            return super().render_str(visible(text), **more)

    return Spelled(stderr=stderr, highlight=False, emoji=False)


def noise_lines(noise: Noisiness) -> list[str]:
    """What noise did, in a few lines: what was measured, then what was simulated."""
    lines = [f"noise     {name}: {_lost(loss)}" for name, loss in noise.columns.items()]
    if noise.linking is not None and noise.linking_shared is not None:
        lines.append(
            f"linking   {noise.linking.mean:.2%} of the rows, measured on this release; "
            f"{noise.linking_shared.mean:.2%} with ties shared"
        )
    else:
        lines.append(
            "linking   not measured: that takes a column that names the same row in both tables "
            "(--id)"
        )
    if noise.simulated is not None:
        lines += _simulated_lines(noise.simulated)
    return lines


def _lost(loss: NoiseLoss) -> str:
    """What noise did to one column, as far as it is known."""
    if loss.measured_error is not None:
        return f"relative error {loss.measured_error:.2%}{_expected(loss)}"
    if loss.least_error is None:
        return "nothing to measure: no released value stands in a class of the original"
    return (
        f"mean absolute error at least {loss.least_error:.4g} (over {loss.rows_compared:,} rows; "
        "which row is whose is not known)"
    )


def _simulated_lines(found: Simulated) -> list[str]:
    link, shared = found.linking, found.linking_shared
    parts = [
        f"{name}: relative error {loss.error:.2%}, expected {loss.expected_error:.2%}"
        for name, loss in found.columns.items()
    ]
    parts.append(
        f"{link.mean:.2%} of the rows linked ({link.low:.2%} to {link.high:.2%}, {link.runs} "
        f"runs); {shared.mean:.2%} with ties shared"
    )
    return [f"          {found.note}:", *(f"            {part}" for part in parts)]


def _expected(loss: NoiseLoss) -> str:
    if loss.expected_error is None or loss.mean_scale is None:
        return ""
    return f", expected {loss.expected_error:.2%}; mean scale {loss.mean_scale:.4g}"


def print_choices(found: Choices) -> None:
    """Print what each k and epsilon would cost and risk."""
    from rich.table import Table

    terminal = console()
    epsilons = sorted({choice.epsilon for choice in found.choices})
    by_k: dict[int, list[Choice]] = {}
    for choice in found.choices:
        by_k.setdefault(choice.k, []).append(choice)
    for title, figure in (
        ("Expected relative error", attrgetter("error")),
        ("Expected share of rows linked", attrgetter("linking")),
    ):
        terminal.print(title, style="bold")
        table = Table(box=None, padding=(0, 0, 0, 2), collapse_padding=True)
        table.add_column("k \\ epsilon", justify="right", style="bold", no_wrap=True)
        for epsilon in epsilons:
            table.add_column(f"{epsilon:g}", justify="right", no_wrap=True)
        table.add_column("suppressed", justify="right", no_wrap=True)
        for k, row in by_k.items():
            cells = [f"{figure(choice):.1%}" for choice in sorted(row, key=lambda c: c.epsilon)]
            table.add_row(str(k), *cells, f"{row[0].suppressed / max(found.rows, 1):.1%}")
        terminal.print(table)
    how = "tried out with fresh noise" if found.simulated else "computed, nothing is drawn"
    terminal.print(f"The share linked is {how}. All of this is read from the table and private.")


_DOING = {
    "count": "counting the table",
    "book": "booking the spend",
    "slice": "choosing slices",
    "search": "searching for a scheme",
    "recode": "recoding",
    "draw": "drawing",
    "measure": "measuring",
    "write": "writing",
    "report": "drawing the report",
    "appear": "finishing",
}


@contextmanager
def progress(what: str) -> Iterator[tuple[Step, Progress]]:
    """A bar on a terminal, for work that takes longer than a second; nothing in a pipe.

    It says the step that is being taken and, where that is known, how much of it is done.
    """
    from rich.progress import Progress as Bar

    terminal = console(stderr=True)
    if not terminal.is_terminal:
        yield (lambda _step: None), (lambda _done, _all: None)
        return
    with Bar(console=terminal, transient=True) as bar:
        task = bar.add_task(what, total=None, visible=False)
        late = Timer(1, lambda: bar.update(task, visible=True))
        late.start()

        def step(name: str) -> None:
            bar.reset(
                task, total=None, description=_DOING.get(name, name), visible=bar.tasks[0].visible
            )

        def tell(done: int, all_: int) -> None:
            bar.update(task, completed=done, total=all_)

        try:
            yield step, tell
        finally:
            late.cancel()


@contextmanager
def steps(number: int) -> Iterator[Step]:
    """A bar on a terminal that advances by named steps; nothing in a pipe."""
    from rich.progress import Progress

    terminal = console(stderr=True)
    with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        task = bar.add_task("starting", total=number)
        yield lambda name: bar.update(task, advance=1, description=name)


def print_json(value: dict[str, Any]) -> None:
    """Print plain values as JSON."""
    print(json.dumps(value, allow_nan=False).replace("\x7f", "\\u007f"))


_MEANINGS = {
    "k": "a tuple seen fewer times is dropped",
    "beta": "share of the rows drawn at random",
    "epsilon": "privacy loss allowed",
    "delta": "added to any probability",
    "definition": "how delta is computed",
    "crowd": "k / beta, people alike in the table",
    "releases": "that share the budget",
}


def print_plan(answer: Plan) -> None:
    """Print a plan as a table and in words."""
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in answer.shown():
        table.add_row(f"[bold]{name}[/bold]", value, f"[dim]{_MEANINGS[name]}[/dim]")
    terminal = console()
    terminal.print(table)
    terminal.print()
    terminal.print(answer.words())


def print_grid(grid: PlanTable) -> None:
    """Print a grid of answers."""
    from rich.table import Table

    terminal = console()
    terminal.print(grid.words(), style="bold")
    table = Table(box=None, padding=(0, 0, 0, 2), collapse_padding=True)
    corner = f"{grid.rows_name} \\ {grid.columns_name}"
    table.add_column(corner, justify="right", style="bold", no_wrap=True)
    for column in grid.columns:
        table.add_column(f"{column:g}", justify="right", no_wrap=True)
    for row, cells in zip(grid.rows, grid.cells, strict=True):
        table.add_row(f"{row:g}", *(_cell(grid.unknown, cell) for cell in cells))
    terminal.print(table)


def _cell(unknown: str, value: float) -> str:
    """A cell of a grid; epsilon is rounded up and beta down, so that what is shown holds."""
    if math.isinf(value):
        return "–"
    if unknown == "k":
        return f"{value:,.0f}"
    whole = math.floor if unknown == "beta" else math.ceil
    return f"{whole(value * 1000) / 1000:.3f}"


def print_preview(shown: Preview, counts: bool, most: int) -> None:
    """Print a hierarchy, one row per value."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for level in range(shown.height):
        table.add_column(f"level {level}")
    if counts:
        table.add_column("rows", justify="right")
    most = max(most, 0)
    for row, held in list(zip(shown.rows, shown.counts, strict=True))[:most]:
        labels = ["null" if label is None else label for label in row]
        table.add_row(*labels, *([f"{held:,}"] if counts else []))
    terminal = console()
    terminal.print(table, markup=False)
    if len(shown.rows) > most:
        terminal.print(f"... and {len(shown.rows) - most:,} more; see them with --most")
