"""Every pair of near-duplicate sketches, each made once: at the first feature that two prefixes have in common.

    post_prefixes   Probes, ordered by size   -> Postings, a list of holders for each feature
    join_prefixes   Probes, Postings, rows    -> JoinResult: the near-duplicate pairs of some sketches
    link_heavy      Probes                    -> links between heavy sketches, which are not compared
    find_too_long   holders, lookers          -> the longest list that would cost too much
    begin_count, count_pair, find_large       -> ConnectedPairs: the pairs of each component, counted while found

Each sketch looks up its prefix features in the posting lists of the smaller sketches; two that meet are a candidate
pair, and the original sketches are compared. So most pairs are never compared. `element_join` is the same search in the
tasks of Spark, where no task holds all postings.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER, Ragged
from nddup.ground.kernels import Written, compiled
from nddup.matching.bitmaps import NOTHING_PACKED, Bitmaps, Packed, count_packed, most_common
from nddup.matching.threshold import (
    Rule,
    Threshold,
    common_needed,
    compare_by_overlap,
    compare_sketches,
    is_too_small,
)

NO_LIMIT = np.iinfo(np.int64).max
"""`max_edges` for no limit: more pairs than any component has."""

CHUNK = 64
"""Candidates that are listed before they are compared: a sketch may join a large component meanwhile."""


def partition_of(ids: NDArray[np.uint64], partitions: int) -> NDArray[np.int32]:
    """Return the partition, in [0, partitions), that owns each id; (n,) uint64 to (n,) int32.

    A sketch keeps small ids, so each id is multiplied first to spread its bits.
    """
    return ((ids * HASH_MULTIPLIER >> np.uint64(33)) % np.uint64(partitions)).astype(np.int32)


class LongLists(NamedTuple):
    """`pairs.max_postings` and `pairs.max_comparisons`.

    Where there are leaders, the holders of a longer list are linked instead of compared (`nddup.mining.family_pairs`);
    without leaders every list is compared in full, or nothing is.
    """

    max_postings: int
    """Number of holders of a feature that are always compared."""

    max_comparisons: int
    """Comparisons allowed with the holders beyond `max_postings`."""


def find_too_long(holders: NDArray[np.int64], lookers: NDArray[np.int64], long_lists: LongLists) -> int:
    """Return the most holders of any feature that would cost more comparisons than allowed.

    Args:
        holders: number of sketches that can be met at each of f features, (f,).
        lookers: number of sketches that look for them, the holders included, (f,).
        long_lists: the limits.

    Returns:
        0 if no feature would cost more.

    Example:
        >>> find_too_long(np.array([5, 4]), np.array([9, 900]), LongLists(4, 8))
        5
    """
    beyond = np.maximum(holders - long_lists.max_postings, 0) * lookers
    return int(holders[beyond > long_lists.max_comparisons].max(initial=0))


class ComparisonLimits(NamedTuple):
    """`pairs.max_edges` and `pairs.max_comparisons`."""

    max_edges: int
    """Pairs of distinct sketches in a component above which only the pairs of its leaders are listed."""

    max_comparisons: int
    """Comparisons of sketches that the search of a family may take."""


class ConnectedPairs(NamedTuple):
    """The components of n sketches, and the pairs found in each.

    A union-find counts the pairs of each connected component while they are found: in a component with more than
    `max_edges` pairs, two sketches need not be compared, for they are known to be connected, and further pairs do not
    matter. It stays large whatever joins it. A sketch of it passes over a run of others at once. A thread begins with
    what others have counted: each pair is made by one of them.

    Source: Tarjan, van Leeuwen 1984, Worst-case analysis of set union algorithms (path halving).
    """

    above: Written[np.int32]
    """(n,), for each sketch a sketch of its component with a smaller number, or itself if it is the root."""

    pairs: Written[np.int64]
    """(n,), at each root the number of pairs found in its component."""

    max_edges: int


@compiled
def find_root(above: Written[np.int32], sketch: int) -> int:
    """Return the root of a sketch's component: its first sketch."""
    while above[sketch] != sketch:
        above[sketch] = above[above[sketch]]  # path halving
        sketch = above[sketch]
    return sketch


@compiled
def begin_count(count: int, max_edges: int) -> ConnectedPairs:
    """Make the components of `count` sketches, none of them connected."""
    return ConnectedPairs(np.arange(count).astype(np.int32), np.zeros(count, np.int64), max_edges)


