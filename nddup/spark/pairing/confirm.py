"""Candidates confirmed by their texts, and families searched again: texts go to the tasks that have the candidates.

    matches                    --place_pairs-->       each candidate with a bucket     1 shuffle of ends, 1 join
    placed, documents, tokens  --confirm_pairs-->     CONFIRMED     2 shuffles of tokens, each text once; 1 of blocks
    connections                --find_families-->     families to be searched again               1 task, of connections
    connections, stars         --take_families-->     the same, from components found in rounds
    families, sketches, nodes  --pair_families-->     their pairs, and large components           1 shuffle
    matches, families, pairs   --replace_families-->  all matches                                 1 join

Searched again are components with too many pairs, represented by leaders, and families of heavy sketches, whose pairs
are not yet known.
"""

from collections.abc import Iterator
from functools import partial
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup import tables
from nddup.ground.arrays import Ragged
from nddup.matching.confirm_texts import Compared, ConfirmRule, SetRule, compare_taken, divide_pairs
from nddup.mining.family_pairs import FAMILY_COLUMNS, FamilyRule, list_families, search_families
from nddup.spark.blocks import Columns, Layout, block_schema, exchange, layout_of, pack, pack_sketches, pieces, unpack
from nddup.spark.schemas import require, schema_of
from nddup.tables import (
    CONFIRMED,
    CONNECTIONS,
    DOCUMENTS,
    FAMILY_PAIRS,
    MATCHES,
    NODES,
    SEARCHED,
    SKETCHES,
    STARS,
    TOKENS,
)

Batches = Iterator[pa.RecordBatch]

TEXT_LAYOUT: Layout = {"node": np.int64, "size": np.int32, "ids": np.uint64}
PAIR_LAYOUT: Layout = layout_of(tables.MATCHES.columns)

COUNTS = {
    "confirmed": "count_if(is_near)",
    "bounded": "count_if(is_bounded)",
    "bounded_unconfirmed": "count_if(is_bounded AND NOT is_near)",
    "lost": "count_if(is_lost)",
}
"""Counts of CONFIRMED, as aggregates."""

SETTLED_COUNTS = {
    "by_leaders": "count_if(what = 'leaders')",
    "stopped": "max(CASE WHEN what = 'stopped' THEN node_b END)",
    "limited": "sum(CASE WHEN what = 'limited' THEN node_b END)",
}
"""Counts of FAMILY_PAIRS, as aggregates: the sketches given by leaders, the size of the largest family that took too
many comparisons, and the sketches that were compared with heads only."""


def with_unknown(matches: DataFrame) -> DataFrame:
    """Return MATCHES with all facts about two documents: null where one is not known."""
    facts = [column.name for column in (*tables.LIKENESS, *tables.OF_TEXTS)]
    types = schema_of(tables.PAIRS)
    unknown = {name: F.lit(None).cast(types[name].dataType) for name in facts if name not in matches.columns}
    return matches.withColumns(unknown) if unknown else matches


def place_pairs(matches: DataFrame, *, partitions: int) -> DataFrame:
    """Assign each candidate the partition that compares its texts.

    A candidate goes to the bucket of the least node among its first node and that node's neighbours. So most candidates
    of a family meet, with their texts, in one task.

    Schema in:   MATCHES
    Schema out:  MATCHES, bucket int
    Shuffles:  one of the ends, and the join on node_a.    Actions:  none.
    """
    require(matches, MATCHES, stage="pairs")
    ends = matches.select("node_a", F.col("node_b").alias("other")).unionByName(
        matches.select(F.col("node_b").alias("node_a"), F.col("node_a").alias("other"))
    )
    least = ends.groupBy("node_a").agg(F.least(F.min("other"), "node_a").alias("least"))
    bucket = F.pmod(F.xxhash64("least"), F.lit(partitions)).cast("int").alias("bucket")
    return matches.join(least, "node_a").select(*MATCHES.names, bucket)


