"""Memory: the whole job on documents of real length under memory bounds: peaks of each process, bytes a document."""

import argparse
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bench.processes import descendants, folder_bytes, nddup
from bench.recording import BUILD, drop, fresh, record, show
from bench.scale import write_records

WORDS = (150, 650)
"""Words of a document, from low to below high: 400 on average, so that most sketches are full."""
DRIVER, WORKER = "4g", "1g"
TABLES = ("documents", "rejects", "pairs", "clusters", "members", "keep", "texts")


def run(options: argparse.Namespace) -> None:
    """Run the job under the bounds; print the peak of each process and the cost per document."""
    count = int(options.records) if options.records else (10_000 if options.small else 200_000)
    folder = fresh("memory")
    texts, output, local = folder / "records.jsonl", folder / "run", (folder / "local").absolute()
    local.mkdir()
    write_records(texts, count, words=WORDS)
    settings = [f"spark.driver.memory={DRIVER}", f"spark.executor.pyspark.memory={WORKER}", f"spark.local.dir={local}"]
    command = [nddup(), "run", str(texts), "--output", str(output), f"--master=local[{options.cores}]"]
    command += [part for setting in settings for part in ("--set", setting)]
    seconds, peaks, disk = _watch(command, local)
    metrics = json.loads((output / "metrics.json").read_text())
    show(f"memory: most bytes each process held at any time, {seconds:.0f} s", ["process", "MB"],
         [[name, peak / 1e6] for name, peak in peaks])  # fmt: skip
    shuffled = {name: stage["shuffle_bytes"] for name, stage in metrics["stages"].items()}
    bytes_of = {
        "input": texts.stat().st_size,
        **{f"{name}/": folder_bytes(output / name) for name in TABLES},
        "working tables": folder_bytes(output / "_stages"),
        **{f"shuffled by {name}": size for name, size in shuffled.items()},
        "most of Spark's own disk": disk,
    }
    show(f"memory: bytes of {count:,} documents", ["what", "MB", "bytes a document"],
         [[name, size / 1e6, size / count] for name, size in bytes_of.items()])  # fmt: skip
    record("memory", options, records=count, seconds=round(seconds, 1), peaks=peaks, bytes=bytes_of,
           rows=metrics["rows"])  # fmt: skip
    drop(folder)


def _watch(command: list[str], local: Path) -> tuple[float, list[tuple[str, int]], int]:
    """Run a program; return its seconds, the peak memory (`VmHWM`) of each kind of process, and that of a folder."""
    held: dict[int, tuple[str, int]] = {}
    disk, done = 0, threading.Event()
    started = time.monotonic()
    log = BUILD / "last.log"
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        timer = threading.Thread(target=process.wait, daemon=True)
        timer.start()
        while timer.is_alive():
            held.update(_peaks(process.pid))
            disk = max(disk, folder_bytes(local))
            done.wait(0.2)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}\n{log.read_text()[-2000:]}")
    kinds: dict[str, int] = {}
    for kind, peak in held.values():
        kinds[kind] = max(kinds.get(kind, 0), peak)
    workers = sum(kind == "a Python worker" for kind, _ in held.values())
    named = {"a Python worker": f"a Python worker (the largest of {workers})"}
    return time.monotonic() - started, [(named.get(kind, kind), kinds[kind]) for kind in sorted(kinds)], disk


def _peaks(pid: int) -> Iterator[tuple[int, tuple[str, int]]]:
    for process in descendants(pid):
        with suppress(OSError, StopIteration):
            command = Path(f"/proc/{process}/cmdline").read_bytes()
            status = Path(f"/proc/{process}/status").read_text().splitlines()
            peak = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
            yield process, (_kind(process, pid, command), peak)


def _kind(process: int, driver: int, command: bytes) -> str:
    if b"java" in command.split(b"\0")[0]:
        return "the JVM: driver and executor"
    if b"daemon" in command or b"pyspark.worker" in command:
        parent = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        of_daemon = b"daemon" in Path(f"/proc/{parent}/cmdline").read_bytes()
        return "a Python worker" if of_daemon else "the parent of the Python workers"
    return "the driver's Python" if process == driver else "other"
