"""Synthetic rows of tables as they come: tests of a hospital, very many columns, failures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.covid import COLUMNS, make_covid_table
from support.synthetic import BUDGET, make_patients, make_spec
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.errors import IncrowdError
from incrowd.methods.synthetic import method as synthetic
from incrowd.release.ledger import Ledger
from incrowd.spec.file import parse_spec

LISTED = {
    "zip: {role: quasi, hierarchy: {mask: {length: 5}}}": "zip: {role: quasi, hierarchy: "
    "{intervals: {from: 19000, to: 19399, step: 10, widths: [50, 200]}}}",
    "ct_value: {role: drop}": "ct_value: {role: quasi, hierarchy: "
    "{intervals: {from: 30, to: 60, step: 0.5, widths: [2, 10]}}}",
    "collected: {role: drop}": "collected: {role: quasi, hierarchy: "
    "{intervals: {from: 0, to: 100, step: 1, widths: [5, 20]}}}",
    "verified: {role: drop}": "verified: {role: quasi, hierarchy: "
    "{intervals: {from: 0, to: 100, step: 1, widths: [5, 20]}}}",
    "test: {role: drop}": "test: {role: key}",
}


def test_every_value_of_a_hundred_people_keeps_its_share(tmp_path: Path) -> None:
    """15,000 tests, 6 % positive, 17 columns: within one point, where counts show ``*``."""
    columns = COLUMNS
    for old, new in LISTED.items():
        assert old in columns
        columns = columns.replace(old, new)
    table = make_covid_table().with_columns(pl.col("zip").cast(int))
    spec = parse_spec(f"{columns}\nrelease: {{{BUDGET}, target: result}}\n")
    release = ic.publish(table, spec, output=tmp_path / "out")
    assert ic.verify(tmp_path / "out") == []
    rows = pl.read_parquet(tmp_path / "out" / "data.parquet")
    for name in ("gender", "age", "day", "clinic", "group", "insurer", "class", "result"):
        before = dict(table[name].cast(str).value_counts(normalize=True).rows())
        after = dict(rows[name].cast(str).value_counts(normalize=True).rows())
        for value, share in before.items():
            if share * len(table) >= 100:
                assert abs(after.get(value, 0.0) - share) <= 0.01, (name, value)
    assert release.evaluation.largest_error <= 0.01  # type: ignore[attr-defined]


def test_very_many_columns(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    common = draw.random(5000) < 0.4
    table = pl.DataFrame(
        {f"q{at}": (draw.random(5000) < np.where(common, 0.7, 0.3)).astype(int)
         for at in range(171)}
    )  # fmt: skip
    columns = "\n".join(
        f"  {name}: {{role: quasi, hierarchy: {{flat: {{values: [0, 1]}}}}}}"
        for name in table.columns
    )
    spec = parse_spec(f"columns:\n{columns}\nrelease: {{{BUDGET}}}\n")
    publish_unjudged(table, spec, output=tmp_path / "out")
    assert ic.verify(tmp_path / "out") == []
    rows = pl.read_parquet(tmp_path / "out" / "data.parquet")
    before, after = (frame.mean().to_numpy()[0].astype(float) for frame in (table, rows))
    errors = np.abs(before - after)
    assert float(errors.mean()) < 0.08


def test_what_fails_after_the_booking_is_booked_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spend counts: the table was looked at. Neither folder appears."""
    ledger = Ledger(tmp_path / "l.ledger")
    ledger.set_budget(epsilon=5, delta=1e-5)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(synthetic, "make_product", fail)
    with pytest.raises(IncrowdError, match="No space") as caught:
        publish_unjudged(
            make_patients(300), make_spec(), output=tmp_path / "out", ledger=ledger.path
        )
    assert any("spend is booked" in note or "booked" in note for note in caught.value.__notes__)
    assert len(ledger.spends()) == 1
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.curator").exists()


def test_a_refusal_books_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.ledger")
    ledger.set_budget(epsilon=5, delta=1e-5)
    table = make_patients(300).with_columns(sex=pl.lit("unknown"))
    with pytest.raises(IncrowdError, match="sex"):
        publish_unjudged(table, make_spec(), output=tmp_path / "out", ledger=ledger.path)
    assert not ledger.spends()
