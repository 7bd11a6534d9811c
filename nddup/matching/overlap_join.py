"""Every pair of near-duplicate sketches, each made once: at the first feature that two prefixes have in common.

The prefixes come from `prefix_filter`, where it is proved that nothing is lost. Sketches are probed in order of size,
against posting lists that hold the smaller ones; whoever meets for the first time is a candidate, and a candidate is
compared on the original sketches.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled, number_keys
from nddup.matching.compare import overlap_or_less, resemblance_parts
from nddup.matching.threshold import Threshold


class Probes(NamedTuple):
    """The m sketches that one partition joins, ordered by (size, name): the order decides what a cut keeps."""

    sketches: Ragged
    """The original sketches, uint64 ascending."""

    prefixes: Ragged
    """The prefix of each in the total order, uint64; for a containment all its features."""

    holders: NDArray[np.int32]
    """Holders of each prefix feature, (p,): with the id, the total order."""

    bounds: NDArray[np.int32]
    """alpha_d, (m,), not falling as size grows."""

    posted: NDArray[np.int32]
    """How many of the first prefix features of each the larger sketches look for, (m,); for a containment the length
    of its prefix."""

    heavy: NDArray[np.bool_]
    """Sketches that are linked instead of compared with each other, because a feature of their prefix has too many
    holders, (m,). All holders of such a feature must be heavy; then nothing is cut."""


class Found(NamedTuple):
    """Near-duplicate pairs (k of them) as positions of sketches, the search's cost, (l, 2) links of heavy sketches."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    overlap: NDArray[np.int32]
    resemblance: NDArray[np.float64]
    candidates: int
    cut_features: int
    cut_postings: int
    links: NDArray[np.int32]


class _Lists(NamedTuple):
    """Posting lists: two for each owned feature, of its holders that are not heavy (2 i) and that are (2 i + 1)."""

    feature: NDArray[np.int32]
    """The owned feature at each place of the prefixes, (p,); -1 where another partition owns it."""

    starts: NDArray[np.int64]
    """Where each list starts, (2 f + 1,): room for as many entries as `max_postings` leaves it."""


class _Rule(NamedTuple):
    """`Threshold` as a kernel reads it."""

    size: int
    by_resemblance: bool
    numerator: int
    denominator: int
    is_containment: bool


