"""`nddup check` of a folder of passages: the inputs are read again, and every row is compared with them.

Windows are found again by sorting the hashes of all of them: see `nddup.verifying.extents`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nddup.checking.check_run import CheckReport, Finding
from nddup.embedded.workers import Workers
from nddup.errors import OutputError
from nddup.ground.arrays import Ragged
from nddup.ground.json_text import load_object
from nddup.ground.progress import Steps
from nddup.passages.find_passages import Source, find_source, rank_documents, read_documents
from nddup.passages.passages_output import HEADER, TEXTS, judge_all, only_cut, rewriter_of, uncut_sources
from nddup.passages.tabulate import EXCERPT, Documents, find_sentences
from nddup.reading.streams import PIECE, Expanded
from nddup.scanning.found import join_encoded
from nddup.settings.load import read_stored
from nddup.settings.plan import processes_of
from nddup.settings.schema import KeepConfig
from nddup.sketching.rolling_hash import hash_rows
from nddup.stages.stage import AS_INPUT
from nddup.tables.features import REPEATING
from nddup.verifying.extents import RepeatedWindows, cover_runs, find_repeated

Hashes = NDArray[np.uint64]

TABLES = ("passages", "occurrences", "cuts", "repeating", "rejects")


def check_passages(path: str, steps: Steps) -> CheckReport:
    """Prove the tables of a folder.

    Raises:
        ConfigError: if an input is missing.
        OutputError: if a table is missing or damaged.

    Cost: the inputs are read once, and all windows sorted: some 100 bytes of memory a token.
    """
    header = load_object((Path(path) / HEADER).read_text(encoding="utf-8"))
    config = read_stored(header["settings"], origin=f"{path}/{HEADER}")
    steps.begin("read the documents again")
    source = find_source(header["inputs"], config)
    with TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as spool:
        documents = read_documents(source, steps, Path(spool))
    try:
        tables = {name: pq.read_table(f"{path}/{name}") for name in TABLES}
    except (OSError, pa.ArrowInvalid) as error:
        raise OutputError(f"{path}: a table cannot be read ({error})") from error
    steps.begin("sort the windows")
    ranks = rank_documents(documents, config.keep.order)
    settings = config.passages
    windows = find_repeated(*documents.hashes, ranks, settings.min_tokens, within=settings.within)
    steps.begin("compare")
    texts = dict(zip(documents.rows["doc_id"].to_pylist(), documents.rows["text"].to_pylist(), strict=True))
    is_kept, is_tagged = config.output.kept != "none", config.output.tagged == AS_INPUT
    kept = [_kept_right(documents, tables, source, path, header.get("whole", 0))] if is_kept else []
    tagged = _tagged_right(documents, tables, source, path) if is_tagged else []
    return CheckReport((
        _same_texts(documents, tables["passages"], tables["occurrences"], texts),
        _described_right(documents, tables, texts, ranks),
        *_each_once(documents, tables["occurrences"], windows, settings.min_tokens),
        *_cut_right(documents, tables["cuts"], windows, settings.min_tokens),
        _counted_right(documents, tables, windows, settings.min_left),
        *kept,
        *tagged,
    ))  # fmt: skip


def _same_texts(documents: Documents, passages: pa.Table, occurrences: pa.Table, texts: Mapping[str, str]) -> Finding:
    """Prove that the characters of each occurrence are the tokens that its passage is named by."""
    sizes = dict(zip(passages["passage_id"].to_pylist(), passages["tokens"].to_pylist(), strict=True))
    broken = []
    for batch in occurrences.to_batches(max_chunksize=10_000):
        rows = batch.to_pylist()
        parts = [texts.get(row["doc_id"], "")[row["char"] : row["char_end"]].encode() for row in rows]
        hashed = hash_rows(*join_encoded(parts), ignore=documents.ignore)
        values = memoryview(hashed.values.view(np.uint8))  # type: ignore[arg-type, unused-ignore] # an array is a buffer
        for place, row in enumerate(rows):
            low, high = int(hashed.offsets[place]), int(hashed.offsets[place + 1])
            name = blake2b(values[8 * low : 8 * high], digest_size=16).hexdigest()
            size = row["token_end"] - row["token"]
            if name != row["passage_id"] or not high - low == size == sizes.get(name):
                broken.append(f"{row['passage_id']} in {row['doc_id']} from token {row['token']}")
    return Finding.of("every listed occurrence is the text of its passage", f"{len(occurrences):,} occurrences", broken)


def _described_right(
    documents: Documents, tables: dict[str, pa.Table], texts: Mapping[str, str], ranks: NDArray[np.int64]
) -> Finding:
    """Prove the places of each passage, which of them is the first, and its text; and cuts and rejects."""
    rows = tables["occurrences"].filter(pc.is_in(tables["occurrences"]["doc_id"], documents.rows["doc_id"]))
    home = _homes(documents, rows)
    named = rows["passage_id"].combine_chunks().dictionary_encode()
    which = np.asarray(named.indices).astype(np.int64)
    order = np.lexsort((rows["token"].to_numpy(), ranks[home], which))
    firsts = order[np.flatnonzero(np.diff(which[order], prepend=-1))]
    is_first = np.zeros(len(rows), np.bool_)
    is_first[firsts] = True
    wrong = np.flatnonzero(is_first != np.asarray(rows["first"]))
    broken = [f"{rows['passage_id'][at]}: the first place" for at in wrong.tolist()]

    places = np.bincount(which).tolist()
    homes = np.bincount(np.unique(which * len(ranks) + home) // max(len(ranks), 1)).tolist()
    spans = zip(*(rows[name].take(firsts).to_pylist() for name in ("doc_id", "char", "char_end")), strict=True)
    parts = [texts[doc_id][low : min(high, low + EXCERPT)] for doc_id, low, high in spans]
    columns = [tables["passages"][name].to_pylist() for name in ("passage_id", "documents", "occurrences", "text")]
    expected = list(zip(named.dictionary.to_pylist(), homes, places, parts, strict=True))
    broken += _differing(expected, list(zip(*columns, strict=True)))

    broken += _wrong_cuts(documents, tables["cuts"], texts)
    broken += _differing(*(list(map(str, table.to_pylist())) for table in (documents.rejects, tables["rejects"])))
    return Finding.of("the rows of passages, cuts and rejects are as in the texts", f"{len(places):,} passages", broken)


def _wrong_cuts(documents: Documents, table: pa.Table, texts: Mapping[str, str]) -> list[str]:
    """Return the cuts whose characters are not those of their tokens."""
    broken, (offsets, values) = list[str](), documents.hashes
    for batch in table.to_batches(max_chunksize=10_000):
        begins = offsets[_homes(documents, pa.table(batch))].tolist()
        cuts = batch.to_pylist()
        slices = [texts.get(row["doc_id"], "")[row["char"] : row["char_end"]].encode() for row in cuts]
        hashed = _rows_of(hash_rows(*join_encoded(slices), ignore=documents.ignore))
        broken += [
            f"{row['doc_id']}: the characters of a cut at token {row['token']}"
            for begin, row, tokens in zip(begins, cuts, hashed, strict=True)
            if not np.array_equal(tokens, values[begin + row["token"] : begin + row["token_end"]])
        ]
    return broken


def _homes(documents: Documents, rows: pa.Table) -> NDArray[np.int64]:
    """Return the number of each row's document; of an unknown one that of the first."""
    known = pc.index_in(rows["doc_id"].combine_chunks(), value_set=documents.rows["doc_id"].combine_chunks())
    return np.asarray(pc.fill_null(known, 0)).astype(np.int64)


