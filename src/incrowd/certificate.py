"""The certificate of a release: what is guaranteed, and everything needed to check it.

It holds parameters, the scheme, and facts that anyone can recompute from the released file;
nothing about the table that the guarantee does not cover. It is canonical JSON, sealed by
its own hash, and signed if the custodian has a key.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from decimal import Decimal
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
from incrowd.privacy.events import (
    Composition,
    Event,
    OneOf,
    SafeRelease,
    Sampled,
    Selection,
    from_dict,
)

FILE = "certificate.json"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Guarantee(_Part):
    """What is guaranteed, in numbers and in words."""

    kind: Literal["differential privacy", "k-anonymity", "(k,epsilon)-anonymity"]
    statement: str
    epsilon: float | None = None
    delta: float | None = None
    unit: Literal["one row", "one person"]


Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class SchemeColumn(_Part):
    """How one column was generalised: a level of a listed hierarchy, or of a rule.

    Without a level recoding was local: each class shows a group of any level or, where the
    values are ``ordered``, an interval.
    """

    level: Count | None = None
    ordered: bool | None = None
    other: str | None = None
    file: str | None = None
    sha256: Hash | None = None
    rule: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> SchemeColumn:
        listed = (self.file is not None, self.sha256 is not None)
        if listed != (self.rule is None, self.rule is None):
            raise ValueError("a column has a file with its hash, or a rule")
        if (self.level is None) == (self.ordered is None):
            raise ValueError("a column has a level, or says whether its values are ordered")
        return self


class NoisyColumn(_Part):
    """The grid that noisy values lie on: multiples of a step, in numbers or in days."""

    kind: Literal["number", "date"]
    step: Annotated[str, Field(pattern=r"^\d{1,30}(\.\d{1,30})?$")]
    bounds: tuple[str, str] | None = None

    @model_validator(mode="after")
    def _positive(self) -> NoisyColumn:
        if not Decimal(self.step) > 0:
            raise ValueError("a step must be above 0")
        if self.bounds is not None and not all(map(_is_number, self.bounds)):
            raise ValueError("bounds must be numbers")
        return self


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,30}(\.\d{1,30})?", text) is not None


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
    method: Literal["safe", "k-anonymity", "k-epsilon"]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    guarantee: Guarantee
    parameters: dict[str, float | str]
    events: list[dict[str, Any]]
    scheme: dict[str, SchemeColumn]
    kept: list[str] = []
    noisy: dict[str, NoisyColumn] = {}
    release: Data
    randomness: Literal["system", "seeded: not private"]
    seal: str = ""
    signature: Signature | None = None

    @property
    def k(self) -> int:
        """The smallest number of rows that are alike; 0 if the certificate names none."""
        k = self.parameters.get("k", 0)
        return int(k) if isinstance(k, float) else 0

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
            found += self._safe() if self.method == "safe" else self._classical()
        except (IncrowdError, ValueError, ArithmeticError) as error:
            found.append(f"The events are not valid: {error}")
        return found

    def _safe(self) -> list[str]:
        """What is wrong with the guarantee of a safe release."""
        found, known = [], self.guarantee
        events = [from_dict(event) for event in self.events]
        if not parameters_of(events) or self.kept or self.noisy:
            return ["The events are not those of one safe release."]
        if known.kind != "differential privacy" or known.epsilon is None or known.delta is None:
            return ["A safe release guarantees differential privacy, with epsilon and delta."]
        true = Accountant(events).delta(epsilon=known.epsilon)
        if not true <= known.delta < 1:
            found.append(
                f"The guarantee is not true: the events give delta = {true:.3g} at epsilon = "
                f"{known.epsilon:g}, not {known.delta:.3g}."
            )
        if self.parameters not in parameters_of(events):
            found.append("The parameters are not those of the events.")
        elif known.statement != statement(self.parameters, known):
            found.append("The statement does not say what the events guarantee.")
        return found

    def _classical(self) -> list[str]:
        """What is wrong with the guarantee of a k-anonymous table, noisy columns or not."""
        known = self.guarantee
        if self.events or known.epsilon is not None or known.delta is not None:
            return ["k-anonymity is no differential privacy and has no events."]
        names = {"k", "algorithm", "suppressed"}
        if self.method == "k-anonymity":
            _check_parameters(self.parameters, names, self.kept)
            kind, said = "k-anonymity", classical_statement(self.parameters, known.unit)
        else:
            names |= {"epsilon", "noise", "bounds", *({"delta", "confidence"} & {*self.parameters})}
            _check_parameters(self.parameters, names, self.kept)
            kind = "(k,epsilon)-anonymity"
            said = noisy_statement(self.parameters, list(self.noisy), known.unit)
        if (
            known.kind != kind
            or known.statement != said
            or (kind == "k-anonymity") == bool(self.noisy)
        ):
            return [f"The statement does not say what {kind} guarantees."]
        return []

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


def parameters_of(events: list[Event]) -> list[dict[str, float | str]]:
    """What k, beta and so on may be, by the events of a safe release; nothing for others.

    A release whose scheme was searched for has a selection and then one of several safe
    releases; which one, the selection has told.
    """
    match events:
        case [Sampled(event, rate)]:
            inner: list[Event] = [event]
            if isinstance(event, Composition):
                inner = list(event.events)
            found = [] if any(isinstance(part, Sampled) for part in inner) else parameters_of(inner)
            return [{**known, "already_sampled": rate} for known in found]
        case [SafeRelease(k, beta)]:
            return [{"k": float(k), "beta": beta}]
        case [Selection(), *_, OneOf(parts)]:
            choices = [event for event in events if isinstance(event, Selection)]
            releases = [part for part in parts if isinstance(part, SafeRelease)]
            if len(choices) + 1 < len(events) or len(releases) < len(parts):
                return []
            spent = math.fsum(choice.epsilon for choice in choices)
            return [
                {"k": float(one.k), "beta": one.beta, "search_epsilon": spent} for one in releases
            ]
        case _:
            return []


def statement(known: dict[str, float | str], guarantee: Guarantee) -> str:
    """The guarantee in words that a reader without mathematics can follow."""
    scheme = (
        "by a scheme that does not depend on the table"
        if "search_epsilon" not in known
        else "by a scheme that was chosen from the table, together with this probability, by a "
        f"mechanism of its own that spent epsilon = {known['search_epsilon']!r}, which is included"
    )
    words = (
        f"This file satisfies (epsilon, delta)-differential privacy with epsilon = "
        f"{guarantee.epsilon!r} and delta = {guarantee.delta!r}. Whether or not {guarantee.unit} "
        "is in the original table, whatever may be released is almost as likely: the probability "
        "of any set of releases grows by a factor of at most e^epsilon, plus delta. Each row was "
        "drawn at random "
        f"with probability {known['beta']!r}, every column was generalised {scheme}, and only rows "
        f"that occur at least {int(known['k'])} times are shown."
    )
    if "already_sampled" in known:
        words += (
            f" The guarantee is for the population of which the table is a random sample: its "
            f"custodian asserts that everybody was in the table with probability "
            f"{known['already_sampled']!r}, independently, and that nobody knows who was."
        )
    return words


_EXTREMES = (
    "Where the classes end depends on single people: an interval may end at one person's value, "
    "and whoever knows an extreme value may find it."
)
ALGORITHMS = {
    "ola": (
        "each column was generalised to one level, chosen by a search over the table",
        "The search read the table, so the levels themselves may tell something.",
    ),
    "mondrian": (
        "rows were put into classes by cuts of the table, and each class shows what covers it",
        _EXTREMES,
    ),
    "cluster": (
        "rows were put into classes of near ones, and each class shows what covers it",
        _EXTREMES,
    ),
    "duplicate": (
        "one row of each class was drawn and is shown, unchanged, in place of all of them",
        "It publishes real people's rows as they are: a baseline to compare with, not for use.",
    ),
}


RULES = (
    "distinct values, at least",
    "entropy of so many equally frequent values, at least",
    "distance to the table (equal), at most",
    "distance to the table (ordered), at most",
)
_CHOICES = {
    "algorithm": tuple(ALGORITHMS),
    "suppressed": ("dropped", "starred"),
    "noise": ("laplace", "gaussian"),
    "bounds": ("class", "declared"),
}


def rules_of(parameters: dict[str, float | str]) -> list[tuple[str, str, float]]:
    """The rules on sensitive columns among the parameters: column, kind, value."""
    found = []
    for name, value in sorted(parameters.items()):
        if name.startswith("rule "):
            column, _, kind = name.removeprefix("rule ").partition(": ")
            for known in RULES:
                if name.endswith(f": {known}"):
                    column, kind = name.removeprefix("rule ").removesuffix(f": {known}"), known
            if kind not in RULES or not isinstance(value, float) or not value >= 0:
                raise ValueError(f"'{name}' is no rule that is known")
            found.append((column, kind, value))
    return found


def _check_parameters(parameters: dict[str, float | str], names: set[str], kept: list[str]) -> None:
    """Refuse parameters that such a release does not have, or values that they cannot take."""
    rules = {f"rule {column}: {kind}" for column, kind, _ in rules_of(parameters)}
    strange = sorted(set(parameters) - names - rules)
    if strange:
        raise ValueError(f"such a release has no parameter '{strange[0]}'")
    for name, choices in _CHOICES.items():
        if name in names and parameters.get(name) not in choices:
            raise ValueError(f"'{name}' is not one of {', '.join(choices)}")
    for column, _, _ in rules_of(parameters):
        if column not in kept:
            raise ValueError(f"a rule names '{column}', which is not kept")
    k = parameters.get("k")
    if not isinstance(k, float) or k < 1 or k != int(k):
        raise ValueError("'k' is no whole number from 1")


def classical_statement(parameters: dict[str, float | str], unit: str) -> str:
    """What k-anonymity promises, what it does not, and which attacks are known."""
    k = int(parameters["k"])
    if parameters["algorithm"] not in ALGORITHMS:
        raise ValueError(f"no algorithm '{parameters['algorithm']}' is known")
    how, weakness = ALGORITHMS[str(parameters["algorithm"])]
    rules = [f"'{column}', {kind} {value!r}" for column, kind, value in rules_of(parameters)]
    extra = f" Inside every class also holds: {'; '.join(rules)}." if rules else ""
    if any("distance" in kind for _, kind, _ in rules_of(parameters)):
        extra += " (The distances are to the original table and cannot be checked from this file.)"
    stars = (
        " Rows that show * in every generalised column stand for rows that were suppressed; they "
        "are in no class."
        if parameters.get("suppressed") == "starred"
        else ""
    )
    people = " Of each person one row was used." if unit == "one person" else ""
    return (
        f"This file is k-anonymous with k = {k}: {how}, and in the generalised columns every row "
        f"is alike to at least {k - 1} others.{people}{extra}{stars} This is NOT differential "
        "privacy. It promises nothing about what the release as a whole tells of one person, "
        "about other columns, or about what several releases tell together. Known attacks: a class "
        "whose members share a sensitive value reveals it; who knows more about a person can rule "
        f"out others of the class. {weakness}"
    )


def noisy_statement(parameters: dict[str, float | str], columns: list[str], unit: str) -> str:
    """What (k,epsilon)-anonymity promises, and what it does not, for a custodian."""
    epsilon, noise = parameters.get("epsilon"), parameters.get("noise")
    declared, confidence = parameters.get("bounds") == "declared", parameters.get("confidence")
    if not isinstance(epsilon, float) or not 0 < epsilon < float("inf"):
        raise ValueError("'epsilon' is no number above 0")
    for name in ("delta", "confidence"):
        value = parameters.get(name, 0.5)
        if not isinstance(value, float) or not 0 < value < 1:
            raise ValueError(f"'{name}' does not lie between 0 and 1")
    listed = ", ".join(f"'{name}'" for name in columns)
    delta = f" and delta = {parameters['delta']!r}" if "delta" in parameters else ""
    words = (
        f"This file is (k,epsilon)-anonymous, which is NOT differential privacy of the table. "
        f"{classical_statement(parameters, unit)} The columns {listed} carry random noise "
        f"({noise}), epsilon = {epsilon!r}{delta} shared among them, "
    )
    if declared:
        words += (
            "as wide as their declared bounds ask for: for each row, any two values within the "
            "bounds would have led to any released values with probabilities that differ by a "
            f"factor of at most e^epsilon{', plus delta' if delta else ''} (local differential "
            "privacy of these values, not of the rest of the row; whether a value is missing is "
            "shown)."
        )
    else:
        words += (
            "as wide as the values of each class: which of its members' values a released value "
            "came from is blurred, but how far the values of a class reach can be estimated from "
            "the file, an extreme value in particular. A class in which all values are equal gets "
            "no noise and shows that value."
        )
    if isinstance(confidence, float):
        words += (
            f" Rows were suppressed whose released value would have pointed, with confidence "
            f"{confidence!r}, to fewer than k members of their class."
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
