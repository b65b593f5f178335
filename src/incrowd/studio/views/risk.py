"""Risk of a table before release, as estimated from the table for the curator alone."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.cli.risk import list_risk_facts
from incrowd.engine.address import is_address
from incrowd.errors import IncrowdError
from incrowd.measure.table_risk import TableRisk
from incrowd.spec.release import SafeSpec, SyntheticSpec, TablesSpec
from incrowd.studio.answer_cache import RefusedAnswer, get_answer_cache
from incrowd.studio.number_form import normalize_number
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.server import Studio
from incrowd.studio.views.data import make_snapshot
from incrowd.studio.worker_pool import SpecSnapshot
from incrowd.studio.workspace import Workspace

_MOST_SETS, _MOST_RECORDS = 12, 10
_FIELDS = "weight", "household", "population", "register", "k", "sets"
_FIGURES = (
    "rows", "sample_frequency", "population_frequency", "risk", "household_risk", "suda",
    "dis_suda",
)  # fmt: skip
_HEADS = {
    "rows": "Records", "sample_frequency": "In the table", "population_frequency": "In population",
    "risk": "Risk", "household_risk": "Household risk", "suda": "SUDA", "dis_suda": "DIS-SUDA",
}  # fmt: skip
_SHARES = ("risk", "household_risk", "dis_suda")


@dataclass(frozen=True)
class RiskQuestion:
    """What the page asks for: columns by name, and a population by size or by its table."""

    weight: str | None = None
    household: str | None = None
    population: int | str | None = None
    k: int | None = None
    largest_set: int | None = None


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of its file."""

    def show_page(request: Request) -> Response:
        desk, work = studio.get_workspace(request), studio.get_open_spec(request)
        fields = request.query_params
        problem = ""
        question: RiskQuestion | None = None
        try:
            question = read_question(work, desk, fields)
        except IncrowdError as error:
            problem = str(error)
        answer = None if question is None else ask_for_risk(studio, work, question)
        table_risk = answer if isinstance(answer, TableRisk) else None
        release = work.file.spec.release
        return studio.render_page(
            "risk.html",
            room="explore",
            work=work,
            fields={name: fields.get(name, "") for name in _FIELDS},
            others=_list_other_columns(work),
            role_weight=next(iter(work.file.spec.columns_with_role("weight")), ""),
            registers=_list_registers(desk, work),
            found=table_risk,
            facts=[]
            if table_risk is None
            else [fact for fact in list_risk_facts(table_risk) if fact[1]],
            columns=_rank_columns(table_risk),
            records=_format_records(table_risk),
            refused=problem or (answer.words if isinstance(answer, RefusedAnswer) else ""),
            waiting=question is not None and answer is None,
            query=request.url.query,
            is_private_choice=isinstance(release, SafeSpec | SyntheticSpec | TablesSpec),
        )

    def send_records(request: Request) -> Response:
        desk, work = studio.get_workspace(request), studio.get_open_spec(request)
        question = read_question(work, desk, request.query_params)
        folder = desk.make_private_folder()
        path = folder / f"{work.title}-risk.csv"
        try:
            studio.hands.submit_task(
                write_records, make_snapshot(work), question, str(path)
            ).result()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return FileResponse(
            path, filename=path.name, media_type="text/csv; charset=utf-8",
            background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
        )  # fmt: skip

    return [
        Route("/desk/{work}/risk", show_page),
        Route("/desk/{work}/risk/records.csv", send_records),
    ]


def read_question(work: OpenSpec, desk: Workspace, fields: Mapping[str, str]) -> RiskQuestion:
    """Return what an address asks for.

    Raises:
        IncrowdError: A field is no number, or names no column or no table of the folder.
    """
    texts = {name: fields.get(name, "").strip() for name in ("weight", "household", "register")}
    for name in ("weight", "household"):
        if texts[name] and texts[name] not in work.file.spec.columns:
            raise IncrowdError(f"The spec has no column '{texts[name]}'. Choose another one.")
    size = _parse_count("population", fields.get("population", ""))
    population: int | str | None = size
    if texts["register"]:
        if size is not None:
            raise IncrowdError("Enter the size of the population or choose its table, not both.")
        if texts["register"] not in _list_registers(desk, work):
            raise IncrowdError(f"The folder has no table '{texts['register']}'.")
        population = str(desk.resolve_path(texts["register"]))
    return RiskQuestion(
        texts["weight"] or None, texts["household"] or None, population,
        _parse_count("k", fields.get("k", "")),
        _parse_count("largest set", fields.get("sets", "")),
    )  # fmt: skip


