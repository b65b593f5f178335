"""A release that was made: its files, its certificate, and what only the curator may see."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from incrowd.engine.source import require_catalog
from incrowd.engine.table import Table
from incrowd.findings import Finding, make_finding
from incrowd.measure.evaluation import Evaluation
from incrowd.release.certificate import Certificate
from incrowd.release.examples import Examples
from incrowd.release.folder import fill_folders, locate_curator_folder
from incrowd.release.ledger_entries import Booking
from incrowd.release.render import Page

NEARLY_NOTHING = 0.05  # of rows, or of pairs of columns


@dataclass(frozen=True, eq=False)
class Release:
    """A release: its data, its certificate, and the private evaluation of the curator.

    ``folder`` holds the files to be handed out, ``curator`` the private ones. Where none was
    asked for, they are temporary and go when the release does; :meth:`save` keeps them. ``booking``
    says how a ledger has booked the release, if one has; ``library`` whose data frames it was
    given; ``examples`` are some rows before and after, and ``unused`` how many rows were not used
    because the unit is a person; both are private as the report is.
    """

    certificate: Certificate
    evaluation: Evaluation
    tables: tuple[Table, ...]
    findings: tuple[Finding, ...]
    folder: Path
    curator: Path
    booking: Booking | None
    reasons: tuple[str, ...] = ()
    library: str = "polars"
    examples: Examples | None = None
    unused: int = 0

    @property
    def is_booked(self) -> bool:
        """Whether a ledger has counted the release."""
        return self.booking is not None

    @property
    def is_empty(self) -> bool:
        """Whether not a single row is shown."""
        return not any(table.release.rows for table in self.certificate.tables)

    @property
    def is_nearly_empty(self) -> bool:
        """Whether hardly anything is shown; see ``find_emptiness``."""
        return bool(find_emptiness(self.certificate, self.evaluation))

    @property
    def data(self) -> Any:
        """The released rows as a data frame; of slices, a list of them.

        Who gave a pandas data frame gets one, who gave a table on Spark one of Spark, anybody else
        a Polars one.
        """
        frames = [table.to_frame() for table in self.tables]
        if self.library == "pandas":
            frames = [frame.to_pandas() for frame in frames]
        return frames if self.certificate.slices is not None else frames[0]

    def report(self) -> Page:
        """Return the curator's report. It is private."""
        return Page((self.curator / "report.html").read_text(encoding="utf-8"))

    def save(self, folder: Path | str, *, curator: Path | str | None = None) -> Path:
        """Copy the release into a folder that does not exist yet or is empty.

        What only the curator may see goes beside it (NAME.curator), or where ``curator`` says.
        """
        public = Path(folder)
        private = locate_curator_folder(public) if curator is None else Path(curator)
        with fill_folders(public, private) as (draft, hidden):
            shutil.copytree(self.folder, draft, dirs_exist_ok=True)
            shutil.copytree(self.curator, hidden, dirs_exist_ok=True)
        return public

    def save_table(self, name: str) -> tuple[str, ...]:
        """Save the released rows as a table of Spark's catalog; slices as NAME_1, NAME_2, ...

        The answer are the names. What the table holds is what the files hold, in no order.
        """
        home, several = require_catalog(self.tables[0].engine), len(self.tables) > 1
        names = [f"{name}_{number}" for number in range(1, len(self.tables) + 1)]
        names = names if several else [name]
        for table_name in names:
            home.refuse_name(table_name)
        for table_name, table in zip(names, self.tables, strict=True):
            home.save(table, table_name)
        return tuple(names)

    def __repr__(self) -> str:
        rows = " + ".join(f"{table.release.rows:,}" for table in self.certificate.tables)
        guarantee = self.certificate.guarantee
        budget = (
            ""
            if guarantee.epsilon is None
            else f", epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}"
        )
        return f"<Release of {rows} rows: {guarantee.kind}{budget}; {self.folder}>"

    def _repr_html_(self) -> str:
        rows = " + ".join(f"{table.release.rows:,}" for table in self.certificate.tables)
        sentences = (escape(sentence.text) for sentence in self.certificate.guarantee.statement)
        items = "".join(f"<li>{text}</li>" for text in sentences)
        return f"<p>{rows} rows.</p><ol>{items}</ol>"


def find_emptiness(certificate: Certificate, evaluation: Evaluation) -> tuple[Finding, ...]:
    """Find a release that shows less than 5 % of rows, or of pairs of columns in slices.

    Nothing of a release that shows more, or nothing at all. Of a sample, rows are those drawn.
    Tables of counts show every cell, and their lines are no rows.
    """
    if certificate.tabulation is not None:
        return ()
    if not any(table.release.rows for table in certificate.tables):
        return ()
    if certificate.slices is not None:
        count = sum(pair.slice is not None for pair in evaluation.associations)
        total, noun = len(evaluation.associations), "pairs of columns"
    else:
        beta = certificate.parameters.get("beta", 1.0)
        rate = float(beta) if isinstance(beta, float) else 1.0
        count, total, noun = (
            evaluation.rows_released,
            round(evaluation.rows_original * rate),
            "rows",
        )
    if count >= NEARLY_NOTHING * total:
        return ()
    finding = make_finding(
        "RELEASE_NEARLY_EMPTY", shown=count, every=total, what=noun, least=NEARLY_NOTHING
    )
    return (finding,)
