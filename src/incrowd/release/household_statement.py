"""The sentences of a statement on households and their people as two files of one release."""

from __future__ import annotations

from collections.abc import Iterator

from incrowd.codes.household_type import HOUSEHOLD_KEY
from incrowd.release.facts import Facts, Sentence, make_sentence
from incrowd.release.layout import LINKED_HOUSEHOLDS, PEOPLE_PER_HOUSEHOLD
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

KEY = (
    f"The column '{HOUSEHOLD_KEY}' links the files: a household and its people have the same key. "
    "Keys are numbers in random order, drawn for this release alone when all else of it was "
    "settled. They say nothing about the input, and nothing connects them with keys of another "
    "release."
)


def write_household_files(facts: Facts) -> Iterator[Sentence]:
    """Write what the files count, and whether a key links them."""
    if facts.layout != LINKED_HOUSEHOLDS:
        yield make_sentence("household_files", describe_household_files(facts))
        yield make_sentence("no_key", NO_KEY)
        return
    most = int(float(facts.shared[PEOPLE_PER_HOUSEHOLD]))
    yield make_sentence(
        "household_files",
        "Households are published whole. The type of a household is its labels together with those "
        f"of its people, of whom up to {most} were used, chosen at random before anything else "
        "was. Groups are types, and a count is a number of households of a type. ε and δ are those "
        "of both files. Households without people in the input are in neither.",
    )
    yield make_sentence(
        "household_size",
        f"That up to {most} people of a household were used is what the curator states. So a "
        f"published household with {most} people stands for households with {most} or more; one "
        "with fewer people, for households of just that size.",
    )
    yield make_sentence("key", KEY)


def describe_linked_k_anonymity(k: int) -> str:
    """Return behind how many households of the input a published one stands."""
    return (
        f"The two files together are {k}-anonymous in households: each published household has all "
        f"labels of at least {k} input household{'s' if k > 1 else ''}, their own and those of "
        "their used people."
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
    levels = "The generalization levels, the same in both files,"
    if "search_epsilon" not in people:
        return f"{levels} were fixed before the input was read."
    if not facts.by_counts:
        levels += " and k and β unless they were fixed before,"
    return (
        f"{levels} were chosen by a differentially private search (ε = "
        f"{format_exact(people['search_epsilon'])}, included above)."
    )