@compiled
def count_pair(connected: ConnectedPairs, a: int, b: int) -> bool:
    """Count a pair and connect its ends; return whether their component is now large."""
    a, b = find_root(connected.above, a), find_root(connected.above, b)
    root = min(a, b)
    if a != b:
        connected.pairs[root] += connected.pairs[max(a, b)]
        connected.above[max(a, b)] = root
    connected.pairs[root] += 1
    return bool(connected.pairs[root] > connected.max_edges)


@compiled
def share_large(connected: ConnectedPairs, a: int, b: int) -> bool:
    """Return whether both sketches are in one large component."""
    root = find_root(connected.above, a)
    return bool(connected.pairs[root] > connected.max_edges and root == find_root(connected.above, b))


@compiled
def copy_count(connected: ConnectedPairs) -> ConnectedPairs:
    """Return a copy that counts on by itself."""
    return ConnectedPairs(connected.above.copy(), connected.pairs.copy(), connected.max_edges)


@compiled
def count_pairs(connected: ConnectedPairs, first: NDArray[np.int32], second: NDArray[np.int32]) -> None:
    """Count pairs, (k,)."""
    for row in range(len(first)):
        count_pair(connected, first[row], second[row])


@compiled
def find_any_large(connected: ConnectedPairs) -> bool:
    """Return whether any component is large."""
    for pairs in connected.pairs:  # noqa: SIM110 - for the compiler
        if pairs > connected.max_edges:
            return True
    return False


@compiled
def find_large(connected: ConnectedPairs) -> NDArray[np.int32]:
    """Return the root of each sketch of a large component, (n,); -1 for all others."""
    roots = np.full(len(connected.above), -1, np.int32)
    for sketch in range(len(roots)):
        root = find_root(connected.above, sketch)
        if connected.pairs[root] > connected.max_edges:
            roots[sketch] = root
    return roots


class Prefixes(NamedTuple):
    """The features by which n sketches meet: the first ones of each in one total order, rarest first; or keys."""

    offsets: NDArray[np.int64]
    """(n + 1,), where the features of each begin; p features in all."""

    ranks: NDArray[np.int32]
    """(p,), the place of each in the total order, ascending in a prefix; of keys, their numbers."""

    n_ranks: int
    """The number of distinct features."""


@compiled
def take_prefixes(prefixes: Prefixes, order: NDArray[np.int64], lengths: NDArray[np.int32]) -> Prefixes:
    """Return the first `lengths` features of each of some sketches, in this order."""
    ends = np.zeros(len(order) + 1, np.int64)
    for i in range(len(order)):
        ends[i + 1] = ends[i] + lengths[i]
    ranks = np.empty(ends[-1], np.int32)
    for i in range(len(order)):
        for k in range(lengths[i]):
            ranks[ends[i] + k] = prefixes.ranks[prefixes.offsets[order[i]] + k]
    return Prefixes(ends, ranks, prefixes.n_ranks)


@compiled
def count_ranks(prefixes: Prefixes) -> NDArray[np.int32]:
    """Count the sketches that have each feature in their prefix, (n_ranks,)."""
    counts = np.zeros(prefixes.n_ranks, np.int32)
    for rank in prefixes.ranks:
        counts[rank] += 1
    return counts


class Probes(NamedTuple):
    """The m sketches to join, ordered by (total, name)."""

    sketches: Ragged
    """The original sketches, uint64 ascending."""

    prefixes: Prefixes
    """The prefix of each; for a containment all its features."""

    totals: NDArray[np.int32]
    """What bounds the overlap of each, (m,), not falling (`Threshold.totals`)."""

    bounds: NDArray[np.int32]
    """The least overlap of each with a candidate before it, (m,) (`Threshold.needs`)."""

    probed: NDArray[np.int32]
    """How many leading features of each prefix are looked up among those before it, (m,)."""

    posted: NDArray[np.int32]
    """How many are posted for those after it to look up, (m,)."""

    heavy: NDArray[np.bool_]
    """Whether each sketch is heavy, (m,): a feature of its prefix has too many holders, so heavy sketches are linked
    instead of compared with each other. All holders of such a feature must be heavy."""

    bitmaps: Bitmaps
    """Of the features that each may have in common with another: all ids, or what pruning left of them, (m,)."""

    packed: Packed = NOTHING_PACKED
    """These features themselves, where very many sketches meet; else nothing."""


