"""Statements about resources, as Turtle and as JSON-LD: as much of RDF as a catalog needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Iri:
    """An address, or a path relative to the document."""

    value: str


@dataclass(frozen=True)
class Literal:
    """A text with its language, or a value with its datatype such as ``xsd:date``."""

    text: str
    datatype: str = ""
    language: str = ""


@dataclass(frozen=True)
class Resource:
    """A resource with its properties; without an address it exists within another's alone."""

    types: Sequence[str]
    properties: Sequence[tuple[str, Term]]
    iri: Iri | None = None


Term: TypeAlias = Iri | Literal | Resource
_INDENT = "    "


@dataclass
class Graph:
    """Resources, and the prefixes that their names begin with."""

    prefixes: Mapping[str, str]
    resources: list[Resource] = field(default_factory=list)

    def to_turtle(self) -> bytes:
        """Write the graph as Turtle."""
        lines = [f"@prefix {name}: <{iri}> ." for name, iri in self.prefixes.items()]
        for resource in self.resources:
            assert resource.iri is not None
            subject = _write_iri(resource.iri)
            lines += ["", f"{subject} {_write_properties(resource, 1)} ."]
        return "\n".join([*lines, ""]).encode()

    def to_json_ld(self) -> bytes:
        """Write the graph as JSON-LD."""
        document = {
            "@context": dict(self.prefixes),
            "@graph": [_convert_resource(resource) for resource in self.resources],
        }
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode() + b"\n"


def _write_properties(resource: Resource, depth: int) -> str:
    indent = _INDENT * depth
    parts = [f"a {', '.join(resource.types)}"] if resource.types else []
    parts += [f"{name} {_write_term(value, depth)}" for name, value in resource.properties]
    return f" ;\n{indent}".join(parts)


def _write_term(term: Term, depth: int) -> str:
    match term:
        case Iri():
            return _write_iri(term)
        case Literal(text, datatype, language):
            quoted = f'"{_escape_text(text)}"'
            if datatype:
                return f"{quoted}^^{datatype}"
            return f"{quoted}@{language}" if language else quoted
        case Resource():
            if term.iri is not None:
                return _write_iri(term.iri)
            inner, indent = _write_properties(term, depth + 1), _INDENT * (depth + 1)
            return f"[\n{indent}{inner}\n{_INDENT * depth}]"


def _write_iri(iri: Iri) -> str:
    return f"<{_escape_iri(iri.value)}>"


def _escape_iri(text: str) -> str:
    """Return an address without characters that Turtle does not allow in one."""
    return re.sub(r'[\x00-\x20<>"{}|\\^`]', lambda match: f"%{ord(match[0]):02X}", text)


def _escape_text(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    text = "".join(escapes.get(letter, letter) for letter in text)
    return re.sub("[\x00-\x1f\x7f]", lambda match: f"\\u{ord(match[0]):04X}", text)


def _convert_resource(resource: Resource) -> dict[str, Any]:
    node: dict[str, Any] = {} if resource.iri is None else {"@id": _escape_iri(resource.iri.value)}
    if resource.types:
        node["@type"] = list(resource.types)
    for name, value in resource.properties:
        node.setdefault(name, []).append(_convert_term(value))
    return node


def _convert_term(term: Term) -> dict[str, Any]:
    match term:
        case Iri(value):
            return {"@id": _escape_iri(value)}
        case Literal(text, datatype, language):
            kind = {"@type": datatype} if datatype else {"@language": language} if language else {}
            return {"@value": text, **kind}
        case Resource():
            if term.iri is not None:
                return {"@id": _escape_iri(term.iri.value)}
            return _convert_resource(term)


def list_pairs(name: str, values: Iterable[Term | None]) -> list[tuple[str, Term]]:
    """Return a property with each of its values; none for a value that is missing."""
    return [(name, value) for value in values if value is not None]
