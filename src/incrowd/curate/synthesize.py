"""Draw synthetic rows of all columns from a release by slices or tables, into a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from incrowd.engine.table import Table
from incrowd.errors import IncrowdError, Refusal
from incrowd.methods.synthetic.from_release import synthesize_release
from incrowd.release.release import Release
from incrowd.release.verify import read_certificate
from incrowd.verification import verify


def synthesize(release: Release | Path | str, output: Path | str) -> int:
    """Draw rows of all columns from a release by slices or tables of counts, at no cost.

    A model is fitted to the counts of the slices or tables. The guarantee of the release
    covers the rows, and no budget is spent.

    Args:
        release: A release by slices or `method: tables`, or its folder. It is verified first.
        output: The new file of the rows, .parquet or .csv.

    Returns:
        The number of rows that were written.

    Raises:
        IncrowdError: The file exists or is of another kind, the release is not by slices, or it
            does not hold. Nothing is written.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import polars as pl
        >>> import incrowd as ic
        >>> flat = {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b"]}}}
        >>> asked = {"method": "safe", "epsilon": 1.0, "delta": 1e-6, "slices": 2}
        >>> people = pl.DataFrame({name: ["a", "b"] * 1000 for name in ("x", "y", "z")})
        >>> release = ic.publish(people, {"columns": dict.fromkeys("xyz", flat), "release": asked})
        >>> file = Path(tempfile.mkdtemp()) / "rows.csv"
        >>> rows = ic.synthesize(release, file)
        >>> pl.read_csv(file).columns, rows == len(pl.read_csv(file))
        (['x', 'y', 'z'], True)
    """
    return write_synthetic_rows(release, output).rows()


def write_synthetic_rows(release: Release | Path | str, output: Path | str) -> Table:
    """Do what :func:`synthesize` does, and return the rows."""
    file, folder = Path(output), release.folder if isinstance(release, Release) else Path(release)
    if file.suffix not in (".parquet", ".csv"):
        raise IncrowdError(f"'{file}' is neither a .parquet nor a .csv file. Name one.")
    if file.exists():
        raise IncrowdError(f"'{file}' exists. Name another file; nothing was written.")
    findings = verify(folder)
    if findings:
        raise Refusal(f"The release does not hold: {findings[0]} Nothing was written.")
    rows, _ = synthesize_release(folder, read_certificate(folder), rng=np.random.default_rng())
    rows.write(file)
    return rows
