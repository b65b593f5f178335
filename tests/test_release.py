"""Publishing and verifying, end to end."""

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
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pycanon import anonymity

import incrowd as ic
from incrowd.certificate import Certificate
from incrowd.errors import IncrowdError
from incrowd.ledger import BudgetError, Ledger
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release import Release, publish
from incrowd.samples import sample
from incrowd.specfile import SpecFile, parse
from incrowd.verifying import verify

COLUMNS = """
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: identifier}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [2, 4, 8, 16]}}}
  race: {role: sensitive, hierarchy: {flat: {values: [White, Hispanic, Black, Asian, Other]}}}
  height: {role: drop}
"""
LEVELS = "levels: {zip: 3, sex: 0, birth_year: 4, race: 0}"
USUAL = f"release: {{method: safe, epsilon: 1, delta: 1.0e-6, {LEVELS}}}"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes what the user has released before."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def voters() -> pl.DataFrame:
    return sample("voters", rows=20_000)._frame.collect()  # type: ignore[attr-defined, no-any-return]


def spec(release: str = USUAL, columns: str = COLUMNS, more: str = "") -> SpecFile:
    return parse(f"{more}\n{columns}\n{release}\n")


def released(voters: pl.DataFrame, folder: Path, release: str = USUAL, **more: Any) -> Release:
    return publish(voters, spec(release), output=folder, **more)


def files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def test_a_release_holds_together(voters: pl.DataFrame, tmp_path: Path) -> None:
    result = released(voters, tmp_path / "out")
    assert verify(tmp_path / "out") == []
    assert files(tmp_path / "out") == [
        "certificate.json", "curator/evaluation.json", "curator/report.html", "data.parquet",
        "scheme/birth_year.csv", "scheme/race.csv", "scheme/sex.csv",
    ]  # fmt: skip
    data = pl.read_parquet(tmp_path / "out" / "data.parquet")
    assert data.columns == ["zip", "sex", "birth_year", "race"]
    assert len(data) == result.certificate.release.rows > 2000
    k = int(result.certificate.parameters["k"])
    assert data.group_by(data.columns).len()["len"].min() >= k  # type: ignore[operator]
    guarantee = result.certificate.guarantee
    assert guarantee.epsilon == 1.0
    beta = result.certificate.parameters["beta"]
    assert guarantee.delta == ic.delta(k=k, beta=beta, epsilon=1.0) <= 1e-6
    assert (tmp_path / "out" / "scheme" / "sex.csv").read_text() == "female;Person\nmale;Person\n"
    assert result.evaluation.rows_original == 20_000
    assert "Private: do not publish" in (tmp_path / "out/curator/report.html").read_text()


def test_an_independent_tool_finds_it_k_anonymous(voters: pl.DataFrame, tmp_path: Path) -> None:
    result = released(voters, tmp_path / "out", USUAL.replace("}}", "}, format: csv}"))
    data = (
        pd.read_csv(tmp_path / "out" / "data.csv", dtype=str).fillna("null").reset_index(drop=True)
    )
    found = anonymity.k_anonymity(data, list(data.columns))
    assert found == result.certificate.release.smallest_class >= result.certificate.parameters["k"]


def test_weighted_releases_say_the_same_in_fewer_rows(voters: pl.DataFrame, tmp_path: Path) -> None:
    for ending in ("parquet", "csv"):
        settings_ = USUAL.replace("}}", f"}}, rows: weighted, format: {ending}}}")
        result = released(voters, tmp_path / ending, settings_)
        assert verify(tmp_path / ending) == []
        path = tmp_path / ending / f"data.{ending}"
        data = pl.read_parquet(path) if ending == "parquet" else pl.read_csv(path)
        assert data.columns[-1] == "count"
        assert data["count"].sum() == result.certificate.release.rows
        assert len(data) == result.certificate.release.classes


