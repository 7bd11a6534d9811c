"""Clusters: maximal sets of documents that are pairwise near-duplicates and have enough features in common.

Orientation, after Ignatov and Kuznetsov 2009: a feature is a transaction, the documents that have it are its items; a
cluster is an intent (a set of documents) with a large extent (the features common to all). Support counts features.

                                                           shuffles
    problems      --mine_by_pivot-->      sets             none
    problems      --list_transactions-->  transactions     none
    transactions  --list_frequent-->      frequent sets    those of MLlib's FP-Growth
    frequent sets, problems  --keep_clusters-->  sets      1, of blocks of frequent sets

`problems` makes one mining problem of each component; `nddup.stages.names` turns sets into clusters.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.ml.fpm import FPGrowth
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import lists_of
from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import VALUES_PER_BATCH, Budget, MiningRule, Problem, list_sets, with_lone
from nddup.mining.itemsets import Itemsets, keep_maximal
from nddup.spark.blocks import Layout, block_schema, cogroup, exchange, pack, unpack, with_rows
from nddup.spark.clustering.problems import PIVOT, Batches, read_problems
from nddup.spark.schemas import local_table, schema_of, table
from nddup.tables import SETS

LISTED_LAYOUT: Layout = {"set_ordinal": np.int64, "mask": np.int64, "support": np.int64}

ITEM_BITS = 5
"""An item of a transaction is `ordinal << ITEM_BITS | position`: FP-Growth's components have at most 23 nodes."""

TRANSACTIONS = table("fit int, items array<long>, least int")


def mine_by_pivot(problems: DataFrame, *, threshold: Threshold, budget: Budget, mode: str = "all") -> DataFrame:
    """Find the sets of each component assigned to the pivot miner.

    Mode `all`: its maximal sets. If they exceed the budget, a cover. If that exceeds ten times the budget, or if the
    component has too many pairs, clusters around leaders. `cover`: a cover at once. `components`: the component
    itself.

    Schema in:   blocks of PROBLEM_LAYOUT, a component in one partition
    Schema out:  SETS
    Shuffles:  none.    Actions:  none.
    """
    return problems.mapInArrow(partial(_mine_block, threshold=threshold, mode=mode, budget=budget), schema_of(SETS))


def list_transactions(problems: DataFrame, *, threshold: Threshold, min_support: int) -> DataFrame:
    """List the features that two or more documents of an FP-Growth component share, with those documents.

    Schema out:  fit int, items array<long>, least int: the smallest alpha_d of the component's documents, or
                 `min_support` if that is more
    Shuffles:  none.    Actions:  none.
    """
    return problems.mapInArrow(partial(_transactions_block, threshold=threshold, min_support=min_support), TRANSACTIONS)


def list_frequent(transactions: DataFrame, *, least: int, count: int) -> DataFrame:
    """Find every set of at least two documents that share `least` features or more, with MLlib's FP-Growth.

    Args:
        transactions: the transactions of one fit; the items of each are distinct.
        least: the smallest support, a count of at least 1.

    Schema out:  ordinal long, mask long (bits are positions), support long
    Actions:   the fit itself (MLlib counts items and builds its trees); the listing is lazy.
    """
    items = transactions.select("items")
    itemsets = _fit(items, support_fraction(least, count))

    # All items of a frequent set belong to one component; their positions become the bits of one number.
    position_mask = (1 << ITEM_BITS) - 1
    mask = F.aggregate(
        "items",
        F.lit(0).cast("long"),
        lambda bits, item: bits.bitwiseOR(F.call_function("shiftleft", F.lit(1).cast("long"),
                                                         item.bitwiseAND(F.lit(position_mask)).cast("int"))),
    )  # fmt: skip

    return itemsets.where((F.size("items") >= 2) & (F.col("freq") >= least)).select(  # noqa: PLR2004
        F.shiftright(F.col("items")[0], ITEM_BITS).alias("ordinal"), mask.alias("mask"), F.col("freq").alias("support")
    )


def can_fit(spark: SparkSession) -> bool:
    """Whether the session can run MLlib's FP-Growth: some Spark Connect servers refuse it. Cost: one small fit."""
    try:
        _fit(local_table(spark, table("items array<long>"), [([1, 2],)]), 1.0)
    except (PySparkException, NotImplementedError, ImportError):
        return False
    return True


def _fit(items: DataFrame, fraction: float) -> DataFrame:
    """Return the frequent itemsets of transactions; the fit runs at once, the listing is lazy."""
    return FPGrowth(minSupport=fraction).fit(items).freqItemsets


def support_fraction(support: int, count: int) -> float:
    """Return MLlib's `minSupport` for a support of `support` among `count` transactions.

    MLlib multiplies it by `count` and rounds up. k / n may be rounded to a float for which that gives k + 1;
    (k - 0.5) / n never is. The cap at 1 keeps it a fraction.

    Example:
        >>> import math
        >>> math.ceil(7 / 25 * 25), math.ceil(support_fraction(7, 25) * 25)
        (8, 7)
    """
    return min(1.0, (support - 0.5) / max(count, 1))


def keep_clusters(
    frequent: DataFrame, problems: DataFrame, *, threshold: Threshold, min_support: int, partitions: int
) -> DataFrame:
    """Keep the frequent sets that are clusters: among those in which all pairs are near-duplicates, the maximal ones.

    The frequent sets are those of all fits, so the problems are read once, however many fits there are.

    Schema in:   as `list_frequent` gives; blocks of PROBLEM_LAYOUT
    Schema out:  SETS
    Shuffles:  one, of blocks of frequent sets; the problems stay where they are.    Actions:  none.
    """
    blocks = frequent.mapInArrow(partial(_post_sets, partitions=partitions), block_schema(LISTED_LAYOUT))
    listed = exchange(blocks, partitions=partitions)
    find = partial(_maximal_block, threshold=threshold, min_support=min_support)
    return cogroup(listed, problems, find, schema_of(SETS))


