"""Tables and specs that nobody would write, and some that everybody does, by number."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import polars as pl

NAMES = (
    "age", "price $x_$", "<b>bold</b>", "=1+1", "a b", "naïve", "名前", "😀 smile", "x" * 150, "$",
    "\\frac{1}{2}", "{braces}", "%s %d", "it's", 'say "hi"', "semi;colon", "comma,name",
    "tab\there", "dot.ted", "UPPER", "a/b", "..", "C:\\x", "rtl \u202e", "level 1", "count",
    "number", "draw", "id", "_incrowd", "null", "true", "39", "-1", " padded ", "new\nline",
    "#hash", "* star", "&amp;", "^_^", "^a$", "^.*$", "*", "code", "value", "place",
)  # fmt: skip


def _draw_texts(draw: random.Random, rows: int) -> tuple[list[Any], Any]:
    pool = draw.sample(
        ["a", "b", "c", "True", "false", "*", "é;ü", "x" * 300, "=cmd", "1", "01", " 7", "$y$"], 4
    )
    values = [draw.choice([*pool, None] if draw.random() < 0.3 else pool) for _ in range(rows)]
    texts = list(dict.fromkeys(str(value).strip() for value in pool))
    kinds: list[Any] = [
        "flat", {"flat": {"values": texts}}, {"order": {"values": texts, "runs": [2]}},
        {"groups": {"G": texts[:2], "H": texts[2:]}},
        {"mask": {"length": 2, "alphabet": "abc01"}},
    ]  # fmt: skip
    return values, draw.choice(kinds)


def _draw_numbers(draw: random.Random, rows: int) -> tuple[list[Any], Any]:
    kind = draw.choice(["int", "float", "large", "negative"])
    high = {"int": 30, "float": 30, "large": 2**53, "negative": 30}[kind]
    values: list[Any] = [draw.randrange(high) for _ in range(rows)]
    if kind == "negative":
        values = [value - 15 for value in values]
    if kind == "float":
        values = [value / 2 for value in values]
    step = high // 30
    widths = {"from": -15 if kind == "negative" else 0, "to": high, "step": step or 1}
    ladder = {**widths, "widths": [5 * (step or 1), 10 * (step or 1)]}
    return values, draw.choice([{"intervals": ladder}, "flat", {"intervals": {"from": 0, "to": 3}}])


def _draw_days(draw: random.Random, rows: int) -> tuple[list[Any], Any]:
    start = dt.date(2020, 1, 1)
    values: list[Any] = [start + dt.timedelta(draw.randrange(90)) for _ in range(rows)]
    if draw.random() < 0.3:
        values = [dt.datetime(day.year, day.month, day.day, draw.randrange(24)) for day in values]
    return values, draw.choice([{"dates": {"from": "2020-01-01", "to": "2020-12-31"}}, "flat"])


def _draw_flags(draw: random.Random, rows: int) -> tuple[list[Any], Any]:
    values = [draw.random() < 0.5 for _ in range(rows)]
    return values, draw.choice(["flat", {"flat": {"values": [True, False]}}])


def _draw_column(draw: random.Random, rows: int) -> tuple[pl.Series, Any]:
    values, hierarchy = draw.choice(
        [_draw_texts, _draw_numbers, _draw_numbers, _draw_days, _draw_flags]
    )(draw, rows)
    if draw.random() < 0.2:
        values = [None if draw.random() < 0.2 else value for value in values]
    series = pl.Series(values, strict=False) if values else pl.Series(values, dtype=pl.String)
    if draw.random() < 0.1:
        series = series.cast(pl.String)
    elif series.dtype == pl.String and draw.random() < 0.1:
        series = series.cast(pl.Categorical)
    elif series.dtype == pl.Int64 and draw.random() < 0.2:
        kinds: list[Any] = [pl.Float32, pl.Decimal(20, 2), pl.Duration("us")]
        series = series.cast(draw.choice(kinds))
    return series, hierarchy


IDS = ("patient", "idcode", "hhid", "mrn", "nhs_number", "subject_id", "respondent")


def _draw_ids(draw: random.Random, rows: int) -> pl.Series:
    """Ids of one of several forms; a person has one row, or several, or one has very many."""
    people = max(draw.choice([rows, rows // 2, rows // 8]), 1)
    whose = [draw.randrange(people) for _ in range(rows)]
    if draw.random() < 0.3:
        whose = [0 if draw.random() < 0.5 else person for person in whose]
    form = draw.choice(["P{0:05}", "{0:08x}-0000-4000-8000-{0:012x}", "P-{0:04}", "{0:09}", None])
    if form is None:
        return pl.Series([10_000 + person for person in whose], dtype=pl.Int64)
    return pl.Series([form.format(person) for person in whose], dtype=pl.String)


def _add_ids(draw: random.Random, frame: pl.DataFrame, document: dict[str, Any]) -> pl.DataFrame:
    """The table with a column of ids, in any role, and perhaps the unit."""
    name = draw.choice(IDS)
    role = draw.choices(["identifier", "drop", "quasi", "sensitive"], [14, 4, 1, 1])[0]
    document["columns"][name] = {"role": role}
    if role in ("quasi", "sensitive"):
        document["columns"][name]["hierarchy"] = "flat"
    elif draw.random() < 0.6:
        document["unit"] = {"id": name}
    return frame.with_columns(_draw_ids(draw, frame.height).alias(name))


def _draw_safe_release(draw: random.Random, names: list[str]) -> dict[str, Any]:
    release: dict[str, Any] = {"epsilon": draw.choice([0.5, 1, 3]), "delta": 1e-6}
    scheme = draw.choice([None, None, "fixed", "search", "mondrian"])
    if scheme:
        release["scheme"] = scheme
    if draw.random() < 0.3:
        release["keep"] = draw.choice([0.3, 0.7])
    if len(names) > 3 and draw.random() < 0.5:
        release["slices"] = draw.choice([2, 3, {"columns": 2, "tables": len(names) // 2 + 1}])
    if draw.random() < 0.2:
        release["already_sampled"] = 0.5
    if scheme == "fixed" and draw.random() < 0.4:
        release = {"k": 20, "beta": 0.2, "epsilon": 1, "scheme": "fixed"}
    elif "keep" not in release and scheme != "mondrian" and draw.random() < 0.5:
        release["draw"] = "sample"  # which is counts otherwise
    return release


def _draw_release(draw: random.Random, names: list[str], noisy: list[str]) -> dict[str, Any]:
    method = "k-epsilon" if noisy else draw.choice(["safe", "safe", "k-anonymity"])
    if method == "safe":
        release = _draw_safe_release(draw, names)
    else:
        algorithm = draw.choice(["ola", "mondrian", "cluster", "duplicate"][: 2 if noisy else 4])
        release = {"method": method, "k": draw.choice([2, 5, 10]), "algorithm": algorithm}
        if algorithm == "ola":
            release["suppression"] = draw.choice([0, 0.05, 1])
        if method == "k-epsilon":
            release["epsilon"] = draw.choice([0.1, 1, 8])
            if draw.random() < 0.3:
                release |= {"noise": "gaussian", "delta": 1e-6}
        elif draw.random() < 0.3:
            release["suppressed"] = "starred"
    if method != "k-epsilon":
        release["rows"] = draw.choice(["expanded", "counted"])
    release["format"] = draw.choice(["parquet", "csv"])
    if release["format"] == "csv" and draw.random() < 0.3:
        release["formulas"] = "escape"
    return release


def draw_case(number: int) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A table and a spec."""
    draw = random.Random(number)
    wide = number % 50 == 0
    width = draw.choice([40, 65, 100]) if wide else draw.randrange(1, 8)
    rows = draw.choice([0, 1, 2, 30, 300, 300, 1000])
    names = [*draw.sample(NAMES, min(width, len(NAMES))), *(f"c{at}" for at in range(100))][:width]
    columns, spec = {}, {}
    noisy: list[str] = []
    with_noise = draw.random() < 0.2 and not wide
    for name in names:
        series, hierarchy = _draw_column(draw, rows)
        columns[name] = series.alias(name)
        role = draw.choices(["quasi", "sensitive", "identifier", "drop"], [8, 2, 1, 1])[0]
        if with_noise and series.dtype in (pl.Int64, pl.Date) and not noisy:
            role = "noisy"
            noisy.append(name)
        spec[name] = {"role": role}
        if role == "quasi" or (role == "sensitive" and draw.random() < 0.8):
            spec[name]["hierarchy"] = hierarchy
            if draw.random() < 0.1:
                spec[name]["other"] = draw.choice(["elsewhere", "*"])
    published = [name for name, entry in spec.items() if entry["role"] in ("quasi", "sensitive")]
    document: dict[str, Any] = {"columns": spec, "release": _draw_release(draw, published, noisy)}
    if draw.random() < 0.15:
        person = draw.choice(names)
        spec[person] = {"role": "identifier"}  # or the spec is refused
        document["unit"] = (
            {"id": person, "without_id": "drop"} if draw.random() < 0.7 else {"id": person}
        )
    frame = pl.DataFrame(columns)
    more = random.Random(-1 - number)  # so that the cases themselves stay what they were
    if more.random() < 0.4 and not wide:
        frame = _add_ids(more, frame, document)
    if more.random() < 0.3:
        document["size"] = "public"
    return frame, document
