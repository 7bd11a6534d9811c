"""What `nddup check` reads from the inputs again: the records, and the texts by which pairs of sketches were confirmed.

The reader is that of a run: a format has no second one. So `records_again` proves that the tables say what was read:
of each record its address, its tokens, its sketch, its fingerprints, or why it became no document; and the texts that
are stored. Of large inputs some files are read, those with the smallest SHA-256 of their names.

No code of the run's own comparison is used: `tokens.list_tokens` makes the tokens by the written rule,
`edit_similarity` counts the longest common subsequence, `definitions` the common shingles. Where that is not possible
(the inputs are gone, or the texts too long), the run's value is taken, and the line of the promise says what was not
proved.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup import tables
from nddup.engines.engine import FinishedRun, TextPlace, text_places
from nddup.errors import ConfigError, NddupError, OutputError, UnreachableError
from nddup.ground.columns import one_chunk
from nddup.ground.shown import name_some
from nddup.matching.confirm_texts import CELLS
from nddup.settings.plan import words_of
from nddup.settings.schema import Config
from nddup.tables import REPEATED, TAKEN_OUT
from nddup.verifying.definitions import gather, list_shingles, sketch_rows
from nddup.verifying.near_pairs import count_common

MOST_BYTES = 64 << 20
"""Maximum number of stored bytes of the files that are read again: some seconds of one core."""

DOCUMENTS = tuple(column.name for column in tables.DOCUMENTS.columns if column.proved_by == "records")
SKETCHED = ("n_features", "sketch")
"""What each record gives by itself, unless the settings count over all records (`_counts_all`)."""

BESIDE = tables.DOCUMENTS.named("came_later")
"""These are compared where the run has any value."""

REJECTS = ("doc_id", "reason", "detail", "excerpt")


class Again(NamedTuple):
    """What the records are, by source and ordinal; the files read, of all; and why nothing was read, or else."""

    documents: pa.Table
    rejects: pa.Table
    read: int
    files: int
    unproved: str = ""
    changed: str = ""
    columns: tuple[str, ...] = DOCUMENTS
    """Of documents: those that the files read tell."""


FAR = "the inputs are not on this machine"

NOTHING = Again(pa.table({}), pa.table({}), 0, 0)


MOST_CELLS = 50_000_000_000
"""Maximum of cells, the product of both token counts of a pair, summed over all compared pairs: some minutes of one
core."""

MOST_TEXTS = 1_000
"""Texts after which no further document is drawn, to be compared with all its candidates: a second of one core."""

MOST_SHINGLES = 20_000_000
"""Maximum number of shingles of the texts that are compared: 160 MB."""

ReadTexts = Callable[[set[str]], Mapping[str, str]]
"""Reads the texts of documents again, by id. Raises NddupError if the inputs changed."""


class Pairs(NamedTuple):
    """k pairs of documents, each once, and the rows of RECOUNTED that list them in one direction or in both."""

    names: pa.StringArray
    """Ids of the n documents, ascending."""

    first: NDArray[np.int64]
    """The smaller id of each pair, by place in `names`; (k,)."""

    second: NDArray[np.int64]
    """The larger one; (k,)."""

    of_row: NDArray[np.int64]
    """The pair of each row; (rows,)."""

    def find(self, first: pa.StringArray, second: pa.StringArray) -> NDArray[np.int64]:
        """Return which pair two ids are, -1: none; (m,)."""
        one, other = (np.asarray(pc.index_in(ids, value_set=self.names).fill_null(-1)) for ids in (first, second))
        known = pa.array(_keys_of(self.first, self.second, len(self.names)))
        places = pc.index_in(pa.array(_keys_of(one, other, len(self.names))), value_set=known)
        return np.where((one < 0) | (other < 0), -1, np.asarray(places.fill_null(-1)))


class Confirmed(NamedTuple):
    """The pairs that are near-duplicates by their texts too, and a note on what was not proved."""

    values: NDArray[np.float64]
    """What the threshold applies to, the resemblance of all shingles or the edit similarity; NaN: not near; (k,)."""

    note: str
    """Empty if every pair was proved."""

    changed: str = ""
    """Why the texts are not those of the run; empty if they are, or are gone."""

    unread: str = ""
    """Why no text could be read; empty if texts were."""


Fractions = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Numerators and denominators, (k,); a denominator of -1: not measured."""


