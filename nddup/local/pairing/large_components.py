"""Components with too many pairs, given by leaders; families of heavy sketches, whose pairs are still to be made.

A family is a connected component of the graph of pairs found and links between heavy sketches. Links join at least the
heavy near-duplicates that were not compared, so no near-duplicate pair leaves a family. A family without links is a
component that has all its pairs, or more than `max_edges` of them.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import take_rows
from nddup.errors import CapacityError
from nddup.local.pairing.collapse import Nodes
from nddup.local.pairing.match import Matches, Rule
from nddup.local.reading.workers import Workers
from nddup.matching.connected_pairs import Limits
from nddup.mining.components import label_components
from nddup.mining.family_pairs import FamilyPairs, lead, pair_family, past_comparisons

if TYPE_CHECKING:  # it loads RapidFuzz
    from nddup.local.pairing.confirm import Confirmer


class Family(NamedTuple):
    """A family whose pairs are made anew."""

    nodes: NDArray[np.int32]
    """Its nodes, ascending."""

    is_large: bool
    """Whether it is one component, of more than `max_edges` pairs; else it has links, and must be searched."""


def find_families(matches: Matches, max_edges: int) -> Iterator[Family]:
    """Yield the families with a heavy node, and those of more than `max_edges` pairs.

    Cost: sorts of the nodes and edges, only where there are links or more than `max_edges` pairs.
    """
    if not len(matches.links) and len(matches.first) <= max_edges:
        return
    edges = np.concatenate([matches.ends, matches.links])
    nodes, places = np.unique(edges, return_inverse=True)
    ends: NDArray[np.int32] = places.reshape(-1, 2).astype(np.int32)
    families = label_components(ends, nodes=len(nodes)).ordinals

    count = int(families.max(initial=-1)) + 1
    is_linked = np.bincount(families[ends[len(matches.first) :, 0]], minlength=count) > 0
    is_large = ~is_linked & (np.bincount(families[ends[:, 0]], minlength=count) > max_edges)
    order = np.argsort(families, kind="stable")
    starts = np.searchsorted(families[order], np.arange(count + 1))
    for family in np.flatnonzero(is_linked | is_large):
        members = order[starts[family] : starts[family + 1]]
        yield Family(nodes[members].astype(np.int32), bool(is_large[family]))


def settle_families(  # noqa: PLR0913, PLR0917 - the last only where texts confirm pairs
    matches: Matches,
    nodes: Nodes,
    rule: Rule,
    limits: Limits,
    workers: Workers,
    confirmer: "Confirmer | None" = None,
) -> tuple[Matches, NDArray[np.int32]]:
    """Replace the matches within each family that has a heavy node or too many pairs.

    Args:
        matches: the result of the search.
        nodes: the documents, with their sketches.
        rule: how pairs were found.
        limits: `pairs.max_edges` and `pairs.max_comparisons`.
        workers: each family is searched by one thread.
        confirmer: compares texts, where these confirm pairs; the matches are then candidates.

    Returns:
        All matches, and the nodes of the components given by leaders, ascending.

    Raises:
        CapacityError: if a family takes more than `max_comparisons`.

    Cost: see `pair_family`; other families are left as they are.
    """
    families = list(find_families(matches, limits.max_edges))
    if not families:
        return matches, np.empty(0, np.int32)

    found = list(workers.threads.map(lambda family: _search(family, nodes, rule, limits, confirmer), families))
    passed = next((part for part in found if not part.is_whole), None)
    if passed is not None:
        raise CapacityError(past_comparisons(len(passed.by_leaders), limits.max_comparisons))

    inside = np.concatenate([family.nodes for family in families])
    by_leaders = np.concatenate([part.by_leaders for part in found])
    within = _join(families, found, nodes, rule)
    return _replace(matches, inside, within), np.sort(inside[by_leaders])


def _search(family: Family, nodes: Nodes, rule: Rule, limits: Limits, confirmer: "Confirmer | None") -> FamilyPairs:
    """Find the pairs of one family."""
    sketches = take_rows(nodes.sketches, family.nodes.astype(np.int64))
    bounds = rule.threshold.bounds(nodes.sizes[family.nodes])
    by_policy = np.argsort(nodes.turns[nodes.best[family.nodes]])
    confirm = None if confirmer is None else partial(confirmer.any_confirmed, family.nodes)
    if family.is_large:
        return lead(sketches, bounds, by_policy, rule.threshold, confirm)
    keys = rule.finder.keys(sketches) if rule.finder is not None else None
    return pair_family(sketches, bounds, by_policy, rule.threshold, limits, keys, confirm)


class _Within(NamedTuple):
    """The pairs of families, as columns of `Matches`."""

    ends: NDArray[np.int32]
    overlap: NDArray[np.int32]
    resemblance: NDArray[np.float64]
    containments: NDArray[np.float64]


def _join(families: list[Family], found: list[FamilyPairs], nodes: Nodes, rule: Rule) -> _Within:
    """Join the pairs of all families, named by their nodes."""
    ends = np.concatenate(
        [np.sort(family.nodes[part.ends], axis=1) for family, part in zip(families, found, strict=True)]
    )
    overlap = np.concatenate([part.overlap for part in found])
    containments = np.full((2, len(ends)), np.nan)
    if rule.threshold.shows_containment:
        containments = (overlap[:, None] / nodes.sizes[ends]).T
    return _Within(ends, overlap, np.concatenate([part.resemblance for part in found]), containments)


def _replace(matches: Matches, inside: NDArray[np.int32], within: _Within) -> Matches:
    """Return the matches outside these nodes and the new ones within, sorted by their ends."""
    outside = np.flatnonzero(~np.isin(matches.first, inside))
    ends = np.concatenate([matches.ends[outside], within.ends])
    by_name = np.lexsort((ends[:, 1], ends[:, 0]))
    return replace(
        matches,
        first=ends[by_name, 0],
        second=ends[by_name, 1],
        overlap=np.concatenate([matches.overlap[outside], within.overlap])[by_name],
        resemblance=np.concatenate([matches.resemblance[outside], within.resemblance])[by_name],
        containments=np.concatenate([matches.containments[:, outside], within.containments], axis=1)[:, by_name],
    )
