"""Make the releases of ``tests/formats``, which must verify from then on.

``python tests/support/formats.py`` makes those that are missing; a folder that is there stays. With
``--pages``, README.md and certificate.html of all are written again from their certificates.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.census import make_census
from support.census import make_spec as make_census_spec
from support.readers import LEVELS, SAFE, SLICES, format_columns, make_reader_table
from support.synthetic import BUDGET, RULES, make_patients, make_spec
from support.tables import BUDGET as TABLES_BUDGET
from support.tables import TABLES, make_residents
from support.tables import make_spec as make_tables_spec

FORMATS = Path(__file__).parents[1] / "formats"
CLASSES = "method: k-anonymity, k: 5"
NOISE = "method: k-epsilon, k: 5, epsilon: 1"
RULE = "diversity: {distinct: 2}"
LISTED_LEVELS = LEVELS.replace("zip: 5, ", "")
SPECS = {
    "counts-fixed": f"{SAFE}, {LEVELS}",
    "counts-described": f"{SAFE}, {LEVELS}",
    "counts-search-signed": f"{SAFE}, scheme: search",
    "counts-target": f"{SAFE}, scheme: search, target: s",
    "counts-slices": f"{SAFE}, {SLICES}",
    "counts-chosen-slices": f"{SAFE}, slices: {{columns: 3, tables: 2}}",
    "counts-already-sampled": f"{SAFE}, already_sampled: 0.1, {LEVELS}",
    "counts-already-sampled-slices": f"{SAFE}, already_sampled: 0.1, {SLICES}",
    "counts-person-counted-csv": f"{SAFE}, {LEVELS}, format: csv, rows: counted",
    "counts-person-rows": f"{SAFE}, {LEVELS}",
    "counts-person-rows-per-group": f"{SAFE}, {LEVELS}",
    "counts-person-period": f"{SAFE}, {LEVELS}",
    "counts-person-period-series": f"{SAFE}, {LISTED_LEVELS}, rows: counted, series: {{of: 4}}",
    "households": f"{SAFE}, levels: {{region: 0, tenure: 0, age: 0, sex: 0}}",
    "households-search-counted-csv": f"{SAFE}, scheme: search, format: csv, rows: counted",
    "households-linked": f"{SAFE}, levels: {{region: 0, tenure: 0, age: 0, sex: 0}}",
    "households-linked-search-sample-csv": f"{SAFE}, draw: sample, scheme: search, format: csv",
    "sample-fixed": f"{SAFE}, draw: sample, {LEVELS}",
    "sample-search": f"{SAFE}, draw: sample, scheme: search",
    "sample-mondrian": f"{SAFE}, draw: sample, scheme: mondrian",
    "sample-slices-csv": f"{SAFE}, draw: sample, {SLICES}, format: csv, formulas: escape",
    "sample-person": f"{SAFE}, draw: sample, {LEVELS}",
    "k-anonymity-ola": CLASSES,
    "k-anonymity-starred": f"{CLASSES}, suppressed: starred, suppression: 0.2, "
    "levels: {n: 0, half: 0}",
    "k-anonymity-mondrian-rule": f"{CLASSES}, algorithm: mondrian",
    "k-anonymity-presence": CLASSES,
    "k-anonymity-cluster-person": f"{CLASSES}, algorithm: cluster",
    "k-anonymity-person-rows": f"{CLASSES}, algorithm: mondrian",
    "k-anonymity-duplicate": f"{CLASSES}, algorithm: duplicate",
    "k-epsilon": f"{NOISE}, confidence: 0.5",
    "k-epsilon-declared": f"{NOISE}, bounds: declared, clamp: true",
    "k-epsilon-gaussian": "method: k-epsilon, k: 5, epsilon: 0.9, noise: gaussian, delta: 1.0e-5",
    "k-anonymity-numbers": f"{CLASSES}, algorithm: mdav",
    "k-epsilon-categories": "method: k-epsilon, k: 5, epsilon: 2",
    "seeded": f"{SAFE}, draw: sample, {LEVELS}",
    "rehearsal": f"{SAFE}, {LEVELS}",
    "synthetic": BUDGET,
    "synthetic-person-target": f"{BUDGET}, target: diagnosis, tables: [[sex, age]]",
    "synthetic-drawn-csv-signed": f"{BUDGET}, values: drawn, format: csv, formulas: escape, "
    f"{RULES}",
    "tables": f"{TABLES_BUDGET}, {TABLES}",
    "tables-all-csv-person-signed": f"{TABLES_BUDGET}, all: 2, totals: false, objective: max, "
    "missing: excluded, hide_below: 10, format: csv, formulas: escape",
    "tables-sums": f"{TABLES_BUDGET}, tables: [{{columns: [sex, region], sum: {{column: income, "
    "bounds: [-50, 1000], step: 0.5}}, [age, sex]], format: csv",
}


DESCRIBED = """
about: {title: Readers, description: Fictional readers, publisher: Example, contact: a@example.org,
  theme: health, region: Nowhere, language: en, license: CC-BY-4.0, source: made by a test,
  intended_use: tests, epsilon_reason: chosen for tests, misuse: nobody, refresh: none}
