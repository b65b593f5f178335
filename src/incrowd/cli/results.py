"""Results on a terminal: what was published, hierarchies, and questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.cli.evaluation_facts import describe_pairs, describe_simulation, noise_facts
from incrowd.cli.guarantee import describe_guarantee, describe_protection, describe_unit
from incrowd.cli.synthetic_rows import synthetic_facts
from incrowd.cli.table_facts import describe_tables, list_error_facts, list_table_facts
from incrowd.cli.terminal import (
    Facts,
    make_console,
    print_facts,
    print_findings,
    print_text,
    print_wrapped,
)
from incrowd.codes.hierarchy import SUPPRESSED, UNCHANGED
from incrowd.findings import format_percent

if TYPE_CHECKING:
    from incrowd.curate.hierarchy_preview import HierarchyPreview, HierarchyTree, TreeNode
    from incrowd.findings import Finding
    from incrowd.measure.evaluation import Evaluation
    from incrowd.release.certificate import Certificate
    from incrowd.release.examples import Examples
    from incrowd.release.ledger_entries import Booking
    from incrowd.release.release import Release


_ACCURATE = 0.95  # the probability that noise is stated for


def print_release(release: Release, *, verbose: bool = False) -> None:
    """Print what was published, its guarantee and accuracy, and what only the curator may see."""
    print_wrapped(describe_result(release))
    public, private = release_facts(release), private_facts(release)
    if verbose:
        public += detail_facts(release)
    least = max(len(name) for name, _ in (*public, *private))
    print_facts(public, least=least)
    rehearsal = release.certificate.rehearsal
    print_text("Fictional table, so nothing is private:" if rehearsal else "For you only:")
    print_facts(private, least=least)
    lost = release.evaluation.lost.findings()
    print_fictional_findings(lost) if rehearsal else print_findings(lost)


def print_fictional_findings(findings: Iterable[Finding], *, stderr: bool = False) -> None:
    """Print the findings of a dry run; those about its fictional table say so."""
    for finding in findings:  # parameters are those of the spec, and of a real release
        about = "" if finding.topic == "parameters" else "In the fictional table: "
        print_findings([finding], stderr=stderr, about=about)


def describe_result(release: Release) -> str:
    """Return one line on what was published where."""
    certificate, folder = release.certificate, f"{release.folder}/"
    dry_run = certificate.rehearsal
    if release.is_empty:
        return describe_empty(release)
    done = "Dry run, with a fictional table and no budget spent:" if dry_run else "Published"
    joint = "in" if dry_run else "to"
    if certificate.tabulation is not None:
        return f"{done} {describe_tables(certificate)} {joint} {folder}"
    if certificate.slices is not None:
        return f"{done} {len(certificate.tables)} tables {joint} {folder}"
    data = certificate.table.release
    if certificate.synthetic is not None:
        return f"{done} {data.rows:,} synthetic rows {joint} {folder}"
    return f"{done} {data.rows:,} rows in {data.classes:,} groups {joint} {folder}"


def describe_empty(release: Release) -> str:
    """Return that a release has no rows, and what that means for the budget."""
    if release.certificate.rehearsal:
        return (
            "Dry run, with a fictional table and no budget spent: a release of such a table would "
            f"be empty ({release.folder}/)."
        )
    booked = " and booked it in the ledger" if release.is_booked else ""
    costs = " Each attempt spends privacy budget." if release.certificate.events else ""
    return (
        f"Published an empty release to {release.folder}/{booked}: every group is suppressed. "
        f"Do not repeat it unchanged.{costs}"
    )


def release_facts(release: Release) -> Facts:
    """Return what everyone may know of a release: guarantee, accuracy, generalization."""
    certificate = release.certificate
    facts = [("Guarantee", _describe_guarantee(certificate))]
    if certificate.is_private:
        facts.append(("Protects", describe_unit(certificate)))
    if release.is_empty:
        return facts
    if certificate.synthetic is not None:
        tables = len(certificate.synthetic.measured)
        text = f"{tables:,} tables with noise, in measured/ with their standard deviations"
        return [*facts, ("Measured", text)]
    if certificate.tabulation is not None:
        return [*facts, *list_table_facts(certificate)]
    facts += [*_accuracy_facts(certificate), *_slice_facts(release)]
    if certificate.slices is None and release.examples is not None:
        levels = _with_examples(release.examples)
        levels |= dict.fromkeys(certificate.noisy, "noise added")
        levels |= dict.fromkeys(certificate.randomized or (), "randomized")
        levels |= dict.fromkeys(certificate.unchanged, UNCHANGED)
        levels |= {name: f"{which} of each class" for name, which in certificate.aggregates.items()}
        facts.append(("Generalized", describe_generalization(levels)))
    return facts


def private_facts(release: Release) -> Facts:
    """Return what only the curator may know: lost rows, the ledger, where the report is."""
    evaluation = release.evaluation
    if release.certificate.synthetic is not None:
        from incrowd.measure.synthetic import SyntheticEvaluation

        assert isinstance(evaluation, SyntheticEvaluation)
        facts = [*synthetic_facts(evaluation), *_unused_facts(release)]
        return [*facts, *_ledger_facts(release), _report_fact(release)]
    if release.certificate.tabulation is not None:
        from incrowd.measure.tables import TablesEvaluation

        assert isinstance(evaluation, TablesEvaluation)
        facts = [*list_error_facts(evaluation), *_unused_facts(release)]
        return [*facts, *_ledger_facts(release), _report_fact(release)]
    facts = [("Missing", _describe_missing_rows(release)), *_target_facts(evaluation)]
    if not evaluation.slices:
        facts.append(("Information loss", f"{evaluation.loss:.3f} (0 = none, 1 = everything)"))
    if evaluation.suppression is not None:
        facts.append(("Cells", evaluation.suppression.description))
    if evaluation.slices:
        facts.append(("Pairs of columns", describe_pairs(evaluation)))
    facts += _unused_facts(release)
    if evaluation.noise is not None:
        facts += noise_facts(evaluation.noise, verbose=False)
    if not evaluation.slices and evaluation.risk is None:
        facts.append(("Advice", advise_curator(evaluation)))
    facts += [*_ledger_facts(release), _report_fact(release)]
    return [fact for fact in facts if fact[1]]


def _unused_facts(release: Release) -> Facts:
    if not release.unused:
        return []
    rows = release.certificate.rows_per_person
    used = "one row per person is used" if rows == 1 else f"up to {rows} rows per person are used"
    return [("Not used", f"{release.unused:,} rows: {used}")]


def _ledger_facts(release: Release) -> Facts:
    if release.booking is None:
        counts = release.certificate.events and not release.certificate.rehearsal
        return [("Ledger", "none: this release is not counted anywhere")] if counts else []
    return [("Ledger", f"booked as {_choose_article(release.booking)}{release.booking}")]


def _report_fact(release: Release) -> tuple[str, str]:
    return "Report", str(_shorten(release.curator / "report.html"))


def detail_facts(release: Release) -> Facts:
    """Return parameters and why they were chosen, for ``--verbose``."""
    certificate = release.certificate
    noise = release.evaluation.noise
    facts = [("Meaning", describe_protection(certificate))]
    if certificate.tabulation is not None:
        number = len(certificate.tabulation.residuals)
        text = f"information μ² = {certificate.parameters['information']:.6g}, {number:,} residuals"
        return [*facts, ("Parameters", text)]
    for number, first in enumerate(certificate.split_tables(), 1):
        name = "Parameters" if certificate.slices is None else f"Parameters of {number}"
        facts.append((name, _describe_parameters(first)))
    if noise is not None and noise.simulated is not None:
        facts += describe_simulation(noise.simulated)
    search = release.evaluation.search
    if search is not None and search.optimum:  # or else there is a finding
        facts.append(("Search", search.description))
    facts += [("" if at else "Reasons", text) for at, text in enumerate(release.reasons)]
    return [fact for fact in facts if fact[1]]


def _describe_guarantee(certificate: Certificate) -> str:
    if certificate.randomness != "system":
        return "none: the random numbers came from a seed, so this release is NOT private"
    text = describe_guarantee(certificate).removesuffix(".")
    together = ", all tables together" if certificate.slices is not None else ""
    return f"{text}{together}{' (of a real release)' if certificate.rehearsal else ''}"


def _accuracy_facts(certificate: Certificate) -> Facts:
    """Return how far counts may be from the table; of a sample, which share was drawn."""
    from incrowd.privacy.draw_parameters import build_noise_spread
    from incrowd.release.parameters import has_wildcards

    each = certificate.split_tables()
    if certificate.has_noisy_counts:
        laws = [build_noise_spread(table.parameters) for table in each]
        within, most = (
            max(law.find_error_bound(_ACCURATE) for law in laws),
            max(law.reach for law in laws),
        )
        of = "household types: " if certificate.links is not None else ""
        text = (
            f"{of}95 % of noise within ±{within}, every count within ±{most}; counts near the "
            f"threshold of {certificate.threshold} are biased upward"
        )
        return [("Accuracy", text)]
    rates = [table.parameters.get("beta") for table in each]
    if not all(isinstance(rate, float) for rate in rates):
        if has_wildcards(certificate.parameters):
            return []
        return [("Groups", f"at least {certificate.k:,} rows each")]
    numbers = [float(rate or 0) for rate in rates]
    shares = " to ".join(dict.fromkeys(map(format_percent, (min(numbers), max(numbers)))))
    return [("Sample", f"{shares} of rows, drawn at random; groups of at least {certificate.k:,}")]


def _slice_facts(release: Release) -> Facts:
    """Return one fact for each slice: its file, rows and columns."""
    certificate = release.certificate
    if certificate.slices is None:
        return []
    levels: Sequence[dict[str, str]] = release.examples.of_slices if release.examples else ()
    facts = []
    for number, table in enumerate(certificate.tables):
        scheme = levels[number] if number < len(levels) else dict.fromkeys(table.scheme, "")
        data = table.release
        text = f"{data.rows:,} rows in {data.classes:,} groups; {describe_generalization(scheme)}"
        facts.append((data.file, text))
    return facts


def _with_examples(examples: Examples) -> dict[str, str]:
    """Return what each column publishes, with a published label where none is named."""
    rows = [row.after for row in examples.rows if row.after is not None]
    descriptions = {}
    for name, words in examples.levels.items():
        label = rows[0][examples.names.index(name)] if rows else None
        bare = words not in _WHOLE and "(" not in words and label is not None
        descriptions[name] = f"{words} (such as {label})" if bare else words
    return descriptions


def describe_generalization(levels: Mapping[str, str]) -> str:
    """Return what each column was generalized to, in short: of many columns the first ones.

    >>> describe_generalization({"age": "decades", "sex": "unchanged", "zip": "unchanged"})
    'age → decades; sex and zip unchanged'
    """
    changed = [f"{name} → {words}" for name, words in levels.items() if words not in _WHOLE]
    if len(changed) > _MOST_NAMED + 1:
        changed[_MOST_NAMED:] = [f"{len(changed) - _MOST_NAMED:,} more generalized"]
    for state in _WHOLE:
        names = [name for name, words in levels.items() if words == state]
        changed += [f"{_join_names(names)} {state}"] if names else []
    return "; ".join(changed)


_WHOLE = (UNCHANGED, SUPPRESSED)
_MOST_NAMED = 12  # the report and the certificate list all columns


def _join_names(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED + 1:
        more = len(names) - _MOST_NAMED
        names = [*names[:_MOST_NAMED], f"{more:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _describe_missing_rows(release: Release) -> str:
    missing_rows, certificate = release.evaluation, release.certificate
    if missing_rows.slices:
        return ""
    share = format_percent(missing_rows.suppressed / max(missing_rows.rows_original, 1))
    rows = f"{missing_rows.suppressed:,} of {missing_rows.rows_original:,} rows ({share})"
    if certificate.has_noisy_counts:
        return f"{rows}, suppressed or below the true count; {missing_rows.surplus:,} surplus rows"
    return f"{rows}, {'not drawn or ' if certificate.events else ''}suppressed"


def _describe_parameters(certificate: Certificate) -> str:
    """Return the parameters that were used, by the papers' symbols."""
    parameters = certificate.parameters
    if certificate.synthetic is not None:  # no group is suppressed, and no level is chosen
        choices, information = int(parameters["choices"]), parameters["information"]
        return f"information μ² = {information:.6g}, {choices:,} private choices"
    parts = [f"k = {certificate.k}"]
    if "r" in parameters:
        parts += [
            f"noise at most r = {parameters['r']:g}",
            f"threshold {certificate.threshold_formula} = {certificate.threshold}",
        ]
    if "beta" in parameters:
        parts.append(f"β = {parameters['beta']:.6g}")
    if "search_epsilon" in parameters:
        parts.append(f"ε of the search = {parameters['search_epsilon']:g}")
    levels = [
        f"{name} {'any' if column.level is None else column.level}"
        for name, column in certificate.table.scheme.items()
    ]
    return f"{', '.join(parts)}; levels: {', '.join(levels)}"


