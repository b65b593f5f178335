"""Releases of the certificate's format, one for each method and form, verify from now on.

``tests/support/formats.py`` makes them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.findings import list_verify_messages
from support.formats import FORMATS, SPECS

from incrowd.release.certificate import FORMAT
from incrowd.release.verify import read_certificate

FOLDERS = sorted(path for path in FORMATS.glob("*/*") if path.is_dir())
FALSE = {"seeded": "NOT private", "rehearsal": "This is a dry run"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_release_verifies(folder: Path) -> None:
    problems = list_verify_messages(folder)
    if folder.name in FALSE:
        (problem,) = problems
        assert FALSE[folder.name] in problem
    else:
        assert problems == []


def test_there_is_a_folder_of_every_method_and_form() -> None:
    assert [path.name for path in FOLDERS] == sorted(SPECS)
    assert {path.parent.name for path in FOLDERS} == {str(FORMAT)}
    certificates = [read_certificate(folder) for folder in FOLDERS]
    assert {certificate.format for certificate in certificates} == {FORMAT}
    assert {certificate.method for certificate in certificates} == {
        "safe", "k-anonymity", "k-epsilon", "synthetic", "tables",
    }  # fmt: skip
    assert {
        certificate.has_noisy_counts for certificate in certificates if certificate.method == "safe"
    } == {
        True,
        False,
    }
    assert {certificate.slices is None for certificate in certificates} == {True, False}
    assert {certificate.signature is None for certificate in certificates} == {True, False}
    tables = [table.release for certificate in certificates for table in certificate.tables]
    assert {release.form for release in tables} == {"expanded", "counted", "cells"}
    assert {release.file.partition(".")[2] for release in tables} == {"parquet", "csv"}
    assert {certificate.guarantee.unit for certificate in certificates} == {"one row", "one person"}


def test_keys_of_a_statement_are_unique_and_texts_are_not_empty() -> None:
    for folder in FOLDERS:
        statement = read_certificate(folder).guarantee.statement
        assert len({sentence.key for sentence in statement}) == len(statement) > 3
        assert all(sentence.text.endswith(".") for sentence in statement)


def test_another_format_is_named(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text(f'{{"format":{FORMAT + 1},"new":[]}}\n')
    (problem,) = list_verify_messages(tmp_path)
    assert problem.startswith(f"The certificate has format {FORMAT + 1}; this version")
    for text in ('{"format":0}\n', "{}\n"):
        (tmp_path / "certificate.json").write_text(text)
        (problem,) = list_verify_messages(tmp_path)
        assert problem.startswith("The certificate is not valid: format: ")
