"""The home of a sketch: the task that holds it, asks how rare its elements are, and sends it where it is compared.

    sketches        --gather_sketches-->  homes       E1    node, size, total, ids
    homes           --request_rarity-->   requests    E2    4 bytes per element
    requests        --reply_rarity-->     replies     E3    half a byte per element, in the same order
    homes, replies  --post_prefixes-->    postings    E4    what `elements` sends to the owners of each prefix
    homes           --post_keys-->        postings    E4    the same if sketches meet by keys, without requests
    homes, wanted   --send_sketches-->    sketches    E6    node, size, total, ids

Each function takes the blocks of one task and returns blocks for others. The other exchanges are those of `candidates`:
E5 asks the homes for sketches, E7 compares them. All share the rule and the layouts of blocks that are here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup import tables
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import list_column
from nddup.matching.element_join import CandidateRule
from nddup.matching.elements import (
    BEFORE,
    WORDS,
    Division,
    Prefixes,
    cut_prefixes,
    find_frequent,
    list_elements,
    pack_classes,
    post,
    rarity_classes,
    take_all,
    unpack_classes,
)
from nddup.matching.overlap_join import NO_LIMIT, LongLists, partition_of
from nddup.matching.task_sizes import batch_bytes, piece_ids
from nddup.matching.threshold import Threshold
from nddup.sketching.minhash import Finder
from nddup.spark.blocks import (
    BATCH_BYTES,
    Columns,
    Layout,
    cell_lengths,
    layout_of,
    merged,
    pack,
    pieces,
    ragged_column,
    target_of,
    unpack,
    with_rows,
)

NARROW = np.iinfo(np.uint16).max

SKETCH_LAYOUT: Layout = {"node": np.int64, "size": np.int32, "total": np.int32, "ids": np.uint64}
"""One row per sketch; `size` is the length of its `ids`, `total` what bounds its overlap (`Threshold.totals`)."""

WANTED_LAYOUT: Layout = {"node": np.int64}
"""One row per sketch that a task asks for."""

PAIR_LAYOUT: Layout = {**layout_of(tables.MATCHES.columns), "link_a": np.int64, "link_b": np.int64, "counts": np.int64}
"""Three kinds of rows, each in its own columns: pairs, links, and the `COUNTERS` of a task. The containments are empty
where the sketch kind shows none."""


@dataclass(frozen=True)
class Pairing:
    """How pairs are found and compared.

    Attributes:
        threshold: when two sketches are near-duplicates.
        division: which task owns which element. The pairs do not depend on it, except in components of more than
            `max_edges` pairs.
        long_lists: limits on the cost of comparing the holders of a prefix element or a key.
        links: whether the holders of a list of more than `max_postings` are linked instead of compared.
        finder: the keys by which sketches meet; None if they meet by shared features.
        max_edges: pairs of a component after which a task makes no more of them.
        most_listed: pairs of a component, among those that come to one task, above which they are counted, not listed.
        most_ids: ids of the largest possible sketch.
        free: bytes that the rows of a task may take (`task_sizes.free_memory`); no result depends on it.
    """

    threshold: Threshold
    division: Division
    long_lists: LongLists
    links: bool = False
    finder: Finder | None = None
    max_edges: int = NO_LIMIT
    most_listed: int = NO_LIMIT
    most_ids: int = field(default=1 << 31)
    free: int = field(default=1 << 30)

    @property
    def partitions(self) -> int:
        """Number of tasks of every exchange."""
        return self.division.partitions

    @property
    def candidate_rule(self) -> CandidateRule:
        """How candidates are found."""
        return CandidateRule(self.long_lists, self.links, self.finder is not None)

    @property
    def request_layout(self) -> Layout:
        """E2: one row per element; `many` is how often it counts, null if each counts once."""
        return {"rest": self.division.rest_type, "many": np.int64}

    @property
    def posting_layout(self) -> Layout:
        """E4: one row per sketch and owner. `rest` and `place` have `count` values; `before` has `BEFORE` numbers for
        each of them, with the upper 16 bits in a column of their own. `bitmap` has `WORDS` words.
        """
        short: type[np.generic] = np.uint16 if self.most_ids <= NARROW else np.int32
        numbers: Layout = dict.fromkeys(("size", "left", "need", "count"), short)
        return {
            "node": np.int64,
            "total": np.int32,
            **numbers,
            "bitmap": np.uint64,
            "rest": self.division.rest_type,
            "place": short,
            "before": np.uint32,
            "before_upper": np.uint16,
        }


Batches = Iterator[pa.RecordBatch]

REPLY_LAYOUT: Layout = {"classes": np.uint8}
"""The answers of a task to a home, question by question; the home knows the length of each."""


class _Piece(NamedTuple):
    """Some sketches of a home and their elements."""

    nodes: NDArray[np.int64]
    totals: NDArray[np.int32]
    sketches: Ragged
    elements: Ragged


class _Question(NamedTuple):
    """Elements of a piece in the order in which their owners are asked: n answers for p places."""

    elements: NDArray[np.uint64]  # (n,), by owner
    owners: NDArray[np.int32]  # (n,)
    many: NDArray[np.int64] | None  # (n,), how often each is in the piece; None: once
    places: NDArray[np.int64]  # (p,), among the elements of the piece
    answers: NDArray[np.int64]  # (p,), the answer for each place


_ASKED = ("home", "question")


def gather_sketches(batches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E1: send each sketch that can be in a pair to its home."""
    for batch in merged(batches, batch_bytes(pairing.free, pairing.partitions)):
        rows = list_column(batch.column("sketch"))
        sizes = np.diff(rows.offsets).astype(np.int32)
        totals = pairing.threshold.totals(sizes, np.asarray(batch.column("n_features")))
        possible = np.flatnonzero((sizes > 0) & (pairing.threshold.needs(totals) <= sizes))

        nodes = np.asarray(batch.column("node"))[possible]
        columns: Columns = {"node": nodes, "size": sizes[possible], "total": totals[possible]}
        targets = partition_of(nodes.view(np.uint64), pairing.partitions)
        yield pack(SKETCH_LAYOUT, targets, columns, {"ids": take_rows(rows, possible)}, partitions=pairing.partitions)


