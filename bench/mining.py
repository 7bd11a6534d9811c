"""Mining: all maximal sets of real contexts by nddup and by a C miner, from memory, on one core."""

import argparse
import gzip
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import fim
import numpy as np

from bench.debdocs import load_pages, texts_of
from bench.recording import record, show
from nddup.ground.arrays import number_keys
from nddup.mining.fimi import Context, read_fimi
from nddup.mining.frequent_sets import mine_context
from nddup.mining.itemsets import Itemsets
from nddup.sketching.recipe import Recipe, make_sketches

SIZE, LENGTH = 100, 5
COUNTS = (95, 90, 85, 80, 70, 60, 50)
LONG = 50
"""At this count and below the C miner may need minutes; it is stopped after LIMIT seconds."""
LIMIT = 300
FILES = {"chess": (2397, 1918), "mushroom": (1625, 812), "T10I4D100K": (1000, 100), "retail": (882, 88)}
ROUNDS = 3

Sets = set[tuple[tuple[int, ...], int]]
Listed = list[tuple[tuple[int, ...], int]]


def run(options: argparse.Namespace) -> None:
    """Mine the pages at every count, then the benchmark files; print seconds, sets and ratios."""
    mine_context(
        Context(np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32), 2), 1
    )  # compiles, or loads, the kernels
    pages = sketch_context(options)
    title = f"mining: debdocs, {pages.n_items:,} pages, s = {SIZE}, {pages.offsets.size - 1:,} shingles"
    _compare(title, [("pages", pages, count) for count in COUNTS if not options.small or count > LONG], options)
    files = {name: gzip.decompress((options.data / "fimi" / f"{name}.dat.gz").read_bytes()) for name in FILES}
    contexts = {name: read_fimi([data]).context for name, data in files.items()}
    rows = [(name, contexts[name], count) for name, counts in FILES.items() for count in counts]
    _compare("mining: benchmark files", rows, options)


def sketch_context(options: argparse.Namespace) -> Context:
    """Return the min-s sketches of the pages, with each shingle a transaction of the pages that hold it."""
    return context_of(texts_of(load_pages(options)), Recipe(length=LENGTH, size=SIZE))


def context_of(texts: list[str], recipe: Recipe, *, distinct: bool = False) -> Context:
    """Return the sketches of texts, with each id a transaction; with `distinct`, equal sketches are one item."""
    data = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in data])]).astype(np.int64)
    made = make_sketches(np.frombuffer(b"".join(data), np.uint8), offsets, recipe)
    rows = np.split(made.ids, made.offsets[1:-1])
    if distinct:
        rows = list({row.tobytes(): row for row in rows}.values())
    owners = np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows])
    numbers, count = number_keys(np.concatenate(rows))
    starts = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=count))]).astype(np.int64)
    return Context(starts, owners[np.argsort(numbers, kind="stable")], len(rows))


def _compare(title: str, problems: list[tuple[str, Context, int]], options: argparse.Namespace) -> None:
    rows, values, ratios = [], {}, []
    for name, context, support in problems:
        lists = [row.tolist() for row in np.split(context.items, context.offsets[1:-1])]
        ours, mined = _timed(lambda: mine_context(context, support).itemsets)  # noqa: B023 - called at once
        loading, _ = _timed(lambda: _fpgrowth(lists, len(lists) + 1))  # noqa: B023
        bounded = support <= LONG
        theirs, listed = mine_in_c(lists, support) if bounded else _timed(lambda: _fpgrowth(lists, support))  # noqa: B023
        same = "over the limit" if listed is None else "yes" if is_same(mined, listed) else "NO"
        ratios.append(theirs / ours)
        row = {"sets": mined.supports.size, "nddup s": ours, "fpgrowth s": theirs, "of it loading": loading,
               "times": ratios[-1], "net of loading": (theirs - loading) / ours, "same sets": same}  # fmt: skip
        rows.append([f"{name} at {support}", *row.values()])
        values[f"{name} at {support}"] = row
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    show(f"{title}: {mean:.1f} times in the geometric mean", ["context", *row], rows)
    record("mining", options, title=title, problems=values, mean=mean)


def _timed(mine: Callable[[], Any]) -> tuple[float, Any]:
    """Return the median seconds of up to ROUNDS rounds, fewer if they take long, and the result."""
    seconds, found = list[float](), None
    while len(seconds) < ROUNDS and sum(seconds) < LIMIT / 10:
        started = time.perf_counter()
        found = mine()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), found


def _fpgrowth(lists: list[list[int]], support: int) -> Listed:
    listed: Listed = fim.fpgrowth(lists, target="m", supp=-support, zmin=1, report="a")
    return listed


def mine_in_c(lists: list[list[int]], support: int) -> tuple[float, Listed | None]:
    """As `_timed` for the C miner, in a process that is killed after LIMIT seconds; the result is then None."""

    def report(pipe: Connection) -> None:
        started = time.perf_counter()
        listed = _fpgrowth(lists, support)
        pipe.send((time.perf_counter() - started, listed))

    reader, writer = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=report, args=(writer,))
    child.start()
    seconds, listed = reader.recv() if reader.poll(LIMIT) else (float(LIMIT), None)
    child.kill()
    child.join()
    return seconds, listed


def is_same(mined: Itemsets, listed: Listed) -> bool:
    """Say whether two miners found the same sets with the same supports."""
    return _as_set(mined) == _normal(listed)


def _as_set(itemsets: Itemsets) -> Sets:
    rows = np.split(itemsets.members, itemsets.offsets[1:-1])
    return {(tuple(row.tolist()), support) for row, support in zip(rows, itemsets.supports.tolist(), strict=True)}


def _normal(listed: Listed) -> Sets:
    return {(tuple(sorted(items)), int(support)) for items, support in listed}
