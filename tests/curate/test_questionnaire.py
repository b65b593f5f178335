"""The questions about a release: answers become entries of the spec, and nothing is invented."""

from __future__ import annotations

import pytest

from incrowd.curate.questionnaire import answer_about, list_about_questions
from incrowd.errors import IncrowdError
from incrowd.spec.about import NOT_STATED
from incrowd.spec.file import parse_spec
from incrowd.spec.problem import SpecError

DRAFT = "# by hand\ncolumns:\n  a: {role: drop}  # stays\n"


def test_an_open_question_is_not_stated() -> None:
    questions = list_about_questions(parse_spec(DRAFT))
    assert {question.answer for question in questions} == {NOT_STATED}
    assert not any(question.is_stated for question in questions)
    assert all(question.words.endswith("?") for question in questions)


def test_answers_become_entries_and_comments_stay() -> None:
    file = answer_about(parse_spec(DRAFT), {"title": " A: b ", "keywords": "x, ,y", "contact": ""})
    assert "# stays" in file.text()
    assert file.spec.about is not None
    assert file.spec.about.list_stated() == ("title", "keywords")
    answers = {question.entry: question.answer for question in list_about_questions(file)}
    assert (answers["title"], answers["keywords"]) == ("A: b", "x, y")
    changed = answer_about(file, {"title": None, "theme": "health"})
    assert changed.spec.about is not None
    assert changed.spec.about.list_stated() == ("keywords", "theme")
    assert answer_about(changed, {"keywords": [], "theme": ""}).spec.about is None


def test_every_bad_answer_is_named_with_the_way_out() -> None:
    bad = {"contact": "x", "language": "EN", "theme": "helth", "url": "www", "license": "my own"}
    with pytest.raises(SpecError) as caught:
        answer_about(parse_spec(DRAFT), bad)
    assert {problem.place for problem in caught.value.problems} == {f"about.{x}" for x in bad}
    assert "Did you mean 'health'?" in str(caught.value)
    with pytest.raises(IncrowdError, match="'titel' is no entry"):
        answer_about(parse_spec(DRAFT), {"titel": "x"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("about: {titel: x}", "unknown key 'titel'. Did you mean 'title'?"),
        ("about: {title: ' '}", "is empty"),
        ('about: {title: "a\\u202eb"}', "control characters"),
        ("about: {keywords: x}", "must be a list"),
        ("describe: [croisant]", "Did you mean 'croissant'?"),
        ("describe: [registry]\nrelease: {method: k-anonymity, k: 5}", "makes none"),
    ],
)
def test_a_mistake_in_a_spec_is_named(text: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem.replace("?", r"\?")):
        parse_spec(f"{DRAFT}{text}\n")
