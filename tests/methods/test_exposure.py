"""What a release would expose is refused before anything is spent, with a way out."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from incrowd.curate.check import check
from incrowd.engine.source import local_engine
from incrowd.errors import IncrowdError, IncrowdWarning
from incrowd.findings import Finding
from incrowd.publication import publish
from incrowd.release.ledger import Ledger

ROWS = 600
FLAT = {"role": "quasi", "hierarchy": "flat"}


def table(**more: list[Any]) -> pl.DataFrame:
    draw = random.Random(1)
    return pl.DataFrame({"sex": [draw.choice(["f", "m"]) for _ in range(ROWS)], **more})


def comments() -> list[str]:
    draw = random.Random(2)
    words = [
        "the",
        "patient",
        "came",
        "again",
        "with",
        "pain",
        "in",
        "her",
        "left",
        "knee",
        "and",
        "asked",
        "for",
        "Anna",
        "Holm",
    ]
    return [" ".join(draw.choices(words, k=9)) + f" on day {at}" for at in range(ROWS)]


def wrong(spec: dict[str, Any], frame: pl.DataFrame, column: str) -> list[Finding]:
    findings = check(local_engine().open(frame), spec)
    return [
        finding for finding in findings if finding.column == column and finding.severity == "error"
    ]


@pytest.mark.parametrize("method", ["k-anonymity", "k-epsilon"])
def test_free_text_is_not_published_unless_it_is_allowed(tmp_path: Path, method: str) -> None:
    frame = table(note=comments(), weight=[50 + at % 40 for at in range(ROWS)])
    spec: dict[str, Any] = {
        "columns": {"sex": FLAT, "note": {"role": "sensitive"}, "weight": {"role": "drop"}},
        "release": {"method": method, "k": 5},
    }
    if method == "k-epsilon":
        spec["columns"]["weight"] = {"role": "noisy"}
        spec["release"]["epsilon"] = 20
    (finding,) = wrong(spec, frame, "note")
    assert "word for word" in finding.message
    assert "`drop`" in finding.remedy
    with pytest.raises(IncrowdError, match="'note'.*word for word.*allow"):
        publish(frame, spec, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    spec["columns"]["note"]["allow"] = ["free_text"]
    assert wrong(spec, frame, "note") == []
    with pytest.warns(IncrowdWarning):  # it has a value of its own in nearly every row
        publish(frame, spec, output=tmp_path / "out")


def test_short_values_are_no_free_text() -> None:
    frame = table(
        ill=[["flu", "a cold in the head", "broken left arm"][at % 3] for at in range(ROWS)]
    )
    spec = {
        "columns": {"sex": FLAT, "ill": {"role": "sensitive"}},
        "release": {"method": "k-anonymity", "k": 5},
    }
    assert wrong(spec, frame, "ill") == []


@pytest.mark.parametrize("role", ["quasi", "sensitive"])
@pytest.mark.parametrize("method", ["safe", "k-anonymity"])
def test_ids_are_not_published_unless_they_are_allowed(
    tmp_path: Path, method: str, role: str
) -> None:
    """Three rows of each patient make a class of 3: its id would be published."""
    frame = table(patient=[f"P{at // 3:05}" for at in range(ROWS)])
    release = {"method": method, "epsilon": 1.0, "delta": 1e-6}
    spec: dict[str, Any] = {
        "columns": {"sex": FLAT, "patient": {"role": role, "hierarchy": "flat"}},
        "release": release if method == "safe" else {"method": method, "k": 2},
    }
    ledger = Ledger(tmp_path / "ledger") if method == "safe" else None
    if ledger is not None:
        ledger.set_budget(epsilon=10, delta=1e-3)
    with pytest.raises(IncrowdError, match="'patient'.*looks like an id.*identifier"):
        publish(frame, spec, output=tmp_path / "out", ledger=ledger)
    assert ledger is None or ledger.spends() == []
    assert len(wrong(spec, frame, "patient")) == 1
    spec["columns"]["patient"]["allow"] = ["id"]
    assert wrong(spec, frame, "patient") == []


@pytest.mark.parametrize(
    ("more", "refused"), [({}, True), ({"clamp": True}, False), ({"bounds": "declared"}, False)]
)
def test_values_outside_the_bounds_are_counted(
    tmp_path: Path, more: dict[str, Any], refused: bool
) -> None:
    frame = table(gain=[at % 100 - 19 for at in range(ROWS)])
    spec = {
        "columns": {"sex": FLAT, "gain": {"role": "noisy", "bounds": [0, 10]}},
        "release": {"method": "k-epsilon", "k": 5, "epsilon": 5, **more},
    }
    outside = sum(not 0 <= at % 100 - 19 <= 10 for at in range(ROWS))
    text = [
        finding for finding in check(local_engine().open(frame), spec)
        if finding.column == "gain" and finding.values.get("rows") == outside
    ]  # fmt: skip
    assert [finding.severity.value for finding in text] == ["error" if refused else "warning"]
    assert "-19 to 80" in text[0].message
    if refused:
        with pytest.raises(IncrowdError, match=r"outside the bounds \[0, 10\].*clamp"):
            publish(frame, spec, output=tmp_path / "out")
        assert not (tmp_path / "out").exists()
    else:
        with pytest.warns(IncrowdWarning, match="outside the bounds"):
            publish(frame, spec, output=tmp_path / "out")


def test_noise_as_large_as_the_values_is_warned_of(tmp_path: Path) -> None:
    """One large value makes a wide class, and noise as wide as that for everybody in it."""
    gains = [1 + at % 7 if at else 20_000 for at in range(ROWS)]
    frame = table(gain=gains)
    spec: dict[str, Any] = {
        "columns": {"sex": FLAT, "gain": {"role": "noisy"}},
        "release": {"method": "k-epsilon", "k": 5, "epsilon": 1},
    }

    def doubts() -> list[str]:
        result = check(local_engine().open(frame), spec)
        return [
            finding.code
            for finding in result
            if finding.column == "gain" and finding.severity == "warning"
        ]

    assert "NOISE_TOO_LARGE" in doubts()
    with pytest.warns(IncrowdWarning, match=r"'gain': the expected error is [\d,.]+ %"):
        publish(frame, spec, output=tmp_path / "out")
    frame = table(gain=[1000 + at % 7 for at in range(ROWS)])
    assert "NOISE_TOO_LARGE" not in doubts()
