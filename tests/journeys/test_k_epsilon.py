"""Releases by (k,epsilon)-anonymity, as a curator makes and reads them."""

from __future__ import annotations

import datetime as dt
import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pyarrow import parquet as pq
from support.findings import list_codes
from support.heights import (
    HEIGHT,
    draw_heights,
    get_noise,
    get_simulated_noise,
    make_height_spec,
    make_height_table,
)
from support.noise_law import compute_laplace_law, is_drawn_from
from support.pinned_randomness import PinnedRandomness
from support.releases import forge_certificate, get_statement

from incrowd.curate.tradeoff import compute_tradeoff
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.evaluation.noise import relink_rows, simulate_noise
from incrowd.methods.k_epsilon.loss import LINKED_ROWS
from incrowd.publication import Release, publish
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec


def joined(release: Release, original: pl.DataFrame) -> pl.DataFrame:
    return original.join(release.data, on="person", suffix="_released").sort("person")


def test_noise_is_as_wide_as_each_class_and_as_the_law_says(tmp_path: Path) -> None:
    """Grouped by class, the noise fits its exact law and not one whose scale is off by 3 %."""
    n = 300_000
    draw = np.random.default_rng(1)
    wide = np.where(np.arange(n) % 2, 4, 40)
    original = make_height_table((1000 + draw.integers(0, wide + 1)).tolist())
    release = publish(
        original, make_height_spec("k: 5, epsilon: 2", "{role: noisy}"), output=tmp_path / "out",
        bits=PinnedRandomness(5),
    )  # fmt: skip
    both = joined(release, original)
    assert len(both) == n
    for group, diameter in (("a", 40), ("b", 4)):
        part = both.filter(pl.col("group") == group)
        noise = (part["x_released"] - part["x"]).to_numpy()
        assert is_drawn_from(noise, compute_laplace_law(diameter, 2, 8 * diameter))
        assert not is_drawn_from(noise, compute_laplace_law(103 * diameter, 206 - 6, 8 * diameter))
        assert not is_drawn_from(noise, compute_laplace_law(97 * diameter, 200, 8 * diameter))


def test_the_measured_error_is_the_predicted_one(tmp_path: Path) -> None:
    original = draw_heights(8_000)
    errors = []
    for seed in range(8):
        release = publish(
            original, make_height_spec("k: 10, epsilon: 1"), output=tmp_path / str(seed),
            bits=PinnedRandomness(seed),
        )  # fmt: skip
        columns = get_noise(release).columns["x"]
        both = joined(release, original)
        by_hand = ((both["x_released"] - both["x"]).abs() / both["x"]).mean()
        assert columns.measured_error == pytest.approx(by_hand)
        assert columns.measured_error is not None
        errors.append(columns.measured_error)
    paper = 0.0
    for group in "abc":
        part = original.filter(pl.col("group") == group)["x"].to_numpy()
        paper += (part.max() - part.min()) * (1 / part).sum() / len(original)
    assert columns.expected_error == pytest.approx(paper, rel=1e-4)
    assert columns.expected_error is not None
    reach = 5 * float(np.std(errors, ddof=1)) / math.sqrt(len(errors))
    assert abs(np.mean(errors) - columns.expected_error) < reach < 0.04 * columns.expected_error


def test_rows_are_shuffled_and_people_stay_whole(tmp_path: Path) -> None:
    original = draw_heights(500)
    release = publish(original, make_height_spec("k: 5, epsilon: 2"), output=tmp_path / "out")
    assert release.data["person"].to_list() != original["person"].to_list()
    assert sorted(release.data["person"]) == original["person"].to_list()
    assert release.data.columns == ["group", "person", "x"]
    both = joined(release, original)
    assert (both["group"] == both["group_released"]).all()
    assert verify(tmp_path / "out") == []


