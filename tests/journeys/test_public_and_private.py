"""What is handed out, what stays with the curator, and what an ending says of the spend."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import run_command, wait_for_step
from support.findings import list_verify_messages
from support.pinned_randomness import PinnedRandomness
from support.releases import forge_certificate, get_statement, list_files

import incrowd as ic
from incrowd.cli.results import private_facts
from incrowd.engine import source
from incrowd.engine.table import TableError
from incrowd.errors import IncrowdError
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import Release, publish
from incrowd.release import formulas
from incrowd.release.keys import read_public_key
from incrowd.release.ledger import Ledger

SPEC: dict[str, Any] = {
    "columns": {"x": {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b"]}}}},
    "release": {"k": 20, "beta": 0.1, "delta": 1e-6, "levels": {"x": 0}},
}
TABLE = pl.DataFrame({"x": ["a", "b"] * 300})
PRIVATE_FILES = ["attacks.json", "evaluation.json", "origin.json", "report.html"]


def made(folder: Path, table: pl.DataFrame = TABLE, **more: Any) -> Release:
    release = {**SPEC["release"], **more.pop("release", {})}
    release = {name: value for name, value in release.items() if value is not None}
    spec = {**SPEC, **more.pop("spec", {}), "release": release}
    return publish(table, spec, output=folder, **more)


# The curator's folder ------------------------------------------------------------------------


def test_what_is_private_lies_beside_what_is_handed_out(tmp_path: Path) -> None:
    release = made(tmp_path / "out")
    assert release.curator == tmp_path / "out.curator"
    assert release.curator.stat().st_mode & 0o077 == 0
    assert list_files(release.curator) == PRIVATE_FILES
    assert list_files(tmp_path / "out") == [
        "README.md", "certificate.html", "certificate.json", "data.parquet", "scheme/x.csv",
    ]  # fmt: skip
    elsewhere = made(tmp_path / "two", curator=tmp_path / "deep" / "private")
    assert list_files(elsewhere.curator) == PRIVATE_FILES
    assert not (tmp_path / "two.curator").exists()
    assert "Private" in elsewhere.report().html


@pytest.mark.parametrize("inside", ["out/curator", "out", "."])
def test_what_is_private_cannot_lie_in_what_is_handed_out(tmp_path: Path, inside: str) -> None:
    with pytest.raises(IncrowdError, match="it is private and must not lie inside"):
        made(tmp_path / "out", curator=tmp_path / inside)
    assert not (tmp_path / "out").exists()


def test_links_do_not_lead_what_is_private_into_what_is_handed_out(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=9, delta=1e-6)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "parent").symlink_to(tmp_path)
    for output, curator in (
        ("link", "c"), ("out", "link"), ("out", "x/../out/c"), ("out", "parent/out/c"),
        ("out", "parent/out"), ("out/..", "c"),
    ):  # fmt: skip
        with pytest.raises(IncrowdError):
            made(tmp_path / output, curator=tmp_path / curator, ledger=book)
    assert book.spends() == []
    assert {path.name for path in tmp_path.iterdir()} <= {"ledger", "link", "parent", "state"}


def test_what_cannot_be_recognized_is_refused_before_the_spend(tmp_path: Path) -> None:
    """A column of objects has no bytes to be told by; it is left out, not failed on later."""
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=9, delta=1e-6)
    odd = TABLE.with_columns(pl.Series("o", [object()] * len(TABLE), dtype=pl.Object))
    columns = {**SPEC["columns"], "o": {"role": "drop"}}
    release = made(tmp_path / "out", odd, spec={"columns": columns}, ledger=book)
    assert release.is_booked
    assert len(book.spends()) == 1


def test_a_curators_folder_that_exists_is_refused_before_the_spend(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=1, delta=1e-6)
    (tmp_path / "out.curator").mkdir()
    (tmp_path / "out.curator" / "report.html").write_text("mine")
    with pytest.raises(IncrowdError, match="exists and holds 'report.html'"):
        made(tmp_path / "out", ledger=book)
    assert book.spends() == []
    assert (tmp_path / "out.curator" / "report.html").read_text() == "mine"


def test_the_curators_folder_appears_first_and_goes_with_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    rename = Path.rename

    def watched(self: Path, target: Path) -> Path:
        seen.append(Path(target).name)
        if Path(target).name == "two":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)
    made(tmp_path / "one")
    assert seen == ["one.curator", "one"]
    with pytest.raises(IncrowdError, match="No space left"):
        made(tmp_path / "two")
    assert not (tmp_path / "two").exists()
    assert not (tmp_path / "two.curator").exists()


def test_a_folder_with_the_private_part_in_it_does_not_verify(tmp_path: Path) -> None:
    made(tmp_path / "out")
    (tmp_path / "out.curator").rename(tmp_path / "out" / "curator")
    assert list_verify_messages(tmp_path / "out") == [
        "The folder holds 'curator', which is private and covered by no guarantee."
    ]


@pytest.mark.parametrize("name", ["curator.txt", "curator-raw.csv", "curatorial/rows.csv", "x"])
def test_what_the_certificate_does_not_cover_does_not_belong(tmp_path: Path, name: str) -> None:
    made(tmp_path / "out")
    path = tmp_path / "out" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("ann,34,x")
    assert any(
        "is not covered by the certificate" in problem
        for problem in list_verify_messages(tmp_path / "out")
    )
    path.unlink()
    path.symlink_to("/etc/hosts")
    assert list_verify_messages(tmp_path / "out") != []


# Seeds and signatures ------------------------------------------------------------------------


def test_a_seeded_release_says_that_it_is_not_private_and_does_not_verify(tmp_path: Path) -> None:
    release = made(tmp_path / "out", bits=SeededRandomness(3))
    assert release.certificate.guarantee.statement[0].key == "not_private"
    assert list_verify_messages(tmp_path / "out") == [
        "The random numbers came from a seed: this release is NOT private."
    ]
    (tmp_path / "spec.json").write_text(json.dumps({"table": "t.parquet", **SPEC}))
    TABLE.write_parquet(tmp_path / "t.parquet")
    command = run_command(
        "publish", str(tmp_path / "spec.json"), "-o", str(tmp_path / "b"), "--seed", "1"
    )
    assert "satisfies" not in command.stdout
    assert "NOT private" in command.stdout
    assert run_command("verify", str(tmp_path / "b")).returncode == 1
    # whoever takes the word out of the certificate must change the statement as well
    certificate = release.certificate.model_copy(update={"randomness": "system"}).with_seal()
    forge_certificate(tmp_path / "out", certificate)
    assert list_verify_messages(tmp_path / "out") == [
        "The statement differs from what the events guarantee."
    ]


def test_who_must_have_signed(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    mine, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    release = made(tmp_path / "out", key=mine)
    pem = tmp_path / "public.pem"
    pem.write_bytes(mine.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    name = mine.public_key().public_bytes_raw().hex()
    assert read_public_key(str(pem)) == read_public_key(name.upper()) == name
    for key in (name, str(pem)):
        assert list_verify_messages(tmp_path / "out", key=key) == []
    forge_certificate(tmp_path / "out", release.certificate.with_signature(other))
    assert ", not by " in list_verify_messages(tmp_path / "out", key=name)[0]
    forge_certificate(tmp_path / "out", release.certificate.with_seal())
    assert list_verify_messages(tmp_path / "out") == []  # that it was signed cannot be seen
    assert "signed by nobody" in list_verify_messages(tmp_path / "out", key=name)[0]
    assert run_command("verify", str(tmp_path / "out"), "--key", str(pem)).returncode == 1
    assert run_command("verify", str(tmp_path / "out"), "--key", "nonsense").returncode == 2


# People without an id ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pl.String, pl.Int64, pl.Float64])
def test_rows_without_an_id_are_refused_or_left_out(tmp_path: Path, kind: Any) -> None:
    people = TABLE.with_columns(id=pl.int_range(pl.len()).cast(kind))
    nobody = people.head(50).with_columns(id=pl.lit(None, dtype=kind))
    if kind == pl.String:
        nobody = nobody.with_columns(id=pl.Series(["", "  ", None, "", None] * 10))
    if kind == pl.Float64:
        nobody = nobody.with_columns(id=pl.lit(float("nan")))
    table = pl.concat([people, nobody])
    columns = {**SPEC["columns"], "id": {"role": "identifier"}}
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=1, delta=2e-6)
    with pytest.raises(IncrowdError, match=r"50 rows have no id.*without_id: drop}"):
        made(tmp_path / "a", table, spec={"columns": columns, "unit": {"id": "id"}}, ledger=book)
    assert book.spends() == []
    unit = {"id": "id", "without_id": "drop"}
    for name, rows in (("b", table), ("c", people)):  # whether such rows were met is not told
        release = made(
            tmp_path / name, rows, spec={"columns": columns, "unit": unit}, ledger=book,
            bits=PinnedRandomness(1),
        )  # fmt: skip
        assert release.evaluation.rows_original == 600
        assert release.certificate.guarantee.without_id == "dropped"
        assert "without_id" in get_statement(release.certificate)
        assert list_verify_messages(tmp_path / name) == []
    data = [(tmp_path / name / "data.parquet").read_bytes() for name in "bc"]
    assert len(data[0]) > 100


# Empty releases ------------------------------------------------------------------------------


def test_an_empty_release_is_said_to_be_one(tmp_path: Path) -> None:
    pl.DataFrame({"x": [str(i) for i in range(40)]}).write_parquet(tmp_path / "t.parquet")
    column = {"role": "quasi", "hierarchy": {"flat": {"values": [str(i) for i in range(40)]}}}
    spec = {"table": "t.parquet", "columns": {"x": column}, "release": {
        "epsilon": 1, "delta": 1e-6, "levels": {"x": 0}}}  # fmt: skip
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=3, delta=1e-5)
    publishing = ["publish", str(tmp_path / "spec.json"), "--ledger", str(book.path), "-o"]
    done = run_command(*publishing, str(tmp_path / "out"))
    assert done.returncode == 4  # a refusal, which spends nothing, is 1
    expected = done.stdout.partition("Published")[0]
    assert expected.startswith("Forecast: groups need about 19 people")
    assert expected.count("\n") == 1
    assert done.stdout.removeprefix(expected).startswith(
        f"Published an empty release to {tmp_path / 'out'}/ and booked it in the ledger"
    )
    assert "each of at least" not in done.stdout
    assert list_verify_messages(tmp_path / "out") == []
    assert len(book.spends()) == 1
    report = (tmp_path / "out.curator" / "report.html").read_text()
    assert "Nothing was published" in report
    assert json.loads((tmp_path / "out.curator" / "evaluation.json").read_text())[
        "detail_by_column"
    ] == {"x": 0.0}
    second = run_command(*publishing, str(tmp_path / "two"), "--json")
    summary = json.loads(second.stdout)
    assert (summary["booked"], summary["empty"], second.returncode) == (True, True, 4)
    book.set_budget(epsilon=2, delta=1e-5)
    refused = run_command(*publishing, str(tmp_path / "refused"), "--json")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert not (tmp_path / "refused").exists()
    assert len(book.spends()) == 2
    alone = run_command("publish", str(tmp_path / "spec.json"), "-o", str(tmp_path / "three"))
    assert alone.returncode == 4
    text = alone.stdout.removeprefix(expected)
    assert text.startswith(f"Published an empty release to {tmp_path / 'three'}/: every group")


@pytest.mark.parametrize(("draw", "rows"), [("counts", 1000), ("sample", 4000)])
def test_advice_holds(tmp_path: Path, draw: str, rows: int) -> None:
    """A coarser level is named only where it would bring rows above the crowd."""

    def advised(values: list[str], levels: int) -> str:
        column = {"role": "quasi", "hierarchy": {"csv": str(tmp_path / "h.csv")}}
        (tmp_path / "h.csv").write_text("\n".join(f"v{i};g{i // levels};*" for i in range(40)))
        table = pl.DataFrame({"x": values, "y": [str(i % 3) for i in range(len(values))]})
        flat = {"role": "quasi", "hierarchy": {"flat": {"values": ["0", "1", "2"]}}}
        release = publish(
            table, {"columns": {"x": column, "y": flat}, "release": {
                "epsilon": 1, "delta": 1e-6, "draw": draw, "levels": {"x": 0, "y": 0}}},
            output=tmp_path / f"out{len(values)}",
        )  # fmt: skip
        return " ".join(text for _, text in private_facts(release))

    helps = advised([f"v{i % 40}" for i in range(rows)], levels=20)
    assert "Use a coarser level of 'x' or 'y'" in helps
    hopeless = advised([f"v{i % 40}" for i in range(80)], levels=20)
    assert "Use coarser levels of several columns" in hopeless


def test_an_empty_release_by_chance_is_called_so(tmp_path: Path) -> None:
    """Sixty alike are more than the crowd of 55; that none is drawn is chance, not their number."""

    class Unlucky(PinnedRandomness):
        def draw_words(self, count: int) -> Any:
            return super().draw_words(count) | np.uint64(1 << 63)  # no coin of a rate below a half

    table = pl.DataFrame({"x": ["a"] * 60})
    usual = {"k": 14, "beta": 0.2537, "epsilon": 1.0, "delta": None}
    release = made(tmp_path / "out", table, release=usual, bits=Unlucky(1))
    text = " ".join(text for _, text in private_facts(release))
    assert release.is_empty
    assert "empty by chance: 100 % of rows" in text
    assert "below the crowd size" not in text
    assert "by chance" in release.report().html


# Endings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status"), [(TableError("No room."), 2), (KeyboardInterrupt(), 130)]
)
def test_what_fails_after_the_release_says_that_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    """Rows that cannot be saved as a table of a catalog were released all the same."""

    def fails(_self: Release, _name: str) -> tuple[str, ...]:
        raise error

    class Free:
        def refuse_name(self, name: str) -> None:
            assert name == "shown"

    monkeypatch.setattr(Release, "save_table", fails)
    monkeypatch.setattr(source, "require_catalog", lambda _engine: Free())
    (tmp_path / "spec.json").write_text(json.dumps({"table": "t.parquet", **SPEC}))
    TABLE.write_parquet(tmp_path / "t.parquet")
    out = tmp_path / "out"
    done = run_command(
        "publish", str(tmp_path / "spec.json"), "-o", str(out), "--spark-table", "shown"
    )
    assert done.returncode == status
    assert f"The release exists and counts: {out}" in done.stderr
    assert list_verify_messages(out) == []


@pytest.mark.parametrize("step", ["count", "draw", "write"])
def test_an_interrupt_says_whether_the_spend_is_booked(tmp_path: Path, step: str) -> None:
    (tmp_path / "spec.json").write_text(json.dumps({"table": "t.parquet", **SPEC}))
    TABLE.write_parquet(tmp_path / "t.parquet")
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=1, delta=1e-6)
    command_line = [
        sys.executable, "-m", "incrowd", "publish", str(tmp_path / "spec.json"),
        "-o", str(tmp_path / "out"), "--ledger", str(book.path),
    ]  # fmt: skip
    with subprocess.Popen(
        command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "INCROWD_PAUSE_AT": step},
    ) as process:  # fmt: skip
        wait_for_step(process, step)
        process.send_signal(signal.SIGINT)
        _, text = process.communicate()
    assert process.returncode == 130
    booked = step != "count"
    assert text.startswith("incrowd: Interrupted.")
    assert ("The spend is booked and counts, and nothing was released." in text) == booked
    assert len(book.spends()) == booked
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.curator").exists()


# Formulas ------------------------------------------------------------------------------------


@given(st.text(alphabet="=+-@'\t\rab1.5\uff1d", max_size=6))
def test_an_escaped_text_is_read_back_and_runs_nothing(text: str) -> None:
    written = formulas.escape_formula(text)
    assert formulas.unescape_formula(written) == text
    if written[:1] in ("=", "+", "@", "\t", "\r", "\uff1d"):
        assert written[0] == "+"
        float(written)  # a number
    if text.startswith("-"):
        assert written == text


def test_cells_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    values = ["=cmd|' /C calc'!A0", "@sum", "+1+1", "-5 to -1", "-label", "'=x", "5", "+7"]
    table = pl.DataFrame({"=1+1": values * 300})
    spec: dict[str, Any] = {
        "columns": {"=1+1": {"role": "quasi", "hierarchy": {"flat": {"values": values}}}},
        "release": {"k": 20, "beta": 0.5, "epsilon": 1, "levels": {"=1+1": 0}, "format": "csv"},
    }
    plain = publish(table, spec, output=tmp_path / "plain")  # the default writes what is there
    assert "=cmd" in (tmp_path / "plain" / "data.csv").read_text()
    assert plain.certificate.table.release.formulas is None
    for rows in ("expanded", "counted"):
        request = {**spec["release"], "formulas": "escape", "rows": rows}
        release = publish(table, {**spec, "release": request}, output=tmp_path / rows)
        assert list_verify_messages(tmp_path / rows) == []
        assert release.certificate.table.release.formulas == "escaped"
        data = pl.read_csv(tmp_path / rows / "data.csv", infer_schema=False)
        assert data.columns[0] == "'=1+1"
        labels = set(data["'=1+1"])
        assert labels == {
            "'=cmd|' /C calc'!A0", "'@sum", "'+1+1", "-5 to -1", "-label", "''=x", "5", "7",
        }  # fmt: skip
        assert release.data.columns[0] == "=1+1"
        result = ic.evaluate(table, tmp_path / rows / "data.csv", spec)  # reads them back, too
        assert result.loss == pytest.approx(1 - result.rows_released / 2400)
        text = (tmp_path / rows / "data.csv").read_text()
        (tmp_path / rows / "data.csv").write_text(text.replace("'@sum", "@sum"))
        assert list_verify_messages(tmp_path / rows) != []
    with pytest.raises(IncrowdError, match="`formulas` is for `format: csv`"):
        publish(table, {**spec, "release": {**request, "format": "parquet"}}, output=tmp_path / "p")
