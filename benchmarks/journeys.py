"""Real tables taken from their file to a verified release, at the command line, as a user would.

    python benchmarks/journeys.py [--incrowd PROGRAM] [--output FILE] [--only NAME ...]
    python benchmarks/journeys.py --compare BEFORE.json AFTER.json
    python benchmarks/journeys.py --export FOLDER

Runs in an environment with the packages of ``trials.txt`` (``make trials``) and calls the program
of another. Of each table of ``people.py``: ``init``, the roles that a curator knows, ``confirm``,
``check``; then for each method ``publish``, ``verify`` and ``evaluate``. A version without
``confirm`` has the entries taken out of the spec instead.

An edit is any change of the drafted spec besides roles and confirming: the unit where ``init``
did not find it, the edits of the trial where the method did not publish without them, and saving
the table as plain text where ``init`` could not read it. The share is that of the people in the
table. The loss is that of ``evaluate``; it does not tell of columns that the draft leaves
unpublished, so those that a curator would have published are counted as lost. Of slices, the share
is their mean, and there is no loss. A step of more than 120 seconds is stopped. Nothing ends the
run: what a step refuses is recorded and listed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from people import TRIALS, Trial, read_frame, read_packaged_file, write_csv
from ruamel.yaml import YAML

LIMIT = 120.0
PROGRAM = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "incrowd"
METHODS: dict[str, dict[str, Any]] = {
    "safe": {},  # as drafted
    "k-anonymity": {"method": "k-anonymity", "k": 5},
    "k-epsilon": {"method": "k-epsilon", "k": 5, "epsilon": 1.0},
}
WARNING = "warning  "


@dataclass(frozen=True)
class CommandStep:
    """One command: what it took and what it said."""

    name: str
    seconds: float
    status: int | None  # None: stopped at the limit
    out: str
    said: str

    @property
    def has_traceback(self) -> bool:
        """Whether it printed one."""
        return "Traceback (most recent call last)" in self.said + self.out

    @property
    def outcome(self) -> str:
        """In one word."""
        if self.status is None:
            return "stopped"
        if self.has_traceback:
            return "fault"
        return {0: "done", 1: "no", 2: "refused", 4: "empty"}.get(self.status, "fault")

    @property
    def message(self) -> str:
        """What it said, shortened: how many problems there are matters less than which."""
        if self.status is None:
            return f"stopped after {LIMIT:g} s"
        lines = [line for line in self.said.splitlines() if line and WARNING not in line]
        lines = lines[-1:] if self.has_traceback else lines or self.out.splitlines()[:1]
        return " / ".join(line.strip() for line in lines)[:400]


@dataclass
class ReleaseResult:
    """What a method published."""

    outcome: str = "-"
    rows: int | None = None
    share: float | None = None
    loss: float | None = None
    seconds: float | None = None
    verified: bool = False


@dataclass
class Journey:
    """What happened to a table."""

    name: str
    kind: str
    rows: int
    columns: int
    people: int
    confirmations: int = 0
    edits: list[str] = field(default_factory=list)
    draft: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)  # drafted as not to be published, without need
    seconds: dict[str, float] = field(default_factory=dict)
    releases: dict[str, ReleaseResult] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)  # empty releases that said nothing of it


class JourneyRunner:
    """A table on its way, in a folder of its own."""

    def __init__(self, trial: Trial, program: str, folder: Path, *, size: bool) -> None:
        self.trial, self.program, self.folder, self.size = trial, program, folder, size
        self.yaml = YAML()
        self.yaml.width = 10_000
        self.file = trial.file
        frame = read_frame(trial.source)
        people = frame[trial.person].nunique() if trial.person else len(frame)
        if trial.writer is None:
            (folder / trial.file).write_bytes(read_packaged_file(trial.source))
        else:
            trial.writer(frame.copy(), folder / trial.file)
        self.names = [str(name) for name in frame.columns if name != "Unnamed: 0"]
        self.frame = frame
        self.told = Journey(trial.name, trial.kind, len(frame), len(self.names), people)

    def run_step(self, name: str, *arguments: str) -> CommandStep:
        """Run a command; remember its warnings, and its message if it failed."""
        step = run_command(name, [self.program, *arguments], self.folder)
        lines = step.said.splitlines()
        self.told.warnings += [f"{name}: {s[len(WARNING) :]}" for s in lines if WARNING in s]
        if step.has_traceback:
            self.told.tracebacks.append(name)
        if step.status != 0:
            self.told.failures.append((name, step.message))
        return step

    def load_spec(self, spec: str) -> Any:
        """Return a spec, to be changed in place."""
        return self.yaml.load(self.folder / spec)

    def save_spec(self, entries: Any, spec: str) -> None:
        """Write a spec back."""
        self.yaml.dump(entries, self.folder / spec)

    def run_journey(self) -> Journey:
        """Return the whole way."""
        if not self.draft_spec():
            return self.told
        self.set_roles()
        self.confirm_spec()
        step = self.run_step("check", "check", "spec.yaml")
        self.told.seconds["check"] = step.seconds
        findings = [line.strip() for line in step.out.splitlines()]
        self.told.warnings += [f"check: {s}" for s in findings if s.startswith(WARNING)]
        for method in METHODS:
            if method != "k-epsilon" or self.trial.noisy:
                self.told.releases[method] = self.publish_by_method(method)
        return self.told

    def draft_spec(self) -> bool:
        """``init``; on plain text if it cannot read the file, which counts as an edit."""
        options = self.trial.options
        if options and not has_command(self.program, options[0], "init"):
            options = ()
        for file, more in ((self.file, options), ("plain.csv", ())):
            self.file = file
            if file == "plain.csv":
                write_csv(self.frame, self.folder / file)
                self.told.edits.append("saved as plain CSV")
            step = self.run_step("init", "init", file, "-o", "spec.yaml", *more)
            self.told.seconds["init"] = step.seconds
            if step.status == 0:
                result = set(self.load_spec("spec.yaml")["columns"])
                missing = [name for name in self.names if name not in result]
                if not missing:
                    return True
                what = f"{len(missing)} of {len(self.names)} columns not found, such as"
                names_read = ", ".join(sorted(map(str, result))[:3])
                self.told.failures.append(("init", f"{what} '{missing[0]}'; it read: {names_read}"))
                (self.folder / "spec.yaml").unlink()
        return False

    def set_roles(self) -> None:
        """Give columns the roles that a curator knows, which also confirms them."""
        spec, trial = self.load_spec("spec.yaml"), self.trial
        columns = spec["columns"]
        request = [column.get("confirm", ()) for column in columns.values()]
        self.told.confirmations = sum(map(len, request)) + len(spec.get("confirm", ()))
        for name, column in columns.items():
            kind = next(iter(column["hierarchy"]), "") if "hierarchy" in column else ""
            kind = "flat" if column.get("hierarchy") == "flat" else kind
            self.told.draft[str(name)] = f"{column['role']} {kind}".strip()
        person = (trial.person,) if trial.person else ()
        known_columns = {*trial.identifiers, *trial.dropped, *person}
        unpublished = {name for name, drafted in self.told.draft.items() if " " not in drafted}
        self.told.lost = [name for name in self.names if name in unpublished - known_columns]
        for name in (*trial.identifiers, *person):
            set_role(columns[name], "identifier")
        for name in trial.dropped:
            set_role(columns[name], "drop")
        for name in trial.sensitive:
            set_role(columns[name], "sensitive")
        if person and spec.get("unit") != {"id": trial.person}:
            spec["unit"] = {"id": trial.person}
            self.told.edits.append(f"unit: {{id: {trial.person}}}")
        if self.size:
            spec["size"] = "public"
            self.told.edits.append("size: public")
        self.save_spec(spec, "spec.yaml")

    def confirm_spec(self) -> None:
        """Confirm everything: by the command, or else by hand."""
        if has_command(self.program, "confirm"):
            # Its status is 1 where lists of values are left, which is no failure.
            run_command("confirm", [self.program, "confirm", "spec.yaml", "--roles"], self.folder)
            if self.load_spec("spec.yaml").get(
                "confirm"
            ):  # the unit, which older versions do not ask
                run_command(
                    "confirm", [self.program, "confirm", "spec.yaml", "--unit"], self.folder
                )
            left = [
                n for n, c in self.load_spec("spec.yaml")["columns"].items() if c.get("confirm")
            ]
            values = [part for name in left for part in ("--values-are-public", str(name))]
            if values:
                self.run_step("confirm", "confirm", "spec.yaml", *values)
            return
        spec = self.load_spec("spec.yaml")
        for entry in (spec, *spec["columns"].values()):
            entry.pop("confirm", None)
        self.save_spec(spec, "spec.yaml")

    def publish_by_method(self, method: str) -> ReleaseResult:
        """Publish by a method, with the trial's edits if it does not without; verify, evaluate."""
        spec, name = self.load_spec("spec.yaml"), f"{method}.yaml"
        if METHODS[method]:
            spec["release"] = dict(METHODS[method])
        if method == "k-epsilon":
            set_role(spec["columns"][self.trial.noisy], "noisy")
        self.save_spec(spec, name)
        result = self.publish_and_check(method, name, method)
        if result.outcome != "done" and (edits := self.trial.edits.get(method)):
            for path, value in edits.items():
                set_entry(spec, path, value)
                self.told.edits.append(f"{method}: {path}: {value}")
            self.save_spec(spec, name)
            result = self.publish_and_check(method, name, f"{method}-again")
        return result

    def publish_and_check(self, method: str, spec: str, output: str) -> ReleaseResult:
        """Publish into a folder, and hold it against the table."""
        step = self.run_step(f"publish {method}", "publish", spec, "-o", output)
        result = ReleaseResult(outcome=step.outcome, seconds=step.seconds)
        certificate = self.folder / output / "certificate.json"
        if not certificate.exists():
            return result
        sealed = json.loads(certificate.read_text())
        rows = [part["release"]["rows"] for part in sealed.get("slices") or [sealed]]
        result.rows, result.share = sum(rows), sum(rows) / len(rows) / self.told.people
        if not result.rows:
            result.outcome = "empty"
            if step.status == 0:
                self.told.silent.append(method)
        result.verified = self.run_step(f"verify {method}", "verify", output).status == 0
        if len(rows) > 1:
            return result
        data = f"{output}/data.parquet"
        arguments = ("--original", self.file, "--released", data, "--spec", spec, "--json")
        step = self.run_step(f"evaluate {method}", "evaluate", *arguments)
        if step.status == 0:
            result.loss = json.loads(step.out)["loss"]
        return result


