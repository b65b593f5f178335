"""Whatever a spec or a table looks like: a whole release with its spend, or neither.

Each case is published with a ledger. It ends with a release that verifies and one entry of the
ledger, or with one clear refusal before anything is booked; nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fuzzed import case

from incrowd.errors import IncrowdError
from incrowd.ledger import Ledger
from incrowd.release import Release, publish
from incrowd.verifying import verify

WHOLE, PLENTY = 300, 2000
BATCH = 25


def ends_well(number: int, folder: Path) -> Release | None:
    table, spec = case(number)
    folder.mkdir(exist_ok=True)
    ledger = None
    if spec["release"].get("method", "safe") == "safe":
        ledger = Ledger(folder / "ledger")
        ledger.set_budget(epsilon=100, delta=1e-3)
    try:
        release = publish(table, spec, output=folder / "out", ledger=ledger)
    except IncrowdError as refused:
        assert ledger is None or ledger.spends() == [], f"case {number}: spent, then {refused}"
        assert not (folder / "out").exists()
        assert not (folder / "out.curator").exists()
        return None
    assert verify(folder / "out") == [], f"case {number}"
    assert ledger is None or len(ledger.spends()) == 1
    page = (folder / "out.curator" / "report.html").read_text(encoding="utf-8")
    assert "could not be drawn" not in page, f"case {number}"
    return release


@pytest.mark.parametrize("start", range(0, WHOLE, BATCH))
def test_a_release_or_a_refusal(tmp_path: Path, start: int) -> None:
    made = 0
    for number in range(start, start + BATCH):
        made += ends_well(number, tmp_path / str(number)) is not None
    assert made > BATCH // 4  # most cases are no refusals
