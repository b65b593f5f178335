"""The certificate of a release: what is guaranteed, and everything needed to check it.

It holds parameters, the scheme, and facts that anyone can recompute from the released file;
nothing about the table that the guarantee does not cover. It is canonical JSON, sealed by
its own hash, and signed if the curator has a key.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from incrowd.codes.label_form import Form
from incrowd.privacy.draw_parameters import ROWS_PER_GROUP, ROWS_PER_PERSON, compute_threshold
from incrowd.privacy.randomized_response import round_up_epsilon
from incrowd.release.guarantee_terms import (
    Adjacency,
    ParameterChoice,
    TrustModel,
    derive_terms,
)
from incrowd.release.household_links import HouseholdLinks
from incrowd.release.layout import (
    LAYOUT_FILES,
    LINKED_HOUSEHOLDS,
    PEOPLE_PER_HOUSEHOLD,
    Layout,
)
from incrowd.release.parameters import METHODS, Parameters, list_aggregates
from incrowd.release.shares_combined import CombinedRows
from incrowd.release.shares_part import ShareTable
from incrowd.release.statement import Facts, Sentence, write_statement
from incrowd.release.synthetic_part import SyntheticPart
from incrowd.release.tables_part import TabulationPart
from incrowd.spec.about import MetadataFormat

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FILE = "certificate.json"
README = "README.md"
PAGE = "certificate.html"
FORMAT: Literal[1] = 1
SYSTEM: Literal["system"] = "system"
SEEDED: Literal["seeded: not private"] = "seeded: not private"


class _CertificatePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class CertifiedGuarantee(_CertificatePart):
    """What is guaranteed, in numbers and in words.

    The terms of the guarantee follow from the rest; see :mod:`incrowd.release.guarantee_terms`.
    """

    kind: str
    statement: list[Sentence] = []
    epsilon: float | None = None
    delta: float | None = None
    unit: Literal["one row", "one person"]
    without_id: Literal["dropped"] | None = None
    period: Literal["year", "quarter", "month", "week", "day", "value"] | None = None
    part: str | None = None
    protects: Literal["household"] | None = None
    adjacency: Adjacency | None = None
    trust_model: TrustModel | None = None
    unprotected: list[str] = []
    post_processing: list[str] = []
    parameter_choice: ParameterChoice | None = None

    @model_validator(mode="after")
    def _check_period(self) -> CertifiedGuarantee:
        if (self.period is None) != (self.part is None):
            raise ValueError("'period' and 'part' belong together")
        if self.period is not None and (self.unit != "one person" or self.epsilon is None):
            raise ValueError("'period' belongs to differential privacy of one person")
        if self.protects is not None and self.unit != "one person":
            raise ValueError("'protects' belongs to the unit 'one person'")
        return self

    @property
    def text(self) -> str:
        """The statement as one paragraph."""
        return " ".join(sentence.text for sentence in self.statement)


Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class AbsentLabels(_CertificatePart):
    """The listed labels of a published level that no row shows: their number, and the first."""

    number: Annotated[int, Field(ge=1)]
    first: list[str]


class SchemeColumn(_CertificatePart):
    """How one column was generalized: a level of a listed hierarchy, or of a rule.

    Without a level recoding was local: each class shows a group of any level or, where the
    values are ``ordered``, an interval. ``labels`` is the form that its labels have, ``shows``
    describes each level of the hierarchy, ``sizes`` gives its number of labels, and ``open_ends``
    lists labels such as <5 and >89. ``absent`` counts the labels of the level that no published
    row shows.
    """

    level: Count | None = None
    ordered: bool | None = None
    other: str | None = None
    labels: Form
    shows: list[str] = []
    sizes: list[int] = []
    open_ends: list[str] = []
    absent: AbsentLabels | None = None
    file: str | None = None
    sha256: Hash | None = None
    rule: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check_file_or_rule(self) -> SchemeColumn:
        listed = (self.file is not None, self.sha256 is not None)
        if listed != (self.rule is None, self.rule is None):
            raise ValueError("a column has a file with its hash, or a rule")
        if (self.level is None) == (self.ordered is None):
            raise ValueError("a column has a level, or says whether its values are ordered")
        return self


class NoisyColumn(_CertificatePart):
    """The grid that noisy values lie on: multiples of a step, in numbers or in days."""

    kind: Literal["number", "date"]
    step: Annotated[str, Field(pattern=r"^\d{1,30}(\.\d{1,30})?$")]
    bounds: tuple[str, str] | None = None

    @model_validator(mode="after")
    def _check_step(self) -> NoisyColumn:
        if not Decimal(self.step) > 0:
            raise ValueError("a step must be above 0")
        if self.bounds is not None and not all(map(_is_number, self.bounds)):
            raise ValueError("bounds must be numbers")
        return self


class CertifiedResponse(_CertificatePart):
    """The randomized response of a column: its categories, and how likely a row keeps its own.

    Each other category is as likely as any other: (1 - keep) / (categories - 1).
    """

    values: Annotated[list[str], Field(min_length=2)]
    keep: Annotated[float, Field(gt=0, lt=1)]

    @model_validator(mode="after")
    def _check_values(self) -> CertifiedResponse:
        if len(set(self.values)) < len(self.values):
            raise ValueError("a category is listed twice")
        return self

    @property
    def other(self) -> float:
        """The probability of each category that is not the row's own."""
        return (1 - self.keep) / (len(self.values) - 1)

    @property
    def epsilon(self) -> float:
        """The local epsilon of the response, rounded up."""
        return round_up_epsilon([(self.keep, len(self.values))])


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,30}(\.\d{1,30})?", text) is not None


