"""What is changed in several columns at once: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from incrowd.errors import IncrowdError
from incrowd.spec.file import read_spec_file
from incrowd.studio.column_edits import apply_action, set_roles
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.workspace import Workspace


@pytest.fixture
def work(tmp_path: Path) -> OpenSpec:
    rows = "\n".join(f"p{at},{at % 60 + 20},{at % 40},{'mf'[at % 2]},{at % 3}" for at in range(300))
    (tmp_path / "people.csv").write_text(f"id,age,visits,sex,score\n{rows}\n")
    return Workspace(tmp_path).start_from_table("people.csv")


def entry(work: OpenSpec, name: str) -> object:
    return read_spec_file(work.path).spec.columns[name]


def test_several_roles_are_one_step(work: OpenSpec) -> None:
    before = work.file.text()
    set_roles(work, {"age": "drop", "visits": "sensitive"})
    columns = read_spec_file(work.path).spec.columns
    assert (columns["age"].role, columns["visits"].role) == ("drop", "sensitive")
    assert columns["age"].confirm == ()  # who chooses has confirmed it
    work.undo_change()
    assert work.file.text() == before


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"do": "role", "all_role": "nobody"}, "no role 'nobody'"),
        ({"do": "hierarchy", "hierarchy": "best"}, "Choose a hierarchy"),
        ({"do": "hierarchy", "hierarchy": "intervals", "low": "0"}, "largest public value"),
        ({"do": "hierarchy", "hierarchy": "flat"}, "Column 'id' has the role 'identifier'"),
        ({"do": "hierarchy", "hierarchy": "like", "like": "id"}, "Column 'id' has the role"),
        ({"do": "weight", "weight": "heavy"}, "'weight' must be a number above 0; got 'heavy'"),
        ({"do": "weight", "weight": "2"}, "Column 'id' has the role 'identifier'"),
        ({"do": "count"}, "Column 'id' has the role 'identifier': its values are not counted"),
        ({"do": "publish"}, "no action 'publish'"),
    ],
)
def test_what_one_column_refuses_changes_none(
    work: OpenSpec, form: Mapping[str, str], words: str
) -> None:
    before = work.path.read_text()
    with pytest.raises(IncrowdError, match=words):
        apply_action(work, ["age", "visits" if "low" in form else "id"], form)
    assert work.path.read_text() == before


def test_nothing_selected_is_said(work: OpenSpec) -> None:
    with pytest.raises(IncrowdError, match="Select one or more columns"):
        apply_action(work, [], {"do": "role", "all_role": "drop"})


def test_a_range_that_is_typed_is_confirmed_and_one_that_was_read_is_not(work: OpenSpec) -> None:
    typed = {"do": "hierarchy", "hierarchy": "intervals", "low": "0", "high": "119",
             "widths": "10 40"}  # fmt: skip
    apply_action(work, ["age", "visits"], typed)
    columns = read_spec_file(work.path).spec.columns
    for name in ("age", "visits"):
        intervals = columns[name].hierarchy.intervals  # type: ignore[union-attr]
        assert intervals is not None
        assert (intervals.low, intervals.high, intervals.widths) == (0, 119, (10, 40))
        assert "hierarchy" not in columns[name].confirm
    apply_action(work, ["visits"], {"do": "hierarchy", "hierarchy": "guess"})
    assert "hierarchy" in read_spec_file(work.path).spec.columns["visits"].confirm
    apply_action(work, ["age"], {"do": "hierarchy", "hierarchy": "like", "like": "visits"})
    columns = read_spec_file(work.path).spec.columns
    assert columns["age"].hierarchy == columns["visits"].hierarchy
    assert "hierarchy" in columns["age"].confirm  # what was read there was read here


def test_a_hierarchy_that_cannot_be_built_is_refused(work: OpenSpec) -> None:
    before = work.path.read_text()
    form = {"do": "hierarchy", "hierarchy": "intervals", "low": "9", "high": "0", "widths": "5"}
    with pytest.raises(IncrowdError, match="Swap them"):
        apply_action(work, ["age"], form)
    assert work.path.read_text() == before


def test_weights_with_a_decimal_comma(work: OpenSpec) -> None:
    apply_action(work, ["age", "visits"], {"do": "weight", "weight": "2,5"})
    columns = read_spec_file(work.path).spec.columns
    assert columns["age"].weight == columns["visits"].weight == 2.5
    apply_action(work, ["age"], {"do": "weight", "weight": ""})
    assert "weight" not in read_spec_file(work.path).text().partition("visits")[0]


def test_columns_are_counted_beside_the_rows_and_not(work: OpenSpec) -> None:
    apply_action(work, ["age", "visits"], {"do": "count"})
    columns = read_spec_file(work.path).spec.columns
    assert (columns["age"].rare, columns["visits"].rare) == ("keep", "keep")
    apply_action(work, ["age"], {"do": "count-not"})
    columns = read_spec_file(work.path).spec.columns
    assert (columns["age"].rare, columns["visits"].rare) == (None, "keep")


def test_only_what_tells_nothing_of_the_data_is_confirmed_together(work: OpenSpec) -> None:
    apply_action(work, list(work.file.spec.columns), {"do": "confirm"})
    left = {entry for column in work.file.spec.columns.values() for entry in column.confirm}
    assert left <= {"hierarchy", "other", "precision", "bounds"}
    assert "hierarchy" in left
