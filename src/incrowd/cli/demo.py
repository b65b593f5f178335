"""The demo: a sample table, its spec, releases by counts, sample and synthetic rows, verified."""

from __future__ import annotations

from pathlib import Path

from incrowd.cli.guarantee import describe_guarantee
from incrowd.curate.demo_tables import SPECS, make_demo_table
from incrowd.errors import IncrowdError
from incrowd.findings import format_percent
from incrowd.measure.synthetic import SyntheticEvaluation
from incrowd.privacy.draw_parameters import build_noise_spread
from incrowd.publication import publish
from incrowd.release.release import Release
from incrowd.spec.file import read_spec_file
from incrowd.verification import verify

_SHARE = 0.95  # the probability that noise is stated for


def run_demo(output: Path) -> int:
    """Run the demo in a new folder, and print each step with its result."""
    if output.exists():
        raise IncrowdError(f"Folder '{output}' exists already. Name another one with -o.")
    output.mkdir(parents=True)
    table = make_demo_table("voters")
    table.write(output / "voters.parquet")
    (output / "spec.yaml").write_text(SPECS["voters"], encoding="utf-8")
    _print_step(1, f"Generated {table.rows():,} fictional voters", output / "voters.parquet")
    _print_step(2, "Wrote a spec: role and hierarchy per column", output / "spec.yaml")
    release = publish(None, output / "spec.yaml", output=output / "release")
    certificate = release.certificate
    data, law = (
        certificate.table.release,
        build_noise_spread(certificate.parameters),
    )
    published = f"Published {data.rows:,} rows in {data.classes:,} groups"
    _print_step(3, published, release.folder)
    _print_fact("Guarantee", describe_guarantee(certificate).rstrip("."))
    within, most = law.find_error_bound(_SHARE), certificate.parameters["r"]
    _print_fact("Accuracy", f"95 % of noise within ±{within}, every count within ±{most:g}")
    first = release.data.row(0, named=True)
    _print_fact("Example", ", ".join(f"{name} {value}" for name, value in first.items()))
    request = read_spec_file(output / "spec.yaml").with_entry(("release", "draw"), "sample")
    other = publish(None, request, output=output / "sample")
    k, beta = other.certificate.k, float(other.certificate.parameters["beta"])
    rows = other.certificate.table.release.rows
    _print_step(4, f"Published a sample of the same table, {rows:,} rows", other.folder)
    _print_fact("Guarantee", describe_guarantee(other.certificate).rstrip("."))
    _print_fact("Sample", f"{format_percent(beta)} of rows at random, in groups of {k:,} or more")
    synthetic = _publish_synthetic(output)
    synthetic_rows = synthetic.certificate.table.release.rows
    _print_step(5, f"Published {synthetic_rows:,} synthetic rows", synthetic.folder)
    _print_fact("Guarantee", describe_guarantee(synthetic.certificate).rstrip("."))
    for folder in (release.folder, other.folder, synthetic.folder):
        problems = verify(folder)
        for problem in problems:
            print(f"   Not verified: {problem}")
        if problems:
            return 1
    _print_step(6, "Verified all releases; so can recipients", "incrowd verify FOLDER")
    print("7. Wrote private reports, for the curator only")
    for name, published_release in (
        ("Counts", release),
        ("Sample", other),
        ("Synthetic", synthetic),
    ):
        report = published_release.folder.with_name(published_release.curator.name) / "report.html"
        _print_fact(name, f"{_describe_utility(published_release):<40}{report}")
    return 0


def _publish_synthetic(output: Path) -> Release:
    """Publish synthetic rows with the same budget; ZIP codes are listed, ten to a value."""
    file = read_spec_file(output / "spec.yaml")
    zips = {"from": 32000, "to": 34999, "step": 10, "widths": [100, 1000]}
    file = file.with_entry(("columns", "zip", "hierarchy"), {"intervals": zips})
    file = file.with_entry(("release", "method"), "synthetic")
    return publish(None, file, output=output / "synthetic")


def _print_step(number: int, text: str, place: Path | str) -> None:
    print(f"{number}. {text:<52}{place}")


def _print_fact(name: str, text: str) -> None:
    print(f"   {name:<12}{text}")


def _describe_utility(release: Release) -> str:
    """Return which share of rows a release keeps, and its information loss."""
    evaluation = release.evaluation
    if isinstance(evaluation, SyntheticEvaluation):
        return f"columns differ in {format_percent(evaluation.mean_distance)} of rows"
    share = 1 - evaluation.suppressed / max(evaluation.rows_original, 1)
    return f"{format_percent(share)} of rows, loss {evaluation.loss:.3f}"
