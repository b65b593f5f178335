"""Releases that were changed or lie, though hashes and seal fit, and how verify finds it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.findings import list_verify_messages
from support.patients import COLUMNS, QUASI
from support.patients import publish_patients as released_classes
from support.releases import forge_certificate, sort_rows
from support.slice_tables import (
    CHOSEN,
    change_certificate,
    load_certificate,
    make_sliced_people,
)
from support.slice_tables import publish_slices as released_slices

from incrowd.privacy.events import SafeRelease, serialize_event
from incrowd.release.certificate import Certificate, CertifiedGuarantee, Slice, hash_file
from incrowd.release.parameters import Parameters
from incrowd.release.statement import Facts, Sentence, write_statement

# Classes of k-anonymity.


@pytest.fixture(scope="module")
def classes(patients: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes") / "out"
    columns = COLUMNS.replace(
        "diagnosis: {role: sensitive}", "diagnosis: {role: sensitive, diversity: {distinct: 2}}"
    ).replace("weight: {role: sensitive}", "weight: {role: drop}")
    columns = columns.replace("zip: {role: quasi", "zip: {weight: 0.1, role: quasi")
    released_classes(patients, folder, "k: 5, algorithm: mondrian, format: csv", columns)
    return folder


def resealed(
    classes: Path,
    copy: Path,
    data: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
    parameters: dict[str, float | str] | None = None,
    **changes: Any,
) -> Path:
    """A release changed by somebody who knows the code: hashes, counts, words and seal fit."""
    shutil.copytree(classes, copy)
    frame = sort_rows(data(pl.read_csv(copy / "data.csv", infer_schema=False)))
    frame.write_csv(copy / "data.csv")
    certificate = load_certificate(classes)
    sizes = frame.group_by(QUASI).len()["len"]
    release = certificate.table.release.model_copy(
        update={
            "sha256": hashlib.sha256((copy / "data.csv").read_bytes()).hexdigest(),
            "rows": len(frame),
            "classes": len(sizes),
            "smallest_class": sizes.min(),
        }
    )
    values = {**certificate.parameters, **(parameters or {})}
    update = {"release": release, "parameters": values}
    changed = (
        certificate.model_copy(update=update)
        .with_statement()
        .model_copy(update=changes)
        .with_seal()
    )
    forge_certificate(copy, changed)
    return copy


def test_an_honest_copy_verifies(classes: Path, tmp_path: Path) -> None:
    assert list_verify_messages(classes) == []
    assert list_verify_messages(resealed(classes, tmp_path / "copy")) == []


def test_a_changed_value_is_found(classes: Path, tmp_path: Path) -> None:
    shutil.copytree(classes, tmp_path / "copy")
    text = (classes / "data.csv").read_text()
    (tmp_path / "copy" / "data.csv").write_text(text.replace("female", "Person", 1))
    assert list_verify_messages(tmp_path / "copy") == [
        "The file 'data.csv' was changed: its hash does not match."
    ]


def smaller(frame: pl.DataFrame) -> pl.DataFrame:
    """One class cut down to four rows."""
    first = frame.select(QUASI).row(0)
    in_class = pl.all_horizontal(
        pl.col(name).eq_missing(value) for name, value in zip(QUASI, first, strict=True)
    )
    return pl.concat([frame.filter(~in_class), frame.filter(in_class).head(4)])


def test_a_class_smaller_than_k_is_found(classes: Path, tmp_path: Path) -> None:
    (result,) = list_verify_messages(resealed(classes, tmp_path / "copy", smaller))
    assert result == "1 group is smaller than k = 5; the smallest has 4 rows."


@pytest.mark.parametrize("label", ["1800-1850", "1950-1940", "1950-", "nineteen", "**"])
def test_labels_outside_the_hierarchy_are_found(classes: Path, tmp_path: Path, label: str) -> None:
    def changed(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(birth_year=pl.lit(label))

    verify_messages = list_verify_messages(resealed(classes, tmp_path / "copy", changed))
    assert verify_messages == [f"'{label}' in column 'birth_year' is not a label of its hierarchy."]


def test_a_raised_k_is_found(classes: Path, tmp_path: Path) -> None:
    verify_messages = list_verify_messages(
        resealed(classes, tmp_path / "copy", parameters={"k": 50.0})
    )
    assert len(verify_messages) == 1
    assert "smaller than k = 50" in verify_messages[0]


LIES: list[dict[str, Any]] = [
    {"method": "safe"},
    {"kept": []},
    {"kept": ["diagnosis", "name"]},
    {"events": [{"kind": "safe release", "k": 5, "beta": 0.1}]},
]


@pytest.mark.parametrize("lie", LIES)
def test_lies_in_the_certificate_are_found(
    classes: Path, tmp_path: Path, lie: dict[str, Any]
) -> None:
    assert list_verify_messages(resealed(classes, tmp_path / "copy", **lie)) != []


@pytest.mark.parametrize(
    "change",
    [
        {"statement": [Sentence(key="k_anonymity", text="This is differential privacy.")]},
        {"epsilon": 1.0, "delta": 1e-6},
        {"kind": "differential privacy"},
        {"unit": "one person"},
    ],
)
def test_a_changed_guarantee_is_found(
    classes: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    guarantee = load_certificate(classes).guarantee.model_copy(update=change)
    assert list_verify_messages(resealed(classes, tmp_path / "copy", guarantee=guarantee)) != []


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0.1},
        {"note": "differentially private"},
        {"rule of thumb. This file is differentially private with epsilon": 0.1},
        {"rule diagnosis, distinct values, at least": "many"},
        {"suppressed": "never"},
        {"algorithm": "magic"},
    ],
)
def test_parameters_that_no_release_has_are_found(
    classes: Path, tmp_path: Path, parameters: dict[str, float | str]
) -> None:
    """They are read by people, and some become part of the statement."""
    try:
        copy = resealed(classes, tmp_path / "copy", parameters=parameters)
    except (LookupError, ValueError):  # no statement can be made of them
        return
    assert list_verify_messages(copy) != []


def test_a_rule_that_does_not_hold_is_found(classes: Path, tmp_path: Path) -> None:
    """The statement says that it holds inside every class, and the file tells whether it does."""
    (rule,) = [name for name in load_certificate(classes).parameters if name.startswith("rule ")]
    assert (
        list_verify_messages(resealed(classes, tmp_path / "raised", parameters={rule: 6.0})) != []
    )

    def alike(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(diagnosis=pl.lit("cancer"))

    assert list_verify_messages(resealed(classes, tmp_path / "alike", alike)) != []


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return make_sliced_people()


# Slices.


@pytest.fixture(scope="module")
def sliced(people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four chosen slices, with searched schemes."""
    folder = tmp_path_factory.mktemp("sliced") / "out"
    released_slices(people, folder, f"{CHOSEN}, scheme: search, format: csv, beta: 0.25")
    return folder


