"""Pages of the reference that are made from the code, so that nothing can be missing in them.

``{models}`` describes the fields of pydantic models: kinds and defaults from the models, what each
means, and an example, from a TOML file. ``{commands}`` lists the commands with their options,
``{errors}`` the exceptions, ``{findings}`` the codes of findings. A field, a command, an option or
a public name without a description makes the build fail, and so does a description of what is not
there.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from string import Formatter
from typing import Any, ClassVar

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from incrowd.spec.schema import find_undescribed, object_form

logger = logging.getLogger(__name__)

_ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")


class _GeneratedDirective(SphinxDirective):
    """Text that is made when the page is read, and parsed as part of it."""

    def log_warning(self, message: str) -> None:
        logger.warning("%s", message, location=self.get_location(), type="reference")

    def parse_lines(self, lines: Iterator[str]) -> list[nodes.Node]:
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


class ModelsDirective(_GeneratedDirective):
    """The fields of a model, ``module:Class``, and of every model that these lead to."""

    required_arguments = 2
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """One section for each model."""
        module, _, name = self.arguments[0].partition(":")
        file = Path(self.env.doc2path(self.env.docname)).parent / self.arguments[1]
        self.env.note_dependency(str(file))
        texts = tomllib.loads(file.read_text(encoding="utf-8"))
        schema = getattr(import_module(module), name).model_json_schema(by_alias=True)
        models = {name: schema} | {n: object_form(m) for n, m in schema.get("$defs", {}).items()}
        for problem in find_undescribed(models, texts):
            self.log_warning(problem)
        return self.parse_lines(_write_model_sections(models, texts))


def _write_model_sections(models: Mapping[str, Any], texts: Mapping[str, Any]) -> Iterator[str]:
    for name in [
        *(text for text in texts if text in models),
        *(o for o in models if o not in texts),
    ]:
        told = texts.get(name, {})
        yield f"({_make_anchor(name)})="
        yield f"## {told.get('title', name)}\n"
        yield f"{told.get('text', '')}\n"
        fields = models[name].get("properties", {})
        if not fields:
            continue
        required = models[name].get("required", [])
        examples = told.get("examples", {})
        more = (" example |", " --- |") if examples else ("", "")
        yield f"| key | type | default | meaning |{more[0]}\n| --- | --- | --- | --- |{more[1]}"
        for field, kind in fields.items():
            default = "required" if field in required else _format_default(kind)
            meaning = told.get("fields", {}).get(field, "")
            example = f" `{field}: {_format_code(examples[field])}` |" if field in examples else ""
            yield f"| `{field}` | {_describe_kind(kind, texts)} | {default} | {meaning} |{example}"
        yield ""


def _make_anchor(model: str) -> str:
    return f"model-{model.lower()}"


def _format_default(kind: Mapping[str, Any]) -> str:
    value = kind.get("default")
    return "—" if value in (None, [], {}, "") else f"`{_format_code(value)}`"


def _format_code(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_format_code, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_format_code(item)}' for name, item in value.items())}}}"
    if value in (",", ";", "."):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def _describe_kind(kind: Mapping[str, Any], texts: Mapping[str, Any]) -> str:
    """Return a type of JSON Schema in words."""
    if "$ref" in kind:
        name = kind["$ref"].rsplit("/", 1)[-1]
        return f"[{texts.get(name, {}).get('title', name)}](#{_make_anchor(name)})"
    if "anyOf" in kind:
        return ", or ".join(
            _describe_kind(o, texts) for o in kind["anyOf"] if o.get("type") != "null"
        )
    if "enum" in kind or "const" in kind:
        return ", ".join(
            f"`{_format_code(item)}`" for item in kind.get("enum", [kind.get("const")])
        )
    if "prefixItems" in kind:
        return f"[{', '.join(_describe_kind(item, texts) for item in kind['prefixItems'])}]"
    if kind.get("type") == "array":
        return f"list of: {_describe_kind(kind['items'], texts)}"
    if kind.get("type") == "object":
        inner = kind.get("additionalProperties")
        return (
            f"by name: {_describe_kind(inner, texts)}"
            if isinstance(inner, dict) and inner
            else "entries"
        )
    if isinstance(kind.get("type"), list):
        return "text"
    names = {"integer": "whole number", "number": "number", "boolean": "`true`, `false`"}
    result = "date" if kind.get("format") == "date" else names.get(kind.get("type", ""), "text")
    return f"{result}{_format_bounds(kind)}"


def _format_bounds(kind: Mapping[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    # The largest whole number that a float holds is no bound that a user meets
    bounds = [
        f"{sign} {kind[name]}"
        for name, sign in signs.items()
        if name in kind and kind[name] < 2**53
    ]
    return f" {', '.join(bounds)}" if bounds else ""


class CommandsDirective(_GeneratedDirective):
    """Every command of ``module:function``, which makes the app, with arguments and options."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One section for each command."""
        from typer.main import get_command

        module, _, name = self.arguments[0].partition(":")
        root = get_command(getattr(import_module(module), name)())
        return self.parse_lines(self._write_group("incrowd", root, 2))

    def _write_group(self, path: str, group: Any, depth: int) -> Iterator[str]:
        for name, command in group.commands.items():
            whole = f"{path} {name}"
            if not command.help:
                self.log_warning(f"the command '{whole}' is not described")
            yield f"{'#' * depth} `{whole}`\n"
            yield f"{inspect.cleandoc(command.help or '')}\n"
            if hasattr(command, "commands"):
                yield from self._write_group(whole, command, depth + 1)
            else:
                yield from self._write_command(whole, command)

    def _write_command(self, path: str, command: Any) -> Iterator[str]:
        from incrowd.cli.help import EXAMPLES, format_parameter, format_usage

        yield f"```text\n{format_usage(path, command)}\n```\n"
        shown = [(item, format_parameter(item)) for item in command.params if item.name != "help"]
        if shown:
            yield "| option | what it does |\n| --- | --- |"
        for item, (form, text) in shown:
            if not item.help:
                self.log_warning(f"'{path}' does not describe {item.name}")
            yield f"| `{form.strip()}` | {_escape_cell(text)} |"
        yield ""
        if example := EXAMPLES.get(path.partition(" ")[2]):
            yield f"Example: `{example}`\n"


