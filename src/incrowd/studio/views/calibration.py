"""Calibrate the weights of a release to known totals, from what is published alone."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.errors import IncrowdError
from incrowd.findings import format_count
from incrowd.studio.projects import PastRelease
from incrowd.studio.server import Form, PageNotFoundError, Studio, make_form_route
from incrowd.studio.views.releases import find_release

_MOST_MARGINS = 3  # columns whose totals a page takes at once


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page, of the calibration and of its file."""

    def find_calibrated(request: Request) -> tuple[Path, str] | None:
        """Return the file that an address names, and how far its weights moved."""
        token = request.query_params.get("result", "")
        file: tuple[Path, str] | None = studio.get_workspace(request).kept.get(
            ("calibrated", token)
        )
        return file

    def show_page(request: Request) -> Response:
        release, _ = find_release(studio.home, request)
        return studio.render_page(
            "calibration.html", room="start", release=release, columns=list_columns(release),
            margins=_MOST_MARGINS,
            calibrated=find_calibrated(request), token=request.query_params.get("result", ""),
        )  # fmt: skip

    def calibrate(request: Request, form: Form) -> Response:
        release, _ = find_release(studio.home, request)
        desk = studio.get_workspace(request)
        columns = list_columns(release)
        totals = read_margins(form, columns)
        weight = form.get("weight", "")
        if weight and (weight not in columns or weight in totals):
            raise IncrowdError(f"'{weight}' is no column of weights. Choose another one.")
        path = desk.make_private_folder() / f"{release.name}-calibrated.csv"
        words = studio.hands.submit_task(
            calibrate_release, str(release.folder), totals, weight or None, str(path)
        ).result()
        token = secrets.token_hex(8)
        desk.kept["calibrated", token] = path, words
        return RedirectResponse(
            f"/release/calibrate?{_make_query(release, result=token)}#calibrated", status_code=303
        )

    def send_file(request: Request) -> Response:
        calibrated = find_calibrated(request)
        if calibrated is None:
            raise PageNotFoundError("This result has expired. Calibrate the weights again.")
        path: Path = calibrated[0]
        return FileResponse(path, filename=path.name, media_type="text/csv; charset=utf-8")

    return [
        Route("/release/calibrate", show_page),
        make_form_route("/release/calibrate/set", calibrate),
        Route("/release/calibrated.csv", send_file),
    ]


def _make_query(release: PastRelease, **more: str) -> str:
    return urlencode({"of": release.name, **more})


def list_columns(release: PastRelease) -> list[str]:
    """Return the published columns of a release of rows; none where it has several files."""
    certificate = release.certificate
    if len(certificate.tables) != 1 or certificate.tabulation is not None:
        return []
    return [*certificate.tables[0].scheme, *certificate.kept, *certificate.noisy]


def read_margins(form: Mapping[str, str], columns: list[str]) -> dict[str, dict[str, float]]:
    """Return the totals of each column that a form states, by label.

    Raises:
        IncrowdError: A column is not published or stated twice, or a line is no label and total.
    """
    margins: dict[str, dict[str, float]] = {}
    for at in range(_MOST_MARGINS):
        name, text = form.get(f"column{at}", ""), form.get(f"totals{at}", "").strip()
        if not name and not text:
            continue
        if name not in columns:
            raise IncrowdError(f"Choose a published column for the totals; got '{name}'.")
        if name in margins:
            raise IncrowdError(f"Column '{name}' has totals twice. Remove one of them.")
        margins[name] = _read_totals(name, text)
    if not margins:
        raise IncrowdError("Choose a column, and enter its totals.")
    return margins


def _read_totals(name: str, text: str) -> dict[str, float]:
    separator = ";" if ";" in text else "\t" if "\t" in text else ","
    totals: dict[str, float] = {}
    lines = [line for line in csv.reader(io.StringIO(text), delimiter=separator) if any(line)]
    for line in lines:
        label = canonicalize_value(line[0])
        total = parse_number(canonicalize_value(line[1])) if len(line) == 2 else None
        if label is None or total is None:
            raise IncrowdError(
                f"Totals of '{name}': '{separator.join(line)}' is not a label and a number. Write "
                "one label and one total in each line, such as north, 1200."
            )
        if label in totals:
            raise IncrowdError(f"Totals of '{name}': '{label}' occurs twice. Remove one.")
        totals[label] = float(total)
    if not totals:
        raise IncrowdError(f"Enter the totals of '{name}': a label and a number in each line.")
    return totals


def calibrate_release(
    folder: str, totals: dict[str, dict[str, float]], weight: str | None, path: str
) -> str:
    """Write a release with calibrated weights; return in words how far the weights moved."""
    from incrowd.curate.survey_weights import calibrate

    calibrated = calibrate(folder, totals, weight=weight)
    calibrated.write(Path(path))
    return (
        f"The totals of {format_count(len(totals), 'column', 'columns')} are met. Weights changed "
        f"by factors from {calibrated.smallest_factor:.4g} to {calibrated.largest_factor:.4g}. "
        f"They are in the column '{calibrated.weight}'."
    )
