"""What is done to the hierarchy of one column: each a change of the spec, or refused whole."""

from __future__ import annotations

import re
import tempfile
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq

from incrowd.codes.hierarchy import ROOT, from_rows
from incrowd.curate.draft.kinds import MOST_LISTED, ladder_of
from incrowd.curate.preview import as_groups, hierarchy_of
from incrowd.errors import IncrowdError
from incrowd.spec.arx import ArxRows, read_rows, write_rows
from incrowd.spec.build import Declared, build, is_open
from incrowd.spec.file import SpecFile
from incrowd.spec.hierarchies import Intervals
from incrowd.spec.release import SafeSpec
from incrowd.studio import edits, groups, ladder
from incrowd.studio.edits import Changes
from incrowd.studio.private import write_private
from incrowd.studio.work import Work


def counted(work: Work) -> set[str]:
    """The columns whose counts somebody has asked to see."""
    shown: set[str] = work.kept.setdefault("counted", set())
    return shown


def show_counts(work: Work, name: str) -> None:
    """Counts are shown from now on; under a safe release the hierarchy is to be confirmed then.

    What was seen stays seen: that cannot be undone, and every later change is to be confirmed.
    """
    if is_safe(work.file):
        work.change({("columns", name, "confirm"): _left(work, name, read=True)})
        work.past.clear()
    counted(work).add(name)
    _seen(work).add(name)


def _seen(work: Work) -> set[str]:
    """The columns whose counts were shown, now or earlier."""
    seen: set[str] = work.kept.setdefault("seen", set())
    return seen


def hide_counts(work: Work, name: str) -> None:
    """Counts are not shown any more."""
    counted(work).discard(name)


def confirm(work: Work, name: str, entries: list[str]) -> None:
    """Somebody says that the hierarchy, or the label of others, is public knowledge."""
    left = [one for one in work.file.spec.columns[name].confirm if one not in entries]
    work.change({("columns", name, "confirm"): left or None})


def set_other(work: Work, name: str, other: str) -> None:
    """What stands for values outside the domain; nothing leaves it to the root."""
    work.change({("columns", name, "other"): other.strip() or None}, check=_builds(name))


def set_kind(work: Work, name: str, kind: str) -> None:
    """Another kind of hierarchy, with what the draft or the column's values propose for it."""
    column = work.file.spec.columns[name]
    now = ladder.kind_of(column.hierarchy)
    if kind == now:
        return
    if kind == "":
        changes: Changes = {("columns", name, key): None for key in ("hierarchy", "other")
                            if key in edits.entry_of(work.file, name)}  # fmt: skip
        left = [one for one in column.confirm if one not in ("hierarchy", "other")]
        work.change({**changes, ("columns", name, "confirm"): left or None})
        return
    listed = column.hierarchy is not None and not is_open(column)
    if kind in ("groups", "csv") and listed:
        rows = build(column, folder=work.file.folder).rows()
        if kind == "csv":
            _as_file(work, name, rows)
            return
        if len(rows) <= MOST_LISTED:
            _take(work, name, _groups(rows))
            return
    guess = next((one for one in work.guessed.guesses if one.column == name), None)
    found = ladder_of(kind, name, work.read(), guess)
    _take(work, name, YAML(typ="safe").load(found.hierarchy), read=found.read, kept=False)


def set_ladder(work: Work, name: str, form: Any) -> None:
    """What the fields of a hierarchy say, and then what a button asks for."""
    kind = ladder.kind_of(work.file.spec.columns[name].hierarchy)
    if kind in ("", "groups"):
        raise IncrowdError("Choose another kind of hierarchy first.")
    said = ladder.declared_from(kind, form)
    then = form.get("then", "")
    if kind == "intervals":
        by = "cuts" if "cuts" in said["intervals"] else "widths"
        then = then or ("by:" if form.get("by", by) != by else "")
        if then:
            said = _intervals(_valid(work, name, said), *then.split(":"))
    _take(work, name, said)


def _valid(work: Work, name: str, said: dict[str, Any]) -> Intervals:
    """The intervals that a form declares; the spec says what is wrong with others."""
    try:
        return Intervals.model_validate(said["intervals"])
    except ValidationError:
        work.file.changed_at({("columns", name, "hierarchy"): said})
        raise


def _intervals(now: Intervals, do: str, *given: str) -> dict[str, Any]:
    """Intervals after a click."""
    try:
        numbers = [Decimal(one) for one in given if one]
    except InvalidOperation as error:
        raise IncrowdError(f"'{':'.join(given)}': enter numbers.") from error
    cuts, widths = ladder.cuts_of(now), list(now.widths)
    at = int(numbers[0]) if numbers else 0
    match do:
        case "by":
            if now.cuts:
                return ladder.with_widths(now, ladder.widths_of(now))
            return ladder.with_cuts(now, cuts if cuts.levels else cuts.with_level())
        case "add-level" if not now.cuts:
            return ladder.with_widths(now, [*widths, ladder.wider(now)])
        case "add-level":
            return ladder.with_cuts(now, cuts.with_level())
        case "remove-level" if not now.cuts:
            return ladder.with_widths(now, widths[:at] + widths[at + 1 :])
        case "remove-level":
            return ladder.with_cuts(now, cuts.without_level(at))
        case "add-cut" if at < len(cuts.levels):
            return ladder.with_cuts(now, cuts.with_cut(at))
        case "remove-cut" if len(numbers) == 2:
            return ladder.with_cuts(now, cuts.without_cut(at, numbers[1]))
        case "move" if len(numbers) == 2:
            return ladder.with_cuts(now, cuts.moved(numbers[0], numbers[1]))
    raise IncrowdError(f"Unknown action '{do}' for intervals.")


