"""A Spark standalone cluster of this installation, on loopback and free ports: for tests, not for production.

python scripts/standalone.py FOLDER        a master and two workers until Ctrl-C; prints the URL
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

import pyspark

from nddup.spark.java import SHORT_LIVED, archiving, find_java, join_options

ROOT = Path(__file__).resolve().parents[1]
HOME = Path(pyspark.__file__).parent
QUIET = ROOT / "nddup" / "spark" / "log4j2.properties"
HOST = "127.0.0.1"
START_SECONDS, END_SECONDS = 180, 20
BESIDE_HEAP_MB = 640
"""MB that an executor needs beside its heap: at least 384, and the share that Python may take."""


class ClusterError(RuntimeError):
    """A part of the cluster did not start."""


def environment() -> dict[str, str]:
    """Return the environment of every process of the cluster: this Python, this Spark, loopback; no outer Spark."""
    outer = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))}
    python = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
    spark = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": HOST, "SPARK_NO_DAEMONIZE": "1"}
    return {**outer, **python, **spark, "SPARK_LAUNCHER_OPTS": " ".join(SHORT_LIVED)}


def for_java() -> str:
    """Return the options of a short-lived JVM: code is compiled once, and Spark's classes mapped if an archive fits.

    The archive is that of nddup's own sessions; none is made here. It fits if Spark finds no folder of settings,
    which would come first on the class path.
    """
    mapping = [option for option in archiving(find_java(), {}, "") if "ArchiveClassesAtExit" not in option]
    return join_options([*mapping, *SHORT_LIVED])


def free_port() -> int:
    """Return a port that nothing listens on at the moment."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


@dataclass
class Cluster:
    """A master and workers of one core each.

    Attributes:
        folder: for logs, work and local directories.
        workers: their number.
        memory: MB that a worker gives to executors.
    """

    folder: Path
    workers: int = 2
    memory: int = 2048
    url: str = ""
    _port: int = 0
    _ui: int = 0
    _master: "subprocess.Popen[bytes] | None" = None
    _daemons: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Start all processes, and wait until the master knows every worker.

        Raises:
            ClusterError: with the ends of the logs, if a process exits or this takes over three minutes.
        """
        self._port, self._ui = free_port(), free_port()
        self.url = f"spark://{HOST}:{self._port}"
        ports = ["--host", HOST, "--port", str(self._port), "--webui-port", str(self._ui)]
        try:
            self._master = self._start("master", "master.Master", ports)
            for number in range(self.workers):
                self.add_worker(f"worker{number}")
            self._wait_for(self.workers)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every process that was started here, and its descendants."""
        self._end()

    def add_worker(self, name: str) -> None:
        """Start one more worker."""
        options = ["--host", HOST, "--port", str(free_port()), "--webui-port", str(free_port()), "--cores", "1"]
        options += ["--memory", f"{self.memory}m", "--work-dir", str(self.folder / "work" / name), self.url]
        local = {"SPARK_LOCAL_DIRS": str(self.folder / "local" / name)}
        self._daemons.append(self._start(name, "worker.Worker", options, local))

    def submit(
        self, arguments: Sequence[str], *, conf: Mapping[str, str], extra: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start spark-submit with one core an executor; its output goes to `submit.log` of the folder.

        Args:
            arguments: the script and its own arguments.
            conf: further Spark settings, which take precedence.
            extra: further environment variables of the driver.
        """
        settings = {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.ui.enabled": "false",
            "spark.driver.memory": "1g",
            "spark.executor.memory": f"{self.memory - BESIDE_HEAP_MB}m",
            "spark.executor.cores": "1",
            "spark.sql.shuffle.partitions": "4",
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={QUIET.as_uri()} {for_java()}",
            "spark.executor.extraJavaOptions": for_java(),
            **conf,
        }
        options = [f"--conf={key}={value}" for key, value in settings.items()]
        command = [str(HOME / "bin" / "spark-submit"), "--master", self.url, *options, *arguments]
        with (self.folder / "submit.log").open("wb") as log:
            return subprocess.Popen(
                command, env={**environment(), **(extra or {})}, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT
            )

    def log(self) -> str:
        """Return the output of the last spark-submit."""
        return (self.folder / "submit.log").read_text(errors="replace")

    def executors(self) -> list[int]:
        """Return the process ids of the running executors."""
        return [pid for daemon in self._daemons for pid in children(daemon.pid) if _is_executor(pid)]

    def kill_worker(self) -> int:
        """Kill a worker and its executors with SIGKILL, as if its machine were lost; return the worker's id."""
        daemon = self._daemons.pop()
        for pid in [daemon.pid, *descendants(daemon.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        daemon.wait()
        return daemon.pid

    def alive(self) -> int:
        """Return how many live workers the master knows."""
        with suppress(OSError, ValueError), urlopen(f"http://{HOST}:{self._ui}/json/", timeout=5) as page:
            state: dict[str, Any] = json.load(page)
            return int(state["aliveworkers"])
        return 0

    def _start(
        self, name: str, kind: str, options: list[str], extra: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        self.folder.mkdir(parents=True, exist_ok=True)
        memory = {
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": for_java(),
            "SPARK_WORKER_OPTS": "-Dspark.worker.cleanup.enabled=true",
        }
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *options]
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                env={**environment(), **memory, "SPARK_CONF_DIR": str(self.folder / "none"), **(extra or {})},
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _wait_for(self, workers: int) -> None:
        processes = [self._master, *self._daemons]
        ended: Callable[[], bool] = lambda: any(one is None or one.poll() is not None for one in processes)  # noqa: E731
        limit = time.monotonic() + START_SECONDS
        while self.alive() < workers:
            if ended() or time.monotonic() > limit:
                logs = "\n".join(path.read_text(errors="replace")[-500:] for path in self.folder.glob("*.log"))
                raise ClusterError(f"{self.url} has {self.alive()} of {workers} workers:\n{logs}")
            time.sleep(0.3)

    def _end(self) -> None:
        """End the workers first: they end their executors. Kill what remains."""
        started = [process for process in [*self._daemons, self._master] if process is not None]
        below = [pid for process in started for pid in descendants(process.pid)]
        for process in started:
            process.terminate()
        limit = time.monotonic() + END_SECONDS
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, limit - time.monotonic()))
            process.kill()
            process.wait()
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """Return the running child processes of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                found += [int(entry.name)] if int(parent) == pid else []
    return found


def descendants(pid: int) -> list[int]:
    """Return all running descendants of a process."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def _is_executor(pid: int) -> bool:
    with suppress(OSError):
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


if __name__ == "__main__":
    with Cluster(Path(sys.argv[1]).absolute()) as running:
        print(running.url, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
