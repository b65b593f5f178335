"""One work for each spec: nothing that anybody has written is overwritten without a word."""

from __future__ import annotations

import html
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.inline_studio import FormBrowser, read_shown_version, serve_studio

from incrowd.spec.file import read_spec_file

SPEC = """\
# roles, as agreed
table: people.csv
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 79, widths: [5, 10]}}}
  town: {role: quasi, hierarchy: {flat: {values: [a, b]}}}
release: {method: k-anonymity, k: 5}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A spec beside its table."""
    rows = "".join(f"{20 + at % 40},{'ab'[at % 2]}\n" for at in range(80))
    (tmp_path / "people.csv").write_text(f"age,town\n{rows}")
    (tmp_path / "people.yaml").write_text(SPEC)
    return tmp_path / "people.yaml"


@pytest.fixture
def browsers(spec: Path) -> Iterator[tuple[FormBrowser, FormBrowser]]:
    """Two browsers of one user, both on the same spec."""
    with serve_studio(spec.parent, table="people.yaml") as (port, sessions):
        yield FormBrowser(port, sessions.token), FormBrowser(port, sessions.token)


def role_of(spec: Path, column: str) -> str:
    return read_spec_file(spec).spec.columns[column].role


def test_two_browsers_on_one_spec_share_its_work(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    first, second = browsers
    assert first.room == second.room
    first.post(f"{first.room}/data/role", column="age", role="drop")
    assert 'class="card column role-drop" id="column-0"' in second.get(f"{second.room}/data")
    second.post(f"{second.room}/data/role", column="town", role="drop")
    assert (role_of(spec, "age"), role_of(spec, "town")) == ("drop", "drop")


def test_a_form_of_a_page_that_is_out_of_date_is_refused(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    """The answer shows the spec as it is, with the reason; the next form is taken."""
    first, second = browsers
    first.post(f"{first.room}/data/role", column="age", role="drop")
    before = spec.read_text()
    page = second.post(f"{second.room}/data/role", 409, column="town", role="drop")
    assert "was changed elsewhere" in html.unescape(page)
    assert 'class="card column role-drop" id="column-0"' in page
    assert 'class="card column role-quasi" id="column-1"' in page
    assert spec.read_text() == before
    second.post(f"{second.room}/data/role", column="town", role="drop")
    assert (role_of(spec, "age"), role_of(spec, "town")) == ("drop", "drop")


@pytest.mark.parametrize(
    ("room", "path", "form"),
    [
        ("hierarchies", "hierarchies?column=town", {"do": "other", "other": "elsewhere"}),
        ("privacy", "privacy/settings", {"k": "7"}),
        ("privacy", "privacy/method", {"method": "safe"}),
        ("explore", "explore/take", {"levels": "1.1"}),
        ("publish", "publish/begin", {"name": "stale"}),
        ("data", "undo", {}),
    ],
)
def test_every_room_refuses_what_is_out_of_date(
    browsers: tuple[FormBrowser, FormBrowser],
    spec: Path,
    room: str,
    path: str,
    form: dict[str, str],
) -> None:
    first, second = browsers
    second.get(f"{second.room}/{room}")
    first.post(f"{first.room}/data/role", column="age", role="drop")
    before = spec.read_text()
    second.post(f"{second.room}/{path}", 409, **form)
    second.post(f"{second.room}/{path}", 409, **form, version="")
    assert spec.read_text() == before
    assert not (spec.parent / "stale").exists()


def test_a_change_by_a_text_editor_is_read_again_and_kept(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    first, _ = browsers
    spec.write_text(SPEC.replace("k: 5", "k: 9"))
    page = first.post(f"{first.room}/data/role", 409, column="town", role="drop")
    assert "changed by another program and was read again" in page
    assert read_spec_file(spec).spec.release.k == 9  # type: ignore[union-attr]
    page = first.post(f"{first.room}/data/role", column="town", role="drop")
    assert "was read again" not in page
    saved_spec = read_spec_file(spec).spec
    assert saved_spec.release.k == 9  # type: ignore[union-attr]
    assert saved_spec.columns["town"].role == "drop"
    assert "# roles, as agreed" in spec.read_text()


def test_an_edit_of_the_same_size_and_time_is_noticed_before_it_is_overwritten(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    first, _ = browsers
    status = spec.stat()
    with spec.open("r+") as file:
        file.write(SPEC.replace("k: 5", "k: 9"))
    os.utime(spec, ns=(status.st_atime_ns, status.st_mtime_ns))
    first.post(f"{first.room}/data/role", 409, column="town", role="drop")
    assert spec.read_text() == SPEC.replace("k: 5", "k: 9")


@pytest.mark.parametrize(
    "text", ["columns: [", SPEC.replace("people.csv", "others.csv"), None, b"\xff\xfe"]
)
def test_a_file_that_cannot_be_used_is_not_overwritten_until_asked(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path, text: str | bytes | None
) -> None:
    first, _ = browsers
    if text is None:
        spec.unlink()
    else:
        spec.write_bytes(text if isinstance(text, bytes) else text.encode())
    page = first.get(f"{first.room}/privacy")
    assert 'id="replace"' in page
    page = first.post(f"{first.room}/data/role", 409, column="town", role="drop")
    assert "Nothing can be changed here until" in page
    first.post(f"{first.room}/publish/begin", 409, name="out")
    assert spec.exists() == (text is not None)
    if text is not None:
        assert spec.read_bytes() == (text if isinstance(text, bytes) else text.encode())
    first.post(f"{first.room}/replace")
    assert read_spec_file(spec).spec.table == "people.csv"
    page = first.post(f"{first.room}/data/role", column="town", role="drop")
    assert 'id="replace"' not in page
    assert role_of(spec, "town") == "drop"


def test_a_file_that_was_put_right_is_used_again(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    first, _ = browsers
    spec.write_text("columns: [")
    assert 'id="replace"' in first.get(f"{first.room}/data")
    spec.write_text(SPEC.replace("k: 5", "k: 8"))
    assert 'id="replace"' not in first.get(f"{first.room}/privacy")
    first.post(f"{first.room}/data/role", column="town", role="drop")
    assert read_spec_file(spec).spec.release.k == 8  # type: ignore[union-attr]


def test_a_spec_that_names_another_table_is_opened_again(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    """Under the same address, for every browser that has it open."""
    first, second = browsers
    (spec.parent / "others.csv").write_text("age,town\n" + "30,a\n" * 40)
    spec.write_text(SPEC.replace("people.csv", "others.csv"))
    assert "now names another table" in html.unescape(first.get(f"{first.room}/data"))
    first.post("/open", place=str(spec))
    assert first.address.rpartition("/")[0] == second.room
    assert "40 rows" in second.get(f"{second.room}/data")


def test_a_refused_change_is_not_shown_as_if_it_were_made(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    first, _ = browsers
    page = first.post(f"{first.room}/privacy/settings", 422, k="-3")
    assert 'role="alert"' in page
    assert 'id="k" name="k" value="5"' in page
    assert 'value="-3"' not in page
    assert spec.read_text() == SPEC


def test_what_the_studio_writes_is_private(spec: Path) -> None:
    """A new spec is for its owner alone; one that is there keeps its mode."""
    spec.chmod(0o640)
    with serve_studio(spec.parent, table="people.csv") as (port, sessions):
        browser = FormBrowser(port, sessions.token)
        assert stat.S_IMODE((spec.parent / "people-2.yaml").stat().st_mode) == 0o600
        browser.post(f"{browser.room}/data/role", column="age", role="drop")
        assert stat.S_IMODE((spec.parent / "people-2.yaml").stat().st_mode) == 0o600
        browser.post("/open", place="people.yaml")
        room = browser.address.rpartition("/")[0]
        browser.post(f"{room}/hierarchies?column=town", do="kind", kind="csv")
        hierarchy_file = spec.parent / "people_hierarchy_town.csv"
        assert stat.S_IMODE(hierarchy_file.stat().st_mode) == 0o600
        assert stat.S_IMODE(spec.stat().st_mode) == 0o640
        browser.post("/sample", sample="patients")
        assert stat.S_IMODE((spec.parent / "patients.yaml").stat().st_mode) == 0o600


def test_pages_carry_the_version_in_every_form(browsers: tuple[FormBrowser, FormBrowser]) -> None:
    first, _ = browsers
    for room in ("data", "hierarchies", "privacy", "explore", "publish"):
        page = first.get(f"{first.room}/{room}")
        forms = [text for text in page.split("<form")[1:] if 'action="/desk/' in text[:200]]
        posts = [text for text in forms if 'method="post"' in text[:200]]
        assert posts
        for text in posts:
            assert read_shown_version(text.partition("</form>")[0]), text[:200]