class Besides(NamedTuple):
    """Other sketches of the same m documents, which must be near-duplicates too: all shingles, where these decide."""

    sketches: Ragged
    """uint64 ascending."""

    totals: NDArray[np.int32]
    """What bounds the overlap of each, (m,)."""

    bounds: NDArray[np.int32]
    """The least overlap of each with a near-duplicate, (m,); (0,) where nothing else must be near."""

    rule: Rule

    tells: bool
    """Whether the overlap and the resemblance of a pair are those of these sketches."""


class Postings(NamedTuple):
    """Posting lists: of each feature one of its light holders, and if any sketch is heavy one of its heavy holders."""

    lists: int
    """The number of lists of each feature, 1 or 2; those of feature r begin with list `lists` r."""

    starts: NDArray[np.int64]
    """Where each list begins, and the end of the last."""

    holders: NDArray[np.int32]
    """(e,), the sketches that post each feature, ascending."""

    meetings: NDArray[np.int64]
    """(m,), the entries before each sketch in the lists at which it looks; a heavy one looks at light ones only."""


class JoinResult(NamedTuple):
    """The k near-duplicate pairs that one task or thread found, and what finding them cost."""

    first: NDArray[np.int32]
    """Position of the smaller sketch of each pair, (k,)."""

    second: NDArray[np.int32]
    """Position of the larger one, (k,)."""

    overlap: NDArray[np.int32]
    """Features in common, (k,)."""

    resemblance: NDArray[np.float64]
    """Estimated resemblance, (k,)."""

    candidates: int
    """Number of candidate pairs, without those within one component that was found to be large before."""

    stopped: int
    """The most holders of any feature that would cost more than `LongLists` allow, and then no pairs; else 0."""

    links: NDArray[np.int32]
    """Pairs of heavy sketches that hold a common prefix feature, (l, 2)."""


def find_nothing(stopped: int) -> JoinResult:
    """Return no pairs, because a feature with `stopped` holders would cost too much."""
    none = np.empty(0, np.int32)
    return JoinResult(none, none, none, np.empty(0), 0, stopped, none.reshape(0, 2))


@compiled
def post_prefixes(probes: Probes) -> Postings:
    """Post the first `posted` features of each sketch.

    Cost: two passes over the prefixes; 12 bytes a feature, twice that if a sketch is heavy, 4 a posting, 8 a sketch.
    """
    (offsets, ranks, count), heavy, lists = probes.prefixes, probes.heavy, 1
    for i in range(len(heavy)):
        lists = max(lists, 1 + heavy[i])
    starts = np.zeros(lists * count + 1, np.int64)
    for i in range(len(heavy)):
        for at in range(offsets[i], min(offsets[i] + probes.posted[i], offsets[i + 1])):
            starts[lists * ranks[at] + heavy[i] + 1] += 1
    for slot in range(lists * count):
        starts[slot + 1] += starts[slot]

    filled, holders = np.zeros(lists * count, np.int32), np.empty(starts[-1], np.int32)
    meetings = np.zeros(len(heavy), np.int64)
    for i in range(len(heavy)):
        for at in range(offsets[i], offsets[i + 1]):
            first = lists * ranks[at]
            if at - offsets[i] < probes.probed[i]:
                for slot in range(first, first + lists - heavy[i]):
                    meetings[i] += filled[slot]
            if at - offsets[i] < probes.posted[i]:
                slot = first + heavy[i]
                holders[starts[slot] + filled[slot]] = i
                filled[slot] += 1
    return Postings(lists, starts, holders, meetings)


@compiled
def longest_list(probes: Probes, postings: Postings, long_lists: LongLists) -> int:
    """Return the most light holders of any feature that would cost more than `long_lists` allow, 0 if none would."""
    lookers, longest = count_ranks(probes.prefixes), 0
    for rank in range(len(lookers)):
        first = postings.lists * rank
        holders = postings.starts[first + 1] - postings.starts[first]
        if max(holders - long_lists.max_postings, 0) * lookers[rank] > long_lists.max_comparisons:
            longest = max(longest, holders)
    return longest


