"""What 'scheme: auto' and 'draw: auto', the defaults, decide; from the spec alone."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cli import run_successfully
from support.pinned_randomness import PinnedRandomness
from support.releases import choose_scheme_by, make_voter_spec
from support.unjudged import publish_unjudged

from incrowd.anonymize.scheme_balance import find_balanced
from incrowd.curate.demo_tables import SPECS, make_demo_table
from incrowd.errors import IncrowdError
from incrowd.measure.loss import compute_normalized_costs
from incrowd.methods.base import published_columns
from incrowd.methods.safe import auto as deciding
from incrowd.methods.safe.method import Safe
from incrowd.methods.safe.scheme import FixedScheme, MondrianScheme, SearchedScheme
from incrowd.privacy.events import Selection
from incrowd.release.verify import verify
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, load_spec, parse_spec
from incrowd.spec.release import SafeSpec
from incrowd.spec.slices import Slicing

pytestmark = pytest.mark.usefixtures("settled_once")
BUDGET = "epsilon: 1, delta: 1.0e-6"
SAMPLE = f"{BUDGET}, draw: sample"
ALL = "levels: {zip: 3, sex: 0, birth_year: 4, race: 0}"


def decision(file: SpecFile) -> tuple[type, str]:
    scheme, reasons = choose_scheme_by(file, "quasi", "sensitive")
    return type(scheme), " ".join(reasons)


@pytest.mark.parametrize(
    ("release", "scheme", "reason"),
    [
        (BUDGET, SearchedScheme, "private search of levels"),
        (BUDGET, SearchedScheme, "Draw: noisy counts, because"),
        (SAMPLE, SearchedScheme, "private search of levels, k and beta"),
        (SAMPLE, SearchedScheme, "Draw: a sample, set by the spec"),
        (f"{BUDGET}, draw: counts", SearchedScheme, "Draw: noisy counts, set by the spec"),
        (f"{BUDGET}, draw: auto", SearchedScheme, "Draw: noisy counts, because"),
        (f"{BUDGET}, scheme: auto", SearchedScheme, "because the spec sets none"),
        (f"{BUDGET}, keep: 0.5, levels: {{sex: 0}}", SearchedScheme, "private search of levels"),
        (f"{BUDGET}, keep: 0.5", SearchedScheme, "Draw: a sample, because the spec sets `keep`"),
        (f"{BUDGET}, beta: 0.5", SearchedScheme, "Draw: a sample, because the spec sets `beta`"),
        (f"{BUDGET}, levels: {{race: 0}}", SearchedScheme, "private search of levels"),
        (
            f"{SAMPLE}, levels: {{race: 0}}",
            SearchedScheme,
            "private search of levels, k and beta",
        ),
        (f"{BUDGET}, {ALL}", FixedScheme, "sets the level of every column"),
        (f"{SAMPLE}, k: 20", FixedScheme, "sets k, which a search would choose"),
        (f"{BUDGET}, k: 20", SearchedScheme, "k = 20 is the least number of original rows"),
        ("epsilon: 1, k: 20, beta: 0.2", FixedScheme, "sets k"),
        ("epsilon: 1, beta: 0.2", FixedScheme, "does not set both"),
        ("epsilon: 1, k: 20", FixedScheme, "Draw: a sample, because noisy counts need ε and δ"),
        (f"{BUDGET}, slices: 2", SearchedScheme, "levels of each slice"),
        (
            f"{BUDGET}, levels: {{sex: [0, 1], race: [0, 1], birth_year: 3}}",
            SearchedScheme,
            "private search",
        ),
        (f"{BUDGET}, scheme: fixed", FixedScheme, "fixed levels, set by the spec"),
        (f"{BUDGET}, scheme: search", SearchedScheme, "private search, set by the spec"),
        (f"{BUDGET}, scheme: mondrian", MondrianScheme, "safe Mondrian, set by the spec"),
        (
            f"{BUDGET}, scheme: mondrian",
            MondrianScheme,
            "Draw: a sample, because `scheme: mondrian`",
        ),
    ],
)
def test_each_decision_has_its_reason(release: str, scheme: type, reason: str) -> None:
    result, words = decision(make_voter_spec(f"release: {{{release}}}"))
    assert result is scheme
    assert reason in words


def test_columns_that_list_nothing_are_searched() -> None:
    columns = "columns: {zip: {role: quasi, hierarchy: {mask: {length: 5}}}}"
    assert decision(parse_spec(f"{columns}\nrelease: {{{BUDGET}}}"))[0] is SearchedScheme


@pytest.mark.parametrize("more", ["objective: detail", "search_epsilon: 0.1"])
def test_what_only_a_choice_needs_is_refused_where_nothing_is_chosen(more: str) -> None:
    with pytest.raises(IncrowdError, match="needs a search, but the spec sets k"):
        decision(make_voter_spec(f"release: {{{SAMPLE}, k: 20, {more}}}"))
    assert (
        decision(make_voter_spec(f"release: {{{BUDGET}, k: 20, {more}}}"))[0] is SearchedScheme
    )  # of counts


def wide(columns: int, **release: Any) -> SpecFile:
    values = {"intervals": {"from": 0, "to": 63, "widths": [2, 4, 8, 16]}}
    entries = {f"c{at}": {"role": "quasi", "hierarchy": values} for at in range(columns)}
    return load_spec({"columns": entries, "release": {"epsilon": 1.0, "delta": 1e-6, **release}})


def test_of_very_many_schemes_the_finest_are_left_out_unseen() -> None:
    file = wide(12)
    scheme, reasons = choose_scheme_by(file, "quasi")
    assert type(scheme) is SearchedScheme
    lattice = scheme.make_lattice(tuple(file.spec.columns))
    assert 100_000 < lattice.size <= deciding.MANY_SCHEMES
    assert set(lattice.high) == {5}
    assert max(lattice.low) - min(lattice.low) <= 1  # every column keeps a choice
    assert "too many schemes to search" in reasons[1]
    assert "c0 → steps of 16" in reasons[1]
    for draw, hint in (
        ("sample", "`objective: detail` with `keep: 0.25` publishes fewer rows with more detail."),
        ("counts", "`objective: detail` publishes fewer rows with more detail."),
    ):
        few = wide(4, draw=draw)
        scheme, reasons = choose_scheme_by(few, "quasi")
        assert type(scheme) is SearchedScheme
        assert scheme.make_lattice(tuple(few.spec.columns)).size == 6**4
        assert len(reasons) == 3  # what was decided, what else could be asked for, and the draw
        assert reasons[1].endswith(hint)


@pytest.mark.parametrize("most", [4, 10, 30, 45])
def test_the_stated_bound_holds_for_every_excluded_scheme(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each, a coarser scheme is searched that loses at most so much more."""
    intervals = {"intervals": {"from": 0, "to": 23, "widths": [2, 6, 12]}}
    hierarchies: list[Any] = [intervals, {"flat": {"values": ["no", "yes"]}}, intervals]
    columns = {
        f"c{at}": {"role": "quasi", "weight": weight, "hierarchy": hierarchy}
        for at, (weight, hierarchy) in enumerate(zip((1.0, 0.5, 2.0), hierarchies, strict=True))
    }
    file = load_spec({"columns": columns, "release": {"epsilon": 1.0, "delta": 1e-6}})
    all_schemes, _ = choose_scheme_by(file, "quasi")
    monkeypatch.setattr(deciding, "MANY_SCHEMES", most)
    searched, reasons = choose_scheme_by(file, "quasi")
    assert isinstance(all_schemes, SearchedScheme)
    assert isinstance(searched, SearchedScheme)
    (bound,) = re.findall(r"higher by at most (\d\.\d\d)", " ".join(reasons))

    declared = ColumnHierarchies(published_columns(file.spec, "quasi"))
    trees = [declared.get_hierarchy(name, tuple) for name in columns]
    costs = [compute_normalized_costs(tree) for tree in trees]
    weights = np.array([1.0, 0.5, 2.0])
    names = tuple(columns)

    def list_schemes(scheme: SearchedScheme) -> list[tuple[int, ...]]:
        lattice = scheme.make_lattice(names)
        is_balanced = find_balanced(lattice, trees, weights)
        return [lattice.get_node(int(place)) for place in np.flatnonzero(is_balanced)]

    def compute_most_lost(fine: tuple[int, ...], coarse: tuple[int, ...]) -> float:
        return math.fsum(
            share * float((cost[to][tree.groups[to]] - cost[level][tree.groups[level]])[:-2].max())
            for share, cost, tree, level, to in zip(
                weights / weights.sum(), costs, trees, fine, coarse, strict=True
            )
        )

    searched_nodes = list_schemes(searched)
    excluded = set(list_schemes(all_schemes)) - set(searched_nodes)
    assert excluded
    for fine in excluded:
        above = [
            node for node in searched_nodes if all(a >= b for a, b in zip(node, fine, strict=True))
        ]
        assert min(compute_most_lost(fine, node) for node in above) <= float(bound)


