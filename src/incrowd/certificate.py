"""The certificate of a release: what is guaranteed, and everything needed to check it.

It holds parameters, the scheme, and facts that anyone can recompute from the released file;
nothing about the table that the guarantee does not cover. It is canonical JSON, sealed by
its own hash, and signed if the custodian has a key.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import BaseModel, ConfigDict, Field, model_validator

from incrowd.errors import IncrowdError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event, SafeRelease, Sampled, from_dict

FILE = "certificate.json"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Guarantee(_Part):
    """What is guaranteed, in numbers and in words."""

    kind: Literal["differential privacy"]
    statement: str
    epsilon: float
    delta: float
    unit: Literal["one row", "one person"]


Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class SchemeColumn(_Part):
    """How one column was generalised: a level of a listed hierarchy, or of a rule."""

    level: Count
    other: str | None = None
    file: str | None = None
    sha256: Hash | None = None
    rule: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> SchemeColumn:
        listed = (self.file is not None, self.sha256 is not None)
        if listed != (self.rule is None, self.rule is None):
            raise ValueError("a column has a file with its hash, or a rule")
        return self


class Data(_Part):
    """Facts about the released file, recomputable from it."""

    file: Literal["data.parquet", "data.csv"]
    form: Literal["expanded", "weighted"]
    sha256: Hash
    rows: Count
    classes: Count
    smallest_class: Count


class Signature(_Part):
    """An Ed25519 signature of the certificate without it, in hexadecimal."""

    public_key: str
    value: str


class Certificate(_Part):
    """All of it. ``seal`` is the SHA-256 of the rest, but for the signature."""

    incrowd: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+[a-z0-9.]{0,12}$")]
    method: Literal["safe"]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    guarantee: Guarantee
    parameters: dict[Literal["k", "beta", "already_sampled"], float]
    events: list[dict[str, Any]]
    scheme: dict[str, SchemeColumn]
    release: Data
    randomness: Literal["system", "seeded: not private"]
    seal: str = ""
    signature: Signature | None = None

    def sealed(self) -> Certificate:
        """The certificate with its seal."""
        return self.model_copy(update={"seal": self._hash(), "signature": None})

    def signed(self, key: Ed25519PrivateKey) -> Certificate:
        """The sealed certificate with a signature."""
        whole = self.sealed()
        public = key.public_key().public_bytes_raw().hex()
        value = key.sign(whole.canonical()).hex()
        return whole.model_copy(update={"signature": Signature(public_key=public, value=value)})

    def canonical(self) -> bytes:
        """The one way to write it: sorted keys, no spaces, no nulls, UTF-8, a line end."""
        plain = self.model_dump(exclude_none=True)
        text = json.dumps(
            plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode() + b"\n"

    def problems(self) -> list[str]:
        """What is wrong with the certificate by itself: seal, signature, guarantee, parameters."""
        found = []
        if self.seal != self._hash():
            found.append("The certificate was changed: its seal does not fit.")
        if self.signature is not None and not self._signature_holds(self.signature):
            found.append("The signature does not fit the certificate.")
        try:
            events = [from_dict(event) for event in self.events]
            if not parameters_of(events):
                return [*found, "The events of a safe release are one safe release, or it sampled."]
            epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
            true = Accountant(events).delta(epsilon=epsilon)
            if not true <= delta < 1:
                found.append(
                    f"The guarantee is not true: the events give delta = {true:.3g} at epsilon = "
                    f"{epsilon:g}, not {delta:.3g}."
                )
            if self.parameters != parameters_of(events):
                found.append("The parameters are not those of the events.")
            if self.guarantee.statement != statement(events, self.guarantee):
                found.append("The statement does not say what the events guarantee.")
        except (IncrowdError, ValueError, ArithmeticError) as error:
            found.append(f"The events are not valid: {error}")
        return found

    def _hash(self) -> str:
        bare = self.model_copy(update={"seal": "", "signature": None})
        return hashlib.sha256(bare.canonical()).hexdigest()

    def _signature_holds(self, signature: Signature) -> bool:
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
            bare = self.model_copy(update={"signature": None})
            key.verify(bytes.fromhex(signature.value), bare.canonical())
        except (InvalidSignature, ValueError):
            return False
        return True


def parameters_of(events: list[Event]) -> dict[str, float]:
    """k, beta and the sampling rate of a single safe release; nothing for other events."""
    match events:
        case [SafeRelease(k, beta)]:
            return {"k": k, "beta": beta}
        case [Sampled(SafeRelease(k, beta), rate)]:
            return {"k": k, "beta": beta, "already_sampled": rate}
        case _:
            return {}


def statement(events: list[Event], guarantee: Guarantee) -> str:
    """The guarantee in words that a reader without mathematics can follow."""
    known = parameters_of(events)
    words = (
        f"This file satisfies (epsilon, delta)-differential privacy with epsilon = "
        f"{guarantee.epsilon!r} and delta = {guarantee.delta!r}. Whether or not {guarantee.unit} "
        "is in the original table, whatever may be released is almost as likely: the probability "
        "of any set of releases grows by a factor of at most e^epsilon, plus delta. Each row was "
        "drawn at random "
        f"with probability {known['beta']!r}, every column was generalised by a scheme that does "
        f"not depend on the table, and only rows that occur at least {int(known['k'])} times are "
        "shown."
    )
    if "already_sampled" in known:
        words += (
            f" The guarantee is for the population of which the table is a random sample: its "
            f"custodian asserts that everybody was in the table with probability "
            f"{known['already_sampled']!r}, independently, and that nobody knows who was."
        )
    return words


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_key(path: Path) -> Ed25519PrivateKey:
    """An Ed25519 private key from an unencrypted PEM file."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise IncrowdError(f"Cannot read the key '{path}': {error.strerror}.") from error
    except (ValueError, TypeError) as error:
        raise IncrowdError(f"'{path}' is no unencrypted private key in PEM form.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise IncrowdError(
            f"'{path}' is no Ed25519 key. Make one: openssl genpkey -algorithm ed25519 -out {path}"
        )
    return key
