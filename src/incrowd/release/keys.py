"""Keys that certificates are signed with, and those that they are checked by; Ed25519, PEM."""

from __future__ import annotations

import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from incrowd.errors import IncrowdError


def read_public_key(text: str) -> str:
    """Return an Ed25519 public key in hexadecimal: as given, or from the PEM file at a path."""
    if re.fullmatch(r"[0-9a-fA-F]{64}", text):
        return text.lower()
    try:
        key = load_pem_public_key(Path(text).read_bytes())
    except OSError as error:
        raise IncrowdError(
            f"Key '{text}': not a public key. Give 64 hexadecimal digits, or a PEM file."
        ) from error
    except ValueError as error:
        raise IncrowdError(
            f"Key '{text}': not a public key in PEM form. Name another file."
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise IncrowdError(f"Key '{text}': not an Ed25519 key. Name another one.")
    return key.public_bytes_raw().hex()


def load_private_key(path: Path) -> Ed25519PrivateKey:
    """Load an Ed25519 private key from an unencrypted PEM file."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise IncrowdError(f"Cannot read the key '{path}': {error.strerror}.") from error
    except (ValueError, TypeError) as error:
        raise IncrowdError(
            f"Key '{path}': not an unencrypted private key in PEM form. Name another file."
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise IncrowdError(
            f"Key '{path}': not an Ed25519 key. Make one: openssl genpkey -algorithm ed25519 -out "
            f"{path}"
        )
    return key


def generate_key_pair() -> tuple[bytes, bytes]:
    """Generate an Ed25519 key; return its private and its public half, each as a PEM file."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private, public
