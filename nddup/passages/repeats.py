"""Repeated windows, the passages they chain into, and the tokens that may be cut: token hashes in, arrays out.

    find_anchors     rows of token hashes  -> Anchors: the places where windows can be equal
    number_windows   rows, ranks           -> Windows: the repeated ones, numbered
    chain_windows    Windows               -> Repeats: Passages, and Cuts
    find_repeats     rows, ranks           -> Repeats, by the three above

A *window* is `length` consecutive tokens of one document. It is *repeated* if it has places in two documents or, where
repeats within one document count too, two places at all. Nothing is sampled away, and no repeated window loses its last
copy.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.errors import CapacityError
from nddup.ground.arrays import HASH_MULTIPLIER, Ragged, number_keys
from nddup.ground.kernels import Written, compiled
from nddup.sketching.rolling_hash import SHINGLE_BASE

MOST_TOKENS: Final = (1 << 31) - 1
"""Maximum number of tokens of a collection in memory: windows are numbered with 32 bits."""

SCATTER: Final = np.uint64(0xBF58476D1CE4E5B9)  # of SplitMix64's finaliser: odd, bits set throughout
SHIFT: Final = np.uint64(31)


class Anchors(NamedTuple):
    """The a anchors of n documents, in the order of the tokens.

    Attributes:
        keys: (a,), the hash of each anchor.
        documents: (a,), the document of each.
        firsts: (a,), the first window that has this anchor, by the place of its first token among all tokens.
        ends: (a,), the window after the last that has it; all windows between have it too.
    """

    keys: NDArray[np.uint64]
    documents: NDArray[np.int32]
    firsts: NDArray[np.int64]
    ends: NDArray[np.int64]


class Windows(NamedTuple):
    """The distinct windows near shared anchors, u of them, among the t tokens of some documents.

    Attributes:
        numbers: (t,), for each token the number of the repeated window that begins there, -1 if none does.
        follows: (t,), whether a repeated window begins there which the one at the next token follows.
        places: (u,), how many places each window has.
        documents: (u,), in how many documents.
        firsts: (u,), its first place, among all tokens; -1 if that is in none of these documents.
        homes: (u,), the document of its first place, or -1.
    """

    numbers: NDArray[np.int32]
    follows: NDArray[np.bool_]
    places: NDArray[np.int64]
    documents: NDArray[np.int32]
    firsts: NDArray[np.int64]
    homes: NDArray[np.int32]


class Passages(NamedTuple):
    """p passages, in the order of their first occurrence among all tokens, and their o occurrences, in order of tokens.

    Window v *follows* u if the places of v are those of u, each one token later. A *passage* is a maximal chain of
    repeated windows: it occurs at the places of its first window, and has `length` tokens and one more for each link.
    Every repeated window is in exactly one passage.

    Attributes:
        tokens: (p,), tokens of each passage.
        documents: (p,), documents in which it occurs.
        places: (p,), its occurrences.
        firsts: (p,), its first place among all tokens, by the rank of documents; -1 if that is in none of these.
        passage: (o,), the passage of each occurrence.
        document: (o,), its document.
        token: (o,), its first token in the document.
    """

    tokens: NDArray[np.int64]
    documents: NDArray[np.int32]
    places: NDArray[np.int64]
    firsts: NDArray[np.int64]
    passage: NDArray[np.int32]
    document: NDArray[np.int32]
    token: NDArray[np.int64]


class Cuts(NamedTuple):
    """What may be cut of n documents.

    The *first* place of a window is the one in the document of the lowest rank, and there the earliest. A token may be
    cut iff a repeated window covers it and none of those that cover it is at its first place; where only other
    documents count, no place in the document of the first place may be cut.

    Source: Lee et al. 2022, Deduplicating training data makes language models better, ACL (cutting repeated runs).

    Attributes:
        document: (c,), the document of each run of tokens that may be cut, ascending.
        token: (c,), its first token in the document, ascending within a document.
        token_end: (c,), the token after its last.
        covered: (n,), tokens of each document that a repeated window covers.
        cut: (n,), tokens of each that may be cut.
        second_copies: places of repeated windows, none the first, of which no token may be cut.
    """

    document: NDArray[np.int32]
    token: NDArray[np.int64]
    token_end: NDArray[np.int64]
    covered: NDArray[np.int64]
    cut: NDArray[np.int64]
    second_copies: int


class Repeats(NamedTuple):
    """The passages of a collection, and what may be cut of it."""

    passages: Passages
    cuts: Cuts


def find_repeats(rows: Ragged, ranks: NDArray[np.int64], length: int, *, within: bool = False) -> Repeats:
    """Find all passages of documents, and the tokens that may be cut.

    Memory: per token 8 bytes of hash, 4 of number, 2 of marks; per anchor 28 and up to 16 of slots; per window near a
    shared anchor up to 16 of slots and, if distinct, 40. An anchor or a window with 100,000 places costs what 100,000
    of one place each do: places are counted, never paired.

    Args:
        rows: n rows: the hashes of the tokens of each document, in order. Tokens are equal iff their hashes are.
        ranks: (n,), the place of each document in the order of preference, all distinct; the lowest has the first copy.
        length: tokens of a window, at least 1.
        within: whether places in one document are a repetition too.

    Raises:
        CapacityError: for more than `MOST_TOKENS` tokens.

    Cost: linear in tokens; comparing a window with an equal one costs `length` for the first of a run, else 1.

    Example:
        >>> rows = Ragged(np.array([0, 4, 7]), np.array([1, 2, 3, 4, 9, 2, 3], np.uint64))
        >>> found = find_repeats(rows, np.arange(2), 2)
        >>> found.passages.tokens.tolist(), found.passages.token.tolist()
        ([2], [1, 1])
        >>> found.cuts.document.tolist(), found.cuts.token.tolist(), found.cuts.token_end.tolist()
        ([1], [1], [3])
    """
    if len(rows.values) > MOST_TOKENS:
        raise CapacityError(
            f"{len(rows.values):,} tokens: passages are found in memory for at most {MOST_TOKENS:,}; give fewer inputs,"
            " or --engine spark"
        )
    windows = number_windows(rows, ranks, length, within=within)
    return chain_windows(rows.offsets, windows, length, within=within)


def chain_windows(offsets: NDArray[np.int64], windows: Windows, length: int, *, within: bool) -> Repeats:
    """Chain repeated windows into passages, and find what may be cut; arguments as of `find_repeats`."""
    numbers, follows, firsts = windows.numbers, windows.follows, windows.firsts
    return Repeats(
        Passages(*_chain(offsets, numbers, follows, windows.places, windows.documents, firsts, length)),
        Cuts(*_cut(offsets, numbers, firsts, windows.homes, length, within)),
    )


def find_anchors(rows: Ragged, length: int) -> Anchors:
    """Return the anchors of all windows of `length` tokens; documents of fewer tokens have none.

    The anchor of a window is the hash of k = max(1, length // 2) tokens, the rightmost smallest of its length - k + 1
    such hashes. Equal windows have equal anchors at equal distances, so only windows whose anchor stands in two
    documents are compared: by a fingerprint of 64 bits, and then token by token. Ordinary text has .071 anchors a
    token. Text that repeats itself, such as one token many times, has one anchor for each token, and never more.

    Source: Schleimer, Wilkerson, Aiken 2003, Winnowing: local algorithms for document fingerprinting, SIGMOD.

    Cost: two products a token, and its part of a queue of smallest hashes.
    """
    size = max(1, length // 2)
    leaving = np.uint64(pow(int(SHINGLE_BASE), size, 2**64))
    room = len(rows.values)  # of memory that is not written to, no page is taken
    keys, documents = np.empty(room, np.uint64), np.empty(room, np.int32)
    firsts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    count = _list_anchors(rows.offsets, rows.values, length, size, leaving, keys, documents, firsts, ends)
    return Anchors(keys[:count], documents[:count], firsts[:count], ends[:count])


def number_windows(rows: Ragged, ranks: NDArray[np.int64], length: int, *, within: bool = False) -> Windows:
    """Number the repeated windows; arguments as of `find_repeats`."""
    anchors = find_anchors(rows, length)
    groups, count = number_keys(anchors.keys)
    is_shared = _find_shared(groups, anchors.documents, count, within)[groups] if len(groups) else np.empty(0, np.bool_)
    firsts, ends = anchors.firsts[is_shared], anchors.ends[is_shared]
    leaving = np.uint64(pow(int(SHINGLE_BASE), length, 2**64))
    numbers, count = _number(rows.values, firsts, ends, length, leaving)
    counts = _count_places(rows.offsets, numbers, ranks, count, within)
    return Windows(numbers, _link(rows.offsets, numbers, counts[0]), *counts)


@compiled
def _list_anchors(  # noqa: C901 - one pass over the tokens
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    length: int,
    size: int,
    leaving: np.uint64,
    keys: Written[np.uint64],
    documents: Written[np.int32],
    firsts: Written[np.int64],
    ends: Written[np.int64],
) -> int:
    """Write the anchors; return their number, at most one a token."""
    span = length - size + 1  # hashes in a window
    ring = np.empty(span, np.int64)  # places of hashes that may yet be smallest, ascending; their hashes ascend too
    ring_hashes = np.empty(span, np.uint64)
    n_anchors = 0
    for document in range(len(offsets) - 1):
        start, end = offsets[document], offsets[document + 1]
        if end - start < length:
            continue
        rolling = np.uint64(0)
        for i in range(start, start + size - 1):
            rolling = rolling * SHINGLE_BASE + hashes[i]
        head, count, last = 0, 0, np.int64(-1)
        for at in range(start, end - size + 1):
            rolling = rolling * SHINGLE_BASE + hashes[at + size - 1]
            if at > start:
                rolling -= leaving * hashes[at - 1]
            # The polynomial's low bits follow those of its tokens: a mixed hash has no smallest token.
            mixed = (rolling ^ (rolling >> SHIFT)) * SCATTER
            mixed ^= mixed >> SHIFT
            if count and ring[head] <= at - span:
                head = head + 1 if head + 1 < span else 0
                count -= 1
            while count:
                tail = head + count - 1
                tail = tail if tail < span else tail - span
                if ring_hashes[tail] < mixed:
                    break
                count -= 1
            tail = head + count
            tail = tail if tail < span else tail - span
            ring[tail], ring_hashes[tail] = at, mixed
            count += 1
            window = at - span + 1
            if window < start:
                continue
            if ring[head] != last:
                if last >= 0:
                    ends[n_anchors - 1] = window
                keys[n_anchors], documents[n_anchors], firsts[n_anchors] = ring_hashes[head], document, window
                last = ring[head]
                n_anchors += 1
        ends[n_anchors - 1] = end - length + 1
    return n_anchors


@compiled
def _find_shared(
    groups: NDArray[np.int32],
    documents: NDArray[np.int32],
    count: int,
    within: bool,  # noqa: FBT001 - a kernel takes no keywords
) -> NDArray[np.bool_]:
    """Return whether each distinct anchor is in two documents, or has two places, (count,)."""
    first = np.full(count, -1, np.int32)
    is_shared = np.zeros(count, np.bool_)
    for i in range(len(groups)):
        group = groups[i]
        if first[group] < 0:
            first[group] = documents[i]
        elif within or first[group] != documents[i]:
            is_shared[group] = True
    return is_shared


@compiled
def _number(  # noqa: C901, PLR0912 - one pass over the windows
    hashes: NDArray[np.uint64], firsts: NDArray[np.int64], ends: NDArray[np.int64], length: int, leaving: np.uint64
) -> tuple[NDArray[np.int32], int]:
    """Number the distinct windows of the ranges `firsts` to `ends`; return the numbers by token, and their count."""
    n_windows = 0
    for i in range(len(firsts)):
        n_windows += ends[i] - firsts[i]
    bits = 4
    while (1 << bits) < 2 * n_windows:
        bits += 1
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    slots = np.full(1 << bits, -1, np.int32)
    keys = np.empty(n_windows, np.uint64)
    places = np.empty(n_windows, np.int64)
    numbers = np.full(len(hashes), -1, np.int32)

    count, rolling, rolled = 0, np.uint64(0), np.int64(-2)  # `rolled`: the window whose fingerprint is in `rolling`
    before = np.int64(-2)  # the place of the window equal to the one before this
    for i in range(len(firsts)):
        for window in range(firsts[i], ends[i]):
            last = hashes[window + length - 1]
            if rolled == window - 1:
                rolling = rolling * SHINGLE_BASE + last - leaving * hashes[window - 1]
                # Where the windows before are equal, and the last tokens too, this one is equal to the next there.
                if before >= 0 and numbers[before + 1] >= 0 and hashes[before + length] == last:
                    rolled = np.int64(window)
                    numbers[window] = numbers[before + 1]
                    before = places[numbers[window]]
                    continue
            else:
                before = np.int64(-2)
                rolling = np.uint64(0)
                for t in range(window, window + length):
                    rolling = rolling * SHINGLE_BASE + hashes[t]
            rolled = np.int64(window)
            slot = np.int64((rolling * HASH_MULTIPLIER) >> shift)
            while slots[slot] >= 0:
                number = slots[slot]
                place = places[number]
                if keys[number] == rolling:
                    t = 0
                    while t < length and hashes[place + t] == hashes[window + t]:
                        t += 1
                    if t == length:
                        break
                slot = (slot + 1) & mask
            if slots[slot] < 0:
                slots[slot], keys[count], places[count] = count, rolling, window
                count += 1
            numbers[window] = slots[slot]
            before = places[slots[slot]]
    return numbers, count


@compiled
def _count_places(
    offsets: NDArray[np.int64],
    numbers: Written[np.int32],
    ranks: NDArray[np.int64],
    count: int,
    within: bool,  # noqa: FBT001 - a kernel takes no keywords
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Count the places and documents of each window and find its first place; windows not repeated get no number."""
    places, documents = np.zeros(count, np.int64), np.zeros(count, np.int32)
    firsts, homes, last = np.full(count, -1, np.int64), np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    for document in range(len(offsets) - 1):
        for at in range(offsets[document], offsets[document + 1]):
            number = numbers[at]
            if number < 0:
                continue
            places[number] += 1
            if last[number] != document:
                documents[number] += 1
                last[number] = document
                if homes[number] < 0 or ranks[document] < ranks[homes[number]]:
                    firsts[number], homes[number] = at, document
    for at in range(len(numbers)):
        number = numbers[at]
        if number >= 0 and documents[number] < 2 and not (within and places[number] > 1):  # noqa: PLR2004 - two
            numbers[at] = -1
    return places, documents, firsts, homes


@compiled
def _link(offsets: NDArray[np.int64], numbers: NDArray[np.int32], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each token whether a window begins there that the next one follows, (t,)."""
    unknown, differs = -1, -2
    following = np.full(len(places), unknown, np.int32)
    for document in range(len(offsets) - 1):
        end = offsets[document + 1]
        for at in range(offsets[document], end):
            number = numbers[at]
            if number < 0:
                continue
            after = numbers[at + 1] if at + 1 < end else -1
            if after < 0 or places[after] != places[number]:
                following[number] = differs
            elif following[number] == unknown:
                following[number] = after
            elif following[number] != after:
                following[number] = differs
    follows = np.zeros(len(numbers), np.bool_)
    for at in range(len(numbers)):
        follows[at] = numbers[at] >= 0 and following[numbers[at]] >= 0
    return follows


@compiled
def _chain(
    offsets: NDArray[np.int64],
    numbers: NDArray[np.int32],
    follows: NDArray[np.bool_],
    places: NDArray[np.int64],
    documents: NDArray[np.int32],
    firsts: NDArray[np.int64],
    length: int,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int64],
]:
    """Return the fields of `Passages`: a window that follows none begins a passage."""
    passage_of = np.full(len(places), -1, np.int32)
    heads = np.empty(len(places), np.int32)
    tokens = np.empty(len(places), np.int64)
    n_passages, n_occurrences = 0, 0
    for document in range(len(offsets) - 1):
        start, end = offsets[document], offsets[document + 1]
        for at in range(start, end):
            number = numbers[at]
            if number < 0 or (at > start and follows[at - 1]):
                continue
            n_occurrences += 1
            if passage_of[number] < 0:
                passage_of[number] = n_passages
                heads[n_passages] = number
                last = at
                while follows[last]:
                    last += 1
                tokens[n_passages] = length + last - at
                n_passages += 1

    which, home = np.empty(n_occurrences, np.int32), np.empty(n_occurrences, np.int32)
    token = np.empty(n_occurrences, np.int64)
    made = 0
    for document in range(len(offsets) - 1):
        start = offsets[document]
        for at in range(start, offsets[document + 1]):
            if numbers[at] < 0 or (at > start and follows[at - 1]):
                continue
            which[made], home[made], token[made] = passage_of[numbers[at]], document, at - start
            made += 1
    chosen = heads[:n_passages]
    return tokens[:n_passages], documents[chosen], places[chosen], firsts[chosen], which, home, token


@compiled
def _cut(  # noqa: C901 - one pass over the tokens
    offsets: NDArray[np.int64],
    numbers: NDArray[np.int32],
    firsts: NDArray[np.int64],
    homes: NDArray[np.int32],
    length: int,
    within: bool,  # noqa: FBT001 - a kernel takes no keywords
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int]:
    """Return the fields of `Cuts`."""
    n = len(offsets) - 1
    covered, cut = np.zeros(n, np.int64), np.zeros(n, np.int64)
    is_cut = np.zeros(len(numbers), np.bool_)
    n_runs = 0
    for document in range(n):
        covered_to, kept_to = np.int64(-1), np.int64(-1)
        for at in range(offsets[document], offsets[document + 1]):
            number = numbers[at]
            if number >= 0:
                covered_to = np.int64(at + length)
                if firsts[number] == at or (not within and homes[number] == document):
                    kept_to = np.int64(at + length)
            if at < covered_to:
                covered[document] += 1
                if at >= kept_to:
                    is_cut[at] = True
                    cut[document] += 1
                    n_runs += 1 if at == offsets[document] or not is_cut[at - 1] else 0

    runs, starts, ends = np.empty(n_runs, np.int32), np.empty(n_runs, np.int64), np.empty(n_runs, np.int64)
    made, second_copies = 0, 0
    for document in range(n):
        first, whole = offsets[document], 0  # `whole`: tokens up to here of which none is cut
        for at in range(first, offsets[document + 1]):
            if is_cut[at]:
                if at == first or not is_cut[at - 1]:
                    runs[made], starts[made] = document, at - first
                    made += 1
                ends[made - 1] = at - first + 1
                whole = 0
                continue
            whole += 1
            window = at - length + 1
            if whole >= length and numbers[window] >= 0:
                second_copies += 0 if firsts[numbers[window]] == window else 1
    return runs, starts, ends, covered, cut, second_copies
