"""What was released from this folder, and what was spent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from incrowd.methods.spec_ledger import list_ledgers
from incrowd.privacy.events import describe_event
from incrowd.privacy.presentation import format_parameter
from incrowd.release.ledger import Ledger
from incrowd.release.ledger_entries import LedgerBudget, Spend
from incrowd.studio.projects import list_past_releases
from incrowd.studio.server import PageNotFoundError, Studio
from incrowd.studio.views.publish import send_zip
from incrowd.studio.views.verify import list_releases


@dataclass(frozen=True)
class LedgerSummary:
    """A ledger: its budget, what is spent and left, and by what."""

    name: str
    budget: LedgerBudget
    budgets: list[LedgerBudget]
    unit: str | None
    spends: list[Spend]
    spent: float

    @property
    def share(self) -> float:
        """How much of the budget is spent, from 0 to 1."""
        return min(self.spent / self.budget.epsilon, 1.0) if self.budget.epsilon else 1.0

    @property
    def spent_text(self) -> str:
        """What is spent, in short."""
        return format_parameter("epsilon", self.spent, 4)

    @property
    def left(self) -> str:
        """What is left, in short."""
        return format_parameter("left", max(self.budget.epsilon - self.spent, 0.0), 4)


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of its files."""

    def show_page(_request: Request) -> Response:
        home = studio.home
        return studio.render_page(
            "history.html",
            room="history",
            books=summarize_ledgers(home),
            past=list_past_releases(list_releases(home)),
            words=describe_event,
        )

    def send_release(request: Request) -> Response:
        name = request.query_params.get("of", "")
        response = [path for path in list_releases(studio.home) if path.name == name]
        if not response:
            raise PageNotFoundError(f"This folder has no release '{name}'.")
        return send_zip(response[0], studio.get_workspace(request).make_private_folder())

    return [Route("/history", show_page), Route("/history/release.zip", send_release)]


def summarize_ledgers(home: Path) -> list[LedgerSummary]:
    """Summarize every ledger of a folder."""
    ledger_summaries = []
    for path in list_ledgers(home):
        book = Ledger(path)
        ledger_summary = LedgerSummary(
            path.name, book.budget(), book.budgets(), book.unit(), book.spends(),
            book.total().epsilon,
        )  # fmt: skip
        ledger_summaries.append(ledger_summary)
    return ledger_summaries
