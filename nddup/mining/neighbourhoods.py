"""Bitmaps of the neighbourhood of one document, as the miner and the cover read it.

    make_component        features, bounds, pairs  -> Component: features numbered, holders listed, pair graph packed
    visit_neighbourhood   Component, pivot         -> Neighbourhood: two bitmaps of every neighbour, by slot
    look_around, fill_near                         -> the same, the second only for neighbours that are asked for
    find_later            Component, pivot         -> the part of the pivot's row that comes after it
    count_visit, bound_memory                      -> the work of a visit; the memory of mining a component
    count_all, count_common, keep_common, list_slots, …    sets of small numbers as bits of uint64 words

A component of the pair graph has m distinct sketches, named by their index 0 ... m-1, which is their canonical order.
Bit i of a set is bit i mod 64 of word i // 64. Counts and slots are int64 and are not mixed with uint64: NumPy makes a
float of the two.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled

Bits = NDArray[np.uint64]

ONE = np.uint64(1)
FULL = ~np.uint64(0)
"""A word of 64 ones."""
PAIRS, FOURS, EIGHTS, BYTES = (
    np.uint64(0x5555555555555555),
    np.uint64(0x3333333333333333),
    np.uint64(0x0F0F0F0F0F0F0F0F),
    np.uint64(0x0101010101010101),
)

SPARSE = 4
"""Maximum number of slots allotted for each neighbour; past this, neighbours are numbered without gaps."""


@compiled
def count_bits(word: np.uint64) -> int:
    """Count the bits of one word, by pairs, fours, eights; LLVM compiles this form to one instruction."""
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
    """Count the bits of left ∩ right."""
    count = 0
    for i in range(left.size):
        count += count_bits(left[i] & right[i])
    return count


@compiled
def count_outside(left: Bits, right: Bits) -> int:
    """Count the bits of left minus right; 0 means that left lies inside right."""
    count = 0
    for i in range(left.size):
        count += count_bits(left[i] & ~right[i])
    return count


@compiled
def copy_bits(target: Written[np.uint64], source: Bits) -> None:
    """Make target = source in a plain loop: an array expression takes ten times as long to compile."""
    for i in range(target.size):
        target[i] = source[i]


@compiled
def keep_common(target: Written[np.uint64], other: Bits) -> None:
    """Make target = target ∩ other."""
    for i in range(target.size):
        target[i] &= other[i]


@compiled
def keep_outside(target: Written[np.uint64], other: Bits) -> None:
    """Make target = target minus other."""
    for i in range(target.size):
        target[i] &= ~other[i]


@compiled
def has_slot(bits: Bits, slot: int) -> bool:
    """Tell whether a set holds a slot."""
    return bool((bits[slot >> 6] >> np.uint64(slot & 63)) & ONE)


@compiled
def add_slot(bits: Written[np.uint64], slot: int) -> None:
    """Put a slot into a set."""
    bits[slot >> 6] |= ONE << np.uint64(slot & 63)


@compiled
def remove_slot(bits: Written[np.uint64], slot: int) -> None:
    """Take a slot out of a set."""
    bits[slot >> 6] &= ~(ONE << np.uint64(slot & 63))


@compiled
def list_slots(bits: Bits, slots: Written[np.int64]) -> int:
    """Write the slots of a set, ascending, into `slots`, and return their number."""
    count = 0
    for i in range(bits.size):
        word = bits[i]
        while word != 0:
            # The position of the lowest set bit is the number of bits below it; then that bit is cleared.
            slots[count] = (i << 6) + count_bits(~word & (word - ONE))
            count += 1
            word &= word - ONE
    return count


class Component(NamedTuple):
    """The sketches of a component and its pair graph, both directions of every pair.

    Only the nonzero 64-bit words of a row of the graph are stored, so there is no m x m matrix.
    """

    feature_offsets: NDArray[np.int64]  # shape (m+1,)
    features: NDArray[np.int32]  # features of the sketches, numbered 0 ... f-1 within the component
    holder_offsets: NDArray[np.int64]  # shape (f+1,)
    holders: NDArray[np.int32]  # the documents that hold each feature
    bounds: NDArray[np.int32]  # shape (m,), the least overlap each sketch needs
    word_offsets: NDArray[np.int64]  # shape (m+1,), the words of each row of the graph
    words: NDArray[np.int64]  # w for the word of documents 64w ... 64w + 63, ascending in a row
    word_bits: Bits  # which of those 64 are near-duplicates


@compiled
def list_holders(
    feature_offsets: NDArray[np.int64], features: NDArray[np.int32], n_features: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """List the documents that hold each feature, ascending, as offsets (f+1,) and documents."""
    offsets, holders = np.zeros(n_features + 1, np.int64), np.empty(features.size, np.int32)
    for i in range(features.size):
        offsets[features[i] + 1] += 1
    for feature in range(n_features):
        offsets[feature + 1] += offsets[feature]

    ends = offsets[:-1].copy()
    for document in range(feature_offsets.size - 1):
        for i in range(feature_offsets[document], feature_offsets[document + 1]):
            holders[ends[features[i]]] = document
            ends[features[i]] += 1
    return offsets, holders


@compiled
def list_neighbours(n_documents: int, edges: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """List the neighbours of every document, ascending, as offsets (m+1,) and documents (2e,)."""
    offsets = np.zeros(n_documents + 1, np.int64)
    for i in range(edges.size):
        offsets[edges[i >> 1, i & 1] + 1] += 1
    for a in range(n_documents):
        offsets[a + 1] += offsets[a]

    unsorted, ascending = np.empty(edges.size, np.int32), np.empty(edges.size, np.int32)
    ends, sorted_ends = offsets[:-1].copy(), offsets[:-1].copy()
    for i in range(edges.size):
        a, b = edges[i >> 1, i & 1], edges[i >> 1, 1 - (i & 1)]
        unsorted[ends[a]] = b
        ends[a] += 1

    # Entering each document b, ascending, with its neighbours a makes the neighbours of every a ascending.
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
        `word_offsets`, `words` and `word_bits` of a Component; at most 2e words. Cost: O(m + e), 16 bytes a pair.
    """
    starts, neighbours = list_neighbours(n_documents, edges)

    # Neighbours ascend, so a word begins where the neighbour divided by 64 changes.
    offsets = np.zeros(n_documents + 1, np.int64)
    for a in range(n_documents):
        offsets[a + 1] = offsets[a]
        for i in range(starts[a], starts[a + 1]):
            offsets[a + 1] += i == starts[a] or (neighbours[i] >> 6) != (neighbours[i - 1] >> 6)

    words = np.empty(offsets[-1], np.int64)
    bits = np.zeros(offsets[-1], np.uint64)
    at = -1
    for a in range(n_documents):
        for i in range(starts[a], starts[a + 1]):
            if i == starts[a] or (neighbours[i] >> 6) != (neighbours[i - 1] >> 6):
                at += 1
                words[at] = neighbours[i] >> 6
            bits[at] |= ONE << np.uint64(neighbours[i] & 63)
    return offsets, words, bits


