"""What one `publish` runs through: functions, files, and how often the way goes back and forth.

    PYTHONPATH=src python benchmarks/walk.py [--method safe] [--json]

A made-up table of voters is published with seeded bits while every call inside the package is
recorded. *Making* is every step up to the written release, *judging* the measures, attacks and
report that follow. A return is A -> B -> A in the order in which functions are first called: a
reader who follows the walk opens file A, then B, then A again. Size and names are counted from the
source: lines, modules, class names that exist twice, public functions that are a bare participle.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import incrowd
from incrowd.privacy.randomness import SeededRandomness

ROOT = Path(incrowd.__file__).parent
JUDGING = {"measure", "attack", "report", "judge"}
PARTICIPLE = re.compile(
    r"(taken|told|drawn|shown|held|made|kept|found|known|said|given|seen|written|chosen|"
    r"[a-z]*[^e_]ed)"
)
SPEC = {
    "safe": {"method": "safe", "epsilon": 1.0, "delta": 1e-6},
    "k-anonymity": {"method": "k-anonymity", "k": 5, "suppression": 0.05},
}


@dataclass
class CallTrace:
    """The functions that were called, in the order of their first calls."""

    making: set[tuple[str, str]] = field(default_factory=set)
    judging: set[tuple[str, str]] = field(default_factory=set)
    files: list[str] = field(default_factory=list)
    made: int = 0
    step: str = "open"

    def record_call(self, frame: FrameType, event: str, _argument: object) -> None:
        """Record one call (a profiling function of ``sys.setprofile``)."""
        if event != "call" or not (function := _find_function(frame)):
            return
        if (
            function not in self.making
            and function not in self.judging
            and self.files[-1:] != [function[0]]
        ):
            self.files.append(function[0])
            self.made += self.step not in JUDGING
        (self.judging if self.step in JUDGING else self.making).add(function)

    @property
    def returns(self) -> int:
        """Count the places where the walk goes to another file and straight back."""
        return _count_returns(self.files)

    @property
    def returns_making(self) -> int:
        """Count those before the release is judged."""
        return _count_returns(self.files[: self.made])


def _count_returns(files: list[str]) -> int:
    return sum(file == after for file, after in zip(files, files[2:], strict=False))


def _find_function(frame: FrameType | None) -> tuple[str, str] | None:
    if frame is None or not frame.f_code.co_filename.startswith(f"{ROOT}/"):
        return None
    if frame.f_code.co_name == "<module>":
        return None
    return str(Path(frame.f_code.co_filename).relative_to(ROOT)), frame.f_code.co_qualname


@dataclass(frozen=True)
class CodeFigures:
    """What HOUSE.md's table counts."""

    lines: int
    modules: int
    functions_making: int
    files_making: int
    functions_judging_only: int
    files_judging_only: int
    returns: int
    returns_making: int
    participles: float
    mean_name_length: float
    class_names_twice: int
    longest_file: int


def measure_publish(method: str) -> CodeFigures:
    """Publish a table of voters and count what was called, and what the source holds."""
    walk = trace_publish(method)
    making_files = {file for file, _ in walk.making}
    only = walk.judging - walk.making
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
    names, classes = _list_names(sources.values())
    return CodeFigures(
        lines=sum(text.count("\n") for text in sources.values()),
        modules=len(sources),
        functions_making=len(walk.making),
        files_making=len(making_files),
        functions_judging_only=len(only),
        files_judging_only=len({file for file, _ in only} - making_files),
        returns=walk.returns,
        returns_making=walk.returns_making,
        participles=sum(map(bool, map(PARTICIPLE.fullmatch, names))) / len(names),
        mean_name_length=sum(map(len, names)) / len(names),
        class_names_twice=sum(count > 1 for count in Counter(classes).values()),
        longest_file=max(text.count("\n") for text in sources.values()),
    )


def trace_publish(method: str) -> CallTrace:
    """Publish with seeded bits, once to load every module and once to record the calls."""
    walk = CallTrace()
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_STATE_HOME"] = home  # what the user has released before is not touched
        table, spec = _write_voters(Path(home), SPEC[method])
        _publish_table(table, spec, lambda _: None)
        sys.setprofile(walk.record_call)
        try:
            _publish_table(table, spec, lambda name: setattr(walk, "step", name))
        finally:
            sys.setprofile(None)
    return walk


def _publish_table(table: Path, spec: dict[str, Any], step: Callable[[str], None]) -> None:
    bits = SeededRandomness(1)
    with tempfile.TemporaryDirectory() as home, warnings.catch_warnings(action="ignore"):
        incrowd.publish(str(table), spec, output=Path(home) / "out", bits=bits, step=step)


def _write_voters(home: Path, release: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    table = home / "voters.csv"
    rows = [
        f"{32000 + number % 7},{'female' if number % 3 else 'male'},{1950 + number % 11}"
        for number in range(3000)
    ]
    table.write_text("zip,sex,year\n" + "\n".join(rows) + "\n", encoding="utf-8")
    columns = {
        "zip": {"role": "quasi", "hierarchy": {"mask": {"length": 5}}},
        "sex": {"role": "quasi", "hierarchy": {"groups": {"*": ["female", "male"]}}},
        "year": {
            "role": "quasi",
            "hierarchy": {"intervals": {"from": 1940, "to": 1980, "widths": [5, 20]}},
        },
    }
    return table, {"unit": "one row per person", "columns": columns, "release": release}


def _list_names(sources: Any) -> tuple[list[str], list[str]]:
    """List the names of public functions and methods, and of classes."""
    functions, classes = [], []
    for text in sources:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                classes.append(node.name)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append(node.name)
    return [name for name in functions if not name.startswith("_")], classes


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="safe", choices=sorted(SPEC))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = asdict(measure_publish(options.method))
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):26}{value:,.3f}".rstrip("0").rstrip("."))


if __name__ == "__main__":
    main()
