"""Places by coordinates: two columns become one of squares, which every method takes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import h3
import numpy as np
import polars as pl
import pytest
from support.readers import load_certificate, reseal_certificate
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.curate.check import check
from incrowd.curate.draft.draft import draft
from incrowd.engine.source import open_spec_table, open_table
from incrowd.errors import IncrowdError
from incrowd.evaluation.evaluate import evaluate
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import hash_file
from incrowd.spec import geo
from incrowd.spec.file import load_spec

ROWS = 2000
DRAW = np.random.default_rng(7)
GEO = {
    "lat": "latitude", "lon": "longitude", "sizes": [0.05, 0.25, 1],
    "south": 52, "north": 53, "west": 13, "east": 14,
}  # fmt: skip
PEOPLE = pl.DataFrame({
    "latitude": np.clip(DRAW.normal(52.5, 0.1, ROWS), 52.01, 52.99).round(5),
    "longitude": np.clip(DRAW.normal(13.4, 0.1, ROWS), 13.01, 13.99).round(5),
    "sex": DRAW.choice(["f", "m"], ROWS),
})  # fmt: skip
COLUMNS: dict[str, Any] = {
    "latitude": {"role": "drop"},
    "longitude": {"role": "drop"},
    "place": {"role": "quasi", "hierarchy": {"geo": GEO}},
    "sex": {"role": "quasi", "hierarchy": {"flat": {"values": ["f", "m"]}}},
}
HEXAGONS = {name: value for name, value in GEO.items() if name != "sizes"} | {"hexagons": [8, 6, 4]}
BUDGET = {"epsilon": 2.0, "delta": 1e-6}
METHODS: dict[str, dict[str, Any]] = {
    "counts": {"method": "safe", **BUDGET},
    "sample": {"method": "safe", "draw": "sample", **BUDGET},
    "ola": {"method": "k-anonymity", "k": 5},
    "mondrian": {"method": "k-anonymity", "k": 5, "algorithm": "mondrian"},
    "clusters": {"method": "k-anonymity", "k": 5, "algorithm": "cluster"},
    "synthetic": {"method": "synthetic", **BUDGET},
    "tables": {"method": "tables", "all": 2, **BUDGET},
}


def spec(release: str = "ola", **columns: Any) -> dict[str, Any]:
    return {"columns": COLUMNS | columns, "release": METHODS[release]}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_publishes_squares_and_verifies(tmp_path: Path, method: str) -> None:
    release = publish_unjudged(PEOPLE, spec(method), output=tmp_path / "out")
    assert ic.verify(tmp_path / "out") == []
    assert not {"latitude", "longitude"} & {*release.certificate.table.scheme}
    scheme = release.certificate.table.scheme["place"]
    assert scheme.shows[0] == "squares of 0.05 degrees (such as 52.45..52.50 N, 13.95..14.00 E)"
    assert scheme.shows[-1] == "suppressed"
    assert scheme.labels in ("squares", "text")  # of several levels, also *


@pytest.mark.parametrize("method", METHODS)
def test_every_method_publishes_hexagons_and_verifies_without_h3(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"role": "quasi", "hierarchy": {"geo": HEXAGONS}}
    release = publish_unjudged(PEOPLE, spec(method, place=place), output=tmp_path / "out")
    scheme = release.certificate.table.scheme["place"]
    assert scheme.shows[0].startswith("H3 hexagons of resolution 8 (such as 88")
    assert scheme.shows[-1] == "suppressed"
    monkeypatch.setitem(sys.modules, "h3", None)
    monkeypatch.setattr(geo, "build_geo_hierarchy", None)  # which keeps what it built
    assert ic.verify(tmp_path / "out") == []


def test_the_readme_says_how_to_read_a_hexagon(tmp_path: Path) -> None:
    place = {"role": "quasi", "hierarchy": {"geo": HEXAGONS}}
    release = publish_unjudged(
        PEOPLE, spec(place=place) | {"release": {**METHODS["ola"], "levels": {"place": 1}}},
        output=tmp_path / "out",
    )  # fmt: skip
    assert release.certificate.table.scheme["place"].labels == "hexagons"
    published = release.data["place"].drop_nulls().unique().to_list()
    assert {h3.get_resolution(label) for label in published if label != "*"} == {6}
    readme = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "- `place`: the index of a cell of H3, a public grid of hexagons" in readme


def test_a_missing_library_is_named_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = HEXAGONS | {"south": 51}  # an area that no other test has built
    place = {"role": "quasi", "hierarchy": {"geo": elsewhere}}
    monkeypatch.setitem(sys.modules, "h3", None)
    with pytest.raises(IncrowdError, match=r"pip install 'incrowd\[geo\]'"):
        publish_unjudged(PEOPLE, spec("counts", place=place), output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_readme_says_how_to_read_a_square(tmp_path: Path) -> None:
    release = publish_unjudged(
        PEOPLE, spec() | {"release": {**METHODS["ola"], "levels": {"place": 1}}},
        output=tmp_path / "out",
    )  # fmt: skip
    assert release.certificate.table.scheme["place"].labels == "squares"
    readme = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "- `place`: `a..b N, c..d E` is the square from latitude a to b" in readme


def test_rows_are_in_the_square_of_their_coordinates() -> None:
    file = load_spec(spec())
    read = open_spec_table(file, PEOPLE).to_frame()
    for lat, lon, label in read.select("latitude", "longitude", "place").head(300).rows():
        (south, north), (west, east) = (
            map(float, part.split(" ")[0].split("..")) for part in label.split(", ")
        )
        assert south <= lat < north
        assert west <= lon < east
        assert label.endswith(" E")


def test_missing_and_outside_coordinates_are_as_those_of_other_hierarchies() -> None:
    table = pl.DataFrame({
        "latitude": ["52.5", None, "52.5", "nowhere", "91", "60", " 52.5 "],
        "longitude": ["13.4", "13.4", None, "13.4", "13.4", "13.4", "13.4"],
        "sex": ["f"] * 7,
    })  # fmt: skip
    places = open_spec_table(load_spec(spec()), table).to_frame()["place"].to_list()
    inside = "52.50..52.55 N, 13.40..13.45 E"
    outside = "outside the grid"
    elsewhere = "60.00..60.05 N, 13.40..13.45 E"  # a square, though not a listed one
    assert places == [inside, None, None, outside, outside, elsewhere, inside]
    (finding,) = (x for x in check(table, spec()) if x.code == "VALUES_OUTSIDE_DOMAIN")
    assert finding.column == "place"
    assert "3 rows" in str(finding)


def test_coordinates_are_read_as_they_are_written() -> None:
    table = pl.DataFrame({"latitude": ["52,51"], "longitude": ["13,38"], "sex": ["f"]})
    comma = {"role": "drop", "written": {"decimal": ","}}
    file = load_spec(spec(latitude=comma, longitude=comma))
    places = open_spec_table(file, table).to_frame()["place"].to_list()
    assert places == ["52.50..52.55 N, 13.35..13.40 E"]


def test_a_place_of_another_rule_is_noticed(tmp_path: Path) -> None:
    publish_unjudged(PEOPLE, spec() | {"release": {**METHODS["ola"], "format": "csv"}},
                     output=tmp_path / "out")  # fmt: skip
    certificate = load_certificate(tmp_path / "out")
    path = tmp_path / "out" / "data.csv"
    label = pl.read_csv(path)["place"][0]
    path.write_text(path.read_text().replace(label, label.replace(" N", " S")))
    assert certificate.release is not None
    file = certificate.release.model_copy(update={"sha256": hash_file(path)})
    reseal_certificate(tmp_path / "out", certificate.model_copy(update={"release": file}))
    assert "VALUE_NOT_IN_SCHEME" in [finding.code for finding in ic.verify(tmp_path / "out")]


def test_the_table_is_recognized_with_and_without_places() -> None:
    file = load_spec(spec())
    key = b"k" * 32
    plain = open_table(PEOPLE).compute_fingerprint(key)
    assert open_spec_table(file, PEOPLE).compute_fingerprint(key) == plain


def test_a_release_is_measured_against_the_coordinates(tmp_path: Path) -> None:
    publish_unjudged(PEOPLE, spec(), output=tmp_path / "out")
    evaluation = evaluate(original=PEOPLE, released=tmp_path / "out", spec=spec())
    assert 0 < evaluation.loss_by_column["place"] < 1


def test_a_dry_run_needs_no_coordinates(tmp_path: Path) -> None:
    release = ic.rehearse(spec(), size=500, output=tmp_path / "out")
    assert "place" in release.data.columns


@pytest.mark.spark
def test_spark_makes_the_same_places(spark_session: Any, tmp_path: Path) -> None:
    frame = PEOPLE.head(400).with_columns(
        latitude=pl.when(pl.int_range(400) % 50 == 0).then(None).otherwise(pl.col("latitude"))
    )
    remote = open_spec_table(load_spec(spec()), spark_session.createDataFrame(frame.to_pandas()))
    local = open_spec_table(load_spec(spec()), frame)
    names = ["place", "sex"]
    assert sorted(map(str, remote.values("place"))) == sorted(map(str, local.values("place")))
    assert remote.count_missing("place") == local.count_missing("place") == 8
    release = publish_unjudged(remote, spec(), output=tmp_path / "out", bits=SeededRandomness(1))
    other = publish_unjudged(local, spec(), output=tmp_path / "local", bits=SeededRandomness(1))
    published = pl.read_parquet(tmp_path / "out" / "data.parquet")
    assert published.select(names).sort(names).equals(other.data.select(names).sort(names))
    assert release.certificate.parameters == other.certificate.parameters


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"latitude": COLUMNS["sex"]}, "'latitude': 'place' is made of it, so it is not published"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": GEO | {"lat": "lat"}}}},
     "`geo` names the column 'lat', which has no entry"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": GEO | {"lon": "latitude"}}}},
     "`lat` and `lon` name one column"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": GEO | {"sizes": [0.7]}}}},
     "90 degrees are no multiple of 0.7"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": GEO | {"sizes": [0.2, 0.5]}}}},
     "0.5 is not a larger multiple of 0.2"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": GEO | {"south": 60}}}},
     r"`south` \(60\) is not below `north` \(53\)"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": GEO | {"sizes": [0.001]}}}},
     "The grid has 1,000,000 squares"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": GEO | {"hexagons": [8, 6]}}}},
     "`geo` takes either `sizes` .of squares. or `hexagons` .resolutions.. Give one"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": GEO | {"sizes": []}}}},
     "`geo` takes either `sizes` .of squares. or `hexagons` .resolutions.. Give one"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": HEXAGONS | {"hexagons": [8, 9]}}}},
     "the resolution 9 of `hexagons` is not below 8"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": HEXAGONS | {"hexagons": [8, 8]}}}},
     "the resolution 8 of `hexagons` is not below 8"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": HEXAGONS | {"hexagons": [16, 8]}}}},
     "hexagons.0: must be less than or equal to 15, got 16"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": HEXAGONS | {"hexagons": [8, -1]}}}},
     "hexagons.1: must be greater than or equal to 0, got -1"),
    ({"place": {"role": "quasi", "hierarchy": {"geo": HEXAGONS | {"hexagons": [11]}}}},
     "hexagons of resolution 11, and 250,000 at most are listed. Declare a smaller area"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "words"), MISTAKES)
def test_mistakes_are_refused_with_a_way_out(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        publish_unjudged(PEOPLE, spec(**columns))


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(IncrowdError, match="the table has no 'longitude'. Correct `geo`"):
        publish_unjudged(PEOPLE.drop("longitude"), spec())
    with pytest.raises(IncrowdError, match="the table has a column of this name"):
        publish_unjudged(PEOPLE.with_columns(place=pl.lit("x")), spec())


def test_a_draft_proposes_one_column_for_two_coordinates() -> None:
    frame = PEOPLE.rename({"latitude": "lat", "longitude": "home_lng"})
    drafted = draft(frame)
    guesses = {guess.column: guess for guess in drafted.guesses}
    assert [guesses[name].role for name in ("lat", "home_lng", "place")] == [
        "drop", "drop", "quasi",
    ]  # fmt: skip
    geo = load_spec(drafted).spec.places["place"]
    assert (geo.lat, geo.lon) == ("lat", "home_lng")
    assert [int(x) for x in (geo.south, geo.north, geo.west, geo.east)] == [52, 53, 13, 14]
    assert "hierarchy" in guesses["place"].confirm  # the area was read from the data
    other_name = draft(frame.with_columns(place=pl.Series(["a", "b"] * (ROWS // 2))))
    assert "location" in load_spec(other_name).spec.places
    alone = draft(frame.drop("home_lng"))
    assert load_spec(alone).spec.places == {}
