"""The words of certificates of format 4, as versions before format 5 wrote them.

What it says more than format 3: that a release is a rehearsal. Beside the certificate lies a page
for readers, by :mod:`incrowd.release.statements.readme_4`.
"""

from __future__ import annotations

from incrowd.release.statements import Facts
from incrowd.release.statements.format_3 import METHODS as BEFORE
from incrowd.release.statements.format_3 import statement as stated

METHODS = BEFORE
_REHEARSAL = (
    "REHEARSAL: the table was made up from the spec, and no row of it tells of anybody. Nothing is "
    "promised. Of a release of the real table, this would hold: "
)


def statement(method: str, facts: Facts) -> str:
    """The guarantee in words."""
    words = stated(method, facts)
    return f"{_REHEARSAL}{words}" if facts.rehearsal else words
