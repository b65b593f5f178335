"""Whole households with their people: two tables of one release that a key links.

The unit is the household. Of its people at most m are used, chosen before any scheme is looked at,
by random bits of the household's own rows. At any levels a household has one *type*
(:mod:`incrowd.codes.household_type`): its own labels, and those of each of its used people, as
a multiset. Types are the cells: households are counted by type, and each type is drawn and
suppressed as a cell is, by noisy counts (:mod:`incrowd.anonymize.safe_counts`) or by a sample
(:mod:`incrowd.anonymize.safe_sample`). Each published household of a type then gets a key, and
both files are written from keys and types: one row for the household, one for each of its people.

Claim. For two inputs that differ by one household with all of its people, the release is dominated
by what one row costs: one pair (X, X + 1) of counts, or one :class:`SafeRelease` of a sample. Of
counts, behind every published household, with all of its people, stand at least k households of
the input that agree with it in every label; of a sample, at least k households were drawn.

Proof. Choose the people of all other households, the same in both inputs, and those of this one.
Then each household has one type, which is a function of its own rows and the levels alone; the two
inputs are tables with one row for each household, which differ by one row, and types are the
tuples of that table. So the claims for one row hold for the counts, or the sample, of types.
Averages over the chosen people are no further apart, since divergences are jointly convex. Levels
that a private choice has settled are an earlier, composed event. Keys are a uniformly random order
of as many numbers as there are published households, drawn after the counts by bits of their
own; the files are a function of the published counts of types and of that order. That is
post-processing, whatever m is. A type is published from r + k households on, X <= r, and every row
of either file, and every set of rows with one key, is of a published type.

It does not hold if the people of a household are dropped one by one (a threshold for each row of
the file of people would need a count of that row, and a key would then show the rest exactly), if
k counts people (a household of k equal people would be published alone), if keys follow the order
of the input or are those of the input (a function of more than the counts), or if the used people
depend on the scheme.

**Choice of levels.** A household raises the count of one type by one at every scheme, so a score
that sums, over types, a weight of the type times a ramp of its count has the sensitivity of one
row, whatever m is (:mod:`incrowd.anonymize.household_search`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Places
from incrowd.codes.frequency import Frequencies
from incrowd.codes.household_type import HouseholdTypes
from incrowd.privacy.randomness import Randomness, sample_permutation


@dataclass(frozen=True, eq=False)
class LinkedRows:
    """Published households and their people, in the order of the keys 1, 2, 3, ...

    ``households`` has for each key the tuple of one of its people, by which its own columns are
    known; ``people`` the tuple of each person, and ``keys`` the key of that person's household.
    """

    households: Places
    people: Places
    keys: Places


def link_households(types: HouseholdTypes, published: Frequencies, bits: Randomness) -> LinkedRows:
    """Give each published household a key at random, and return the rows of both tables.

    ``published`` has the numbers of types that are published, with their households. Households
    stand in the order of their keys, which is uniformly random; the people of one stand in the
    order of their tuples.
    """
    in_order = np.repeat(published.codes[:, 0].astype(np.int64), published.counts)
    of_keys = in_order[sample_permutation(len(in_order), bits)]
    return LinkedRows(
        households=types.first_members[of_keys],
        people=types.list_members(of_keys),
        keys=np.repeat(np.arange(1, len(of_keys) + 1), types.sizes[of_keys]),
    )
