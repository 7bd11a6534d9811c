"""Texts that confirm a pair of sketches, by two rules in exact integers. Candidates are found by the sketches.

    SetRule     S, the distinct shingle ids of a text     |A & B| / |A | B| >= t: the resemblance itself, not estimated
    EditRule    the tokens of a text, in order            2 LCS / (a + b) >= t: the token edit similarity
    compare_texts    rows, pairs, rule  -> Compared: similarities, by `compare_sets` or `compare_tokens`
    compare_taken    the same, for texts of which only some are in memory (`divide_pairs`)
    least_common     sizes, rule        -> the least common part that confirms a pair; `may_confirm` needs sizes alone

An empty row is similar to none.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, number_keys, take_rows
from nddup.ground.kernels import compiled
from nddup.matching.bitmaps import add_parities, count_different
from nddup.matching.threshold import overlap_or_less

FACTOR: Final = np.uint64(0x9FB21C651E98DF25)
"""Odd: the fingerprint of a window is the sum of its tokens times powers of this."""


CELLS: Final = 1 << 30
"""Largest product of two texts' token counts for which LCS is computed exactly: 32,768 tokens each, some 0.1 s at
worst. Above it a lower bound is used."""


BAG: Final = 128
BAG_SHIFT: Final = np.uint64(57)
"""Places in which the tokens of a text are counted, 512 bytes a text, and the bits of a product that are no place."""


class EditRule(NamedTuple):
    """The threshold as an exact decimal, the bound on the work per pair, and the tokens that make an anchor.

    For texts of a and b tokens and their longest common subsequence of LCS tokens, the similarity is 1 - d / (a + b),
    where d counts the tokens to delete and to insert.
    """

    numerator: int
    denominator: int
    cells: int = CELLS
    window: int = 1

    @property
    def share(self) -> float:
        """The threshold as a number."""
        return self.numerator / self.denominator


class SetRule(NamedTuple):
    """The threshold of the resemblance as an exact decimal.

    The candidates are pairs of sketches whose estimated resemblance is at least t - m. With a sketch of s ids the
    estimate of a pair at t is x / s, where x follows a law no wider than the binomial one (s draws without replacement
    from A | B). Then t - m = c / s, where c is the largest with P(Bin(s, t) < c) < 1 / 1000 (`accuracy.least_equal`).
    So fewer than one in a thousand pairs at t is no candidate, and fewer above t.

    Sources:
        Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (resemblance; sampling by MIN_s).
        Hoeffding 1963, Probability inequalities for sums of bounded random variables (the hypergeometric is narrower).
    """

    numerator: int
    denominator: int


ConfirmRule = EditRule | SetRule


class Compared(NamedTuple):
    """The results for k pairs of texts."""

    common: NDArray[np.int64]
    """(k,), of a confirmed pair the common shingles, or the LCS or its lower bound; 0 for any other."""

    similarity: NDArray[np.float64]
    """(k,), what the threshold applies to; NaN for a pair that is not confirmed."""

    is_bounded: NDArray[np.bool_]
    """(k,), whether the pair was beyond the bound on the work."""

    @property
    def is_near(self) -> NDArray[np.bool_]:
        """Whether each pair is confirmed, (k,)."""
        return self.common > 0


FAMILY: Final = 2
"""More pairs than this many for each row are a family: its rows are compared with a pivot first."""

BITS: Final = 2
PAIRS_OF_ROW: Final = 4
"""Bits of a bitmap for each id of a row, and pairs for each row from which bitmaps are made: a row costs what a
comparison does, and pairs that are far from near are told apart at a tenth of one."""

TOGETHER: Final = 1 << 18
"""Maximum number of pairs of a portion."""

HELD: Final = 1 << 21
"""Maximum number of tokens, or shingles, of the texts of a portion, 16 MB: what one thread or task holds."""

AHEAD: Final = 16
"""Texts that one text is compared with at a time, where one confirmed pair is enough."""

TakeTexts = Callable[[NDArray[np.int64]], Ragged]
"""Returns the texts at some places, each as the rule compares it. All of them need not be in memory."""

BLOCK = 1 << 19
"""Tokens spelled at a time: fewer than there are Unicode characters, so each distinct token can have its own."""

CLOSE = 1.05
"""Pairs whose least LCS differ by at most this factor are compared in one call, with one cut-off."""

SURROGATES, AFTER = 0xD800, 0x800
"""The first surrogate, a code point that is no character, and the number of surrogates."""


def bound_common(
    first: NDArray[np.uint64], second: NDArray[np.uint64], cells: int, window: int = 1, need: int = 0
) -> int:
    """Return a lower bound of the LCS of two long texts.

    Common tokens at both ends count. Between them, the tokens that occur exactly once in each text are anchors: a
    longest chain of anchors in the same order is a common subsequence, and the texts between two anchors are compared
    exactly while the bound on the work allows it. No character occurs once in a long text: where tokens are characters,
    an anchor is the first of `window` consecutive ones that occur once.

    Sources:
        Fredman 1975, On computing the length of longest increasing subsequences.
        Cohen, "patience diff" (2003): tokens that occur once, as anchors.

    Args:
        first: (a,), tokens.
        second: (b,), tokens.
        cells: work allowed for exact comparisons: products of lengths, summed over the gaps between anchors.
        window: consecutive tokens by which an anchor, the first of them, is recognised.
        need: the bound that is of use; where it is out of reach, a smaller one may be returned at once.

    Cost: sorts of both texts, and `cells` / 64 steps.

    Example:
        >>> first, second = np.array([5, 1, 1, 2, 2, 6], np.uint64), np.array([5, 2, 2, 1, 1, 6], np.uint64)
        >>> bound_common(first, second, 100), bound_common(first, second, 0)
        (4, 2)
    """
    shorter = min(len(first), len(second))
    head = _common_start(first, second, shorter)
    tail = _common_start(first[::-1], second[::-1], shorter - head)
    first, second = first[head : len(first) - tail], second[head : len(second) - tail]

    anchors = _chain(_windows(first, window), _windows(second, window))
    anchors = anchors[first[anchors[:, 0]] == second[anchors[:, 1]]]  # also where two fingerprints are equal by chance
    starts = np.concatenate([[[0, 0]], anchors + 1])
    ends = np.concatenate([anchors, [[len(first), len(second)]]])
    work = (ends - starts).prod(axis=1)
    order = np.argsort(work, kind="stable")

    # The smallest gaps come first: most of them can be compared before the bound is reached.
    compared = order[(np.cumsum(work[order]) <= cells) & (work[order] > 0)]
    common = head + tail + len(anchors)
    if common + int((ends - starts)[compared].min(axis=1).sum()) < need:
        return common
    gaps = sum(_exact(first[a:c], second[b:d]) for (a, b), (c, d) in zip(starts[compared], ends[compared], strict=True))
    return common + gaps


def _common_start(first: NDArray[np.uint64], second: NDArray[np.uint64], most: int) -> int:
    """Return how many tokens at the start are equal, `most` at most."""
    differ = np.flatnonzero(first[:most] != second[:most])
    return int(differ[0]) if len(differ) else most


def _windows(text: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """Return a fingerprint of the `length` tokens from each place that has so many, (n - length + 1,)."""
    count = max(len(text) - length + 1, 0)
    windows = np.zeros(count, np.uint64)
    for at in range(length):
        windows = windows * FACTOR + text[at : at + count]
    return windows


def _once(text: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the tokens that occur once, ascending, and where."""
    order = np.argsort(text)
    values = text[order]
    differs = np.append(np.append(True, values[1:] != values[:-1]), True)
    is_once = differs[:-1] & differs[1:] if len(values) else np.zeros(0, np.bool_)
    return values[is_once], order[is_once]


