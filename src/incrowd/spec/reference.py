"""What a made-up foreign key refers to: the made-up key of another release."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from incrowd.spec.base import SpecModel, Text

Share = Annotated[float, Field(ge=0, le=1)]


class Reference(SpecModel):
    """The made-up key of another release that a made-up key of this table refers to.

    ``children`` has the share of that release's rows with each number of rows here; without it
    each row refers to any of them alike.
    """

    release: Text
    column: Text
    children: dict[Annotated[int, Field(ge=0, lt=10**9)], Share] | None = None

    @model_validator(mode="after")
    def _check_shares(self) -> Reference:
        if self.children is None:
            return self
        if abs(sum(self.children.values()) - 1) > 1e-9:
            raise ValueError(
                f"the shares of `children` add up to {sum(self.children.values()):g}. Make it 1."
            )
        if not any(number and share for number, share in self.children.items()):
            raise ValueError("`children` gives no row any. Name a number above 0 with its share.")
        return self