@pytest.fixture(scope="module")
def plain(people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Declared slices with fixed schemes, the second with a k of its own.

    One k for all is what is published today; a certificate may have several.
    """
    folder = tmp_path_factory.mktemp("sliced") / "out"
    more = "slices: [[a, b], [c, e], [d, z]], levels: {a: 1, b: 1, c: 1, d: 1, e: 3, z: 5}"
    released_slices(people, folder, f"{more}, scheme: fixed, format: csv, beta: 0.25")
    certificate = load_certificate(folder)
    larger = certificate.k + 5
    events = [*certificate.events]
    events[1] = {**events[1], "k": larger}
    change_certificate(
        folder, **told_by(certificate, [{}, {"k": float(larger)}, {}]), events=events
    )
    return folder


def told_by(
    certificate: Certificate,
    tables: Sequence[Parameters],
    shared: Parameters | None = None,
    places: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Other parameters of some tables or of all, and the statement that goes with them."""
    assert certificate.slices is not None
    slices_ = [
        table.model_copy(update={"parameters": {**table.parameters, **changes}})
        for table, changes in zip(certificate.slices, tables, strict=True)
    ]
    slices_ = [slices_[at] for at in (places if places is not None else range(len(slices_)))]
    update = {"slices": slices_, "parameters": certificate.parameters if shared is None else shared}
    guarantee = certificate.model_copy(update=update).with_statement().guarantee
    return {**update, "guarantee": guarantee}


NO_CHANGE: list[Parameters] = [{}, {}, {}, {}]


def event_dropped(certificate: Certificate, _: Path) -> dict[str, Any]:
    return {"events": certificate.events[:-1]}


def choice_dropped(certificate: Certificate, _: Path) -> dict[str, Any]:
    """One of the choices is not paid for."""
    return {"events": certificate.events[1:]}


def all_choices_dropped(certificate: Certificate, _: Path) -> dict[str, Any]:
    """The events of declared slices, the words of chosen ones."""
    return {"events": [event for event in certificate.events if event["kind"] != "selection"]}


def choices_last(certificate: Certificate, _: Path) -> dict[str, Any]:
    return {"events": certificate.events[::-1]}


def slice_dropped(certificate: Certificate, folder: Path) -> dict[str, Any]:
    """A slice goes with its file; what it cost is forgotten as little as it should be."""
    (folder / "data-4.csv").unlink()
    return told_by(certificate, NO_CHANGE, places=[0, 1, 2])


def one_left(certificate: Certificate, folder: Path) -> dict[str, Any]:
    """The first slice as if it were a release of its own."""
    for number in (2, 3, 4):
        (folder / f"data-{number}.csv").unlink()
    (folder / "data-1.csv").rename(folder / "data.csv")
    first = certificate.tables[0]
    return {
        "slices": None, "parameters": first.parameters, "scheme": first.scheme,
        "release": first.release.model_copy(update={"file": "data.csv"}),
    }  # fmt: skip


def slice_left(certificate: Certificate, folder: Path) -> dict[str, Any]:
    """One slice, still called one, with its own event."""
    for number in (2, 3, 4):
        (folder / f"data-{number}.csv").unlink()
    return {
        **told_by(certificate, NO_CHANGE, places=[0]),
        "events": certificate.events[3]["events"],
    }


def smaller_k(certificate: Certificate, _: Path) -> dict[str, Any]:
    return told_by(certificate, [{}, {}, {"k": certificate.k - 1.0}, {}])


def smaller_k_everywhere(certificate: Certificate, _: Path) -> dict[str, Any]:
    """A k that the budget does not allow, in one slice and its event."""
    events = json.loads(json.dumps(certificate.events))
    events[-2]["events"][1]["events"][0]["k"] = 5
    return {**told_by(certificate, [{}, {}, {"k": 5.0}, {}]), "events": events}


def larger_k_everywhere(certificate: Certificate, _: Path) -> dict[str, Any]:
    """A k that the budget allows and the file does not have."""
    larger = certificate.tables[2].release.smallest_class + 1
    events = json.loads(json.dumps(certificate.events))
    events[-2]["events"][1]["events"][0]["k"] = larger
    return {**told_by(certificate, [{}, {}, {"k": float(larger)}, {}]), "events": events}


def smaller_beta(certificate: Certificate, _: Path) -> dict[str, Any]:
    return told_by(certificate, [{}, {"beta": 0.1}, {}, {}])


def cheaper_choices(certificate: Certificate, _: Path) -> dict[str, Any]:
    return told_by(certificate, NO_CHANGE, shared={"slices_epsilon": 0.01})


def no_choices(certificate: Certificate, _: Path) -> dict[str, Any]:
    """Slices that were chosen from the table, said to have been declared."""
    return told_by(certificate, NO_CHANGE, shared={})


def cheaper_search(certificate: Certificate, _: Path) -> dict[str, Any]:
    return told_by(certificate, [{"search_epsilon": 0.001}, {}, {}, {}])


def dearer_choice(certificate: Certificate, _: Path) -> dict[str, Any]:
    """What the choices truly cost would break the budget."""
    events = [{"kind": "selection", "epsilon": 0.5}, *certificate.events[1:]]
    cost = round(0.5 + sum(event["epsilon"] for event in certificate.events[1:3]), 6)
    return {**told_by(certificate, NO_CHANGE, shared={"slices_epsilon": cost}), "events": events}


def sampled_besides(certificate: Certificate, _: Path) -> dict[str, Any]:
    """A population that nobody has drawn the table from."""
    return told_by(
        certificate, NO_CHANGE, shared={**certificate.parameters, "already_sampled": 0.1}
    )


def statement_of_one(certificate: Certificate, _: Path) -> dict[str, Any]:
    """The words for a single file."""
    statement = write_statement(Facts(
        "safe", [certificate.tables[0].parameters], unit=certificate.guarantee.unit,
        epsilon=certificate.guarantee.epsilon, delta=certificate.guarantee.delta,
    ))  # fmt: skip
    return {"guarantee": certificate.guarantee.model_copy(update={"statement": statement})}


def statement_of_three(certificate: Certificate, _: Path) -> dict[str, Any]:
    return {"guarantee": told_by(certificate, NO_CHANGE, places=[0, 1, 2])["guarantee"]}


def file_renamed(certificate: Certificate, folder: Path) -> dict[str, Any]:
    (folder / "data-2.csv").rename(folder / "data-7.csv")
    return {"slices": _with_file(certificate, 1, "data-7.csv")}


def files_swapped(certificate: Certificate, folder: Path) -> dict[str, Any]:
    """Each under the name of the other, in the certificate too."""
    (folder / "data-1.csv").rename(folder / "x")
    (folder / "data-2.csv").rename(folder / "data-1.csv")
    (folder / "x").rename(folder / "data-2.csv")
    slices_ = _with_file(certificate, 0, "data-2.csv")
    slices_[1] = _with_file(certificate, 1, "data-1.csv")[1]
    return {"slices": slices_}


def file_twice(certificate: Certificate, folder: Path) -> dict[str, Any]:
    """The second slice is said to be the first file."""
    (folder / "data-2.csv").unlink()
    return {"slices": _with_file(certificate, 1, "data-1.csv")}


def _with_file(certificate: Certificate, at: int, name: str) -> list[Slice]:
    tables = list(certificate.tables)
    data = tables[at].release.model_copy(update={"file": name})
    tables[at] = tables[at].model_copy(update={"release": data})
    return tables


def file_replaced(certificate: Certificate, folder: Path) -> dict[str, Any]:
    """The rows of another slice, with hash and numbers made to fit."""
    shutil.copy(folder / "data-1.csv", folder / "data-2.csv")
    tables = list(certificate.tables)
    data = tables[0].release.model_copy(
        update={"file": "data-2.csv", "sha256": hash_file(folder / "data-2.csv")}
    )
    tables[1] = tables[1].model_copy(update={"release": data})
    return {"slices": tables}


def file_added(_: Certificate, folder: Path) -> dict[str, Any]:
    shutil.copy(folder / "data-1.csv", folder / "data-5.csv")
    return {}


def file_of_all_added(_: Certificate, folder: Path) -> dict[str, Any]:
    shutil.copy(folder / "data-1.csv", folder / "data.csv")
    return {}


def numbers_of_another(certificate: Certificate, _: Path) -> dict[str, Any]:
    tables = list(certificate.tables)
    data = tables[1].release.model_copy(update={"rows": tables[1].release.rows + 1})
    tables[1] = tables[1].model_copy(update={"release": data})
    return {"slices": tables}


def columns_of_another(certificate: Certificate, _: Path) -> dict[str, Any]:
    """A slice that has a column more than its file."""
    tables = list(certificate.tables)
    tables[1] = tables[1].model_copy(
        update={"scheme": {**tables[1].scheme, "e": certificate.tables[2].scheme["e"]}}
    )
    return {"slices": tables}


EVENTS, PARAMETERS = "events are not those of", "parameters are not those of the events"
NOT_TRUE, STATEMENT = "The guarantee is not true", "statement differs"


@pytest.mark.parametrize(
    ("lie", "named"),
    [
        (event_dropped, EVENTS),
        (choice_dropped, PARAMETERS),
        (all_choices_dropped, PARAMETERS),
        (choices_last, EVENTS),
        (slice_dropped, EVENTS),
        (one_left, EVENTS),
        (slice_left, EVENTS),
        (smaller_k, PARAMETERS),
        (smaller_k_everywhere, NOT_TRUE),
        (larger_k_everywhere, "smaller than k"),
        (smaller_beta, PARAMETERS),
        (cheaper_choices, PARAMETERS),
        (no_choices, PARAMETERS),
        (cheaper_search, PARAMETERS),
        (dearer_choice, NOT_TRUE),
        (sampled_besides, PARAMETERS),
        (statement_of_one, STATEMENT),
        (statement_of_three, STATEMENT),
        (file_renamed, "not called as it should be"),
        (files_swapped, "not called as it should be"),
        (file_twice, "not called as it should be"),
        (file_replaced, "not those of the scheme"),
        (file_added, "'data-5.csv' is not covered"),
        (file_of_all_added, "'data.csv' is not covered"),
        (numbers_of_another, "the certificate states"),
        (columns_of_another, "not those of the scheme"),
    ],
)
def test_a_lie_about_slices_is_found_though_its_seal_fits(
    sliced: Path, tmp_path: Path, lie: Callable[[Certificate, Path], dict[str, Any]], named: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(sliced, copy)
    change_certificate(copy, **lie(load_certificate(copy), copy))
    assert any(named in problem for problem in list_verify_messages(copy)), list_verify_messages(
        copy
    )


def test_each_slice_has_its_own_k(plain: Path, tmp_path: Path) -> None:
    assert list_verify_messages(plain) == []
    certificate = load_certificate(plain)
    first, second, third = (float(table.parameters["k"]) for table in certificate.tables)
    assert first == third < second
    assert certificate.k == first
    shutil.copytree(plain, tmp_path / "swapped")
    change_certificate(
        tmp_path / "swapped", **told_by(certificate, [{"k": second}, {"k": first}, {}])
    )
    assert any(PARAMETERS in problem for problem in list_verify_messages(tmp_path / "swapped"))
    # A larger k of the first, which it keeps, and one of the second, which it does not.
    for at, beyond in ((0, 0), (1, 1)):
        events = [serialize_event(SafeRelease(int(first), 0.25)) for _ in range(3)]
        events[at]["k"] = certificate.tables[at].release.smallest_class + beyond
        changes: list[Parameters] = [{"k": float(event["k"])} for event in events]
        shutil.copytree(plain, tmp_path / str(at))
        change_certificate(tmp_path / str(at), **told_by(certificate, changes), events=events)
        problems = list_verify_messages(tmp_path / str(at))
        assert ["smaller than k" in problem for problem in problems] == [True] * beyond


def test_the_truth_told_again_is_no_lie(sliced: Path, tmp_path: Path) -> None:
    """Or every lie above would be found, whatever it says."""
    shutil.copytree(sliced, tmp_path / "copy")
    certificate = load_certificate(sliced)
    change_certificate(
        tmp_path / "copy", **told_by(certificate, NO_CHANGE), events=certificate.events
    )
    assert load_certificate(tmp_path / "copy") == certificate
    assert list_verify_messages(tmp_path / "copy") == []


def test_a_file_that_was_changed_or_taken_is_named(sliced: Path, tmp_path: Path) -> None:
    for name in ("data-3.csv", "scheme/c.csv"):
        copy = tmp_path / name.replace("/", "-")
        shutil.copytree(sliced, copy)
        (copy / name).write_text((copy / name).read_text() + "x;x\n")
        assert any(f"'{name}' was changed" in problem for problem in list_verify_messages(copy))
        (copy / name).unlink()
        assert any(f"'{name}' is missing" in problem for problem in list_verify_messages(copy))


def test_slices_are_not_k_anonymous_because_a_certificate_says_so(
    sliced: Path, tmp_path: Path
) -> None:
    shutil.copytree(sliced, tmp_path / "copy")
    text: Parameters = {"k": 5000.0, "algorithm": "ola", "suppressed": "dropped"}
    words = write_statement(Facts("k-anonymity", [text], unit="one row"))
    promise = CertifiedGuarantee(kind="k-anonymity", statement=words, unit="one row")
    change_certificate(
        tmp_path / "copy", method="k-anonymity", parameters=text, guarantee=promise, events=[]
    )
    assert list_verify_messages(tmp_path / "copy") != []
