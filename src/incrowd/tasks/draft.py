"""Draft a spec from a table: guesses, each marked with ``confirm`` until somebody looks.

Only the first rows are looked at. Roles come from names and from what values look like;
hierarchies from the range or the list of values met. All of that is read from the data, so
a safe release refuses the draft until the curator has confirmed it to be public knowledge.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path

from incrowd.codes.values import canonical, iso_day, number
from incrowd.engine.address import is_address, take_apart, without_secrets
from incrowd.engine.source import open_table
from incrowd.engine.table import UNNAMED, Table, TableError
from incrowd.errors import IncrowdError

ROWS = 200_000
_FEW_TEXTS, _FEW_NUMBERS = 40, 12

# The identifiers that HIPAA's safe-harbor rule names, and how columns that hold them are called.
HIPAA: dict[str, str] = {
    "names": r"(^|_)(name|first_?name|last_?name|surname|given_?name|full_?name)(_|$)",
    "geographic subdivisions": (
        r"(^|_)(address|street|city|town|zip|zipcode|postcode|postal_?code|plz)(_|$)"
    ),
    "dates": r"(^|_)(dob|birth_?date|date_?of_?birth|admission|discharge|death|date)(_|$)",
    "telephone numbers": r"(^|_)(phone|telephone|tel|mobile|cell)(_|$)",
    "fax numbers": r"(^|_)fax(_|$)",
    "e-mail addresses": r"(^|_)e_?mail(_|$)",
    "social security numbers": r"(^|_)(ssn|social_?security(_number)?)(_|$)",
    "medical record numbers": r"(^|_)(mrn|medical_?record|chart)(_|$)",
    "health plan numbers": r"(^|_)(insurance|policy|health_?plan|beneficiary)(_|$)",
    "account numbers": r"(^|_)(account|iban)(_|$)",
    "certificate and license numbers": r"(^|_)(license|licence|certificate|passport)(_|$)",
    "vehicle identifiers": r"(^|_)(vin|plate|vehicle)(_|$)",
    "device identifiers": r"(^|_)(device|serial|imei|mac)(_|$)",
    "web addresses": r"(^|_)(url|website|homepage)(_|$)",
    "network addresses": r"(^|_)(ip|ip_?address)(_|$)",
    "biometric identifiers": r"(^|_)(fingerprint|voice_?print|biometric|iris)(_|$)",
    "photographs": r"(^|_)(photo|image|picture|portrait)(_|$)",
    "any other unique number": r"(^|_)(id|uuid|guid|identifier|number|no|key|code)$",
}
_GENERAL = ("geographic subdivisions", "dates")  # these can be generalised instead of dropped
_SENSITIVE = r"diagnos|disease|condition|icd|medication|treatment|income|salary|religion|vote|party"
_PERSON = (  # how the id of a person is called
    r"(^|_)(id|uuid|guid|identifier)$|^(nr|pid|pidnum)$|^(p|pat|patient|person|subj|subject|case|resp|"
    r"respondent|user|cust|customer|member|client)_?(id|idnum|nr|no|num|number)$"
)
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[a-zA-Z]{2,}")


@dataclass(frozen=True)
class Guess:
    """What a column probably is: the YAML of its entry, why, and what came from the data.

    ``repeats`` marks ids that several rows share.
    """

    column: str
    role: str
    hierarchy: str | None
    reason: str
    confirm: tuple[str, ...]
    hipaa: str | None = None
    repeats: bool = False

    def yaml(self) -> str:
        """One line of the spec."""
        parts = [f"role: {self.role}"]
        if self.hierarchy:
            parts.append(f"hierarchy: {self.hierarchy}")
        if self.confirm:
            parts.append(f"confirm: [{', '.join(self.confirm)}]")
        return f"  {quoted(self.column)}: {{{', '.join(parts)}}}  # {self.reason}"


@dataclass(frozen=True)
class Draft:
    """A drafted spec and what to look at in it; of ARX files, those used and those not.

    ``sheet``, ``header`` and ``notes`` are what is known of the table's origin.
    """

    table: str
    guesses: tuple[Guess, ...]
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    sheet: str | None = None
    header: int | None = None
    notes: tuple[str, ...] = ()

    def yaml(self) -> str:
        """The text of the spec."""
        lines = [
            "# Drafted by `incrowd init`. What `confirm` names was read from the data, or from",
            "# files of unknown origin: check it, put right what is wrong, and delete the",
            "# `confirm` of what is public knowledge.",
            f"table: {quoted(self.table)}",
            *([] if self.sheet is None else [f"sheet: {quoted(self.sheet)}"]),
            *([] if self.header is None else [f"header: {self.header}"]),
            self._unit(),
            "columns:",
            *(guess.yaml() for guess in self.guesses),
            "release: {method: safe, epsilon: 1.0, delta: 1.0e-6}",
        ]
        return "\n".join(lines) + "\n"

    def _unit(self) -> str:
        """Whose rows they are: a person may have several where an id repeats."""
        for guess in self.guesses:
            if guess.repeats:
                known = f"{{id: {quoted(guess.column)}}}"
                return f"unit: {known}  # its values repeat: of each, one row is used; check it"
        return (
            "unit: one row per person  # or {id: COLUMN} if several rows can belong to one person"
        )

    def checklist(self) -> list[tuple[str, tuple[str, ...]]]:
        """HIPAA's identifiers, and the columns that look like each."""
        return [
            (kind, tuple(guess.column for guess in self.guesses if guess.hipaa == kind))
            for kind in HIPAA
        ]


