"""PostgreSQL for tests: a server of our own on loopback, in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from adbc_driver_postgresql import dbapi


def find_programs() -> Path | None:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return programs[-1].parent if programs else Path(on_path).parent if on_path else None


def install_postgres() -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("no PostgreSQL here, and installing it takes root and apt-get")
    script = (
        "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql"
    )
    process = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True)
    if process.returncode:
        pytest.skip(f"PostgreSQL could not be installed: {process.stderr[-200:]}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a database that tests share; each has tables of other names."""
    if find_programs() is None:
        install_postgres()
    binaries = find_programs()
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
        rules = data / "pg_hba.conf"  # the first that fits holds: this user must give a password
        rules.write_text(
            "host all asked 127.0.0.1/32 scram-sha-256\n" + rules.read_text(encoding="utf-8"),
            encoding="utf-8",
        )
        call(control, "-D", str(data), "-w", "-o", options, "-l", str(home / "log"), "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            call(control, "-D", str(data), "-m", "immediate", "stop")


def execute_sql(address: str, *statements: str) -> None:
    """Carry out statements, and keep what they did."""
    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
