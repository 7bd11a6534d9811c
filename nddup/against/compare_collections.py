"""`nddup against A B`: find exactly which items of B occur in A.

    compare       A, B, settings -> Compared: verdicts, and the tables of the command
    start_here    settings       -> the Engine of this machine
    share_here    workers        -> its pass over A for each part of B
    item_rows, span_rows, suppressed_rows, matrix_rows    verdicts -> the rows of the tables

The engine finds the shingles that documents of A share with items of B; the rest is the same for both engines.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.against.against_inputs import By, Items, Side, find_side, gather_rejects, read_items, require_few
from nddup.against.judge import CLEAN, COMMON, FOUND, PART, SHORT, UNREAD, Holders, Judged, Rules, judge
from nddup.against.share_records import SavedShingles, ShareRecords, first_numbers, flatten, join_shared, number_items
from nddup.against.shingle_table import Known
from nddup.against.spans import count_characters, find_runs
from nddup.embedded.memory import Memory
from nddup.embedded.workers import Workers, in_collection_order
from nddup.engines.choose import memory_of
from nddup.errors import ConfigError
from nddup.ground.columns import fingerprints_of
from nddup.ground.progress import Steps
from nddup.reading.csv_rows import HEADER
from nddup.scanning.collection import Files
from nddup.settings.plan import processes_of, record_limits, text_rule
from nddup.settings.schema import Config
from nddup.sketching.tokens import tokenise
from nddup.storage.local_storage import LocalStorage
from nddup.tables.features import ITEMS, MATRIX, SPANS, SUPPRESSED

TEXTLESS = frozenset({"no content", "revisit", "status", "deleted", "short", HEADER})
"""Reasons of rejects that hold no text to be compared; `status`: captures that `input.statuses` leaves out."""

MEDIA = (
    "image/", "audio/", "video/", "font/", "text/css", "text/javascript", "text/x-javascript", "text/ecmascript",
    "text/dns", "application/javascript", "application/x-javascript",
)  # fmt: skip
"""Beginnings of the types of files that hold no text of documents."""

_TOLD = ("source", "reason", "detail")

OF_HIT = 60
"""Bytes of memory for each occurrence of a shingle of B in A."""


@dataclass(frozen=True)
class Shared:
    """The n documents of A that have a shingle of B.

    Attributes:
        rows: SHARED, n rows.
        holders: the documents in the form that `judge` takes.
        documents: number of all documents of A.
        is_all_read: whether no reject may hold a text.
        records: (n,), the place of each document in its file, from 1.
        counts: the number of records of each file.
    """

    rows: pa.Table
    ids: list[str]
    sources: list[str]
    holders: Holders
    documents: int
    rejects: pa.Table
    is_all_read: bool
    records: NDArray[np.int64]
    counts: dict[str, int]


Share = Callable[[Side, Items, bool], Sequence[pa.Table]]
"""Reads A; returns SHARED for each part of B. Last argument: whether to count the distinct shingles of documents."""

VERDICTS = {
    CLEAN: ("clean", None),
    PART: ("part", None),
    FOUND: ("found", None),
    SHORT: ("not testable", "short"),
    COMMON: ("not testable", "common"),
    UNREAD: ("not testable", "unread"),
}
"""Code -> verdict and reason."""

EXCERPT = 300
"""Maximum number of characters of an excerpt."""

MOST_CELLS = 1_000_000
"""Maximum number of rows of a matrix with every part of B against every part of A; a larger one omits pairs that share
nothing."""

STEPS = 6
"""Number of steps of `compare`, for progress."""

ADVICE = "give more, or B in several commands"
"""Advice in the error if even one item, or the shared shingles, do not fit in memory."""


def share_here(workers: Workers) -> Share:
    """Make a `Share` with one pass over the files for each part of B; each worker holds the shingles of one part."""

    def share(side: Side, items: Items, counts: bool) -> Iterator[pa.Table]:  # noqa: FBT001 - as `Share`
        for part in items.parts:
            consumer = ShareRecords(SavedShingles(str(part.folder)), text_rule(side.config), counts)
            yield workers.scan(side.collection, consumer, record_limits(side.config))

    return lambda side, items, counts: list(share(side, items, counts))


def read_shared(side: Side, items: Items, workers: Workers, share: Share, *, counts: bool) -> Shared:
    """Find the shingles of B in the documents of A.

    Args:
        side: A.
        items: B.
        workers: give the memory limit.
        share: reads A.
        counts: whether to count the distinct shingles of the documents.

    Raises:
        ConfigError: if no document can be read.
        NddupError: if more records than `input.max_rejects` cannot be read, or a worker fails.
        NeedsSparkError: if the shared shingles may take more than `local.memory`.
    """
    passes = share(side, items, counts)
    rows = passes[0]  # the rejects and the records are the same in each pass
    documents = [one.filter(pc.equal(one["what"], "document")) for one in passes]
    hits = sum(pc.sum(pc.list_value_length(one["numbers"])).as_py() or 0 for one in documents)
    workers.memory.require(OF_HIT * hits, "what is shared")
    shared = in_collection_order(join_shared(documents, first_numbers(items.tables)), side.collection)
    counted = rows.filter(pc.equal(rows["what"], "count"))
    bad = in_collection_order(rows.filter(pc.equal(rows["what"], "reject")), side.collection)

    before, n_records = _records_before(counted)
    rejects = gather_rejects("A", bad, _number(bad, before), np.ones(len(bad), np.bool_), side, rows)
    with_documents = _with_documents(counted, bad)
    require_few(side, n_records - len(bad), with_documents, rejects)

    sources = shared["source"].to_pylist()
    made = _number(shared, before).tolist()
    ids = [
        one if one is not None else f"{source}#{record}"
        for one, source, record in zip(shared["doc_id"].to_pylist(), sources, made, strict=True)
    ]
    by_file = counted.group_by("source").aggregate([("seq", "sum")])
    return Shared(shared, ids, sources, _hold(shared, ids, sources, side), n_records - len(bad), rejects,
                  _is_all_read(rejects, with_documents, side), np.array(made, np.int64),
                  dict(zip(by_file["source"].to_pylist(), by_file["seq_sum"].to_pylist(), strict=True)))  # fmt: skip


def _hold(shared: pa.Table, ids: list[str], sources: list[str], side: Side) -> Holders:
    offsets, numbers = flatten(shared["numbers"])
    order = sorted(range(len(ids)), key=lambda row: (ids[row].encode(), sources[row].encode(), row))
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.arange(len(ids))
    contents = fingerprints_of(shared["content_fingerprint"])
    return Holders(
        offsets, numbers, contents, shared["n_shingles"].to_numpy().astype(np.int32), ranks, side.places_of(sources)
    )


def _is_all_read(rejects: pa.Table, with_documents: pa.ChunkedArray, side: Side) -> bool:
    """Return whether no reject of A may hold a text.

    Records without text, among others that have one, hold none, such as images in an archive; nor do empty files, and
    those whose names are of images, sounds, films, fonts, styles and scripts.
    """
    sizes = {file.source: file.size for file in side.collection.listing.files}
    known = frozenset(with_documents.to_pylist())
    for source, reason, detail in set(zip(*(rejects[name].to_pylist() for name in _TOLD), strict=True)):
        is_textless = reason in TEXTLESS or (reason == "not text" and detail.lower().startswith(MEDIA))
        is_without_text = (
            is_textless if source in known else not sizes.get(source) or str(guess_type(source)[0]).startswith(MEDIA)
        )
        if not is_without_text:
            return False
    return True


def _with_documents(counted: pa.Table, bad: pa.Table) -> pa.ChunkedArray:
    records = counted.group_by("source").aggregate([("seq", "sum")])
    rejects = {row["values"]: row["counts"] for row in pc.value_counts(bad["source"]).to_pylist()}
    totals = zip(records["source"].to_pylist(), records["seq_sum"].to_pylist(), strict=True)
    return pa.chunked_array([pa.array([source for source, n in totals if n > rejects.get(source, 0)], pa.string())])


def _records_before(counted: pa.Table) -> tuple[dict[tuple[str, int], int], int]:
    sums = counted.group_by(["source", "split"]).aggregate([("seq", "sum")]).sort_by(
        [("source", "ascending"), ("split", "ascending")]
    )  # fmt: skip
    before: dict[tuple[str, int], int] = {}
    last, within, total = None, 0, 0
    for row in sums.to_pylist():
        within = within if row["source"] == last else 0
        before[row["source"], row["split"]] = within
        last, within, total = row["source"], within + row["seq_sum"], total + row["seq_sum"]
    return before, total


def _number(rows: pa.Table, before: dict[tuple[str, int], int]) -> NDArray[np.int64]:
    places = zip(*(rows[name].to_pylist() for name in ("source", "split", "seq")), strict=True)
    return np.array([before[source, split] + seq + 1 for source, split, seq in places], np.int64)


def item_rows(items: Items, shared: Shared, judged: Judged) -> pa.Table:
    """Return ITEMS, in the order of the collection."""
    is_testable = judged.verdicts < SHORT
    verdicts = [VERDICTS[code] for code in judged.verdicts.tolist()]
    best = [place if place >= 0 else None for place in judged.best.tolist()]
    columns = {
        "item": items.ids,
        "source": items.sources,
        "shingles": judged.sizes.astype(np.int32),
        "suppressed": judged.suppressed.astype(np.int32),
        "verdict": [verdict for verdict, _ in verdicts],
        "reason": [reason for _, reason in verdicts],
        "document": [None if place is None else shared.ids[place] for place in best],
        "document_source": [None if place is None else shared.sources[place] for place in best],
        "containment": pa.array(judged.containment, mask=~is_testable),
        "covered": pa.array(judged.covered, mask=~is_testable),
    }
    return pa.table({name: columns[name] for name in ITEMS.names}, schema=ITEMS.arrow)


def span_rows(items: Items, shared: Shared, judged: Judged) -> pa.Table:
    """Return SPANS of every item that shares shingles with a document."""
    spans = SharedSpans(items, shared, judged.is_suppressed)
    places = np.flatnonzero(judged.best >= 0).tolist()
    rows = [row for item in places for row in spans.of(item, int(judged.best[item]))]
    return pa.Table.from_pylist(rows, SPANS.arrow)


class SharedSpans:
    """The shared shingles of the documents as arrays, from which it makes the spans of an item and a document."""

    def __init__(self, items: Items, shared: Shared, is_suppressed: NDArray[np.bool_]) -> None:
        self.items, self.shared, self.is_suppressed = items, shared, is_suppressed
        self.offsets, self.tokens = flatten(shared.rows["tokens"])
        self.numbered = number_items(items.tables)
        self.numbers, self.begins, self.ends = (flatten(shared.rows[name])[1] for name in ("numbers", "begins", "ends"))

    def of(self, item: int, document: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of SPANS of an item and a document."""
        low, high = self.offsets[document], self.offsets[document + 1]
        numbers = self.numbered.numbers[self.numbered.firsts[item] : self.numbered.firsts[item + 1]]
        runs = find_runs(numbers, self.tokens[low:high], self.numbers[low:high], self.is_suppressed)
        part = self.items.part_of(item)
        known, row = part.known, item - part.low
        first, start = int(known.firsts[row]), int(known.bounds[row])
        for at, hit, size in zip(*(values.tolist() for values in runs), strict=True):
            place, tokens = low + hit, size + known.length - 1
            begin, end = int(self.begins[place]), int(self.ends[place + size - 1])
            yield {
                "item": self.items.ids[item],
                "document": self.shared.ids[document],
                "item_token": at,
                "item_token_end": at + tokens,
                "item_char": count_characters(known.data, start, int(known.starts[first + at])),
                "item_char_end": count_characters(known.data, start, int(known.ends[first + at + tokens - 1])),
                "document_token": int(self.tokens[place]),
                "document_token_end": int(self.tokens[place]) + tokens,
                "document_char": begin,
                "document_char_end": end,
                "excerpt": self._excerpt(document, begin, end),
            }

    def _excerpt(self, document: int, begin: int, end: int) -> str:
        starts = self.shared.rows["region_starts"][document].as_py()
        piece = int(np.searchsorted(starts, begin, "right")) - 1
        text: str = self.shared.rows["regions"][document][piece].as_py()
        return text[begin - starts[piece] : min(end, begin + EXCERPT) - starts[piece]]