def read_again(run: FinishedRun) -> Again:
    """Read the inputs of a run again, as far as they are files of this machine.

    Cost: that of reading and sketching up to `MOST_BYTES` in this process.
    """
    if run.metrics.repository is not None:
        return NOTHING._replace(unproved="a repository does not note its inputs")
    try:
        return _read(run.path)
    except (ConfigError, OutputError, UnreachableError) as error:
        return NOTHING._replace(unproved=str(error))
    except (NddupError, OSError) as error:
        return NOTHING._replace(changed=str(error))


def _read(path: str) -> Again:
    """Read the inputs of the run in a folder."""
    from nddup.embedded.collapse import collapse  # noqa: PLC0415 - a check without inputs reads nothing
    from nddup.embedded.read_records import read_records  # noqa: PLC0415
    from nddup.embedded.workers import Workers  # noqa: PLC0415
    from nddup.results.opening import is_read_here  # noqa: PLC0415
    from nddup.stages.inputs_found import find_again, paths_of  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415
    from nddup.storage.run_folder import RunFolder  # noqa: PLC0415

    folder = RunFolder(LocalStorage(), path)
    if "inputs" not in folder.read_json("_RUN.json"):
        raise ConfigError("the run notes no inputs")
    if not is_read_here(path, *paths_of(folder), master=None):
        raise ConfigError(FAR)
    collection, config = find_again(folder, LocalStorage())
    sizes = {file.source: file.size for file in collection.listing.files}
    chosen, left = set[str](), MOST_BYTES
    for source in sorted(sizes, key=lambda source: sha256(source.encode("utf-8", "surrogatepass")).digest()):
        if sizes[source] <= left:
            chosen.add(source)
            left -= sizes[source]
    if not chosen:
        raise ConfigError(f"each file of the inputs has more than {MOST_BYTES >> 20} MB")
    part = collection if len(chosen) == len(sizes) else collection.only(chosen)
    with Workers(1) as workers:
        read = read_records(part, config, workers)
    collapsed = collapse(read.records, read.silent, renames=True)
    columns = (*DOCUMENTS, *(SKETCHED if len(chosen) == len(sizes) or not _counts_all(config) else ()))
    documents = _digested(collapsed.documents.select(["source", "record", *columns]))
    rejects = collapsed.rejects.select(["source", "record", *REJECTS])
    return Again(documents, rejects, len(chosen), len(sizes), columns=columns)


def _counts_all(config: Config) -> bool:
    """Whether a sketch depends on how often all records have its words or shingles."""
    words = words_of(config)
    needs_lexicon = words is not None and words.needs_lexicon and config.lexicon.saved is None
    return needs_lexicon or config.pairs.max_document_frequency is not None


def _digested(documents: pa.Table) -> pa.Table:
    """Return the table with a digest of each sketch instead of its ids, which are many."""
    if "sketch" not in documents.column_names:
        return documents
    digests = list[bytes]()
    for chunk in documents["sketch"].chunks:
        rows = sketch_rows(chunk)
        data, ends = np.ascontiguousarray(rows.ids).view(np.uint8), (8 * rows.offsets).tolist()
        digests += [sha256(data[low:high].data).digest() for low, high in pairwise(ends)]
    at = documents.column_names.index("sketch")
    return documents.set_column(at, "sketch", pa.array(digests, pa.binary()))


