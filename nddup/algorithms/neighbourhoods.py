"""Bitmaps: what the miner and the cover know of a component and of one document's neighbourhood.

A component of the pair graph has m distinct sketches, named by their index 0 ... m-1, which is their
canonical order. Around one of them, the *pivot* d with sketch U, every neighbour e is two bitmaps:

    shared[e]   U ∩ sketch(e), bit i for the i-th feature of U
    near[e]     the neighbours of d that are near-duplicates of e

A neighbour is called by its *slot*, its bit in a set of neighbours. A row of the pair graph is stored as its
nonzero 64-bit words only; the slots of d are the bits of the nonzero words of its own row. So no m x m matrix
exists, the rows of a dense graph are copied word by word, and ascending slots are ascending documents.

Sets of bits are uint64 arrays. Counts and slots are int64: NumPy makes int64 with uint64 a float.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.algorithms.compiled import compiled

Bits = NDArray[np.uint64]

ONE = np.uint64(1)
PAIRS, FOURS, EIGHTS, BYTES = (
    np.uint64(0x5555555555555555),
    np.uint64(0x3333333333333333),
    np.uint64(0x0F0F0F0F0F0F0F0F),
    np.uint64(0x0101010101010101),
)


class Component(NamedTuple):
    """The sketches of a component and its pair graph, both directions of every pair."""

    feature_offsets: NDArray[np.int64]  # shape (m+1,)
    features: NDArray[np.int64]  # features of the sketches, numbered 0 ... f-1 within the component
    n_features: int  # f
    bounds: NDArray[np.int32]  # shape (m,), the least overlap each sketch needs
    word_offsets: NDArray[np.int64]  # shape (m+1,), the words of each row of the graph
    words: NDArray[np.int64]  # which 64 documents a word speaks of, ascending in a row
    word_bits: Bits  # and which of them are near-duplicates


class Neighbourhood(NamedTuple):
    """The neighbours of one pivot, by slot. What stands at the slots of other documents has no meaning."""

    pivot: int
    documents: NDArray[np.int64]  # shape (slots,), the document at each slot
    bounds: NDArray[np.int64]  # shape (slots,)
    shared: Bits  # shape (slots, ceil(|U| / 64))
    near: Bits  # shape (slots, slots / 64)
    neighbours: Bits  # shape (slots / 64,), the slots taken
    pivot_features: Bits  # shape (ceil(|U| / 64),), every feature of U


class Found(NamedTuple):
    """Sets found so far, with room for more; `counts` holds sets, member rows, work."""

    ends: NDArray[np.int64]
    members: NDArray[np.int32]
    supports: NDArray[np.int32]
    counts: NDArray[np.int64]


@compiled
def count_bits(word: np.uint64) -> int:
    """Count the bits of one word; LLVM knows this form and makes it one instruction."""
    word = word - ((word >> ONE) & PAIRS)
    word = (word & FOURS) + ((word >> np.uint64(2)) & FOURS)
    word = (word + (word >> np.uint64(4))) & EIGHTS
    return int(np.int64((word * BYTES) >> np.uint64(56)))


@compiled
def count_all(bits: Bits) -> int:
    """Count the bits of a set."""
    count = 0
    for i in range(bits.size):
        count += count_bits(bits[i])
    return count


@compiled
def count_common(left: Bits, right: Bits) -> int:
    """Count left ∩ right."""
    count = 0
    for i in range(left.size):
        count += count_bits(left[i] & right[i])
    return count


@compiled
def count_outside(left: Bits, right: Bits) -> int:
    """Count left minus right; 0 means that left lies inside right."""
    count = 0
    for i in range(left.size):
        count += count_bits(left[i] & ~right[i])
    return count


@compiled
def copy_bits(target: Bits, source: Bits) -> None:
    """Make target = source, as a plain loop: an array expression costs the compiler ten times as long."""
    for i in range(target.size):
        target[i] = source[i]


@compiled
def keep_common(target: Bits, other: Bits) -> None:
    """Make target = target ∩ other."""
    for i in range(target.size):
        target[i] &= other[i]


@compiled
def keep_outside(target: Bits, other: Bits) -> None:
    """Make target = target minus other."""
    for i in range(target.size):
        target[i] &= ~other[i]


@compiled
def has_slot(bits: Bits, slot: int) -> bool:
    """Tell whether a set holds a slot."""
    return bool((bits[slot >> 6] >> np.uint64(slot & 63)) & ONE)


@compiled
def add_slot(bits: Bits, slot: int) -> None:
    """Put a slot into a set."""
    bits[slot >> 6] |= ONE << np.uint64(slot & 63)


@compiled
def remove_slot(bits: Bits, slot: int) -> None:
    """Take a slot out of a set."""
    bits[slot >> 6] &= ~(ONE << np.uint64(slot & 63))


@compiled
def list_slots(bits: Bits, slots: NDArray[np.int64]) -> int:
    """Write the slots of a set, ascending, into `slots`; returns how many."""
    count = 0
    for i in range(bits.size):
        word = bits[i]
        while word != 0:
            slots[count] = (i << 6) + count_bits(~word & (word - ONE))
            count += 1
            word &= word - ONE
    return count


@compiled
def list_neighbours(n_documents: int, edges: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the neighbours of every document, ascending, as offsets (m+1,) and documents (2e,)."""
    offsets = np.zeros(n_documents + 1, np.int64)
    for i in range(edges.size):
        offsets[edges[i >> 1, i & 1] + 1] += 1
    for a in range(n_documents):
        offsets[a + 1] += offsets[a]
    unsorted, ascending = np.empty(edges.size, np.int64), np.empty(edges.size, np.int64)
    ends, sorted_ends = np.empty(n_documents, np.int64), np.empty(n_documents, np.int64)
    for a in range(n_documents):
        ends[a] = sorted_ends[a] = offsets[a]
    for i in range(edges.size):
        a, b = edges[i >> 1, i & 1], edges[i >> 1, 1 - (i & 1)]
        unsorted[ends[a]] = b
        ends[a] += 1
    # Sent back from ascending ends, the neighbours of every document arrive ascending.
    for b in range(n_documents):
        for i in range(offsets[b], offsets[b + 1]):
            a = unsorted[i]
            ascending[sorted_ends[a]] = b
            sorted_ends[a] += 1
    return offsets, ascending


