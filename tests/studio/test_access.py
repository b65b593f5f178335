"""Who may ask the studio what: only the browser that came in by its link, from its own pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.studio import RunningStudio, StudioBrowser

from incrowd.studio.access import HEADERS


@pytest.fixture
def browser(studio: RunningStudio) -> StudioBrowser:
    """A browser that came in."""
    return studio.open_browser()


def test_without_a_token_nothing_is_answered(studio: RunningStudio) -> None:
    for path in ("/", "/static/studio.css", "/verify", "/history", "/desk/0/data"):
        answer = StudioBrowser(studio.host).get(path)
        assert answer.status == 403
        assert "Open the link that the terminal shows" in answer.text


def test_a_wrong_token_is_refused_and_a_link_works_once(studio: RunningStudio) -> None:
    assert StudioBrowser(studio.host).get("/?token=wrong").status == 403
    used = studio.wait_for_link().partition(studio.host)[2]
    assert studio.open_browser().get("/").status == 200
    again = StudioBrowser(studio.host).get(used)
    assert again.status == 403
    assert "This link was used" in again.text
    assert "set-cookie" not in again.headers


def test_who_uses_a_link_first_gains_nothing(studio: RunningStudio) -> None:
    """When the user opens a link that another has used, the other is shut out, and it is said."""
    link = studio.wait_for_link()
    thief = studio.open_browser()
    assert thief.get("/").status == 200
    assert StudioBrowser(studio.host).get(link.partition(studio.host)[2]).status == 403
    assert thief.get("/").status == 403
    studio.wait_for_output("was used twice")
    assert studio.open_browser().get("/").status == 200


def test_a_browser_that_is_in_keeps_its_desk(studio: RunningStudio, browser: StudioBrowser) -> None:
    """The next link in the same browser leads to where it is, and is not used up."""
    link = studio.wait_for_link()
    answer = browser.get(link.partition(studio.host)[2])
    assert answer.status == 303
    assert "set-cookie" not in answer.headers
    assert studio.wait_for_link() == link


def test_studios_of_one_machine_do_not_share_a_cookie(
    studio: RunningStudio, browser: StudioBrowser
) -> None:
    assert browser.cookie.startswith(f"incrowd-studio-{studio.host.rpartition(':')[2]}=")


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", ""])
def test_nothing_leads_to_another_site(browser: StudioBrowser, tmp_path: Path, back: str) -> None:
    path = tmp_path / "led.csv"
    path.write_text("age\n" + "\n".join(map(str, range(20, 60))))
    work = browser.upload_file(path)
    answer = browser.send_request(
        "POST", f"{work}/undo", f"version={browser.version}", {"X-Back": back}
    )
    assert answer.place == f"{work}/person"
    refused = browser.send_request("POST", "/open", "place=../x", {"X-Back": back})
    assert "evil" not in refused.text.partition("is outside")[2]


def test_a_made_up_cookie_is_refused(studio: RunningStudio, browser: StudioBrowser) -> None:
    name = browser.cookie.partition("=")[0]
    assert StudioBrowser(studio.host, f"{name}=guess").get("/").status == 403


def test_the_cookie_is_for_this_site_and_for_no_script(studio: RunningStudio) -> None:
    link = studio.wait_for_link()
    path = link.partition(studio.host)[2]
    cookie = (
        StudioBrowser(studio.host)
        .send_request("GET", path, headers={"Origin": ""})
        .headers["set-cookie"]
    )
    studio.wait_for_new_link(link)
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", ""])
def test_another_name_of_this_machine_is_refused(browser: StudioBrowser, host: str) -> None:
    """As a page has it whose name was bound to this machine after it was loaded."""
    answer = browser.send_request("GET", "/", headers={"Host": host or "localhost", "Origin": ""})
    assert answer.status == 403
    assert "Use the address that the terminal shows" in answer.text


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1", "", "https://{}", "file://{}",
     "http://x@{}", "http://{}.evil.example"],
)  # fmt: skip
def test_a_page_of_another_site_changes_nothing(browser: StudioBrowser, origin: str) -> None:
    before, origin = browser.get("/").text, origin.format(browser.host)
    for method, path in (("POST", "/sample"), ("PUT", "/upload?name=x.csv")):
        answer = browser.send_request(method, path, "sample=voters", {"Origin": origin})
        assert answer.status == 403
    assert browser.get("/").text == before


def test_every_answer_carries_the_policy(browser: StudioBrowser) -> None:
    for path in ("/", "/static/studio.js", "/nothing", "/?token=wrong"):
        headers = browser.get(path).headers
        for name, value in HEADERS.items():
            assert headers[name.lower()] == value, (path, name)
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


@pytest.mark.parametrize(
    "place", ["../secret.csv", "/etc/passwd", "a/../../secret.csv", "..", "link.csv"]
)
def test_paths_stay_below_the_folder(
    studio: RunningStudio, browser: StudioBrowser, place: str
) -> None:
    (studio.folder.parent / "secret.csv").write_text("name,age\nAnn,39\n")
    link = studio.folder / "link.csv"
    link.unlink(missing_ok=True)
    link.symlink_to(studio.folder.parent / "secret.csv")
    answer = browser.post("/open", place=place)
    assert answer.status == 422
    assert "is outside" in answer.text
    for path in (f"/static/{place}", f"/static/%2e%2e/{place}"):
        assert "Ann" not in browser.get(path).text


def test_an_upload_has_no_path(studio: RunningStudio, browser: StudioBrowser) -> None:
    """Its name is its last part: it cannot be written elsewhere."""
    answer = browser.send_request("PUT", "/upload?name=..%2F..%2Fescaped.csv", b"age\n1\n2\n")
    assert answer.status == 200
    for folder in (studio.folder, studio.folder.parent, studio.folder.parent.parent):
        assert not (folder / "escaped.csv").exists()
    assert (studio.folder / "escaped.yaml").exists()
    assert "table: escaped.csv" in (studio.folder / "escaped.yaml").read_text()


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A table whose names and values would like to be scripts."""
    path = tmp_path / "hostile.csv"
    path.write_text(
        "<script>alert(1)</script>,\"x' onmouseover='alert(2)\",plain\n"
        + "".join(f"<img src=x onerror=alert({n})>,\"\"\"/><svg onload=alert(4)>\",{n}\n"
                  for n in range(30))
    )  # fmt: skip
    return path


