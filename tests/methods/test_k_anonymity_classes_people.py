"""k counts people: every class has the rows of k different ones, by every algorithm that does."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.unjudged import publish_unjudged

from incrowd.anonymize.lattice import Node
from incrowd.codes.counted_table import DistinctRows
from incrowd.curate.explore import explore_schemes
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.methods.k_anonymity.classes import EquivalenceClasses, form_classes
from incrowd.methods.k_anonymity.method import KAnonymity
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.verify import verify
from incrowd.spec.file import load_spec

SEXES, HOMES = ["f", "m"], ["a", "b", "c", "d"]


def make_rows(seed: int, people: int = 120) -> pl.DataFrame:
    """Rows of people: most have their own values in all of them, and some have very many."""
    draws = np.random.default_rng(seed)
    rows = draws.choice([1, 2, 3, 9], people, p=[0.5, 0.2, 0.2, 0.1])
    person = np.repeat(np.arange(people), rows)
    home = draws.integers(0, 4, people)[person]
    home = np.where(draws.random(len(person)) < 0.2, draws.integers(0, 4, len(person)), home)
    return pl.DataFrame(
        {
            "id": [f"p{number}" for number in person],
            "sex": [SEXES[at] for at in draws.integers(0, 2, people)[person]],
            "home": [HOMES[at] for at in home],
            "age": draws.integers(0, 40, people)[person],
            "ill": draws.choice(["x", "y", "z"], len(person)),
        }
    )


def make_spec(algorithm: str, **more: Any) -> dict[str, Any]:
    tree = {"groups": {"one": ["a", "b"], "two": ["c", "d"]}}
    ages = {"intervals": {"from": 0, "to": 40, "widths": [5, 20]}}
    return {
        "unit": {"id": "id", "rows": more.pop("most", 9)},
        "columns": {
            "id": {"role": "identifier"},
            "sex": {"role": "quasi", "hierarchy": {"flat": {"values": SEXES}}},
            "home": {"role": "quasi", "hierarchy": tree},
            "age": {"role": "quasi", "hierarchy": ages},
            "ill": {"role": "sensitive", **more.pop("ill", {})},
        },
        "release": {"method": "k-anonymity", "k": 5, "algorithm": algorithm, **more},
    }


def count_class_people(
    table: pl.DataFrame, rows: DistinctRows, classes: EquivalenceClasses
) -> list[int]:
    """The different people of each published class, row by row of the table."""
    table_counts = rows.counted
    by_tuple = {
        tuple(code): (tuple(label), bool(is_published))
        for code, label, is_published in zip(
            table_counts.frequencies.codes.tolist(), classes.codes.tolist(), classes.published_mask,
            strict=True,
        )
    }  # fmt: skip
    codes = [
        hierarchy.groups[0][hierarchy.encode(table.get_column(name).to_list())].tolist()
        for name, hierarchy in zip(table_counts.names, table_counts.hierarchies, strict=True)
    ]
    people: dict[tuple[int, ...], set[str]] = defaultdict(set)
    for person, *code in zip(table.get_column("id").to_list(), *codes, strict=True):
        label, is_published = by_tuple[tuple(code)]
        if is_published:
            people[label].add(person)
    return [len(members) for members in people.values()]


def form(table: pl.DataFrame, spec: dict[str, Any], *, people: bool) -> list[int]:
    method = KAnonymity(load_spec(spec))
    rows = method.count(open_table(table))
    assert isinstance(rows, DistinctRows)
    assert rows.people is not None
    columns = {**method.columns.quasi, **method.columns.kept}
    used = rows if people else replace(rows, people=None)
    classes = form_classes(used, columns, method.columns.release, bits=SeededRandomness(0))
    return count_class_people(table, rows, classes)


@pytest.mark.parametrize(
    ("algorithm", "ill"),
    [("ola", {}), ("mondrian", {}), ("cluster", {}), ("ola", {"diversity": {"distinct": 2}}),
     ("mondrian", {"diversity": {"distinct": 2}}), ("cluster", {"diversity": {"distinct": 2}})],
)  # fmt: skip
def test_every_class_has_k_people_and_not_only_k_rows(algorithm: str, ill: dict[str, Any]) -> None:
    by_rows = []
    for seed in range(6):
        table, spec = make_rows(seed), make_spec(algorithm, ill=ill)
        assert min(form(table, spec, people=True)) >= 5
        by_rows.append(min(form(table, spec, people=False)))
    assert min(by_rows) < 5  # counting rows would have been seen


def test_the_best_scheme_is_the_best_of_all_by_people() -> None:
    for seed in range(4):
        table = make_rows(seed)
        file = load_spec(make_spec("ola"))
        exploration = explore_schemes(file, open_table(table))
        assert exploration.people
        best = exploration.best
        assert best is not None
        limit = int(0.05 * len(table))
        holding: list[Node] = []
        method = KAnonymity(file)
        rows = method.count(open_table(table))
        assert isinstance(rows, DistinctRows)
        hierarchies = rows.counted.hierarchies
        codes = [
            hierarchy.encode(table.get_column(name).to_list())
            for name, hierarchy in zip(rows.counted.names, hierarchies, strict=True)
        ]
        for node in itertools.product(*(range(hierarchy.height) for hierarchy in hierarchies)):
            columns = [
                hierarchy.groups[level][code].tolist()
                for hierarchy, level, code in zip(hierarchies, node, codes, strict=True)
            ]
            cells = pl.DataFrame({"id": table["id"], "cell": list(zip(*columns, strict=True))})
            sizes = cells.group_by("cell").agg(pl.len(), pl.col("id").n_unique().alias("people"))
            if sizes.filter(pl.col("people") < 5)["len"].sum() <= limit:
                holding.append(node)
        assert {scheme.levels for scheme in exploration.schemes if scheme.holds} == {*holding}


def test_a_release_says_that_k_counts_people_and_verifies(tmp_path: Path) -> None:
    for algorithm in ("ola", "mondrian"):
        out = tmp_path / algorithm
        release = publish_unjudged(make_rows(1), make_spec(algorithm, most=4), output=out)
        text = release.certificate.guarantee.text
        assert "rows of at least 5 different people" in text
        assert release.certificate.parameters["rows_per_person"] == 4
        assert not verify(out)
    single = publish_unjudged(make_rows(1), make_spec("ola", most=1), output=tmp_path / "single")
    assert "rows_per_person" not in single.certificate.parameters


@pytest.mark.parametrize("algorithm", ["suppress", "duplicate", "mdav"])
def test_algorithms_that_count_rows_are_refused(algorithm: str) -> None:
    with pytest.raises(IncrowdError, match="counts rows, not people"):
        KAnonymity(load_spec(make_spec(algorithm)))


def test_fewer_people_than_k_are_refused_however_many_rows_they_have() -> None:
    rows = make_rows(0, people=4)
    many = pl.concat([rows] * 5)
    with pytest.raises(IncrowdError, match="4 people, fewer than k = 5"):
        publish_unjudged(many, make_spec("mondrian"))
