"""Code that loads the data of a release and counts with it, in Python and in R.

Names of columns come from anywhere: they are written so that both languages read them as names.
"""

from __future__ import annotations

from collections.abc import Iterator

from incrowd.codes.counted_table import COUNT
from incrowd.codes.household_type import HOUSEHOLD_KEY
from incrowd.release.certificate import Certificate, Slice

RANGES = ("a-b", "a to b", "[a, b)")
_N = r"-?[\d.]+"
# Ranges with two ends; the groups of R's are all captured, and the second of them is not used
_PYTHON = {
    "a-b": r"^(\d+)(?:-(\d+))?$",
    "a to b": rf"^({_N})(?: to ({_N}))?$",
    "[a, b)": rf"^\[({_N}), ({_N})[)\]]$",
}
_R = {
    "a-b": "^([0-9]+)(-([0-9]+))?$",
    "a to b": "^(-?[0-9.]+)( to (-?[0-9.]+))?$",
    "[a, b)": r"^\\[(-?[0-9.]+)(, )(-?[0-9.]+)[])]$",
}


def list_load_examples(certificate: Certificate) -> Iterator[tuple[str, str, str]]:
    """Return examples of how to load the data: the tool, its language, the code."""
    tables = certificate.tables
    if tables[0].release.file.endswith(".parquet"):
        yield from _write_parquet_examples(tables[0].release.file)
        return
    for table in tables:
        yield from _write_csv_examples(
            table.release.file, _list_numeric_columns(certificate, table)
        )


def _list_numeric_columns(certificate: Certificate, table: Slice) -> list[str]:
    """Return the columns that contain nothing but numbers."""
    names = [name for name, column in table.scheme.items() if column.labels == "numbers"]
    if certificate.synthetic is not None:
        types = certificate.synthetic.types
        names = [name for name in types if types[name] in ("integer", "number")]
        names += [*certificate.synthetic.keys, *(certificate.synthetic.references or {})]
    names += [HOUSEHOLD_KEY] if certificate.links is not None else []
    names += [name for name, grid in certificate.noisy.items() if grid.kind == "number"]
    return names + ([COUNT] if table.release.form == "counted" else [])


def _write_parquet_examples(file: str) -> Iterator[tuple[str, str, str]]:
    yield "pandas", "python", f'import pandas as pd\n\ndata = pd.read_parquet("{file}")'
    yield "Polars", "python", f'import polars as pl\n\ndata = pl.read_parquet("{file}")'
    yield (
        "R and its package arrow (not run by Incrowd's tests)",
        "r", f'data <- arrow::read_parquet("{file}")',
    )  # fmt: skip


def _write_csv_examples(file: str, numbers: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield code that reads text, so that nothing is guessed, and columns of numbers."""
    listed = ", ".join(map(quote_text, numbers))
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
    yield "pandas", "python", "\n".join(pandas)
    yield "Polars", "python", "\n".join(polars)
    yield "R", "r", "\n".join(r)


def list_use_examples(certificate: Certificate) -> Iterator[tuple[str, str, str, str]]:
    """Return examples of how to count, and how to bound a mean: task, column, Python, R."""
    table = certificate.tables[0]
    names = [name for name, column in table.scheme.items() if column.labels != "nothing"]
    if names:
        name = _choose_readable(table, names)
        yield "count", name, *_write_count(name, table)
    ranges = [name for name in names if table.scheme[name].labels in RANGES]
    if ranges:
        yield "mean", ranges[0], *_write_bounds(ranges[0], table)


def _choose_readable(table: Slice, names: list[str]) -> str:
    """Return the column with the fewest labels, but more than one, where that is known."""

    def count_labels(name: str) -> int:
        column = table.scheme[name]
        level = column.level or 0
        return column.sizes[level] if level < len(column.sizes) else 0

    sizes = {name: count_labels(name) for name in names}
    several = [name for name in names if sizes[name] > 1]
    return min(several, key=sizes.__getitem__) if several else names[0]


def _write_count(name: str, table: Slice) -> tuple[str, str]:
    """Return code for the counts of a column; of a sample, for the rows that it stands for."""
    column, count = quote_text(name), quote_text(COUNT)
    python, r = f"data.groupby({column}, dropna=False)", f"addNA(data[[{column}]], ifany = TRUE)"
    if table.release.form == "counted":
        python, r = f"{python}[{count}].sum()", f"tapply(data[[{count}]], {r}, sum)"
    else:
        python, r = f"{python}.size()", f"table({r})"
    weight = f" / {float(table.parameters['beta'])!r}" if "beta" in table.parameters else ""
    return python + weight, r + weight


def _write_bounds(name: str, table: Slice) -> tuple[str, str]:
    """Return code for the mean of the lower and of the upper ends of ranges with both ends."""
    column, count, form = quote_text(name), quote_text(COUNT), table.scheme[name].labels
    python = [f'ends = data[{column}].str.extract(r"{_PYTHON[form]}").astype(float).ffill(axis=1)']
    r = [
        f'ends <- strcapture("{_R[form]}", as.character(data[[{column}]]),',
        '                   data.frame(low = 0, between = "", high = 0))',
        "ends$high <- ifelse(is.na(ends$high), ends$low, ends$high)",
    ]
    mean = "mean(ends${}, na.rm = TRUE)"
    if table.release.form == "counted":
        python.append(f"weights = data[{count}].where(ends[0].notna())")
        python.append("ends.mul(weights, axis=0).sum() / weights.sum()")
        mean = f"weighted.mean(ends${{}}, data[[{count}]], na.rm = TRUE)"
    else:
        python.append("ends.mean()")
    r.append(f"c({mean.format('low')}, {mean.format('high')})")
    return "\n".join(python), "\n".join(r)


# Text in quotes ------------------------------------------------------------------------------


def quote_text(text: str) -> str:
    """Return text in quotes as Python and R both read it."""
    return f'"{"".join(map(_escape_letter, text))}"'


def _escape_letter(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    code = ord(letter)
    if 32 <= code < 127:
        return letter
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
