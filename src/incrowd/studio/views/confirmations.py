"""The queue of confirmations: one card after the other, columns that are alike together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.curate.confirm import UNIT, Question
from incrowd.curate.confirm_answers import ColumnChange, ColumnChanger
from incrowd.curate.draft.public_values import suggest_public_range
from incrowd.curate.question_group import QuestionGroup
from incrowd.errors import IncrowdError
from incrowd.methods.person_id import simplify_name
from incrowd.spec.hierarchies import Dates, Flat, Intervals, Order
from incrowd.spec.model import HARMLESS_ENTRIES
from incrowd.studio import spec_edits
from incrowd.studio.answer_cache import RefusedAnswer, get_answer_cache
from incrowd.studio.number_form import normalize_number
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.server import Form, Studio, make_edit_route
from incrowd.studio.views.data import make_snapshot
from incrowd.studio.worker_pool import SpecSnapshot

_MOST_LISTED = 60  # values of a list that are changed by hand


@dataclass(frozen=True)
class QuestionRow:
    """One question of a card: what may be said instead, and why the draft says what it says."""

    question: Question
    place: str
    role: str
    reason: str
    low: str = ""
    high: str = ""
    values: str = ""

    @property
    def is_public(self) -> bool:
        """Whether it is a range or a list that must be public."""
        return self.question.entry not in HARMLESS_ENTRIES


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of its actions."""

    def show_queue(request: Request) -> Response:
        work = studio.get_open_spec(request)
        groups, refused = _get_groups(studio, work)
        at = _parse_at(request.query_params.get("at", ""), len(groups or ()))
        group = groups[at] if groups else None
        return studio.render_page(
            "confirmations.html",
            room="confirm",
            work=work,
            waiting=groups is None and not refused,
            refused=refused,
            group=group,
            rows=[] if group is None else list(_make_rows(work, group)),
            at=at,
            cards=len(groups or ()),
            entries=(left := sum(len(card.questions) for card in groups or ())),
            total=max(_count_asked(work), left, 1),
            roles=spec_edits.ROLES,
        )

    def answer_card(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        at = form.get("at", "")
        if form.get("do") == "change":
            _change_column(work, form.get("column", ""), form)
        else:
            places = [place.partition(":") for place in form.get_all("place")]
            if not places:
                raise IncrowdError("Nothing is selected. Select the columns that are right.")
            _confirm_places(work, ((entry, name) for entry, _, name in places))
        query = f"?at={at}" if at.isdecimal() and int(at) else ""
        return RedirectResponse(f"/desk/{work.name}/confirm{query}", status_code=303)

    return [
        Route("/desk/{work}/confirm", show_queue),
        make_edit_route(studio, "/desk/{work}/confirm", answer_card, show_queue),
    ]


def _parse_at(text: str, cards: int) -> int:
    """Return the card to show; the first after the last."""
    at = int(text) if text.isdecimal() and len(text) < 6 else 0
    return at if at < cards else 0


def _get_groups(studio: Studio, work: OpenSpec) -> tuple[list[QuestionGroup] | None, str]:
    """Return the cards that are left, or None while they are computed; and why they cannot be.

    They are computed once, and again only where the spec says something else of a column.
    """
    columns = {
        name: work.file.spec.columns[name].model_dump_json(exclude={"confirm"})
        for name in work.file.spec.unconfirmed_entries
    }
    if not columns:
        return [], ""
    stored: tuple[dict[str, str], list[QuestionGroup]] | None = work.kept.get("cards")
    if stored is None or not columns.items() <= stored[0].items() or not _covers(work, stored[1]):
        answer = get_answer_cache(work).get_answer(
            studio.hands, "cards", work.file.text(), _group_questions, make_snapshot(work)
        )
        if answer is None or isinstance(answer, RefusedAnswer):
            return None, "" if answer is None else answer.words
        stored = work.kept["cards"] = (columns, answer)
    left = (group.keep_open(work.file, ()) for group in stored[1])
    return [group for group in left if group is not None and group.kind != "unit"], ""


def _count_asked(work: OpenSpec) -> int:
    """Return how many entries the cards asked for at first."""
    stored: tuple[dict[str, str], list[QuestionGroup]] | None = work.kept.get("cards")
    groups = () if stored is None else stored[1]
    return sum(len(group.questions) for group in groups if group.kind != "unit")


def _covers(work: OpenSpec, groups: Iterable[QuestionGroup]) -> bool:
    """Return whether cards ask for everything that is not confirmed."""
    places = {(question.column, question.entry) for group in groups for question in group.questions}
    return all(
        (name, entry) in places
        for name, entries in work.file.spec.unconfirmed_entries.items()
        for entry in entries
    )


def _join_roles(groups: list[QuestionGroup]) -> list[QuestionGroup]:
    """Return the groups with all roles in one card: they are looked through together."""
    roles = [group for group in groups if group.kind == "role"]
    if len(roles) < 2:
        return groups
    questions = tuple(question for group in roles for question in group.questions)
    card = QuestionGroup("role", f"roles ({len(questions)} columns)", questions)
    return [card, *(group for group in groups if group.kind not in ("role", UNIT))]


def _make_rows(work: OpenSpec, group: QuestionGroup) -> Iterator[QuestionRow]:
    guesses = {guess.column: guess for guess in work.guessed.guesses}
    for question in group.questions:
        column = work.file.spec.columns[question.column]
        guess = guesses.get(question.column)
        yield QuestionRow(
            question, f"{question.entry}:{question.column}", column.role,
            guess.explanation if guess and guess.role == column.role else "",
            **_offer_values(work, question),
        )  # fmt: skip


def _offer_values(work: OpenSpec, question: Question) -> dict[str, str]:
    """Return what a range or a list may be instead: public by the name of the column, or as is."""
    hierarchy = work.file.spec.columns[question.column].hierarchy
    if question.entry != "hierarchy" or hierarchy is None:
        return {}
    match hierarchy.declaration:
        case Intervals() as declared:
            ends = suggest_public_range(simplify_name(question.column))
            low, high = ends or (declared.low, declared.high)
            return {"low": format(low, "f"), "high": format(high, "f")}
        case Dates() as days:
            return {"low": str(days.low), "high": str(days.high)}
        case Flat() | Order() as listed if len(listed.values) <= _MOST_LISTED:
            return {"values": "\n".join(map(str, listed.values))}
    return {}


def _confirm_places(work: OpenSpec, places: Iterable[tuple[str, str]]) -> None:
    entries_by_column: dict[str, list[str]] = {}
    for entry, name in places:
        entries_by_column.setdefault(name, []).append(entry)
    changes: dict[Any, Any] = {}
    for name, entries in entries_by_column.items():
        changes |= spec_edits.confirm_entries(work.file, [name], entries)
    if changes:
        work.apply_changes(changes)


def _change_column(work: OpenSpec, name: str, form: Form) -> None:
    """Set what somebody says of a column instead of what the draft says, which confirms it."""
    if name not in work.file.spec.columns:
        raise IncrowdError(f"The spec has no column '{name}'.")
    if role := form.get("role", ""):
        if role not in spec_edits.ROLES:
            raise IncrowdError(f"There is no role '{role}'.")
        work.apply_changes(spec_edits.set_role(work.file, work.guessed, name, role))
        return
    changer = ColumnChanger(work.file)
    if "values" in form:
        values = tuple(line.strip() for line in form["values"].splitlines() if line.strip())
        changer.change(name, ColumnChange(values=values))
    else:
        low, high = (normalize_number(form.get(end, "")) for end in ("low", "high"))
        changer.change(name, ColumnChange(range=(low, high)))
    work.replace_text(changer.file.text())


def _group_questions(snapshot: SpecSnapshot) -> list[QuestionGroup]:
    from incrowd.curate.question_group import group_questions

    return _join_roles(group_questions(*snapshot.open_spec_and_table()))