def test_limits_of_the_spec_stay_when_schemes_are_left_out() -> None:
    file = wide(12, levels={"c0": [1, 2], "c1": 3})
    scheme, _ = choose_scheme_by(file, "quasi")
    assert type(scheme) is SearchedScheme
    lattice = scheme.make_lattice(tuple(file.spec.columns))
    assert (lattice.low[0], lattice.high[0]) == (1, 2)
    assert (lattice.low[1], lattice.high[1]) == (3, 3)
    assert lattice.size <= deciding.MANY_SCHEMES


def test_slices_of_many_columns_are_searched_though_all_together_could_not_be() -> None:
    assert decision(wide(30, slices=3))[0] is SearchedScheme
    assert decision(wide(30, slices=3, scheme="search"))[0] is SearchedScheme
    with pytest.raises(IncrowdError, match="leave at most"):
        decision(wide(30, scheme="search"))


def test_auto_is_the_default_and_the_release_says_why(tmp_path: Path) -> None:
    people = make_demo_table("census", rows=4000)
    usual = parse_spec(SPECS["census"])
    releases = []
    for name in ("usual", "auto", "search"):
        file = usual if name == "usual" else usual.with_entry(("release", "scheme"), name)
        folder = tmp_path / name
        releases.append(publish_unjudged(people, file, output=folder, bits=PinnedRandomness(2)))
        assert verify(folder) == []
    assert releases[0].certificate == releases[1].certificate == releases[2].certificate
    assert all(column.level is not None for column in releases[0].certificate.table.scheme.values())
    assert "because the spec sets none" in releases[0].reasons[0]
    page = (tmp_path / "usual.curator" / "report.html").read_text()
    assert "Choice of the scheme" in page
    assert "because the spec sets none" in page
    assert "because the spec sets none" not in (tmp_path / "usual" / "certificate.json").read_text()


