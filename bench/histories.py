"""Soak test of a repository: random histories of every kind, measure and mode against fresh runs."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from nddup.repository.live_tables import live_tables
from nddup.repository.table_totals import tables_totals
from tests.repository.histories import draw_history, play, rows_of, run_fresh
from tests.repository.test_rebuild import CHOICES, make


def run(options: argparse.Namespace) -> None:
    """Play histories; print how many of each form, and every one whose tables are not those of a fresh run."""
    count = int(options.records or (len(CHOICES) if options.small else 1_000))
    random = np.random.default_rng(int(time.time()))
    played, wrong, documents = Counter[str](), list[str](), 0
    with TemporaryDirectory(prefix="nddup-bench-") as folder:
        for number in range(count):
            choice = sorted(CHOICES)[number % len(CHOICES)]
            seed, steps = int(random.integers(2**32)), int(random.integers(2, 9))
            told = f"{choice}, seed {seed}, {steps} steps"
            try:
                repo = make(Path(folder, str(number)), choice)
                live = play(repo, draw_history(seed, steps))
                fresh = run_fresh(live, repo.snapshot.identity.config)
                digests = dict(repo.snapshot.commit.digests) == tables_totals(fresh)
                if rows_of(live_tables(repo.snapshot)) != rows_of(fresh) or not digests:
                    wrong.append(told)
            except Exception as error:  # noqa: BLE001 - the next history is played; this one is told
                wrong.append(f"{told}: {type(error).__name__}: {error}")
            played[choice] += 1
            documents += len(live)
    for choice, times in sorted(played.items()):
        sys.stdout.write(f"{choice:<20}{times:>6}\n")
    sys.stdout.write(f"{count:,} histories, {documents:,} live documents at their ends, {len(wrong)} wrong\n")
    sys.stdout.writelines(f"wrong: {one}\n" for one in wrong)
    if wrong:
        raise SystemExit(1)