def _differing(expected: list[Any], stored: list[Any]) -> list[str]:
    """Return what one list has alone, or more often."""
    differ = Counter(expected)
    differ.subtract(Counter(stored))
    return sorted(str(one) for one, count in differ.items() if count)


def _positions(documents: Documents, rows: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first tokens of runs, and those after their last, among all tokens; unknown documents are left out."""
    known = pc.index_in(rows["doc_id"].combine_chunks(), value_set=documents.rows["doc_id"].combine_chunks())
    is_known = np.asarray(pc.is_valid(known))
    document = np.asarray(pc.fill_null(known, 0)).astype(np.int64)[is_known]
    offsets = documents.hashes.offsets
    begins, ends = (rows[name].to_numpy().astype(np.int64)[is_known] for name in ("token", "token_end"))
    last = offsets[1:][document]
    return np.minimum(offsets[document] + begins, last), np.minimum(offsets[document] + ends, last)


def _each_once(documents: Documents, occurrences: pa.Table, windows: RepeatedWindows, length: int) -> list[Finding]:
    """Prove that each place of a repeated window is in one occurrence, and no other window is in any."""
    begins, ends = _positions(documents, occurrences)
    listed = cover_runs(begins, np.maximum(ends - length + 1, begins), len(documents.hashes.values))
    is_repeated = np.zeros(len(listed), np.bool_)
    is_repeated[windows.places] = True
    missing = np.flatnonzero(is_repeated & (listed != 1))
    wrong = np.flatnonzero(~is_repeated & (listed > 0))
    amount = f"{len(windows.places):,} places of repeated windows"
    return [
        Finding.of("every place of a repeated window is in one occurrence", amount, _named(documents, missing)),
        Finding.of("every window of a passage is repeated", f"{int(listed.sum()):,} places", _named(documents, wrong)),
    ]


def _cut_right(documents: Documents, cuts: pa.Table, windows: RepeatedWindows, length: int) -> list[Finding]:
    """Prove the rule of cutting, and that each repeated window has a place that is not cut."""
    runs = cover_runs(*_positions(documents, cuts), len(documents.hashes.values))
    is_cut = runs > 0
    may_go = windows.covered & ~windows.kept
    goes = _whole(documents, may_go) if documents.whole_sentences else may_go
    lost, stays = np.flatnonzero((is_cut & ~may_go) | (runs > 1)), np.flatnonzero(is_cut != goes)
    before = np.append(0, np.cumsum(is_cut))
    is_whole = before[windows.places + length] == before[windows.places]
    gone = np.setdiff1d(windows.windows, windows.windows[is_whole])
    places = windows.places[np.searchsorted(windows.windows, gone, sorter=np.argsort(windows.windows, kind="stable"))]
    copies = int(np.count_nonzero(is_whole & ~windows.is_earliest))
    note = f"{copies:,} second copies stay" if copies else ""
    tokens = f"{int(is_cut.sum()):,} tokens cut"
    kept = f"{int(windows.kept.sum()):,} tokens"
    why = "of a first place" + ", or of a sentence with such a token" * documents.whole_sentences
    return [
        Finding.of(
            "no token of a first place, or outside of repeated windows, is cut", tokens, _named(documents, lost)
        ),
        Finding.of(f"every kept token under a repeated window is {why}", kept, _named(documents, stays)),
        Finding.of(
            "no repeated window loses its last copy",
            f"{len(np.unique(windows.windows)):,} windows",
            _named(documents, places),
            note,
        ),
    ]


def _whole(documents: Documents, may_go: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which tokens are of sentences of which every token may go."""
    offsets, goes = documents.hashes.offsets, np.zeros(len(may_go), np.bool_)
    for document in np.flatnonzero(np.diff(np.append(0, np.cumsum(may_go))[offsets])).tolist():
        flags = may_go[offsets[document] : offsets[document + 1]]
        text = documents.rows["text"][document].as_py().encode()
        begins = find_sentences(text, len(flags), documents.ignore).tokens
        sizes = np.diff(np.append(begins, len(flags)))
        goes[offsets[document] : offsets[document + 1]] = np.repeat(np.logical_and.reduceat(flags, begins), sizes)
    return goes


def _counted_right(
    documents: Documents, tables: dict[str, pa.Table], windows: RepeatedWindows, min_left: int
) -> Finding:
    """Prove the counts of each document, and which are dropped; and how many tokens of each occurrence may be cut."""
    offsets, occurrences = documents.hashes.offsets, tables["occurrences"]
    is_cut = cover_runs(*_positions(documents, tables["cuts"]), len(documents.hashes.values)) > 0
    sizes = np.diff(offsets)
    covered, cut = (np.diff(np.append(0, np.cumsum(flags))[offsets]) for flags in (windows.covered, is_cut))
    dropped = (cut > 0) & (sizes - cut < min_left)
    columns = [documents.rows[name].to_pylist() for name in ("doc_id", "source", "record")]
    columns += [one.tolist() for one in (sizes, covered, cut, dropped)]
    expected = [row for row in zip(*columns, strict=True) if row[4]]
    stored = list(zip(*(tables["repeating"][name].to_pylist() for name in REPEATING.names), strict=True))
    broken = _differing(expected, stored)
    begins, ends = _positions(documents, occurrences)
    before, is_known = np.append(0, np.cumsum(is_cut)), pc.is_in(occurrences["doc_id"], documents.rows["doc_id"])
    wrong = np.flatnonzero(before[ends] - before[begins] != occurrences["cut"].filter(is_known).to_numpy())
    broken += _named(documents, begins[wrong])
    return Finding.of("the counts of every document and occurrence are right", f"{len(stored):,} documents", broken)


def _kept_right(documents: Documents, tables: dict[str, pa.Table], source: Source, path: str, whole: int) -> Finding:
    """Prove that the kept collection, read again, has the tokens that the tables leave, in order, and no others.

    Documents of which no token is left, nor one of a mark, are not looked for. `whole` is how many could not be cut, as
    the summary said.
    """
    mark = hash_rows(*join_encoded([source.config.passages.replace.encode()]), ignore=documents.ignore).values
    expected = _list_left(documents, tables, source, mark)
    kept = _read_kept(source, path) if any(expected.values()) else {}
    broken: list[str] = []
    n_whole = 0
    for name in sorted(expected.keys() | kept.keys()):
        left, again = expected.get(name, []), kept.get(name, [])
        if len(again) != len(left):
            broken.append(f"{name}: {len(again):,} documents, expected {len(left):,}")
            continue
        wrong = [one for one, tokens in zip(left, again, strict=True) if not _is_left(tokens, one.parts, mark)]
        uncut = {one.doc_id for one, tokens in zip(left, again, strict=True) if np.array_equal(tokens, one.all)}
        n_whole += sum(one.doc_id in uncut for one in wrong)
        broken += [one.doc_id for one in wrong if n_whole > whole or one.doc_id not in uncut]
    amount, note = f"{sum(map(len, expected.values())):,} documents", f"{n_whole:,} could not be cut" if n_whole else ""
    return Finding.of("the kept collection has the tokens that are not cut", amount, broken, note)


class _Left(NamedTuple):
    """A document that is kept: its tokens, and the runs of those that are not cut."""

    doc_id: str
    all: Hashes
    parts: list[Hashes]


def _list_left(
    documents: Documents, tables: dict[str, pa.Table], source: Source, mark: Hashes
) -> dict[str, list[_Left]]:
    """Return what is left of the documents of each file, in order; those written as texts are under `TEXTS`."""
    repeating = tables["repeating"]
    dropped = set(repeating["doc_id"].filter(repeating["dropped"]).to_pylist())
    cuts: dict[str, list[int]] = defaultdict(list)
    for row in tables["cuts"].sort_by([("doc_id", "ascending"), ("token", "ascending")]).to_pylist():
        cuts[row["doc_id"]] += [row["token"], row["token_end"]]
    apart, is_text = set(uncut_sources(source.collection)), source.config.output.kept == "jsonl"
    by_file: dict[str, list[_Left]] = defaultdict(list)
    rows = zip(*(documents.rows[name].to_pylist() for name in ("doc_id", "source")), strict=True)
    for (low, high), (doc_id, name) in zip(pairwise(documents.hashes.offsets.tolist()), rows, strict=True):
        tokens = documents.hashes.values[low:high]
        parts = np.split(tokens, cuts.get(doc_id, []))[::2]
        if doc_id not in dropped and (any(map(len, parts)) or (len(mark) and len(parts) > 1)):
            key = TEXTS if is_text or name in apart else name.replace("://", "/")
            by_file[key].append(_Left(doc_id, tokens, parts))
    by_file[TEXTS].sort(key=lambda left: left.doc_id)  # lines of JSON are in no order if Spark wrote them
    return by_file


def _read_kept(source: Source, path: str) -> dict[str, list[Hashes]]:
    """Return the tokens of the documents of each kept file that have any, in order; those of texts by id, `TEXTS`."""
    by_file: dict[str, list[Hashes]] = defaultdict(list)
    config = source.config
    lines: list[dict[str, str]] = []
    for file in (Path(path, TEXTS), *([Path(path, "kept")] if config.output.kept == "jsonl" else [])):
        lines += [json.loads(line) for part in file.glob("*.jsonl") for line in part.read_bytes().splitlines()]
    texts = [line["text"].encode() for line in sorted(lines, key=itemgetter("id"))]
    by_file[TEXTS] = _rows_of(hash_rows(*join_encoded(texts), ignore=config.tokens.ignored))
    if config.output.kept == AS_INPUT and only_cut(source.collection).files:
        documents = _read_again(source, f"{path}/kept")
        for name, one in zip(documents.rows["source"].to_pylist(), _rows_of(documents.hashes), strict=True):
            by_file[name].append(one)
    return {name: full for name, hashes in by_file.items() if (full := [one for one in hashes if len(one)])}


def _tagged_right(documents: Documents, tables: dict[str, pa.Table], source: Source, path: str) -> list[Finding]:
    """Prove that the tagged collection, read again, has the texts of the documents; and that its files are the inputs
    with the spans of the tables, by writing them once more.
    """
    again = {(name, record): text for name, record, text in _texts_of(_read_again(source, f"{path}/tagged"))}
    originals = {(name.replace("://", "/"), record): text for name, record, text in _texts_of(documents)}
    wrong = sorted(
        f"{name}, record {record}" for (name, record), text in originals.items() if again.get((name, record)) != text
    )

    entries = [(group.head.format.kind, entry) for group in source.collection.groups for entry in group.files]
    with (
        TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as made,
        Workers(processes_of(source.config)) as workers,
    ):
        rewriter_of(source, judge_all(documents, tables), is_tagging=True).write(Path(made, "tagged"), workers)
        other = [
            entry.file.source
            for kind, entry in entries
            for name in [f"tagged/{entry.file.source.replace('://', '/')}"]
            if not _is_same(Path(made, name), Path(path, name), kind, entry.compression)
        ]
    return [
        Finding.of("the tagged collection has the texts of the inputs", f"{len(originals):,} documents", wrong),
        Finding.of("every record has the spans of the tables", f"{len(entries):,} files", sorted(other)),
    ]


def _read_again(source: Source, folder: str) -> Documents:
    """Read the written files: all records; none of them may still have a column of the policy."""
    options = source.config.input.model_copy(update={"limit": None})
    again = find_source([folder], source.config.model_copy(update={"input": options, "keep": KeepConfig()}))
    with TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as spool:
        return read_documents(again, Steps("check", 1), Path(spool))


def _texts_of(documents: Documents) -> Iterator[tuple[str, int, str]]:
    return zip(*(documents.rows[name].to_pylist() for name in ("source", "record", "text")), strict=True)


def _is_same(one: Path, other: Path, kind: str, compression: str) -> bool:
    """Return whether two files have the same content, however it is compressed."""
    if not other.is_file():
        return False
    if kind == "parquet":
        return bool(pq.read_table(one).equals(pq.read_table(other)))
    with one.open("rb") as first, other.open("rb") as second:
        streams = [Expanded(raw, compression, None) for raw in (first, second)]
        while True:
            pieces = [stream.read(PIECE) for stream in streams]
            if pieces[0] != pieces[1] or not pieces[0]:
                return pieces[0] == pieces[1]


def _rows_of(rows: Ragged) -> list[Hashes]:
    return [rows.values[low:high] for low, high in pairwise(rows.offsets.tolist())]


def _is_left(tokens: Hashes, parts: list[Hashes], mark: Hashes) -> bool:
    """Return whether tokens are those of the parts, with those of the mark between two, once or for each field."""
    at, left = 0, sum(map(len, parts))
    for number, part in enumerate(parts):
        end = at + len(part)
        if not np.array_equal(tokens[at:end], part):
            return False
        at, left = end, left - len(part)
        more = len(parts) - number - 1  # marks that must follow
        n_marks = 0
        while len(mark) and more and (not n_marks or len(tokens) - at >= left + len(mark) * more):
            if not np.array_equal(tokens[at : at + len(mark)], mark):
                return False
            at, n_marks = at + len(mark), n_marks + 1
    return at == len(tokens)


def _named(documents: Documents, tokens: NDArray[np.int64]) -> list[str]:
    """Return as many names as there are places among all tokens; the first three are the document and the token."""
    homes = np.searchsorted(documents.hashes.offsets, tokens[:3], "right") - 1
    names = documents.rows["doc_id"].take(pa.array(homes)).to_pylist()
    labels = [
        f"{name}, token {token - documents.hashes.offsets[home]}"
        for name, home, token in zip(names, homes, tokens[:3], strict=True)
    ]
    return labels + [""] * (len(tokens) - len(labels))
