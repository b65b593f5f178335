"""Ladders of a chosen kind: each is one, and is to be confirmed where it was read."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from incrowd.curate.draft.draft import draft
from incrowd.curate.draft.hierarchy_kind import MOST_LISTED, propose_hierarchy
from incrowd.engine.source import local_engine
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.spec.build import build_hierarchy
from incrowd.spec.hierarchies import list_kinds
from incrowd.spec.model import Column

TABLE = local_engine().from_columns(
    {
        "age": [20 + i % 30 for i in range(60)],
        "word": [f"w{i % 7}" for i in range(60)],
        "day": ["2021-03-04", "2022-01-02", "2021-12-31"] * 20,
        "none": [None] * 60,
        "odd": ['a"b', "yes", "39", ": {", "ü\n"] * 12,
    }
)
READ = {"intervals": {"age"}, "dates": {"day"}}


def built(table: Table, kind: str, name: str) -> tuple[Column, bool]:
    hierarchy = propose_hierarchy(kind, name, table)
    declared = YAML(typ="safe").load(hierarchy.hierarchy)
    column = Column.model_validate({"role": "quasi", "hierarchy": declared})
    build_hierarchy(column, folder=Path(), values=table.values(name))
    return column, hierarchy.read


@pytest.mark.parametrize("kind", sorted(set(list_kinds()) - {"csv", "geo"}))
@pytest.mark.parametrize("name", ["age", "word", "day", "odd"])
def test_every_kind_has_a_ladder_for_every_column(kind: str, name: str) -> None:
    column, read = built(TABLE, kind, name)
    assert column.hierarchy is not None
    assert getattr(column.hierarchy, kind) is not None
    if kind in ("order", "groups", "flat", "mask"):
        assert read
    elif kind in READ:
        assert read or name not in READ[kind]
    else:
        assert not read


def test_values_that_are_listed_are_those_of_the_column() -> None:
    column, _ = built(TABLE, "flat", "odd")
    assert column.hierarchy is not None
    hierarchy = build_hierarchy(column, folder=Path())
    assert not (hierarchy.encode(TABLE.values("odd")) == hierarchy.outside).any()


def test_what_was_guessed_comes_first() -> None:
    guesses = {guess.column: guess for guess in draft(TABLE).guesses}
    hierarchy = propose_hierarchy("intervals", "age", TABLE, guesses["age"])
    assert hierarchy.hierarchy == guesses["age"].hierarchy
    assert not hierarchy.read  # ages are public knowledge
    assert propose_hierarchy("order", "age", TABLE, guesses["age"]).read


def test_too_many_values_or_none_are_not_listed() -> None:
    many = local_engine().from_columns({"x": [f"v{i}" for i in range(MOST_LISTED + 1)]})
    with pytest.raises(
        IncrowdError, match="Import a CSV hierarchy, or choose a hierarchy by a rule"
    ):
        propose_hierarchy("groups", "x", many)
    assert propose_hierarchy("flat", "x", many).hierarchy == "flat"
    with pytest.raises(IncrowdError, match="Choose a hierarchy by a rule"):
        propose_hierarchy("order", "none", TABLE)
    with pytest.raises(IncrowdError, match="A CSV hierarchy needs a file"):
        propose_hierarchy("csv", "x", many)
    with pytest.raises(IncrowdError, match="Unknown kind of hierarchy '"):
        propose_hierarchy("magic", "x", many)


def test_a_mask_is_as_long_as_most_values() -> None:
    codes = [*(f"{at:05}" for at in range(60)), "unbekannt"]
    table = local_engine().from_columns({"plz": codes})
    assert propose_hierarchy("mask", "plz", table, None).hierarchy == "{mask: {length: 5}}"
