"""Matching on Spark: from distinct sketches to every pair of near-duplicates, without loss.

    sketches         --keep_sketches-->  homes       1 shuffle
    homes            --post-->           postings    3 shuffles; 1 if sketches meet by keys
    homes, postings  --match-->          COMPARED    3 shuffles; its tasks run `ask_sketches`, `compare`, `drop_repeats`
    compared         --matches_of, connections_of, heavy_of-->    MATCHES; CONNECTIONS; the nodes that are linked
    `mod-pow2`: sketches  --coarsen-->  ... compared ...  --keep_common_level-->  COMPARED at the common modulus

All shuffles move blocks. `nddup.spark.steps.pairing` persists homes and postings, for each is read more than once. A
sketch is sent once to its home, then only to tasks that have it in a candidate pair, so the bytes sent per sketch do
not grow with the number of tasks (`task_sizes`). `nddup.matching` has the arithmetic and the proof that it is exact.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup import tables
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import list_column
from nddup.matching.element_join import PostedSketches, find_wanted, join_posted
from nddup.matching.elements import BEFORE, WORDS
from nddup.matching.overlap_join import NO_LIMIT, JoinResult, partition_of
from nddup.mining.pair_graph import Edges, label_components
from nddup.sketching.recipe import LEVEL_BITS, spread_levels
from nddup.spark.blocks import (
    Columns,
    block_schema,
    cogroup,
    exchange,
    pack,
    pieces,
    ragged_column,
    target_of,
    unpack,
    with_rows,
)
from nddup.spark.pairing import prefix_exchange
from nddup.spark.pairing.prefix_exchange import PAIR_LAYOUT, SKETCH_LAYOUT, WANTED_LAYOUT, Pairing
from nddup.spark.schemas import require, schema_of, table
from nddup.tables import COMPARED, CONNECTIONS, MATCHES, SKETCHES, likeness_of

KINDS = {"edges": "pair", "links": "link", "many": "many"}
"""The kinds of rows of COMPARED, by the name of their count.

In one pass, a task finds pairs, links heavy sketches and counts its work."""

COUNTERS = ("candidates", "stopped")
"""What each task counts: the candidates compared; the most holders of a feature that costs too much to compare."""

COUNTS = {name: f"count_if(what = '{what}')" for name, what in KINDS.items()}
COUNTS |= {"candidates": "sum(candidates)", "stopped": "max(stopped)"}
"""Counts of COMPARED, as aggregates: rows of each kind, and the counters of all tasks."""

Batches = Iterator[pa.RecordBatch]

REQUESTS = table("target int, rest binary, many binary, home int, question int")

REPLIES = table("target int, classes binary, owner int")

WANTED = table("target int, node binary, owner int")

LEVEL_MASK: Final = (1 << LEVEL_BITS) - 1


def lay_out(
    what: Literal["pair", "link", "many", "count"], columns: Mapping[str, NDArray[np.generic]]
) -> pa.RecordBatch:
    """Return rows of COMPARED of one kind.

    Args:
        columns: at least one column of COMPARED by name, arrays of one length; counters not given are 0, other columns
            null.
    """
    rows = len(next(iter(columns.values())))
    laid = [pa.repeat(what, rows)]
    for name, kind in zip(tables.COMPARED.names[1:], tables.COMPARED.arrow.types[1:], strict=True):
        if name in columns:
            laid.append(pa.array(columns[name], kind))
        else:
            laid.append(pa.repeat(0, rows) if name in COUNTERS else pa.nulls(rows, kind))
    return tables.COMPARED.batch(laid)


def matches_of(compared: DataFrame) -> DataFrame:
    """Return the near-duplicate pairs.

    Schema in:   COMPARED
    Schema out:  MATCHES
    Shuffles:  none.    Actions:  none.
    """
    require(compared, COMPARED, stage="pairs")
    return compared.where("what = 'pair'").select(*MATCHES.names)


def connections_of(compared: DataFrame) -> DataFrame:
    """Return pairs and links together, in one read, and the rows that stand for many pairs.

    Pairs and links join sketches into families.

    Schema in:   COMPARED
    Schema out:  CONNECTIONS
    Shuffles:  none.    Actions:  none.
    """
    require(compared, COMPARED, stage="pairs")
    is_link = (F.col("what") == "link").alias("is_link")
    pairs = F.when(F.col("what") == "many", F.col("overlap")).otherwise(F.lit(1)).cast("long").alias("pairs")
    return compared.where("what <> 'count'").select("node_a", "node_b", is_link, pairs).select(*CONNECTIONS.names)


def heavy_of(compared: DataFrame) -> DataFrame:
    """Return the heavy sketches that are linked.

    Schema in:   COMPARED
    Schema out:  node long
    Shuffles:  one, of nodes.    Actions:  none.
    """
    require(compared, COMPARED, stage="pairs")
    return compared.where("what = 'link'").select(F.explode(F.array("node_a", "node_b")).alias("node")).distinct()


def ask_sketches(batches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E5: ask the homes for the sketches in a candidate pair of this task; `owner` asks."""
    blocks = with_rows(batches)
    nodes, met = _read_postings(blocks, pairing)
    wanted = nodes[find_wanted(met, pairing.candidate_rule, pairing.threshold.rule)]
    packed = pack(
        WANTED_LAYOUT, partition_of(wanted.view(np.uint64), pairing.partitions), {"node": wanted},
        partitions=pairing.partitions,
    )  # fmt: skip
    yield packed.append_column("owner", pa.repeat(pa.scalar(target_of(blocks), pa.int32()), packed.num_rows))


