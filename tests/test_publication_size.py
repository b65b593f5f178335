"""The number of rows decides nothing that is published; a number in the spec may, and is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.findings import list_verify_messages
from support.pinned_randomness import PinnedRandomness
from support.unjudged import publish_unjudged

from incrowd.curate.planned_guarantee import plan_guarantee
from incrowd.evaluation.attacks.shadows import ShadowReleases
from incrowd.evaluation.audit import audit as auditing
from incrowd.methods.expect import expect
from incrowd.methods.registry import make_method
from incrowd.privacy.events import serialize_event
from incrowd.publication import Release
from incrowd.release.verify_guarantee import check_guarantee
from incrowd.spec.file import SpecFile, load_spec

pytestmark = pytest.mark.usefixtures("settled_once")
DEEP = {"intervals": {"from": 0, "to": 63, "widths": [2, 4, 8, 16, 32]}}
NAMES = tuple(f"c{at}" for at in range(6))  # 7 ** 6 schemes, more than any step allows
THRESHOLDS = (2_000, 10_000)  # where a stated size changes the split or the schemes
BUDGET = {"method": "safe", "epsilon": 1.0, "delta": 1e-6}
PATHS: dict[str, dict[str, Any]] = {
    "auto, counts": {},
    "auto, sample": {"draw": "sample", "levels": {name: [4, 6] for name in NAMES}},
    "auto, target": {"target": "c0", "levels": {name: [4, 6] for name in NAMES[1:]}},
    "auto, own search_epsilon": {"search_epsilon": 0.3},
    "search, counts": {"scheme": "search", "levels": {name: [3, 6] for name in NAMES}},
    "search, sample": {
        "scheme": "search", "draw": "sample", "levels": {name: [4, 6] for name in NAMES},
    },
    "mondrian": {"scheme": "mondrian", "levels": {name: [4, 6] for name in NAMES[2:]}},
    "slices, chosen": {"slices": {"columns": 2, "tables": 3}},
    "slices, declared": {"slices": [list(NAMES[:3]), list(NAMES[3:])]},
    "slices, sample": {"slices": [list(NAMES[:3]), list(NAMES[3:])], "draw": "sample"},
    "fixed, counts": {"scheme": "fixed", "levels": dict.fromkeys(NAMES, 5)},
    "fixed, sample": {"scheme": "fixed", "draw": "sample", "levels": dict.fromkeys(NAMES, 5)},
    "already sampled": {"already_sampled": 0.1},
}  # fmt: skip


def spec(release: dict[str, Any], size: object = "public") -> SpecFile:
    columns = {name: {"role": "quasi", "hierarchy": DEEP} for name in NAMES}
    stated = {} if size is None else {"size": size}
    return load_spec({**stated, "columns": columns, "release": {**BUDGET, **release}})


def table(rows: int) -> pl.DataFrame:
    """The first rows of one table, so that two of them are neighbors."""
    values = np.random.default_rng(1).integers(0, 64, (10_001, len(NAMES)))[:rows]
    return pl.DataFrame({name: values[:, at] for at, name in enumerate(NAMES)})


def made(rows: int, file: SpecFile, folder: Path) -> Release:
    return publish_unjudged(table(rows), file, output=folder, bits=PinnedRandomness(5))


def settled(release: Release) -> dict[str, Any]:
    """What is published and was settled before anything was drawn or chosen."""
    certificate = release.certificate
    chosen = {"k", "beta"} if not certificate.has_noisy_counts else set()  # by the search itself
    return {
        "guarantee": certificate.guarantee.model_copy(update={"statement": ""}),
        "events": certificate.events,
        "shared": certificate.parameters if certificate.slices is not None else {},
        "tables": [
            {name: x for name, x in table.parameters.items() if name not in chosen}
            for table in certificate.tables
        ],
        "reasons": release.reasons,
    }


@pytest.mark.filterwarnings("ignore::incrowd.errors.IncrowdWarning")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_neighbors_around_a_threshold_publish_the_same_parameters(
    path: str, threshold: int, tmp_path: Path
) -> None:
    """Seeded alike, so that a coin that sees no data falls alike."""
    below, above = (
        made(threshold - 1 + more, spec(PATHS[path]), tmp_path / str(more)) for more in (0, 1)
    )
    assert settled(below) == settled(above)
    by_spec_alone = make_method(spec(PATHS[path], None)).events
    assert settled(below)["events"] == [serialize_event(event) for event in by_spec_alone]
    assert list_verify_messages(tmp_path / "0") == list_verify_messages(tmp_path / "1") == []


@pytest.mark.parametrize("path", PATHS)
def test_every_task_settles_what_publish_settles(path: str) -> None:
    """An audit, a promise, shadow releases and expectations are of the release that is made."""
    rows = table(1_999)
    for size in ("public", None, 1_999, 2_000, 50_000):
        file = spec(PATHS[path], size)
        method = make_method(file)
        job = auditing._AuditJob(auditing._count_cells_once(file), 0.01, 1, (), 1.0, None)
        assert job.make_bench(None).method.events == method.events
        assert list(plan_guarantee(file).events) == method.events
        shadows = ShadowReleases.from_table(rows, file, rng=np.random.default_rng(1))
        assert shadows.method.events == method.events
        assert expect(rows, file).crowd == method.planned_release.crowd


def test_a_public_size_is_what_expectations_are_of() -> None:
    assert {item.size for item in expect(table(1_999), spec({})).each} == {1_999}


NAMED = [path for path in PATHS if not path.startswith("fixed")]


@pytest.mark.filterwarnings("ignore::incrowd.errors.IncrowdWarning")
@pytest.mark.parametrize("path", PATHS)
def test_a_stated_size_is_named_where_it_may_have_decided_parameters(
    path: str, tmp_path: Path
) -> None:
    certificate = made(300, spec(PATHS[path], 1_999), tmp_path / "out").certificate
    assert certificate.parameters.get("size") == (1_999.0 if path in NAMED else None)
    assert list_verify_messages(tmp_path / "out") == []
    if certificate.slices is not None:
        assert all("size" not in item.parameters for item in certificate.slices)
    for size in ("public", None):
        unnamed = made(300, spec(PATHS[path], size), tmp_path / str(size)).certificate
        assert "size" not in unnamed.parameters


def test_a_size_that_decides_nothing_is_not_named(tmp_path: Path) -> None:
    """The spec says what the search spends, and no step allows fewer schemes than there are."""
    few = {"levels": {name: [5, 6] for name in NAMES}, "search_epsilon": 0.3}
    certificate = made(300, spec(few, 1_999), tmp_path / "out").certificate
    assert "size" not in certificate.parameters


@pytest.mark.parametrize("wrong", [0.0, -3.0, 1.5, 2.0**60, "many"])
def test_a_size_that_is_no_number_of_people_does_not_verify(wrong: object, tmp_path: Path) -> None:
    release = made(300, spec(PATHS["auto, counts"], 1_999), tmp_path / "out")
    changed = {**release.certificate.parameters, "size": wrong}
    forged = release.certificate.model_copy(update={"parameters": changed})
    assert any("size" in str(finding) for finding in check_guarantee(forged.with_seal()))