def test_the_certificate_says_what_it_is_and_is_not(tmp_path: Path) -> None:
    release = publish(
        draw_heights(), make_height_spec("k: 5, epsilon: 2"), output=tmp_path / "class"
    )
    guarantee = release.certificate.guarantee
    assert guarantee.kind == "(k, ε)-anonymity"
    sentences = get_statement(release.certificate)
    assert "NOT differential privacy" in sentences["not_differential_privacy"]
    assert "k = 5 and ε = 2:" in sentences["k_epsilon_anonymity"]
    assert "local differential privacy" not in guarantee.text
    release = publish(
        draw_heights(),
        make_height_spec("k: 5, epsilon: 2, bounds: declared"),
        output=tmp_path / "range",
    )
    assert "local differential privacy" in get_statement(release.certificate)["noise_scale"]
    report = (tmp_path / "class.curator" / "report.html").read_text()
    assert sentences["not_differential_privacy"] in report
    assert "links" in report
    with pytest.raises(IncrowdError, match="not differentially private, so no ledger"):
        publish(
            draw_heights(),
            make_height_spec("k: 5, epsilon: 2"),
            output=tmp_path / "no",
            ledger=tmp_path / "l",
        )


def test_verify_sees_values_off_the_grid(tmp_path: Path) -> None:
    release = publish(
        draw_heights(), make_height_spec("k: 5, epsilon: 2, clamp: true"), output=tmp_path / "out"
    )
    assert verify(tmp_path / "out") == []
    assert release.data["x"].min() >= 100
    assert release.data["x"].max() <= 250
    for value in (170.05, 99.9):
        changed = release.data.with_columns(
            x=pl.when(pl.col("person") == 7).then(value).otherwise("x")
        )
        pq.write_table(
            changed.to_arrow().cast(pq.read_schema(tmp_path / "out" / "data.parquet")),
            tmp_path / "out" / "data.parquet", compression="zstd", store_schema=False,
            write_statistics=False, use_dictionary=False,
        )  # fmt: skip
        certificate = release.certificate
        from incrowd.release.certificate import hash_file

        data = certificate.table.release.model_copy(
            update={"sha256": hash_file(tmp_path / "out" / "data.parquet")}
        )
        sealed = certificate.model_copy(update={"release": data}).with_seal()
        forge_certificate(tmp_path / "out", sealed)
        assert "is not a multiple of the step 0.1" in " ".join(map(str, verify(tmp_path / "out")))


def test_declared_bounds_hide_even_a_constant_column(tmp_path: Path) -> None:
    original = make_height_table([170.0] * 100)
    bare = publish(original, make_height_spec("k: 5, epsilon: 2"), output=tmp_path / "class")
    assert set(bare.data["x"]) == {170.0}
    assert "VALUES_WITHOUT_NOISE" in list_codes(bare.findings)
    assert get_noise(bare).columns["x"].classes_without_noise == 2
    blurred = publish(
        original, make_height_spec("k: 5, epsilon: 2, bounds: declared"), output=tmp_path / "range"
    )
    assert len(set(blurred.data["x"])) > 50
    assert get_noise(blurred).columns["x"].classes_without_noise == 0


def test_values_outside_the_declared_bounds_are_moved_into_them_first(tmp_path: Path) -> None:
    original = make_height_table([170.0] * 5000 + [999999.0] * 5000)
    release = publish(
        original, make_height_spec("k: 5, epsilon: 100, bounds: declared"), output=tmp_path / "out"
    )
    both = joined(release, original).filter(pl.col("x") > 1000)
    assert abs(float(both["x_released"].mean()) - 250) < 1  # type: ignore[arg-type]


def test_zeros_and_negative_values(tmp_path: Path) -> None:
    original = make_height_table([0, 0, -5, 3, 7, -2] * 50)
    release = publish(
        original, make_height_spec("k: 5, epsilon: 2", "{role: noisy}"), output=tmp_path / "out"
    )
    columns = get_noise(release).columns["x"]
    assert columns.zeros == 100
    both = joined(release, original).filter(pl.col("x") != 0)
    by_hand = ((both["x_released"] - both["x"]).abs() / both["x"].abs()).mean()
    assert columns.measured_error == pytest.approx(by_hand)


