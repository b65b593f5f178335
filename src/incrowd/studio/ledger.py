"""What the ledger of a work has left, for the header of its pages."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.errors import IncrowdError
from incrowd.methods.outlay import ledger_of
from incrowd.release.entries import write_left
from incrowd.spec.release import SafeSpec
from incrowd.studio.work import Work


@dataclass(frozen=True)
class LedgerStanding:
    """The ledger of a work: its name, what is left, and why it cannot be used if it cannot."""

    name: str
    left: str
    problem: str = ""
    is_used_up: bool = False


def find_standing(work: Work) -> LedgerStanding | None:
    """Return what the ledger of a spec has left now; None where the method needs no ledger."""
    spec = work.file.spec
    if spec.ledger is None and not isinstance(spec.release, SafeSpec):
        return None
    if spec.ledger is None:
        return LedgerStanding("", "")
    name = spec.ledger.rsplit("/", 1)[-1]
    try:
        book = ledger_of(work.file)
        assert book is not None
        left = book.remaining()
    except IncrowdError as error:
        return LedgerStanding(name, "", str(error))
    return LedgerStanding(name, write_left(left), is_used_up=not (left.epsilon and left.delta))