def _parse_count(name: str, text: str) -> int | None:
    if not text.strip():
        return None
    try:
        number = float(normalize_number(text, is_count=True))
    except ValueError:
        raise IncrowdError(f"'{name}' must be a whole number; got '{text}'.") from None
    if number < 1 or not number.is_integer():
        raise IncrowdError(f"'{name}' must be a whole number of at least 1; got '{text}'.")
    return int(number)


def _list_other_columns(work: OpenSpec) -> list[str]:
    """Return the columns that an attacker is not taken to know."""
    return [name for name, column in work.file.spec.columns.items() if column.role != "quasi"]


def _list_registers(desk: Workspace, work: OpenSpec) -> list[str]:
    """Return the tables of the folder that may be the population: all but the table itself."""
    table_path = "" if is_address(work.place) else work.place
    return [
        path.name
        for path, kind in desk.list_project_files()
        if kind == "table" and str(path) != table_path
    ]


def ask_for_risk(studio: Studio, work: OpenSpec, question: RiskQuestion) -> Any:
    """Return the risk, why there is none, or None while it is being measured."""
    spec = work.file.spec
    names = spec.columns_with_role("quasi")
    written = {name: spec.columns[name].written for name in names}
    k = spec.release.k if spec.release is not None else None
    weights = spec.columns_with_role("weight")
    return get_answer_cache(work).get_answer(
        studio.hands, "risk", (str(written), str(spec.unit), k, weights, question), measure_risk,
        make_snapshot(work), question,
    )  # fmt: skip


def measure_risk(snapshot: SpecSnapshot, question: RiskQuestion) -> TableRisk:
    """Measure the risk without the list of all combinations, which may be long."""
    table_risk = _assess(snapshot, question)
    worst = sorted(table_risk.sets, key=lambda x: (-x.violating, -x.uniques, len(x.columns)))
    return replace(table_risk, sets=tuple(worst[:_MOST_SETS]), records={})


def write_records(snapshot: SpecSnapshot, question: RiskQuestion, path: str) -> None:
    """Write the figures of every combination of values."""
    from pathlib import Path

    from incrowd.engine.source import local_engine

    table_risk = _assess(snapshot, question)
    local_engine().from_columns(table_risk.records).write(Path(path))


def _assess(snapshot: SpecSnapshot, question: RiskQuestion) -> TableRisk:
    from incrowd.curate.risk_assessment import risk

    file, table = snapshot.open_spec_and_table()
    return risk(
        table, file, weight=question.weight, household=question.household,
        population=question.population, k=question.k, largest_set=question.largest_set,
    )  # fmt: skip


def _rank_columns(table_risk: TableRisk | None) -> list[tuple[str, float]]:
    """Return the columns with their parts in the SUDA scores, the largest first."""
    if table_risk is None or not table_risk.special.records:
        return []
    return sorted(table_risk.special.contributions.items(), key=lambda entry: -entry[1])


def _format_records(table_risk: TableRisk | None) -> dict[str, list[Any]]:
    """Return the riskiest combinations as a table: names, heads of the figures, and rows."""
    if table_risk is None or not table_risk.riskiest:
        return {"names": [], "heads": [], "rows": []}
    first = table_risk.riskiest[0]
    figures = [name for name in _FIGURES if name in first and name not in table_risk.columns]
    names = [name for name in first if name not in figures]
    rows = [
        (
            ["null" if record[name] is None else str(record[name]) for name in names],
            [_format_figure(name, record[name]) for name in figures],
        )
        for record in table_risk.riskiest[:_MOST_RECORDS]
    ]
    return {"names": names, "heads": [_HEADS[name] for name in figures], "rows": rows}


def _format_figure(name: str, value: float) -> str:
    return f"{100 * value:.2f} %" if name in _SHARES else f"{value:,.4g}"
