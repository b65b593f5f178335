"""The sentences of a statement on households and their people as two files of one release."""

from __future__ import annotations

from incrowd.release.facts import Facts
from incrowd.release.noise_sentences import format_exact

HOUSEHOLD_UNIT = (
    "The unit of the guarantee is a household, with its own row of the input and the rows of all "
    "of its people."
)
NO_KEY = (
    "No key links the files, and their rows do not correspond: no published row is a household or "
    "a person, so there is none that a key could point to. The files share the columns of the "
    "household, at the same levels; compare them by these."
)


def describe_household_files(facts: Facts) -> str:
    """Return what each file counts."""
    rows = facts.rows_per_person
    used = f"up to {rows} of its people were" if rows > 1 else "one of its people was"
    groups = f"up to {rows} groups" if rows > 1 else "one group"
    return (
        "The file of households counts households by their own columns, each in one group. The "
        f"file of people counts the households that have such a person: {used} used, chosen at "
        f"random, and it counts once in each group that they belong to, so in {groups}. ε and δ "
        "are those of both files. Households without people in the input are in neither file."
    )


def describe_shared_levels(facts: Facts) -> str:
    """Return who chose the levels of both files."""
    people = facts.tables[-1]
    if "search_epsilon" not in people:
        return (
            "The generalization levels, the same in both files, were fixed before the input was "
            "read."
        )
    return (
        "The generalization levels, the same in both files, were chosen by a differentially "
        f"private search (ε = {format_exact(people['search_epsilon'])}, included above)."
    )
