"""The methods by their names in a spec."""

from __future__ import annotations

from collections.abc import Callable

from incrowd.errors import IncrowdError
from incrowd.methods.base import Method
from incrowd.methods.k_anonymity.method import KAnonymity
from incrowd.methods.k_epsilon.method import KEpsilon
from incrowd.methods.safe.method import Safe
from incrowd.spec.file import SpecFile

METHODS: dict[str, Callable[[SpecFile], Method]] = {
    "safe": Safe,
    "k-anonymity": KAnonymity,
    "k-epsilon": KEpsilon,
}


def method_of(file: SpecFile) -> Method:
    """The method that a spec asks for; refuses what would be refused by any table."""
    if file.spec.release is None:
        raise IncrowdError("The spec says nothing under 'release'. Say how to publish.")
    return METHODS[file.spec.release.method](file)
