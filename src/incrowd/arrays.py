"""The kinds of arrays that everything works on, each named once; and who hears of progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Codes: TypeAlias = npt.NDArray[np.int32]  # numbers of values, or of groups of a hierarchy
Counts: TypeAlias = npt.NDArray[np.int64]  # how many rows
Places: TypeAlias = npt.NDArray[np.int64]  # where in another array
Members: TypeAlias = npt.NDArray[np.int64]  # the class of each row or tuple
Steps: TypeAlias = npt.NDArray[np.int64]  # values on a grid
Words: TypeAlias = npt.NDArray[np.uint64]  # random bits

Step: TypeAlias = Callable[[str], None]  # hears of each step before it is taken
Progress: TypeAlias = Callable[[int, int], None]  # hears how much is done, of how much
