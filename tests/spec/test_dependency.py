"""Declarations that columns are functions of others are read, and misnamed ones refused."""

from __future__ import annotations

import pytest

from incrowd.spec.dependency import ColumnDependencies
from incrowd.spec.file import parse_spec
from incrowd.spec.problem import SpecError

SPEC = """
columns:
  year: {role: drop}
  y81: {role: quasi, hierarchy: flat, function_of: SOURCES}
"""


def test_the_columns_that_determine_a_column_need_not_be_published() -> None:
    spec = parse_spec(SPEC.replace("SOURCES", "[year]")).spec
    dependencies = ColumnDependencies.from_columns(spec.columns)
    assert dependencies.sources == {"y81": ("year",)}
    assert dependencies.find_determined(("year", "y81")) == ["y81"]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ("[y81]", "column 'y81': `function_of` names the column itself"),
        ("[yaer]", "column 'y81': `function_of` names the column 'yaer', which has no entry"),
        ("year", "columns.y81.function_of: must be a list, got 'year'"),
    ],
)
def test_misnamed_sources_are_refused(sources: str, message: str) -> None:
    with pytest.raises(SpecError, match=message.replace("`", ".")):
        parse_spec(SPEC.replace("SOURCES", sources))
