"""Paper B computed again: small tables, the same findings, and numbers checked by other means."""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.anonymize import k_epsilon
from incrowd.codes.counted_table import DistinctRows
from incrowd.engine.count import count_tuples_with_kept
from incrowd.errors import IncrowdError
from incrowd.measure.linkage import linking_risk
from incrowd.methods.k_epsilon.rows import NoisyRows
from incrowd.papers import paper_b, paper_b_data, paper_b_figures
from incrowd.papers.paper_b import ClassLayout
from incrowd.papers.paper_b_data import QUICK, ClassSummary, DataSet, PaperNumbers, ResultCell
from incrowd.privacy.k_epsilon import make_laplace_noise, split_epsilon
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.build import ColumnHierarchies


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper") / "b"
    steps: list[str] = []
    paper_b.reproduce(folder, quick=True, progress=steps.append)
    assert len(steps) == paper_b.QUICK_STEPS
    assert paper_b.STEPS == paper_b.QUICK_STEPS + 2 * 3 * 4
    return folder


@pytest.fixture(scope="module")
def stored(folder: Path) -> Any:
    return json.loads((folder / "numbers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def florida() -> tuple[DataSet, DistinctRows]:
    data = paper_b_data.make_data_sets(QUICK, None)[1]
    return data, count_tuples_with_kept(
        data.table, ColumnHierarchies(data.quasi), (data.attribute,)
    )


def test_everything_promised_is_written(folder: Path) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    images = re.findall(r'src="([^"]+)"', page)
    assert images == [f"{name}.svg" for name in paper_b_figures.NAMES]
    for name in paper_b_figures.NAMES:
        assert (folder / f"{name}.svg").stat().st_size > 10_000
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(folder.iterdir())) == 2 * paper_b.FIGURES + 2
    for anchor in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{anchor}"' in page
    assert "Table I:" in page
    assert "Table III:" in page
    assert "1.67 %" in page  # Table IV as printed
    assert "<em>released</em> value" in page


def test_the_page_says_what_the_numbers_say(folder: Path, stored: Any) -> None:
    page = html.unescape((folder / "index.html").read_text(encoding="utf-8"))
    for finding in stored["findings"]:
        for data, words in finding["seen"].items():
            differs = "" if finding["agrees"][data] else " (differs)"
            assert f"<li>{data}{differs}: {words}.</li>" in page
        assert finding["verdict"] in page


def test_the_paper_is_right_on_small_tables_too(stored: Any) -> None:
    agrees = {finding["key"]: finding["agrees"] for finding in stored["findings"]}
    for key in ("global", "inverse", "falls", "confident"):
        assert all(agrees[key].values()), key
    assert agrees["small-error"] == {"Adult": True, "Florida": True, "Michigan": False}
    for cell in stored["cells"]:  # three runs are too few for an interval of their own
        assert cell["error"]["mean"] == pytest.approx(cell["predicted_error"], rel=0.06)


def test_a_low_risk_is_attainable(florida: tuple[DataSet, DistinctRows]) -> None:
    data, rows = florida
    for algorithm in paper_b_data.ALGORITHMS:
        _, (small, large) = paper_b.measure_setting(data, algorithm, 50, rows, QUICK)
        assert small.linking.high < min(0.05, large.linking.low)


def test_two_runs_agree_in_all_but_times(folder: Path, stored: Any, tmp_path: Path) -> None:
    _, numbers = paper_b.compute_numbers(quick=True)
    again = json.loads(json.dumps(asdict(numbers)))
    for first in (before := {name: stored[name] for name in again}), again:
        first["widened"] = [
            {name: value for name, value in record.items() if not name.startswith("times")}
            for record in first["widened"]
        ]
    assert before == again
    figure = paper_b_figures.list_figures(numbers)[3]
    paper_b_figures.save_figure(figure, tmp_path)
    for name in ("figure-3.svg", "figure-3.png"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_an_earlier_result_is_replaced_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    monkeypatch.setattr(paper_b, "compute_numbers", lambda *_: pytest.fail("worked before looking"))
    with pytest.raises(IncrowdError, match="'mine.txt'"):
        paper_b.reproduce(tmp_path, quick=True)


def shown(florida: tuple[DataSet, DistinctRows], algorithm: str, k: int) -> NoisyRows:
    _, noisy = paper_b_data.group_noisy_rows(*florida, algorithm, k)
    return noisy


def noise_for(layout: ClassLayout, epsilon: float, seed: int) -> Any:
    noise = make_laplace_noise(layout.widths, split_epsilon(epsilon, [1.0])[0])
    return noise, noise.draw(layout.members, SeededRandomness(seed))


@pytest.mark.parametrize("algorithm", ["ola", "mondrian"])
@pytest.mark.parametrize("epsilon", [0.5, 8.0, 64.0])
def test_a_run_is_measured_as_the_library_measures_it(
    florida: tuple[DataSet, DistinctRows], algorithm: str, epsilon: float
) -> None:
    layout = ClassLayout(shown(florida, algorithm, 3))
    noise, draws = noise_for(layout, epsilon, seed=7)
    released = layout.steps + draws
    result = linking_risk(classes=layout.members, originals=[layout.steps], released=[released])
    assert layout.compute_linking_risk(draws) == pytest.approx(
        (result.risk, result.shared), abs=1e-12
    )
    assert result.risk > result.shared  # there are ties, so that they are tested
    for confidence in (0.3, 0.9, 0.99):
        radii = noise.compute_radius(confidence)
        is_kept = k_epsilon.select_confident_rows(
            layout.members, layout.steps, released, radii, k=3
        )
        expected = int(k_epsilon.select_large_classes(is_kept, layout.members, k=3).sum())
        assert layout.count_kept_rows(draws, [radii], k=3) == [expected]
        assert 0 < expected < len(layout.steps)


def test_one_draw_serves_every_epsilon() -> None:
    """Each epsilon's noise has its own distribution: chi-square at a false alarm of 1e-6."""
    width, rows = np.array([9]), 200_000
    members = np.zeros(rows, dtype=np.int64)
    every = paper_b_data.make_noises(width, (0.5, 1, 8))
    draws = list(paper_b_data.draw_nested_noise(members, every, SeededRandomness(3)))
    for epsilon, result in zip((0.5, 1, 8), draws, strict=True):
        assert chi_square(result, epsilon / 9) < 5.2
        assert chi_square(result, 1.03 * epsilon / 9) > 5.2


def chi_square(draws: Any, rate: float) -> float:
    """Standard deviations by which chi-square exceeds its mean, over cells of enough rows."""
    q = np.exp(-rate)
    values = np.arange(-2000, 2001)
    expected = len(draws) * (1 - q) / (1 + q) * q ** np.abs(values)
    observed = np.bincount(draws + 2000, minlength=4001)
    full = expected >= 20
    chi = ((observed - expected)[full] ** 2 / expected[full]).sum()
    rest = expected[~full].sum()
    chi += (observed[~full].sum() - rest) ** 2 / max(rest, 1e-9) if rest > 1 else 0.0
    return float((chi - full.sum()) / np.sqrt(2 * full.sum()))


def test_one_cell_computed_by_hand(florida: tuple[DataSet, DistinctRows], stored: Any) -> None:
    """Error and risks of one setting from fresh noise and plain loops over classes."""
    noisy = shown(florida, "mondrian", 10)
    criteria = {"data": "Florida", "algorithm": "mondrian", "k": 10, "epsilon": 8}
    (cell,) = (cell for cell in stored["cells"] if criteria.items() <= cell.items())
    rng = np.random.default_rng(1)
    predicted, errors, links, lost = Fraction(0), [], [], []
    groups = [noisy.columns[0].steps[noisy.members == at] for at in range(noisy.classes)]
    rows = sum(map(len, groups))
    for values in groups:
        diameter = int(values.max() - values.min())
        predicted += sum(Fraction(diameter, 8 * int(value)) for value in values)
    for _ in range(10):
        error, linked, suppressed = 0.0, 0, 0
        for values in groups:
            scale = (values.max() - values.min()) / 8
            released = np.rint(values + rng.laplace(0, scale, len(values)))
            apart = np.abs(released[:, None] - values[None, :])
            error += (np.abs(released - values) / values).sum()
            linked += int((np.abs(released - values) == apart.min(axis=1)).sum())
            near = (apart <= -scale * np.log(0.01)).sum(axis=1)
            confident = int(((near == 0) | (near >= 10)).sum())
            suppressed += len(values) - (confident if confident >= 10 else 0)
        errors.append(error / rows)
        links.append(linked / rows)
        lost.append(suppressed / 3_000)
    assert cell["predicted_error"] == pytest.approx(float(predicted / rows), rel=0.01)
    assert cell["error"]["mean"] == pytest.approx(np.mean(errors), rel=0.03)
    assert cell["linking"]["mean"] == pytest.approx(np.mean(links), abs=0.015)
    assert cell["suppressed"]["0.99"]["mean"] == pytest.approx(np.mean(lost), abs=0.03)


def test_a_verdict_follows_the_numbers(stored: Any) -> None:
    """Numbers that contradict a finding change its verdict."""
    numbers = rebuilt(stored)
    before = {finding.key: finding for finding in paper_b_figures.check_findings(numbers)}
    assert before["inverse"].verdict == "agrees"
    worse = [
        replace(cell, error=replace(cell.error, mean=9 * cell.error.mean))
        if cell.epsilon == 8 and cell.data == "Adult" else cell
        for cell in numbers.cells
    ]  # fmt: skip
    after = {
        finding.key: finding
        for finding in paper_b_figures.check_findings(replace(numbers, cells=tuple(worse)))
    }
    assert after["inverse"].verdict == "agrees in 2 of 3 tables"
    assert not after["predicted"].agrees["Adult"]
    assert not after["small-error"].agrees["Adult"]


def rebuilt(stored: Any) -> PaperNumbers:
    from incrowd.measure.linkage import RunMean

    def cell(record: Any) -> ResultCell:
        means = {x: RunMean(**record[x]) for x in ("error", "linking", "linking_shared")}
        lost = {float(c): RunMean(**x) for c, x in record["suppressed"].items()}
        return ResultCell(**{**record, **means, "suppressed": lost})

    def widened(record: Any) -> paper_b_data.WidenedResult:
        times = paper_b_data.RunTimes(count=1, search=1, noise=1)
        return paper_b_data.WidenedResult(**{**record, "times": times, "times_widened": times})

    return PaperNumbers(
        QUICK,
        tuple(ClassSummary(**record) for record in stored["grouped"]),
        tuple(cell(record) for record in stored["cells"]),
        tuple(widened(record) for record in stored["widened"]),
        tuple(paper_b_data.NoiseComparison(**record) for record in stored["compared"]),
    )


@pytest.mark.parametrize("delimiter", [";", ","])
def test_the_real_adult_table_takes_the_samples_place(tmp_path: Path, delimiter: str) -> None:
    header = ["age", "workclass", "marital-status", "race", "sex"]
    lines = [
        [str(20 + at % 40), "Private", ("Never-married", "Married-AF-spouse")[at % 2],
         ("White", "Black")[at % 3 == 0], ("Male", "Female")[at % 5 == 0]]
        for at in range(400)
    ]  # fmt: skip
    path = tmp_path / "adult.csv"
    path.write_text("\n".join(delimiter.join(line) for line in [header, *lines]), encoding="utf-8")
    first = paper_b_data.make_data_sets(QUICK, path)[0]
    assert (first.paper, first.rows) == ("Adult", 400)
    rows = count_tuples_with_kept(first.table, ColumnHierarchies(first.quasi), (first.attribute,))
    result, cells = paper_b.measure_setting(first, "ola", 2, rows, QUICK)
    assert result.smallest >= 2
    assert len(cells) == 2
    heights = first.table.to_frame().get_column("height").to_numpy()
    women = np.arange(400) % 5 == 0
    assert heights[women].mean() < 166 < 172 < heights[~women].mean()
    again = paper_b_data.make_data_sets(QUICK, path)[0]
    assert (again.table.to_frame().get_column("height").to_numpy() == heights).all()


def test_a_table_that_is_not_adult_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("age,sex,race\n30,Male,White\n", encoding="utf-8")
    with pytest.raises(IncrowdError, match="no column 'marital_status'"):
        paper_b_data.make_data_sets(QUICK, path)
