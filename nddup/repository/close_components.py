"""From the documents of touched components to all rows of these components, and the tables' totals.

The steps are those of `nddup.embedded.steps`, called in the same order: the pairs are found anew among the documents of
the touched components. Pairs, keep-list, sets, covers and budgets depend only on a component's own rows, so the rows
equal those of a fresh run over all documents.

The digest of a table is free of order: the sum of the BLAKE2b-128 of its rows, modulo 2^128. It can be updated: it
is that of the version before, minus the rows of replaced components, plus the rows of new ones.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded import steps as engine
from nddup.embedded.collapse import Nodes, name_nodes, rank_ids
from nddup.embedded.confirm import Confirmer, Row, list_candidates
from nddup.embedded.match import Matches, joined_ends
from nddup.embedded.workers import Workers
from nddup.ground.columns import one_chunk, take
from nddup.matching.confirm_texts import SetRule
from nddup.mining.pair_graph import label_components
from nddup.repository.identity import Identity
from nddup.repository.segment_files import DIGESTS, RESULTS, table_of
from nddup.repository.sound_values import DIGESTED
from nddup.settings.plan import levels_of
from nddup.settings.schema import Config
from nddup.tables import LIKENESS


@dataclass(frozen=True)
class Scope:
    """The n documents of a change.

    Attributes:
        documents: DOCUMENTS of a run; `group` may be anything.
        nodes: (n,), the distinct sketch of each document.
        versions: (n,), the version that added each.
        was_kept: (n,), whether the version before kept it.
        read: returns where the shingle ids of some nodes lie; asked only where all shingles decide.
    """

    documents: pa.Table
    nodes: NDArray[np.int64]
    versions: NDArray[np.int64]
    was_kept: NDArray[np.bool_]
    read: Callable[[NDArray[np.int64]], Sequence[Row]]

    def only(self, stays: NDArray[np.bool_]) -> "Scope":
        """Return the scope of the documents that stay."""
        documents = self.documents.filter(pa.array(stays))
        return Scope(documents, self.nodes[stays], self.versions[stays], self.was_kept[stays], self.read)


class Closed(NamedTuple):
    """The component of each document of a scope, numbered from 0, and all rows; `keep` is in document order."""

    documents: pa.Table
    components: NDArray[np.int64]
    keep: pa.Table
    results: dict[str, tuple[pa.Table, NDArray[np.int64]]]
    """For each table of `layout.RESULTS`, its rows and the component of each row."""

    candidates: int
    """Pairs of sketches that were compared."""


BYTES = 16

MODULUS = 1 << (8 * BYTES)

COLUMNS = {
    "documents": ("doc_id", "group"),
    "pairs": ("doc_a", "doc_b", *(column.name for column in LIKENESS), "star"),
    "clusters": ("cluster_id", "support", "size", "members", "component", "coverage"),
    "members": ("cluster_id", "doc_id", "representative"),
    "keep": ("doc_id", "kept", "duplicate_of", "reason", "leader"),
    "false_components": ("component", "size", "pairs", "invented", "exact"),
}
"""The columns of each table that are equal to those of a fresh run, as a repository promises; these are digested."""

NULL, FIELD, ITEM = "\x00", "\x1f", "\x1e"
"""Characters for null, between columns, and between the items of a list."""


def close(scope: Scope, identity: Identity, workers: Workers) -> Closed:
    """Make all rows of the components that the documents of a scope form.

    Cost: that of a run after reading, for these documents.
    """
    documents, texts = _with_groups(scope), _Texts(scope, identity)
    turned, config = _in_turn(documents, scope, identity)
    paired = engine.pair(turned, config, workers, read=texts.confirmer_of)
    clustered = engine.cluster(paired, config, workers)
    keep = engine.keep(paired, clustered, config).keep
    components, ids = _join(paired, texts.may_join), one_chunk(paired.nodes.ids)

    def of_ids(column: pa.ChunkedArray) -> NDArray[np.int64]:
        return np.asarray(components[np.asarray(pc.index_in(one_chunk(column), value_set=ids))])

    of_cluster = of_ids(clustered.clusters["component"])
    results = {
        "pairs": (paired.pairs, of_ids(paired.pairs["doc_a"])),
        "clusters": (clustered.clusters, of_cluster),
        "members": (clustered.members, of_ids(clustered.members["doc_id"])),
        "false_components": (clustered.false_components, of_ids(clustered.false_components["component"])),
    }
    return Closed(documents, components, keep, results, paired.matches.candidates)


class _Texts:
    """The shingles of a scope's texts, and which of its sketches were taken for near-duplicates before these decided.

    Attributes:
        may_join: (e, 2), pairs of places that join all such sketches, listed or not.
    """

    def __init__(self, scope: Scope, identity: Identity) -> None:
        self._scope, self._identity = scope, identity
        self.may_join = np.empty((0, 2), np.int32)

    def confirmer_of(self, matches: Matches, nodes: Nodes) -> Confirmer | None:
        """Return what compares the texts of candidates; None where the sketches decide."""
        self.may_join = joined_ends(matches)
        return stored_confirmer(
            self._identity, matches, nodes, lambda places: self._scope.read(self._scope.nodes[places])
        )


def stored_confirmer(
    identity: Identity, matches: Matches, nodes: Nodes, read: Callable[[NDArray[np.int32]], Sequence[Row]]
) -> Confirmer | None:
    """Return what compares the shingles of candidates; None where the sketches decide.

    Args:
        read: returns where the shingle ids of the documents at some places lie.
    """
    if not identity.is_exact:
        return None
    share = identity.config.pairs.share
    rule = SetRule(share.numerator, share.denominator)
    wanted = list_candidates(matches, nodes, rule)
    return Confirmer(wanted, read(wanted), rule)


def _join(paired: engine.Paired, may_join: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the component of each document: those of near-duplicates and of equal sketches.

    Around leaders not all pairs are listed, and how many there are decides whether there are leaders: what may be near
    stays together there.
    """
    rows = np.arange(len(paired.nodes.node), dtype=np.int32)
    links = [paired.matches.ends, np.stack([paired.nodes.node, rows], axis=1)]
    if len(paired.led.nodes):
        whole = label_components(np.concatenate([may_join, *links]).astype(np.int32), nodes=len(rows)).ordinals
        links.append(may_join[np.isin(whole[may_join[:, 0]], whole[paired.led.nodes])])
    joined = np.concatenate(links).astype(np.int32)
    return np.asarray(label_components(joined, nodes=len(rows)).ordinals.astype(np.int64))


