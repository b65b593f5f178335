from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def usual_budgets(settled_once: None) -> None:
    """Whole releases are made by the hundred, of few different budgets."""
