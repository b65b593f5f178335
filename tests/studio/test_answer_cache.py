"""Questions to other processes: asked once, kept, dropped when out of date."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, cast

import pytest

from incrowd.errors import IncrowdError
from incrowd.studio.answer_cache import AnswerCache, RefusedAnswer
from incrowd.studio.worker_pool import WorkerPool


class Slow:
    """Hands that answer when they are told to."""

    def __init__(self) -> None:
        self.asked: list[Future[Any]] = []

    def submit_task(self, _task: Any, *_given: Any) -> Future[Any]:
        self.asked.append(Future())
        return self.asked[-1]


def ask(answers: AnswerCache, hands: Slow, key: object, name: str = "x") -> Any:
    return answers.get_answer(cast("WorkerPool", hands), name, key, lambda: None, moment=0.001)


def test_a_question_is_asked_once_and_its_answer_kept() -> None:
    answers, hands = AnswerCache(), Slow()
    assert ask(answers, hands, 1) is None
    assert ask(answers, hands, 1) is None
    hands.asked[0].set_result("one")
    assert ask(answers, hands, 1) == "one"
    assert ask(answers, hands, 2) is None
    assert answers.last["x"] == "one"
    assert ask(answers, hands, 1) == "one"
    assert len(hands.asked) == 2


def test_a_question_that_is_out_of_date_is_not_waited_for() -> None:
    answers, hands = AnswerCache(), Slow()
    ask(answers, hands, 1)
    ask(answers, hands, 1, name="other")
    ask(answers, hands, 2)
    assert [item.cancelled() for item in hands.asked] == [True, False, False]
    assert ask(answers, hands, 1) is None
    assert len(hands.asked) == 4


def test_while_a_process_is_at_work_on_an_old_question_the_next_one_waits() -> None:
    answers, hands = AnswerCache(), Slow()
    ask(answers, hands, 1)
    hands.asked[0].set_running_or_notify_cancel()
    assert ask(answers, hands, 2) is None
    assert ask(answers, hands, 3) is None
    assert len(hands.asked) == 1
    hands.asked[0].set_result("one")
    assert ask(answers, hands, 3) is None
    assert len(hands.asked) == 2
    hands.asked[1].set_result("three")
    assert ask(answers, hands, 3) == "three"
    assert ask(answers, hands, 1) == "one"


def test_a_refusal_is_an_answer_and_a_crash_is_asked_again() -> None:
    answers, hands = AnswerCache(), Slow()
    ask(answers, hands, 1)
    hands.asked[0].set_exception(IncrowdError("no"))
    assert ask(answers, hands, 1) == RefusedAnswer("no")
    ask(answers, hands, 2)
    hands.asked[1].set_exception(RuntimeError("lost"))
    with pytest.raises(IncrowdError, match="ended unexpectedly"):
        ask(answers, hands, 2)
    assert ask(answers, hands, 2) is None
    assert len(hands.asked) == 3


def test_old_answers_go() -> None:
    answers, hands = AnswerCache(), Slow()
    for key in range(100):
        ask(answers, hands, key)
        hands.asked[-1].set_result(key)
    assert len(answers.asked) == 40
    assert ask(answers, hands, 99) == 99
    assert ask(answers, hands, 0) is None
