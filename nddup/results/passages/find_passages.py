"""Find the passages of a collection, or of the kept documents of a run, and make their tables.

The records are read once. Their texts and token hashes lie in files that the workers wrote and are mapped from disk;
the hashes, 8 bytes a token, are copied into memory, and `nddup.passages.repeats` says what the search needs besides.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.arrays import Ragged
from nddup.errors import CapacityError, ConfigError
from nddup.local.memory import Memory
from nddup.local.reading.read_records import list_silent
from nddup.local.reading.scan import in_collection_order
from nddup.local.reading.workers import Workers
from nddup.matching.preference import Order
from nddup.opened.duck import DuckRun
from nddup.passages.hashed_records import HashRecords, find_characters, hashes_of
from nddup.passages.passage_tables import CUTS, OCCURRENCES, PASSAGES, REPEATING
from nddup.passages.repeats import Repeats, find_repeats
from nddup.results.against.compare_collections import tell_far
from nddup.run.engines import memory_of
from nddup.scanning.collection import Collection
from nddup.settings.plan import processes_of, record_limits, text_rule
from nddup.settings.schema import Config
from nddup.stages.inputs_found import find_again, find_inputs
from nddup.stages.losses import list_silent_files, require_few_rejects, require_readable
from nddup.steps import Steps
from nddup.storage.local_storage import LocalStorage
from nddup.storage.run_folder import RunFolder
from nddup.tables import REJECTS

STEPS = 4
"""Number of steps of `find_passages`, for progress."""

ADVICE = "give fewer inputs at a time"
"""Advice in the error if the hashes of the tokens do not fit in memory."""

OF_TOKEN = 100
"""Bytes of memory for each token, as measured with the texts and tables of a run: some 98."""

EXCERPT = 1_000
"""Most characters of a passage's text."""


class Source(NamedTuple):
    """The records to be read: their files, the settings, and of a run its kept documents.

    Attributes:
        collection: the files.
        config: settings for reading them, and of passages.
        kept: `doc_id`, `source`, `record` of the documents that a run kept; None where all records count.
    """

    collection: Collection
    config: Config
    kept: pa.Table | None


@dataclass(frozen=True)
class Documents:
    """The n documents, in the order of the collection.

    Attributes:
        rows: `doc_id`, `source`, `record`, `url`, `text`.
        hashes: the hashes of their tokens.
        rejects: REJECTS.
    """

    rows: pa.Table
    hashes: Ragged
    rejects: pa.Table


class Found(NamedTuple):
    """What was found: the documents, the repeats, and the tables by name."""

    documents: Documents
    repeats: Repeats
    tables: dict[str, pa.Table]


def is_run(inputs: Sequence[str]) -> bool:
    """Return whether the one INPUT is the folder of a finished run."""
    return len(inputs) == 1 and (Path(inputs[0]) / "_RUN.json").is_file()


def find_source(inputs: Sequence[str], config: Config) -> Source:
    """Find the files to read: those of INPUT, or of a run with the settings by which it read them.

    Raises:
        ConfigError: if an input is missing or nothing in it can be read.
        NddupError: if the inputs of a run changed, or more files than allowed cannot be opened.
        OutputError: if the run is not finished.
    """
    files = LocalStorage()
    if not is_run(inputs):
        found = find_inputs(files, list(inputs), config)
        require_readable(found.unread, config.input.max_unreadable)
        return Source(found, config, None)
    run = DuckRun(inputs[0])
    again = find_again(RunFolder(files, inputs[0]), files)
    its = again.config.model_copy(update={"passages": config.passages, "output": config.output, "local": config.local})
    kept = run.sql(
        "SELECT d.doc_id, d.source, d.record FROM documents d JOIN keep k ON d.doc_id = k.doc_id WHERE k.kept"
    )
    return Source(again.collection, its, kept)


def find_passages(source: Source, steps: Steps) -> Found:
    """Find the passages, and make the tables.

    Args:
        source: the records.
        steps: progress.

    Raises:
        ConfigError: if no document can be read, or for columns in `keep.policy`.
        NddupError: if more records than `input.max_rejects` cannot be read.
        CapacityError: if the tokens do not fit in `local.memory`.

    Cost: one pass over the files, then linear in tokens.
    """
    settings = source.config.passages
    with TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as spool:
        steps.begin("read the documents")
        documents = read_documents(source, steps, Path(spool))
        steps.begin("find what is repeated")
        ranks = rank_documents(documents, source.config.keep.order)
        repeats = find_repeats(documents.hashes, ranks, settings.min_tokens, within=settings.within)
        steps.begin("make the tables")
        tables = make_tables(documents, repeats, settings.min_left)
    return Found(documents, repeats, tables)