def draft(table: Table, *, name: str) -> Draft:
    """Guess a role and a hierarchy for every column from the first rows."""
    head = table.head(ROWS)
    guesses = tuple(_looked_at(head, column) for column in table.columns)
    known = table.origin
    return Draft(name, guesses, sheet=known.sheet, header=known.header, notes=known.notes)


def _looked_at(head: Table, column: str) -> Guess:
    try:
        values = head.values(column)
    except TableError:
        return Guess(column, "drop", None, "holds lists or bytes, not single values", ("role",))
    return _guess(column, values, head.rows())


def draft_from_arx(
    folder: Path,
    *,
    beside: Path,
    table: str | None = None,
    sheet: str | None = None,
    header: int | None = None,
) -> Draft:
    """A draft with hierarchies from a folder of ARX files, NAME_hierarchy_COLUMN.csv.

    The table is NAME.csv of that folder, or whatever ``table`` names: a path or an address,
    with its ``sheet`` and ``header``.
    Then NAME is that table's, or the only one in the folder. Columns without a file are
    guessed. Where the files come from nobody knows, so that they are to be confirmed, too.
    Paths in the draft are relative to the folder ``beside`` which the spec will lie in, where
    that is possible.
    """
    if not folder.is_dir():
        raise IncrowdError(f"'{folder}' is no folder. Name a folder of ARX files.")
    files = sorted(folder.glob("*_hierarchy_*.csv"))
    parts = {file: file.stem.split("_hierarchy_", 1) for file in files}
    names = sorted({name for name, _ in parts.values()})
    source = table if table is not None else str(_only_table(folder, names))
    name = _stem(source) if _stem(source) in names or len(names) != 1 else names[0]
    if name not in names:
        found = ", ".join(names) or "none"
        raise IncrowdError(
            f"'{folder}' has no files {name}_hierarchy_COLUMN.csv for the table. It has files for: "
            f"{found}. Rename those that are meant."
        )
    opened = open_table(source, sheet=sheet, header=header)
    by_column = {column: file for file, (owner, column) in parts.items() if owner == name}
    used = {column: file for column, file in by_column.items() if column in opened.columns}
    head = opened.head(ROWS)
    guesses = [
        _with_file(column, written(used[column], beside))
        if column in used
        else _looked_at(head, column)
        for column in opened.columns
    ]
    return Draft(
        shown_source(source, beside),
        tuple(guesses),
        used=tuple(file.name for file in used.values()),
        unused=tuple(file.name for file in files if file not in used.values()),
        sheet=opened.origin.sheet,
        header=opened.origin.header,
        notes=opened.origin.notes,
    )


