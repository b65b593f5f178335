"""Tables of a PostgreSQL database."""

from __future__ import annotations

from typing import Any

import polars as pl

from incrowd.engine.address import parse_address
from incrowd.engine.table import TableError


def read_postgres(address: str) -> pl.DataFrame:
    """Read all rows of a table; its name is quoted, so that it can be nothing but a name."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise TableError(
            "PostgreSQL needs an extra. Install it: pip install 'incrowd[postgres]'."
        ) from error
    parsed = parse_address(address)
    if parsed.doubtful:
        raise TableError(
            f"PostgreSQL address {parsed.shown}: the end of the password is ambiguous. Write / @ ? "
            "# as %2F %40 %3F %23, or keep it in ~/.pgpass."
        )
    name = parsed.table
    if not name:
        raise TableError(
            "PostgreSQL address: the table is missing. Add it after '#', as in "
            "postgresql://user@host/database#schema.table."
        )
    quoted_name = ".".join(map(_quote_name, _split_name(name)))
    try:
        with dbapi.connect(parsed.uri) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {quoted_name} LIMIT 0")  # noqa: S608
            columns = ", ".join(map(_make_select_item, cursor.fetch_arrow_table().schema)) or "*"
            cursor.execute(f"SELECT {columns} FROM {quoted_name}")  # noqa: S608
            frame = pl.from_arrow(cursor.fetch_arrow_table())
    except Error as error:
        reason = parsed.scrub_message(str(error).splitlines()[0])
        # The driver's own words stay out of tracebacks, too, where they may hold a secret.
        hides = None if parsed.secrets else error
        raise TableError(f"Cannot read the table {name} from PostgreSQL: {reason}") from hides
    assert isinstance(frame, pl.DataFrame)
    return frame


def _make_select_item(field: Any) -> str:
    """Return the SELECT item of a column: text, if values would come as bytes without meaning.

    Such are UUIDs, network addresses, numbers of any length, intervals and whatever the driver
    does not know. Amounts of money would come in cents, and as text
    an address would have a mask.
    """
    name, kind = _quote_name(field.name), str(field.type)
    type_name = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    if type_name == "money":
        return f"{name}::numeric::text AS {name}"
    if type_name == "inet":
        return f"abbrev({name}) AS {name}"
    opaque = kind.startswith("extension<") or "interval" in kind
    is_unknown = "binary" in kind and type_name != "bytea" and not type_name.startswith("_")
    return f"{name}::text AS {name}" if opaque or is_unknown else name


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _split_name(name: str) -> list[str]:
    """Split schema.table into two parts; a quoted name is one part whatever it holds."""
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        return [name[1:-1].replace('""', '"')]
    return name.split(".", 1)