def _shorten(path: Path) -> Path:
    """Return a path relative to the working folder where it lies below it."""
    working_folder = Path.cwd()
    return path.relative_to(working_folder) if path.is_relative_to(working_folder) else path


def _target_facts(evaluation: Evaluation) -> Facts:
    """Return which share of the rows of each label of a target is published."""
    if evaluation.target is None:
        return []
    parts = [
        f"{'null' if shift.label is None else shift.label} "
        f"{format_percent(shift.released / max(shift.original, 1))}"
        for shift in evaluation.shifts
    ]
    return [("Target", f"rows published per value of '{evaluation.target}': {', '.join(parts)}")]


def advise_curator(evaluation: Evaluation) -> str:
    """Advise the curator when little survives; the private report has the figures."""
    likely = evaluation.likely_share or 0.0
    if likely > 0.5:
        return "" if evaluation.rows_released else (
            f"empty by chance: {format_percent(likely)} of rows lie in groups that are published "
            "with probability above 1/2"
        )  # fmt: skip
    better = [f"'{hint.column}'" for hint in evaluation.advice if hint.is_helpful(evaluation)][:2]
    coarser = f"a coarser level of {' or '.join(better)}" if better else (
        "coarser levels of several columns"
    )  # fmt: skip
    return (
        f"most rows lie in groups below the crowd size. Use {coarser}, fewer columns, a larger "
        "table or a larger budget; do not choose levels by looking at the data"
    )


