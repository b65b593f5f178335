"""What was asked of other processes about a work, and what they have answered.

A question has a name and a key: what the answer depends on. Answers of late are kept, so that
whoever goes back sees them at once; a question that is out of date is not waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.ui.studio.desk import Work
from incrowd.ui.studio.hands import CRASHED, Hands

MOMENT = 0.08  # seconds that a page waits for what may be there at once
_KEPT = 40


@dataclass(frozen=True)
class Refused:
    """There is no answer, and the reason why."""

    words: str


@dataclass
class Answers:
    """The questions of one work."""

    asked: dict[tuple[str, Any], Future[Any]] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(
        self, hands: Hands, name: str, key: Any, task: Callable[..., Any], *given: Any,
        moment: float = MOMENT,
    ) -> Any:  # fmt: skip
        """The answer, :class:`Refused`, or None while it is being found.

        ``last`` has the answer that was there before it.
        """
        with self.lock:
            future = self._future(hands, name, key, task, *given)
        try:
            found = future.result(timeout=moment)
        except TimeoutError:
            return None
        except CancelledError:
            return None
        except IncrowdError as error:
            found = Refused(str(error))
        except Exception as error:
            with self.lock:
                self.asked.pop((name, key), None)
            raise IncrowdError(CRASHED) from error
        self.last[name] = found
        return found

    def _future(
        self, hands: Hands, name: str, key: Any, task: Callable[..., Any], *given: Any
    ) -> Future[Any]:
        future = self.asked.pop((name, key), None)
        if future is None or future.cancelled():
            for other, waiting in list(self.asked.items()):
                if other[0] == name and waiting.cancel():
                    del self.asked[other]
            future = hands.ask(task, *given)
        self.asked[name, key] = future  # the latest is at the end
        while len(self.asked) > _KEPT:
            self.asked.pop(next(iter(self.asked))).cancel()
        return future


def answers_of(work: Work) -> Answers:
    """The questions of a work."""
    found: Answers = work.kept.setdefault("answers", Answers())
    return found
