"""The loop: file to sketches in one thread, in this checkout and another, and by the engine's workers.

Each checkout runs its own `bench.reading` in its own process, with its own kernels; the checkouts take turns on each
file. The texts and sketches are hashed, so that a loop that is faster because it reads other texts is noticed.
"""

import argparse
import bz2
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, cast

from bench.debdocs import load_pages, write_romip
from bench.processes import descendants
from bench.recording import drop, fresh, record, show
from nddup.embedded.workers import Workers
from nddup.scanning.collection import Collection, find_files
from nddup.scanning.sketch_records import SketchRecords
from nddup.settings.load import build_config
from nddup.settings.plan import record_limits, sketch_rule
from nddup.storage.local_storage import LocalStorage

ROUNDS = 5
SERVE = """
import hashlib, sys, time
from pathlib import Path
from bench import reading
made = reading.sketch_texts
def hashed(data, offsets):
    sketches = made(data, offsets)
    for part in (data, offsets - offsets[0], sketches.ids):
        digest.update(part.tobytes())
    return sketches
for line in sys.stdin:
    asked, name = line.rstrip("\\n").split(" ", 1)
    path, digest = Path(name), hashlib.blake2b(digest_size=16)
    head = reading.read_head(reading._front(path))
    reading.sketch_texts = hashed if asked == "hash" else made
    wall, cpu = time.monotonic(), time.process_time()
    reading._loop(path, head)
    print(time.monotonic() - wall, time.process_time() - cpu, digest.hexdigest(), flush=True)
"""
"""Program that runs in a checkout: its loop over each requested file."""


class Loop:
    """The loop of one checkout, in its own process."""

    def __init__(self, checkout: Path) -> None:
        """Start the process."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout.absolute())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, asked: str, path: Path) -> tuple[float, float, str]:
        """Return elapsed and CPU seconds, and a hash, which is of all texts and sketches if `asked` is "hash"."""
        asking, answers = cast("IO[str]", self.process.stdin), cast("IO[str]", self.process.stdout)
        asking.write(f"{asked} {path.absolute()}\n")
        asking.flush()
        wall, cpu, digest = answers.readline().split()
        return float(wall), float(cpu), digest

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def run(options: argparse.Namespace) -> None:
    """Write the collections, then measure each."""
    folder = fresh("loop")
    rows = []
    for path in _write_collections(folder, options):
        rows.append(_measure(path, options))
        record("loop", options, against=str(options.against), **rows[-1])
    names = list(rows[0])
    show(f"loop: best of {ROUNDS}, CPU seconds", names, [list(row.values()) for row in rows])
    drop(folder)


def _write_collections(folder: Path, options: argparse.Namespace) -> list[Path]:
    """Write debdocs-dev as one file of base64 XML, and expand both files of ruweb."""
    paths = [folder / "debdocs.xml"]
    write_romip(paths[0], load_pages(options))
    for packed in sorted((options.data / "ruweb").glob("ruweb.xml.*.bz2")):
        paths.append(folder / f"{packed.stem}.xml")
        paths[-1].write_bytes(bz2.decompress(packed.read_bytes()))
    return paths


def _measure(path: Path, options: argparse.Namespace) -> dict[str, object]:
    """Measure the loop, the other checkout's in turn with it, and the engine's reading step."""
    others = [options.against] if options.against else []
    loops = [Loop(checkout) for checkout in (Path(), *others)]
    collection = find_files(LocalStorage(), [str(path)], build_config({}, origin="bench").input)
    best: list[list[tuple[float, float]]] = [[] for _ in (*loops, "step")]
    with Workers(options.cores) as workers:
        hashes = [loop.run("hash", path)[2] for loop in loops]
        _step(collection, workers)
        for _ in range(ROUNDS):
            for seen, loop in zip(best, loops, strict=False):
                seen.append(loop.run("time", path)[:2])
            best[-1].append(_step(collection, workers))
    for loop in loops:
        loop.close()

    wall, cpu = (min(column) for column in zip(*best[0], strict=True))
    step = min(wall for wall, _ in best[-1])
    found: dict[str, object] = {"collection": path.name, "MB": path.stat().st_size / 1e6, "loop": cpu}
    found["MB/s"] = path.stat().st_size / 1e6 / cpu
    if others:
        other = min(cpu for _, cpu in best[1])
        found |= {"other": other, "of other": cpu / other, "texts": "equal" if len(set(hashes)) == 1 else "DIFFER"}
    found |= {"loop, clock": wall, "step, clock": step, f"of {options.cores} loops": wall / options.cores / step}
    spent = min(cpu for _, cpu in best[-1])
    return found | {"step, CPU": spent, "loop of step, CPU": cpu / spent}


def _step(collection: Collection, workers: Workers) -> tuple[float, float]:
    """Return elapsed and CPU seconds, of this process and its workers, of the engine's step from file to sketches."""
    config = build_config({}, origin="bench")
    started, spent = time.monotonic(), _cpu()
    workers.scan(collection, SketchRecords(sketch_rule(config)), record_limits(config))
    return time.monotonic() - started, _cpu() - spent


def _cpu() -> float:
    """Return the CPU seconds of this process and its descendants. Linux only."""
    ticks = 0
    for pid in descendants(os.getpid()):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
