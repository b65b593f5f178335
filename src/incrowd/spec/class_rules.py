"""Rules on sensitive columns: what every class must show of their values, as a spec declares it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from incrowd.spec.base import SpecModel, Text

CLASS_RULES = ("diversity", "closeness", "likeness", "disclosure", "presence")


class Recursive(SpecModel):
    """Recursive (c,l)-diversity: the rows of the most frequent value, beside those of rare ones."""

    c: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    l: Annotated[int, Field(ge=2)]  # noqa: E741 - the name it has in the literature


class Diversity(SpecModel):
    """The number of sensitive values every class must show, or how rare the frequent ones are."""

    distinct: Annotated[int, Field(ge=1)] | None = None
    entropy: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    recursive: Recursive | None = None
    alpha: Annotated[float, Field(gt=0, le=1)] | None = None


Bound = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Likeness(SpecModel):
    """How much more frequent a sensitive value may be in a class than in the table."""

    basic: Bound | None = None
    enhanced: Bound | None = None


class Disclosure(SpecModel):
    """How many powers of 2 a share may differ from the table's: of each value, or those present."""

    every: Bound | None = None
    present: Bound | None = None


Share = Annotated[float, Field(ge=0, le=1)]


class Presence(SpecModel):
    """Delta-presence: the share that a value may have in each class, from ``least`` to ``most``."""

    value: Text
    least: Share = 0.0
    most: Share = 1.0

    @model_validator(mode="after")
    def _check_bounds(self) -> Presence:
        if self.least > self.most:
            raise ValueError(f"`least` ({self.least}) exceeds `most` ({self.most}). Swap them.")
        return self


class Closeness(SpecModel):
    """The distance that a class's sensitive values may have from the table's, from 0 to 1.

    ``equal`` takes all values to be equally far apart; ``ordered`` moves along their order,
    ``hierarchical`` along their hierarchy.
    """

    equal: Annotated[float, Field(ge=0, le=1)] | None = None
    ordered: Annotated[float, Field(ge=0, le=1)] | None = None
    hierarchical: Annotated[float, Field(ge=0, le=1)] | None = None
