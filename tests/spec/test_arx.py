from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from incrowd.codes.hierarchy import HierarchyError, build_from_rows
from incrowd.curate.hierarchy_preview import format_as_groups
from incrowd.spec.arx import ArxRows, format_rows, read_rows
from incrowd.spec.build import build_hierarchy
from incrowd.spec.model import Column

labels = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\x00"), min_size=1, max_size=6
)


@st.composite
def nested_rows(draw: st.DrawFn) -> list[tuple[str, ...]]:
    values = draw(
        st.lists(labels.map(str.strip).filter(bool), min_size=1, max_size=12, unique=True)
    )
    columns = [values]
    for level in range(draw(st.integers(0, 3))):
        names = {label: f"{level}{draw(labels)}" for label in dict.fromkeys(columns[-1])}
        columns.append([names[label] for label in columns[-1]])
    return list(zip(*columns, strict=True))


@given(rows=nested_rows(), delimiter=st.sampled_from(";,\t|"))
def test_csv_to_hierarchy_to_csv_is_the_identity(
    rows: list[tuple[str, ...]], delimiter: str
) -> None:
    try:
        built = build_from_rows(rows)
    except HierarchyError:
        return  # two values that are one number, as "1" and "1.0"
    folder = Path(__file__).parents[1] / ".cache"
    folder.mkdir(exist_ok=True)
    file = folder / "rows.csv"
    try:
        text = format_rows(built, delimiter)
        file.write_text(text, encoding="utf-8", newline="")
        again = build_from_rows(read_rows(file, delimiter))
        assert format_rows(again, delimiter) == text
        assert again.list_rows() == built.list_rows()
    finally:
        file.unlink(missing_ok=True)
        folder.rmdir()


def test_arx_files_are_read_with_any_delimiter_and_written_unchanged(tmp_path: Path) -> None:
    for mark in ";,\t|":
        file = tmp_path / "h.csv"
        text = f"a{mark}x{mark}*\nb{mark}x{mark}*\nc{mark}y{mark}*\n"
        file.write_text(text)
        assert format_rows(build_from_rows(read_rows(file)), mark) == text


def test_an_arx_file_becomes_yaml_and_stays_the_same() -> None:
    rows: ArxRows = [("a", "x", "P", "*"), ("b", "x", "P", "*"), ("yes", "y", "Q", "*")]
    shorter: list[ArxRows] = [
        [row[:2] for row in rows],
        [(row[0], "*") for row in rows],
        [(row[0], "Person") for row in rows],
        [("x", "A", "*"), ("y", "A", "*")],
    ]
    for hierarchy in (rows, *shorter):
        text = format_as_groups(hierarchy)
        declared = YAML(typ="safe").load(text)
        expected = [(*row, "*") if row[-1] not in ("*", "Person") else row for row in hierarchy]
        column = Column.model_validate({"role": "quasi", "hierarchy": declared})
        assert build_hierarchy(column, folder=Path()).list_rows() == expected
