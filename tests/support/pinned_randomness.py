"""The one way to a release that repeats and still verifies: bits that only claim privacy."""

from __future__ import annotations

from incrowd.privacy.randomness import SeededRandomness


class PinnedRandomness(SeededRandomness):
    """Bits that a seed decides and that pass for the system's. Product code has no such thing."""

    private = True
