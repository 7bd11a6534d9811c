"""The concepts of a run: its formal context as files, and the extents of its clusters as text.

    write_context     a run        -> context.cxt, context.csv, concepts.csv (`read_context` gives the arrays)
    describe_extent   one cluster  -> lines for the terminal
    extent_lines      all clusters -> a CSV file: `cluster_id`, `common`, `share`, `spans` and the number compared

The objects are features and the attributes are documents: a cluster is an intent, a set of documents, and the features
common to all of them are its extent (Ignatov, Kuznetsov 2009, Frequent itemset mining for clustering near duplicate web
documents, ICCS 2009). The text that all members of a cluster share, and what each has beside it, are read again from
the inputs.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.engines.engine import FinishedRun, text_places
from nddup.errors import ConfigError, NddupError, OutputExistsError
from nddup.ground.shown import counted, csv_line, escaped, one_line, shorten
from nddup.results.opening import read_whole_texts
from nddup.settings.stored import ignored_of
from nddup.storage.local_storage import writing
from nddup.verifying.extents import Ranges, find_extent, join_ranges

MOST_CELLS = 1_000_000_000
"""Maximum number of cells of a context: each is a byte of `context.cxt`."""

BLOCK_CELLS = 1 << 24
"""Cells that are spelled at a time."""

DOCUMENTS = "SELECT doc_id, sketch FROM documents ORDER BY doc_key"
MEMBERS = "SELECT cluster_id, doc_id FROM members ORDER BY cluster_id, doc_id"


class FormalContext(NamedTuple):
    """n features, m documents, and i pairs of a feature and a document that holds it, by feature, then by document."""

    features: NDArray[np.int64]
    """(n,), ascending; each is in at least two documents."""

    documents: list[str]
    """m ids, in the order of `doc_key`."""

    held_features: NDArray[np.int64]
    """(i,), the place of a feature."""

    holders: NDArray[np.int64]
    """(i,), the place of a document."""


MOST_MEMBERS = 1_000
"""Maximum number of members of a cluster whose texts are compared: the representative and the first by id."""

TOGETHER = 20_000
"""Members whose texts are read in one pass over the inputs."""

COLUMNS = ("cluster_id", "size", "compared", "common", "share", "spans")

CLUSTER_MEMBERS = f"""
    SELECT cluster_id, doc_id
    FROM (SELECT m.cluster_id, m.doc_id,
                 row_number() OVER (PARTITION BY m.cluster_id ORDER BY m.representative DESC, m.doc_id) AS place
          FROM members AS m JOIN wanted AS w ON m.cluster_id = w.id) AS placed
    WHERE place <= {MOST_MEMBERS} ORDER BY cluster_id, place
