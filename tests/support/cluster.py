"""A real cluster of Spark on this machine: a master and workers, each a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from support.java_archive import list_java_options

import incrowd

SOURCE = Path(incrowd.__file__).parent.parent
WAIT = 60.0  # seconds until a cluster that does not start is given up
MEMORY = 1  # gigabytes of each worker


class ClusterError(Exception):
    """A cluster that does not start."""


class SparkCluster:
    """A standalone cluster on the loopback address; ``folder`` gets its logs and work.

    ``master`` is its address. A session that connects runs in a process with ``environment()``,
    and a test that has a session of its own starts another process for it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.master = ""
        self._ui = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._workers: list[subprocess.Popen[bytes]] = []

    def make_environment(self) -> dict[str, str]:
        """The environment of a process that connects, and of the cluster's own processes."""
        import pyspark

        paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
        return os.environ | {
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_SCALA_VERSION": "2.13",  # a worker asks for it to find its own jars
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(paths),
        }

    def start_master(self) -> None:
        """Start the master, and learn where it listens."""
        ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        # the REST server has one port for all clusters of a machine
        process = self._start_process(
            "master", "-Dspark.master.rest.enabled=false", "master.Master", *ports
        )
        log = self.folder / "master.log"

        def listens() -> bool:
            text = log.read_text(encoding="utf-8", errors="replace")
            master = re.search(r"Starting Spark master at (spark://\S+:\d+)", text)
            ui = re.search(r"MasterWebUI.* started at http://\S+:(\d+)", text)
            if master and ui:
                self.master, self._ui = master[1], f"http://127.0.0.1:{ui[1]}/json/"
            return bool(master and ui)

        self._wait_until_ready(listens, process, log)

    def start_worker(self, scratch: int | None = None) -> int:
        """Start a worker of one core; its number, for ``kill_worker``.

        ``scratch`` are the megabytes of the disk that its executors have, for those that are to
        run full; it takes a system that lets processes mount something for themselves.
        """
        number = len(self._workers)
        options = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--cores", "1")
        work = ("--memory", f"{MEMORY}g", "--work-dir", str(self.folder / f"work-{number}"))
        name = f"worker-{number}"
        process = self._start_process(
            name, "-Dspark.worker.cleanup.enabled=false",
            "worker.Worker", *options, *work, self.master, scratch=scratch,
        )  # fmt: skip
        self._workers.append(process)
        return number

    def wait_for_workers(self, count: int) -> None:
        """Return when the master knows of this many workers that live."""
        last = self._workers[-1]
        log = self.folder / f"worker-{len(self._workers) - 1}.log"
        self._wait_until_ready(lambda: self.count_live_workers() >= count, last, log)

    def count_live_workers(self) -> int:
        """How many workers live, as far as the master knows."""
        direct = build_opener(ProxyHandler({}))  # whatever proxy there is knows no loopback
        with suppress(OSError), direct.open(self._ui, timeout=5) as answer:
            return sum(worker["state"] == "ALIVE" for worker in json.load(answer)["workers"])
        return 0

    def list_live_workers(self) -> list[int]:
        """The numbers of the workers that were not killed."""
        return [at for at, worker in enumerate(self._workers) if worker in self._processes]

    def read_executor_log(self, number: int) -> str:
        """What the executors of a worker have written, of all applications."""
        logs = sorted((self.folder / f"work-{number}").glob("*/*/stderr"))
        return "".join(log.read_text(encoding="utf-8", errors="replace") for log in logs)

    def has_python_worker(self, number: int) -> bool:
        """Whether an executor of a worker has started Python, as it does for a task that draws."""
        pids = [pid for pid in _list_processes() if _read_session(pid) == self._workers[number].pid]
        return any(b"pyspark.daemon" in _read_command(pid) for pid in pids)

    def kill_worker(self, number: int) -> None:
        """Kill a worker with everything that it started, without a word of warning."""
        self._kill_process(self._workers[number])

    def stop(self) -> None:
        """Kill everything that is left. Nothing happens if it was stopped before."""
        while self._processes:
            self._kill_process(self._processes[-1])

    def _kill_process(self, process: subprocess.Popen[bytes]) -> None:
        if process in self._processes:  # its number may be that of another process by now
            _kill_session(process)
            self._processes.remove(process)

    def _start_process(
        self, name: str, setting: str, main: str, *arguments: str, scratch: int | None = None
    ) -> subprocess.Popen[bytes]:
        environment, before = self.make_environment(), []
        if scratch is not None:
            disk = self.folder / f"disk-{name}"
            disk.mkdir()
            environment["SPARK_LOCAL_DIRS"] = str(disk)
            before = make_mount_command(disk, scratch)
        home = environment["SPARK_HOME"]
        folder = environment.get("JAVA_HOME")
        java = str(Path(folder, "bin", "java")) if folder else "java"
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *before, java, "-Xmx256m", *list_java_options(), setting,
                    "-cp", f"{home}/jars/*", f"org.apache.spark.deploy.{main}", *arguments,
                ],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,  # by which all that it starts is found again
            )  # fmt: skip
        self._processes.append(process)
        return process

    def _wait_until_ready(
        self, ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path
    ) -> None:
        end = time.monotonic() + WAIT
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                text = log.read_text(encoding="utf-8", errors="replace")
                raise ClusterError(f"The cluster does not start; the end of {log}:\n{text[-2000:]}")
            time.sleep(0.05)


def make_mount_command(folder: Path, megabytes: int) -> list[str]:
    """What stands before a command for which alone a folder is a small disk."""
    script = f'mount -t tmpfs -o size={megabytes}m none "$0" && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(folder)]


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all of its session; workers in Python have process groups of their own."""
    while members := [pid for pid in _list_processes() if _read_session(pid) == process.pid]:
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    process.wait()


def _list_processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _read_command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _read_session(pid: int) -> int | None:
    """The session of a process; none of one that has ended, waited for or not."""
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return None
    return None if state == "Z" else int(session)


@contextmanager
def start_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A cluster whose workers have registered; nothing of it is left when the block ends."""
    cluster = SparkCluster(folder)
    try:
        cluster.start_master()
        for _ in range(workers):
            cluster.start_worker()
        if workers:
            cluster.wait_for_workers(workers)
        yield cluster
    finally:
        cluster.stop()
