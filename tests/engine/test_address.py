"""A password in a PostgreSQL address is shown nowhere, however it is written."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from support.cli import run_command

from incrowd.engine.address import hide_secrets, parse_address
from incrowd.engine.source import open_table
from incrowd.engine.table import TableError

SECRET = [  # an address with a password in it, and how it is shown
    ("postgresql://u:hunter2@h:5432/db#s.t", "postgresql://u@h:5432/db#s.t"),
    ("postgres://u:hunter2@[::1]:5432,h2/db#t", "postgres://u@[::1]:5432,h2/db#t"),
    ("postgresql://u:hun%40ter2@h/db#t", "postgresql://u@h/db#t"),
    ("postgresql://u:hun:ter2@h/db#t", "postgresql://u@h/db#t"),
    ("postgresql://u@h/db?password=hunter2&sslmode=require#t", "postgresql://u@h/db?sslmode=require#t"),
    ("postgresql://h/db?user=u@x&password=hun@ter2#t", "postgresql://h/db?user=u@x#t"),
    ("postgresql:///db?passfile=/x&sslpassword=hunter2#t", "postgresql:///db?passfile=/x#t"),
    ("postgresql://u@h/db?p%61ssword=hunter2#t", "postgresql://u@h/db#t"),
    ('postgresql://u:hunter2@h/db#"a@b#c"', 'postgresql://u@h/db#"a@b#c"'),
    ("postgresql://u:hunter2@h/db", "postgresql://u@h/db"),
]  # fmt: skip
DOUBTFUL = [
    "postgresql://u:hun/ter2@h/db#t",
    "postgresql://u:1/hunter2@h/db#t",
    "postgresql://u:hun@ter2@h/db#t",
    "postgresql://u:hun?ter2@h/db#t",
    "postgresql://u:hun?a=ter2@h/db#t",
    "postgresql://u:hun#ter2@h/db#t",
    "postgresql://u@h/db?password=hun#ter2#t",
    "postgresql://u:hunter2/db#t",
]
PLAIN = [
    "postgresql://u@h/db#t",
    "postgresql:///db#t",
    "postgresql://h:5432/db#we@ird",
    "postgresql://u@h:5432/db?sslmode=require#a#b",
    "/data/a@b:c.csv",
    "t.csv",
]


@pytest.mark.parametrize(("address", "expected"), SECRET)
def test_an_address_is_shown_without_its_password(address: str, expected: str) -> None:
    assert hide_secrets(address) == expected
    assert not parse_address(address).doubtful


@pytest.mark.parametrize("address", PLAIN)
def test_what_holds_no_password_is_shown_as_it_is(address: str) -> None:
    assert hide_secrets(address) == address


def test_the_driver_gets_the_address_as_it_was_given() -> None:
    for address, _ in SECRET:
        assert parse_address(address).uri == address.partition("#")[0]
        assert parse_address(address).table == address.partition("#")[2]


@pytest.mark.parametrize("address", DOUBTFUL)
def test_an_address_that_can_be_misread_is_refused_without_its_parts(address: str) -> None:
    with pytest.raises(TableError, match=": the end of the password is ambiguous") as error:
        open_table(address)
    assert "hun" not in str(error.value)
    assert "ter2" not in str(error.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:hunter2@127.0.0.1:1/db#t",
        "postgresql://u:hunter2%zz@127.0.0.1:1/db#t",
        "postgresql://u@127.0.0.1:1/db?password=hunter2&hunter2#t",
        "postgresql://u@127.0.0.1:1/db?password=hunter2%zz#t",
        "postgresql://u:hunter2@127.0.0.1:1/db?hunter2=1#t",
        "postgresql://u@127.0.0.1:1/hunter2?password=hunter2#t",
        "mysql://u:hunter2@h/db",
        "POSTGRESQL://u:hunter2@h/db#t",
        "jdbc:postgresql://h/db?password=hunter2",
        "host=h password=hunter2 dbname=db",
        "host=h password='hunter2 hunter2'",
    ],
)
def test_no_message_repeats_a_password(
    address: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TableError) as error:
        open_table(address)
    assert "hunter2" not in "".join(traceback.format_exception(error.value))
    assert "\n" not in str(error.value)
    process = run_command("init", address, "-o", str(tmp_path / "spec.yaml"))
    assert process.returncode == 2
    drivers = capfd.readouterr()  # what a library writes past Python
    assert "hunter2" not in process.stdout + process.stderr + drivers.out + drivers.err
