"""What the files of a release are, where they are neither one table nor slices of one."""

from __future__ import annotations

from typing import Literal, TypeAlias

Layout: TypeAlias = Literal["households and people"]
HOUSEHOLDS_AND_PEOPLE: Layout = "households and people"
LAYOUT_FILES = {HOUSEHOLDS_AND_PEOPLE: ("households", "people")}  # without their endings
