"""Explore: limits and weights, rules on sensitive columns, payout, and the risk by sets of columns.

What is chosen here is saved in the spec; what is shown is read from the table, for the curator
alone.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from incrowd.measure.table_risk import TableRisk
from incrowd.spec.file import SpecFile
from incrowd.spec.release import KAnonymitySpec
from incrowd.studio import class_rule_form, hierarchy_form, payout_form
from incrowd.studio.answer_cache import get_answer_cache
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.server import Form, Studio, make_edit_route
from incrowd.studio.views.data import make_snapshot
from incrowd.studio.worker_pool import SpecSnapshot

_LARGEST_SET, _MOST_COLUMNS, _MOST_SHOWN = 3, 20, 10


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of what is chosen on the page."""

    def set_limits(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        work.apply_changes(class_rule_form.set_limits(work.file, form))
        return _redirect_to_page(work)

    def set_rules(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        name = form.get("column", "")
        work.apply_changes(class_rule_form.set_rules(work.file, name, form))
        return _redirect_to_page(work)

    def set_payout(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        work.apply_changes(payout_form.set_payout(work.file, form))
        return _redirect_to_page(work)

    def show_page(request: Request) -> Response:
        from incrowd.studio.views.explore import show_explore

        return show_explore(studio, request)

    return [
        make_edit_route(studio, "/desk/{work}/explore/limits", set_limits, show_page),
        make_edit_route(studio, "/desk/{work}/explore/rules", set_rules, show_page),
        make_edit_route(studio, "/desk/{work}/explore/payout", set_payout, show_page),
    ]


def _redirect_to_page(work: OpenSpec) -> Response:
    return RedirectResponse(f"/desk/{work.name}/explore", status_code=303)


def make_choice_view(file: SpecFile, *, only_rules: bool = False) -> dict[str, Any]:
    """Return what the forms of the page begin with; of some methods it has rules alone."""
    release = file.spec.release
    levels = release.levels if release is not None else {}
    algorithm = getattr(release, "algorithm", None)
    is_k_anonymity = isinstance(release, KAnonymitySpec)
    limited = {
        name: (level, level) if isinstance(level, int) else level for name, level in levels.items()
    }
    return {
        "only_rules": only_rules,
        "limited": limited,
        "weights": {name: column.weight for name, column in file.spec.columns.items()},
        "rule_groups": class_rule_form.GROUPS,
        "aggregates": class_rule_form.AGGREGATES,
        "generalized": file.spec.columns_with_role("quasi"),
        "has_rules": algorithm not in ("suppress", "mdav", "duplicate"),
        "has_aggregates": is_k_anonymity and algorithm not in ("suppress", "duplicate"),
        "has_links": is_k_anonymity and algorithm == "suppress",
        "payout": payout_form.read_payout(file),
        "amounts": payout_form.AMOUNTS,
        "attackers": payout_form.ATTACKERS,
        "sensitive": {
            name: class_rule_form.read_rules(file, name)
            for name in file.spec.columns_with_role("sensitive")
        },
        "kinds": {
            name: hierarchy_form.get_kind(column.hierarchy)
            for name, column in file.spec.columns.items()
        },
    }


def ask_for_set_risk(studio: Studio, work: OpenSpec, file: SpecFile) -> Any:
    """Return the risk by sets of generalized columns; None while it is being found."""
    names = file.spec.columns_with_role("quasi")[:_MOST_COLUMNS]
    written = {name: file.spec.columns[name].written for name in names}
    release = file.spec.release
    k = release.k if release is not None else None
    return get_answer_cache(work).get_answer(
        studio.hands, "sets", (str(written), str(file.spec.unit), k), measure_set_risk,
        make_snapshot(work), names,
    )  # fmt: skip


def measure_set_risk(snapshot: SpecSnapshot, names: tuple[str, ...]) -> TableRisk:
    """Measure how far sets of up to three columns tell rows apart, the worst first."""
    from dataclasses import replace

    from incrowd.curate.risk_assessment import risk

    file, table = snapshot.open_spec_and_table()
    largest = min(_LARGEST_SET, len(names))
    assessed = risk(table, file, columns=names, largest_set=largest)
    worst = sorted(assessed.sets, key=lambda x: (-x.violating, -x.uniques, len(x.columns)))
    return replace(assessed, sets=tuple(worst[:_MOST_SHOWN]))
