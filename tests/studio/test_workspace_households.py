"""A spec with a table of households opens in the studio, shows both tables, and is published."""

from __future__ import annotations

import json
import time
from pathlib import Path

import polars as pl
import pytest
from support.census import make_census, make_spec
from support.inline_studio import open_studio

import incrowd as ic
from incrowd.errors import IncrowdError
from incrowd.spec.file import read_spec_file
from incrowd.spec.model import PersonId
from incrowd.studio.worker_pool import SpecSnapshot
from incrowd.studio.workspace import Workspace

pytestmark = pytest.mark.usefixtures("settled_once")
ROOMS = ("person", "data", "hierarchies", "confirm", "privacy", "explore", "publish")


def write_census_spec(
    folder: Path, households: str = "households.csv", *, linked: bool = False
) -> Path:
    for name, frame in make_census(1200).items():
        frame.write_csv(folder / f"{name}.csv")
    levels = dict.fromkeys(("region", "tenure", "age", "sex"), 0)
    spec = {"table": "people.csv", **make_spec(2, levels=levels)}
    spec["household"] = {**spec["household"], "table": households, "linked": linked}
    if linked:
        spec["release"].pop("rows")
    path = folder / "census.yaml"
    path.write_text(json.dumps(spec))
    return path


@pytest.mark.parametrize("linked", [False, True])
def test_both_tables_are_shown_and_published(linked: bool, tmp_path: Path) -> None:
    path = write_census_spec(tmp_path, linked=linked)
    with open_studio(tmp_path, table="census.yaml") as studio:
        for room in ROOMS:
            page = studio.get(f"{studio.room}/{room}")
            assert "tenure" in page or room in ("person", "confirm", "explore", "privacy")
        person = studio.get(f"{studio.room}/person")
        assert "<strong>1,200</strong>" in person
        assert ("Households are published whole" in person) == linked
        studio.post(f"{studio.room}/person", unit="household", rows="3", certain="")
        unit = read_spec_file(path).spec.unit
        assert isinstance(unit, PersonId)
        assert (unit.rows, unit.protects) == (3, "household")
        studio.get(f"{studio.room}/publish")
        studio.post(f"{studio.room}/publish/begin", name="out")
        for _ in range(600):
            if (tmp_path / "out").exists():
                break
            time.sleep(0.1)
    assert ic.verify(tmp_path / "out") == []
    assert (tmp_path / "out/households.parquet").exists()
    assert ("household_key" in pl.read_parquet(tmp_path / "out/people.parquet").columns) == linked


def test_tables_are_joined_again_when_ids_are_read_in_another_way(tmp_path: Path) -> None:
    path = write_census_spec(tmp_path)
    ids = pl.col("household") + 1000
    dotted = ids.cast(pl.String).str.replace(r"(\d)(\d{3})$", "${1}.${2}")
    census = make_census(1200)
    census["people"].with_columns(household=ids).write_csv(tmp_path / "people.csv")
    census["households"].with_columns(household=dotted).write_csv(tmp_path / "households.csv")
    spec = json.loads(path.read_text())
    place = str(tmp_path / "people.csv")
    unmatched = []
    for written in (None, {"decimal": ",", "thousands": "."}):
        spec["columns"]["household"]["written"] = written
        snapshot = SpecSnapshot(place, json.dumps(spec), str(path), None, None)
        for _, table in (snapshot.open_spec_and_table(), snapshot.open_uncached()):
            unmatched.append(table.origin.match.unmatched)
    assert unmatched == [len(census["people"])] * 2 + [0, 0]


def test_a_second_table_elsewhere_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    make_census(50)["households"].write_csv(tmp_path / "households.csv")
    path = write_census_spec(home, households="../households.csv")
    workspace = Workspace(home)
    with pytest.raises(IncrowdError, match="households"):
        workspace.open_spec(path)
    workspace.remove_uploads()