def compare(postings: Iterable[pa.RecordBatch], sketches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E7: send each pair and link that this task finds to the task that its first node chooses, and count the work.

    Its blocks have PAIR_LAYOUT: pairs, links and counters. Two tasks may find the same pair.

    Raises:
        ValueError: if a sketch arrives that was not asked for.
    """
    blocks = with_rows(postings)
    nodes, met = _read_postings(blocks, pairing)
    rows = _fetched(unpack(with_rows(sketches), SKETCH_LAYOUT), nodes)
    keys = pairing.finder.keys(rows) if pairing.finder is not None else None
    joined = join_posted(met, pairing.candidate_rule, rows, pairing.threshold, keys=keys, max_edges=pairing.max_edges)
    yield from _found_blocks(joined, nodes, met.sizes, target_of(blocks), pairing)


def drop_repeats(batches: Iterable[pa.RecordBatch], *, most: int = NO_LIMIT) -> Batches:
    """Return COMPARED, with each pair and link once, however many tasks found it.

    A component with more than `most` pairs here is joined by rows `many` in place of its pairs. Each pair comes to one
    task, so the counts of all tasks add up.
    """
    columns = unpack(with_rows(batches), PAIR_LAYOUT)
    counts = columns.pop("counts").reshape(-1, len(COUNTERS)).sum(axis=0)

    links = _first_of_each(columns.pop("link_a"), columns.pop("link_b"))
    if len(links[1]):
        yield lay_out("link", {"node_a": links[0], "node_b": links[1]})

    order, is_first = _order(columns["node_a"], columns["node_b"])
    chosen = order[is_first]
    if len(chosen) > most:
        joined, is_listed = _join_many(columns["node_a"][chosen], columns["node_b"][chosen], most)
        chosen = chosen[is_listed]
        yield lay_out("many", joined)
    pairs = {name: column[chosen] for name, column in columns.items() if len(column) or not name.startswith("cont")}
    yield lay_out("pair", pairs)
    yield lay_out("count", {name: counts[at : at + 1] for at, name in enumerate(COUNTERS)})


def _join_many(first: NDArray[np.generic], second: NDArray[np.generic], most: int) -> tuple[Columns, NDArray[np.bool_]]:
    """Return rows that join each component of more than `most` pairs, and which pairs are in none of these."""
    edges = Edges()
    edges.add(first.astype(np.int64), second.astype(np.int64))
    nodes = edges.names()
    ends = edges.take_ends(nodes)
    components = label_components(ends, nodes=len(nodes)).ordinals
    counts = np.bincount(components[ends[:, 0]], minlength=1)
    is_many = counts > most

    order = np.argsort(components, kind="stable")  # the first node of each component comes first
    starts = np.flatnonzero(np.append(True, np.diff(components[order]) != 0))
    roots = np.repeat(order[starts], np.diff(np.append(starts, len(order))))
    counted = np.zeros(len(order), np.int64)
    counted[starts + 1] = np.minimum(counts[components[order[starts]]], np.iinfo(np.int32).max)
    rows = is_many[components[order]] & (roots != order)
    joined: Columns = {"node_a": nodes[roots[rows]], "node_b": nodes[order[rows]], "overlap": counted[rows]}
    return joined, ~is_many[components[ends[:, 0]]]


def _order(first: NDArray[np.generic], second: NDArray[np.generic]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the order of the pairs, and for each in that order whether it differs from the one before."""
    order = np.lexsort((second, first))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    return order, is_first


def _first_of_each(
    first: NDArray[np.generic], second: NDArray[np.generic]
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    order, is_first = _order(first, second)
    return first[order[is_first]], second[order[is_first]]


def _read_postings(blocks: list[pa.RecordBatch], pairing: Pairing) -> tuple[NDArray[np.int64], PostedSketches]:
    """Return the nodes of the posted sketches, in the order (total, node), and their postings."""
    columns = unpack(blocks, pairing.posting_layout)
    counts = columns["count"].astype(np.int64)
    order = np.lexsort((columns["node"], columns["total"]))
    totals = columns["total"][order].astype(np.int32)

    # The postings of each row move with it.
    starts = np.append(0, np.cumsum(counts)).astype(np.int64)
    postings = take_rows(Ragged(starts, np.arange(starts[-1], dtype=np.uint64)), order)
    moved = postings.values.astype(np.int64)
    before = columns["before"].astype(np.uint64) | (columns["before_upper"].astype(np.uint64) << np.uint64(32))
    met = PostedSketches(
        sizes=columns["size"][order].astype(np.int32),
        totals=totals,
        bounds=pairing.threshold.needs(totals),
        left=columns["left"][order].astype(np.int32),
        need=columns["need"][order].astype(np.int32),
        bitmaps=columns["bitmap"].reshape(-1, WORDS)[order].astype(np.uint64),
        offsets=postings.offsets,
        rests=columns["rest"][moved].astype(np.uint64),
        places=columns["place"][moved].astype(np.int32),
        before=before.reshape(-1, BEFORE)[moved],
    )
    return columns["node"][order].astype(np.int64), met


def _fetched(columns: Columns, nodes: NDArray[np.int64]) -> Ragged:
    by_node = np.argsort(nodes)
    places = by_node[np.minimum(np.searchsorted(nodes[by_node], columns["node"]), max(len(nodes) - 1, 0))]
    if (nodes[places] != columns["node"]).any():
        raise ValueError("pairs: a sketch came to a task that did not ask for it")

    # Row 0 is an empty sketch, for all nodes that were not fetched.
    lengths = np.append(0, columns["size"])
    row = np.zeros(len(nodes), np.int64)
    row[places] = np.arange(1, len(places) + 1)
    return take_rows(ragged_column(lengths, columns["ids"]), row)


def _found_blocks(
    joined: JoinResult, nodes: NDArray[np.int64], sizes: NDArray[np.int32], target: int, pairing: Pairing
) -> Batches:
    """Return the pairs, links and counters of a task as blocks of PAIR_LAYOUT."""
    first, second = nodes[joined.first], nodes[joined.second]
    both = np.stack([sizes[joined.first], sizes[joined.second]])
    of_ends = np.where(first < second, both, both[::-1])
    shows = pairing.threshold.shows_containment
    columns: Columns = {
        "node_a": np.minimum(first, second),
        "node_b": np.maximum(first, second),
        **likeness_of(joined.overlap, joined.resemblance, of_ends, shows_containment=shows),
    }

    ends = nodes[joined.links]
    links: Columns = {"link_a": ends.min(axis=1), "link_b": ends.max(axis=1)}
    counts: Columns = {"counts": np.array([getattr(joined, name) for name in COUNTERS], np.int64)}
    asker = np.full(len(COUNTERS), target, np.int32)
    for part, targets in (
        (columns, _targets(columns["node_a"], pairing)), (links, _targets(links["link_a"], pairing)), (counts, asker),
    ):  # fmt: skip
        for rows in pieces(np.full(len(targets), 8)):
            yield _pack_some({name: column[rows] for name, column in part.items()}, targets[rows], pairing)


def _targets(nodes: NDArray[np.generic], pairing: Pairing) -> NDArray[np.int32]:
    return partition_of(nodes.view(np.uint64), pairing.partitions)


def _pack_some(columns: Columns, targets: NDArray[np.int32], pairing: Pairing) -> pa.RecordBatch:
    layout = {name: PAIR_LAYOUT[name] for name in columns}
    packed = pack(layout, targets, columns, partitions=pairing.partitions)
    arrays = [
        packed.column(name) if name in columns else pa.nulls(packed.num_rows, pa.binary()) for name in PAIR_LAYOUT
    ]
    return pa.RecordBatch.from_arrays([packed.column("target"), *arrays], names=["target", *PAIR_LAYOUT])


def keep_sketches(sketches: DataFrame, pairing: Pairing) -> DataFrame:
    """Send each sketch that can be in a pair to its home.

    Schema in:   SKETCHES, each node once
    Schema out:  blocks of SKETCH_LAYOUT
    Shuffles:  one, of blocks.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    sent = sketches.select(*SKETCHES.names).mapInArrow(
        partial(prefix_exchange.gather_sketches, pairing=pairing), block_schema(SKETCH_LAYOUT)
    )
    return exchange(sent, partitions=pairing.partitions)


def post(homes: DataFrame, pairing: Pairing) -> DataFrame:
    """Send the prefixes of the sketches, or their keys, to the owners of their elements.

    Schema in:   as `keep_sketches` gives
    Schema out:  blocks of the posting layout of `pairing`
    Shuffles:  three, of blocks: requests, replies and postings; for keys only the last.    Actions:  none.
    """
    schema = block_schema(pairing.posting_layout)
    if pairing.finder is not None:
        posted = homes.mapInArrow(partial(prefix_exchange.post_keys, pairing=pairing), schema)
        return exchange(posted, partitions=pairing.partitions)

    requests = homes.mapInArrow(partial(prefix_exchange.request_rarity, pairing=pairing), REQUESTS)
    asked = exchange(requests, partitions=pairing.partitions)
    replies = exchange(
        asked.mapInArrow(partial(prefix_exchange.reply_rarity, pairing=pairing), REPLIES), partitions=pairing.partitions
    )
    posted = cogroup(homes, replies, partial(prefix_exchange.post_prefixes, pairing=pairing), schema)
    return exchange(posted, partitions=pairing.partitions)


def match(homes: DataFrame, postings: DataFrame, pairing: Pairing) -> DataFrame:
    """Find the candidates, fetch their sketches and compare them.

    Schema in:   as `keep_sketches` and `post` give
    Schema out:  COMPARED
    Shuffles:  three, of blocks: the nodes wanted, their sketches, and the pairs found.    Actions:  none.
    """
    wanted = postings.mapInArrow(partial(ask_sketches, pairing=pairing), WANTED)
    sent = cogroup(
        homes,
        exchange(wanted, partitions=pairing.partitions),
        partial(prefix_exchange.send_sketches, pairing=pairing),
        block_schema(SKETCH_LAYOUT),
    )
    pairs = cogroup(
        postings,
        exchange(sent, partitions=pairing.partitions),
        partial(compare, pairing=pairing),
        block_schema(PAIR_LAYOUT),
    )
    task = partial(drop_repeats, most=pairing.most_listed)
    return exchange(pairs, partitions=pairing.partitions).mapInArrow(task, schema_of(COMPARED))


def coarsen(sketches: DataFrame, *, most: int) -> DataFrame:
    """Return each sketch at its own level and at each coarser level up to `most`, without the empty ones.

    V_{i+1}(D) consists of the ids of V_i(D) that 2**(i+1) divides. All reduced sketches of a document together have at
    most twice the ids of its own sketch, and sketches of different levels share no ids. At each level, every rule of
    `nddup.matching.overlap_join` holds, with the bound of the size at that level.

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
        names, levels = (np.asarray(batch.column(name)) for name in ("node", "level"))
        nodes, rows = spread_levels(names, levels, list_column(batch.column("sketch")), most)

        lists = pa.ListArray.from_arrays(rows.offsets.astype(np.int32), pa.array(rows.values.view(np.int64)))
        sizes = pa.array(np.diff(rows.offsets).astype(np.int32))
        yield pa.RecordBatch.from_arrays([pa.array(nodes), lists, sizes], names=SKETCHES.names)
