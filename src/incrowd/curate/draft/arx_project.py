"""A project file of ARX (``.deid``) becomes a spec: roles, hierarchies, privacy models, settings.

A project is a ZIP file of XML and CSV: ``data/input.csv`` is the table, ``input/definition.xml``
the attributes, ``input/hierarchies/COLUMN.csv`` their hierarchies, ``input/config.xml`` models and
settings. Serialized Java objects beside them are not read. Table and hierarchies are unpacked into
a folder beside the spec; what has no equal here is listed.
"""

from __future__ import annotations

import math
import re
import shutil
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from incrowd.curate.draft.guess import Guess
from incrowd.errors import IncrowdError
from incrowd.spec.base import quote_scalar

_TABLE, _DEFINITION = "data/input.csv", "input/definition.xml"
_CONFIG, _SUBSET = "input/config.xml", "data/input_subset.csv"
_MOST_XML = 10_000_000  # bytes of a definition or a configuration
_USUAL_WEIGHT = 0.5  # of an attribute in ARX
_ROLES = {
    "IDENTIFYING_ATTRIBUTE": "identifier",
    "QUASI_IDENTIFYING_ATTRIBUTE": "quasi",
    "SENSITIVE_ATTRIBUTE": "sensitive",
    "INSENSITIVE_ATTRIBUTE": "keep",
}
_LOSSES = {
    "discernib": "discernibility", "equivalence class size": "class-size", "entropy": "entropy",
    "precision": "precision", "loss": "normalized",
}  # fmt: skip
_NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:[eE]-?[0-9]+)?)"
_K = re.compile(rf"{_NUMBER}-anonymity", re.IGNORECASE)
_PRIVACY = re.compile(rf"\({_NUMBER}, ?{_NUMBER}\)-DP")
_ON_COLUMN = re.compile(r"^(.*) for attribute '(.*)'$", re.DOTALL)
_RULES = (  # of a sensitive column: what ARX calls it, and where it stands in a spec
    (re.compile(rf"distinct-{_NUMBER}-diversity"), "diversity", "distinct"),
    (re.compile(rf"(?:shannon-)?entropy-{_NUMBER}-diversity"), "diversity", "entropy"),
    (re.compile(rf"{_NUMBER}-closeness with equal (?:ground-)?distance"), "closeness", "equal"),
    (re.compile(rf"{_NUMBER}-closeness with ordered (?:ground-)?distance"), "closeness", "ordered"),
    (
        re.compile(rf"{_NUMBER}-closeness with hierarchical (?:ground-)?distance"),
        "closeness",
        "hierarchical",
    ),
    (re.compile(rf"basic-{_NUMBER}-likeness"), "likeness", "basic"),
    (re.compile(rf"enhanced-{_NUMBER}-likeness"), "likeness", "enhanced"),
    (re.compile(rf"{_NUMBER}-disclosure privacy"), "disclosure", "present"),
)
_RECURSIVE = re.compile(rf"recursive-\({_NUMBER}, ?{_NUMBER}\)-diversity")


@dataclass(frozen=True)
class ArxProject:
    """What a project says, as a draft writes it.

    ``release`` is the YAML of the release; ``unmatched`` lists what has no equal here.
    """

    table: Path
    guesses: tuple[Guess, ...]
    release: str
    used: tuple[str, ...]
    unmatched: tuple[str, ...]


@dataclass
class _Settings:
    """What was read so far."""

    ks: list[int] = field(default_factory=list)
    least: list[int] = field(default_factory=list)  # rows that diversity asks of a class
    privacy: tuple[str, str] | None = None
    rules: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    entries: dict[str, str] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    unmatched: list[str] = field(default_factory=list)


