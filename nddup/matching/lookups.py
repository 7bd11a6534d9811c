"""Rows by key, and the near-duplicates of given sketches among those of a segment. Pure: no file is touched.

    key_rows         keys                    -> Keyed: ascending keys, and the row of each (`find_rows`, `is_among`)
    spread_rows      nodes, sketches         -> Rows; a sketch whose modulus varies has one per level (`recipe`)
    order_features   sketches                -> the features of each in the total order of the segment
    build_postings   Rows, Matching          -> Postings: the posting lists of a segment, by feature
    find_near        Postings, Rows          -> Near: sketches that meet at a feature are compared

A look-up by a key is a binary search. The keys are memory-mapped from files, so it reads only a few pages, however many
keys there are. Kinds whose pairs are found by keys (`nddup.sketching.minhash`) post all their keys and have no order of
features.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.kernels import compiled
from nddup.matching.bitmaps import Bitmaps, make_bitmaps, most_common
from nddup.matching.threshold import Rule, Threshold, common_needed, compare_sketches, is_too_small
from nddup.sketching.minhash import Finder
from nddup.sketching.permutations import GOLDEN, ONE, mix_id
from nddup.sketching.recipe import LEVEL_BITS, level_of, spread_levels

FNV_OFFSET, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


class KeyHits(NamedTuple):
    """The f rows that have one of some wanted keys."""

    which: NDArray[np.int64]  # (f,), the place of the key among the wanted ones, ascending
    rows: NDArray[np.int64]  # (f,)

    def only(self, chosen: NDArray[np.bool_]) -> "KeyHits":
        """Return the chosen rows."""
        return KeyHits(self.which[chosen], self.rows[chosen])


class Keyed(NamedTuple):
    """Rows by a key; several rows may have one key."""

    keys: NDArray[np.int64] | NDArray[np.uint64]  # (n,), ascending
    rows: NDArray[np.int32]  # (n,)

    def find(self, wanted: NDArray[np.int64] | NDArray[np.uint64]) -> KeyHits:
        """Find the rows of wanted keys, which may be in any order."""
        hits = find_rows(self.keys, wanted)
        return KeyHits(hits.which, self.rows[hits.rows].astype(np.int64))


COMMON = 4
"""Minimum number of holders that makes a feature common in a segment."""

HALF, HASH = np.uint64(32), np.uint64(0xFFFFFFFF)

Features = NDArray[np.uint32]
"""Hashes of ids, 32 bits: a collision adds a false candidate, which the comparison of the sketches rejects."""

LEVELS = (1 << LEVEL_BITS) - 1

COMPARED = 1 << 20
"""Pairs of a given and a stored sketch after which those met so far are compared: 24 bytes each, and a copy of each
stored sketch among them."""


def key_rows(keys: NDArray[np.int64] | NDArray[np.uint64]) -> Keyed:
    """Index rows by their keys, (n,). Cost: a sort."""
    order = np.argsort(keys, kind="stable")
    return Keyed(keys[order], order.astype(np.int32))


def find_rows(
    ascending: NDArray[np.int64] | NDArray[np.uint64], wanted: NDArray[np.int64] | NDArray[np.uint64]
) -> KeyHits:
    """Find the places of wanted keys, in any order, among ascending ones.

    Example:
        >>> find_rows(np.array([2, 3, 3, 9]), np.array([3, 5, 2])).rows.tolist()
        [1, 2, 0]
    """
    low = np.searchsorted(ascending, wanted, "left")
    counts = np.searchsorted(ascending, wanted, "right") - low
    which = np.repeat(np.arange(len(wanted)), counts)
    return KeyHits(which, np.arange(len(which)) + np.repeat(low - np.cumsum(counts) + counts, counts))


def is_among(values: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each value is among some ascending ones, (n,). Cost: a binary search each."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.searchsorted(ascending, values)
    at[at == len(ascending)] = 0
    return np.asarray(ascending[at] == values)


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct values, ascending, by a sort: `np.unique` hashes, and is ten times slower for a million."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def hash_strings(column: pa.Array) -> NDArray[np.uint64]:
    """Hash each string, (n,); none may be null. Two strings may have one hash, so compare the rows found by it."""
    strings = column.cast(pa.large_string())
    if not len(strings):
        return np.empty(0, np.uint64)
    _, offsets, data = strings.buffers()
    ends = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    return _hash_strings(np.frombuffer(data or b"", np.uint8), ends)


@compiled
def _hash_strings(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
    values = np.empty(len(ends) - 1, np.uint64)
    for i in range(len(values)):
        value = FNV_OFFSET
        for at in range(ends[i], ends[i + 1]):
            value = (value ^ np.uint64(data[at])) * FNV_PRIME
        values[i] = mix_id(value, ONE, GOLDEN)
    return values


@compiled
def hash_ids(ids: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the hash of each id, (n,)."""
    values = np.empty(len(ids), np.uint32)
    for i in range(len(ids)):
        values[i] = np.uint32(mix_id(ids[i], ONE, GOLDEN) >> HALF)
    return values


