"""What tasks say, for somebody who has no spec before them: it names the page, not the YAML."""

from __future__ import annotations

import re

from incrowd.curate.check import Finding
from incrowd.spec.written import Written

_PLACES = (  # what a message tells to write, and where a page has it
    (r"say 'unit: \{id: COLUMN\}'", "say so under 'People' on the Data page"),
    (
        r"leave them out: unit: \{id: .+, without_id: drop\}",
        "leave them out: see 'People' on the Data page.",
    ),
    (
        r"Say 'size: NUMBER' \(or 'size: public'\) in the spec",
        "Say on the Privacy page how many people there are",
    ),
    (
        r"Declare its 'precision', such as (\S+)\.",
        r"Say on the Privacy page what its values are multiples of, such as \1.",
    ),
    (r"Declare 'other'\.", "Say on the Hierarchies page what they are shown as."),
    (
        r"'objective: detail'( with 'keep: 0\.25')?",
        "see what the search aims for, under more settings on the Privacy page",
    ),
    (
        r"keep one --ledger for all of them",
        "choose one ledger for all of them, on the Privacy page",
    ),
)
ENTRIES = {  # what can be unconfirmed, and the page where it is confirmed
    "role": ("role", "data"), "written": ("how it is written", "data"),
    "hierarchy": ("hierarchy", "hierarchies"), "other": ("label of other values", "hierarchies"),
    "precision": ("precision", "privacy"), "bounds": ("bounds", "privacy"),
}  # fmt: skip
_POINTS = {",": "a decimal comma", ".": "a decimal point"}


def plain(message: str) -> str:
    """A message whose way out is a page."""
    for said, place in _PLACES:
        message = re.sub(said, place, message)
    return message


def shown(findings: list[Finding] | None) -> list[Finding]:
    """What a page lists: without what is to be confirmed, for which it has buttons, and forecasts.

    What to expect has its place on the Privacy page; it is listed elsewhere where it is doubtful.
    """
    return [
        Finding(one.kind, one.column, plain(one.message.removeprefix("expect: ")))
        for one in findings or ()
        if not one.unconfirmed and not (one.kind == "note" and one.message.startswith("expect: "))
    ]


def read_as(written: Written) -> str:
    """How values are written, in a line."""
    parts = []
    if written.dates is not None:
        parts.append(f"dates by {written.dates.replace('-', ', ')}")
    if written.decimal is not None:
        parts.append(f"numbers with {_POINTS[written.decimal]}")
    if written.thousands is not None:
        parts.append(f"thousands apart by '{written.thousands}'")
    if written.sign is not None:
        parts.append(f"amounts in '{written.sign}'")
    if written.nulls:
        listed = ", ".join(f"'{text}'" for text in written.nulls)
        parts.append(f"{listed} for no value")
    return "; ".join(parts)
