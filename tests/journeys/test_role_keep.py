"""The role `keep`: columns published unchanged, as the curator asserts that they may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.unjudged import publish_unjudged

from incrowd.curate.check import check
from incrowd.curate.draft.draft import Draft
from incrowd.engine.source import open_table
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError, IncrowdWarning
from incrowd.evaluation.attacks.attack import attack
from incrowd.evaluation.evaluate import evaluate
from incrowd.publication import publish
from incrowd.release.certificate import Certificate
from incrowd.release.verify import verify
from incrowd.spec.file import parse_spec
from incrowd.spec.problem import SpecError
from incrowd.studio.spec_edits import set_role

ROWS = 240
AGE = {"role": "quasi", "hierarchy": {"intervals": {"from": 20, "to": 79, "widths": [10, 30]}}}


def people(**more: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({
        "age": [20 + at * 7 % 60 for at in range(ROWS)],
        "ill": [["no", "no", "yes"][at % 3] for at in range(ROWS)],
        "wave": [f"wave {at % 4}" for at in range(ROWS)],
        **more,
    })  # fmt: skip


def keeping(method: str = "k-anonymity", **more: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {"age": AGE, "ill": {"role": "sensitive"}, "wave": {"role": "keep"}}
    release: dict[str, Any] = {"method": method, "k": 4}
    if method == "k-epsilon":
        columns["weight"] = {"role": "noisy"}
        release["epsilon"] = 1.0
    return {"columns": columns | more, "release": release}


@pytest.mark.parametrize("method", ["k-anonymity", "k-epsilon"])
def test_values_are_unchanged_and_the_assertion_is_certified(tmp_path: Path, method: str) -> None:
    noisy = {"weight": [50 + at % 40 for at in range(ROWS)]} if method == "k-epsilon" else {}
    frame = people(**noisy)
    release = publish_unjudged(frame, keeping(method), output=tmp_path / "out")
    assert sorted(release.data["wave"].to_list()) == sorted(frame["wave"].to_list())
    assert verify(tmp_path / "out") == []
    (sentence,) = (
        each for each in release.certificate.guarantee.statement if each.key == "assumption_keep"
    )
    assert "no protection is needed for 'wave'" in sentence.text
    assert "The curator asserts this" in sentence.text
    assert "'ill'" not in sentence.text
    assert release.certificate.parameters["role of wave"] == "keep"
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "| `wave` | the original value, of a column that needs no protection" in readme
    assert "| `ill` | the original value. |" in readme


def change(folder: Path, **parameters: str | None) -> None:
    """Certify other parameters, with the statement that follows from them and a valid seal."""
    path = folder / "certificate.json"
    certificate = Certificate.model_validate_json(path.read_bytes())
    changed = {**certificate.parameters, **parameters}
    update = {"parameters": {name: x for name, x in changed.items() if x is not None}}
    path.write_bytes(
        certificate.model_copy(update=update).with_statement().with_seal().to_canonical_json()
    )


@pytest.mark.parametrize("parameters", [{"role of age": "keep"}, {"role of wave": "harmless"}])
def test_only_columns_that_are_published_unchanged_can_be_asserted(
    tmp_path: Path, parameters: dict[str, str]
) -> None:
    publish_unjudged(people(), keeping(), output=tmp_path / "out")
    change(tmp_path / "out", **parameters)
    assert "EVENTS_INVALID" in [finding.code for finding in verify(tmp_path / "out")]


def test_an_assertion_cannot_be_removed_from_the_statement_alone(tmp_path: Path) -> None:
    publish_unjudged(people(), keeping(), output=tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    certificate = Certificate.model_validate_json(path.read_bytes())
    guarantee = certificate.guarantee
    statement = [item for item in guarantee.statement if item.key != "assumption_keep"]
    shortened = guarantee.model_copy(update={"statement": statement})
    update = {"guarantee": shortened}
    path.write_bytes(certificate.model_copy(update=update).with_seal().to_canonical_json())
    assert verify(tmp_path / "out") != []


@pytest.mark.parametrize(
    "release",
    [
        {"method": "safe", "epsilon": 1.0, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 1e-6},
        {"method": "synthetic", "epsilon": 1.0, "delta": 1e-6},
        {"method": "tables", "epsilon": 1.0, "delta": 1e-6, "all": 2},
    ],
)
def test_private_methods_refuse_it_with_the_way_out(release: dict[str, Any]) -> None:
    spec = keeping() | {"release": release}
    with pytest.raises(SpecError) as refused:
        publish(people(), spec)
    (problem,) = (x for x in refused.value.problems if x.place == "columns.wave.role")
    assert "`quasi` with a hierarchy" in problem.message
    assert "`method: k-anonymity`" in problem.message


def test_rare_values_free_text_and_ids_are_found() -> None:
    frame = people(
        number=[f"P{at // 2:04}" for at in range(ROWS)],
        clinic=["a"] * (ROWS - 3) + ["b", "b", "c"],
    )
    spec = keeping(number={"role": "keep"}, clinic={"role": "keep"})
    findings = {(finding.code, finding.column) for finding in check(frame, spec)}
    assert ("ID_PUBLISHED", "number") in findings
    assert ("KEPT_VALUES_ARE_RARE", "wave") not in findings
    (rare,) = (x for x in check(frame, spec)
               if (x.code, x.column) == ("KEPT_VALUES_ARE_RARE", "clinic"))  # fmt: skip
    assert "3 rows have a value that fewer than 4 rows share" in str(rare)
    (asserted,) = (x for x in check(frame, spec) if x.code == "KEEP_ASSERTED")
    assert "you assert of wave, number, clinic:" in str(asserted)
    assert "nobody who looks for a person knows that person's value" in str(asserted)
    spec["columns"]["number"]["allow"] = ["id"]
    with pytest.warns(IncrowdWarning, match="3 rows have a value that fewer than 4 rows share"):
        publish(frame, spec)


def test_it_is_no_secret_of_attacks_unless_it_is_named(tmp_path: Path) -> None:
    release = publish_unjudged(people(), keeping(), output=tmp_path / "out")
    tables: Any = {"original": people(), "released": tmp_path / "out", "spec": keeping()}
    names = {x.name for x in attack(**tables, seed=1).estimates if x.attack == "inference"}
    assert any("ill" in name for name in names)
    assert not any("wave" in name for name in names)
    named = attack(**tables, seed=1, secrets=["wave"]).estimates
    assert any("wave" in x.name for x in named if x.attack == "inference")
    assert len(release.data) == ROWS


def test_what_is_measured_knows_it(tmp_path: Path) -> None:
    publish_unjudged(people(), keeping(), output=tmp_path / "out")
    evaluation = evaluate(
        original=people(), released=tmp_path / "out", spec=keeping(), target="wave"
    )
    assert evaluation.utility is not None
    assert evaluation.utility.accuracy is not None


def test_a_column_that_gets_the_role_loses_what_belongs_to_others() -> None:
    file = parse_spec(
        "columns:\n  a: {role: quasi, hierarchy: flat, confirm: [role, hierarchy]}\n"
        "  b: {role: sensitive, diversity: {distinct: 2}}\n"
    )
    for name in ("a", "b"):
        file = file.with_entries(set_role(file, Draft(table=None, guesses=()), name, "keep"))
    columns = file.spec.columns.values()
    assert [column.role for column in columns] == ["keep", "keep"]
    assert not any(column.hierarchy or column.diversity or column.confirm for column in columns)


def test_rows_on_other_machines_keep_their_values(spark_session: Any, tmp_path: Path) -> None:
    frame = people()
    remote: Table = open_table(spark_session.createDataFrame(frame.to_pandas()))
    publish_unjudged(remote, keeping(), output=tmp_path / "out")
    local = publish_unjudged(frame, keeping(), output=tmp_path / "local")
    published = pl.read_parquet(tmp_path / "out" / "data.parquet")
    columns = ["age", "ill", "wave"]
    assert published.select(columns).sort(columns).equals(local.data.select(columns).sort(columns))
    assert verify(tmp_path / "out") == []


def test_bad_uses_are_refused() -> None:
    with pytest.raises(IncrowdError, match="`diversity` is for role `sensitive`, not `keep`"):
        parse_spec("columns: {a: {role: keep, diversity: {distinct: 2}}}")
    with pytest.raises(IncrowdError, match="role `keep` has no hierarchy"):
        parse_spec("columns: {a: {role: keep, hierarchy: flat}}")
