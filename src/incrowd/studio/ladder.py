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

from incrowd.codes.values import canonical
from incrowd.spec.hierarchies import (
    Countries,
    CsvFile,
    Dates,
    Declaration,
    Flat,
    Hierarchies,
    Icd,
    Intervals,
    Mask,
    Order,
    Postcodes,
)

KINDS = {
    "intervals": "Intervals: ranges of numbers",
    "dates": "Dates: day, month, year, decade",
    "order": "Order: runs of neighboring values",
    "groups": "Groups: sets of values that you define",
    "flat": "Flat: the value, or suppressed",
    "mask": "Mask: characters masked one by one",
    "countries": "Countries: region and continent",
    "icd": "Diagnoses: categories and chapters of the ICD",
    "postcodes": "Postcodes with letters: district and area",
    "csv": "File: a hierarchy in ARX format",
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
}
DATE_LEVELS = ("day", "month", "quarter", "year", "decade")
MOST_CUTS = 60  # bounds of a level that are listed one by one


class Answers(Protocol):
    """What a form has sent."""

    def get(self, name: str, default: str, /) -> str:
        """One value."""
        ...

    def every(self, name: str) -> list[str]:
        """All values of a name."""
        ...


def kind_of(hierarchy: Hierarchies | None) -> str:
    """What a spec calls the kind of a hierarchy; empty if there is none."""
    if hierarchy is None:
        return ""
    return next(name for name in Hierarchies.model_fields if getattr(hierarchy, name) is not None)


def declared_from(kind: str, form: Answers) -> dict[str, Any]:
    """What a form says of a hierarchy, as the spec is to have it."""
    match kind:
        case "intervals":
            said = _intervals(form)
        case "mask":
            said = {"length": scalar(form.get("length", ""))}
            said |= _kept(form, "hide", "right") | _kept(form, "alphabet", "0123456789")
        case "dates":
            said = {"from": _day(form.get("from", "")), "to": _day(form.get("to", ""))}
            levels = form.every("levels")
            said |= {} if levels == list(DATE_LEVELS) else {"levels": levels}
            said |= _kept(form, "format", "%Y-%m-%d")
        case "order":
            said = {"values": lines(form.get("values", ""))}
            runs = scalars(form.get("runs", ""))
            said |= {"runs": runs} if runs else {}
        case "flat":
            values = lines(form.get("values", ""))
            said = {"values": values} if values else {}
        case "csv":
            said = {"file": form.get("file", "").strip()} | _kept(form, "delimiter", "")
        case "countries":
            said = {"codes": form.get("codes", "")}
        case "icd":
            said = {"version": scalar(form.get("version", ""))}
        case "postcodes":
            said = {"country": form.get("country", "")}
        case _:
            raise ValueError(kind)
    return {kind: said}


def _intervals(form: Answers) -> dict[str, Any]:
    said: dict[str, Any] = {
        name: scalar(form.get(name, "")) for name in ("from", "to") if form.get(name, "").strip()
    }
    step = scalar(form.get("step", ""))
    said |= {} if step in ("", 1) else {"step": step}
    widths = [scalar(one) for one in form.every("width") if one.strip()]
    cuts = [scalars(one) for one in form.every("cuts") if one.strip()]
    said |= {"widths": widths} if widths else {}
    said |= {"cuts": cuts} if cuts else {}
    return said | _kept(form, "open", "none")


def _kept(form: Answers, name: str, usual: str) -> dict[str, str]:
    """A field, unless it says what is usual."""
    said = form.get(name, "")
    return {} if said in ("", usual) else {name: said}


def _day(text: str) -> Any:
    try:
        return dt.date.fromisoformat(text.strip())
    except ValueError:
        return text