def test_every_sample_comes_with_a_spec_that_publishes_it(tmp_path: Path) -> None:
    for kind in SPECS:
        table, file = tmp_path / "tables" / f"{kind}.csv", tmp_path / f"{kind}.yaml"
        table.parent.mkdir(exist_ok=True)
        run_successfully("sample", kind, "--rows", "2000", "-o", str(table), "--spec", str(file))
        assert f"table: tables/{kind}.csv" in file.read_text()
        publish_unjudged(None, file, output=tmp_path / kind)
        assert verify(tmp_path / kind) == []


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize(
    "release",
    [
        {"scheme": "fixed"}, {"scheme": "search"}, {"scheme": "mondrian"}, {"slices": 3},
        {"slices": {"columns": 2, "tables": 5}}, {"slices": 2, "scheme": "mondrian"},
    ],
)  # fmt: skip
def test_a_table_without_rows_is_published_like_any_other(
    rows: int, release: dict[str, Any], tmp_path: Path
) -> None:
    """A release that fails on the empty table alone would tell it from a table of one row."""
    file = parse_spec(SPECS["census"])
    for name, value in release.items():
        file = file.with_entry(("release", name), value)
    empty_release = publish_unjudged(
        make_demo_table("census", rows=2).to_frame().head(rows), file, output=tmp_path / "out"
    )
    assert verify(tmp_path / "out") == []
    assert empty_release.evaluation.rows_released == 0


FLAG = {"role": "quasi", "hierarchy": {"flat": {"values": ["no", "yes"]}}}
FLAT = {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b"]}}}


def test_a_column_of_which_nothing_is_left_is_named() -> None:
    columns = {f"A{at}": FLAT for at in range(25)} | {
        "age": {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [10]}}}
    }
    file = load_spec({"columns": columns, "release": {"epsilon": 1, "delta": 1e-6}})
    _, reasons = choose_scheme_by(file, "quasi")
    (text,) = [reason for reason in reasons if "too many schemes" in reason]
    assert "Suppressed without search: A1, A3" in text  # all alike: not the first ones
    assert "A0 →" not in text