def test_nulls_and_strangers_are_published_as_the_docs_say(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["x", None, "elsewhere"] * 3000, "b": [5, None, 99] * 3000})
    file = parse(
        "columns: {a: {role: quasi, hierarchy: {flat: {values: [x]}}}, b: {role: quasi, hierarchy: "
        "{intervals: {from: 0, to: 9}}, other: beyond}}\n"
        "release: {epsilon: 1, delta: 1.0e-6, levels: {a: 0, b: 0}}"
    )
    for ending in ("parquet", "csv"):
        changed = file.changed(("release", "format"), ending)
        publish(table, changed, output=tmp_path / ending)
        assert verify(tmp_path / ending) == []
    data = pl.read_parquet(tmp_path / "parquet" / "data.parquet")
    assert set(data.iter_rows()) == {("x", "5"), (None, None), ("*", "beyond")}


def test_what_is_suppressed_leaves_no_trace_in_any_public_file(tmp_path: Path) -> None:
    """Rare ZIP codes must not linger in a dictionary, in metadata or in the scheme."""
    table = pl.DataFrame({"zip": ["11111"] * 4000 + ["98765", "43210"] * 3})
    file = parse(
        "columns: {zip: {role: quasi, hierarchy: {mask: {length: 5}}}}\n"
        "release: {epsilon: 1, delta: 1.0e-6, levels: {zip: 0}}"
    )
    publish(table, file, output=tmp_path / "out")
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file() and "curator" not in path.parts:
            content = path.read_bytes()
            assert b"98765" not in content
            assert b"43210" not in content
    text = (tmp_path / "out" / "certificate.json").read_text()
    for figure in ("4006", "4000", str(tmp_path)):  # table size, cell size, a path of ours
        assert figure not in text


def test_one_person_many_rows(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": np.repeat(np.arange(300), 20), "x": ["a"] * 6000})
    file = parse(
        "unit: {id: id}\ncolumns: {id: {role: identifier}, x: {role: quasi, hierarchy: flat}}\n"
        "release: {epsilon: 1, delta: 1.0e-6}"
    )
    result = publish(table, file, output=tmp_path / "out")
    assert result.evaluation.rows_original == 300
    assert result.certificate.guarantee.unit == "one person"
    assert "one person is in the original table" in result.certificate.guarantee.statement


def test_a_table_that_is_a_sample_itself(voters: pl.DataFrame, tmp_path: Path) -> None:
    plain = released(voters, tmp_path / "plain", USUAL.replace("delta", "keep: 0.5, delta"))
    sampled = released(
        voters, tmp_path / "out", USUAL.replace("delta", "keep: 0.5, already_sampled: 0.1, delta")
    )
    assert verify(tmp_path / "out") == []
    certificate = sampled.certificate
    assert certificate.parameters["already_sampled"] == 0.1
    assert certificate.parameters["beta"] == 0.5
    assert certificate.parameters["k"] < plain.certificate.parameters["k"]
    assert certificate.parameters["k"] == ic.crowd_size(beta=0.05, epsilon=1, delta=1e-6)
    assert "its custodian asserts" in certificate.guarantee.statement
    free = released(
        voters, tmp_path / "free", USUAL.replace("delta", "already_sampled: 0.1, delta")
    )
    assert free.certificate.parameters["beta"] == 0.99  # all but every row may be drawn
    assert free.certificate.guarantee.delta <= 1e-6


@pytest.mark.parametrize(
    ("settings_", "k", "beta"),
    [
        ("k: 20, beta: 0.1, epsilon: 1", 20, 0.1),
        ("k: 20, beta: 0.1, delta: 1.0e-6", 20, 0.1),
        ("beta: 0.2, epsilon: 1, delta: 1.0e-6", 12, 0.2),
        ("keep: 0.6, epsilon: 1, delta: 1.0e-6", 51, 0.6),
        ("epsilon: 1, delta: 1.0e-6", 14, 0.2537),
    ],
)
def test_k_and_beta_are_given_or_solved(
    voters: pl.DataFrame, tmp_path: Path, settings_: str, k: int, beta: float
) -> None:
    result = released(voters, tmp_path / "out", f"release: {{{settings_}, {LEVELS}}}")
    assert result.certificate.parameters == {"k": k, "beta": beta}
    guarantee = result.certificate.guarantee
    assert ic.delta(k=k, beta=beta, epsilon=guarantee.epsilon) <= guarantee.delta


REFUSALS: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("columns", "zip", "confirm"), ["role"], "nobody has confirmed them: zip: role"),
    (("columns", "race", "hierarchy"), None, "'race' is sensitive and has no hierarchy"),
    (("columns", "height"), None, "The column 'height' of the table has no role"),
    (("columns", "extra"), {"role": "identifier"}, "'extra' of the spec is not in the table"),
    (("release", "levels", "zip"), 6, "Level 6 is asked for column 'zip', but its highest is 5"),
    (("release", "delta"), None, "A plan needs epsilon and delta"),
    (("release", "scheme"), "search", "can be published so far"),
    (("release", "slices"), [["zip", "sex"]], "'slices' cannot be published so far"),
    (("release",), {"k": 2, "beta": 0.5, "delta": 1e-6}, "No epsilon reaches"),
    (("release",), {"k": 9, "beta": 0.5}, "must give epsilon, delta or both"),
    (
        ("release",),
        {"k": 5, "beta": 0.5, "epsilon": 1.0, "delta": 1e-6},
        "more than the 1e-06 of the spec",
    ),
]


