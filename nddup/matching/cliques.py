"""Large components that show without a comparison of all their sketches: very many that lie near one set of ids.

A symmetric difference is a metric. Of sketches that each differ by at most R ids from one set, any two differ by at
most 2 R: all their pairs are near-duplicates if R is small enough, and so they need not be found to be counted. A
family of near-equal pages is such a clique; to find it takes some comparisons a sketch in place of `pairs.max_edges`.

The set is made of the ids that most of those nearest to one sketch have: sketches differ from it by half of what two of
them differ by. A family that is missed, because it is too loose or divided, is compared as any other.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, number_keys, take_rows
from nddup.ground.kernels import compiled
from nddup.matching.overlap_join import ConnectedPairs, Prefixes, Probes, count_ranks
from nddup.matching.threshold import Rule, common_needed


class _Lists(NamedTuple):
    """The holders of each feature."""

    starts: NDArray[np.int64]
    holders: NDArray[np.int32]


NEAREST = 1_000
"""Sketches of which the usual ids are taken."""

EFFORT = 4
"""Sketches around pivots, for each of all, after which the search ends; what it leaves is compared as ever."""


def connect_cliques(connected: ConnectedPairs, probes: Probes, rule: Rule) -> None:
    """Count the pairs of cliques with more than `max_edges`, and connect their sketches.

    Args:
        connected: n sketches, none of them connected.
        probes: the sketches; any two near-duplicates have a common feature in their prefixes.
        rule: when two sketches are near-duplicates, and what their texts ask of them; not of containment.

    Cost: linear in the features; where a sketch may meet enough others for a clique, 4 bytes a feature, and two
        comparisons for each that such a one meets.
    """
    least = (3 + math.isqrt(1 + 8 * connected.max_edges)) // 2  # k (k - 1) / 2 > max_edges
    prefixes, count = probes.prefixes, len(probes.totals)
    if count < least:
        return
    counts = count_ranks(prefixes)
    met = _count_met(prefixes, counts)
    pivots = np.flatnonzero(met >= least)
    if not len(pivots):
        return
    pivots = pivots[np.argsort(-met[pivots], kind="stable")]
    lists = _list_holders(prefixes, counts)
    is_free, effort = np.ones(count, np.bool_), EFFORT * count
    for pivot in pivots.tolist():
        if effort < 0:
            break
        if not is_free[pivot]:
            continue
        around = np.flatnonzero(_mark_met(prefixes, lists, pivot, is_free))
        effort -= len(around) + count // 64
        if len(around) >= least:
            clique = _find_clique(probes, around, pivot, rule)
            is_free[clique] = False
            if len(clique) >= least:
                connected.above[clique] = clique.min()
                connected.pairs[clique.min()] = len(clique) * (len(clique) - 1) // 2


def _find_clique(probes: Probes, around: NDArray[np.int64], pivot: int, rule: Rule) -> NDArray[np.int64]:
    """Return those of some sketches that lie near the usual ids of those nearest to a pivot: any two are a pair."""
    sketches, bounds = probes.sketches, probes.bounds
    sizes = np.diff(sketches.offsets)
    pivot_row = take_rows(sketches, np.array([pivot]))
    nearest = np.argsort(_differences(sketches, around, pivot_row.values), kind="stable")[:NEAREST]
    apart = _differences(sketches, around, _usual_ids(take_rows(sketches, around[nearest])))
    is_near = apart <= _radius(int(sizes[pivot]), int(bounds[pivot]), rule)
    is_near &= _are_alike(probes.totals[around].astype(np.int64), int(probes.totals[pivot]), rule)
    near, apart = around[is_near], apart[is_near]
    if not len(near):
        return near
    radius = _radius(int(sizes[near].min()), int(bounds[near].max()), rule)
    return near[apart <= min(radius, _radius_of_texts(np.unique(probes.totals[near]).astype(np.int64), rule))]


def _are_alike(totals: NDArray[np.int64], pivot: int, rule: Rule) -> NDArray[np.bool_]:
    """Mark the totals so close to one that any two of them may be those of near-duplicates (`is_too_small`), (n,)."""
    p, q = rule.exact_numerator, rule.exact_denominator
    return (totals**2 * q >= p * pivot**2) & (totals**2 * p <= q * pivot**2)


def _radius(size: int, need: int, rule: Rule) -> int:
    """Return the most ids by which two sketches may each differ from one set to be a pair, whatever the set.

    Two of at least `size` ids that differ by D have an overlap of `size` - D / 2 or more. Of the first u ids of their
    union, u - D or more are common, and u is at least the smaller of `size` and of the ids that are looked at.
    """
    radius = size - need
    if rule.by_slots:
        return min(radius, size - -(-rule.numerator * rule.size // rule.denominator))
    return min(radius, min(size, rule.size) * (rule.denominator - rule.numerator) // (2 * rule.denominator))


@compiled
def _radius_of_texts(totals: NDArray[np.int64], rule: Rule) -> int:
    """Return the most ids by which sketches may differ from one set to have what `common_needed` asks of any two.

    Sketches of a and b ids that differ by at most R have at least (a + b) / 2 - R in common. Without `Threshold.exact`
    nothing is asked.
    """
    radius = totals[-1]
    if rule.exact_numerator == 0:
        return int(radius)
    for a in totals:
        for b in totals:
            size = (min(a, rule.size) + min(b, rule.size)) // 2
            radius = min(radius, size - common_needed(a, b, rule))
    return int(radius)


@compiled
def _list_holders(prefixes: Prefixes, counts: NDArray[np.int32]) -> _Lists:
    starts = np.zeros(len(counts) + 1, np.int64)
    for rank in range(len(counts)):
        starts[rank + 1] = starts[rank] + counts[rank]
    ends, holders = starts[:-1].copy(), np.empty(starts[-1], np.int32)
    for row in range(len(prefixes.offsets) - 1):
        for at in range(prefixes.offsets[row], prefixes.offsets[row + 1]):
            rank = prefixes.ranks[at]
            holders[ends[rank]] = row
            ends[rank] += 1
    return _Lists(starts, holders)


@compiled
def _count_met(prefixes: Prefixes, counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return how many holders the features of each sketch have together: it meets at most so many sketches."""
    met = np.zeros(len(prefixes.offsets) - 1, np.int64)
    for row in range(len(met)):
        for at in range(prefixes.offsets[row], prefixes.offsets[row + 1]):
            met[row] += counts[prefixes.ranks[at]]
    return met


