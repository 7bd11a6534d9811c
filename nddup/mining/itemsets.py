"""Maximal frequent itemsets of documents: the clusters of one component of the pair graph.

    mine_component   sketches, bounds, pairs  -> all maximal sets; past a budget a cover; past ten times that, none
    mine_share       the same, and pivots     -> the maximal sets with these first members, for one task of several
    cover_component  sketches, bounds, pairs  -> some maximal sets that hold every pair
    keep_maximal     all frequent sets        -> whether each is a cluster, where FP-Growth has listed them
    fits_budget      nodes, budget            -> whether no component of this size can pass its budget

Shingles are transactions, documents are items: a cluster is an *intent* (a set of documents) with a large *extent* (the
shingle ids common to all; Ignatov, Kuznetsov 2009), valid and maximal as `maximal_sets` defines it. Every two documents
of a cluster are a pair, so nothing outside the component can be added to it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import number_keys
from nddup.ground.kernels import Written, compiled
from nddup.mining.maximal_sets import (
    ROWS,
    SETS,
    WORK,
    FoundSets,
    SearchLimits,
    add_found,
    empty_found,
    is_past,
    mine_pivots,
)
from nddup.mining.neighbourhoods import (
    Bits,
    Component,
    Lookup,
    Neighbourhood,
    add_slot,
    begin_near,
    copy_bits,
    count_all,
    count_common,
    count_visit,
    end_near,
    fill_near,
    find_later,
    has_slot,
    keep_common,
    keep_outside,
    list_slots,
    look_around,
    make_component,
    make_lookup,
    write_row,
)


class Cover(NamedTuple):
    """The state of a cover while it is built."""

    component: Component
    lookup: Lookup
    uncovered: Bits  # the words of the pair graph with the pairs that no set holds yet
    min_support: int
    limits: SearchLimits


class GrowingSet(NamedTuple):
    """A set while it is extended, as bitmaps of one neighbourhood."""

    members: Bits  # without the pivot
    allowed: Bits  # near-duplicates of all members
    joint: Bits  # features common to all members
    has_near: Written[np.bool_]  # shape (slots,), whether the neighbourhood's `near` is filled


NO_LIMIT = 2**62

COVER_SHARE = 10
"""The cover of a component may take this many times the component's budget."""


@compiled
def near_of(cover: Cover, neighbourhood: Neighbourhood, slot: int, growing: GrowingSet) -> Bits:
    """Return the near-duplicates of a neighbour: few are ever asked for, so they are looked up then."""
    if not growing.has_near[slot]:
        fill_near(cover.component, neighbourhood, slot, cover.lookup)
        growing.has_near[slot] = True
    row: Bits = neighbourhood.near[slot]
    return row


@compiled
def extend(
    cover: Cover, neighbourhood: Neighbourhood, order: Bits, tau: int, growing: GrowingSet, slots: Written[np.int64]
) -> int:
    """
    Add to a set every slot of `order`, ascending, that leaves it valid; `slots` is scratch.

    Returns:
        tau of the set.
    """
    members, allowed, joint = growing.members, growing.allowed, growing.joint
    for i in range(list_slots(order, slots)):
        slot = slots[i]
        if not has_slot(allowed, slot):
            continue

        needed = max(tau, neighbourhood.bounds[slot])
        if count_common(joint, neighbourhood.shared[slot]) >= needed:
            tau = needed
            add_slot(members, slot)
            keep_common(allowed, near_of(cover, neighbourhood, slot, growing))
            keep_common(joint, neighbourhood.shared[slot])
    return tau


@compiled
def begin(cover: Cover, neighbourhood: Neighbourhood, growing: GrowingSet, second: int) -> None:
    """Begin a set with the pivot and the neighbour `second`."""
    keep_outside(growing.members, growing.members)
    add_slot(growing.members, second)
    copy_bits(growing.allowed, near_of(cover, neighbourhood, second, growing))
    copy_bits(growing.joint, neighbourhood.shared[second])


