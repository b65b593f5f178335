"""A table with several rows per person, from the spec to the checked release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from pyspark.sql import SparkSession
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.curate.check import find_refusals
from incrowd.engine.local.engine import ENGINE
from incrowd.engine.spark.engine import SparkEngine
from incrowd.errors import IncrowdError
from incrowd.privacy.randomness import SeededRandomness, SystemRandomness
from incrowd.release.certificate import Certificate
from incrowd.release.verify import verify
from incrowd.spec.file import load_spec

WARDS = ["ear", "eye", "heart", "lung"]


def make_visits(people: int = 3000, *, most: int = 9, seed: int = 3) -> pl.DataFrame:
    """Visits of people who mostly come back to the same ward."""
    draws = np.random.default_rng(seed)
    rows = np.minimum(draws.geometric(0.3, people), most)
    person = np.repeat(np.arange(people), rows)
    usual = draws.integers(0, 4, people)[person]
    ward = np.where(draws.random(len(person)) < 0.6, usual, draws.integers(0, 4, len(person)))
    sex = draws.integers(0, 2, people)[person]
    return pl.DataFrame(
        {
            "patient": [f"P{number:05d}" for number in person],
            "sex": [["f", "m"][at] for at in sex],
            "ward": [WARDS[at] for at in ward],
        }
    )


def make_spec(most: int, **release: Any) -> dict[str, Any]:
    tree = {"groups": {"head": ["ear", "eye"], "chest": ["heart", "lung"]}}
    return {
        "unit": {"id": "patient", "rows": most},
        "columns": {
            "patient": {"role": "identifier"},
            "sex": {"role": "quasi", "hierarchy": {"flat": {"values": ["f", "m"]}}},
            "ward": {"role": "quasi", "hierarchy": tree},
        },
        "release": {"method": "safe", "epsilon": 1.0, "delta": 1e-6, **release},
    }


def test_each_count_is_one_of_people_and_off_by_the_noise_alone(tmp_path: Path) -> None:
    visits = make_visits()
    assert max(visits.group_by("patient").len()["len"].to_list()) == 9
    spec = make_spec(9, levels={"sex": 0, "ward": 0}, rows="counted")
    release = publish_unjudged(visits, spec, output=tmp_path / "out")
    r = release.certificate.parameters["r"]
    people = visits.group_by("sex", "ward").agg(pl.col("patient").n_unique().alias("true"))
    both = pl.read_parquet(tmp_path / "out/data.parquet").join(people, on=["sex", "ward"])
    assert len(both) == 8
    errors = (both["count"].cast(pl.Int64) - both["true"].cast(pl.Int64)).abs()
    assert errors.max() <= r  # type: ignore[operator]
    rows = visits.group_by("sex", "ward").len()
    assert (rows.join(people, on=["sex", "ward"])["len"] - people["true"]).max() > r  # type: ignore[operator]
    assert not verify(tmp_path / "out")


def test_report_and_evaluate_agree_and_recipients_are_told(tmp_path: Path) -> None:
    visits, spec = make_visits(), make_spec(3)
    release = ic.publish(visits, spec, output=tmp_path / "out")
    evaluation = ic.evaluate(visits, release, spec)
    assert release.evaluation is not None
    assert evaluation.rows_original == release.evaluation.rows_original
    assert evaluation.suppressed == release.evaluation.suppressed
    assert evaluation.loss == pytest.approx(release.evaluation.loss)
    texts = {sentence.key: sentence.text for sentence in release.certificate.guarantee.statement}
    assert "up to 3 rows per person" in texts["unit"]
    assert "5 different people" in texts["k_anonymity"]
    assert "up to 3 times" in (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert release.unused > 0


@pytest.mark.parametrize(
    "change", [{"rows_per_person": 2.0}, {"rows_per_person": None}, {"unit": "one row"}]
)
def test_a_certificate_that_charges_fewer_rows_is_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    publish_unjudged(make_visits(), make_spec(3), output=tmp_path / "out")
    path = tmp_path / "out/certificate.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    if "unit" in change:
        content["guarantee"]["unit"] = change["unit"]
    elif change["rows_per_person"] is None:
        del content["parameters"]["rows_per_person"]
    else:
        content["parameters"] |= change
    altered = Certificate.model_validate(content).with_statement().with_seal()
    path.write_bytes(altered.to_canonical_json())
    codes = {finding.code for finding in verify(tmp_path / "out")}
    assert codes & {"PARAMETERS_DIFFER", "GUARANTEE_KIND_DIFFERS"}


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ({"draw": "sample"}, "needs `draw: counts`"),
        ({"beta": 0.2}, "needs `draw: counts`"),
        ({"scheme": "mondrian"}, "needs `draw: counts`"),
        ({"method": "synthetic"}, "`rows` above 1 is for `safe`"),
    ],
)
def test_what_has_no_tight_bound_is_refused_with_the_reason(
    release: dict[str, Any], words: str
) -> None:
    with pytest.raises(IncrowdError, match=words):
        publish_unjudged(make_visits(50), make_spec(3, **release))


def test_check_says_where_the_search_of_levels_is_noisier() -> None:
    levels = {"sex": 0, "ward": 0}
    noted = [
        {finding.code for finding in find_refusals(load_spec(spec))}
        for spec in (make_spec(4), make_spec(1), make_spec(4, levels=levels))
    ]
    assert ["SEARCH_NOISIER" in codes for codes in noted] == [True, False, False]


def test_slices_charge_every_table(tmp_path: Path) -> None:
    spec = make_spec(2, slices=[["sex"], ["ward"]])
    release = publish_unjudged(make_visits(), spec, output=tmp_path / "out")
    kinds = [event["kind"] for event in release.certificate.events]
    assert kinds == ["composition", "composition"]
    assert not verify(tmp_path / "out")


def test_chosen_rows_are_at_most_m_and_each_as_likely() -> None:
    """Chi-square of 10 pairs of 5 rows over 4,000 people: wrong once in 10,000 runs; seeded."""
    table = ENGINE.from_columns(
        {"id": [str(at // 5) for at in range(20_000)], "row": [at % 5 for at in range(20_000)]}
    )
    chosen = table.choose_rows_per_person("id", 2, SeededRandomness(7)).to_frame()
    pairs = chosen.group_by("id").agg(pl.col("row").sort().cast(pl.String).str.join("-"))
    counts = pairs.group_by("row").len()["len"].to_numpy()
    assert counts.sum() == 4000
    assert len(counts) == 10
    assert ((counts - 400) ** 2 / 400).sum() < 33.7
    assert table.choose_rows_per_person("id", 9, SystemRandomness()).rows() == 20_000


@pytest.mark.parametrize("others", [1, 1000])
def test_what_is_chosen_of_a_person_does_not_depend_on_the_number_of_people(others: int) -> None:
    """Else who comes in would move the law of the rows of all others."""

    class FallingRandomness(SeededRandomness):
        def draw_words(self, count: int) -> npt.NDArray[np.uint64]:
            words: npt.NDArray[np.uint64] = np.full(count, 2**63, dtype=np.uint64)
            words[:5] += np.arange(5, 0, -1, dtype=np.uint64) * np.uint64(8)
            return words

    table = ENGINE.from_columns(
        {"id": ["0"] * 5 + [f"{at}" for at in range(1, 1 + others)], "row": range(5 + others)}
    )
    chosen = table.choose_rows_per_person("id", 2, FallingRandomness(1)).to_frame()
    assert chosen.filter(pl.col("id") == "0")["row"].to_list() == [0, 1]


def test_both_engines_make_the_same_release(tmp_path: Path, spark_session: SparkSession) -> None:
    """Everybody has few enough rows that all are used; the driver draws the rest."""
    visits, spec = make_visits(400, most=3), make_spec(3)
    visits.write_parquet(tmp_path / "visits.parquet")
    path, spark = tmp_path / "visits.parquet", SparkEngine()
    assert spark_session is not None
    for name, engine in (("local", None), ("spark", spark)):
        publish_unjudged(
            path, spec, output=tmp_path / name, bits=SeededRandomness(5), engine=engine
        )
    files = [(tmp_path / name / "data.parquet").read_bytes() for name in ("local", "spark")]
    assert files[0] == files[1]
    some = spark.open(path).choose_rows_per_person("patient", 2, SystemRandomness())
    assert some.count_rows_per_id("patient").largest == 2
    assert some.count_people("patient") == 400
