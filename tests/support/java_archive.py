"""Classes of Spark, laid out once for all processes of Java that tests start.

Most of what such a process does before its first task is to read, check and link classes. Java maps
them from an archive instead, in half the time; one that does not fit, of another version of Java or
of Spark, it passes over. ``python tests/support/java_archive.py`` makes the archive.
"""

from __future__ import annotations

import sys
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark.jsa"
# What is started lives for seconds: the quickest start matters, not the quickest code.
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")


def list_java_options(archive: Path = ARCHIVE) -> tuple[str, ...]:
    """Return the options of a process of Java, with the archive if there is one.

    Spark splits its options at blanks, so that a path with one cannot be among them.
    """
    if not archive.exists() or " " in str(archive):
        return QUICK_JAVA
    silent = ("-Xlog:cds=off", "-Xlog:class+path=off")  # about an archive that is passed over
    return (*QUICK_JAVA, f"-XX:SharedArchiveFile={archive}", *silent)


def write_archive(archive: Path = ARCHIVE) -> None:
    """Write the classes that a small release on Spark loads."""
    from tempfile import TemporaryDirectory

    import polars as pl
    from support.spark import start_session, stop_session

    import incrowd as ic

    spec = """
    columns:
      group: {role: quasi, hierarchy: flat}
      x: {role: quasi, hierarchy: {intervals: {from: 0, to: 100, widths: [10, 50]}}}
    release: {method: safe, epsilon: 1, delta: 1.0e-6, levels: {group: 0, x: 1}}
    """
    archive.unlink(missing_ok=True)
    with TemporaryDirectory() as home:
        folder = Path(home)
        options = (*QUICK_JAVA, f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds=off")
        session = start_session(folder, options)
        rows = 2_000
        table = pl.select(group=pl.arange(rows) % 4, x=pl.arange(rows) % 100)
        table.write_parquet(folder / "table.parquet")
        frame = session.read.parquet(str(folder / "table.parquet"))
        (folder / "spec.yaml").write_text(spec)
        ic.publish(frame, spec=folder / "spec.yaml", output=folder / "out")
        stop_session(session)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    write_archive()