def test_names_and_values_are_text(browser: StudioBrowser, hostile: Path) -> None:
    work = browser.upload_file(hostile)
    text = browser.wait_for_words(f"{work}/data", "data-follow", gone=True)
    for room in ("data", "publish"):
        text += browser.get(f"{work}/{room}").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    for tag in ("<script>", "<img", "<svg onload", "onmouseover='"):
        assert tag not in text


def test_two_browsers_do_not_see_each_other(
    studio: RunningStudio, browser: StudioBrowser, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("age\n" + "\n".join(map(str, range(20, 60))))
    work = browser.upload_file(path)
    other = studio.open_browser()
    assert browser.get(f"{work}/data").status == 200
    assert other.get(f"{work}/data").status == 404
    assert other.post(f"{work}/data/role", column="age", role="drop").status == 404
    assert "On your desk" not in other.get("/").text
    assert "mine" in browser.get("/").text


def test_a_form_that_is_too_large_is_refused(browser: StudioBrowser) -> None:
    answer = browser.send_request("POST", "/open", b"place=" + b"x" * 5_000_000)
    assert answer.status == 422
    assert "larger than" in answer.text


class Zeros:
    """A file of very many bytes that takes no room."""

    def __init__(self, size: int) -> None:
        self.left = size

    def read(self, size: int) -> bytes:
        many = min(size, self.left)
        self.left -= many
        return b"\0" * many


def test_two_gigabytes_are_taken_without_being_held(
    studio: RunningStudio, browser: StudioBrowser
) -> None:
    """They are written as they come; what is no table is refused, and goes."""
    size = 2 << 30
    answer = browser.send_request("PUT", "/upload?name=huge.parquet", Zeros(size),
                         {"Content-Length": str(size)})  # fmt: skip
    assert answer.status == 422
    assert "huge.parquet" in answer.text
    status = Path(f"/proc/{studio.process.pid}/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if "VmHWM" in line)
        assert int(peak.split()[1]) < 1_000_000  # kilobytes
    assert not (studio.folder / "huge.yaml").exists()