def join_prefixes(
    probes: Probes,
    postings: Postings,
    rows: range,
    *,
    threshold: Threshold,
    connected: ConnectedPairs | None = None,
    most: int = NO_LIMIT,
    besides: Besides | None = None,
) -> JoinResult:
    """Find the near-duplicate pairs of some sketches with those before them.

    Why it is exact. alpha_d comes from the ORIGINAL size, so dropping a feature that only one sketch holds loses no
    common feature, and a sketch with fewer than alpha_d features left is in no pair. Under one total order, two
    sketches with overlap >= max(alpha) share a feature that lies in both prefixes of (features left) - alpha + 1
    features.

    Args:
        probes: the sketches.
        postings: of `post_prefixes`.
        rows: consecutive sketches.
        threshold: when two sketches are near-duplicates.
        connected: the components of the pairs that some other calls have found, to which this one adds its own; None:
            none. A component with at most `max_edges` pairs has all its pairs; any other has more, enough to connect
            it.
        most: candidates after which the search ends; what it returns is then not all.
        besides: other sketches of the same documents: only pairs by both are found, and counted.

    Returns:
        Pairs, first < second, each once. They connect all sketches that were found to be connected.

    Cost: `Postings.meetings` of the rows, within the size bound; each candidate one merge of sketches that stops as
        soon as the bound is out of reach. 4 bytes a sketch, and 4 a posting once a component is large.

    Sources:
        Chaudhuri, Ganti, Kaushik 2006, A primitive operator for similarity joins in data cleaning (the prefix filter).
        Xiao, Wang, Lin, Yu 2008, Efficient similarity joins for near duplicate detection (order by size, size filter).
    """
    connected = begin_count(len(probes.bounds), NO_LIMIT) if connected is None else connected
    if besides is None:
        none = np.empty(0, np.int32)
        nothing = Ragged(np.zeros(1, np.int64), np.empty(0, np.uint64))
        besides = Besides(nothing, none, none, threshold.rule, tells=False)
    pairs, candidates = _join(probes, postings, rows.start, rows.stop, threshold.rule, connected, most, besides)
    first, second, overlap, shared, united = pairs.T
    return JoinResult(first, second, overlap, shared / np.maximum(united, 1), candidates, 0, np.empty((0, 2), np.int32))


@compiled
def link_heavy(probes: Probes) -> NDArray[np.int32]:
    """Link each heavy sketch with the one before it in the list of each feature, (l, 2).

    Such links connect any two heavy sketches with a common prefix feature.
    """
    offsets, ranks, count = probes.prefixes
    most = 0
    for i in range(len(probes.heavy)):
        most += (offsets[i + 1] - offsets[i]) * probes.heavy[i]
    links, n_links = np.empty((most, 2), np.int32), 0

    last = np.full(count if most else 0, -1, np.int32)  # by feature, the last heavy sketch that held it
    for i in range(len(probes.heavy)):
        for at in range(offsets[i], offsets[i + 1] if probes.heavy[i] else offsets[i]):
            before = last[ranks[at]]
            # Two sketches often share many features in succession: one link is enough.
            if before >= 0 and (n_links == 0 or links[n_links - 1, 0] != before or links[n_links - 1, 1] != i):
                links[n_links, 0], links[n_links, 1] = before, i
                n_links += 1
            last[ranks[at]] = i
    return links[:n_links].copy()


class _Room(NamedTuple):
    """Working arrays of the search."""

    met: Written[np.int32]  # (m,), the last sketch that met each one
    runs: Written[np.int32]  # (e,), from an entry on, how many are known to be of one large component
    candidates: Written[np.int32]  # (CHUNK,)


