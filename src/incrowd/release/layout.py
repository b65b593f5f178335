"""What the files of a release are, where they are neither one table nor slices of one."""

from __future__ import annotations

from typing import Literal, TypeAlias

Layout: TypeAlias = Literal["households and people", "linked households and people"]
HOUSEHOLDS_AND_PEOPLE: Layout = "households and people"
LINKED_HOUSEHOLDS: Layout = "linked households and people"
LAYOUT_FILES = {  # without their endings
    HOUSEHOLDS_AND_PEOPLE: ("households", "people"),
    LINKED_HOUSEHOLDS: ("households", "people"),
}
PEOPLE_PER_HOUSEHOLD = "people_per_household"  # the parameter of linked files: at most so many
