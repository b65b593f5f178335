"""Publishing with a scheme that the table has chosen privately, end to end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.findings import list_verify_messages
from support.pinned_randomness import PinnedRandomness
from support.releases import COLUMNS, forge_certificate, get_statement, list_files, make_voter_spec
from support.unjudged import publish_unjudged

from incrowd.anonymize.lattice import Rollups
from incrowd.anonymize.safe_sample import sample_cells
from incrowd.anonymize.safe_search import search_scheme
from incrowd.codes.frequency import Frequencies
from incrowd.curate.demo_tables import make_demo_table
from incrowd.errors import IncrowdError
from incrowd.methods.safe import draw as drawing
from incrowd.methods.safe import scheme as schemes
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Coin, Composition, OneOf, SafeRelease, Selection, parse_event
from incrowd.publication import Release
from incrowd.release.certificate import Certificate
from incrowd.release.ledger import BudgetError, Ledger
from incrowd.spec.file import parse_spec
from incrowd.spec.problem import SpecError

BASE = "method: safe, epsilon: 1, delta: 1.0e-6, scheme: search"
SAMPLE = "draw: sample"


def asked(more: str = "", base: str = BASE) -> str:
    return f"release: {{{base}{', ' if more else ''}{more}}}"


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    frame: pl.DataFrame = make_demo_table("voters", rows=8_000).to_frame()
    return frame


def published(people: pl.DataFrame, folder: Path, more: str = "", **rest: Any) -> Release:
    return publish_unjudged(people, make_voter_spec(asked(more)), output=folder, **rest)


@pytest.fixture(scope="module")
def good(people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("searched") / "out"
    published(people, folder, f"{SAMPLE}, format: csv", bits=PinnedRandomness(7))
    return folder


def certificate_of(folder: Path) -> Certificate:
    return Certificate.model_validate_json((folder / "certificate.json").read_bytes())


def recertified(folder: Path, **changes: Any) -> None:
    """A certificate with changes whose seal fits, as somebody who knows the code would write it."""
    changed = certificate_of(folder).model_copy(update=changes).with_seal()
    forge_certificate(folder, changed)


def restated(certificate: Certificate, **parameters: float) -> dict[str, Any]:
    """Other parameters, and the statement that goes with them."""
    result = {**certificate.parameters, **parameters}
    changed = certificate.model_copy(update={"parameters": result}).with_statement()
    assert changed.guarantee != certificate.guarantee
    return {"parameters": result, "guarantee": changed.guarantee}


def test_a_searched_release_holds_together(good: Path) -> None:
    assert list_verify_messages(good) == []
    certificate = certificate_of(good)
    selection, choice = (parse_event(event) for event in certificate.events)
    assert selection == Selection(0.05)
    assert isinstance(choice, OneOf)
    assert len(choice.events) == 7
    k, beta = certificate.parameters["k"], certificate.parameters["beta"]
    assert SafeRelease(int(k), float(beta)) in choice.events
    assert certificate.parameters["search_epsilon"] == 0.05
    assert certificate.guarantee.epsilon == 1.0
    assert certificate.guarantee.delta == 1e-6
    assert Accountant([selection, choice]).delta(epsilon=1.0) <= 1e-6
    assert "search (ε = 0.05," in get_statement(certificate)["generalization"]
    data = pl.read_csv(good / "data.csv", infer_schema=False)
    sizes = data.group_by(data.columns).len()["len"]
    assert sizes.min() >= int(k)  # type: ignore[operator]
    assert certificate.table.release.rows == len(data) > 1000


def test_nothing_of_the_search_but_its_result_is_in_the_release(good: Path) -> None:
    outside = list_files(good)
    assert outside == [
        "README.md", "certificate.html", "certificate.json", "data.csv",
        "scheme/birth_year.csv", "scheme/race.csv", "scheme/sex.csv",
    ]  # fmt: skip
    certificate = certificate_of(good)
    assert set(certificate.parameters) == {"k", "beta", "search_epsilon"}
    assert [sorted(event) for event in certificate.events] == [
        ["epsilon", "kind"], ["events", "kind"],
    ]  # fmt: skip
    text = (good / "certificate.json").read_text()
    for word in ("score", 'noise":', "scored", "candidates", "8000"):
        assert word not in text


def only_event(certificate: Certificate) -> dict[str, Any]:
    return {"events": certificate.events[1:]}


def lowered(certificate: Certificate) -> dict[str, Any]:
    return restated(certificate, search_epsilon=0.01)


def another_pair(certificate: Certificate) -> dict[str, Any]:
    return restated(certificate, k=float(certificate.k - 1))


def crossed_pair(certificate: Certificate) -> dict[str, Any]:
    """The k of one pair with the beta of another."""
    (other,) = (pair for pair in certificate.events[1]["events"] if pair["beta"] == 0.3)
    assert other["k"] != certificate.k
    return restated(certificate, beta=0.3)


def smaller_pair(certificate: Certificate) -> dict[str, Any]:
    """A pair that the budget does not allow, put among the events."""
    selection, choice = certificate.events
    easy = {"kind": "safe release", "k": 20, "beta": 0.5}
    events = [selection, {**choice, "events": [*choice["events"], easy]}]
    return {"events": events, **restated(certificate, k=20.0, beta=0.5)}


def dearer_search(certificate: Certificate) -> dict[str, Any]:
    events = [{"kind": "selection", "epsilon": 0.9}, certificate.events[1]]
    return {"events": events, **restated(certificate, search_epsilon=0.9)}


def free_search(certificate: Certificate) -> dict[str, Any]:
    events = [{"kind": "selection", "epsilon": 0.0}, certificate.events[1]]
    return {"events": events, **restated(certificate, search_epsilon=0.0)}


def search_last(certificate: Certificate) -> dict[str, Any]:
    return {"events": certificate.events[::-1]}


def fixed_scheme(certificate: Certificate) -> dict[str, Any]:
    """The words for a scheme that does not depend on the table."""
    result = {name: x for name, x in certificate.parameters.items() if name != "search_epsilon"}
    changed = certificate.model_copy(update={"parameters": result}).with_statement()
    assert "fixed before" in get_statement(changed)["generalization"]
    return {"parameters": result, "guarantee": changed.guarantee}


@pytest.mark.parametrize(
    ("lie", "named"),
    [
        (only_event, "not those of one safe release"),
        (lowered, "parameters are not those of the events"),
        (another_pair, "parameters are not those of the events"),
        (crossed_pair, "parameters are not those of the events"),
        (smaller_pair, "The guarantee is not true"),
        (dearer_search, "The guarantee is not true"),
        (free_search, "not those of one safe release"),
        (search_last, "not those of one safe release"),
        (fixed_scheme, "parameters are not those of the events"),
    ],
)
def test_a_lie_about_the_search_is_found_though_its_seal_fits(
    good: Path, tmp_path: Path, lie: Callable[[Certificate], dict[str, Any]], named: str
) -> None:
    shutil.copytree(good, tmp_path / "copy")
    recertified(tmp_path / "copy", **lie(certificate_of(good)))
    assert any(named in problem for problem in list_verify_messages(tmp_path / "copy"))


@pytest.mark.parametrize(
    ("more", "base", "message"),
    [
        (f"{SAMPLE}, k: 20", BASE, "chooses k. Remove `k`"),
        ("search_epsilon: 1", BASE, "leave none for the release. Use a smaller"),
        ("search_epsilon: 2.5", BASE, "use ε = 2.5 of 1"),
        ("levels: {sex: 7}", BASE, "Column 'sex': level 7 does not exist, the highest is 1"),
        ("", "epsilon: 1, scheme: search", "needs ε and δ"),
        ("", "delta: 1.0e-6, scheme: search", "needs ε and δ"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_the_spend(
    people: pl.DataFrame, tmp_path: Path, more: str, base: str, message: str
) -> None:
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=9, delta=1e-5)
    with pytest.raises(IncrowdError, match=message):
        publish_unjudged(
            people, make_voter_spec(asked(more, base)), output=tmp_path / "out", ledger=book
        )
    assert book.spends() == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "base", "message"),
    [
        ("objective: most", BASE, "objective"),
        ("search_epsilon: 0", BASE, "search_epsilon"),
        ("objective: rows", "epsilon: 1, scheme: fixed", "`objective` needs `scheme: search`"),
        ("search_epsilon: 0.1", "epsilon: 1, scheme: fixed", "`search_epsilon` needs"),
        ("levels: {sex: [1, 0]}", BASE, "the levels of 'sex' must rise"),
        (
            "objective: rows",
            "method: k-anonymity, k: 5",
            "is not a setting of `method: k-anonymity`",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_spec(more: str, base: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_spec(f"{COLUMNS}\n{asked(more, base)}\n")


def levels(release: Release) -> dict[str, int | None]:
    return {name: column.level for name, column in release.certificate.table.scheme.items()}


def test_levels_stay_within_their_limits(people: pl.DataFrame, tmp_path: Path) -> None:
    free = levels(published(people, tmp_path / "free", bits=PinnedRandomness(1)))
    assert free["race"] != 1 or free["sex"] != 1  # or the limits below would say nothing
    for at, limit in enumerate(("race: 1, sex: 1, zip: [4, 5]", "race: 0, sex: 0, zip: [3, 4]")):
        release = published(
            people, tmp_path / str(at), f"levels: {{{limit}}}", bits=PinnedRandomness(1)
        )
        result = levels(release)
        assert result["race"] == result["sex"] == 1 - at
        assert result["zip"] in ((4, 5), (3, 4))[at]
        assert list_verify_messages(tmp_path / str(at)) == []


def test_a_given_rate_is_the_only_one(people: pl.DataFrame, tmp_path: Path) -> None:
    for name in ("beta", "keep"):
        release = published(people, tmp_path / name, f"{name}: 0.5, search_epsilon: 0.1")
        choice = parse_event(release.certificate.events[1])
        assert isinstance(choice, OneOf)
        (only,) = choice.events
        assert isinstance(only, SafeRelease)
        assert only.beta == 0.5
        assert release.certificate.parameters == {
            "k": float(only.k), "beta": 0.5, "search_epsilon": 0.1,
        }  # fmt: skip
        assert list_verify_messages(tmp_path / name) == []


@pytest.mark.parametrize(
    ("draw", "event_kind"), [("counts", "geometric counts"), ("sample", "one of")]
)
def test_a_table_that_is_a_sample_says_so(
    people: pl.DataFrame, tmp_path: Path, draw: str, event_kind: str
) -> None:
    release = published(people, tmp_path / "out", f"already_sampled: 0.2, draw: {draw}")
    (event,) = release.certificate.events
    assert event["kind"] == "sampled"
    assert [part["kind"] for part in event["event"]["events"]] == ["selection", event_kind]
    assert release.certificate.parameters["already_sampled"] == 0.2
    assert list_verify_messages(tmp_path / "out") == []


@pytest.mark.parametrize(("draw", "event_type"), [("counts", Coin), ("sample", OneOf)])
def test_the_ledger_books_the_search_and_the_release(
    people: pl.DataFrame, tmp_path: Path, draw: str, event_type: type
) -> None:
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=1.2, delta=1e-6)
    release = published(people, tmp_path / "out", f"draw: {draw}", ledger=book)
    (booked,) = [spend.event for spend in book.spends()]
    assert isinstance(booked, Composition)  # one release is one entry
    assert list(booked.events) == [parse_event(event) for event in release.certificate.events]
    assert [type(event) for event in booked.events] == [Selection, event_type]
    assert 0.9 < book.total().epsilon <= 1.0 + 1e-6
    with pytest.raises(BudgetError):
        published(people, tmp_path / "again", f"draw: {draw}", ledger=book)
    assert len(book.spends()) == 1


def test_seeded_searches_repeat_and_others_do_not(people: pl.DataFrame, tmp_path: Path) -> None:
    item = published(people, tmp_path / "a", bits=PinnedRandomness(3))
    two = published(people, tmp_path / "b", bits=PinnedRandomness(3))
    assert item.certificate == two.certificate
    assert list_verify_messages(tmp_path / "a") == []
    other = published(people, tmp_path / "c", bits=PinnedRandomness(4))
    assert other.certificate.table.release.sha256 != item.certificate.table.release.sha256


def test_objectives_trade_rows_for_detail(tmp_path: Path) -> None:
    """4,000 of 10,000 rows have values of their own crowd, all have one at half the detail.

    So powers of detail score 4,000 against 5,000, 2,500 and 1,250; the noise is far smaller.
    """
    table = pl.DataFrame({"x": [i % 4 for i in range(4000)] + [4 + i % 996 for i in range(6000)]})
    releases = {}
    for name in ("rows", "balanced", "detail"):
        file = parse_spec(
            "columns: {x: {role: quasi, hierarchy: {intervals: {from: 0, to: 999, widths: [500]}}}}"
            "\nrelease: {epsilon: 1, delta: 1.0e-6, scheme: search, beta: 0.5, search_epsilon: 0.1,"
            f" objective: {name}}}"
        )
        releases[name] = publish_unjudged(
            table, file, output=tmp_path / name, bits=PinnedRandomness(1)
        )
        if name == "rows":
            usual = file.with_entry(("release", "objective"), None)
            again = publish_unjudged(
                table, usual, output=tmp_path / "usual", bits=PinnedRandomness(1)
            )
            assert again.certificate == releases[name].certificate
    assert {name: levels(release)["x"] for name, release in releases.items()} == {
        "rows": 1, "balanced": 0, "detail": 0,
    }  # fmt: skip
    assert (
        releases["rows"].certificate.table.release.rows
        > 2 * releases["detail"].certificate.table.release.rows
    )


def test_the_search_sees_the_whole_table_and_spends_what_is_certified(
    people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen before the sample is drawn, from all rows, once, with the epsilon that is booked."""
    seen: list[tuple[int, Any, dict[str, Any]]] = []
    order: list[str] = []

    def watched_search(rollups: Rollups, lattice: Any, ramps: Any, **more: Any) -> Any:
        order.append("search")
        seen.append((rollups.total, ramps, more))
        return search_scheme(rollups, lattice, ramps, **more)

    def watched_safe(frequencies: Frequencies, **more: Any) -> Frequencies:
        order.append("safe")
        assert frequencies.total == len(people)
        return sample_cells(frequencies, **more)

    monkeypatch.setattr(schemes, "search_scheme", watched_search)
    monkeypatch.setattr(drawing, "sample_cells", watched_safe)
    more = f"{SAMPLE}, search_epsilon: 0.0314, objective: balanced"
    release = published(people, tmp_path / "out", more)
    ((rows, ramps, options),) = seen
    assert order == ["search", "safe"]
    assert rows == len(people)
    selection, choice = (parse_event(event) for event in release.certificate.events)
    assert selection == Selection(0.0314)
    assert options["epsilon"] == Fraction("0.0314")
    assert isinstance(choice, OneOf)
    assert tuple(SafeRelease(ramp.k, ramp.beta) for ramp in ramps) == choice.events
    assert options["power"] == 2
    assert options["weights"].tolist() == [1.0] * 4


