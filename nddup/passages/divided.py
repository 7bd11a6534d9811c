"""The search for repeated windows divided among tasks: what each task posts, asks and answers, arrays in, arrays out.

    documents of a task    --post_anchors-->      POSTS       one row per distinct anchor and the tokens around it
    POSTS of an anchor     --list_asked-->        ASKED       the rows whose windows must be compared one by one
    these, by their task   --describe_windows-->  DETAILS     the fingerprints of their windows
    POSTS and DETAILS      --judge_windows-->     VERDICTS    places, documents and first place of the repeated windows
    these, by their task   --place_windows-->     `repeats.Windows`, to be chained and cut as on one machine

Memory of a task: its documents with 25 bytes a token beside texts and hashes; and some 150 bytes for each row of POSTS
of its anchors. An anchor with m distinct surroundings in all is m rows of one task.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER, Ragged, group_rows, number_keys
from nddup.ground.kernels import compiled
from nddup.passages.repeats import SCATTER, SHIFT, Anchors, Windows, find_anchors

WHOLE = -1
"""Size of a verdict over all windows of a row."""


class Posts(NamedTuple):
    """The r rows that a task posts, by anchor and digest.

    A row is an anchor with all tokens of the windows that have it, and one more: its *surroundings*, named by a digest.
    Places of one task with equal surroundings are one row that counts them: so a template in 100,000 pages is a few
    rows a task, and text of one token many times is two. Text around an anchor is compared by 64 bits beside the 64
    bits of the anchor. Only places of one anchor are compared: among n of them, two different texts are taken for equal
    with a probability of n² / 2^65.

    Attributes:
        keys: (r,), the hash of the anchor.
        digests: (r,), the hash of its surroundings.
        places: (r,), places of the task that have them.
        documents: (r,), documents of the task that have them.
        ranks: (r,), the lowest rank of these.
        tokens: (r,), in that document, the first token of the first window of the first such place.
    """

    keys: NDArray[np.uint64]
    digests: NDArray[np.uint64]
    places: NDArray[np.int64]
    documents: NDArray[np.int32]
    ranks: NDArray[np.int64]
    tokens: NDArray[np.int32]


class Posted(NamedTuple):
    """The rows of a task, its anchors, and the row of each."""

    posts: Posts
    anchors: Anchors
    rows: NDArray[np.int32]


class Details(NamedTuple):
    """The windows of d rows, one by one.

    Attributes:
        sizes: (d,), windows of each row, n in all.
        windows: (n + d,), fingerprints of the windows of each row, and of the one after its last; 0 if there is none.
        excess: (n,), documents of the row that an earlier row of the task with an equal window has counted.
    """

    sizes: NDArray[np.int32]
    windows: NDArray[np.uint64]
    excess: NDArray[np.int32]


class Verdicts(NamedTuple):
    """v runs of repeated windows of rows; those of a row are adjacent or all `WHOLE`.

    Attributes:
        rows: (v,), the row, in POSTS as judged or of the task.
        starts: (v,), the first window of the run, counted within the row.
        sizes: (v,), windows of the run, or `WHOLE`.
        places: (v,), places of each window.
        documents: (v,), documents of each.
        goes_on: (v,), whether the token after a window is the same at all its places.
        ranks: (v,), the rank of the document of the first place.
        tokens: (v,), there the first token of the run's first window.
    """

    rows: NDArray[np.int32]
    starts: NDArray[np.int32]
    sizes: NDArray[np.int32]
    places: NDArray[np.int64]
    documents: NDArray[np.int32]
    goes_on: NDArray[np.bool_]
    ranks: NDArray[np.int64]
    tokens: NDArray[np.int32]


_NONE = np.empty(0, np.int64)


def post_anchors(rows: Ragged, ranks: NDArray[np.int64], length: int) -> Posted:
    """Return the anchors of a task's documents, those with equal surroundings as one row.

    Args:
        rows: the hashes of the tokens of each document.
        ranks: (n,), the place of each document in the order of preference.
        length: tokens of a window.

    Cost: as `find_anchors`, and one product for each token of the surroundings: some five a token.
    """
    anchors = find_anchors(rows, length)
    digests = _digest(length, *rows, anchors.documents, anchors.firsts, anchors.ends)
    numbers = number_pairs(anchors.keys, digests)
    order, starts = group_rows(numbers.astype(np.uint64))
    firsts, of_rank = anchors.firsts - rows.offsets[anchors.documents], ranks[anchors.documents]
    counts = _count_rows(order, starts, anchors.documents, of_rank, firsts)
    at = order[starts[:-1]]
    return Posted(Posts(anchors.keys[at], digests[at], *counts), anchors, numbers)


def number_pairs(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Number the distinct pairs of two columns from 0, in the order in which they first appear."""
    numbers, _ = number_keys(first)
    others, _ = number_keys(second)
    both = numbers.astype(np.uint64) << np.uint64(32) | others.astype(np.uint64)
    return number_keys(both)[0]


