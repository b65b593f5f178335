"""Households and their people as two tables of one release, from the spec to the checked files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession
from support.census import OWN, PERSONAL, VALUES, Pair, make_census, make_spec
from support.releases import forge_certificate
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.curate.person_rows import compare_rows_per_group, compare_rows_per_person
from incrowd.curate.planned_guarantee import plan_guarantee
from incrowd.engine.source import open_table, spark_engine
from incrowd.engine.table import TableError
from incrowd.errors import FindingError, IncrowdError
from incrowd.methods.registry import make_method
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import parse_event
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import Certificate, hash_file
from incrowd.spec.file import load_spec
from incrowd.spec.problem import SpecError

FIXED = {"levels": dict.fromkeys(VALUES, 0)}


def read_counts(folder: Path, name: str) -> dict[tuple[str, ...], int]:
    return {
        tuple(row[:-1]): row[-1] for row in pl.read_parquet(folder / f"{name}.parquet").iter_rows()
    }


def load_certificate(folder: Path) -> Certificate:
    return Certificate.model_validate_json((folder / "certificate.json").read_bytes())


def test_both_tables_count_households_within_the_noise(tmp_path: Path) -> None:
    census, out = make_census(), tmp_path / "out"
    release = publish_unjudged(census, make_spec(5, **FIXED), output=out)
    assert ic.verify(out) == []
    certificate = release.certificate
    assert [table.release.file for table in certificate.tables] == [
        "households.parquet", "people.parquet",
    ]  # fmt: skip
    r = int(certificate.tables[0].parameters["r"])
    assert [table.parameters.get("rows_per_person") for table in certificate.tables] == [None, 5]
    members = census["people"].join(census["households"], on="household")
    for name, frame, columns in (
        ("households", census["households"], OWN), ("people", members, (*OWN, *PERSONAL)),
    ):  # fmt: skip
        published = read_counts(out, name)
        unique = frame.select("household", *columns).unique()
        true = {tuple(row[:-1]): row[-1] for row in unique.group_by(columns).len().iter_rows()}
        assert len(published) == len(true)
        differences = {published[cell] - true[cell] for cell in true}
        assert max(map(abs, differences)) <= r
        assert len(differences) > 1
    assert not {"household"} & {name for table in release.tables for name in table.columns}


@pytest.mark.parametrize("rows", [1, 3])
def test_what_is_booked_is_one_cell_and_one_for_each_person(tmp_path: Path, rows: int) -> None:
    ledger = ic.Ledger(tmp_path / "census.ledger")
    ledger.set_budget(epsilon=1.0, delta=1e-6)
    out = tmp_path / "out"
    release = publish_unjudged(make_census(), make_spec(rows, **FIXED), output=out, ledger=ledger)
    first, second = (parse_event(event) for event in release.certificate.events)
    assert second == (first if rows == 1 else ic.PersonCounts(first, rows))  # type: ignore[arg-type]
    assert Accountant([first] * (rows + 1)).delta(epsilon=1.0) <= 1e-6
    assert ledger.total() == Guarantee(1.0, 1e-6)
    texts = {item.key: item.text for item in release.certificate.guarantee.statement}
    assert "No key links the files" in texts["no_key"]
    assert "are those of both files" in texts["household_files"]


def test_levels_are_chosen_once_and_are_the_same_in_both(tmp_path: Path) -> None:
    out = tmp_path / "out"
    release = publish_unjudged(make_census(), make_spec(2, scheme="search"), output=out)
    assert ic.verify(out) == []
    households, people = release.certificate.tables
    for name in OWN:
        assert households.scheme[name].level == people.scheme[name].level
    assert "search_epsilon" in people.parameters
    assert "search_epsilon" not in households.parameters
    texts = {item.key: item.text for item in release.certificate.guarantee.statement}
    assert (
        "the same in both files, were chosen by a differentially private search"
        in (texts["generalization"])
    )


def test_the_plan_says_what_the_certificate_will_say() -> None:
    for release in (FIXED, {"scheme": "search"}):
        spec = make_spec(2, **release)
        published = publish_unjudged(make_census(600), spec).certificate.guarantee.statement
        assert plan_guarantee(spec).statement == published
    costs = compare_rows_per_person(load_spec(make_spec(2, **FIXED)), choices=(1, 2, 3))
    # One cell more than the rows: the bounds of one table are 27 for 2 rows, 39 for 3, 45 for 4.
    assert [cost.crowd for cost in costs] == [32, 44, 50]
    assert len(compare_rows_per_group(load_spec(make_spec(2, **FIXED)))) == 1


def write_census(census: Pair, folder: Path) -> None:
    for name, frame in census.items():
        frame.write_csv(folder / f"{name}.csv")


def test_files_frames_of_pandas_and_a_second_name_of_the_id(tmp_path: Path) -> None:
    census = make_census(600)
    census["households"] = census["households"].rename({"household": "number"})
    write_census(census, tmp_path)
    spec = make_spec(2, **FIXED)
    spec["household"] |= {"id": "number"}
    frames = {name: frame.to_pandas() for name, frame in census.items()}
    named = {**spec, "table": "people.csv"}
    named["household"] = {**spec["household"], "table": "households.csv"}
    (tmp_path / "spec.yaml").write_text(json.dumps(named))
    sources: list[tuple[Any, Any]] = [
        (census, spec), (frames, spec), (None, tmp_path / "spec.yaml"),
    ]  # fmt: skip
    releases = [
        publish_unjudged(table, source, output=tmp_path / str(number), bits=SeededRandomness(3))
        for number, (table, source) in enumerate(sources)
    ]
    hashes = [[table.release.sha256 for table in x.certificate.tables] for x in releases]
    assert hashes[0] == hashes[1] == hashes[2]
    assert type(releases[1].data[0]).__module__.startswith("pandas")


def change_households(change: Callable[[pl.DataFrame], pl.DataFrame]) -> Pair:
    census = make_census(300)
    return {**census, "households": change(census["households"])}


UNFIT: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "HOUSEHOLDS_REPEATED": lambda frame: pl.concat([frame, frame.head(2)]),
    "HOUSEHOLDS_WITHOUT_ID": lambda frame: pl.concat(
        [frame, frame.head(1).with_columns(household=pl.lit(None, pl.Int64))]
    ),
    "PEOPLE_WITHOUT_HOUSEHOLD": lambda frame: frame.tail(-1),
    "HOUSEHOLDS_WITHOUT_PEOPLE": lambda frame: pl.concat(
        [frame, frame.head(1).with_columns(household=pl.lit(9999, pl.Int64))]
    ),
    "COLUMN_NOT_DECLARED": lambda frame: frame.with_columns(pl.lit(1).alias("rooms")),
    "COLUMN_NOT_IN_TABLE": lambda frame: frame.drop("tenure"),
}


@pytest.mark.parametrize("code", UNFIT)
def test_tables_that_do_not_fit_are_refused_before_anything_is_booked(
    code: str, tmp_path: Path
) -> None:
    census = change_households(UNFIT[code])
    ledger = ic.Ledger(tmp_path / "census.ledger")
    ledger.set_budget(epsilon=1.0, delta=1e-6)
    with pytest.raises(FindingError) as refused:
        publish_unjudged(census, make_spec(2, **FIXED), output=tmp_path / "out", ledger=ledger)
    assert refused.value.finding.code == code
    assert not (tmp_path / "out").exists()
    assert ledger.total() == Guarantee(0.0, 0.0)
    assert code in {finding.code for finding in ic.check(census, make_spec(2, **FIXED))}


ID_FORMAT = {"decimal": ",", "thousands": "."}


def write_ids(numbers: pl.Expr, *, dotted: pl.Expr | bool) -> pl.Expr:
    """Numbers from 1000 to 9999 as texts, some of them with a point after the thousands."""
    text = numbers.cast(pl.String)
    return pl.when(dotted).then(text.str.replace(r"(\d)(\d{3})$", "${1}.${2}")).otherwise(text)


def write_census_ids(census: Pair) -> Pair:
    """People write the ids of their households in two ways, and households in one."""
    number, is_odd = pl.col("household") + 1000, pl.int_range(pl.len()) % 2 == 1
    return {
        "people": census["people"].with_columns(household=write_ids(number, dotted=is_odd)),
        "households": census["households"].with_columns(household=write_ids(number, dotted=True)),
    }


def make_written_spec(rows: int) -> dict[str, Any]:
    spec = make_spec(rows, levels=dict.fromkeys(VALUES, 0))
    spec["columns"]["household"]["written"] = ID_FORMAT
    return spec


@pytest.mark.parametrize("rows", [1, 3])
def test_households_that_are_one_once_their_ids_are_read_are_repeated(
    tmp_path: Path, rows: int
) -> None:
    """1.000 and 1000 are one household: it would be in two cells of the table of households."""
    census = write_census_ids(make_census(300))
    again = make_census(300, seed=9)["households"].with_columns(
        household=(pl.col("household") + 1000).cast(pl.String)
    )
    census["households"] = pl.concat([census["households"], again])
    ledger = ic.Ledger(tmp_path / "census.ledger")
    ledger.set_budget(epsilon=1.0, delta=1e-6)
    spec = make_written_spec(rows)
    with pytest.raises(FindingError) as refused:
        publish_unjudged(census, spec, output=tmp_path / "out", ledger=ledger)
    assert refused.value.finding.code == "HOUSEHOLDS_REPEATED"
    assert dict(refused.value.finding.values)["rows"] == 300
    assert ledger.total() == Guarantee(0.0, 0.0)
    assert not (tmp_path / "out").exists()


def list_hashes(census: Any, spec: Any, folder: Path) -> list[str]:
    release = publish_unjudged(census, spec, output=folder, bits=SeededRandomness(3))
    return [table.release.sha256 for table in release.certificate.tables]


def test_ids_and_columns_of_households_are_read_as_they_are_written(tmp_path: Path) -> None:
    census, spec = make_census(600), make_written_spec(2)
    incomes = {
        "role": "quasi",
        "hierarchy": {"intervals": {"from": 0, "to": 2000, "widths": [500]}},
    }
    spec["columns"]["income"] = {**incomes, "written": ID_FORMAT}
    spec["household"]["columns"].append("income")
    spec["release"]["levels"]["income"] = 1
    income = pl.int_range(pl.len()) % 2000
    plain = {**census, "households": census["households"].with_columns(income=income)}
    written = write_census_ids(census)
    written["households"] = written["households"].with_columns(
        income=write_ids(income, dotted=income >= 1000)
    )
    # Choices among a person's rows must not hang on how ids are written.
    plain = {
        name: frame.with_columns(household=(pl.col("household") + 1000).cast(pl.String))
        for name, frame in plain.items()
    }
    expected = list_hashes(plain, spec, tmp_path / "plain")
    assert list_hashes(written, spec, tmp_path / "written") == expected
    write_census(written, tmp_path)
    spec |= {"table": "people.csv", "household": {**spec["household"], "table": "households.csv"}}
    (tmp_path / "spec.yaml").write_text(json.dumps(spec))
    assert list_hashes(None, tmp_path / "spec.yaml", tmp_path / "files") == expected


def test_places_of_a_household_are_made_of_its_coordinates(tmp_path: Path) -> None:
    census, spec = make_census(4000), make_spec(2, levels=dict.fromkeys([*VALUES, "place"], 0))
    geo = {
        "lat": "lat",
        "lon": "lon",
        "sizes": [1, 5],
        "south": 0,
        "north": 5,
        "west": 0,
        "east": 5,
    }
    place = {"role": "quasi", "hierarchy": {"geo": geo}}
    spec["columns"] |= {"lat": {"role": "drop"}, "lon": {"role": "identifier"}, "place": place}
    at = pl.int_range(pl.len()) % 3
    census["households"] = census["households"].with_columns(lat=at + 0.5, lon=at + 0.25)
    with pytest.raises(FindingError) as refused:
        publish_unjudged(census, spec, output=tmp_path / "out")
    assert refused.value.finding.code == "HOUSEHOLD_COLUMN_NOT_LISTED"
    spec["household"]["columns"].append("place")
    publish_unjudged(census, spec, output=tmp_path / "out")
    assert ic.verify(tmp_path / "out") == []
    places = pl.read_parquet(tmp_path / "out/households.parquet")["place"].unique().sort()
    assert places.to_list() == [f"{at}..{at + 1} N, {at}..{at + 1} E" for at in range(3)]
    done = ic.rehearse(spec, size=2000, output=tmp_path / "dry")
    assert "place" in done.certificate.tables[0].scheme
    people = census["people"].with_columns(lat=pl.lit(0.5), lon=pl.lit(0.5))
    census = {"people": people, "households": census["households"].drop("lat", "lon")}
    with pytest.raises(FindingError) as refused:
        publish_unjudged(census, spec, output=tmp_path / "other")
    assert refused.value.finding.code == "HOUSEHOLD_COLUMN_OF_PEOPLE"


def test_people_who_differ_in_a_column_of_their_household_are_refused_when_counted() -> None:
    """No join makes such a table; if one ever did, nothing would be booked."""
    census = make_census(300)
    joined = census["people"].join(census["households"], on="household")
    method = make_method(load_spec(make_spec(2, **FIXED)))
    method.count(open_table(joined), by_row=True)
    split = joined.with_columns(
        region=pl.when(pl.int_range(pl.len()) % 2 == 1).then(pl.lit("north")).otherwise("region")
    )
    with pytest.raises(TableError, match="'region', 'tenure': the people of a household differ"):
        method.count(open_table(split), by_row=True)


def test_a_column_must_stand_in_the_table_that_the_spec_says(tmp_path: Path) -> None:
    census = make_census(300)
    for columns, code in (
        (["region"], "HOUSEHOLD_COLUMN_NOT_LISTED"),
        (["region", "tenure", "sex"], "HOUSEHOLD_COLUMN_OF_PEOPLE"),
    ):
        spec = {**make_spec(2, **FIXED), "household": {"columns": columns}}
        with pytest.raises(FindingError) as refused:
            publish_unjudged(census, spec, output=tmp_path / "out")
        assert refused.value.finding.code == code
    census["people"] = census["people"].with_columns(pl.lit("north").alias("region"))
    with pytest.raises(IncrowdError, match="Column 'region': both tables have it"):
        publish_unjudged(census, make_spec(2, **FIXED), output=tmp_path / "out")


def test_rows_without_people_or_id_can_be_dropped(tmp_path: Path) -> None:
    census = change_households(UNFIT["HOUSEHOLDS_WITHOUT_PEOPLE"])
    spec = make_spec(2, **FIXED)
    spec["household"] |= {"without_people": "drop"}
    publish_unjudged(census, spec, output=tmp_path / "out")
    census = change_households(UNFIT["HOUSEHOLDS_WITHOUT_ID"])
    nobody = census["people"].head(3).with_columns(household=pl.lit(None, pl.Int64))
    census["people"] = pl.concat([census["people"], nobody])
    spec["unit"] |= {"without_id": "drop"}
    release = publish_unjudged(census, spec, output=tmp_path / "other")
    assert release.certificate.guarantee.without_id == "dropped"
    assert ic.verify(tmp_path / "other") == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": {"id": "household"}}, "needs a unit that is the household"),
        ({"household": {"columns": ["region", "region"]}}, "names a column twice"),
        ({"household": {"columns": ["rooms"]}}, "'rooms' has no entry"),
        ({"household": {"columns": ["household"]}}, "the id of the unit"),
        ({"household": {"columns": list(VALUES)}}, "every published column belongs"),
        ({"household": {"colums": list(OWN)}}, "unknown key 'colums'. Did you mean 'columns'"),
        ({"release": {"method": "k-anonymity", "k": 5}}, "is for `method: safe`"),
    ],
)  # fmt: skip
def test_a_spec_that_does_not_fit_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words) as refused:
        load_spec({**make_spec(2, **FIXED), **change})
    assert "Value error" not in str(refused.value)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ({"slices": 2}, "excludes `slices`"),
        ({"target": "age"}, "excludes `target`"),
        ({"releases": 4}, "excludes `releases`"),
        ({"already_sampled": 0.1}, "excludes `already_sampled`"),
        ({"scheme": "mondrian"}, "excludes `scheme: mondrian`"),
        ({"draw": "sample"}, "needs `draw: counts`"),
        ({"keep": 0.5}, "needs `draw: counts`"),
    ],
)
def test_what_two_tables_do_not_have_is_refused(release: dict[str, Any], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        publish_unjudged(make_census(50), make_spec(1, **release))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("households") / "out"
    publish_unjudged(make_census(), make_spec(3, **FIXED), output=folder)
    return folder


def alter(folder: Path, **update: Any) -> list[str]:
    """The findings of a release whose certificate was changed and sealed again."""
    certificate = load_certificate(folder)
    forge_certificate(folder, certificate.model_copy(update=update).with_statement().with_seal())
    return [finding.code for finding in ic.verify(folder)]


def copy_release(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "copy"))


def test_people_charged_as_one_per_household_are_found(honest: Path, tmp_path: Path) -> None:
    """Planted: rows_per_person is gone, from the events too, so that less seems to be spent."""
    folder = copy_release(honest, tmp_path)
    certificate = load_certificate(folder)
    first, _ = certificate.events
    assert alter(folder, events=[first, first]) == ["PARAMETERS_DIFFER"]


def test_events_without_the_table_of_households_are_found(honest: Path, tmp_path: Path) -> None:
    folder = copy_release(honest, tmp_path)
    certificate = load_certificate(folder)
    assert alter(folder, events=certificate.events[1:]) == ["EVENTS_DIFFER"]
    # In the other order the households would have several cells, and people one.
    assert alter(folder, events=certificate.events[::-1]) == ["EVENTS_DIFFER"]


def test_less_noise_than_is_charged_is_found(honest: Path, tmp_path: Path) -> None:
    folder = copy_release(honest, tmp_path)
    certificate = load_certificate(folder)
    guarantee = certificate.guarantee.model_copy(update={"epsilon": 0.5})
    assert alter(folder, guarantee=guarantee) == ["GUARANTEE_FALSE"]
    tables = [
        table.model_copy(update={"parameters": {**table.parameters, "r": 3.0}})
        for table in certificate.tables
    ]
    assert "PARAMETERS_DIFFER" in alter(folder, guarantee=certificate.guarantee, slices=tables)


def test_a_certificate_that_takes_the_layout_back_is_no_certificate(
    honest: Path, tmp_path: Path
) -> None:
    assert alter(copy_release(honest, tmp_path), layout=None) == ["CERTIFICATE_INVALID"]


def test_a_shared_column_with_two_levels_is_no_certificate(honest: Path, tmp_path: Path) -> None:
    folder = copy_release(honest, tmp_path)
    households, people = load_certificate(folder).tables
    region = people.scheme["region"].model_copy(update={"level": 1})
    changed = people.model_copy(update={"scheme": {**people.scheme, "region": region}})
    assert alter(folder, slices=[households, changed]) == ["CERTIFICATE_INVALID"]
    guarantee = load_certificate(honest).guarantee.model_copy(update={"protects": None})
    other = copy_release(honest, tmp_path / "other")
    assert alter(other, guarantee=guarantee) == ["CERTIFICATE_INVALID"]


def test_a_key_that_was_added_to_both_files_is_found(tmp_path: Path) -> None:
    """Planted: the link is kept. Neither file may have a column that its scheme does not list."""
    folder = tmp_path / "out"
    publish_unjudged(make_census(), make_spec(3, format="csv", **FIXED), output=folder)
    assert ic.verify(folder) == []
    tables = []
    for table in load_certificate(folder).tables:
        path = folder / table.release.file
        pl.read_csv(path).with_row_index("household").write_csv(path)
        release = table.release.model_copy(update={"sha256": hash_file(path)})
        tables.append(table.model_copy(update={"release": release}))
    assert alter(folder, slices=tables) == ["DATA_COLUMNS_DIFFER"] * 2


def test_report_evaluation_and_dry_run_know_both_tables(tmp_path: Path) -> None:
    census, spec, out = make_census(), make_spec(3, **FIXED), tmp_path / "out"
    release = ic.publish(census, spec, output=out)
    evaluation = ic.evaluate(census, out, spec)
    assert [part.rows_original for part in evaluation.slices] == [
        2500, release.evaluation.slices[1].rows_original,
    ]  # fmt: skip
    assert evaluation.columns == (OWN, (*OWN, *PERSONAL))
    for before, after in zip(release.evaluation.slices, evaluation.slices, strict=True):
        assert (before.rows_released, before.loss) == (after.rows_released, after.loss)
    assert "households" in (tmp_path / "out.curator/report.html").read_text()
    for page in ("README.md", "certificate.html"):
        assert "No key links the files" in (out / page).read_text()
    rehearsal = ic.rehearse(spec, size=1500, typical=2, output=tmp_path / "dry")
    assert rehearsal.certificate.layout == "households and people"
    assert [finding.code for finding in ic.verify(tmp_path / "dry")] == ["RELEASE_REHEARSED"]


def test_two_tables_are_not_taken_for_columns_of_one(honest: Path, tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="holds households and people"):
        ic.synthesize(honest, tmp_path / "rows.csv")
    with pytest.raises(IncrowdError, match="names a second"):
        ic.audit(make_spec(1, **FIXED), runs=10)


def test_metadata_describe_both_files(tmp_path: Path) -> None:
    spec = {
        **make_spec(2, **FIXED),
        "about": {
            "title": "Census",
            "description": "Generated.",
            "publisher": "A",
            "contact": "a@b.c",
        },
        "describe": ["croissant", "dcat", "registry", "ddi", "frictionless", "dossier"],
    }
    publish_unjudged(make_census(600), spec, output=tmp_path / "out")
    assert ic.verify(tmp_path / "out") == []
    package = json.loads((tmp_path / "out/datapackage.json").read_text())
    assert [x["path"] for x in package["resources"]] == ["households.parquet", "people.parquet"]


@pytest.mark.spark
def test_tables_on_spark_are_joined_there(spark_session: SparkSession, tmp_path: Path) -> None:
    census, spec = make_census(600), make_spec(2, **FIXED)
    send: Any = spark_session.createDataFrame
    there = {name: send(frame.to_pandas()) for name, frame in census.items()}
    release = publish_unjudged(there, spec, output=tmp_path / "out", engine=spark_engine())
    assert ic.verify(tmp_path / "out") == []
    total = sum(read_counts(tmp_path / "out", "households").values())
    assert abs(total - 600) <= 8 * int(release.certificate.tables[0].parameters["r"])
    written = write_census_ids(census)
    sent = {name: send(frame.to_arrow()) for name, frame in written.items()}
    publish_unjudged(sent, make_written_spec(2), output=tmp_path / "ids", engine=spark_engine())
    sent["households"] = send(pl.concat([
        written["households"],
        written["households"].with_columns(pl.col("household").str.replace(".", "", literal=True)),
    ]).to_arrow())  # fmt: skip
    with pytest.raises(FindingError, match="600 rows of the table of households"):
        publish_unjudged(sent, make_written_spec(2), output=tmp_path / "no", engine=spark_engine())
    for code, change in UNFIT.items():
        there["households"] = send(change(census["households"]).to_arrow())
        with pytest.raises(FindingError) as refused:
            publish_unjudged(there, spec, output=tmp_path / code, engine=spark_engine())
        assert refused.value.finding.code == code