@compiled
def cover_seed(cover: Cover, neighbourhood: Neighbourhood, later: Written[np.uint64], sets: FoundSets) -> FoundSets:
    """Add sets until each pair of the pivot with a document of `later`, a part of its row of the graph, is in one."""
    component, n_words = cover.component, neighbourhood.neighbours.size
    first = component.word_offsets[neighbourhood.pivot]
    pivot_bound = max(cover.min_support, component.bounds[neighbourhood.pivot])

    slots, seconds = np.empty(n_words << 6, np.int64), np.empty(n_words << 6, np.int64)
    growing = GrowingSet(
        np.zeros(n_words, np.uint64),
        np.empty(n_words, np.uint64),
        np.empty(neighbourhood.pivot_features.size, np.uint64),
        np.zeros(n_words << 6, np.bool_),
    )
    open_pairs = np.empty(n_words, np.uint64)
    write_row(neighbourhood, later, open_pairs)

    for i in range(list_slots(open_pairs, seconds)):
        second = seconds[i]
        tau = max(pivot_bound, neighbourhood.bounds[second])
        if not has_slot(open_pairs, second) or count_all(neighbourhood.shared[second]) < tau:
            continue

        begin(cover, neighbourhood, growing, second)
        tau = extend(cover, neighbourhood, open_pairs, tau, growing, slots)
        extend(cover, neighbourhood, neighbourhood.neighbours, tau, growing, slots)
        sets = add_found(sets, neighbourhood, growing.members, count_all(growing.joint), slots)
        sets.counts[WORK] += n_words + ((count_all(growing.members) * neighbourhood.row.size) >> 9)
        if is_past(sets.counts, cover.limits):
            break

        mark_covered(component, sets, cover.uncovered)
        keep_common(later, cover.uncovered[first : first + later.size])
        write_row(neighbourhood, later, open_pairs)
    return sets


@compiled
def mark_covered(component: Component, sets: FoundSets, uncovered: Written[np.uint64]) -> None:
    """Clear all pairs inside the set found last from `uncovered`."""
    last = sets.counts[SETS] - 1
    start = sets.ends[last - 1] if last > 0 else 0
    inside = np.zeros((component.bounds.size + 63) >> 6, np.uint64)
    for i in range(start, sets.ends[last]):
        add_slot(inside, int(sets.members[i]))

    for i in range(start, sets.ends[last]):
        document = sets.members[i]
        for j in range(component.word_offsets[document], component.word_offsets[document + 1]):
            uncovered[j] &= ~inside[component.words[j]]


@compiled
def cover_pairs(component: Component, pivots: NDArray[np.int64], min_support: int, limits: SearchLimits) -> FoundSets:
    """
    Cover every pair of a component whose first document is one of `pivots` and whose common features reach its tau.

    Seeds d are taken in canonical order, and for each seed the pairs (d, e) that no set holds yet, e ascending. A set
    starts as {d, e} and takes every document it can: first the neighbours of d whose pair with d is not covered yet,
    then all others, including earlier ones, each list in canonical order. Adding documents can only break the two
    conditions of a valid set, so after one pass over each list nothing can be added: the set is maximal. Each set holds
    a pair that no set before it held, so no two are equal; as all are maximal, none lies inside another.

    The order of extension decides the size of the cover: 21,991 sets become 619 for a family of 500 documents whose 100
    features are each kept with probability 0.97 (pairs at 50 common features).

    Args:
        pivots: shape (p,), ascending; all documents for a cover of the whole component.
        min_support: least joint support, 0 for none.
        limits: of sets, member rows and work. The search stops when it passes one: the counts show it, and the sets
            are then not a cover.

    Returns:
        The sets, by seed; empty without pairs. Cost: the bitmaps of every neighbourhood, and for each set one
        pass over the neighbours of its seed and the rows of its members.
    """
    lookup = make_lookup(component)
    cover = Cover(component, lookup, component.word_bits.copy(), min_support, limits)
    sets = empty_found()
    for pivot in pivots:
        later = find_later(component, pivot)
        first = component.word_offsets[pivot]
        keep_common(later, cover.uncovered[first : first + later.size])
        if count_all(later) == 0:
            continue

        # The work is counted before it is done: one neighbourhood may cost more than all earlier ones together.
        sets.counts[WORK] += count_visit(component, pivot)
        if is_past(sets.counts, limits):
            break

        neighbourhood = look_around(component, pivot, lookup)
        begin_near(component, neighbourhood, lookup)
        sets = cover_seed(cover, neighbourhood, later, sets)
        end_near(component, neighbourhood, lookup)
        if is_past(sets.counts, limits):
            break
    return sets


