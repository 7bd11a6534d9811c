"""Soak test of a repository: random histories of every kind, measure and mode, and real pages, against fresh runs.

With `--parts pages` the pages of debdocs-dev are added in eleven batches, in two orders. With `--parts spark` each
batch of a random history is a file that Spark reads and sketches, all in one session.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import nddup.repository
from bench.repository import real_texts
from nddup.repository.close_components import tables_totals
from nddup.repository.live_tables import live_tables
from nddup.spark.session import start_session
from tests.repository.histories import add_here, adder_on_spark, draw_history, play, rows_of, run_fresh
from tests.repository.test_rebuild import CHOICES, make

BATCHES = 11
FEW_PARTITIONS = {"spark.default.parallelism": "2", "spark.driver.memory": "1g"}


def run(options: argparse.Namespace) -> None:
    """Play histories; print how many of each form, and each one whose tables differ from those of a fresh run.

    Raises:
        SystemExit: with status 1, if a history is wrong.
    """
    if options.parts == "pages":
        play_pages(options.data)
        return
    on_spark = options.parts == "spark"
    if on_spark:
        start_session(master=f"local[{options.cores}]", settings=FEW_PARTITIONS, is_small=True)
    count = int(options.records or (len(CHOICES) if options.small else 20 if on_spark else 1_000))
    random = np.random.default_rng(int(time.time()))
    played, wrong, documents = Counter[str](), list[str](), 0
    with TemporaryDirectory(prefix="nddup-bench-") as folder:
        for number in range(count):
            choice = sorted(CHOICES)[number % len(CHOICES)]
            seed, steps = int(random.integers(2**32)), int(random.integers(2, 9))
            told = f"{choice}, seed {seed}, {steps} steps"
            try:
                repo = make(Path(folder, str(number)), choice)
                add = adder_on_spark(Path(folder, f"{number}-batches")) if on_spark else add_here
                live = play(repo, draw_history(seed, steps), add)
                fresh = run_fresh(live, repo.snapshot.identity.config)
                digests = dict(repo.snapshot.commit.digests) == tables_totals(fresh)
                if rows_of(live_tables(repo.snapshot)) != rows_of(fresh) or not digests:
                    wrong.append(told)
            except Exception as error:  # noqa: BLE001 - reported, and the next history is played
                wrong.append(f"{told}: {type(error).__name__}: {error}")
            played[choice] += 1
            documents += len(live)
    for choice, times in sorted(played.items()):
        sys.stdout.write(f"{choice:<20}{times:>6}\n")
    sys.stdout.write(f"{count:,} histories, {documents:,} live documents at their ends, {len(wrong)} wrong\n")
    sys.stdout.writelines(f"wrong: {one}\n" for one in wrong)
    if wrong:
        raise SystemExit(1)


def play_pages(data: Path) -> None:
    """Add all pages in eleven batches, by id and shuffled; print whether digests are equal, and the candidates.

    Raises:
        SystemExit: with status 1, if a digest differs.
    """
    texts = real_texts(data)
    orders = {"by id": sorted(texts), "shuffled": np.random.default_rng(3).permutation(sorted(texts)).tolist()}
    with TemporaryDirectory(prefix="nddup-bench-") as folder:
        fresh = nddup.repository.create(f"{folder}/fresh")
        compared = fresh.add(texts).counts["candidates"]
        due = dict(fresh.snapshot.commit.digests)
        for name, order in orders.items():
            repo = nddup.repository.create(f"{folder}/{name}")
            parts = [part.tolist() for part in np.array_split(np.array(order), BATCHES)]
            counted = [repo.add({doc_id: texts[doc_id] for doc_id in part}).counts for part in parts]
            candidates = sum(counts["candidates"] for counts in counted)
            is_equal = dict(repo.snapshot.commit.digests) == due == tables_totals(repo.tables())
            sys.stdout.write(
                f"{len(texts):,} pages {name} in {BATCHES} batches: {'equal' if is_equal else 'WRONG'};"
                f" {candidates:,} candidates, {candidates / compared:.2f} x those of one batch\n"
            )
            if not is_equal:
                raise SystemExit(1)
