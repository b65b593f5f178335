"""Budgets, races and crashes: nothing is spent twice, nothing is half done."""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from support.cli import run_command, wait_for_step
from support.releases import COLUMNS, USUAL, publish_voters

import incrowd as ic
from incrowd.errors import IncrowdError
from incrowd.privacy.events import Event
from incrowd.publication import publish
from incrowd.release.folder import fill_folder
from incrowd.release.ledger import BudgetError, Ledger
from incrowd.release.verify import verify


def ledger(path: Path, epsilon: float = 1.5, delta: float = 1e-6) -> Ledger:
    book = Ledger(path)
    book.set_budget(epsilon=epsilon, delta=delta)
    return book


def test_a_ledger_lets_through_what_the_budget_allows(voters: pl.DataFrame, tmp_path: Path) -> None:
    """What a release is certified with is what it takes; the sum is what the budget allows."""
    book = ledger(tmp_path / "table.ledger", epsilon=1.2, delta=2e-6)
    usual = USUAL.replace("}}", "}, draw: sample}")
    item = publish_voters(voters, tmp_path / "one", usual, ledger=book)
    guarantee = item.certificate.guarantee
    assert vars(book.total()) == {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
    with pytest.raises(BudgetError, match=r"total would be .* = \(2, 2e-06\).*is \(1.2, 2e-06\)"):
        publish_voters(voters, tmp_path / "two", usual, ledger=book)
    assert not (tmp_path / "two").exists()
    assert len(book.spends()) == 1
    small = "release: {k: 20, beta: 0.05, delta: 1.0e-6}"
    other = publish_voters(voters, tmp_path / "small", small, ledger=book)
    together = [ic.SafeRelease(14, 0.2537), ic.SafeRelease(20, 0.05)]
    assert [spend.event for spend in book.spends()] == together
    certified = [release.certificate.guarantee.epsilon or 0.0 for release in (item, other)]
    assert book.total().epsilon == pytest.approx(sum(certified), rel=1e-12)
    assert book.total().epsilon > ic.Accountant(together).epsilon(delta=2e-6)
    with pytest.raises(BudgetError, match="nothing was released"):
        publish_voters(voters, tmp_path / "three", small, ledger=book)


def test_releases_of_one_sample_are_amplified_together_not_each(tmp_path: Path) -> None:
    """All of them see the same sample, so the cheaper account of fresh samples is not true."""
    book = ledger(tmp_path / "table.ledger", epsilon=0.01)
    event = ic.SampledEvent(ic.SafeRelease(20, 0.5), 0.01)
    true = ic.Accountant(
        ic.SampledEvent(ic.Composition([ic.SafeRelease(20, 0.5)] * 4), 0.01)
    ).epsilon(delta=1e-6)
    assert true > 0.04
    assert book.total([book.compute_charge([event])] * 4).epsilon >= true
    with pytest.raises(BudgetError):
        book.book([event] * 4)
    mixed: list[Event] = [ic.SafeRelease(20, 0.1), ic.SampledEvent(ic.SafeRelease(20, 0.1), 0.5)]
    plain = ic.Accountant([ic.SafeRelease(20, 0.1)] * 2).epsilon(delta=1e-6)
    assert book.total([book.compute_charge([event]) for event in mixed]).epsilon >= plain


def test_a_folder_that_appears_meanwhile_is_not_destroyed(tmp_path: Path) -> None:
    filling = fill_folder(tmp_path / "out[1]")
    draft = filling.__enter__()
    (draft / "x").write_text("new")
    (tmp_path / "out[1]").mkdir()
    (tmp_path / "out[1]" / "precious").write_text("old")
    (tmp_path / ".out1.draft-99999999-z").mkdir()  # somebody else's
    with pytest.raises(IncrowdError, match="Cannot write"):
        filling.__exit__(None, None, None)
    assert (tmp_path / "out[1]" / "precious").read_text() == "old"
    assert (tmp_path / ".out1.draft-99999999-z").exists()
    assert not draft.exists()


def test_a_changed_table_is_noticed(voters: pl.DataFrame, tmp_path: Path) -> None:
    book = ledger(tmp_path / "table.ledger", epsilon=9, delta=1e-5)
    assert publish_voters(voters, tmp_path / "one", ledger=book, by=publish).findings == ()
    assert publish_voters(voters, tmp_path / "two", ledger=book, by=publish).findings == ()
    changed = publish_voters(voters.head(19_999), tmp_path / "three", ledger=book, by=publish)
    assert "The table has changed" in str(changed.findings[0])


def test_what_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="not found"):
        Ledger(tmp_path / "none").budget()
    (tmp_path / "odd").write_text("x" * 5000)
    with pytest.raises(IncrowdError, match="the ledger '.*odd': file is not a database"):
        Ledger(tmp_path / "odd").budget()
    (tmp_path / "empty").touch()
    with pytest.raises(IncrowdError, match="as a ledger"):
        Ledger(tmp_path / "empty").book([ic.Selection(1.0)])


