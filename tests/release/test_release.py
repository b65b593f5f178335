"""A release that was made: whether it shows hardly anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.slice_tables import DECLARED, LEVELS, make_sliced_people, publish_slices

from incrowd.publication import publish
from incrowd.release.release import find_emptiness


@pytest.mark.parametrize(("pairs_shown", "expected"), [(1, True), (2, False), (40, False)])
def test_slices_that_keep_few_pairs_are_nearly_empty(
    tmp_path: Path, pairs_shown: int, expected: bool
) -> None:
    """The bound is 5 % of the pairs of columns: two of forty are enough."""
    release = publish_slices(
        make_sliced_people(), tmp_path / "out", f"{DECLARED}, {LEVELS}", by=publish
    )
    associations = release.evaluation.associations[0]
    pairs = [replace(associations, slice=0 if at < pairs_shown else None) for at in range(40)]
    result = replace(release.evaluation, associations=tuple(pairs))
    listed = find_emptiness(release.certificate, result)
    assert bool(listed) is expected
    for finding in listed:
        assert finding.code == "RELEASE_NEARLY_EMPTY"
        assert f"{pairs_shown} of 40 pairs of columns" in finding.message