def join_prefixes(probes: Probes, is_owned: NDArray[np.bool_], *, threshold: Threshold, max_postings: int) -> Found:
    """The near-duplicate pairs whose first common prefix feature this partition owns.

    Args:
        probes: the sketches.
        is_owned: whether this partition owns the feature at each place of the prefixes, (p,).
        threshold: when two sketches are near-duplicates.
        max_postings: longest list of holders of a prefix feature; later sketches are cut from it, and counted.

    Returns:
        Pairs, first < second, each once; and for every owned feature its heavy holders, linked one to the next: any
        two heavy near-duplicates are joined by such links.

    Cost: owned prefix postings times the sketches they meet within the size bound; each meeting costs one comparison
        of prefixes, each candidate one merge of sketches that stops as soon as the bound is out of reach.
    """
    lists, lengths = _allot_lists(probes, is_owned, max_postings)
    cut = np.maximum(lengths[::2] - max_postings, 0)

    numerator, denominator = threshold.share or (0, 1)
    rule = _Rule(threshold.size, threshold.share is not None, numerator, denominator, threshold.is_containment)
    rows, candidates = _join(probes, lists, rule)
    first, second, overlap, shared, united = rows.T

    links = _link(probes.prefixes.offsets, lists.feature, probes.heavy, len(lengths) // 2)
    resemblance = shared / np.maximum(united, 1)
    return Found(first, second, overlap, resemblance, candidates, int(np.count_nonzero(cut)), int(cut.sum()), links)


def _allot_lists(probes: Probes, is_owned: NDArray[np.bool_], max_postings: int) -> tuple[_Lists, NDArray[np.int64]]:
    """The posting lists, empty, and how many entries each would have if none were cut, (2 f,)."""
    prefix_sizes = np.diff(probes.prefixes.offsets)
    owned = np.flatnonzero(is_owned)
    groups, count = number_keys(probes.prefixes.values[owned])
    feature = np.full(len(is_owned), -1, np.int32)
    feature[owned] = groups

    place = np.arange(len(is_owned)) - np.repeat(probes.prefixes.offsets[:-1], prefix_sizes)
    is_posted = (place < np.repeat(probes.posted, prefix_sizes))[owned]
    is_heavy = np.repeat(probes.heavy, prefix_sizes)[owned]
    lengths = np.bincount((2 * groups + is_heavy)[is_posted], minlength=2 * count).astype(np.int64)

    starts = np.concatenate([[0], np.cumsum(np.minimum(lengths, max_postings))]).astype(np.int64)
    return _Lists(feature, starts), lengths


@compiled
def _link(
    prefix_offsets: NDArray[np.int64], feature: NDArray[np.int32], heavy: NDArray[np.bool_], count: int
) -> NDArray[np.int32]:
    """Each heavy sketch with the one before it in the list of each of its owned features, (l, 2)."""
    last = np.full(count, -1, np.int32)
    heavy_ones = np.flatnonzero(heavy)
    links = np.empty((np.count_nonzero(feature >= 0) if len(heavy_ones) else 0, 2), np.int32)
    n_links = 0
    for i in heavy_ones:
        for at in range(prefix_offsets[i], prefix_offsets[i + 1]):
            slot = feature[at]
            if slot < 0:
                continue
            # Two sketches often share many features one after another: one link is enough.
            if last[slot] >= 0 and (n_links == 0 or links[n_links - 1, 0] != last[slot] or links[n_links - 1, 1] != i):
                links[n_links, 0], links[n_links, 1] = last[slot], i
                n_links += 1
            last[slot] = i
    return links[:n_links].copy()


@compiled
def _share_earlier(probes: Probes, i: int, i_end: int, j: int, j_end: int) -> bool:
    """Whether the prefixes of sketches i and j have a common feature before these two places.

    Both run in the total order, so one merge tells. If they do, the partition that owns that feature makes the pair.
    """
    features, holders = probes.prefixes.values, probes.holders
    a, b = probes.prefixes.offsets[i], probes.prefixes.offsets[j]
    while a < i_end and b < j_end:
        if features[a] == features[b]:
            return True
        if holders[a] < holders[b] or (holders[a] == holders[b] and features[a] < features[b]):
            a += 1
        else:
            b += 1
    return False


@compiled
def _compare(probes: Probes, i: int, j: int, rule: _Rule) -> tuple[int, int, int]:
    """Overlap of sketches i and j, and their resemblance as two parts; overlap -1 where they are no near-duplicates.

    i is the larger one, so a containment asks for the bound of j, which i is to contain.
    """
    offsets, ids = probes.sketches.offsets, probes.sketches.values
    need = probes.bounds[j] if rule.is_containment else max(probes.bounds[i], probes.bounds[j])
    overlap = overlap_or_less(ids, offsets[i], offsets[i + 1], offsets[j], offsets[j + 1], need)
    if overlap < 0:
        return -1, 0, 0

    shared, united = resemblance_parts(ids, offsets[i], offsets[i + 1], offsets[j], offsets[j + 1], rule.size)
    if rule.by_resemblance and shared * rule.denominator < rule.numerator * united:
        return -1, 0, 0
    return overlap, shared, united


@compiled
def _join(  # noqa: C901, PLR0912 - one loop nest: taken apart, its lists would be handed about
    probes: Probes, lists: _Lists, rule: _Rule
) -> tuple[NDArray[np.int32], int]:
    """Probe each sketch against the lists of the smaller ones, then enter it into the lists.

    Returns rows (first, second, overlap, shared, united), and the number of candidates.
    """
    sizes = np.diff(probes.sketches.offsets)
    prefix_offsets, feature = probes.prefixes.offsets, lists.feature
    # Entries begin .. end of each list are alive: the sketch, and the place of the feature in its prefix.
    begin, end = lists.starts[:-1].copy(), lists.starts[:-1].copy()
    entry_sketch = np.empty(lists.starts[-1], np.int32)
    entry_place = np.empty(lists.starts[-1], np.int64)
    met = np.full(len(sizes), -1, np.int32)
    found, count, candidates = np.empty((1024, 5), np.int32), 0, 0

    for i in range(len(sizes)):
        for at in range(prefix_offsets[i], prefix_offsets[i + 1]):
            if feature[at] < 0:
                continue
            # A heavy sketch probes the first of the two lists only: heavy ones are not compared with each other.
            for slot in range(2 * feature[at], 2 * feature[at] + 2 - probes.heavy[i]):
                # Lists are filled in order of size: whoever is too small for i is too small for all that follow.
                while begin[slot] < end[slot]:
                    if rule.is_containment or sizes[entry_sketch[begin[slot]]] >= probes.bounds[i]:
                        break
                    begin[slot] += 1

                for entry in range(begin[slot], end[slot]):
                    j = entry_sketch[entry]
                    # Only their first meeting in this partition can be the first over all partitions.
                    if met[j] == i:
                        continue
                    met[j] = i
                    if _share_earlier(probes, i, at, j, entry_place[entry]):
                        continue
                    candidates += 1
                    overlap, shared, united = _compare(probes, i, j, rule)
                    if overlap < 0:
                        continue
                    if count == len(found):
                        found = np.concatenate((found, np.empty_like(found)))
                    found[count, 0], found[count, 1], found[count, 2] = j, i, overlap
                    found[count, 3], found[count, 4] = shared, united
                    count += 1

        for at in range(prefix_offsets[i], prefix_offsets[i] + probes.posted[i]):
            if feature[at] < 0:
                continue
            slot = 2 * feature[at] + probes.heavy[i]
            if end[slot] < lists.starts[slot + 1]:  # else the list is full: this posting is cut
                entry_sketch[end[slot]], entry_place[end[slot]] = i, at
                end[slot] += 1

    return found[:count].copy(), candidates