def suppressed_rows(items: Items, judged: Judged) -> pa.Table:
    """Return SUPPRESSED, the most frequent shingle first."""
    many = np.flatnonzero(judged.is_suppressed & ~number_items(items.tables).repeated)
    many = many[np.argsort(-judged.frequencies[many], kind="stable")]
    first = np.array(first_numbers(items.tables))
    parts = np.searchsorted(first, many, "right") - 1
    spelled = [
        _spell(items.parts[part].known, number - int(first[part]))
        for part, number in zip(parts.tolist(), many.tolist(), strict=True)
    ]
    return pa.table({"shingle": spelled, "documents": judged.frequencies[many]}, schema=SUPPRESSED.arrow)


def _spell(known: Known, number: int) -> str:
    token = int(known.places[number])
    run = known.data[known.starts[token] : known.ends[token + known.length - 1]]
    return " ".join(tokenise(bytes(run).decode("utf-8", "replace"), known.ignored))


def matrix_rows(a: Side, b: Side, items: Items, judged: Judged) -> pa.Table:
    """Return MATRIX: each part of B against each part of A; above `MOST_CELLS` rows, only pairs that share shingles."""
    parts_a, parts_b = a.parts, b.parts
    of_item = b.places_of(items.sources)
    is_testable = judged.verdicts < SHORT
    n_items = np.bincount(of_item, minlength=len(parts_b))
    n_testable = np.bincount(of_item, weights=is_testable, minlength=len(parts_b)).astype(np.int64)

    item, part, verdict = judged.cells.T
    keys = of_item[item] * len(parts_a) + part
    n_cells = len(parts_a) * len(parts_b)
    shown = np.arange(n_cells) if n_cells <= MOST_CELLS else np.unique(keys)
    places = np.searchsorted(shown, keys)
    n_found = np.bincount(places[verdict == FOUND], minlength=len(shown))
    partly = np.bincount(places[verdict == PART], minlength=len(shown))
    row_b, row_a = np.divmod(shown, max(len(parts_a), 1))
    columns = {
        "source_b": [parts_b[place] for place in row_b.tolist()],
        "source_a": [parts_a[place] for place in row_a.tolist()],
        "items": n_items[row_b],
        "testable": n_testable[row_b],
        "found": n_found,
        "part": partly,
        "clean": n_testable[row_b] - n_found - partly,
    }
    return pa.table({name: columns[name] for name in MATRIX.names}, schema=MATRIX.arrow)


