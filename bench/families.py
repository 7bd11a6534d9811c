"""Families: very dense families mined under the default budgets, and larger ones clustered around leaders."""

import argparse
import resource
import time

import numpy as np

from bench.recording import record, show
from nddup.ground.arrays import Ragged, number_keys
from nddup.matching.threshold import Threshold
from nddup.mining.frequent_sets import find_pairs
from nddup.mining.itemsets import mine_component
from nddup.mining.leader_clusters import Known, follow_leaders
from nddup.mining.leaders import choose_leaders, find_leader_pairs, rank_features
from nddup.mining.neighbourhoods import bound_memory

SLOTS = 100
MAX_SETS, MAX_MEMBERS = 1000, 100_000
MINED = (
    (20, 0.97, 50), (24, 0.97, 50), (28, 0.97, 50), (40, 0.90, 50), (40, 0.90, 70), (100, 0.97, 50), (500, 0.97, 50),
    (5000, 0.97, 50), (5000, 0.97, 85),
)  # fmt: skip
LED = ((5000, 0.97, 85), (20_000, 0.97, 50), (100_000, 0.97, 50), (100_000, 0.97, 85))
SMALL = 1000
"""Most documents of a mined family in a small run; larger ones are left out."""


def run(options: argparse.Namespace) -> None:
    """Mine families and follow leaders; print the results and their cost."""
    mined, led = [], []
    for m, share, count in MINED:
        if not options.small or m <= SMALL:
            _mine(8, share, count)  # compiles or loads the kernels
            mined.append([_name(m, share, count), *_mine(m, share, count)])
    for n, share, count in LED:
        n = n // 10 if options.small else n  # noqa: PLW2901 - a smaller size
        _lead(8, share, count)
        led.append([_name(n, share, count), *_lead(n, share, count)])
    show(
        f"families: mined, budgets of {MAX_SETS:,} sets and {MAX_MEMBERS:,} member rows, and more for each sketch",
        ["family", "pairs", "pairs s", "coverage", "sets", "member rows", "mining s", "bound MB", "peak MB"],
        mined,
    )
    show("families: led", ["family", "kept", "pairs", "sets", "seconds", "peak MB"], led)
    record("families", options, mined=mined, led=led)


def _name(m: int, share: float, count: int) -> str:
    return f"{m:,} documents, kept with {share}, count {count}"


def draw_family(m: int, share: float) -> Ragged:
    """Return sketches of 100 slots, each the original's with probability `share`, else a feature of its own."""
    kept = np.random.default_rng(0).random((m, SLOTS)) < share
    ids = np.where(kept, np.arange(SLOTS), 1000 + np.arange(m * SLOTS).reshape(m, SLOTS)).astype(np.uint64)
    return Ragged(np.arange(m + 1) * SLOTS, np.sort(ids, axis=1).ravel())


def _mine(m: int, share: float, count: int) -> list[object]:
    family = draw_family(m, share)
    started = time.perf_counter()
    numbers, n_features = number_keys(family.values)
    pairs = find_pairs(family.offsets, numbers, n_features, count)
    paired = time.perf_counter()
    found = mine_component(
        family.offsets, family.values.view(np.int64), np.full(m, count, np.int32), pairs,
        max_sets=MAX_SETS, max_members=MAX_MEMBERS,
    )  # fmt: skip
    ended = time.perf_counter()
    bound = bound_memory(family.offsets, pairs) // 2**20
    return [len(pairs), paired - started, found.coverage, found.supports.size, found.members.size, ended - paired,
            bound, _peak()]  # fmt: skip


def _lead(n: int, share: float, count: int) -> list[object]:
    family = draw_family(n, share)
    by_count = Threshold("overlap", count, 1, is_count=True, size=SLOTS)
    started = time.perf_counter()
    bounds, never = np.full(n, count, np.int32), np.zeros(n, np.bool_)
    ranked = rank_features(family, np.diff(family.offsets).astype(np.int32), by_count)
    leads, index = choose_leaders(ranked, np.arange(n), never)
    edges = np.sort(find_leader_pairs(ranked, leads, index, never).ends, axis=1)
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    known = Known(edges, np.arange(n, dtype=np.int32), leads, is_whole=False)
    found = follow_leaders(family, bounds, known, by_count.rule)
    seconds = time.perf_counter() - started
    return [int(leads.sum()), len(edges), found.supports.size, seconds, _peak()]


def _peak() -> int:
    """Return the peak memory of this process in MB, its input and the interpreter included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