def differences(run: FinishedRun, again: Again) -> list[str]:
    """Return what `documents` and `rejects` say otherwise than the records, a line each.

    Whether an id is repeated, and what a revisit repeats, depends on all records: compared only where all were read.
    """
    is_whole = again.read == again.files
    sources = pa.table({"source": pc.unique(pa.chunked_array(
        [*again.documents["source"].chunks, *again.rejects["source"].chunks], pa.string()))})  # fmt: skip
    wrong = list[str]()
    stored, due = dict[tuple[str, int], Mapping[str, Any]](), dict[tuple[str, int], Mapping[str, Any]]()
    for name, columns, read in (("documents", again.columns, again.documents), ("rejects", REJECTS, again.rejects)):
        text = f"SELECT t.source, t.record, {', '.join(f't.{one}' for one in columns)} FROM {name} AS t"  # noqa: S608
        part = run.sql(f"{text} SEMI JOIN again AS a ON t.source = a.source", again=sources)
        rows = _digested(part).to_pylist()
        for kept, table in ((stored, rows), (due, read.to_pylist())):
            kept |= {(row["source"], row["record"]): {"table": name, **row} for row in table}
    unwritten = {name for name in BESIDE if all(row.get(name) is None for row in stored.values())}
    unwritten |= set() if is_whole else {"doc_id", "parent"}  # a repeated id is replaced
    for place in sorted(stored.keys() | due.keys()):
        one, other = stored.get(place), due.get(place)
        if one == other:
            continue
        if one and other and one.get("reason") == TAKEN_OUT and one["doc_id"] == other["doc_id"]:
            continue  # it is a document that the user took out
        if not is_whole and any(_needs_others(row) for row in (one, other) if row is not None):
            continue
        if one is None or other is None or one["table"] != other["table"]:
            wrong.append(f"{place[0]}#{place[1]}: {_named(one)}, read as {_named(other)}")
            continue
        wrong += [
            f"{place[0]}#{place[1]}: {name} is {_spelled(one[name])}, read {_spelled(other[name])}"
            for name in other if name not in unwritten and one[name] != other[name]
        ]  # fmt: skip
    return wrong


def _needs_others(row: Mapping[str, Any]) -> bool:
    """Whether what became of a record may depend on records of other files."""
    return "revisit" in (row.get("record_type"), row.get("reason")) or row.get("reason") == REPEATED


def stored_texts(run: FinishedRun, again: Again) -> tuple[list[str], int]:
    """Return what `texts` says otherwise than the files read, a line each, and how many of its rows were compared."""
    sources = set(pc.unique(again.documents["source"]).to_pylist())
    rows = run.sql("SELECT doc_id, text FROM texts").to_pylist()
    ids = sorted({str(row["doc_id"]) for row in rows}, key=lambda name: sha256(name.encode()).digest())[:MOST_TEXTS]
    places = text_places(run, ids)
    wrong = [f"{doc_id}: the id of no document" for doc_id in ids if doc_id not in places]
    known = {doc_id: place for doc_id, place in places.items() if place.source in sources}
    read = read_places(run, known)
    compared = [row for row in rows if row["doc_id"] in known]
    wrong += [f"{row['doc_id']}: not the text read" for row in compared if row["text"] != read.get(row["doc_id"])]
    return sorted(wrong), len(compared)


def _named(row: Mapping[str, Any] | None) -> str:
    return "no record" if row is None else f"in {row['table']}"