def count_common(sketches: Ragged) -> tuple[Features, NDArray[np.int32]]:
    """Return the features that `COMMON` sketches or more hold, ascending, and how many hold each.

    Holders are counted by hash. Two ids with one hash are counted together, which changes the order but leaves it
    total.

    Cost: a sort of the ids.
    """
    hashes = np.sort(hash_ids(sketches.values))
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)])
    counts = np.diff(np.append(starts, len(hashes)))
    is_common = counts >= COMMON
    return hashes[starts[is_common]], counts[is_common].astype(np.int32)


def order_features(
    sketches: Ragged, common: Features, holders: NDArray[np.int32]
) -> tuple[NDArray[np.int64], Features]:
    """Sort each sketch's features in the total order.

    The order is (holders in the segment if they are `COMMON` or more, else 0; hash of the id; id). It is fixed when the
    segment is written and is defined for every id, also for ids the segment has never seen. Under any one total order
    two sketches with an overlap of max(alpha) share a feature of both prefixes (`nddup.matching.overlap_join`). So a
    new sketch cut to its prefix under the order of a segment meets every near-duplicate stored there.

    Args:
        sketches: rows of distinct ids, ascending.
        common: (c,), the common features of the segment, ascending.
        holders: (c,), how many sketches hold each.

    Returns:
        The offsets of the sketches, and the hashes row by row. Cost: a look-up of each id, and a sort of each row.
    """
    hashes = hash_ids(sketches.values)
    return sketches.offsets, _order(sketches.offsets, hashes, common, holders)


@compiled
def _order(
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint32],
    common: NDArray[np.uint32],
    holders: NDArray[np.int32],
) -> NDArray[np.uint32]:
    ordered = np.empty(len(hashes), np.uint32)
    for row in range(len(offsets) - 1):
        low, high = offsets[row], offsets[row + 1]
        keys = np.empty(high - low, np.uint64)
        for i in range(low, high):
            at = np.searchsorted(common, hashes[i])
            known = at < len(common) and common[at] == hashes[i]
            keys[i - low] = (np.uint64(holders[at]) << HALF if known else np.uint64(0)) | np.uint64(hashes[i])

        keys.sort()
        for i in range(high - low):
            ordered[low + i] = np.uint32(keys[i] & HASH)
    return ordered


