"""The form of a hierarchy: what it asks for each kind, and what it makes of the answers.

All of it is pure. What a form says is handed on as it was typed where it is no number, so that the
spec itself refuses it, in its own words.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from incrowd.codes.values import canonicalize_value
from incrowd.spec.hierarchies import (
    Countries,
    CsvFile,
    Dates,
    Declaration,
    Flat,
    Geo,
    HierarchyChoice,
    Icd,
    Intervals,
    Mask,
    Order,
    Postcodes,
)
from incrowd.studio.number_form import normalize_number

GEO = "geo"  # for columns that are made of two others alone
KINDS = {
    "intervals": "Intervals: ranges of numbers",
    "dates": "Dates: day, month, year, decade",
    "order": "Order: runs of neighboring values",
    "groups": "Groups: sets of values that you define",
    "flat": "Flat: the value, or suppressed",
    "mask": "Mask: characters masked one by one",
    "countries": "Countries: region and continent",
    "icd": "Diagnoses: categories and chapters of the ICD",
    "postcodes": "Postcodes: district and area",
    "csv": "File: a hierarchy in ARX format",
    GEO: "Squares or hexagons: places by latitude and longitude",
}
ABOUT = {
    "intervals": "Level 0 has one label per step; each further level has wider intervals.",
    "dates": "Level 0 is the first of the selected levels.",
    "order": "Level 0 has the values; each further level merges runs of neighbors.",
    "groups": "Level 0 has the values; each further level has their groups.",
    "flat": "The value is published unchanged, or suppressed.",
    "mask": "Each level masks one more character.",
    "countries": "Countries and territories of ISO 3166-1 by the regions of the UN: a public list.",
    "icd": "Categories of the ICD, by tens and by chapter: a public list.",
    "postcodes": "Postcodes of one country by district and area: a public list.",
    "csv": "One line per value with its labels by level, in a file in the folder of the spec.",
    GEO: "Level 0 has the smallest cells; each further level has larger ones.",
}
SIDES = ("south", "north", "west", "east")
DATE_LEVELS = ("day", "month", "quarter", "year", "decade")
EVERY_DATE_LEVEL = ("hour", "day", "week", "weekday", "month", "quarter", "year", "decade")
MOST_CUTS = 60  # bounds of a level that are listed one by one


class FormAnswers(Protocol):
    """What a form has sent."""

    def get(self, name: str, default: str, /) -> str:
        """Return one value."""
        ...

    def get_all(self, name: str) -> list[str]:
        """Return all values of a name."""
        ...


def get_kind(hierarchy: HierarchyChoice | None) -> str:
    """Return the kind of a hierarchy as a spec names it; empty if there is none."""
    if hierarchy is None:
        return ""
    return next(
        name for name in HierarchyChoice.model_fields if getattr(hierarchy, name) is not None
    )


def read_declaration(kind: str, form: FormAnswers) -> dict[str, Any]:
    """Return what a form says of a hierarchy, as the spec is to have it."""
    match kind:
        case "intervals":
            intervals = _read_intervals(form)
        case "mask":
            intervals = {"length": parse_number(form.get("length", ""))}
            shortest = form.get("shortest", "").strip()
            intervals |= {"shortest": parse_number(shortest)} if shortest else {}
            intervals |= _read_unusual_field(form, "hide", "right") | _read_unusual_field(
                form, "alphabet", "0123456789"
            )
        case "dates":
            intervals = {
                "from": _parse_day(form.get("from", "")),
                "to": _parse_day(form.get("to", "")),
            }
            levels = form.get_all("levels")
            intervals |= {} if levels == list(DATE_LEVELS) else {"levels": levels}
            intervals |= _read_unusual_field(form, "format", "%Y-%m-%d")
        case "order":
            intervals = {"values": split_lines(form.get("values", ""))}
            runs = parse_numbers(form.get("runs", ""))
            intervals |= {"runs": runs} if runs else {}
        case "flat":
            values = split_lines(form.get("values", ""))
            intervals = {"values": values} if values else {}
        case "csv":
            intervals = {"file": form.get("file", "").strip()} | _read_unusual_field(
                form, "delimiter", ""
            )
        case "countries":
            intervals = {"codes": form.get("codes", "")}
        case "icd":
            intervals = {"version": parse_number(form.get("version", ""))}
        case "postcodes":
            intervals = {"country": form.get("country", "")}
        case "geo":
            intervals = {name: form.get(name, "") for name in ("lat", "lon")}
            for name in ("sizes", "hexagons"):
                numbers = parse_numbers(form.get(name, ""))
                intervals |= {name: numbers} if numbers else {}
            intervals |= {name: parse_number(form.get(name, "")) for name in SIDES}
        case _:
            raise ValueError(kind)
    return {kind: intervals}


def _read_intervals(form: FormAnswers) -> dict[str, Any]:
    intervals: dict[str, Any] = {
        name: parse_number(form.get(name, ""))
        for name in ("from", "to")
        if form.get(name, "").strip()
    }
    step = parse_number(form.get("step", ""))
    intervals |= {} if step in ("", 1) else {"step": step}
    widths = [parse_number(text) for text in form.get_all("width") if text.strip()]
    cuts = [parse_numbers(text) for text in form.get_all("cuts") if text.strip()]
    intervals |= {"widths": widths} if widths else {}
    intervals |= {"cuts": cuts} if cuts else {}
    return intervals | _read_unusual_field(form, "open", "none")


def _read_unusual_field(form: FormAnswers, name: str, usual: str) -> dict[str, str]:
    """Return a field, unless it says what is usual."""
    unusual_field = form.get(name, "")
    return {} if unusual_field in ("", usual) else {name: unusual_field}


def _parse_day(text: str) -> Any:
    try:
        return dt.date.fromisoformat(text.strip())
    except ValueError:
        return text


def split_lines(text: str) -> list[str]:
    """Return the lines of a text that are not blank."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def parse_numbers(text: str) -> list[Any]:
    """Return the numbers of a text, between blanks, semicolons, or commas.

    Where there are semicolons, a comma is a decimal comma.
    """
    between = r"[;\s]+" if ";" in text else r"[,\s]+"
    return [parse_number(part) for part in re.split(between, text) if part]