def test_the_choice_and_the_sample_use_bits_of_their_own(
    people: pl.DataFrame, tmp_path: Path
) -> None:
    """Where only one scheme and one pair are left, the search still uses its words up."""
    item = "beta: 0.5, levels: {zip: 3, sex: 0, birth_year: 4, race: 1}"
    release = published(people, tmp_path / "searched", item, bits=PinnedRandomness(6))
    k = int(release.certificate.parameters["k"])
    fixed = publish_unjudged(
        people,
        make_voter_spec(f"release: {{epsilon: 1, k: {k}, {item}}}"),
        output=tmp_path / "fixed",
        bits=PinnedRandomness(6),
    )
    assert levels(release) == levels(fixed)
    assert release.certificate.table.release.sha256 != fixed.certificate.table.release.sha256
    assert abs(release.certificate.table.release.rows - fixed.certificate.table.release.rows) < 600


@pytest.mark.parametrize(
    ("epsilon", "search"), [("3", ""), ("0.7", ""), ("1", "search_epsilon: 0.0123456789")]
)
def test_any_budget_can_be_searched_with(
    people: pl.DataFrame, tmp_path: Path, epsilon: str, search: str
) -> None:
    base = BASE.replace("epsilon: 1,", f"epsilon: {epsilon},")
    publish_unjudged(people, make_voter_spec(asked(search, base)), output=tmp_path / "out")
    assert list_verify_messages(tmp_path / "out") == []
