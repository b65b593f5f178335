"""Measures and attacks on a terminal, as facts and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.cli.synthetic_rows import list_other_methods, list_synthetic_facts
from incrowd.cli.table_facts import list_error_facts
from incrowd.cli.terminal import Facts, make_console, print_facts, print_text, print_wrapped
from incrowd.findings import format_percent

if TYPE_CHECKING:
    from incrowd.measure.category_loss import CategoryLoss
    from incrowd.measure.estimate import AttackReport, Rate
    from incrowd.measure.evaluation import Evaluation, LabelEvaluation, Utility
    from incrowd.measure.noise_loss import NoiseEvaluation, NoiseLoss, NoiseSimulation
    from incrowd.measure.number_loss import NumberEvaluation
    from incrowd.measure.payout import Payout
    from incrowd.measure.synthetic import SyntheticEvaluation
    from incrowd.measure.tables import TablesEvaluation
    from incrowd.measure.weighted import WeightedEvaluation


def describe_pairs(evaluation: Evaluation) -> str:
    """Return how many pairs of columns are published together; the report has the figures."""
    every = evaluation.associations
    published_pairs = sum(pair.slice is not None for pair in every)
    silent = sum(pair.silent is not None for pair in every)
    apart = f"; {silent} more only with a suppressed column" if silent else ""
    return (
        f"{published_pairs} of {len(every)} pairs published together in a table{apart}; mean error "
        f"of Cramér's V {evaluation.association_error:.4f}"
    )


def print_evaluation(evaluation: Evaluation, *, verbose: bool = False) -> None:
    """Print an evaluation as facts and a table of columns; slices in turn."""
    from incrowd.measure.evaluation import LabelEvaluation
    from incrowd.measure.synthetic import SyntheticEvaluation
    from incrowd.measure.tables import TablesEvaluation

    if isinstance(evaluation, SyntheticEvaluation):
        _print_synthetic(evaluation)
        return
    if isinstance(evaluation, TablesEvaluation):
        _print_tables(evaluation)
        return
    if isinstance(evaluation, LabelEvaluation):
        print_facts(evaluation_facts(evaluation, verbose=verbose), indent=0)
        print_text()
        _print_columns(evaluation, verbose=verbose)
        return
    for number, (first, names) in enumerate(
        zip(evaluation.slices, evaluation.columns, strict=True), 1
    ):
        print_text(f"Table {number}: {', '.join(names)}")
        print_evaluation(first, verbose=verbose)
        print_text()
    facts = [
        ("All tables", f"information loss {evaluation.loss:.4f}"),
        ("Pairs", describe_pairs(evaluation)),
    ]
    missing = ", ".join(evaluation.missing_columns)
    print_facts([*facts, ("Missing columns", f"{missing}, counted as lost" if missing else "")])


def _print_synthetic(evaluation: SyntheticEvaluation) -> None:
    """Print what synthetic rows keep, by column, and what other methods would have kept."""
    from rich.table import Table

    assert evaluation.utility is not None
    print_facts(
        [*list_synthetic_facts(evaluation), *_prediction_facts(evaluation.utility)], indent=0
    )
    print_text()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("column", "distance", "value that differs most", "before", "after"):
        table.add_column(
            name, justify="left" if name in ("column", "value that differs most") else "right"
        )
    worst = {value.column: value for value in reversed(evaluation.values)}
    for name, distance in evaluation.distance_by_column.items():
        shares = ["", "", ""]
        if name in worst:
            value = worst[name]
            label = "null" if value.value is None else value.value
            shares = [label, format_percent(value.original, 2), format_percent(value.released, 2)]
        table.add_row(name, f"{distance:.4f}", *shares)
    make_console().print(table, markup=False)
    if evaluation.others:
        print_text()
        print_text("The same table by method:")
        print_facts(list_other_methods(evaluation))


def _print_tables(evaluation: TablesEvaluation) -> None:
    """Print the true errors of tables of counts."""
    from rich.table import Table

    print_facts(list_error_facts(evaluation), indent=0)
    print_text()
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("table")
    for name in ("cells", "planned", "estimate", "count", "largest", "distance", "coverage"):
        table.add_column(name, justify="right")
    for part in evaluation.tables:
        table.add_row(
            " by ".join(part.columns), f"{part.cells:,}", f"{part.expected:.2f}",
            f"{part.estimate:.2f}", f"{part.count:.2f}", f"{part.largest:,}",
            f"{part.distance:.4f}", format_percent(part.coverage, 1),
        )  # fmt: skip
    make_console().print(table, markup=False)


def evaluation_facts(evaluation: LabelEvaluation, *, verbose: bool = False) -> Facts:
    """Return what an evaluation measured: rows, loss, risk and utility."""
    every, risk, useful = max(evaluation.rows_original, 1), evaluation.risk, evaluation.utility
    size = evaluation.losses.average_class_size
    average = "" if size is None else f", {size:,.1f} rows on average"
    columns = ", ".join(evaluation.missing_columns)
    some = f" (of {risk.compared:,} random groups)" if risk.compared < evaluation.classes else ""
    facts = [
        ("Rows", f"{evaluation.rows_original:,} original, {evaluation.rows_released:,} released"),
        ("Missing", (
            f"{evaluation.suppressed:,} rows ({format_percent(evaluation.suppressed / every)})"
        )),
        ("Surplus", f"{evaluation.surplus:,} rows ({format_percent(evaluation.surplus / every)})"),
        ("Missing columns", f"{columns}, counted as lost" if columns else ""),
        ("Groups", (
            f"{evaluation.classes:,}, the smallest of {evaluation.smallest_class:,} rows{average}"
        )),
        ("Information loss", f"{evaluation.loss:.4f} (0 = none, 1 = everything)"),
        ("Reidentification", (
            f"highest risk {_percent(risk.highest)}, mean {_percent(risk.mean)} (prosecutor); "
            f"journalist {_percent(risk.journalist)}, marketer {_percent(risk.marketer)}{some}"
        )),
        ("Unique rows", (
            f"{_percent(risk.uniques)} released, {_percent(risk.uniques_original)} original"
        )),
        ("Associations", "mean error of V " + ", ".join(
            f"{utility.association_error:.4f} {scale}"
            for scale, utility in evaluation.utility_by_scale.items()
        )),
        ("Range counts", "median error " + ", ".join(
            f"{format_percent(utility.query_error)} {scale}"
            for scale, utility in evaluation.utility_by_scale.items()
        )),
        *_prediction_facts(useful),
    ]  # fmt: skip
    if evaluation.weighted is not None:
        facts += list_weighted_facts(evaluation.weighted)
    if evaluation.payout is not None:
        facts.append(describe_payout(evaluation.payout))
    if evaluation.numbers is not None:
        facts += list_number_facts(evaluation.numbers)
    if verbose:
        losses = evaluation.losses
        facts.append(("Other losses", (
            f"precision {losses.precision:.4f}, entropy {losses.entropy:.4f}, discernibility "
            f"{losses.discernibility:.4g}"
        )))  # fmt: skip
    if evaluation.noise is not None:
        facts += noise_facts(evaluation.noise, verbose=verbose)
    return facts


def describe_payout(payout: Payout) -> tuple[str, str]:
    """Return what a release pays the publisher, and what re-identifications cost."""
    share = format_percent(payout.total / payout.maximum) if payout.maximum else "none"
    return ("Payout", (
        f"{payout.total:,.0f}, {share} of the highest; {payout.reidentified:,.1f} expected "
        f"re-identifications among {payout.attacked:,} attacked rows cost {payout.cost:,.0f}"
    ))  # fmt: skip


def list_weighted_facts(weighted: WeightedEvaluation) -> Facts:
    """Return what survey weights estimate before and after the release."""
    facts = [(f"Sum of '{weighted.weight}'", (
        f"{weighted.total_after:,.0f} released, {weighted.total_before:,.0f} original; effective "
        f"rows {weighted.effective_after:,.0f} released, {weighted.effective_before:,.0f} original"
    ))]  # fmt: skip
    for estimate in weighted.estimates:
        name = f"Mean of '{estimate.column}'"
        if estimate.value is not None:
            name = f"Share of '{estimate.column}' = {estimate.value}"
        after = "none"
        if estimate.after is not None:
            after = f"{estimate.after:.4g} ± {estimate.after_error:.2g}"
        text = f"{after} released, {estimate.before:.4g} ± {estimate.before_error:.2g} original"
        facts.append((name, f"{text} (weighted, with standard error)"))
    return facts


def list_number_facts(numbers: NumberEvaluation) -> Facts:
    """Return what became of numbers that classes show by their mean or median."""
    facts = []
    for column in numbers.columns:
        distance = "" if column.il1s is None else f"; IL1s {column.il1s:.4f}"
        facts.append((f"Numbers of '{column.column}'", (
            f"mean {_number(column.mean_after)} released, {_number(column.mean_before)} original; "
            f"variance {_number(column.variance_after)} released, "
            f"{_number(column.variance_before)} original{distance}"
        )))  # fmt: skip
    return [*facts, *(
        (
            f"Correlation of '{pair.first}' and '{pair.second}'",
            f"{_number(pair.after)} released, {_number(pair.before)} original",
        )
        for pair in numbers.correlations
    )]  # fmt: skip


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _prediction_facts(useful: Utility) -> Facts:
    accuracy = useful.accuracy
    if accuracy is None:
        return []
    text = (
        f"'{accuracy.target}' correct for {format_percent(accuracy.released)} (trained on the "
        f"release), {format_percent(accuracy.original)} (on the original), "
        f"{format_percent(accuracy.majority)} (majority class)"
    )
    facts = [("Prediction", text)]
    if accuracy.auc_released is not None and accuracy.auc_original is not None:
        facts.append(
            ("AUC", f"{accuracy.auc_released:.4f} released, {accuracy.auc_original:.4f} original")
        )
    return facts


def _print_columns(evaluation: LabelEvaluation, *, verbose: bool = False) -> None:
    """Print the loss of each column, and how far its distribution moved."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    scales = evaluation.utility_by_scale
    names = ["column", "loss", *(f"distance {scale}" for scale in scales)]
    for name in [*names, *(["precision lost"] if verbose else [])]:
        table.add_column(name, justify="left" if name == "column" else "right")
    for name, loss in evaluation.loss_by_column.items():
        distances = ["suppressed"] * len(scales)
        if name not in evaluation.lost.nothing_shown:
            distances = [f"{utility.distance_by_column[name]:.4f}" for utility in scales.values()]
        more = [f"{evaluation.precision_by_column[name]:.4f}"] if verbose else []
        table.add_row(name, f"{loss:.4f}", *distances, *more)
    make_console().print(table, markup=False)