def parse_number(text: str) -> Any:
    """Return a number as YAML has it; a text that is none, as it is."""
    try:
        return convert_decimal(Decimal(normalize_number(text)))
    except (InvalidOperation, ValueError, OverflowError):
        return text.strip()


def convert_decimal(x: Decimal) -> int | float:
    """Return a number as YAML has it."""
    return int(x) if x == x.to_integral_value() else float(x)


def format_decimal(x: Decimal) -> str:
    """Return a number as it is written in a field."""
    return canonicalize_value(x) or ""


def make_form_fields(declared: Declaration | None) -> dict[str, Any]:
    """Return what the form of a hierarchy shows in its fields."""
    match declared:
        case Intervals():
            return {
                "from": format_decimal(declared.low), "to": format_decimal(declared.high),
                "step": format_decimal(declared.step), "open": declared.open,
                "width": [format_decimal(x) for x in declared.widths],
                "cuts": [", ".join(map(format_decimal, cuts)) for cuts in declared.cuts],
            }  # fmt: skip
        case Mask():
            return {
                "length": str(declared.length), "shortest": str(declared.shortest or ""),
                "hide": declared.hide, "alphabet": declared.alphabet,
            }  # fmt: skip
        case Dates():
            return {
                "from": declared.low.isoformat(), "to": declared.high.isoformat(),
                "levels": list(declared.levels), "format": declared.format,
            }  # fmt: skip
        case Order():
            return {
                "values": "\n".join(declared.values),
                "runs": ", ".join(map(str, declared.runs)),
            }
        case Flat():
            return {"values": "\n".join(declared.values)}
        case CsvFile():
            return {"file": declared.file.as_posix(), "delimiter": declared.delimiter or ""}
        case Geo():
            sides = {name: format_decimal(getattr(declared, name)) for name in SIDES}
            sizes = ", ".join(map(format_decimal, declared.sizes))
            hexagons = ", ".join(map(str, declared.hexagons))
            cells = {"sizes": sizes, "hexagons": hexagons}
            return {"lat": declared.lat, "lon": declared.lon, **cells, **sides}
        case Countries() | Icd() | Postcodes():
            return {name: str(value) for name, value in declared.model_dump().items()}
        case _:
            return {}


