from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.fixtures import patients, quick, settled_once, undrawn, voters

__all__ = ["own_state", "patients", "quick", "settled_once", "undrawn", "voters"]

settings.register_profile(
    "incrowd", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("incrowd")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes what the user has released before."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
