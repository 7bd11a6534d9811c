"""A Spark Connect server of this installation, on loopback and a free port: for tests, not for production.

python scripts/connect_server.py FOLDER        a server with two tasks at a time until Ctrl-C; prints its address
"""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from nddup.errors import ConfigError
from nddup.spark.session import DAEMON, OUR_DAEMON, SMALL, require_reachable
from scripts.standalone import HOME, HOST, QUIET, ROOT, START_SECONDS, ClusterError, environment, for_java, free_port

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass
class ConnectServer:
    """A Spark Connect server in a process of its own, with two tasks at a time.

    Attributes:
        folder: for its log, and what it holds: `local`.
        url: of the server, once it has started.
    """

    folder: Path
    url: str = ""
    _process: "subprocess.Popen[bytes] | None" = None

    def __enter__(self) -> Self:
        """Start it, and wait until it answers.

        Raises:
            ClusterError: with the end of its log, if it exits or does not answer within three minutes.
        """
        port = free_port()
        self.url = f"sc://{HOST}:{port}"
        settings = {
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(port),
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.driver.memory": "2g",
            "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={QUIET.as_uri()} {for_java()}",
            "spark.ui.enabled": "false",
            "spark.local.dir": str(self.folder / "local"),
            DAEMON: OUR_DAEMON,
            "spark.cleaner.periodicGC.interval": "15s",  # what nobody refers to is freed when garbage is collected
            **SMALL,
        }
        options = [f"--conf={key}={value}" for key, value in settings.items()]
        command = [
            str(HOME / "bin" / "spark-submit"),
            "--master=local[2]",
            "--class",
            SERVER,
            *options,
            "spark-internal",
        ]
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:  # its workers import this checkout
            self._process = subprocess.Popen(
                command, env={**environment(), "PYTHONPATH": str(ROOT)}, cwd=self.folder, stdout=log, stderr=log
            )
        try:
            self._wait()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; its Python workers end with it."""
        self._end()

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _wait(self) -> None:
        limit = time.monotonic() + START_SECONDS
        while True:
            try:
                return require_reachable(self.url, wait=1)
            except ConfigError:
                if self._process is None or self._process.poll() is not None or time.monotonic() > limit:
                    end = self._log.read_text(errors="replace")[-1000:]
                    raise ClusterError(f"{self.url} does not answer:\n{end}") from None
                time.sleep(0.3)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


if __name__ == "__main__":
    with ConnectServer(Path(sys.argv[1])) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        while True:
            time.sleep(1)
