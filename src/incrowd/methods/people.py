"""The rows of each person that a release uses, one or a few, and how to find them again.

With ``unit: {id: COLUMN}`` a release uses one random row of each person, with ``rows: m`` as many
as m. They are chosen before any scheme is looked at. The key of a stream of
random bits decides which: the same key draws the same rows of the same table. A safe release has
a fresh key. Whoever knows it knows which rows were used, so it is kept in the curator's folder
alone, beside figures that are as private. The other methods promise no differential privacy, and
take their key from the user's state folder: so Explore judges the rows that ``publish`` uses, and
a second release of a table shows the same rows of each person.
"""

from __future__ import annotations

import hmac
import json
from pathlib import Path

from incrowd.codes.counted_table import CountedTable
from incrowd.codes.household_type import HouseholdMembers
from incrowd.engine.count import count_people, count_tuples
from incrowd.engine.table import Table, TooManyTuplesError
from incrowd.privacy.randomness import KeyedRandomness, Randomness
from incrowd.release.certificate import Certificate
from incrowd.release.history import History
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.model import PersonId, Spec

FILE = "rows.json"
_PRIVATE = ("safe", "synthetic", "tables")
_PURPOSE = b"one row of each person"


def choose_key(spec: Spec, bits: Randomness, *, rehearsal: bool = False) -> bytes:
    """Choose the key that draws one row of each person.

    Of a rehearsal, where nothing can be kept in the state folder, and where the bits come from a
    seed, it is drawn from the bits, whatever the method.
    """
    is_private = spec.release is not None and spec.release.method in _PRIVATE
    stored_key = b"" if is_private or rehearsal or not bits.private else History().key
    return (
        hmac.digest(stored_key, _PURPOSE, "sha256") if stored_key else bits.draw_words(4).tobytes()
    )


def draw_rows(table: Table, spec: Spec, bits: Randomness, key: bytes | None = None) -> Table:
    """Return the rows of each person that are used; the table itself where a row is a person.

    Without a key, the one that :func:`choose_key` chooses draws them.
    """
    if not isinstance(spec.unit, PersonId):
        return table
    keyed_bits = KeyedRandomness(key or choose_key(spec, bits))
    return table.choose_rows_per_person(spec.unit.id, spec.unit.rows, keyed_bits)


def count_by_unit(table: Table, declared: ColumnHierarchies, spec: Spec) -> CountedTable:
    """Count the rows that are used by distinct tuples: as people, where they may have several.

    Of households that are published whole, all people count, and households by their own columns.
    """
    household = spec.household
    if isinstance(spec.unit, PersonId) and household is not None and household.linked:
        people = count_people(table, declared, spec.unit.id, per_group=spec.unit.rows)
        own_columns = [name for name in declared.names if name in household.columns]
        return HouseholdMembers.from_people(people, own_columns)
    if isinstance(spec.unit, PersonId) and spec.unit.rows > 1:
        return count_people(table, declared, spec.unit.id, per_group=spec.unit.per_group)
    return count_tuples(table, declared)


def write_key(folder: Path, certificate: Certificate, key: bytes) -> None:
    """Write the key of a release into the curator's folder, for its owner's eyes alone."""
    path = folder / FILE
    path.touch(mode=0o600)
    text = json.dumps({"certificate": certificate.seal, "key": key.hex()}, indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def read_key(folder: Path, certificate: Certificate) -> bytes | None:
    """Read the key of a release from the curator's folder; None if it has none of this release."""
    try:
        record = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return bytes.fromhex(record["key"]) if record["certificate"] == certificate.seal else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def refuse_many_people(table: Table, unit: PersonId) -> None:
    """Refuse a table elsewhere whose people have more rows than this machine holds."""
    limit = getattr(table.engine, "most_tuples", None)
    if limit is None or table.rows() <= limit:
        return
    if unit.rows * table.count_people(unit.id) > limit:
        raise TooManyTuplesError(
            f"Table: up to {unit.rows} rows of each person are more than {limit:,}, which exceeds "
            "one machine. Use fewer `rows` under `unit`, or a part of the table."
        )