def print_attacks(report: AttackReport, *, verbose: bool = False) -> None:
    """Print one line per attack; with ``verbose``, what it knows and what counts as success."""
    control = f", {report.control:,} people of the control group" if report.control else ""
    print_text(
        f"Attacked {report.people:,} people of the table{control}. Intervals have 95 % confidence."
    )
    if report.estimates:
        _print_estimates(report)
    else:
        print_text("No attack was run.")
    if verbose:
        for estimate in report.estimates:
            print_text()
            print_text(f"{estimate.attack}: {estimate.name}")
            print_facts([("Knows", estimate.knows), ("Success", estimate.says)])
    for note in report.notes:
        print_wrapped(f"Note: {note}", hanging=6)


def _print_estimates(report: AttackReport) -> None:
    """Print the success of each attack beside its baselines, and the rule that decides."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("attack")
    names = ["success", "guessing", *(["control group"] if report.control else [])]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("gain from the release")
    for estimate in report.estimates:
        rates = [_rate(estimate.success), _rate(estimate.guess)]
        if report.control:
            rates.append("" if estimate.control is None else _rate(estimate.control))
        table.add_row(f"{estimate.attack}: {estimate.name}", *rates, estimate.verdict)
    make_console().print(table, markup=False)
    print_wrapped(report.rule)


def _percent(share: float) -> str:
    return format_percent(share, 2)


def _rate(rate: Rate) -> str:
    """Return a rate with its interval; one that is computed and not estimated has none."""
    if rate.low == rate.high:
        return format_percent(rate.value)
    return f"{format_percent(rate.value)} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


def noise_facts(noise: NoiseEvaluation, *, verbose: bool) -> Facts:
    """Return what noise did to each column, and how many rows can be linked in spite of it."""
    facts = [(f"Noise in {name}", _lost(loss)) for name, loss in noise.columns.items()]
    facts += [(f"Categories of {name}", _share(loss)) for name, loss in noise.categories.items()]
    if not noise.columns:
        return facts
    if noise.linking is not None and noise.linking_shared is not None:
        text = (
            f"{_percent(noise.linking.mean)} of rows, measured on this release "
            f"({_percent(noise.linking_shared.mean)} with ties shared)"
        )
        facts.append(("Linked rows", text))
    else:
        facts.append(("Linked rows", "not measured: name the column that identifies rows (--id)"))
    if noise.simulated is not None and verbose:
        facts += describe_simulation(noise.simulated)
    return facts


def _share(loss: CategoryLoss) -> str:
    """Return how many rows show their own category, and how far the estimates are off."""
    far = max(abs(share.estimate - share.before) for share in loss.shares)
    unchanged = "" if loss.unchanged is None else f", {loss.unchanged:,} rows do"
    return (
        f"rows keep theirs with probability {loss.keep:.4f} (ε = {loss.epsilon:.4g}){unchanged}; "
        f"estimated shares off by {_percent(far)} at most, standard error up to "
        f"{_percent(max(share.error for share in loss.shares))}"
    )


def _lost(loss: NoiseLoss) -> str:
    """Return the error that noise adds to a column, or a lower bound on it."""
    if loss.measured_error is not None:
        return f"mean relative error {_percent(loss.measured_error)}{_expected(loss)}"
    if loss.least_error is None:
        return "not measured: no released value lies in a class of the original"
    return (
        f"mean absolute error at least {loss.least_error:.4g}, over {loss.rows_compared:,} rows "
        "(rows are not matched)"
    )


def describe_simulation(simulation: NoiseSimulation) -> Facts:
    """Return what fresh noise does, as one fact."""
    link, shared = simulation.linking, simulation.linking_shared
    parts = [
        f"{name}: mean relative error {_percent(loss.error)}, expected "
        f"{_percent(loss.expected_error)}"
        for name, loss in simulation.columns.items()
    ]
    parts.append(
        f"{_percent(link.mean)} of rows linked ({_percent(link.low)} to {_percent(link.high)}, "
        f"{link.runs} runs; "
        f"{_percent(shared.mean)} with ties shared)"
    )
    return [("Simulation", f"{simulation.note}: {'; '.join(parts)}")]


def _expected(loss: NoiseLoss) -> str:
    if loss.expected_error is None or loss.mean_scale is None:
        return ""
    return f", expected {_percent(loss.expected_error)}; mean scale {loss.mean_scale:.4g}"