def _escape_cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


class ErrorsDirective(_GeneratedDirective):
    """Every exception of ``module:Base`` and below, wherever it is defined.

    They are found in the source, so that nothing has to be installed that one module alone needs.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a table."""
        module, _, name = self.arguments[0].partition(":")
        file = import_module(module.split(".", maxsplit=1)[0]).__file__
        assert file is not None
        files = Path(file).parent.rglob("*.py") if Path(file).stem == "__init__" else [Path(file)]
        trees = [ast.parse(item.read_text(encoding="utf-8")) for item in files]
        result = [item for tree in trees for item in tree.body if isinstance(item, ast.ClassDef)]
        return self.parse_lines(self._write_rows(name, {item.name: item for item in result}))

    def _write_rows(self, base: str, classes: Mapping[str, ast.ClassDef]) -> Iterator[str]:
        yield "| exception | is a | when |\n| --- | --- | --- |"
        below = {name for name in classes if base in _find_ancestors(name, classes)} - {base}
        for name in [base, *sorted(item for item in below if not item.startswith("_"))]:
            text = ast.get_docstring(classes[name])
            if not text:
                self.log_warning(f"'{name}' is not described")
            bases = ", ".join(f"`{ast.unparse(kind)}`" for kind in classes[name].bases)
            yield f"| `{name}` | {bases} | {_escape_cell(_simplify_docstring(text or ''))} |"
        yield ""


