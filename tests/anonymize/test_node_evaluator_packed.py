"""Nodes in whole numbers are compared as level by level."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.anonymize.node_evaluator import PackedNodes


@settings(max_examples=40)
@given(st.data())
def test_compared_as_level_by_level(data: st.DataObject) -> None:
    """Columns fill one word exactly, or several; levels are at their ends more often than not."""
    highest = data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 7, 8, 127, 65535]), max_size=24))
    level = [st.sampled_from([0, top, top // 2]) for top in highest]
    nodes = data.draw(st.lists(st.tuples(*level), max_size=20))
    request = data.draw(st.tuples(*level))
    packed = PackedNodes(highest)
    for number, node in enumerate(nodes):
        packed.add(node, float(number))
    coarser = [all(a >= b for a, b in zip(node, request, strict=True)) for node in nodes]
    finer = [all(a <= b for a, b in zip(node, request, strict=True)) for node in nodes]
    assert packed.has_coarser(request) == any(coarser)
    assert packed.find_least_finer(request) == (float(finer.index(True)) if any(finer) else None)


def test_a_word_that_is_filled_to_its_last_bit() -> None:
    packed = PackedNodes([1] * 32)
    packed.add((1,) * 32, 2.5)
    assert packed.has_coarser((1,) * 32)
    assert packed.find_least_finer((1,) * 32) == 2.5
    for at in range(32):
        node = tuple(int(other != at) for other in range(32))
        assert packed.has_coarser(node)
        assert packed.find_least_finer(node) is None