class ReleasedFile(_CertificatePart):
    """Facts about the released file, recomputable from it.

    ``formulas`` says that texts a spreadsheet would run begin with an apostrophe.
    """

    file: Annotated[
        str, Field(pattern=r"^(data(-[1-9]\d{0,3})?|households|people)\.(parquet|csv)$")
    ]
    form: Literal["expanded", "counted", "cells"]
    sha256: Hash
    rows: Count
    classes: Count
    smallest_class: Count
    formulas: Literal["escaped"] | None = None


class Signature(_CertificatePart):
    """An Ed25519 signature of the certificate without it, in hexadecimal."""

    public_key: Hash
    value: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class Slice(_CertificatePart):
    """One of several tables: its own parameters, scheme and file."""

    parameters: dict[str, float | str]
    scheme: dict[str, SchemeColumn]
    release: ReleasedFile


class Certificate(_CertificatePart):
    """The whole certificate. ``seal`` is the SHA-256 of the rest, except the signature.

    Where several tables are released, ``slices`` holds what is each one's own; the parameters, at
    the top, are those of all together; a ``layout`` says that they are no slices but households and
    people, ``links`` what is known of the keys that link these. ``shares`` are columns that were
    counted beside them, ``combined`` those that several slices show. A ``rehearsal`` is of a table
    that was made up. ``assertions`` is the hash of the file with what the curator says about the
    release, ``metadata`` names the formats in which the release is described.
    """

    format: Literal[1]
    incrowd: Annotated[str, Field(pattern=r"^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}[a-z0-9.]{0,12}$")]
    method: str
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    guarantee: CertifiedGuarantee
    parameters: dict[str, float | str]
    events: list[dict[str, Any]]
    scheme: dict[str, SchemeColumn] | None = None
    kept: list[str] = []
    noisy: dict[str, NoisyColumn] = {}
    randomized: dict[str, CertifiedResponse] | None = None
    release: ReleasedFile | None = None
    slices: list[Slice] | None = None
    layout: Layout | None = None
    links: HouseholdLinks | None = None
    synthetic: SyntheticPart | None = None
    tabulation: TabulationPart | None = None
    shares: list[ShareTable] | None = None
    combined: list[CombinedRows] | None = None
    assertions: Hash | None = None
    metadata: list[MetadataFormat] | None = None
    randomness: Literal["system", "seeded: not private"]
    rehearsal: Literal[True] | None = None
    seal: str = ""
    signature: Signature | None = None

    @model_validator(mode="after")
    def _check_tables(self) -> Certificate:
        first = (self.scheme is not None, self.release is not None)
        if first != (self.slices is None, self.slices is None):
            raise ValueError("a certificate has a scheme and a release, or slices")
        ending = self.tables[0].release.file.partition(".")[2] if self.tables else ""
        for name, table in zip(self._list_file_names(), self.tables, strict=True):
            if table.release.file != f"{name}.{ending}":
                raise ValueError(f"'{table.release.file}' is not called as it should be")
            if table.release.formulas and ending != "csv":
                raise ValueError("'formulas' belongs to CSV files")
        return self

    def _list_file_names(self) -> list[str]:
        """Return the name of each file, without its ending."""
        if self.layout is None:
            numbers = range(1, len(self.tables) + 1)
            return ["data" if self.slices is None else f"data-{number}" for number in numbers]
        return list(LAYOUT_FILES[self.layout])

    @model_validator(mode="after")
    def _check_layout(self) -> Certificate:
        """Refuse households and people that do not share the columns of the household."""
        is_linked = self.layout == LINKED_HOUSEHOLDS
        if is_linked != (self.links is not None):
            raise ValueError("'links' belongs to linked households and people")
        if self.layout is None:
            return self
        if self.method != "safe" or self.guarantee.protects != "household":
            raise ValueError("'layout' belongs to a safe release that protects households")
        households, people = self.tables
        if is_linked and households.parameters != people.parameters:
            raise ValueError("linked files were drawn together, and have the same parameters")
        if not set(households.scheme) < set(people.scheme):
            raise ValueError("the columns of households are not among those of people")
        for name, column in households.scheme.items():
            if column.model_copy(update={"absent": None}) != people.scheme[name].model_copy(
                update={"absent": None}
            ):
                raise ValueError(f"column '{name}' differs between households and people")
        return self

    @model_validator(mode="after")
    def _check_values(self) -> Certificate:
        dt.date.fromisoformat(self.date)
        if self.method not in METHODS:
            raise ValueError(f"'{self.method}' is no method that certificates know")
        if (self.synthetic is not None) != (self.method == "synthetic"):
            raise ValueError("synthetic rows have a part of their own, and nothing else has")
        if (self.tabulation is not None) != (self.method == "tables"):
            raise ValueError("tables of counts have a part of their own, and nothing else has")
        if any((self.tabulation is not None) != (table.release.form == "cells")
               for table in self.tables):  # fmt: skip
            raise ValueError("'cells' is the form of tables of counts")
        if self.shares is not None and (self.method != "safe" or not self.shares):
            raise ValueError("'shares' belongs to safe releases, and lists a column")
        if self.combined is not None and (
            self.method != "safe" or not self.combined or self.rows_per_person > 1
        ):
            raise ValueError(
                "'combined' belongs to safe releases with one row per person, and lists a column"
            )
        columns = [column for table in self.tables for column in table.scheme.values()]
        suppresses = self.synthetic is None and self.tabulation is None
        if not suppresses and any(column.absent for column in columns):
            raise ValueError("'absent' belongs to rows that are not synthetic")
        if self.guarantee.without_id and self.guarantee.unit != "one person":
            raise ValueError("'without_id' belongs to the unit 'one person'")
        return self

    @property
    def k(self) -> int:
        """The smallest number of rows that are alike; 0 if the certificate names none.

        Of counts, in the original table.
        """
        return min((_get_whole(table.parameters, "k") for table in self.tables), default=0)

    @property
    def rows_per_person(self) -> int:
        """The largest number of rows of one person that were used, where a person is the unit."""
        return (
            max((_get_whole(table.parameters, ROWS_PER_PERSON) for table in self.tables), default=0)
            or _get_whole(self.parameters, PEOPLE_PER_HOUSEHOLD)
            or 1
        )

    @property
    def rows_per_group(self) -> int:
        """The largest number of rows of one person that count in a group; 1 where people count."""
        return (
            max((_get_whole(table.parameters, ROWS_PER_GROUP) for table in self.tables), default=0)
            or 1
        )

    @property
    def counted_unit(self) -> Literal["people", "households", "rows"]:
        """What published numbers of rows stand for."""
        if self.layout is not None:
            return "households"
        by_person = self.guarantee.unit == "one person" and self.rows_per_group == 1
        return "people" if by_person else "rows"

    @property
    def threshold(self) -> int:
        """The smallest number of rows that are shown alike: k or, of counts, r + k.

        Where rows of people are counted, c of each in a group, r + c (k - 1) + 1.
        """
        numbers = [
            tuple(_get_whole(table.parameters, name) for name in ("r", "k", ROWS_PER_GROUP))
            for table in self.tables
        ]
        return min((compute_threshold(r, k, c or 1) if k else 0 for r, k, c in numbers), default=0)

    @property
    def threshold_formula(self) -> str:
        """How the threshold of counts follows from their parameters."""
        if self.rows_per_group == 1:
            return "r + k"
        return f"r + {self.rows_per_group} (k - 1) + 1"

    @property
    def aggregates(self) -> dict[str, str]:
        """The kept columns of which each class shows one number, its mean or median."""
        return list_aggregates(self.parameters)

    @property
    def unchanged(self) -> list[str]:
        """The columns that are published as they are."""
        return [name for name in self.kept if name not in self.aggregates]

    @property
    def has_noisy_counts(self) -> bool:
        """Whether the numbers of rows are counts with noise."""
        return bool(self.tables) and all("r" in table.parameters for table in self.tables)

    @property
    def is_sampled(self) -> bool:
        """Whether the table is itself a sample, and the promise one to its population."""
        return "already_sampled" in {**self.parameters, **self.tables[0].parameters}

    @property
    def is_private(self) -> bool:
        """Whether anything is guaranteed: a real table, and random numbers of the system."""
        return self.randomness == SYSTEM and not self.rehearsal

    @property
    def table(self) -> Slice:
        """The one table that was released."""
        (only,) = self.tables
        return only

    def split_tables(self) -> list[Certificate]:
        """Return a certificate for each table, as if it stood alone, but for its guarantee."""
        return [
            self.model_copy(
                update={
                    "slices": None, "layout": None, "parameters": table.parameters,
                    "scheme": table.scheme, "release": table.release,
                }
            )
            for table in self.tables
        ]  # fmt: skip

    @property
    def tables(self) -> list[Slice]:
        """The tables that were released: one, or slices."""
        if self.slices is not None:
            return self.slices
        assert self.scheme is not None
        assert self.release is not None
        return [Slice(parameters=self.parameters, scheme=self.scheme, release=self.release)]

    def with_seal(self) -> Certificate:
        """Return the certificate with its seal."""
        return self.model_copy(update={"seal": self._compute_hash(), "signature": None})

    def with_signature(self, key: Ed25519PrivateKey) -> Certificate:
        """Return the sealed certificate with a signature."""
        certificate = self.with_seal()
        public = key.public_key().public_bytes_raw().hex()
        value = key.sign(certificate.to_canonical_json()).hex()
        return certificate.model_copy(
            update={"signature": Signature(public_key=public, value=value)}
        )

    def is_seal_valid(self) -> bool:
        """Return whether the seal is the hash of the rest."""
        return self.seal == self._compute_hash()

    def is_signature_valid(self) -> bool:
        """Return whether the signature, if there is one, was made with its key."""
        if self.signature is None:
            return True
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.signature.public_key))
            bare = self.model_copy(update={"signature": None})
            key.verify(bytes.fromhex(self.signature.value), bare.to_canonical_json())
        except (InvalidSignature, ValueError):
            return False
        return True

    def to_canonical_json(self) -> bytes:
        """Write it in the one way: sorted keys, no spaces, no nulls, UTF-8, a line end."""
        plain = self.model_dump(exclude_none=True)
        text = json.dumps(
            plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode() + b"\n"

    def collect_facts(self) -> Facts:
        """Return the facts that the statement and the terms follow from."""
        guarantee = self.guarantee
        columns = [pair for table in self.tables for pair in table.scheme.items()]
        return Facts(
            method=self.method,
            tables=[table.parameters for table in self.tables],
            unit=guarantee.unit,
            shared=self.parameters if self.slices is not None else {},
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            without_id=guarantee.without_id,
            period=guarantee.period,
            part=guarantee.part,
            protects=guarantee.protects,
            layout=self.layout,
            local=sorted({name for name, column in columns if column.level is None}),
            noisy=tuple(self.noisy),
            randomized={
                name: (len(response.values), response.keep)
                for name, response in (self.randomized or {}).items()
            },
            kept=sorted(self.kept),
            seeded=self.randomness == SEEDED,
            rehearsal=bool(self.rehearsal),
            synthetic=self.synthetic,
            tabulation=self.tabulation,
            shares=tuple(self.shares or ()),
            is_combined=self.combined is not None,
            assertions=self.assertions,
        )

    def with_statement(self) -> Certificate:
        """Return the certificate with the statement and the terms that follow from the rest."""
        facts = self.collect_facts()
        update = {"statement": write_statement(facts), **derive_terms(facts)}
        return self.model_copy(update={"guarantee": self.guarantee.model_copy(update=update)})

    def has_own_statement(self) -> bool:
        """Return whether statement and terms are those that follow from the rest."""
        return self.guarantee == self.with_statement().guarantee

    def _compute_hash(self) -> str:
        bare = self.model_copy(update={"seal": "", "signature": None})
        return hashlib.sha256(bare.to_canonical_json()).hexdigest()


def _get_whole(parameters: Parameters, name: str) -> int:
    value = parameters.get(name, 0)
    return int(value) if isinstance(value, float) else 0


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
