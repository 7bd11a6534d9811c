"""Pairing: from distinct sketches to near-duplicates, against plain SQL in the same session on the same file."""

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from bench.recording import BUILD, drop, record, show
from nddup.matching.elements import divide
from nddup.matching.overlap_join import NO_LIMIT, LongLists
from nddup.matching.threshold import Threshold
from nddup.spark.pairing import candidates
from nddup.spark.pairing.candidates import matches_of
from nddup.spark.pairing.prefix_exchange import Pairing
from nddup.spark.session import start_session
from nddup.tables import SKETCHES

FEATURES = 100
LEAST = 80
"""Least number of common features of a near-duplicate pair."""
SHARE_NEAR = 0.3
"""Share of the sketches that are in a family of near-duplicates."""
FAMILY = 6
LOST = 8
"""Most features in which a member differs from its family's base: two members share at least 84."""
TEMPLATES = 60
TEMPLATE_FEATURES = 10
TEMPLATE_HOLDERS = (100, 1_000)
ROUNDS = 3

JOIN = f"""
WITH postings AS (SELECT node, explode(sketch) AS feature FROM sketches),
shared AS (SELECT feature FROM postings GROUP BY feature HAVING count(*) > 1),
kept AS (SELECT node, feature FROM postings JOIN shared USING (feature))
SELECT a.node AS node_a, b.node AS node_b, count(*) AS overlap
FROM kept a JOIN kept b ON a.feature = b.feature AND a.node < b.node
GROUP BY a.node, b.node HAVING count(*) >= {LEAST}
"""  # noqa: S608 - a constant

LISTS = f"""
WITH postings AS (SELECT node, explode(sketch) AS feature FROM sketches),
holders AS (SELECT array_sort(collect_list(node)) AS nodes FROM postings GROUP BY feature HAVING count(*) > 1),
firsts AS (SELECT nodes, posexplode(nodes) AS (place, node_a) FROM holders),
met AS (SELECT node_a, explode(slice(nodes, place + 2, size(nodes))) AS node_b FROM firsts)
SELECT node_a, node_b, count(*) AS overlap FROM met GROUP BY node_a, node_b HAVING count(*) >= {LEAST}
"""  # noqa: S608 - a constant


