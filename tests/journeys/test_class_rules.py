"""Rules on sensitive columns, end to end: every class satisfies them, and verify checks them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.findings import list_verify_messages
from support.patients import QUASI, publish_patients, read_released_rows
from support.releases import forge_certificate
from support.slice_tables import load_certificate

from incrowd.errors import IncrowdError
from incrowd.release.verify import verify

COLUMNS = """
columns:
  first_name: {role: identifier}
  last_name: {role: identifier}
  email: {role: drop}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [4, 8, 16, 32]}}}
  weight: {role: drop}
  diagnosis: {role: sensitive, hierarchy: {groups: {Well: [healthy], Body: [hypertension, diabetes,
    asthma, cancer], Mind: [depression]}}, %s}
"""
TREE = {"healthy": "Well", "depression": "Mind"}
Shares = dict[str, float]


def share(counts: Counter[str]) -> Shares:
    return {value: number / counts.total() for value, number in counts.items()}


def is_recursive(inside: Counter[str], table: Shares) -> bool:
    sizes = sorted(inside.values(), reverse=True)
    return sizes[0] < 3 * sum(sizes[2:])


def is_near_by_tree(inside: Counter[str], table: Shares) -> bool:
    difference = {value: share(inside).get(value, 0.0) - p for value, p in table.items()}
    groups: Counter[str] = Counter()
    for value, x in difference.items():
        groups[TREE.get(value, "Body")] += x  # type: ignore[assignment]
    moved = sum(map(abs, difference.values())) + sum(map(abs, groups.values()))
    return moved / 4 <= 0.3 + 1e-9


RULES: dict[str, Callable[[Counter[str], Shares], bool]] = {
    "diversity: {recursive: {c: 3, l: 3}}": is_recursive,
    "diversity: {alpha: 0.6}": lambda inside, _: max(share(inside).values()) <= 0.6,
    "closeness: {hierarchical: 0.3}": is_near_by_tree,
    "likeness: {basic: 2}": lambda inside, table: all(
        q <= 3 * table[value] + 1e-9 for value, q in share(inside).items()
    ),
    "likeness: {enhanced: 2}": lambda inside, table: all(
        q <= (1 + min(2, -math.log(table[value]))) * table[value] + 1e-9
        for value, q in share(inside).items()
    ),
    "disclosure: {every: 3}": lambda inside, table: all(
        abs(math.log2(share(inside)[value] / p)) < 3 if value in inside else False
        for value, p in table.items()
    ),
    "presence: {value: healthy, least: 0.1, most: 0.75}": lambda inside, _: (
        0.1 <= share(inside).get("healthy", 0.0) <= 0.75
    ),
    "disclosure: {present: 2}": lambda inside, table: all(
        abs(math.log2(q / table[value])) < 2 for value, q in share(inside).items()
    ),
}


@pytest.mark.parametrize("algorithm", ["ola", "mondrian", "cluster"])
@pytest.mark.parametrize("rule", RULES)
def test_every_class_satisfies_the_rule(
    patients: pl.DataFrame, tmp_path: Path, rule: str, algorithm: str
) -> None:
    settings = f"k: 4, algorithm: {algorithm}"
    publish_patients(patients, tmp_path / "out", settings, COLUMNS % rule)
    assert verify(tmp_path / "out") == []
    table = share(Counter(patients["diagnosis"]))
    classes: dict[tuple[Any, ...], Counter[str]] = {}
    for *labels, value in read_released_rows(tmp_path / "out").select(*QUASI, "diagnosis").rows():
        classes.setdefault(tuple(labels), Counter())[value] += 1
    assert len(classes) > 1 or (algorithm == "cluster" and "every" in rule)
    assert all(RULES[rule](inside, table) for inside in classes.values())
    # Without the rule some class violates it, so the rule has an effect.
    publish_patients(patients, tmp_path / "free", settings, COLUMNS.replace(", %s", ""))
    free: dict[tuple[Any, ...], Counter[str]] = {}
    for *labels, value in read_released_rows(tmp_path / "free").select(*QUASI, "diagnosis").rows():
        free.setdefault(tuple(labels), Counter())[value] += 1
    assert not all(RULES[rule](inside, table) for inside in free.values())


@pytest.mark.parametrize(
    ("rule", "parameter", "sharper"),
    [
        ("diversity: {alpha: 0.6}", "share of a value, at most", 0.3),
        ("presence: {value: healthy, most: 0.75}", "share of the value 'healthy', at most", 0.1),
        ("presence: {value: healthy, least: 0.1}", "share of the value 'healthy', at least", 0.9),
        (
            "diversity: {recursive: {c: 3, l: 3}}",
            "ratio of the most frequent value to those from number 3 on, below",
            0.5,
        ),
    ],
)
def test_verify_checks_rules_that_the_release_shows(
    patients: pl.DataFrame, tmp_path: Path, rule: str, parameter: str, sharper: float
) -> None:
    publish_patients(patients, tmp_path / "out", "k: 4", COLUMNS % rule)
    certificate = load_certificate(tmp_path / "out")
    name = f"rule diagnosis: {parameter}"
    assert name in certificate.parameters
    changed = certificate.model_copy(
        update={"parameters": {**certificate.parameters, name: sharper}}
    )
    forge_certificate(tmp_path / "out", changed.with_statement().with_seal())
    (message,) = list_verify_messages(tmp_path / "out")
    assert parameter in message


def test_minimal_candidates_need_a_rule_that_unions_keep(patients: pl.DataFrame) -> None:
    settings = "k: 4, candidates: minimal, suppression: 0"
    publish_patients(patients, None, settings, COLUMNS % "likeness: {basic: 2}")
    with pytest.raises(IncrowdError, match="a coarser scheme may violate it"):
        publish_patients(patients, None, settings, COLUMNS % "disclosure: {present: 2}")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("diversity: {recursive: {c: 0, l: 3}}", "c"),
        ("diversity: {recursive: {c: 1, l: 1}}", "l"),
        ("diversity: {alpha: 1.5}", "alpha"),
        ("presence: {value: healthy, least: 0.5, most: 0.4}", "exceeds `most`"),
        ("presence: {value: nobody, most: 0.4}", "which no row has"),
        ("diversity: {alpha: 0.1}", "even the whole table as one class violates"),
        ("likeness: {basic: 0}", "basic"),
        ("disclosure: {every: -1}", "every"),
    ],
)
def test_mistakes(patients: pl.DataFrame, rule: str, message: str) -> None:
    with pytest.raises(IncrowdError, match=message):
        publish_patients(patients, None, "k: 4", COLUMNS % rule)


def test_a_hierarchical_distance_needs_a_hierarchy(patients: pl.DataFrame) -> None:
    columns = COLUMNS.replace("diagnosis: {role: sensitive, hierarchy: {groups: {Well: [healthy], "
                              "Body: [hypertension, diabetes,\n    asthma, cancer], "
                              "Mind: [depression]}}", "diagnosis: {role: sensitive")  # fmt: skip
    with pytest.raises(IncrowdError, match="needs a hierarchy"):
        publish_patients(patients, None, "k: 4", columns % "closeness: {hierarchical: 0.2}")