def read_documents(source: Source, steps: Steps, spool: Path) -> Documents:
    """Read the records; errors as of `find_passages`."""
    config = source.config
    memory = Memory(memory_of(config), advice=ADVICE)
    with Workers(processes_of(config), spool=spool / "rows", progress=tell_far(steps), memory=memory) as workers:
        read = workers.scan(source.collection, HashRecords(text_rule(config)), record_limits(config))
    rows = in_collection_order(read, source.collection)
    records = pa.array(_number_in_source(rows["source"]))
    rows = rows.append_column("record", records)
    is_good = pc.is_null(rows["reason"])
    bad = rows.filter(pc.invert(is_good)).select(REJECTS.names).cast(REJECTS.arrow)
    rejects = pa.concat_tables([bad, list_silent(source.collection, rows)])
    good = rows.filter(is_good)
    if source.kept is not None:
        good = _only_kept(good, source.kept)
    elif config.input.limit is not None:
        good = good.slice(0, config.input.limit)
    if not len(good):
        row = next(iter(rejects.slice(0, 1).to_pylist()), None)
        why = f": {row['source']}: {row['reason']} ({row['detail']})" if row else ""
        raise ConfigError(f"no document can be read{why}")
    if source.kept is None:
        counted = rejects.group_by("reason").aggregate([([], "count_all")])
        reasons = dict(zip(counted["reason"].to_pylist(), counted["count_all"].to_pylist(), strict=True))
        silent = list_silent_files(good["source"], rejects)
        require_few_rejects(len(good), reasons, config.input.max_rejects, silent=silent, source=source.collection)
        good = good.set_column(good.column_names.index("doc_id"), "doc_id", pa.array(_distinct(good), pa.string()))
    tokens = pc.sum(pc.list_value_length(good["hashes"])).as_py() or 0
    if memory.given is not None and OF_TOKEN * tokens > memory.given:
        raise CapacityError(
            f"the {tokens:,} tokens need {OF_TOKEN * tokens / 1e9:.1f} GB of memory, more than local.memory: {ADVICE}"
        )
    return Documents(good.select(["doc_id", "source", "record", "url", "text"]), hashes_of(good), rejects)


