"""The command: plans, versions and pages, and what importing it loads."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import run_command, run_successfully
from typer.main import get_command
from xlsxwriter import Workbook

import incrowd as ic
from incrowd.cli import status
from incrowd.cli.commands import build_parser
from incrowd.cli.help import EXAMPLES
from incrowd.papers import paper_a_figures


def test_plan_as_json_is_the_plan() -> None:
    got = json.loads(run_successfully("plan", "--epsilon", "1", "--delta", "1e-6", "--json"))
    beside = got.pop("counts")
    assert got == ic.plan(epsilon=1, delta=1e-6).as_dict()
    assert beside == ic.plan(epsilon=1, delta=1e-6, draw="counts").as_dict()
    many = json.loads(
        run_successfully(
            "plan", "--k", "20", "--beta", "0.1", "--delta", "1e-6", "--releases", "16", "--json"
        )
    )
    assert many["releases"] == 16
    assert many["epsilon"] < 0.48
    paper = json.loads(
        run_successfully(
            "plan",
            "--beta",
            "0.2",
            "--epsilon",
            "1",
            "--delta",
            "1e-6",
            "--definition",
            "paper",
            "--json",
        )
    )
    assert (paper["k"], paper["definition"]) == (14, "paper")


def test_plan_in_words() -> None:
    text = " ".join(run_successfully("plan", "--epsilon", "1", "--delta", "1e-6").split())
    assert "k = 5, r = 14 k = 14, β = 0.2537" in text
    assert "19 people 56 people" in text
    assert "25.4 %, drawn at random" in text
    text_with_keep = " ".join(
        run_successfully("plan", "--epsilon", "1", "--delta", "1e-6", "--keep", "0.6").split()
    )
    assert "51 sampled rows" in text_with_keep


def test_plan_table() -> None:
    successfully = run_successfully("plan", "--grid", "k", "--delta", "1e-6")
    assert "Smallest k with δ ≤ 1e-06 (tight δ)" in successfully
    assert re.search(r"^\s*0\.2\s+.*\s12\s", successfully, flags=re.MULTILINE)
    cells = json.loads(run_successfully("plan", "--grid", "epsilon", "--delta", "1e-6", "--json"))
    assert cells["rows"]["k"][2] == 20
    assert cells["cells"][0][-1] is None
    assert 0.18 < cells["cells"][2][1] < 0.184
    assert "Largest beta" in run_successfully("plan", "--grid", "beta", "--delta", "1e-6")


def test_version_and_help() -> None:
    """In a process of its own, as at a shell."""
    for argument, part in (("--version", f"incrowd {ic.__version__}\n"), ("--help", "reproduce")):
        started = [sys.executable, "-m", "incrowd", argument]
        done = subprocess.run(started, capture_output=True, text=True, check=True, timeout=120)
        assert part in done.stdout
        assert done.stderr == ""


def list_commands(
    command: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command that runs, with the words that call it."""
    for name, below in getattr(command, "commands", {}).items():
        if hasattr(below, "commands"):
            yield from list_commands(below, (*path, name))
        else:
            yield (*path, name), below


def test_every_command_has_a_screen_of_help_with_an_example_that_parses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    commands = dict(list_commands(get_command(build_parser())))
    assert {" ".join(path) for path in commands} == set(EXAMPLES)
    for path, command in commands.items():
        text = run_successfully(*path, "--help")
        assert len(text.splitlines()) <= 40, path
        assert not re.search("<[a-z]+>|[{}]", text.replace("{input} {output}", "")), path
        example = EXAMPLES[" ".join(path)]
        assert f"Example:\n  {example}\n" in text
        words = shlex.split(example.partition(" >")[0])[1 + len(path) :]
        command.make_context(" ".join(path), words)  # or the parser refuses it


