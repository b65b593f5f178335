"""What a table on Spark brings to this machine, and how often it is read for that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from incrowd.arrays import Codes
from incrowd.engine.spark import coarse, lookup, sums
from incrowd.engine.spark import table as module
from incrowd.engine.spark.engine import SparkEngine
from incrowd.engine.table import Coder, TooManyTuplesError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_session")]
COLUMNS: dict[str, Sequence[object]] = {"a": ["x", "y", "x", None], "b": [1, 2, 1, 2]}


def coded(values: Sequence[object]) -> Codes:
    result: list[object] = ["x", "y", None, 1, 2]
    return np.array([result.index(value) for value in values], dtype=np.int32)


def test_tuples_come_here_up_to_the_bound() -> None:
    coders = {"a": coded, "b": coded}
    for most in (3, 2):  # in codes they are just as many: with 2, they stay there
        gathered = SparkEngine(most_tuples=most).from_columns(COLUMNS).gather_columns(["a", "b"])
        if most == 3:
            assert gathered.count(["a", "b"], coders).counts.tolist() == [2, 1, 1]
        else:
            with pytest.raises(TooManyTuplesError) as refused:
                gathered.count(["a", "b"], coders)
            assert refused.value.spread is not None


def test_values_of_counted_columns_are_not_looked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = []

    @contextmanager
    def told(what: str) -> Iterator[None]:
        request.append(what)
        yield

    monkeypatch.setattr(module, "explain_failures", told)
    table = SparkEngine().from_columns(COLUMNS)
    table.gather_columns(["a", "b"]).count(["a", "b"], {"a": coded, "b": coded})
    queries = list(request)
    assert set(table.values("a")) == {"x", "y", None}
    assert table.list_raw_values("b").get_column("raw").sort().to_list() == [1, 2]
    assert queries == request != []


@pytest.mark.parametrize("together", [1, 4096])
def test_coarse_codes_are_counted_in_one_pass_whatever_a_first_look_has_met(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(3)
    numbers = [None if x == 3 else float(x) for x in draw.integers(0, 50, 400)]
    people: dict[str, Sequence[object]] = {
        "a": [str(x) for x in draw.integers(0, 30, 400)], "b": numbers,
    }  # fmt: skip
    tens = {
        "a": lambda met: np.array([int(x or 0) // 10 for x in met], dtype=np.int32),
        "b": lambda met: np.array([9 if x is None else int(x) // 10 for x in met], np.int32),
    }
    expected = SparkEngine().from_columns(people).gather_columns(["a", "b"]).count(["a", "b"], tens)
    monkeypatch.setattr(module, "LARGE", 1)
    monkeypatch.setattr(coarse, "LOOKED_AT", 20)
    monkeypatch.setattr(lookup, "_TOGETHER", together)
    for most in (1000, 100, 10):  # beyond the first, they are counted there; beyond all, refused
        table = SparkEngine(most_tuples=most).from_columns(people)
        gathered = table.gather_columns(["a", "b"], coarse=True)
        assert type(gathered) is type(table)
        if most == 10:
            with pytest.raises(TooManyTuplesError):
                gathered.count(["a", "b"], tens)
            continue
        result = gathered.count(["a", "b"], tens)
        assert result.codes.tolist() == expected.codes.tolist()
        assert result.counts.tolist() == expected.counts.tolist()
    assert type(table.gather_columns(["a"])) is not type(table)


def test_the_hash_that_is_taken_with_the_counts_is_that_of_a_pass_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = np.random.default_rng(4)
    people: dict[str, Sequence[object]] = {
        "a": [None if x == 3 else str(x) for x in draw.integers(0, 9, 300)],
        "b": [float("nan") if x == 1 else float(x) for x in draw.integers(0, 5, 300)],
        "id": list(range(300)),
    }
    coder: Coder = lambda met: np.array([int(float(str(x or 0))) for x in met], np.int32)  # noqa: E731
    same = {"a": coder, "b": coder}
    alone = SparkEngine().from_columns(people)
    mark = alone.compute_fingerprint(b"key")
    for large in (1, 1000):  # grouped by codes, and by values
        monkeypatch.setattr(module, "LARGE", large)
        table = SparkEngine().from_columns(people)
        assert table.hash_when_counted()
        frequencies = table.gather_columns(["a", "b"], coarse=True).count(["a", "b"], same)
        assert frequencies.counts.sum() == 300
        with monkeypatch.context() as without:
            without.setattr(sums, "explain_failures", None)  # so that another pass would fail
            assert table.compute_fingerprint(b"key") == mark
    people["id"] = [*range(299), 7]
    other = SparkEngine().from_columns(people)
    assert other.hash_when_counted()
    other.gather_columns(["a", "b"]).count(["a", "b"], same)
    assert other.compute_fingerprint(b"key") != mark
    assert not alone.interpret_values({"a": lambda value: value}).hash_when_counted()
