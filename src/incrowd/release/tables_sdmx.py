"""Tables of counts as SDMX: a data file for each table (SDMX-CSV 2.0), and one file of structure.

The structure (SDMX-ML 3.0) has a code list for each column, with the codes of all of its levels,
and a hierarchy that says which codes are parts of which. Each table is a dataflow, whose
dimensions are its columns. Identifiers are made from names and labels; what SDMX has a code for
(total, unknown, other) gets that code.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol
from xml.etree.ElementTree import Element, ParseError
from xml.etree.ElementTree import fromstring as parse_xml

from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.release.tables_column import TabulatedColumn
from incrowd.release.tables_part import TabulationPart, list_figures

SDMX_FOLDER = "sdmx"
STRUCTURE_FILE = f"{SDMX_FOLDER}/structure.xml"
AGENCY, VERSION = "INCROWD", "1.0"
_NEEDED = "`exports: [sdmx]` needs the extra `sdmx`: pip install 'incrowd[sdmx]'."
_TOTAL, _UNKNOWN, _OTHER = "_T", "_U", "_O"  # as SDMX's guidelines have them
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
_RESERVED = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
_MOST_NAME = 200
_ML = "{http://www.sdmx.org/resources/sdmxml/schemas/v3_0/structure}"
_COMMON = "{http://www.sdmx.org/resources/sdmxml/schemas/v3_0/common}"


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as a dimension: its identifier, its codes, and the code that each is a part of.

    ``codes`` has identifier and name by level and group, coarser levels first; ``parents`` the
    place of the code above.
    """

    id: str
    name: str
    codes: Mapping[tuple[int, int], tuple[str, str]]
    parents: Mapping[tuple[int, int], tuple[int, int]]

    @property
    def list_id(self) -> str:
        """The identifier of the code list."""
        return f"CL_{self.id}"

    @classmethod
    def build(cls, id_: str, column: TabulatedColumn, total: str | None) -> CodedColumn:
        """Return the codes of all levels of a column."""
        top = column.root if total is not None else column.root - 1
        listed = [
            ((level, group), label)
            for level in range(top, -1, -1)
            for group, label in enumerate(column.list_labels(level, total or ""))
        ]
        labels = [label for _, label in listed]
        codes: dict[tuple[int, int], tuple[str, str]] = {}
        for place, label in listed:
            is_clear = label is not None and labels.count(label) == 1 and _CODE.fullmatch(label)
            code = str(label) if is_clear else f"_L{place[0]}_{place[1]}"
            name = "missing" if label is None else _clean_name(label)
            if place[0] == column.root:
                code = _TOTAL
            elif place[0] == 0 and label is None:
                code = _UNKNOWN
            elif place[0] == 0 and column.has_other and place[1] == column.size - 1:
                code = _OTHER
            codes[place] = code, name
        parents = {
            (level, group): (level + 1, parent)
            for level in range(top)
            for group, parent in enumerate(column.list_parents(level, level + 1).tolist())
        }
        return cls(id_, _clean_name(column.name), codes, parents)


@dataclass(frozen=True, eq=False)
class SdmxTable:
    """A table as a dataflow: its identifier, and its columns as dimensions, in order."""

    id: str
    name: str
    columns: tuple[str, ...]
    dimensions: tuple[CodedColumn, ...]
    measures: tuple[str, ...]

    @property
    def structure_id(self) -> str:
        """The identifier of its data structure definition."""
        return f"DSD_{self.id}"

    @property
    def file(self) -> str:
        """The path of its data in a release."""
        return f"{SDMX_FOLDER}/{self.id.lower().replace('_', '-')}.csv"


