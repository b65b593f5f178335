"""Tables of a PostgreSQL database."""

from __future__ import annotations

from typing import Any

import polars as pl

from incrowd.engine.address import take_apart
from incrowd.engine.table import TableError


def read_postgres(address: str) -> pl.DataFrame:
    """All rows of a table; its name is quoted, so that it can be nothing but a name."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise TableError(
            "PostgreSQL needs an extra. Install it: pip install 'incrowd[postgres]'."
        ) from error
    known = take_apart(address)
    if known.doubtful:
        raise TableError(
            f"PostgreSQL address {known.shown}: the end of the password is ambiguous. Write / @ ? "
            "# as %2F %40 %3F %23, or keep it in ~/.pgpass."
        )
    name = known.table
    if not name:
        raise TableError(
            "PostgreSQL address: the table is missing. Add it after '#', as in "
            "postgresql://user@host/database#schema.table."
        )
    quoted = ".".join(map(_quoted, _name_parts(name)))
    try:
        with dbapi.connect(known.uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {quoted} LIMIT 0")  # noqa: S608
            columns = ", ".join(map(_read, cursor.fetch_arrow_table().schema)) or "*"
            cursor.execute(f"SELECT {columns} FROM {quoted}")  # noqa: S608
            frame = pl.from_arrow(cursor.fetch_arrow_table())
    except Error as error:
        reason = known.scrubbed(str(error).splitlines()[0])
        # The driver's own words stay out of tracebacks, too, where they may hold a secret.
        hides = None if known.secrets else error
        raise TableError(f"Cannot read the table {name} from PostgreSQL: {reason}") from hides
    assert isinstance(frame, pl.DataFrame)
    return frame


def _read(field: Any) -> str:
    """How a column is asked for: as text, if its values would come as bytes that tell nothing.

    Such are UUIDs, network addresses, numbers of any length, intervals and whatever the driver
    does not know. Amounts of money would come in cents, and as text
    an address would have a mask.
    """
    name, kind = _quoted(field.name), str(field.type)
    own = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    if own == "money":
        return f"{name}::numeric::text AS {name}"
    if own == "inet":
        return f"abbrev({name}) AS {name}"
    opaque = kind.startswith("extension<") or "interval" in kind
    unknown = "binary" in kind and own != "bytea" and not own.startswith("_")
    return f"{name}::text AS {name}" if opaque or unknown else name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _name_parts(name: str) -> list[str]:
    """schema.table in two parts; a quoted name is one part whatever it holds."""
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        return [name[1:-1].replace('""', '"')]
    return name.split(".", 1)
