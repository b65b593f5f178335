"""A release that was made: whether it shows hardly anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.sliced import DECLARED, LEVELS, made_people, released

from incrowd.release.release import describe_emptiness

pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize(("shown", "said"), [(1, True), (2, False), (40, False)])
def test_slices_that_keep_few_pairs_are_nearly_empty(
    tmp_path: Path, shown: int, said: bool
) -> None:
    """The bound is 5 % of the pairs of columns: two of forty are enough."""
    release = released(made_people(), tmp_path / "out", f"{DECLARED}, {LEVELS}")
    one = release.evaluation.associations[0]
    pairs = [replace(one, slice=0 if at < shown else None) for at in range(40)]
    found = replace(release.evaluation, associations=tuple(pairs))
    words = describe_emptiness(release.certificate, found)
    assert bool(words) is said
    assert not said or f"{shown} of 40 pairs of columns" in words
