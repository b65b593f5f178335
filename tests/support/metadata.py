"""What tests of metadata share: described releases, and the validators of each format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from support import tables
from support.formats import NOISE
from support.readers import LEVELS, SAFE, SLICES, format_columns, make_reader_table
from support.synthetic import BUDGET, make_patients, make_spec
from support.unjudged import publish_unjudged

from incrowd.spec.file import parse_spec

SCHEMAS = Path(__file__).with_name("schemas")
ABOUT = """
about:
  title: 'Voters & "others" of <Example>'
  description: Fictional voters, one row per person.
  publisher: Example County
  contact: data@example.org
  url: https://example.org/voters
  keywords: [voters, "a: b"]
  theme: health
  health_category: https://example.org/categories/1
  region: Example County
  language: en
  license: CC-BY-4.0
  access: public
  legal_basis: https://example.org/legislation
  intended_use: Research on turnout.
  source: The register of voters of Example County, fictional.
  epsilon_reason: The board of the register decided it.
  misuse: Someone who looks for a neighbor.
  refresh: none
"""
EVERY = "croissant, dcat, registry, ddi, frictionless, dossier"
NOT_PRIVATE = "croissant, dcat, ddi, frictionless, dossier"
RELEASES = {
    "counts": f"{SAFE}, draw: counts, {LEVELS}",
    "counts-csv": f"{SAFE}, draw: counts, {LEVELS}, format: csv, formulas: escape, rows: counted",
    "sample-slices-csv": f"{SAFE}, draw: sample, {SLICES}, format: csv",
    "sample-person": f"{SAFE}, draw: sample, {LEVELS}",
    "k-anonymity": "method: k-anonymity, k: 5, algorithm: mondrian, format: csv",
    "k-epsilon": NOISE,
    "synthetic": BUDGET,
    "tables": f"{tables.BUDGET}, {tables.TABLES}",
}


def publish_described(name: str, folder: Path, *, about: str = ABOUT) -> Path:
    """Publish one of the releases with all its metadata, and return its folder."""
    described = f"{about}\ndescribe: [{EVERY if is_private(name) else NOT_PRIVATE}]\n"
    output = folder / name
    if name == "synthetic":
        spec = make_spec(RELEASES[name], more=described)
        publish_unjudged(make_patients(1500), spec, output=output)
        return output
    if name == "tables":
        spec = tables.make_spec(RELEASES[name], more=described)
        publish_unjudged(tables.make_residents(1500), spec, output=output)
        return output
    columns = format_columns("k-epsilon" if name == "k-epsilon" else "")
    if name == "sample-person":
        described += "unit: {id: name}\n"
    spec = parse_spec(f"{columns}{described}release: {{{RELEASES[name]}}}\n")
    publish_unjudged(make_reader_table().head(1500), spec, output=output)
    return output


def is_private(name: str) -> bool:
    return not name.startswith("k-")


def find_croissant_problems(folder: Path) -> list[str]:
    """What mlcroissant finds wrong; every record of every released file is loaded."""
    import mlcroissant

    try:
        dataset = mlcroissant.Dataset(str(folder / "metadata/croissant.json"))
        certificate = json.loads((folder / "certificate.json").read_bytes())
        tables = certificate.get("slices") or [certificate]
        for number, table in enumerate(tables, 1):
            stem = "data" if len(tables) == 1 else f"data-{number}"
            records = sum(1 for _ in dataset.records(stem))
            release = table["release"]
            rows = release["classes" if release["form"] == "counted" else "rows"]
            if records != rows:
                return [f"{records} records, not {rows}"]
    except (mlcroissant.ValidationError, ValueError, KeyError) as error:
        return [str(error)]
    except Exception as error:  # noqa: BLE001 - whatever a loader raises for what is wrong
        return [repr(error)]
    return []


def find_catalog_problems(folder: Path) -> list[str]:
    """What the shapes find wrong, and whether both forms say the same."""
    import pyshacl
    from rdflib import Graph
    from rdflib.compare import isomorphic

    turtle = Graph().parse(folder / "metadata/dcat.ttl")
    linked = Graph().parse(folder / "metadata/dcat.jsonld", format="json-ld")
    holds, _, text = pyshacl.validate(
        turtle, shacl_graph=str(SCHEMAS / "catalog_shapes.ttl"), advanced=True
    )
    problems = [] if holds else [str(text)]
    return problems if isomorphic(turtle, linked) else [*problems, "the two forms differ"]


def find_record_problems(folder: Path) -> list[str]:
    """What the schema of the registry finds wrong."""
    import jsonschema

    schema = yaml.safe_load((SCHEMAS / "deployments-schema.yaml").read_text(encoding="utf-8"))
    record = yaml.safe_load((folder / "metadata/registry.yaml").read_text(encoding="utf-8"))
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(record)]


def find_codebook_problems(folder: Path) -> list[str]:
    """What the schema of the codebook finds wrong."""
    from lxml import etree

    schema = etree.XMLSchema(etree.parse(SCHEMAS / "codebook_subset.xsd"))
    document = etree.parse(folder / "metadata/codebook.xml")
    schema.validate(document)
    return [str(error) for error in schema.error_log]


def find_package_problems(folder: Path) -> list[str]:
    """What Frictionless finds wrong: of Parquet in the descriptor, of CSV in every row, too."""
    import frictionless

    path = folder / "datapackage.json"
    descriptor = json.loads(path.read_bytes())
    try:
        package = frictionless.Package.from_descriptor(descriptor, basepath=str(folder))
    except frictionless.FrictionlessException as error:
        return [str(reason) for reason in error.reasons] or [str(error)]
    if any(resource.format == "parquet" for resource in package.resources):
        return []  # whose plugin needs another reader of Parquet
    report = frictionless.validate(str(path))
    return [str(row) for row in report.flatten(["type", "note"])]


VALIDATORS: dict[str, Any] = {
    "metadata/croissant.json": find_croissant_problems,
    "metadata/dcat.ttl": find_catalog_problems,
    "metadata/registry.yaml": find_record_problems,
    "metadata/codebook.xml": find_codebook_problems,
    "datapackage.json": find_package_problems,
}
