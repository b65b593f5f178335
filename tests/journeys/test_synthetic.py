"""Synthetic rows from a spec and a table to a release that anyone can verify."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.findings import list_codes
from support.readers import load_certificate, reseal_certificate
from support.synthetic import BUDGET, RULES, make_patients, make_spec
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.curate.planned_guarantee import plan_guarantee
from incrowd.errors import IncrowdError
from incrowd.findings import Finding
from incrowd.methods.registry import make_method
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import Certificate, hash_file
from incrowd.release.ledger import Ledger
from incrowd.spec.file import SpecFile, parse_spec
from incrowd.spec.problem import SpecError

DRAWN = f"{BUDGET}, values: drawn, {RULES}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of drawn values with rules, as parquet."""
    place = tmp_path_factory.mktemp("synthetic") / "out"
    publish_unjudged(make_patients(), make_spec(DRAWN), output=place)
    return place


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "out")
    return tmp_path / "out"


def test_a_release_verifies_and_obeys_every_rule(folder: Path) -> None:
    assert ic.verify(folder) == []
    rows = pl.read_parquet(folder / "data.parquet")
    assert rows.columns == make_patients(5).columns
    assert rows["patient"].to_list() == list(range(1, len(rows) + 1))
    assert rows.filter((pl.col("sex") == "male") & (pl.col("pregnant") != "no")).is_empty()
    assert rows["age"].null_count() == 0
    end = rows["discharged"].str.to_date("%d.%m.%Y")
    assert not (rows["admitted"] > end).fill_null(value=False).any()
    assert rows.schema["age"] == pl.Int64
    assert rows.schema["weight"] == pl.Float64
    assert rows.schema["smoker"] == pl.Boolean
    assert rows.schema["admitted"] == pl.Date
    assert rows["admitted"].max() <= dt.date(2021, 6, 30)  # type: ignore[operator]
    assert set(rows["weight"].drop_nulls() % 0.5) == {0.0}
    assert "elsewhere" in rows["region"]
    assert rows["discharged"].null_count() > 0


def test_the_budget_is_that_of_the_spec_and_follows_from_the_events(folder: Path) -> None:
    certificate = load_certificate(folder)
    method = make_method(make_spec(DRAWN))
    assert certificate.guarantee.epsilon == 1.0
    assert certificate.guarantee.delta == 1e-6
    assert Accountant(method.events).delta(epsilon=1.0) <= 1e-6
    assert len(certificate.events) == len(method.events)


def test_nothing_but_what_the_events_pay_for_is_published(tmp_path: Path) -> None:
    """A table of another size, with the same measured tables, would have the same files.

    The seed is one by which no noisy number happens to be the true one.
    """
    folder = tmp_path / "out"
    publish_unjudged(make_patients(), make_spec(DRAWN), output=folder, bits=SeededRandomness(1))
    certificate = json.loads((folder / "certificate.json").read_bytes())
    assert 2000 not in list(_list_numbers(certificate))
    for name in ("README.md", "certificate.html"):
        assert "2,000" not in (folder / name).read_text(encoding="utf-8")


