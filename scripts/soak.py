"""Soak test: run the main job on the sample, over and over, killing its driver with SIGKILL at random moments.

    make soak [KILLS=50]

Each attempt resumes the run and is killed after a random part of the time of an undisturbed run, unless it ends before.
When a run is finished, its result is compared with the undisturbed one, and the next run begins. Exits with status 1 if
a folder with the marker holds a different result, or an attempt that was not killed fails or leaves no result.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-c", "import sys; from nddup.cli import main; sys.exit(main())"]
TABLES = ("documents", "rejects", "pairs", "clusters", "members", "keep")
UNMEASURED = {"seconds", "shuffle_bytes", "resumed"}


class WrongResultError(Exception):
    """The result of a run differs from the undisturbed one or is missing, or an attempt failed by itself."""


def soak(kills: int, folder: Path, seed: int) -> None:
    """Kill `kills` attempts, and compare the result of every run that finishes.

    Raises:
        WrongResultError: if a result differs or is missing, or an attempt fails by itself.
    """
    chance = random.Random(seed)  # noqa: S311 - for moments, not for secrets
    started = time.monotonic()
    attempt(folder / "undisturbed", folder / "log", after=None)
    whole = time.monotonic() - started
    expected = result(folder / "undisturbed")
    print(f"undisturbed {whole:.1f} s; seed {seed}", flush=True)
    killed = ended = early = 0
    output = folder / "run"
    while killed < kills:
        was_killed = attempt(output, folder / "log", after=chance.uniform(0.1, whole))
        killed += was_killed
        is_complete = (output / "_COMPLETE").exists()
        if not was_killed and not is_complete:
            raise WrongResultError("an attempt succeeded without a result")
        if is_complete:
            ended, early = ended + 1, early + was_killed
            if result(output) != expected:
                raise WrongResultError(f"a result differs: see {output}")
            shutil.rmtree(output)
        kept = len(list((output / "_stages").glob("*.json"))) if output.exists() else 0
        print(f"{killed:3} killed, {ended:3} results, all equal; {kept} tables are kept", flush=True)
    attempt(output, folder / "log", after=None)
    if result(output) != expected:
        raise WrongResultError(f"the last result differs: see {output}")
    print(f"{kills} kills, {ended + 1} results equal to the undisturbed one; {early} killed after the marker")


def attempt(output: Path, log: Path, *, after: float | None) -> bool:
    """Begin or resume the run, and kill the driver with its children `after` so many seconds; return whether killed.

    Raises:
        WrongResultError: with the end of its log, if it failed by itself.
    """
    arguments = ["run", str(ROOT / "samples" / "debdocs"), "--output", str(output), "--resume", "--master", "local[2]"]
    arguments += ["--set", "spark.driver.memory=1g", "--set", "spark.sql.shuffle.partitions=4"]
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        status = process.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    if status:
        raise WrongResultError(f"status {status}\n{log.read_text(errors='replace')[-2000:]}")
    return False


def result(output: Path) -> dict[str, Any]:
    """Return the tables as sorted rows, `duplicates.txt`, and the metrics without time and other measures."""
    tables: dict[str, Any] = {name: sorted(map(repr, pq.read_table(output / name).to_pylist())) for name in TABLES}
    counted = _counts(json.loads((output / "metrics.json").read_text()))
    return tables | {"duplicates": (output / "duplicates.txt").read_text(), "metrics": counted}


def _counts(value: Any) -> Any:  # noqa: ANN401 - of JSON
    if isinstance(value, dict):
        return {key: _counts(item) for key, item in value.items() if key not in UNMEASURED}
    return value


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        try:
            soak(int(sys.argv[1]), Path(scratch), seed=int(sys.argv[2]) if sys.argv[2:] else time.time_ns() % 10_000)
        except WrongResultError as error:
            sys.exit(f"soak: {error}")
