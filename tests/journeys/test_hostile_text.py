"""Text from tables and specs, as it is shown: no markup, no terminal codes, nothing broken."""

from __future__ import annotations

import datetime as dt
import json
import os
import pty
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.cli import commands
from incrowd.cli import main as cli
from incrowd.cli import terminal as showing
from incrowd.cli.terminal import escape_controls
from incrowd.engine.count import count_tuples
from incrowd.engine.source import local_engine
from incrowd.privacy.plan import Plan
from incrowd.publication import publish
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import load_spec, parse_spec
from incrowd.spec.problem import SpecError
from incrowd.spec.release import SafeSpec

EVIL = '<img src=x onerror="alert(1)">&--><script>'
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202etxt\u2066"
SHOWN = r"\x1b[2J\x1b]0;owned\x07\x9b31m\u202etxt\u2066"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_markup_in_names_and_values_is_text(tmp_path: Path) -> None:
    columns = {
        EVIL: {"role": "sensitive", "diversity": {"distinct": 2}},
        "x": {"role": "quasi", "hierarchy": {"flat": {"values": [EVIL, "b"]}}},
    }
    table = pl.DataFrame({EVIL: ["p", "q"] * 10, "x": [EVIL] * 10 + ["b"] * 10})
    release = {"method": "k-anonymity", "k": 2}
    done = publish(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert EVIL in done.certificate.guarantee.text
    html = done._repr_html_()
    assert "<img" not in html
    assert "&lt;img src=x" in html
    page = done.report()._repr_html_()
    assert "<img" not in page
    assert "<script" not in page
    evil = Plan(2, 0.5, 1.0, 0.1, definition=EVIL)  # type: ignore[arg-type]
    assert "<img" not in evil._repr_html_()
    assert "&lt;img" in evil._repr_html_()


def test_control_characters_are_made_visible() -> None:
    assert escape_controls(ESCAPES) == SHOWN
    assert escape_controls("a\tb\nc é 中 \U0001f600 \u200d") == "a\tb\nc é 中 \U0001f600 \u200d"
    assert escape_controls("\r\x00\x7f\ud800") == r"\x0d\x00\x7f\ud800"


@given(st.text(alphabet=st.characters()))
def test_nothing_that_moves_a_terminal_is_left(text: str) -> None:
    escaped_text = escape_controls(text)
    assert not CONTROL.search(escaped_text)
    escaped_text.encode()


def on_terminal(*arguments: str, folder: Path) -> str:
    """What a command writes to a terminal, codes and all."""
    host, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "incrowd", *arguments],
        stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder, close_fds=True,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "500"},
    )  # fmt: skip
    os.close(terminal)
    result = b""
    while True:
        try:
            part = os.read(host, 1 << 16)
        except OSError:
            break
        if not part:
            break
        result += part
    os.close(host)
    process.wait()
    return result.decode()


@pytest.fixture
def evil_folder(tmp_path: Path) -> Path:
    """A table and a spec whose names and values are terminal codes."""
    columns = {ESCAPES: ["a", "b", ESCAPES] * 40, "plain": ["[red]x[/red]", "y", ESCAPES] * 40}
    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "h.csv").write_text(f'"{ESCAPES}";*\na;*\n', encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(
        json.dumps(
            {
                "table": "t.parquet",
                "columns": {
                    ESCAPES: {"role": "quasi", "hierarchy": {"flat": {"values": ["a", ESCAPES]}}},
                    "plain": {"role": "drop"},
                },
                "release": {"method": "k-anonymity", "k": 2},
            }
        )
    )
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", "t.parquet", "-o", "new.yaml"],
        ["check", "spec.yaml"],
        ["publish", "spec.yaml", "-o", "out"],
        ["publish", "spec.yaml", "-o", "out", "--sign", ESCAPES],
        ["hierarchy", "preview", "spec.yaml", ESCAPES, "--counts"],
        ["hierarchy", "preview", "spec.yaml", "none"],
        ["hierarchy", "convert", "spec.yaml", ESCAPES],
        ["hierarchy", "convert", "h.csv"],
        ["check", f"{ESCAPES}.yaml"],
        ["init", f"{ESCAPES}.csv", "-o", "new.yaml"],
        [ESCAPES],
        ["plan", "--epsilon", ESCAPES],
    ],
)
def test_a_terminal_gets_no_codes_from_names_or_values(
    evil_folder: Path, arguments: list[str]
) -> None:
    text = on_terminal(*arguments, folder=evil_folder)
    ours = r"\x1b\[[0-9;]*m|\x1b\[\?25[hl]|\x1b\[1A|\x1b\[2K|\r"  # colors, the progress bar
    assert not CONTROL.search(re.sub(ours, "", text))
    assert re.search(r"\\(x1b|u001b)\[2J", text)