@pytest.mark.parametrize(("place", "value", "part"), REFUSALS)
def test_what_cannot_be_published_is_refused_with_the_reason(
    voters: pl.DataFrame, tmp_path: Path, place: tuple[str | int, ...], value: Any, part: str
) -> None:
    with pytest.raises(IncrowdError) as error:
        publish(voters, spec().changed(place, value), output=tmp_path / "out")
    assert part in str(error.value)
    assert not (tmp_path / "out").exists()


def test_the_first_lines_of_python(voters: pl.DataFrame) -> None:
    release = ic.publish(
        voters.select("sex", "race"),
        {
            "columns": {
                "sex": {"role": "quasi", "hierarchy": {"groups": {"Person": ["female", "male"]}}},
                "race": {"role": "quasi", "hierarchy": "flat"},
            },
            "release": {"epsilon": 1, "delta": 1e-6},
        },
    )
    assert len(release.data) == release.certificate.release.rows
    assert verify(release.folder) == []
    assert "Private" in release.report().html
    assert "differential privacy" in release._repr_html_()


def test_an_existing_folder_is_left_alone(voters: pl.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x")
    with pytest.raises(IncrowdError, match="exists and holds 'mine.txt'"):
        released(voters, tmp_path / "out")
    assert files(tmp_path / "out") == ["mine.txt"]


def test_seeded_releases_repeat_and_say_so(voters: pl.DataFrame, tmp_path: Path) -> None:
    one = released(voters, tmp_path / "a", bits=SeededRandomness(3))
    two = released(voters, tmp_path / "b", bits=SeededRandomness(3))
    assert one.certificate == two.certificate
    assert one.certificate.randomness == "seeded: not private"
    assert "NOT private" in one.warnings[0]
    other = released(voters, tmp_path / "c")
    assert other.certificate.randomness == "system"
    assert other.certificate.release.sha256 != one.certificate.release.sha256


def test_nothing_survives_is_said_and_verifies(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [str(i) for i in range(40)]})
    file = parse(
        "columns: {x: {role: quasi, hierarchy: flat}}\nrelease: {epsilon: 1, delta: 1.0e-6}"
    )
    for ending in ("parquet", "csv"):
        result = publish(
            table, file.changed(("release", "format"), ending), output=tmp_path / ending
        )
        assert result.certificate.release.rows == 0
        assert verify(tmp_path / ending) == []
    assert "Nothing survived" in (tmp_path / "csv/curator/report.html").read_text()


