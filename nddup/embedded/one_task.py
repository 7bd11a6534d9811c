"""Pairs, clusters and keep-list of few documents: the embedded engine inside one Spark task.

    documents         --decide-->  the documents whose texts candidates need, or why one task is too little
    documents, texts  --decide-->  PAIRS, CLUSTERS, MEMBERS, FALSE_COMPONENTS, KEEP, and the counts of their stages

The first answer is the second where no text is needed: where sketches decide, or hold all shingles.
"""

import json
import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded import steps as engine
from nddup.embedded.collapse import Nodes
from nddup.embedded.confirm import Confirmer
from nddup.embedded.match import Matches, joined_ends, name_candidates
from nddup.embedded.memory import Memory
from nddup.embedded.workers import Workers
from nddup.errors import CapacityError, NddupError, NeedsSparkError
from nddup.ground.columns import pieces_of
from nddup.matching.overlap_join import NO_LIMIT
from nddup.mining.keep_verdicts import Forced
from nddup.scanning.collection import Collection
from nddup.scanning.found import Consumer, RecordLimits
from nddup.settings.schema import Config
from nddup.tables import DOCUMENTS, TEXTS, table_called, working

ANSWERS = working("answers", "what string, data binary", "Tables as Arrow's streams, and what else a task answers.")
NODE_TEXTS = working("node_texts", "doc_key long, tokens array<long>", "What is compared of some documents.")
WANTED, MATCHES, BEYOND, COUNTS, FAILED = "wanted", "matches", "beyond", "counts", "failed"
MADE = ("pairs", "clusters", "members", "false_components", "keep")
"""The tables that are made."""

MOST_COMPARED = 25_000_000
"""Maximum number of pairs of sketches that are compared: some 15 seconds of one core if all are near-duplicates. Above
`pairs.max_edges`, those of one component are not."""

MOST_BYTES = 200 << 20
"""Maximum number of bytes, by `nddup.embedded.memory`, that pairs, components or members may take: the driver gets
these tables."""

CELL_BYTES = 32 << 20
"""Bytes of a table in one row of ANSWERS."""

ROWS = pa.schema([*DOCUMENTS.arrow, NODE_TEXTS.arrow.field("tokens")])
"""What a task reads: a document, or what is compared of it."""

WANTED_NAMES = ["doc_key", "content_fingerprint", "token_fingerprint"]

Batches = Iterator[pa.RecordBatch]


class WantedError(Exception):
    """Texts are needed that are not there."""

    def __init__(self, contents: frozenset[bytes]) -> None:
        super().__init__(f"{len(contents)} contents")
        self.contents = contents
        self.matches: Matches | None = None


