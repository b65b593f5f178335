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

from incrowd.codes.hierarchy import ROOT, build_from_rows
from incrowd.curate.draft.hierarchy_kind import MOST_LISTED, propose_hierarchy
from incrowd.curate.hierarchy_preview import format_as_groups, load_hierarchy
from incrowd.errors import IncrowdError
from incrowd.spec.arx import ArxRows, format_rows, read_rows
from incrowd.spec.build import ColumnHierarchies, build_hierarchy, is_open
from incrowd.spec.file import SpecFile
from incrowd.spec.hierarchies import Intervals
from incrowd.spec.release import SafeSpec, SyntheticSpec
from incrowd.studio import group_edits, hierarchy_form, spec_edits
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.private_files import write_private
from incrowd.studio.spec_edits import Changes


def get_counted_columns(work: OpenSpec) -> set[str]:
    """Return the columns whose counts are shown."""
    columns: set[str] = work.kept.setdefault("counted", set())
    return columns


def show_counts(work: OpenSpec, name: str) -> None:
    """Show counts from now on; a safe release then needs the hierarchy confirmed.

    What was seen stays seen: that cannot be undone, and every later change is to be confirmed.
    """
    if is_safe(work.file):
        work.apply_changes({("columns", name, "confirm"): list_unconfirmed(work, name, read=True)})
        work.past.clear()
    get_counted_columns(work).add(name)
    _get_seen_columns(work).add(name)


def _get_seen_columns(work: OpenSpec) -> set[str]:
    """Return the columns whose counts were shown, now or earlier."""
    seen: set[str] = work.kept.setdefault("seen", set())
    return seen


def hide_counts(work: OpenSpec, name: str) -> None:
    """Hide counts again."""
    get_counted_columns(work).discard(name)


def confirm_entries(work: OpenSpec, name: str, entries: list[str]) -> None:
    """Confirm that the hierarchy, or the label of other values, is public knowledge."""
    left = [entry for entry in work.file.spec.columns[name].confirm if entry not in entries]
    work.apply_changes({("columns", name, "confirm"): left or None})


def set_other(work: OpenSpec, name: str, other: str) -> None:
    """Set the label of values outside the domain; an empty one leaves it to the root."""
    work.apply_changes(
        {("columns", name, "other"): other.strip() or None}, check=make_build_check(name)
    )


def set_kind(work: OpenSpec, name: str, kind: str) -> None:
    """Set another kind of hierarchy, with what the draft or the values propose for it."""
    column = work.file.spec.columns[name]
    now = hierarchy_form.get_kind(column.hierarchy)
    if kind == now:
        return
    if kind == "":
        changes: Changes = {("columns", name, key): None for key in ("hierarchy", "other")
                            if key in spec_edits.find_entry(work.file, name)}  # fmt: skip
        left = [entry for entry in column.confirm if entry not in ("hierarchy", "other")]
        work.apply_changes({**changes, ("columns", name, "confirm"): left or None})
        return
    listed = column.hierarchy is not None and not is_open(column)
    if kind in ("groups", "csv") and listed:
        rows = build_hierarchy(column, folder=work.file.folder).list_rows()
        if kind == "csv":
            _save_as_file(work, name, rows)
            return
        if len(rows) <= MOST_LISTED:
            _apply_hierarchy(work, name, _convert_to_groups(rows))
            return
    guess = next(
        (candidate for candidate in work.guessed.guesses if candidate.column == name), None
    )
    proposal = propose_hierarchy(kind, name, work.read_table(), guess)
    _apply_hierarchy(
        work,
        name,
        YAML(typ="safe").load(proposal.hierarchy),
        read=proposal.read,
        keep_unconfirmed=False,
    )


