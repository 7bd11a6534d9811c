"""The output of a run beside its tables: the lists as text, the kept documents, and the texts of the report."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nddup.embedded.workers import Workers
from nddup.errors import NddupError, OutputError
from nddup.ground.columns import one_chunk, ragged_of, sizes_of, take
from nddup.ground.shown import ESCAPED, FIRST, LAST, escaped, spell_document
from nddup.rewriting.verdicts import RewriteError, Tags, spell_attributes, tag_json
from nddup.scanning.collection import Collection
from nddup.scanning.found import RecordLimits, TextRule
from nddup.scanning.read_again import CHARACTERS, Contents, Counts, Texts
from nddup.scanning.record_blocks import Places, are_blocks
from nddup.stages.written_records import KeptFiles
from nddup.tables import COUNTED, DOCUMENTS, PARTS, STORED_TEXTS

KEPT_COLUMNS = ["doc_key", "doc_id", "url", "source", "record"]
"""The columns of DOCUMENTS that are written with a kept document, and its number."""

NO_FIELDS = pa.schema([])

LINES = 10_000
"""Lines of a text that are made at a time."""


def spell_clusters(clusters: pa.Table, members: pa.Table) -> Iterator[str]:
    """Yield the lines of `duplicates.txt`, sorted, many at a time: tab-separated ids, then the common features.

    Args:
        members: MEMBERS, for the clusters whose row lists only some of their members.
    """
    listed, sizes = one_chunk(clusters["members"]), sizes_of(clusters["members"])
    ids, ends = listed.flatten(), np.append(0, np.cumsum(sizes))
    # As bytes, numbers of four with the highest first are in the order of lists of numbers.
    ranks = pc.rank(ids, tiebreaker="dense").to_numpy().astype(">u4")
    spelled = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(sizes), [None, pa.py_buffer(ends * ranks.itemsize), pa.py_buffer(ranks)]
    )
    ordered = pa.table({"members": spelled, "cluster_id": clusters["cluster_id"]})
    order = pc.sort_indices(ordered, [(name, "ascending") for name in ordered.column_names])

    if pc.any(pc.match_substring_regex(ids, ESCAPED)).as_py():
        ids = pa.array(map(escaped, ids.to_pylist()), pa.string())
    lines = pc.binary_join(pa.LargeListArray.from_arrays(ends, ids), "\t")
    is_cut = sizes < clusters["size"].to_numpy()
    if is_cut.any():
        cut = clusters["cluster_id"].filter(pa.array(is_cut)).to_pylist()
        whole = _members_of(members, cut)
        lines = pc.replace_with_mask(lines, is_cut, ["\t".join(map(escaped, whole[name])) for name in cut])
    lines = pc.binary_join_element_wise(lines, one_chunk(clusters["support"]).cast(pa.string()), "\t").take(order)
    for low in range(0, len(lines), LINES):
        yield "\n".join([*lines.slice(low, LINES).to_pylist(), ""])


def _members_of(members: pa.Table, cluster_ids: list[str]) -> dict[str, list[str]]:
    few = members.filter(pc.is_in(members["cluster_id"], pa.array(cluster_ids, pa.string()))).sort_by("doc_id")
    of_cluster: dict[str, list[str]] = {cluster_id: [] for cluster_id in cluster_ids}
    for cluster_id, doc_id in zip(few["cluster_id"].to_pylist(), few["doc_id"].to_pylist(), strict=True):
        of_cluster[cluster_id].append(doc_id)
    return of_cluster


def spell_features(documents: pa.Table) -> Iterator[str]:
    """Yield the lines of `context.fimi`, many at a time: the `doc_key`s that hold a feature, a line for each feature.

    The features are in ascending order as signed numbers.
    """
    sketches = ragged_of(documents["sketch"])
    features = sketches.values.view(np.int64)
    keys = np.repeat(documents["doc_key"].to_numpy(), np.diff(sketches.offsets))
    order = np.lexsort((keys, features))
    starts = np.flatnonzero(np.append(True, np.diff(features[order]) != 0)[: len(order)])
    ends = np.append(starts, len(order))

    for low in range(0, len(starts), LINES):
        bounds = ends[low : low + LINES + 1]
        spelled = pa.array(keys[order[bounds[0] : bounds[-1]]]).cast(pa.string())
        lines = pa.ListArray.from_arrays(pa.array((bounds - bounds[0]).astype(np.int32)), spelled)
        yield "\n".join(pc.binary_join(lines, " ").to_pylist()) + "\n"


def count_parts(records: pa.Table) -> pa.Table:
    """Return PARTS: how many records of the collection come before each part that was read.

    Args:
        records: RECORDS in collection order.
    """
    if not len(records):
        return PARTS.arrow.empty_table()
    source = one_chunk(records["source"]).dictionary_encode().indices.to_numpy()
    is_first = np.append(True, (np.diff(source) != 0) | (np.diff(records["split"].to_numpy()) != 0))
    before = np.flatnonzero(is_first)
    return records.select(["source", "split"]).take(pa.array(before)).append_column("before", pa.array(before))


def places_of(keys: pa.ChunkedArray, parts: pa.Table | None) -> Places | None:
    """Return where records are, by their places in the collection, `doc_key`; None without PARTS.

    Of records before the first part nothing is said.
    """
    if parts is None:
        return None
    wanted, before = np.sort(keys.to_numpy()), parts["before"].to_numpy()
    wanted = wanted[wanted >= before.min(initial=np.iinfo(np.int64).max)]
    cuts = np.searchsorted(wanted, np.append(before, np.iinfo(np.int64).max))
    named = zip(parts["source"].to_pylist(), parts["split"].to_pylist(), strict=True)
    bounds = {part: (low, high) for part, (low, high) in zip(named, pairwise(cuts.tolist()), strict=True) if low < high}
    return Places(bounds, wanted - np.repeat(before, np.diff(cuts)))


def holders_of(documents: pa.Table, places: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the places of documents whose records hold the texts of some.

    A revisit holds none: for one, it is the first other document of its content, or itself where there is none.
    """
    is_revisit = np.asarray(pc.fill_null(pc.equal(documents["record_type"], "revisit"), fill_value=False))
    asked = np.flatnonzero(is_revisit[places])
    if not len(asked):
        return places
    others, contents = np.flatnonzero(~is_revisit), documents["content_fingerprint"]
    at = pc.index_in(take(contents, places[asked]), value_set=one_chunk(take(contents, others))).fill_null(-1)
    holders, at = places.copy(), np.asarray(at)
    holders[asked[at >= 0]] = others[at[at >= 0]]
    return holders