"""  # noqa: S608 - a number
"""The members of the clusters in wanted(id), the representative of each first."""

CLUSTERS = "SELECT cluster_id, size FROM clusters ORDER BY size DESC, cluster_id"

SHOWN_SPANS, SHOWN_MEMBERS, SHOWN_PIECES, PIECE = 5, 8, 3, 200
"""Ranges of the common text, members, ranges beside it of each, and characters of each that are shown."""


def write_context(run: FinishedRun, folder: str) -> FormalContext:
    """Write the three files to a new folder of this machine; return the context.

        context.cxt     the context in Burmeister's format: objects, attributes, then a line of X and . for each object
        context.csv     the same as a table with a heading: X where the document holds the feature
        concepts.csv    the clusters, a row for each document of an intent and each feature of an extent

    Args:
        folder: of the files; it must not exist.

    Raises:
        OutputError: if the folder exists or cannot be written.
        ConfigError: if the context has more than `MOST_CELLS` cells.

    Cost: all sketches are in memory, 40 bytes a feature of a document; a byte of output a cell, twice.
    """
    if Path(folder).exists():
        raise OutputExistsError(f"--context {folder}: exists already; give another folder")
    context = read_context(run)
    cells = len(context.features) * len(context.documents)
    if cells > MOST_CELLS:
        raise ConfigError(
            f"--context: {len(context.features):,} features of {len(context.documents):,} documents are {cells:,}"
            f" cells, more than {MOST_CELLS:,}; context.fimi (output.context=true) holds a context of any size"
        )
    with writing(f"--context {folder}"):
        Path(folder).mkdir(parents=True)
        _write_cxt(context, Path(folder, "context.cxt"))
        _write_csv(context, Path(folder, "context.csv"))
        _write_concepts(run, context, Path(folder, "concepts.csv"))
    return context


def read_context(run: FinishedRun) -> FormalContext:
    """Return the context of a run: the features that at least two documents hold. Cost: a sort of all features.

    A feature that only one document holds is left out: it is in the extent of no set of two documents.
    """
    rows = run.sql(DOCUMENTS).combine_chunks()
    sketches = rows["sketch"].combine_chunks()
    sketches = sketches if isinstance(sketches, pa.Array) else pa.concat_arrays(sketches.chunks)
    holders = np.repeat(
        np.arange(len(rows)), pc.fill_null(pc.list_value_length(sketches), 0).to_numpy(zero_copy_only=False)
    )
    ids = sketches.flatten().to_numpy(zero_copy_only=False).astype(np.int64)

    features, held_features, counts = np.unique(ids, return_inverse=True, return_counts=True)
    is_shared = counts > 1
    place = np.cumsum(is_shared) - 1
    kept = is_shared[held_features]
    held_features, holders = place[held_features[kept]], holders[kept]
    order = np.lexsort((holders, held_features))
    return FormalContext(features[is_shared], rows["doc_id"].to_pylist(), held_features[order], holders[order])


def _blocks(context: FormalContext) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    step = max(1, BLOCK_CELLS // max(len(context.documents), 1))
    for low in range(0, len(context.features), step):
        block = context.features[low : low + step]
        first, last = np.searchsorted(context.held_features, [low, low + len(block)])
        cells = np.zeros((len(block), len(context.documents)), np.bool_)
        cells[context.held_features[first:last] - low, context.holders[first:last]] = True
        yield block, cells


def _write_cxt(context: FormalContext, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"B\n\n{len(context.features)}\n{len(context.documents)}\n\n")
        file.writelines(f"{feature}\n" for feature in context.features.tolist())
        file.writelines(f"{escaped(doc_id)}\n" for doc_id in context.documents)
        for _, cells in _blocks(context):
            ends = np.full((len(cells), 1), ord("\n"), np.uint8)
            file.write(np.hstack([np.where(cells, np.uint8(ord("X")), np.uint8(ord("."))), ends]).tobytes().decode())


def _write_csv(context: FormalContext, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["", *context.documents])
        for features, cells in _blocks(context):
            crosses = np.where(cells, "X", "").tolist()
            rows.writerows([feature, *row] for feature, row in zip(features.tolist(), crosses, strict=True))


def _write_concepts(run: FinishedRun, context: FormalContext, path: Path) -> None:
    """Write cluster_id, part (intent or extent) and id; the extent is counted anew from the sketches."""
    places = {doc_id: place for place, doc_id in enumerate(context.documents)}
    order = np.argsort(context.holders, kind="stable")
    bounds = np.searchsorted(context.holders[order], np.arange(len(context.documents) + 1))
    by_holder = context.held_features[order]
    clusters: dict[str, list[str]] = {}
    members = run.sql(MEMBERS)
    for cluster_id, doc_id in zip(members["cluster_id"].to_pylist(), members["doc_id"].to_pylist(), strict=True):
        clusters.setdefault(cluster_id, []).append(doc_id)

    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["cluster_id", "part", "id"])
        for cluster_id, intent in clusters.items():
            first, *others = ((bounds[places[doc]], bounds[places[doc] + 1]) for doc in intent)
            extent = by_holder[slice(*first)]
            for low, high in others:
                extent = np.intersect1d(extent, by_holder[low:high], assume_unique=True)
            rows.writerows([cluster_id, "intent", doc] for doc in intent)
            rows.writerows([cluster_id, "extent", feature] for feature in context.features[extent].tolist())


class Text(NamedTuple):
    """A text as tokens, and where each lies in it; without places, tokens are shown as they are compared."""

    text: str
    tokens: list[str]
    places: Ranges | None

    def piece(self, low: int, high: int) -> str:
        """Return the tokens from `low` to `high` on one line, cut to `PIECE` characters."""
        if self.places is None:
            joined = "".join(self.tokens[low:high])
        else:
            joined = self.text[self.places[low, 0] : self.places[high - 1, 1]]
        return shorten(" ".join(one_line(joined.replace("\n", " ")).split()), PIECE)


def describe_extent(run: FinishedRun, cluster: str, size: int, *, master: str | None) -> list[str]:
    """Return the common text of a cluster and what its first members have beside it, as lines.

    Cost: one pass over the files of its members; their texts are in memory.
    """
    try:
        members, texts = _read(run, [cluster], master=master)
    except NddupError as error:
        return [f"  common text: not shown, {error}"]
    names = members[cluster]
    of = Shingles(run.metrics.settings)
    rows = [of.tokenise(texts[name]) for name in names]
    extent = find_extent([row.tokens for row in rows], of.length, of.offset)
    part = "" if len(names) == size else f" of the first {len(names):,} members"
    share = f"{extent.common:,} of {min(extent.shingles):,} shingles of the shortest, {extent.share:.1%}"
    lines = [f"  common text{part}: {share}"]
    lines += [f"    {rows[0].piece(low, high)}" for low, high in join_ranges(extent.spans)[:SHOWN_SPANS].tolist()]
    more = len(join_ranges(extent.spans)) - SHOWN_SPANS
    lines += [f"    … and {more:,} more ranges"] if more > 0 else []
    lines.append("  beside it:")
    for name, row, beside in islice(zip(names, rows, extent.beside, strict=True), SHOWN_MEMBERS):
        tokens = int((beside[:, 1] - beside[:, 0]).sum())
        pieces = " / ".join(row.piece(low, high) for low, high in beside[:SHOWN_PIECES].tolist())
        more_pieces = " / …" if len(beside) > SHOWN_PIECES else ""
        sample = f": {pieces}{more_pieces}" if tokens else ""
        lines.append(f"    {one_line(name)}  {counted(tokens, 'token')} of {len(row.tokens):,}{sample}")
    return [*lines, *([f"    … and {len(names) - SHOWN_MEMBERS:,} more"] if len(names) > SHOWN_MEMBERS else [])]


def extent_lines(run: FinishedRun, *, master: str | None) -> Iterator[str]:
    """Yield the extents of all clusters as lines of a CSV file, the header first, the largest cluster first.

    `spans` are token ranges of the representative, `first-after` each, separated by blanks. `compared` is below `size`
    where only the first `MOST_MEMBERS` members were read.

    Raises:
        NddupError: if an input is gone or was changed since the run.

    Cost: the texts of all members are read, in passes of `TOGETHER` members over their files.
    """
    yield csv_line(COLUMNS)
    of = Shingles(run.metrics.settings)
    for portion in _portions(run.sql(CLUSTERS).to_pylist()):
        members, texts = _read(run, [row["cluster_id"] for row in portion], master=master)
        rows = {name: of.tokens(text) for name, text in texts.items()}
        for row in portion:
            names = members[row["cluster_id"]]
            extent = find_extent([rows[name] for name in names], of.length, of.offset)
            spans = " ".join(f"{low}-{high}" for low, high in extent.spans.tolist())
            yield csv_line([row["cluster_id"], row["size"], len(names), extent.common, extent.share, spans])


class Shingles:
    """How a run makes shingles of a text: the sections `shingle` and `tokens` of its settings."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        shingle = settings["shingle"]
        self.length, self.offset = int(shingle["length"]), int(shingle["offset"])
        self.unit, self.ignore = str(shingle["unit"]), ignored_of(settings)

    def tokens(self, text: str) -> list[str]:
        """Return the tokens that shingles are made of: words, or characters with one blank between two words."""
        from nddup.sketching.tokens import list_tokens  # noqa: PLC0415 - loads its tables

        return list_tokens(text, self.unit, self.ignore)

    def tokenise(self, text: str) -> Text:
        """Return a text with its tokens, and for words where each lies."""
        tokens = self.tokens(text)
        if self.unit != "word" or not tokens:
            return Text(text, tokens, None)
        from nddup.against.spans import locate_tokens  # noqa: PLC0415 - compiled code
        from nddup.sketching.rolling_hash import most_tokens  # noqa: PLC0415
        from nddup.sketching.tokens import word_table  # noqa: PLC0415

        data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        room = most_tokens(len(data))
        starts, ends = np.empty(room, np.int32), np.empty(room, np.int32)
        number = locate_tokens(data, 0, len(data), word_table(self.ignore), starts, ends)
        # Bytes become characters: each begins with the only byte that does not continue another.
        before = np.concatenate([[0], np.cumsum(data & 0xC0 != 0x80)])  # noqa: PLR2004 - UTF-8
        return Text(text, tokens, np.stack([before[starts[:number]], before[ends[:number]]], axis=1))


def _portions(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield clusters, in order, as many at a time as have `TOGETHER` members."""
    portion: list[Mapping[str, Any]] = []
    total = 0
    for row in rows:
        members = min(row["size"], MOST_MEMBERS)
        if portion and total + members > TOGETHER:
            yield portion
            portion, total = [], 0
        portion.append(row)
        total += members
    if portion:
        yield portion


def _read(
    run: FinishedRun, clusters: Sequence[str], *, master: str | None
) -> tuple[dict[str, list[str]], dict[str, str]]:
    wanted = pa.Table.from_arrays([pa.array(clusters, pa.string())], ["id"])
    members: dict[str, list[str]] = {cluster: [] for cluster in clusters}
    for row in run.sql(CLUSTER_MEMBERS, wanted=wanted).to_pylist():
        members[row["cluster_id"]].append(row["doc_id"])
    places = text_places(run, chain.from_iterable(members.values()))
    return members, read_whole_texts(run.path, places, master=master)
