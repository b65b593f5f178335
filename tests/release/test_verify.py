"""Verification: what was changed is named, and nothing false passes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.cli import run_command
from support.findings import list_verify_messages
from support.releases import (
    USUAL,
    make_voter_spec,
    recertify,
    sort_rows,
)
from support.unjudged import publish_unjudged

from incrowd.release.certificate import SEEDED, Certificate
from incrowd.release.verify import read_certificate

pytestmark = pytest.mark.usefixtures("settled_once")  # hundreds of forgeries of two releases


@pytest.fixture(scope="module", params=["counts", "sample"])
def good(
    voters: pl.DataFrame,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Path:
    folder = tmp_path_factory.mktemp("good") / "out"
    settings_ = USUAL.replace("}}", f"}}, format: csv, draw: {request.param}}}")
    publish_unjudged(
        voters, make_voter_spec(settings_), output=folder, key=Ed25519PrivateKey.generate()
    )
    return folder


def tampered(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_signed_release_verifies(good: Path) -> None:
    assert list_verify_messages(good) == []


@pytest.mark.parametrize("mark", [{"randomness": SEEDED}, {"rehearsal": True}])
def test_what_a_seed_or_a_dry_run_made_is_read_as_well(
    good: Path, tmp_path: Path, mark: dict[str, Any]
) -> None:
    folder = tampered(good, tmp_path)
    marked = read_certificate(folder).model_copy(update=mark).with_statement()
    changes = {**mark, "guarantee": marked.guarantee}
    recertify(folder, **changes)
    (message,) = list_verify_messages(folder)
    text = (folder / "data.csv").read_text(encoding="utf-8").replace(",female,", ",woman,")
    (folder / "data.csv").write_text(text, encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()
    release = marked.table.release.model_copy(update={"sha256": digest})
    recertify(folder, **changes, release=release)
    messages = list_verify_messages(folder)
    assert messages[0] == message
    assert any("woman" in problem for problem in messages[1:])


def test_the_command_ends_with_1_where_anything_does_not_hold(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    (folder / "data.csv").write_bytes(b"zip\n")
    for more in ((), ("--json",)):
        assert run_command("verify", str(good), *more).returncode == 0
        assert run_command("verify", str(folder), *more).returncode == 1
    assert json.loads(run_command("verify", str(folder), "--json").stdout)["ok"] is False


def test_a_changed_byte_is_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    data = bytearray((folder / "data.csv").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "data.csv").write_bytes(data)
    assert "The file 'data.csv' was changed: its hash does not match." in list_verify_messages(
        folder
    )


def test_a_lowered_epsilon_is_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    text = (folder / "certificate.json").read_text()
    (folder / "certificate.json").write_text(text.replace('"epsilon":1.0', '"epsilon":0.5'))
    assert any("its seal does not match" in problem for problem in list_verify_messages(folder))
    certificate = Certificate.model_validate_json((good / "certificate.json").read_bytes())
    lower = certificate.guarantee.model_copy(update={"epsilon": 0.5})
    recertify(folder, guarantee=lower)
    assert any("The guarantee is not true" in problem for problem in list_verify_messages(folder))


def test_a_smallest_class_that_is_not_so_is_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    release = certificate_of(good).table.release
    changed = release.model_copy(update={"smallest_class": release.smallest_class + 1})
    recertify(folder, release=changed)
    assert list_verify_messages(folder)


def test_a_dropped_row_that_leaves_one_too_few_is_named(good: Path, tmp_path: Path) -> None:
    """Of a sample k - 1 alike are too few; of counts r + k - 1."""
    folder = tampered(good, tmp_path)
    certificate = Certificate.model_validate_json((good / "certificate.json").read_bytes())
    data = pl.read_csv(folder / "data.csv", infer_schema=False)
    parameters = certificate.parameters
    least, what = int(parameters["k"]), "k"
    if "r" in parameters:
        least, what = least + int(parameters["r"]), "r + k"
    sizes = data.group_by(data.columns).len().sort("len")
    drop = int(sizes["len"][0]) - least + 1
    smallest = sizes.head(1).drop("len")
    others = data.join(smallest, on=data.columns, how="anti", nulls_equal=True)
    left = data.join(smallest, on=data.columns, how="semi", nulls_equal=True).slice(drop)
    sort_rows(pl.concat([others, left])).write_csv(folder / "data.csv")
    digest = hashlib.sha256((folder / "data.csv").read_bytes()).hexdigest()
    recertify(
        folder,
        release=certificate.table.release.model_copy(
            update={"sha256": digest, "rows": len(data) - drop, "smallest_class": least - 1}
        ),
    )
    assert list_verify_messages(folder) == [
        f"1 group is smaller than {what} = {least}; the smallest has {least - 1} rows."
    ]


def test_a_value_of_another_level_is_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    certificate = Certificate.model_validate_json((good / "certificate.json").read_bytes())
    scheme = dict(certificate.table.scheme)
    scheme["zip"] = scheme["zip"].model_copy(update={"level": 2})
    recertify(folder, scheme=scheme)
    assert any("is not a label of level 2" in problem for problem in list_verify_messages(folder))


def test_strangers_and_missing_files_are_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    (folder / "raw.csv").write_text("secret")
    (folder / "scheme" / "sex.csv").unlink()
    verify_messages = list_verify_messages(folder)
    assert "'raw.csv' is not covered by the certificate." in verify_messages
    assert "The file 'scheme/sex.csv' is missing." in verify_messages


def test_links_pipes_and_folders_are_named(good: Path, tmp_path: Path) -> None:
    folder = tampered(good, tmp_path)
    (folder / "more").symlink_to("/etc")
    (folder / "alice has x").mkdir()
    os.mkfifo(folder / "pipe")
    assert [p for p in list_verify_messages(folder) if "not covered" in p] == [
        f"'{name}' is not covered by the certificate." for name in ("alice has x", "more", "pipe")
    ]
    for name in ("alice has x", "more", "pipe"):
        shutil.rmtree(folder / name) if name[0] == "a" else (folder / name).unlink()
    assert list_verify_messages(folder) == []
    (folder / "data.csv").unlink()
    os.mkfifo(folder / "data.csv")
    assert "The file 'data.csv' is missing." in list_verify_messages(folder)


def certificate_of(folder: Path) -> Certificate:
    return Certificate.model_validate_json((folder / "certificate.json").read_bytes())


def lies(certificate: Certificate) -> list[dict[str, Any]]:
    """Changes that a liar would make, each with a seal that fits."""
    real, result = certificate.events[0], certificate.parameters
    fewer = {"r": 1.0} if "r" in result else {"k": 2.0}
    weak = {"kind": "safe release", "k": 2, "beta": 1e-9}
    choice = {"kind": "selection", "epsilon": 0.1}
    column = certificate.table.scheme["sex"]
    return [
        {"events": [weak, real], "parameters": {"k": 2.0, "beta": 1e-9}},
        {"events": [real, choice]},
        {"events": [choice]},
        {"events": []},
        {"events": [{"kind": "composition", "events": []}]},
        {"parameters": {**result, **fewer}},
        {"date": "n=800"},
        {"incrowd": "alice is in it"},
        {"scheme": {**certificate.table.scheme, "sex": column.model_copy(update={"level": 7})}},
        {"scheme": {**certificate.table.scheme, "sex": column.model_copy(update={"level": -9})}},
        {
            "scheme": {
                **certificate.table.scheme,
                "sex": column.model_copy(update={"file": "data.csv"}),
            }
        },
        {
            "scheme": {
                **certificate.table.scheme,
                "sex": column.model_copy(update={"rule": {"flat": {}}}),
            }
        },
        {"release": certificate.table.release.model_copy(update={"rows": -1})},
    ]


@pytest.mark.parametrize("number", range(13))
def test_a_lie_whose_seal_fits_is_found_all_the_same(
    good: Path, tmp_path: Path, number: int
) -> None:
    folder = tampered(good, tmp_path)
    changes = lies(certificate_of(good))
    assert len(changes) == 13
    recertify(folder, **changes[number])
    assert list_verify_messages(folder) != []


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    assert list_verify_messages(folder) != []


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