def confirm_pairs(
    placed: DataFrame, documents: DataFrame, tokens: DataFrame, rule: ConfirmRule, *, partitions: int
) -> DataFrame:
    """Compare the texts of each candidate.

    A text goes once to each bucket that needs it, however many candidates it has there. A task writes what it receives
    to its disk, 8 bytes a token or shingle, and compares one block of candidates at a time.

    Schema in:   as `place_pairs` gives; DOCUMENTS; TOKENS, of all records
    Schema out:  CONFIRMED, one row per candidate

    Args:
        tokens: what is compared, read again; one may occur several times, and some belong to no document.
        partitions: as for `place_pairs`.

    Shuffles:  the tokens of the candidates' documents twice; fingerprints and candidates once.    Actions:  none.
    """
    require(documents, DOCUMENTS, stage="pairs")
    require(tokens, TOKENS, stage="pairs")
    needed = placed.select("bucket", F.explode(F.array("node_a", "node_b")).alias("node")).distinct()
    named = documents.where("doc_id = group").select(F.col("doc_key").alias("node"), "token_fingerprint")
    texts = (
        _name_tokens(needed.join(named, "node"), tokens)
        .select("bucket", "node", F.col("tokens").alias("sketch"))
        .mapInArrow(partial(post_texts, partitions=partitions), block_schema(TEXT_LAYOUT))
    )
    pairs = placed.mapInArrow(partial(post_pairs, partitions=partitions), block_schema(PAIR_LAYOUT))
    blocks = texts.unionByName(pairs, allowMissingColumns=True)
    return exchange(blocks, partitions=partitions).mapInArrow(partial(confirm_task, rule=rule), schema_of(CONFIRMED))


def list_texts(nodes: DataFrame, documents: DataFrame, tokens: DataFrame) -> DataFrame:
    """Return the tokens of some nodes.

    Schema in:   node long; DOCUMENTS; TOKENS, of all records
    Schema out:  node long, tokens array<long>; no row for a node whose text was not found again
    Shuffles:  the tokens of these nodes once.    Actions:  none.
    """
    require(documents, DOCUMENTS, stage="pairs")
    require(tokens, TOKENS, stage="pairs")
    named = documents.where("doc_id = group").select(F.col("doc_key").alias("node"), "token_fingerprint")
    return _name_tokens(nodes.select("node").distinct().join(named, "node"), tokens).select("node", "tokens")


def _name_tokens(wanted: DataFrame, tokens: DataFrame) -> DataFrame:
    """Add the tokens to the rows of `wanted`, which have a token_fingerprint.

    Several records may have the same text, so each text is reduced to one row before it is joined.
    """
    known = tokens.join(wanted.select("token_fingerprint").distinct(), "token_fingerprint", "left_semi")
    return known.dropDuplicates(["token_fingerprint"]).join(wanted, "token_fingerprint")


def post_texts(batches: Batches, *, partitions: int) -> Batches:
    """Pack rows bucket, node, sketch (the tokens) as blocks of TEXT_LAYOUT, each for the partition of its bucket."""
    for batch in batches:
        sizes = np.asarray(batch.column("sketch").value_lengths())
        for rows in pieces(8 * sizes.astype(np.int64)):
            part = batch.slice(rows.start, rows.stop - rows.start)
            targets = np.asarray(part.column("bucket")).astype(np.int32)
            yield pack_sketches(TEXT_LAYOUT, targets, part, partitions=partitions)


def post_pairs(batches: Batches, *, partitions: int) -> Batches:
    """Pack candidates with their buckets as blocks of PAIR_LAYOUT."""
    for batch in batches:
        columns: Columns = {
            name: batch.column(name).to_numpy(zero_copy_only=False).astype(kind) for name, kind in PAIR_LAYOUT.items()
        }
        targets = np.asarray(batch.column("bucket")).astype(np.int32)
        yield pack(PAIR_LAYOUT, targets, columns, partitions=partitions)


class _Spooled(NamedTuple):
    """The n texts of a task, by node; their tokens lie in a file."""

    nodes: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    tokens: NDArray[np.uint64]

    def take(self, places: NDArray[np.int64]) -> Ragged:
        """Return the texts at these places; an empty one for place -1."""
        starts, sizes = np.append(self.starts, 0)[places], np.append(self.sizes, 0)[places]
        parts = [self.tokens[low : low + size] for low, size in zip(starts.tolist(), sizes.tolist(), strict=True)]
        return Ragged(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.concatenate(parts))


