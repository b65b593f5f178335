"""PostgreSQL for real."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from support.cli import run_command
from support.postgres import execute_sql

from incrowd.codes.values import canonicalize_value
from incrowd.engine.source import open_table
from incrowd.engine.table import TableError


def test_a_table_is_read_back(postgres: str) -> None:
    execute_sql(
        postgres,
        "CREATE SCHEMA clinic",
        "CREATE TABLE clinic.patients (zip text, born date, weight double precision, visits int)",
        "INSERT INTO clinic.patients VALUES ('01234', '1984-02-29', 70.5, 3)",
        "INSERT INTO clinic.patients VALUES (NULL, NULL, NULL, 1)",
    )
    table = open_table(f"{postgres}#clinic.patients")
    assert table.columns == ("zip", "born", "weight", "visits")
    assert table.rows() == 2
    assert set(table.values("zip")) == {"01234", None}
    assert {str(day) for day in table.values("born")} == {"1984-02-29", "None"}
    assert set(table.values("weight")) == {70.5, None}


def test_a_drafted_spec_holds_no_password(
    postgres: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    execute_sql(postgres, "CREATE TABLE plain (a text)", "INSERT INTO plain VALUES ('x')")
    for number, secret in enumerate(
        (
            postgres.replace("tester@", "tester:hunter2@"),
            postgres.replace("tester@", "tester:hun%2Fter%40hunter2@"),
            f"{postgres}?password=hunter2",
            f"{postgres}?sslpassword=hunter2&password=hunter2",
        )
    ):
        spec = tmp_path / f"{number}.yaml"
        process = run_command("init", f"{secret}#plain", "-o", str(spec))
        assert process.returncode == 0, process.stderr
        text = spec.read_text()
        drivers = capfd.readouterr()  # what a library writes past Python
        assert "hunter2" not in text + process.stdout + process.stderr + drivers.out + drivers.err
        assert f"{postgres}#plain" in text
        assert open_table(f"{secret}#plain").values("a") == ["x"]


def test_messages_of_the_server_hold_no_password(postgres: str) -> None:
    for secret in (
        f"{postgres.replace('tester@', 'tester:hunter2@')}hunter2#t",
        f"{postgres}?password=hunter2#hunter",
        f"{postgres}?password=hunter2&options=hunter2#t",
    ):
        with pytest.raises(TableError) as error:
            open_table(secret)
        assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_a_name_can_be_nothing_but_a_name(postgres: str) -> None:
    evil = 'x"; DROP TABLE victims; --'
    doubled = evil.replace('"', '""')
    execute_sql(
        postgres,
        "CREATE TABLE victims (a int)",
        f'CREATE TABLE "{doubled}" (b int)',
        f'INSERT INTO "{doubled}" VALUES (5)',
    )
    assert open_table(f"{postgres}#{evil}").values("b") == [5]
    with pytest.raises(TableError, match="Cannot read the table"):
        open_table(f'{postgres}#nothing"; DROP TABLE victims; --')
    assert open_table(f"{postgres}#victims").columns == ("a",)


def test_what_is_wrong_is_said_in_one_line(postgres: str) -> None:
    for source, part in (
        (
            postgres,
            "PostgreSQL address: the table is missing. Add it after '#', as in postgresql://user@host/database#schema.table.",
        ),
        (f"{postgres}#missing", 'relation "missing" does not exist'),
        ("postgresql://tester@127.0.0.1:1/postgres#t", "Connection refused"),
    ):
        with pytest.raises(TableError) as error:
            open_table(source)
        assert part in str(error.value)
        assert "\n" not in str(error.value)


def test_values_of_every_common_kind(postgres: str) -> None:
    """What would come as bytes is read as PostgreSQL writes it."""
    execute_sql(postgres, "CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE DOMAIN code AS uuid")
    kinds = {
        "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "code": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "inet": ("10.0.0.1", "10.0.0.1"),
        "macaddr": ("08:00:2b:01:02:03", "08:00:2b:01:02:03"),
        "mood": ("sad", "sad"),
        "varchar(9)": ("x", "x"),
        "numeric(10,2)": ("12.50", "12.5"),
        "numeric": ("1234567890123456789.5", "1234567890123456789.5"),
        "money": ("1.50", "1.5"),
        "real": ("0.7", "0.7"),
        "smallint": ("39", "39"),
        "boolean": ("true", "true"),
        "date": ("1984-02-29", "1984-02-29"),
        "timestamp": ("1984-02-29 03:04:05", "1984-02-29T03:04:05"),
        "timestamptz": ("1984-02-29 03:04:05+02", "1984-02-29T01:04:05+00:00"),
        "interval": ("1 year 2 days", "1 year 2 days"),
        "jsonb": ('{"a": 1}', '{"a": 1}'),
        "int4range": ("[1,5)", "[1,5)"),
    }
    columns = ", ".join(f'"the {kind}" {kind}' for kind in kinds)
    texts = ", ".join(f"'{written}'" for written, _ in kinds.values())
    nulls = ", ".join("NULL" for _ in kinds)
    execute_sql(postgres, f"CREATE TABLE kinds ({columns})", f"INSERT INTO kinds VALUES ({texts})")
    execute_sql(postgres, f"INSERT INTO kinds VALUES ({nulls})")
    table = open_table(f"{postgres}#kinds")
    for kind, (_, meant) in kinds.items():
        met = {canonicalize_value(value) for value in table.values(f"the {kind}")}
        assert met == {meant, None}, kind


def test_lists_and_bytes_are_not_single_values(postgres: str) -> None:
    execute_sql(
        postgres,
        "CREATE TABLE lists (a int[], b bytea, c int)",
        "INSERT INTO lists VALUES ('{1,2}', '\\x00', 3)",
    )
    table = open_table(f"{postgres}#lists")
    assert table.values("c") == [3]
    for name in ("a", "b"):
        with pytest.raises(TableError, match="it holds"):
            table.values(name)
