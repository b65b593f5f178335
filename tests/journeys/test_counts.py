"""Releases by counts, as users make them: two promises at once, verified, and no lie passes."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cli import run_command
from support.findings import list_codes, list_verify_messages
from support.releases import (
    COLUMNS,
    LEVELS,
    forge_certificate,
    get_statement,
    make_voter_spec,
    publish_voters,
    sort_rows,
)
from support.unjudged import publish_unjudged

from incrowd.errors import IncrowdError
from incrowd.evaluation.evaluate import evaluate
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.draw_parameters import build_noise_spread
from incrowd.privacy.events import parse_event
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import Release, publish
from incrowd.release.certificate import Certificate, hash_file
from incrowd.release.ledger import Ledger

BUDGET = "method: safe, epsilon: 1, delta: 1.0e-6"
FIXED = f"release: {{{BUDGET}, draw: counts, {LEVELS}}}"
SEARCHED = f"release: {{{BUDGET}, draw: counts, levels: {{zip: [3, 5], birth_year: [2, 4]}}}}"
CELLS = ["zip", "sex", "birth_year", "race"]


def true_cells(voters: pl.DataFrame, release: Release) -> dict[tuple[object, ...], int]:
    """How many rows of the table are in each cell, by the scheme that was published."""
    frame = voters.select(CELLS)
    for name, column in release.certificate.table.scheme.items():
        level = column.level
        assert level is not None
        if column.file is None:
            labels = pl.col(name).str.head(5 - level) + "*" * level
        else:
            rows = [
                line.split(";") for line in (release.folder / column.file).read_text().splitlines()
            ]
            labels = (
                pl.col(name).cast(pl.String).replace_strict({row[0]: row[level] for row in rows})
            )
        frame = frame.with_columns(labels.alias(name))
    return {row[:-1]: row[-1] for row in frame.group_by(CELLS).len().iter_rows()}


def shown_cells(release: Release) -> dict[tuple[object, ...], int]:
    return dict(Counter(release.data.select(CELLS).iter_rows()))


@pytest.mark.parametrize("release", [FIXED, SEARCHED])
def test_every_row_shown_has_k_rows_behind_it_and_no_number_is_off_by_more_than_r(
    voters: pl.DataFrame, release: str
) -> None:
    publication = publish(voters, make_voter_spec(release))
    certificate = publication.certificate
    assert list_verify_messages(publication.folder) == []
    assert certificate.guarantee.kind == "differential privacy and k-anonymity"
    r, k = int(float(certificate.parameters["r"])), certificate.k
    assert k == 5
    true, cells = true_cells(voters, publication), shown_cells(publication)
    assert cells
    off = {cell: rows - true.get(cell, 0) for cell, rows in cells.items()}
    assert all(true[cell] >= k for cell in cells)
    assert all(rows >= r + k for rows in cells.values())
    assert all(abs(x) <= r for x in off.values())
    assert len(set(off.values())) > 1
    assert all(cell in cells for cell, rows in true.items() if rows >= 2 * r + k)
    evaluation = publication.evaluation
    assert evaluation.surplus == sum(x for x in off.values() if x > 0)
    assert (
        evaluation.rows_released
        == evaluation.rows_original - evaluation.suppressed + evaluation.surplus
    )
    for released_ in (publication, publication.folder / "data.parquet"):
        again = evaluate(voters, released_, make_voter_spec(release))
        assert again.loss == pytest.approx(evaluation.loss)
        assert (again.suppressed, again.surplus) == (evaluation.suppressed, evaluation.surplus)


def test_the_statement_says_what_is_true_of_a_row(voters: pl.DataFrame) -> None:
    release = publish_unjudged(voters, make_voter_spec(FIXED.replace("draw", "k: 3, draw")))
    statement = get_statement(release.certificate)
    r = int(float(release.certificate.parameters["r"]))
    assert f"13 with probability {0.932545!r}, otherwise 14" in statement["noise_bound"]
    assert "3-anonymous" in statement["k_anonymity"]
    assert "at least 3 input rows" in statement["k_anonymity"]
    assert f"truncated at ±{r} " in statement["noise"]
    assert f"below {r + 3} are suppressed" in statement["noise"]
    assert "within ±3 with a probability of at least 95 %." in statement["accuracy"]
    assert f"near the threshold of {r + 3} are biased upward" in statement["accuracy"]
    deviation = build_noise_spread(release.certificate.parameters).variance ** 0.5
    assert f"{deviation:.3g} × √c" in statement["noise_sums"]


def test_a_coin_between_two_bounds_is_tossed_and_told(voters: pl.DataFrame) -> None:
    small = voters.head(500)
    tossed = Counter(
        publish_unjudged(
            small, make_voter_spec(FIXED), bits=SeededRandomness(seed)
        ).certificate.parameters["r"]
        for seed in range(40)
    )
    assert set(tossed) == {13.0, 14.0}  # 13 with probability 0.9325
    assert tossed[13.0] > 25


@pytest.mark.parametrize("form", ["counted", "expanded"])
def test_rows_are_repeated_or_counted(voters: pl.DataFrame, form: str, tmp_path: Path) -> None:
    release = FIXED.replace("draw", f"rows: {form}, format: csv, draw")
    publication = publish_voters(voters, tmp_path / "out", release)
    assert list_verify_messages(publication.folder) == []
    least = publication.certificate.threshold
    rows = pl.read_csv(publication.folder / "data.csv")
    if form == "counted":
        assert rows["count"].min() >= least  # type: ignore[operator]
        assert not rows.select(CELLS).is_duplicated().any()
    else:
        assert min(shown_cells(publication).values()) >= least
    assert publication.certificate.table.release.smallest_class >= least


def test_a_person_is_one_row(voters: pl.DataFrame) -> None:
    twice = pl.concat([voters, voters]).with_columns(
        pl.Series("who", [*range(len(voters))] * 2), pl.lit("drop").alias("height")
    )
    columns = COLUMNS + "  who: {role: identifier}\n"
    release = publish_unjudged(twice, make_voter_spec(FIXED, columns, "unit: {id: who}"))
    assert "each of a different person" in get_statement(release.certificate)["k_anonymity"]
    assert "numbers of people" in get_statement(release.certificate)["unit"]
    assert release.evaluation.rows_original == len(voters)
    assert list_verify_messages(release.folder) == []


def test_a_sample_of_a_population_needs_smaller_crowds(voters: pl.DataFrame) -> None:
    release = publish_unjudged(
        voters, make_voter_spec(SEARCHED.replace("draw", "already_sampled: 0.1, draw"))
    )
    assert list_verify_messages(release.folder) == []
    assert float(release.certificate.parameters["r"]) < 5
    assert "population" in get_statement(release.certificate)
    assert "probability 0.1," in get_statement(release.certificate)["assumption_sample"]


def test_slices_by_counts_share_one_budget(voters: pl.DataFrame) -> None:
    slices = "slices: [[zip, sex], [birth_year, race], [sex, birth_year]]"
    release = publish_unjudged(voters, make_voter_spec(f"release: {{{BUDGET}, {slices}}}"))
    assert list_verify_messages(release.folder) == []
    certificate = release.certificate
    assert {table.parameters["noise"] for table in certificate.tables} == {"gaussian"}
    events = [parse_event(event) for event in certificate.events]
    assert Accountant(events).delta(epsilon=1.0) <= 1e-6
    assert all(
        table.release.smallest_class >= float(table.parameters["r"]) + 5
        for table in certificate.tables
        if table.release.rows
    )
    assert "The 3 files" in get_statement(certificate)["differential_privacy"]
    assert len(evaluate(voters, release, make_voter_spec(FIXED)).slices) == 3


def test_a_ledger_books_counts_like_anything_else(voters: pl.DataFrame, tmp_path: Path) -> None:
    """Each release uses its delta up, so that a ledger needs the delta of all of them."""
    path, small = tmp_path / "l", voters.head(2000)
    Ledger(path).set_budget(epsilon=2.0, delta=2e-6)
    first = publish_unjudged(small, make_voter_spec(FIXED), ledger=path)
    assert "LEDGER_DELTA_USED_UP" not in list_codes(first.findings)
    output = run_command("ledger", "show", str(path), "--epsilon", "1", "--delta", "1e-6").stdout
    assert "ε = 1, δ = 1e-06 fits; total (ε, δ) = (2, 2e-06)" in output
    second = publish_unjudged(small, make_voter_spec(FIXED), ledger=path)
    assert "LEDGER_DELTA_USED_UP" in list_codes(second.findings)
    with pytest.raises(IncrowdError, match="δ is used up"):
        publish_unjudged(small, make_voter_spec(FIXED), ledger=path)
    assert vars(Ledger(path).total()) == {"epsilon": 2.0, "delta": 2e-6}


@pytest.fixture(scope="module")
def good(voters: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counts") / "out"
    release = SEARCHED.replace("draw", "rows: counted, format: csv, draw")
    publish_unjudged(voters, make_voter_spec(release), output=folder)
    return folder


def forged(good: Path, folder: Path, rows: pl.DataFrame | None = None, **changes: Any) -> list[str]:
    """What verification says of a release with changes, sealed and stated again as a liar would."""
    shutil.copytree(good, folder)
    certificate = Certificate.model_validate_json((folder / "certificate.json").read_bytes())
    if rows is not None:
        sort_rows(rows).write_csv(folder / "data.csv")
        counts = rows["count"]
        assert certificate.release is not None
        changes["release"] = certificate.release.model_copy(
            update={
                "sha256": hash_file(folder / "data.csv"), "rows": int(counts.sum()),
                "classes": len(rows), "smallest_class": int(counts.min()),  # type: ignore[arg-type]
            }
        )  # fmt: skip
    plain = {**certificate.model_dump(), **{name: _plain(x) for name, x in changes.items()}}
    try:
        changed = Certificate.model_validate(plain).model_copy(update={"signature": None})
    except ValueError as error:
        return [str(error)]
    with suppress(KeyError, ValueError):  # where there are no words for such a thing
        changed = changed.with_statement()
    changed = changed.with_seal()
    forge_certificate(folder, changed)
    return list_verify_messages(folder)


def geometric(r: int, epsilon: float) -> dict[str, Any]:
    return {"kind": "geometric counts", "r": r, "epsilon": epsilon}


def _plain(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value


def test_lies_about_counts_are_found(good: Path, tmp_path: Path) -> None:
    certificate = Certificate.model_validate_json((good / "certificate.json").read_bytes())
    parameters, promise = certificate.parameters, certificate.guarantee
    rows = pl.read_csv(good / "data.csv", schema_overrides={"zip": pl.String})
    smallest = int(rows["count"].min())  # type: ignore[arg-type]
    assert forged(good, tmp_path / "same") == []
    lies: dict[str, tuple[dict[str, Any], str]] = {
        "one row too few": (
            {"rows": rows.with_columns(
                pl.when(pl.int_range(pl.len()) == 0)
                .then(certificate.threshold - 1).otherwise("count").alias("count"))},
            "smaller than r + k",
        ),
        "a larger k": ({"parameters": {**parameters, "k": 5.0 + smallest}}, "smaller than r + k"),
        "no k": ({"parameters": {x: y for x, y in parameters.items() if x != "k"}}, "k"),
        "half a row": ({"parameters": {**parameters, "k": 4.5}}, "no whole number"),
        "another r": ({"parameters": {**parameters, "r": 30.0}}, "parameters are not those"),
        "less noise": (
            {"parameters": {**parameters, "noise_epsilon": 5.0}}, "parameters are not those",
        ),
        "another law": ({"parameters": {**parameters, "noise": "gaussian"}}, "parameters are not"),
        "no choice": (
            {"parameters": {x: y for x, y in parameters.items() if x != "search_epsilon"}},
            "parameters are not those",
        ),
        "less delta": (
            {"guarantee": promise.model_copy(update={"delta": 5e-7})},
            "The guarantee is not true",
        ),
        "less epsilon": (
            {"guarantee": promise.model_copy(update={"epsilon": 0.9})},
            "The guarantee is not true",
        ),
        "one promise": (
            {"guarantee": promise.model_copy(update={"kind": "differential privacy"})},
            "The kind of the guarantee does not match",
        ),
        "a sample's events": (
            {"events": [{"kind": "safe release", "k": 20, "beta": 0.1}]},
            "The events are not those",
        ),
        "a coin for show": (
            {
                "events": [
                    *certificate.events[:-1],
                    {"kind": "coin", "first": geometric(1, 30.0), "second": geometric(40, 0.9),
                     "chance": 1e-7},
                ],
                "parameters": {**parameters, "r": 1.0, "noise_epsilon": 30.0},
            },
            "The events are not those",
        ),
        "a weaker side": (
            {
                "events": [
                    *certificate.events[:-1],
                    {"kind": "coin", "first": geometric(2, 4.75), "second": geometric(3, 4.75),
                     "chance": 0.001},
                ],
                "guarantee": promise.model_copy(update={"epsilon": 5.0}),
            },
            "The events are not those",
        ),
        "no delta": (
            {
                "events": [*certificate.events[:-1], geometric(800, 0.95)],
                "guarantee": promise.model_copy(update={"delta": 0.0}),
                "parameters": {**parameters, "r": 800.0},
            },
            "The guarantee is not true",
        ),
        "a choice of many digits": (
            {"events": [{"kind": "selection", "epsilon": 0.0499996}, *certificate.events[1:]]},
            "The events are not those",
        ),
        "cut": (
            {
                "scheme": {
                    name: {**column.model_dump(), "level": None, "ordered": False}
                    for name, column in (certificate.scheme or {}).items()
                }
            },
            "The events are not those",
        ),
        "an r by itself": ({"parameters": {"k": 5.0, "r": 14.0}}, "parameters are not those"),
    }  # fmt: skip
    for name, (changes, words) in lies.items():
        problems = forged(good, tmp_path / name, **changes)
        assert any(words in problem for problem in problems), (name, problems)


def test_a_claimed_k_that_the_numbers_bear_out_is_true(good: Path, tmp_path: Path) -> None:
    """Whatever k the curator asked for, a larger one holds where no number is below r + k."""
    certificate = Certificate.model_validate_json((good / "certificate.json").read_bytes())
    k = certificate.table.release.smallest_class - float(certificate.parameters["r"])
    assert forged(good, tmp_path / "k", parameters={**certificate.parameters, "k": k}) == []


@pytest.mark.parametrize(
    ("release", "draw", "words"),
    [
        (BUDGET, "counts", "smaller groups than a sample"),
        (f"{BUDGET}, k: 20", "counts", "k = 20 is the least number of original rows"),
        (f"{BUDGET}, keep: 0.5", "sample", "the spec sets `keep`"),
        (f"{BUDGET}, beta: 0.5, {LEVELS}", "sample", "the spec sets `beta`"),
        (f"method: safe, k: 20, epsilon: 1, {LEVELS}, beta: 0.1", "sample", "`beta`"),
        (f"{BUDGET}, scheme: mondrian", "sample", "`scheme: mondrian`"),
        (f"{BUDGET}, draw: sample", "sample", "Draw: a sample, set by the spec."),
        (f"{BUDGET}, draw: counts", "counts", "Draw: noisy counts, set by the spec."),
        (f"{BUDGET}, draw: auto", "counts", "smaller groups than a sample"),
    ],
)
def test_how_rows_are_drawn_is_settled_and_said(
    voters: pl.DataFrame, release: str, draw: str, words: str
) -> None:
    publication = publish_unjudged(voters.head(3000), make_voter_spec(f"release: {{{release}}}"))
    assert publication.certificate.has_noisy_counts == (draw == "counts")
    assert words in " ".join(publication.reasons)
    page = publication.report().html.replace("&#39;", "'")
    assert words in page.replace("<code>", "`").replace("</code>", "`")


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (f"{BUDGET}, draw: counts, beta: 0.5", "`beta` is for `draw: sample`"),
        (f"{BUDGET}, draw: counts, keep: 0.5", "`keep` is for `draw: sample`"),
        (f"{BUDGET}, draw: counts, scheme: mondrian", "`scheme: mondrian` needs `draw: sample`"),
        ("method: safe, epsilon: 1, draw: counts", "needs ε and δ"),
        (f"{BUDGET}, target: nobody", "the column 'nobody' has no entry"),
        (f"{BUDGET}, target: email", "Target 'email': it is not published"),
        (f"{BUDGET}, target: race, scheme: mondrian", "`target` excludes"),
        (f"{BUDGET}, target: race, slices: 2", "`target` is for one table"),
        (f"{BUDGET}, target: race, scheme: fixed", "`target` needs `scheme: search`"),
        (f"{BUDGET}, target: race, {LEVELS}", "`target` needs a search"),
        (f"{BUDGET}, draw: both", "draw"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_way_out(
    voters: pl.DataFrame, release: str, words: str
) -> None:
    with pytest.raises(IncrowdError, match=words):
        publish_unjudged(voters.head(100), make_voter_spec(f"release: {{{release}}}"))


def test_a_target_stays_as_it_is_and_what_became_of_it_is_said(voters: pl.DataFrame) -> None:
    levels = "levels: {zip: [4, 5], birth_year: [3, 5]}"
    release = publish(voters, make_voter_spec(f"release: {{{BUDGET}, target: race, {levels}}}"))
    assert release.certificate.table.scheme["race"].level == 0
    evaluation = release.evaluation
    assert evaluation.target == "race"
    assert sum(shift.original for shift in evaluation.shifts) == len(voters)
    assert sum(shift.released for shift in evaluation.shifts) == evaluation.rows_released
    true = dict(voters["race"].value_counts().iter_rows())
    assert {shift.label: shift.original for shift in evaluation.shifts} == true
    assert "Labels of 'race'" in release.report().html.replace("&#39;", "'")


def test_a_seed_is_told(voters: pl.DataFrame) -> None:
    release = publish_unjudged(voters.head(2000), make_voter_spec(FIXED), bits=SeededRandomness(1))
    assert release.certificate.guarantee.statement[0].key == "not_private"


def test_a_plan_shows_both_ways_side_by_side() -> None:
    plan = json.loads(run_command("plan", "--epsilon", "1", "--delta", "1e-6", "--json").stdout)
    assert {"k", "beta", "epsilon", "delta", "definition", "crowd", "releases"} < set(plan)
    assert plan["counts"]["crowd"] == 19
    words = run_command("plan", "--epsilon", "1", "--delta", "1e-6").stdout
    assert "56 people" in words
    assert "19 people" in words
    assert "--draw counts" in words
    alone = run_command("plan", "--epsilon", "1", "--delta", "1e-6", "--draw", "sample").stdout
    assert "19" not in alone
    counts = run_command("plan", "--draw", "counts", "--crowd", "19", "--delta", "1e-6", "--json")
    assert json.loads(counts.stdout)["epsilon"] == pytest.approx(0.927026)
    paper = run_command("plan", "--k", "20", "--beta", "0.1", "--epsilon", "1", "--definition", "paper", "--json")  # fmt: skip  # noqa: E501
    assert json.loads(paper.stdout)["counts"] is None
    for wrong in (("--crowd", "19"), ("--draw", "both"), ("--grid", "k", "--draw", "counts")):
        refused = run_command("plan", "--delta", "1e-6", *wrong)
        assert refused.returncode == 2
        assert "Traceback" not in refused.stderr
