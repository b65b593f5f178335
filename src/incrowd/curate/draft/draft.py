"""Draft a spec from a table: guesses, each marked with ``confirm`` until somebody looks.

Only the first rows are looked at, or on Spark, where there is no order, as many of any; ids are
counted over the whole table. Roles come from names and from what values look like; hierarchies
from the range or the list of values met. All of that is read from the data, so a safe
release refuses the draft until the curator has confirmed it to be public knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from incrowd.codes.frequency import Frequencies
from incrowd.curate.alike_values import find_alike_values
from incrowd.curate.draft.derived_column import DerivedColumn, find_derived_columns
from incrowd.curate.draft.guess import Guess, guess_column
from incrowd.curate.draft.place import propose_places
from incrowd.curate.unit_choice import propose_rows
from incrowd.engine.address import hide_secrets, is_address, parse_address
from incrowd.engine.count import make_value_coder
from incrowd.engine.source import open_table
from incrowd.engine.table import Engine, Table, TableError
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, format_percent
from incrowd.measure.column_sets import measure_column_sets
from incrowd.methods.person_id import KINDS, describe_rows
from incrowd.spec.base import quote_scalar
from incrowd.spec.file import parse_spec
from incrowd.spec.identifiers import HIPAA, SAMPLED
from incrowd.spec.purpose import Purpose

ROWS = 200_000
_RISK_ROWS, _RISK_COLUMNS = 20_000, 15  # of which sets of columns are compared
_SINGLED_OUT = 0.05  # the share of rows from which a set is named


@dataclass(frozen=True)
class Draft:
    """A drafted spec with the guess for each column, and the ARX files that were used or not.

    ``sheet``, ``header`` and ``notes`` are what is known of the table's origin. ``identifying`` is
    the set of up to three quasi-identifiers by which most rows are unique, with their share, if it
    is worth telling. ``release`` is what is published, as YAML, and ``unmatched`` lists what a
    project of another tool says that has no equal here.
    """

    table: str | None
    guesses: tuple[Guess, ...]
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    sheet: str | None = None
    header: int | None = None
    notes: tuple[str, ...] = ()
    identifying: tuple[tuple[str, ...], float] | None = None
    release: str = "{method: safe, epsilon: 1.0, delta: 1.0e-6}"
    unmatched: tuple[str, ...] = ()
    purpose: Purpose | None = None
    size: int | None = None
    hipaa: bool = False

    def yaml(self) -> str:
        """Return the text of the spec."""
        lines = [
            "# Drafted by `incrowd init`. Entries under `confirm` were guessed from the data.",
            "# Correct them, then run `incrowd confirm` with this file: roles and formats must be",
            "# correct, ranges and lists of values must be public knowledge.",
            *([] if self.table is None else [f"table: {quote_scalar(self.table)}"]),
            *([] if self.sheet is None else [f"sheet: {quote_scalar(self.sheet)}"]),
            *([] if self.header is None else [f"header: {self.header}"]),
            *(["hipaa: safe-harbor"] if self.hipaa else []),
            *self._format_size(),
            *self._format_unit(),
            *self._format_identifying(),
            "columns:",
            *(guess.yaml() for guess in self.guesses),
            f"release: {self.release}" if self.purpose is None else f"purpose: {self.purpose}",
            *(f"# Without an equal: {' '.join(entry.split())}" for entry in self.unmatched),
        ]
        return "\n".join(lines) + "\n"

    def findings(self) -> list[Finding]:
        """Return doubts about the draft: values that are listed in several spellings."""
        columns = parse_spec(self.yaml()).spec.columns
        return [
            finding
            for name, column in columns.items()
            for finding in find_alike_values(name, column)
        ]

    def with_purpose(self, purpose: Purpose | None, size: int | None) -> Draft:
        """Return the draft for a purpose and a stated size; of test data, ids are made up."""
        guesses = self.guesses
        if purpose == "test-data":
            unit = any(guess.has_repeated_ids for guess in guesses)
            guesses = tuple(
                replace(guess, role="key", reason=f"{guess.reason}; made up in test data")
                if guess.role == "identifier" and guess.identifies is not None and not unit
                else guess
                for guess in guesses
            )
        return replace(self, guesses=guesses, purpose=purpose, size=size)

    def with_safe_harbor(self, year: int | None = None) -> Draft:
        """Return the draft with columns that keep to the list of HIPAA's safe harbor."""
        from incrowd.curate.draft.safe_harbor import limit_guess

        guesses = tuple(limit_guess(guess, year) for guess in self.guesses)
        published = {guess.column for guess in guesses if guess.role != "drop"}
        names = () if self.identifying is None else self.identifying[0]
        identifying = self.identifying if published.issuperset(names) else None
        return replace(self, guesses=guesses, hipaa=True, identifying=identifying)

    def _format_size(self) -> list[str]:
        if self.size is not None:
            return [f"size: {self.size}  # public knowledge; it is printed in the certificate"]
        return [
            "# size: NUMBER only if that number is public; it is printed in the certificate.",
            "# Otherwise use `incrowd rehearse --size`.",
        ]

    def _format_unit(self) -> list[str]:
        """Write the unit: a person may have several rows where an id repeats."""
        unit = "unit: one row per person  # or {id: COLUMN} if a person may have several rows"
        ids = [guess for guess in self.guesses if guess.has_repeated_ids]
        if ids:
            guess = min(ids, key=lambda guess: KINDS.index(guess.identifies or "event"))
            assert guess.counts is not None
            drop = ", without_id: drop" if guess.nulls else ""
            left = ", rows without an id are dropped" if guess.nulls else ""
            rows = describe_rows(guess.counts, "id")
            most = propose_rows(guess.counts.median)
            more = f"; `rows: {most}` would use up to {most}" if most > 1 else ""
            unit = f"unit: {{id: {quote_scalar(guess.column)}{drop}}}"
            unit += f"  # {rows}; one row of each is used{more}{left}"
        return [unit, "confirm: [unit]"]

    def _format_identifying(self) -> list[str]:
        """Write which columns single people out together, the reason why they are quasi."""
        if self.identifying is None:
            return []
        columns, share = self.identifying
        names = ", ".join(map(quote_scalar, columns))
        return [f"# Unique by {names} together: {format_percent(share)} of the rows looked at."]

    def describe_identifiers(self) -> str:
        """Describe, in a sentence, the columns that look like HIPAA identifiers."""
        identifiers = [
            f"{kind} ({', '.join(names)})" for kind, names in self.list_hipaa_columns() if names
        ]
        looked = f"by name and by up to {SAMPLED:,} values of each column"
        if identifiers:
            return (
                f"HIPAA identifiers (personal data under the GDPR), {looked}: "
                f"{'; '.join(identifiers)}. Check free text yourself."
            )
        return (
            f"No HIPAA identifiers were found {looked}. This is no proof: rare values and "
            "free text may identify people. Under the GDPR, the whole table is personal data."
        )

    def list_hipaa_columns(self) -> list[tuple[str, tuple[str, ...]]]:
        """List the HIPAA identifiers, and the columns that look like each."""
        return [
            (kind, tuple(guess.column for guess in self.guesses if guess.hipaa == kind))
            for kind in HIPAA
        ]