def test_what_is_piped_is_exact(evil_folder: Path) -> None:
    command = [sys.executable, "-m", "incrowd", "hierarchy", "convert", "spec.yaml", ESCAPES]
    done = subprocess.run(command, cwd=evil_folder, capture_output=True, check=True)
    assert done.stdout.decode() == f'a;*\n"{ESCAPES}";*\n'


def test_a_fault_of_ours_is_told_without_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_only: str | None) -> None:
        raise RuntimeError(ESCAPES)

    monkeypatch.setattr(commands, "build_parser", fail)
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert done.value.code == 3
    assert SHOWN in capsys.readouterr().err


def test_json_holds_no_codes(capsys: pytest.CaptureFixture[str]) -> None:
    showing.print_json({"x": ESCAPES + "\x7f"})
    out = capsys.readouterr().out
    assert not CONTROL.search(out)
    assert json.loads(out) == {"x": ESCAPES + "\x7f"}


HIGH = [
    "\U0001f600",
    "\U00020bb7",
    "a\U0001f468\u200d\U0001f469",
    "\\ud83d\\ude00",
    "a\x7f\x85\u2028b",
]


@pytest.mark.parametrize("text", HIGH)
def test_a_dictionary_may_hold_any_character(text: str, tmp_path: Path) -> None:
    hierarchy = {"groups": {text: {f"{text}1": [text, "x"]}, "y": {"z": ["w"]}}}
    spec = {
        "columns": {text: {"role": "quasi", "hierarchy": hierarchy, "other": text}},
        "release": {"method": "k-anonymity", "k": 2, "levels": {text: 0}},
    }
    file = load_spec(spec)
    assert list(file.spec.columns) == [text]
    assert file.spec.columns[text].other == text
    assert parse_spec(file.text()).spec == file.spec
    counts = count_tuples(
        local_engine().from_columns({text: [text, "x", "w"]}), ColumnHierarchies(file.spec.columns)
    )
    assert counts.hierarchies[0].labels[0][0] == text
    done = publish(pl.DataFrame({text: [text] * 5}), spec, output=tmp_path / "out")
    assert "could not be drawn" not in done.report().html
    # JSON is YAML, and a file of it writes such a character as two halves
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    assert load_spec(tmp_path / "spec.json").spec == file.spec


def test_half_a_character_is_refused() -> None:
    with pytest.raises(SpecError, match="half a character"):
        load_spec({"columns": {"a\ud83d": {"role": "drop"}}})


def test_a_dictionary_may_hold_what_python_programs_hold() -> None:
    file = load_spec(
        MappingProxyType(
            {
                "table": Path("x.csv"),
                "columns": {
                    1: {"role": "drop"},
                    np.int64(2): {"role": "drop"},
                    dt.date(2020, 1, 2): {"role": "drop"},
                    False: {"role": "drop"},
                    "d": {
                        "role": "quasi",
                        "hierarchy": {
                            "dates": {
                                "from": dt.date(2020, 1, 1),
                                "to": pd.Timestamp("2020-12-31"),
                                "levels": ("day", "year"),
                            }
                        },
                    },
                    "n": {
                        "role": "quasi",
                        "weight": np.float32(2),
                        "hierarchy": {
                            "intervals": {"from": Decimal("0.10"), "to": np.int64(9), "step": 0.1}
                        },
                    },
                    "v": {
                        "role": "quasi",
                        "hierarchy": MappingProxyType(
                            {"flat": {"values": (np.int64(1), 2.5, dt.date(2020, 2, 3), np.True_)}}
                        ),
                    },
                    "o": {
                        "role": "quasi",
                        "hierarchy": {"order": {"values": np.array(list("ab"))}},
                    },
                },
                "release": {"k": np.int64(5), "beta": Decimal("0.25"), "slices": np.int64(2)},
            }
        )
    )
    spec = file.spec
    assert spec.table == "x.csv"
    assert list(spec.columns)[:4] == ["1", "2", "2020-01-02", "false"]
    hierarchies = {name: column.hierarchy for name, column in spec.columns.items()}
    dates, numbers = hierarchies["d"].dates, hierarchies["n"].intervals  # type: ignore[union-attr]
    assert dates is not None
    assert (dates.low, dates.high) == (dt.date(2020, 1, 1), dt.date(2020, 12, 31))
    assert numbers is not None
    assert (numbers.low, numbers.high, numbers.step) == (Decimal("0.1"), 9, Decimal("0.1"))
    flat = hierarchies["v"].flat  # type: ignore[union-attr]
    assert flat is not None
    assert flat.values == ("1", "2.5", "2020-02-03", "true")
    assert isinstance(spec.release, SafeSpec)
    assert (spec.release.k, spec.release.beta) == (5, 0.25)
    assert spec.columns["n"].weight == 2
