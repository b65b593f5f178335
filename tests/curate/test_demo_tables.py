"""Sample tables: decided by their seed, and distributed as documented."""

from __future__ import annotations

import polars as pl
import pytest

from incrowd.curate.demo_tables import make_demo_table


def frame(kind: str, rows: int, seed: int = 1) -> pl.DataFrame:
    result: pl.DataFrame = make_demo_table(kind, rows=rows, seed=seed).to_frame()
    return result


@pytest.mark.parametrize("kind", ["voters", "patients", "census"])
def test_samples_are_decided_by_their_seed(kind: str) -> None:
    assert frame(kind, 500).equals(frame(kind, 500))
    assert not frame(kind, 500).equals(frame(kind, 500, seed=2))


def test_samples_have_the_documented_distributions() -> None:
    voters = frame("voters", 60_000)
    women = voters.filter(pl.col("sex") == "female", pl.col("birth_year") > 1990)["height"]
    men = voters.filter(pl.col("sex") == "male", pl.col("birth_year") > 1990)["height"]
    # standard errors are below 0.06 and the tolerance is five of them
    assert abs(float(women.mean() or 0) - 162.1) < 0.3  # type: ignore[arg-type]
    assert abs(float(men.mean() or 0) - 175.7) < 0.3  # type: ignore[arg-type]
    assert abs(len(voters.filter(pl.col("sex") == "female")) / 60_000 - 0.53) < 0.01
    assert voters["zip"].str.len_chars().unique().to_list() == [5]
    assert voters["email"].n_unique() == 60_000
    patients = frame("patients", 60_000)
    logs = patients.filter(pl.col("sex") == "male")["weight"].log()
    assert abs(float(logs.skew() or 0)) < 0.1  # log-normal  # type: ignore[arg-type]
    census = frame("census", 60_000)
    rich = census.group_by("education").agg((pl.col("salary_class") == ">50K").mean())
    shares = dict(rich.iter_rows())
    assert shares["Doctorate"] > 2 * shares["HS-grad"]
    assert make_demo_table("voters").rows() == 134_791
    assert make_demo_table("patients").rows() == 72_825
    assert make_demo_table("census").rows() == 32_440
