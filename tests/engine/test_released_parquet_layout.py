"""A Parquet file is refused, and never ends the process, whatever byte of its footer is changed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet as pq

from incrowd.engine.released import LayoutError, check_layout


def test_no_change_of_the_footer_ends_the_process(tmp_path: Path) -> None:
    """PyArrow aborts where it describes a column whose statistics do not fit its schema."""
    path = tmp_path / "data.parquet"
    table = pa.table({"a": ["x"] * 50, "b": [1] * 50, "count": [3] * 50})
    pq.write_table(table, path, compression="zstd", write_statistics=False, store_schema=False)
    check_layout(path)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for at in range(footer, len(content)):
        for change in (0x01, 0x10):
            path.write_bytes(content[:at] + bytes([content[at] ^ change]) + content[at + 1 :])
            with suppress(LayoutError):
                check_layout(path)
