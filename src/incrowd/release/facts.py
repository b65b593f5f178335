"""The facts that the statement of a certificate follows from, and the sentences it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from incrowd.privacy.draw_parameters import ROWS_PER_GROUP, ROWS_PER_PERSON
from incrowd.release.parameters import Parameters
from incrowd.release.shares_part import ShareTable
from incrowd.release.synthetic_part import SyntheticPart
from incrowd.release.tables_part import TabulationPart


class Sentence(BaseModel):
    """One item of a statement: a key for programs, a text for people."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    key: str
    text: str


@dataclass(frozen=True)
class Facts:
    """The facts that a statement follows from.

    ``tables`` holds the parameters of each table, ``shared`` those of all. ``local`` names the
    columns that may show labels of several levels, ``noisy`` those with noise, ``randomized`` those
    with randomized response (categories, and the probability that one is kept), ``kept`` those that
    are published unchanged, ``shares`` the columns that were counted beside, ``assertions`` is the
    hash of what the curator says besides. A ``layout`` says what several tables are, where they are
    no slices.
    """

    method: str
    tables: Sequence[Parameters]
    unit: str
    shared: Parameters = field(default_factory=dict)
    epsilon: float | None = None
    delta: float | None = None
    without_id: str | None = None
    period: str | None = None
    part: str | None = None
    protects: str | None = None
    layout: str | None = None
    local: Sequence[str] = ()
    noisy: Sequence[str] = ()
    randomized: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    kept: Sequence[str] = ()
    seeded: bool = False
    rehearsal: bool = False
    synthetic: SyntheticPart | None = None
    shares: Sequence[ShareTable] = ()
    is_combined: bool = False
    tabulation: TabulationPart | None = None
    assertions: str | None = None

    @property
    def by_person(self) -> bool:
        """Whether the unit of the guarantee is a person."""
        return self.unit == "one person"

    @property
    def rows_per_person(self) -> int:
        """The largest number of rows of one person that were used."""
        return max((int(table.get(ROWS_PER_PERSON, 1)) for table in self.tables), default=1)

    @property
    def rows_per_group(self) -> int:
        """The largest number of rows of one person that count in a group; 1 where people count."""
        return int(self.common.get(ROWS_PER_GROUP, 1)) if self.tables else 1

    @property
    def by_counts(self) -> bool:
        """Whether noisy counts were published."""
        return bool(self.tables) and all("r" in table for table in self.tables)

    @property
    def common(self) -> Parameters:
        """The parameters of the first table, with those of all."""
        return {**self.shared, **self.tables[0]}


HOUSEHOLD = (
    "A person of this statement is a household: the input has the same id for all of its members, "
    "who are protected together. k and numbers of people count households."
)


def make_sentence(key: str, text: str) -> Sentence:
    """Return a sentence with the key that names what it is about."""
    return Sentence(key=key, text=text)


def quote_names(names: Sequence[str]) -> str:
    """Return names of columns in a row, each in quotes."""
    return ", ".join(f"'{name}'" for name in names)
