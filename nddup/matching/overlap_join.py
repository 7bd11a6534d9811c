"""Every pair of near-duplicate sketches, each made once: at the first feature that two prefixes have in common.

Sketches are taken in order of size. Each looks up its prefix features in posting lists of the smaller sketches, then
enters its own postings. Two sketches that meet at the first common feature of their prefixes are a candidate pair, and
the original sketches are compared. So most pairs are never compared. `nddup.local.match` makes the prefixes of
ids, `elements` those of elements in place of ids.

Why it is exact. alpha_d comes from the ORIGINAL size, so dropping a feature that only one sketch holds loses no common
feature, and a sketch with fewer than alpha_d features left is in no pair. Under one total order, two sketches with
overlap >= max(alpha) share a feature that lies in both prefixes of (features left) - alpha + 1 features. The first such
feature is unique, and only the partition that owns it makes the pair.

Two limits on the cost (`LongLists`, `ConnectedPairs`). Where there are leaders, the holders of a long list are linked
instead of compared (`nddup.mining.family_pairs`); without leaders every list is compared in full, or nothing is. And a
union-find counts the pairs of each connected component while they are found: in a component with more than `max_edges`
pairs, two sketches need not be compared, for they are known to be connected, and further pairs do not matter. It stays
large whatever joins it. A partition begins with what others have counted: each pair is made by one of them.

Sources:
    Chaudhuri, Ganti, Kaushik 2006, A primitive operator for similarity joins in data cleaning (the prefix filter).
    Xiao, Wang, Lin, Yu 2008, Efficient similarity joins for near duplicate detection (order by size, size filter).
    Tarjan, van Leeuwen 1984, Worst-case analysis of set union algorithms (path halving).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, Ragged, compiled, number_keys
from nddup.matching.threshold import Rule, Threshold, compare_sketches


def partition_of(ids: NDArray[np.uint64], partitions: int) -> NDArray[np.int32]:
    """Return the partition, in [0, partitions), that owns each id; (n,) uint64 to (n,) int32.

    A sketch keeps small ids, so each id is multiplied first to spread its bits.
    """
    return ((ids * HASH_MULTIPLIER >> np.uint64(33)) % np.uint64(partitions)).astype(np.int32)


class LongLists(NamedTuple):
    """`pairs.max_postings` and `pairs.max_comparisons`."""

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


NO_LIMIT = np.iinfo(np.int64).max
"""`max_edges` for no limit: more pairs than any component has."""


class ComparisonLimits(NamedTuple):
    """`pairs.max_edges` and `pairs.max_comparisons`."""

    max_edges: int
    """Pairs of distinct sketches in a component above which only the pairs of its leaders are listed."""

    max_comparisons: int
    """Comparisons of sketches that the search of a family may take."""


class ConnectedPairs(NamedTuple):
    """The components of n sketches, and the pairs found in each."""

    above: NDArray[np.int32]
    """(n,), for each sketch a sketch of its component with a smaller number, or itself if it is the root."""

    pairs: NDArray[np.int64]
    """(n,), at each root the number of pairs found in its component."""

    max_edges: int


@compiled
def find_root(above: NDArray[np.int32], sketch: int) -> int:
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
def find_large(connected: ConnectedPairs) -> NDArray[np.int32]:
    """Return the root of each sketch of a large component, (n,); -1 for all others."""
    roots = np.full(len(connected.above), -1, np.int32)
    for sketch in range(len(roots)):
        root = find_root(connected.above, sketch)
        if connected.pairs[root] > connected.max_edges:
            roots[sketch] = root
    return roots


class Probes(NamedTuple):
    """The m sketches that one partition joins, ordered by (size, name)."""

    sketches: Ragged
    """The original sketches, uint64 ascending."""

    prefixes: Ragged
    """The prefix of each in the total order, uint64; for a containment all its features."""

    holders: NDArray[np.int32]
    """Number of holders of each prefix feature, (p,): with the id, it gives the total order."""

    bounds: NDArray[np.int32]
    """alpha_d, (m,), not falling as size grows."""

    posted: NDArray[np.int32]
    """How many leading features of each prefix are posted for the larger sketches to look up, (m,); for a containment,
    the length of the prefix."""

    heavy: NDArray[np.bool_]
    """Whether each sketch is heavy, (m,): a feature of its prefix has too many holders, so heavy sketches are linked
    instead of compared with each other. All holders of such a feature must be heavy."""


class JoinResult(NamedTuple):
    """The k near-duplicate pairs of one partition, and what finding them cost."""

    first: NDArray[np.int32]
    """Position of the smaller sketch of each pair, (k,)."""

    second: NDArray[np.int32]
    """Position of the larger one, (k,)."""

    overlap: NDArray[np.int32]
    """Features in common, (k,)."""

    resemblance: NDArray[np.float64]
    """Estimated resemblance, (k,)."""

    candidates: int
    """Number of candidate pairs; all were compared except those within one component found to be large meanwhile."""

    stopped: int
    """The most holders of any feature that would cost more than `LongLists` allow, and then no pairs; else 0."""

    links: NDArray[np.int32]
    """Pairs of heavy sketches that hold a common prefix feature, (l, 2)."""


class _Lists(NamedTuple):
    """Layout of the posting lists: two for each of f owned features, first its light holders, then its heavy ones."""

    feature: NDArray[np.int32]
    """Number of the owned feature at each place of the prefixes, (p,); -1 where another partition owns it, or where it
    can only make pairs within a component that was large before."""

    large: NDArray[np.int32]
    """As `find_large` returns, of the components that were large before, (m,)."""

    starts: NDArray[np.int64]
    """Start of each list, (2 f + 1,)."""


class _Postings(NamedTuple):
    """The posting lists while they are filled: list s holds the entries begin[s] ... end[s] - 1, ascending by size."""

    begin: NDArray[np.int64]  # (2 f,)
    end: NDArray[np.int64]  # (2 f,)
    sketch: NDArray[np.int32]  # by entry
    place: NDArray[np.int64]  # by entry, place of the feature in the prefixes


class _Room(NamedTuple):
    """Working arrays for the search around one sketch."""

    met: NDArray[np.int32]  # (m,), the last sketch that met each one
    candidates: NDArray[np.int32]  # (m,)


def join_prefixes(
    probes: Probes,
    is_owned: NDArray[np.bool_],
    *,
    threshold: Threshold,
    long_lists: LongLists,
    connected: ConnectedPairs | None = None,
    most: int = NO_LIMIT,
) -> JoinResult:
    """Find the near-duplicate pairs whose first common prefix feature this partition owns.

    Args:
        probes: the sketches.
        is_owned: whether this partition owns the feature at each place of the prefixes, (p,).
        threshold: when two sketches are near-duplicates.
        long_lists: limits on the cost of a prefix feature's light holders; if one costs more, nothing is compared.
        connected: the components of the pairs that some other partitions have found, to which this one adds its own;
            None: none. A component with at most `max_edges` pairs has all its pairs; any other has more, enough to
            connect it.
        most: candidates after which the search ends; what it returns is then not all.

    Returns:
        Pairs, first < second, each once; and links that chain the heavy holders of each owned feature: such links
        connect any two heavy near-duplicates.

    Cost: owned prefix postings times the sketches they meet within the size bound; each meeting costs one comparison
        of prefixes, each candidate one merge of sketches that stops as soon as the bound is out of reach.
    """
    connected = begin_count(len(probes.bounds), NO_LIMIT) if connected is None else connected
    lists = _allot_lists(probes, is_owned, find_large(connected))
    holders = np.diff(lists.starts)[::2]
    lookers = np.bincount(lists.feature[is_owned], minlength=len(holders))
    stopped = find_too_long(holders, lookers, long_lists)
    if stopped:
        return find_nothing(stopped)

    if (lists.large >= 0).any():
        leave_settled(probes.prefixes.offsets, lists, len(holders))
    rows, candidates = _join(probes, lists, threshold.rule, connected, most)
    first, second, overlap, shared, united = rows.T
    resemblance = shared / np.maximum(united, 1)

    links = _link(probes.prefixes.offsets, lists.feature, np.flatnonzero(probes.heavy), len(holders))
    return JoinResult(first, second, overlap, resemblance, candidates, stopped, links)


def find_nothing(stopped: int) -> JoinResult:
    """Return no pairs, because a feature with `stopped` holders would cost too much."""
    none = np.empty(0, np.int32)
    return JoinResult(none, none, none, np.empty(0), 0, stopped, none.reshape(0, 2))


def _allot_lists(probes: Probes, is_owned: NDArray[np.bool_], large: NDArray[np.int32]) -> _Lists:
    """Lay out the posting lists, still empty."""
    owned = np.flatnonzero(is_owned)
    groups, count = number_keys(probes.prefixes.values[owned])
    feature = np.full(len(is_owned), -1, np.int32)
    feature[owned] = groups
    lengths = _count_posted(probes.prefixes.offsets, feature, probes.posted, probes.heavy, count)
    return _Lists(feature, large, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


@compiled
def leave_settled(prefix_offsets: NDArray[np.int64], lists: _Lists, count: int) -> None:
    """Take the features from `lists` that only sketches of one large component hold."""
    feature, large = lists.feature, lists.large
    holder = np.full(count, -2)  # the component of all holders so far; -1: there are others, -2: none was seen
    for i in range(len(large)):
        for at in range(prefix_offsets[i], prefix_offsets[i + 1]):
            if feature[at] >= 0 and holder[feature[at]] != large[i]:
                holder[feature[at]] = large[i] if holder[feature[at]] == -2 else -1  # noqa: PLR2004
    for at in range(len(feature)):
        if feature[at] >= 0 and holder[feature[at]] >= 0:
            feature[at] = -1


@compiled
def _count_posted(
    prefix_offsets: NDArray[np.int64],
    feature: NDArray[np.int32],
    posted: NDArray[np.int32],
    heavy: NDArray[np.bool_],
    count: int,
) -> NDArray[np.int64]:
    """Count the light and the heavy sketches of each owned feature, (2 count,): the first `posted` features are."""
    lengths = np.zeros(2 * count, np.int64)
    for i in range(len(posted)):
        for at in range(prefix_offsets[i], min(prefix_offsets[i] + posted[i], prefix_offsets[i + 1])):
            if feature[at] >= 0:
                lengths[2 * feature[at] + heavy[i]] += 1
    return lengths


@compiled
def _link(
    prefix_offsets: NDArray[np.int64], feature: NDArray[np.int32], heavy_ones: NDArray[np.int64], count: int
) -> NDArray[np.int32]:
    """Link each heavy sketch with the one before it in the list of each of its owned features, (l, 2)."""
    most = 0
    for i in heavy_ones:
        for at in range(prefix_offsets[i], prefix_offsets[i + 1]):
            most += feature[at] >= 0
    links, n_links = np.empty((most, 2), np.int32), 0

    last = np.full(count, -1, np.int32)  # by feature, the last heavy sketch that held it
    for i in heavy_ones:
        for at in range(prefix_offsets[i], prefix_offsets[i + 1]):
            slot = feature[at]
            if slot < 0:
                continue

            # Two sketches often share many features in succession: one link is enough.
            if last[slot] >= 0 and (n_links == 0 or links[n_links - 1, 0] != last[slot] or links[n_links - 1, 1] != i):
                links[n_links, 0], links[n_links, 1] = last[slot], i
                n_links += 1
            last[slot] = i
    return links[:n_links].copy()


@compiled
def _join(
    probes: Probes, lists: _Lists, rule: Rule, connected: ConnectedPairs, most: int
) -> tuple[NDArray[np.int32], int]:
    """Probe each sketch against the lists of the smaller ones, then enter it into the lists.

    Return rows (first, second, overlap, shared, united), and the number of candidates: soon after there are more than
    `most`, the search ends.
    """
    n_sketches, n_entries = len(probes.bounds), lists.starts[-1]
    postings = _Postings(
        lists.starts[:-1].copy(), lists.starts[:-1].copy(), np.empty(n_entries, np.int32), np.empty(n_entries, np.int64)
    )
    room = _Room(np.full(n_sketches, -1, np.int32), np.empty(n_sketches, np.int32))
    has_large = False
    for root in lists.large:
        has_large = has_large or root >= 0
    found, count, n_candidates = np.empty((1024, 5), np.int32), 0, 0

    for i in range(n_sketches):
        if n_candidates > most:
            break
        # A sketch may contain any smaller one; otherwise both need at least the features they must share.
        least_size = 0 if rule.is_containment else probes.bounds[i]
        n_met = _list_candidates(probes, lists, postings, i, least_size, room)
        n_candidates += n_met

        for j in room.candidates[:n_met]:
            if has_large and share_large(connected, i, j):
                continue

            # i is the larger one, so a containment takes the bound of j, which i must contain.
            need = probes.bounds[j] if rule.is_containment else max(probes.bounds[i], probes.bounds[j])
            overlap, shared, united = compare_sketches(probes.sketches, i, j, need, rule)
            if overlap < 0:
                continue
            if count == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[count, 0], found[count, 1], found[count, 2] = j, i, overlap
            found[count, 3], found[count, 4] = shared, united
            count += 1
            has_large |= count_pair(connected, i, j)

        _post(probes, lists, postings, i)
    return found[:count].copy(), n_candidates


@compiled
def _list_candidates(probes: Probes, lists: _Lists, postings: _Postings, i: int, least_size: int, room: _Room) -> int:
    """Write into `room.candidates` the smaller sketches to compare sketch i with; return how many."""
    count = 0
    for at in range(probes.prefixes.offsets[i], probes.prefixes.offsets[i + 1]):
        if lists.feature[at] < 0:
            continue

        # A heavy sketch probes only the first of the two lists: heavy ones are not compared with each other.
        for slot in range(2 * lists.feature[at], 2 * lists.feature[at] + 2 - probes.heavy[i]):
            _drop_small(probes.sketches, postings, slot, least_size)

            for entry in range(postings.begin[slot], postings.end[slot]):
                j = postings.sketch[entry]
                if lists.large[i] >= 0 and lists.large[i] == lists.large[j]:
                    continue
                # Only their first meeting in this partition can be the first over all partitions.
                if room.met[j] == i:
                    continue
                room.met[j] = i
                if not _share_earlier(probes, i, at, j, postings.place[entry]):
                    room.candidates[count] = j
                    count += 1
    return count


@compiled
def _drop_small(sketches: Ragged, postings: _Postings, slot: int, least_size: int) -> None:
    """Drop the first entries of a list, sketches below this size: they are also too small for all that follow."""
    while postings.begin[slot] < postings.end[slot]:
        j = postings.sketch[postings.begin[slot]]
        if sketches.offsets[j + 1] - sketches.offsets[j] >= least_size:
            break
        postings.begin[slot] += 1


@compiled
def _share_earlier(probes: Probes, i: int, i_end: int, j: int, j_end: int) -> bool:
    """Return whether the prefixes of sketches i and j have a common feature before these two places.

    Both are in the total order, so one merge decides. If so, the partition that owns that feature makes the pair.
    """
    features, holders = probes.prefixes.values, probes.holders
    a, b = probes.prefixes.offsets[i], probes.prefixes.offsets[j]
    while a < i_end and b < j_end:
        if features[a] == features[b]:
            return True

        # The total order: fewest holders first, then by id.
        if holders[a] < holders[b] or (holders[a] == holders[b] and features[a] < features[b]):
            a += 1
        else:
            b += 1
    return False


@compiled
def _post(probes: Probes, lists: _Lists, postings: _Postings, i: int) -> None:
    """Enter sketch i into the lists of its posted features."""
    first = probes.prefixes.offsets[i]
    for at in range(first, first + probes.posted[i]):
        if lists.feature[at] < 0:
            continue

        slot = 2 * lists.feature[at] + probes.heavy[i]
        postings.sketch[postings.end[slot]], postings.place[postings.end[slot]] = i, at
        postings.end[slot] += 1