@compiled
def _mark_met(prefixes: Prefixes, lists: _Lists, pivot: int, is_free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the free sketches that have a feature of the pivot's prefix, (n,)."""
    is_met = np.zeros(len(is_free), np.bool_)
    for at in range(prefixes.offsets[pivot], prefixes.offsets[pivot + 1]):
        rank = prefixes.ranks[at]
        for holder in lists.holders[lists.starts[rank] : lists.starts[rank + 1]]:
            is_met[holder] = is_free[holder]
    return is_met


@compiled
def _differences(sketches: Ragged, rows: NDArray[np.int64], ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return how many ids only a sketch has, or only the ascending `ids`, for each of these rows."""
    counts = np.zeros(len(rows), np.int64)
    for k in range(len(rows)):
        a, a_end, b = sketches.offsets[rows[k]], sketches.offsets[rows[k] + 1], 0
        while a < a_end and b < len(ids):
            x, y = sketches.values[a], ids[b]
            counts[k] += x != y
            a += x <= y
            b += y <= x
        counts[k] += a_end - a + len(ids) - b
    return counts


def _usual_ids(rows: Ragged) -> NDArray[np.uint64]:
    """Return the ids that more than half of the rows have, ascending."""
    numbers, count = number_keys(rows.values)
    ids = np.empty(count, np.uint64)
    ids[numbers] = rows.values
    return np.sort(ids[2 * np.bincount(numbers) > len(rows.offsets) - 1])
