"""Families too large for their pairs: the pairs of their kept documents, by leaders.

A family is a connected component of the pairs found and the links of heavy sketches. Links join more than
near-duplicates do, so no near-duplicate pair leaves a family.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import take_rows
from nddup.local.pairing.collapse import Nodes
from nddup.local.pairing.match import Matches
from nddup.matching.threshold import Threshold
from nddup.mining.components import label_components
from nddup.mining.leaders import follow_leaders


def find_families(matches: Matches) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The nodes of families that hold a heavy one, ascending, and the number of the family of each."""
    edges = np.concatenate([matches.ends, matches.links])
    nodes, ends = np.unique(edges, return_inverse=True)
    families = label_components(ends.reshape(-1, 2).astype(np.int32), nodes=len(nodes)).ordinals
    is_led = np.zeros(int(families.max(initial=-1)) + 1, np.bool_)
    is_led[families[np.searchsorted(nodes, matches.links[:, 0])]] = True
    chosen = np.flatnonzero(is_led[families])
    return nodes[chosen].astype(np.int32), families[chosen]


def lead(matches: Matches, nodes: Nodes, threshold: Threshold) -> tuple[Matches, NDArray[np.int32]]:
    """The matches, those of families with a heavy node replaced by those with a kept end; and the nodes led."""
    led, families = find_families(matches)
    outside = np.flatnonzero(~np.isin(matches.first, led))
    order = np.argsort(families, kind="stable")
    starts = np.flatnonzero(np.append(True, families[order][1:] != families[order][:-1])[: len(order)])
    parts = []
    for low, high in zip(starts, np.append(starts[1:], len(order)), strict=True):
        mine = led[order[low:high]]
        sketches = take_rows(nodes.sketches, mine.astype(np.int64))
        by_policy = np.argsort(nodes.turns[nodes.best[mine]])
        found = follow_leaders(sketches, threshold.bounds(nodes.sizes[mine]), by_policy, threshold)
        parts.append((np.sort(mine[found.pairs], axis=1), found.overlap, found.resemblance))

    ends = np.concatenate([matches.ends[outside], *(part[0] for part in parts)])
    overlap = np.concatenate([matches.overlap[outside], *(part[1] for part in parts)])
    resemblance = np.concatenate([matches.resemblance[outside], *(part[2] for part in parts)])
    containments = np.full((2, len(ends)), np.nan)
    containments[:, : len(outside)] = matches.containments[:, outside]
    by_name = np.lexsort((ends[:, 1], ends[:, 0]))
    return replace(
        matches,
        first=ends[by_name, 0],
        second=ends[by_name, 1],
        overlap=overlap[by_name].astype(np.int32),
        resemblance=resemblance[by_name],
        containments=containments[:, by_name],
    ), led