def _list_numbers(value: object) -> Iterator[object]:
    """All numbers in plain values, however deep."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _list_numbers(part)
    elif isinstance(value, list):
        for part in value:
            yield from _list_numbers(part)
    else:
        yield value


def test_the_same_seed_gives_the_same_release(tmp_path: Path) -> None:
    for name in ("a", "b"):
        publish_unjudged(
            make_patients(), make_spec(), output=tmp_path / name, bits=SeededRandomness(3)
        )
    for path in (tmp_path / "a").rglob("*"):
        if path.is_file():
            assert (
                path.read_bytes()
                == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
            )
    assert list_codes(ic.verify(tmp_path / "a")) == ["RELEASE_SEEDED"]


def test_people_with_several_rows_have_one_each(tmp_path: Path) -> None:
    spec = make_spec(role="key", more="unit: {id: patient}")
    release = publish_unjudged(make_patients(visits=4), spec, output=tmp_path / "out")
    assert release.certificate.guarantee.unit == "one person"
    assert release.certificate.table.release.rows < 900
    assert ic.verify(tmp_path / "out") == []


def test_a_ledger_books_a_release_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.ledger")
    ledger.set_budget(epsilon=1.5, delta=1e-5)
    release = publish_unjudged(
        make_patients(500), make_spec(), output=tmp_path / "out", ledger=ledger.path
    )
    assert release.is_booked
    assert len(ledger.spends()) == 1
    with pytest.raises(IncrowdError, match="budget|ledger"):
        publish_unjudged(
            make_patients(500), make_spec(), output=tmp_path / "more", ledger=ledger.path
        )
    assert len(ledger.spends()) == 1
    assert not (tmp_path / "more").exists()


Change = Callable[[Path, Certificate], Certificate]


def _edit_part(certificate: Certificate, **update: object) -> Certificate:
    assert certificate.synthetic is not None
    part = certificate.synthetic.model_copy(update=update)
    return certificate.model_copy(update={"synthetic": part})


def _edit_table(
    folder: Path, certificate: Certificate, number: int, edit: Callable[[str], str] | None = None,
    **update: object,
) -> Certificate:  # fmt: skip
    assert certificate.synthetic is not None
    measured = list(certificate.synthetic.measured)
    entry = measured[number]
    if edit is not None:
        path = folder / entry.file
        path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
        update["sha256"] = hash_file(path)
    measured[number] = entry.model_copy(update=update)
    return _edit_part(certificate, measured=measured)


def _shift_model(text: str) -> str:
    lines = text.splitlines()
    head, *rest = (line.rpartition(",") for line in lines)
    shifted = [f"{left},{float(right) + 20:.3f}" for left, _, right in rest]
    return "\n".join([",".join([head[0], head[2]]), *shifted]) + "\n"


def _shift_count(text: str) -> str:
    lines = text.splitlines()
    parts = lines[1].split(",")
    parts[-3] = f"{float(parts[-3]) + 1:.3f}"
    return "\n".join([lines[0], ",".join(parts), *lines[2:]]) + "\n"


def _halve_numbers(text: str) -> str:
    head, first, *rest = text.splitlines()
    parts = first.split(",")
    parts[1] += ".5"
    return "\n".join([head, ",".join(parts), *rest]) + "\n"


def _rewrite_rows(edit: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[..., Certificate]:
    def change(folder: Path, certificate: Certificate) -> Certificate:
        from incrowd.engine.source import local_engine

        path = folder / "data.parquet"
        rows = edit(pl.read_parquet(path))
        coded = {
            name: (list(values := rows[name].unique().to_list()),
                   np.array([values.index(x) for x in rows[name].to_list()], dtype=np.int32))
            for name in rows.columns if name != "patient"
        }  # fmt: skip
        keys = rows["patient"].to_numpy(), np.zeros(len(rows), dtype=bool)
        local_engine().from_rows(coded, {"patient": keys}, rows.columns).write(path)
        assert certificate.release is not None
        data = certificate.release.model_copy(update={"sha256": hash_file(path)})
        return certificate.model_copy(update={"release": data})

    return change


def _lower_variance(folder: Path, certificate: Certificate) -> Certificate:
    assert certificate.synthetic is not None
    number = len(certificate.synthetic.measured[1].variances)
    return _edit_table(folder, certificate, 1, variances=[4] * number)


def _drop_tables(_: Path, certificate: Certificate) -> Certificate:
    assert certificate.synthetic is not None
    return _edit_part(certificate, measured=certificate.synthetic.measured[:3])


def _drop_choices(_: Path, certificate: Certificate) -> Certificate:
    information = certificate.parameters["information"]
    update = {
        "events": certificate.events[-1:],
        "parameters": {"information": information, "choices": 0.0},
    }
    return certificate.model_copy(update=update)


def _raise_information(_: Path, certificate: Certificate) -> Certificate:
    event = {"kind": "gaussian measurements", "information": 0.5}
    update = {
        "events": [*certificate.events[:-1], event],
        "parameters": {**certificate.parameters, "information": 0.5},
    }
    return certificate.model_copy(update=update)


def _add_rule(_: Path, certificate: Certificate) -> Certificate:
    assert certificate.synthetic is not None
    rule = {"never": {"sex": ["female"]}}
    return _edit_part(certificate, rules=[*certificate.synthetic.rules, rule])


def _swap_smokers(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that no test of single values by domain finds, in the right order."""
    swapped = rows.with_columns(~pl.col("smoker")).drop("patient")
    return swapped.sort(swapped.columns, nulls_last=True).select(rows["patient"], pl.all())


