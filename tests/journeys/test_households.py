"""A household is the unit: its members are protected together, and the certificate says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.unjudged import publish_unjudged

from incrowd.errors import IncrowdError
from incrowd.privacy.amplification import Guarantee
from incrowd.release.certificate import Certificate
from incrowd.release.ledger import Ledger
from incrowd.release.verify import verify

REGIONS, AGES = ["north", "south"], ["0-17", "18-64", "65+"]


def make_households(number: int = 1500) -> tuple[pl.DataFrame, pl.DataFrame]:
    draws = np.random.default_rng(4)
    region = draws.choice(REGIONS, number)
    member = np.repeat(np.arange(number), draws.integers(1, 6, number))
    people = {"household": member, "person": np.arange(len(member)), "region": region[member]}
    ages = pl.Series("age", draws.choice(AGES, len(member)))
    households = pl.DataFrame({"household": np.arange(number), "region": region})
    return households, pl.DataFrame(people).with_columns(ages)


def make_spec(rows: int, *names: str, **release: Any) -> dict[str, Any]:
    values = {"region": REGIONS, "age": AGES}
    return {
        "unit": {"id": "household", "rows": rows, "protects": "household"},
        "columns": {
            "household": {"role": "identifier"},
            **({"person": {"role": "identifier"}} if "age" in names else {}),
            **{
                name: {"role": "quasi", "hierarchy": {"flat": {"values": values[name]}}}
                for name in names
            },
        },
        "release": {
            "method": "safe", "epsilon": 0.5, "delta": 5e-7, "rows": "counted",
            "levels": dict.fromkeys(names, 0), **release,
        },
    }  # fmt: skip


def test_households_and_their_members_are_two_releases_of_one_budget(tmp_path: Path) -> None:
    households, people = make_households()
    ledger = Ledger(tmp_path / "census.ledger")
    ledger.set_budget(epsilon=1.0, delta=1e-6)
    for name, table, spec in (
        ("households", households, make_spec(1, "region")),
        ("people", people, make_spec(3, "region", "age")),
    ):
        release = publish_unjudged(table, spec, output=tmp_path / name, ledger=ledger)
        assert not verify(tmp_path / name)
        assert release.certificate.guarantee.protects == "household"
        texts = {item.key: item.text for item in release.certificate.guarantee.statement}
        assert "A person of this statement is a household" in texts["household"]
    assert ledger.total() == Guarantee(1.0, 1e-6)
    # Counts are of households, of which no group has more than there are.
    counts = pl.read_parquet(tmp_path / "people/data.parquet")
    r = release.certificate.parameters["r"]
    for region, total in households.group_by("region").len().iter_rows():
        group = counts.filter(pl.col("region") == region)["count"].cast(pl.Int64)
        assert group.max() <= total + r


def test_a_certificate_cannot_take_back_what_it_protects(tmp_path: Path) -> None:
    households, _ = make_households(300)
    publish_unjudged(households, make_spec(1, "region"), output=tmp_path / "out")
    path = tmp_path / "out/certificate.json"
    certificate = Certificate.model_validate_json(path.read_bytes())
    guarantee = certificate.guarantee.model_copy(update={"protects": None})
    altered = certificate.model_copy(update={"guarantee": guarantee}).with_seal()
    path.write_bytes(altered.to_canonical_json())
    assert "STATEMENT_DIFFERS" in {finding.code for finding in verify(tmp_path / "out")}


def test_k_of_classes_counts_households(tmp_path: Path) -> None:
    _, people = make_households(400)
    classes = {"method": "k-anonymity", "k": 5, "levels": {}, "epsilon": None, "delta": None}
    spec = make_spec(5, "region", "age", **classes)
    release = publish_unjudged(people, spec, output=tmp_path / "out")
    assert not verify(tmp_path / "out")
    texts = {item.key: item.text for item in release.certificate.guarantee.statement}
    assert "k and numbers of people count households" in texts["household"]
    with pytest.raises(IncrowdError, match="unknown unit"):
        publish_unjudged(people, {**spec, "unit": {"id": "household", "protects": "school"}})
