"""The home of a sketch: the task that keeps it, asks how rare its elements are, and sends it where it is compared.

    sketches        --gather_sketches-->  homes       E1    node, size, ids
    homes           --ask-->              requests    E2    4 bytes an element
    requests        --answer-->           replies     E3    half a byte an element, in the same order
    homes, replies  --post_prefixes-->    postings    E4    what `element_prefixes` tells the owners of each prefix
    homes           --post_keys-->        postings    E4    the same where sketches meet by keys: nobody is asked
    homes, wanted   --send_sketches-->    sketches    E6    node, size, ids

A home goes through its sketches in pieces, in the order of their nodes, whatever the order its blocks came in: so that
a request and its reply need no names, a retried task makes the same, and the memory is that of a piece. Each function
takes the blocks of one task, and gives blocks for others.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.arrays import Ragged, take_rows
from nddup.matching.element_prefixes import WORDS, Prefixes, cut_prefixes, post, take_all
from nddup.matching.elements import find_frequent, list_elements, pack_classes, rarity_classes, unpack_classes
from nddup.matching.prefix_filter import partition_of
from nddup.spark.blocks import (
    Columns,
    Layout,
    cell_lengths,
    list_column,
    merged,
    pack,
    pieces,
    ragged_column,
    target_of,
    unpack,
    with_rows,
)
from nddup.spark.pairing.plan import SKETCH_LAYOUT, WANTED_LAYOUT, Pairing

Batches = Iterator[pa.RecordBatch]

LEAST_PIECE = 1 << 20
"""Ids that a home takes at a time, more where there are over a hundred tasks: some 80 bytes of memory each."""

BLOCK_BYTES = 32 << 10
"""What a task gathers for each other one before it packs, as far as it has so much."""


NO_REPLIES = (np.empty(0, np.int32), np.empty(0, np.uint8))


class _Piece(NamedTuple):
    """Some sketches of a home and their elements."""

    nodes: NDArray[np.int64]
    sketches: Ragged
    elements: Ragged


class _Question(NamedTuple):
    """Elements of a piece in the order in which owners are asked for them, n answers for p places."""

    elements: NDArray[np.uint64]  # (n,), by owner
    owners: NDArray[np.int32]  # (n,)
    many: NDArray[np.int64] | None  # (n,), how often each is in the piece; None: once
    places: NDArray[np.int64]  # (p,), among the elements of the piece
    answers: NDArray[np.int64]  # (p,), the answer that each place takes


def gather_sketches(batches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E1: the sketches that can be in a pair, each to its home.

    Args:
        batches: rows of SKETCHES.
        pairing: how sketches are compared.
    """
    for batch in merged(batches, BLOCK_BYTES * pairing.partitions):
        rows = list_column(batch.column("sketch"))
        sizes = np.diff(rows.offsets).astype(np.int32)
        possible = np.flatnonzero((sizes > 0) & (pairing.threshold.bounds(sizes) <= sizes))

        nodes = np.asarray(batch.column("node"))[possible]
        columns: Columns = {"node": nodes, "size": sizes[possible]}
        targets = partition_of(nodes.view(np.uint64), pairing.partitions)
        yield pack(SKETCH_LAYOUT, targets, columns, {"ids": take_rows(rows, possible)}, partitions=pairing.partitions)