def list_asked(posts: Posts, *, within: bool) -> NDArray[np.int64]:
    """Return the rows of POSTS whose anchor is shared, with different surroundings. `posts`: all of some anchors.

    If all places of an anchor have equal surroundings, every window there has the same places, and nothing more is
    asked. Otherwise each task returns the fingerprints of the windows of its rows, once for each distinct surroundings,
    and windows with equal fingerprints are counted together.
    """
    groups, count = number_keys(posts.keys)
    return np.flatnonzero((_is_shared(posts, groups, count, within=within) & ~_is_alike(posts, groups, count))[groups])


def describe_windows(rows: Ragged, posted: Posted, asked: NDArray[np.int64], length: int) -> Details:
    """Return the fingerprints of the windows of rows of a task.

    Args:
        rows: as of `post_anchors`.
        posted: the result of `post_anchors`.
        asked: the rows wanted, ascending; if one row of an anchor, then all.
        length: tokens of a window.

    Cost: `length` products for each window.
    """
    anchors = posted.anchors
    at = np.full(len(posted.posts.keys), -1, np.int64)
    at[posted.rows[::-1]] = np.arange(len(posted.rows))[::-1]
    at = at[asked]
    firsts, ends = anchors.firsts[at], anchors.ends[at]
    last = rows.offsets[anchors.documents[at] + 1] - length
    windows = _fingerprint(length, rows.values, firsts, ends, last)
    sizes = (ends - firsts).astype(np.int32)
    return Details(sizes, windows, _count_excess(posted, asked, sizes, windows))


def _count_excess(
    posted: Posted, asked: NDArray[np.int64], sizes: NDArray[np.int32], windows: NDArray[np.uint64]
) -> NDArray[np.int32]:
    """Return `Details.excess`: documents with several of the rows of one anchor are looked at window by window."""
    excess = np.zeros(int(sizes.sum()), np.int32)
    place = np.full(len(posted.posts.keys), -1, np.int64)
    place[asked] = np.arange(len(asked))
    row = place[posted.rows]
    of, documents = row[row >= 0], posted.anchors.documents[row >= 0]
    pairs = np.unique((of << 32) | documents)
    of, documents = pairs >> 32, pairs & ((1 << 32) - 1)
    groups = number_pairs(posted.posts.keys[asked[of]], documents.astype(np.uint64))
    several = np.bincount(groups)[groups] > 1
    of, groups = of[several], groups[several]
    if not len(of):
        return excess
    starts = np.cumsum(np.append(0, sizes))
    counts = sizes[of].astype(np.int64)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    window = np.repeat(starts[of], counts) + within
    spelled = windows[window + np.repeat(of, counts)]  # one more fingerprint a row than windows
    numbers = number_pairs(np.repeat(groups, counts).astype(np.uint64), spelled)
    _, first = np.unique(numbers, return_index=True)
    later = np.ones(len(numbers), np.bool_)
    later[first] = False
    np.add.at(excess, window[later], 1)
    return excess