def _number_in_source(sources: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the ordinal of each row in its source, from 1; rows of a source are adjacent."""
    if not len(sources):
        return np.empty(0, np.int64)
    codes = np.asarray(pc.rank(sources, tiebreaker="dense"))
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    return np.arange(len(codes)) - np.repeat(starts, np.diff(np.append(starts, len(codes)))) + 1


def _only_kept(rows: pa.Table, kept: pa.Table) -> pa.Table:
    """Return the rows of the kept documents, with the ids of the run."""
    ids = {
        place: doc_id
        for doc_id, *place_of in zip(*(kept[name].to_pylist() for name in ("doc_id", "source", "record")), strict=True)
        for place in [tuple(place_of)]
    }
    places = zip(rows["source"].to_pylist(), rows["record"].to_pylist(), strict=True)
    found = pa.array([ids.get(place) for place in places], pa.string())
    rows = rows.set_column(rows.column_names.index("doc_id"), "doc_id", found)
    return rows.filter(pc.is_valid(found))


def _distinct(rows: pa.Table) -> list[str]:
    """Return unique ids: an id that a record lacks, or an earlier record has, becomes `source#record`."""
    given: list[str | None]
    given, sources, records = (rows[name].to_pylist() for name in ("doc_id", "source", "record"))
    taken = {one for one in given if one is not None}
    seen: set[str] = set()
    named: list[str] = []
    for one, source, record in zip(given, sources, records, strict=True):
        name = one
        if name is None or name in seen:
            name = f"{source}#{record}"
            while name in seen or name in taken:
                name += "+"
        seen.add(name)
        named.append(name)
    return named


def rank_documents(documents: Documents, order: Order) -> NDArray[np.int64]:
    """Return the place of each document in the order of `keep.prefer`, `keep.policy` and the id, (n,).

    Raises:
        ConfigError: for columns in `keep.policy`.
    """
    if order.columns:
        raise ConfigError("keep.policy: passages takes a word, such as longest or first, not columns")
    globs = [re.compile(glob) for glob in order.prefer]
    sizes = np.diff(documents.hashes.offsets).tolist()
    columns = (documents.rows[name].to_pylist() for name in ("doc_id", "source", "url"))
    keys = []
    for place, (doc_id, source, url) in enumerate(zip(*columns, strict=True)):
        preferred = next((at for at, glob in enumerate(globs) if glob.match(source)), len(globs))
        value = {
            "longest": -sizes[place],
            "first": place,
            "shortest-url": len(url) if url is not None else 1 << 62,
            "first-id": 0,
        }[order.policy]
        keys.append((preferred, value, doc_id.encode(), place))
    ranks = np.empty(len(keys), np.int64)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return ranks


def make_tables(documents: Documents, repeats: Repeats, min_left: int) -> dict[str, pa.Table]:
    """Return the tables by name, each in an order that does not depend on how the work was divided."""
    passages, cuts = repeats
    offsets = documents.hashes.offsets
    ends = passages.token + passages.tokens[passages.passage]
    chars, char_ends = _characters(documents, passages.document, passages.token, ends)
    is_first = passages.firsts[passages.passage] == offsets[passages.document] + passages.token
    ids = np.array(_identify(documents.hashes, repeats), object)
    doc_ids = documents.rows["doc_id"]
    occurrences = pa.table(
        {
            "passage_id": pa.array(ids[passages.passage], pa.string()),
            "doc_id": doc_ids.take(pa.array(passages.document)),
            "token": passages.token,
            "token_end": ends,
            "char": chars,
            "char_end": char_ends,
            "first": is_first,
        }
    ).cast(OCCURRENCES.arrow)
    cut_chars, cut_ends = _characters(documents, cuts.document, cuts.token, cuts.token_end)
    cut_rows = pa.table(
        {
            "doc_id": doc_ids.take(pa.array(cuts.document)),
            "token": cuts.token,
            "token_end": cuts.token_end,
            "char": cut_chars,
            "char_end": cut_ends,
        }
    ).cast(CUTS.arrow)
    texts = _texts(documents, passages.document[is_first], chars[is_first], char_ends[is_first])
    by_passage = np.argsort(passages.passage[is_first])
    listed = pa.table(
        {
            "passage_id": pa.array(ids, pa.string()),
            "tokens": passages.tokens,
            "documents": passages.documents,
            "occurrences": passages.places,
            "text": pa.array(texts, pa.string()).take(pa.array(by_passage)),
        }
    ).cast(PASSAGES.arrow)
    return {
        "passages": listed.sort_by(
            [("occurrences", "descending"), ("tokens", "descending"), ("passage_id", "ascending")]
        ),
        "occurrences": occurrences.sort_by(
            [("passage_id", "ascending"), ("doc_id", "ascending"), ("token", "ascending")]
        ),
        "cuts": cut_rows.sort_by([("doc_id", "ascending"), ("token", "ascending")]),
        "repeating": _repeating(documents, repeats, min_left),
        "rejects": documents.rejects,
    }


def _repeating(documents: Documents, repeats: Repeats, min_left: int) -> pa.Table:
    """Return REPEATING, in the order of the collection."""
    covered, cut = repeats.cuts.covered, repeats.cuts.cut
    some = np.flatnonzero(covered)
    sizes = np.diff(documents.hashes.offsets)
    rows = documents.rows.select(["doc_id", "source", "record"]).take(pa.array(some))
    dropped = (cut > 0) & (sizes - cut < min_left)
    for name, column in (("tokens", sizes), ("repeated", covered), ("cut", cut), ("dropped", dropped)):
        rows = rows.append_column(name, pa.array(column[some]))
    return rows.select(REPEATING.names).cast(REPEATING.arrow)


def _identify(hashes: Ragged, repeats: Repeats) -> list[str]:
    """Return the id of each passage, (p,)."""
    values = memoryview(hashes.values.view(np.uint8))  # type: ignore[arg-type] # an array is a buffer
    passages = repeats.passages
    return [
        blake2b(values[8 * first : 8 * (first + size)], digest_size=16).hexdigest()
        for first, size in zip(passages.firsts.tolist(), passages.tokens.tolist(), strict=True)
    ]


def _characters(
    documents: Documents, document: NDArray[np.int32], firsts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the characters of runs of tokens; the runs are in the order of their documents."""
    parts = []
    bounds = np.searchsorted(document, np.arange(len(documents.rows) + 1))
    for low, texts in _blocks(documents):
        offsets = bounds[low : low + len(texts) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        if first < last:
            parts.append(find_characters(texts, offsets - first, firsts[first:last], ends[first:last]))
    none = np.empty(0, np.int64)
    begins, stops = zip(*parts, strict=True) if parts else ((none,), (none,))
    return np.concatenate(begins), np.concatenate(stops)


def _texts(
    documents: Documents, document: NDArray[np.int32], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> list[str]:
    """Return the texts of runs of characters, at most `EXCERPT` each; the runs are in the order of their documents."""
    bounds = np.searchsorted(document, np.arange(len(documents.rows) + 1)).tolist()
    found: list[str] = []
    for low, texts in _blocks(documents):
        for place, text in enumerate(texts, low):
            if bounds[place] < bounds[place + 1]:
                whole = text.decode()
                found += [
                    whole[begins[run] : min(ends[run], begins[run] + EXCERPT)]
                    for run in range(bounds[place], bounds[place + 1])
                ]
    return found


def _blocks(documents: Documents) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the texts in UTF-8, some at a time, with the number of the first."""
    low = 0
    for chunk in documents.rows["text"].chunks:
        if len(chunk):
            yield low, chunk.cast(pa.binary()).to_pylist()
        low += len(chunk)


def cut_text(text: str, cuts: Sequence[tuple[int, int]], mark: str) -> str:
    """Return a text without runs of characters, each replaced by a mark.

    Where no mark is given and the words on both sides would touch, a blank is put between them.

    Example:
        >>> cut_text("one two three", [(4, 8)], ""), cut_text("one, two", [(3, 5)], ""), cut_text("abc", [(1, 2)], "…")
        ('one three', 'one two', 'a…c')
    """
    parts, at = [], 0
    for begin, end in cuts:
        before, after = text[at:begin], text[end : end + 1]
        touches = bool(text[:begin]) and bool(after) and not text[begin - 1].isspace() and not after.isspace()
        parts += [before, mark or (" " if touches else "")]
        at = end
    return "".join([*parts, text[at:]])
