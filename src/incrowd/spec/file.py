"""A spec in a YAML file: read with all its problems at once, written with its comments kept."""

from __future__ import annotations

import datetime as dt
import difflib
import io
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, MarkedYAMLError, YAMLError
from ruamel.yaml.tokens import CommentToken

from incrowd.errors import IncrowdError, ParameterError
from incrowd.spec.model import (
    PUBLISHED_ID,
    UNPUBLISHED,
    Spec,
    list_misplaced_roles,
)
from incrowd.spec.problem import Place, Problem, SpecError, find_line, make_problem
from incrowd.spec.purpose import complete_release
from incrowd.spec.table_request import list_summed_columns

_MOST_ENTRIES = 2_000_000
_TABLE_SUFFIXES = (
    ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".xlsx", ".xls", ".ods",
    ".sav", ".dta", ".sas7bdat", ".por", ".xpt",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SpecFile:
    """A spec together with its YAML document, comments included."""

    path: Path | None
    document: CommentedMap
    spec: Spec

    @property
    def folder(self) -> Path:
        """The folder that the relative paths of the spec are relative to."""
        return self.path.parent if self.path else Path()

    @property
    def shell_name(self) -> str:
        """The path as a command line takes it; SPEC for a spec that is no file."""
        return shlex.quote(str(self.path)) if self.path else "SPEC"

    def with_entry(self, place: Place, value: Any) -> SpecFile:
        """Return the same file with one entry set (or, with None, removed); comments stay."""
        return self.with_entries({place: value})

    def with_entries(self, changes: Mapping[Place, Any]) -> SpecFile:
        """Return the same file with some entries set (or, with None, removed); comments stay."""
        document = _make_yaml().load(self.text())
        for (*parents, last), value in changes.items():
            node = document
            for key in parents:
                _detach_comment(node, _find_written_key(node, key))
                node = node[_find_written_key(node, key)]
            if value is None:
                _remove_key(node, _find_written_key(node, last))
            else:
                node[_find_written_key(node, last)] = _format_list(value)
        return parse_spec(_dump_yaml(document), path=self.path)

    def preview_entries(self, changes: Mapping[Place, Any]) -> SpecFile:
        """Return the same with some entries set (or, with None, removed), to try and not to save.

        Comments are lost. A long spec takes a hundredth of the time of :meth:`with_entries`, which
        writes and reads it again.
        """
        plain = _convert_to_plain(self.document, [_MOST_ENTRIES], _name_source(self.path))
        for (*parents, last), value in changes.items():
            node = plain
            for key in parents:
                node = node[_find_written_key(node, key)]
            if value is None:
                node.pop(_find_written_key(node, last), None)
            else:
                node[_find_written_key(node, last)] = value
        spec = _validate_plain(self.document, plain, _name_source(self.path))
        return SpecFile(self.path, CommentedMap(plain), spec)

    def with_all_confirmed(self) -> SpecFile:
        """Return the same with nothing left to confirm: for a preview, not to publish by it."""
        columns = {
            name: column.model_copy(update={"confirm": ()})
            for name, column in self.spec.columns.items()
        }
        return replace(self, spec=self.spec.model_copy(update={"columns": columns, "confirm": ()}))

    def text(self) -> str:
        """Return the document as YAML."""
        return self._text

    @cached_property
    def _text(self) -> str:
        return _dump_yaml(self.document)  # once: nobody changes a document that was read


def _detach_comment(node: Any, key: Any) -> None:
    """Let a comment follow what it stands behind, however long that becomes."""
    tokens = node.ca.items.get(key) if isinstance(node, CommentedMap) else None
    if tokens and tokens[2] is not None:
        tokens[2].start_mark.column = 0


def _format_list(value: Any) -> Any:
    """Return a list as a draft writes it."""
    if not isinstance(value, list):
        return value
    listed = CommentedSeq(value)
    listed.fa.set_flow_style()
    return listed


def _remove_key(node: Any, key: Any) -> None:
    """Take a key out; the comment below it belongs to what follows, and stays."""
    keys = list(node)
    if key not in keys:
        return
    at, below = keys.index(key), _find_comment_below(node, key)
    node.ca.items.pop(key, None)
    node.pop(key)
    if not at or not below:
        return
    before = node.ca.items.setdefault(keys[at - 1], [None, None, None, None])
    if before[2] is None:
        before[2] = CommentToken(f"\n{below}", CommentMark(0), None)
    else:
        before[2].value = f"{before[2].value.rstrip(chr(10))}\n{below}"


def _find_comment_below(node: Any, key: Any) -> str:
    """Return the comment lines between an entry, however deep, and what follows it."""
    tokens = node.ca.items.get(key) or ()
    lines = "".join(token.value for token in tokens if isinstance(token, CommentToken))
    comment_below = lines.partition("\n")[2]  # before it, what stands behind the entry
    inner = node[key]
    if comment_below or not isinstance(inner, CommentedMap | CommentedSeq) or not inner:
        return comment_below
    last = list(inner)[-1] if isinstance(inner, CommentedMap) else len(inner) - 1
    return _find_comment_below(inner, last)


def _find_written_key(node: Any, key: str | int) -> Any:
    """Return a key as the document writes it: 39 is the key of '39'."""
    written_key = {_format_key(other): other for other in node} if isinstance(node, dict) else {}
    return written_key.get(str(key), key)


class SpecText(Protocol):
    """An object that can write itself as a spec, as a draft can."""

    def yaml(self) -> str:
        """Return the text of the spec."""
        ...


SpecSource: TypeAlias = SpecFile | Path | str | Mapping[str, Any] | SpecText


def load_spec(spec: SpecSource) -> SpecFile:
    """Load a spec from its file as read, its path, its content, or a draft.

    A string with a line break is YAML text, with paths relative to the working directory; any
    other is a path.
    """
    if isinstance(spec, SpecFile):
        return spec
    if isinstance(spec, str) and "\n" in spec:
        return parse_spec(spec)
    if isinstance(spec, Mapping):
        return parse_spec(json.dumps(_convert_to_json(spec)))
    if isinstance(spec, str | os.PathLike):
        _refuse_table(str(spec))
        return read_spec_file(Path(spec))
    if callable(text := getattr(spec, "yaml", None)):
        return parse_spec(text())
    raise _make_spec_error(None if spec is None else type(spec).__name__)


def _refuse_table(path: str) -> None:
    """Refuse a table in the place of the spec, by its name: reading it would explain nothing."""
    name = path.lower().removesuffix(".gz")
    if "://" in name or name.endswith(_TABLE_SUFFIXES):
        raise _make_spec_error(path)


def _make_spec_error(value: str | None) -> ParameterError:
    return ParameterError(
        "spec", "be a spec, its path, its content or a draft", value,
        "The table comes first, the spec after it.",
    )  # fmt: skip


def _convert_to_json(value: Any) -> Any:
    """Return a program's spec values as JSON has them: text, numbers, lists, dictionaries."""
    match value:
        case Mapping():
            keys = [_format_key(key.tolist() if hasattr(key, "tolist") else key) for key in value]
            twice = [key for key, times in Counter(keys).items() if times > 1]
            if twice:
                raise SpecError(
                    "The spec", [Problem("", f"the key '{twice[0]}' occurs twice. Remove one.")]
                )
            return dict(zip(keys, map(_convert_to_json, value.values()), strict=True))
        case None | str() | bool() | int() | float():
            return value
        case dt.datetime() if value.time() == dt.time():
            return value.date().isoformat()
        case _ if hasattr(value, "tolist"):  # an array, or a number out of one
            return _convert_to_json(value.tolist())
        case list() | tuple():
            return [_convert_to_json(part) for part in value]
        case _:
            return str(value)


def _join_surrogates(text: str) -> str:
    """Return JSON with characters beyond U+FFFF as YAML writes them, not in two halves."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except ValueError:
        return text

    def join_pair(match: re.Match[str]) -> str:
        if match[1] is None:  # a backslash
            return match[0]
        halves = bytes.fromhex(match[1] + match[2])
        return f"\\U{ord(halves.decode('utf-16-be')):08X}"

    half = r"\\u({}[0-9a-fA-F]{{2}})"
    pairs = half.format("[dD][89abAB]") + half.format("[dD][c-fC-F]")
    return re.sub(rf"\\\\|{pairs}", join_pair, text).replace("\x7f", "\\x7F")


def read_spec_file(path: Path) -> SpecFile:
    """Read a spec file; raises :class:`SpecError` with everything that is wrong."""
    if path.suffix.lower() in _TABLE_SUFFIXES:
        raise IncrowdError(
            f"Spec '{path}': it is a table. Draft a spec: incrowd init {shlex.quote(str(path))}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise IncrowdError(f"Spec '{path}': not UTF-8 text. Name a YAML file.") from error
    except OSError as error:
        raise IncrowdError(
            f"Spec '{path}': cannot be read ({error.strerror}). Correct the path."
        ) from error
    return parse_spec(text, path=path)


def parse_spec(text: str, *, path: Path | None = None) -> SpecFile:
    """Read a spec from text; ``path`` is for messages and relative paths."""
    source = _name_source(path)
    try:
        document = _make_yaml().load(_join_surrogates(text))
    except MarkedYAMLError as error:
        mark, what = error.problem_mark, error.problem
        if error.context == "while scanning a quoted scalar" and "end of stream" in str(what):
            mark, what = error.context_mark, "a quote is opened here and never closed"
        line = mark.line + 1 if mark else None
        raise SpecError(
            source, [Problem("", f"not valid YAML: {what}. Correct it.", line)]
        ) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise SpecError(source, [Problem("", f"not valid YAML: {error}. Correct it.")]) from error
    if not isinstance(document, CommentedMap):
        raise SpecError(
            source,
            [Problem("", "it is not a mapping. Write `columns:` and the entries of each column.")],
        )
    plain = _convert_to_plain(document, [_MOST_ENTRIES], source)
    complete_release(document, plain)
    return SpecFile(path, document, _validate_plain(document, plain, source))


def _name_source(path: Path | None) -> str:
    return f"The spec '{path.name}'" if path else "The spec"


def _validate_plain(document: CommentedMap, plain: dict[str, Any], source: str) -> Spec:
    """Return the spec of plain values; raise with everything that is wrong."""
    problems = [
        Problem(".".join(place), message, find_line(document, place))
        for place, message in find_conflicts(plain)
    ]
    try:
        return Spec.model_validate(plain)
    except ValidationError as error:
        details = [detail for detail in error.errors() if detail["loc"]]
        model_problems = dict.fromkeys(make_problem(document, detail) for detail in details)
        problems = [*model_problems, *problems] or [make_problem(document, error.errors()[0])]
        raise SpecError(source, problems) from error


def find_conflicts(plain: Any) -> list[tuple[tuple[str, ...], str]]:
    """Return what does not fit together between parts of a spec, each with its place.

    The models check this too, but only when every part is right by itself; here it is found
    in any case, so that all problems can be listed together.
    """
    columns = plain.get("columns")
    columns = columns if isinstance(columns, dict) else {}
    release, unit = plain.get("release"), plain.get("unit")
    conflicts: list[tuple[tuple[str, ...], str]] = []

    def missing(name: str, *place: str) -> None:
        if name not in columns:
            close = difflib.get_close_matches(name, list(columns), n=1)
            hint = f"Did you mean '{close[0]}'?" if close else "Add it under `columns`."
            conflicts.append((place, f"the column '{name}' has no entry. {hint}"))

    if isinstance(unit, dict) and "id" in unit:
        named = str(unit["id"])
        missing(named, "unit", "id")
        column = columns.get(named)
        if isinstance(column, dict) and column.get("role") not in UNPUBLISHED:
            conflicts.append((("columns", named, "role"), PUBLISHED_ID))
    household = plain.get("household")
    listed = household.get("columns") if isinstance(household, dict) else None
    for name in listed if isinstance(listed, list) else ():
        missing(str(name), "household", "columns")
    if not isinstance(release, dict):
        return conflicts
    if isinstance(release.get("levels"), dict):
        for name in release["levels"]:
            missing(name, "release", "levels", name)
    if isinstance(release.get("target"), str):
        missing(release["target"], "release", "target")
    for name in list_summed_columns(release.get("tables")):
        missing(name, "release", "tables")
    for key in ("slices", "tables"):
        listed = release.get(key)
        for part in listed if isinstance(listed, list) else ():
            names = part.get("columns") if isinstance(part, dict) else part
            for name in names if isinstance(names, list) else ():
                missing(str(name), "release", key)
    if release.get("keep") is not None and release.get("beta") is not None:
        conflicts.append(
            (("release", "keep"), "`keep` and `beta` both set the sampling rate. Give one of them.")
        )
    conflicts += list_misplaced_roles(release, columns)
    return conflicts


def _make_yaml() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000  # a line of the curator's stays a line
    return yaml


def _dump_yaml(document: CommentedMap) -> str:
    buffer = io.StringIO()
    _make_yaml().dump(document, buffer)
    return buffer.getvalue()


def _convert_to_plain(node: Any, left: list[int], source: str) -> Any:
    """Return the document as plain dictionaries and lists with text keys; refuse too many."""
    left[0] -= 1
    if left[0] < 0:
        message = f"it has more than {_MOST_ENTRIES:,} entries. Put long lists into CSV files."
        raise SpecError(source, [Problem("", message)])
    if isinstance(node, dict):
        for key in node:
            _refuse_surrogates(key, source)
        return {
            _format_key(key): _convert_to_plain(value, left, source) for key, value in node.items()
        }
    _refuse_surrogates(node, source)
    if isinstance(node, list):
        return [_convert_to_plain(value, left, source) for value in node]
    return node


def _refuse_surrogates(text: object, source: str) -> None:
    if isinstance(text, str) and (half := re.search("[\ud800-\udfff]", text)):
        message = f"half a character, \\u{ord(half[0]):04x}. Write \\U and eight digits."
        raise SpecError(source, [Problem("", message)])


def _format_key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