class Api(_GeneratedDirective):
    """A table of public names with their summaries, then the entry of each, from its docstring.

    Each line of the content is a full name. ``NAME()`` leaves out the signature of a class that
    programs receive and do not make; ``NAME -`` leaves out its members, ``NAME +`` adds inherited
    ones. ``NAME: summary`` describes a value, which has no docstring of its own.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the table, then the entries."""
        lines = []
        for text in filter(str.strip, self.content):
            try:
                line = _ApiLine.of(text)
                line.value  # noqa: B018 - which fails for a name that does not exist
                lines.append(line)
            except (AttributeError, ImportError, ValueError) as error:
                self.log_warning(f"'{text}' cannot be documented: {error}")
        return self.parse_lines(self._lines(lines))

    def _lines(self, lines: list[_ApiLine]) -> Iterator[str]:
        yield "| name | purpose |\n| --- | --- |"
        for line in lines:
            summary = line.summary or _first_sentence(line.value)
            if not summary:
                self.log_warning(f"'{line.name}' has no summary")
            yield f"| {{py:obj}}`~{line.name}` | {_escape_cell(_simplify_docstring(summary))} |"
        yield "\n```{eval-rst}\n.. currentmodule:: incrowd"
        for line in lines:
            yield from line.entry()
        yield "```\n"


@dataclass(frozen=True)
class _ApiLine:
    """One line of ``{api}``."""

    name: str
    called: bool
    members: str
    summary: str

    @classmethod
    def of(cls, line: str) -> _ApiLine:
        result = re.fullmatch(r"([\w.]+)(\(\))?(?: ([+-]))?(?:: (.*))?", line.strip())
        if result is None:
            raise ValueError(f"'{line}' is no line of an API page")
        return cls(result[1], bool(result[2]), result[3] or "", result[4] or "")

    @property
    def value(self) -> Any:
        """Return the object itself."""
        module, _, name = self.name.rpartition(".")
        return getattr(import_module(module), name)

    def entry(self) -> Iterator[str]:
        """Yield the directive of autodoc that describes it."""
        if self.summary:
            yield f".. autodata:: {self.name}\n   :no-value:\n\n   {self.summary}\n"
        elif not isinstance(self.value, type):
            yield f".. autofunction:: {self.name}"
        elif issubclass(self.value, Exception):
            yield f".. autoexception:: {self.name}\n   :no-members:"
        else:
            yield f".. autoclass:: {self.name}{'()' if self.called else ''}"
            yield "   :no-members:" if self.members == "-" else "   :members:"
            if self.members == "+":
                yield "   :inherited-members:"


def _first_sentence(value: Any) -> str:
    return (inspect.getdoc(value) or "").split("\n\n", maxsplit=1)[0]


class FindingsDirective(_GeneratedDirective):
    """Every code of the catalog that ``module:function`` returns, by topic."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """One section and one table for each topic."""
        module, _, name = self.arguments[0].partition(":")
        result = import_module(module)
        assert result.__file__ is not None
        self.env.note_dependency(str(Path(result.__file__).with_suffix(".toml")))
        return self.parse_lines(self._write_sections(getattr(result, name)().values()))

    def _write_sections(self, entries: Iterable[Any]) -> Iterator[str]:
        topic = ""
        for entry in entries:
            if entry.topic != topic:
                topic = entry.topic
                yield f"\n## {topic.capitalize()}\n"
                yield "| code | severity | meaning | message | remedy |"
                yield "| --- | --- | --- | --- | --- |"
            if not entry.explanation:
                self.log_warning(f"the finding '{entry.code}' is not explained")
            remedy = _format_template(entry.remedy)
            yield (
                f"| `{entry.code}` | {entry.severity} | {_escape_cell(entry.explanation)} | "
                f"{_format_template(entry.message)} | {remedy} |"
            )
        yield ""


def _format_template(text: str) -> str:
    """Return a sentence of the catalog with the names of its values in capitals."""
    parts = []
    for before, field, spec, _ in Formatter().parse(text):
        name = field or ""
        noun = f" {spec.partition('|')[2]}" if spec and "|" in spec else ""
        optional = f"[{spec[1:].replace('$', name.upper())}]" if spec and spec[0] == "?" else ""
        shown = optional or (f"{name.upper()}{noun}" if name else "")
        parts.append(f"{before}{shown}")
    return _escape_cell("".join(parts)).replace("[", "\\[")


def _find_ancestors(name: str, classes: Mapping[str, ast.ClassDef]) -> set[str]:
    """Return a class and all that it derives from, by name."""
    bases = [ast.unparse(kind) for kind in classes[name].bases] if name in classes else []
    return {name}.union(*(_find_ancestors(base, classes) for base in bases))


def _simplify_docstring(docstring: str) -> str:
    first = inspect.cleandoc(docstring).split("\n\n", maxsplit=1)[0]
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", first.replace("``", "`"))


def _check_public_names(app: Sphinx, env: BuildEnvironment) -> None:
    """Every public name has an entry of its own and says what it is."""
    module = import_module(app.config.incrowd_public)
    domain = env.get_domain("py")
    assert isinstance(domain, PythonDomain)
    for name in getattr(module, "__all__", ()):
        if f"{module.__name__}.{name}" not in domain.objects:
            logger.warning("the public name '%s' is not documented", name, type="reference")
        value = getattr(module, name)
        if isinstance(value, type) or inspect.isroutine(value):
            for place, first in _list_members(value):
                if not inspect.getdoc(first):
                    logger.warning("'%s%s' has no docstring", name, place, type="reference")


def _list_members(value: Any) -> Iterator[tuple[str, Any]]:
    """Return what needs a docstring: the object and the public members of a class."""
    yield "", value
    if not isinstance(value, type):
        return
    package = value.__module__.split(".", maxsplit=1)[0]
    ours = [kind for kind in value.__mro__ if kind.__module__.split(".", maxsplit=1)[0] == package]
    for name, first in {name: item for kind in ours for name, item in vars(kind).items()}.items():
        if not name.startswith("_") and (inspect.isroutine(first) or isinstance(first, property)):
            yield f".{name}", getattr(value, name)


def _resolve_public_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Resolve a name, alone or qualified, to its one entry in the reference."""
    target = node.get("reftarget", "").rsplit(".", 1)[-1]
    domain = env.get_domain("py")
    if node.get("refdomain") != "py" or not isinstance(domain, PythonDomain):
        return None
    known = [name for name in domain.objects if name.rsplit(".", 1)[-1] == target]
    public = f"{app.config.incrowd_public}.{target}"
    if public not in known and len(known) != 1:
        return None
    name = public if public in known else known[0]
    xref: nodes.reference | None = domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", name, node, content
    )
    return xref