@dataclass(frozen=True)
class AskedAgainst:
    """The settings of a comparison.

    Attributes:
        rules: when an item counts as found.
        length: number of tokens in a shingle.
        by: parts of the matrix: files (`source`) or folders.
    """

    rules: Rules
    length: int = 8
    by: By = "source"


class Engine(NamedTuple):
    """The readers of the collections: `files` lists and opens files, `workers` reads B, and `share` reads A."""

    files: Files
    workers: Workers
    share: Share


class Compared(NamedTuple):
    """The result: the collections, the verdicts, and the tables to write, by name."""

    a: Side
    b: Side
    items: Items
    shared: Shared
    judged: Judged
    tables: dict[str, pa.Table]


Start = Callable[[Config, Path, Steps], AbstractContextManager[Engine]]
"""Starts an engine, with a folder of this machine for its temporary files."""


def compare(
    a: tuple[str, Config], b: tuple[str, Config], asked: AskedAgainst, steps: Steps, start: Start | None = None
) -> Compared:
    """Compare every document of A with the items of B.

    Args:
        a: path of the collection that may contain items, and the settings for reading it.
        b: path of the items, and the settings for reading them.
        start: starts the engine; None: this machine's.

    Raises:
        ConfigError: if a path is missing, or nothing in it can be read.
        NddupError: if more files or records are unreadable than the settings allow.
        NeedsSparkError: if the texts of B, or the shared shingles, need more than `local.memory`.

    Cost: reads A once for each part of B, on Spark once in all, as fast as its records can be parsed.
    """
    with TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as name:
        spool = Path(name)
        with (start or start_here)(a[1], spool, steps) as engine:
            steps.begin("find the files and their formats")
            side_a = find_side(*a, asked.by, engine.files)
            with _naming_setting(b[0]):
                side_b = find_side(*b, asked.by, engine.files)
            steps.begin("read the items")
            items = read_items(side_b, asked.length, engine.workers, spool)
            steps.begin("compare with A")
            shared = read_shared(side_a, items, engine.workers, engine.share, counts=asked.rules.of != "item")

        steps.begin("judge the items")
        judged = judge(number_items(items.tables), shared.holders, asked.rules, is_all_read=shared.is_all_read)
        steps.begin("find what is shared")
        tables = {
            "items": item_rows(items, shared, judged),
            "spans": span_rows(items, shared, judged),
            "suppressed": suppressed_rows(items, judged),
            "matrix": matrix_rows(side_a, side_b, items, judged),
            "rejects": pa.concat_tables([shared.rejects, items.rejects]),
        }
        return Compared(side_a, side_b, items, shared, judged, tables)


@contextmanager
def _naming_setting(path: str) -> Iterator[None]:
    """Say how B is read by other keys than A, where a setting of the inputs does not fit it."""
    try:
        yield
    except ConfigError as error:
        if "input." not in str(error):
            raise
        raise ConfigError(f"{error} (--set-b input.content=KEY is for {path} alone)") from error


def report_to(steps: Steps) -> Callable[[str, int, int], None]:
    """Return a progress callback for workers that ignores their step names: the command's steps have their own."""
    return lambda _, done, whole: steps.advance(done, whole)


@contextmanager
def start_here(config: Config, spool: Path, steps: Steps) -> Iterator[Engine]:
    """Start this machine's engine: worker processes, each with the shingles of one part of B."""
    memory = Memory(memory_of(config), advice=ADVICE)
    with Workers(processes_of(config), spool=spool / "rows", progress=report_to(steps), memory=memory) as workers:
        yield Engine(LocalStorage(), workers, share_here(workers))