def _with_groups(scope: Scope) -> pa.Table:
    names = rank_ids(scope.documents["doc_id"])
    order = np.lexsort((names, scope.nodes))
    starts = np.append(True, scope.nodes[order][1:] != scope.nodes[order][:-1])[: len(order)]
    group = np.empty(len(order), np.int64)
    group[order] = order[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
    at = scope.documents.schema.get_field_index("group")
    return scope.documents.set_column(at, "group", take(scope.documents["doc_id"], group))


def _in_turn(documents: pa.Table, scope: Scope, identity: Identity) -> tuple[pa.Table, Config]:
    """Return the documents and settings by whose policy they are kept: if frozen, by the turns of the documents.

    Those kept before come first, then the earlier version, then the policy.
    """
    config, asked = identity.config, identity.config.keep
    if identity.mode == "rebuild":
        return documents, config
    ranks = name_nodes(documents, order=asked.order, levels=levels_of(config)).policy_rank
    turns = np.empty(len(ranks), np.int64)
    turns[np.lexsort((ranks, scope.versions, ~scope.was_kept))] = np.arange(len(ranks))
    at = documents.schema.get_field_index("doc_key")
    by_turn = asked.model_copy(update={"policy": "first", "prefer": None})
    return documents.set_column(at, "doc_key", pa.array(turns)), config.model_copy(update={"keep": by_turn})


def row_digests(table: pa.Table, name: str) -> list[int]:
    """Return the digest of each row, as a number. Cost: 1 to 2 µs per row."""
    texts = [_spell(table[column]) for column in COLUMNS[name]]
    rows = pc.binary_join_element_wise(*texts, pa.scalar(FIELD, pa.large_string())) if len(texts) > 1 else texts[0]
    return [int.from_bytes(blake2b(row.encode(), digest_size=BYTES).digest(), "little") for row in rows.to_pylist()]


def _spell(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_list(column.type):
        column = pc.binary_join(column.cast(pa.list_(pa.string())), ITEM)
    return pc.fill_null(column.cast(pa.large_string()), NULL)


def total(digests: Iterable[int]) -> int:
    """Return the digest of a set of rows, the sum of theirs."""
    return sum(digests) % MODULUS


def totals_by(digests: list[int], groups: NDArray[np.int64]) -> dict[int, tuple[int, int]]:
    """Return the number of rows and the digest of each group of rows."""
    totals: dict[int, tuple[int, int]] = {}
    for digest, group in zip(digests, groups.tolist(), strict=True):
        rows, before = totals.get(group, (0, 0))
        totals[group] = rows + 1, (before + digest) % MODULUS
    return totals


def spell(number: int) -> str:
    """Spell a digest as 32 hex digits."""
    return number.to_bytes(BYTES, "little").hex()


def parse(text: str) -> int:
    """Parse a digest that `spell` wrote."""
    return int.from_bytes(bytes.fromhex(text), "little")


@dataclass(frozen=True)
class Totals:
    """For each table, the number of rows and the sum of their digests."""

    by_table: Mapping[str, tuple[int, int]]

    def __sub__(self, other: Self) -> "Totals":
        """Subtract the rows of another."""
        return Totals(
            {
                name: (rows - other.by_table[name][0], (digest - other.by_table[name][1]) % MODULUS)
                for name, (rows, digest) in self.by_table.items()
            }
        )

    def added_to(self, before: Mapping[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
        """Return the totals as a commit records them, added to those of the commit before."""
        return {
            name: (
                before.get(name, (0, ""))[0] + rows,
                spell((parse(before[name][1]) if name in before else 0) + digest & MODULUS - 1),
            )
            for name, (rows, digest) in self.by_table.items()
        }


def make_totals(closed: Closed, first: int) -> tuple[Totals, pa.Table]:
    """Return the totals of new components, numbered from `first`, and DIGESTS of those of two documents or more.

    Cost: 1 to 2 µs per row.
    """
    documents = {"documents": closed.documents, "keep": closed.keep}
    sizes = np.bincount(closed.components)
    totals: dict[str, tuple[int, int]] = {}
    rows = []
    for name in COLUMNS:
        table, components = (documents[name], closed.components) if name in documents else closed.results[name]
        digests = row_digests(table, name)
        totals[name] = len(digests), total(digests)
        for component, (count, digest) in totals_by(digests, components).items():
            if sizes[component] > 1:
                rows.append((component + first, name, count, digest.to_bytes(BYTES, "little")))
    return Totals(totals), table_of(DIGESTS, rows)


def replaced_totals(stored: pa.Table, old: pa.Table) -> Totals:
    """Return the totals of stored components; those of one document are computed from its row in STATE.

    Args:
        old: STATE of their documents, each with its `doc_id`.
    """
    totals = dict.fromkeys(COLUMNS, (0, 0))
    for name, count, digest in zip(*(stored[column].to_pylist() for column in DIGESTS.names[1:]), strict=True):
        rows, before = totals[name]
        totals[name] = rows + count, (before + int.from_bytes(digest, "little")) % MODULUS

    of_document = old["component_key"].to_numpy()
    known, counts = np.unique(of_document, return_counts=True)
    alone = old.filter(pa.array(np.isin(of_document, known[counts == 1])))
    for name in ("documents", "keep"):
        digests = row_digests(alone, name)
        rows, before = totals[name]
        totals[name] = rows + len(digests), (before + total(digests)) % MODULUS
    return Totals(totals)


def tables_totals(tables: Mapping[str, pa.Table]) -> dict[str, tuple[int, str]]:
    """Return the number of rows and the digest of each table of a run."""
    return {name: (len(tables[name]), spell(total(row_digests(tables[name], name)))) for name in COLUMNS}


assert set(RESULTS) < COLUMNS.keys() == DIGESTED  # noqa: S101 - each result is digested