def _spelled(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else "null" if value is None else str(value)


def _keys_of(first: NDArray[np.int64], second: NDArray[np.int64], documents: int) -> NDArray[np.int64]:
    return np.minimum(first, second).astype(np.int64) * documents + np.maximum(first, second)


def pairs_of(recounted: pa.Table) -> Pairs:
    """Return the pairs of RECOUNTED, in the order of its rows; none for no rows."""
    ends = pa.concat_arrays([one_chunk(recounted[name]) for name in ("probe", "other")]).dictionary_encode()
    order = np.asarray(pc.sort_indices(ends.dictionary))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    probe, other = ranks[np.asarray(ends.indices)].reshape(2, -1)
    keys = pa.array(_keys_of(probe, other, len(order))).dictionary_encode()
    first, second = np.divmod(np.asarray(keys.dictionary), max(len(order), 1))
    return Pairs(ends.dictionary.take(pa.array(order)), first, second, np.asarray(keys.indices).astype(np.int64))


def confirm_pairs(pairs: Pairs, claims: NDArray[np.float64], config: Config, read: ReadTexts) -> Confirmed:
    """Compare the texts of recounted pairs.

    Args:
        pairs: pairs of documents whose sketches are near-duplicates.
        claims: the value of each pair in the run, NaN if it has none; (k,).

    Cost: the tokens of some `MOST_TEXTS` texts are in memory; at most `MOST_CELLS` cells are computed, or
        `MOST_SHINGLES` shingles are made.
    """
    measure, is_chosen = config.pairs.confirm, choose_texts(pairs)
    try:
        texts = read(set(pairs.names.filter(pa.array(is_chosen)).to_pylist()))
    except NddupError as error:
        changed = "" if isinstance(error, ConfigError) else str(error)
        note = f"texts not compared, `{measure}` of the run is taken: {error}"
        return Confirmed(claims, note, changed, "" if changed else str(error))

    absent = sorted(set(pairs.names.filter(pa.array(is_chosen)).to_pylist()) - texts.keys())
    if absent:  # no record of the inputs has their fingerprint
        is_chosen &= ~np.asarray(pc.is_in(pairs.names, value_set=pa.array(absent, pa.string())))
    changed = f"no record has the content_fingerprint of {name_some(absent)}" if absent else ""
    compared = np.flatnonzero(is_chosen[pairs.first] & is_chosen[pairs.second])
    ends = pairs.first[compared], pairs.second[compared]
    comparison: _Edits | _Shingles = _Edits(texts, config) if measure == "edit" else _Shingles(texts, config)
    parts, wholes = comparison.measure(pairs.names, *ends)
    is_measured, share = wholes >= 0, comparison.share
    least = cache(lambda whole: max(1, -(-share.numerator * whole // share.denominator)))  # exact, as a Python integer
    bounds = np.array([least(whole) for whole in wholes.tolist()], np.int64)

    values = claims.copy()
    is_near = parts >= bounds
    values[compared[is_measured]] = np.where(is_near, parts / np.maximum(wholes, 1), np.nan)[is_measured]
    unproved, count = len(claims) - np.count_nonzero(is_measured), len(claims)
    what = f"{unproved:,} of {count:,} pairs of texts not compared: `{measure}` of the run is taken"
    return Confirmed(values, what if unproved else "", changed)


def choose_texts(pairs: Pairs) -> NDArray[np.bool_]:
    """Return which texts to compare: documents drawn by the hashes of their ids, each with all its candidates; (n,).

    At most MOST_TEXTS and the candidates of one document.
    """
    count = len(pairs.names)
    ends, others = np.append(pairs.first, pairs.second), np.append(pairs.second, pairs.first)
    others = others[np.argsort(ends, kind="stable")]
    bounds = np.append(0, np.cumsum(np.bincount(ends, minlength=count)))
    hashes = [sha256(name.encode()).digest() for name in pairs.names.to_pylist()]
    is_chosen = np.zeros(count, np.bool_)
    for drawn in sorted(range(count), key=hashes.__getitem__):
        if np.count_nonzero(is_chosen) >= MOST_TEXTS:
            break
        is_chosen[drawn] = True
        is_chosen[others[bounds[drawn] : bounds[drawn + 1]]] = True
    return is_chosen


class _Edits:
    """The edit similarity of two texts as a fraction; none if they are too long to compare here."""

    def __init__(self, texts: Mapping[str, str], config: Config) -> None:
        from nddup.sketching.tokens import list_tokens  # noqa: PLC0415

        self.share = Fraction(repr(config.pairs.edit_threshold))
        self._tokens = {
            name: list_tokens(text, config.shingle.unit, config.tokens.ignored) for name, text in texts.items()
        }
        self._budget = MOST_CELLS

    def measure(self, names: pa.StringArray, first: NDArray[np.int64], second: NDArray[np.int64]) -> Fractions:
        ends = (names.take(pa.array(places)).to_pylist() for places in (first, second))
        measured = np.array([self._measure(pair) for pair in zip(*ends, strict=True)], np.int64).reshape(-1, 2)
        return measured[:, 0], measured[:, 1]

    def _measure(self, pair: tuple[str, str]) -> tuple[int, int]:
        first, second = (self._tokens.get(name, []) for name in pair)
        cells = len(first) * len(second)
        self._budget -= cells
        if cells > CELLS or self._budget < 0:  # the run took a lower bound, or it would take too long here
            return 0, -1
        from nddup.verifying.edit_similarity import count_common  # noqa: PLC0415 - RapidFuzz is not used elsewhere

        return 2 * count_common(first, second), len(first) + len(second)


class _Shingles:
    """The resemblance of all shingles of two texts as a fraction; none if there are too many."""

    def __init__(self, texts: Mapping[str, str], config: Config) -> None:
        self.share = config.pairs.share
        self._texts, self._shingle, self._ignored = texts, config.shingle, config.tokens.ignored
        self._budget = MOST_SHINGLES

    def measure(self, names: pa.StringArray, first: NDArray[np.int64], second: NDArray[np.int64]) -> Fractions:
        from nddup.sketching.tokens import list_tokens  # noqa: PLC0415

        is_used = np.zeros(len(names), np.bool_)
        is_used[first] = is_used[second] = True
        used, sets = np.flatnonzero(is_used), list[NDArray[np.uint64]]()
        for name in names.take(pa.array(used)).to_pylist():
            if self._budget <= 0:
                break
            tokens = list_tokens(self._texts[name], self._shingle.unit, self._ignored)
            sets.append(list_shingles(tokens, self._shingle.length, self._shingle.offset))
            self._budget -= len(sets[-1])
        places = np.full(len(names), -1)
        places[used[: len(sets)]] = np.arange(len(sets))

        offsets, ids, _ = gather(sets)
        sizes = np.diff(offsets)
        at = np.flatnonzero((places[first] >= 0) & (places[second] >= 0))
        at = at[np.argsort(first[at], kind="stable")]
        one, other = places[first[at]], places[second[at]]
        parts, wholes = np.zeros(len(first), np.int64), np.full(len(first), -1)
        parts[at] = count_common(offsets, ids, one, other)
        wholes[at] = sizes[one] + sizes[other] - parts[at]
        return parts, wholes


def claims_of(run: FinishedRun, measure: str, pairs: Pairs) -> NDArray[np.float64]:
    """Return `edit`, or `resemblance`, of each pair of nodes in `pairs`, read from `folded`; NaN where it has none."""
    column = "least_edit" if measure == "edit" else "least"
    text = f"SELECT node_a, node_b, {column} AS claim FROM folded WHERE {column} IS NOT NULL AND node_a IS NOT NULL"  # noqa: S608 - a name
    rows = run.sql(text)
    places, claims = pairs.find(one_chunk(rows["node_a"]), one_chunk(rows["node_b"])), np.full(len(pairs.first), np.nan)
    claims[places[places >= 0]] = rows["claim"].to_numpy()[places >= 0]
    return claims


def read_whole(run: FinishedRun, names: set[str]) -> dict[str, str]:
    """Read the texts of documents by id again from the inputs of a run.

    Raises:
        NddupError: if an input changed or no longer exists.
    """
    return read_places(run, text_places(run, names), is_whole=True)


def read_places(run: FinishedRun, places: Mapping[str, TextPlace], *, is_whole: bool = False) -> dict[str, str]:
    """Read the texts at these places again, or as much of each as a run stores; errors as of `read_whole`."""
    from nddup.results.opening import read_texts  # noqa: PLC0415 - only where texts are compared

    texts = read_texts(run.path, places, master=None, is_whole=is_whole)
    return dict(zip(texts["doc_id"].to_pylist(), texts["text"].to_pylist(), strict=True))