def test_the_same_table_without_a_ledger_warns(voters: pl.DataFrame, tmp_path: Path) -> None:
    assert released(voters, tmp_path / "a").warnings == ()
    assert "was released before" in released(voters, tmp_path / "b").warnings[0]
    assert released(voters.head(19_000), tmp_path / "c").warnings == ()


# Verification ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good(voters: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "out"
    settings_ = USUAL.replace("}}", "}, format: csv}")
    publish(voters, spec(settings_), output=folder, key=Ed25519PrivateKey.generate())
    return folder


def tampered(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good, tmp_path / "copy")
    return tmp_path / "copy"


def recertified(folder: Path, **changes: Any) -> None:
    """Write a certificate with changes whose seal fits, as somebody who knows the code would."""
    certificate = Certificate.model_validate_json((folder / "certificate.json").read_bytes())
    changed = certificate.model_copy(update={**changes, "signature": None}).sealed()
    (folder / "certificate.json").write_bytes(changed.canonical())


def test_a_signed_release_verifies(good: Path) -> None:
    assert verify(good) == []


def test_a_changed_byte_is_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    data = bytearray((folder / "data.csv").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "data.csv").write_bytes(data)
    assert "The file 'data.csv' was changed: its hash does not fit." in verify(folder)


def test_a_lowered_epsilon_is_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    text = (folder / "certificate.json").read_text()
    (folder / "certificate.json").write_text(text.replace('"epsilon":1.0', '"epsilon":0.5'))
    assert any("its seal does not fit" in problem for problem in verify(folder))
    certificate = Certificate.model_validate_json((good / "certificate.json").read_bytes())
    lower = certificate.guarantee.model_copy(update={"epsilon": 0.5})
    recertified(folder, guarantee=lower)
    assert any("The guarantee is not true" in problem for problem in verify(folder))


def test_a_dropped_row_that_leaves_k_minus_one_is_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    certificate = Certificate.model_validate_json((good / "certificate.json").read_bytes())
    data = pl.read_csv(folder / "data.csv", infer_schema=False)
    k = int(certificate.parameters["k"])
    sizes = data.group_by(data.columns).len().sort("len")
    drop = int(sizes["len"][0]) - k + 1
    smallest = sizes.head(1).drop("len")
    kept = data.join(smallest, on=data.columns, how="anti", nulls_equal=True)
    left = data.join(smallest, on=data.columns, how="semi", nulls_equal=True).slice(drop)
    pl.concat([kept, left]).write_csv(folder / "data.csv")
    import hashlib

    digest = hashlib.sha256((folder / "data.csv").read_bytes()).hexdigest()
    recertified(
        folder,
        release=certificate.release.model_copy(
            update={"sha256": digest, "rows": len(data) - drop, "smallest_class": k - 1}
        ),
    )
    assert verify(folder) == [
        f"1 class(es) are smaller than k = {k}; the smallest has {k - 1} row(s)."
    ]


def test_a_value_of_another_level_is_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    certificate = Certificate.model_validate_json((good / "certificate.json").read_bytes())
    scheme = dict(certificate.scheme)
    scheme["zip"] = scheme["zip"].model_copy(update={"level": 2})
    recertified(folder, scheme=scheme)
    assert any("is no value of level 2" in problem for problem in verify(folder))


def test_strangers_and_missing_files_are_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    (folder / "raw.csv").write_text("secret")
    (folder / "scheme" / "sex.csv").unlink()
    found = verify(folder)
    assert "The file 'raw.csv' is not covered by the certificate." in found
    assert "The file 'scheme/sex.csv' is missing." in found


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_fuzzed_certificate_never_crashes_and_never_passes(
    good: Path, tmp_path: Path, data: st.DataObject
) -> None:
    folder = tmp_path / "fuzz"
    if not folder.exists():
        shutil.copytree(good, folder)
    original = (good / "certificate.json").read_bytes()
    fuzzed = data.draw(
        st.one_of(mutated_bytes(original), mutated_json(original), st.binary(max_size=60))
    )
    if fuzzed == original:
        return
    (folder / "certificate.json").write_bytes(fuzzed)
    assert verify(folder) != []


