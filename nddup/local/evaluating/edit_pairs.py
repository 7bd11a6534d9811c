"""Edit similarity of texts on one machine: of candidate pairs, and of a few documents with all others.

    FOUND_TEXTS, documents    --place_texts-->       Texts       a text a document, on the disk
    candidates, Texts         --measure_pairs-->     measured    the pairs that are similar enough
    Texts                     --compare_sampled-->   measured    the same for a few documents, without candidates

The similarity is that of `nddup.verifying.edit_similarity`, measured in threads.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.local.columns import pieces_of
from nddup.verifying.edit_similarity import can_reach, measure, spell_out

BLOCK = 32_000_000
"""Most characters of the pairs that are measured in one call: they are in memory as Python strings."""

Far = Callable[[int, int], None]
"""Called with how many pairs, or sampled documents, were measured, and how many there are."""


def _no_word(done: int, whole: int) -> None:
    del done, whole


class Measuring(NamedTuple):
    """The least similarity, in (0, 1]; the number of threads that measure; what is called with their progress."""

    similarity: float
    threads: int = 1
    far: Far = _no_word


class Texts(NamedTuple):
    """The texts of documents, in the order of their ids.

    Attributes:
        doc_ids: n ids, ascending.
        places: (n,), the place of each text in `spelled`; several documents may have one.
        lengths: (n,), in characters.
        is_cut: (n,), whether the text was cut.
        spelled: the texts as they are compared, in chunks that lie on the disk.
    """

    doc_ids: list[str]
    places: NDArray[np.int64]
    lengths: NDArray[np.int32]
    is_cut: NDArray[np.bool_]
    spelled: pa.ChunkedArray

    def take(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the texts of some documents. Only the chunks that hold them are read."""
        places, back = np.unique(self.places[rows], return_inverse=True)
        ends = np.cumsum([len(chunk) for chunk in self.spelled.chunks])
        held = np.searchsorted(ends, places, "right")
        found: list[str] = []
        for number in np.unique(held):
            chunk = self.spelled.chunk(int(number))
            inside = places[held == number] - (ends[number] - len(chunk))
            found += chunk.take(pa.array(inside)).to_pylist()
        return [found[at] for at in back]


