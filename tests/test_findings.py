"""The catalog of findings and the code that uses it fit together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import incrowd
from incrowd.errors import IncrowdWarning
from incrowd.findings import (
    Finding,
    Severity,
    catalog,
    count_findings,
    fill_template,
    make_finding,
    sort_findings,
)

ROOT = Path(incrowd.__file__).parent
TEXTS = {"message", "text", "remedy", "studio_remedy", "finding", "problem", "warning"}
RECOGNIZERS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "split"}
PATTERNS = {"match", "search", "fullmatch", "sub", "split", "findall"}


def emitted(root: Path) -> Iterator[tuple[str, str | None, set[str]]]:
    """Every call of make_finding: its place, its code, the names of its values."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "make_finding":
                code = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
                names = {keyword.arg or "**" for keyword in node.keywords}
                yield f"{path.name}:{node.lineno}", str(code) if code else None, names


def test_every_emitted_code_is_in_the_catalog_with_its_values() -> None:
    for place, code, names in emitted(ROOT):
        assert code is not None, place
        assert code in catalog(), f"{place}: {code}"
        assert names == catalog()[code].fields(), f"{place}: {code}"


def test_every_code_of_the_catalog_is_emitted_and_explained() -> None:
    assert {code for _, code, _ in emitted(ROOT)} == set(catalog())
    for code, entry in catalog().items():
        assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", code)
        assert entry.explanation.endswith("."), code
        assert "\n" not in entry.message + entry.remedy, code


def test_a_wrong_call_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text('make_finding("NO_SUCH_CODE", column, rows=1)')
    assert list(emitted(tmp_path)) == [("planted.py:1", "NO_SUCH_CODE", {"rows"})]


def recognized(root: Path) -> list[str]:
    """Calls that look into the text of a message or a finding."""
    result = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
                looks = [node.comparators[0]]
                looks = looks if isinstance(node.left, ast.Constant | ast.JoinedStr) else []
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                pattern = getattr(node.func.value, "id", "") == "re" and node.func.attr in PATTERNS
                looks = node.args[1:] if pattern else []
                looks = [node.func.value] if node.func.attr in RECOGNIZERS and not looks else looks
            else:
                continue
            for look in looks:
                name = look.attr if isinstance(look, ast.Attribute) else ""
                if name in TEXTS:
                    result.append(f"{path.name}:{node.lineno}")
    return result


def test_no_module_recognizes_a_message_by_its_text() -> None:
    assert recognized(ROOT) == []


@pytest.mark.parametrize(
    "line",
    [
        'one.message.startswith("expect: ")',
        're.sub("a", "b", one.message)',
        '"read from" in finding.message',
        "finding.remedy.partition('. ')",
    ],
)
def test_recognition_would_be_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "planted.py").write_text(line)
    assert recognized(tmp_path) == ["planted.py:1"]


def test_a_finding_renders_its_values() -> None:
    finding = make_finding("ROWS_WITHOUT_ID", "who", rows=1200, id="who")
    assert finding.message == "Column 'who': 1,200 rows have no id."
    assert finding.remedy == (
        "Add the ids, or drop these rows: `unit: {id: who, without_id: drop}`."
    )
    assert finding.studio_remedy.endswith("on the Person page.")
    assert str(finding) == f"{finding.message} {finding.remedy}"
    assert finding.as_dict() == {
        "code": "ROWS_WITHOUT_ID", "severity": "error", "column": "who",
        "values": {"rows": 1200, "id": "who"}, "message": finding.message, "remedy": finding.remedy,
    }  # fmt: skip
    assert IncrowdWarning(finding).finding is finding
    assert str(IncrowdWarning(finding)) == str(finding)


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("{rows:row|rows}", {"rows": 1}, "1 row"),
        ("{rows:row|rows}", {"rows": 2000}, "2,000 rows"),
        ("{share:%}", {"share": 0.123}, "12.3 %"),
        ("a{near:? Did you mean '$'?}", {"near": "b"}, "a Did you mean 'b'?"),
        ("a{near:? Did you mean '$'?}", {"near": None}, "a"),
        ("{more:? and $ more}", {"more": 0}, ""),
        ("{listed}", {"listed": ["a", "{b}"]}, "a, {b}"),
    ],
)
def test_templates(template: str, values: dict[str, str | int | float | None], text: str) -> None:
    assert fill_template(template, values) == text


def test_findings_are_sorted_and_counted() -> None:
    result = [
        Finding("K_IS_ONE", severity)
        for severity in (Severity.NOTE, Severity.WARNING, Severity.ERROR, Severity.WARNING)
    ]
    assert [finding.severity.value for finding in sort_findings(result)] == [
        "error", "warning", "warning", "note",
    ]  # fmt: skip
    assert count_findings(result) == "1 error, 2 warnings."
    assert count_findings(result[:2]) == "No errors, 1 warning."