def run(options: argparse.Namespace) -> None:
    """Make the sketches, find the pairs in three ways, check that they are equal, and print the ratios."""
    count = options.sketches or (10_000 if options.small else 200_000)
    local = (BUILD / "local").absolute()
    local.mkdir(parents=True, exist_ok=True)
    spark = start_session(master=f"local[{options.cores}]", settings={"spark.local.dir": str(local)})
    path, warm = BUILD / "sketches.parquet", BUILD / "warm.parquet"
    met = _write_sketches(path, count)
    _write_sketches(warm, min(count, 5_000))
    ways: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
        "nddup: keep, post, match": _match,
        "SQL: join on the feature": lambda spark, path: _query(spark, path, JOIN),
        "SQL: lists of holders": lambda spark, path: _query(spark, path, LISTS),
    }
    seconds: dict[str, list[float]] = {}
    results: dict[str, np.ndarray] = {}
    for name, way in ways.items():
        _timed(spark, warm, way)
        rounds = ROUNDS if name.startswith("nddup") else 1
        for _ in range(rounds):
            taken, results[name] = _timed(spark, path, way)
            seconds.setdefault(name, []).append(taken)
    spark.stop()
    _require_same(results)
    medians = {name: sorted(taken)[len(taken) // 2] for name, taken in seconds.items()}
    own, *others = medians.values()
    found = len(next(iter(results.values())))
    show(
        f"pairing: {count:,} sketches of {FEATURES}, overlap >= {LEAST}: {found:,} pairs, the same from all;"
        f" {met / 1e6:,.1f} M (pair, common feature) rows in all",
        ["way", "seconds", "times ours"],
        [[name, taken, taken / own] for name, taken in medians.items()],
    )
    record("pairing", options, sketches=count, pairs=found, rows_met=met, seconds=seconds,
           ratio=round(min(others) / own, 2))  # fmt: skip
    drop(path, warm)


def make_sketches(count: int, *, size: int = FEATURES, seed: int = 1) -> np.ndarray:
    """Return sketches of `size` distinct ids, shape (count, size), int64, each ascending as unsigned.

    A share of SHARE_NEAR is in families of 2 to FAMILY around a common base; a sketch may also carry one of TEMPLATES,
    ten ids that 100 to 1,000 sketches have in common (fewer if there are few sketches).
    """
    random = np.random.default_rng(seed)
    ids = random.integers(0, 1 << 64, (count, size), np.uint64)
    near = int(count * SHARE_NEAR)
    sizes = random.integers(2, FAMILY + 1, near)
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), near)]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    members = np.arange(sizes.sum())
    own = random.integers(0, 1 << 64, (len(members), LOST), np.uint64)
    ids[members] = ids[np.repeat(starts, sizes)]
    lost = random.integers(1, LOST + 1, len(members))
    for place in range(LOST):
        rows = members[lost > place]
        ids[rows, size - 1 - (rows * LOST + place) % 64] = own[rows, place]
    low, high = (min(holders, count // 20) for holders in TEMPLATE_HOLDERS)
    holders = np.exp(random.uniform(math.log(low), math.log(high), TEMPLATES)).astype(int)
    free = random.permutation(count)
    for taken in holders:
        rows, free = free[:taken], free[taken:]
        ids[rows, :TEMPLATE_FEATURES] = random.integers(0, 1 << 64, TEMPLATE_FEATURES, np.uint64)
    ids.sort(axis=1)
    return random.permutation(ids).view(np.int64)


def _write_sketches(path: Path, count: int) -> int:
    """Write SKETCHES; return the number of (pair, common feature) rows that a plain join makes."""
    ids = make_sketches(count)
    sketch = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * FEATURES), pa.array(ids.ravel()))
    path.parent.mkdir(parents=True, exist_ok=True)
    sizes = np.full(count, FEATURES, np.int32)
    table = pa.table([np.arange(count, dtype=np.int64), sketch, sizes], names=SKETCHES.names)
    pq.write_table(table, path, row_group_size=max(count // 8, 1))
    holders = np.unique(ids, return_counts=True)[1].astype(np.int64)
    return int((holders * (holders - 1) // 2).sum())


def _match(spark: SparkSession, path: Path) -> DataFrame:
    """Find pairs as the pipeline does; `_timed` drops what is persisted."""
    threshold = Threshold("overlap", LEAST, 1, is_count=True, size=FEATURES)
    sketches = spark.read.parquet(str(path))
    ids = sketches.count() * FEATURES
    pairing = Pairing(
        threshold,
        divide(ids, spark.sparkContext.defaultParallelism),
        LongLists(10_000, NO_LIMIT),
        links=True,
        most_ids=FEATURES,
    )
    homes = candidates.keep_sketches(sketches, pairing).persist(StorageLevel.DISK_ONLY)
    postings = candidates.post(homes, pairing).persist(StorageLevel.DISK_ONLY)
    return matches_of(candidates.match(homes, postings, pairing)).select("node_a", "node_b", "overlap")


def _query(spark: SparkSession, path: Path, query: str) -> DataFrame:
    spark.read.parquet(str(path)).createOrReplaceTempView("sketches")
    return spark.sql(query)


def _timed(spark: SparkSession, path: Path, way: Callable[[SparkSession, Path], DataFrame]) -> tuple[float, np.ndarray]:
    """Return the seconds until all pairs have arrived, and the pairs in order: (k, 3) of node, node, overlap."""
    started = time.monotonic()
    rows = way(spark, path).toArrow()
    taken = time.monotonic() - started
    spark.catalog.clearCache()
    found = np.column_stack([np.asarray(rows[name].to_numpy()).astype(np.int64) for name in rows.column_names])
    return taken, found[np.lexsort((found[:, 1], found[:, 0]))]


def _require_same(results: dict[str, np.ndarray]) -> None:
    """Raise AssertionError if the ways gave different answers."""
    expected = next(iter(results.values()))
    for name, found in results.items():
        if not np.array_equal(found, expected):
            raise AssertionError(f"{name}: {len(found):,} pairs, not the {len(expected):,} expected")