def prefix_lengths(sizes: NDArray[np.int32], bounds: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return how many first features each sketch needs to meet every near-duplicate, (n,); 0 if it can have none.

    Args:
        sizes: (n,), sizes of the sketches.
        bounds: (n,), the least overlap of each with a near-duplicate (`Threshold.bounds`).
    """
    lengths: NDArray[np.int32] = np.maximum(sizes - bounds + 1, 0).astype(np.int32)
    return lengths


class Matching(NamedTuple):
    """How near-duplicate sketches are found.

    Attributes:
        threshold: when two sketches are near-duplicates.
        finder: the keys by which they meet; None: they meet by the features of their prefixes.
        levels: the sketch size that decides the levels (`recipe.level_of`) where the modulus varies, else 0.
    """

    threshold: Threshold
    finder: Finder | None
    levels: int


class Rows(NamedTuple):
    """Sketches as they are compared, m rows: one row per sketch, or one per sketch and level."""

    names: NDArray[np.int64]
    """The node of each row, (m,); with levels `node << 12 | own level << 6 | level`."""

    sketches: Ragged

    totals: NDArray[np.int32]
    """What bounds the overlap of each, (m,) (`Threshold.totals`)."""


class Postings(NamedTuple):
    """The posting lists of a segment; p postings, c common features."""

    rows: Rows
    features: Features  # (p,), ascending
    holders: NDArray[np.int32]  # (p,), the row that holds the feature
    places: NDArray[np.int32]  # (p,), the place of the feature in the order of its row
    common: Features  # (c,), ascending
    common_holders: NDArray[np.int32]  # (c,), how many rows hold each


class Near(NamedTuple):
    """The k near-duplicate pairs of a given and a stored sketch, as nodes."""

    given: NDArray[np.int64]  # (k,)
    stored: NDArray[np.int64]  # (k,)
    overlap: NDArray[np.int32]  # (k,)
    shared: NDArray[np.int64]  # (k,), numerator of the resemblance
    united: NDArray[np.int64]  # (k,), its denominator
    sizes: NDArray[np.int64]  # (k, 2), of both sketches
    candidates: int  # pairs that were compared

    def only(self, rows: NDArray[np.int64]) -> "Near":
        """Return the chosen pairs, with the same count of candidates."""
        pairs = (self.given[rows], self.stored[rows], self.overlap[rows], self.shared[rows], self.united[rows])
        return Near(*pairs, self.sizes[rows], self.candidates)

    @property
    def resemblance(self) -> NDArray[np.float64]:
        """The resemblance of each pair, as `overlap_join` gives it."""
        return np.asarray(self.shared / np.maximum(self.united, 1))


def join_near(parts: Sequence[Near]) -> Near:
    """Join the pairs that were found in several segments."""
    nothing = np.empty(0, np.int64)
    empty = Near(nothing, nothing, np.empty(0, np.int32), nothing, nothing, np.empty((0, 2), np.int64), 0)
    columns = (np.concatenate(column) for column in zip(*(part[:6] for part in (empty, *parts)), strict=True))
    given, stored, overlap, shared, united, sizes = columns
    return Near(given, stored, overlap, shared, united, sizes, sum(part.candidates for part in parts))


def spread_rows(nodes: NDArray[np.int64], sketches: Ragged, n_features: NDArray[np.int32], matching: Matching) -> Rows:
    """Return the rows of some nodes, in their order; one per level if the modulus varies."""
    if not matching.levels:
        sizes = np.diff(sketches.offsets).astype(np.int32)
        return Rows(nodes, sketches, matching.threshold.totals(sizes, n_features))
    own_levels = np.array([level_of(count, matching.levels) for count in n_features.tolist()], np.int64)
    names, spread = spread_levels(nodes, own_levels, sketches, LEVELS)
    return Rows(names, spread, np.diff(spread.offsets).astype(np.int32))


def build_postings(rows: Rows, matching: Matching) -> Postings:
    """Build the posting lists of a segment: unpruned prefixes for the threshold; for a containment, whole sketches.

    Cost: sorts of the ids and of the postings.
    """
    common, counts = np.empty(0, np.uint32), np.empty(0, np.int32)
    if matching.finder is None:
        common, counts = count_common(rows.sketches)
    bounds = matching.threshold.bounds(np.diff(rows.sketches.offsets).astype(np.int32))
    offsets, features, lengths = _probe(rows.sketches, bounds, common, counts, matching)
    sizes = np.diff(offsets)
    posted = np.where(lengths > 0, sizes, 0) if matching.threshold.is_containment else lengths
    places = (np.arange(len(features)) - np.repeat(offsets[:-1], sizes)).astype(np.int32)
    is_posted = places < np.repeat(posted, sizes)
    holders = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[is_posted]
    features, places = features[is_posted], places[is_posted]
    numbered = features.astype(np.uint64) << HALF | np.arange(len(features), dtype=np.uint64)
    order = np.sort(numbered) & HASH  # sorting values is ten times as fast as sorting places
    return Postings(rows, features[order], holders[order], places[order], common, counts)


def _probe(
    sketches: Ragged, bounds: NDArray[np.int32], common: Features, counts: NDArray[np.int32], matching: Matching
) -> tuple[NDArray[np.int64], Features, NDArray[np.int32]]:
    """Return the features of each sketch in order, as offsets and hashes; and the length of each prefix."""
    sizes = np.diff(sketches.offsets).astype(np.int32)
    if matching.finder is None:
        return *order_features(sketches, common, counts), prefix_lengths(sizes, bounds)
    keys = matching.finder.keys(sketches)
    lengths = np.where(bounds <= sizes, np.diff(keys.offsets), 0).astype(np.int32)
    return keys.offsets, hash_ids(keys.values), lengths


def find_near(postings: Postings, given: Rows, matching: Matching) -> Near:
    """Find every near-duplicate of the given sketches among the stored ones.

    Args:
        postings: those of a segment, built for this threshold or a lower one.
        given: the sketches whose near-duplicates are wanted.
        matching: that of the postings; its threshold may be higher.

    Cost: per given sketch a look-up of its prefix features, a sort of their holders, and a comparison with each holder.
        Memory: some `COMPARED` candidates at a time, and the pairs.
    """
    candidates = _list_candidates(postings, given, matching)
    return join_near([_compare(postings.rows, given, met, rows, matching) for met, rows in candidates])


def _list_candidates(
    postings: Postings, given: Rows, matching: Matching
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the pairs to compare, of a given and a stored row: some `COMPARED` together, all of one given row."""
    threshold = matching.threshold
    sizes = np.diff(given.sketches.offsets).astype(np.int32)
    bounds = threshold.needs(given.totals)
    common = (postings.common, postings.common_holders)
    offsets, features, lengths = _probe(given.sketches, bounds, *common, matching)
    probed = np.diff(offsets).astype(np.int32) if threshold.is_containment else lengths

    first, last = _find_lists(postings.features, offsets, features, probed)
    stored = _Stored(postings.holders, postings.places, postings.rows.sketches.offsets, postings.rows.totals)
    about = (threshold.numerator, threshold.denominator, threshold.is_count, matching.finder is None)
    met, rows, count = list[NDArray[np.int64]](), list[NDArray[np.int64]](), 0
    for i in np.flatnonzero(lengths > 0):
        span = slice(offsets[i], offsets[i] + probed[i])
        asked = _Asked(int(sizes[i]), int(given.totals[i]), int(bounds[i]), *about)
        met.append(_meet(stored, first[span], last[span], asked, threshold.rule))
        rows.append(np.full(len(met[-1]), i))
        count += len(met[-1])
        if count > COMPARED:
            yield np.concatenate(rows), np.concatenate(met)
            met, rows, count = [], [], 0
    if count:  # one query meets nothing in most segments
        yield np.concatenate(rows), np.concatenate(met)


def leave_out(postings: Postings, nodes: NDArray[np.int64], matching: Matching) -> Postings:
    """Return the posting lists without some nodes, ascending. Cost: linear in the postings."""
    names = postings.rows.names >> 2 * LEVEL_BITS if matching.levels else postings.rows.names
    stays = ~is_among(names, nodes)[postings.holders]
    listed = (postings.features[stays], postings.holders[stays], postings.places[stays])
    return Postings(postings.rows, *listed, postings.common, postings.common_holders)


@compiled
def _find_lists(
    features: Features, offsets: NDArray[np.int64], wanted: Features, probed: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the posting lists of each row's first `probed` features begin and end; 0 and 0 for the others."""
    first, last = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
    for row in range(len(probed)):
        for i in range(offsets[row], offsets[row] + probed[row]):
            low = np.searchsorted(features, wanted[i])
            high = low
            while high < len(features) and features[high] == wanted[i]:
                high += 1
            first[i], last[i] = low, high
    return first, last


class _Stored(NamedTuple):
    """The postings in the form the kernel takes."""

    holders: NDArray[np.int32]
    places: NDArray[np.int32]
    offsets: NDArray[np.int64]  # of the stored sketches
    totals: NDArray[np.int32]


class _Asked(NamedTuple):
    """One given sketch, and the threshold as plain numbers."""

    size: int
    total: int
    bound: int
    numerator: int
    denominator: int
    is_count: bool
    has_order: bool


@compiled
def _meet(
    stored: _Stored, first: NDArray[np.int64], last: NDArray[np.int64], asked: _Asked, rule: Rule
) -> NDArray[np.int64]:
    """Return the distinct rows, ascending, that hold a feature of one sketch and may be near to it.

    A near-duplicate has enough in common from the first feature on that both hold: other meetings do not matter.

    Args:
        stored: the postings.
        first: where the posting list of each feature begins; the features are in the order of the sketch.
        last: where each list ends.
        asked: the sketch and the threshold.
        rule: the threshold.
    """
    values = np.empty(np.sum(last - first), np.int64)
    count = 0
    for i in range(len(first)):
        for at in range(first[i], last[i]):
            row = stored.holders[at]
            other = stored.offsets[row + 1] - stored.offsets[row]
            common = min(asked.size, other)
            if asked.has_order:
                common = min(asked.size - i, other - stored.places[at])
            if _are_enough(common, asked, other, stored.totals[row], rule):
                values[count] = row
                count += 1
    return np.unique(values[:count])


@compiled
def _are_enough(common: int, asked: _Asked, other: int, total: int, rule: Rule) -> bool:
    """Return whether a stored sketch of `other` ids may be near with as few ids in common.

    By products: a division for each posting would take most of the time.
    """
    of_asked, of_other = True, True
    if rule.is_containment:  # only the contained sketch asks for a share of itself
        of_asked, of_other = asked.size <= other, asked.size > other
    if of_asked and common < asked.bound:
        return False
    if of_other and common * asked.denominator < asked.numerator * (1 if asked.is_count else other):
        return False
    p, q = rule.exact_numerator, rule.exact_denominator
    if p == 0:
        return True
    small, large = min(asked.total, total), max(asked.total, total)
    at_most = common + max(large - rule.size, 0)  # shingles in common, as in `common_needed`
    return not is_too_small(small, large, rule) and at_most * (p + q) >= p * (small + large)


def _compare(stored: Rows, given: Rows, met: NDArray[np.int64], rows: NDArray[np.int64], matching: Matching) -> Near:
    """Compare the candidates; return those that are near-duplicates."""
    distinct_rows, where = np.unique(rows, return_inverse=True)
    theirs = take_rows(stored.sketches, distinct_rows)
    n_given = len(given.sketches.offsets) - 1
    both = Ragged(
        np.concatenate([given.sketches.offsets, theirs.offsets[1:] + given.sketches.offsets[-1]]),
        np.concatenate([given.sketches.values, theirs.values]),
    )
    sizes = np.diff(both.offsets).astype(np.int32)
    bounds = matching.threshold.bounds(sizes)
    places = np.stack([met, where.reshape(-1) + n_given], axis=1)
    totals = np.concatenate([given.totals, stored.totals[distinct_rows]])
    bitmaps = make_bitmaps(*both)  # of a loose family nearly all pairs are told apart by these
    comparisons = _compare_all(both, bitmaps, places, totals, bounds, matching.threshold.rule)
    is_near = comparisons[:, 0] >= 0

    names = np.stack([given.names[met], stored.names[rows]], axis=1)
    if matching.levels:
        # Two sketches are compared only at the coarser of their own levels.
        own_levels, level = names >> LEVEL_BITS & LEVELS, names & LEVELS
        is_near &= (level == own_levels.max(axis=1, keepdims=True)).all(axis=1)
        names = names >> 2 * LEVEL_BITS
    chosen = np.flatnonzero(is_near)
    overlap, shared, united = comparisons[chosen].T
    return Near(
        names[chosen, 0], names[chosen, 1], overlap.astype(np.int32), shared, united,
        sizes[places[chosen]].astype(np.int64).reshape(-1, 2), len(met),
    )  # fmt: skip


@compiled
def _compare_all(
    both: Ragged,
    bitmaps: Bitmaps,
    places: NDArray[np.int64],
    totals: NDArray[np.int32],
    bounds: NDArray[np.int32],
    rule: Rule,
) -> NDArray[np.int64]:
    """Return overlap, and numerator and denominator of the resemblance, of each pair; overlap -1 if not near."""
    values = np.empty((len(places), 3), np.int64)
    for i in range(len(places)):
        a, b = places[i, 0], places[i, 1]
        need = min(bounds[a], bounds[b]) if rule.is_containment else max(bounds[a], bounds[b])
        need = max(need, common_needed(totals[a], totals[b], rule))
        values[i, 0], values[i, 1], values[i, 2] = -1, 0, 0
        if most_common(bitmaps, a, b) >= need:
            values[i, 0], values[i, 1], values[i, 2] = compare_sketches(both, a, b, need, rule)
    return values