@compiled
def _join(  # noqa: C901, PLR0912 - a call for each candidate would hand over all arrays, which takes 100 ns
    probes: Probes,
    postings: Postings,
    start: int,
    stop: int,
    rule: Rule,
    connected: ConnectedPairs,
    most: int,
    besides: Besides,
) -> tuple[NDArray[np.int32], int]:
    """Return rows (first, second, overlap, shared, united), and the number of candidates: soon after there are more
    than `most`, the search ends.
    """
    (offsets, ranks, _), (lists, starts, holders, _) = probes.prefixes, postings
    room = _Room(np.full(len(probes.totals), -1, np.int32), np.zeros(len(holders), np.int32), np.empty(CHUNK, np.int32))
    pairs, count, n_candidates, least = np.empty((1024, 5), np.int32), 0, 0, 0
    has_large = find_any_large(connected)
    totals, bounds, is_packed = probes.totals, probes.bounds, len(probes.packed.words) > 0
    # Where a packed sketch would meet more than there are, it is compared with all before it. Keys are not packed.
    everyone = np.arange(len(totals) if is_packed and lists == 1 else 0).astype(np.int32)

    for i in range(start, stop):
        if n_candidates > most:
            break
        # A sketch may contain any smaller one; otherwise both need at least the features they must share.
        while not rule.is_containment and least < i and _differ(probes, least, i, rule):
            least += 1
        looked_at = lists - probes.heavy[i]  # heavy ones are not compared with each other
        first, last = looked_at * offsets[i], looked_at * (offsets[i] + probes.probed[i])
        is_dense = len(everyone) > 0 and not has_large and postings.meetings[i] > i - least
        for k in range(first, min(first + 1, last) if is_dense else last):
            slot = lists * ranks[k // looked_at] + k % looked_at
            listed, entry, end = holders, _first_from(holders, starts[slot], starts[slot + 1], least), starts[slot + 1]
            if is_dense:
                listed, entry, end = everyone, least, i
            while entry < end and listed[entry] < i:
                entry, n_met = _list_candidates(listed, entry, end, i, room, connected, has_large and not is_dense)
                n_candidates += n_met
                for j in room.candidates[:n_met]:
                    if has_large and share_large(connected, i, j):
                        continue
                    need = max(bounds[j if rule.is_containment else i], common_needed(totals[i], totals[j], rule))
                    if most_common(probes.bitmaps, i, j) < need:
                        continue
                    common = count_packed(probes.packed, i, j) if is_packed else need
                    if common < need:
                        continue

                    if is_packed:
                        overlap, shared, united = compare_by_overlap(probes.sketches, i, j, common, rule)
                    else:
                        overlap, shared, united = compare_sketches(probes.sketches, i, j, need, rule)
                    if overlap >= 0 and len(besides.bounds) > 0:
                        others = _compare_besides(besides, i, j)
                        if others[0] < 0 or besides.tells:
                            overlap, shared, united = others
                    if overlap >= 0:
                        if count == len(pairs):
                            pairs = np.concatenate((pairs, np.empty_like(pairs)))
                        pairs[count, 0], pairs[count, 1], pairs[count, 2] = j, i, overlap
                        pairs[count, 3], pairs[count, 4] = shared, united
                        count += 1
                        has_large |= count_pair(connected, i, j)
    return pairs[:count].copy(), n_candidates


@compiled
def _differ(probes: Probes, small: int, large: int, rule: Rule) -> bool:
    """Return whether two sketches are no candidates by their totals: all those before the smaller are none either."""
    if rule.exact_numerator:
        return is_too_small(probes.totals[small], probes.totals[large], rule)
    return bool(probes.totals[small] < probes.bounds[large])


@compiled
def compare_listed(besides: Besides, pairs: NDArray[np.int32]) -> NDArray[np.int32]:
    """Compare the sketches of some pairs, (k, 2).

    Returns:
        Rows (first, second, overlap, shared, united) of those that are near-duplicates.
    """
    rows, count = np.empty((len(pairs), 5), np.int32), 0
    for k in range(len(pairs)):
        overlap, shared, united = _compare_besides(besides, pairs[k, 0], pairs[k, 1])
        if overlap >= 0:
            rows[count, 0], rows[count, 1], rows[count, 2] = pairs[k, 0], pairs[k, 1], overlap
            rows[count, 3], rows[count, 4] = shared, united
            count += 1
    return rows[:count].copy()


@compiled
def _compare_besides(besides: Besides, a: int, b: int) -> tuple[int, int, int]:
    """Do `compare_sketches` for the other sketches of two documents."""
    need = max(besides.bounds[a], besides.bounds[b])
    need = max(need, common_needed(besides.totals[a], besides.totals[b], besides.rule))
    return compare_sketches(besides.sketches, a, b, need, besides.rule)


@compiled
def _list_candidates(
    holders: NDArray[np.int32],
    entry: int,
    end: int,
    i: int,
    room: _Room,
    connected: ConnectedPairs,
    has_large: bool,  # noqa: FBT001 - numba takes no names
) -> tuple[int, int]:
    """Write into `room.candidates` the next sketches of a list to compare sketch i with.

    Returns the entry to go on at, and their number. A run of sketches of the large component of sketch i is passed over
    at once, and is longer for the next sketch of that component.
    """
    count, run = 0, -1  # `run`: where the run that ends here begins
    while entry < end and holders[entry] < i and count < CHUNK:
        j = holders[entry]
        if has_large and share_large(connected, i, j):
            run = entry if run < 0 else run
            entry += max(room.runs[entry], 1)
            room.runs[run] = entry - run
            continue
        run = -1
        entry += 1
        if room.met[j] != i:
            room.met[j] = i
            room.candidates[count] = j
            count += 1
    return entry, count


@compiled
def _first_from(holders: NDArray[np.int32], low: int, high: int, least: int) -> int:
    """Return the first entry of a list, or of its end, that is not before sketch `least`."""
    if low == high or holders[low] >= least:
        return low
    while low < high:
        middle = (low + high) // 2
        if holders[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
