"""Schemes whose tuples are not on this machine: how many they are decides nothing published."""

from __future__ import annotations

from typing import Any, cast

import pytest

from incrowd.engine.table import RemoteTuples, Table
from incrowd.errors import IncrowdError
from incrowd.methods.safe import method as making
from incrowd.methods.safe.method import Safe
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import load_spec

pytestmark = pytest.mark.usefixtures("settled_once")
NAMES = ("a", "b", "c")
COLUMNS = {
    name: {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 7, "widths": [2, 4]}}}
    for name in NAMES
}


def elsewhere(_table: Table, declared: ColumnHierarchies, _levels: object) -> RemoteCountedTable:
    """Tuples that are too many for this machine."""
    hierarchies = tuple(declared.get_hierarchy(name, tuple) for name in declared.names)
    levels = (0,) * len(declared.names)
    return RemoteCountedTable(
        declared.names, hierarchies, levels, levels, cast("RemoteTuples", None)
    )


@pytest.mark.parametrize("slices", [[["a", "b"], ["b", "c"]], {"columns": 2}])
def test_slices_are_cut_or_refused_but_not_by_how_many_tuples_they_have(
    slices: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rolled up in place of cut, a slice would show levels: its form would tell its tuples."""
    budget = {"epsilon": 1.0, "delta": 1e-6, "slices": slices}
    cut = Safe(load_spec({"columns": COLUMNS, "release": {**budget, "scheme": "mondrian"}}))
    plain = Safe(load_spec({"columns": COLUMNS, "release": {**budget, "scheme": "search"}}))
    monkeypatch.setattr(making, "count_local_or_remote", elsewhere)
    with pytest.raises(IncrowdError, match="too many distinct tuples for `scheme: mondrian`"):
        cut.count(cast("Table", None))
    assert isinstance(plain.count(cast("Table", None)), RemoteCountedTable)
