"""Open whatever a curator has as a table, by the engine that it belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from incrowd.engine.table import Engine, Table, TableCatalog, TableError
from incrowd.errors import IncrowdError, ParameterError, check_whole
from incrowd.spec.file import SpecFile
from incrowd.spec.hierarchies import Geo
from incrowd.spec.model import Column, PersonId, Spec
from incrowd.spec.value_format import ValueFormat

_LOCAL = "incrowd.engine.local.engine"
# The module of each engine, by the library whose objects it takes; it is loaded when it is first
# needed, and holds the engine as ENGINE.
_SPARK = "incrowd.engine.spark.engine"
_ENGINES = {"polars": _LOCAL, "pandas": _LOCAL, "pyarrow": _LOCAL, "pyspark": _SPARK}


def open_table(
    source: Any,
    *,
    engine: Engine | None = None,
    folder: Path = Path(),
    empty: bool = False,
    delimiter: str | None = None,
    sheet: str | None = None,
    header: int | None = None,
) -> Table:
    """Open a table from a path, an address, or an object of a library that some engine takes.

    A table that is open already stays as it is, with its own engine. Anything else is opened by
    ``engine``: by default the one for objects of this kind, and for all else the local one,
    whose :meth:`~incrowd.engine.local.engine.LocalEngine.open` says what it reads. The other
    arguments are those of :meth:`~incrowd.engine.table.Engine.open`.
    """
    if isinstance(getattr(source, "engine", None), Engine):
        table: Table = source
        return table
    if engine is None:
        engine = choose_engine(source)
    elif not isinstance(engine, Engine):
        raise ParameterError("engine", "be an engine, such as that of a table", engine)
    if header is not None:
        header = int(check_whole("header", header, 1))
    return engine.open(
        source, folder=folder, empty=empty, delimiter=delimiter, sheet=sheet, header=header
    )


def open_spec_table(file: SpecFile, table: Any = None, *, engine: Engine | None = None) -> Table:
    """Open the table that a spec describes: the one given, or else the one that it names.

    The sheet and the header of the spec are those of either, unless what is given is no path. Its
    columns are read as the spec says that they are written. Where households have a table of their
    own, each row of the answer has the columns of its household, too; both tables may be given, as
    a mapping of "people" and "households".
    """
    source = open_joined_table(file, table, engine=engine)
    if source.origin.reread:  # read twice, 1.234 could become 1234
        return source
    return read_as_declared(source, file.spec.columns)


def read_as_declared(source: Table, columns: Mapping[str, Column]) -> Table:
    """Return a table with its values read as columns say, and with places of coordinates."""
    readers = {
        name: column.written.make_reader()
        for name, column in columns.items()
        if column.written is not None and name in source.columns
    }
    table = source.interpret_values(readers) if readers else source
    for name, column in columns.items():
        if column.hierarchy is not None and column.hierarchy.geo is not None:
            table = _make_places(table, name, column.hierarchy.geo)
    return table


def _make_places(table: Table, name: str, geo: Geo) -> Table:
    """Return the table with the finest cells that its coordinates lie in, as one more column."""
    missing = [source for source in (geo.lat, geo.lon) if source not in table.columns]
    if name in table.columns:
        if len(missing) == 2:  # the places are there already
            return table
        raise TableError(
            f"Column '{name}': it is made of coordinates, and the table has a column of this name. "
            "Rename it in the spec."
        )
    if missing:
        raise TableError(
            f"Column '{name}': it is made of '{geo.lat}' and '{geo.lon}', and the table has no "
            f"'{missing[0]}'. Correct `geo`."
        )
    from incrowd.spec.geo import locate_cell

    joined = table.join_columns(name, [geo.lat, geo.lon])
    return joined.interpret_values({name: partial(locate_cell, geo)})


def open_joined_table(file: SpecFile, table: Any = None, *, engine: Engine | None = None) -> Table:
    """Open the same, with the values as they are written; a table that is joined stays as it is.

    Households are found by the ids of their people as the spec says that these are written.
    """
    households, household, unit = None, file.spec.household, file.spec.unit
    if isinstance(table, Mapping) and household is not None:
        table, households = _take_both(table)
    source = _open_source(file, table, engine)
    if household is None or not isinstance(unit, PersonId) or source.origin.match is not None:
        return source
    households = household.table if households is None else households
    if households is None:
        raise IncrowdError(
            "Spec: no table of households is named. Add `table: FILE` under `household`."
        )
    beside, id_column = (
        open_table(households, engine=source.engine, folder=file.folder),
        household.id or unit.id,
    )
    if id_column not in beside.columns:
        raise TableError(
            f"Column '{id_column}': not in the table of households. Correct `id` under "
            "`household`, or the table."
        )
    written = get_id_format(file.spec)
    read = None if written is None else written.make_reader()
    return source.join_table(unit.id, beside, id_column, read)


def get_id_format(spec: Spec) -> ValueFormat | None:
    """Return how the ids of people's rows, and of their households, are written; None for as usual.

    Rows are grouped by the id as it is read. Joined by the id as it is written, "1.000" and "1000"
    would be two households, with a row each, and one group of people.
    """
    column = spec.columns.get(spec.unit.id) if isinstance(spec.unit, PersonId) else None
    return None if column is None else column.written


def get_people(table: Any) -> Any:
    """Return the table of people where that of their households is given with it, or the table."""
    return table.get("people", table) if isinstance(table, Mapping) else table


def _take_both(tables: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the table of people and that of households, given together."""
    if set(tables) != {"people", "households"}:
        raise ParameterError("table", 'name "people" and "households"', sorted(tables))
    return tables["people"], tables["households"]