@dataclass(frozen=True)
class Itemsets:
    """Sets of documents as rows of one ragged array.

    Attributes:
        offsets: shape (k+1,), int64; set i is `members[offsets[i]:offsets[i + 1]]`.
        members: int32, indices within the component, ascending in each set; sets ascend lexicographically.
        supports: shape (k,), int32, the features common to all members of each set.
        coverage: `all` (every maximal set), `pairs` (maximal sets that hold every pair), or `documents`: no sets,
            because even a cover would pass ten times the budget. `leaders` then makes the clusters, of the same
            coverage.
    """

    offsets: NDArray[np.int64]
    members: NDArray[np.int32]
    supports: NDArray[np.int32]
    coverage: str


def mine_component(
    feature_offsets: NDArray[np.int64],
    features: NDArray[np.int64],
    bounds: NDArray[np.int32],
    edges: NDArray[np.int32],
    *,
    max_sets: int,
    max_members: int,
    min_support: int = 0,
    max_nodes: int | None = None,
) -> Itemsets:
    """
    Find the maximal sets of a component, or cover its pairs with some of them.

    Args:
        feature_offsets: shape (m+1,); sketch i is `features[feature_offsets[i]:feature_offsets[i + 1]]`.
        features: the feature ids of all sketches, distinct within each. Sketches come in canonical order.
        bounds: shape (m,), alpha of each sketch.
        edges: shape (e, 2), every near-duplicate pair once, the lower index first.
        max_sets: budget of sets; 4 more are allowed for each sketch of the component.
        max_members: budget of member rows; 400 more are allowed for each sketch.
        min_support: least number of features common to a set; 0 leaves it to the bounds.
        max_nodes: budget of work: the nodes of the search, each counted once for every 64 documents that its
            neighbourhood spans, and one for every 512 features and words read to build a neighbourhood. None is
            2,000,000 and 100 for each sketch: some seconds.

    Returns:
        All maximal sets of at least two documents; past any budget the cover of `cover_component`, within ten times
        each budget; past that, no sets and the coverage `documents`. A pair that does not reach `min_support` is in
        no set. Without edges, no sets and the coverage `all`. The same input gives the same sets.

    Raises:
        ValueError: if lengths do not fit each other, or a pair is not two indices, the lower first.

    Cost:
        For every pair the sketches and the rows of the pair graph of both ends, then about 4 us a set for
        families of 50 documents, 14-30 us for 500. Memory: `neighbourhoods.bound_memory`, and the sets.

    Example:
        Three sketches; 0 and 2 have only one feature in common, and both need two.

        >>> features = np.array([1, 2, 3, 1, 2, 3, 4, 5, 3, 4, 5])
        >>> offsets, bounds = np.array([0, 3, 8, 11]), np.array([2, 2, 2])
        >>> pairs = np.array([[0, 1], [1, 2]])
        >>> sets = mine_component(offsets, features, bounds, pairs, max_sets=1000, max_members=100_000)
        >>> [row.tolist() for row in np.split(sets.members, sets.offsets[1:-1])], sets.supports.tolist()
        ([[0, 1], [1, 2]], [3, 3])
        >>> sets.coverage
        'all'
    """
    component = gather_component(feature_offsets, features, bounds, edges)
    m = bounds.size
    limits = SearchLimits(
        max_sets + 4 * m,
        max_members + 400 * m,
        2_000_000 + 100 * m if max_nodes is None else max_nodes,
    )

    sets = mine_pivots(component, np.arange(m), min_support, limits)
    if not is_past(sets.counts, limits):
        return sort_canonically(sets, "all")

    limits = SearchLimits(COVER_SHARE * limits.sets, COVER_SHARE * limits.rows, COVER_SHARE * limits.work)
    sets = cover_pairs(component, np.arange(m), min_support, limits)
    if not is_past(sets.counts, limits):
        return sort_canonically(sets, "pairs")

    return Itemsets(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int32), "documents")