def judge_windows(posts: Posts, asked: NDArray[np.int64], details: Details, *, within: bool) -> Verdicts:
    """Return the repeated windows of the rows of some anchors.

    Args:
        posts: all rows of these anchors, of all tasks.
        asked: the rows that `list_asked` gives, in the order of the details.
        details: their windows.
        within: whether places in one document are a repetition too.
    """
    groups, count = number_keys(posts.keys)
    is_whole = (_is_shared(posts, groups, count, within=within) & _is_alike(posts, groups, count))[groups]
    whole = _judge_whole(posts, groups, np.flatnonzero(is_whole))
    if not len(asked):
        return whole
    sizes = details.sizes.astype(np.int64)
    all_rows = np.repeat(asked, sizes + 1)
    numbers = number_pairs(groups[all_rows].astype(np.uint64), details.windows)
    runs = _judge_each(within, asked, sizes, numbers, details.windows, details.excess, *posts[2:])
    return Verdicts(*map(np.concatenate, zip(whole, runs, strict=True)))  # type: ignore[arg-type] # columns of equal types


def place_windows(rows: Ragged, ranks: NDArray[np.int64], posted: Posted, verdicts: Verdicts) -> Windows:
    """Return the repeated windows of a task's documents, for `repeats.chain_windows`."""
    order, starts = group_rows(verdicts.rows.astype(np.uint64))
    begins = np.full(len(posted.posts.keys) + 1, -1, np.int64)
    ends = begins.copy()
    having = verdicts.rows[order[starts[:-1]]]
    begins[having], ends[having] = starts[:-1], starts[1:]
    ordered = Verdicts(*(column[order] for column in verdicts))  # type: ignore[arg-type] # in the order of its fields
    anchors = posted.anchors
    numbers, goes_on, places, documents, first_ranks, tokens = _place(
        len(rows.values), posted.rows, anchors.firsts, anchors.ends, begins, ends, *ordered[1:]
    )
    follows = _link_places(rows.offsets, numbers, goes_on, places)
    by_rank = np.argsort(ranks)
    positions = np.minimum(np.searchsorted(ranks[by_rank], first_ranks), max(len(ranks) - 1, 0))
    homes = by_rank[positions] if len(ranks) else _NONE
    is_here = ranks[homes] == first_ranks
    firsts = np.where(is_here, rows.offsets[homes] + tokens, -1)
    return Windows(numbers, follows, places, documents, firsts, np.where(is_here, homes, -1).astype(np.int32))


def _is_shared(posts: Posts, groups: NDArray[np.int32], count: int, *, within: bool) -> NDArray[np.bool_]:
    """Return whether each anchor has places in two documents, or two places, (count,)."""
    if within:
        return np.asarray(np.bincount(groups, posts.places, count) > 1)
    lowest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(lowest, groups, posts.ranks)
    is_shared = np.zeros(count, np.bool_)
    is_shared[groups[(posts.documents > 1) | (posts.ranks != lowest[groups])]] = True
    return is_shared


def _is_alike(posts: Posts, groups: NDArray[np.int32], count: int) -> NDArray[np.bool_]:
    """Return whether each anchor has equal surroundings everywhere, (count,)."""
    one = np.zeros(count, np.uint64)
    one[groups] = posts.digests
    is_alike = np.ones(count, np.bool_)
    is_alike[groups[posts.digests != one[groups]]] = False
    return is_alike


def _judge_whole(posts: Posts, groups: NDArray[np.int32], rows: NDArray[np.int64]) -> Verdicts:
    """Return the verdicts of rows whose anchors have equal surroundings everywhere."""
    _, numbers = np.unique(groups[rows], return_inverse=True)
    places = np.bincount(numbers, posts.places[rows]).astype(np.int64)[numbers]
    documents = np.bincount(numbers, posts.documents[rows]).astype(np.int32)[numbers]
    order = np.lexsort((posts.tokens[rows], posts.ranks[rows], numbers))
    _, starts = np.unique(numbers[order], return_index=True)
    first = rows[order[starts]][numbers] if len(rows) else rows
    zeros = np.zeros(len(rows), np.int32)
    return Verdicts(
        rows.astype(np.int32), zeros, zeros + WHOLE, places, documents, zeros == 0, posts.ranks[first],
        posts.tokens[first],
    )  # fmt: skip