def run_command(name: str, words: Sequence[str], folder: Path) -> CommandStep:
    """Run a command in a session of its own, so that all of it can be stopped."""
    pipe, start = subprocess.PIPE, time.perf_counter()
    # What was released before is remembered in the user's state folder: here, in the table's own.
    ours = {"COLUMNS": "200", "NO_COLOR": "1", "XDG_STATE_HOME": str(folder / "state")}
    child = subprocess.Popen(
        words, cwd=folder, env=os.environ | ours, stdout=pipe, stderr=pipe, text=True,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    status: int | None
    try:
        out, command = child.communicate(timeout=LIMIT)
        status = child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        out, command = child.communicate()
        status = None
    return CommandStep(name, time.perf_counter() - start, status, out, command)


@cache
def has_command(program: str, word: str, of: str = "") -> bool:
    """Whether a version has a command, or a command has an option."""
    words = [program, of or word, "--help"]
    with tempfile.TemporaryDirectory() as folder:
        step = run_command("help", words, Path(folder))
    return step.status == 0 and word in step.out


def set_role(column: Any, role: str) -> None:
    """Change a role, with what belongs to the old one; who says a role confirms it."""
    column["role"] = role
    if role != "sensitive":
        for entry in ("hierarchy", "other"):
            column.pop(entry, None)
    entries = [entry for entry in column.pop("confirm", ()) if entry != "role" and entry in column]
    if entries:
        column["confirm"] = entries


def set_entry(spec: Any, path: str, value: Any) -> None:
    """Set the entry of a spec that a path with dots names."""
    *parents, last = path.split(".")
    for name in parents:
        spec = spec[name]
    spec[last] = value


def run_trial(trial: Trial, program: str, *, size: bool) -> Journey:
    """Return a trial from its file to its releases; a fault of this script is a finding, too."""
    folder = Path(tempfile.mkdtemp(prefix="journey-"))
    walk = None
    try:
        walk = JourneyRunner(trial, program, folder, size=size)
        return walk.run_journey()
    except Exception as error:  # noqa: BLE001 - one table must not end the others
        journey = walk.told if walk else Journey(trial.name, trial.kind, 0, 0, 0)
        journey.failures.append(("trial", f"{type(error).__name__}: {error}"[:600]))
        return journey
    finally:
        shutil.rmtree(folder, ignore_errors=True)


HEAD = (
    f"{'table':17}{'file':14}{'rows x columns':>15}{'edits':>6}{'ask':>5}{'lost':>5}"
    f"{'safe':>15}{'k-anonymity':>15}{'k-epsilon':>15}{'init/check/publish s':>25}"
    f"{'warn':>5}  faults"
)


def format_journey(journey: dict[str, Any]) -> str:
    """Return a table in one line."""
    releases = journey["releases"]
    cells = "".join(f"{format_release(releases.get(method)):>15}" for method in METHODS)
    spent = [journey["seconds"].get(step) for step in ("init", "check")]
    spent += [releases.get(method, {}).get("seconds") for method in METHODS]
    times = "/".join("-" if s is None else f"{s:.1f}" for s in spent)
    size = f"{journey['rows']:,} x {journey['columns']}"
    return (
        f"{journey['name']:17}{journey['kind']:14}{size:>15}{len(journey['edits']):>6}"
        f"{journey['confirmations']:>5}{len(journey['lost']):>5}{cells}{times:>25}"
        f"{len(journey['warnings']):>5}  {format_faults(journey)}"
    )


def format_release(release: dict[str, Any] | None) -> str:
    """Share of the people and loss, or why there is none; ! if it does not verify."""
    if release is None:
        return "-"
    if release["rows"] is None or not release["rows"]:
        return str(release["outcome"])
    lost = "-" if release["loss"] is None else f"{release['loss']:.3f}"
    return f"{release['share']:.1%} {lost}{'' if release['verified'] else '!'}"


def format_faults(journey: dict[str, Any]) -> str:
    """Tracebacks, and empty releases that did not say so."""
    faults = [f"traceback in {step}" for step in journey["tracebacks"]]
    return (
        ", ".join([*faults, *(f"{method} empty, not said" for method in journey["silent"])]) or "-"
    )


def list_notes(every: list[dict[str, Any]]) -> Iterator[str]:
    """Return what was edited, and what failed, with the messages."""
    for journey in every:
        yield from (f"edit     {journey['name']}: {edit}" for edit in journey["edits"])
    for journey in every:
        if journey["lost"]:
            yield f"lost     {journey['name']}: {', '.join(journey['lost'])}"
    for journey in every:
        yield from (
            f"failure  {journey['name']}, {step}: {why}" for step, why in journey["failures"]
        )


def compare_runs(before: Path, after: Path) -> None:
    """Print two runs side by side, a line for each table."""
    old, new = (
        {journey["name"]: journey for journey in json.loads(path.read_text())["journeys"]}
        for path in (before, after)
    )
    heads = "".join(f"{method:>32}" for method in METHODS)
    keys = ("edits", "lost", "failures", "tracebacks")
    counts = "".join(f"{what:>12}" for what in ("ask", *keys))
    print(f"{'table':17}{counts}{heads}{'seconds':>16}")
    for name in [*old, *(name for name in new if name not in old)]:
        pair = [run.get(name) for run in (old, new)]
        request = [journey and str(journey["confirmations"]) for journey in pair]
        every = [[journey and str(len(journey[what])) for journey in pair] for what in keys]
        counts = "".join(f"{format_change(both):>12}" for both in (request, *every))
        releases = [
            [journey and format_release(journey["releases"].get(method)) for journey in pair]
            for method in METHODS
        ]
        cells = "".join(f"{format_change(both):>32}" for both in releases)
        spent = format_change([journey and f"{sum_seconds(journey):.1f}" for journey in pair])
        print(f"{name:17}{counts}{cells}{spent:>16}")


def sum_seconds(journey: dict[str, Any]) -> float:
    """Of init, check and every publish."""
    every = [release["seconds"] or 0.0 for release in journey["releases"].values()]
    return float(sum([*journey["seconds"].values(), *every]))


def format_change(pair: list[Any]) -> str:
    """Before and after."""
    return " > ".join("none" if value is None else str(value) for value in pair)


def export_tables(folder: Path) -> None:
    """Write the tables with a target as plain CSV, with what a curator knows of their columns."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for trial in TRIALS:
        if trial.target:
            path = folder / f"{trial.file.partition('.')[0]}-plain.csv"
            frame = read_frame(trial.source)
            write_csv(
                frame[frame[trial.target].isin(frame[trial.target].value_counts().index[:2])], path
            )
            hidden = [*trial.identifiers, *([trial.person] if trial.person else [])]
            listed.append({
                "name": trial.name, "file": path.name, "target": trial.target,
                "person": trial.person, "identifiers": hidden, "dropped": trial.dropped,
            })  # fmt: skip
    (folder / "tables.json").write_text(json.dumps(listed, indent=1) + "\n")


def main() -> None:
    """Take every table along, printing a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--incrowd", default=str(PROGRAM), help="the program to run")
    parser.add_argument("--output", type=Path, help="a JSON file with everything")
    parser.add_argument("--only", nargs="+", default=[], help="names of tables")
    parser.add_argument("--size-public", action="store_true", help="declare 'size: public'")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="for useful.py")
    args = parser.parse_args()
    if args.export:
        export_tables(args.export)
        return
    if args.compare:
        compare_runs(*args.compare)
        return
    program = shutil.which(args.incrowd)
    if program is None:
        sys.exit(f"There is no program '{args.incrowd}'.")
    program, every = str(Path(program).absolute()), []
    with tempfile.TemporaryDirectory() as home:
        version = run_command("version", [program, "--version"], Path(home)).out.strip()
    print(HEAD)
    for trial in TRIALS:
        if args.only and trial.name not in args.only:
            continue
        journey = asdict(run_trial(trial, program, size=args.size_public))
        every.append(journey)
        print(format_journey(journey), flush=True)
        if args.output:
            result = {"program": program, "version": version, "journeys": every}
            args.output.write_text(json.dumps(result, indent=1) + "\n")
    print()
    print("\n".join(list_notes(every)))


if __name__ == "__main__":
    main()
