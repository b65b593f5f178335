"""Tables as R, pandas, Stata and Arrow write them, and the few odd values that real ones hold."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from support.drafts import (
    draft_column,
    find_outside_values,
    get_hierarchy_kind,
    get_intervals,
    parse_guess,
)

from incrowd.curate.check import check
from incrowd.curate.draft.draft import draft
from incrowd.curate.draft.guess import guess_column
from incrowd.engine.source import open_spec_table, open_table
from incrowd.spec.file import parse_spec, read_spec_file
from incrowd.spec.hierarchies import Order
from incrowd.spec.model import Column

LEVELS = ["never", "a little", "much", "very much", "extremely"]


# Numbers -----------------------------------------------------------------------------------------


def test_numbers_as_r_writes_them(tmp_path: Path) -> None:
    """R writes 100000 as 1e+05; read as a number, it lies in the domain."""
    draw = random.Random(1)
    texts = ["1e+05" if at % 50 == 0 else str(draw.randrange(1000, 90000)) for at in range(2000)]
    (tmp_path / "t.csv").write_text("income\n" + "\n".join(texts) + "\n")
    (tmp_path / "spec.yaml").write_text(draft(tmp_path / "t.csv", name="t.csv").yaml())
    file = read_spec_file(tmp_path / "spec.yaml")
    column = file.spec.columns["income"]
    assert get_hierarchy_kind(column) == "intervals"
    assert column.written is not None
    assert "written" in column.confirm
    assert "100000" in {str(value) for value in open_spec_table(file).values("income")}
    assert not [item for item in check(None, file) if "OUTSIDE_DOMAIN" in item.code]


@pytest.mark.parametrize("small", ["1e-07", "1E-7", "-2.5e-03"])
def test_one_small_number_does_not_drop_a_column(small: str) -> None:
    guess = guess_column("dose", [small, *(f"{at / 8:.2f}" for at in range(1, 800))], 5000)
    assert guess.role == "quasi"
    column = parse_guess(guess)
    assert get_intervals(column).step >= Decimal("0.0001")


def test_codes_with_an_e_are_no_numbers() -> None:
    codes = [f"{at}E{at % 7}" for at in range(100, 160)]
    assert guess_column("ward", codes, 5000).written is None


@pytest.mark.parametrize("odd", [138, 999, -1])
def test_one_odd_age_does_not_remove_the_oldest_group(odd: int) -> None:
    declared = get_intervals(draft_column("age", [*range(96), odd], times=20))
    assert (int(declared.low), int(declared.high), declared.open) == (0, 89, "upper")


def test_many_odd_ages_are_no_ages() -> None:
    assert get_intervals(draft_column("age", range(0, 600, 3), times=20)).open == "none"


@pytest.mark.parametrize("top", [299.9, 98.76, 0.93, 12345.6])
def test_bounds_are_round(top: float) -> None:
    draw = random.Random(2)
    values = [draw.random() * top for _ in range(3000)]
    column = draft_column("dur", values)
    declared = get_intervals(column)
    guess = guess_column("dur", values, len(values))
    assert re.search(r"to: -?\d+(\.\d{1,5})?,", guess.hierarchy or ""), guess.hierarchy
    assert declared.high % declared.step == 0
    assert not find_outside_values(column, values)


def test_bounds_of_amounts_and_degrees_are_round() -> None:
    draw = random.Random(3)
    amounts = [10 ** (6 * draw.random()) for _ in range(2000)]
    for name, values in (("cost", amounts), ("lat", [47 + draw.random() for _ in range(500)])):
        column = draft_column(name, values)
        guess = guess_column(name, values, len(values))
        assert re.search(r"to: -?\d+(\.\d{1,5})?,", guess.hierarchy or ""), guess.hierarchy
        assert not find_outside_values(column, values)


# Names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["hiv_status", "diag", "result", "test_result", "HIVStatus", "diag1", "lab_results"]
)
def test_what_must_not_be_learned_is_sensitive(name: str) -> None:
    assert guess_column(name, ["pos", "neg", "unclear"], 300).role == "sensitive"


@pytest.mark.parametrize(
    "name", ["clinic_name", "HospitalName", "name_of_school", "drug_name", "city_name", "file_name"]
)
def test_names_of_places_and_things_identify_nobody(name: str) -> None:
    places = ["North Clinic", "East Clinic", "St Mary", "St John"]
    assert guess_column(name, places, 300).role == "quasi"


@pytest.mark.parametrize("name", ["patient_name", "name", "last_name", "doctor_name"])
def test_names_of_people_identify(name: str) -> None:
    assert guess_column(name, ["Ann Ek", "Bo Ro", "Cy Li", "Di Wu"], 300).role == "identifier"


@pytest.mark.parametrize("name", ["Unnamed: 0", "Unnamed: 0.1", "...1", "rownames", "X"])
def test_an_index_with_gaps_is_a_row_number(name: str) -> None:
    """Rows were left out after pandas or R had numbered them."""
    numbers = [at for at in range(3000) if at % 7]
    guess = guess_column(name, numbers, len(numbers))
    assert (guess.role, guess.reason) == ("drop", "row numbers")


# Order -------------------------------------------------------------------------------------------


def order_of(column: Column) -> tuple[str, ...]:
    assert column.hierarchy is not None
    assert isinstance(column.hierarchy.declaration, Order)
    return column.hierarchy.declaration.values


def answers(rows: int = 400, seed: int = 4) -> list[str]:
    draw = random.Random(seed)
    return [draw.choice(LEVELS) for _ in range(rows)]


@pytest.mark.parametrize("suffix", [".arrow", ".parquet", "in memory", "pandas", "enum"])
def test_ordered_categories_of_arrow_keep_their_order(tmp_path: Path, suffix: str) -> None:
    ordered = pd.Categorical(answers(), categories=LEVELS, ordered=True)
    frame = pd.DataFrame({"pain": ordered, "note": pd.Categorical(answers(seed=5))})
    table = pa.Table.from_pandas(frame)
    path = tmp_path / f"t{suffix}"
    if suffix == ".arrow":
        pyarrow.feather.write_feather(table, path, compression="uncompressed")
    elif suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    enum = pl.DataFrame(
        {"pain": pl.Series(answers(), dtype=pl.Enum(LEVELS)), "note": pl.Series(answers(seed=5))}
    )
    sources = {"in memory": table, "pandas": frame, "enum": enum}
    file = parse_spec(draft(open_table(sources.get(suffix, path)), name="t").yaml())
    assert order_of(file.spec.columns["pain"]) == tuple(LEVELS)
    assert get_hierarchy_kind(file.spec.columns["note"]) == "flat"


def test_labels_of_stata_keep_the_order_of_their_codes(tmp_path: Path) -> None:
    frame = pd.DataFrame({"pain": pd.Categorical(answers(), categories=LEVELS, ordered=True)})
    frame.to_stata(tmp_path / "t.dta", write_index=False)
    file = parse_spec(draft(open_table(tmp_path / "t.dta"), name="t.dta").yaml())
    assert order_of(file.spec.columns["pain"]) == tuple(LEVELS)
