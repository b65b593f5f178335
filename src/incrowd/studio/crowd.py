"""The picture of a crowd, as the report draws it too."""

from __future__ import annotations

from incrowd.release.crowd import Crowd, crowd_of

__all__ = ["Crowd", "crowd_of"]
