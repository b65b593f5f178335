"""Which algorithm is taken where the spec leaves it open, from facts that depend on no data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from markupsafe import escape
from support.release_lines import describe_release

from incrowd.anonymize import node_evaluator
from incrowd.errors import IncrowdError, IncrowdWarning
from incrowd.evaluation.evaluate import evaluate
from incrowd.publication import publish
from incrowd.release.verify import verify

DEEP = {"intervals": {"from": 0, "to": 63, "widths": [2, 4, 8, 16, 32]}}  # seven levels


def wide(columns: int, **release: Any) -> tuple[pl.DataFrame, dict[str, Any]]:
    names = [f"c{at}" for at in range(columns)]
    table = pl.DataFrame({name: [(row * (at + 3)) % 64 for row in range(200)]
                          for at, name in enumerate(names)})  # fmt: skip
    quasi = {name: {"role": "quasi", "hierarchy": DEEP} for name in names}
    return table, {"columns": quasi, "release": {"method": "k-anonymity", "k": 5, **release}}


def test_too_many_schemes_are_cut_and_it_is_said(tmp_path: Path) -> None:
    release = publish(*wide(9), output=tmp_path / "out")  # 7^9 schemes, 40 million
    assert release.certificate.parameters["algorithm"] == "mondrian"
    assert "too many schemes to search" in " ".join(release.reasons)
    assert verify(tmp_path / "out") == []
    noisy, spec = wide(10, method="k-epsilon", epsilon=1.0)
    spec["columns"]["c9"] = {"role": "noisy"}
    result = publish(noisy, spec, output=tmp_path / "noisy")
    assert result.certificate.parameters["algorithm"] == "mondrian"
    assert result.reasons == release.reasons
    assert verify(tmp_path / "noisy") == []
    assert 0 < evaluate(noisy, result, spec).loss < 1


def test_what_can_be_searched_is_searched() -> None:
    release = publish(*wide(3))
    assert release.certificate.parameters["algorithm"] == "ola"
    assert release.reasons == ()


@pytest.mark.parametrize(
    "options",
    [{"algorithm": "ola"}, {"loss": "entropy"}, {"suppression": 0.1}, {"search_seconds": 9}],
)
@pytest.mark.parametrize("noisy", [False, True])
def test_who_asks_for_a_search_gets_one_however_many_schemes_there_are(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, noisy: bool
) -> None:
    """It takes the time that the spec gives, or a minute; here the clock goes by its readings."""
    read: list[float] = []

    def clock() -> float:
        read.append(float(len(read)))
        return read[-1]

    monkeypatch.setattr(node_evaluator, "monotonic", clock)
    table, spec = wide(9, **options)
    if noisy:
        table = table.with_columns(pl.Series("c9", range(200)))
        spec["columns"]["c9"] = {"role": "noisy"}
        spec["release"] |= {"method": "k-epsilon", "epsilon": 1.0}
    with pytest.warns(IncrowdWarning, match=r"stopped after [\d,]+ of 40,353,607 schemes"):
        release = publish(table, spec)
    assert release.certificate.parameters["algorithm"] == "ola"
    assert release.certificate.table.release.smallest_class >= 5
    assert verify(release.folder) == []
    assert 0 <= read[-1] - options.get("search_seconds", 60) < 20
    search = release.evaluation.search
    assert search is not None
    assert not search.optimum
    assert -1e-9 <= search.least < search.loss
    assert escape(search.description) in release.report().html
    assert search.description not in describe_release(release)


def test_a_search_that_came_to_its_end_says_so() -> None:
    release = publish(*wide(3))
    search = release.evaluation.search
    assert search is not None
    assert search.optimum
    words = "No other of 343 schemes has a smaller loss (normalized)."
    assert f"Search: {words}" in describe_release(release)
    assert words in release.report().html
    assert publish(*wide(3, candidates="minimal")).evaluation.search is None


def test_minimal_schemes_are_listed_so_there_must_not_be_too_many() -> None:
    with pytest.raises(IncrowdError, match="leave at most"):
        publish(*wide(9, candidates="minimal"))
