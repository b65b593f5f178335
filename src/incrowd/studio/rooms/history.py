"""What was released from this folder, and what was spent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from incrowd.cli.guarantee import promise
from incrowd.errors import IncrowdError
from incrowd.methods.outlay import ledgers
from incrowd.privacy.events import words
from incrowd.privacy.rounded import rounded
from incrowd.release.certificate import Certificate
from incrowd.release.entries import Budget, Spend
from incrowd.release.ledger import Ledger
from incrowd.release.verify import read_certificate
from incrowd.studio.rooms.publish import send_zip
from incrowd.studio.rooms.verify import releases
from incrowd.studio.server import MissingError, Studio


@dataclass(frozen=True)
class Book:
    """A ledger: its budget, what is spent and left, and by what."""

    name: str
    budget: Budget
    budgets: list[Budget]
    unit: str | None
    spends: list[Spend]
    spent: float

    @property
    def share(self) -> float:
        """How much of the budget is spent, from 0 to 1."""
        return min(self.spent / self.budget.epsilon, 1.0) if self.budget.epsilon else 1.0

    @property
    def told(self) -> str:
        """What is spent, in short."""
        return rounded("epsilon", self.spent, 4)

    @property
    def left(self) -> str:
        """What is left, in short."""
        return rounded("left", max(self.budget.epsilon - self.spent, 0.0), 4)


@dataclass(frozen=True)
class Past:
    """A release of the folder."""

    name: str
    certificate: Certificate
    promise: str
    rows: int


def routes(studio: Studio) -> list[BaseRoute]:
    """The page."""

    def page(_request: Request) -> Response:
        home = studio.home
        return studio.page(
            "history.html", room="history", books=books(home), past=list(_past(home)),
            words=words,
        )  # fmt: skip

    def zipped(request: Request) -> Response:
        name = request.query_params.get("of", "")
        found = [path for path in releases(studio.home) if path.name == name]
        if not found:
            raise MissingError(f"This folder has no release '{name}'.")
        return send_zip(found[0], studio.desk(request).room())

    return [Route("/history", page), Route("/history/release.zip", zipped)]


def books(home: Path) -> list[Book]:
    """Every ledger of a folder."""
    found = []
    for path in ledgers(home):
        book = Ledger(path)
        one = Book(
            path.name, book.budget(), book.budgets(), book.unit(), book.spends(),
            book.total().epsilon,
        )  # fmt: skip
        found.append(one)
    return found


def _past(home: Path) -> list[Past]:
    found = []
    for folder in releases(home):
        try:
            certificate = read_certificate(folder)
        except IncrowdError:
            continue
        rows = sum(table.release.rows for table in certificate.tables)
        found.append(Past(folder.name, certificate, promise(certificate), rows))
    return sorted(found, key=lambda one: (one.certificate.date, one.name), reverse=True)
