"""How columns seem to be written: what a draft proposes for messy ones, and for plain ones not."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.drafts import (
    draft_column,
    find_outside_values,
    get_hierarchy_kind,
    get_intervals,
    parse_guess,
)

from incrowd.codes.values import canonicalize_value
from incrowd.curate.draft.guess import guess_column
from incrowd.curate.draft.value_format import (
    NULLS,
    format_as_yaml,
    has_ambiguous_dates,
    propose_format,
)
from incrowd.engine.table import RowsPerId
from incrowd.spec.file import parse_spec
from incrowd.spec.value_format import ValueFormat


def written(**fields: Any) -> ValueFormat:
    return ValueFormat.model_validate(fields)


@pytest.mark.parametrize(
    ("texts", "fields"),
    [
        (["1,234", "999.5", "12"], {"thousands": ","}),
        (["1.234.567,5", "2.000", "3"], {"thousands": ".", "decimal": ","}),
        (["12,75", "3"], {"decimal": ","}),
        (["12 345", "3"], {"thousands": " "}),
        (["12\u202f345,5", "3"], {"thousands": " ", "decimal": ","}),
        (["12'345.5", "3"], {"thousands": "'"}),
        (["12 %", "3.5%"], {"sign": "%"}),
        (["$1,250", "$3"], {"sign": "$", "thousands": ","}),
        (["1.250,00 €", "3,00 €"], {"sign": "€", "thousands": ".", "decimal": ","}),
        (["70 kg", "81.5 kg"], {"sign": "kg"}),
        (["13/4/2020", "1/12/2021"], {"dates": "day-month-year"}),
        (["4/13/2020", "12/1/2021"], {"dates": "month-day-year"}),
        (["2020/4/13", "2021/12/1"], {"dates": "year-month-day"}),
        (["13.04.2020", "01.12.2021 10:05"], {"dates": "day-month-year"}),
        (["13 Apr 2020", "1 December 2021"], {"dates": "day-month-year"}),
        (["April 13, 2020", "Dec 1, 2021"], {"dates": "month-day-year"}),
    ],
)
def test_messy_columns(texts: list[str], fields: dict[str, str]) -> None:
    assert propose_format(texts) == written(**fields)
    with_nulls = written(nulls=["-", "NA"], **fields)
    assert propose_format([*texts, "NA", "-"]) == with_nulls


def test_decimals_after_a_comma_make_a_point_that_of_thousands() -> None:
    """1.234 beside 999,5 is more than a thousand, and no number between one and two."""
    assert propose_format(["1.234", "999,5", "12,75"]) == written(thousands=".", decimal=",")


@pytest.mark.parametrize(
    "texts",
    [
        ["1", "2.5", "-3", "0"],
        ["2020-04-03", "1999-12-31"],
        ["2020-04-03 10:00:00", "1999-12-31T10:00"],
        ["red", "green", "blue"],
        ["true", "false"],
        ["18-24", "25-34", "65+"],
        ["E11.9", "I10"],
        ["a@b.org", "c@d.org"],
        ["1.2.3", "4.5.6"],
        ["1, 2", "3, 4"],
        [],
        ["NA"],
    ],
)
def test_what_is_plain_needs_no_words(texts: list[str]) -> None:
    assert propose_format(texts) is None


@pytest.mark.parametrize("texts", [["01234", "12345"], ["007", "010", "123"], ["0049", "0001"]])
def test_leading_zeros_belong_to_codes(texts: list[str]) -> None:
    """Read as numbers they would lose them: 01234 is a ZIP code."""
    assert propose_format(texts) is None


def test_zip_codes_keep_their_zeros() -> None:
    values = [f"{at:05}" for at in range(501, 541)]
    drafted = draft_column("zip", values, times=10)
    assert (get_hierarchy_kind(drafted), drafted.written) == ("mask", None)
    assert find_outside_values(drafted, values) == []


@pytest.mark.parametrize("values", [["2", "30", "1", "NA"], ["2", "3"], ["2138", "10001", "NA"]])
def test_texts_of_other_lengths_lie_in_what_is_drafted(values: list[str]) -> None:
    """Nobody can tell whether a text lost zeros, and a mask would find it outside its domain."""
    drafted = draft_column("zip", values, times=10)
    assert find_outside_values(drafted, [value for value in values if value != "NA"]) == []


@pytest.mark.parametrize("marker", ["NA", "N/A", "-", ".", "?", "NULL"])
def test_texts_with_a_marker_of_nothing(marker: str) -> None:
    assert propose_format(["red", "green", marker]) == written(nulls=[marker])
    drafted = draft_column("color", ["red", "green", marker], times=30)
    assert drafted.written == written(nulls=[marker])
    assert find_outside_values(drafted, ["red", "green", marker]) == [
        marker
    ]  # it is no value of the list
    assert drafted.confirm == ("role", "written", "hierarchy")


@pytest.mark.parametrize("word", ["unknown", "none", "missing", "*"])
def test_words_are_nothing_beside_numbers_alone(word: str) -> None:
    """Beside words they may be an answer like any other."""
    assert propose_format(["1", "2", "30", word]) == written(nulls=[word])
    assert propose_format(["red", "green", word]) is None


def test_namibia_is_a_country() -> None:
    assert propose_format(["NA", "ZA", "BW", "DE"]) is None
    assert propose_format(["NA", "ZA", "BW", "DE", "-"]) == written(nulls=["-"])
    drafted = draft_column("born_in", ["NA", "ZA", "BW", "DE"], times=30)
    assert (get_hierarchy_kind(drafted), drafted.written) == ("countries", None)
    assert find_outside_values(drafted, ["NA"]) == []
    assert propose_format(["NA", "CA", "TX", "NY"]) == written(nulls=["NA"])  # states of the US
    assert propose_format(["NA", "Germany", "France"]) == written(nulls=["NA"])


@pytest.mark.parametrize("marker", ["NA", "unknown", "-", "n/a"])
def test_numbers_with_nulls_stay_numbers(marker: str) -> None:
    values = [str(at * 3) for at in range(40)]
    drafted = draft_column("score", [*values, marker], times=3)
    assert drafted.written == written(nulls=[marker])
    assert get_hierarchy_kind(drafted) == "intervals"
    assert find_outside_values(drafted, values) == []
    assert drafted.confirm == ("role", "written", "hierarchy")


def test_ladders_are_of_what_is_meant() -> None:
    values = [f"{at}.{at:03},50 €" for at in range(110, 150)]
    drafted = draft_column("wage", values, times=3)
    assert drafted.written == written(thousands=".", decimal=",", sign="€")
    assert get_intervals(drafted).low <= Decimal("110110.5") < Decimal("149149.5")
    assert get_intervals(drafted).high < 200_000


def test_trailing_zeros_do_not_hide_thousands() -> None:
    """1.500 is one and a half only where nothing else says that points part thousands."""
    values = ["1.500", "12.000", *(f"{at}.000.000" for at in range(1, 40))]
    drafted = draft_column("price", values, times=3)
    assert drafted.written == written(thousands=".", decimal=",")
    reader = drafted.written.make_reader()
    assert find_outside_values(drafted, [reader(value) for value in values]) == []
    apart = draft_column("price", ["9.900", *(f"{at},5" for at in range(1, 40))], times=3)
    assert apart.written == written(thousands=".", decimal=",")
    assert find_outside_values(apart, ["9900"]) == []


@pytest.mark.parametrize(
    ("texts", "ambiguous"),
    [
        (["3/4/2020", "5/6/2021"], True),
        (["3.4.2020", "12.12.2021", "-"], True),
        (["13/4/2020", "5/6/2021"], False),
        (["4/13/2020", "5/6/2021"], False),
        (["3 Apr 2020", "5 Jun 2021"], False),
        (["2020/3/4", "2021/5/6"], False),
        (["2020-03-04", "2021-05-06"], False),
    ],
)
def test_days_and_months_that_could_be_swapped_are_said(texts: list[str], ambiguous: bool) -> None:
    form = propose_format(texts)
    assert (form is not None and has_ambiguous_dates(form, texts)) is ambiguous
    guess = guess_column("seen", texts, 60)
    assert ("; day and month may be swapped" in guess.reason) is ambiguous
    drafted = parse_guess(guess)
    assert get_hierarchy_kind(drafted) == "dates"
    assert ("written" in drafted.confirm) is (drafted.written is not None)


def test_what_is_left_out_need_not_be_read() -> None:
    guess = guess_column("person_id", [*(f"P{at}" for at in range(50)), "NA"], 51)
    guess = guess.with_counts(RowsPerId(50, 1, 1), 51)
    assert (guess.role, guess.written, guess.confirm) == ("identifier", None, ("role",))


@given(
    st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=3, max_size=30, unique=True),
    st.sampled_from([("", "."), (",", "."), (".", ","), (" ", "."), (" ", ","), ("'", ".")]),
    st.sampled_from(["", " €", "%"]),
)
def test_a_proposal_reads_what_was_meant(
    numbers: list[Decimal], marks: tuple[str, str], sign: str
) -> None:
    """Numbers with two decimals leave no doubt; whoever guesses another way reads other numbers."""
    assume(any(x != x.to_integral_value() for x in numbers))
    swap = {",": marks[0], ".": marks[1]}
    texts = ["".join(swap.get(letter, letter) for letter in f"{x:,.2f}{sign}") for x in numbers]
    form = propose_format(texts)
    read = form.make_reader() if form is not None else canonicalize_value
    assert [canonicalize_value(read(text)) for text in texts] == [
        canonicalize_value(x) for x in numbers
    ]


@given(st.lists(st.dates(dt.date(1000, 1, 1)), min_size=1), st.sampled_from("/.-"), st.booleans())
def test_a_proposal_reads_the_days_that_were_meant(
    days: list[dt.date], mark: str, first: bool
) -> None:
    form = "{0.day}-{0.month}-{0.year}" if first else "{0.month}-{0.day}-{0.year}"
    texts = [form.format(day).replace("-", mark) for day in days]
    proposal = propose_format(texts)
    assert proposal is not None
    read = [proposal.make_reader()(text) for text in texts]
    assert read == [day.isoformat() for day in days] or has_ambiguous_dates(proposal, texts)


@given(
    st.lists(st.sampled_from(sorted(NULLS)) | st.text(min_size=1, max_size=4), max_size=3),
    st.sampled_from([{}, {"thousands": "'", "decimal": ","}, {"thousands": " ", "sign": "€"},
                     {"dates": "month-day-year"}]),
)  # fmt: skip
def test_a_proposal_survives_the_spec(nulls: list[str], more: dict[str, str]) -> None:
    assume(nulls or more)
    form = written(nulls=nulls, **more)
    columns = parse_spec(
        f"columns: {{x: {{role: drop, written: {format_as_yaml(form)}}}}}"
    ).spec.columns
    assert columns["x"].written == form
