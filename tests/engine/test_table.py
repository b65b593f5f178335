"""What every engine must do, whatever it is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tuples import count_table_rows, make_coder

from incrowd.codes.frequency import map_levels
from incrowd.codes.values import canonicalize_value
from incrowd.engine.count import count_tuples
from incrowd.engine.table import Coded, Engine, Table, TableError
from incrowd.privacy.randomness import SeededRandomness, SystemRandomness
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.model import Column

MakeTable = Callable[[Mapping[str, Sequence[object]]], Table]

PEOPLE: dict[str, Sequence[object]] = {
    "zip": ["32001", "32002", "32001", None, "99999", "32001"],
    "age": [39, 41, 39, 39, None, 120],
    "score": [1.5, float("nan"), 1.5, 2.0, None, 1.5],
}
COLUMNS = {
    "zip": Column.model_validate({"role": "quasi", "hierarchy": {"mask": {"length": 5}}}),
    "age": Column.model_validate(
        {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [10, 50]}}}
    ),
}


def test_tallies_count_every_row_and_null_is_a_value(make_table: MakeTable) -> None:
    table = make_table(PEOPLE)
    assert table.columns == ("zip", "age", "score")
    assert table.rows() == 6
    assert count_table_rows(table) == {
        ("32001", 39, 1.5): 2,
        ("32002", 41, None): 1,
        (None, 39, 2.0): 1,
        ("99999", None, None): 1,
        ("32001", 120, 1.5): 1,
    }
    assert set(table.values("score")) == {1.5, 2.0, None}
    assert table.head(2).rows() == 2


def test_counting_codes_equals_counting_values(make_table: MakeTable) -> None:
    counted_table = count_tuples(make_table(PEOPLE), ColumnHierarchies(COLUMNS))
    assert counted_table.frequencies.total == 6
    assert len(counted_table.frequencies) == 5
    labels = [
        tuple(h.labels[0][code] for h, code in zip(counted_table.hierarchies, row, strict=True))
        for row in counted_table.frequencies.codes.tolist()
    ]
    # 120 lies outside 0 to 99 and is shown as the root; null stays null.
    assert dict(zip(labels, counted_table.frequencies.counts.tolist(), strict=True)) == {
        ("32001", "39"): 2,
        ("32002", "41"): 1,
        (None, "39"): 1,
        ("99999", None): 1,
        ("32001", "*"): 1,
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(data=st.data())
def test_counting_at_levels_equals_counting_then_rolling_up(
    make_table: MakeTable, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, 60))
    ages = data.draw(st.lists(st.one_of(st.none(), st.integers(-5, 110)), min_size=n, max_size=n))
    digits = st.text("0123", min_size=5, max_size=5)
    zips = data.draw(st.lists(st.one_of(st.none(), digits), min_size=n, max_size=n))
    table = make_table({"zip": ["00000", *zips], "age": [1, *ages]})
    base = count_tuples(table, ColumnHierarchies(COLUMNS))
    levels = [data.draw(st.integers(0, h.height - 1)) for h in base.hierarchies]

    rolled = base.frequencies.roll_up(map_levels(base.hierarchies, [0, 0], levels))
    direct = count_tuples(table, ColumnHierarchies(COLUMNS), levels=levels).frequencies
    assert np.array_equal(rolled.codes, direct.codes)
    assert np.array_equal(rolled.counts, direct.counts)


def test_what_is_met_is_what_is_counted(make_table: MakeTable) -> None:
    """Values that Python would change are made plain first, or rows would multiply or vanish."""
    moment = np.datetime64("2020-01-01T00:00:00.000000001", "ns")
    short = np.array([0.1, 0.7, 0.9], dtype=np.float32)
    times = np.array([moment, moment + 1, moment + 2000])
    table = make_table({"t": times, "x": short})  # type: ignore[dict-item]
    assert sorted(str(x) for x in table.values("x")) == ["0.1", "0.7", "0.9"]
    for name, counts in (("t", [1, 2]), ("x", [1, 1, 1])):
        result = table.count([name], {name: make_coder(table.values(name))})
        assert sorted(result.counts.tolist()) == counts
    assert sum(count_table_rows(table).values()) == 3


def test_an_id_is_one_person_however_it_is_written(make_table: MakeTable) -> None:
    texts = ["39", "39 ", "39.0", "+39", "039", ".5", "0.50", "-0", "0", "", None, "Ann", " Ann"]
    table = make_table({"id": texts, "x": list("abcdefghijklm")})
    people = {canonicalize_value(text) for text in texts} - {None}
    assert table.choose_row_per_person("id", SystemRandomness()).rows() == len(people) == 5
    assert (table.count_people("id"), table.count_distinct(["id"])) == (5, len(set(texts)))


def test_labels_that_coincide_keep_their_parents(make_table: MakeTable) -> None:
    """'other' may be called like a group, and a value '*': rolled up or counted directly."""
    column = Column.model_validate(
        {
            "role": "quasi",
            "hierarchy": {"groups": {"AA": {"A": ["x", "y"]}, "BB": {"B": ["z", "*"]}}},
            "other": "A",
        }
    )
    table = make_table({"c": ["x", "y", "z", "q", "*", None]})
    for low, high in ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3)):
        base = count_tuples(table, ColumnHierarchies({"c": column}), levels=[low])
        direct = count_tuples(table, ColumnHierarchies({"c": column}), levels=[high]).frequencies
        rolled = base.frequencies.roll_up(map_levels(base.hierarchies, [low], [high]))
        assert rolled.codes.tolist() == direct.codes.tolist()
        assert rolled.counts.tolist() == direct.counts.tolist()
    frequencies = (
        count_tuples(table, ColumnHierarchies({"c": column}), levels=[1]).merge_labels().frequencies
    )
    assert sorted(frequencies.counts.tolist()) == [1, 2, 3]  # null; B of z and *; A of x, y and q


def test_one_row_each_is_one_row_each_and_fair(make_table: MakeTable) -> None:
    people = [person for person in range(3000) for _ in range(3)]
    visits = list("abc") * 3000
    table = make_table({"id": [*people, 5000, None, None], "visit": [*visits, "d", "e", "f"]})
    once = table.choose_row_per_person("id", SeededRandomness(1))
    chosen = count_table_rows(once)
    assert count_table_rows(once) == chosen  # the choice is made once, however often it is read
    assert sorted(int(str(person)) for person, _ in chosen) == [
        *range(3000),
        5000,
    ]  # none without an id
    picked = Counter(visit for _, visit in chosen)
    # Each of a, b, c has probability 1/3: outside 890 to 1110 of 3000 once in 50,000 runs.
    assert set(picked) == set("abcd")
    assert all(890 <= picked[visit] <= 1110 for visit in "abc")
    # The choices of two people have nothing to do with each other: alike in a third of the pairs.
    result = {int(str(person)): visit for person, visit in chosen}
    alike = sum(result[at] == result[at + 1] for at in range(0, 3000, 2))
    assert 420 <= alike <= 580
    again = count_table_rows(table.choose_row_per_person("id", SeededRandomness(2)))
    assert again != chosen  # another key, another choice


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_what_is_written_is_read_back(make_table: MakeTable, tmp_path: Path, ending: str) -> None:
    table = make_table({"a": ['say "hi", you', None, "ü;|\n"], "b": ["1", "2", "01"]})
    path = tmp_path / f"table.{ending}"
    table.write(path)
    assert count_table_rows(table.engine.open(path)) == count_table_rows(table)
    assert count_table_rows(table.engine.open(path.name, folder=tmp_path)) == count_table_rows(
        table
    )
    assert list(tmp_path.iterdir()) == [path]


def test_writing_fails_whole(make_table: MakeTable, tmp_path: Path) -> None:
    table = make_table({"a": ["x"]})
    with pytest.raises(TableError, match=r"must end in .parquet, .csv, .arrow"):
        table.write(tmp_path / "table.xyz")
    with pytest.raises(TableError, match="Cannot write"):
        table.write(tmp_path / "nowhere" / "table.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_rows_is_opened_only_if_it_may_be(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n", encoding="utf-8")
    with pytest.raises(TableError, match="'table.csv': it has a header but no rows"):
        engine.open(path)
    table = engine.open(path, empty=True, delimiter=",")
    assert (table.columns, table.rows(), count_table_rows(table)) == (("a", "b"), 0, {})


def test_what_is_no_table_is_refused(engine: Engine, tmp_path: Path) -> None:
    for source in (42, tmp_path / "none.csv", "nothing://at/all"):
        with pytest.raises(TableError, match="Cannot read"):
            engine.open(source)


def test_every_table_leads_to_its_engine(engine: Engine, tmp_path: Path) -> None:
    table = engine.from_columns({"a": ["x", "y"]})
    path = tmp_path / "table.csv"
    table.write(path)
    cells: Coded = (["x"], np.zeros(1, np.int32))
    for derived in (
        table,
        table.head(1),
        table.choose_row_per_person("a", SystemRandomness()),
        table.respell_texts(str.upper),
        engine.open(path),
        engine.from_cells({"a": cells}, np.array([3])),
        engine.from_rows({"a": cells}, {}, ["a"]),
    ):
        assert derived.engine is engine


def test_rows_without_a_value_are_counted(make_table: MakeTable) -> None:
    table = make_table({"id": ["1", None, " ", "", "x"], "number": [1, None, 2, 3, None]})
    assert (table.count_missing("id"), table.count_missing("number")) == (3, 2)


def test_texts_and_names_are_spelled_in_another_way(make_table: MakeTable) -> None:
    table = make_table({"a": ["x", None, "=y"], "n": [1, 2, 3]})
    spelled = table.respell_texts(lambda text: f"'{text}" if text in ("=y", "n") else text)
    assert spelled.columns == ("a", "'n")
    assert count_table_rows(spelled) == {("x", 1): 1, (None, 2): 1, ("'=y", 3): 1}


def test_columns_are_joined_as_text_and_the_table_stays_the_same(make_table: MakeTable) -> None:
    table = make_table({
        "*": [52.5, None, -7.0], "b": [13.25, 1.0, None], "who": ["x", "y", "z"],
    })  # fmt: skip
    joined = table.join_columns("c", ["*", "b"])
    assert joined.columns == ("*", "b", "who", "c")
    assert sorted(map(str, joined.values("c"))) == ["52.5 13.25", "None"]
    assert joined.count_missing("c") == 2
    assert sorted(map(str, joined.values("*"))) == sorted(map(str, table.values("*")))
    key = b"k" * 32
    assert joined.compute_fingerprint(key) == table.compute_fingerprint(key)
    with pytest.raises(TableError, match="'missing'"):
        table.join_columns("c", ["*", "missing"])


def test_the_same_table_is_recognized_under_the_same_key(make_table: MakeTable) -> None:
    def mark(values: Sequence[object], key: bytes) -> str:
        return make_table({"a": values}).compute_fingerprint(key)

    assert mark(["x", "y"], b"k") == mark(["x", "y"], b"k")
    others = (mark(["x", "z"], b"k"), mark(["x"], b"k"), mark(["x", "y"], b"l"))
    assert mark(["x", "y"], b"k") not in others


def test_where_values_stand_is_recognized(make_table: MakeTable) -> None:
    columns: tuple[dict[str, Sequence[object]], ...] = (
        {"a": ["x", None], "b": [None, "x"]},
        {"a": ["x", "x"], "b": [None, None]},
        {"a": ["x", "y"], "b": ["y", "x"]},
        {"a": ["y", "y"], "b": ["x", "x"]},
    )
    assert len({make_table(each).compute_fingerprint(b"k") for each in columns}) == len(columns)


def test_a_missing_column_is_named(make_table: MakeTable) -> None:
    table = make_table({"a": ["x"]})
    with pytest.raises(TableError, match="Column 'b': not in the table"):
        list(table.iter_tallies(["b"]))


def test_rows_per_id_are_counted_over_the_whole_table(make_table: MakeTable) -> None:
    """Of ids however they are written; rows without one do not count."""
    table = make_table({"id": ["7", "7.0", " 7", "a", "b", "b", "", None, "c", "d"]})
    rows = table.count_rows_per_id("id")
    assert (rows.ids, rows.median, rows.largest, rows.has_repeats) == (5, 1, 3, True)
    one_each = make_table({"id": [1, 2, 3]}).count_rows_per_id("id")
    assert (one_each.ids, one_each.largest, one_each.has_repeats) == (3, 1, False)
    assert make_table({"id": [None, "x"]}).head(0).count_rows_per_id("id").ids == 0
