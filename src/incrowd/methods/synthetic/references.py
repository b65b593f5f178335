"""The releases that made-up foreign keys refer to: found, checked, and read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from incrowd.arrays import Bools, Counts
from incrowd.errors import IncrowdError
from incrowd.release.certificate import hash_file
from incrowd.release.foreign_keys import assign_parents
from incrowd.release.synthetic_part import ReferencedKey
from incrowd.release.verify import read_certificate
from incrowd.spec.file import SpecFile
from incrowd.spec.reference import Reference


def read_references(file: SpecFile) -> dict[str, ReferencedKey]:
    """Return, for each made-up key that refers to another release, what that release publishes."""
    return {
        name: _read_reference(name, column.references, file.folder)
        for name, column in file.spec.columns.items()
        if column.references is not None
    }


def _read_reference(name: str, reference: Reference, folder: Path) -> ReferencedKey:
    path = folder / reference.release
    try:
        certificate = read_certificate(path)
    except IncrowdError as error:
        raise IncrowdError(
            f"Column '{name}': it refers to the release '{reference.release}', which cannot be "
            "read. Publish that table first, and name its folder."
        ) from error
    keys = [] if certificate.synthetic is None else certificate.synthetic.keys
    if reference.column not in keys:
        listed = f"Its made-up keys: {', '.join(keys)}." if keys else "It has none."
        raise IncrowdError(
            f"Column '{name}': the release '{reference.release}' has no made-up key "
            f"'{reference.column}'. {listed} Give a column of that table the role `key` under "
            "`method: synthetic`."
        )
    release = certificate.table.release
    if not certificate.is_seal_valid() or hash_file(path / release.file) != release.sha256:
        raise IncrowdError(
            f"Column '{name}': the release '{reference.release}' does not verify. Run `incrowd "
            f"verify {path}`."
        )
    if not release.rows:
        raise IncrowdError(
            f"Column '{name}': the release '{reference.release}' has no rows to refer to. Publish "
            "one with rows."
        )
    children = reference.children
    return ReferencedKey(
        column=reference.column,
        seal=certificate.seal,
        rows=release.rows,
        children=None if children is None else {str(number): x for number, x in children.items()},
    )


def draw_references(
    references: Mapping[str, ReferencedKey], rows: int
) -> dict[str, tuple[Counts, Bools]]:
    """Return the keys that each row refers to, none of them missing."""
    return {
        name: (
            assign_parents(key.seal, name, rows=rows, parents=key.rows, children=key.shares),
            np.zeros(rows, dtype=bool),
        )
        for name, key in references.items()
    }
