"""Components with too many pairs, represented by leaders; families of heavy sketches, whose pairs are not yet found.

    connections                --find_families-->     families to be searched again               1 task, of connections
    connections, stars         --take_families-->     the same, from components found in rounds
    families, sketches, nodes  --pair_families-->     their pairs, and large components           1 shuffle
    matches, families, found   --replace_families-->  all matches                                 1 join

Sketches whose modulus follows the document's length (`mod-pow2`), compared at the coarser of their two moduli.

    sketches  --coarsen-->            each at its own level i and reduced to every coarser one     no shuffle
    ... compared as any sketches; sketches of different levels share no ids ...
    compared  --keep_common_level-->  the pairs at the higher of the two own levels                no shuffle

V_{i+1} consists of the ids of V_i that 2**(i+1) divides. All reduced sketches of a document together have at most twice
the ids of its own sketch. At each level, every rule of `nddup.matching.overlap_join` holds, with the bound of the size
at that level.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.columns import list_column
from nddup.mining.family_pairs import FamilyRule, list_families, search_families
from nddup.sketching.recipe import LEVEL_BITS, spread_levels
from nddup.spark.schemas import require, schema_of
from nddup.tables import COMPARED, CONNECTIONS, FAMILIES, FAMILY_PAIRS, MATCHES, NODES, SKETCHES, STARS

Batches = Iterator[pa.RecordBatch]


def find_families(connections: DataFrame, *, max_edges: int) -> DataFrame:
    """Find, in one task, the families with a heavy sketch and those with more than `max_edges` pairs.

    Schema in:   CONNECTIONS
    Schema out:  FAMILIES; a family is a number from 0
    Shuffles:  the connections to one task (memory: `FAMILIES_COST`).    Actions:  none.
    """
    require(connections, CONNECTIONS, stage="pairs")
    one = connections.select(*CONNECTIONS.names).repartition(1)
    return one.mapInArrow(partial(list_families, max_edges=max_edges), schema_of(FAMILIES))


def take_families(connections: DataFrame, stars: DataFrame, *, max_edges: int) -> DataFrame:
    """Find the same families, from the stars that `graph.contract` made of the connections.

    Schema in:   CONNECTIONS; STARS, one star per component
    Schema out:  FAMILIES; a family is named by its least node
    Shuffles:  the connections once, the stars twice.    Actions:  none.
    """
    require(connections, CONNECTIONS, stage="pairs")
    require(stars, STARS, stage="pairs")
    centres = stars.select(F.col("first").alias("node"), F.col("first").alias("family")).distinct()
    others = stars.select(F.col("second").alias("node"), F.col("first").alias("family"))
    members = others.unionByName(centres)

    ends = connections.select(F.col("node_a").alias("node"), "is_link", "pairs")
    counted = (
        ends.join(members, "node")
        .groupBy("family")
        .agg(
            F.bool_or("is_link").alias("is_linked"),
            F.bool_or(F.col("pairs") != 1).alias("is_unlisted"),
            F.sum("pairs").alias("n"),
        )
    )
    is_large = ~F.col("is_linked") & (F.col("n") > max_edges)
    wanted = F.col("is_linked") | F.col("is_unlisted") | is_large
    chosen = counted.where(wanted).select("family", is_large.alias("is_large"))
    return members.join(chosen, "family").select(*FAMILIES.names)


def pair_families(  # noqa: PLR0913 - the texts only where these confirm pairs
    families: DataFrame,
    sketches: DataFrame,
    nodes: DataFrame,
    rule: FamilyRule,
    texts: DataFrame | None = None,
    *,
    partitions: int,
) -> DataFrame:
    """Find the pairs of these families, and the sketches of components with more than `max_edges` pairs.

    If texts confirm pairs, the task of a family compares them too, and holds the family's tokens or shingle ids, 8
    bytes each.

    Schema in:   FAMILIES, SKETCHES, NODES; node long, tokens array<long>, if texts confirm pairs
    Schema out:  FAMILY_PAIRS
    Shuffles:  the joins on node; one of the rows, each family to one task, which sorts them on its disk.
    Actions:   none.
    """
    require(families, FAMILIES, stage="pairs")
    require(sketches, SKETCHES, stage="pairs")
    require(nodes, NODES, stage="pairs")
    best = nodes.groupBy("node").agg(F.min(F.struct("policy", "doc_id")).alias("best"))
    rows = sketches.join(best.join(families, "node"), "node")
    columns = [*FAMILIES.names, "sketch"]
    if texts is not None:
        rows, columns = rows.join(texts, "node", "left"), [*columns, "tokens"]
    in_order = rows.repartition(partitions, "family").sortWithinPartitions("family", "best").select(*columns)
    return in_order.mapInArrow(partial(search_families, rule=rule), schema_of(FAMILY_PAIRS))


SETTLED_COUNTS = {
    "by_leaders": "count_if(what = 'leaders')",
    "stopped": "max(CASE WHEN what = 'stopped' THEN node_b END)",
}
"""Counts of FAMILY_PAIRS, as aggregates: the sketches given by leaders, and the size of the largest family that took
too many comparisons."""


def replace_families(matches: DataFrame, families: DataFrame, settled: DataFrame) -> DataFrame:
    """Return the matches outside the families, and those found within them.

    Schema in:   MATCHES, FAMILIES, FAMILY_PAIRS
    Schema out:  MATCHES
    Shuffles:  the matches on node_a, unless the families are small enough to be broadcast.    Actions:  none.
    """
    require(matches, MATCHES, stage="pairs")
    require(settled, FAMILY_PAIRS, stage="pairs")
    inside = families.select(F.col("node").alias("node_a"))  # both ends of a match are in the same family
    outside = matches.join(inside, "node_a", "left_anti")
    within = settled.where("what = 'pair'").select(*MATCHES.names)
    return outside.select(*MATCHES.names).unionByName(within)


def list_large(settled: DataFrame) -> DataFrame:
    """Return the sketches of components represented by leaders.

    Schema in:   FAMILY_PAIRS
    Schema out:  node long
    Shuffles:  none.    Actions:  none.
    """
    require(settled, FAMILY_PAIRS, stage="pairs")
    return settled.where("what = 'leaders'").select(F.col("node_a").alias("node"))


LEVEL_MASK: Final = (1 << LEVEL_BITS) - 1


def coarsen(sketches: DataFrame, *, most: int) -> DataFrame:
    """Return each sketch at its own level and at each coarser level up to `most`, without the empty ones.

    The steps between this one and `keep_common_level` identify a sketch by one number. So `node` packs three numbers
    here: the node, its own level, and the level of this row, the last two in `LEVEL_BITS` bits each.

    Schema in:   SKETCHES, level long
    Schema out:  SKETCHES
    Shuffles:  none.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    return sketches.select("node", "sketch", "level").mapInArrow(partial(_coarsen_task, most=most), schema_of(SKETCHES))


def keep_common_level(compared: DataFrame) -> DataFrame:
    """Return what was found among coarsened sketches, under their nodes: each pair only at the coarser own level.

    Schema in/out:  COMPARED
    Shuffles:  none.    Actions:  none.
    """
    own_a, own_b = (F.shiftright(end, LEVEL_BITS).bitwiseAND(LEVEL_MASK) for end in ("node_a", "node_b"))
    is_here = F.col("node_a").bitwiseAND(LEVEL_MASK) == F.greatest(own_a, own_b)
    nodes = {end: F.shiftright(end, 2 * LEVEL_BITS) for end in ("node_a", "node_b")}

    chosen = compared.where((F.col("what") != "pair") | is_here)
    return chosen.withColumns(nodes).select(*COMPARED.names)


def _coarsen_task(batches: Batches, *, most: int) -> Batches:
    for batch in batches:
        own, levels = (np.asarray(batch.column(name)) for name in ("node", "level"))
        nodes, rows = spread_levels(own, levels, list_column(batch.column("sketch")), most)

        lists = pa.ListArray.from_arrays(rows.offsets.astype(np.int32), pa.array(rows.values.view(np.int64)))
        yield pa.RecordBatch.from_arrays([pa.array(nodes), lists], names=SKETCHES.names)