def _only_table(folder: Path, names: list[str]) -> Path:
    tables = [folder / f"{name}.csv" for name in names if (folder / f"{name}.csv").exists()]
    if len(tables) != 1:
        found = ", ".join(table.name for table in tables) or "none"
        raise IncrowdError(
            f"'{folder}' must hold one table NAME.csv with files NAME_hierarchy_COLUMN.csv beside "
            f"it. Found: {found}. If the table lies elsewhere, name it, too."
        )
    return tables[0]


def _stem(source: str) -> str:
    """What a table is called: the file without its ending, or the table of a database."""
    if is_address(source):
        return take_apart(source).table.rpartition(".")[2].strip('"')
    return Path(source).stem


def _with_file(column: str, path: str) -> Guess:
    hierarchy = f"{{csv: {quoted(path)}}}"
    return Guess(column, "quasi", hierarchy, "has a hierarchy", ("role", "hierarchy"))


def shown_source(source: str, beside: Path) -> str:
    """A table as a spec in the folder ``beside`` names it.

    A password does not belong in a file; PostgreSQL finds it in ~/.pgpass.
    """
    return without_secrets(source) if is_address(source) else written(Path(source), beside)


def written(path: Path, beside: Path) -> str:
    """A path as a spec in the folder ``beside`` writes it: relative where it lies below."""
    absolute = path.absolute()
    below = absolute.is_relative_to(beside.absolute())
    return (absolute.relative_to(beside.absolute()) if below else absolute).as_posix()


def quoted(text: str) -> str:
    """Text as a YAML scalar, in quotes where it needs them."""
    plain = re.fullmatch(r"[A-Za-z_][\w ./-]*", text) and not re.fullmatch(
        r"(?i)(true|false|yes|no|on|off|null|y|n)", text
    )
    quoted_text = json.dumps(text, ensure_ascii=not text.isprintable())
    return text if plain and text == text.strip() else quoted_text.replace("\x7f", "\\x7F")


@dataclass(frozen=True)
class _Look:
    """What the rules look at: a column's name, simplified, and its different values as texts."""

    column: str
    simple: str
    hipaa: str | None
    texts: list[str]
    rows: int

    def guess(self, role: str, reason: str, hierarchy: str | None = None) -> Guess:
        confirm = ("role", "hierarchy") if hierarchy else ("role",)
        return Guess(self.column, role, hierarchy, reason, confirm, self.hipaa)


