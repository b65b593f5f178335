"""The demo: a sample table, its spec, a release by counts and one by sample, both verified."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from incrowd.cli.guarantee import promise
from incrowd.curate.demo_tables import SPECS, sample
from incrowd.errors import IncrowdError
from incrowd.publication import Release, publish
from incrowd.release.verify import verify
from incrowd.spec.file import load


def demo(output: Path) -> int:
    """Run the demo into a new folder, and say what happened and where to look."""
    if output.exists():
        raise IncrowdError(f"'{output}' exists already. Name another folder with -o.")
    output.mkdir(parents=True)
    table = sample("voters")
    table.write(output / "voters.parquet")
    (output / "spec.yaml").write_text(SPECS["voters"], encoding="utf-8")
    print(f"1. Made {table.rows():,} voters who do not exist: {output / 'voters.parquet'}")
    print(f"2. Said what every column is: {output / 'spec.yaml'}")
    release = publish(None, output / "spec.yaml", output=output / "release")
    certificate = release.certificate
    shown, known = certificate.table.release, certificate.parameters
    print(f"3. Published {shown.rows:,} rows: {release.folder / shown.file}")
    _say(
        f"How many rows are alike is off by at most {known['r']:g}, and at least {certificate.k} "
        "rows of the table stand behind each."
    )
    first = release.data.row(0, named=True)
    _say(f"One of them: {', '.join(f'{name} {value}' for name, value in first.items())}")
    for reason in release.reasons:
        _say(reason)
    _say(f"That is {promise(certificate)}")
    asked = load(output / "spec.yaml").changed(("release", "draw"), "sample")
    other = publish(None, asked, output=output / "sample")
    k, beta = other.certificate.k, float(other.certificate.parameters["beta"])
    rows = other.certificate.table.release.rows
    print(f"4. Published the same table as a sample, {rows:,} rows: {other.folder}")
    _say(
        f"Each was drawn with probability {beta:g} and stands among at least {k} alike. (Who hands "
        "out both spends both budgets; a ledger adds them up.)"
    )
    for folder in (release.folder, other.folder):
        problems = verify(folder)
        for problem in problems:
            _say(f"WRONG {problem}")
        if problems:
            return 1
    print("5. Verified both from their folders alone, as anyone can: incrowd verify FOLDER")
    print("6. For the curator alone, what each kept (less lost is better):")
    for name, one in (("counts", release), ("sample", other)):
        report = one.folder.with_name(one.curator.name) / "report.html"
        print(f"   {name}: {_kept(one)}; see {report}")
    return 0


def _say(words: str) -> None:
    print(fill(words, 96, initial_indent="   ", subsequent_indent="   "))


def _kept(release: Release) -> str:
    """What a release kept, in short."""
    found = release.evaluation
    missing = found.suppressed / max(found.rows_original, 1)
    return (
        f"{1 - missing:.1%} of the rows in {found.classes:,} kinds, {found.surplus:,} rows too "
        f"many, loss {found.loss:.3f}"
    )
