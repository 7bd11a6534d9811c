"""From files or texts to RECORDS, in one pass unless the settings need another.

lexicon      a pass that counts the words, unless another run's are taken, then one that sketches with the lexicon's
left out     a pass that sketches, then one without the shingles that too many documents have
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nddup.embedded.memory import ID_BYTES
from nddup.embedded.workers import Workers, in_collection_order
from nddup.errors import ConfigError, NddupError
from nddup.ground.columns import list_column, lists_of, one_chunk
from nddup.ground.json_text import load_object
from nddup.ground.shown import MOST_NAMED
from nddup.scanning.collection import Collection
from nddup.scanning.input_files import local_path
from nddup.scanning.sketch_records import SketchRecords, WordCounter
from nddup.settings.plan import record_limits, sketch_rule, text_rule, words_of
from nddup.settings.schema import Config
from nddup.sketching.vocabulary import COUNTED, sort_ids
from nddup.sketching.word_sketches import WordRule
from nddup.stages.settle import find_common
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import LocalStorage
from nddup.tables import DOCUMENTS, LEXICON, RECORDS, REJECTS, TERMS, TEXTS, Table

NOTE = "lexicon.json"


class Lexicon(NamedTuple):
    """LEXICON, its ids as bytes of ascending uint64, and the counts of the collection it was made from."""

    table: pa.Table
    ids: bytes
    counts: dict[str, int]


TOGETHER = 64
"""Batches whose rows are copied at a time."""

SOURCE = "dataframe"

CHUNK_BYTES = 512 << 20
"""Maximum number of bytes of texts in one array: the offsets of Arrow's strings end at 2 GB."""


def find_lexicon(source: Collection | pa.Table, config: Config, workers: Workers) -> Lexicon | None:
    """Return the words that describe documents, counted in a pass of their own, or as another run saved them.

    Returns None where the kind needs no lexicon.

    Raises:
        ConfigError: for a saved lexicon that is missing, or made by other settings.
        CapacityError: for too many words.
    """
    words, saved = words_of(config), config.lexicon.saved
    if words is None or not words.needs_lexicon:
        return None
    if saved is not None:
        table, counted = take_saved(saved, words)
    else:
        consumer = WordCounter(words.lexicon, text_rule(config), config.input.min_tokens)
        terms = sum_terms(workers.scan(source, consumer, record_limits(config)))
        occurrences = terms["occurrences"].to_numpy()
        commonest = int(occurrences.max(initial=0))
        least, most = words.lexicon.interval(commonest)
        table = terms.filter(pa.array((occurrences >= least) & (occurrences <= most)))
        counted = {"counted": len(terms), "occurrences": int(occurrences.sum()), "commonest": commonest}
    ids = sort_ids(table["feature"].to_numpy())
    return Lexicon(table, ids, {f"lexicon_{name}": number for name, number in counted.items()})


def sum_terms(counted: pa.Table) -> pa.Table:
    """Sum partial counts to TERMS with each term once, sorted by term."""
    sums = counted.group_by(["term", "feature"]).aggregate([("occurrences", "sum"), ("documents", "sum")])
    whole = sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names])
    return whole.select(TERMS.names).cast(TERMS.arrow).sort_by("term")


def read_note(files: Any, path: str, words: WordRule | None) -> tuple[dict[str, Any], str]:  # noqa: ANN401 - of either engine
    """Return the note of the lexicon that another run saved, and the folder of its table.

    Raises:
        ConfigError: if there is none, or if it was made by other settings: the message names both.
    """
    where, ours = path.rstrip("/"), words.lexicon.key if words else ""
    try:
        note: dict[str, Any] = load_object(files.read_text(f"{where}/{NOTE}"))
    except (NddupError, ValueError) as error:
        raise ConfigError(f"lexicon.saved {path}: holds no lexicon: {NOTE} cannot be read") from error
    if note.get("made_by") != ours:
        raise ConfigError(f"lexicon.saved {path}: made by other settings, [{note.get('made_by')}]; not by [{ours}]")
    return note, f"{where}/lexicon"


