"""Nothing of a table, and no key, stands in what Spark writes: events, logs, scratch."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.spark_runs import JAVA_OPTIONS, SETTINGS, WAIT

from incrowd.release.verify import verify

pytestmark = pytest.mark.spark

SECRET = "Xq7secret"  # begins each text of the table
NUMBER = 739184  # begins each number of it
SAFE = "method: safe, epsilon: 2, delta: 1.0e-5"
FEW = "spark.incrowd.mostTuples=20"
LEVELS = "levels: {town: 0, job: 0, income: 1}"
# Of each release: its settings, what its spec says besides, and settings of Spark.
RELEASES: dict[str, tuple[str, str, str]] = {
    "search": (f"{SAFE}, scheme: search", "", ""),
    "slices": (f"{SAFE}, slices: [[town, job], [income]]", "", ""),
    "spread counts": (f"{SAFE}, draw: counts, {LEVELS}", "", FEW),
    "one row each": (f"{SAFE}, {LEVELS}", "unit: {id: person}", ""),
    "k-anonymity": (f"method: k-anonymity, k: 5, suppression: 0.1, {LEVELS}", "", ""),
    "k-epsilon": (f"method: k-epsilon, k: 5, epsilon: 1, suppression: 0.1, {LEVELS}", "", ""),
}
# All that a curator can have it tell; a session of Python takes no notice of less than this.
LOG_SETTINGS = """
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
logger.spark.name = org.apache.spark
logger.spark.level = info
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex
"""
# One session for all, which the first command starts.
COMMANDS = """
import json, sys
from incrowd.cli.main import main
for line in sys.stdin:
    sys.argv = ["incrowd", *json.loads(line)]
    try:
        main()
    except SystemExit as end:
        print("ended", end.code, flush=True)
"""


def spec(release: str, more: str) -> str:
    person = "drop" if more else "identifier"
    noisy = "{role: noisy}" if "k-epsilon" in release else "{role: drop}"
    return (
        f"{more}\ntable: table.parquet\ncolumns:\n  person: {{role: {person}}}\n"
        f"  town: {{role: quasi, hierarchy: flat, written: {{nulls: [{SECRET}-none]}}}}\n"
        "  job: {role: quasi, hierarchy: flat}\n"
        f"  income: {{role: quasi, hierarchy: {{intervals: {{from: {NUMBER}000, "
        f"to: {NUMBER}999, widths: [250, 500]}}}}}}\n"
        f"  x: {noisy}\nrelease: {{{release}}}\n"
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all releases, and of what Spark wrote: ``events``, ``stderr``, ``local``."""
    folder, rows = tmp_path_factory.mktemp("logs"), 4_000
    draw = np.random.default_rng(1)
    pl.DataFrame({
        "person": [f"{SECRET}-p{at // 2}" for at in range(rows)],
        "town": [f"{SECRET}-{'none' if at % 50 == 0 else at % 4}" for at in range(rows)],
        "job": [f"{SECRET}-job{at % 3}" for at in range(rows)],
        "income": NUMBER * 1000 + draw.integers(0, 1000, rows),
        "x": NUMBER * 1000 + draw.integers(0, 1000, rows),
    }).write_parquet(folder / "table.parquet")  # fmt: skip
    for name in ("events", "local"):
        (folder / name).mkdir()
    (folder / "log4j2.properties").write_text(LOG_SETTINGS)
    logged = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
    settings = SETTINGS | {
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {logged}",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "INFO",
        "spark.sql.debug.maxToStringFields": "1000",  # plans as they are, not cut short
        "spark.master": "local[2]",
    }
    request = []
    for name, (release, more, few) in RELEASES.items():
        (folder / f"{name}.yaml").write_text(spec(release, more))
        options = [*(f"{key}={value}" for key, value in settings.items()), *filter(None, [few])]
        conf = [part for item in options for part in ("--conf", item)]
        request.append(json.dumps(
            ["publish", str(folder / f"{name}.yaml"), "-o", str(folder / name), *conf]
        ))  # fmt: skip
    with (folder / "stderr").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-c", COMMANDS], input="\n".join(request), stdout=subprocess.PIPE,
            stderr=log, text=True, timeout=WAIT,
        )  # fmt: skip
    log_end = (folder / "stderr").read_text(errors="replace")[-2000:]
    assert done.stdout.count("ended 0\n") == len(RELEASES), done.stdout + log_end
    return folder


def logs(folder: Path) -> dict[str, str]:
    """What can be read of all that Spark wrote."""
    events = [path for path in (folder / "events").rglob("*") if path.is_file()]
    return {path.name: path.read_text(errors="replace") for path in [*events, folder / "stderr"]}


def test_the_logs_tell_of_every_release(written: Path) -> None:
    """So they are those to be looked at; and the releases hold what must not be in them."""
    texts = logs(written)
    assert any("SparkListenerSQLExecutionStart" in text for text in texts.values())
    assert "INFO DAGScheduler" in texts["stderr"]
    assert sum(text.count("MapInArrow") for text in texts.values()) > 3  # draws and noise
    for name in RELEASES:
        assert verify(written / name) == []
    released = pl.read_parquet(written / "one row each" / "data.parquet")
    assert released["town"].drop_nulls().str.starts_with(SECRET).all()
    assert released.height > 1000


def test_no_value_of_the_table_is_in_a_log(written: Path) -> None:
    for name, text in logs(written).items():
        assert SECRET not in text, name
        assert str(NUMBER) not in text, name


def test_no_key_is_in_a_log(written: Path) -> None:
    """Keys have 64 digits in hexadecimal, whoever writes them."""
    for name, text in logs(written).items():
        assert re.search(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", text) is None, name


def test_nothing_is_left_of_scratch(written: Path) -> None:
    assert [path for path in (written / "local").rglob("*") if path.is_file()] == []