def _guess(column: str, values: Sequence[object], rows: int) -> Guess:
    simple = re.sub(r"\W+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column)).lower()
    hipaa = next((kind for kind, names in HIPAA.items() if re.search(names, simple)), None)
    texts = list(dict.fromkeys(text for value in values if (text := canonical(value))))
    look = _Look(column, simple, hipaa, texts, rows)
    for rule in (_nothing, _row_number, _repeated, _identifier, _postcode, _date, _few, _number):
        if guess := rule(look):
            return guess
    return look.guess("drop", "too many different texts to generalise")


def _nothing(look: _Look) -> Guess | None:
    return None if look.texts else look.guess("drop", "holds nothing but nulls")


def _row_number(look: _Look) -> Guess | None:
    """Numbers from the first row to the last, each once; or what nobody gave a name."""
    numbers = {x for text in look.texts if (x := number(text)) is not None}
    ends = max(numbers, default=Decimal(0)) - min(numbers, default=Decimal(0))
    counted = len(numbers) == len(look.texts) == look.rows == ends + 1
    if look.column == UNNAMED or (look.rows >= 20 and counted):
        return look.guess("drop", "row numbers")
    return None


def _repeated(look: _Look) -> Guess | None:
    """An id that several rows share."""
    some = 20 <= len(look.texts) <= look.rows / 1.5
    if not some or not re.search(_PERSON, look.simple):
        return None
    made = replace(look, hipaa="any other unique number").guess(
        "identifier", "an id that several rows share"
    )
    return replace(made, repeats=True)


def _identifier(look: _Look) -> Guess | None:
    sample = look.texts[:200]
    if all(_MAIL.fullmatch(text) for text in sample):
        return replace(look, hipaa="e-mail addresses").guess("identifier", "e-mail addresses")
    named = look.hipaa is not None and look.hipaa not in (*_GENERAL, "any other unique number")
    street = re.search(r"address|street", look.simple)
    if (named or street) and len(look.texts) > 2:
        return look.guess("identifier", f"called like {look.hipaa}")
    unique = look.rows >= 20 and len(look.texts) > 0.9 * look.rows
    decimals = any("." in text for text in sample if number(text) is not None)
    if unique and not decimals and not _days(look.texts):
        return look.guess("identifier", "almost every row has its own")
    return None


def _postcode(look: _Look) -> Guess | None:
    if not re.search(r"zip|post_?code|postal|plz", look.simple):
        return None
    length = max(len(text) for text in look.texts)
    if length > 12 or not all(text.isdigit() for text in look.texts):
        return None
    length = max(length, 5) if "zip" in look.simple else length
    return look.guess("quasi", "a postal code", f"{{mask: {{length: {length}}}}}")


def _date(look: _Look) -> Guess | None:
    days = _days(look.texts)
    if not days:
        return None
    low = max(min(days).year // 10 * 10, 1, max(days).year - 1000)
    high = min(max(days).year // 10 * 10 + 9, 9999)
    hierarchy = f"{{dates: {{from: {low:04}-01-01, to: {high:04}-12-31}}}}"
    reason = "dates; the range is that of the data, rounded to decades"
    return replace(look, hipaa="dates").guess("quasi", reason, hierarchy)


def _few(look: _Look) -> Guess | None:
    numbers = all(number(text) is not None for text in look.texts)
    if len(look.texts) > (_FEW_NUMBERS if numbers else _FEW_TEXTS):
        return None
    listed = ", ".join(quoted(text) for text in sorted(look.texts))
    role = "sensitive" if re.search(_SENSITIVE, look.simple) else "quasi"
    reason = f"{len(look.texts)} different values"
    return look.guess(role, reason, f"{{flat: {{values: [{listed}]}}}}")


def _number(look: _Look) -> Guess | None:
    numbers = [x for text in look.texts if (x := number(text)) is not None]
    if len(numbers) < len(look.texts):
        return None
    places = max(-int(x.as_tuple().exponent) for x in numbers)
    spread = max(numbers) - min(numbers)
    finest = Decimal(1).scaleb(-max(places, 0))
    # At most a hundred thousand steps, and ends that are round for the size of the numbers.
    step = max(finest, Decimal(1).scaleb(math.ceil(math.log10(max(spread, finest))) - 5))
    unit = max(step, Decimal(1).scaleb(math.floor(math.log10(max(spread, finest)))))
    low = (min(numbers) / unit).to_integral_value(ROUND_FLOOR) * unit
    high = (max(numbers) / unit).to_integral_value(ROUND_FLOOR) * unit + unit
    widths = [width for width in (5, 10, 50, 100) if step * width < (high - low) / 2]
    listed = ", ".join(_plain(step * width) for width in widths)
    steps = "" if step == 1 else f"step: {_plain(step)}, "
    fields = f"from: {_plain(low)}, to: {_plain(high)}, {steps}widths: [{listed}]"
    reason = "numbers; the range is that of the data, rounded outwards"
    return look.guess("quasi", reason, f"{{intervals: {{{fields}}}}}")


def _plain(x: Decimal) -> str:
    return canonical(x) or "0"


def _days(texts: Sequence[str]) -> list[dt.date]:
    """All values as dates, or none at all."""
    days = [iso_day(text) for text in texts]
    return [day for day in days if day] if all(days) else []
