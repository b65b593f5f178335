from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def usual_budgets(settled_once: None, quick: None) -> None:
    """Whole releases are made by the hundred, of few different budgets.

    What is asked of them has tests of its own, so few queries are enough here.
    """
