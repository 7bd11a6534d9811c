"""Four writers that are killed at any moment, and two readers: commits survive, and each version is whole."""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time
from multiprocessing.context import ForkContext
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory

import nddup.repository
from nddup.repository.bucket_place import find_place
from nddup.repository.close_components import tables_totals
from nddup.repository.commits import LostRaceError, versions_in

WRITERS, READERS, KILLS = 4, 2, 200
LONGEST = 5.0
"""Seconds after which a writer is killed at the latest: time for some additions on a busy machine."""

WORDS = "a text of some words that is like many others but for its end "


def run(options: argparse.Namespace) -> None:
    """Kill writers and count; exit with status 1 if a version is torn, a commit is lost, or a reader goes backwards."""
    kills = int(options.records or (8 if options.small else KILLS))
    with TemporaryDirectory(prefix="nddup-bench-") as name:
        folder = Path(name)
        repo = nddup.repository.create(str(folder / "repo"), pairs={"threshold": 0.5}, local={"processes": 1})
        repo.add({"first": WORDS * 3})  # loads the kernels before the processes are forked
        tables_totals(repo.tables())
        fork = multiprocessing.get_context("fork")
        stop = fork.Event()
        readers = [fork.Process(target=_read, args=(folder, number, stop)) for number in range(READERS)]
        for reader in readers:
            reader.start()
        for number in range(0, kills, WRITERS):
            _kill_some(fork, folder, number)
        stop.set()
        for reader in readers:
            reader.join()
        wrong = _judge(folder)
    sys.stdout.writelines(f"wrong: {one}\n" for one in wrong)
    if wrong or any(reader.exitcode for reader in readers):
        raise SystemExit(1)


def _kill_some(fork: ForkContext, folder: Path, number: int) -> None:
    """Start four writers, and kill each after a random time."""
    writers = [fork.Process(target=_write, args=(folder, number + one)) for one in range(WRITERS)]
    for writer in writers:
        writer.start()
    ends = sorted((time.monotonic() + random.random() * LONGEST, place) for place in range(WRITERS))  # noqa: S311
    for end, place in ends:
        time.sleep(max(0.0, end - time.monotonic()))
        os.kill(int(writers[place].pid or 0), signal.SIGKILL)
        writers[place].join()


def _write(folder: Path, number: int) -> None:
    """Add and remove documents until killed; note each committed one in a file after the call returned."""
    repo = nddup.repository.open(str(folder / "repo"))
    with (folder / f"told-{number}").open("a", buffering=1, encoding="utf-8") as told:
        turn = 0
        while True:
            turn += 1
            name = f"w{number}-{turn}"
            try:
                repo.add({name: f"{WORDS * 3}{number % 3} {turn}", f"{name}-gone": "a text that goes again"})
                told.write(f"{name}\n")
                repo.remove([f"{name}-gone"])
                if turn % 5 == 0:
                    repo.compact()
            except LostRaceError:
                continue


def _read(folder: Path, number: int, stop: Event) -> None:
    """Open the newest version repeatedly, and note any that is torn or older than the one before."""
    last = count = 0
    wrong = list[str]()
    while not stop.is_set():
        repo = nddup.repository.open(str(folder / "repo"))
        if repo.version < last:
            wrong.append(f"a reader went from version {last} to {repo.version}")
        last, count = repo.version, count + 1
        if tables_totals(repo.tables()) != dict(repo.snapshot.commit.digests):
            wrong.append(f"version {last} is not what its commit says")
    (folder / f"read-{number}").write_text("\n".join([str(count), *wrong]), encoding="utf-8")


def _judge(folder: Path) -> list[str]:
    """Return all faults found at the end, and print the counts."""
    repo = nddup.repository.open(str(folder / "repo"))
    told = {line for path in folder.glob("told-*") for line in path.read_text(encoding="utf-8").split()}
    lost = told - set(repo.tables()["documents"]["doc_id"].to_pylist())
    versions = versions_in(find_place(folder / "repo"))
    read = [path.read_text(encoding="utf-8").split("\n") for path in folder.glob("read-*")]
    wrong = [line for lines in read for line in lines[1:]]
    wrong += [f"{doc_id} was committed and is lost" for doc_id in sorted(lost)]
    wrong += ["versions are missing"] if versions != list(range(1, len(versions) + 1)) else []
    wrong += [proof.text().strip() for proof in repo.check() if not proof.holds]
    writers = len(list(folder.glob("told-*")))
    sys.stdout.write(
        f"{writers} writers killed; {len(versions):,} versions, {len(told):,} additions told and found;"
        f" {sum(int(lines[0]) for lines in read):,} versions read whole; {len(wrong)} wrong\n"
    )
    return wrong