def test_help_lists_the_journey_first_and_completion_last() -> None:
    text = run_successfully("--help")
    panels = ["Prepare", "Publish", "Check", "Judge", "Budget", "Learn", "Options"]
    places = [text.index(f"\n{panel}:\n") for panel in panels]
    assert places == sorted(places)
    assert text.index("--install-completion") > places[-1]
    assert len(text.splitlines()) <= 50


def test_a_wrong_call_names_the_help() -> None:
    done = run_command("publish", "-o", "out")
    assert done.returncode == status.WRONG_USE
    assert done.stderr == "incrowd: Missing argument 'SPEC'. See `incrowd publish --help`.\n"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("publish", "Missing: SPEC, --output FOLDER. See `incrowd publish --help`."),
        (
            "evaluate",
            "Missing: --original TABLE, --released TABLE, --spec SPEC. "
            "See `incrowd evaluate --help`.",
        ),
        (
            "evaluate --spec s.yaml",
            "Missing: --original TABLE, --released TABLE. See `incrowd evaluate --help`.",
        ),
        (
            "publish s.yaml -o out --method synthetic",
            "No such option: --method. The method is in the spec: `release: {method: …}`.",
        ),
        ("version", "No such command 'version'. Use `incrowd --version`."),
        (
            "ledger budget people.ledger",
            "Missing: --epsilon NUMBER, --delta NUMBER. "
            "To print the budget, use `incrowd ledger show FILE`.",
        ),
    ],
)
def test_a_wrong_call_names_what_is_missing_and_where_it_is(call: str, message: str) -> None:
    done = run_command(*call.split())
    assert (done.returncode, done.stderr) == (status.WRONG_USE, f"incrowd: {message}\n")


@pytest.mark.parametrize(
    ("call", "first"),
    [
        ("--k 20 --beta 0.1 --epsilon 1", "δ  2.77e-15\n"),
        ("--k 20 --beta 0.1 --delta 1e-6", "ε  "),
        ("--epsilon 1 --delta 1e-6", " "),
    ],
)
def test_a_plan_begins_with_what_it_was_asked_for(call: str, first: str) -> None:
    assert run_successfully("plan", *call.split()).startswith(first)