def missing_lexicon(path: str) -> str:
    """Return the message for a saved lexicon without its table."""
    return f"lexicon.saved {path}: holds no lexicon: its folder lexicon is missing"


def take_saved(path: str, words: WordRule) -> tuple[pa.Table, dict[str, int]]:
    """Read the lexicon that another run saved, and what was counted for it.

    Raises:
        ConfigError: if there is none, or if it was made by other settings; the message names both settings.
    """
    note, folder = read_note(LocalStorage(), path, words)
    try:
        table = pq.read_table(local_path(folder)).select(LEXICON.names).cast(LEXICON.arrow)
    except OSError as error:
        raise ConfigError(missing_lexicon(path)) from error
    return table, {name: int(note[name] or 0) for name in COUNTED}


class Read(NamedTuple):
    """All records in collection order, rejects of files without any, the lexicon, and the counts."""

    records: pa.Table
    silent: pa.Table
    lexicon: pa.Table | None
    counts: dict[str, Any]


def read_records(source: Collection | pa.Table, config: Config, workers: Workers) -> Read:
    """Make RECORDS of files or of TEXTS.

    Raises:
        ConfigError: for a saved lexicon that cannot be used.
        CapacityError: for a lexicon of too many words.
        NddupError: if a worker fails or dies, naming what it read.
    """
    lexicon = find_lexicon(source, config, workers)
    ids = lexicon.ids if lexicon else b""
    rule = sketch_rule(config, lexicon=ids)
    records = workers.scan(source, SketchRecords(rule), record_limits(config))
    common = b""
    if config.pairs.max_document_frequency is not None:
        from nddup.engines.duck import DuckEngine  # noqa: PLC0415 - most runs have no such limit

        common = find_common(DuckEngine.over("the records", records=records), config)
    if common:
        rule = sketch_rule(config, lexicon=ids, left_out=common)
        records = workers.scan(source, SketchRecords(rule), record_limits(config))
    counts: dict[str, Any] = {"left_out_shingles": len(common) // 8}
    if isinstance(source, Collection):
        records = in_collection_order(records, source)
    batches = records.to_batches()
    del records  # each file of a worker is let go as soon as its rows are copied
    records = join_sketches(batches, workers)
    replaced = records["n_replaced"].to_numpy()
    counts |= {"undecodable_records": int(np.count_nonzero(replaced)), "undecodable_places": int(replaced.sum())}
    counts |= count_unread(records)
    for name in ("stripped", "guessed", "inside"):
        counts |= count_by_file(records, name)
    counts["made_up_ids"] = pc.sum(pc.and_(pc.is_null(records["reason"]), pc.is_null(records["doc_id"]))).as_py() or 0
    counts |= lexicon.counts if lexicon else {}
    silent = list_silent(source, records) if isinstance(source, Collection) else REJECTS.arrow.empty_table()
    return Read(records, silent, lexicon.table if lexicon else None, counts)


def join_sketches(batches: list[pa.RecordBatch], workers: Workers) -> pa.Table:
    """Return RECORDS with the ids of all sketches in one array, which no later step has to make again.

    Args:
        batches: of RECORDS; the list is emptied, so that what only it holds is freed meanwhile.
        workers: they know the folder for a file of more ids than are kept in memory.

    Raises:
        NddupError: if the file cannot be written.

    Cost: one copy of the rows. Memory: that of the rows once, and `TOGETHER` batches; many ids are mapped.
    """
    place = RECORDS.names.index("sketch")
    count = sum(len(batch.column(place).flatten()) for batch in batches)
    return _join(_emptied(batches), RECORDS, count, workers)


def read_documents(folder: LocalFolder, workers: Workers) -> pa.Table:
    """Read the DOCUMENTS that an earlier attempt left; if their ids are many, these are mapped, as after reading.

    Raises:
        OutputError: if a file cannot be read so.
        NddupError: if the mapped file cannot be written.

    Cost: that of the files. Memory: that of the rows and, of mapped ids, those of a row group.
    """
    count = folder.count_values("documents", "sketch")
    if ID_BYTES * count <= workers.memory.mapped_from:
        return folder.read("documents")
    return _join(folder.scan("documents"), DOCUMENTS, count, workers)


def _emptied(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what a list holds, in order, and let it go."""
    batches.reverse()
    while batches:
        yield batches.pop()


def _join(batches: Iterator[pa.RecordBatch], table: Table, count: int, workers: Workers) -> pa.Table:
    """Return the rows of all batches with their ids, `count` at most, in one array."""
    place = table.names.index("sketch")
    ends, others = [np.zeros(1, np.int64)], [table.arrow.empty_table().drop_columns(["sketch"])]

    def ids_of_some() -> Iterator[NDArray[np.uint64]]:
        while portion := list(islice(batches, TOGETHER)):
            others.append(pa.Table.from_batches(portion, table.arrow).drop_columns(["sketch"]).combine_chunks())
            for batch in filter(len, portion):
                rows = list_column(batch.column(place))
                ends.append(ends[-1][-1] + rows.offsets[1:])
                yield rows.values

    workers.memory.is_mapped = ID_BYTES * count > workers.memory.mapped_from
    ids = workers.join_ids(ids_of_some(), count)
    sketches = lists_of(np.concatenate(ends), pa.array(ids.view(np.int64)))
    return pa.concat_tables(others).add_column(place, table.arrow.field("sketch"), sketches)


def count_unread(records: pa.Table) -> dict[str, int]:
    """Return what documents hold that is not in their text, and the number of RECORDS that lie inside others."""
    sizes, parts = records["unread_bytes"].to_numpy(), records["unread_parts"].to_numpy()
    is_unread = ((sizes > 0) | (parts > 0)) & np.asarray(pc.is_null(records["reason"]))
    return {
        "unread_records": int(np.count_nonzero(is_unread)),
        "unread_bytes": int(sizes[is_unread].sum()),
        "unread_parts": int(parts[is_unread].sum()),
        "nested_records": len(records) - records["parent"].null_count,
    }


def count_by_file(records: pa.Table, name: str) -> dict[str, Any]:
    """Return the number of RECORDS with a positive `n_{name}`, as `{name}_records`, and of the first files with some.

    `{name}_files` is a list of names and numbers, in the order of names, MOST_NAMED at most.
    """
    few = records.filter(pc.greater(records[f"n_{name}"], 0)).select(["source"])
    if not len(few):  # Arrow would start threads
        return {f"{name}_records": 0, f"{name}_files": []}
    counted = few.group_by("source").aggregate([("source", "count")]).sort_by("source").slice(0, MOST_NAMED)
    files = zip(counted["source"].to_pylist(), counted["source_count"].to_pylist(), strict=True)
    return {f"{name}_records": len(few), f"{name}_files": [list(file) for file in files]}


def list_silent(collection: Collection, records: pa.Table) -> pa.Table:
    """Return REJECTS of whole files: those already refused by their head, and those in which no record was found."""
    seen = set(pc.unique(records["source"]).to_pylist())
    rejects = [
        {"source": source, "record": 1, "doc_id": None, "reason": reason, "detail": detail, "excerpt": ""}
        for source, reason, detail in collection.rejects_of_files
        if source not in seen
    ]
    return pa.Table.from_pylist(rejects, REJECTS.arrow)


def cut(chunk: pa.Array) -> Iterator[pa.Array]:
    """Yield an array in parts of at most CHUNK_BYTES, or of one row."""
    if chunk.nbytes <= CHUNK_BYTES or len(chunk) <= 1:
        yield chunk
        return
    half = len(chunk) // 2
    for part in (chunk.slice(0, half), chunk.slice(half)):
        is_wide = pa.types.is_large_string(part.type) or pa.types.is_large_binary(part.type)
        # A slice keeps its offsets, which may be wider than those of a string; rows that are taken get their own.
        fits = is_wide and part.nbytes <= CHUNK_BYTES
        yield from cut(part.take(pa.array(np.arange(len(part)))) if fits else part)


def number_texts(
    table: pa.Table,
    *,
    id: str,  # noqa: A002 - the caller's word
    text: str,
    policy: pa.ChunkedArray | None = None,
    in_rows: bool = False,
) -> pa.Table:
    """Return TEXTS of a table, ordered by id; those of equal ids by their bytes.

    Args:
        table: any table with the columns `id` and `text`, and perhaps `title` and `turns`, which are read as strings.
        id: name of the column of ids.
        text: name of the column of texts.
        policy: for each row the values of the columns that are read for the keep-list, a list of strings.
        in_rows: leave the rows in their order, where it decides what is kept (`Order.is_of_rows`).

    Cost: a sort of the ids; texts of repeated ids are sorted in Python.
    """
    ids, *given = (
        table[name].cast(pa.string())
        if name in table.column_names
        else pa.chunked_array([pa.nulls(len(table), pa.string())])
        for name in (id, "title", text, "turns")
    )
    if policy is None:
        policy = pa.chunked_array([pa.nulls(len(table), TEXTS.arrow.field("policy").type)])
    if in_rows:
        return _as_rows(one_chunk(ids), given, policy, np.arange(len(table)))
    order = np.asarray(pc.array_sort_indices(one_chunk(ids))).astype(np.int64)  # nulls come last
    in_order = one_chunk(ids).take(pa.array(order))
    keys = pc.fill_null(in_order, "").cast(pa.binary())
    is_null = np.asarray(pc.is_null(in_order))
    is_same = np.zeros(len(order), np.bool_)
    if len(order) > 1:
        is_same[1:] = np.asarray(pc.equal(keys[1:], keys[:-1])) & (is_null[1:] == is_null[:-1])

    starts = np.flatnonzero(~is_same)
    for low, high in zip(starts, np.append(starts[1:], len(order))[: len(starts)], strict=True):
        if high - low > 1:
            run = order[low:high].tolist()
            order[low:high] = sorted(
                run, key=lambda row: [*(_key(texts[row]) for texts in given), *map(_key, policy[row].values or ())]
            )

    return _as_rows(in_order if not is_same.any() else one_chunk(ids).take(pa.array(order)), given, policy, order)


def _as_rows(
    ids: pa.Array, texts: Sequence[pa.ChunkedArray], policy: pa.ChunkedArray, order: NDArray[np.int64]
) -> pa.Table:
    """Return TEXTS of ids that are in their order already, and of what is put into it."""
    rows = len(order)
    columns = [
        ids,
        pa.nulls(rows, pa.string()),
        *(_take(column, order) for column in texts),
        pa.array([SOURCE], pa.string()).take(pa.array(np.zeros(rows, np.int64))),
        pa.array(np.zeros(rows, np.int64)),
        pa.array(np.arange(rows)),
        policy.take(pa.array(order)),
    ]
    return pa.Table.from_arrays(columns, schema=TEXTS.arrow)


def _take(texts: pa.ChunkedArray, order: NDArray[np.int64]) -> pa.ChunkedArray:
    """Return texts in an order. Arrow joins all chunks for it, so it needs wide offsets."""
    wide = texts.cast(pa.large_string()).take(pa.array(order))
    parts = [part for chunk in wide.chunks for part in cut(chunk)]
    return pa.chunked_array([part.cast(pa.string()) for part in parts], pa.string())


def _key(text: pa.StringScalar) -> tuple[bool, bytes]:
    """Return the sort key of a text, which may be any bytes, among those of the same id: by bytes, null first."""
    data = text.as_buffer().to_pybytes() if text.is_valid else None
    return data is not None, data or b""
