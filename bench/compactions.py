"""Four writers, two compactors that keep no days, two readers, and clocks that disagree: every version stays whole."""

import argparse
import multiprocessing
import os
import random
import sys
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory

import nddup.repository
from nddup.errors import OutputError
from nddup.repository.bucket_place import find_place
from nddup.repository.close_components import tables_totals
from nddup.repository.commits import LostRaceError, versions_in
from nddup.repository.opened_repository import Repository
from nddup.repository.places import COMMITS, SEGMENTS, DiskPlace

WRITERS, COMPACTORS, READERS, COMMITS_MADE = 4, 2, 2, 500
SKEWS = (-30 * 86_400, -3_600, 0, 3_600, 30 * 86_400)
"""Seconds by which the clock of a process, and of the times of its files, is wrong; another one at each command."""

WORDS = "a text of some words that is like many others but for its end "


def run(options: argparse.Namespace) -> None:
    """Work until there are enough versions; exit with status 1 if one is torn or lost, or a segment is missing."""
    versions = int(options.records or (40 if options.small else COMMITS_MADE))
    with TemporaryDirectory(prefix="nddup-bench-") as name:
        folder = Path(name)
        repo = nddup.repository.create(str(folder / "repo"), pairs={"threshold": 0.5}, local={"processes": 1})
        repo.add({"first": WORDS * 3})  # loads the kernels before the processes are forked
        tables_totals(repo.tables())
        fork, began = multiprocessing.get_context("fork"), time.monotonic()
        stop = fork.Event()
        works = [(_write, WRITERS), (_compact, COMPACTORS), (_read, READERS)]
        processes = [fork.Process(target=work, args=(folder, number, stop)) for work, n in works for number in range(n)]
        for process in processes:
            process.start()
        while (made := versions_in(find_place(folder / "repo"))[-1]) < versions and all(
            p.is_alive() for p in processes
        ):
            time.sleep(0.2)
        stop.set()
        for process in processes:
            process.join()
        wrong = _judge(folder)
    sys.stdout.writelines(f"wrong: {one}\n" for one in wrong)
    sys.stdout.write(f"{made} versions in {time.monotonic() - began:.0f} s, {len(wrong)} wrong\n")
    if wrong or any(process.exitcode for process in processes):
        raise SystemExit(1)


def _skew() -> None:
    """Set the clock of this process, and of the times that it gives to its files, wrong."""
    shift = random.choice(SKEWS)  # noqa: S311
    now = time.time_ns

    def stamp(path: Path) -> None:
        os.utime(path, (now() / 1e9 + shift,) * 2)

    def write_draft(self: DiskPlace, name: str, data: bytes) -> None:
        WRITE_DRAFT(self, name, data)
        stamp(self.folder / COMMITS / name)

    def publish(self: DiskPlace, segment: str) -> None:
        PUBLISH(self, segment)
        stamp(self.folder / SEGMENTS / segment)

    time.time = lambda: now() / 1e9 + shift
    DiskPlace.write_draft, DiskPlace.publish = write_draft, publish  # type: ignore[method-assign]


WRITE_DRAFT, PUBLISH = DiskPlace.write_draft, DiskPlace.publish


def _open(folder: Path) -> Repository:
    _skew()
    return nddup.repository.open(str(folder / "repo"), local={"processes": 1})


def _write(folder: Path, number: int, stop: Event) -> None:
    """Add and remove documents; note each committed one in a file after the call returned."""
    turn = 0
    with (folder / f"told-{number}").open("a", buffering=1, encoding="utf-8") as told:
        while not stop.is_set():
            turn += 1
            name = f"w{number}-{turn}"
            try:
                _open(folder).add({name: f"{WORDS * 3}{number} {turn}", f"{name}-gone": f"a text that goes {turn}"})
                told.write(f"{name}\n")
                _open(folder).remove([f"{name}-gone"])
            except LostRaceError:
                continue


def _compact(folder: Path, number: int, stop: Event) -> None:
    """Compact, and keep nothing that is out of use."""
    del number
    while not stop.is_set():
        try:
            _open(folder).compact(days=random.choice([0, 0, 1e-6]))  # noqa: S311
        except LostRaceError:
            continue
        time.sleep(0.05)


def _read(folder: Path, number: int, stop: Event) -> None:
    """Read the newest version; it may be compacted away meanwhile, but only if there is a newer one."""
    while not stop.is_set():
        repo = _open(folder)
        try:
            is_whole = tables_totals(repo.tables()) == dict(repo.snapshot.commit.digests)
        except OutputError as error:
            is_whole = "is missing" in str(error) and _open(folder).version > repo.version
        if not is_whole:
            with (folder / f"wrong-{number}").open("a", encoding="utf-8") as wrong:
                wrong.write(f"version {repo.version} is torn\n")


def _judge(folder: Path) -> list[str]:
    """Return what is wrong at the end: told documents that are missing, broken promises, and what the readers saw."""
    wrong = [line for file in folder.glob("wrong-*") for line in file.read_text().splitlines()]
    repo = nddup.repository.open(str(folder / "repo"))
    there = set(repo.tables()["documents"]["doc_id"].to_pylist())
    told = [name for file in folder.glob("told-*") for name in file.read_text().splitlines()]
    wrong += [f"{name} was committed and is missing" for name in told if name not in there]
    wrong += [proof.text().strip() for proof in repo.check() if not proof.holds]
    sys.stdout.write(f"{len(told)} additions told, {len(there)} live documents\n")
    return wrong
