"""nddup's miner beside a C miner and MLlib's FP-Growth, as the least number k of common features falls.

The contexts are those of 2009: shingles of 20 words, images of 100 by either method, equal images once. FP-Growth lists
all frequent sets, from which the maximal ones would still have to be selected; it runs on Spark with both cores.
"""

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from bench.mining import context_of, is_same, mine_in_c
from bench.papers.cells import Cells, Values
from nddup.mining.fimi import Context
from nddup.mining.frequent_sets import mine_context
from nddup.sketching.recipe import Recipe

SUPPORTS = (100, 95, 90, 85, 80, 70, 60, 50)
SUPPORTS_OF_MLLIB = (100, 80, 60, 50)
LIMIT = 600
RECIPES = {
    "n smallest of a permutation": Recipe(length=20, size=100),
    "smallest of n permutations": Recipe("min-perm", length=20, size=100, permutation="gf2", tagged=False),
}


def measure(cells: Cells, folder: Path, texts: list[str]) -> None:
    """Mine the images of the texts at every k, by method."""
    for method, recipe in RECIPES.items():
        context = context_of(texts, recipe, distinct=True)
        for support in SUPPORTS:
            cells.get("miners", {"method": method, "k": support}, partial(_mine, context, support))

        saved = folder / "context.npz"
        np.savez(saved, offsets=context.offsets, items=context.items)
        for support in SUPPORTS_OF_MLLIB:
            made = cells.get("mllib", {"method": method, "k": support}, partial(_mllib, saved, support))
            if made["seconds"] is None:
                break  # a lower k gives more sets


def _mine(context: Context, support: int) -> Values:
    """Run both miners from memory, each in one process; the C miner's seconds are None if it passed the limit."""
    mine_context(context, context.n_items + 1)  # loads the kernels
    started = time.perf_counter()
    sets = mine_context(context, support).itemsets
    ours = time.perf_counter() - started

    lists = [row.tolist() for row in np.split(context.items, context.offsets[1:-1])]
    seconds, listed = mine_in_c(lists, support)
    assert listed is None or is_same(sets, listed), support  # noqa: S101 - nothing wrong is published
    return {"sets": sets.supports.size, "nddup_s": round(ours, 3), "fpgrowth_s": round(seconds, 3) if listed else None}


def _mllib(context: Path, support: int) -> Values:
    """Run FP-Growth in a process of its own; its values are None if it passed the limit or failed."""
    command = [sys.executable, "-m", "bench.papers.mllib_fpgrowth", str(context), str(support)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"seconds": None, "sets": None}
    if done.returncode:
        return {"seconds": None, "sets": None, "failed": done.stderr.strip().splitlines()[-1:]}
    seconds, sets = done.stdout.split()[-2:]
    return {"seconds": float(seconds), "sets": int(sets)}
