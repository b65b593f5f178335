"""What epsilon means for attackers and for readers, from the spec alone."""

from __future__ import annotations

from itertools import pairwise

import pytest

from incrowd.curate.epsilon_curve import EPSILONS, trace_epsilon
from incrowd.curate.planned_guarantee import plan_guarantee
from incrowd.curate.table_plan import plan_tables
from incrowd.errors import IncrowdError
from incrowd.privacy.protection import max_true_positive_rate
from incrowd.spec.file import SpecFile, parse_spec

SPEC = """
table: nowhere.csv
columns:
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}, confirm: [hierarchy]}
  town: {role: sensitive, hierarchy: {flat: {values: [a, b, c]}}}
release: {RELEASE}
"""


def make_spec(method: str) -> SpecFile:
    more = {"tables": ", all: 2"}.get(method, "")
    release = f"method: {method}, epsilon: 3, delta: 1.0e-6{more}"
    return parse_spec(SPEC.replace("RELEASE", release))


@pytest.mark.parametrize("method", ["safe", "synthetic", "tables"])
def test_attackers_gain_and_readers_lose_less_as_epsilon_rises(method: str) -> None:
    curve = trace_epsilon(make_spec(method))
    assert tuple(point.epsilon for point in curve.points) == EPSILONS
    assert all(left.attacker <= right.attacker for left, right in pairwise(curve.points))
    assert all(left.readers >= right.readers for left, right in pairwise(curve.points))
    assert curve.points[0].readers > curve.points[-1].readers
    assert curve.points[5].attacker == max_true_positive_rate(0.01, 1.0, 1e-6)


def test_readers_of_groups_lose_what_the_plan_says() -> None:
    file = make_spec("safe")
    (point,) = trace_epsilon(file, epsilons=[3.0]).points
    assert point.readers == plan_guarantee(file).crowd


def test_the_worst_table_has_the_error_of_its_plan_at_each_epsilon() -> None:
    file, epsilons = make_spec("tables"), [0.5, 1.0, 4.0]
    for point in trace_epsilon(file, epsilons=epsilons).points:
        planned = plan_tables(file.preview_entries({("release", "epsilon"): point.epsilon}))
        assert point.readers == pytest.approx(planned.largest, rel=0.02)  # variances are rounded up


def test_classes_have_no_such_epsilon() -> None:
    file = parse_spec(SPEC.replace("RELEASE", "method: k-anonymity, k: 5"))
    with pytest.raises(IncrowdError, match="Only a differentially private release"):
        trace_epsilon(file)
