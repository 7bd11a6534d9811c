"""A component as the kernels read it: its features numbered, their holders listed, its pair graph packed into words.

A component of the pair graph has m distinct sketches, named by their index 0 ... m-1, which is their canonical order.
Only the nonzero 64-bit words of a row of the graph are stored, so there is no m x m matrix.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.mining.bitsets import ONE, Bits


class Component(NamedTuple):
    """The sketches of a component and its pair graph, both directions of every pair."""

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