def mine_share(
    feature_offsets: NDArray[np.int64],
    features: NDArray[np.int64],
    bounds: NDArray[np.int32],
    edges: NDArray[np.int32],
    pivots: NDArray[np.int64],
    *,
    min_support: int = 0,
    max_sets: int = NO_LIMIT,
    max_members: int = NO_LIMIT,
    max_nodes: int = NO_LIMIT,
) -> Itemsets | None:
    """
    Find the maximal sets of a component whose first member is one of `pivots`.

    Every maximal set has one first member, so the shares of any partition of 0 ... m-1 together give all maximal sets,
    each once. Early pivots have more neighbours after them: `np.arange(i, m, n)` makes n shares of about equal work.

    Args:
        feature_offsets: as in `mine_component`, like the next three.
        features: as above.
        bounds: as above.
        edges: as above, of the whole component: earlier neighbours decide what is maximal.
        pivots: the indices of the share, in any order.
        min_support: as above.
        max_sets: exact budget of the share; like the next two.
        max_members: as above.
        max_nodes: as above.

    Returns:
        The sets, of coverage `all`; None where the share passed a budget. The caller then covers the whole component
        in one task.

    Raises:
        ValueError: as in `mine_component`.
    """
    component = gather_component(feature_offsets, features, bounds, edges)
    limits = SearchLimits(max_sets, max_members, max_nodes)
    sets = mine_pivots(component, np.unique(pivots).astype(np.int64), min_support, limits)
    return None if is_past(sets.counts, limits) else sort_canonically(sets, "all")


def cover_component(
    feature_offsets: NDArray[np.int64],
    features: NDArray[np.int64],
    bounds: NDArray[np.int32],
    edges: NDArray[np.int32],
    *,
    pivots: NDArray[np.int64] | None = None,
    min_support: int = 0,
    max_sets: int = NO_LIMIT,
    max_members: int = NO_LIMIT,
    max_nodes: int = NO_LIMIT,
) -> Itemsets | None:
    """
    Cover the pairs of a component with maximal sets, built one at a time as `cover_pairs` describes.

    Args:
        feature_offsets: as in `mine_component`, like the next three.
        features: as above.
        bounds: as above.
        edges: as above.
        pivots: cover only the pairs whose first document is one of these; None for all pairs. The covers of the parts
            of any partition of 0 ... m-1 together cover the component, but may repeat a set.
        min_support: as in `mine_component`; pairs that do not reach it are not covered.
        max_sets: exact limit of the sets.
        max_members: exact limit of the member rows.
        max_nodes: exact limit of the work, counted as in `mine_component`.

    Returns:
        The cover, of coverage `pairs`; None where it would pass a limit. Without edges, no sets.

    Raises:
        ValueError: as in `mine_component`.
    """
    component = gather_component(feature_offsets, features, bounds, edges)
    limits = SearchLimits(max_sets, max_members, max_nodes)
    seeds = np.arange(bounds.size) if pivots is None else np.unique(pivots).astype(np.int64)
    sets = cover_pairs(component, seeds, min_support, limits)
    return None if is_past(sets.counts, limits) else sort_canonically(sets, "pairs")


