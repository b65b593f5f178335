"""A boolean means the same however it is written: in tables, drafts, specs, files and ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import run_successfully
from support.unjudged import publish_unjudged

from incrowd.codes.hierarchy import HierarchyError
from incrowd.codes.values import BLANKS, canonicalize_value
from incrowd.curate.check import check
from incrowd.engine.local.table import _canonicalize_text
from incrowd.engine.source import local_engine, open_table
from incrowd.privacy.randomness import SystemRandomness
from incrowd.release.verify import verify
from incrowd.spec.build import build_hierarchy
from incrowd.spec.file import parse_spec, read_spec_file
from incrowd.spec.model import Column

WRITTEN = {"True": ("True", "TRUE", "true", " True\t"), "False": ("False", "FALSE", "false")}


def test_every_usual_way_to_write_a_boolean_is_one_value() -> None:
    assert {canonicalize_value(text) for text in (True, np.True_, *WRITTEN["True"])} == {"true"}
    assert {canonicalize_value(text) for text in (False, np.False_, *WRITTEN["False"])} == {"false"}
    for text in ("tRUE", "T", "yes", "truE", "True.", "fALSE", "Trueish"):
        assert canonicalize_value(text) == text


AWKWARD = st.one_of(
    st.text(),
    st.text(alphabet="+-.0123456789 \x1c\x85\u2007"),
    st.text(alphabet="0123456789٣१.-+"),
    st.tuples(
        st.text(alphabet=BLANKS, max_size=3),
        st.sampled_from([*WRITTEN["True"], *WRITTEN["False"], "tRUE", "01", "-0.0", ".50", "٣"]),
        st.text(alphabet=BLANKS, max_size=3),
    ).map("".join),
)


@given(st.lists(AWKWARD, min_size=1))
def test_a_column_is_made_canonical_as_a_value_is(texts: list[str]) -> None:
    column = pl.DataFrame({"x": texts}, schema={"x": pl.String})
    result = column.select(_canonicalize_text(pl.col("x"))).to_series().to_list()
    assert result == [canonicalize_value(text) for text in texts]
    assert [canonicalize_value(text) for text in result] == result


def test_blanks_are_those_that_python_knows() -> None:
    assert set(BLANKS) == {chr(code) for code in range(0x110000) if chr(code).isspace()}


@pytest.mark.parametrize(
    "hierarchy",
    [
        {"flat": {"values": ["True", False]}},
        {"flat": {"values": [True, "false"]}},
        {"groups": {"Known": ["TRUE", "False"]}},
        {"groups": {"Known": [True, False]}},
        {"order": {"values": ["False", True]}},
        {"csv": "h.csv"},
        {"flat": {}},
    ],
)
def test_hierarchies_know_a_boolean_however_it_is_written(
    tmp_path: Path, hierarchy: dict[str, object]
) -> None:
    (tmp_path / "h.csv").write_text("TRUE;*\nFALSE;*\n")
    column = Column.model_validate({"role": "quasi", "hierarchy": hierarchy})
    met = [True, False, *WRITTEN["True"], *WRITTEN["False"], None]
    built = build_hierarchy(column, folder=tmp_path, values=met)
    assert set(built.values) == {"true", "false"}
    codes = built.encode(met)
    assert built.outside not in codes.tolist()
    assert len(set(codes.tolist())) == 3


def test_a_value_listed_in_two_capitalisations_is_listed_twice() -> None:
    declared = {"role": "quasi", "hierarchy": {"flat": {"values": ["True", "true"]}}}
    with pytest.raises(HierarchyError, match="both list the value 'true'"):
        build_hierarchy(Column.model_validate(declared), folder=Path())


def test_an_id_that_is_a_boolean_is_one_person() -> None:
    texts = [*WRITTEN["True"], *WRITTEN["False"], "tRUE"]
    table = local_engine().from_columns({"id": texts, "x": texts})
    assert table.choose_row_per_person("id", SystemRandomness()).rows() == 3


def test_one_draft_publishes_csv_parquet_and_pandas_alike(tmp_path: Path) -> None:
    """The journey of a curator whose CSV says True where the database says true."""
    smokes = [number % 3 == 0 for number in range(600)]
    insured = [number % 2 == 0 for number in range(600)]
    pd.DataFrame({"smokes": smokes, "insured": insured}).to_csv(tmp_path / "t.csv", index=False)
    assert "True" in (tmp_path / "t.csv").read_text()
    frame = pl.DataFrame({"smokes": smokes, "insured": insured})
    frame.write_parquet(tmp_path / "t.parquet")
    run_successfully("init", str(tmp_path / "t.csv"), "-o", str(tmp_path / "spec.yaml"))
    text = (tmp_path / "spec.yaml").read_text()
    assert text.count('flat: {values: ["false", "true"]}') == 2
    confirmed = text.replace(", confirm: [role]", "").replace("confirm: [unit]", "")
    confirmed = confirmed.split("release:")[0]
    confirmed += "release: {method: k-anonymity, k: 5, format: csv}\n"
    (tmp_path / "spec.yaml").write_text(confirmed)
    files = []
    for name, table in {
        "csv": tmp_path / "t.csv",
        "parquet": tmp_path / "t.parquet",
        "pandas": pd.DataFrame({"smokes": smokes, "insured": insured}),
        "polars": frame,
        "words": pd.DataFrame({"smokes": map(str, smokes), "insured": insured}),
        "shouted": frame.select(pl.all().cast(pl.String).str.to_uppercase()),
    }.items():
        file = read_spec_file(tmp_path / "spec.yaml")
        result = check(open_table(table), file)
        assert all(item.severity == "note" and item.topic == "forecast" for item in result)
        release = publish_unjudged(table, file, output=tmp_path / name)
        assert verify(tmp_path / name) == []
        files.append((tmp_path / name / "data.csv").read_bytes())
        assert set(release.data["smokes"]) == {"true", "false"}
    assert len(set(files)) == 1
    assert files[0].count(b"true") == 500


def test_a_boolean_in_a_spec_meets_one_in_text() -> None:
    file = parse_spec("columns: {x: {role: quasi, hierarchy: {flat: {values: [true, false]}}}}")
    for values in (["True", "False"], [True, False], ["TRUE", "false"]):
        assert check(local_engine().from_columns({"x": values}), file) == []
