"""The words of certificates of format 5, the one that is written today.

They are those of format 4. What it has more is a page beside the certificate for readers of
contracts, by :mod:`incrowd.release.statements.page_5`.
"""

from __future__ import annotations

from incrowd.release.statements.format_4 import METHODS, statement

__all__ = ["METHODS", "statement"]