def draft(table: Any, *, name: str | None = None) -> Draft:
    """Draft a spec: guess a role and a hierarchy for every column.

    The first 200,000 rows are read. Every entry that was read from the data is marked with
    ``confirm``; see :func:`incrowd.confirm`.

    Args:
        table: The table, in any form that :func:`incrowd.publish` takes.
        name: The name of the table in the spec; by default its path, if it has one.

    Returns:
        The draft. ``draft.yaml()`` is the text of the spec, ``draft.guesses`` lists the guess for
        each column with its reason.

    Raises:
        IncrowdError: The table cannot be opened.

    Examples:
        >>> import polars as pl
        >>> import incrowd as ic
        >>> draft = ic.draft(pl.DataFrame({"age": [31, 40, 58], "smoker": ["yes", "no", "no"]}))
        >>> "role: quasi" in draft.yaml()
        True
    """
    if name is None and isinstance(table, str | Path):
        name = format_source(str(table), Path())
    table = open_table(table)
    head = table.head(ROWS)
    origin = table.origin
    guesses = tuple(
        _inspect_column(
            table, head, column, origin.labels.get(column, ""), origin.orders.get(column, ())
        )
        for column in table.columns
    )
    guesses = propose_places(head, propose_drops(head, guesses))
    return Draft(
        name, guesses, sheet=origin.sheet, header=origin.header, notes=origin.notes,
        identifying=find_identifying_columns(head, guesses),
    )  # fmt: skip