def test_whole_numbers_stay_whole_and_64_bits_are_kept(tmp_path: Path) -> None:
    top = 2**63 - 1
    original = make_height_table([top, top - 1, top - 4, top - 9] * 20, "ab")
    release = publish(
        original, make_height_spec("k: 5, epsilon: 1", "{role: noisy}"), output=tmp_path / "out"
    )
    assert release.data["x"].dtype == pl.Int64
    assert release.data["x"].max() <= top
    assert release.data["x"].min() > top - 500
    far = make_height_table([-(2**63), top] * 20, "a")
    with pytest.raises(IncrowdError, match="'precision'.*coarser"):
        publish(far, make_height_spec("k: 5, epsilon: 1", "{role: noisy}"), output=tmp_path / "far")
    assert not (tmp_path / "far").exists()


def test_dates_stay_dates(tmp_path: Path) -> None:
    start = dt.date(1990, 1, 1)
    original = make_height_table([start + dt.timedelta(days=at % 200) for at in range(400)])
    release = publish(
        original, make_height_spec("k: 5, epsilon: 2", "{role: noisy}"), output=tmp_path / "out"
    )
    assert release.data["x"].dtype == pl.Date
    both = joined(release, original)
    moved = (both["x_released"] - both["x"]).dt.total_days()
    assert 20 < float(moved.abs().mean()) < 300  # type: ignore[arg-type]
    assert verify(tmp_path / "out") == []


def test_nulls_stay_null_and_are_counted(tmp_path: Path) -> None:
    original = make_height_table([None, 170.1, 180.2, 165.0, None] * 40)
    release = publish(original, make_height_spec("k: 5, epsilon: 2"), output=tmp_path / "out")
    both = joined(release, original)
    assert (both["x"].is_null() == both["x_released"].is_null()).all()
    assert get_noise(release).columns["x"].nulls == 80
    assert verify(tmp_path / "out") == []


