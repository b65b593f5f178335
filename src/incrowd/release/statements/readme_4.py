"""The page for readers beside data of format 4, from the certificate alone.

Whoever verifies a release writes it again and compares, so its words never change either. Names
come from anywhere: they are written so that Markdown, and the languages of the examples, take
them for nothing but names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from incrowd.privacy.counts import law_of
from incrowd.release.statements import Parameters
from incrowd.release.statements.format_3 import noise_of

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate, SchemeColumn, Slice

_COUNT = "count"
_CONTROL = "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
_GRAMMAR = {
    "nothing": "`*` in every row: nothing of this column is shown.",
    "numbers": "a number.",
    "numbers or text": "a number, or a word for what is outside the listed values.",
    "a-b": "`a-b` is everything from a to b, both included; `a` alone is that number; `<a` and "
    "`>a` are everything below and above a. Pattern: `^<?(\\d+)(?:->?(\\d+))?$` or `^[<>](\\d+)$`.",
    "a to b": "`a to b` is everything from a to b, both included; `a` alone is that number; `<a` "
    "and `>a` are everything below and above a. Pattern: `^<?(-?[\\d.]+)(?: to >?(-?[\\d.]+))?$` "
    "or `^[<>](-?[\\d.]+)$`.",
    "[a, b)": "`[a, b)` is everything from a, included, to b, not included; `[a, b]` includes "
    "both; `<a` and `>a` are everything below and above a. Pattern: "
    "`^\\[(-?[\\d.]+), (-?[\\d.]+)[)\\]]$` or `^[<>](-?[\\d.]+)$`.",
    "days": "a day, `YYYY-MM-DD`.",
    "months": "a month, `YYYY-MM`.",
    "quarters": "a quarter, `YYYY-Qn`.",
    "masked": "characters; each `*` hides one.",
    "text": "a value or the name of a group.",
}


def readme(certificate: Certificate) -> str:
    """The page."""
    parts = [
        _head(certificate),
        _rows(certificate),
        _columns(certificate),
        _scale(certificate),
        _missing(certificate),
        _load(certificate),
        _verify(certificate),
    ]
    return "\n\n".join(parts) + "\n"


def _head(certificate: Certificate) -> str:
    files = ", ".join(f"`{table.release.file}`" for table in certificate.tables)
    return (
        f"# About these data\n\n{files}: released on {certificate.date} with Incrowd "
        f"{certificate.incrowd}, method `{certificate.method}`. This page says how to read them. "
        "`certificate.json` says what is promised, and everything that it takes to check it.\n\n"
        f"> {_prose(certificate.guarantee.statement)}"
    )


def _rows(certificate: Certificate) -> str:
    first = certificate.tables[0]
    known, unit = first.parameters, certificate.guarantee.unit
    of = "the row of a person" if unit == "one person" else "a row of the original table"
    if certificate.by_counts:
        words = (
            "A row is nobody's record. Rows that show the same in every column are a cell; how "
            "many there are is how many there were in the original table, plus random noise. What "
            "the data tell is how many rows of each kind there are."
        )
    elif certificate.method == "safe":
        words = (
            f"A row is {of}, drawn at random with the probability under *How to weigh*, with every "
            "column made coarser. Only rows that are alike to many others are here."
        )
    elif known.get("algorithm") == "duplicate":
        words = f"A row is {of}, shown as often as there are rows in its class."
    else:
        words = f"A row is {of}, with some columns made coarser"
        words += (
            f", and random noise in {_listed(certificate.noisy)}." if certificate.noisy else "."
        )
        words += f" In the columns that were made coarser, at least {certificate.k} rows are alike."
    if known.get("suppressed") == "starred":
        words += " Rows that show `*` in every such column stand for rows that were suppressed."
    if first.release.form == "weighted":
        words += (
            f" The column `{_COUNT}` says how many rows a line stands for; add it up wherever you "
            "would count lines."
        )
    lines = [
        f"- `{table.release.file}`: {table.release.rows:,} rows in {table.release.classes:,} "
        f"groups of alike ones, the smallest of {table.release.smallest_class:,}."
        for table in certificate.tables
    ]
    if len(certificate.tables) > 1:
        words += (
            " The files show different columns of the same table. Their rows do not belong "
            "together: do not join them."
        )
    return "## What a row means\n\n" + words + "\n\n" + "\n".join(lines)


def _columns(certificate: Certificate) -> str:
    lines = ["| column | shows |", "| --- | --- |"]
    forms: dict[str, None] = {}
    for table in certificate.tables:
        several = f" (in `{table.release.file}`)" if len(certificate.tables) > 1 else ""
        for name, column in table.scheme.items():
            lines.append(f"| {_in_cell(name)}{several} | {_shows(column)} |")
            forms[str(column.labels)] = None
    lines += [f"| {_in_cell(name)} | the value as it was. |" for name in certificate.kept]
    for name, grid in certificate.noisy.items():
        bounds = f", from {grid.bounds[0]} to {grid.bounds[1]}" if grid.bounds else ""
        what = "a day" if grid.kind == "date" else "a number"
        lines.append(
            f"| {_in_cell(name)} | {what} with random noise, a multiple of {grid.step}{bounds}. A "
            "single value is of no use; means over many rows are. |"
        )
    grammar = [f"- **{form}**: {_GRAMMAR[form]}" for form in forms]
    if any(
        column.level is None for table in certificate.tables for column in table.scheme.values()
    ):
        grammar.append("- Where *any level* stands, fine and coarse labels are side by side.")
    grammar.append("- `*`: nothing is shown. A null (an empty field): the value was missing.")
    if certificate.tables[0].release.formulas:
        grammar.append(
            "- An apostrophe before `=`, `+` or `@` keeps spreadsheets from running a text; take "
            "it away."
        )
    return "## The columns\n\n" + "\n".join(lines) + "\n\nLabels:\n\n" + "\n".join(grammar)


def _shows(column: SchemeColumn) -> str:
    level = "any level" if column.level is None else f"level {column.level}"
    if column.file is not None:
        source = (
            f"{level} of [{_plain(column.file)}](<{_plain(column.file)}>), which lists every value"
        )
    else:
        source = f"{level} of a rule: {_in_cell(json.dumps(column.rule, sort_keys=True))}"
    other = f"; {_in_cell(column.other)} is any other value" if column.other is not None else ""
    return f"**{column.labels}**; {source}{other}."


def _scale(certificate: Certificate) -> str:
    alike: dict[str, list[str]] = {}
    for table in certificate.tables:
        alike.setdefault(_weighed(certificate, table), []).append(f"`{table.release.file}`")
    parts = [
        words if len(alike) == 1 else f"{', '.join(files)}: {words}"
        for words, files in alike.items()
    ]
    return "## How to weigh\n\n" + "\n\n".join(parts)


def _weighed(certificate: Certificate, table: Slice) -> str:
    known = table.parameters
    if certificate.by_counts:
        law = law_of(noise_of(known))
        return (
            f"Take numbers of rows as they are; no weight is needed. The number of a cell "
            f"is off by at most {int(known['r'])}, with a standard deviation of "
            f"{law.variance**0.5:.3g}; a sum over c cells is off by about the square root of c "
            "times that. "
            "Compare numbers only where they differ by more."
        )
    if certificate.method == "safe":
        beta = float(known["beta"])
        words = (
            f"Each row was drawn with probability {beta!r}, so a number of rows stands "
            f"for about {1 / beta:.6g} times as many in the original table. n rows are then off by "
            f"about the square root of n, times {(1 - beta) ** 0.5 / beta:.3g}."
        )
        return words + _population({**certificate.parameters, **known})
    words = "A row counts as one; no weight is needed."
    if certificate.noisy:
        words += (
            f" The noise of {_listed(certificate.noisy)} has mean 0: means over many rows are "
            "right, single values, extremes and medians of few rows are not."
        )
    return words


def _population(known: Parameters) -> str:
    if "already_sampled" not in known:
        return ""
    rate = float(known["already_sampled"])
    return (
        f" The original table was itself a sample with probability {rate!r}: for the population, "
        f"take {1 / rate:.6g} times that."
    )


def _missing(certificate: Certificate) -> str:
    if certificate.tables[0].parameters.get("suppressed") == "starred":
        return (
            "## What is missing\n\nRows that would have stood out show `*` in every column that "
            "was made coarser, and nothing else. They are in the total and in no group: groups add "
            "up to less than the total, rare groups most of all. A group that is not here may "
            "exist."
        )
    alike: dict[str, list[str]] = {}
    for one in certificate.of_each_table():
        alike.setdefault(_threshold(one), []).append(f"`{one.table.release.file}`")
    what = " ".join(
        f"{words}." if len(alike) == 1 else f"{', '.join(files)}: {words}."
        for words, files in alike.items()
    )
    return (
        f"## What is missing\n\n{what} So totals are too small, by a number that is not told, and "
        "rare groups are missing more than common ones: shares of rare groups are too small, and "
        "rates among them are those of their common kinds. A group that is not here may exist: "
        "missing is not zero. Prefer comparisons within what is shown to totals."
    )


def _threshold(certificate: Certificate) -> str:
    if certificate.by_counts:
        return f"Cells with fewer than {certificate.least} rows (noise included) are not shown"
    if certificate.method == "safe":
        return f"Rows of which fewer than {certificate.k} alike were drawn are not shown"
    return "Rows that would have stood out may have been left out"


def _load(certificate: Certificate) -> str:
    parts, tables = ["## How to load"], certificate.tables
    if tables[0].release.file.endswith(".parquet"):
        blocks = list(_from_parquet(tables[0].release.file))
        tail = ["The other files are loaded in the same way."] if len(tables) > 1 else []
    else:
        blocks = [
            block
            for table in tables
            for block in _from_csv(table.release.file, _numbers(certificate, table))
        ]
        tail = []
    parts += [f"{title}\n\n```{language}\n{code}\n```" for title, language, code in blocks]
    return "\n\n".join([*parts, *tail])


def _numbers(certificate: Certificate, table: Slice) -> list[str]:
    """The columns that hold nothing but numbers, in any file."""
    found = [name for name, column in table.scheme.items() if column.labels == "numbers"]
    found += [name for name, grid in certificate.noisy.items() if grid.kind == "number"]
    return found + ([_COUNT] if table.release.form == "weighted" else [])


def _from_parquet(file: str) -> Iterator[tuple[str, str, str]]:
    yield "With pandas:", "python", f'import pandas as pd\n\ndata = pd.read_parquet("{file}")'
    yield "With Polars:", "python", f'import polars as pl\n\ndata = pl.read_parquet("{file}")'
    yield (
        "With R and its package arrow (our tests do not run this example):",
        "r", f'data <- arrow::read_parquet("{file}")',
    )  # fmt: skip


def _from_csv(file: str, numbers: list[str]) -> Iterator[tuple[str, str, str]]:
    """As text, so that nothing is guessed, with numbers where there is nothing else."""
    listed = ", ".join(map(_quoted, numbers))
    options = 'dtype=str, keep_default_na=False, na_values=[""], skip_blank_lines=False'
    pandas = ["import pandas as pd\n", f'data = pd.read_csv("{file}", {options})']
    polars = ["import polars as pl\n", f'data = pl.read_csv("{file}", infer_schema=False)']
    options = 'colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8"'
    r = [f'data <- read.csv("{file}", {options}, blank.lines.skip = FALSE)']
    if numbers:
        pandas.append(f"for name in [{listed}]:\n    data[name] = pd.to_numeric(data[name])")
        polars.append(
            f"for name in [{listed}]:\n    data = data.with_columns(data[name].cast(float))"
        )
        r.append(f"for (name in c({listed})) data[[name]] <- as.numeric(data[[name]])")
    yield "With pandas:", "python", "\n".join(pandas)
    yield "With Polars:", "python", "\n".join(polars)
    yield "With R:", "r", "\n".join(r)


def _verify(certificate: Certificate) -> str:
    known = certificate.guarantee
    promise = known.kind
    if known.epsilon is not None and known.delta is not None:
        promise += f", epsilon = {known.epsilon!r}, delta = {known.delta!r}"
    return (
        "## How to verify and to cite\n\n```sh\npip install incrowd\nincrowd verify .\n```\n\n"
        "That checks, from this folder alone, that nothing was changed since the certificate was "
        "made (this page included), that every group is as large as promised, and that the "
        "guarantee follows. Who made the certificate, only a signature tells: compare its key with "
        "one that you have from its publisher.\n\nCite as: *title and publisher*, released "
        f"{certificate.date} with Incrowd {certificate.incrowd} ({promise}), certificate "
        f"{certificate.seal}."
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_code, names))


def _in_cell(text: str) -> str:
    """Code in a cell of a table, where a bar would end it."""
    return _code(text).replace("|", "\\|")


def _plain(text: str) -> str:
    """Text on one line, without what Markdown would take for the end of a cell or a link."""
    return _spelled(text).replace("|", "\\|").replace("<", "%3C").replace(">", "%3E")


def _prose(text: str) -> str:
    """Text that Markdown takes for nothing but text."""
    return re.sub(r"([\\`*_\[\]<>&|#~$!])", r"\\\1", _spelled(text))


def _code(text: str) -> str:
    """Text between as many backticks as it takes, on one line."""
    spelled = _spelled(text)
    longest = max((len(run) for run in re.findall("`+", spelled)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest or spelled != spelled.strip() else ""
    return f"{fence}{space}{spelled}{space}{fence}"


def _spelled(text: str) -> str:
    """Text with control characters, and those that turn text around, spelled out."""
    return re.sub(_CONTROL, lambda one: f"\\x{ord(one[0]):02x}", text)


def _quoted(text: str) -> str:
    """Text in quotes as Python and R both read it."""
    return f'"{"".join(map(_letter, text))}"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    code = ord(letter)
    if 32 <= code < 127:
        return letter
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