@dataclass(frozen=True)
class Answers:
    """What a task answered: tables and the counts of the stages, the documents whose texts it needs, or neither."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    stages: Mapping[str, Any] = field(default_factory=dict)
    wanted: pa.Table | None = None
    """`WANTED_NAMES`."""

    matches: bytes = b""
    """The candidates, with the documents whose texts they need: the input of the next task."""


@dataclass
class _Given(Workers):
    """One thread, which takes tokens as given in place of reading them."""

    tokens: pa.Table | None = None

    def scan(self, source: Collection | pa.Table, consumer: Consumer, limits: RecordLimits) -> pa.Table:
        """Return the tokens that are there, or ask for them: `WantedError`."""
        del source, limits
        if self.tokens is None:
            raise WantedError(consumer.contents)  # type: ignore[attr-defined]  # of `Tokens`
        return self.tokens


@dataclass(frozen=True)
class Deciding:
    """What a task needs to know besides its rows.

    Attributes:
        forced: the documents of `keep.force`.
        memory: bytes that the task may take.
        matches: the candidates that an earlier task found; the texts that these need are then among the rows.
    """

    config: Config
    forced: Forced | None
    memory: int
    matches: bytes = b""


def decide(batches: Iterable[pa.RecordBatch], *, deciding: Deciding) -> Batches:
    """Yield ANSWERS of a task with these `ROWS`: all documents, and the texts of some."""
    documents, texts = _divide(batches)
    tokens = _name_texts(documents, texts) if deciding.matches else None
    try:
        tables, stages = _make(documents, tokens, deciding)
    except WantedError as error:
        yield _answer(WANTED, _stream(_wanted(documents, error.contents)))
        yield _answer(MATCHES, pickle.dumps(error.matches))
    except NeedsSparkError as error:
        yield _answer(BEYOND, str(error).encode())
    except NddupError as error:
        yield _answer(f"{FAILED} {type(error).__name__}", str(error).encode())
    else:
        yield _answer(COUNTS, json.dumps(stages, default=int).encode())
        for name, table in tables.items():
            row = table.nbytes // max(len(table), 1)
            yield _answer(name, _stream(table.schema.empty_table()))  # that there is such a table, also without rows
            for rows in pieces_of(np.full(len(table), row), CELL_BYTES):
                yield _answer(name, _stream(table.slice(rows.start, rows.stop - rows.start)))


def _make(
    documents: pa.Table, tokens: pa.Table | None, deciding: Deciding
) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    config, memory = deciding.config, Memory(deciding.memory)
    matches: Matches | None = pickle.loads(deciding.matches) if deciding.matches else None  # noqa: S301 - this run's own task made it
    with _Given(1, memory=memory, most_compared=MOST_COMPARED, tokens=tokens) as workers:
        memory.hold(len(documents), sum(len(chunk.flatten()) for chunk in documents["sketch"].chunks))
        joined: list[NDArray[np.int32]] = []
        read = partial(_read, documents, config, workers, joined)
        search = None if matches is None else lambda nodes: matches  # noqa: ARG005
        paired = engine.pair(documents, config, workers, search=search, forced=deciding.forced, read=read)
        clustered = engine.cluster(paired, config, workers)
        kept = engine.keep(paired, clustered, config)
        chosen = engine.count_choices(documents, paired, clustered, kept, config, deciding.forced)
    stages = {"pairs": paired.stage_counts, "clusters": clustered.counts, "keep": chosen}
    of = {"pairs": paired, "keep": kept}
    tables = {name: getattr(of.get(name, clustered), name) for name in MADE}
    if config.output.onto:
        tables["candidates"] = name_candidates(joined[-1], documents["doc_key"].to_numpy())
    return tables, stages


def _read(  # noqa: PLR0913, PLR0917 - a partial of it reads
    documents: pa.Table,
    config: Config,
    workers: Workers,
    joined: list[NDArray[np.int32]],
    matches: Matches,
    nodes: Nodes,
) -> Confirmer | None:
    """Return what compares the texts of candidates; ask for those that are not there: `WantedError`."""
    joined.append(joined_ends(matches))
    memory = workers.memory  # while pairs are found, those of a component that turns out large are there too
    memory.given = min(memory.given or NO_LIMIT, int(memory.bytes_in_use) + MOST_BYTES)
    try:
        return engine.read_texts(matches, documents, nodes, config, TEXTS.arrow.empty_table(), workers)
    except WantedError as error:
        error.matches = matches
        raise


def lay_texts(nodes: list[int], tokens: pa.Array) -> Batches:
    """Yield NODE_TEXTS of some documents."""
    yield NODE_TEXTS.batch([pa.array(nodes, pa.int64()), tokens])


def _divide(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table, pa.Table]:
    rows = pa.Table.from_batches([batch.select(ROWS.names).cast(ROWS) for batch in batches], ROWS)
    is_text = pc.is_valid(rows["tokens"])
    texts, documents = rows.filter(is_text), rows.filter(pc.invert(is_text))
    return documents.select(DOCUMENTS.names).sort_by("doc_key"), texts.select(NODE_TEXTS.names)


def _name_texts(documents: pa.Table, texts: pa.Table) -> pa.Table:
    places = pa.array(np.searchsorted(documents["doc_key"].to_numpy(), texts["doc_key"].to_numpy()))
    return pa.table({"token_fingerprint": documents["token_fingerprint"].take(places), "tokens": texts["tokens"]})


def _wanted(documents: pa.Table, contents: frozenset[bytes]) -> pa.Table:
    is_node = pc.equal(documents["doc_id"], documents["group"])
    named = documents.filter(is_node).select(WANTED_NAMES)
    return named.filter(pc.is_in(named["content_fingerprint"], pa.array(sorted(contents), pa.binary())))


def _answer(what: str, data: bytes) -> pa.RecordBatch:
    return ANSWERS.batch([pa.array([what]), pa.array([data], pa.binary())])


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def read_answers(rows: Iterable[tuple[str, bytes]]) -> Answers | None:
    """Return what a task answered; None if one task is too little.

    Raises:
        NddupError: if the task failed.
    """
    parts: dict[str, list[bytes]] = defaultdict(list)
    for what, data in rows:
        parts[what].append(data)
    for what, (data, *_) in parts.items():
        if what.startswith(FAILED):
            kind = CapacityError if what.endswith(CapacityError.__name__) else NddupError
            raise kind(data.decode())
    if BEYOND in parts:
        return None
    if WANTED in parts:
        return Answers(wanted=pa.ipc.open_stream(parts[WANTED][0]).read_all(), matches=parts[MATCHES][0])
    tables = {}
    for name in parts.keys() - {COUNTS}:
        schema = table_called(name).arrow
        tables[name] = pa.concat_tables(pa.ipc.open_stream(part).read_all().cast(schema) for part in parts[name])
    return Answers(tables, json.loads(parts[COUNTS][0]))