def gather_component(
    feature_offsets: NDArray[np.int64],
    features: NDArray[np.int64],
    bounds: NDArray[np.int32],
    edges: NDArray[np.int32],
) -> Component:
    """Check the arrays of a component, number its features 0 ... f-1 and pack its graph."""
    m = bounds.size
    if feature_offsets.size != m + 1 or feature_offsets[-1] != features.size:
        raise ValueError(
            f"{m} bounds need {m + 1} offsets, the last of them {features.size}, "
            f"got {feature_offsets.size} ending in {feature_offsets[-1:].tolist()}"
        )

    pairs = edges.reshape(-1, 2)
    if pairs.size and not (pairs[:, 0].min() >= 0 and (pairs[:, 0] < pairs[:, 1]).all() and pairs[:, 1].max() < m):
        raise ValueError(f"a pair is two indices from 0 to {m - 1}, the lower first")

    numbers, n_features = number_keys(np.ascontiguousarray(features).view(np.uint64))
    return make_component(feature_offsets, numbers, n_features, bounds, pairs)


def sort_canonically(sets: FoundSets, coverage: str) -> Itemsets:
    """Order sets lexicographically by their members."""
    n_sets, n_rows = int(sets.counts[SETS]), int(sets.counts[ROWS])
    ends, members = sets.ends[:n_sets], sets.members[:n_rows]
    starts = np.concatenate((np.zeros(1, np.int64), ends))[:-1]

    # Big-endian numbers compare as bytes the way they compare as numbers.
    text = members.astype(">i4").tobytes()
    keys = [text[4 * start : 4 * end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    order = np.array(sorted(range(n_sets), key=keys.__getitem__), dtype=np.int64)

    sizes = (ends - starts)[order]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    rows = np.repeat(starts[order] - offsets[:-1], sizes) + np.arange(n_rows)
    return Itemsets(offsets, members[rows], sets.supports[:n_sets][order], coverage)


def keep_maximal(
    masks: NDArray[np.int64],
    supports: NDArray[np.int32],
    bounds: NDArray[np.int32],
    neighbours: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return whether each listed set is a cluster.

    FP-Growth lists every set of documents that share enough features. A cluster needs more: its joint support reaches
    the bound of each member, and every pair of members is a near-duplicate. Adding documents can only break these
    conditions, so the sets that meet them are closed under subsets, and one of them is maximal iff none of them has
    just one document more. Taking maximal sets first and testing the conditions afterwards would lose clusters.

    Args:
        masks: (k,), int64, each set of a component of m documents as bits; all frequent sets of at least two.
        supports: (k,), int32, number of features common to each set.
        bounds: (m,), int32, alpha_d.
        neighbours: (m,), int64, the near-duplicates of each document as bits.

    Returns:
        (k,), bool. Cost: O(k m), and 2^m bytes.

    Example:
        >>> masks, all_near = np.array([0b011, 0b101, 0b110, 0b111]), np.array([0b110, 0b101, 0b011])
        >>> keep_maximal(masks, np.array([5, 5, 5, 4]), np.array([5, 5, 5]), all_near).tolist()
        [True, True, True, False]

    Source: Han, Pei, Yin 2000, Mining frequent patterns without candidate generation (FP-Growth).
    """
    is_valid = np.ones(len(masks), np.bool_)
    for member, bound in enumerate(bounds):
        bit = np.int64(1) << member
        without = (masks & bit) == 0
        is_valid &= without | ((supports >= bound) & ((masks & ~bit & ~neighbours[member]) == 0))

    # A valid set is maximal iff adding any one member makes no valid set.
    listed = np.zeros(1 << len(bounds), np.bool_)
    listed[masks[is_valid]] = True
    is_maximal = is_valid.copy()
    for member in range(len(bounds)):
        bit = np.int64(1) << member
        is_maximal &= ((masks & bit) != 0) | ~listed[masks | bit]
    return is_maximal


def fits_budget(nodes: int, *, max_sets: int, max_members: int) -> bool:
    """Return whether a component of `nodes` documents cannot pass its budget, whatever its sets are.

    An antichain of m documents has at most C(m, m/2) sets (Sperner 1928), each of at most m members.
    """
    sets = math.comb(nodes, nodes // 2)
    return sets <= max_sets + 4 * nodes and sets * nodes <= max_members + 400 * nodes
