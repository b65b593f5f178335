"""The demo: a sample table, its spec, a release, its verification, in one go."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from incrowd.errors import IncrowdError
from incrowd.privacy.rounded import rounded
from incrowd.release.verify import verify
from incrowd.tasks.publish import publish
from incrowd.tasks.sample import SPECS, sample


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
    folder = output / "release"
    release = publish(None, output / "spec.yaml", output=folder)
    certificate, evaluation = release.certificate, release.evaluation
    k, beta = certificate.k, float(certificate.parameters["beta"])
    shown = certificate.table.release
    print(f"3. Published {shown.rows:,} rows: {folder / shown.file}")
    print(f"   Each was drawn with probability {beta:g} and stands among at least {k} alike.")
    first = release.data.row(0, named=True)
    print(f"   One of them: {', '.join(f'{name} {value}' for name, value in first.items())}")
    for reason in release.reasons:
        print(fill(reason, 96, initial_indent="   ", subsequent_indent="   "))
    epsilon, delta = (
        rounded(name, float(getattr(certificate.guarantee, name)), 3)
        for name in ("epsilon", "delta")
    )
    print(f"   That is ({epsilon}, {delta})-differential privacy, as its certificate states.")
    problems = verify(folder)
    for problem in problems:
        print(f"   WRONG {problem}")
    if problems:
        return 1
    print("4. Verified it from its folder alone, as anyone can: incrowd verify", folder)
    share = evaluation.rows_released / evaluation.rows_original
    report = folder.with_name(release.curator.name) / "report.html"
    print(f"5. For the curator alone: {share:.0%} of the rows are shown; see {report}")
    return 0
