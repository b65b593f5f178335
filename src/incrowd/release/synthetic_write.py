"""Write the measured tables of synthetic rows, and what the certificate says of them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from incrowd.release.measured import CountEstimates, write_measured
from incrowd.release.synthetic_part import (
    FOLDER,
    MeasuredTable,
    SyntheticPart,
    SyntheticProduct,
)


def write_synthetic(draft: Path, product: SyntheticProduct) -> SyntheticPart:
    """Write a file for each measured table; return the part of the certificate that lists them."""
    (draft / FOLDER).mkdir()
    estimates = CountEstimates(product.measured, product.columns)
    listed = []
    for number, table in enumerate(product.measured):
        file = f"{FOLDER}/{number:03d}.csv"
        text = write_measured(table, estimates).encode()
        (draft / file).write_bytes(text)
        listed.append(
            MeasuredTable(
                file=file,
                sha256=hashlib.sha256(text).hexdigest(),
                columns=list(table.columns),
                levels=list(table.levels),
                centered=[table.columns[axis] for axis in table.centered],
                variances=list(table.variances),
                held=table.held,
            )
        )
    return product.part.model_copy(update={"measured": listed})
