from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Processes that run side by side have a core each: threads of BLAS would wait for one another,
# and small compositions take ten times as long. It is read when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from support.fixtures import patients, settled_once, voters
from support.postgres import postgres
from support.site import site
from support.spark import mark_spark, spark_cluster, spark_session
from support.studio import studio
from support.web import chromium

__all__ = [
    "chromium", "own_state", "patients", "postgres", "settled_once", "site", "spark_cluster",
    "spark_session", "studio", "voters",
]  # fmt: skip

# The same cases each time: a red run can be run again. `--hypothesis-profile random` draws others.
settings.register_profile(
    "random", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("incrowd", settings.get_profile("random"), derandomize=True)
settings.load_profile("incrowd")

LONG = (
    "test_site.py", "test_studio.py", "test_fuzz.py", "test_crashes.py", "test_main.py",
    "test_paper_b.py", "test_draft_draft.py", "test_safe_mondrian_whole.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first, so that no process is left alone with them at the end.

    Before them come those of Spark: the first process takes the first half of all tests from the
    front, and others take from its end, so that one process alone waits for Java to start.
    """
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
    items.sort(key=lambda item: (not mark_spark(item), item.path.name not in LONG))


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes what the user has released before."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
