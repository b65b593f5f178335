"""What is promised: the method, its parameters, the crowd they ask for, and the words for it.

Nothing on this page is read from the table, unless the spec says that its size is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.curate.promise import Promised
from incrowd.errors import IncrowdError
from incrowd.findings import Finding
from incrowd.methods.expect import Expectation
from incrowd.methods.outlay import Outlay, ledger_of, ledgers, outlay_of
from incrowd.privacy.protection import Strength, classify_guarantee
from incrowd.privacy.rounded import rounded
from incrowd.release.crowd import Crowd, crowd_of
from incrowd.release.entries import RULE
from incrowd.release.ledger import Ledger
from incrowd.spec.release import SafeSpec, Slicing
from incrowd.studio import edits
from incrowd.studio.answers import Refused, answers_of
from incrowd.studio.hands import Subject
from incrowd.studio.private import create_private
from incrowd.studio.rooms.data import subject
from incrowd.studio.server import Form, Studio, edit_route
from incrowd.studio.work import Work

_BRIEF = 0.02  # seconds that the page waits for a figure, after it has waited for the promise


@dataclass(frozen=True)
class Card:
    """A method to choose: what it promises, and what it does not."""

    method: str
    name: str
    promises: str
    not_so: str


CARDS = (
    Card(
        "safe", "Safe",
        "Differential privacy: whether or not somebody is in the table hardly changes what is "
        "released, whatever others know of them.",
        "Costs detail: groups of few people are not shown, and numbers are off by a few.",
    ),
    Card(
        "k-epsilon", "k-epsilon",
        "Every row is alike to at least k - 1 others in the quasi columns, and noise hides the "
        "values of noisy columns inside each group.",
        "Not differential privacy: the range of a group can be estimated, and several releases "
        "together may tell more.",
    ),
    Card(
        "k-anonymity", "k-anonymity",
        "Every row is alike to at least k - 1 others in the quasi columns.",
        "Not differential privacy: a group that shares a sensitive value reveals it, and whoever "
        "knows more about somebody can rule out others.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Draw:
    """What a sample or counts would keep by the pre-flight."""

    name: str
    known: Expectation | None
    refused: str
    waiting: bool

    @property
    def findings(self) -> list[Finding]:
        """The forecast, but for the crowd size, which the page shows itself."""
        found = [] if self.known is None else self.known.findings()
        return [one for one in found if one.code != "CROWD_SIZE"]


def routes(studio: Studio) -> list[BaseRoute]:
    """The page and what can be done there."""

    def page(request: Request) -> Response:
        work = studio.work(request)
        release = work.file.spec.release
        safe = isinstance(release, SafeSpec)
        promise, waiting = _promise(studio, work)
        draws, drawing = _draws(studio, work) if safe else ([], False)
        books = ledgers(studio.desk(request).home)
        spending, booking = (None, False)
        if safe and isinstance(promise, Promised) and not waiting:
            spending, booking = _spending(studio, work)
        slices = getattr(release, "slices", ())
        return studio.page(
            "privacy.html", room="privacy", work=work, cards=CARDS, release=release,
            promise=promise if isinstance(promise, Promised) else None, strength=_strength(promise),
            refused=promise.words if isinstance(promise, Refused) else "",
            waiting=waiting, crowd=_crowd(promise), draws=draws, drawing=drawing,
            rule=RULE, books=books, book=_chosen_ledger(work), spending=spending, booking=booking,
            slices=slices.columns if isinstance(slices, Slicing) else "",
            listed=bool(slices) and not isinstance(slices, Slicing),
            size=work.file.spec.size, targets=work.file.spec.with_role("quasi", "sensitive"),
            noisy=[(name, column) for name, column in work.file.spec.columns.items()
                   if column.role == "noisy"], number=plain,
            left=sum(len(entries) for entries in work.file.spec.unconfirmed.values()),
        )  # fmt: skip

    def method(request: Request, form: Form) -> Response:
        work = studio.work(request)
        work.change(edits.method(work.file, form.get("method", "")))
        return _again(work)

    def settings(request: Request, form: Form) -> Response:
        work = studio.work(request)
        work.change(edits.settings(work.file, form))
        return _again(work)

    def noisy(request: Request, form: Form) -> Response:
        work, name = studio.work(request), form.get("column", "")
        if name not in work.file.spec.with_role("noisy"):
            raise IncrowdError(f"There is no noisy column '{name}'.")
        work.change(edits.noisy(work.file, name, form))
        return _again(work)

    def ledger(request: Request, form: Form) -> Response:
        work, desk = studio.work(request), studio.desk(request)
        name = form.get("ledger", "")
        if name and desk.inside(name) not in ledgers(desk.home):
            raise IncrowdError(f"There is no ledger '{name}' in the folder.")
        work.change(edits.choose_ledger(work.file, desk.inside(name) if name else None), undo=False)
        return _again(work)

    def new_ledger(request: Request, form: Form) -> Response:
        work, desk = studio.work(request), studio.desk(request)
        path = desk.inside(_name(form.get("name", "")))
        if path.exists():
            raise IncrowdError(f"'{path.name}' is in the folder already. Choose another name.")
        epsilon, delta = (_number(name, form.get(name, "")) for name in ("epsilon", "delta"))
        create_private(path).close()
        try:
            Ledger(path).set_budget(epsilon=epsilon, delta=delta)
            work.change(edits.choose_ledger(work.file, path), undo=False)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return _again(work)

    return [
        Route("/desk/{work}/privacy", page),
        edit_route(studio, "/desk/{work}/privacy/method", method, page),
        edit_route(studio, "/desk/{work}/privacy/settings", settings, page),
        edit_route(studio, "/desk/{work}/privacy/noisy", noisy, page),
        edit_route(studio, "/desk/{work}/privacy/ledger", ledger, page),
        edit_route(studio, "/desk/{work}/privacy/ledger/new", new_ledger, page),
    ]


def _again(work: Work) -> Response:
    return RedirectResponse(f"/desk/{work.name}/privacy", status_code=303)


def _name(text: str) -> str:
    """The name of a new ledger: a plain name of a file."""
    name = text.strip()
    if not name or Path(name).name != name or name.startswith("."):
        raise IncrowdError(f"'{text}' is no name of a file. Write one such as patients.ledger.")
    return name if "." in name else f"{name}.ledger"


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise IncrowdError(f"'{name}' must be a number; got '{text}'.") from None


def plain(value: float | None) -> str:
    """A number as one would type it."""
    return "" if value is None else f"{value:.12g}"


def _promise(studio: Studio, work: Work) -> tuple[Promised | Refused | None, bool]:
    """What will be promised, and whether the answer is still that of earlier settings."""
    answers = answers_of(work)
    if work.file.spec.release is None:
        return None, False
    found = answers.ask(studio.hands, "promise", work.file.text(), _promised, subject(work))
    return (answers.last.get("promise"), True) if found is None else (found, False)


def _draws(studio: Studio, work: Work) -> tuple[list[Draw], bool]:
    """What a sample and what counts would keep, and whether one is still being computed."""
    answers, found = answers_of(work), []
    for draw in ("counts", "sample"):
        name = f"expect {draw}"
        one = answers.ask(
            studio.hands, name, work.file.text(), _expected, subject(work), draw, moment=_BRIEF
        )
        waiting = one is None
        one = answers.last.get(name) if waiting else one
        known = one if isinstance(one, Expectation) else None
        refused = one.words if isinstance(one, Refused) else ""
        found.append(Draw(draw, known, refused, waiting))
    return found, any(one.waiting for one in found)


def _chosen_ledger(work: Work) -> Path | None:
    """Return the file of the ledger that the spec names."""
    book = ledger_of(work.file)
    return None if book is None else book.path.resolve()


def _spending(studio: Studio, work: Work) -> tuple[dict[str, str] | str | None, bool]:
    """What the ledger of the spec has left, in numbers to show; its reason if it cannot be used."""
    path = _chosen_ledger(work)
    if path is None:
        return None, False
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    found = answers_of(work).ask(
        studio.hands, "outlay", (work.file.text(), str(path), stamp), _outlay, subject(work),
        moment=_BRIEF,
    )  # fmt: skip
    if found is None:
        return None, True
    if isinstance(found, Refused):
        return found.words, False
    assert isinstance(found, Outlay)
    return _in_digits(found), False


def _in_digits(found: Outlay) -> dict[str, str]:
    """What is spent rounded up, what is left rounded down, so that what is shown holds."""
    cost, after = found.cost, found.after
    return {
        "budget": f"{found.epsilon:g}", "delta": f"{found.delta:g}",
        "releases": f"{found.releases}", "spent": rounded("epsilon", found.spent, 4),
        "left": rounded("left", found.left, 4), "refused": found.refused,
        "cost": _digits(cost), "after": _digits(after),
        "share": f"{min(found.spent / found.epsilon, 1.0) if found.epsilon else 1.0:.3f}",
    }  # fmt: skip


def _digits(value: float | None) -> str:
    if value is None:
        return ""
    return "without bounds" if math.isinf(value) else rounded("epsilon", value, 4)


def _strength(promise: Promised | Refused | None) -> Strength | None:
    if not isinstance(promise, Promised) or promise.epsilon is None or promise.delta is None:
        return None
    return classify_guarantee(promise.epsilon, promise.delta)


def _crowd(promise: Promised | Refused | None) -> Crowd | None:
    return crowd_of(promise.crowd) if isinstance(promise, Promised) else None


def _table(asked: Subject, file: Any) -> Any:
    """The table where its size is public, and is to be counted; else None, and nobody looks."""
    return asked.both()[1] if file.spec.size == "public" else None


def _promised(asked: Subject) -> Promised:
    from incrowd.curate.promise import promised

    return promised(asked.file())


def _expected(asked: Subject, draw: str) -> Expectation:
    from incrowd.methods.expect import expect_by

    file = asked.file()
    return expect_by(draw, _table(asked, file), file)


def _outlay(asked: Subject) -> Outlay | None:
    return outlay_of(asked.file())