@pytest.fixture(scope="module")
def on_disk(voters: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec and its table as files, for processes of their own."""
    folder = tmp_path_factory.mktemp("disk")
    voters.write_parquet(folder / "voters.parquet")
    (folder / "spec.yaml").write_text(f"table: voters.parquet\n{COLUMNS}\n{USUAL}\n")
    return folder


def publishing(on_disk: Path, output: Path, *more: str) -> list[str]:
    return ["publish", str(on_disk / "spec.yaml"), "-o", str(output), *more]


def as_process(on_disk: Path, output: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "incrowd", *publishing(on_disk, output, *more)]


@pytest.mark.parametrize("step", ["count", "book", "draw", "write", "report", "appear"])
def test_a_kill_at_any_step_leaves_nothing_half_done(
    on_disk: Path, tmp_path: Path, step: str
) -> None:
    book = ledger(tmp_path / "table.ledger", epsilon=3, delta=1e-5)
    ledger_option = ("--ledger", str(book.path))
    environment = {**os.environ, "INCROWD_PAUSE_AT": step}
    output = tmp_path / "out"
    with subprocess.Popen(
        as_process(on_disk, output, *ledger_option),
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        wait_for_step(process, step)
        process.send_signal(signal.SIGKILL)
    assert not output.exists()
    spent = len(book.spends())
    assert spent == (0 if step in ("count", "book") else 1)  # booked before anything is drawn
    done = run_command(*publishing(on_disk, output, *ledger_option))
    assert done.returncode == 0, done.stderr
    assert verify(output) == []
    assert len(book.spends()) == spent + 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "state") == [
        "out", "out.curator", "table.ledger",
    ]  # fmt: skip


def test_a_full_disk_leaves_nothing(on_disk: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    done = subprocess.run(
        as_process(on_disk, tmp_path / "out"), capture_output=True, text=True, preexec_fn=limit
    )
    assert done.returncode == 2
    assert "Cannot write" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == []


def test_no_permission_to_write(on_disk: Path) -> None:
    done = run_command(*publishing(on_disk, Path("/proc/out")))
    assert done.returncode == 2
    assert "Cannot write to '/proc/out'" in done.stderr


RACER = """
import sys
from pathlib import Path
from incrowd.release.ledger import BudgetError
from incrowd.publication import publish
from incrowd.spec.file import read_spec_file
file, folder, me = read_spec_file(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
for line in sys.stdin:
    round_ = line.strip()
    try:
        publish(None, file, output=folder / round_ / me, ledger=folder / round_ / "ledger")
        print("published", flush=True)
    except BudgetError:
        print("refused", flush=True)
"""


def test_two_publishers_race_for_a_budget_that_fits_one_many_times(tmp_path: Path) -> None:
    """Without the lock of the ledger, 8 of 25 rounds let both through: twenty do not miss it."""
    pl.DataFrame({"x": ["a", "b"] * 500}).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "spec.yaml").write_text(
        "table: t.parquet\ncolumns: {x: {role: quasi, hierarchy: flat}}\n"
        "release: {k: 20, beta: 0.1, delta: 1.0e-6}"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path / "spec.yaml"), str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for name in ("ann", "bob")
    ]
    try:
        for round_ in range(20):
            folder = tmp_path / str(round_)
            folder.mkdir()
            ledger(folder / "ledger", epsilon=0.2)  # one release costs 0.183, two 0.221
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"{round_}\n")
                racer.stdin.flush()
            answers = sorted(racer.stdout.readline().strip() for racer in racers if racer.stdout)
            assert answers == ["published", "refused"]
            assert len([path for path in folder.iterdir() if path.is_dir()]) == 2  # and .curator
            assert len(Ledger(folder / "ledger").spends()) == 1
            shutil.rmtree(folder)
    finally:
        for racer in racers:
            racer.communicate()


def test_the_walk_at_the_command_line(on_disk: Path, tmp_path: Path) -> None:
    def run(*arguments: str, status: int = 0) -> str:
        done = run_command(*arguments)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    book, key = tmp_path / "table.ledger", tmp_path / "key.pem"
    assert "(ε, δ) = (1.05, 1e-6)" in run(
        "ledger", "budget", str(book), "--epsilon", "1.05", "--delta", "1e-6"
    )
    key.write_bytes(
        Ed25519PrivateKey.generate().private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
    )
    spec_file, out = str(on_disk / "spec.yaml"), tmp_path / "out"
    text = run("publish", spec_file, "-o", str(out), "--ledger", str(book), "--sign", str(key))
    assert "differential privacy" in text
    assert "Signature  by " in run("verify", str(out))
    checked = json.loads(run("verify", str(out), "--json"))
    assert (checked["ok"], checked["findings"], checked["randomness"]) == (True, [], "system")
    assert len(checked["signed_by"]) == 64
    refused = run("publish", spec_file, "-o", str(tmp_path / "b"), "--ledger", str(book), status=1)
    assert "nothing was released" in refused
    output = run("ledger", "show", str(book))
    assert "(ε, δ) = (1, 1e-06) by 1 entry, 1 release made" in output
    assert "δ is used up" in output
    figures = json.loads(run("ledger", "show", str(book), "--k", "50", "--beta", "0.01", "--json"))
    assert figures["after_next_release"] is None  # no delta is left
    assert math.isclose(figures["remaining"]["epsilon"], 1.05 - figures["booked"]["epsilon"])
    seeded = run("publish", spec_file, "-o", str(tmp_path / "s"), "--seed", "1")
    assert "NOT private" in seeded
    (out / "data.parquet").write_bytes(b"x")
    assert "error  The file 'data.parquet' was changed" in run("verify", str(out), status=1)
