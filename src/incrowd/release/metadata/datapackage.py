"""A Frictionless Data Package: one resource for each released file, with a table schema.

The standard asks that a descriptor stands beside the data or above it: a path with ``..`` is
refused. So it is written into the release itself, not into the folder of the other metadata.
"""

from __future__ import annotations

import json
from typing import Any

from incrowd.release.metadata.description import (
    ColumnType,
    DescribedColumn,
    DescribedFile,
    ReleaseDescription,
)

_TYPES: dict[ColumnType, str] = {
    "text": "string", "integer": "integer", "number": "number", "date": "date",
    "boolean": "boolean", "any": "any",
}  # fmt: skip
_SCHEMA = "https://datapackage.org/profiles/2.0/datapackage.json"


def write_datapackage(release: ReleaseDescription) -> bytes:
    """Return the descriptor of a release."""
    about = release.about
    document: dict[str, Any] = {
        "$schema": _SCHEMA,
        "name": f"release-{release.certificate.seal[:12]}",
        "id": release.certificate.seal,
        "title": release.title,
        "description": about.read_text("description"),
        "created": f"{release.certificate.date}T00:00:00Z",
        "keywords": list(about.keywords),
        "homepage": about.url,
        "licenses": _describe_license(about.license),
        "contributors": _describe_publisher(release),
        "resources": [_make_resource(file) for file in release.files],
    }
    document = {name: value for name, value in document.items() if value}
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def _describe_license(name: str | None) -> list[dict[str, str]]:
    if name is None:
        return []
    return [{"path": name} if name.startswith("http") else {"name": name}]


def _describe_publisher(release: ReleaseDescription) -> list[dict[str, Any]]:
    about = release.about
    if about.publisher is None:
        return []
    entry: dict[str, Any] = {"title": about.publisher, "roles": ["publisher"]}
    if about.contact is not None:
        entry["path" if about.contact.startswith("http") else "email"] = about.contact
    return [entry]


def _make_resource(file: DescribedFile) -> dict[str, Any]:
    kind = file.name.rpartition(".")[2]
    return {
        "name": file.stem,
        "type": "table",
        "path": file.name,
        "format": kind,
        "mediatype": file.media_type,
        **({"encoding": "utf-8"} if kind == "csv" else {}),
        "hash": f"sha256:{file.sha256}",
        "schema": {
            "fields": [_make_field(column) for column in file.columns],
            "missingValues": [""],
        },
    }


def _make_field(column: DescribedColumn) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": column.name, "type": _TYPES[column.type],
        "description": f"{column.content}; {column.treatment}",
    }  # fmt: skip
    if column.type == "text" and column.labels and not column.more_labels:
        field["constraints"] = {"enum": list(column.labels)}
    if column.hierarchy:
        field["incrowd:hierarchy"] = column.hierarchy
    if column.rule:
        field["incrowd:rule"] = json.loads(column.rule)
    return field
