"""The steps of a release on the page of its progress: those of its method, where it is now."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from incrowd.spec.file import parse_spec
from incrowd.studio.views.publish import WORDS, list_steps
from incrowd.studio.worker_pool import PublishJob

SPEC = """
columns:
  x: {role: quasi, hierarchy: {flat: {values: [a, b]}}}
  y: {role: quasi, hierarchy: {flat: {values: [a, b]}}}
release: {RELEASE}
"""


@pytest.mark.parametrize(
    ("release", "ledger", "expected"),
    [
        ("method: safe, epsilon: 1, delta: 1e-6", "a.ledger",
         "open count book search draw write measure attack report"),
        ("method: safe, epsilon: 1, delta: 1e-6, slices: 2", None,
         "open count slice search draw write measure attack report"),
        ("method: synthetic, epsilon: 1, delta: 1e-6", None,
         "open count synthesize draw write measure attack report"),
        ("method: tables, epsilon: 1, delta: 1e-6, all: 2", None,
         "open count tabulate draw write measure attack report"),
        ("method: k-anonymity, k: 5", None,
         "open count search recode write measure attack report"),
    ],
)  # fmt: skip
def test_steps_are_those_of_the_method(release: str, ledger: str | None, expected: str) -> None:
    work: Any = SimpleNamespace(file=parse_spec(SPEC.replace("RELEASE", release)))
    job = PublishJob(Path("out"), ledger)
    assert list_steps(work, job) == expected.split()
    for step in WORDS:  # whatever comes has a place, so that none is shown as done too early
        job.step = step
        assert step == "begin" or step in list_steps(work, job)