class Measured(NamedTuple):
    """Pairs of rows of `Texts`, first < second, and their similarity; (m,) each, sorted by (first, second)."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    similarity: NDArray[np.float64]


def place_texts(found: pa.Table, documents: pa.Table, spool: Path) -> Texts:
    """Write the texts of documents to a file, spelled as they are compared, and index them by document.

    Args:
        found: FOUND_TEXTS, which may lie on the disk.
        documents: doc_id, source, content_fingerprint.
        spool: a folder for the file.

    A record is recognised by its file and its content. If several texts have one content, the least is taken; a
    document whose record is not found is left out.

    Cost: one pass over the texts; a batch of them is in memory, and some 100 bytes a document.
    """
    lengths, cut, path = [np.empty(0, np.int32)], [np.empty(0, np.bool_)], spool / "spelled.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.schema([("text", pa.string())])) as writer:
        for chunk in found["text"].chunks:
            spelled = spell_out(chunk)
            writer.write_batch(pa.record_batch([spelled.texts], names=["text"]))
            lengths.append(spelled.lengths.to_numpy())
            cut.append(spelled.is_cut.to_numpy(zero_copy_only=False))
    with pa.memory_map(str(path)) as mapped:
        texts = pa.ipc.open_file(mapped).read_all()["text"]

    all_lengths, all_cut = np.concatenate(lengths), np.concatenate(cut)
    rows = documents.take(pc.sort_indices(documents["doc_id"]))
    places = _places(_keys(rows), _keys(found), texts)
    rows, places = rows.filter(pa.array(places >= 0)), places[places >= 0]
    return Texts(rows["doc_id"].to_pylist(), places, all_lengths[places], all_cut[places], texts)


def measure_pairs(pairs: pa.Table, texts: Texts, measuring: Measuring) -> Measured:
    """Return the candidates whose texts reach this similarity.

    Args:
        pairs: doc_a, doc_b; a pair with a document that has no text is left out.
        texts: the texts of all documents.
        measuring: how they are measured.
    """
    ids = pa.array(texts.doc_ids, pa.string())
    first, second = (_numbers(pairs[name], ids) for name in ("doc_a", "doc_b"))
    is_there = (first >= 0) & (second >= 0)
    return _measure(first[is_there], second[is_there], texts, measuring)


def compare_sampled(texts: Texts, measuring: Measuring, *, number: int) -> Measured:
    """Return the pairs of sampled documents with all others that reach this similarity, each once.

    No candidates are needed. The sample is the `number` documents with the smallest SHA-256 of their id.
    """
    digests = [sha256(name.encode()).hexdigest() for name in texts.doc_ids]
    chosen = sorted(range(len(digests)), key=digests.__getitem__)[:number]
    every = np.arange(len(texts.doc_ids))
    found = [Measured(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for done, one in enumerate(chosen):
        others = every[(every != one) & can_reach(texts.lengths[one], texts.lengths, measuring.similarity)]
        ends = np.minimum(others, one), np.maximum(others, one)
        found.append(_measure(*ends, texts, measuring._replace(far=_no_word)))
        measuring.far(done + 1, len(chosen))

    first, second, similar = (np.concatenate(column) for column in zip(*found, strict=True))
    places = np.unique(np.stack([first, second]), axis=1, return_index=True)[1]  # two chosen ones meet twice
    return Measured(first[places], second[places], similar[places])


def count_common(first: Measured, second: Measured) -> int:
    """Count the pairs that are in both."""
    width = 1 + int(max(*(one.second.max(initial=0) for one in (first, second))))
    return len(np.intersect1d(first.first * width + first.second, second.first * width + second.second))


def _measure(first: NDArray[np.int64], second: NDArray[np.int64], texts: Texts, measuring: Measuring) -> Measured:
    """Return the pairs that reach the similarity, sorted by row; a block of texts is measured at a time."""
    similarity, threads, far = measuring
    near = can_reach(texts.lengths[first], texts.lengths[second], similarity)
    order = np.lexsort((second[near], first[near]))
    first, second = first[near][order], second[near][order]
    sizes = texts.lengths[first].astype(np.int64) + texts.lengths[second]
    similar = np.zeros(len(first))
    for block in pieces_of(sizes, BLOCK):
        both = texts.take(first[block]), texts.take(second[block])
        similar[block] = measure(*both, similarity=similarity, threads=threads)
        far(block.stop, len(first))
    kept = similar >= similarity
    return Measured(first[kept], second[kept], similar[kept])


def _keys(rows: pa.Table) -> pa.ChunkedArray:
    """Return the key of each record: its file and the fingerprint of its content."""
    return pc.binary_join_element_wise(rows["source"].cast(pa.binary()), rows["content_fingerprint"], b"\0")


def _places(wanted: pa.ChunkedArray, keys: pa.ChunkedArray, texts: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the row of each wanted key, that with the least text if there are several, -1 if there is none."""
    coded = keys.combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(codes[order]) != 0)[: len(order)])
    first, counts = order[starts].astype(np.int64), np.diff(np.append(starts, len(order)))
    for number in np.flatnonzero(counts > 1):
        same = order[starts[number] : starts[number] + counts[number]]
        first[number] = min(same, key=lambda row: (texts[int(row)].as_py(), row))
    numbers = _numbers(wanted, coded.dictionary)
    return np.where(numbers >= 0, np.append(first, -1)[numbers], -1)


def _numbers(values: pa.ChunkedArray, among: pa.Array) -> NDArray[np.int64]:
    """Return the place of each value in `among`; -1 where it is missing."""
    found = pc.index_in(values, value_set=among).fill_null(-1).combine_chunks()
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)
