"""Whole households with their people, linked by keys: from the spec to the checked files."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession
from support.census import OWN, PERSONAL, VALUES, Pair, make_census, make_spec
from support.releases import forge_certificate, recertify
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.curate.person_rows import compare_rows_per_person
from incrowd.curate.planned_guarantee import plan_guarantee
from incrowd.engine.source import spark_engine
from incrowd.errors import IncrowdError
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import Certificate, hash_file
from incrowd.spec.file import load_spec
from incrowd.spec.problem import SpecError

KEY = "household_key"
FIXED = {"levels": {"region": 1, "tenure": 0, "age": 0, "sex": 1}}
Household = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]


def make_linked_spec(rows: int = 3, **release: Any) -> dict[str, Any]:
    spec = make_spec(rows, **{"format": "csv", **(release or FIXED)})
    spec["release"].pop("rows")
    spec["household"]["linked"] = True
    return spec


def read_files(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    ending = next(folder.glob("people.*")).suffix
    read = pl.read_csv if ending == ".csv" else pl.read_parquet
    return read(folder / f"households{ending}"), read(folder / f"people{ending}")


def list_households(households: pl.DataFrame, people: pl.DataFrame) -> list[Household]:
    """Each published household with its people, in the order of the keys."""
    members: dict[int, list[tuple[str, ...]]] = {}
    for key, *labels in people.select(KEY, *PERSONAL).iter_rows():
        members.setdefault(key, []).append(tuple(labels))
    return [
        (tuple(labels), tuple(sorted(members[key])))
        for key, *labels in households.select(KEY, *OWN).iter_rows()
    ]


def count_true_types(census: Pair, most: int) -> Counter[Household]:
    """The types of households that have no more people than are used, at the fixed levels."""
    up = {"north": "up", "west": "up", "east": "down", "south": "down"}
    households = census["households"].with_columns(pl.col("region").replace_strict(up))
    people = census["people"].with_columns(sex=pl.lit("*"))
    small = people.filter(pl.len().over("household") <= most)
    households = households.join(small.select("household").unique(), on="household")
    listed = list_households(
        households.sort("household").rename({"household": KEY}), small.rename({"household": KEY})
    )
    return Counter(listed)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_published_households_are_whole_and_counted_within_the_noise(
    form: str, tmp_path: Path
) -> None:
    census, out = make_census(6000), tmp_path / "out"
    release = publish_unjudged(census, make_linked_spec(5, **FIXED, format=form), output=out)
    assert ic.verify(out) == []
    certificate = release.certificate
    assert [table.release.file for table in certificate.tables] == [
        f"households.{form}", f"people.{form}",
    ]  # fmt: skip
    published = Counter(list_households(*read_files(out)))
    true, r = count_true_types(census, 5), int(certificate.tables[0].parameters["r"])
    assert len(published) > 20
    assert set(published) <= set(true)
    differences = {published[each] - true[each] for each in published}
    assert max(map(abs, differences)) <= r
    assert len(differences) > 1
    assert min(published.values()) >= r + 5
    # What is large enough to be published for certain is published.
    assert {each for each, number in true.items() if number >= 2 * r + 5} <= set(published)
    assert certificate.links is not None
    assert certificate.links.types == len(published)
    assert certificate.links.smallest_type == min(published.values())
    assert certificate.links.largest_household == max(len(people) for _, people in published)


def test_one_household_costs_what_one_row_costs(tmp_path: Path) -> None:
    ledger = ic.Ledger(tmp_path / "census.ledger")
    ledger.set_budget(epsilon=1.0, delta=1e-6)
    out = tmp_path / "out"
    release = publish_unjudged(make_census(), make_linked_spec(4), output=out, ledger=ledger)
    (event,) = release.certificate.events
    assert event["kind"] == "coin"
    assert {event[side]["r"] for side in ("first", "second")} == {13, 14}
    assert ledger.total() == Guarantee(1.0, 1e-6)
    assert release.certificate.parameters == {"people_per_household": 4.0}
    texts = {item.key: item.text for item in release.certificate.guarantee.statement}
    assert "5-anonymous in households" in texts["k_anonymity"]
    assert "Keys are numbers in random order" in texts["key"]
    assert "4 people stands for households with 4 or more" in texts["household_size"]
    planned = {item.key: item.text for item in plan_guarantee(make_linked_spec(4)).statement}
    for key in ("differential_privacy", "k_anonymity", "unit", "household_files", "key"):
        assert planned[key] == texts[key]
    costs = compare_rows_per_person(load_spec(make_linked_spec(4)), choices=(1, 2, 6))
    assert [(cost.rows, cost.crowd) for cost in costs] == [(2, 19), (4, 19), (6, 19)]


@pytest.mark.parametrize("draw", ["counts", "sample"])
def test_levels_may_be_chosen_and_households_drawn(draw: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    spec = make_linked_spec(3, scheme="search", draw=draw)
    release = publish_unjudged(make_census(4000), spec, output=out)
    assert ic.verify(out) == []
    households, people = release.certificate.tables
    for name in OWN:
        assert households.scheme[name].level == people.scheme[name].level
    assert "search_epsilon" in households.parameters
    assert households.release.rows > 1000
    kinds = Counter(list_households(*read_files(out)))
    assert min(kinds.values()) >= release.certificate.threshold
    statement = {entry.key: entry.text for entry in release.certificate.guarantee.statement}
    assert ("and k and β unless" in statement["generalization"]) is (draw == "sample")
    readme = (out / "README.md").read_text()
    assert ("household was drawn with probability" in readme) is (draw == "sample")
    assert "Each row was drawn" not in readme
    fixed = make_linked_spec(3, **FIXED, draw=draw)
    publish_unjudged(make_census(4000), fixed, output=tmp_path / "fixed")
    assert ic.verify(tmp_path / "fixed") == []


def test_neither_keys_nor_files_depend_on_the_order_of_the_input(tmp_path: Path) -> None:
    census, hashes = make_census(1500), []
    for number, seed in enumerate((1, 2)):
        shuffled = {
            name: frame.sample(fraction=1.0, shuffle=True, seed=seed)
            for name, frame in census.items()
        }
        out = tmp_path / str(number)
        publish_unjudged(shuffled, make_linked_spec(5), output=out, bits=SeededRandomness(3))
        hashes.append([hash_file(out / f"{name}.csv") for name in ("households", "people")])
    assert hashes[0] == hashes[1]
    keys = read_files(tmp_path / "0")[0]
    assert keys[KEY].to_list() == list(range(1, len(keys) + 1))
    assert not keys.select(OWN).equals(keys.sort(OWN).select(OWN))


CONFLICTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "Add `rows: m` under `unit`": lambda spec: spec["unit"].pop("rows"),
    "Remove `rows: counted`": lambda spec: spec["release"].update(rows="counted"),
    "Rename yours": lambda spec: spec["columns"].update(
        household_key={"role": "quasi", "hierarchy": "flat"}
    ),
}


@pytest.mark.parametrize("problem", CONFLICTS)
def test_specs_that_cannot_be_linked_are_refused(problem: str) -> None:
    spec = make_linked_spec()
    CONFLICTS[problem](spec)
    with pytest.raises(SpecError, match=problem):
        publish_unjudged(make_census(50), spec)


def test_too_many_schemes_are_refused_before_anything_is_booked(tmp_path: Path) -> None:
    spec, widths = make_linked_spec(scheme="search"), [2, 4, 8, 16, 32, 64, 128]
    ages = {"intervals": {"from": 0, "to": 128, "widths": widths}}
    for name in ("a", "b", "c", "d", "e"):
        spec["columns"][name] = {"role": "quasi", "hierarchy": ages}
    with pytest.raises(IncrowdError, match="for households published whole"):
        plan_guarantee(spec)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linked") / "out"
    spec = make_linked_spec(3, levels=dict.fromkeys(VALUES, 0))
    publish_unjudged(make_census(6000), spec, output=folder)
    assert ic.verify(folder) == []
    return folder


def load_certificate(folder: Path) -> Certificate:
    return Certificate.model_validate_json((folder / "certificate.json").read_bytes())


def rewrite(
    honest: Path,
    copy: Path,
    households: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
    people: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
) -> list[str]:
    """Change the files of a release, certify what the changed files show, and verify."""
    folder = Path(shutil.copytree(honest, copy))
    certificate, tables = load_certificate(folder), []
    for table, change in zip(certificate.tables, (households, people), strict=True):
        path = folder / table.release.file
        frame = change(pl.read_csv(path)).sort(pl.all())
        frame.write_csv(path)
        groups = frame.group_by(list(table.scheme)).len()["len"]
        release = table.release.model_copy(
            update={
                "sha256": hash_file(path), "rows": len(frame), "classes": len(groups),
                "smallest_class": groups.min(),
            }
        )  # fmt: skip
        tables.append(table.model_copy(update={"release": release}))
    recertify(folder, slices=tables)
    return [finding.code for finding in ic.verify(folder)]


def find_pair(honest: Path) -> tuple[int, int]:
    """Two households with the same labels and other people."""
    listed = list_households(*read_files(honest))
    for second, (labels, people) in enumerate(listed):
        if labels == listed[0][0] and people != listed[0][1] and len(people) == 1:
            return 1, second + 1
    raise AssertionError("no such pair")


def test_files_that_are_certified_anew_verify(honest: Path, tmp_path: Path) -> None:
    """Only what the next tests change is found, not that files were written again."""
    assert rewrite(honest, tmp_path / "copy") == []


def test_keys_that_were_swapped_are_found(honest: Path, tmp_path: Path) -> None:
    households, _ = read_files(honest)
    other = households.filter(pl.col("region") != households["region"][0])[KEY][0]
    swap = pl.col(KEY).replace({1: other, other: 1})
    codes = rewrite(honest, tmp_path / "copy", people=lambda frame: frame.with_columns(swap))
    assert codes == ["HOUSEHOLD_VALUES_DIFFER"]


def test_a_person_who_was_moved_to_another_household_is_found(honest: Path, tmp_path: Path) -> None:
    first, second = find_pair(honest)
    row = pl.int_range(pl.len())
    moved = pl.when(row == row.filter(pl.col(KEY) == second).first()).then(first)

    def move(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(moved.otherwise(pl.col(KEY)).cast(pl.Int64).alias(KEY))

    codes = rewrite(honest, tmp_path / "moved", people=move)
    assert codes == ["KEYS_DIFFER"]  # the other household has nobody left

    def exchange(frame: pl.DataFrame) -> pl.DataFrame:
        place = frame.with_row_index()["index"].filter(frame[KEY] == first)[0]
        return move(frame).with_columns(
            pl.when(row == place).then(second).otherwise(pl.col(KEY)).cast(pl.Int64).alias(KEY)
        )

    assert set(rewrite(honest, tmp_path / "exchanged", people=exchange)) <= {
        "HOUSEHOLD_TYPES_TOO_SMALL", "LINKS_DIFFER",
    }  # fmt: skip


CHANGES: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], ...]] = {
    "KEYS_INVALID": (lambda frame: frame.with_columns(pl.col(KEY) + 1),) * 2,
    "KEYS_DIFFER": (lambda frame: frame, lambda frame: frame.filter(pl.col(KEY) != 1)),
    "HOUSEHOLDS_TOO_LARGE": (
        lambda frame: frame,
        lambda frame: pl.concat([frame, *[frame.filter(pl.col(KEY) == 1)] * 3]),
    ),
}


@pytest.mark.parametrize("code", CHANGES)
def test_keys_that_do_not_fit_are_found(code: str, honest: Path, tmp_path: Path) -> None:
    assert code in rewrite(honest, tmp_path / "copy", *CHANGES[code])


def test_a_household_with_a_type_of_its_own_is_found(honest: Path, tmp_path: Path) -> None:
    """A row of a person is added to one household: too few others are like it."""
    listed = list_households(*read_files(honest))
    types = set(listed)
    key = next(
        number
        for number, (labels, people) in enumerate(listed, 1)
        if len(people) < 3 and (labels, tuple(sorted([*people, people[0]]))) not in types
    )
    grow = lambda frame: pl.concat([frame, frame.filter(pl.col(KEY) == key).head(1)])  # noqa: E731
    codes = rewrite(honest, tmp_path / "copy", people=grow)
    assert codes == ["HOUSEHOLD_TYPES_TOO_SMALL", "LINKS_DIFFER"]


def alter(folder: Path, **fields: Any) -> list[str]:
    certificate = load_certificate(folder).model_copy(update=fields)
    with suppress(KeyError):  # what the statement says of a parameter that is gone
        certificate = certificate.with_statement()
    forge_certificate(folder, certificate.with_seal())
    return [finding.code for finding in ic.verify(folder)]


def test_edited_counts_are_found(honest: Path, tmp_path: Path) -> None:
    links = load_certificate(honest).links
    assert links is not None
    for number, name in enumerate(("types", "smallest_type", "largest_household")):
        folder = Path(shutil.copytree(honest, tmp_path / str(number)))
        changed = links.model_copy(update={name: getattr(links, name) + 1})
        assert alter(folder, links=changed) == ["LINKS_DIFFER"]


def test_a_certificate_that_says_less_or_charges_other_events_is_found(
    honest: Path, tmp_path: Path
) -> None:
    certificate = load_certificate(honest)
    changes: list[tuple[dict[str, Any], list[str]]] = [
        ({"links": None}, ["CERTIFICATE_INVALID"]),
        ({"layout": "households and people"}, ["CERTIFICATE_INVALID"]),
        ({"layout": None}, ["CERTIFICATE_INVALID"]),
        ({"parameters": {}}, ["EVENTS_INVALID"]),
        ({"parameters": {"people_per_household": 2.0}}, ["HOUSEHOLDS_TOO_LARGE"]),
        ({"events": certificate.events * 2}, ["EVENTS_DIFFER"]),
    ]
    for number, (fields, codes) in enumerate(changes):
        folder = Path(shutil.copytree(honest, tmp_path / str(number)))
        assert alter(folder, **fields) == codes, fields


def test_a_key_that_was_removed_from_both_files_is_found(honest: Path, tmp_path: Path) -> None:
    drop = lambda frame: frame.drop(KEY)  # noqa: E731
    assert rewrite(honest, tmp_path / "copy", drop, drop) == [
        "DATA_COLUMNS_DIFFER", "DATA_COLUMNS_DIFFER", "KEYS_INVALID",
    ]  # fmt: skip


def test_report_evaluation_attacks_and_dry_run_know_whole_households(tmp_path: Path) -> None:
    census, spec, out = make_census(), make_linked_spec(5), tmp_path / "out"
    release = ic.publish(census, spec, output=out)
    evaluation = ic.evaluate(census, out, spec)
    assert [part.rows_original for part in evaluation.slices] == [2500, len(census["people"])]
    assert evaluation.columns == (OWN, (*OWN, *PERSONAL))
    for before, after in zip(release.evaluation.slices, evaluation.slices, strict=True):
        assert (before.rows_released, before.loss) == (after.rows_released, after.loss)
    report = (tmp_path / "out.curator/report.html").read_text()
    assert "Households are published whole, with their people" in report
    assert "no attack here uses the keys" in report
    for page in ("README.md", "certificate.html"):
        assert KEY in (out / page).read_text()
        assert "must not be joined" not in (out / page).read_text()
    attacked = ic.attack(census, out / "people.csv", spec, only=("linkage", "membership"))
    assert any("no attack here uses the keys" in note for note in attacked.notes)
    rehearsal = ic.rehearse(spec, size=1500, typical=2, output=tmp_path / "dry")
    assert rehearsal.certificate.layout == "linked households and people"
    assert [finding.code for finding in ic.verify(tmp_path / "dry")] == ["RELEASE_REHEARSED"]


def test_check_says_what_linking_keeps() -> None:
    census = make_census(3000)
    codes = {finding.code: finding for finding in ic.check(census, make_linked_spec(3))}
    assert "HOUSEHOLDS_WHOLE" in codes
    assert 0 < float(str(codes["HOUSEHOLDS_EXPECTED_LOST"].values["rows"])) < 1
    spec = make_linked_spec(5, levels=dict.fromkeys(VALUES, 0))
    for size, code in ((300, "HOUSEHOLDS_LIKELY_LOST"), (3_000_000, "HOUSEHOLDS_LIKELY_KEPT")):
        stated = {finding.code: finding for finding in ic.check(census, {**spec, "size": size})}
        assert "without `linked`" in str(stated[code])
    assert "METHOD_RECOMMENDED" not in codes


def test_metadata_describe_the_key(tmp_path: Path) -> None:
    about = {"title": "Census", "description": "Generated.", "publisher": "A", "contact": "a@b.c"}
    formats = ["croissant", "dcat", "registry", "ddi", "frictionless", "dossier"]
    spec = {**make_linked_spec(2), "about": about, "describe": formats}
    publish_unjudged(make_census(600), spec, output=tmp_path / "out")
    assert ic.verify(tmp_path / "out") == []
    package = json.loads((tmp_path / "out/datapackage.json").read_text())
    for resource in package["resources"]:
        key = next(field for field in resource["schema"]["fields"] if field["name"] == KEY)
        assert key["type"] == "integer"
    dossier = (tmp_path / "out/metadata/dossier.html").read_text()
    assert f"Join the files by {KEY} alone" in dossier
    assert "must not be joined" not in dossier


def test_a_table_without_people_is_published_like_any_other(tmp_path: Path) -> None:
    empty = {name: frame.clear() for name, frame in make_census(10).items()}
    release = publish_unjudged(empty, make_linked_spec(3), output=tmp_path / "out")
    assert ic.verify(tmp_path / "out") == []
    assert [table.release.rows for table in release.certificate.tables] == [0, 0]


@pytest.mark.spark
def test_spark_publishes_the_same_bytes(spark_session: SparkSession, tmp_path: Path) -> None:
    census, spec = make_census(900), make_linked_spec(5)
    send: Any = spark_session.createDataFrame
    there = {name: send(frame.to_arrow()) for name, frame in census.items()}
    publish_unjudged(census, spec, output=tmp_path / "local", bits=SeededRandomness(5))
    publish_unjudged(
        there, spec, output=tmp_path / "spark", bits=SeededRandomness(5), engine=spark_engine()
    )
    for name in ("households", "people"):
        first, second = (tmp_path / side / f"{name}.csv" for side in ("local", "spark"))
        assert first.read_bytes() == second.read_bytes()
    assert len((tmp_path / "local/people.csv").read_text().splitlines()) > 100
