"""The risks of singling out, joining and inference beside Anonymeter, on the same tables.

    make anonymeter
    python benchmarks/anonymeter.py [--python PYTHON] [--tries TRIES] [--seed SEED]

PYTHON is that of an environment with Anonymeter, made by ``make anonymeter``. The table is the
census sample, 10,000 people; the control are 10,000 others. "fine" are eight columns with the age
in years and the height in centimeters, in which nearly everybody is unique, "coarse" seven with the
age in steps of five years. The releases: the table itself; half of it, and half other people; other
people alone; and, of the coarse one, the counts of all cells at the level of values with the noise
of a safe release.

Printed for each risk and tool: the share of tries that succeed on the table and on the control, and
what the release adds, (success - control) / (1 - control), with its interval. The last column tells
whether both intervals overlap. Anonymeter throws out rows that repeat before it singles out, and so
counts distinct records: "distinct" is ours of the same, "people" ours as it is. Of rows equally
near it takes those that its sort happens to put first; ours takes a random one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from incrowd.arrays import Floats
from incrowd.codes.axis import locate_points
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.curate.demo_tables import SPECS, make_demo_table
from incrowd.engine.count import count_tuples, read_labels
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdWarning
from incrowd.evaluation.attacks import join, singling_out
from incrowd.evaluation.attacks.view import AttackerView, People, match_labels, sample_people
from incrowd.measure.estimate import Estimate, Rate
from incrowd.measure.label_evaluation import locate_tuples
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import publish
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile, parse_spec

ROOT = Path(__file__).resolve().parent.parent
ROWS = 10_000
SAFE = {"method": "safe", "epsilon": 2.0, "delta": 1e-6, "draw": "counts", "scheme": "fixed"}


@dataclass(frozen=True)
class Setting:
    """Columns of the sample in two halves, which of them are numbers, and what is attacked.

    ``columns`` is how many a predicate is about; ``years`` in how many an age is rounded down.
    """

    name: str
    halves: tuple[list[str], list[str]]
    columns: int
    years: int
    safe: bool = False
    secret: str = "occupation"

    @property
    def names(self) -> list[str]:
        """All columns."""
        return [*self.halves[0], *self.halves[1]]

    def make_spec(self) -> SpecFile:
        """Return the sample's spec for the columns used, at the level of values."""
        spec = parse_spec(SPECS["census"])
        ages = [str(age) for age in range(15, 95, self.years)]
        spec = spec.with_entry(("columns", "age", "hierarchy"), {"order": {"values": ages}})
        centimeters = {"order": {"values": [str(x) for x in range(100, 231)]}}
        for name in spec.spec.columns:
            if name not in self.names:
                spec = spec.with_entry(("columns", name), {"role": "drop"})
            elif name == "height":
                spec = spec.with_entry(
                    ("columns", name), {"role": "quasi", "hierarchy": centimeters}
                )
        return spec.with_entry(("release",), SAFE | {"levels": dict.fromkeys(self.names, 0)})

    def make_tables(self, seed: int) -> dict[str, pl.DataFrame]:
        """Return the original, the control, and the releases."""
        people = make_demo_table("census", rows=3 * ROWS, seed=seed).to_frame()
        people = people.with_columns(
            pl.col("age") // self.years * self.years, pl.col("height").round().cast(pl.Int64)
        )
        original, control, other = (people.slice(at * ROWS, ROWS) for at in range(3))
        tables = {
            "original": original,
            "control": control,
            "copy": original,
            "half": pl.concat([original.head(ROWS // 2), other.head(ROWS // 2)]),
            "other people": other,
        }
        if self.safe:
            release = publish(open_table(original), self.make_spec(), bits=SeededRandomness(seed))
            rows = pl.DataFrame(release.data).with_columns(pl.col("age").cast(pl.Int64))
            tables["safe counts"] = rows
        return {name: frame.select(self.names) for name, frame in tables.items()}


SETTINGS = (
    Setting(
        "fine",
        (
            ["sex", "age", "education", "occupation"],
            ["height", "marital_status", "workclass", "salary_class"],
        ),
        columns=4,
        years=1,
    ),
    Setting(
        "coarse",
        (["sex", "age", "race"], ["marital_status", "workclass", "occupation", "salary_class"]),
        columns=5,
        years=5,
        safe=True,
    ),
)
NUMBERS = ("age", "height")
COMPARED = {  # with which of Anonymeter's risks each of ours is held
    "distinct": "singling out",
    "people": "singling out",
    "join": "join",
    "inference": "inference",
}


@dataclass(frozen=True)
class CountedTables:
    """The tables as ours takes them."""

    counted: CountedTable
    control: Frequencies
    ordered: tuple[int, ...]

    @classmethod
    def from_frames(
        cls, setting: Setting, original: pl.DataFrame, control: pl.DataFrame
    ) -> CountedTables:
        """Count both by positions."""
        declared = setting.make_spec().spec.columns
        columns = {name: declared[name] for name in setting.names}
        counted_table = count_tuples(open_table(original), ColumnHierarchies(columns))
        hierarchies = dict(zip(setting.names, counted_table.hierarchies, strict=True))
        coders = {name: hierarchy.encode for name, hierarchy in hierarchies.items()}
        others = open_table(control).count(counted_table.names, coders)
        ordered = tuple(
            len(hierarchy.values) if name in NUMBERS else 0
            for name, hierarchy in hierarchies.items()
        )
        return cls(counted_table, _convert_to_positions(counted_table, others), ordered)

    @property
    def original(self) -> Frequencies:
        """The people of the table."""
        return _convert_to_positions(self.counted, self.counted.frequencies)

    def view_release(self, release: pl.DataFrame) -> AttackerView:
        """Return a release as an attacker sees it."""
        published = read_labels(open_table(release), self.counted.names, weighted=False)
        *_, covers = locate_tuples(self.counted, self.counted.axes, published)
        table = published.frequencies
        return AttackerView(self.counted.names, table.codes, table.counts, tuple(covers))


def _convert_to_positions(counted_table: CountedTable, table: Frequencies) -> Frequencies:
    return merge_tuples(
        locate_points(counted_table.axes, table.codes).astype(np.int32), table.counts
    )


def estimate_by_incrowd(
    setting: Setting, read: CountedTables, release: pl.DataFrame, tries: int, seed: int
) -> Iterator[tuple[str, Estimate]]:
    """Our estimates of the same risks."""
    rng = np.random.default_rng(seed)
    view = read.view_release(release)
    targets, control = (
        sample_people(read.original, tries, rng),
        sample_people(read.control, tries, rng),
    )
    first, second = ([setting.names.index(name) for name in half] for half in setting.halves)

    def single(view: AttackerView, original: Frequencies, others: Frequencies) -> Estimate:
        return singling_out.isolate_by_rows(
            view, original, others,
            columns=setting.columns, tries=tries, rng=rng, ordered=read.ordered,
        )  # fmt: skip

    alone = replace(view, counts=np.ones_like(view.counts))
    yield "distinct", single(alone, _count_each_once(read.original), _count_each_once(read.control))
    yield "people", single(view, read.original, read.control)
    yield "join", join.join_by_nearest(view, (first, second), targets, control, rng=rng)
    yield (
        "inference",
        infer_secret(view, setting.names.index(setting.secret), targets, control, rng),
    )


def _count_each_once(table: Frequencies) -> Frequencies:
    return Frequencies(table.codes, np.ones_like(table.counts))


def infer_secret(
    view: AttackerView, secret: int, targets: People, control: People, rng: np.random.Generator
) -> Estimate:
    """Guess the secret of a random one of the nearest rows, as Anonymeter does."""
    known_columns = [at for at in range(len(view.names)) if at != secret]
    part, at = view.select_columns(known_columns)
    table = np.zeros((len(part), len(view.covers[secret].labels)), dtype=np.int64)
    np.add.at(table, (at, view.codes[:, secret]), view.counts)

    def chances(some: People) -> Floats:
        result = np.zeros(len(some))
        right = match_labels(view.covers[secret], some.points[:, secret])
        for near in part.find_nearest(some.points[:, known_columns]):
            rows = np.column_stack([near.sum_weights(column) for column in table.T])
            result[near.part] = (rows * right[near.part]).sum(axis=1) / rows.sum(axis=1)
        return result

    shares = table.sum(axis=0) / table.sum()
    blind = match_labels(view.covers[secret], targets.points[:, secret]) @ shares
    return Estimate(
        "inference", "nearest row", "all other columns",
        success=Rate.from_chances(chances(targets), rng),
        guess=Rate.from_chances(blind, rng),
        control=Rate.from_chances(chances(control), rng),
    )  # fmt: skip


def estimate_by_anonymeter(
    python: Path, folder: Path, frames: dict[str, pl.DataFrame], job: dict[str, Any]
) -> Any:
    """Return what Anonymeter says, by release and risk."""
    for name, frame in frames.items():
        frame.write_csv(folder / f"{name}.csv")
    (folder / "job.json").write_text(json.dumps(job))
    # Without the folder of the script on the path, where a file has the name of the package.
    script = Path(__file__).with_name("anonymeter_risks.py")
    command = [str(python), "-P", str(script), str(folder / "job.json")]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    return {(line["release"], line["risk"]): line for line in lines}


def format_estimate(success: float, control: float, excess: tuple[float, ...]) -> str:
    value, low, high = excess
    return f"{success:8.2%}{control:8.2%}{value:9.3f} [{low:.3f}, {high:.3f}]"


def compare_setting(setting: Setting, python: Path, tries: int, seed: int) -> None:
    """Print a line for each release and risk."""
    frames = setting.make_tables(seed)
    releases = [name for name in frames if name not in ("original", "control")]
    job = {
        "releases": releases, "text": [name for name in setting.names if name not in NUMBERS],
        "secret": setting.secret, "halves": setting.halves, "columns": setting.columns,
        "tries": tries, "seed": seed,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        peer = estimate_by_anonymeter(python, Path(folder), frames, job)
    read = CountedTables.from_frames(setting, frames["original"], frames["control"])
    for name in releases:
        start = time.perf_counter()
        for risk, result in estimate_by_incrowd(setting, read, frames[name], tries, seed):
            assert result.control is not None
            mine = format_estimate(result.success.value, result.control.value, result.excess)
            line = f"{setting.name:8}{name:14}{len(frames[name]):7,}  {risk:18}"
            other = peer[name, COMPARED[risk]]
            shares = (other["success"] / other["tries"], other["control"] / other["tries"])
            low, high = other["excess"][1:]
            agree = low <= result.excess[2] and result.excess[1] <= high
            both = f"{format_estimate(*shares, tuple(other['excess'])):44}{mine:44}"
            print(f"{line}{both}{'agree' if agree else 'DIFFER'}")
        seconds = sum(line["seconds"] for at, line in peer.items() if at[0] == name)
        print(f"{'':49}{seconds:.1f} s{'':38}{time.perf_counter() - start:.1f} s", flush=True)


def main() -> None:
    """Compare in every setting."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    usual = ROOT / ".venv-anonymeter" / "bin" / "python"
    parser.add_argument("--python", type=Path, default=usual)
    parser.add_argument("--tries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not args.python.exists():
        sys.exit(f"There is no {args.python}: 'make anonymeter' makes it.")
    warnings.simplefilter("ignore", IncrowdWarning)
    head = f"{'table':8}{'release':14}{'rows':>7}  {'risk':18}"
    print(f"{head}{'Anonymeter: success, control, adds':44}ours")
    for setting in SETTINGS:
        compare_setting(setting, args.python, args.tries, args.seed)


if __name__ == "__main__":
    main()