def _open_source(file: SpecFile, table: Any, engine: Engine | None) -> Table:
    spec = file.spec
    folder = Path()
    if table is None:
        if spec.table is None:
            raise IncrowdError("Spec: no table is named. Add `table: FILE`.")
        table, folder = spec.table, file.folder
    if not isinstance(table, str | os.PathLike):
        return open_table(table, engine=engine)
    return open_table(table, engine=engine, folder=folder, sheet=spec.sheet, header=spec.header)


def local_engine() -> Engine:
    """Return the engine of this machine."""
    return _load_engine(_LOCAL)


def spark_engine(
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    most_tuples: int | None = None,
) -> Engine:
    """Return the engine of a Spark session: the active one, or else a new one at a master.

    Without arguments this is the active session, or a local one if there is none.

    Args:
        master: Address of the master of a new session, such as ``spark://host:7077``.
        settings: Settings of Spark for a new session, such as
            ``{"spark.executor.memory": "8g"}``.
        most_tuples: Largest number of distinct tuples that the driver receives, 20 million by
            default. Tables with more are counted on the executors.

    Returns:
        An engine, for the parameter ``engine`` of :func:`incrowd.publish`, :func:`incrowd.check`,
        :func:`incrowd.evaluate` and :func:`incrowd.attack`.

    Raises:
        IncrowdError: PySpark or Java is missing, or the master cannot be reached.

    Examples:
        >>> import incrowd as ic
        >>> cluster = ic.spark_engine("spark://host:7077")  # doctest: +SKIP
        >>> release = ic.publish("census.people", "spec.yaml", engine=cluster)  # doctest: +SKIP
    """
    usual = _load_engine(_SPARK)
    if master is None and not settings and most_tuples is None:
        return usual
    bound = {} if most_tuples is None else {"most_tuples": most_tuples}
    engine: Engine = import_module(_SPARK).SparkEngine(master, settings, **bound)
    return engine


def require_catalog(engine: object) -> TableCatalog:
    """Return an engine that keeps tables by name; refuse any other."""
    if not isinstance(engine, TableCatalog):
        raise IncrowdError("Tables are saved by name on Spark only. Use --engine spark.")
    return engine


def choose_engine(source: object) -> Engine:
    """Return the engine that opens such objects; for what is of no library, the local one.

    Of two tables that are given together, that of the people decides.
    """
    source = get_people(source)
    libraries = [kind.__module__.split(".")[0] for kind in type(source).__mro__]
    return _load_engine(next((_ENGINES[name] for name in libraries if name in _ENGINES), _LOCAL))


def _load_engine(module: str) -> Engine:
    try:
        engine: Engine = import_module(module).ENGINE
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in ("pyspark", "py4j"):
            raise TableError(
                "Spark needs an extra. Install it: pip install 'incrowd[spark]'."
            ) from error
        raise
    return engine