@dataclass(frozen=True)
class IntervalCuts:
    """The levels of intervals by their cuts, fine ones first; each has all cuts of the next.

    A cut belongs to some level and to all finer ones, so that levels nest whatever is done here.
    """

    low: Decimal
    high: Decimal
    step: Decimal
    levels: tuple[tuple[Decimal, ...], ...]

    def move_cut(self, old: Decimal, new: Decimal) -> IntervalCuts:
        """Move one cut in all its levels; one that meets another is merged with it."""
        new = self.snap_to_step(new)
        return self._replace_levels(
            {new if cut == old else cut for cut in level} if old in level else set(level)
            for level in self.levels
        )

    def add_cut(self, level: int) -> IntervalCuts:
        """Add one cut to a level: of the finer level, or else to all finer ones too."""
        level_cuts = set(self.levels[level])
        edges = [self.low, *sorted(level_cuts), self.high + self.step]
        gaps = [(edges[at + 1] - edges[at], -at) for at in range(len(edges) - 1)]
        wide, at = max(gaps)
        middle = edges[-at] + wide / 2
        free = [cut for cut in self.levels[level - 1] if cut not in level_cuts] if level else []
        new = min(free, key=lambda cut: abs(cut - middle)) if free else self.snap_to_step(middle)
        return self._replace_levels(
            {*cuts, new} if number <= level else set(cuts)
            for number, cuts in enumerate(self.levels)
        )

    def remove_cut(self, level: int, cut: Decimal) -> IntervalCuts:
        """Remove one cut from a level, and from all coarser ones."""
        return self._replace_levels(
            set(cuts) - {cut} if at >= level else set(cuts) for at, cuts in enumerate(self.levels)
        )

    def add_level(self) -> IntervalCuts:
        """Add a coarser level: every second cut of the coarsest, or the middle of the range."""
        last = self.levels[-1] if self.levels else ()
        middle = self.snap_to_step((self.low + self.high) / 2)
        return self._replace_levels(
            [*map(set, self.levels), set(last[1::2] if last else (middle,))]
        )

    def remove_level(self, level: int) -> IntervalCuts:
        """Remove one level."""
        return self._replace_levels(set(cuts) for at, cuts in enumerate(self.levels) if at != level)

    def snap_to_step(self, x: Decimal) -> Decimal:
        """Return the nearest point at which an interval can begin."""
        steps = ((x - self.low) / self.step).to_integral_value()
        most = (self.high - self.low) // self.step
        return self.low + min(max(steps, Decimal(1)), max(most, Decimal(1))) * self.step

    def _replace_levels(self, levels: Iterable[set[Decimal]]) -> IntervalCuts:
        return IntervalCuts(
            self.low, self.high, self.step, tuple(tuple(sorted(cuts)) for cuts in levels if cuts)
        )


def compute_cuts(declared: Intervals) -> IntervalCuts:
    """Compute the cuts of intervals; those that have widths begin where these say.

    Of widths, levels with too many bounds to list them are left out.
    """
    low, high = declared.low, declared.high
    levels = declared.cuts
    if not levels:
        levels = tuple(
            tuple(low + width * at for at in range(1, int((high - low) // width) + 1))
            for width in declared.widths
            if (high - low) // width <= MOST_CUTS
        )
    return IntervalCuts(low, high, declared.step, tuple(cuts for cuts in levels if cuts))


def declare_cuts(declared: Intervals, cuts: IntervalCuts) -> dict[str, Any]:
    """Return intervals with other cuts, as the spec is to have them."""
    intervals = _declare_intervals(declared)
    intervals.pop("widths", None)
    intervals.pop("cuts", None)
    listed = [[convert_decimal(cut) for cut in level] for level in cuts.levels]
    return {"intervals": {**intervals, "cuts": listed} if listed else intervals}


def declare_widths(declared: Intervals, widths: Iterable[Decimal]) -> dict[str, Any]:
    """Return intervals by widths, as the spec is to have them."""
    intervals = _declare_intervals(declared)
    intervals.pop("cuts", None)
    listed = [convert_decimal(width) for width in widths]
    return {"intervals": {**intervals, "widths": listed} if listed else intervals}


def compute_next_width(declared: Intervals) -> Decimal:
    """Compute the width of a further level: twice the last, or a tenth of the range."""
    if declared.widths:
        return declared.widths[-1] * 2
    return max((declared.high - declared.low) / 10 // declared.step, Decimal(1)) * declared.step


def compute_widths(declared: Intervals) -> list[Decimal]:
    """Compute widths for intervals that have cuts: about as many intervals at each level."""
    decimals: list[Decimal] = []
    for cuts in declared.cuts:
        unit = decimals[-1] if decimals else declared.step
        wide = (declared.high - declared.low) / (len(cuts) + 1)
        width = max((wide / unit).to_integral_value(), Decimal(2 if decimals else 1)) * unit
        decimals.append(width)
    return decimals


def _declare_intervals(declared: Intervals) -> dict[str, Any]:
    intervals: dict[str, Any] = {
        "from": convert_decimal(declared.low),
        "to": convert_decimal(declared.high),
    }
    intervals |= {} if declared.step == 1 else {"step": convert_decimal(declared.step)}
    intervals |= {} if declared.open == "none" else {"open": declared.open}
    intervals |= (
        {"widths": [convert_decimal(x) for x in declared.widths]} if declared.widths else {}
    )
    return intervals | (
        {"cuts": [[convert_decimal(x) for x in cuts] for cuts in declared.cuts]}
        if declared.cuts
        else {}
    )