def test_epsilon_is_shared_by_weight_among_columns(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    x, y = (draw.integers(0, 1001, 20_000) for _ in range(2))
    original = make_height_table(x.tolist(), "a").with_columns(y=y)
    release = publish(
        original,
        make_height_spec("k: 5, epsilon: 3", "{role: noisy, weight: 2}", "  y: {role: noisy}\n"),
        output=tmp_path / "out",
        bits=PinnedRandomness(4),
    )
    both = joined(release, original)
    for name, epsilon in (("x", 2), ("y", 1)):
        noise = (both[f"{name}_released"] - both[name]).to_numpy()
        width = int(both[name].max()) - int(both[name].min())  # type: ignore[arg-type]
        assert is_drawn_from(noise, compute_laplace_law(width, epsilon, 15 * width))
    assert "COLUMNS_COPIED" not in list_codes(release.findings)


def test_copies_are_noticed(tmp_path: Path) -> None:
    original = draw_heights().with_columns(y=pl.col("x") * 2 + 1)
    release = publish(
        original,
        make_height_spec("k: 5, epsilon: 2", HEIGHT, "  y: {role: noisy, precision: 0.1}\n"),
        output=tmp_path / "out",
    )
    assert "COLUMNS_COPIED" in list_codes(release.findings)


def test_an_outlier_is_noticed(tmp_path: Path) -> None:
    original = make_height_table([10, 11, 12, 13] * 25 + [100_000])
    release = publish(
        original, make_height_spec("k: 5, epsilon: 20", "{role: noisy}"), output=tmp_path / "out"
    )
    (result,) = [finding for finding in release.findings if finding.code == "VALUES_EXPOSED"]
    # The outlier of one class; in the other, 50 rows of two values get noise of scale 0.1
    assert (result.column, result.values) == ("x", {"rows": 51})


def test_confidence_suppresses_and_reports(tmp_path: Path) -> None:
    original = draw_heights(3000)
    release = publish(
        original, make_height_spec("k: 20, epsilon: 30, confidence: 0.7"), output=tmp_path / "out"
    )
    gone = get_noise(release).suppressed_by_confidence
    assert gone is not None
    assert 0 < gone == 3000 - release.certificate.table.release.rows
    assert release.certificate.table.release.smallest_class >= 20
    assert "confidence 0.7" in get_statement(release.certificate)["confidence"]
    assert verify(tmp_path / "out") == []


def test_gaussian_noise(tmp_path: Path) -> None:
    original = draw_heights(5000)
    release = publish(
        original,
        make_height_spec("k: 5, epsilon: 1, noise: gaussian, delta: 1.0e-5"),
        output=tmp_path / "out",
    )
    columns = get_noise(release).columns["x"]
    assert columns.expected_error is not None
    assert columns.measured_error == pytest.approx(columns.expected_error, rel=0.1)
    assert "δ = 1e-05" in get_statement(release.certificate)["noise"]
    assert verify(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("release", "x", "message"),
    [
        ("k: 5", HEIGHT, "needs ε above 0"),
        ("k: 5, epsilon: 0", HEIGHT, "needs ε above 0"),
        ("epsilon: 1", HEIGHT, "`k` is missing"),
        ("k: 5, epsilon: 1, noise: gaussian", HEIGHT, "needs δ"),
        ("k: 5, epsilon: 1, delta: 0.1", HEIGHT, "`delta` is for `noise: gaussian`"),
        ("k: 5, epsilon: 1, rows: counted", HEIGHT, "does not support `rows: counted`"),
        ("k: 5, epsilon: 1, bounds: declared", "{role: noisy, precision: 0.1}", "needs its bounds"),
        ("k: 5, epsilon: 1, bounds: declared, confidence: 0.9", HEIGHT, "exclude each other"),
        ("k: 5, epsilon: 1, clamp: true", "{role: noisy, precision: 0.1}", "`clamp` needs"),
        ("k: 5, epsilon: 1", "{role: noisy}", "not a whole number. Declare a `precision`"),
        ("k: 5, epsilon: 1", "{role: sensitive}", "needs a noisy column"),
    ],
)
def test_mistakes(tmp_path: Path, release: str, x: str, message: str) -> None:
    with pytest.raises(IncrowdError, match=message):
        publish(draw_heights(100), make_height_spec(release, x), output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_text_in_a_noisy_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="'x': 'tall' is neither a number nor a date"):
        publish(
            make_height_table(["1", "tall"] * 20),
            make_height_spec("k: 5, epsilon: 1"),
            output=tmp_path / "out",
        )


def test_choices_before_publishing_match_what_publishing_finds(tmp_path: Path) -> None:
    original = draw_heights(4000)
    file = make_height_spec("k: 10, epsilon: 4")
    tradeoff = compute_tradeoff(
        file, open_table(original), bits=PinnedRandomness(1), ks=(2, 10), epsilons=(1.0, 4.0)
    )
    assert [(choice.k, choice.epsilon) for choice in tradeoff.choices] == [
        (2, 1.0), (2, 4.0), (10, 1.0), (10, 4.0),
    ]  # fmt: skip
    release = publish(original, file, output=tmp_path / "out", bits=PinnedRandomness(2))
    choice = tradeoff.choices[-1]
    assert choice.error == pytest.approx(get_noise(release).columns["x"].expected_error)
    assert choice.linking == pytest.approx(get_simulated_noise(release).linking.mean, rel=0.1)
    assert tradeoff.choices[2].error == pytest.approx(4 * choice.error, rel=1e-3)
    assert tradeoff.choices[2].linking < choice.linking
    assert json.loads(json.dumps(tradeoff.as_dict()))["rows"] == 4000
    with pytest.raises(IncrowdError, match="for `method: k-epsilon`"):
        compute_tradeoff(
            parse_spec("columns: {a: {role: quasi, hierarchy: flat}}\nrelease: {k: 3}"),
            open_table(original),
            bits=PinnedRandomness(1),
        )


def test_relinking_two_tables() -> None:
    original = draw_heights(1000)
    file = make_height_spec("k: 5, epsilon: 8")
    again = simulate_noise(file, open_table(original), bits=PinnedRandomness(1))
    released = original.with_columns(x=pl.col("x") + 0.3)
    exact = relink_rows(file, open_table(original), open_table(released), "person")
    won = 0
    for row in released.iter_rows(named=True):
        inside = original.filter(pl.col("group") == row["group"])
        apart = (inside["x"] - row["x"]).abs().round(1)
        won += float(apart.min()) == 0.3
    assert exact.linking is not None
    assert exact.linking.mean == pytest.approx(won / 1000)
    assert exact.columns["x"].measured_error == pytest.approx(0.3 / 170, rel=0.02)
    assert again.linking.runs == 30
    assert again.linking.low < again.linking.mean < again.linking.high


def test_noisy_columns_in_any_order_verify(tmp_path: Path) -> None:
    original = draw_heights().with_columns(b=pl.col("x") * 0.5, a=pl.col("person") % 7)
    more = "  b: {role: noisy, precision: 0.01}\n  a: {role: noisy}\n"
    publish(original, make_height_spec("k: 5, epsilon: 2", HEIGHT, more), output=tmp_path / "out")
    assert verify(tmp_path / "out") == []


def test_a_column_of_nulls_alone(tmp_path: Path) -> None:
    original = draw_heights(200).with_columns(x=pl.lit(None, dtype=pl.Float64))
    release = publish(original, make_height_spec("k: 5, epsilon: 2"), output=tmp_path / "out")
    assert release.data["x"].null_count() == 200
    assert get_noise(release).columns["x"].nulls == 200
    tradeoff = compute_tradeoff(
        make_height_spec("k: 5, epsilon: 2"), open_table(original), bits=PinnedRandomness(1)
    )
    assert all(choice.linking == 0 for choice in tradeoff.choices)


def test_dates_in_text(tmp_path: Path) -> None:
    days = [str(dt.date(1990, 1, 1) + dt.timedelta(days=at % 90)) for at in range(200)]
    release = publish(
        make_height_table(days),
        make_height_spec("k: 5, epsilon: 2", "{role: noisy}"),
        output=tmp_path / "out",
    )
    assert release.data["x"].dtype == pl.Date
    assert verify(tmp_path / "out") == []


def test_declared_bounds_are_measured_against_the_values_as_they_were(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    original = make_height_table(draw.normal(75, 14, 4000).round(1).tolist())
    bounds = "{role: noisy, precision: 0.1, bounds: [74, 75]}"
    release = publish(
        original,
        make_height_spec("k: 5, epsilon: 8, bounds: declared", bounds),
        output=tmp_path / "out",
        bits=PinnedRandomness(1),
    )
    both = joined(release, original)
    by_hand = float(((both["x_released"] - both["x"]).abs() / both["x"].abs()).mean())  # type: ignore[arg-type]
    noise = get_noise(release)
    assert noise.columns["x"].measured_error == pytest.approx(by_hand)
    assert noise.columns["x"].expected_error == pytest.approx(by_hand, rel=0.01)
    assert get_simulated_noise(release).linking.mean < 0.2
    again = simulate_noise(
        make_height_spec("k: 5, epsilon: 8, bounds: declared", bounds), open_table(original),
        bits=PinnedRandomness(2),
    )  # fmt: skip
    assert again.columns["x"].error == pytest.approx(by_hand, rel=0.01)


def test_a_column_that_names_people_is_noticed(tmp_path: Path) -> None:
    release = publish(draw_heights(), make_height_spec("k: 5, epsilon: 2"), output=tmp_path / "out")
    assert "COLUMN_NAMES_PEOPLE" in list_codes(release.findings)


def test_the_interval_of_the_linking_risk_covers_what_is_computed(tmp_path: Path) -> None:
    """Here each run looks at random classes only."""
    rows = 2 * LINKED_ROWS
    draw = np.random.default_rng(2)
    original = pl.DataFrame(
        {"group": [str(at // 20) for at in range(rows)], "x": draw.integers(0, 300, rows)}
    )
    file = parse_spec(
        "columns:\n  group: {role: quasi, hierarchy: flat}\n  x: {role: noisy}\n"
        "release: {method: k-epsilon, k: 20, epsilon: 4, suppression: 0}"
    )
    exact = compute_tradeoff(
        file, open_table(original), bits=PinnedRandomness(1), ks=(20,), epsilons=(4.0,)
    ).choices[0]
    simulated_noise = get_simulated_noise(
        publish(original, file, output=tmp_path / "out", bits=PinnedRandomness(3))
    )
    reach = simulated_noise.linking.high - simulated_noise.linking.mean
    assert abs(simulated_noise.linking.mean - exact.linking) < 2.5 * reach