@dataclass(frozen=True, eq=False)
class SdmxDescription:
    """All that the structure of some tables says."""

    tables: tuple[SdmxTable, ...]
    columns: tuple[CodedColumn, ...]

    @classmethod
    def build(cls, part: TabulationPart, columns: Mapping[str, TabulatedColumn]) -> SdmxDescription:
        """Describe tables, whose columns are given by name."""
        ids = _name_dimensions(part)
        coded = {
            name: CodedColumn.build(ids[name], columns[name], part.total) for name in part.columns
        }
        tables = tuple(
            SdmxTable(
                f"TABLE_{at}",
                _clean_name(" by ".join([*filter(None, [entry.sum]), *entry.columns])),
                tuple(entry.columns),
                tuple(coded[name] for name in entry.columns),
                tuple(list_figures(entry)),
            )
            for at, entry in enumerate(part.tables, 1)
        )
        return cls(tables, tuple(coded.values()))

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of all files, the structure first."""
        return STRUCTURE_FILE, *(table.file for table in self.tables)

    @cached_property
    def outline(self) -> dict[str, list[tuple[str, str]]]:
        """What the file of the structure must hold: the entries of each artefact, by identifier."""
        outline = {}
        for column in self.columns:
            outline[column.list_id] = [*column.codes.values()]
            outline[f"H_{column.id}"] = [
                (code, column.codes[column.parents[place]][0] if place in column.parents else "")
                for place, (code, _) in column.codes.items()
            ]
        for table in self.tables:
            outline[table.structure_id] = [
                *((column.id, column.list_id) for column in table.dimensions),
                *((name_measure(figure), "") for figure in table.measures),
            ]
            outline[table.id] = [(table.structure_id, table.name)]
        return outline


def name_measure(figure: str) -> str:
    """Return the identifier of a figure."""
    return "OBS_VALUE" if figure == "count" else figure.upper()


def _clean_name(text: str) -> str:
    """Return a text that XML can hold, on one line."""
    cleaned = "".join(x if x.isprintable() else " " for x in text)[:_MOST_NAME].strip()
    return cleaned or "-"


def _name_dimensions(part: TabulationPart) -> dict[str, str]:
    """Return an identifier for each column: its name in capitals, as far as they are allowed."""
    reserved = {
        *_RESERVED,
        *(name_measure(x) for entry in part.tables for x in list_figures(entry)),
    }
    ids: dict[str, str] = {}
    for name in part.columns:
        plain = re.sub(r"[^A-Z0-9_]", "_", name.upper())[:50]
        base = plain if re.match(r"[A-Z]", plain) else f"C_{plain}"
        chosen, number = base, 1
        while chosen in reserved:
            number += 1
            chosen = f"{base}_{number}"
        reserved.add(chosen)
        ids[name] = chosen
    return ids


# Writing --------------------------------------------------------------------------------------


def require_sdmx() -> Any:
    """Return the library's model; refuse if it is not installed."""
    try:
        import_module("pysdmx.io.xml")
        return import_module("pysdmx.model")
    except ImportError as error:
        raise IncrowdError(_NEEDED) from error


