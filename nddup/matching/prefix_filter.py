"""Which sketches overlap enough: pruning, rarity order, prefixes, candidates and verification, on arrays.

The overlap join of the pairs stage, in the order it runs. Each function sees one partition's columns; the exchanges
between them are in `nddup.spark.pairing.prune` and `match`.

    least_overlaps     sizes                  -> alpha_d, the least overlap each sketch needs
    count_holders      features of postings   -> how many sketches hold each
    keep_possible      postings by node       -> those of sketches with at least alpha_d features left
    order_by_rarity    postings by node       -> features rarest first, and the length of each prefix
    match_prefixes     prefixes and originals -> near-duplicate pairs, each once over all partitions

Why it is exact. alpha_d comes from the ORIGINAL size, so dropping a feature that one sketch holds loses no common
feature, and a sketch with fewer than alpha_d features left is in no pair. Under one total order two sketches with
overlap >= max(alpha) share a feature in both prefixes of (features left) - alpha + 1; the first they share is unique,
and only the partition that owns it makes the pair. Overlap and resemblance are taken on the original sketches.

Sources:
    Chaudhuri, Ganti, Kaushik 2006, A primitive operator for similarity joins in data cleaning (the prefix filter).
    Xiao, Wang, Lin, Yu 2008, Efficient similarity joins for near duplicate detection (order and size filter).
    Broder 1997, On the resemblance and containment of documents (MIN_s and its resemblance).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, Ragged, compiled, group_rows, number_keys


class Matches(NamedTuple):
    """Near-duplicate pairs (k of them) as positions of sketches, the search's cost, (l, 2) links of the crowd."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    overlap: NDArray[np.int32]
    resemblance: NDArray[np.float64]
    candidates: int
    cut_features: int
    cut_postings: int
    links: NDArray[np.int32]