def _chain(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the places, (c, 2), of a longest chain of tokens that occur once in each text, in the order of both."""
    return _longest_chain(*_once(first), *_once(second), len(first))


@compiled
def _longest_chain(
    first: NDArray[np.uint64],
    of_first: NDArray[np.int64],
    second: NDArray[np.uint64],
    of_second: NDArray[np.int64],
    length: int,
) -> NDArray[np.int64]:
    """Return the places of a longest chain of values that both ascending lists hold, in the order of both places.

    Source: Fredman 1975. `last[k]` is the place at which the best chain of k + 1 ends; `before` holds the previous one
    of each.
    """
    partner = np.full(length, -1, np.int64)
    i = j = 0
    while i < len(first) and j < len(second):
        if first[i] == second[j]:
            partner[of_first[i]] = of_second[j]
        is_first = first[i] <= second[j]
        j += second[j] <= first[i]
        i += is_first

    last = np.empty(min(len(first), len(second)), np.int64)
    before = np.full(length, -1, np.int64)
    count = 0
    for place in range(length):
        if partner[place] < 0:
            continue
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if partner[last[middle]] < partner[place]:
                low = middle + 1
            else:
                high = middle
        before[place] = last[low - 1] if low else -1
        last[low] = place
        count = max(count, low + 1)

    chain = np.empty((count, 2), np.int64)
    place = last[count - 1] if count else -1
    for at in range(count - 1, -1, -1):
        chain[at, 0], chain[at, 1] = place, partner[place]
        place = before[place]
    return chain


def _exact(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> int:
    """Return the LCS of two short texts, or of long ones with few distinct tokens."""
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most runs compare no tokens

    return int(LCSseq.similarity(array("Q", first.tobytes()), array("Q", second.tobytes())))


def join_compared(parts: Sequence[Compared]) -> Compared:
    """Concatenate the results for several lists of pairs; none give empty arrays."""
    if not parts:
        return Compared(np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_))
    return Compared(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def least_common(totals: NDArray[np.int64], rule: ConfirmRule) -> NDArray[np.int64]:
    """Return the least common part that confirms a pair of texts, at least 1, from both sizes together; (n,) to (n,).

    With t = p / q and c = |A & B|, the rule of sets is c (p + q) >= p (|A| + |B|); that of edits is
    2 q LCS >= p (a + b).

    Example:
        >>> least_common(np.array([200, 201, 0]), EditRule(77, 100)).tolist()
        [77, 78, 1]
        >>> least_common(np.array([170, 171, 0]), SetRule(7, 10)).tolist()
        [70, 71, 1]
    """
    p, q = rule.numerator, rule.denominator
    parts = 2 * q if isinstance(rule, EditRule) else p + q
    return np.maximum(-(-totals.astype(np.int64) * p // parts), 1)


def may_confirm(sizes: NDArray[np.integer], rule: ConfirmRule) -> NDArray[np.bool_]:
    """Return whether texts of these sizes can be confirmed: one has to hold the least common part; (2, k) to (k,)."""
    ends = sizes.astype(np.int64)
    return np.asarray(ends.min(axis=0) >= least_common(ends.sum(axis=0), rule))


def compare_texts(rows: Ragged, pairs: NDArray[np.integer], rule: ConfirmRule) -> Compared:
    """Find which pairs of texts are confirmed.

    Args:
        rows: n texts, each as the rule compares it: ascending distinct shingle ids, or tokens in order.
        pairs: (k, 2), rows.
        rule: the threshold.

    Returns:
        The similarity of each confirmed pair. An empty row is similar to none.

    Cost: for a `SetRule` one merge a pair, without the interpreter's lock; else that of `compare_tokens`.
    """
    if isinstance(rule, EditRule):
        return compare_tokens(rows, pairs, rule)
    return compare_sets(rows, pairs, rule)


def compare_sets(rows: Ragged, pairs: NDArray[np.integer], rule: SetRule) -> Compared:
    """Find which pairs of shingle sets reach a resemblance; arguments and result as of `compare_texts`.

    A merge of two ascending rows of ids decides a pair, and stops when too few ids are left.

    Example:
        >>> rows = Ragged(np.array([0, 4, 8, 11]), np.array([1, 2, 3, 4, 1, 2, 3, 9, 7, 8, 9], np.uint64))
        >>> compare_sets(rows, np.array([[0, 1], [0, 2]]), SetRule(3, 5)).similarity.tolist()
        [0.6, nan]
    """
    ends = np.ascontiguousarray(pairs.reshape(-1, 2), np.int64)
    totals = np.diff(rows.offsets)[ends].sum(axis=1)
    common = _count_common(rows, ends, least_common(totals, rule), len(ends) > FAMILY * len(rows.offsets))
    similarity = np.where(common > 0, common / np.maximum(totals - common, 1), np.nan)
    return Compared(common, similarity, np.zeros(len(ends), np.bool_))


@compiled
def _count_common(
    rows: Ragged,
    ends: NDArray[np.int64],
    need: NDArray[np.int64],
    is_family: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
) -> NDArray[np.int64]:
    """Return the number of ids that both rows of each pair have, 0 if it is less than `need`; (k,).

    In a family of many pairs, a row is compared with a pivot P once. With the ids that A and B lack of P, and those
    they have besides, |A & B| = |P| - |lacks of A or B| + |extras of A and B|: a few steps, if they are much like P.
    """
    offsets, ids = rows
    n = len(offsets) - 1
    bitmaps = _spread_bitmaps(rows, len(ends))
    pivots = _choose_pivots(ends, n) if is_family else np.arange(n)
    lack_ends, lacks, extra_ends, extras = _compare_with_pivots(rows, pivots) if is_family else _nothing(n)

    common = np.empty(len(ends), np.int64)
    for k in range(len(ends)):
        a, b = ends[k, 0], ends[k, 1]
        if len(bitmaps):
            both = offsets[a + 1] - offsets[a] + offsets[b + 1] - offsets[b]
            if both - count_different(bitmaps, a, b) < 2 * need[k]:
                common[k] = 0
                continue
        p = pivots[a]
        steps = lack_ends[a + 1] - lack_ends[a] + lack_ends[b + 1] - lack_ends[b]
        steps += extra_ends[a + 1] - extra_ends[a] + extra_ends[b + 1] - extra_ends[b]
        if is_family and p == pivots[b] and steps < offsets[a + 1] - offsets[a] + offsets[b + 1] - offsets[b]:
            lost = lack_ends[a + 1] - lack_ends[a] + lack_ends[b + 1] - lack_ends[b]
            lost -= overlap_or_less(lacks, lack_ends[a], lack_ends[a + 1], lack_ends[b], lack_ends[b + 1], 0)
            more = overlap_or_less(extras, extra_ends[a], extra_ends[a + 1], extra_ends[b], extra_ends[b + 1], 0)
            n_common = offsets[p + 1] - offsets[p] - lost + more
            common[k] = n_common if n_common >= need[k] else 0
        else:
            common[k] = max(overlap_or_less(ids, offsets[a], offsets[a + 1], offsets[b], offsets[b + 1], need[k]), 0)
    return common


@compiled
def _spread_bitmaps(rows: Ragged, pairs: int) -> NDArray[np.uint64]:
    """Return the bitmap of each row (`nddup.matching.bitmaps`), of some `BITS` bits an id; none for few pairs."""
    n, words = len(rows.offsets) - 1, 1
    if pairs < PAIRS_OF_ROW * n:
        return np.empty((0, 1), np.uint64)
    while 64 * words * n < BITS * len(rows.values):
        words *= 2
    bitmaps = np.zeros((n, words), np.uint64)
    for row in range(n):
        add_parities(bitmaps[row], rows.values[rows.offsets[row] : rows.offsets[row + 1]])
    return bitmaps


@compiled
def _choose_pivots(ends: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return for each row the least row within two pairs of it, itself included; (n,)."""
    pivots = np.arange(n)
    for _ in range(2):
        before = pivots.copy()
        for k in range(len(ends)):
            a, b = ends[k, 0], ends[k, 1]
            pivots[a] = min(pivots[a], before[b])
            pivots[b] = min(pivots[b], before[a])
    return pivots


@compiled
def _nothing(n: int) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    none = np.zeros(n + 1, np.int64)
    return none, np.empty(0, np.uint64), none, np.empty(0, np.uint64)


@compiled
def _compare_with_pivots(
    rows: Ragged, pivots: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    """Return the ids that each row lacks of its pivot, and those it has besides, as two ragged arrays of n rows."""
    offsets, ids = rows
    n, room = len(pivots), 0
    for row in range(n):
        room += offsets[pivots[row] + 1] - offsets[pivots[row]]
    lack_ends, extra_ends = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    lacks, extras = np.empty(room, np.uint64), np.empty(len(ids), np.uint64)
    n_lacks, n_extras = 0, 0
    for row in range(n):
        i, end = offsets[row], offsets[row + 1]
        j, pivot_end = offsets[pivots[row]], offsets[pivots[row] + 1]
        while pivots[row] != row and (i < end or j < pivot_end):
            if j == pivot_end or (i < end and ids[i] < ids[j]):
                extras[n_extras] = ids[i]
                n_extras += 1
                i += 1
            elif i == end or ids[j] < ids[i]:
                lacks[n_lacks] = ids[j]
                n_lacks += 1
                j += 1
            else:
                i += 1
                j += 1
        lack_ends[row + 1], extra_ends[row + 1] = n_lacks, n_extras
    return lack_ends, lacks[:n_lacks].copy(), extra_ends, extras[:n_extras].copy()


def divide_pairs(pairs: NDArray[np.int64], sizes: NDArray[np.int64], most: int = HELD) -> Iterator[NDArray[np.int64]]:
    """Yield the pairs in portions whose rows have about `most` values together, so that families meet in few portions.

    Args:
        pairs: (k, 2), rows; fastest if the first of each pair ascend.
        sizes: (n,), values of each row.
        most: values of the rows of a portion, unless one pair has more.

    Yields:
        Places of pairs; each pair is in one portion.
    """
    # Rows one after another fill tiles of half the size. The pairs of two tiles stay together.
    tiles = (np.cumsum(sizes) - sizes) // max(most // 2, 1)
    keys = tiles[pairs[:, 0]] * (int(tiles.max(initial=0)) + 1) + tiles[pairs[:, 1]]
    order = np.argsort(keys, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(keys[order])) + 1, len(order)) if len(order) else np.empty(0, np.int64)
    work = np.append(0, np.cumsum(sizes[pairs[order]].sum(axis=1)))
    low = start = n_values = 0
    for end in ends.tolist():
        n_values += min(int(work[end] - work[start]), most)
        start = end
        if n_values >= most or end == len(order):
            for first in range(low, end, TOGETHER):
                yield order[first : min(first + TOGETHER, end)]
            low, n_values = end, 0


def compare_taken(take: TakeTexts, pairs: NDArray[np.integer], rule: ConfirmRule) -> Compared:
    """Compare pairs of texts, given by their places, as `compare_texts`; each is taken once."""
    needed, rows = np.unique(pairs, return_inverse=True)
    return compare_texts(take(needed.astype(np.int64)), rows.reshape(-1, 2), rule)


def compare_one(take: TakeTexts, rule: ConfirmRule, one: int, others: NDArray[np.int64]) -> Compared:
    """Compare one text with several others, as `compare_taken`."""
    return compare_taken(take, np.stack([np.full(len(others), one), others], axis=1), rule)


def compare_held(rows: Ragged, rule: SetRule, one: int, others: NDArray[np.int64]) -> Compared:
    """Compare one of n sets of shingles with several others, as `compare_sets`, without a copy of them."""
    return compare_sets(rows, np.stack([np.full(len(others), one), others], axis=1), rule)


def confirms_any(compare: Callable[[int, NDArray[np.int64]], Compared], one: int, others: NDArray[np.int64]) -> bool:
    """Return whether one text is confirmed with any of several others, which are compared with it in order."""
    portions = (others[low : low + AHEAD] for low in range(0, len(others), AHEAD))
    return any(compare(one, portion).is_near.any() for portion in portions)


def compare_tokens(tokens: Ragged, pairs: NDArray[np.integer], rule: EditRule) -> Compared:
    """
    Find which pairs of texts are confirmed by their tokens.

    Pairs that the lengths of both texts rule out, or how often each token occurs in both, are not compared. RapidFuzz
    finds the LCS, 64 tokens a step, and stops when the threshold is out of reach. It is fastest on strings, so each
    distinct token of a block of pairs becomes one character. A pair beyond the bound on the work gets a lower bound of
    its LCS (`bound_common`): it is never confirmed in error, but it may be left unconfirmed.

    Source: Hyyrö 2004, Bit-parallel LCS-length computation revisited.

    Args:
        tokens: n rows of token numbers in the order of the text; only equal tokens have equal numbers.
        pairs: (k, 2), rows of `tokens`; fastest if pairs with the same row are adjacent.
        rule: the threshold and the bound on the work.

    Returns:
        The similarity of each confirmed pair. A text without tokens is similar to none.

    Cost: for a pair at most a b / 64 steps, less if the threshold is soon out of reach; beyond the bound a sort of the
        tokens and `rule.cells` / 64 steps. Memory: some 30 bytes per token, for `BLOCK` tokens.

    Example:
        >>> rows = Ragged(np.array([0, 4, 8, 11]), np.array([1, 2, 3, 4, 1, 2, 9, 4, 7, 8, 9], np.uint64))
        >>> compare_tokens(rows, np.array([[0, 1], [0, 2]]), EditRule(3, 4)).similarity.tolist()
        [0.75, nan]
    """
    ends = pairs.reshape(-1, 2).astype(np.int64)
    sizes = np.diff(tokens.offsets)[ends]
    totals = sizes.sum(axis=1)
    need = least_common(totals, rule)

    can_be = sizes.min(axis=1, initial=np.iinfo(np.int64).max) >= need
    possible = np.flatnonzero(can_be)
    can_be[possible] = _bags_allow(tokens, ends[possible], need[possible])
    is_long = can_be & ((sizes[:, 0] > rule.cells // np.maximum(sizes[:, 1], 1)) | (totals > BLOCK))
    common = np.zeros(len(ends), np.int64)
    for rows in _blocks(np.flatnonzero(can_be & ~is_long), totals):
        common[rows] = _measure(tokens, ends[rows], need[rows])
    for row in np.flatnonzero(is_long):
        first, second = (tokens.values[tokens.offsets[end] : tokens.offsets[end + 1]] for end in ends[row])
        common[row] = bound_common(first, second, rule.cells, rule.window, int(need[row]))

    common[common < need] = 0
    similarity = np.where(common > 0, 2 * common / np.maximum(totals, 1), np.nan)
    return Compared(common, similarity, is_long)


@compiled
def _bags_allow(tokens: Ragged, ends: NDArray[np.int64], need: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether both texts of each pair have `need` tokens in common, whatever their order; (k,).

    Tokens are counted in `BAG` places by their hash; that several share a place only loosens the bound.
    """
    offsets, values = tokens
    bags = np.zeros((len(offsets) - 1, BAG), np.int32)
    for row in range(len(offsets) - 1):
        for at in range(offsets[row], offsets[row + 1]):
            bags[row, values[at] * FACTOR >> BAG_SHIFT] += 1
    allowed = np.empty(len(ends), np.bool_)
    for k in range(len(ends)):
        first, second = bags[ends[k, 0]], bags[ends[k, 1]]
        common = np.int32(0)
        for place in range(BAG):
            common += min(first[place], second[place])
        allowed[k] = common >= need[k]
    return allowed


def _blocks(rows: NDArray[np.int64], totals: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield consecutive rows that have at most `BLOCK` tokens together."""
    ends = np.cumsum(totals[rows])
    low = 0
    while low < len(rows):
        before = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, before + BLOCK, "right")))
        yield rows[low:high]
        low = high


def _measure(tokens: Ragged, pairs: NDArray[np.int64], need: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the LCS of each pair of a block, (k,); 0 where it is well below what the pair needs."""
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most runs compare no tokens
    from rapidfuzz.process import cpdist  # noqa: PLC0415

    rows, places = np.unique(pairs, return_inverse=True)
    texts = spell(take_rows(tokens, rows))
    first, second = ([texts[place] for place in column] for column in places.reshape(-1, 2).T.tolist())

    # A call takes one cut-off, a count. With a share as cut-off, `Indel.normalized_similarity` loses pairs that lie
    # exactly at it.
    order = np.argsort(need, kind="stable")
    level = (np.log(need[order]) / np.log(CLOSE)).astype(np.int64)
    values = np.zeros(len(need), np.int64)
    for group in np.split(order, np.flatnonzero(np.diff(level)) + 1):
        left, right = [first[i] for i in group], [second[i] for i in group]
        values[group] = cpdist(left, right, scorer=LCSseq.similarity, score_cutoff=int(need[group[0]]), dtype=np.int64)
    return values


def spell(tokens: Ragged) -> list[str]:
    """Spell each row as a string, one character per token; at most `BLOCK` distinct tokens in all rows."""
    codes = number_keys(np.ascontiguousarray(tokens.values))[0].astype(np.uint32)
    codes[codes >= SURROGATES] += AFTER
    whole = codes.astype("<u4").tobytes().decode("utf-32-le")
    return [whole[low:high] for low, high in pairwise(tokens.offsets.tolist())]