def ask(batches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E2: the elements of each piece to their owners; `home` and `question` say where the reply goes."""
    held = with_rows(batches)
    home = target_of(held)
    for number, question in _number_questions(_pieces(held, pairing), pairing):
        columns: Columns = {"rest": pairing.division.rests(question.elements, question.owners)}
        layout: Layout = {"rest": pairing.request_layout["rest"]}
        if question.many is not None:
            layout, columns = pairing.request_layout, {**columns, "many": question.many}
        packed = pack(layout, question.owners, columns, partitions=pairing.partitions)
        if question.many is None:
            packed = packed.append_column("many", pa.nulls(packed.num_rows, pa.binary()))
        for name, value in (("home", home), ("question", number)):
            packed = packed.append_column(name, pa.repeat(pa.scalar(value, pa.int32()), packed.num_rows))
        yield packed


def answer(batches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E3: the class of each element asked for, by how many sketches of all homes asked; `owner` answers."""
    held = with_rows(batches)
    if not held:
        return
    columns = unpack(held, pairing.request_layout)
    rests = columns["rest"]
    classes = rarity_classes(rests, _weights(held, columns))

    at = 0
    for batch in held:
        lengths = cell_lengths(batch.column("rest"), rests.dtype)
        cells, sizes = pack_classes(classes[at : at + lengths.sum()], lengths)
        at += int(lengths.sum())
        offsets = pa.py_buffer(np.append(0, np.cumsum(sizes)).astype(np.int32))
        yield pa.RecordBatch.from_pydict(
            {
                "target": batch.column("home"),
                "owner": batch.column("target"),
                "question": batch.column("question"),
                "classes": pa.BinaryArray.from_buffers(pa.binary(), len(lengths), [None, offsets, pa.py_buffer(cells)]),
            }
        )


def post_prefixes(homes: Iterable[pa.RecordBatch], replies: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E4: the prefixes of the sketches that can be in a pair, to the owners of their elements.

    Raises:
        ValueError: if an owner did not answer, or more than once.
    """
    answered = _sort_replies(with_rows(replies))
    for number, piece in enumerate(_pieces(with_rows(homes), pairing)):
        classes = np.empty(len(piece.elements.values), np.uint8)
        for which, question in enumerate(_questions(piece, pairing)):
            owners, packed = answered.get(2 * number + which, NO_REPLIES)
            asked = np.bincount(question.owners, minlength=pairing.partitions)
            if not np.array_equal(owners, np.flatnonzero(asked)):
                raise ValueError(f"pairs: {np.count_nonzero(asked)} tasks were asked for counts, not {len(owners)}")
            classes[question.places] = unpack_classes(packed, asked[owners])[question.answers]

        sizes = np.diff(piece.sketches.offsets).astype(np.int32)
        bounds = pairing.threshold.bounds(sizes)
        whole = pairing.threshold.is_containment
        yield from _post(cut_prefixes(piece.elements, classes, sizes, bounds, whole=whole), piece, pairing)


def post_keys(homes: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E4: the keys of the sketches, to the owners of the keys' elements."""
    for piece in _pieces(with_rows(homes), pairing):
        bounds = pairing.threshold.bounds(np.diff(piece.sketches.offsets).astype(np.int32))
        yield from _post(take_all(piece.elements, piece.sketches, bounds), piece, pairing)


def send_sketches(homes: Iterable[pa.RecordBatch], wanted: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E6: the sketches that were asked for, each to all that asked."""
    asked = with_rows(wanted)
    nodes = unpack(asked, WANTED_LAYOUT)["node"]
    if not len(nodes):
        return
    askers = np.concatenate(
        [
            np.repeat(np.asarray(batch.column("owner")), cell_lengths(batch.column("node"), nodes.dtype))
            for batch in asked
        ]
    )

    columns = unpack(with_rows(homes), SKETCH_LAYOUT)
    sketches = ragged_column(columns["size"], columns.pop("ids"))
    order = np.argsort(columns["node"])
    places = order[np.searchsorted(columns["node"][order], nodes)]
    for rows in pieces(8 * columns["size"][places].astype(np.int64)):
        chosen = places[rows]
        some: Columns = {"node": nodes[rows], "size": columns["size"][chosen]}
        yield pack(
            SKETCH_LAYOUT, askers[rows], some, {"ids": take_rows(sketches, chosen)}, partitions=pairing.partitions
        )


def _pieces(held: list[pa.RecordBatch], pairing: Pairing) -> Iterator[_Piece]:
    """The sketches of a home in the order of their nodes, some at a time."""
    columns = unpack(held, SKETCH_LAYOUT)
    order = np.argsort(columns["node"])
    sketches = ragged_column(columns["size"], columns["ids"])
    most = max(LEAST_PIECE, BLOCK_BYTES // 4 * pairing.partitions)
    for rows in pieces(columns["size"][order].astype(np.int64), most):
        chosen = order[rows]
        some = take_rows(sketches, chosen)
        named = pairing.finder.keys(some) if pairing.finder is not None else some
        yield _Piece(columns["node"][chosen].astype(np.int64), some, list_elements(named, pairing.division.bits))


def _number_questions(pieces_: Iterable[_Piece], pairing: Pairing) -> Iterator[tuple[int, _Question]]:
    """The questions of all pieces of a home, two each, numbered."""
    for number, piece in enumerate(pieces_):
        for which, question in enumerate(_questions(piece, pairing)):
            yield 2 * number + which, question


def _questions(piece: _Piece, pairing: Pairing) -> tuple[_Question, _Question]:
    """What a piece asks: for most elements as often as they are there, for frequent ones once.

    So a task that owns an element of very many sketches is not asked by each of them.
    """
    division, elements = pairing.division, piece.elements.values
    is_frequent = find_frequent(elements, division.bits)
    rare, frequent = np.flatnonzero(~is_frequent), np.flatnonzero(is_frequent)
    owners = division.owners(elements[rare])
    by_owner = np.argsort(owners.astype(np.uint16), kind="stable")
    places = rare[by_owner]
    first = _Question(elements[places], owners[by_owner], None, places, np.arange(len(places)))

    # Owners ascend with the elements.
    distinct, answers, many = np.unique(elements[frequent], return_inverse=True, return_counts=True)
    return first, _Question(distinct, division.owners(distinct), many.astype(np.int64), frequent, answers)


def _weights(held: list[pa.RecordBatch], columns: Columns) -> NDArray[np.int64]:
    """How often each element counts that a task was asked for: `many` where that is told."""
    lengths = np.concatenate([cell_lengths(batch.column("rest"), columns["rest"].dtype) for batch in held])
    is_told = np.concatenate([np.asarray(batch.column("many").is_valid()) for batch in held])
    weights = np.ones(len(columns["rest"]), np.int64)
    weights[np.repeat(is_told, lengths)] = columns["many"]
    return weights


def _sort_replies(replies: list[pa.RecordBatch]) -> dict[int, tuple[NDArray[np.int32], NDArray[np.uint8]]]:
    """For each question the owners that answered, ascending, and the classes of all, packed: in its order."""
    if not replies:
        return {}
    columns = [np.concatenate([np.asarray(batch.column(name)) for batch in replies]) for name in ("question", "owner")]
    lengths = np.concatenate([cell_lengths(batch.column("classes"), np.dtype(np.uint8)) for batch in replies])
    classes = unpack(replies, {"classes": np.uint8})["classes"]
    cells = Ragged(np.append(0, np.cumsum(lengths)).astype(np.int64), classes)  # type: ignore[arg-type]

    order = np.lexsort(columns[::-1])
    questions, starts = np.unique(columns[0][order], return_index=True)
    ends = np.append(starts[1:], len(order))
    return {
        int(question): (columns[1][order[low:high]], take_rows(cells, order[low:high]).values)  # type: ignore[misc]
        for question, low, high in zip(questions, starts, ends, strict=True)
    }


def _post(prefixes: Prefixes, piece: _Piece, pairing: Pairing) -> Batches:
    """Blocks of the posting layout, at most `BATCH_BYTES` of the longest column in a batch."""
    posted = post(prefixes, pairing.division)
    sizes = np.diff(piece.sketches.offsets)
    of_row = {
        "node": piece.nodes[prefixes.sketch],
        "size": sizes[prefixes.sketch],
        "left": prefixes.left,
        "need": prefixes.need,
    }
    lengths = np.diff(posted.rests.offsets)
    for rows in pieces(32 + 16 * lengths):
        chosen = np.arange(rows.start, rows.stop)
        prefix = posted.row[rows]
        columns: Columns = {name: column[prefix] for name, column in of_row.items()}
        columns["count"] = lengths[rows]
        before = take_rows(posted.before, chosen)
        ragged = {
            "bitmap": Ragged(WORDS * np.arange(len(prefix) + 1), prefixes.bitmaps[prefix].ravel()),
            "rest": take_rows(posted.rests, chosen),
            "place": take_rows(posted.places, chosen),
            "before": Ragged(before.offsets, before.values.astype(np.uint32)),
            "before_upper": Ragged(before.offsets, (before.values >> np.uint64(32)).astype(np.uint16)),
        }
        yield pack(pairing.posting_layout, posted.owner[rows], columns, ragged, partitions=pairing.partitions)