def least_overlaps(sizes: NDArray[np.int32], *, numerator: int, denominator: int, is_count: bool) -> NDArray[np.int32]:
    """alpha_d: the least overlap with another sketch that a near-duplicate of d can have.

    Args:
        sizes: |d| of the original sketches, shape (n,), int32.
        numerator: of the threshold as an exact decimal; for a count, the count.
        denominator: of the threshold; at least 1.
        is_count: the threshold is a number of features, not a share of |d|.

    Returns:
        Shape (n,), int32: the count, or the least integer o >= 1 with o / |d| >= threshold, in integers (0.55 of 100
        is 55; `ceil(0.55 * 100)` in floats is 56).

    Example:
        >>> least_overlaps(np.array([100, 7, 0], np.int32), numerator=11, denominator=20, is_count=False).tolist()
        [55, 4, 1]
    """
    if is_count:
        return np.full(len(sizes), numerator, np.int32)
    shares = -(-sizes.astype(np.int64) * numerator // denominator)
    return np.maximum(shares, 1).astype(np.int32)


def partition_of(ids: NDArray[np.uint64], partitions: int) -> NDArray[np.int32]:
    """The partition, in [0, partitions), that owns each id; shape (n,), int32. The kept ids of a sketch are small
    numbers, so their high bits say nothing: the id is multiplied first.
    """
    return ((ids * HASH_MULTIPLIER >> np.uint64(33)) % np.uint64(partitions)).astype(np.int32)


def count_holders(features: NDArray[np.uint64]) -> NDArray[np.int32]:
    """How many of `features` (n,) equal each of them: (n,), int32. With one posting a sketch, its holders."""
    groups, count = number_keys(features)
    holders: NDArray[np.int32] = np.bincount(groups, minlength=count).astype(np.int32)[groups]
    return holders


def keep_possible(nodes: NDArray[np.uint64], bounds: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Drop the postings of sketches that have fewer features left than they need.

    Args:
        nodes: the sketch of each posting, shape (n,), uint64.
        bounds: its alpha_d, shape (n,), int32.

    Returns:
        `order` and `offsets` as of `group_rows`, of the sketches that stay.
    """
    order, offsets = group_rows(nodes)
    lengths = np.diff(offsets)
    stays = lengths >= bounds[order[offsets[:-1]]]
    kept: NDArray[np.int64] = np.concatenate([[0], np.cumsum(lengths[stays])]).astype(np.int64)
    return order[np.repeat(stays, lengths)], kept


@compiled
def order_by_rarity(
    offsets: NDArray[np.int64], features: NDArray[np.uint64], holders: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Sort each sketch's features by the one total order: fewest holders first, then by id.

    Args:
        offsets: (m + 1,), int64, rows of `features` and `holders` per sketch.
        features: (n,), uint64, distinct within a sketch.
        holders: (n,), int32.

    Returns:
        (n,), int64: positions into `features`, sketch by sketch. Cost: n log(longest sketch).
    """
    order = np.empty(len(features), np.int64)
    for i in range(len(offsets) - 1):
        low, high = offsets[i], offsets[i + 1]
        by_id = np.argsort(features[low:high])
        by_holders = np.argsort(holders[low:high][by_id], kind="mergesort")
        order[low:high] = by_id[by_holders] + low
    return order


def match_prefixes(
    sketches: Ragged,
    prefixes: Ragged,
    holders: NDArray[np.int32],
    is_owned: NDArray[np.bool_],
    bounds: NDArray[np.int32],
    *,
    size: int,
    share: tuple[int, int] | None,
    max_postings: int,
    crowd: NDArray[np.bool_] | None = None,
    posted: NDArray[np.int32] | None = None,
    is_containment: bool = False,
) -> Matches:
    """The near-duplicate pairs whose first common prefix feature this partition owns.

    Args:
        sketches: m original sketches, uint64 ascending, ordered by (size, name): the order decides what a cut keeps.
        prefixes: the prefix of each in the total order, uint64.
        holders: holders of each prefix feature, (p,), int32: with the id, the total order.
        is_owned: (p,), bool: this partition owns the feature.
        bounds: alpha_d, (m,), int32, not falling as size grows.
        size: s of the min-s sketches, for the resemblance.
        share: exact threshold of the resemblance as (numerator, denominator); None: the overlap alone decides.
        max_postings: longest list of holders of a prefix feature; later sketches are cut from it, and counted.
        crowd: (m,), bool: sketches that are not compared with each other, because a feature of their prefix has too
            many holders. All holders of such a feature must be of the crowd; then nothing is cut.
        posted: (m,), int32: how many of the first features of each the larger sketches look for; all, if None.
        is_containment: the share is of the smaller of two sketches. `prefixes` are then all its features, `posted` the
            length of its prefix.

    Returns:
        Matches, first < second, each pair once; and for every owned feature its holders of the crowd, linked one to
        the next: any two near-duplicates of the crowd are joined by such links.

    Cost: owned prefix postings times the sketches they meet within the size bound; each meeting costs one comparison
        of prefixes, each candidate one merge of sketches that stops as soon as the bound is out of reach.
    """
    if crowd is None:
        crowd = np.zeros(len(prefixes.offsets) - 1, np.bool_)
    if posted is None:
        posted = np.diff(prefixes.offsets).astype(np.int32)
    slots = np.full(len(prefixes.values), -1, np.int32)
    owned = np.flatnonzero(is_owned)
    groups, count = number_keys(prefixes.values[owned])
    slots[owned] = groups
    in_crowd = np.repeat(crowd, np.diff(prefixes.offsets))[owned]
    places = np.arange(len(is_owned)) - np.repeat(prefixes.offsets[:-1], np.diff(prefixes.offsets))
    is_posted = (places < np.repeat(posted, np.diff(prefixes.offsets)))[owned]
    lengths = np.bincount((2 * groups + in_crowd)[is_posted], minlength=2 * count).astype(np.int64)
    cut = np.maximum(lengths[::2] - max_postings, 0)
    starts = np.concatenate([[0], np.cumsum(np.minimum(lengths, max_postings))]).astype(np.int64)
    first, second, overlap, shared, united, candidates = _join(
        sketches.offsets, sketches.values, prefixes.offsets, prefixes.values, holders, slots, starts, bounds, crowd,
        posted, is_containment, size, share is not None, share[0] if share else 0, share[1] if share else 1,
    )  # fmt: skip
    resemblance = shared / np.maximum(united, 1)
    links = _link(prefixes.offsets, slots, crowd, count) if crowd.any() else np.empty((0, 2), np.int32)
    return Matches(first, second, overlap, resemblance, candidates, int(np.count_nonzero(cut)), int(cut.sum()), links)


@compiled
def _link(
    prefix_offsets: NDArray[np.int64], slots: NDArray[np.int32], crowd: NDArray[np.bool_], count: int
) -> NDArray[np.int32]:
    """Each sketch of the crowd with the one before it in the list of each of its owned features, (l, 2)."""
    last = np.full(count, -1, np.int32)
    links = np.empty((np.count_nonzero(slots >= 0), 2), np.int32)
    n_links = 0
    for i in np.flatnonzero(crowd):
        for at in range(prefix_offsets[i], prefix_offsets[i + 1]):
            slot = slots[at]
            if slot < 0:
                continue
            if last[slot] >= 0 and (n_links == 0 or links[n_links - 1, 0] != last[slot] or links[n_links - 1, 1] != i):
                links[n_links, 0], links[n_links, 1] = last[slot], i
                n_links += 1
            last[slot] = i
    return links[:n_links].copy()


@compiled
def overlap_or_less(ids: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int, need: int) -> int:
    """|A ∩ B| of two ascending runs of `ids`, or -1 as soon as it cannot reach `need`."""
    common = 0
    while a < a_end and b < b_end:
        if common + min(a_end - a, b_end - b) < need:
            return -1
        x, y = ids[a], ids[b]
        common += x == y
        a += x <= y
        b += y <= x
    return common if common >= need else -1


@compiled
def resemblance_parts(ids: NDArray[np.uint64], a: int, a_end: int, b: int, b_end: int, size: int) -> tuple[int, int]:
    """Numerator and denominator of the resemblance of two ascending runs of `ids`.

    |MIN_s(A ∪ B) ∩ A ∩ B| / |MIN_s(A ∪ B)|; when both have fewer than s ids they are the whole documents, and
    it is |A ∩ B| / |A ∪ B|. Two empty sketches: 0 / 0. A negative `size` means so many slots, each of which is an id:
    |A ∩ B| / slots.
    """
    if size < 0:
        return max(overlap_or_less(ids, a, a_end, b, b_end, 0), 0), -size
    limit = size
    if a_end - a < size and b_end - b < size:
        limit = a_end - a + b_end - b
    shared = 0
    united = 0
    while a < a_end and b < b_end and united < limit:
        x, y = ids[a], ids[b]
        shared += x == y
        a += x <= y
        b += y <= x
        united += 1
    return shared, min(limit, united + (a_end - a) + (b_end - b))


@compiled
def _shares_earlier(
    features: NDArray[np.uint64], holders: NDArray[np.int32], a: int, a_end: int, b: int, b_end: int
) -> bool:
    """Whether two runs of prefix features, both in the total order, have a feature in common."""
    while a < a_end and b < b_end:
        if features[a] == features[b]:
            return True
        if holders[a] < holders[b] or (holders[a] == holders[b] and features[a] < features[b]):
            a += 1
        else:
            b += 1
    return False


@compiled
def _join(  # noqa: C901, PLR0912 - one kernel: its state is its arguments
    id_offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    prefix_offsets: NDArray[np.int64],
    prefix: NDArray[np.uint64],
    holders: NDArray[np.int32],
    slots: NDArray[np.int32],
    starts: NDArray[np.int64],
    bounds: NDArray[np.int32],
    crowd: NDArray[np.bool_],
    posted_counts: NDArray[np.int32],
    is_containment: bool,  # noqa: FBT001
    size: int,
    by_resemblance: bool,  # noqa: FBT001
    numerator: int,
    denominator: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], int]:
    """Probe each sketch against the lists of the smaller ones, then enter it into the lists.

    A list of holders is filled in order of size, so sketches too small for the probing one are at its front for good
    and `starts` moves past them. `met[j] == i` marks that i met j in this partition: only their first meeting can be
    the first over all partitions, and it is if no earlier feature of the two prefixes is common. A feature has two
    lists, of its holders outside the crowd and in it; those in the crowd probe the first only.
    """
    sketches = len(id_offsets) - 1
    begin = starts[:-1].copy()
    end = starts[:-1].copy()
    posted = np.empty(starts[-1], np.int32)
    posted_at = np.empty(starts[-1], np.int64)
    met = np.full(sketches, -1, np.int32)
    found = np.empty((1024, 5), np.int32)
    count = 0
    candidates = 0
    for i in range(sketches):
        low, high = id_offsets[i], id_offsets[i + 1]
        for at in range(prefix_offsets[i], prefix_offsets[i + 1]):
            if slots[at] < 0:
                continue
            for slot in range(2 * slots[at], 2 * slots[at] + 2 - crowd[i]):
                while begin[slot] < end[slot]:
                    j = posted[begin[slot]]
                    if is_containment or id_offsets[j + 1] - id_offsets[j] >= bounds[i]:
                        break
                    begin[slot] += 1
                for entry in range(begin[slot], end[slot]):
                    j = posted[entry]
                    if met[j] == i:
                        continue
                    met[j] = i
                    if _shares_earlier(prefix, holders, prefix_offsets[i], at, prefix_offsets[j], posted_at[entry]):
                        continue
                    candidates += 1
                    need = bounds[j] if is_containment else max(bounds[i], bounds[j])
                    overlap = overlap_or_less(ids, low, high, id_offsets[j], id_offsets[j + 1], need)
                    if overlap < 0:
                        continue
                    shared, united = resemblance_parts(ids, low, high, id_offsets[j], id_offsets[j + 1], size)
                    if by_resemblance and shared * denominator < numerator * united:
                        continue
                    if count == len(found):
                        larger = np.empty((2 * count, 5), np.int32)
                        larger[:count] = found
                        found = larger
                    found[count, 0], found[count, 1], found[count, 2] = j, i, overlap
                    found[count, 3], found[count, 4] = shared, united
                    count += 1
        for at in range(prefix_offsets[i], prefix_offsets[i] + posted_counts[i]):
            if slots[at] < 0:
                continue
            slot = 2 * slots[at] + crowd[i]
            if end[slot] < starts[slot + 1]:
                posted[end[slot]] = i
                posted_at[end[slot]] = at
                end[slot] += 1
    kept = found[:count].copy()
    return kept[:, 0], kept[:, 1], kept[:, 2], kept[:, 3], kept[:, 4], candidates