@dataclass(frozen=True)
class Reader:
    """The files of a run, to be read again as they were read the first time."""

    collection: Collection
    text: TextRule
    limits: RecordLimits
    workers: Workers

    def find_places(self, records: Iterable[tuple[str, int]]) -> Places | None:
        """Return where records, by source and ordinal, are in files read in blocks; None if there is none.

        Cost: a pass that counts the lines of files that are read in parts.
        """
        groups = [group for group in self.collection.groups if are_blocks(group.head)]
        known = {entry.file.source for group in groups for entry in group.files}
        wanted = [(source, record) for source, record in records if source in known and record > 0]
        if not wanted:
            return None
        cut = tuple(group for group in groups if not group.is_whole)
        files = replace(self.collection, groups=cut).only({source for source, _ in wanted})
        counted = self.workers.scan(files, Counts(), self.limits)
        known = set(pc.unique(counted["source"]).to_pylist())
        whole = [{"source": source, "split": 0, "n": record} for source, record in wanted if source not in known]
        by_split = pa.concat_tables([counted, pa.Table.from_pylist(whole, COUNTED.arrow)]).group_by(["source", "split"])
        parts = by_split.aggregate([("n", "max")]).sort_by([("source", "ascending"), ("split", "ascending")])
        before = np.cumsum(parts["n_max"]) - parts["n_max"]
        firsts = dict(zip(reversed(parts["source"].to_pylist()), reversed(before.tolist()), strict=True))
        keys = pa.chunked_array([pa.array([firsts[source] + record - 1 for source, record in wanted], pa.int64())])
        return places_of(keys, parts.append_column("before", pa.array(before)))

    def find_texts(
        self,
        documents: Mapping[str, tuple[str, bytes]],
        characters: int | None = CHARACTERS,
        places: Places | None = None,
    ) -> pa.Table:
        """Return STORED_TEXTS of these documents (doc_id -> source, fingerprint), reading their files only.

        A document that is no longer in its file has no row. Where one is not at its place, all are looked for anywhere.
        """
        if not documents:
            return STORED_TEXTS.arrow.empty_table()
        fingerprints = frozenset(fingerprint for _, fingerprint in documents.values())
        files = self.collection.only({source for source, _ in documents.values()})
        rows = self.workers.scan(files, Texts(self.text, fingerprints, characters, places), self.limits)

        texts: dict[tuple[str, bytes], str] = {}
        for row in rows.to_pylist():  # records of equal content may have different texts: the least is taken
            place = row["source"], row["content_fingerprint"]
            texts[place] = min(row["text"], texts.get(place, row["text"]))
        named = [(doc_id, texts[place]) for doc_id, place in sorted(documents.items()) if place in texts]
        if places is not None and len(named) < len(documents):
            return self.find_texts(documents, characters)
        return pa.Table.from_pylist([{"doc_id": doc_id, "text": text} for doc_id, text in named], STORED_TEXTS.arrow)

    def find_kept(self, documents: pa.Table, parts: pa.Table, form: str) -> Iterator[pa.Table]:
        """Yield the contents of these documents, some MB at a time, by `doc_key`: content, line, and their columns.

        Args:
            documents: `KEPT_COLUMNS` and others, of rows of DOCUMENTS in their order; `doc_key` is that of the record
                that holds the content.
            parts: PARTS of the pass that numbered them.
        """
        contents = self.workers.scan(self.collection, Contents(self.text, form), self.limits)
        documents = documents.sort_by("doc_key")
        known = documents["doc_key"].to_numpy()
        for batch in contents.to_batches():
            placed = pa.Table.from_batches([batch]).join(parts, ["source", "split"])
            keys = pc.add(placed["before"], placed["seq"]).to_numpy()
            order = np.argsort(keys)
            low, high = (np.searchsorted(known, keys[order], side) for side in ("left", "right"))
            rows, first = (
                np.repeat(order, high - low),
                np.repeat(low - np.cumsum(high - low) + (high - low), high - low),
            )
            taken = documents.take(pa.array(first + np.arange(len(rows))))
            for name in ("content", "line"):
                taken = taken.append_column(name, placed[name].take(pa.array(rows)))
            yield taken


