"""Which algorithm is taken where the spec leaves it open, from facts that depend on no data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from incrowd.errors import IncrowdError
from incrowd.release.verify import verify
from incrowd.tasks.evaluate import evaluate
from incrowd.tasks.publish import publish

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
    assert "4e+07 schemes, more than OLA can search" in " ".join(release.reasons)
    assert verify(tmp_path / "out") == []
    noisy, spec = wide(10, method="k-epsilon", epsilon=1.0)
    spec["columns"]["c9"] = {"role": "noisy"}
    found = publish(noisy, spec, output=tmp_path / "noisy")
    assert found.certificate.parameters["algorithm"] == "mondrian"
    assert found.reasons == release.reasons
    assert verify(tmp_path / "noisy") == []
    assert 0 < evaluate(noisy, found, spec).loss < 1


def test_what_can_be_searched_is_searched() -> None:
    release = publish(*wide(3))
    assert release.certificate.parameters["algorithm"] == "ola"
    assert release.reasons == ()


@pytest.mark.parametrize("asked", [{"algorithm": "ola"}, {"loss": "entropy"}, {"suppression": 0.1}])
def test_who_asks_for_a_search_is_told_that_it_cannot_be_done(asked: dict[str, Any]) -> None:
    with pytest.raises(IncrowdError, match="leave at most"):
        publish(*wide(9, **asked))
