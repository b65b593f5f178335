"""The ways in which the rows of a person can lie in groups: partitions of their number."""

from __future__ import annotations

from collections.abc import Iterator


def list_partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write a number as a sum of numbers up to ``largest``, which fall.

    >>> list(list_partitions(4, 2))
    [(2, 2), (2, 1, 1), (1, 1, 1, 1)]
    """
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in list_partitions(total - first, first):
            yield (first, *rest)


def count_partitions(total: int, largest: int) -> int:
    """Return how many partitions there are, without listing them.

    >>> count_partitions(11, 11), count_partitions(1000, 2)
    (56, 501)
    """
    ways = [1] + [0] * total
    for part in range(1, min(largest, total) + 1):
        for at in range(part, total + 1):
            ways[at] += ways[at - part]
    return ways[total]
