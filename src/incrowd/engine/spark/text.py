"""Text files on Spark: what has to be known of them before they are read."""

from __future__ import annotations

import csv
from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as T  # noqa: N812

from incrowd.engine.local.text import delimiter_of, refuse_duplicates
from incrowd.engine.table import UNNAMED, TableError

_ODD = "_incrowd_odd"  # where Spark puts rows that do not fit
_MARK = "\ufeff"  # what some programs write before the first character


def read_text(session: Any, path: str, name: str, delimiter: str | None, header: int | None) -> Any:
    """A data frame of texts, the first row of each file its header; no type is guessed.

    One pass over the lines finds out whether quoted values go over several of them, which Spark
    has to know, whether the text is in UTF-8, and whether lines are blank, which Spark leaves out:
    of one column they are rows. Another pass finds rows of another length than the header: Spark
    itself would write them into its logs. Files of a folder with another header are refused when
    they are met.
    """
    if header not in (None, 1):
        raise TableError("On Spark, the first row of a text file is its header. Remove `header`.")
    ours = delimiter is not None
    lines = session.read.text(path)
    first = lines.first()
    if first is None:
        raise TableError(f"File '{name}': it is empty. Name a file with a table.")
    quotes = F.length("value") - F.length(F.replace("value", F.lit('"'), F.lit("")))
    odd = F.max(quotes % 2), F.max(~F.is_valid_utf8("value") | F.contains("value", F.lit("\0")))
    several, foreign, blank = lines.select(*odd, F.max(F.trim("value") == "")).first()
    if foreign:
        raise TableError(f"File '{name}': not UTF-8 text. Save it as UTF-8.")
    head = first[0].removeprefix(_MARK)
    delimiter = delimiter or delimiter_of(head)
    whole = head.count('"') % 2 == 0  # else a name goes over several lines
    names = next(csv.reader([head], delimiter=delimiter), []) if whole else []
    # Spark gives other names to columns without one, or alike but for case, and would then miss it.
    renamed = "" in names or len({one.lower() for one in names}) < len(names)
    options = {
        "sep": delimiter, "header": "true", "quote": '"', "escape": '"', "mode": "PERMISSIVE",
        "multiLine": str(bool(several)).lower(), "columnPruning": "false", "nullValue": "",
        "emptyValue": "", "encoding": "UTF-8", "inferSchema": "false",
        "enforceSchema": str(renamed).lower(),
    }  # fmt: skip
    frame = _of_one_length(session.read.options(**options), path, name, delimiter)
    if len(names) != len(frame.columns):
        names = frame.columns
    if blank and len(names) == 1:
        raise TableError(
            f"File '{name}': Spark skips the blank lines of its one column. Write rows without a "
            'value as "".'
        )
    if not ours and names[:1] in ([""], ["_c0"]) and UNNAMED not in names:
        names = [UNNAMED, *names[1:]]
    refuse_duplicates(list(names), f"The file '{name}'")
    return frame.toDF(*names)


def _of_one_length(reader: Any, path: str, name: str, delimiter: str) -> Any:
    """A data frame all of whose rows have as many fields as the header."""
    inner = reader.csv(path).columns
    fields = [T.StructField(column, T.StringType()) for column in [*inner, _ODD]]
    reader = reader.option("columnNameOfCorruptRecord", _ODD)
    frame = reader.schema(T.StructType(fields)).csv(path)
    # Spark does not let anybody ask for what is odd alone.
    odd = frame.toDF(*[f"c{at}" for at in range(len(inner))], _ODD)
    bad, *_ = odd.select(F.count(_ODD), F.count("c0")).first()
    if bad:
        raise TableError(
            f"File '{name}': {bad:,} rows differ from the header in their number of fields. Quote "
            f"delimiters in values, or correct the delimiter '{delimiter}'."
        )
    return frame.drop(_ODD)