def propose_drops(head: Table, guesses: Sequence[Guess]) -> tuple[Guess, ...]:
    """Return the guesses, with the role `drop` for columns that are functions of others.

    A column that may be sensitive stays, as what others may want to predict; that it is a function
    of others is declared. The same is declared of a column that the curator keeps after all.
    """
    published = [guess.column for guess in guesses if guess.role in ("quasi", "sensitive")]
    if len(published) < 2:
        return tuple(guesses)
    values, frequencies = _count_head(head.head(_RISK_ROWS), published)
    derived = {column.column: column for column in find_derived_columns(values, frequencies)}
    return tuple(
        _mark_derived(guess, derived[guess.column]) if guess.column in derived else guess
        for guess in guesses
    )


def _mark_derived(guess: Guess, derived: DerivedColumn) -> Guess:
    """Return the guess for a function of others; what it would be otherwise stays known."""
    guess = replace(guess, function_of=derived.sources)
    if guess.role == "sensitive":
        return guess
    reason = f"{derived.reason}, in every row looked at"
    return replace(guess, role="drop", origin="", reason=reason)


def _count_head(some: Table, names: Sequence[str]) -> tuple[dict[str, list[object]], Frequencies]:
    """Count the distinct tuples of some rows; return the values behind their codes as well."""
    values = {name: list(some.values(name)) for name in names}
    coders = {name: make_value_coder(listed) for name, listed in values.items()}
    return values, some.gather_columns(names).count(names, coders)


def find_identifying_columns(
    head: Table, guesses: Sequence[Guess]
) -> tuple[tuple[str, ...], float] | None:
    """Find the set of up to three quasi-identifiers by which most rows are unique.

    Of equals it is the smallest; None where hardly a row is unique. Only some rows are looked at.
    """
    quasi = [guess.column for guess in guesses if guess.role == "quasi"]
    names = [name for name in quasi if name in head.columns][:_RISK_COLUMNS]
    if not names:
        return None
    _, frequencies = _count_head(head.head(_RISK_ROWS), names)
    sets = measure_column_sets(names, frequencies, most=3, k=2)
    worst = min(sets, key=lambda risk: (-risk.uniques, len(risk.columns)))
    share = worst.uniques / max(frequencies.total, 1)
    return (worst.columns, share) if share >= _SINGLED_OUT else None


def _inspect_column(
    table: Table, head: Table, column: str, label: str = "", order: Sequence[str] = ()
) -> Guess:
    try:
        values = head.values(column)
    except TableError:
        return Guess(column, "drop", None, "lists or bytes, not single values", ("role",))
    missing = head.count_missing(column)
    guess = guess_column(column, values, head.rows() - missing, label, order)
    if guess.identifies is not None:  # the first rows may show each id once
        if guess.written is not None:
            table = table.interpret_values({column: guess.written.make_reader()})
        guess = guess.with_counts(table.count_rows_per_id(column), table.rows())
        missing = table.count_missing(column)
    nulls = missing > 0 or (guess.written is not None and bool(guess.written.nulls))
    return replace(guess, nulls=nulls)