@compiled
def _digest(
    length: int,
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    documents: NDArray[np.int32],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.uint64]:
    """Return the hash of the surroundings of each anchor: their tokens, how many windows, whether the text goes on."""
    digests = np.empty(len(firsts), np.uint64)
    for i in range(len(firsts)):
        stop = ends[i] + length
        end = offsets[documents[i] + 1]
        goes_on = stop <= end
        value = np.uint64(2 * (ends[i] - firsts[i]) + (1 if goes_on else 0))
        for t in range(firsts[i], stop if goes_on else end):
            value = (value ^ hashes[t]) * SCATTER
            value ^= value >> SHIFT
        digests[i] = value
    return digests


@compiled
def _count_rows(
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    ranks: NDArray[np.int64],
    tokens: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Return the last fields of `Posts`; the anchors of a row are in the order of documents and tokens."""
    n_rows = len(starts) - 1
    counts, n_documents = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int32)
    lowest, firsts = np.empty(n_rows, np.int64), np.empty(n_rows, np.int32)
    for row in range(n_rows):
        last = -1
        for place in range(starts[row], starts[row + 1]):
            anchor = order[place]
            counts[row] += 1
            if documents[anchor] != last:
                last = documents[anchor]
                n_documents[row] += 1
                if n_documents[row] == 1 or ranks[anchor] < lowest[row]:
                    lowest[row], firsts[row] = ranks[anchor], tokens[anchor]
    return counts, n_documents, lowest, firsts


@compiled
def _fingerprint(
    length: int,
    hashes: NDArray[np.uint64],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    last: NDArray[np.int64],
) -> NDArray[np.uint64]:
    """Return `Details.windows`; `last` is the last window of the document of each row."""
    values = np.zeros(np.sum(ends - firsts) + len(firsts), np.uint64)
    at = 0
    for row in range(len(firsts)):
        for window in range(firsts[row], ends[row] + 1):
            value = HASH_MULTIPLIER
            if window <= last[row]:
                for t in range(window, window + length):
                    value = (value ^ hashes[t]) * SCATTER
                    value ^= value >> SHIFT
                values[at] = max(value, np.uint64(1))  # 0 is none
            at += 1
    return values


@compiled
def _judge_each(  # noqa: C901 - counts, then runs of equal counts
    within: bool,  # noqa: FBT001 - a kernel takes no keywords
    asked: NDArray[np.int64],
    sizes: NDArray[np.int64],
    numbers: NDArray[np.int32],
    windows: NDArray[np.uint64],
    excess: NDArray[np.int32],
    places: NDArray[np.int64],
    documents: NDArray[np.int32],
    ranks: NDArray[np.int64],
    tokens: NDArray[np.int32],
) -> tuple[
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.bool_],
    NDArray[np.int64],
    NDArray[np.int32],
]:
    """Return VERDICTS of rows of which each window has a number, and the one after the last as well."""
    count = 0
    for i in range(len(numbers)):
        count = max(count, numbers[i] + 1)
    n_places, n_documents = np.zeros(count, np.int64), np.zeros(count, np.int32)
    lowest, first = np.empty(count, np.int64), np.full(count, -1, np.int32)
    nexts = np.full(count, -1, np.int32)  # the window after each, -2 if it is not the same everywhere
    at, window = 0, 0
    for row in range(len(asked)):
        post = asked[row]
        for i in range(sizes[row]):
            number = numbers[at]
            n_places[number] += places[post]
            n_documents[number] += documents[post] - excess[window]
            token = tokens[post] + i
            if first[number] < 0 or (ranks[post], token) < (lowest[number], first[number]):
                lowest[number], first[number] = ranks[post], token
            after = numbers[at + 1] if windows[at + 1] else -2
            if nexts[number] == -1:
                nexts[number] = after
            elif nexts[number] != after:
                nexts[number] = -2
            at += 1
            window += 1
        at += 1

    room = len(excess)
    of, starts, lengths = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    chosen = np.empty(room, np.int32)
    made, at = 0, 0
    for row in range(len(asked)):
        is_open = False
        for i in range(sizes[row]):
            number = numbers[at]
            at += 1
            if n_documents[number] < 2 and not (within and n_places[number] > 1):  # noqa: PLR2004 - two
                is_open = False
                continue
            if is_open:
                before = chosen[made - 1]
                is_open = (
                    n_places[before] == n_places[number]
                    and n_documents[before] == n_documents[number]
                    and lowest[before] == lowest[number]
                    and first[before] + lengths[made - 1] == first[number]
                    and (nexts[before] >= 0) == (nexts[number] >= 0)
                )
            if is_open:
                lengths[made - 1] += 1
                continue
            of[made], starts[made], lengths[made], chosen[made] = asked[row], i, 1, number
            made += 1
            is_open = True
        at += 1
    chosen = chosen[:made]
    return (
        of[:made], starts[:made], lengths[:made], n_places[chosen], n_documents[chosen], nexts[chosen] >= 0,
        lowest[chosen], first[chosen],
    )  # fmt: skip


@compiled
def _place(
    n_tokens: int,
    anchor_rows: NDArray[np.int32],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
    begins: NDArray[np.int64],
    stops: NDArray[np.int64],
    starts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    places: NDArray[np.int64],
    documents: NDArray[np.int32],
    goes_on: NDArray[np.bool_],
    ranks: NDArray[np.int64],
    tokens: NDArray[np.int32],
) -> tuple[
    NDArray[np.int32], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]
]:
    """Number the repeated windows by their first place, and give each token the number of the one that begins there."""
    n_windows = 0
    for anchor in range(len(anchor_rows)):
        row = anchor_rows[anchor]
        for verdict in range(begins[row], stops[row]):
            n_windows += ends[anchor] - firsts[anchor] if sizes[verdict] < 0 else sizes[verdict]
    bits = 4
    while (1 << bits) < 2 * n_windows:
        bits += 1
    mask, shift = (1 << bits) - 1, np.uint64(64 - bits)
    slots = np.full(1 << bits, -1, np.int32)
    of_verdict, first_tokens = np.empty(n_windows, np.int64), np.empty(n_windows, np.int32)
    numbers, is_same = np.full(n_tokens, -1, np.int32), np.zeros(n_tokens, np.bool_)
    count = 0
    for anchor in range(len(anchor_rows)):
        row = anchor_rows[anchor]
        for verdict in range(begins[row], stops[row]):
            size = ends[anchor] - firsts[anchor] if sizes[verdict] < 0 else np.int64(sizes[verdict])
            for i in range(size):
                token = tokens[verdict] + i
                key = (np.uint64(ranks[verdict]) * SCATTER + np.uint64(token)) * HASH_MULTIPLIER
                slot = np.int64(key >> shift)
                while slots[slot] >= 0 and (
                    first_tokens[slots[slot]] != token or ranks[of_verdict[slots[slot]]] != ranks[verdict]
                ):
                    slot = (slot + 1) & mask
                if slots[slot] < 0:
                    slots[slot], of_verdict[count], first_tokens[count] = count, verdict, token
                    count += 1
                at = firsts[anchor] + starts[verdict] + i
                numbers[at], is_same[at] = slots[slot], goes_on[verdict]
    chosen = of_verdict[:count]
    return numbers, is_same, places[chosen], documents[chosen], ranks[chosen], first_tokens[:count].copy()


@compiled
def _link_places(
    offsets: NDArray[np.int64], numbers: NDArray[np.int32], goes_on: NDArray[np.bool_], places: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for each token whether a window begins there that the next one follows: where the next token is the same
    at all places of the window, those of the next window are no fewer, and it follows if they are no more.
    """
    follows = np.zeros(len(numbers), np.bool_)
    for document in range(len(offsets) - 1):
        for at in range(offsets[document], offsets[document + 1] - 1):
            number, after = numbers[at], numbers[at + 1]
            follows[at] = goes_on[at] and number >= 0 and after >= 0 and places[number] == places[after]
    return follows
