"""The steps of a spec on its way to a release: which are done, open or blocked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from incrowd.findings import Severity
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.worker_pool import PublishJob

State: TypeAlias = Literal["done", "open", "blocked", ""]
ENTRIES_OF_ROOMS = {  # what is confirmed in each room
    "data": ("role", "written"),
    "confirm": ("hierarchy", "other", "precision", "bounds", "function_of"),
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A step: its room, and how far it is. ``state`` is empty where nothing has to be done."""

    address: str
    name: str
    about: str
    state: State
    reason: str

    @property
    def words(self) -> str:
        """How far it is, in words."""
        return self.reason if self.state == "open" and self.reason else self.state


def list_steps(work: OpenSpec, rooms: Sequence[tuple[str, str, str]]) -> list[Step]:
    """Return the steps of a work, from its spec and the last check of it, if that is there."""
    states = {address: _find_state(work, address) for address, _, _ in rooms}
    if "publish" in states:
        states["publish"] = _find_publish_state(work, states)
    return [Step(address, name, about, *states[address]) for address, name, about in rooms]


def _find_state(work: OpenSpec, address: str) -> tuple[State, str]:
    spec = work.file.spec
    if address in ("hierarchies", "explore"):  # they may be passed by
        return "", ""
    entries = ENTRIES_OF_ROOMS.get(address, ())
    unconfirmed = [
        name for name, column in spec.columns.items() if set(column.confirm) & set(entries)
    ]
    if address == "privacy" and spec.release is None:
        return "open", "choose a method"
    if address == "person" and spec.confirm:
        return "open", "confirm the unit"
    if unconfirmed:
        count = len(unconfirmed)
        return "open", f"confirm {count} column{'s' if count > 1 else ''}"
    return "done", ""


def _find_publish_state(work: OpenSpec, states: dict[str, tuple[State, str]]) -> tuple[State, str]:
    job = work.kept.get("job")
    if isinstance(job, PublishJob) and not job.ended:
        return "open", "in progress"
    if isinstance(job, PublishJob) and not job.problem:
        return "done", "published"
    if work.file.spec.release is None:
        return "blocked", "choose a method first"
    if any(state == "open" for state, _ in states.values()):
        return "blocked", "confirm the entries first"
    if count_errors(work):
        return "blocked", "correct the errors first"
    return "open", ""


def count_errors(work: OpenSpec) -> int:
    """Count the errors that the last check of this spec has found; 0 where there was none."""
    pending = work.kept.get("findings")
    if pending is None or pending[0] != work.file.text() or not pending[1].done():
        return 0
    if pending[1].cancelled() or pending[1].exception() is not None:
        return 0
    return sum(finding.severity is Severity.ERROR for finding in pending[1].result())
