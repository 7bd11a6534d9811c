"""The pairs of a family: by its sketches, by all shingles of its documents, or by both.

join_family    Side, FamilyTexts  -> Joined: the pairs that are near by both, and the components that they connect
join_side      Side               -> Joined, by the sketches alone

Sketches that are alike may belong to documents of which few are pairs. So where all shingles decide, these are joined,
and only pairs are counted. In a family whose shingles would take too much memory, they are compared where the sketches
meet.
"""

from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, number_keys, take_rows
from nddup.matching.bitmaps import make_bitmaps
from nddup.matching.cliques import connect_cliques
from nddup.matching.confirm_texts import SetRule
from nddup.matching.overlap_join import (
    Besides,
    ComparisonLimits,
    ConnectedPairs,
    JoinResult,
    Prefixes,
    Probes,
    begin_count,
    compare_listed,
    count_pairs,
    find_any_large,
    find_large,
    join_prefixes,
    post_prefixes,
    take_prefixes,
)
from nddup.matching.probes import make_probes
from nddup.matching.prune import prune
from nddup.matching.threshold import Threshold
from nddup.mining.bounded_keeping import Confirm

FAMILY_HELD: Final = 1 << 24
"""Shingles of a family, 128 MB, above which its sketches are joined, and its shingles only compared."""


class FamilyTexts(NamedTuple):
    """What the texts of the n documents of a family decide."""

    confirm: Confirm

    shingles: Ragged | None = None
    """n rows, uint64 ascending, where all shingles decide; a row is empty where a document is near to none."""

    rule: SetRule | None = None
    """When they decide for a pair."""

    pairs: NDArray[np.int32] | None = None
    """(p, 2), the pairs for which they decide, where these are known."""


class Side(NamedTuple):
    """n sketches, or the shingles of their documents, and when two of them are near-duplicates."""

    sketches: Ragged
    totals: NDArray[np.int32]
    threshold: Threshold


class Joined(NamedTuple):
    """The pairs of m of the sketches; no other is in a pair."""

    order: NDArray[np.int64]
    """(m,), these, in the order in which they were joined."""

    connected: ConnectedPairs
    matches: JoinResult


def is_whole(side: Side) -> bool:
    """Return whether the sketches hold all shingles of their documents: what is near by them is a pair."""
    return side.threshold.exact is not None and np.array_equal(np.diff(side.sketches.offsets), side.totals)


def join_family(side: Side, limits: ComparisonLimits, keys: Ragged | None, texts: FamilyTexts | None) -> Joined:
    """Find the pairs of a family, by its sketches, its shingles, or both; or take those that are known."""
    if texts is not None and texts.pairs is not None:
        return _take_known(side, limits, keys, texts.pairs)
    if texts is None or texts.shingles is None or texts.rule is None or is_whole(side):
        return join_side(side, limits, keys)
    shingles, (p, q) = texts.shingles, texts.rule

    counts = np.diff(shingles.offsets).astype(np.int32)
    most = int(counts.max(initial=0)) + 1
    whole = Side(shingles, counts, Threshold("resemblance", p, q, is_count=False, size=most, exact=Fraction(p, q)))
    if keys is None and side.threshold.exact is not None and len(shingles.values) <= FAMILY_HELD:
        return join_side(whole, limits, besides=side, tells=True)
    return join_side(side, limits, keys, besides=whole)