describe: [croissant, dcat, registry, ddi, frictionless, dossier]
"""


def make_format_release(name: str, folder: Path) -> None:
    """Make one of the releases."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from support.unjudged import publish_unjudged

    from incrowd.curate.rehearse import rehearse
    from incrowd.privacy.randomness import SeededRandomness
    from incrowd.release.ledger import Ledger
    from incrowd.spec.file import parse_spec

    if name.startswith("synthetic"):
        make_synthetic(name, folder)
        return
    if name.startswith("tables"):
        make_tables(name, folder)
        return
    if name.startswith("households"):
        make_households(name, folder)
        return
    columns = format_columns("k-epsilon" if name.startswith("k-epsilon") else "")
    table, more = make_reader_table().head(1500), ""
    if "rule" in name:
        columns = columns.replace("s: {role: sensitive,", f"s: {{role: sensitive, {RULE},")
    if "presence" in name:
        rule = "presence: {value: c, least: 0.05, most: 0.9}"
        columns = columns.replace("s: {role: sensitive,", f"s: {{role: sensitive, {rule},")
    if "numbers" in name:
        columns = columns.replace("w: {role: drop}", "w: {role: sensitive, aggregate: mean}")
    if "categories" in name:
        s_column = next(line for line in columns.splitlines() if line.startswith("  s:"))
        columns = columns.replace(
            s_column, '  s: {role: noisy, values: ["=1+1", "@b", "c"], other: other}'
        )
    if "person" in name:
        ids = [None if at % 100 == 0 else at // 2 for at in range(len(table))]
        table = table.with_columns(pl.Series("name", ids))
        more = "unit: {id: name, without_id: drop}"
    if "rows" in name:
        each = ", per_group: 2" if "per-group" in name else ""
        more = f"unit: {{id: name, without_id: drop, rows: 2{each}}}"
    if "period" in name:
        table = table.with_columns(pl.lit("2026-07-31").alias("day"))
        columns = f"{columns.rstrip()}\n  day: {{role: drop}}\n"
        more = (
            "unit: {id: name, without_id: drop, rows: 2, period: {column: day, every: quarter}}\n"
            "part: {column: day, value: 2026-Q3}"
        )
    if "series" in name:
        listed = (line for line in columns.splitlines() if not line.startswith("  zip:"))
        columns = "\n".join([*listed, "  zip: {role: drop}", ""])
    if "described" in name:
        more += DESCRIBED
    spec = parse_spec(f"{columns}{more}\nrelease: {{{SPECS[name]}}}\n")
    if name == "rehearsal":
        rehearse(spec, size=1500, output=folder)
        return
    options: dict[str, Any] = {}
    if name == "seeded":
        options["bits"] = SeededRandomness(1)
    if "signed" in name:
        options["key"] = Ed25519PrivateKey.generate()
    if "series" in name:
        options["ledger"] = Ledger(folder.with_name("series.ledger"))
        options["ledger"].set_budget(epsilon=10.0, delta=1e-3)
    publish_unjudged(table, spec, output=folder, **options)


def make_households(name: str, folder: Path) -> None:
    """Make one of the releases of households and their people."""
    from ruamel.yaml import YAML
    from support.unjudged import publish_unjudged

    release = YAML(typ="safe").load(f"{{{SPECS[name]}}}")
    spec = {**make_census_spec(3), "release": release}
    spec["household"]["linked"] = "linked" in name
    publish_unjudged(make_census(1500), spec, output=folder)


def make_synthetic(name: str, folder: Path) -> None:
    """Make one of the releases of synthetic rows."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from support.unjudged import publish_unjudged

    person = "person" in name
    spec = make_spec(
        SPECS[name], role="identifier" if person else "key",
        more="unit: {id: patient}" if person else "",
    )  # fmt: skip
    key = Ed25519PrivateKey.generate() if "signed" in name else None
    publish_unjudged(make_patients(1500, visits=2 if person else 1), spec, output=folder, key=key)


def make_tables(name: str, folder: Path) -> None:
    """Make one of the releases of tables of counts."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from support.unjudged import publish_unjudged

    person = "person" in name
    more = "  income: {role: noisy}" if "sums" in name else ""
    spec = make_tables_spec(SPECS[name], more="unit: {id: id}" if person else more)
    key = Ed25519PrivateKey.generate() if "signed" in name else None
    residents = make_residents(1500, visits=2 if person else 1)
    if "sums" in name:
        incomes = [None if at % 50 == 7 else at * 37 % 1300 - 100.25 for at in range(1500)]
        residents = residents.with_columns(pl.Series("income", incomes))
    publish_unjudged(residents, spec, output=folder, key=key)


if __name__ == "__main__":
    import shutil
    import tempfile

    from incrowd.release.pages import make_pages
    from incrowd.release.verify import read_certificate

    if "--pages" in sys.argv:
        for folder in sorted((FORMATS / "1").iterdir()):
            for page, text in make_pages(read_certificate(folder)).items():
                (folder / page).write_bytes(text)
    for chosen in SPECS:
        if not (FORMATS / "1" / chosen).exists():
            with tempfile.TemporaryDirectory() as temporary:
                make_format_release(chosen, Path(temporary) / "out")
                shutil.copytree(Path(temporary) / "out", FORMATS / "1" / chosen)
            print(chosen)
