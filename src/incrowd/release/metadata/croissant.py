"""Croissant 1.1 with the vocabulary for responsible AI, as JSON-LD.

Each released file is a record set whose fields name the columns; the labels of a column are a
record set of their own, with their data. Every file of the release is listed with its hash.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from incrowd.release.metadata.answers import list_limits
from incrowd.release.metadata.description import (
    ColumnType,
    DescribedFile,
    ReleaseDescription,
)

_SPECS = ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract",
            "field", "fileProperty", "fileObject", "fileSet", "format", "includes", "isArray",
            "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
            "references", "regex", "repeated", "replace", "samplingRate", "separator", "source",
            "subField", "transform",
        )
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "sc": "https://schema.org/",
}  # fmt: skip
_TYPES: dict[ColumnType, str] = {
    "text": "sc:Text", "any": "sc:Text", "integer": "sc:Integer", "number": "sc:Float",
    "date": "sc:Date", "boolean": "sc:Boolean",
}  # fmt: skip


def write_croissant(release: ReleaseDescription) -> bytes:
    """Return the Croissant file of a release."""
    about, certificate = release.about, release.certificate
    document: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _SPECS,
        "name": release.title,
        "description": about.read_text("description"),
        "version": "1.0.0",
        "datePublished": certificate.date,
        "identifier": certificate.seal,
        **_describe_origin(release),
        "rai:dataCollection": about.read_text("source"),
        "rai:dataPreprocessingProtocol": release.statement,
        "rai:dataLimitations": list_limits(release),
        "rai:dataUseCases": [about.read_text("intended_use")],
        "rai:dataSocialImpact": about.read_text("misuse"),
        "rai:personalSensitiveInformation": _list_personal_columns(release),
        "rai:dataReleaseMaintenancePlan": about.read_text("refresh"),
        "distribution": list(_list_files(release)),
        "recordSet": [
            *(_make_record_set(file) for file in release.files),
            *_list_label_sets(release),
        ],
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def _describe_origin(release: ReleaseDescription) -> dict[str, Any]:
    """Return publisher, license and so on: entries that are missing where nothing is stated."""
    about = release.about
    publisher: dict[str, Any] | None = None
    if about.publisher is not None:
        publisher = {"@type": "sc:Organization", "name": about.publisher}
        if about.contact is not None:
            is_address = about.contact.startswith("http")
            publisher["url" if is_address else "email"] = about.contact
    license_address = about.license
    if about.license is not None and not about.license.startswith("http"):
        license_address = f"https://spdx.org/licenses/{about.license}.html"
    entries = {
        "publisher": publisher, "creator": publisher, "license": license_address,
        "url": about.url, "keywords": list(about.keywords), "inLanguage": about.language,
        "spatialCoverage": about.region, "isBasedOn": None,
        "citeAs": _write_citation(release),
    }  # fmt: skip
    return {name: value for name, value in entries.items() if value}


def _write_citation(release: ReleaseDescription) -> str | None:
    """Return how to cite the release, if both title and publisher are stated."""
    about = release.about
    if about.title is None or about.publisher is None:
        return None
    year, address = release.certificate.date[:4], f" {about.url}" if about.url else ""
    return f"{about.publisher} ({year}). {about.title}.{address}"


def _list_personal_columns(release: ReleaseDescription) -> list[str]:
    """Return a line for each column: how it was treated."""
    lines = {
        f"{column.name}: {column.treatment} ({column.content})": None
        for file in release.files
        for column in file.columns
    }
    return list(lines)


def _list_files(release: ReleaseDescription) -> list[dict[str, Any]]:
    """Return every file of the release with its hash."""
    listed = [
        {
            "@type": "cr:FileObject", "@id": file.name, "name": file.name,
            "description": f"{file.rows} rows", "contentUrl": release.locate(file.name),
            "encodingFormat": _name_format(file), "sha256": file.sha256,
        }
        for file in release.files
    ]  # fmt: skip
    for number, (path, digest, content) in enumerate(release.list_other_files()):
        kind = "application/json" if path.endswith(".json") else "text/csv"
        listed.append(
            {
                "@type": "cr:FileObject", "@id": _make_id(path, number), "name": path,
                "description": content,
                "contentUrl": release.locate(quote(path)), "encodingFormat": kind,
                "sha256": digest,
            }
        )  # fmt: skip
    return listed


def _name_format(file: DescribedFile) -> str:
    """Return the media type as Croissant names it."""
    return "application/x-parquet" if file.name.endswith(".parquet") else file.media_type


def _make_record_set(file: DescribedFile) -> dict[str, Any]:
    """Return the record set of a released file."""
    return {
        "@type": "cr:RecordSet", "@id": file.stem, "name": file.stem,
        "description": f"The rows of {file.name}.",
        "field": [_make_field(file, at) for at in range(len(file.columns))],
    }  # fmt: skip


def _make_id(text: str, number: int) -> str:
    """Return an identifier, which may not hold spaces; a number keeps changed ones apart."""
    plain = re.sub(r"[^A-Za-z0-9_./-]+", "-", text)
    return plain if plain == text else f"{plain}~{number}"


def _make_field(file: DescribedFile, at: int) -> dict[str, Any]:
    column = file.columns[at]
    words = f"{column.content}; {column.treatment}"
    if column.labels:
        words += "; its labels are listed in a record set of their own"
    if column.hierarchy:
        words += f"; hierarchy: {column.hierarchy}"
    if column.rule:
        words += f"; rule: {column.rule}"
    return {
        "@type": "cr:Field", "@id": f"{file.stem}/{_make_id(column.name, at)}",
        "name": column.name, "description": words, "dataType": _TYPES[column.type],
        "source": {"fileObject": {"@id": file.name}, "extract": {"column": column.name}},
    }  # fmt: skip


def _list_label_sets(release: ReleaseDescription) -> list[dict[str, Any]]:
    """Return a record set for each column whose labels are listed, with these labels."""
    labels: dict[str, dict[str, None]] = {}  # of a column in several files, those of all
    for file in release.files:
        for column in file.columns:
            if column.labels:
                labels.setdefault(column.name, {}).update(dict.fromkeys(column.labels))
    sets = []
    for number, (name, listed) in enumerate(labels.items()):
        set_id = f"labels/{_make_id(name, number)}"
        field = f"{set_id}/label"
        sets.append(
            {
                "@type": "cr:RecordSet", "@id": set_id, "name": f"labels of {name}",
                "dataType": "sc:Enumeration", "key": {"@id": field},
                "field": [
                    {"@type": "cr:Field", "@id": field, "name": "label", "dataType": "sc:Text"}
                ],
                "data": [{field: label} for label in listed],
            }
        )  # fmt: skip
    return sets