def mutated_bytes(original: bytes) -> st.SearchStrategy[bytes]:
    place = st.integers(0, len(original) - 1)
    return st.builds(
        lambda at, new, cut: original[:at] + new + original[at + cut :],
        place,
        st.binary(max_size=4),
        st.integers(0, 4),
    )


def mutated_json(original: bytes) -> st.SearchStrategy[bytes]:
    """One value somewhere in the certificate replaced by anything that JSON can say."""
    anything = st.recursive(
        st.none()
        | st.booleans()
        | st.floats(allow_nan=False)
        | st.integers()
        | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=5,
    )

    def replaced(choice: tuple[int, Any]) -> bytes:
        tree = json.loads(original)
        places: list[tuple[Any, Any]] = []

        def walk(node: Any) -> None:
            for key in node if isinstance(node, dict) else range(len(node)):
                places.append((node, key))
                if isinstance(node[key], dict | list):
                    walk(node[key])

        walk(tree)
        node, key = places[choice[0] % len(places)]
        node[key] = choice[1]
        return (
            json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
                "utf-8", "surrogatepass"
            )
            + b"\n"
        )

    return st.tuples(st.integers(0, 200), anything).map(replaced)


# Budgets and crashes -----------------------------------------------------------------------


def ledger(path: Path, epsilon: float = 1.5) -> Ledger:
    book = Ledger(path)
    book.set_budget(epsilon=epsilon, delta=1e-6)
    return book


def test_a_ledger_lets_through_what_the_budget_allows(voters: pl.DataFrame, tmp_path: Path) -> None:
    book = ledger(tmp_path / "table.ledger", epsilon=1.05)
    released(voters, tmp_path / "one", ledger=book)
    assert book.spent() == pytest.approx(1.0, abs=0.01)
    with pytest.raises(BudgetError, match="1.05 is allowed. .* is spent by 1 release.s."):
        released(voters, tmp_path / "two", ledger=book)
    assert not (tmp_path / "two").exists()
    assert len(book.spends()) == 1
    small = "release: {k: 20, beta: 0.05, delta: 1.0e-6}"
    released(voters, tmp_path / "small", small, ledger=book)
    together = [ic.SafeRelease(14, 0.2537), ic.SafeRelease(20, 0.05)]
    assert [spend.event for spend in book.spends()] == together
    assert book.spent() == ic.Accountant(together).epsilon(delta=1e-6) <= 1.05


def test_a_changed_table_is_noticed(voters: pl.DataFrame, tmp_path: Path) -> None:
    book = ledger(tmp_path / "table.ledger", epsilon=9)
    assert released(voters, tmp_path / "one", ledger=book).warnings == ()
    assert released(voters, tmp_path / "two", ledger=book).warnings == ()
    changed = released(voters.head(19_999), tmp_path / "three", ledger=book)
    assert "The table has changed" in changed.warnings[0]


def test_what_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="There is no ledger"):
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


def command(on_disk: Path, output: Path, *more: str) -> list[str]:
    spec_file = str(on_disk / "spec.yaml")
    return [sys.executable, "-m", "incrowd", "publish", spec_file, "-o", str(output), *more]