def draft_from_arx(
    folder: Path,
    *,
    beside: Path,
    table: str | None = None,
    sheet: str | None = None,
    header: int | None = None,
    engine: Engine | None = None,
) -> Draft:
    """Draft a spec with hierarchies of a folder of ARX files, NAME_hierarchy_COLUMN.csv.

    The table is NAME.csv of that folder, or whatever ``table`` names: a path or an address,
    with its ``sheet`` and ``header``, opened by ``engine``.
    Then NAME is that table's, or the only one in the folder. Columns without a file are
    guessed. Where the files come from nobody knows, so that they are to be confirmed, too.
    Paths in the draft are relative to the folder ``beside`` which the spec will lie in, where
    that is possible.
    """
    if not folder.is_dir():
        raise IncrowdError(f"'{folder}' is not a folder. Name a folder of ARX files.")
    files = sorted(folder.glob("*_hierarchy_*.csv"))
    parts = {file: file.stem.split("_hierarchy_", 1) for file in files}
    names = sorted({name for name, _ in parts.values()})
    source = table if table is not None else str(_find_only_table(folder, names))
    name = (
        _get_table_name(source) if _get_table_name(source) in names or len(names) != 1 else names[0]
    )
    if name not in names:
        listed = ", ".join(names) or "none"
        raise IncrowdError(
            f"Folder '{folder}': no files {name}_hierarchy_COLUMN.csv, but files for {listed}. "
            "Rename the files or the table."
        )
    opened = open_table(source, engine=engine, sheet=sheet, header=header)
    by_column = {column: file for file, (owner, column) in parts.items() if owner == name}
    used = {column: file for column, file in by_column.items() if column in opened.columns}
    head = opened.head(ROWS)
    guesses = [
        _guess_from_file(column, format_path(used[column], beside))
        if column in used
        else _inspect_column(opened, head, column)
        for column in opened.columns
    ]
    return Draft(
        format_source(source, beside),
        tuple(guesses),
        identifying=find_identifying_columns(head, guesses),
        used=tuple(file.name for file in used.values()),
        unused=tuple(file.name for file in files if file not in used.values()),
        sheet=opened.origin.sheet,
        header=opened.origin.header,
        notes=opened.origin.notes,
    )


def draft_from_arx_project(path: Path, *, beside: Path) -> Draft:
    """Draft a spec from a project file of ARX; its parts are unpacked beside the spec.

    Roles are those that the project declares. Where hierarchies come from nobody knows, so that
    they are to be confirmed.
    """
    from incrowd.curate.draft.arx_project import read_arx_project

    folder = beside / f"{path.stem}.arx"
    project = read_arx_project(path, folder)
    return Draft(
        format_source(str(project.table), beside),
        project.guesses,
        used=project.used,
        release=project.release,
        unmatched=project.unmatched,
    )


def _find_only_table(folder: Path, names: list[str]) -> Path:
    tables = [folder / f"{name}.csv" for name in names if (folder / f"{name}.csv").exists()]
    if len(tables) != 1:
        listed = ", ".join(table.name for table in tables) or "none"
        raise IncrowdError(
            f"Folder '{folder}': expected one table NAME.csv with files NAME_hierarchy_COLUMN.csv, "
            f"found: {listed}. If the table lies elsewhere, name it as TABLE."
        )
    return tables[0]


def _get_table_name(source: str) -> str:
    """Return the name of a table: the file without its ending, or that of a database."""
    if is_address(source):
        return parse_address(source).table.rpartition(".")[2].strip('"')
    return Path(source).stem


def _guess_from_file(column: str, path: str) -> Guess:
    hierarchy = f"{{csv: {quote_scalar(path)}}}"
    return Guess(column, "quasi", hierarchy, "ARX hierarchy", ("role", "hierarchy"))


def format_source(source: str, beside: Path) -> str:
    """Return a table as a spec in the folder ``beside`` names it.

    A password does not belong in a file; PostgreSQL finds it in ~/.pgpass. What is no file or
    folder here is a table or an address of Spark's, and stays as it is.
    """
    if is_address(source):
        return hide_secrets(source)
    return format_path(Path(source), beside) if Path(source).exists() else source


def format_path(path: Path, beside: Path) -> str:
    """Return a path as a spec in the folder ``beside`` writes it: relative where it can be."""
    absolute = path.absolute()
    below = absolute.is_relative_to(beside.absolute())
    return (absolute.relative_to(beside.absolute()) if below else absolute).as_posix()
