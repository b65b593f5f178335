"""A table that does not fit its spec: every finding for a check, the first error for a release."""

from __future__ import annotations

import polars as pl
import pytest

import incrowd as ic
from incrowd.engine.source import open_table
from incrowd.engine.table import TableError
from incrowd.methods.table_fit import (
    UnfitTableError,
    find_missing_ids,
    find_unmatched_columns,
    refuse_unfit_table,
)
from incrowd.spec.file import load_spec
from incrowd.spec.model import Spec


def make_spec(names: dict[str, str], unit: object = "one row per person") -> Spec:
    sex = {"role": "quasi", "hierarchy": {"flat": {"values": ["f", "m"]}}}
    columns = {"sex": sex, **{name: {"role": role} for name, role in names.items()}}
    release: dict[str, object] = {"method": "k-anonymity", "k": 2}
    if "key" in names.values():
        release = {"method": "synthetic", "epsilon": 1.0, "delta": 1e-6}
    return load_spec({"unit": unit, "columns": columns, "release": release}).spec


def test_every_column_that_does_not_match_is_found() -> None:
    spec = make_spec({"age": "drop", "name": "identifier", "number": "key"})
    table = open_table(pl.DataFrame({"sexx": ["f"], "sex": ["f"], "other": [1]}))
    entries = [(finding.code, finding.column) for finding in find_unmatched_columns(spec, table)]
    assert entries == [
        ("COLUMN_NOT_DECLARED", "sexx"),
        ("COLUMN_NOT_DECLARED", "other"),
        ("DROPPED_COLUMN_NOT_IN_TABLE", "age"),
        ("COLUMN_NOT_IN_TABLE", "name"),
    ]
    assert next(find_unmatched_columns(spec, table)).values["near"] == "sex"


def test_a_release_is_refused_with_the_finding_of_the_check() -> None:
    for names, data, code in (
        ({}, {"sex": ["f"], "other": [1]}, "COLUMN_NOT_DECLARED"),
        ({"name": "identifier"}, {"sex": ["f"]}, "COLUMN_NOT_IN_TABLE"),
    ):
        spec, table = make_spec(names), pl.DataFrame(data)
        first = next(find_unmatched_columns(spec, open_table(table)))
        with pytest.raises(UnfitTableError) as refused:
            refuse_unfit_table(spec, open_table(table))
        assert (refused.value.finding, first.code) == (first, code)
        assert isinstance(refused.value, TableError)
        with pytest.raises(ic.IncrowdError) as published:
            ic.publish(table, spec.model_dump(exclude_unset=True))
        assert str(published.value) == str(first)


def test_columns_that_a_release_does_not_need_may_be_missing() -> None:
    spec = make_spec({"age": "drop", "number": "key"})
    refuse_unfit_table(spec, open_table(pl.DataFrame({"sex": ["f"]})))


def test_rows_without_an_id_are_refused_unless_they_are_dropped() -> None:
    table = open_table(pl.DataFrame({"sex": ["f", "m"], "who": ["a", None]}))
    spec = make_spec({"who": "identifier"}, {"id": "who"})
    (finding,) = find_missing_ids(spec, table)
    assert (finding.code, finding.values["rows"]) == ("ROWS_WITHOUT_ID", 1)
    with pytest.raises(UnfitTableError) as refused:
        refuse_unfit_table(spec, table)
    assert refused.value.finding == finding
    refuse_unfit_table(make_spec({"who": "identifier"}, {"id": "who", "without_id": "drop"}), table)