def make_component(
    feature_offsets: NDArray[np.int64],
    features: NDArray[np.int32],
    n_features: int,
    bounds: NDArray[np.int32],
    edges: NDArray[np.int32],
) -> Component:
    """Make a component from numbered features and pairs, shape (e, 2), each pair once."""
    offsets = np.ascontiguousarray(feature_offsets, np.int64)
    holder_offsets, holders = list_holders(offsets, features, n_features)
    word_offsets, words, word_bits = pack_graph(bounds.size, np.ascontiguousarray(edges, np.int32))
    bounds = np.ascontiguousarray(bounds, np.int32)
    return Component(offsets, features, holder_offsets, holders, bounds, word_offsets, words, word_bits)


class Neighbourhood(NamedTuple):
    """The neighbours of one pivot, by slot. Values at slots that are not taken have no meaning.

    Around the *pivot* d with sketch U, every neighbour e has two bitmaps:

        shared[e]   U ∩ sketch(e), bit i for the i-th feature of U
        near[e]     the neighbours of d that are near-duplicates of e

    A neighbour is named by its *slot*, its bit in a set of neighbours; slots ascend as documents do. Where the words of
    d's own row of the graph are at least a quarter full, the slots are the bits of these words, and other rows are
    copied word by word; where they are emptier, the neighbours are numbered without gaps. So a neighbourhood of n
    documents has at most 4n + 63 slots.
    """

    pivot: int
    documents: NDArray[np.int64]  # shape (slots,), the document at each slot
    bounds: NDArray[np.int64]  # shape (slots,)
    shared: Written[np.uint64]  # shape (slots, ceil(|U| / 64))
    near: Bits  # shape (slots, ceil(slots / 64))
    neighbours: Bits  # shape (ceil(slots / 64),), the slots taken
    pivot_features: Bits  # shape (ceil(|U| / 64),), every feature of U
    row: Bits  # the pivot's row of the graph
    bases: NDArray[np.int64]  # the slot of the first neighbour in each word of the row
    is_compact: bool  # slots have no gaps


