"""Rows of a class, an original value and a released one."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from incrowd.arrays import Steps

tables = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-9, 9), st.integers(-12, 12)), min_size=1, max_size=40
)


def make_arrays(rows: list[tuple[int, int, int]]) -> tuple[Steps, Steps, Steps]:
    classes, originals, released = np.array(rows, dtype=np.int64).T
    return np.unique(classes, return_inverse=True)[1], originals, released
