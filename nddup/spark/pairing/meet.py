"""The owner of an element, where prefixes meet: it finds candidates, fetches their sketches and compares them.

    postings            --ask_sketches-->  wanted      E5    node
    postings, sketches  --compare-->       found       E7    pairs, links and counters; two tasks may find a pair
    found               --drop_repeats-->  COMPARED          each once

Each function takes the blocks of one task.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.arrays import Ragged, take_rows
from nddup.matching.element_join import Met, find_wanted, join_met
from nddup.matching.element_prefixes import BEFORE, WORDS
from nddup.matching.overlap_join import Found
from nddup.matching.prefix_filter import partition_of
from nddup.spark.blocks import Columns, pack, pieces, ragged_column, target_of, unpack, with_rows
from nddup.spark.pairing.compared import COUNTERS, lay_out
from nddup.spark.pairing.plan import PAIR_LAYOUT, SKETCH_LAYOUT, WANTED_LAYOUT, Pairing

Batches = Iterator[pa.RecordBatch]
CONTAINMENTS = ("containment_a", "containment_b")


def ask_sketches(batches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E5: ask the homes for the sketches in a candidate pair of this task; `owner` asks."""
    held = with_rows(batches)
    nodes, met = _read_postings(held, pairing)
    wanted = nodes[find_wanted(met, pairing.meeting, is_containment=pairing.threshold.is_containment)]
    packed = pack(
        WANTED_LAYOUT, partition_of(wanted.view(np.uint64), pairing.partitions), {"node": wanted},
        partitions=pairing.partitions,
    )  # fmt: skip
    yield packed.append_column("owner", pa.repeat(pa.scalar(target_of(held), pa.int32()), packed.num_rows))


def compare(postings: Iterable[pa.RecordBatch], sketches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E7: send each pair and link that this task finds to the task that its first node chooses, and count the work.

    Raises:
        ValueError: if a sketch arrives that was not asked for.
    """
    held = with_rows(postings)
    nodes, met = _read_postings(held, pairing)
    rows = _fetched(unpack(with_rows(sketches), SKETCH_LAYOUT), nodes)
    keys = pairing.finder.keys(rows) if pairing.finder is not None else None
    found = join_met(met, pairing.meeting, rows, pairing.threshold, keys=keys, max_edges=pairing.max_edges)
    yield from _found_blocks(found, nodes, met.sizes, target_of(held), pairing)


def drop_repeats(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Return COMPARED, with each pair and link once, however many tasks found it."""
    columns = unpack(with_rows(batches), PAIR_LAYOUT)
    counts = columns.pop("counts").reshape(-1, len(COUNTERS)).sum(axis=0)

    links = _first_of_each(columns.pop("link_a"), columns.pop("link_b"))
    if len(links[1]):
        yield lay_out("link", {"node_a": links[0], "node_b": links[1]})

    order, is_first = _order(columns["node_a"], columns["node_b"])
    chosen = order[is_first]
    pairs = {name: column[chosen] for name, column in columns.items() if len(column) or not name.startswith("cont")}
    yield lay_out("pair", pairs)
    yield lay_out("count", {name: counts[at : at + 1] for at, name in enumerate(COUNTERS)})


def _order(first: NDArray[np.generic], second: NDArray[np.generic]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the order of the pairs, and for each in that order whether it differs from the one before."""
    order = np.lexsort((second, first))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    return order, is_first


def _first_of_each(
    first: NDArray[np.generic], second: NDArray[np.generic]
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Return the distinct pairs, in order."""
    order, is_first = _order(first, second)
    return first[order[is_first]], second[order[is_first]]


def _read_postings(held: list[pa.RecordBatch], pairing: Pairing) -> tuple[NDArray[np.int64], Met]:
    """Return the nodes of the posted sketches, in the order (size, node), and their postings."""
    columns = unpack(held, pairing.posting_layout)
    counts = columns["count"].astype(np.int64)
    order = np.lexsort((columns["node"], columns["size"]))
    sizes = columns["size"][order].astype(np.int32)

    # The postings of each row move with it.
    starts = np.append(0, np.cumsum(counts)).astype(np.int64)
    postings = take_rows(Ragged(starts, np.arange(starts[-1], dtype=np.uint64)), order)
    moved = postings.values.astype(np.int64)
    before = columns["before"].astype(np.uint64) | (columns["before_upper"].astype(np.uint64) << np.uint64(32))
    met = Met(
        sizes=sizes,
        bounds=pairing.threshold.bounds(sizes),
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
    """Return the fetched sketch of each of `nodes`; an empty one for a node that was not fetched."""
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
    found: Found, nodes: NDArray[np.int64], sizes: NDArray[np.int32], target: int, pairing: Pairing
) -> Batches:
    """Return the pairs, links and counters of a task as blocks of PAIR_LAYOUT."""
    first, second = nodes[found.first], nodes[found.second]
    columns: Columns = {
        "node_a": np.minimum(first, second),
        "node_b": np.maximum(first, second),
        "overlap": found.overlap,
        "resemblance": found.resemblance,
    }
    if pairing.threshold.shows_containment:
        of_first, of_second = found.overlap / sizes[found.first], found.overlap / sizes[found.second]
        columns["containment_a"] = np.where(first < second, of_first, of_second)
        columns["containment_b"] = np.where(first < second, of_second, of_first)

    ends = nodes[found.links]
    links: Columns = {"link_a": ends.min(axis=1), "link_b": ends.max(axis=1)}
    counts: Columns = {"counts": np.array([getattr(found, name) for name in COUNTERS], np.int64)}
    own = np.full(len(COUNTERS), target, np.int32)
    for some, targets in (
        (columns, _targets(columns["node_a"], pairing)), (links, _targets(links["link_a"], pairing)), (counts, own),
    ):  # fmt: skip
        for rows in pieces(np.full(len(targets), 8)):
            yield _pack_some({name: column[rows] for name, column in some.items()}, targets[rows], pairing)


def _targets(nodes: NDArray[np.generic], pairing: Pairing) -> NDArray[np.int32]:
    return partition_of(nodes.view(np.uint64), pairing.partitions)


def _pack_some(columns: Columns, targets: NDArray[np.int32], pairing: Pairing) -> pa.RecordBatch:
    """Pack blocks of these columns; the other columns of PAIR_LAYOUT are null."""
    layout = {name: PAIR_LAYOUT[name] for name in columns}
    packed = pack(layout, targets, columns, partitions=pairing.partitions)
    arrays = [
        packed.column(name) if name in columns else pa.nulls(packed.num_rows, pa.binary()) for name in PAIR_LAYOUT
    ]
    return pa.RecordBatch.from_arrays([packed.column("target"), *arrays], names=["target", *PAIR_LAYOUT])