@pytest.mark.parametrize("step", ["book", "count", "draw", "write", "report", "appear"])
def test_a_kill_at_any_step_leaves_nothing_half_done(
    on_disk: Path, tmp_path: Path, step: str
) -> None:
    book = ledger(tmp_path / "table.ledger", epsilon=3)
    ledger_option = ("--ledger", str(book.path))
    environment = {**os.environ, "INCROWD_PAUSE_AT": step}
    output = tmp_path / "out"
    with subprocess.Popen(
        command(on_disk, output, *ledger_option), stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"paused at {step}\n"
        process.send_signal(signal.SIGKILL)
    assert not output.exists()
    spent = len(book.spends())
    assert spent == (0 if step == "book" else 1)  # booked before anything could be seen
    done = subprocess.run(command(on_disk, output, *ledger_option), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert verify(output) == []
    assert len(book.spends()) == spent + 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "state") == [
        "out", "table.ledger",
    ]  # fmt: skip


def test_a_full_disk_leaves_nothing(on_disk: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    done = subprocess.run(
        command(on_disk, tmp_path / "out"), capture_output=True, text=True, preexec_fn=limit
    )
    assert done.returncode == 2
    assert "Cannot write" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == []


def test_no_permission_to_write(on_disk: Path) -> None:
    done = subprocess.run(command(on_disk, Path("/proc/out")), capture_output=True, text=True)
    assert done.returncode == 2
    assert "Cannot write to '/proc/out'" in done.stderr


RACER = """
import sys
from pathlib import Path
from incrowd.ledger import BudgetError
from incrowd.release import publish
from incrowd.specfile import load
file, folder, me = load(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
for line in sys.stdin:
    round_ = line.strip()
    try:
        publish(None, file, output=folder / round_ / me, ledger=folder / round_ / "ledger")
        print("published", flush=True)
    except BudgetError:
        print("refused", flush=True)
"""


def test_two_publishers_race_for_a_budget_that_fits_one_a_hundred_times(tmp_path: Path) -> None:
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
        )
        for name in ("ann", "bob")
    ]
    try:
        for round_ in range(100):
            folder = tmp_path / str(round_)
            folder.mkdir()
            ledger(folder / "ledger", epsilon=0.2)  # one release costs 0.183, two 0.221
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"{round_}\n")
                racer.stdin.flush()
            answers = sorted(racer.stdout.readline().strip() for racer in racers if racer.stdout)
            assert answers == ["published", "refused"]
            assert len([path for path in folder.iterdir() if path.is_dir()]) == 1
            assert len(Ledger(folder / "ledger").spends()) == 1
            shutil.rmtree(folder)
    finally:
        for racer in racers:
            racer.communicate()


def test_the_walk_at_the_command_line(on_disk: Path, tmp_path: Path) -> None:
    def run(*arguments: str, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "incrowd", *arguments], capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    book, key = tmp_path / "table.ledger", tmp_path / "key.pem"
    assert "epsilon = 1.05" in run(
        "ledger", "budget", str(book), "--epsilon", "1.05", "--delta", "1e-6"
    )
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True)
    spec_file, out = str(on_disk / "spec.yaml"), tmp_path / "out"
    said = run("publish", spec_file, "-o", str(out), "--ledger", str(book), "--sign", str(key))
    assert "differential privacy" in said
    assert "Signed by" in run("verify", str(out))
    assert json.loads(run("verify", str(out), "--json")) == {"ok": True, "problems": []}
    refused = run("publish", spec_file, "-o", str(tmp_path / "b"), "--ledger", str(book), status=1)
    assert "does not allow it" in refused
    shown = run("ledger", "show", str(book))
    assert "by 1 release(s)" in shown
    assert "does not fit" in shown
    figures = json.loads(run("ledger", "show", str(book), "--k", "50", "--beta", "0.01", "--json"))
    assert figures["with_one_more"] < 1.05
    assert math.isclose(figures["left"], 1.05 - figures["spent"])
    seeded = run("publish", spec_file, "-o", str(tmp_path / "s"), "--seed", "1")
    assert "NOT private" in seeded
    (out / "data.parquet").write_bytes(b"x")
    assert "WRONG  The file 'data.parquet' was changed" in run("verify", str(out), status=1)
    demo = run("demo", "-o", str(tmp_path / "demo"))
    assert "Verified it from its folder alone" in demo