def set_hierarchy(work: OpenSpec, name: str, form: Any) -> None:
    """Set what the fields of a hierarchy say, then do what a button asks for."""
    kind = hierarchy_form.get_kind(work.file.spec.columns[name].hierarchy)
    if kind in ("", "groups"):
        raise IncrowdError("Choose another kind of hierarchy first.")
    declaration = hierarchy_form.read_declaration(kind, form)
    then = form.get("then", "")
    if kind == "intervals":
        by = "cuts" if "cuts" in declaration["intervals"] else "widths"
        then = then or ("by:" if form.get("by", by) != by else "")
        if then:
            declaration = _change_intervals(
                _validate_intervals(work, name, declaration), *then.split(":")
            )
    _apply_hierarchy(work, name, declaration)


def _validate_intervals(work: OpenSpec, name: str, intervals: dict[str, Any]) -> Intervals:
    """Return the intervals that a form declares; the spec says what is wrong with others."""
    try:
        return Intervals.model_validate(intervals["intervals"])
    except ValidationError:
        work.file.with_entries({("columns", name, "hierarchy"): intervals})
        raise


def _change_intervals(now: Intervals, do: str, *texts: str) -> dict[str, Any]:
    """Return intervals after a click."""
    try:
        numbers = [Decimal(text) for text in texts if text]
    except InvalidOperation as error:
        raise IncrowdError(f"'{':'.join(texts)}': enter numbers.") from error
    cuts, widths = hierarchy_form.compute_cuts(now), list(now.widths)
    at = int(numbers[0]) if numbers else 0
    match do:
        case "by":
            if now.cuts:
                return hierarchy_form.declare_widths(now, hierarchy_form.compute_widths(now))
            return hierarchy_form.declare_cuts(now, cuts if cuts.levels else cuts.add_level())
        case "add-level" if not now.cuts:
            return hierarchy_form.declare_widths(
                now, [*widths, hierarchy_form.compute_next_width(now)]
            )
        case "add-level":
            return hierarchy_form.declare_cuts(now, cuts.add_level())
        case "remove-level" if not now.cuts:
            return hierarchy_form.declare_widths(now, widths[:at] + widths[at + 1 :])
        case "remove-level":
            return hierarchy_form.declare_cuts(now, cuts.remove_level(at))
        case "add-cut" if at < len(cuts.levels):
            return hierarchy_form.declare_cuts(now, cuts.add_cut(at))
        case "remove-cut" if len(numbers) == 2:
            return hierarchy_form.declare_cuts(now, cuts.remove_cut(at, numbers[1]))
        case "move" if len(numbers) == 2:
            return hierarchy_form.declare_cuts(now, cuts.move_cut(numbers[0], numbers[1]))
    raise IncrowdError(f"Unknown action '{do}' for intervals.")


def set_groups(work: OpenSpec, name: str, form: Any) -> int:
    """Change groups by a click; return the level that is to be shown then."""
    column = work.file.spec.columns[name]
    rows = group_edits.add_root(build_hierarchy(column, folder=work.file.folder).list_rows())
    level_text = form.get("level", "1")
    level = int(level_text) if level_text.isdigit() else 1
    do = form.get("then", "put")
    members = set(form.get_all("member"))
    if do in ("put", "apart", "rename", "remove-level") and level not in group_edits.list_levels(
        rows
    ):
        raise IncrowdError("There is no such level. Add one first.")
    match do:
        case "put":
            rows = group_edits.move_to_group(rows, level, members, form.get("name", ""))
        case "apart":
            rows = group_edits.remove_from_groups(rows, level, members)
        case "rename":
            rows = group_edits.rename_group(rows, level, form.get("old", ""), form.get("new", ""))
        case "add-level":
            rows, level = group_edits.add_level(rows), len(rows[0]) - 1
        case "remove-level":
            rows, level = group_edits.remove_level(rows, level), max(level - 1, 1)
        case "values":
            rows = group_edits.add_values(
                rows, hierarchy_form.split_lines(form.get("values", "")), form.get("group", "")
            )
        case "remove-values":
            rows = group_edits.remove_values(rows, members)
        case _:
            raise IncrowdError(f"Unknown action '{do}' for groups.")
    _apply_hierarchy(work, name, _convert_to_groups(rows))
    return level


