"""What can go wrong, said once: which column or parameter, which value, and the way out.

Every error that a user can cause is an :class:`IncrowdError`. The checks below turn a bad
parameter into one sentence of one form, so that callers of the library and readers of the
command line see the same words. They accept numbers and arrays, and return float64 arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats
from incrowd.findings import Finding


class IncrowdError(Exception):
    """A mistake that the user can correct; its text names the place, the problem and the remedy."""


class FindingError(IncrowdError):
    """A finding that leaves nothing else to do; ``finding`` has its code and values."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding

    def __str__(self) -> str:
        return str(self.finding)


class Refusal(IncrowdError):  # noqa: N818 - it is an answer, not an error
    """A request that is understood and refused."""


class IncrowdWarning(UserWarning):
    """A finding that does not stop a release.

    Attributes:
        finding: The finding, with its code and values.
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding

    def __str__(self) -> str:
        return str(self.finding)


class ParameterError(IncrowdError, ValueError):
    """A parameter has a value that it cannot have.

    Attributes:
        name: The name of the parameter.
    """

    def __init__(self, name: str, requirement: str, value: object, way_out: str = "") -> None:
        hint = f" {way_out}" if way_out else ""
        super().__init__(f"The '{name}' parameter must {requirement}. Got {value!r} instead.{hint}")
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes it again in another process, which gets its text and not its parts."""
        return _restore_parameter_error, (type(self), self.args, self.name)


def _restore_parameter_error(
    kind: type[ParameterError], arguments: tuple[Any, ...], name: str
) -> ParameterError:
    error = kind.__new__(kind, *arguments)
    error.name = name
    return error


class OutsideDefinitionError(ParameterError):
    """A parameter for which the paper's definition of delta says nothing."""


class UnsolvableError(IncrowdError, ValueError):
    """No value of the unknown satisfies the request."""


def check_fraction(name: str, value: npt.ArrayLike) -> Floats:
    """Return the value as floats, all strictly between 0 and 1."""
    requirement = "lie strictly between 0 and 1"
    array = _convert_to_floats(name, value, requirement)
    _refuse_bad(name, requirement, value, array, ~((array > 0) & (array < 1)))
    return array


def check_at_least_zero(name: str, value: npt.ArrayLike) -> Floats:
    """Return the value as floats, all finite and at least 0."""
    requirement = "be a finite number of at least 0"
    array = _convert_to_floats(name, value, requirement)
    _refuse_bad(name, requirement, value, array, ~((array >= 0) & np.isfinite(array)))
    return array


def check_whole(name: str, value: npt.ArrayLike, least: int = 1) -> Floats:
    """Return the value as floats, all of them whole numbers from ``least`` up to 2**53."""
    requirement = f"be an integer of at least {least}"
    array = _convert_to_floats(name, value, requirement)
    bad = ~((array >= least) & (array <= 2**53) & (array == np.floor(array)))
    _refuse_bad(name, requirement, value, array, bad)
    return array


def require_single(name: str, array: Floats) -> float:
    """Return the one number that an array without dimensions holds; refuse a list of numbers."""
    if array.ndim:
        raise ParameterError(name, "be a single number", array.tolist())
    return float(array)


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return the value, if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        listed = " or ".join(repr(choice) for choice in choices)
        raise ParameterError(name, f"be {listed}", value)
    return value


def _convert_to_floats(name: str, value: npt.ArrayLike, requirement: str) -> Floats:
    """Return the value as a float64 array; booleans, strings and None are no numbers."""
    raw: npt.NDArray[Any] = np.asarray(value)
    if raw.dtype.kind not in "iuf":
        raise ParameterError(name, requirement, value)
    return raw.astype(np.float64)


def _refuse_bad(
    name: str, requirement: str, value: npt.ArrayLike, array: Floats, bad: npt.NDArray[np.bool_]
) -> None:
    if np.any(bad):
        offender = value if array.ndim == 0 else np.asarray(value)[bad][0].item()
        raise ParameterError(name, requirement, offender)
