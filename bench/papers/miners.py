"""The miner beside others, as the least number k of common features falls: a C miner, and MLlib's FP-Growth.

The context is that of the profile of 2009: shingles of 20 words, images of 100, equal images once. FP-Growth lists all
frequent sets, from which the maximal ones would still have to be chosen; it runs on Spark with both cores.
"""

import argparse
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from bench.debdocs import load_pages, texts_of
from bench.mining import context_of, limited_fpgrowth
from bench.papers.cells import Cells, Values
from nddup.mining.frequent_sets import mine_context
from nddup.mining.transactions import Context

SUPPORTS = (100, 95, 90, 85, 80, 70, 60, 50)
LENGTH, SIZE, LIMIT = 20, 100, 120


def measure(options: argparse.Namespace, cells: Cells, folder: Path) -> None:
    """Mine the pages at every k."""
    context = context_of(texts_of(load_pages(options)), length=LENGTH, size=SIZE, distinct=True)
    for support in SUPPORTS:
        cells.get("miners", {"k": support}, partial(_mine, context, support))
    for support in SUPPORTS:
        cells.get("mllib", {"k": support}, partial(_mllib, context, support, folder))


def _mine(context: Context, support: int) -> Values:
    """Both miners from memory, in one process each; None where the C miner passed the limit."""
    mine_context(context, context.n_items + 1)  # loads the kernels
    started = time.perf_counter()
    sets = mine_context(context, support).itemsets
    ours = time.perf_counter() - started

    lists = [row.tolist() for row in np.split(context.items, context.offsets[1:-1])]
    seconds, listed = limited_fpgrowth(lists, support)
    return {"sets": sets.supports.size, "nddup_s": round(ours, 3), "c_miner_s": round(seconds, 3) if listed else None,
            "same": len(listed) == sets.supports.size if listed else None}  # fmt: skip


def _mllib(context: Context, support: int, folder: Path) -> Values:
    """FP-Growth in a process of its own; None where it passed the limit or failed."""
    path = folder / "context.npz"
    if not path.exists():
        np.savez(path, offsets=context.offsets, items=context.items)
    command = [sys.executable, "-m", "bench.papers.mllib_fpgrowth", str(path), str(support)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"seconds": None, "sets": None}
    if done.returncode:
        return {"seconds": None, "sets": None, "failed": done.stderr.strip().splitlines()[-1:]}
    seconds, sets = done.stdout.split()[-2:]
    return {"seconds": float(seconds), "sets": int(sets)}