def lines(text: str) -> list[str]:
    """The lines of a text that say something."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def scalars(text: str) -> list[Any]:
    """The numbers of a text, between commas or blanks."""
    return [scalar(part) for part in re.split(r"[,;\s]+", text) if part]


def scalar(text: str) -> Any:
    """A number as YAML has it; a text that is none, as it is."""
    try:
        return plain(Decimal(text.strip()))
    except (InvalidOperation, ValueError, OverflowError):
        return text.strip()


def plain(x: Decimal) -> int | float:
    """A number as YAML has it."""
    return int(x) if x == x.to_integral_value() else float(x)


def shown(x: Decimal) -> str:
    """A number as it is written in a field."""
    return canonical(x) or ""


def fields(declared: Declaration | None) -> dict[str, Any]:
    """What the form of a hierarchy shows in its fields."""
    match declared:
        case Intervals():
            return {
                "from": shown(declared.low), "to": shown(declared.high),
                "step": shown(declared.step), "open": declared.open,
                "width": [shown(x) for x in declared.widths],
                "cuts": [", ".join(map(shown, cuts)) for cuts in declared.cuts],
            }  # fmt: skip
        case Mask():
            return {
                "length": str(declared.length), "hide": declared.hide, "alphabet": declared.alphabet
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
        case Countries() | Icd() | Postcodes():
            return {name: str(value) for name, value in declared.model_dump().items()}
        case _:
            return {}


@dataclass(frozen=True)
class Cuts:
    """The levels of intervals by their cuts, fine ones first; each has all cuts of the next.

    A cut belongs to some level and to all finer ones, so that levels nest whatever is done here.
    """

    low: Decimal
    high: Decimal
    step: Decimal
    levels: tuple[tuple[Decimal, ...], ...]

    def moved(self, old: Decimal, new: Decimal) -> Cuts:
        """One cut lies elsewhere, in all its levels; one that meets another becomes one with it."""
        new = self.on_step(new)
        return self._with(
            {new if cut == old else cut for cut in level} if old in level else set(level)
            for level in self.levels
        )

    def with_cut(self, level: int) -> Cuts:
        """One cut more in a level: of the finer level, or else of all finer ones too."""
        here = set(self.levels[level])
        edges = [self.low, *sorted(here), self.high + self.step]
        gaps = [(edges[at + 1] - edges[at], -at) for at in range(len(edges) - 1)]
        wide, at = max(gaps)
        middle = edges[-at] + wide / 2
        free = [cut for cut in self.levels[level - 1] if cut not in here] if level else []
        new = min(free, key=lambda cut: abs(cut - middle)) if free else self.on_step(middle)
        return self._with(
            {*cuts, new} if number <= level else set(cuts)
            for number, cuts in enumerate(self.levels)
        )

    def without_cut(self, level: int, cut: Decimal) -> Cuts:
        """One cut less in a level, and in all coarser ones."""
        return self._with(
            set(cuts) - {cut} if at >= level else set(cuts) for at, cuts in enumerate(self.levels)
        )

    def with_level(self) -> Cuts:
        """A coarser level: every second cut of the coarsest, or the middle of the range."""
        last = self.levels[-1] if self.levels else ()
        middle = self.on_step((self.low + self.high) / 2)
        return self._with([*map(set, self.levels), set(last[1::2] if last else (middle,))])

    def without_level(self, level: int) -> Cuts:
        """One level less."""
        return self._with(set(cuts) for at, cuts in enumerate(self.levels) if at != level)

    def on_step(self, x: Decimal) -> Decimal:
        """The nearest point at which an interval can begin."""
        steps = ((x - self.low) / self.step).to_integral_value()
        most = (self.high - self.low) // self.step
        return self.low + min(max(steps, Decimal(1)), max(most, Decimal(1))) * self.step

    def _with(self, levels: Iterable[set[Decimal]]) -> Cuts:
        return Cuts(
            self.low, self.high, self.step, tuple(tuple(sorted(cuts)) for cuts in levels if cuts)
        )


def cuts_of(declared: Intervals) -> Cuts:
    """The cuts of intervals; those that have widths begin where these say.

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
    return Cuts(low, high, declared.step, tuple(cuts for cuts in levels if cuts))


def with_cuts(declared: Intervals, cuts: Cuts) -> dict[str, Any]:
    """Intervals with other cuts, as the spec is to have them."""
    said = _said(declared)
    said.pop("widths", None)
    said.pop("cuts", None)
    listed = [[plain(cut) for cut in level] for level in cuts.levels]
    return {"intervals": {**said, "cuts": listed} if listed else said}


def with_widths(declared: Intervals, widths: Iterable[Decimal]) -> dict[str, Any]:
    """Intervals by widths, as the spec is to have them."""
    said = _said(declared)
    said.pop("cuts", None)
    listed = [plain(width) for width in widths]
    return {"intervals": {**said, "widths": listed} if listed else said}


def wider(declared: Intervals) -> Decimal:
    """The width of a further level: twice the last, or about a tenth of the range."""
    if declared.widths:
        return declared.widths[-1] * 2
    return max((declared.high - declared.low) / 10 // declared.step, Decimal(1)) * declared.step


def widths_of(declared: Intervals) -> list[Decimal]:
    """Widths for intervals that have cuts: about as many intervals at each level."""
    found: list[Decimal] = []
    for cuts in declared.cuts:
        unit = found[-1] if found else declared.step
        wide = (declared.high - declared.low) / (len(cuts) + 1)
        width = max((wide / unit).to_integral_value(), Decimal(2 if found else 1)) * unit
        found.append(width)
    return found


def _said(declared: Intervals) -> dict[str, Any]:
    said: dict[str, Any] = {"from": plain(declared.low), "to": plain(declared.high)}
    said |= {} if declared.step == 1 else {"step": plain(declared.step)}
    said |= {} if declared.open == "none" else {"open": declared.open}
    said |= {"widths": [plain(x) for x in declared.widths]} if declared.widths else {}
    return said | (
        {"cuts": [[plain(x) for x in cuts] for cuts in declared.cuts]} if declared.cuts else {}
    )
