"""The demo: a sample table, its spec, a release, its verification, in one go."""

from __future__ import annotations

from pathlib import Path

from incrowd.errors import IncrowdError
from incrowd.release import publish
from incrowd.samples import sample
from incrowd.verifying import verify

SPEC = """\
# What every column is, said once. All of it is public knowledge; nothing is read from the data.
table: voters.parquet
unit: one row per person
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: identifier}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [2, 4, 8, 16]}}}
  race: {role: quasi, hierarchy: {flat: {values: [White, Hispanic, Black, Asian, Other]}}}
  height: {role: drop}
release:
  method: safe
  epsilon: 1.0
  delta: 1.0e-6
  keep: 0.6                                           # of the rows; k follows
  levels: {zip: 3, sex: 0, birth_year: 3, race: 0}    # 33***, 8-year intervals
"""


def demo(output: Path) -> int:
    """Run the demo into a new folder, and say what happened and where to look."""
    if output.exists():
        raise IncrowdError(f"'{output}' exists already. Name another folder with -o.")
    output.mkdir(parents=True)
    table = sample("voters")
    table.write(output / "voters.parquet")
    (output / "spec.yaml").write_text(SPEC, encoding="utf-8")
    print(f"1. Made {table.rows():,} voters who do not exist: {output / 'voters.parquet'}")
    print(f"2. Said what every column is: {output / 'spec.yaml'}")
    folder = output / "release"
    release = publish(None, output / "spec.yaml", output=folder)
    certificate, evaluation = release.certificate, release.evaluation
    k, beta = certificate.k, float(certificate.parameters["beta"])
    print(f"3. Published {certificate.release.rows:,} rows: {folder / certificate.release.file}")
    print(f"   Each was drawn with probability {beta:g} and stands among at least {k} alike.")
    epsilon, delta = certificate.guarantee.epsilon, certificate.guarantee.delta
    print(f"   That is ({epsilon:g}, {delta:.2g})-differential privacy, as its certificate states.")
    problems = verify(folder)
    for problem in problems:
        print(f"   WRONG {problem}")
    if problems:
        return 1
    print("4. Verified it from its folder alone, as anyone can: incrowd verify", folder)
    report = folder / "curator" / "report.html"
    print(f"5. For the curator alone: {evaluation.share:.0%} of the rows are shown; see {report}")
    return 0
