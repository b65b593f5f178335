"""Columns that are functions of others are proposed to be dropped, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from incrowd.curate.confirm_answers import ColumnChange, ColumnChanger
from incrowd.curate.draft.draft import draft
from incrowd.curate.question_group import confirm_group, group_questions
from incrowd.engine.source import open_table
from incrowd.spec.file import parse_spec

DRAW = np.random.default_rng(5)
ROWS = 2_000
AGE = DRAW.integers(18, 80, ROWS)
WOMEN, MEN = DRAW.integers(0, 30, ROWS), DRAW.integers(0, 40, ROWS)
YEAR = DRAW.integers(2001, 2005, ROWS)
TOWN = DRAW.choice(["Bonn", "Rome", "Oslo", "Ulm"], ROWS)


def find_drops(**columns: Any) -> dict[str, str]:
    drafted = draft(pl.DataFrame(columns))
    dropped = [guess for guess in drafted.guesses if guess.role == "drop"]
    columns = parse_spec(drafted.yaml()).spec.columns
    assert all(columns[guess.column].confirm == ("role",) for guess in dropped)
    assert all(columns[guess.column].hierarchy is None for guess in dropped)
    return {guess.column: guess.reason for guess in dropped}


def test_powers_recodings_dummies_sums_and_products_go() -> None:
    drops = find_drops(
        age=AGE, age_squared=AGE**2, year=YEAR, y2003=(YEAR == 2003).astype(int), women=WOMEN,
        men=MEN, all=WOMEN + MEN, both=WOMEN * MEN,
        town=TOWN, town_code=np.char.str_len(TOWN) * 0 + np.unique(TOWN, return_inverse=True)[1],
        over_50=(AGE > 50).astype(int),
    )  # fmt: skip
    assert drops == {
        "age_squared": "each value belongs to one of 'age', in every row looked at",
        "y2003": "follows from 'year', in every row looked at",
        "all": "'women' + 'men', in every row looked at",
        "both": "'women' × 'men', in every row looked at",
        "town_code": "each value belongs to one of 'town', in every row looked at",
        "over_50": "follows from 'age', in every row looked at",
    }


def test_the_source_stays_wherever_it_stands() -> None:
    """The dummy stands first, and the square: what they follow from stays."""
    drops = find_drops(y2003=(YEAR == 2003).astype(int), squared=AGE**2, year=YEAR, age=AGE)
    assert set(drops) == {"y2003", "squared"}


def test_what_is_nearly_a_function_stays() -> None:
    """One row of 2,000 differs."""
    almost = AGE**2
    almost[7] = (20 if AGE[7] != 20 else 21) ** 2
    total = WOMEN + MEN
    total[9] -= 1
    dummy = (YEAR == 2003).astype(int)
    dummy[3] = 1 - dummy[3]
    assert find_drops(age=AGE, sq=almost, women=WOMEN, men=MEN, all=total, year=YEAR, d=dummy) == {}


def test_chance_is_no_reason() -> None:
    """A rare dummy, and amounts that hardly repeat, of which everything is a function."""
    rare = np.zeros(ROWS, dtype=int)
    rare[:3] = 1
    wage = np.round(DRAW.normal(2000, 300, ROWS), 2)
    assert find_drops(age=AGE, rare=rare, wage=wage, smoker=DRAW.integers(0, 2, ROWS)) == {}


def test_what_may_be_sensitive_and_coarser_texts_stay() -> None:
    country = np.where(np.isin(TOWN, ["Bonn", "Ulm"]), "Germany", "elsewhere")
    drops = find_drops(town=TOWN, country=country + "!", age=AGE, disease=(AGE > 50).astype(int))
    assert "disease" not in drops


def test_nulls_are_unknown() -> None:
    total = [None if at % 7 == 0 else int(x) for at, x in enumerate(WOMEN + MEN)]
    assert set(find_drops(women=WOMEN, men=MEN, all=total)) == {"all"}


def test_a_dropped_function_that_is_kept_after_all_says_of_what_and_is_asked() -> None:
    columns = {"year": YEAR, "y2003": (YEAR == 2003).astype(int), "town": TOWN}
    table = open_table(pl.DataFrame(columns))
    file = parse_spec(draft(table).yaml())
    assert file.spec.columns["y2003"].function_of == ()
    changer = ColumnChanger(file, table)
    changer.change("y2003", ColumnChange(role="quasi"))
    column = changer.file.spec.columns["y2003"]
    assert column.function_of == ("year",)
    assert "function_of" in column.confirm
    (group,) = [group for group in group_questions(changer.file, table) if "function" in group.kind]
    assert group.columns == ("y2003",)
    assert "public knowledge" in group.why
    confirmed = confirm_group(changer.file, group)
    assert "function_of" not in confirmed.spec.columns["y2003"].confirm
    assert confirmed.spec.columns["y2003"].function_of == ("year",)
    changer.change("y2003", ColumnChange(role="drop"))  # what nobody has confirmed goes again
    assert changer.file.spec.columns["y2003"].function_of == ()
    changer = ColumnChanger(confirmed, table)
    changer.change("y2003", ColumnChange(role="sensitive"))  # what is confirmed stays
    assert changer.file.spec.columns["y2003"].function_of == ("year",)


def test_a_function_that_is_sensitive_stays_and_is_declared() -> None:
    income = WOMEN * 1000
    file = parse_spec(draft(pl.DataFrame({"grade": WOMEN, "income": income, "age": AGE})).yaml())
    assert file.spec.columns["income"].role == "sensitive"
    assert file.spec.columns["income"].function_of == ("grade",)
    assert "function_of" in file.spec.columns["income"].confirm
