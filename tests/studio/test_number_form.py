"""Numbers as people type them: nothing is read as another number than was meant."""

from __future__ import annotations

import pytest

from incrowd.errors import IncrowdError
from incrowd.studio.number_form import normalize_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1), ("0,5", 0.5), (" 0.5 ", 0.5), ("1e-6", 1e-6), ("1,5e-6", 1.5e-6),
        ("-2,25", -2.25),
        ("1.234,5", 1234.5), ("1,234.5", 1234.5), ("1 000 000", 1e6), ("1'000,5", 1000.5),
        ("1,234,567", 1234567), ("0,125", 0.125), ("12,3456", 12.3456),
    ],
)  # fmt: skip
def test_both_signs_are_read(text: str, number: float) -> None:
    assert float(normalize_number(text)) == number


@pytest.mark.parametrize("text", ["1,000", "12,345", "+1,234"])
def test_what_may_be_either_is_asked_unless_the_number_is_whole(text: str) -> None:
    with pytest.raises(IncrowdError, match="may be"):
        normalize_number(text)
    assert float(normalize_number(text, is_count=True)) == float(text.replace(",", ""))


@pytest.mark.parametrize("text", ["2,5", "1,2,3", "1,23,456", "x", "", "1.2,3.4"])
def test_no_whole_number_is_made_of_what_is_none(text: str) -> None:
    try:
        number = float(normalize_number(text, is_count=True))
    except ValueError:
        return
    assert not number.is_integer()
