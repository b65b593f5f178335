"""The tree of a hierarchy: every value once, counts that add up, large domains folded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from support.cli import run_successfully

from incrowd.curate.hierarchy_preview import TreeNode, build_tree
from incrowd.engine.source import local_engine
from incrowd.spec.file import parse_spec, read_spec_file

SPEC = """\
table: t.csv
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 9, widths: [2, 4]}}}
  town: {role: quasi, hierarchy: {groups: {North: [Oslo, Ulm], South: [Rome]}}}
  zip: {role: quasi, hierarchy: {mask: {length: 3}}}
  ill: {role: quasi, hierarchy: icd}
"""
TABLE = local_engine().from_columns(
    {
        "age": [0, 1, 1, 9, 50, None],
        "town": ["Oslo", "Oslo", "Ulm", "Rome", "Bonn", None],
        "zip": ["123", "124", "124", "555", "55", "123"],
        "ill": ["A00", "A01", "B20", "C50", "Z99", "A00"],
    }
)


def nodes(top: tuple[TreeNode, ...]) -> Iterator[TreeNode]:
    for node in top:
        yield node
        yield from nodes(node.members)


def test_counts_add_up_at_every_level() -> None:
    got = build_tree(parse_spec(SPEC), "town", with_counts=True, table=TABLE)
    (root,) = got.top
    assert (root.label, root.values, root.rows) == ("*", 3, 4)
    assert [(member.label, member.rows) for member in root.members] == [("North", 3), ("South", 1)]
    assert [(member.label, member.rows) for member in root.members[0].members] == [
        ("Oslo", 2),
        ("Ulm", 1),
    ]
    assert (got.nulls, got.outside) == (1, 1)
    assert [(level.groups, level.held, level.smallest) for level in got.levels] == [
        (3, 3, 1), (2, 2, 1), (1, 1, 4),
    ]  # fmt: skip


def test_groups_without_rows_are_no_smallest_ones() -> None:
    got = build_tree(parse_spec(SPEC), "age", with_counts=True, table=TABLE)
    assert [(level.groups, level.held, level.smallest) for level in got.levels] == [
        (10, 3, 1), (5, 2, 1), (3, 2, 1), (1, 1, 4),
    ]  # fmt: skip
    assert len(list(nodes(got.top))) == 1 + 3 + 5 + 10


def test_a_large_domain_is_folded_and_nothing_is_lost() -> None:
    got = build_tree(parse_spec(SPEC), "ill", with_counts=False)
    tree_nodes = list(nodes(got.top))
    assert 100 < len(tree_nodes) <= 200
    assert any(not item.members and not item.more for item in tree_nodes), "no value is shown"
    for first in tree_nodes:
        if first.members or first.more:
            inside = sum(member.values for member in first.members)
            assert (inside == first.values) == (first.more == 0)
    assert got.values == got.top[0].values == got.levels[0].groups


def test_an_open_domain_shows_its_rule_and_reads_nothing() -> None:
    file = parse_spec(SPEC)  # its table does not exist
    got = build_tree(file, "zip", with_counts=False)
    assert (got.top, got.values) == ((), None)
    assert [level.words for level in got.levels] == [
        "unchanged", "first 2 of 3 characters", "first 1 of 3 characters", "suppressed",
    ]  # fmt: skip
    met = build_tree(file, "zip", with_counts=True, table=TABLE)
    assert met.values == 3
    assert met.outside == 1
    assert met.top[0].rows == 5


def test_the_command_prints_the_tree(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    TABLE.write(tmp_path / "t.csv")
    successfully = run_successfully("hierarchy", "tree", str(spec), "town", "--counts")
    assert "Level 1  2 groups (North, South): 2 groups, the smallest of 1 rows" in successfully
    assert "  North  3 rows" in successfully
    assert "1 rows lie outside the domain" in successfully
    assert "rows" not in run_successfully("hierarchy", "tree", str(spec), "town")
    folded = run_successfully("hierarchy", "tree", str(spec), "ill", "--limit", "30")
    assert "more" in folded
    assert read_spec_file(spec).spec.columns["ill"].hierarchy is not None