def test_every_exit_status_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
    listed = re.findall(r"^\| (\d+) \|", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    statuses = [value for name, value in vars(status).items() if name.isupper()]
    assert [int(item) for item in listed] == sorted(statuses)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, incrowd; print('numpy' in sys.modules); "
        "from incrowd.cli.commands import build_parser; build_parser(); "
        "heavy = ('scipy', 'polars', 'matplotlib', 'jinja2', 'rich.table', 'pydantic', 'sqlite3'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "[]"]


def test_one_command_alone_is_what_it_is_among_all() -> None:
    every = getattr(get_command(build_parser()), "commands", {})
    assert len(every) == 25
    for name, among in every.items():
        alone = getattr(get_command(build_parser(name)), "commands", {})
        assert list(alone) == [name]
        assert alone[name].help == among.help
        assert [param.opts for param in alone[name].params] == [
            param.opts for param in among.params
        ]
    assert "Did you mean 'publish'?" in run_command("publsh").stderr


def test_a_release_loads_nothing_that_draws_papers(tmp_path: Path) -> None:
    """In a process of its own: Matplotlib takes longer to load than a small release to make."""
    (tmp_path / "t.csv").write_text("x\n" + "a\nb\n" * 30)
    (tmp_path / "spec.yaml").write_text(
        "table: t.csv\ncolumns: {x: {role: quasi, hierarchy: {flat: {values: [a, b]}}}}\n"
        "release: {method: safe, epsilon: 1.0, delta: 1.0e-6}"
    )
    code = (
        "import atexit, sys; from incrowd.cli import main; "
        "atexit.register(lambda: print('matplotlib' in sys.modules)); "
        "sys.argv = ['incrowd', 'publish', 'spec.yaml', '-o', 'out']; "
        "main.main()"
    )
    started = [sys.executable, "-c", code]
    done = subprocess.run(started, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert (tmp_path / "out.curator" / "report.html").exists()
    assert done.stdout.splitlines()[-1] == "False"


def test_reproduce_writes_a_whole_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "paper"
    successfully = run_successfully("reproduce", "a", "-o", str(folder))
    assert "index.html" in successfully
    page = (folder / "index.html").read_text(encoding="utf-8")
    for name in re.findall(r'src="([^"]+)"', page):
        assert (folder / name).stat().st_size > 10_000
    assert len(list(folder.iterdir())) == 17
    assert page.count("<td>ratio</td>") == 3
    assert re.findall(r'class="single">\s*<img src="([^"]+)"', page) == ["figure-8.svg"]
    # a second run replaces the first, and the figures are the same to the byte
    before = (folder / "figure-2.svg").read_bytes()
    save_figure = paper_a_figures.save_figure

    def the_second_alone(figure: paper_a_figures.Figure, draft: Path) -> None:
        if figure.name == "figure-2":
            save_figure(figure, draft)
        else:
            for form in ("svg", "png"):
                (draft / f"{figure.name}.{form}").touch()

    monkeypatch.setattr(paper_a_figures, "save_figure", the_second_alone)
    run_successfully("reproduce", "a", "-o", str(folder))
    assert (folder / "figure-2.svg").read_bytes() == before
    assert (folder / "figure-3.svg").read_bytes() == b""
    assert list(tmp_path.iterdir()) == [folder]


def test_a_draft_of_a_workbook_names_its_sheet_and_header(tmp_path: Path) -> None:
    table, spec = tmp_path / "t.xlsx", tmp_path / "spec.yaml"
    with Workbook(table) as book:
        book.add_worksheet("Notes").write(0, 0, "Nothing here.")
        sheet = book.add_worksheet("2020")
        for at, cells in enumerate([["All patients"], ["age", "sex", "zip"], [39, "f", "x"]]):
            sheet.write_row(at, 0, cells)
    successfully = run_successfully("init", str(table), "--sheet", "2020", "-o", str(spec))
    assert "Row 1 looks like a title; row 2 was read as the header." in successfully
    assert 'table: t.xlsx\nsheet: "2020"\nheader: 2\n' in spec.read_text()
    assert "No errors, " in run_successfully("check", str(spec))
    spec.unlink()
    successfully = run_successfully(
        "init", str(table), "--sheet", "2020", "--header", "2", "-o", str(spec)
    )
    assert "looks like a title" not in successfully
    assert "header: 2\n" in spec.read_text()


def test_shells_complete_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """As their scripts ask for it."""

    def asked(how: str, **words: str) -> str:
        for name, value in {"_INCROWD_COMPLETE": how, **words}.items():
            monkeypatch.setenv(name, value)
        return run_successfully()

    typed = {"COMP_WORDS": "incrowd plan --eps", "COMP_CWORD": "2"}
    assert asked("complete_bash", **typed).split() == ["--epsilon"]
    assert '"verify"' in asked("complete_zsh", _TYPER_COMPLETE_ARGS="incrowd ver")
    typed = {"_TYPER_COMPLETE_ARGS": "incrowd ledger s", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert asked("complete_fish", **typed).startswith("show")
    for shell in ("bash", "zsh", "fish"):
        assert f"_INCROWD_COMPLETE=complete_{shell}" in asked(f"source_{shell}")


def test_verifying_loads_no_pandas_and_what_no_event_needs(tmp_path: Path) -> None:
    """In a process of its own: Pandas, where it is installed, is a third of the command."""
    folder = Path(__file__).parents[1] / "formats" / "1" / "k-anonymity-ola"
    code = (
        "import atexit, sys; from incrowd.cli import main; "
        "heavy = ('pandas', 'cryptography', 'incrowd.privacy.accountant'); "
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules])); "
        f"sys.argv = ['incrowd', 'verify', {str(folder)!r}]; main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