class DescribedLines(Protocol):
    """The lines of a table, which are gone through anew by whoever asks."""

    def iter_lines(self, headers: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some columns, line by line."""
        ...


def write_sdmx(draft: Path, description: SdmxDescription, tables: Sequence[DescribedLines]) -> None:
    """Write the structure, and the data of tables."""
    (draft / SDMX_FOLDER).mkdir()
    (draft / STRUCTURE_FILE).write_text(_make_structure(description), encoding="utf-8")
    for table, lines in zip(description.tables, tables, strict=True):
        with (draft / table.file).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows(_list_rows(table, lines))


def _list_rows(table: SdmxTable, lines: DescribedLines) -> Iterator[list[str]]:
    """Yield the lines of a table's data, its header first."""
    dimensions = [column.id for column in table.dimensions]
    yield [*_RESERVED, *dimensions, *map(name_measure, table.measures)]
    start = ["dataflow", f"{AGENCY}:{table.id}({VERSION})", "I"]
    codes = [dimension.codes for dimension in table.dimensions]
    headers = [f"{name}_{part}" for part in ("level", "code") for name in table.columns]
    width = len(dimensions)
    for line in lines.iter_lines([*headers, *table.measures]):
        places = zip(codes, line[:width], line[width : 2 * width], strict=True)
        yield [
            *start,
            *(listed[level, group][0] for listed, level, group in places),
            *("" if x is None else str(x) for x in line[2 * width :]),
        ]


def _make_structure(description: SdmxDescription) -> str:
    """Return the structure as SDMX-ML; the same for the same tables."""
    model = require_sdmx()
    io, formats = import_module("pysdmx.io"), import_module("pysdmx.io.format")
    header = import_module("pysdmx.model.message").Header(
        id="TABLES",
        prepared=dt.datetime(1980, 1, 1, tzinfo=dt.UTC),
        sender=model.Organisation(id=AGENCY),
    )
    common = {"agency": AGENCY, "version": VERSION}
    lists = {
        column.id: model.Codelist(
            id=column.list_id,
            name=column.name,
            items=[model.Code(id=code, name=name) for code, name in column.codes.values()],
            **common,
        )
        for column in description.columns
    }
    hierarchies = [_make_hierarchy(model, column, common) for column in description.columns]
    measures = dict.fromkeys(x for table in description.tables for x in table.measures)
    concepts = model.ConceptScheme(
        id="CONCEPTS",
        name="Columns and figures",
        items=[
            *(model.Concept(id=column.id, name=column.name) for column in description.columns),
            *(model.Concept(id=name_measure(x), name=x) for x in measures),
        ],
        **common,
    )
    structures, flows = [], []
    for table in description.tables:
        components = [
            *(
                _make_component(model, x.id, model.Role.DIMENSION, local_codes=lists[x.id])
                for x in table.dimensions
            ),
            *(
                _make_component(
                    model, name_measure(x), model.Role.MEASURE,
                    local_dtype=model.DataType.LONG if x == "count" else model.DataType.DOUBLE,
                )
                for x in table.measures
            ),
        ]  # fmt: skip
        structure = model.DataStructureDefinition(
            id=table.structure_id, name=table.name, components=model.Components(components),
            **common,
        )  # fmt: skip
        structures.append(structure)
        flows.append(model.Dataflow(id=table.id, name=table.name, structure=structure, **common))
    text: str = io.write_sdmx(
        [*lists.values(), *hierarchies, concepts, *structures, *flows],
        formats.Format.STRUCTURE_SDMX_ML_3_0,
        header=header,
    )
    return text


def _make_component(model: Any, id_: str, role: Any, **representation: Any) -> Any:
    concept = model.ItemReference(
        sdmx_type="Concept", agency=AGENCY, id="CONCEPTS", version=VERSION, item_id=id_
    )
    is_required = role == model.Role.DIMENSION
    return model.Component(
        id=id_, required=is_required, role=role, concept=concept, **representation
    )


def _make_hierarchy(model: Any, column: CodedColumn, common: Mapping[str, str]) -> Any:
    """Return which codes of a column are parts of which."""
    parts: dict[tuple[int, int] | None, list[tuple[int, int]]] = {}
    for place in column.codes:
        parts.setdefault(column.parents.get(place), []).append(place)

    def make_code(place: tuple[int, int]) -> Any:
        code, name = column.codes[place]
        urn = (
            f"urn:sdmx:org.sdmx.infomodel.codelist.Code={AGENCY}:{column.list_id}({VERSION}).{code}"
        )
        below = [make_code(part) for part in parts.get(place, ())]
        return model.HierarchicalCode(id=code, name=name, urn=urn, codes=below)

    return model.Hierarchy(
        id=f"H_{column.id}", name=column.name, codes=[make_code(x) for x in parts[None]], **common
    )


# Checking -------------------------------------------------------------------------------------


def check_sdmx(
    folder: Path, description: SdmxDescription, tables: Sequence[DescribedLines]
) -> list[Finding]:
    """Return what is different in the files of SDMX from the tables of a release.

    The library is not needed: the structure is read for what it must hold.
    """
    try:
        outline = _read_outline((folder / STRUCTURE_FILE).read_bytes())
    except (ParseError, LookupError, ValueError):
        outline = {}
    findings = []
    if outline != description.outline:
        findings.append(make_finding("EXPORT_DIFFERS", file=STRUCTURE_FILE))
    for table, lines in zip(description.tables, tables, strict=True):
        with (folder / table.file).open(encoding="utf-8", newline="") as file:
            rows = zip_longest(csv.reader(file), _list_rows(table, lines))
            if any(row != expected for row, expected in rows):
                findings.append(make_finding("EXPORT_DIFFERS", file=table.file))
    return findings


def _read_outline(text: bytes) -> dict[str, list[tuple[str, str]]]:
    """Return what a structure holds, as :attr:`SdmxDescription.outline` has it."""
    root, outline = parse_xml(text), {}  # noqa: S314 - expat limits what entities expand to
    for codes in root.iter(f"{_ML}Codelist"):
        outline[codes.attrib["id"]] = [
            (x.attrib["id"], _find_text(x, f"{_COMMON}Name")) for x in codes.iter(f"{_ML}Code")
        ]
    for hierarchy in root.iter(f"{_ML}Hierarchy"):
        above = dict.fromkeys(hierarchy.findall(f"{_ML}HierarchicalCode"), "")
        for code in hierarchy.iter(f"{_ML}HierarchicalCode"):
            above |= dict.fromkeys(code.findall(f"{_ML}HierarchicalCode"), code.attrib["id"])
        listed = outline[f"CL_{hierarchy.attrib['id'].removeprefix('H_')}"]
        parents = {x.attrib["id"]: parent for x, parent in above.items()}
        outline[hierarchy.attrib["id"]] = [(code, parents[code]) for code, _ in listed]
    for structure in root.iter(f"{_ML}DataStructure"):
        outline[structure.attrib["id"]] = [
            *(
                (x.attrib["id"], _find_artefact(_find_text(x, f".//{_ML}Enumeration")))
                for x in structure.iter(f"{_ML}Dimension")
            ),
            *((x.attrib["id"], "") for x in structure.iter(f"{_ML}Measure")),
        ]
    for flow in root.iter(f"{_ML}Dataflow"):
        named = _find_artefact(_find_text(flow, f"{_ML}Structure"))
        outline[flow.attrib["id"]] = [(named, _find_text(flow, f"{_COMMON}Name"))]
    return outline


def _find_text(element: Element, path: str) -> str:
    return element.findtext(path) or ""


def _find_artefact(urn: str) -> str:
    """Return the identifier in the URN of an artefact of ours."""
    match = re.fullmatch(rf".*={AGENCY}:([^()]+)\({re.escape(VERSION)}\)", urn)
    return match.group(1) if match else ""
