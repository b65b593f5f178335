"""A method is known by one name to the spec, to whoever makes it and to the certificate."""

from __future__ import annotations

from incrowd.methods import registry
from incrowd.methods.base import Method
from incrowd.methods.k_anonymity.method import KAnonymity
from incrowd.methods.k_epsilon.method import KEpsilon
from incrowd.methods.safe.method import Safe
from incrowd.methods.synthetic.method import Synthetic
from incrowd.methods.tables.method import Tables
from incrowd.release import parameters
from incrowd.spec import release

# The registry loads them by name, so that types are checked here
METHODS: dict[str, type[Method]] = {
    "safe": Safe,
    "k-anonymity": KAnonymity,
    "k-epsilon": KEpsilon,
    "synthetic": Synthetic,
    "tables": Tables,
}


def test_every_method_has_a_spec_a_maker_and_words() -> None:
    assert set(release.METHODS) == set(registry.METHODS) == set(parameters.METHODS)
    assert {name: entry[1] for name, entry in registry.METHODS.items()} == {
        name: method.__name__ for name, method in METHODS.items()
    }
