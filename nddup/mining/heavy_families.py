"""Families of heavy sketches and components with too many pairs: which there are, and their pairs made anew.

    connections              --list_families-->    FAMILIES     all edges in one call
    families, sketches, …    --search_families-->  FAMILY_PAIRS      each family in one call, its rows one after another

A family is a connected component of the pairs found and of the links between heavy sketches. Links join at least the
heavy near-duplicates that were not compared, so no near-duplicate pair leaves a family. A family without links is a
component with all its pairs, or with more than `max_edges` of them. Families with links, with more than `max_edges`
pairs, or with pairs that were counted but not listed, are searched again.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.arrays import Ragged, take_rows
from nddup.columns import ragged_of
from nddup.matching.confirm_rules import ConfirmRule
from nddup.matching.confirm_texts import confirms_any
from nddup.matching.overlap_join import ComparisonLimits
from nddup.matching.threshold import Threshold
from nddup.mining.family_pairs import Confirm, FamilyPairs, lead, pair_family
from nddup.mining.pair_graph import Cost, Edges, label_components
from nddup.tables import FAMILIES, FAMILY_PAIRS

Batches = Iterator[pa.RecordBatch]

FAMILIES_COST = Cost(edge=40, node=48)
"""Memory of one task over all connections, rounded up from the measured one (`tests/spark/test_graph_memory.py`)."""

BATCH_ROWS = 100_000
"""Nodes in a batch of FAMILIES."""

EDGE_ROWS = 1 << 20
"""Connections that are counted at a time."""

ConfirmOf = Callable[[NDArray[np.int64]], Confirm]
"""Gives what compares the texts of a family, from its nodes: it names documents by their places there."""


class FamilyRule(NamedTuple):
    """How the pairs of a family are found."""

    threshold: Threshold

    keys: Callable[[Ragged], Ragged] | None
    """Makes the keys by which sketches meet; None if they meet by shared features."""

    limits: ComparisonLimits
    """`pairs.max_edges` and `pairs.max_comparisons`."""

    confirm: ConfirmRule | None = None
    """When texts, in a column `tokens`, confirm a pair; None: there is no such column."""


def list_families(batches: Batches, *, max_edges: int) -> Batches:
    """Yield FAMILIES, those with a heavy sketch and those with more than `max_edges` pairs, from all CONNECTIONS.

    A family is a number from 0. Memory: `FAMILIES_COST`.
    """
    edges, linked, unlisted = Edges(), [], []
    for batch in batches:
        first, second, counts = (batch.column(name).to_numpy() for name in ("node_a", "node_b", "pairs"))
        edges.add(first, second)
        linked.append(first[batch.column("is_link").to_numpy(zero_copy_only=False)])
        unlisted.append(np.stack([first, counts])[:, counts != 1])

    nodes = edges.names()
    ends = edges.take_ends(nodes)
    families = label_components(ends, nodes=len(nodes)).ordinals
    pairs = np.zeros(int(families.max(initial=-1)) + 1, np.int64)
    for low in range(0, len(ends), EDGE_ROWS):
        pairs += np.bincount(families[ends[low : low + EDGE_ROWS, 0]], minlength=len(pairs))
    del ends

    # Both ends of a link are heavy, so its family is wanted. Without links, a connection is one pair or many.
    is_linked, is_unlisted = (np.zeros(len(pairs), np.bool_) for _ in range(2))
    while linked:
        is_linked[families[np.searchsorted(nodes, linked.pop())]] = True
    while unlisted:
        first, counts = unlisted.pop()
        places = families[np.searchsorted(nodes, first)]
        np.add.at(pairs, places, counts - 1)
        is_unlisted[places] = True
    is_large = ~is_linked & (pairs > max_edges)

    chosen = np.flatnonzero((is_linked | is_unlisted | is_large)[families])
    for low in range(0, len(chosen), BATCH_ROWS):
        rows = chosen[low : low + BATCH_ROWS]
        yield FAMILIES.batch([nodes[rows], families[rows].astype(np.int64), is_large[families[rows]]])


def search_families(batches: Batches, *, rule: FamilyRule, confirm_of: ConfirmOf | None = None) -> Batches:
    """Yield FAMILY_PAIRS: the pairs of each family, and the sketches of components with more than `max_edges` pairs.

    Args:
        batches: rows of FAMILIES with their `sketch`, array<long>, and `tokens`, array<long>, by the rule; the rows of
            a family one after another, in the order of the keep policy.
        rule: how pairs are found.
        confirm_of: compares texts, where these confirm pairs and are not in the rows.

    Cost: of each family that of `pair_family`; one family is in memory.
    """
    for rows in _gather(batches):
        # The order of the nodes is that of the pairs; by_policy has their places in it.
        order = np.argsort(rows["node"].to_numpy(), kind="stable")
        yield from _settle(rows.take(pa.array(order)), np.argsort(order), rule, confirm_of)


def _gather(batches: Batches) -> Iterator[pa.Table]:
    """Yield the rows of each family."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        families = batch.column("family").to_numpy()
        cuts = [0, *(np.flatnonzero(np.diff(families)) + 1).tolist(), len(families)]
        for low, high in pairwise(cuts if len(families) else []):
            if held and held[0].column("family")[0].as_py() != families[low]:
                yield pa.Table.from_batches(held)
                held = []
            held.append(batch.slice(low, high - low))
    if held:
        yield pa.Table.from_batches(held)