def _convert_to_groups(rows: ArxRows) -> dict[str, Any]:
    """Return rows as groups; values alone are those of one group, the root."""
    loaded: dict[str, Any] = YAML(typ="safe").load(format_as_groups(rows))
    return {"groups": {ROOT: loaded["flat"]["values"]}} if "flat" in loaded else loaded


def import_rows(
    work: OpenSpec, name: str, rows: ArxRows, file: str, path: Path | None = None
) -> None:
    """Import the hierarchy of a file: as groups in the spec, or as a file beside it.

    Where it comes from nobody knows, so that it is to be confirmed.
    """
    if len(rows) <= MOST_LISTED:
        _apply_hierarchy(work, name, _convert_to_groups(rows), read=True)
    elif path is not None and path.parent == work.path.parent:
        _apply_hierarchy(work, name, {"csv": path.name}, read=True)
    else:
        _save_as_file(work, name, rows, file, read=True)


def import_text(work: OpenSpec, name: str, text: str) -> None:
    """Import the lines of a file in ARX form."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.csv"
        path.write_text(text, encoding="utf-8")
        rows = read_rows(path)
    import_rows(work, name, rows, f"{_make_file_name(name)}.csv")


def _save_as_file(
    work: OpenSpec, name: str, rows: ArxRows, file: str | None = None, *, read: bool = False
) -> None:
    """Write rows beside the spec, and have the column use them; a file that is there stays."""
    preferred_path = Path(file or f"{work.path.stem}_hierarchy_{_make_file_name(name)}.csv")
    path, number = work.path.parent / preferred_path.name, 1
    while path.exists():
        number += 1
        path = work.path.parent / f"{preferred_path.stem}-{number}{preferred_path.suffix}"
    write_private(path, format_rows(build_from_rows(rows)), new=True)
    try:
        _apply_hierarchy(work, name, {"csv": path.name}, read=read)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _make_file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "column"


def _apply_hierarchy(
    work: OpenSpec, name: str, hierarchy: Any, *, read: bool = False, keep_unconfirmed: bool = True
) -> None:
    """Have a column use a hierarchy, if it is one.

    It is to be confirmed if it was ``read`` from the data or drawn after counts were seen; and,
    with ``keep_unconfirmed``, where the one before was.
    """
    work.apply_changes(
        {
            ("columns", name, "hierarchy"): put_lists_inline(hierarchy),
            ("columns", name, "confirm"): list_unconfirmed(
                work, name, read=read, keep_unconfirmed=keep_unconfirmed
            ),
        },
        check=make_build_check(name),
    )


def put_lists_inline(declared: Any) -> Any:
    """Return what is declared, with each list on one line, as a draft writes it."""
    if isinstance(declared, dict):
        return {key: put_lists_inline(value) for key, value in declared.items()}
    if not isinstance(declared, list):
        return declared
    listed = CommentedSeq(map(put_lists_inline, declared))
    listed.fa.set_flow_style()
    return listed


def list_unconfirmed(
    work: OpenSpec, name: str, *, read: bool, keep_unconfirmed: bool = True
) -> list[str] | None:
    """Return what of a column is to be confirmed after its hierarchy has changed."""
    now: list[str] = list(work.file.spec.columns[name].confirm)
    after_counts = is_safe(work.file) and name in _get_seen_columns(work)
    other = [entry for entry in now if entry != "hierarchy"]
    marked = read or after_counts or (keep_unconfirmed and "hierarchy" in now)
    return [*other, "hierarchy"] if marked else other or None


def make_build_check(name: str) -> Any:
    """Return a check that refuses a hierarchy that cannot be built."""
    return lambda file: ColumnHierarchies({name: file.spec.columns[name]}, file.folder)


def is_safe(file: SpecFile) -> bool:
    """Return whether nothing of the table may be looked at to declare a hierarchy."""
    return file.spec.release is None or isinstance(file.spec.release, SafeSpec | SyntheticSpec)


def export_hierarchy(work: OpenSpec, name: str, *, public: bool) -> str:
    """Return the hierarchy of a column as a file in ARX form."""
    hierarchy = load_hierarchy(work.file, name, values_are_public=public, table=work.read_table())
    return format_rows(hierarchy)
