"""PostgreSQL for real: a server of our own on loopback, in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from adbc_driver_postgresql import dbapi
from support.cli import command

from incrowd.codes.values import canonical
from incrowd.engine.source import open_table
from incrowd.engine.table import TableError


def programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def install() -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("no PostgreSQL here, and installing it takes root and apt-get")
    script = (
        "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql"
    )
    done = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"PostgreSQL could not be installed: {done.stderr[-200:]}")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a new, empty database."""
    if programs() is None:
        install()
    binaries = programs()
    assert binaries is not None
    # The server refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    run_as = {"user": user} if os.geteuid() == 0 else {}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "server"
        home.mkdir()
        Path(folder).chmod(0o755)
        if run_as:
            shutil.chown(home, user)
        data = home / "data"
        control = str(binaries / "pg_ctl")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={home}"

        def call(*command: str) -> None:
            subprocess.run(command, check=True, capture_output=True, cwd=home, **run_as)  # type: ignore[call-overload]

        initdb = str(binaries / "initdb")
        call(initdb, "-D", str(data), "-A", "trust", "-U", "tester", "-E", "UTF8")
        call(control, "-D", str(data), "-w", "-o", options, "-l", str(home / "log"), "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            call(control, "-D", str(data), "-m", "immediate", "stop")


def execute(address: str, *statements: str) -> None:
    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def test_a_table_is_read_back(address: str) -> None:
    execute(
        address,
        "CREATE SCHEMA clinic",
        "CREATE TABLE clinic.patients (zip text, born date, weight double precision, visits int)",
        "INSERT INTO clinic.patients VALUES ('01234', '1984-02-29', 70.5, 3)",
        "INSERT INTO clinic.patients VALUES (NULL, NULL, NULL, 1)",
    )
    table = open_table(f"{address}#clinic.patients")
    assert table.columns == ("zip", "born", "weight", "visits")
    assert table.rows() == 2
    assert set(table.values("zip")) == {"01234", None}
    assert {str(day) for day in table.values("born")} == {"1984-02-29", "None"}
    assert set(table.values("weight")) == {70.5, None}


def test_a_drafted_spec_holds_no_password(
    address: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    execute(address, "CREATE TABLE plain (a text)", "INSERT INTO plain VALUES ('x')")
    for number, secret in enumerate(
        (
            address.replace("tester@", "tester:hunter2@"),
            address.replace("tester@", "tester:hun%2Fter%40hunter2@"),
            f"{address}?password=hunter2",
            f"{address}?sslpassword=hunter2&password=hunter2",
        )
    ):
        spec = tmp_path / f"{number}.yaml"
        done = command("init", f"{secret}#plain", "-o", str(spec))
        assert done.returncode == 0, done.stderr
        text = spec.read_text()
        drivers = capfd.readouterr()  # what a library writes past Python
        assert "hunter2" not in text + done.stdout + done.stderr + drivers.out + drivers.err
        assert f"{address}#plain" in text
        assert open_table(f"{secret}#plain").values("a") == ["x"]


def test_messages_of_the_server_hold_no_password(address: str) -> None:
    for secret in (
        f"{address.replace('tester@', 'tester:hunter2@')}hunter2#t",
        f"{address}?password=hunter2#hunter",
        f"{address}?password=hunter2&options=hunter2#t",
    ):
        with pytest.raises(TableError) as error:
            open_table(secret)
        assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_a_name_can_be_nothing_but_a_name(address: str) -> None:
    evil = 'x"; DROP TABLE victims; --'
    doubled = evil.replace('"', '""')
    execute(
        address,
        "CREATE TABLE victims (a int)",
        f'CREATE TABLE "{doubled}" (b int)',
        f'INSERT INTO "{doubled}" VALUES (5)',
    )
    assert open_table(f"{address}#{evil}").values("b") == [5]
    with pytest.raises(TableError, match="Cannot read the table"):
        open_table(f'{address}#nothing"; DROP TABLE victims; --')
    assert open_table(f"{address}#victims").columns == ("a",)


def test_what_is_wrong_is_said_in_one_line(address: str) -> None:
    for source, part in (
        (address, "must name a table after '#'"),
        (f"{address}#missing", 'relation "missing" does not exist'),
        ("postgresql://tester@127.0.0.1:1/postgres#t", "Connection refused"),
    ):
        with pytest.raises(TableError) as error:
            open_table(source)
        assert part in str(error.value)
        assert "\n" not in str(error.value)


def test_values_of_every_common_kind(address: str) -> None:
    """What would come as bytes is read as PostgreSQL writes it."""
    execute(address, "CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE DOMAIN code AS uuid")
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
    execute(address, f"CREATE TABLE kinds ({columns})", f"INSERT INTO kinds VALUES ({texts})")
    execute(address, f"INSERT INTO kinds VALUES ({nulls})")
    table = open_table(f"{address}#kinds")
    for kind, (_, meant) in kinds.items():
        met = {canonical(value) for value in table.values(f"the {kind}")}
        assert met == {meant, None}, kind


def test_lists_and_bytes_are_not_single_values(address: str) -> None:
    execute(address, "CREATE TABLE lists (a int[], b bytea, c int)", "INSERT INTO lists VALUES "
            "('{1,2}', '\\x00', 3)")  # fmt: skip
    table = open_table(f"{address}#lists")
    assert table.values("c") == [3]
    for name in ("a", "b"):
        with pytest.raises(TableError, match=f"The column '{name}' holds"):
            table.values(name)