def confirm_task(batches: Batches, *, rule: ConfirmRule) -> Batches:
    """Return CONFIRMED for the candidates of one partition."""
    with TemporaryFile(prefix="nddup-") as file:
        texts, columns = _receive(batches, file)
        ends = np.stack([columns["node_a"], columns["node_b"]], axis=1).astype(np.int64)

        # A text that was not found again has no place.
        at = np.searchsorted(texts.nodes, ends)
        places = np.where(np.append(texts.nodes, -1)[at] == ends, at, -1)
        sizes_of = np.append(texts.sizes, 0)
        for rows in divide_pairs(np.where(places < 0, len(texts.sizes), places), sizes_of):
            candidates = {name: column[rows] for name, column in columns.items()}
            compared = compare_taken(texts.take, places[rows], rule)
            is_lost = np.asarray((places[rows] < 0).any(axis=1))
            sizes = sizes_of[places[rows]] if isinstance(rule, SetRule) else None
            yield _lay_out(candidates, compared, is_lost, sizes)


def _receive(batches: Batches, file: IO[bytes]) -> tuple[_Spooled, Columns]:
    """Write the tokens to the file; return the texts that lie there, and the candidates in the order of their nodes."""
    texts: list[Columns] = [{"node": np.empty(0, np.int64), "size": np.empty(0, np.int32)}]
    pairs: list[Columns] = [unpack([], PAIR_LAYOUT)]
    for batch in batches:
        columns = unpack([batch], TEXT_LAYOUT)
        columns.pop("ids").tofile(file)
        texts.append(columns)
        pairs.append(unpack([batch], PAIR_LAYOUT))
    file.flush()

    nodes, sizes = (np.concatenate([part[name] for part in texts]).astype(np.int64) for name in ("node", "size"))
    by_node = np.argsort(nodes)
    starts = (np.cumsum(sizes) - sizes)[by_node]
    tokens = np.memmap(file, np.uint64, mode="r") if sizes.sum() else np.empty(0, np.uint64)
    candidates = {name: np.concatenate([part[name] for part in pairs]) for name in PAIR_LAYOUT}
    order = np.lexsort((candidates["node_b"], candidates["node_a"]))
    return (
        _Spooled(nodes[by_node], starts, sizes[by_node], tokens),
        {name: column[order] for name, column in candidates.items()},
    )


def _lay_out(
    columns: Columns, compared: Compared, is_lost: NDArray[np.bool_], shingles: NDArray[np.int64] | None
) -> pa.RecordBatch:
    """Return rows of CONFIRMED for some candidates; an unknown value (NaN) becomes null.

    `shingles`, (k, 2), are the numbers of distinct shingles where these decide; then the resemblance is exact.
    """
    similarity = pa.array(compared.similarity, from_pandas=True)
    values = {name: pa.array(columns[name], from_pandas=True) for name in PAIR_LAYOUT}
    values |= {name: pa.array(getattr(compared, name)) for name in ("is_near", "is_bounded")}
    values |= {"edit": similarity, "is_lost": pa.array(is_lost)}
    counts = {name: pa.nulls(len(is_lost), pa.int32()) for name in ("common", "shingles_a", "shingles_b")}
    if shingles is not None:
        each = (compared.common, *shingles.T)
        counts = {name: pa.array(one.astype(np.int32)) for name, one in zip(counts, each, strict=True)}
        values |= {"resemblance": similarity, "edit": pa.nulls(len(is_lost), pa.float64())}
    values |= counts
    return tables.CONFIRMED.batch([values[name] for name in tables.CONFIRMED.names])


def find_families(connections: DataFrame, *, max_edges: int) -> DataFrame:
    """Find, in one task, the families with a heavy sketch and those with more than `max_edges` pairs.

    Schema in:   CONNECTIONS
    Schema out:  SEARCHED; a family is a number from 0
    Shuffles:  the connections to one task (memory: `FAMILIES_COST`).    Actions:  none.
    """
    require(connections, CONNECTIONS, stage="pairs")
    one = connections.select(*CONNECTIONS.names).repartition(1)
    return one.mapInArrow(partial(list_families, max_edges=max_edges), schema_of(SEARCHED))