def _respell(column: str, edit: Callable[[str], str]) -> Change:
    """Change how one column of a measured table is written, and nothing that it says."""

    def change(text: str) -> str:
        head, *lines = text.splitlines()
        at = head.split(",").index(column)
        parts = [line.split(",") for line in lines]
        return "\n".join(
            [head, *(",".join([*p[:at], edit(p[at]), *p[at + 1 :]]) for p in parts)]
        ) + "\n"  # fmt: skip

    return lambda folder, certificate: _edit_table(folder, certificate, 1, change)


FORGERIES: dict[str, tuple[Change, str]] = {
    "variances": (_lower_variance, "MEASUREMENTS_NOT_CHARGED"),
    "fractions": (
        lambda folder, certificate: _edit_table(folder, certificate, 1, _halve_numbers),
        "MEASURED_NUMBERS_INVALID",
    ),
    "counts": (
        lambda folder, certificate: _edit_table(folder, certificate, 1, _shift_count),
        "MEASURED_COUNTS_DIFFER",
    ),
    "digits of counts": (_respell("count", lambda text: f"{text}0417"), "MEASURED_COUNTS_DIFFER"),
    "last digits of counts": (
        _respell("count", lambda text: f"{float(text) + 0.002:.3f}"),
        "MEASURED_COUNTS_DIFFER",
    ),
    "signs of deviations": (_respell("sd", lambda text: f"+{text}"), "MEASURED_COUNTS_DIFFER"),
    "digits of the model": (
        _respell("model", lambda text: f"{text}0417"),
        "MEASURED_COUNTS_DIFFER",
    ),
    "ends of lines": (
        lambda folder, certificate: _edit_table(
            folder, certificate, 1, lambda text: text.replace("\n", "\r\n")
        ),
        "MEASURED_COUNTS_DIFFER",
    ),
    "required tables": (
        lambda _, certificate: _edit_part(
            certificate, tables=[["pregnant", "weight", "diagnosis"]]
        ),
        "MEASURED_TABLES_MISSING",
    ),
    "model": (
        lambda folder, certificate: _edit_table(folder, certificate, 3, _shift_model),
        "MODEL_DIFFERS",
    ),
    "tables": (_drop_tables, "MEASURED_TABLES_MISSING"),
    "choices": (_drop_choices, "MEASURED_TABLES_NOT_CHARGED"),
    "information": (_raise_information, "GUARANTEE_FALSE"),
    "rules": (_add_rule, "SYNTHETIC_RULE_BROKEN"),
    "value": (
        _rewrite_rows(lambda rows: rows.with_columns(sex=pl.lit("robot"))),
        "VALUE_NOT_IN_SCHEME",
    ),
    "rows of another model": (_rewrite_rows(_swap_smokers), "ROWS_NOT_OF_MODEL"),
    "keys": (
        _rewrite_rows(lambda rows: rows.with_columns(patient=rows["patient"] + 7)),
        "KEYS_NOT_NUMBERED",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_release_is_found_out(copied: Path, name: str) -> None:
    change, code = FORGERIES[name]
    reseal_certificate(copied, change(copied, load_certificate(copied)))
    assert code in list_codes(ic.verify(copied))


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("method: synthetic, epsilon: 1", "needs a budget. Add `epsilon`, above 0, and `delta`"),
        (f"{BUDGET}, k: 5", "`k` is not a setting of `method: synthetic`"),
        (f"{BUDGET}, tables: [[sex, sex]]", "names a column twice"),
        (f"{BUDGET}, rows: counted", "synthetic rows are not grouped"),
        (f"{BUDGET}, beta: 0.1", "`beta` is not a setting of `method: synthetic`"),
        (f"{BUDGET}, rules: [{{never: {{sexx: male}}}}]", "the column 'sexx' has no entry"),
        ("method: safe, epsilon: 1, delta: 1.0e-6", "the role `key` is for `method: synthetic`"),
        ("method: safe, epsilon: 1, delta: 1.0e-6", "`precision` is for role `noisy`"),
    ],
)
def test_specs_that_do_not_fit_are_refused(release: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        make_spec(release)


def _change(spec: SpecFile, *changes: tuple[tuple[str, ...], object]) -> SpecFile:
    for place, value in changes:
        spec = spec.with_entry(place, value)
    return spec


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            [(("columns", "region", "hierarchy"), {"flat": {}})],
            "'region': its domain is open, .* List them",
        ),
        (
            [(("columns", "region", "hierarchy"), {"mask": {"length": 2}})],
            "'region': its domain is open",
        ),
        ([(("columns", "region", "other"), "region 1")], "is also a value"),
        ([(("release", "target"), "patient")], "'patient': `release` names it"),
        (
            [(("release", "rules"), [{"never": {"sex": ["male", "female", None]}}])],
            "allows no row",
        ),
        (
            [(("release", "rules"), [{"if": {"sex": "male"}, "then": {"smoker": True}},
                                     {"if": {"sex": "male"}, "then": {"smoker": False}},
                                     {"never": {"sex": ["female", None]}}])],
            "contradict each other: .*{if: {sex: male}, then: {smoker: true}}; .*never",
        ),
        ([(("release", "rules"), [{"order": ["admitted", "age"]}])], "do not lie on one grid"),
        ([(("columns", "weight", "precision"), 2)], "does not divide"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused_before_anything_is_read(
    changes: list[tuple[tuple[str, ...], object]], words: str
) -> None:
    with pytest.raises(IncrowdError, match=words):
        make_method(_change(make_spec(), *changes))


@pytest.mark.parametrize("rows", [2, 30, 500])
def test_small_tables(rows: int, tmp_path: Path) -> None:
    release = publish_unjudged(make_patients(rows), make_spec(), output=tmp_path / "out")
    assert release.certificate.table.release.rows >= 1
    assert ic.verify(tmp_path / "out") == []


def test_one_column(tmp_path: Path) -> None:
    spec = make_spec()
    for name in make_patients(2).columns:
        if name != "age":
            spec = spec.with_entry(("columns", name), {"role": "drop"})
    publish_unjudged(make_patients(), spec, output=tmp_path / "out")
    assert pl.read_parquet(tmp_path / "out" / "data.parquet").columns == ["age"]
    assert ic.verify(tmp_path / "out") == []


def test_intervals_of_the_readme_hold_what_is_true(folder: Path) -> None:
    """Within five standard deviations; the coverage itself is tested on the core."""
    table = make_patients()
    part = load_certificate(folder).synthetic
    assert part is not None
    number = next(at for at, item in enumerate(part.measured) if item.columns == ["sex"])
    measured = pl.read_csv(folder / f"measured/{number:03d}.csv")
    for sex in ("female", "male"):
        line = measured.filter(pl.col("sex") == sex)
        true = (table["sex"] == sex).sum()
        assert abs(line["count"][0] - true) <= 5 * line["sd"][0]


def test_what_is_promised_is_what_will_be_certified(folder: Path) -> None:
    stated = [sentence.text for sentence in plan_guarantee(make_spec(DRAWN)).statement]
    certified = load_certificate(folder).guarantee
    assert stated == [sentence.text for sentence in certified.statement]
    assert plan_guarantee(make_spec(DRAWN)).epsilon == certified.epsilon


def test_a_rehearsal_needs_no_table(tmp_path: Path) -> None:
    ic.rehearse(make_spec(DRAWN), size=800, output=tmp_path / "out")
    assert list_codes(ic.verify(tmp_path / "out")) == ["RELEASE_REHEARSED"]


def test_a_check_forecasts_the_error() -> None:
    spec = make_spec(more="size: 2000")
    assert "SYNTHETIC_ERROR_OF_SIZE" in list_codes(ic.check(make_patients(), spec))
    assert "SYNTHETIC_ERROR_LARGE" in list_codes(
        ic.check(make_patients(), make_spec(more="size: 90"))
    )
    assert "±" in ic.expect(None, spec).summarize()


def test_a_small_stated_size_pays_for_no_choice_and_is_certified(tmp_path: Path) -> None:
    ic.publish(make_patients(300), make_spec(more="size: 300"), output=tmp_path / "out")
    certificate = load_certificate(tmp_path / "out")
    assert certificate.parameters["size"] == 300
    assert [event["kind"] for event in certificate.events] == ["gaussian measurements"]
    assert "assumption_size" in {sentence.key for sentence in certificate.guarantee.statement}
    assert ic.verify(tmp_path / "out") == []
    planned = plan_guarantee(make_spec(more="size: 300")).statement
    assert [sentence.text for sentence in planned] == [
        sentence.text for sentence in certificate.guarantee.statement
    ]


BIRTHS = """
columns:
  sex: {role: quasi, hierarchy: {flat: {values: [female, male]}}}
  born: {role: quasi, hierarchy: {dates:
    {from: 1895-01-01, to: 2024-12-31, levels: [LEVELS]}}}
"""


def test_a_check_warns_of_values_that_drown_in_noise() -> None:
    """47,483 days of birth for 1,801 people; months as well, years not."""
    table = pl.DataFrame({"sex": ["female"], "born": [dt.date(1950, 1, 1)]})

    def find(levels: str, size: str) -> list[Finding]:
        columns = BIRTHS.replace("LEVELS", levels)
        findings = ic.check(table, parse_spec(f"{columns}{size}\nrelease: {{{BUDGET}}}\n"))
        return [item for item in findings if item.code == "SYNTHETIC_VALUES_TOO_FINE"]

    (finding,) = find("day, month, year", "size: 1801")
    assert finding.column == "born"
    assert finding.values["values"] == 47_483
    assert finding.values["size"] == 1801
    assert str(finding).startswith("Column 'born': 47,483 values are too many for 1,801 people (")
    assert "Declare at most about" in finding.remedy
    assert "`levels: [year]` for dates" in finding.remedy
    assert len(find("month, year", "size: 1801")) == 1
    assert not find("year, decade", "size: 1801")
    assert not find("day, month, year", "size: 1000000")
    assert len(find("day, month, year", "")) == 1
    assert not find("month, year", "")


DAYS = "{from: 2020-01-01, to: 2021-12-31, levels: [day, month, year]}"
STAYS = f"""
columns:
  sex: {{role: quasi, hierarchy: {{flat: {{values: [female, male]}}}}}}
  admitted: {{role: quasi, hierarchy: {{dates: {DAYS}}}}}
  discharged: {{role: quasi, hierarchy: {{dates: {DAYS}}}}}
  control: {{role: quasi, hierarchy: {{dates: {DAYS}}}}}
"""


@pytest.mark.parametrize("values", ["labels", "drawn"])
def test_days_are_in_order_where_no_model_holds_all_pairs_of_them(
    values: str, tmp_path: Path
) -> None:
    """731 days each: the model orders months, and days within a month are drawn in order."""
    draw = np.random.default_rng(1)
    days = np.cumsum(np.stack([draw.integers(0, 650, 1500), *draw.integers(0, 30, (2, 1500))]), 0)
    dates = [[dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in part] for part in days]
    names = ("admitted", "discharged", "control")
    table = pl.DataFrame({"sex": draw.choice(["female", "male"], 1500)}).with_columns(
        **{name: pl.Series(part) for name, part in zip(names, dates, strict=True)}
    )
    rules = "rules: [{order: [admitted, discharged, control]}, {never: {sex: male, control: 2021}}]"
    spec = parse_spec(f"{STAYS}\nrelease: {{{BUDGET}, values: {values}, {rules}}}\n")
    publish_unjudged(table, spec, output=tmp_path / "out", bits=SeededRandomness(2))
    rows = pl.read_parquet(tmp_path / "out" / "data.parquet")
    assert not (rows["admitted"] > rows["discharged"]).any()
    assert not (rows["discharged"] > rows["control"]).any()
    assert not (rows["admitted"] > rows["control"]).any()
    assert rows.filter((pl.col("sex") == "male") & (pl.col("control").dt.year() == 2021)).is_empty()
    same = rows["admitted"].dt.truncate("1mo") == rows["discharged"].dt.truncate("1mo")
    assert same.sum() > 100  # or else nothing has been drawn again
    assert list_codes(ic.verify(tmp_path / "out")) == ["RELEASE_SEEDED"]