class Lookup(NamedTuple):
    """Arrays over the whole component to look up positions within one pivot's arrays; all -1 between two pivots."""

    positions: Written[np.int32]  # shape (f,), the position of a feature in the pivot's sketch
    slots: Written[np.int32]  # shape (m,), the slot of each document
    local_words: Written[np.int64]  # shape (ceil(m / 64),), the position of a word of the graph in the pivot's row


@compiled
def make_lookup(component: Component) -> Lookup:
    """Make the lookup arrays of a component."""
    m = component.bounds.size
    positions, slots = np.full(component.holder_offsets.size - 1, -1, np.int32), np.full(m, -1, np.int32)
    return Lookup(positions, slots, np.full((m + 63) >> 6, -1, np.int64))


@compiled
def write_word(neighbourhood: Neighbourhood, local: int, bits: np.uint64, target: Written[np.uint64]) -> None:
    """Write one word of a row of the graph, number `local` of the pivot's row, as slots into the zeroed `target`."""
    taken = neighbourhood.row[local]
    bits &= taken
    if not neighbourhood.is_compact:
        target[local] = bits
        return

    # The slot of a neighbour is the number of neighbours before it.
    while bits != 0:
        below = ~bits & (bits - ONE)
        add_slot(target, neighbourhood.bases[local] + count_bits(taken & below))
        bits &= bits - ONE


@compiled
def write_row(neighbourhood: Neighbourhood, bits: Bits, target: Written[np.uint64]) -> None:
    """Write a part of the pivot's own row, as slots, over `target`."""
    for i in range(target.size):
        target[i] = 0
    for i in range(bits.size):
        write_word(neighbourhood, i, bits[i], target)


@compiled
def share_by_neighbour(
    component: Component, neighbourhood: Neighbourhood, slots: NDArray[np.int64], lookup: Lookup
) -> None:
    """Fill the zeroed `neighbourhood.shared` from the sketches of the neighbours."""
    first = component.feature_offsets[neighbourhood.pivot]
    size = component.feature_offsets[neighbourhood.pivot + 1] - first
    for i in range(size):
        lookup.positions[component.features[first + i]] = i

    for slot in slots:
        document = neighbourhood.documents[slot]
        row = neighbourhood.shared[slot]
        for i in range(component.feature_offsets[document], component.feature_offsets[document + 1]):
            # No branch, which would be mispredicted half the time: for -1 it sets nothing in bit 0.
            position = lookup.positions[component.features[i]]
            at = max(position, 0)
            row[at >> 6] |= np.uint64(position >= 0) << np.uint64(at & 63)

    for i in range(size):
        lookup.positions[component.features[first + i]] = -1


@compiled
def share_by_feature(
    component: Component, neighbourhood: Neighbourhood, slots: NDArray[np.int64], lookup: Lookup
) -> None:
    """Fill the zeroed `neighbourhood.shared` from the holders of the pivot's features."""
    first = component.feature_offsets[neighbourhood.pivot]
    for slot in slots:
        lookup.slots[neighbourhood.documents[slot]] = slot

    for i in range(component.feature_offsets[neighbourhood.pivot + 1] - first):
        feature = component.features[first + i]
        for j in range(component.holder_offsets[feature], component.holder_offsets[feature + 1]):
            slot = lookup.slots[component.holders[j]]
            neighbourhood.shared[max(slot, 0), i >> 6] |= np.uint64(slot >= 0) << np.uint64(i & 63)

    for slot in slots:
        lookup.slots[neighbourhood.documents[slot]] = -1