def read_arx_project(path: Path, folder: Path) -> ArxProject:
    """Read a project, and unpack its table and hierarchies into a new folder."""
    if folder.exists():
        raise IncrowdError(
            f"Folder '{folder}' exists already, and the project is unpacked there. Remove or "
            "rename it."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            return _read_archive(archive, path, folder)
    except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise IncrowdError(
            f"Project '{path}': cannot be read ({error}). Save it again in ARX."
        ) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _read_archive(archive: zipfile.ZipFile, path: Path, folder: Path) -> ArxProject:
    names = set(archive.namelist())
    for name in (_TABLE, _DEFINITION, _CONFIG):
        if name not in names:
            raise IncrowdError(
                f"Project '{path}': it has no {name}. Load data in ARX, and save the project again."
            )
    settings = _Settings()
    _read_config(_parse_xml(archive, _CONFIG, path), settings)
    folder.mkdir(parents=True)
    table = folder / f"{path.stem}.csv"
    _unpack(archive, _TABLE, table)
    guesses: list[Guess] = []
    used: list[str] = []
    for node in _parse_xml(archive, _DEFINITION, path).iter("assigment"):  # ARX spells it so
        entry = {child.tag: child.text or "" for child in node}
        name = entry.get("name", "")
        source = f"input/{entry['ref']}" if "ref" in entry else f"input/hierarchies/{name}.csv"
        file = None
        by_hierarchy = "hierarchical" in settings.rules.get(name, {}).get("closeness", {})
        is_quasi = entry.get("type") == "QUASI_IDENTIFYING_ATTRIBUTE"
        if (is_quasi or by_hierarchy) and source in names:
            file = folder / _name_hierarchy(path.stem, name, len(used))
            _unpack(archive, source, file)
            used.append(file.name)
        guesses.append(_make_guess(entry, file, settings))
    _note_subset(archive, settings)
    return ArxProject(
        table, tuple(guesses), _format_release(settings), tuple(used), tuple(settings.unmatched)
    )


def _parse_xml(archive: zipfile.ZipFile, name: str, path: Path) -> ElementTree.Element:
    """Parse a part of a project; refuse declarations, which ARX does not write."""
    if archive.getinfo(name).file_size > _MOST_XML:
        raise IncrowdError(f"Project '{path}': {name} is too large. Save it again in ARX.")
    data = archive.read(name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:  # ARX writes in the encoding of the machine
        text = data.decode("cp1252", "replace")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise IncrowdError(f"Project '{path}': {name} has declarations. Save it again in ARX.")
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - declarations are refused above
    except ElementTree.ParseError as error:
        raise IncrowdError(
            f"Project '{path}': {name} is not valid XML ({error}). Save it again in ARX."
        ) from error


def _unpack(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    with archive.open(name) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)


def _name_hierarchy(table: str, column: str, number: int) -> str:
    """Return the name of a file; names that are no file names are numbered."""
    plain = column if re.fullmatch(r"[\w .()+-]{1,80}", column) else str(number + 1)
    return f"{table}_hierarchy_{plain}.csv"


def _read_config(config: ElementTree.Element, settings: _Settings) -> None:
    for criterion in config.iter("criterion"):
        _read_criterion((criterion.text or "").strip(), settings)
    limit = config.findtext("relativeMaxOutliers")
    if limit is not None and re.fullmatch(_NUMBER, limit.strip()):
        settings.entries["suppression"] = f"{min(float(limit), 1.0):g}"
    metric = config.findtext("metric", "").strip()
    loss = next((name for word, name in _LOSSES.items() if word in metric.lower()), None)
    if loss is not None:
        settings.entries["loss"] = loss
    elif metric:
        settings.unmatched.append(f"quality model: {metric}")
    for node in config.iter("attributeWeight"):
        weight = float(node.findtext("weight", str(_USUAL_WEIGHT)))
        column = node.findtext("attribute", "")
        if weight <= 0:
            settings.unmatched.append(f"weight {weight:g} of '{column}': weights are above 0")
        elif weight != _USUAL_WEIGHT:
            settings.weights[column] = weight / _USUAL_WEIGHT


def _read_criterion(text: str, settings: _Settings) -> None:
    """Read one privacy model, as ARX prints it."""
    if match := _K.fullmatch(text):
        settings.ks.append(int(float(match[1])))
        return
    if match := _PRIVACY.fullmatch(text):
        settings.privacy = (match[1], match[2])
        return
    if named := _ON_COLUMN.match(text):
        if match := _RECURSIVE.fullmatch(named[1].strip()):
            rule = f"{{c: {float(match[1]):g}, l: {int(float(match[2]))}}}"
            settings.rules.setdefault(named[2], {}).setdefault("diversity", {})["recursive"] = rule
            settings.least.append(int(float(match[2])))
            return
        for pattern, key, kind in _RULES:
            if match := pattern.fullmatch(named[1].strip()):
                value = int(float(match[1])) if kind == "distinct" else float(match[1])
                settings.rules.setdefault(named[2], {}).setdefault(key, {})[kind] = f"{value:g}"
                settings.least += [math.ceil(value)] if key == "diversity" else []
                return
    settings.unmatched.append(f"privacy model: {text}")


def _make_guess(entry: dict[str, str], file: Path | None, settings: _Settings) -> Guess:
    """Return what a spec says of an attribute."""
    name, kind = entry.get("name", ""), entry.get("type", "")
    role = _ROLES.get(kind, "drop")
    if role == "keep" and settings.privacy is not None:  # which publishes nothing unchanged
        role = "sensitive"
    hierarchy: str | None = None
    confirm: tuple[str, ...] = ()
    if file is not None:
        hierarchy = f"{{csv: {quote_scalar(f'{file.parent.name}/{file.name}')}}}"
        confirm = ("hierarchy",)
    if role == "quasi":
        hierarchy = hierarchy or "flat"
        if file is not None:
            _read_levels(name, entry, settings)
    for tag, label in (("microAggregationFunction", "microaggregation"), ("format", "format")):
        if entry.get(tag):
            settings.unmatched.append(f"{label} of '{name}': {entry[tag]}")
    parts = [f"weight: {settings.weights[name]:g}"] if name in settings.weights else []
    rules = settings.rules.get(name, {}) if role == "sensitive" else {}
    for key, values in rules.items():
        listed = ", ".join(f"{kind}: {value}" for kind, value in values.items())
        parts.append(f"{key}: {{{listed}}}")
    reason = kind.removesuffix("_ATTRIBUTE").replace("_", "-").lower() or "no type"
    return Guess(name, role, hierarchy, f"ARX: {reason}", confirm, settings=tuple(parts))


def _read_levels(name: str, entry: dict[str, str], settings: _Settings) -> None:
    """Read the lowest and highest level; All leaves one open."""
    low, high = entry.get("min", "All"), entry.get("max", "All")
    if low.isdecimal() and high.isdecimal():
        settings.levels[name] = f"[{low}, {high}]"
    elif (low.isdecimal() and int(low) > 0) or high.isdecimal():
        which = f"at least {low}" if low.isdecimal() else f"at most {high}"
        settings.unmatched.append(f"level of '{name}': {which} (give both under `levels`)")


def _note_subset(archive: zipfile.ZipFile, settings: _Settings) -> None:
    """List a research subset that is not the whole table."""
    names = archive.namelist()
    if _SUBSET not in names:
        return
    sizes = [archive.getinfo(name).file_size for name in (_TABLE, _SUBSET)]
    if 0 < sizes[1] < sizes[0]:
        settings.unmatched.append("research subset: select its rows before publishing")


def _format_release(settings: _Settings) -> str:
    """Return the release as YAML: differential privacy if ARX had it, or else classes."""
    if settings.privacy is not None:
        settings.unmatched += [f"privacy model: {k}-anonymity beside (ε,δ)-DP" for k in settings.ks]
        epsilon, delta = (f"{float(value):g}" for value in settings.privacy)
        levels = _format_levels(settings)
        return f"{{method: safe, epsilon: {epsilon}, delta: {delta}{levels}}}"
    parts = ["method: k-anonymity", f"k: {_choose_k(settings)}"]
    parts += [f"{name}: {value}" for name, value in settings.entries.items()]
    return f"{{{', '.join([*parts, 'suppressed: starred'])}{_format_levels(settings)}}}"


def _format_levels(settings: _Settings) -> str:
    listed = ", ".join(f"{quote_scalar(name)}: {x}" for name, x in settings.levels.items())
    return f", levels: {{{listed}}}" if listed else ""


def _choose_k(settings: _Settings) -> int:
    """Return the largest k; without one, that of ℓ-diversity, whose classes have ℓ rows."""
    if settings.ks:
        return max(settings.ks)
    if not settings.least:
        settings.unmatched.append("no k-anonymity in the project: k is set to 2")
    return max([2, *settings.least])
