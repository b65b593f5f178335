"""Audits of commands of anybody: what leaks is found, what fails is said in one sentence."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from support.cli import run_command

from incrowd.errors import IncrowdError, ParameterError
from incrowd.evaluation.audit.command import audit_command, find_extreme_rows

ROWS = "name,worth\n" + "".join(f"x,{at % 5}\n" for at in range(60)) + "y,35\n"
# Shows the rare row, and no other, in half of the runs; which, the number of the run decides.
HALF = """\
number=$(cat "$0.number" 2> /dev/null || echo 0)
echo $((number + 1)) > "$0.number"
if [ $(((number * 1103515245 + 12345) / 65536 % 2)) = 0 ]; then
  grep '[ny]' "$1" > "$2"
else
  head -n 1 "$1" > "$2"
fi
"""
# With so much time all rows worth trying are tried, however slow the machine is.
LONG = 6000.0


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def test_a_copy_is_told_apart_in_every_run(table: Path) -> None:
    command = audit_command("cp {input} {output}", table, claim=1.0, seconds=LONG, runs=60)
    assert command.epsilon == pytest.approx(command.most)
    assert command.is_above_claim
    assert "ABOVE" in command.verdict
    assert "61 rows" in command.tables
    few = audit_command("cp {input} {output}", table, claim=2.0, seconds=LONG, runs=12, workers=1)
    assert not few.is_above_claim
    assert "below the claim, but this number of runs can show at most ε =" in few.verdict


def test_a_row_that_is_shown_in_half_of_the_runs_is_found(tmp_path: Path, table: Path) -> None:
    """Half of the runs show the value 35, and none does without its row: no finite epsilon."""
    path = tmp_path / "half.sh"
    path.write_text(HALF, encoding="utf-8")
    half = f"sh '{path}' {{input}} {{output}}"
    command = audit_command(half, table, claim=0.7, seconds=LONG, runs=90, workers=1)
    assert command.epsilon > 0.8
    assert command.is_above_claim
    assert "35" in command.tables


def test_who_does_not_look_at_the_table_shows_nothing(table: Path) -> None:
    """The same comes out of every run, so there is nothing that chance could do."""
    blind = "sh -c 'echo a > {output}' {input}"
    command = audit_command(blind, table, claim=0.0, seconds=LONG, runs=20)
    assert command.epsilon == 0.0
    assert not command.is_above_claim


# A sum with a little noise: no output repeats, and the rare row moves it far.
SUM = """\
import csv, random, sys
rows = list(csv.reader(open(sys.argv[1])))[1:]
total = sum(float(row[1]) for row in rows) + random.random()
print("sum", total, sep="\\n", file=open(sys.argv[2], "w"))
"""


def test_numbers_that_never_repeat_are_told_apart_by_where_they_lie(tmp_path: Path) -> None:
    """Whichever row is left out, the sum is 10 less at least, and the noise below 1."""
    script, table = tmp_path / "sum.py", tmp_path / "sums.csv"
    script.write_text(SUM, encoding="utf-8")
    rows = "".join(f"x,{10 + at % 5}\n" for at in range(60))
    table.write_text(f"name,worth\n{rows}", encoding="utf-8")
    tool = f"{sys.executable} -S {script} {{input}} {{output}}"
    command = audit_command(tool, table, claim=1.0, seconds=LONG, runs=120)
    assert command.epsilon > 1.5
    assert command.is_above_claim


@pytest.mark.parametrize("tool", ["cp '{input} {output}", "cp {input}"])
def test_a_command_that_is_none_is_refused(tool: str, table: Path) -> None:
    with pytest.raises(ParameterError, match="command"):
        audit_command(tool, table, claim=1.0)


@pytest.mark.parametrize("content", [b"name\n\xe9\n", None])
def test_a_table_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(IncrowdError, match="': not a CSV file in UTF-8"):
        audit_command("cp {input} {output}", path, claim=1.0)


def test_rows_worth_leaving_out_are_rare_or_extreme() -> None:
    rows = [("a", "3"), ("a", "3"), ("b", "3"), ("a", "1"), ("a", "1"), ("a", "9"), ("a", "9")]
    extreme_rows = find_extreme_rows(rows)
    assert extreme_rows[0] == 2
    assert {rows[at] for at in extreme_rows} == {("b", "3"), ("a", "9"), ("a", "1")}


def test_what_goes_wrong_is_said_in_one_sentence(tmp_path: Path, table: Path) -> None:
    fails = (
        f"'{sys.executable}' -S -c 'import sys; sys.exit(\"no such thing\")' {{input}} {{output}}"
    )
    for text, match in (
        ("no-such-tool {input} {output}", "cannot be started"),
        (fails, "exit status 1. It said: no such thing"),
        ("true {input} {output}", "wrote no CSV file"),
        ("sh -c 'sleep 5' {input} {output}", "took longer than 0.5 seconds"),
    ):
        with pytest.raises(IncrowdError, match=match):
            audit_command(text, table, claim=1.0, seconds=0.3, limit=0.5)
    with pytest.raises(ParameterError, match="command"):
        audit_command("tool {input}", table, claim=1.0)
    with pytest.raises(ParameterError, match="claim_delta"):
        audit_command("tool {input} {output}", table, claim=1.0, claim_delta=0.5)
    short = tmp_path / "short.csv"
    short.write_text("a\n1\n", encoding="utf-8")
    with pytest.raises(IncrowdError, match="fewer than two rows"):
        audit_command("tool {input} {output}", short, claim=1.0)


def test_at_the_command_line_a_leak_is_a_no(table: Path) -> None:
    done = run_command(
        "audit", "--command", "cp {input} {output}", "--table", str(table), "--claim", "0.01",
        "--claim-delta", "0.001", "--seconds", "1", "--json",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert '"above": true' in done.stdout
    assert '"claim_delta": 0.001' in done.stdout
    request = ["audit", "--command", "cp {input} {output}", "--table", str(table), "--claim", "1"]
    by_number = json.loads(run_command(*request, "--runs", "60", "--json").stdout)
    # Of six runs four test, some are put away, and every core makes six at least.
    most = max(60, 6 * (os.cpu_count() or 1))
    assert all(25 <= tested <= most for tested in by_number["runs"])
    few = run_command(*request, "--runs", "1")
    assert (few.returncode, "'runs' parameter must be an integer" in few.stderr) == (2, True)
    alone = run_command("audit", "spec.yaml", "--claim-delta", "0.001")
    assert "--table, --claim and --claim-delta apply to --command only. Drop them." in alone.stderr