@compiled
def fill_shared(component: Component, neighbourhood: Neighbourhood, slots: NDArray[np.int64], lookup: Lookup) -> None:
    """Fill `neighbourhood.shared` from the sketches of the neighbours, or from the holders of the pivot's features.

    The shorter of the two is read.
    """
    in_sketches = in_holders = 0
    for slot in slots:
        document = neighbourhood.documents[slot]
        in_sketches += component.feature_offsets[document + 1] - component.feature_offsets[document]
        for i in range(neighbourhood.pivot_features.size):
            neighbourhood.shared[slot, i] = 0

    for i in range(component.feature_offsets[neighbourhood.pivot], component.feature_offsets[neighbourhood.pivot + 1]):
        feature = component.features[i]
        in_holders += component.holder_offsets[feature + 1] - component.holder_offsets[feature]

    if in_sketches <= in_holders:
        share_by_neighbour(component, neighbourhood, slots, lookup)
    else:
        share_by_feature(component, neighbourhood, slots, lookup)


@compiled
def begin_near(component: Component, neighbourhood: Neighbourhood, lookup: Lookup) -> None:
    """Prepare the look-up of the words of the pivot's row, for `fill_near`."""
    first = component.word_offsets[neighbourhood.pivot]
    for i in range(neighbourhood.row.size):
        lookup.local_words[component.words[first + i]] = i


@compiled
def end_near(component: Component, neighbourhood: Neighbourhood, lookup: Lookup) -> None:
    """Undo `begin_near`."""
    first = component.word_offsets[neighbourhood.pivot]
    for i in range(neighbourhood.row.size):
        lookup.local_words[component.words[first + i]] = -1


@compiled
def fill_near(component: Component, neighbourhood: Neighbourhood, slot: int, lookup: Lookup) -> None:
    """Fill `neighbourhood.near[slot]` from the neighbour's row of the graph."""
    document, row = neighbourhood.documents[slot], neighbourhood.near[slot]
    for i in range(row.size):
        row[i] = 0
    for i in range(component.word_offsets[document], component.word_offsets[document + 1]):
        local = lookup.local_words[component.words[i]]
        if local >= 0:
            write_word(neighbourhood, local, component.word_bits[i], row)


@compiled
def allot_slots(component: Component, pivot: int) -> Neighbourhood:
    """Allot the slots of a pivot's neighbours, with their documents and bounds; `shared` and `near` are not filled."""
    first, last = component.word_offsets[pivot], component.word_offsets[pivot + 1]
    row, bases = component.word_bits[first:last], np.empty(last - first, np.int64)
    count = 0
    for i in range(row.size):
        bases[i] = count
        count += count_bits(row[i])

    is_compact = row.size << 6 > SPARSE * count + 63
    width = (count + 63) >> 6 if is_compact else row.size
    size = component.feature_offsets[pivot + 1] - component.feature_offsets[pivot]
    neighbourhood = Neighbourhood(
        pivot,
        np.empty(width << 6, np.int64),
        np.empty(width << 6, np.int64),
        np.empty((width << 6, (size + 63) >> 6), np.uint64),
        np.empty((width << 6, width), np.uint64),
        np.empty(width, np.uint64),
        np.zeros((size + 63) >> 6, np.uint64),
        row,
        bases,
        is_compact,
    )

    for i in range(size):
        add_slot(neighbourhood.pivot_features, i)
    write_row(neighbourhood, row, neighbourhood.neighbours)

    scratch = np.empty(64, np.int64)
    for i in range(row.size):
        for k in range(list_slots(row[i : i + 1], scratch)):
            slot = bases[i] + k if is_compact else (i << 6) + scratch[k]
            neighbourhood.documents[slot] = (component.words[first + i] << 6) + scratch[k]
            neighbourhood.bounds[slot] = component.bounds[neighbourhood.documents[slot]]
    return neighbourhood