def _escape_bars(
    _app: Sphinx, _what: str, _name: str, _o: Any, _options: Any, lines: list[str]
) -> None:
    """Escape bars in a docstring: docutils would take |x| for a substitution."""
    lines[:] = [re.sub(r"(?<!\\)\|", r"\\|", line) for line in lines]


def _restore_aliases(
    _app: Sphinx, _what: str, _name: str, _o: Any, _options: Any, signature: str | None,
    returns: str | None,
) -> tuple[str, str | None] | None:  # fmt: skip
    """Return a type by its name: inside a union autodoc shows how it looked it up."""
    if signature is None:
        return None
    result = signature.replace("<factory>", "...")  # which is no Python
    return _ALIAS.sub(r"\1", result), _ALIAS.sub(r"\1", returns) if returns else None


def _named_in_lines(
    _app: Sphinx, _what: str, _name: str, _o: Any, _options: Any, lines: list[str]
) -> None:
    """Do the same in the list of attributes that napoleon has made."""
    lines[:] = [_ALIAS.sub(r"\1", line) for line in lines]


def _named_in_lists(app: Sphinx, _domain: str, _kind: str, _content: nodes.Element) -> None:
    """Do the same for the types that autodoc is about to put into lists of parameters."""
    for kinds in app.env.current_document.autodoc_annotations.values():
        kinds.update({name: _ALIAS.sub(r"\1", kind) for name, kind in kinds.items()})


def setup(app: Sphinx) -> None:
    """Give the site what its reference is made by."""
    app.add_config_value("incrowd_public", "incrowd", "env", str)
    app.add_directive("models", ModelsDirective)
    app.add_directive("commands", CommandsDirective)
    app.add_directive("errors", ErrorsDirective)
    app.add_directive("findings", FindingsDirective)
    app.add_directive("api", Api)
    app.connect("env-check-consistency", _check_public_names)
    app.connect("missing-reference", _resolve_public_name)
    app.connect("autodoc-process-docstring", _escape_bars, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", _named_in_lines, priority=600)
    app.connect("object-description-transform", _named_in_lists, priority=400)
    app.connect("autodoc-process-signature", _restore_aliases)
