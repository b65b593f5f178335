"""The files in ``shares/``, which follow from the certificate: made, compared and described."""

from __future__ import annotations

from collections.abc import Iterator

from incrowd.release.certificate import Certificate
from incrowd.release.shares_combined import write_combined
from incrowd.release.shares_part import write_shares


def make_share_files(certificate: Certificate) -> Iterator[tuple[str, bytes, str]]:
    """Yield each file: its path, its bytes and what it contains; escaped if the rows are."""
    is_escaped = any(table.release.formulas for table in certificate.tables)
    for share_table in certificate.shares or ():
        content = write_shares(share_table, certificate.rows_per_person, is_escaped=is_escaped)
        yield share_table.file, content, "shares of the values of a column, with errors"
    for combined_rows in certificate.combined or ():
        content = write_combined(combined_rows, is_escaped=is_escaped)
        yield combined_rows.file, content, "rows of the values of a column, over all files"
