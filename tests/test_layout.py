"""The house: every module has a room, imports point to earlier rooms, checks share no code."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import incrowd

ROOT = Path(incrowd.__file__).parent
HALL = {"__init__", "__main__", "findings", "errors", "arrays", "publication", "verification"}
ROOMS = (
    "arrays", "findings", "errors", "codes", "privacy", "spec", "measure", "anonymize", "engine",
    "release", "methods", "evaluation", "publication", "verification", "curate", "papers", "cli",
    "studio",
)  # fmt: skip
FORBIDDEN = ("incrowd.methods", "incrowd.anonymize", "incrowd.privacy.randomness")
ENGINES = tuple(
    f"incrowd.engine.{path.name}."
    for path in (ROOT / "engine").iterdir()
    if path.is_dir() and path.name != "__pycache__"
)
TABLE_LIBRARIES = {"fastexcel", "pandas", "polars", "pyarrow", "pyreadstat", "pyspark"}


def imported(path: Path) -> list[str]:
    """The dotted names that a module imports."""
    return _imported(path.read_text(encoding="utf-8"))


@cache
def _imported(text: str) -> list[str]:
    result = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            result += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            result += [f"{node.module}.{name.name}" for name in node.names]
    return result


def room(name: str) -> str:
    return name.split(".")[1]


def upward(root: Path) -> list[str]:
    """The imports that point to a later room, or from the check of a release to its making."""
    result = []
    for path in sorted(root.rglob("*.py")):
        folder = path.relative_to(root).parts[0].removesuffix(".py")
        for name in imported(path):
            if folder in ROOMS and name.startswith("incrowd.") and room(name) in ROOMS:
                later = ROOMS.index(room(name)) > ROOMS.index(folder)
                shared = folder == "release" and name.startswith(FORBIDDEN)
                result += [f"{path.relative_to(root)} imports {name}"] if later or shared else []
    return result


def test_no_import_points_upward() -> None:
    assert upward(ROOT) == []


def test_an_upward_import_would_be_found(tmp_path: Path) -> None:
    for folder, name in (
        ("codes", "from incrowd.spec.model import Column"),
        ("release", "from incrowd.anonymize.safe_sample import safe"),
        ("release", "from incrowd.privacy import randomness"),
        ("methods/safe", "import incrowd.publication"),
        ("evaluation", "from incrowd.publication import publish"),
    ):
        path = tmp_path / folder / "planted.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def late():\n    {name}\n", encoding="utf-8")
        assert len(upward(tmp_path)) == 1, name
        path.write_text("from incrowd.errors import IncrowdError\n", encoding="utf-8")
        assert upward(tmp_path) == []


def test_every_module_has_a_room() -> None:
    loose = {path.stem for path in ROOT.glob("*.py")}
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert loose <= HALL
    assert rooms <= set(ROOMS) - HALL


def test_only_the_engine_touches_tables() -> None:
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] != "engine":
            assert not {name.split(".")[0] for name in imported(path)} & TABLE_LIBRARIES


def inside(root: Path) -> list[str]:
    """The imports, from outside the engine's room, of what only one engine is made of."""
    return [
        f"{path.relative_to(root)} imports {name}"
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] != "engine"
        for name in imported(path)
        if f"{name}.".startswith(ENGINES)
    ]


def test_nothing_outside_looks_inside_an_engine() -> None:
    assert inside(ROOT) == []


def test_a_look_inside_an_engine_would_be_found(tmp_path: Path) -> None:
    for folder, name, result in (
        ("release", "from incrowd.engine.local.parquet import chunks", 1),
        ("curate", "from incrowd.engine import local", 1),
        ("methods/safe", "import incrowd.engine.local.table as tables", 1),
        ("methods/safe", "from incrowd.engine.source import local_engine", 0),
        ("engine", "from incrowd.engine.local.table import LocalTable", 0),
    ):
        path = tmp_path / folder / "planted.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def late():\n    {name}\n", encoding="utf-8")
        assert len(inside(tmp_path)) == result, name
        path.unlink()


def test_files_are_named_by_things_and_stay_small() -> None:
    tests_root = Path(__file__).parent
    for root, most in ((ROOT, 450), (tests_root, 500)):
        for path in root.rglob("*.py"):
            lines = _lines_of_code(path.read_text(encoding="utf-8"))
            assert lines <= most, f"{path.relative_to(root)} has {lines} lines"
            assert not path.stem.endswith("ing"), f"{path.relative_to(root)} is a gerund"


def _lines_of_code(text: str) -> int:
    """Return the number of lines without docstrings; those of public names are long."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    first = [node.body[0] for node in ast.walk(ast.parse(text))
             if isinstance(node, kinds) and ast.get_docstring(node)]  # fmt: skip
    return text.count("\n") - sum((item.end_lineno or 0) - item.lineno + 1 for item in first)


def test_a_test_lies_in_the_room_of_what_it_tests() -> None:
    """Or among journeys, or tests of the site; and it shares with others through support alone."""
    for path in Path(__file__).parent.glob("*/test_*.py"):
        room, about = ROOT / path.parent.name, path.stem.removeprefix("test_")
        names = {"_".join(x.relative_to(room).with_suffix("").parts) for x in room.rglob("*.py")}
        elsewhere = path.parent.name in ("journeys", "docs")
        is_known = elsewhere or any(about.startswith(name) for name in names)
        assert is_known, f"no module of {room.name} is called like {path.name}"
        for name in imported(path):
            assert not any(part.startswith("test_") for part in name.split(".")[:-1]), path.name