@compiled
def pack_graph(n_documents: int, edges: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64], Bits]:
    """
    Pack the edges into rows of nonzero words.

    Args:
        n_documents: m.
        edges: shape (e, 2), each pair once, in any order.

    Returns:
        `word_offsets`, `words` and `word_bits` of a Component; at most 2e words. Cost O(m + e).
    """
    starts, neighbours = list_neighbours(n_documents, edges)
    offsets = np.zeros(n_documents + 1, np.int64)
    words = np.empty(neighbours.size, np.int64)
    bits = np.zeros(neighbours.size, np.uint64)
    count = 0
    for a in range(n_documents):
        for i in range(starts[a], starts[a + 1]):
            word = neighbours[i] >> 6
            if count == offsets[a] or words[count - 1] != word:
                words[count] = word
                count += 1
            bits[count - 1] |= ONE << np.uint64(neighbours[i] & 63)
        offsets[a + 1] = count
    return offsets, words[:count], bits[:count]


@compiled
def fill_shared(
    component: Component,
    pivot: int,
    place: Neighbourhood,
    slots: NDArray[np.int64],
    positions: NDArray[np.int64],
) -> None:
    """Fill `place.shared`; `positions` holds -1 for every feature, before and after."""
    first = component.feature_offsets[pivot]
    size = component.feature_offsets[pivot + 1] - first
    for i in range(size):
        positions[component.features[first + i]] = i
    for k in range(slots.size):
        document = place.documents[slots[k]]
        row = place.shared[slots[k]]
        for i in range(row.size):
            row[i] = 0
        for i in range(component.feature_offsets[document], component.feature_offsets[document + 1]):
            position = positions[component.features[i]]
            if position >= 0:
                add_slot(row, position)
    for i in range(size):
        positions[component.features[first + i]] = -1


