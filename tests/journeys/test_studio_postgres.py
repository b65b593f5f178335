"""A table of PostgreSQL, opened in the studio and published."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.postgres import execute_sql
from support.studio import RunningStudio

from incrowd.release.verify import verify
from incrowd.spec.file import read_spec_file


@pytest.fixture
def table(postgres: str) -> str:
    """A table that takes a password, and the address without it."""
    people = "SELECT 20 + n % 40 AS age, CASE WHEN n % 2 = 0 THEN 'f' ELSE 'm' END AS sex"
    execute_sql(
        postgres,
        f"CREATE TABLE people AS {people} FROM generate_series(1, 4000) AS n",
        "CREATE USER asked PASSWORD 'open sesame'",
        "GRANT SELECT ON people TO asked",
    )
    return f"{postgres.replace('tester@', 'asked@')}#people"


def test_a_table_that_takes_a_password(studio: RunningStudio, table: str) -> None:
    browser = studio.open_browser()
    refused = browser.post(browser.post("/open", place=table).place)
    assert refused.status == 422
    assert "password" in refused.text
    place = table.replace("asked@", "asked:open%20sesame@")
    request = browser.post("/open", place=place).place
    assert "sesame" not in browser.get(request).text
    work = browser.post(request).place.rpartition("/")[0]
    page = browser.wait_for_words(f"{work}/data", "data-follow", gone=True)
    assert re.search(r">f</th>.*?>2,000</td>", page)
    file = studio.folder / "people.yaml"
    assert read_spec_file(file).spec.table == table
    browser.post(f"{work}/data/confirm")
    browser.post(f"{work}/person", unit="")
    for column in read_spec_file(file).spec.unconfirmed_entries:
        entries = ("hierarchy", "other")
        for entry in entries:
            browser.post(f"{work}/hierarchies?column={column}", do="confirm", entry=entry)
    browser.post(f"{work}/privacy/settings", epsilon="2", delta="1e-6")
    browser.wait_for_words(f"{work}/publish", "data-follow", gone=True)
    assert browser.post(f"{work}/publish/begin", name="people").status == 303
    browser.wait_for_words(f"{work}/publish", "download")
    assert verify(studio.folder / "people") == []
    assert "sesame" not in studio.output
    for path in sorted(studio.folder.rglob("*")):
        assert path.is_dir() or b"sesame" not in Path(path).read_bytes(), path
