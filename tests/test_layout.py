"""Imports go one way: a module may import its own layer and those above it in LAYERS."""

from __future__ import annotations

import ast
from pathlib import Path

import incrowd

ROOT = Path(incrowd.__file__).parent
LAYERS = [
    {"errors", "values", "quoting", "folder", "memory"},
    {"spec", "hierarchy"},
    {"specfile", "builders", "privacy", "anonymize", "measure", "formulas"},
    {"engine", "statements", "ledger"},
    {"certificate"},
    {"planning", "pairing", "checking", "drafting", "samples", "evaluating", "outcome"},
    {"associating", "settling", "slicer"},
    {"grid", "grouping", "product"},
    {"schemes"},
    {"deciding"},
    {"safely", "classical", "noisy"},
    {"choosing", "relinking"},
    {"comparing"},
    {"previewing", "papers", "report"},
    {"release"},
    {"verifying", "demo"},
    {"showing"},
    {"subcommands"},
    {"cli"},
    {"__main__"},
]
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}
TABLE_LIBRARIES = {"polars", "pandas", "pyarrow", "pyspark"}


def part(module: str) -> str:
    """The top-level part of incrowd that a dotted module name belongs to."""
    return module.split(".")[1] if "." in module else "__init__"


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "incrowd":
                found |= {f"incrowd.{name.name}" for name in node.names}
    return found


def test_every_import_points_down() -> None:
    for path in ROOT.rglob("*.py"):
        here = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if here == "__init__":
            continue
        for module in imports(path):
            there = part(module)
            if module.startswith("incrowd.") and there in RANKS:
                assert RANKS[there] <= RANKS[here], f"{path.name} imports {module}"


def test_every_module_has_a_rank() -> None:
    present = {path.name.removesuffix(".py") for path in ROOT.iterdir()}
    assert present - {"__init__", "__pycache__", "py.typed"} == set(RANKS)


def test_only_the_engine_touches_tables() -> None:
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] != "engine":
            assert not {module.split(".")[0] for module in imports(path)} & TABLE_LIBRARIES