def join_side(
    side: Side,
    limits: ComparisonLimits,
    keys: Ragged | None = None,
    besides: Side | None = None,
    *,
    tells: bool = False,
) -> Joined:
    """Find the pairs of one side, as `join_prefixes` does, that are near-duplicates besides."""
    if keys is None:
        order, probes = _probe(side)
    else:
        order = np.argsort(side.totals, kind="stable")
        lengths = np.diff(keys.offsets)[order].astype(np.int32)
        prefixes = take_prefixes(Prefixes(keys.offsets, *number_keys(keys.values)), order, lengths)
        by_total, heavy, totals = take_rows(side.sketches, order), np.zeros(len(order), np.bool_), side.totals[order]
        bounds = side.threshold.needs(totals, totals)
        probes = Probes(by_total, prefixes, totals, bounds, lengths, lengths, heavy, make_bitmaps(*by_total))
    connected = begin_count(len(order), limits.max_edges)
    if keys is None and (besides is None or tells):
        _connect_cliques(connected, order, probes, side, besides)
    matches = join_prefixes(
        probes, post_prefixes(probes), range(len(order)), threshold=side.threshold, connected=connected,
        most=limits.max_comparisons, besides=besides and _besides(besides, order, tells=tells),
    )  # fmt: skip
    return Joined(order, connected, matches)


def _probe(side: Side) -> tuple[NDArray[np.int64], Probes]:
    pruned = prune(side.sketches, side.totals, side.threshold, map)
    return make_probes(pruned, side.sketches, side.totals, side.threshold)


def _besides(side: Side, order: NDArray[np.int64], *, tells: bool) -> Besides:
    totals = side.totals[order]
    bounds, rule = side.threshold.needs(totals, totals), side.threshold.rule
    return Besides(take_rows(side.sketches, order), totals, bounds, rule, tells)


def _connect_cliques(
    connected: ConnectedPairs, order: NDArray[np.int64], probes: Probes, side: Side, besides: Side | None
) -> None:
    """Do `connect_cliques`; with two sides, for what is in a clique by both."""
    connect_cliques(connected, probes, side.threshold.rule)
    if besides is None or not find_any_large(connected):
        return
    others, other_probes = _probe(besides)
    other = begin_count(len(others), connected.max_edges)
    connect_cliques(other, other_probes, besides.threshold.rule)
    roots = np.full((2, len(side.totals)), -1, np.int64)
    roots[0, order], roots[1, others] = find_large(connected), find_large(other)
    connected.above[:], connected.pairs[:] = np.arange(len(order)), 0
    of_order = roots[:, order]
    both = np.flatnonzero((of_order >= 0).all(axis=0))
    _, cliques, counts = np.unique(of_order[:, both], axis=1, return_inverse=True, return_counts=True)
    pairs = counts * (counts - 1) // 2
    for clique in np.flatnonzero(pairs > connected.max_edges).tolist():
        members = both[cliques == clique]
        connected.above[members], connected.pairs[members[0]] = members[0], pairs[clique]


def _take_known(side: Side, limits: ComparisonLimits, keys: Ragged | None, pairs: NDArray[np.int32]) -> Joined:
    """Return those of the known pairs that the sketches find too."""
    if keys is not None:
        pairs = pairs[_share_key(keys, pairs)]
    order, connected = np.arange(len(side.totals)), begin_count(len(side.totals), limits.max_edges)
    first, second, overlap, shared, united = compare_listed(_besides(side, order, tells=True), pairs).T
    count_pairs(connected, first, second)
    links = np.empty((0, 2), np.int32)
    matches = JoinResult(first, second, overlap, shared / np.maximum(united, 1), len(pairs), 0, links)
    return Joined(order, connected, matches)


def _share_key(keys: Ragged, pairs: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return whether both of each pair have a key in common, (p,)."""
    numbers, count = number_keys(keys.values)
    known = np.repeat(np.arange(len(keys.offsets) - 1), np.diff(keys.offsets)) * count + numbers
    lengths = np.diff(keys.offsets)[pairs[:, 0]]
    of_pairs = np.repeat(np.arange(len(pairs)), lengths)
    starts = np.repeat(keys.offsets[pairs[:, 0]] - (np.cumsum(lengths) - lengths), lengths)
    wanted = pairs[of_pairs, 1].astype(np.int64) * count + numbers[starts + np.arange(len(starts))]
    return np.bincount(of_pairs, weights=np.isin(wanted, known), minlength=len(pairs)) > 0