def set_groups(work: Work, name: str, form: Any) -> int:
    """Groups after a click; the level that is to be shown then."""
    column = work.file.spec.columns[name]
    rows = groups.with_root(build(column, folder=work.file.folder).rows())
    given = form.get("level", "1")
    level = int(given) if given.isdigit() else 1
    do = form.get("then", "put")
    members = set(form.every("member"))
    if do in ("put", "apart", "rename", "remove-level") and level not in groups.levels(rows):
        raise IncrowdError("There is no such level. Add one first.")
    match do:
        case "put":
            rows = groups.put(rows, level, members, form.get("name", ""))
        case "apart":
            rows = groups.apart(rows, level, members)
        case "rename":
            rows = groups.renamed(rows, level, form.get("old", ""), form.get("new", ""))
        case "add-level":
            rows, level = groups.with_level(rows), len(rows[0]) - 1
        case "remove-level":
            rows, level = groups.without_level(rows, level), max(level - 1, 1)
        case "values":
            rows = groups.with_values(
                rows, ladder.lines(form.get("values", "")), form.get("group", "")
            )
        case "remove-values":
            rows = groups.without_values(rows, members)
        case _:
            raise IncrowdError(f"Unknown action '{do}' for groups.")
    _take(work, name, _groups(rows))
    return level


def _groups(rows: ArxRows) -> dict[str, Any]:
    """Rows as groups; values alone are those of one group, the root."""
    loaded: dict[str, Any] = YAML(typ="safe").load(as_groups(rows))
    return {"groups": {ROOT: loaded["flat"]["values"]}} if "flat" in loaded else loaded


def imported(work: Work, name: str, rows: ArxRows, file: str, path: Path | None = None) -> None:
    """A hierarchy of a file: its groups in the spec, or, if there are many, the file beside it.

    Where it comes from nobody knows, so that it is to be confirmed.
    """
    if len(rows) <= MOST_LISTED:
        _take(work, name, _groups(rows), read=True)
    elif path is not None and path.parent == work.path.parent:
        _take(work, name, {"csv": path.name}, read=True)
    else:
        _as_file(work, name, rows, file, read=True)


def pasted(work: Work, name: str, text: str) -> None:
    """Lines of a file in ARX form."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.csv"
        path.write_text(text, encoding="utf-8")
        rows = read_rows(path)
    imported(work, name, rows, f"{_plain_name(name)}.csv")


def _as_file(
    work: Work, name: str, rows: ArxRows, file: str | None = None, *, read: bool = False
) -> None:
    """Write rows beside the spec, and have the column use them; a file that is there stays."""
    wanted = Path(file or f"{work.path.stem}_hierarchy_{_plain_name(name)}.csv")
    path, number = work.path.parent / wanted.name, 1
    while path.exists():
        number += 1
        path = work.path.parent / f"{wanted.stem}-{number}{wanted.suffix}"
    write_private(path, write_rows(from_rows(rows)), new=True)
    try:
        _take(work, name, {"csv": path.name}, read=read)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _plain_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "column"


def _take(work: Work, name: str, hierarchy: Any, *, read: bool = False, kept: bool = True) -> None:
    """Have a column use a hierarchy, if it is one.

    It is to be confirmed if it was ``read`` from the data or drawn after counts were seen; and, if
    that is ``kept``, where the one before was.
    """
    work.change(
        {
            ("columns", name, "hierarchy"): _on_lines(hierarchy),
            ("columns", name, "confirm"): _left(work, name, read=read, kept=kept),
        },
        check=_builds(name),
    )


def _on_lines(said: Any) -> Any:
    """What is declared, with each list on one line, as a draft writes it."""
    if isinstance(said, dict):
        return {key: _on_lines(value) for key, value in said.items()}
    if not isinstance(said, list):
        return said
    listed = CommentedSeq(map(_on_lines, said))
    listed.fa.set_flow_style()
    return listed


def _left(work: Work, name: str, *, read: bool, kept: bool = True) -> list[str] | None:
    now: list[str] = list(work.file.spec.columns[name].confirm)
    drawn = is_safe(work.file) and name in _seen(work)
    other = [one for one in now if one != "hierarchy"]
    marked = read or drawn or (kept and "hierarchy" in now)
    return [*other, "hierarchy"] if marked else other or None


def _builds(name: str) -> Any:
    """Refuse a hierarchy that cannot be built: one whose levels do not nest, say."""
    return lambda file: Declared({name: file.spec.columns[name]}, file.folder)


def is_safe(file: SpecFile) -> bool:
    """Whether nothing of the table may be looked at to declare a hierarchy."""
    return file.spec.release is None or isinstance(file.spec.release, SafeSpec)


def export(work: Work, name: str, *, public: bool) -> str:
    """The hierarchy of a column as a file in ARX form."""
    found = hierarchy_of(work.file, name, values_are_public=public, table=work.read())
    return write_rows(found)
