"""How results look on a terminal: what was published, measured or looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.cli.guarantee import describe_unit, promise
from incrowd.cli.synthetic_rows import describe_rows
from incrowd.cli.terminal import console, say
from incrowd.measure.synthetic import SyntheticEvaluation
from incrowd.privacy.counts import law_of
from incrowd.release.parameters import noise_event

if TYPE_CHECKING:
    from incrowd.curate.confirm import Question
    from incrowd.curate.preview import Preview
    from incrowd.curate.tree import Node, Tree
    from incrowd.measure.estimate import Attacked, Rate
    from incrowd.measure.evaluation import ByLabels, Evaluation
    from incrowd.measure.noise import NoiseLoss, Noisiness, Simulated
    from incrowd.release.certificate import Certificate
    from incrowd.release.entries import Booking
    from incrowd.release.release import Release


def chosen(certificate: Certificate) -> str:
    """What a search has chosen for the one table: how it is drawn, and levels if there are any."""
    known, words = certificate.parameters, ""
    if "search_epsilon" in known:
        several = len(certificate.events[-1].get("events", ())) > 1
        words = f"{'Chosen:' if several else 'With'} k = {certificate.k}, {_drawn(known)}. "
    elif certificate.events:
        return ""
    levels = [
        f"{name} {'cut' if column.level is None else column.level}"
        for name, column in certificate.table.scheme.items()
    ]
    if any(column.level is not None for column in certificate.table.scheme.values()):
        words += f"Levels: {', '.join(levels)}."
    return words.strip()


def _drawn(known: dict[str, float | str]) -> str:
    return f"r = {known['r']:g}" if "r" in known else f"beta = {known['beta']}"


def slice_lines(certificate: Certificate) -> list[str]:
    """One line for each slice: its file, columns and rows."""
    return [
        f"{table.release.file}: {', '.join(table.scheme)}; {table.release.rows:,} rows in "
        f"{table.release.classes:,} classes of at least {least}"
        for table, least in zip(
            certificate.tables, (one.least for one in certificate.of_each_table()), strict=True
        )
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
    if isinstance(found, SyntheticEvaluation):
        lines += describe_rows(found)
    elif found.slices:
        lines += [*slice_lines(certificate), survivals(found)]
    elif found.risk is None:
        lines += [chosen(certificate), *_off(certificate, found), *_shifted(found), advice(found)]
    else:
        gone = "Suppressed" if not certificate.events else "Not drawn, or suppressed:"
        lines.append(
            f"{gone} {found.suppressed:,} rows; normalised loss {found.loss:.4f}. "
            f"{chosen(certificate)}"
        )
        if found.search is not None and found.search.optimum:  # or else it is warned of
            lines.append(found.search.words)
        lines += [] if found.noise is None else noise_lines(found.noise)
    lines += [str(finding) for finding in found.lost.findings()]
    lines.insert(1, f"Private, for you alone: {release.curator / 'report.html'}")
    if release.booking is not None:
        lines.insert(2, f"Booked in the ledger as {_article(release.booking)}{release.booking}.")
    if certificate.is_private:
        lines.insert(2, describe_unit(certificate))
    if release.unused:
        lines.append(
            f"For you alone: one row per person was used; {release.unused:,} other rows were not."
        )
    return [line for line in [*lines, *release.reasons] if line]


def list_findings(release: Release) -> list[dict[str, Any]]:
    """Return the findings of a release as plain values, for JSON; for the curator alone."""
    lost = release.evaluation.lost.findings()
    return [finding.as_dict() for finding in (*release.findings, *lost)]


def _article(booking: Booking) -> str:
    return "" if booking.planned else "an "


def _headline(release: Release) -> str:
    certificate = release.certificate
    satisfies = (
        f"satisfies {promise(certificate)}"
        if certificate.randomness == "system"
        else "is NOT private: its random numbers came from a seed."
    )
    done = "Published"
    if certificate.rehearsal:
        satisfies = f"tells of nobody; a release would satisfy {promise(certificate)}"
        done = "Rehearsed, with people who were made up, and spending nothing:"
    if certificate.slices is not None:
        return f"{done} {release.folder}. All of it together {satisfies}"
    data = certificate.table.release
    if certificate.synthetic is not None:
        return f"{done} {release.folder}: {data.rows:,} synthetic rows. It {satisfies}"
    behind = (
        f"each with {certificate.k} or more rows of the table behind it"
        if certificate.by_counts
        else f"each of at least {certificate.k} rows"
    )
    return (
        f"{done} {release.folder}: {data.rows:,} rows in {data.classes:,} classes, {behind}. "
        f"It {satisfies}"
    )


def _off(certificate: Certificate, found: Evaluation) -> list[str]:
    """How far off counts are; nothing of a sample."""
    if not certificate.by_counts:
        return []
    law = law_of(noise_event(certificate.parameters))
    words = (
        f"The noise in the number of rows of a cell is at most {law.within(0.95)} with probability "
        f"0.95, and {law.reach} at worst. Counts near the threshold of {certificate.least} are "
        f"biased upward. Private: {found.suppressed:,} rows are missing, {found.surplus:,} too "
        "many."
    )
    return [words]


def _shifted(found: Evaluation) -> list[str]:
    """What became of the labels of a target."""
    if found.target is None:
        return []
    parts = [
        f"{'null' if one.label is None else one.label} {one.released / max(one.original, 1):.1%}"
        for one in found.shifts
    ]
    return [f"Rows shown of each '{found.target}': {', '.join(parts)}."]


def emptiness(release: Release) -> str:
    """What to know of a release without rows: it is there, it counts, and why it is empty."""
    if release.certificate.rehearsal:
        return (
            "Rehearsed, with people who were made up, and nothing could be shown: a release of a "
            f"table like this would be empty. The folder is {release.folder}."
        )
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
            "says how much; so may"
        )
    else:
        words += " One coarser level of a single column would not change that; what may are"
    return (
        f"{words} fewer columns, a larger table or a larger budget. Levels must not be chosen by "
        "looking at the data."
    )


def print_evaluation(found: Evaluation) -> None:
    """Print an evaluation as a table and, in a few lines, risk and utility; slices in turn."""
    from incrowd.measure.evaluation import ByLabels

    if isinstance(found, ByLabels):
        _print_by_labels(found)
        return
    terminal = console()
    for number, (one, names) in enumerate(zip(found.slices, found.columns, strict=True), 1):
        terminal.print(f"Slice {number}: {', '.join(names)}", markup=False, style="bold")
        print_evaluation(one)
        terminal.print()
    terminal.print(f"All slices: loss {found.loss:.4f}. {survivals(found)}", soft_wrap=True)
    for name in found.missing_columns:
        terminal.print(f"No slice has the column '{name}', which is lost.", markup=False)


def _print_by_labels(found: ByLabels) -> None:
    from rich.table import Table

    terminal = console()
    for line in evaluation_lines(found):
        terminal.print(line, markup=False, soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("column", "loss", "precision lost", "distance"):
        table.add_column(name, justify="left" if name == "column" else "right")
    for name, loss in found.loss_by_column.items():
        distance = "nothing shown"
        if name not in found.lost.nothing_shown:
            distance = f"{found.utility.distance_by_column[name]:.4f}"
        table.add_row(name, f"{loss:.4f}", f"{found.precision_by_column[name]:.4f}", distance)
    terminal.print(table, markup=False)
    for line in _measure_lines(found):
        terminal.print(line, markup=False, soft_wrap=True)


def evaluation_lines(found: ByLabels) -> list[str]:
    """Return what an evaluation says of rows."""
    kept = found.rows_original - found.suppressed
    lines = [
        (
            f"{kept:,} of {found.rows_original:,} rows are shown, "
            f"{found.suppressed:,} are not; {found.classes:,} classes, the smallest of "
            f"{found.smallest_class:,}."
        )
    ]
    if found.surplus:
        lines.append(
            f"{found.surplus:,} surplus rows are shown that the table does not have: "
            f"{found.rows_released:,} rows in all."
        )
    lines += [f"It has no column '{name}', which counts as lost." for name in found.missing_columns]
    return lines


def _measure_lines(found: ByLabels) -> list[str]:
    """Loss, risk and utility, a few lines each."""
    losses, risk, useful = found.losses, found.risk, found.utility
    size = losses.average_class_size
    average = "none" if size is None else f"{size:.1f}"
    some = f" (of {risk.compared:,} random classes)" if risk.compared < found.classes else ""
    at_levels = "" if found.utility_of_values is None else " at the levels of the release"
    lines = [
        f"loss      {found.loss:.4f} normalised (a row missing or too many counts 1)",
        f"          {losses.precision:.4f} precision lost, {losses.entropy:.4f} entropy",
        f"          {losses.discernibility:.4g} discernibility, {average} average class",
        f"risk      {risk.highest:.4f} highest, {risk.mean:.4f} mean (prosecutor)",
        f"          {risk.journalist:.4f} journalist, {risk.marketer:.4f} marketer{some}",
        f"          {risk.uniques:.2%} unique, of the original {risk.uniques_original:.2%}",
        f"utility   {useful.association_error:.4f} mean error of associations{at_levels}",
        f"          {useful.query_error:.1%} median error of range counts{at_levels}",
    ]
    if found.utility_of_values is not None:
        lines.append(
            f"          {found.utility_of_values.association_error:.4f} and "
            f"{found.utility_of_values.query_error:.1%} by the values of the table"
        )
    if found.noise is not None:
        lines += noise_lines(found.noise)
    if useful.accuracy is not None:
        known = useful.accuracy
        lines.append(
            f"          {known.released:.1%} of '{known.target}' predicted rightly from the "
            f"release, {known.original:.1%} from the original, {known.majority:.1%} by guessing"
        )
        if known.auc_released is not None and known.auc_original is not None:
            lines.append(
                f"          {known.auc_released:.4f} area under the curve (AUC), "
                f"{known.auc_original:.4f} from the original"
            )
    return lines


def print_attacks(found: Attacked) -> None:
    """Print what was tried against a release, one line for each attack, then its words."""
    from rich.table import Table

    terminal = console()
    beside = f", and {found.control:,} who are not in it" if found.control else ""
    terminal.print(f"{found.people:,} people of the table were attacked{beside}.")
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("attack")
    for name in ("succeeds", "guessing", "not in the table"):
        table.add_column(name, justify="right")
    table.add_column("what the release adds")
    for one in found.estimates:
        table.add_row(
            f"{one.attack}: {one.name}",
            _rate(one.success),
            f"{one.guess.value:.1%}",
            "" if one.control is None else _rate(one.control),
            one.verdict,
        )
    terminal.print(table, markup=False)
    for one in found.estimates:
        words = f"{one.attack}: {one.name}. Known: {one.knows}. Success: {one.says}"
        terminal.print(words, markup=False, soft_wrap=True)
    for note in found.notes:
        terminal.print(note, markup=False, soft_wrap=True)


def _rate(rate: Rate) -> str:
    return f"{rate.value:.1%} ({100 * rate.low:.1f} to {100 * rate.high:.1f})"


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


def print_tree(shown: Tree) -> None:
    """Print what each level of a hierarchy shows, and the tree of its groups."""
    for at, level in enumerate(shown.levels):
        groups = "by rule" if level.groups is None else f"{level.groups:,} groups"
        rows = "" if level.smallest is None else f", the smallest of {level.smallest:,} rows"
        say(f"Level {at}  {level.words}: {groups}{rows}")
    for node in shown.top:
        _print_node(node, 0)
    if shown.more:
        say(f"... and {shown.more:,} more; see them with --most")
    for words, held in (("without a value", shown.nulls), ("outside the domain", shown.outside)):
        if held:
            say(f"{held:,} rows {words}")


def _print_node(node: Node, depth: int) -> None:
    rows = "" if node.rows is None else f"  {node.rows:,} rows"
    say(f"{'  ' * depth}{node.label}{rows}")
    for member in node.members:
        _print_node(member, depth + 1)
    if node.more:
        say(f"{'  ' * (depth + 1)}... and {node.more:,} more")


def print_question(question: Question, at: int, all_: int) -> None:
    """Show one thing to confirm, on a screen of its own where there is one."""
    screen = console()
    if screen.is_terminal:
        screen.clear()
    place = dict.fromkeys((question.column, question.entry))  # the unit is of no column
    say(f"{at} of {all_}: {', '.join(place)}")
    say(f"  {question.says}")
    for line in (*question.seen, question.why):
        say(f"  {line}")
