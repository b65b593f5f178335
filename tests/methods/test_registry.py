"""A method is known by one name to the spec, to whoever makes it and to the certificate."""

from __future__ import annotations

from incrowd.methods import registry
from incrowd.release import parameters
from incrowd.spec import release


def test_every_method_has_a_spec_a_maker_and_words() -> None:
    assert set(release.METHODS) == set(registry.METHODS) == set(parameters.METHODS)