def _settle(rows: pa.Table, by_policy: NDArray[np.int64], rule: FamilyRule, confirm_of: ConfirmOf | None) -> Batches:
    """Yield FAMILY_PAIRS for one family, whose nodes ascend."""
    nodes, sketches = rows["node"].to_numpy(), ragged_of(rows["sketch"])
    confirm = None if confirm_of is None else confirm_of(nodes)
    if rule.confirm is not None:
        confirm = partial(confirms_any, partial(take_rows, ragged_of(rows["tokens"])), rule.confirm)
    found = _search(sketches, by_policy, rule, confirm, is_large=rows["is_large"][0].as_py())
    if not found.is_whole:
        yield _lay_out("stopped", nodes[:1], np.array([len(nodes)]))
        return

    ends = np.sort(found.ends, axis=1)
    shares: list[pa.Array] = [pa.nulls(len(ends), pa.float64())] * 2
    if rule.threshold.shows_containment:
        shares = [pa.array(column) for column in (found.overlap[:, None] / np.diff(sketches.offsets)[ends]).T]
    about = [pa.array(found.overlap.astype(np.int32)), pa.array(found.resemblance), *shares]
    yield _lay_out("pair", nodes[ends[:, 0]], nodes[ends[:, 1]], about)

    large = nodes[found.by_leaders]
    yield _lay_out("leaders", large, large)


def _search(
    sketches: Ragged, by_policy: NDArray[np.int64], rule: FamilyRule, confirm: Confirm | None, *, is_large: bool
) -> FamilyPairs:
    """Find the pairs of one family."""
    bounds = rule.threshold.bounds(np.diff(sketches.offsets).astype(np.int32))
    if is_large:
        return lead(sketches, bounds, by_policy, rule.threshold, confirm)
    keys = None if rule.keys is None else rule.keys(sketches)
    return pair_family(sketches, bounds, by_policy, rule.threshold, rule.limits, keys, confirm)


def _lay_out(
    what: str, node_a: NDArray[np.int64], node_b: NDArray[np.int64], about: list[pa.Array] | None = None
) -> pa.RecordBatch:
    """Return rows of FAMILY_PAIRS of one kind; only pairs have values besides their nodes."""
    rest = about or [pa.nulls(len(node_a), kind) for kind in FAMILY_PAIRS.arrow.types[3:]]
    return FAMILY_PAIRS.batch([pa.repeat(what, len(node_a)), pa.array(node_a), pa.array(node_b), *rest])