@compiled
def visit_neighbourhood(component: Component, pivot: int, lookup: Lookup) -> Neighbourhood:
    """
    Build the bitmaps of a pivot's neighbours.

    Returns:
        The neighbourhood. Cost: the sketches of the neighbours and their rows of the graph, each read once.
    """
    neighbourhood = look_around(component, pivot, lookup)
    begin_near(component, neighbourhood, lookup)
    slots = np.empty(neighbourhood.documents.size, np.int64)
    for i in range(list_slots(neighbourhood.neighbours, slots)):
        fill_near(component, neighbourhood, slots[i], lookup)
    end_near(component, neighbourhood, lookup)
    return neighbourhood


@compiled
def look_around(component: Component, pivot: int, lookup: Lookup) -> Neighbourhood:
    """Build what each neighbour shares with a pivot; `near` is not filled. Cost: the sketches of the neighbours."""
    neighbourhood = allot_slots(component, pivot)
    scratch = np.empty(neighbourhood.documents.size, np.int64)
    slots = scratch[: list_slots(neighbourhood.neighbours, scratch)]
    fill_shared(component, neighbourhood, slots, lookup)
    return neighbourhood


@compiled
def count_visit(component: Component, pivot: int) -> int:
    """Return the work of building a neighbourhood, in nodes of the search: 1, and one for every 512 reads."""
    first, last = component.word_offsets[pivot], component.word_offsets[pivot + 1]
    size = component.feature_offsets[pivot + 1] - component.feature_offsets[pivot]
    degree = 0
    for i in range(first, last):
        degree += count_bits(component.word_bits[i])
    return int(1 + ((degree * (size + last - first)) >> 9))


@compiled
def find_later(component: Component, pivot: int) -> Bits:
    """Return the part of the pivot's row of the graph that comes after it in canonical order."""
    first = component.word_offsets[pivot]
    later = np.empty(component.word_offsets[pivot + 1] - first, np.uint64)
    copy_bits(later, component.word_bits[first : first + later.size])
    for i in range(later.size):
        start = component.words[first + i] << 6
        if start + 63 <= pivot:
            later[i] = 0
        elif start <= pivot:
            # The bits above the pivot's own; shifting by 64 is undefined, hence two shifts.
            later[i] &= (FULL << np.uint64(pivot - start)) << ONE
    return later


def bound_memory(feature_offsets: NDArray[np.int64], edges: NDArray[np.int32]) -> int:
    """
    Bound the memory of mining or covering a component, beside its arguments and the sets returned.

    Args:
        feature_offsets: shape (m+1,), rows of features of the sketches.
        edges: shape (e, 2), every pair once.

    Returns:
        Bytes: the numbered features, the packed graph while it is made, and the largest neighbourhood with
        the stack of its search. n neighbours have at most 4n + 63 slots, of two bitmaps and five numbers each; the
        search is at most n deep, and its stack up to three times that while it grows. Cost: O(m + e).

    Example:
        A family of 5,000 documents of 100 features, every two of them near-duplicates:

        >>> a, b = np.triu_indices(5000, 1)
        >>> bound_memory(np.arange(5001) * 100, np.stack([a, b], axis=1)) // 10**6
        374
    """
    m = feature_offsets.size - 1
    if m == 0:
        return 0

    sizes = np.diff(feature_offsets)
    degrees = np.bincount(edges.reshape(-1), minlength=m).astype(np.int64)
    all_words = (m + 63) // 64
    row_words = np.minimum(degrees, all_words)
    feature_words = (sizes + 63) // 64

    # For each document as pivot: words of a set of neighbours, then bytes of its slots and of its stack.
    width = np.minimum((SPARSE * degrees + 126) // 64, all_words)
    slots = 64 * width * 8 * (feature_words + width + 5)
    stack = 3 * (degrees + 8) * 8 * (feature_words + 4 * width + 1)
    largest = int((slots + stack).max())

    graph = 24 * edges.size // 2 + 16 * int(row_words.sum()) + 8 * 4 * m
    features = 52 * int(feature_offsets[-1])
    return int(graph + features + largest + 4 * m + 8 * all_words)
