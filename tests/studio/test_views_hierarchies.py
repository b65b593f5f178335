"""The room of hierarchies: what a click does to the spec, what is refused, what is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from support import studio as asks
from support.inline_studio import serve_studio

from incrowd.engine.source import local_engine
from incrowd.spec.file import SpecFile, read_spec_file
from incrowd.spec.model import Column

NASTY = "<b>\"o'dd&"
SPEC = f"""\
table: t.csv
columns:
  age: {{role: quasi, hierarchy: {{intervals: {{from: 0, to: 99, widths: [10, 50]}}}}}}
  town: {{role: quasi, hierarchy: {{groups: {{North: [Oslo, Ulm], South: [Rome, Lima]}}}}}}
  '{NASTY.replace("'", "''")}': {{role: sensitive, hierarchy: {{flat: {{values: [a, b]}}}}}}
  zip: {{role: quasi, hierarchy: {{mask: {{length: 3}}}}}}
  name: {{role: identifier}}
release: {{method: safe, epsilon: 1.0, delta: 1.0e-6}}
"""


class Browser:
    """A browser that came in by the link, on the page of one work."""

    def __init__(self, port: int, folder: Path, token: str) -> None:
        self.folder, self._asks = folder, asks.StudioBrowser(f"127.0.0.1:{port}")
        _, headers, _ = self.ask("GET", f"/?token={token}")
        self._asks.cookie = headers["set-cookie"].split(";")[0]
        _, headers, _ = self.ask("GET", "/")
        self.work = headers["location"].rpartition("/")[0]

    def ask(
        self, method: str, path: str, body: str | bytes | None = None, **more: str
    ) -> tuple[int, Any, str]:
        answer = self._asks.send_request(method, path, body, more)
        return answer.status, answer.headers, answer.text

    @property
    def version(self) -> str:
        """The version of the spec, as the page that was seen last shows it."""
        return self._asks.version

    def page(self, column: str | None = None, **more: str) -> str:
        query = urlencode(({"column": column} if column else {}) | more)
        status, _, text = self.ask("GET", f"{self.work}/hierarchies?{query}")
        assert status == 200, text
        return text

    def send(self, column: str, **fields: Any) -> tuple[int, Any, str]:
        path = f"{self.work}/hierarchies?{urlencode({'column': column})}"
        sent = {"version": self._asks.version, **fields}
        return self.ask("POST", path, urlencode(sent, doseq=True))

    @property
    def spec(self) -> SpecFile:
        return read_spec_file(self.folder / "t.yaml")

    def column(self, name: str) -> Column:
        return self.spec.spec.columns[name]

    def declared(self, name: str) -> Any:
        hierarchy = self.column(name).hierarchy
        assert hierarchy is not None
        declaration = hierarchy.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {
            kind: {key: value for key, value in inner.items() if value not in ([], None)}
            if isinstance(inner, dict)
            else inner
            for kind, inner in declaration.items()
        }


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    (tmp_path / "t.yaml").write_text(SPEC, encoding="utf-8")
    rows = 40
    local_engine().from_columns(
        {
            "age": [i % 120 for i in range(rows - 1)] + [105],
            "town": ["Oslo", "Rome", "Ulm", "Lima"] * 10,
            NASTY: ["a", "b"] * 20,
            "zip": ["123", "124", "200", "555"] * 10,
            "name": [f"n{i}" for i in range(rows)],
        }
    ).write(tmp_path / "t.csv")
    with serve_studio(tmp_path, table="t.yaml") as (port, sessions):
        yield Browser(port, tmp_path, sessions.token)


FIELDS = {"do": "ladder", "from": "0", "to": "99", "step": "1", "open": "none", "by": "widths"}


def test_every_column_with_a_role_is_there_and_names_are_text(browser: Browser) -> None:
    page = browser.page()
    assert page.partition('id="ladder-list"')[2].partition("</nav>")[0].count("<li>") == 4
    for text in (page, browser.page(NASTY)):
        assert NASTY not in text
        assert "&lt;b&gt;&#34;o&#39;dd&amp;" in text
        assert " style=" not in text
    assert browser.ask("GET", f"{browser.work}/hierarchies?column=name")[0] == 404


def test_fields_change_the_spec_and_buttons_change_levels(browser: Browser) -> None:
    assert browser.send("age", **FIELDS, width=["5", "25"])[0] == 303
    assert browser.declared("age") == {
        "intervals": {"from": "0", "to": "99", "widths": ["5", "25"]}
    }
    browser.send("age", **FIELDS, width=["5", "25"], then="add-level")
    assert browser.declared("age")["intervals"]["widths"] == ["5", "25", "50"]
    browser.send("age", **FIELDS, width=["5", "25", "50"], then="remove-level:0")
    assert browser.declared("age")["intervals"]["widths"] == ["25", "50"]
    browser.send("age", **{**FIELDS, "by": "cuts"}, width=["25", "50"])
    cuts = {**FIELDS, "by": "cuts", "cuts": ["25, 50, 75", "50"]}
    assert browser.declared("age")["intervals"]["cuts"] == [["25", "50", "75"], ["50"]]
    browser.send("age", **cuts, then="move:50:55")
    assert browser.declared("age")["intervals"]["cuts"] == [["25", "55", "75"], ["55"]]
    page = browser.page("age")
    assert page.count('class="handle"') == 4
    assert "remove-cut:0:25" in page
    assert browser.column("age").confirm == ()


@pytest.mark.parametrize(
    ("column", "fields", "words"),
    [
        ("age", {**FIELDS, "width": "3.5"}, "The width 3.5 is not a multiple of the step 1."),
        ("age", {**FIELDS, "to": "abc"}, "got &#39;abc&#39;"),
        ("age", {**FIELDS, "by": "cuts", "cuts": ["20", "30"]}, "do not nest"),
        ("age", {**FIELDS, "then": "explode"}, "action &#39;explode&#39;"),
        ("age", {"do": "kind", "kind": "magic"}, "Unknown kind of hierarchy"),
        ("age", {"do": "import", "file": "../../secret.csv"}, "is outside"),
        ("age", {"do": "import", "file": "none.csv"}, "cannot be read"),
        ("age", {"do": "paste", "rows": "a;x;*\na;y;*"}, "both list the value"),
        ("town", {"do": "group", "then": "put", "name": "x"}, "Select values"),
        ("town", {"do": "group", "level": "9", "member": "Ulm", "name": "x"}, "no such level"),
        ("zip", {"do": "ladder", "length": "0", "hide": "right"}, "greater than or equal to 1"),
        ("zip", {"do": "kind", "kind": "csv"}, "needs a file"),
        ("zip", {"do": "dance"}, "action &#39;dance&#39;"),
    ],
)
def test_what_cannot_be_is_said_beside_the_form_and_nothing_changes(
    browser: Browser, column: str, fields: dict[str, Any], words: str
) -> None:
    before = (browser.folder / "t.yaml").read_text(encoding="utf-8")
    status, _, page = browser.send(column, **fields)
    assert status == 422
    assert 'id="mistake"' in page
    assert words in page
    assert 'value="abc"' not in page  # what is shown is what is stored
    assert (browser.folder / "t.yaml").read_text(encoding="utf-8") == before
    assert 'id="mistake"' not in browser.page(column)


def test_a_live_page_gets_the_mistake_as_a_part(browser: Browser) -> None:
    path = f"{browser.work}/hierarchies?column=age"
    body = urlencode({**FIELDS, "width": "x", "version": browser.version})
    status, _, page = browser.ask("POST", path, body, **{"X-Studio": "part"})
    assert status == 200
    assert 'id="mistake"' in page


def test_counts_are_hidden_until_asked_for_and_then_all_is_to_be_confirmed(
    browser: Browser,
) -> None:
    page = browser.page("town")
    assert "Show counts" in page
    assert 'class="held"' not in page
    assert "public knowledge" in page
    browser.send("town", do="counts")
    assert browser.column("town").confirm == ("hierarchy",)
    page = browser.page("town")
    assert "10 rows" in page
    assert "all of this is public knowledge" in page
    assert "occurs in at least 10 rows." in page
    browser.send("town", do="confirm", entry="hierarchy")
    assert browser.column("town").confirm == ()
    browser.send("town", do="group", level="1", member="Ulm", name="South", then="put")
    assert browser.column("town").confirm == ("hierarchy",), "drawn with counts in view"
    browser.send("town", do="hide")
    assert 'class="held"' not in browser.page("town")
    browser.send("town", do="confirm", entry="hierarchy")
    browser.send("town", do="group", level="1", member="Ulm", name="North", then="put")
    assert browser.column("town").confirm == ("hierarchy",), "what was seen stays seen"


def test_that_counts_were_seen_cannot_be_undone(browser: Browser) -> None:
    browser.send("town", do="group", level="1", member="Ulm", name="South", then="put")
    browser.send("town", do="counts")
    browser.ask("POST", f"{browser.work}/undo", f"version={browser.version}")
    assert browser.column("town").confirm == ("hierarchy",)


def test_a_table_without_such_columns_needs_none(browser: Browser) -> None:
    for name in ("age", "town", NASTY, "zip"):
        form = {"column": name, "role": "drop", "version": browser.version}
        browser.ask("POST", f"{browser.work}/data/role", urlencode(form))
    assert "none needs a hierarchy" in browser.page()


def test_without_a_safe_release_counts_are_there_at_once(browser: Browser) -> None:
    spec = browser.folder / "t.yaml"
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text[: text.index("release:")] + "release: {method: k-anonymity, k: 2}\n")
    status, headers, _ = browser.ask("POST", "/open", urlencode({"place": "t.yaml"}))
    assert status == 303
    browser.work = headers["location"].rpartition("/")[0]
    page = browser.page("town")
    assert "10 rows" in page
    assert "Show counts" not in page
    browser.send("town", do="group", level="1", member="Ulm", name="South", then="put")
    assert browser.column("town").confirm == ()


def test_groups_by_hand(browser: Browser) -> None:
    browser.send("town", do="group", level="1", member=["Ulm", "Rome"], name="Middle", then="put")
    groups = {"North": ["Oslo"], "Middle": ["Ulm", "Rome"], "South": ["Lima"]}
    assert browser.declared("town") == {"groups": groups}
    assert "Middle: [Ulm, Rome]" in browser.spec.text()
    _, headers, _ = browser.send("town", do="group", level="1", then="add-level")
    assert headers["location"].endswith("column=town&level=2")
    assert "Groups of groups" in browser.page("town", level="2")
    browser.send("town", do="group", level="2", member=["North", "Middle"], name="Up", then="put")
    assert browser.declared("town") == {
        "groups": {
            "Up": {"North": ["Oslo"], "Middle": ["Ulm", "Rome"]},
            "South": {"South": ["Lima"]},
        }
    }
    browser.send("town", do="group", level="2", old="Up", new="Top", then="rename")
    assert set(browser.declared("town")["groups"]) == {"Top", "South"}
    browser.send("town", do="group", level="1", values="Bonn\nNice", group="Middle", then="values")
    middle = browser.declared("town")["groups"]["Top"]["Middle"]
    assert middle == ["Ulm", "Rome", "Bonn", "Nice"]


def test_another_kind_is_proposed_and_marked_where_it_was_read(browser: Browser) -> None:
    browser.send("town", do="kind", kind="flat")
    assert browser.declared("town") == {"flat": {"values": ["Lima", "Oslo", "Rome", "Ulm"]}}
    assert browser.column("town").confirm == ("hierarchy",)
    browser.send("town", do="kind", kind="countries")
    assert browser.column("town").confirm == ()
    browser.send(NASTY, do="kind", kind="groups")
    assert browser.declared(NASTY) == {"groups": {"*": ["a", "b"]}}
    assert "There are no groups yet: 2 values" in browser.page(NASTY)
    assert browser.column(NASTY).confirm == (), "its values stood in the spec"
    browser.send(NASTY, do="kind", kind="")
    assert browser.column(NASTY).hierarchy is None
    assert "Values are published unchanged." in browser.page(NASTY)
    browser.send("age", do="kind", kind="csv")
    assert browser.declared("age") == {"csv": {"file": "t_hierarchy_age.csv"}}
    assert (browser.folder / "t_hierarchy_age.csv").read_text().startswith("0;0-9;0-49;*\n")
    assert browser.send("age", do="ladder", file="/etc/hosts")[0] == 422


def test_files_come_and_go(browser: Browser) -> None:
    path = f"{browser.work}/hierarchies/1/import?name=towns.csv"
    rows = b"Oslo;Cold;*\nRome;Warm;*\n"
    assert browser.ask("PUT", path, rows)[0] == 409  # it does not say which spec it was sent from
    status, _, text = browser.ask("PUT", f"{path}&version={browser.version}", rows)
    assert status == 200, text
    assert browser.declared("town") == {"groups": {"Cold": ["Oslo"], "Warm": ["Rome"]}}
    assert browser.column("town").confirm == ("hierarchy",)
    page = browser.page("town")
    assert "Ulm&#39; (10)" in page
    assert "outside the domain" in page
    browser.send("town", do="other", other="Elsewhere")
    assert browser.column("town").other == "Elsewhere"
    status, headers, text = browser.ask("GET", f"{browser.work}/hierarchies/export?column=town")
    assert text == "Oslo;Cold;*\nRome;Warm;*\n"
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''t_hierarchy_town.csv"
    many = "".join(f"v{i};g{i % 7};*\n" for i in range(600))
    browser.page("town")
    browser.ask("PUT", f"{path}&version={browser.version}", many.encode())
    assert browser.declared("town") == {"csv": {"file": "towns.csv"}}
    assert (browser.folder / "towns.csv").read_text() == many
    browser.page("town")
    browser.send("town", do="paste", rows="Oslo,*\nRome,*")
    assert browser.declared("town") == {"groups": {"*": ["Oslo", "Rome"]}}
    assert browser.ask("PUT", path.replace("/1/", "/9/"), b"a;*")[0] == 404


def test_forms_may_name_their_origin(browser: Browser) -> None:
    """Under `no-referrer` a browser sends the origin `null` with a form, and is refused."""
    _, headers, _ = browser.ask("GET", f"{browser.work}/hierarchies")
    assert headers["referrer-policy"] == "same-origin"
    path = f"{browser.work}/hierarchies?column=town"
    body = urlencode({"do": "other", "other": "x"})
    assert browser.ask("POST", path, body, Origin="null")[0] == 403
    assert browser.column("town").other is None


def test_values_that_nobody_listed_leave_only_if_they_are_public(browser: Browser) -> None:
    assert "not listed" in browser.page("zip")
    path = f"{browser.work}/hierarchies/export?column=zip"
    status, _, text = browser.ask("GET", path)
    assert status == 422
    assert "555" not in text
    status, _, text = browser.ask("GET", f"{path}&public=yes")
    assert status == 200
    assert "555;55*;5**;***" in text