@compiled
def fill_near(
    component: Component,
    pivot: int,
    place: Neighbourhood,
    slots: NDArray[np.int64],
    local_words: NDArray[np.int64],
) -> None:
    """Fill `place.near`; `local_words` holds -1 for every word, before and after."""
    first = component.word_offsets[pivot]
    width = place.neighbours.size
    for i in range(width):
        local_words[component.words[first + i]] = i
    for k in range(slots.size):
        document = place.documents[slots[k]]
        row = place.near[slots[k]]
        for i in range(row.size):
            row[i] = 0
        for i in range(component.word_offsets[document], component.word_offsets[document + 1]):
            local = local_words[component.words[i]]
            if local >= 0:
                row[local] = component.word_bits[i]
    for i in range(width):
        local_words[component.words[first + i]] = -1


@compiled
def visit_neighbourhood(
    component: Component, pivot: int, positions: NDArray[np.int64], local_words: NDArray[np.int64]
) -> Neighbourhood:
    """
    Build the bitmaps of a pivot's neighbours.

    Args:
        component: the component.
        pivot: the document d.
        positions: scratch, shape (n_features,), all -1.
        local_words: scratch, shape (ceil(m / 64),), all -1.

    Returns:
        The neighbourhood. Costs the sketches of the neighbours and their rows of the graph, each read once.
    """
    first, last = component.word_offsets[pivot], component.word_offsets[pivot + 1]
    width = last - first
    size = component.feature_offsets[pivot + 1] - component.feature_offsets[pivot]
    pivot_features = np.zeros((size + 63) >> 6, np.uint64)
    for i in range(size):
        add_slot(pivot_features, i)
    documents = np.empty(width << 6, np.int64)
    bounds = np.empty(width << 6, np.int64)
    neighbours = component.word_bits[first:last]
    scratch = np.empty(width << 6, np.int64)
    slots = scratch[: list_slots(neighbours, scratch)]
    for slot in slots:
        documents[slot] = (component.words[first + (slot >> 6)] << 6) + (slot & 63)
        bounds[slot] = component.bounds[documents[slot]]
    shared = np.empty((width << 6, pivot_features.size), np.uint64)
    near = np.empty((width << 6, width), np.uint64)
    place = Neighbourhood(pivot, documents, bounds, shared, near, neighbours, pivot_features)
    fill_shared(component, pivot, place, slots, positions)
    fill_near(component, pivot, place, slots, local_words)
    return place


@compiled
def find_later_slots(component: Component, pivot: int, later: Bits) -> None:
    """Write into `later` the neighbours that come after the pivot in canonical order."""
    first = component.word_offsets[pivot]
    for i in range(later.size):
        start = component.words[first + i] << 6
        later[i] = component.word_bits[first + i]
        if start + 63 <= pivot:
            later[i] = 0
        elif start <= pivot:
            # The bits above the pivot's own; shifting by 64 is undefined, hence in two steps.
            later[i] &= (~np.uint64(0) << np.uint64(pivot - start)) << ONE


@compiled
def empty_found() -> Found:
    """Start with nothing found and little room."""
    return Found(np.empty(16, np.int64), np.empty(256, np.int32), np.empty(16, np.int32), np.zeros(3, np.int64))


@compiled
def make_room(found: Found, size: int) -> Found:
    """Return the same sets with room for one more of `size` members, at least doubled when full."""
    ends, members, supports, counts = found
    if counts[0] == ends.size:
        ends = np.empty(2 * found.ends.size, np.int64)
        supports = np.empty(2 * found.ends.size, np.int32)
        for i in range(counts[0]):
            ends[i] = found.ends[i]
            supports[i] = found.supports[i]
    if counts[1] + size > members.size:
        members = np.empty(2 * (found.members.size + size), np.int32)
        for i in range(counts[1]):
            members[i] = found.members[i]
    return Found(ends, members, supports, counts)


@compiled
def add_found(found: Found, place: Neighbourhood, members: Bits, support: int, slots: NDArray[np.int64]) -> Found:
    """Add the pivot and `members` as one set, ascending; the sets may move to more room."""
    size = list_slots(members, slots)
    found = make_room(found, size + 1)
    ends, rows, supports, counts = found
    at = counts[1]
    pivot_written = False
    for i in range(size):
        document = place.documents[slots[i]]
        if document > place.pivot and not pivot_written:
            rows[at] = place.pivot
            at += 1
            pivot_written = True
        rows[at] = document
        at += 1
    if not pivot_written:
        rows[at] = place.pivot
        at += 1
    counts[1] = at
    ends[counts[0]] = at
    supports[counts[0]] = support
    counts[0] += 1
    return found