def request_rarity(batches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E2: ask the owners of the elements of each piece; `home` and `question` say where the reply goes.

    A home processes its sketches in pieces, in the order of their nodes, whatever order its blocks arrived in. So
    requests and replies match by position, a retried task makes the same ones, and a task needs memory for one piece at
    a time.
    """
    blocks = with_rows(batches)
    home = target_of(blocks)
    for number, question in _number_questions(_pieces(blocks, pairing), pairing):
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


def reply_rarity(batches: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E3: answer with the rarity class of each element: how many sketches of all homes have it; `owner` answers."""
    blocks = with_rows(batches)
    if not blocks:
        return
    columns = unpack(blocks, pairing.request_layout)
    rests = columns["rest"]
    classes = rarity_classes(rests, _weights(blocks, columns))

    # All answers to a home are one block, in the order of its questions, however many pieces it asked in.
    cells, sizes = pack_classes(classes, _request_lengths(blocks, rests.dtype))
    home, question = (np.concatenate([np.asarray(batch.column(name)) for batch in blocks]) for name in _ASKED)
    order = np.lexsort((question, home))
    answers = take_rows(Ragged(np.append(0, np.cumsum(sizes)).astype(np.int64), cells), order)  # type: ignore[arg-type]
    packed = pack(REPLY_LAYOUT, home[order], {}, {"classes": answers}, partitions=pairing.partitions)
    yield packed.append_column("owner", pa.repeat(pa.scalar(target_of(blocks), pa.int32()), packed.num_rows))


def post_prefixes(homes: Iterable[pa.RecordBatch], replies: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E4: send the prefixes of the sketches that can be in a pair to the owners of their elements.

    Raises:
        ValueError: if an owner gave fewer or more answers than it was asked for.
    """
    replied = _Replies(with_rows(replies), pairing.partitions)
    for piece in _pieces(with_rows(homes), pairing):
        classes = np.empty(len(piece.elements.values), np.uint8)
        for question in _questions(piece, pairing):
            classes[question.places] = replied.read(question.owners)[question.answers]

        sizes = np.diff(piece.sketches.offsets).astype(np.int32)
        bounds = pairing.threshold.needs(piece.totals)
        whole = pairing.threshold.is_containment
        yield from _post(cut_prefixes(piece.elements, classes, sizes, bounds, whole=whole), piece, pairing)
    replied.require_end()


def post_keys(homes: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E4: send the keys of the sketches to the owners of the keys' elements."""
    for piece in _pieces(with_rows(homes), pairing):
        bounds = pairing.threshold.needs(piece.totals)
        yield from _post(take_all(piece.elements, piece.sketches, bounds), piece, pairing)


def send_sketches(homes: Iterable[pa.RecordBatch], wanted: Iterable[pa.RecordBatch], *, pairing: Pairing) -> Batches:
    """E6: send each sketch that was asked for to every task that asked."""
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
    most = min(BATCH_BYTES, batch_bytes(pairing.free, NO_LIMIT))
    for rows in pieces(8 * columns["size"][places].astype(np.int64), most):
        chosen = places[rows]
        part: Columns = {"node": nodes[rows], **{name: columns[name][chosen] for name in ("size", "total")}}
        yield pack(
            SKETCH_LAYOUT, askers[rows], part, {"ids": take_rows(sketches, chosen)}, partitions=pairing.partitions
        )


def _pieces(blocks: list[pa.RecordBatch], pairing: Pairing) -> Iterator[_Piece]:
    columns = unpack(blocks, SKETCH_LAYOUT)
    order = np.argsort(columns["node"])
    sketches = ragged_column(columns["size"], columns["ids"])
    most = piece_ids(pairing.free, pairing.partitions)
    for rows in pieces(columns["size"][order].astype(np.int64), most):
        chosen = order[rows]
        part = take_rows(sketches, chosen)
        named = pairing.finder.keys(part) if pairing.finder is not None else part
        nodes, totals = columns["node"][chosen].astype(np.int64), columns["total"][chosen].astype(np.int32)
        yield _Piece(nodes, totals, part, list_elements(named, pairing.division.bits))


def _number_questions(pieces_: Iterable[_Piece], pairing: Pairing) -> Iterator[tuple[int, _Question]]:
    for number, piece in enumerate(pieces_):
        for which, question in enumerate(_questions(piece, pairing)):
            yield 2 * number + which, question


def _questions(piece: _Piece, pairing: Pairing) -> tuple[_Question, _Question]:
    """Return the two questions of a piece: one repeats each rare element, one has each frequent element once.

    So the owner of an element that very many sketches have is not asked once for each of them.
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


def _weights(blocks: list[pa.RecordBatch], columns: Columns) -> NDArray[np.int64]:
    """Return how often each requested element counts: `many` if the question has it, else 1."""
    lengths = _request_lengths(blocks, columns["rest"].dtype)
    is_told = np.concatenate([np.asarray(batch.column("many").is_valid()) for batch in blocks])
    weights = np.ones(len(columns["rest"]), np.int64)
    weights[np.repeat(is_told, lengths)] = columns["many"]
    return weights


def _request_lengths(blocks: list[pa.RecordBatch], dtype: np.dtype[np.generic]) -> NDArray[np.int64]:
    return np.concatenate([cell_lengths(batch.column("rest"), dtype) for batch in blocks])


class _Replies:
    """The owners' answers to a home, read question by question."""

    def __init__(self, replies: list[pa.RecordBatch], partitions: int) -> None:
        self._packed = unpack(replies, REPLY_LAYOUT)["classes"].view(np.uint8)
        self._next, self._ends = np.zeros(partitions, np.int64), np.zeros(partitions, np.int64)
        if replies:
            owners = np.concatenate([np.asarray(batch.column("owner")) for batch in replies])
            ends = np.cumsum(np.concatenate([cell_lengths(batch["classes"], self._packed.dtype) for batch in replies]))
            self._next[owners], self._ends[owners] = np.append(0, ends[:-1]), ends

    def read(self, owners: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return the classes of the elements of the next question, given the owner of each; owners ascend.

        Raises:
            ValueError: if an owner answered less than it was asked.
        """
        asked = np.bincount(owners, minlength=len(self._next))
        sizes = (asked + 1) // 2
        starts, self._next = self._next, self._next + sizes
        if (self._next > self._ends).any():
            owner = int(np.argmax(self._next > self._ends))
            raise ValueError(f"pairs: task {owner} returned fewer rarity classes than the {asked[owner]} requested")

        places = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        present = np.flatnonzero(asked)
        return unpack_classes(self._packed[places], asked[present])

    def require_end(self) -> None:
        """Raise ValueError if an owner answered more than it was asked."""
        if (self._next != self._ends).any():
            raise ValueError("pairs: a task answered more counts than it was asked for")


def _post(prefixes: Prefixes, piece: _Piece, pairing: Pairing) -> Batches:
    """Return blocks of the posting layout, in batches of about `BATCH_BYTES` at most in the longest column."""
    posted = post(prefixes, pairing.division)
    sizes = np.diff(piece.sketches.offsets)
    of_row = {
        "node": piece.nodes[prefixes.sketch],
        "size": sizes[prefixes.sketch],
        "total": piece.totals[prefixes.sketch],
        "left": prefixes.left,
        "need": prefixes.need,
    }
    lengths = np.diff(posted.rests.offsets)
    for rows in pieces(32 + 4 * BEFORE * lengths, min(BATCH_BYTES, batch_bytes(pairing.free, NO_LIMIT))):
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