def _post_sets(batches: Batches, *, partitions: int) -> Batches:
    for batch in batches:
        ordinals, masks, supports = (np.asarray(batch.column(i)) for i in range(3))
        columns = {"set_ordinal": ordinals, "mask": masks, "support": supports}
        yield pack(LISTED_LAYOUT, (ordinals % partitions).astype(np.int32), columns, partitions=partitions)


def _mine_block(batches: Batches, *, threshold: Threshold, mode: str, budget: Budget) -> Batches:
    """Return SETS for the components of one partition that are assigned to the pivot miner."""
    problems, fits = read_problems(with_rows(batches), threshold)
    return problems.mine(np.flatnonzero(fits == PIVOT), MiningRule(threshold, mode, budget))


def _transactions_block(batches: Batches, *, threshold: Threshold, min_support: int) -> Batches:
    """Return TRANSACTIONS for the components of one partition that are assigned to FP-Growth."""
    problems, fits = read_problems(with_rows(batches), threshold)
    nodes = np.diff(problems.starts)
    component = np.repeat(np.arange(len(nodes)), nodes)
    position = np.arange(len(component)) - problems.starts[component]
    listed = np.flatnonzero(fits[component] != PIVOT)
    if not len(listed):
        return

    # The postings of these components, by (component, feature): `owner` is the node of each.
    chosen = take_rows(problems.sketches, problems.rows[listed])
    owner = np.repeat(listed, np.diff(chosen.offsets))
    order = np.lexsort((chosen.values, component[owner]))
    owner, features = owner[order], chosen.values[order]

    # A run of one feature is a transaction if at least two nodes have the feature.
    is_new = np.append(True, (features[1:] != features[:-1]) | (component[owner][1:] != component[owner][:-1]))
    starts = np.append(np.flatnonzero(is_new), len(owner))
    shared = np.flatnonzero(np.diff(starts) > 1)
    items = name_items(problems.ordinals[component[owner]], position[owner])
    rows = take_rows(Ragged(starts, items.view(np.uint64)), shared)

    least = np.maximum(np.minimum.reduceat(problems.bounds, problems.starts[:-1]), min_support).astype(np.int32)
    of_row = component[owner][starts[shared]]
    lists = lists_of(rows.offsets, pa.array(rows.values.view(np.int64)), VALUES_PER_BATCH)
    columns = [pa.array(fits[of_row]), lists, pa.array(least[of_row])]
    yield from pa.Table.from_arrays(columns, names=TRANSACTIONS.fieldNames()).to_batches()


def name_items(ordinals: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return items for MLlib: a document of a component as one number, `ordinal << ITEM_BITS | position`.

    Raises:
        ValueError: if an ordinal or a position has too many bits.
    """
    if max(int(positions.max(initial=0)) >> ITEM_BITS, int(ordinals.max(initial=0)) >> 63 - ITEM_BITS):
        raise ValueError(f"an item has {ITEM_BITS} bits for a position and {63 - ITEM_BITS} for a component")
    return ordinals << ITEM_BITS | positions


def _maximal_block(
    frequent: Iterable[pa.RecordBatch], gathered: Iterable[pa.RecordBatch], *, threshold: Threshold, min_support: int
) -> Batches:
    """Return SETS for one partition: the frequent sets of each of FP-Growth's components that are clusters."""
    (problems, fits), listed = read_problems(with_rows(gathered), threshold), unpack(frequent, LISTED_LAYOUT)
    order = np.lexsort((listed["mask"], listed["set_ordinal"]))
    low = np.searchsorted(listed["set_ordinal"][order], problems.ordinals, "left")
    high = np.searchsorted(listed["set_ordinal"][order], problems.ordinals, "right")

    def find(index: int) -> Itemsets:
        rows = order[low[index] : high[index]]
        masks, supports = listed["mask"][rows].astype(np.int64), listed["support"][rows].astype(np.int32)
        problem = problems.component(index)
        bounds = np.maximum(problem.bounds, min_support)
        is_cluster = keep_maximal(masks, supports, bounds, _neighbour_masks(problem))

        is_member = (masks[is_cluster, None] >> np.arange(len(bounds))) & 1  # a row per set, 1 for each member
        offsets = np.concatenate([[0], np.cumsum(is_member.sum(axis=1))]).astype(np.int64)
        members = np.nonzero(is_member)[1].astype(np.int32)
        itemsets = Itemsets(offsets, members, supports[is_cluster], "all")
        return with_lone(itemsets, problem.sketches, np.flatnonzero(~is_member.any(axis=0)), min_support)

    fitted = np.flatnonzero(fits != PIVOT).tolist()
    return list_sets((int(problems.ordinals[index]), find(index)) for index in fitted)


def _neighbour_masks(problem: Problem) -> NDArray[np.int64]:
    """Return the neighbours of each of the m nodes of a component as bits, (m,); m is below 64."""
    edges = problem.edges.astype(np.int64)
    masks = np.zeros(len(problem.bounds), np.int64)
    np.bitwise_or.at(masks, edges[:, 0], 1 << edges[:, 1])
    np.bitwise_or.at(masks, edges[:, 1], 1 << edges[:, 0])
    return masks
