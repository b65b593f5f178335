"""What was asked of other processes about a work, and what they have answered.

A question has a name and a key: what the answer depends on. Answers of late are kept, so that
whoever goes back sees them at once. A question that is out of date is dropped, or, if a process is
at work on it, the next one of its name waits until it is done: so one name never holds more than
one process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.worker_pool import CRASHED, WorkerPool

MOMENT = 0.08  # seconds that a page waits for what may be there at once
_KEPT = 40


@dataclass(frozen=True)
class RefusedAnswer:
    """There is no answer, and the reason why."""

    words: str


@dataclass
class AnswerCache:
    """The questions about one open spec, and their answers."""

    asked: dict[tuple[str, Any], Future[Any]] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get_answer(
        self, hands: WorkerPool, name: str, key: Any, task: Callable[..., Any], *arguments: Any,
        moment: float = MOMENT,
    ) -> Any:  # fmt: skip
        """Return the answer, :class:`RefusedAnswer`, or None while it is being found.

        ``last`` has the answer that was there before it.
        """
        with self.lock:
            future = self._find_future(hands, name, key, task, *arguments)
        if future is None:
            return None
        try:
            refused_answer = future.result(timeout=moment)
        except TimeoutError:
            return None
        except CancelledError:
            return None
        except IncrowdError as error:
            refused_answer = RefusedAnswer(str(error))
        except Exception as error:
            with self.lock:
                self.asked.pop((name, key), None)
            raise IncrowdError(CRASHED) from error
        self.last[name] = refused_answer
        return refused_answer

    def _find_future(
        self, hands: WorkerPool, name: str, key: Any, task: Callable[..., Any], *arguments: Any
    ) -> Future[Any] | None:
        """Return the question as it was or is now asked; None while another one is waited for."""
        future = self.asked.pop((name, key), None)
        if future is None or future.cancelled():
            for other, waiting in list(self.asked.items()):
                if other[0] == name and not waiting.done() and waiting.cancel():
                    del self.asked[other]
            if any(other[0] == name and not first.done() for other, first in self.asked.items()):
                return None
            future = hands.submit_task(task, *arguments)
        self.asked[name, key] = future  # the latest is at the end
        while len(self.asked) > _KEPT:
            self.asked.pop(next(iter(self.asked))).cancel()
        return future


def get_answer_cache(work: OpenSpec) -> AnswerCache:
    """Return the questions and answers of an open spec."""
    answer_cache: AnswerCache = work.kept.setdefault("answers", AnswerCache())
    return answer_cache
