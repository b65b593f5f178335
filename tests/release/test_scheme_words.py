"""Words on levels: those of the certificate follow from its scheme, and the pages show them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.findings import list_verify_messages
from support.readers import find_section, load_certificate, read_readme, reseal_certificate
from support.unjudged import publish_unjudged

from incrowd.release.certificate import Certificate
from incrowd.release.pages import make_pages

FORMATS = Path(__file__).parents[1] / "formats" / "1"


@pytest.mark.parametrize("name", ["counts-fixed", "sample-mondrian", "synthetic"])
@pytest.mark.parametrize(
    "change", [{"shows": ["anything"]}, {"sizes": [1]}, {"open_ends": ["<5"]}], ids=str
)
def test_words_that_do_not_follow_from_the_scheme_are_refused(
    tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    folder = Path(shutil.copytree(FORMATS / name, tmp_path / "out"))
    certificate = load_certificate(folder)
    column = certificate.table.scheme["age"]
    scheme = {**certificate.table.scheme, "age": column.model_copy(update=change)}
    reseal_certificate(folder, certificate.model_copy(update={"scheme": scheme}))
    (message,) = list_verify_messages(folder)
    assert "the levels of 'age' are described otherwise than they are" in message


@pytest.mark.parametrize("ends", ["none", "both"])
def test_open_ranges_are_explained_only_where_they_occur(tmp_path: Path, ends: str) -> None:
    hierarchy = {"intervals": {"from": 0, "to": 89, "widths": [10], "open": ends}}
    table = pl.DataFrame({"age": list(range(90)) * 10})
    spec = {
        "columns": {"age": {"role": "quasi", "hierarchy": hierarchy}},
        "release": {"method": "k-anonymity", "k": 5, "levels": {"age": 1}},
    }
    publish_unjudged(table, spec, output=tmp_path / "out")
    page = read_readme(tmp_path / "out")
    section = find_section(page, "Columns")
    assert "**steps of 10 (such as 40-49)**; level 1 of " in section
    assert ("`<0`, `>89`" in section) == ("below a" in section) == (ends == "both")


def test_a_column_that_is_too_fine_is_named() -> None:
    """Published sizes decide: 1,500 rows are enough for 61 values, 40 are not."""
    certificate = load_certificate(FORMATS / "synthetic")
    assert "Noise exceeds counts" not in read_readme(FORMATS / "synthetic")
    text = certificate.model_dump(mode="json")
    text["release"]["rows"] = 40
    page = make_pages(Certificate.model_validate(text))["README.md"].decode()
    (line,) = [x for x in page.splitlines() if "Noise exceeds counts** in `weight`" in x]
    assert "61 values have 0.656 rows each on average" in line