def take_families(connections: DataFrame, stars: DataFrame, *, max_edges: int) -> DataFrame:
    """Find the same families, from the stars that `graph.contract` made of the connections.

    Schema in:   CONNECTIONS; STARS, one star per component
    Schema out:  SEARCHED; a family is named by its least node
    Shuffles:  the connections once, the stars twice.    Actions:  none.
    """
    require(connections, CONNECTIONS, stage="pairs")
    require(stars, STARS, stage="pairs")
    centres = stars.select(F.col("first").alias("node"), F.col("first").alias("family")).distinct()
    others = stars.select(F.col("second").alias("node"), F.col("first").alias("family"))
    members = others.unionByName(centres)

    ends = connections.select(F.col("node_a").alias("node"), "is_link", "pairs")
    counted = (
        ends.join(members, "node")
        .groupBy("family")
        .agg(
            F.bool_or("is_link").alias("is_linked"),
            F.bool_or(F.col("pairs") != 1).alias("is_unlisted"),
            F.sum("pairs").alias("n"),
        )
    )
    is_large = ~F.col("is_linked") & (F.col("n") > max_edges)
    wanted = F.col("is_linked") | F.col("is_unlisted") | is_large
    chosen = counted.where(wanted).select("family", is_large.alias("is_large"))
    return members.join(chosen, "family").select(*SEARCHED.names)


def pair_families(  # noqa: PLR0913 - the texts only where these confirm pairs
    families: DataFrame,
    sketches: DataFrame,
    nodes: DataFrame,
    rule: FamilyRule,
    texts: DataFrame | None = None,
    *,
    partitions: int,
) -> DataFrame:
    """Find the pairs of these families, and the sketches of components with more than `max_edges` pairs.

    If texts confirm pairs, the task of a family compares them too, and holds the family's tokens or shingle ids, 8
    bytes each.

    Schema in:   SEARCHED, SKETCHES, NODES; node long, tokens array<long>, if texts confirm pairs
    Schema out:  FAMILY_PAIRS
    Shuffles:  the joins on node; one of the rows, each family to one task, which sorts them on its disk.
    Actions:   none.
    """
    require(families, SEARCHED, stage="pairs")
    require(sketches, SKETCHES, stage="pairs")
    require(nodes, NODES, stage="pairs")
    about = nodes.groupBy("node", "guard").agg(
        F.min(F.struct("policy", "doc_id")).alias("best"),
        F.max("weight").alias("most"),
        F.min("weight").alias("least"),
        F.count("*").alias("n"),
        F.min("n_features").alias("shingles"),
    )
    rows = sketches.join(about.join(families, "node"), "node")
    columns = [*SEARCHED.names, *FAMILY_COLUMNS]
    if texts is not None:
        rows, columns = rows.join(texts, "node", "left"), [*columns, "tokens"]
    in_order = rows.repartition(partitions, "family").sortWithinPartitions("family", "best").select(*columns)
    return in_order.mapInArrow(partial(search_families, rule=rule), schema_of(FAMILY_PAIRS))


def replace_families(matches: DataFrame, families: DataFrame, settled: DataFrame) -> DataFrame:
    """Return the matches outside the families, and those found within them.

    Schema in:   MATCHES, SEARCHED, FAMILY_PAIRS
    Schema out:  MATCHES
    Shuffles:  the matches on node_a, unless the families are small enough to be broadcast.    Actions:  none.
    """
    require(matches, MATCHES, stage="pairs")
    require(settled, FAMILY_PAIRS, stage="pairs")
    inside = families.select(F.col("node").alias("node_a"))  # both ends of a match are in the same family
    outside = matches.join(inside, "node_a", "left_anti")
    within = settled.where("what = 'pair'").select(*MATCHES.names)
    return outside.select(*MATCHES.names).unionByName(within)


def list_large(settled: DataFrame) -> DataFrame:
    """Return the sketches of components represented by leaders, and what replaces each where losses are limited.

    Schema in:   FAMILY_PAIRS
    Schema out:  node long, stands long
    Shuffles:  none.    Actions:  none.
    """
    require(settled, FAMILY_PAIRS, stage="pairs")
    return settled.where("what = 'leaders'").select(F.col("node_a").alias("node"), F.col("node_b").alias("stands"))
