"""Signing afterwards: only the signer changes, and nothing that does not verify is signed."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.releases import USUAL, make_voter_spec
from support.unjudged import publish_unjudged

from incrowd.errors import IncrowdError
from incrowd.release.certificate import FILE
from incrowd.release.keys import generate_key_pair, load_private_key
from incrowd.release.sign import sign_release
from incrowd.release.verify import read_certificate
from incrowd.verification import verify

pytestmark = pytest.mark.usefixtures("settled_once")


@pytest.fixture(scope="module")
def unsigned(voters: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with metadata, which hold the hash of the certificate."""
    folder = tmp_path_factory.mktemp("unsigned") / "out"
    more = "about: {title: Voters}\ndescribe: [croissant, registry]"
    publish_unjudged(voters, make_voter_spec(USUAL, more=more), output=folder)
    assert read_certificate(folder).metadata
    return folder


@pytest.fixture
def release(unsigned: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unsigned, tmp_path / "out"))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    private, public = generate_key_pair()
    (tmp_path / "key.pem").write_bytes(private)
    (tmp_path / "key.pub").write_bytes(public)
    return tmp_path / "key.pem"


def test_a_signed_release_is_the_same_but_for_its_signer(release: Path, key: Path) -> None:
    before = {path: path.read_bytes() for path in release.rglob("*") if path.is_file()}
    unsigned = read_certificate(release)
    signed = sign_release(release, key)
    assert verify(release, key=str(key.with_suffix(".pub"))) == []
    assert verify(release, key="0" * 64)[0].code == "SIGNER_DIFFERS"
    assert signed.model_copy(update={"signature": None}) == unsigned
    after = {path: path.read_bytes() for path in release.rglob("*") if path.is_file()}
    assert after.keys() == before.keys()
    changed = {path.name for path in after if after[path] != before[path]}
    assert {FILE, "certificate.html", "croissant.json"} <= changed
    assert not any(name.startswith("data") or name == "README.md" for name in changed)
    assert [path.name for path in release.parent.iterdir() if path.name.startswith(".")] == []


def test_what_was_changed_is_not_signed(release: Path, key: Path) -> None:
    path = next(release.glob("data.*"))
    path.write_bytes(path.read_bytes() + b" ")
    before = (release / FILE).read_bytes()
    with pytest.raises(IncrowdError, match="was changed"):
        sign_release(release, key)
    assert (release / FILE).read_bytes() == before


def test_a_signature_is_not_replaced(release: Path, key: Path) -> None:
    sign_release(release, key)
    public = load_private_key(key).public_key().public_bytes_raw().hex()
    with pytest.raises(IncrowdError, match=f"signed already, by the key {public}"):
        sign_release(release, key)


def test_a_new_key_is_an_ed25519_key(key: Path) -> None:
    assert isinstance(load_private_key(key), Ed25519PrivateKey)
    assert generate_key_pair()[0] != key.read_bytes()