def list_findings(release: Release) -> list[dict[str, Any]]:
    """Return the findings of a release as plain values, for JSON; for the curator alone."""
    lost = release.evaluation.lost.findings()
    return [finding.as_dict() for finding in (*release.findings, *lost)]


def _choose_article(booking: Booking) -> str:
    return "" if booking.is_planned else "an "


def print_preview(preview: HierarchyPreview, counts: bool, most: int) -> None:
    """Print a hierarchy, one row per value."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for level in range(preview.height):
        table.add_column(f"level {level}")
    if counts:
        table.add_column("rows", justify="right")
    most = max(most, 0)
    for row, count in list(zip(preview.rows, preview.counts, strict=True))[:most]:
        labels = ["null" if label is None else label for label in row]
        table.add_row(*labels, *([f"{count:,}"] if counts else []))
    terminal = make_console()
    terminal.print(table, markup=False)
    if len(preview.rows) > most:
        terminal.print(f"... and {len(preview.rows) - most:,} more (--limit)")


def print_tree(tree: HierarchyTree) -> None:
    """Print what each level of a hierarchy shows, and the tree of its groups."""
    for at, level in enumerate(tree.levels):
        number, word = level.groups, "group" if level.groups == 1 else "groups"
        groups = "any number of groups" if number is None else f"{number:,} {word}"
        rows = "" if level.smallest is None else f", the smallest of {level.smallest:,} rows"
        print_text(f"Level {at}  {level.words}: {groups}{rows}")
    for node in tree.top:
        _print_node(node, 0)
    if tree.more:
        print_text(f"... and {tree.more:,} more (--limit)")
    for words, count in (("are null", tree.nulls), ("lie outside the domain", tree.outside)):
        if count:
            print_text(f"{count:,} rows {words}")


def _print_node(node: TreeNode, depth: int) -> None:
    rows = "" if node.rows is None else f"  {node.rows:,} rows"
    print_text(f"{'  ' * depth}{node.label}{rows}")
    for member in node.members:
        _print_node(member, depth + 1)
    if node.more:
        print_text(f"{'  ' * (depth + 1)}... and {node.more:,} more")
