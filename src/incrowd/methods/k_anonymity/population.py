"""k that counts people of a population: how many rows of a sample a class then needs."""

from __future__ import annotations

from copy import copy

from incrowd.errors import IncrowdError
from incrowd.measure.k_map import derive_sample_threshold
from incrowd.methods.k_anonymity.classes import KAnonymityColumns


def scale_to_population(columns: KAnonymityColumns, total: int) -> KAnonymityColumns:
    """Return the columns of a sample of so many rows, where k counts people of a population.

    Classes then need as many rows as stand for k people; see :mod:`incrowd.measure.k_map`, which
    has the claim. Without a population the columns are returned as they are.
    """
    population = getattr(columns.release, "population", None)
    if population is None:
        return columns
    if population < total:
        raise IncrowdError(
            f"Table: {total:,} rows, more than `population: {population}`. Correct the number."
        )
    scaled = copy(columns)
    scaled.k = derive_sample_threshold(columns.k, total / max(population, 1))
    scaled.release = columns.release.model_copy(update={"k": scaled.k})
    scaled.population = (columns.k, population)
    return scaled