def test_advice_names_settings_that_exist() -> None:
    columns = {f"A{at}": FLAT for at in range(30)}
    for release in ({"epsilon": 1, "delta": 1e-6, "scheme": "search"},):
        file = load_spec({"columns": columns, "release": release})
        with pytest.raises(IncrowdError, match="use `slices`"):
            choose_scheme_by(file, "quasi")
        assert Slicing(columns=3).columns == 3


@pytest.mark.parametrize(
    ("size", "spent"),
    [(None, 0.05), (1, 0.2), (1_999, 0.2), (2_000, 0.1), (9_999, 0.1), (10_000, 0.05)],
)
def test_a_stated_size_decides_what_a_choice_spends(size: int | None, spent: float) -> None:
    """In steps: what is spent is published, and tells no more of the size than its step."""
    stated = {"size": size} if size else {}
    file = load_spec({**parse_spec(SPECS["voters"]).document, **stated})
    method = Safe(file)
    chosen = [event for event in method.events if isinstance(event, Selection)]
    assert sum(event.epsilon for event in chosen) == pytest.approx(spent)
    assert method.promise.epsilon == 1.0
    text = " ".join(choose_scheme_by(file, "quasi", "sensitive", size=size)[1])
    assert (f"({spent:g} per choice)" in text) is (spent > 0.05)


def test_a_size_that_is_public_decides_nothing(tmp_path: Path) -> None:
    table = make_demo_table("voters", rows=1500)
    file = load_spec({**parse_spec(SPECS["voters"]).document, "size": "public"})
    certificate = publish_unjudged(table, file, output=tmp_path / "out").certificate
    assert certificate.parameters["search_epsilon"] == 0.05
    assert verify(tmp_path / "out") == []


def test_few_people_bear_fewer_schemes() -> None:
    deep = {"intervals": {"from": 0, "to": 63, "widths": [2, 4, 8, 16, 32]}}
    columns = {f"c{at}": {"role": "quasi", "hierarchy": deep} for at in range(6)}
    file = load_spec({"columns": columns, "release": {"epsilon": 1.0, "delta": 1e-6}})
    declared = ColumnHierarchies(published_columns(file.spec, "quasi", "sensitive"))
    assert isinstance(file.spec.release, SafeSpec)
    schemes = {}
    for size in (None, 5_000, 500):
        scheme, reasons = deciding.choose_scheme(file.spec.release, declared, size)
        assert isinstance(scheme, SearchedScheme)
        schemes[size] = scheme.make_lattice(declared.names).size
        left_out = any("too many schemes" in reason for reason in reasons)
        assert left_out is (schemes[size] < schemes[None])
    assert schemes[None] == 7**6
    assert 20_000 < schemes[5_000] <= 60_000
    assert 5_000 < schemes[500] <= 20_000


def limits_of(columns: dict[str, Any], **release: Any) -> dict[str, tuple[int, int]]:
    file = load_spec({"columns": columns, "release": {"epsilon": 1, "delta": 1e-6, **release}})
    scheme, _ = choose_scheme_by(file, "quasi")
    return scheme.level_limits(tuple(columns))


def test_levels_are_given_up_by_weight_and_values_whatever_the_order() -> None:
    flags = {f"f{at}": FLAG for at in range(20)}
    rich = {"role": "quasi", "hierarchy": {"flat": {"values": list("abcdefgh")}}}
    columns = {"outcome": FLAG, "rich": rich, **flags, "loved": {**FLAG, "weight": 3}}
    limits = limits_of(columns, target="outcome")
    turned = limits_of(dict(reversed(columns.items())), target="outcome")
    assert limits == turned
    assert limits["outcome"] == (0, 0)
    assert limits["rich"] == limits["loved"] == (0, 1)
    assert 0 < sum(limits[name] == (1, 1) for name in flags) < 10


def test_no_column_is_given_up_while_another_has_levels_to_spare() -> None:
    deep = {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [5, 25]}}}
    limits = limits_of({f"d{at}": deep for at in range(6)} | {f"f{at}": FLAG for at in range(11)})
    assert all(low < high for low, high in limits.values())
