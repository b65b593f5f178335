"""The strip of what readers will see, on every page that decides or shows it."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.curate.reader_view import ReaderView
from incrowd.errors import IncrowdError
from incrowd.spec.release import ClassesSpec
from incrowd.studio.answer_cache import RefusedAnswer, get_answer_cache
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.views.data import make_snapshot
from incrowd.studio.worker_pool import SpecSnapshot, WorkerPool

PEOPLE = "people"  # in ``kept``: about how many there are, for dry runs alone
_MOST_PEOPLE = 10**9
_BRIEF = 0.02


@dataclass(frozen=True)
class ReaderStrip:
    """What is known now of what readers will see.

    ``view`` may be that of earlier settings while a new one is ``waiting``. ``asks`` says that the
    number of people is missing, ``people`` is the one that dry runs use.
    """

    view: ReaderView | None = None
    waiting: bool = False
    refused: str = ""
    asks: bool = False
    people: int | None = None
    is_fictional: bool = True

    @property
    def verdict(self) -> str:
        """How the strip looks: nothing is good before it is known."""
        return self.view.verdict if self.view is not None and not self.waiting else "open"


def read_people(work: OpenSpec) -> int | None:
    """Return about how many people there are, by the spec or else as the curator has said."""
    size = work.file.spec.size
    if isinstance(size, int):
        return size
    people: int | None = work.kept.get(PEOPLE)
    return people


def set_people(work: OpenSpec, text: str) -> None:
    """Keep about how many people there are; it is written nowhere."""
    plain = text.strip().replace(",", "").replace(".", "").replace(" ", "").replace("\u202f", "")
    if not plain:
        work.kept.pop(PEOPLE, None)
        return
    if not (plain.isascii() and plain.isdigit() and 1 <= int(plain) <= _MOST_PEOPLE):
        raise IncrowdError(f"The number of people must be a whole number; got '{text}'.")
    work.kept[PEOPLE] = int(plain)


def make_reader_strip(hands: WorkerPool, work: OpenSpec) -> ReaderStrip | None:
    """Return what readers will see by the spec as it is; None without a method."""
    release = work.file.spec.release
    if release is None:
        return None
    fictional = not isinstance(release, ClassesSpec)
    people = read_people(work) if fictional else None
    if fictional and people is None:
        return ReaderStrip(asks=True)
    answers = get_answer_cache(work)
    answer = answers.get_answer(
        hands, "readers", (work.file.text(), people), _foresee_release, make_snapshot(work),
        people, moment=_BRIEF,
    )  # fmt: skip
    waiting = answer is None
    answer = answers.last.get("readers") if waiting else answer
    return ReaderStrip(
        view=answer if isinstance(answer, ReaderView) else None,
        waiting=waiting,
        refused=answer.words if isinstance(answer, RefusedAnswer) else "",
        people=people,
        is_fictional=fictional,
    )


def _foresee_release(snapshot: SpecSnapshot, people: int | None) -> ReaderView:
    from incrowd.curate.reader_view import foresee_release

    if people is not None:
        return foresee_release(snapshot.parse_spec(), people=people)
    file, table = snapshot.open_spec_and_table()
    return foresee_release(file, table=table)
