"""Tables of counts as SDMX: read back by the library that offices read it with."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import polars as pl
import pytest
from support.findings import list_codes
from support.readers import load_certificate, reseal_certificate
from support.tables import BUDGET, make_residents, make_spec, read_table
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.errors import IncrowdError
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import hash_file

pytest.importorskip("pysdmx.io.xml")

TABLES = "tables: [[sex, region], {columns: [diagnosis, age], levels: {age: 1}}]"
RELEASE = f"{BUDGET}, {TABLES}, exports: [sdmx], hide_below: 3"


def publish(folder: Path, release: str = RELEASE, seed: int | None = None) -> ic.Release:
    bits = None if seed is None else SeededRandomness(seed)
    return publish_unjudged(make_residents(300), make_spec(release), output=folder, bits=bits)


def read_lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def change_file(folder: Path, name: str, old: str, new: str) -> list[str]:
    """Change a file, certify the change, and return what verify says."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert "FILE_CHANGED" in list_codes(ic.verify(folder))
    certificate = load_certificate(folder)
    part = certificate.tabulation
    assert part is not None
    exports = [x.model_copy(update={"sha256": hash_file(folder / x.file)}) for x in part.exports]
    part = part.model_copy(update={"exports": exports})
    reseal_certificate(folder, certificate.model_copy(update={"tabulation": part}))
    return list_codes(ic.verify(folder))


def test_the_library_reads_the_structure_and_the_data(tmp_path: Path) -> None:
    """`read_sdmx` checks the structure against SDMX's own XML schema."""
    from pysdmx.io import get_datasets, read_sdmx
    from pysdmx.model import Role

    publish(tmp_path / "out")
    folder = tmp_path / "out" / "sdmx"
    message = read_sdmx(folder / "structure.xml", validate=True)
    structures = message.get_data_structure_definitions()
    assert [x.id for x in structures] == ["DSD_TABLE_1", "DSD_TABLE_2"]
    roles = {x.id: x.role for x in structures[1].components}
    assert [x for x, role in roles.items() if role is Role.DIMENSION] == ["DIAGNOSIS", "AGE"]
    assert [x for x, role in roles.items() if role is Role.MEASURE] == [
        "OBS_VALUE", "ESTIMATE", "SD", "LOW", "HIGH",
    ]  # fmt: skip
    lists = {x.id: {code.id for code in x} for x in message.get_codelists()}
    assert {"_T", "_U", "North", "N1", "_L0_4"} < lists["CL_REGION"]
    assert {"_O", "_T", "_U", "a", "b", "c"} == lists["CL_DIAGNOSIS"]
    for at, dimensions in ((1, ("SEX", "REGION")), (2, ("DIAGNOSIS", "AGE"))):
        (dataset,) = get_datasets(folder / f"table-{at}.csv", folder / "structure.xml")
        table = read_table(tmp_path / "out", f"data-{at}.parquet")
        counts = dataset.data["OBS_VALUE"].dropna()
        assert [int(x) for x in counts if x != ""] == table["count"].drop_nulls().to_list()
        for name in dimensions:
            assert set(dataset.data[name]) <= lists[f"CL_{name}"]


def test_the_data_are_those_of_the_tables(tmp_path: Path) -> None:
    publish(tmp_path / "out")
    lines = read_lines(tmp_path / "out" / "sdmx" / "table-1.csv")
    table = read_table(tmp_path / "out", "data-1.parquet").to_dicts()
    assert len(lines) == len(table) == 40
    named = {"Total": "_T", None: "_U", "=S3": "_L0_4"}
    for line, cell in zip(lines, table, strict=True):
        assert line["STRUCTURE_ID"] == "INCROWD:TABLE_1(1.0)"
        if (cell["region"], cell["region_level"]) != (None, 1):
            assert line["REGION"] == named.get(cell["region"], cell["region"])
        assert line["SEX"] == named.get(cell["sex"], cell["sex"])
        assert line["OBS_VALUE"] == ("" if cell["count"] is None else str(cell["count"]))
        assert float(line["SD"]) == cell["sd"]
    assert ic.verify(tmp_path / "out") == []
    publish(tmp_path / "csv", f"{RELEASE}, format: csv, formulas: escape")
    assert ic.verify(tmp_path / "csv") == []


def test_the_same_tables_make_the_same_files_in_either_format(tmp_path: Path) -> None:
    publish(tmp_path / "one", seed=2)
    publish(tmp_path / "two", f"{RELEASE}, format: csv, formulas: escape", seed=2)
    for name in ("structure.xml", "table-1.csv", "table-2.csv"):
        file, other = (tmp_path / x / "sdmx" / name for x in ("one", "two"))
        assert file.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("sdmx/table-1.csv", ",_T,_T,", ",_T,_T,1"),
        ("sdmx/table-2.csv", "TABLE_2(1.0)", "TABLE_1(1.0)"),
        ("sdmx/structure.xml", '>North<', '>South<'),
        ("sdmx/structure.xml", 'id="_L0_4"', 'id="_L0_5"'),
        ("sdmx/structure.xml", 'Measure id="SD"', 'Measure id="SE"'),
        ("sdmx/structure.xml", "CL_SEX(1.0)<", "CL_REGION(1.0)<"),
        ("sdmx/structure.xml", "<mes:Structures>", "<mes:Structures"),
    ],
)  # fmt: skip
def test_what_is_changed_is_found(tmp_path: Path, name: str, old: str, new: str) -> None:
    publish(tmp_path / "out")
    assert change_file(tmp_path / "out", name, old, new) == ["EXPORT_DIFFERS"]


def test_names_that_sdmx_does_not_allow_get_others(tmp_path: Path) -> None:
    from pysdmx.io import read_sdmx

    flat = {"flat": {"values": ["a & b", "<c>", "d"]}}
    columns = {
        name: {"role": "quasi", "hierarchy": flat}
        for name in ("größe", "1st", "sd.", "action", "Größe")
    }
    spec = {
        "columns": columns,
        "release": {
            "method": "tables", "epsilon": 1, "delta": 1e-6, "exports": ["sdmx"], "all": 2,
            "totals": False,
        },
    }  # fmt: skip
    residents = pl.DataFrame({name: ["a & b", "<c>", "d"] * 5 for name in columns})
    release = publish_unjudged(residents, spec, output=tmp_path / "out")
    assert len(release.certificate.tables) == 10
    message = read_sdmx(tmp_path / "out" / "sdmx" / "structure.xml", validate=True)
    ids = [x.id for x in message.get_codelists()]
    assert ids == ["CL_GR_SSE", "CL_C_1ST", "CL_SD_", "CL_ACTION_2", "CL_GR_SSE_2"]
    names = [x.name for x in message.get_codelists()[0]]
    assert names == ["a & b", "<c>", "d", "missing"]
    assert ic.verify(tmp_path / "out") == []


def test_a_missing_library_is_named_before_anything_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pysdmx.io.xml", None)
    with pytest.raises(IncrowdError, match=r"incrowd\[sdmx\]"):
        ic.publish(make_residents(10), make_spec(RELEASE))
