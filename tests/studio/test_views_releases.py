"""Past releases open from home and stand side by side; nothing else is handed out."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import polars as pl
import pytest
from support.inline_studio import FormBrowser, open_studio

from incrowd.evaluation.comparison import CHOICE_WARNING
from incrowd.publication import publish
from incrowd.release.keys import generate_key_pair
from incrowd.release.ledger import Ledger
from incrowd.verification import verify

pytestmark = pytest.mark.usefixtures("settled_once")

SPEC = """table: people.csv
ledger: people.ledger
columns:
  x: {role: quasi, hierarchy: {flat: {values: [a, b]}}}
release: {method: safe, epsilon: EPSILON, delta: 1.0e-6, levels: {x: 0}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    pl.DataFrame({"x": ["a", "b"] * 200}).write_csv(home / "people.csv")
    Ledger(home / "people.ledger").set_budget(epsilon=4, delta=1e-5)
    for name, epsilon in (("first", "1"), ("second", "1.5")):
        (home / "people.yaml").write_text(SPEC.replace("EPSILON", epsilon))
        publish(None, home / "people.yaml", output=home / name)
    return home


@pytest.fixture
def browser(folder: Path) -> Iterator[FormBrowser]:
    with open_studio(folder) as studio:
        yield studio


def test_home_shows_table_spec_and_releases(browser: FormBrowser) -> None:
    page = html.unescape(browser.get("/"))
    for words in ("people.csv", "people.yaml", "/release?of=first", "/release?of=second"):
        assert words in page
    assert page.index("people.csv") < page.index("people.yaml") < page.index("of=second")


def test_a_release_opens_with_all_that_belongs_to_it(browser: FormBrowser) -> None:
    page = html.unescape(browser.get("/release?of=second"))
    for words in ("(1.5, 1e-06)-differential privacy", "Not signed", "people.ledger", "load",
                  "-release: {method: safe, epsilon: 1,", "no difference"):  # fmt: skip
        assert words in page, words
    assert "Private" in browser.get("/release/report?of=second")
    assert "Certificate of data.parquet" in browser.get("/release/certificate?of=second")
    lines = browser.get("/release/data.csv?of=second&file=data.parquet").splitlines()
    assert lines[0] == "x"
    assert set(lines[1:]) == {"a", "b"}


@pytest.mark.parametrize(
    "address",
    [
        "/release?of=../home/first", "/release?of=", "/release?of=first.curator",
        "/release/report?of=nothing", "/release/data.csv?of=first&file=../people.csv",
        "/release/data.csv?of=first&file=certificate.json", "/release/data.csv?of=first",
        "/release/release.zip?of=%2Fetc",
    ],
)  # fmt: skip
def test_nothing_else_is_handed_out(browser: FormBrowser, address: str) -> None:
    assert "has no" in html.unescape(browser.get(address, 404))


def test_a_file_that_is_not_the_certified_one_is_refused(
    browser: FormBrowser, folder: Path
) -> None:
    path = folder / "first" / "data.parquet"
    before = path.read_bytes()
    try:
        path.write_bytes(before + b"x")
        address = "/release/data.csv?of=first&file=data.parquet"
        assert "not the one that was certified" in html.unescape(browser.get(address, 422))
        path.unlink()
        path.symlink_to(folder / "people.csv")
        assert "is a link" in html.unescape(browser.get(address, 422))
    finally:
        path.unlink()
        path.write_bytes(before)


def test_two_releases_side_by_side_with_the_warning_first(browser: FormBrowser) -> None:
    page = browser.get("/compare")
    assert page.count('type="checkbox"') == 2
    page = html.unescape(browser.get(f"/compare?{urlencode([('of', 'first'), ('of', 'second')])}"))
    warning = CHOICE_WARNING.split("`")[0]
    assert page.index(warning) < page.index("Rows released") < page.index("Attacks")
    assert "ε = 1.5" in page
    assert "Use this" not in page  # no button takes a release by its result
    assert "Choose two or three" in browser.get("/compare?of=first")
    assert "Choose two or three" in browser.get("/compare?of=first&of=first")
    assert "Choose two or three" in browser.get("/compare?of=..&of=first.curator")


def test_a_release_is_signed_by_a_key_of_the_folder(browser: FormBrowser, folder: Path) -> None:
    page = html.unescape(browser.get("/release?of=first"))
    assert "a new key: signing-key.pem" in page
    assert "has no private key '../key.pem'" in html.unescape(
        browser.post("/release/sign?of=first", 422, key="../key.pem")
    )
    assert "has no private key 'people.csv'" in html.unescape(
        browser.post("/release/sign?of=first", 422, key="people.csv")
    )
    (folder.parent / "elsewhere.pem").write_bytes(generate_key_pair()[0])
    (folder / "link.pem").symlink_to(folder.parent / "elsewhere.pem")
    (folder / "public.pem").write_text("-----BEGIN PUBLIC KEY-----")
    page = browser.get("/release?of=first")
    assert "link.pem" not in page
    assert "public.pem" not in page
    (folder / "signing-key.pub").touch()
    assert "exists already" in html.unescape(browser.post("/release/sign?of=first", 422, key=""))
    assert not (folder / "signing-key.pem").exists()
    (folder / "signing-key.pub").unlink()
    page = browser.post("/release/sign?of=first", key="")
    assert (folder / "signing-key.pem").stat().st_mode & 0o077 == 0
    assert "Signed by the key" in page
    assert verify(folder / "first", key=str(folder / "signing-key.pub")) == []
    page = html.unescape(browser.get("/release?of=second"))
    assert "<option>signing-key.pem</option>" in page
    assert "a new key" not in page
    assert "exists already" in html.unescape(browser.post("/release/sign?of=second", 422, key=""))
    assert "has no release" in html.unescape(
        browser.post("/release/sign?of=..", 404, key="signing-key.pem")
    )
    assert "PRIVATE KEY" not in page
