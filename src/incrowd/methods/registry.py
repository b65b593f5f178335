"""The methods by their names in a spec."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from incrowd.errors import IncrowdError
from incrowd.methods.base import Method
from incrowd.spec.file import SpecFile

# Each lives in a module that is loaded when a spec asks for it.
METHODS = {
    "safe": ("safe", "Safe"),
    "k-anonymity": ("k_anonymity", "KAnonymity"),
    "k-epsilon": ("k_epsilon", "KEpsilon"),
    "synthetic": ("synthetic", "Synthetic"),
    "tables": ("tables", "Tables"),
}


def make_method(file: SpecFile) -> Method:
    """Make the method that a spec asks for; refuse what would be refused for any table."""
    if file.spec.release is None:
        raise IncrowdError("Spec: `release` is missing. Add a method and its parameters.")
    folder, name = METHODS[file.spec.release.method]
    method: Callable[[SpecFile], Method] = getattr(
        import_module(f"incrowd.methods.{folder}.method"), name
    )
    return method(file)