def write_kept(kept: Iterable[pa.Table], folder: Path, files: KeptFiles, added: pa.Schema = NO_FIELDS) -> int:
    """Write the kept documents to a new folder, as Parquet, JSON lines or ROMIP XML; return their number.

    A document that was read from JSON lines is written to JSON lines as its original line, with all its fields.

    Args:
        kept: as `Reader.find_kept` gives it.
        files: in which form, and which document in which file; delta is written as parquet, without its log.
        added: its columns that each record gets beside its own.

    Raises:
        OutputError: if a file cannot be written.
        NddupError: if a worker fails, or a line has the added fields already.
    """
    fields = [DOCUMENTS.arrow.field(name) for name in KEPT_COLUMNS[1:]]
    schema = pa.schema([*fields, pa.field("content", pa.string()), *added])
    write, written, target = _write_parquet if files.is_table else _write_lines, 0, folder
    first = (0, schema.empty_table())  # the first file is there whatever is kept
    try:
        folder.mkdir(parents=True)
        for number, tables in groupby(chain([first], _by_file(kept, files)), key=itemgetter(0)):
            target = folder / files.name(number)
            written += write((rows for _, rows in tables if len(rows)), target, files.form, schema)
    except NddupError:
        raise  # of what was being read
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror or error})") from error
    return written


def _by_file(kept: Iterable[pa.Table], files: KeptFiles) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows with the number of their file."""
    for table in kept:
        numbers = np.minimum(table["doc_key"].to_numpy() // files.records, files.files - 1)
        ends = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(table)]
        yield from ((int(numbers[start]), table.slice(start, stop - start)) for start, stop in pairwise(ends) if stop)


def _write_lines(kept: Iterable[pa.Table], target: Path, form: str, schema: pa.Schema) -> int:
    written, added = 0, schema.names[len(KEPT_COLUMNS) :]
    with target.open("w", encoding="utf-8", newline="\n") as file:
        for table in kept:
            if form == "xml" and not written:
                file.write(FIRST + "\n")
            file.writelines(f"{line}\n" for line in spell_kept(table, form, added))
            written += len(table)
        if form == "xml" and written:
            file.write(LAST + "\n")
    return written


def _write_parquet(kept: Iterable[pa.Table], target: Path, form: str, schema: pa.Schema) -> int:
    del form
    written = 0
    with pq.ParquetWriter(target, schema, compression="zstd") as file:
        for table in kept:
            file.write_table(table.select(schema.names).cast(schema))
            written += len(table)
    return written


def spell_kept(kept: pa.Table, form: str, added: Sequence[str]) -> Iterator[str]:
    """Yield the lines of kept documents in JSON or ROMIP XML, with the columns that are added.

    Raises:
        NddupError: if a record has one of them already.
    """
    names = tuple(added)
    spell = _spell_xml if form == "xml" else _spell_json
    for row in kept.to_pylist():
        try:
            yield spell(row, Tags(names, tuple(row[name] for name in names)))
        except RewriteError as error:
            raise NddupError(f"output.kept {form}: {row['source']}: record {row['record']}: {error}") from error


def _spell_xml(row: Mapping[str, Any], tags: Tags) -> str:
    fields = spell_attributes(tags) if tags.names else ""
    return spell_document(row["doc_id"], row["url"], row["content"], fields)


def _spell_json(row: Mapping[str, Any], tags: Tags) -> str:
    if row["line"] is not None:
        line = str(row["line"])
        return tag_json(line.encode(), tags, "utf-8").decode() if tags.names else line
    values = {name: row[name] for name in (*KEPT_COLUMNS[1:], "content") if row[name] is not None}
    return json.dumps(values | dict(zip(*tags, strict=True)), ensure_ascii=False, separators=(",", ":"))
