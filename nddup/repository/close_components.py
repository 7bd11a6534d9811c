"""From the documents of touched components and their pairs to all rows of these components, and the tables' totals.

The steps are those of `nddup.embedded.steps`, called in the same order. Pairs, keep-list, sets, covers and budgets
depend only on a component's own rows, so the rows equal those of a fresh run over all documents.

The digest of a table is free of order: the sum of the BLAKE2b-128 of its rows, modulo 2^128. It can be updated: it
is that of the version before, minus the rows of replaced components, plus the rows of new ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded import steps as engine
from nddup.embedded.collapse import Nodes, name_nodes, rank_ids
from nddup.embedded.confirm import NO_LEADERS, Known, keys_of, pair_families
from nddup.embedded.match import Matches, PairingOptions
from nddup.embedded.workers import Workers
from nddup.ground.columns import one_chunk, take
from nddup.matching.preference import Order
from nddup.mining.pair_graph import label_components
from nddup.repository.identity import Identity
from nddup.repository.segment_files import DIGESTS, EDGES, RESULTS, table_of
from nddup.repository.sound_values import DIGESTED
from nddup.settings.plan import levels_of
from nddup.tables import DIRECTED, LIKENESS


@dataclass(frozen=True)
class Scope:
    """The n documents of a change, and the near-duplicate pairs of their distinct sketches.

    Attributes:
        documents: DOCUMENTS of a run; `group` may be anything.
        nodes: (n,), the distinct sketch of each document.
        edges: EDGES between these nodes, each once.
        versions: (n,), the version that added each.
        was_kept: (n,), whether the version before kept it.
    """

    documents: pa.Table
    nodes: NDArray[np.int64]
    edges: pa.Table
    versions: NDArray[np.int64]
    was_kept: NDArray[np.bool_]

    def only(self, stays: NDArray[np.bool_]) -> "Scope":
        """Return the scope of the documents that stay."""
        fewer = Scope(
            self.documents.filter(pa.array(stays)),
            self.nodes[stays],
            self.edges,
            self.versions[stays],
            self.was_kept[stays],
        )
        return replace(fewer, edges=fewer.only_edges(self.edges))

    def only_edges(self, edges: pa.Table) -> pa.Table:
        """Return the EDGES with both ends among the nodes of the scope."""
        is_inside = [np.isin(edges[name].to_numpy(), self.nodes) for name in ("node_a", "node_b")]
        return edges.filter(pa.array(is_inside[0] & is_inside[1]))


class Closed(NamedTuple):
    """The component of each document of a scope, numbered from 0, and all rows; `keep` is in document order."""

    documents: pa.Table
    components: NDArray[np.int64]
    keep: pa.Table
    results: dict[str, tuple[pa.Table, NDArray[np.int64]]]
    """For each table of `layout.RESULTS`, its rows and the component of each row."""


BYTES = 16

MODULUS = 1 << (8 * BYTES)

COLUMNS = {
    "documents": ("doc_id", "group"),
    "pairs": ("doc_a", "doc_b", *(column.name for column in LIKENESS), "star"),
    "clusters": ("cluster_id", "support", "size", "members", "component", "coverage"),
    "members": ("cluster_id", "doc_id", "representative"),
    "keep": ("doc_id", "kept", "duplicate_of", "reason"),
    "false_components": ("component", "size", "pairs", "invented", "exact"),
}
"""The columns of each table that are equal to those of a fresh run, as a repository promises; these are digested."""

NULL, FIELD, ITEM = "\x00", "\x1f", "\x1e"
"""Characters for null, between columns, and between the items of a list."""


def close(scope: Scope, identity: Identity, workers: Workers) -> Closed:
    """Make all rows of the components that the documents of a scope form.

    Cost: that of the stages after pairing, for these documents.
    """
    documents = _with_groups(scope)
    nodes = _name(documents, scope, identity)
    config, rule = identity.config, PairingOptions.of(identity.config)
    whole = _as_matches(scope, nodes, is_exact=identity.is_exact)
    matches, led = replace(whole, common=None), NO_LEADERS
    known = None if whole.common is None else _known_of(whole, whole.common)
    if rule.limits is not None:
        matches, led = pair_families(matches, nodes, rule, rule.limits, workers, known)
    if known is not None:
        matches = known.confirm(matches, workers).matches
    pairs, graph = engine.list_pairs(matches, nodes, config)
    paired = engine.Paired(pairs, nodes, matches, led, {}, graph)
    clustered = engine.cluster(paired, config, workers)
    keep = engine.keep(paired, clustered, config).keep

    rows = np.arange(len(nodes.node), dtype=np.int32)
    # Around leaders, pairs of two documents that do not lead are left out, but these may connect a component: use all
    # pairs. And all candidates: how many a family has decides whether leaders stand for it.
    links = np.concatenate([whole.ends, np.stack([nodes.node, rows], axis=1)]).astype(np.int32)
    components = label_components(links, nodes=len(rows)).ordinals.astype(np.int64)
    ids = one_chunk(nodes.ids)

    def of_ids(column: pa.ChunkedArray) -> NDArray[np.int64]:
        return np.asarray(components[np.asarray(pc.index_in(one_chunk(column), value_set=ids))])

    of_cluster = of_ids(clustered.clusters["component"])
    results = {
        "pairs": (pairs, of_ids(pairs["doc_a"])),
        "clusters": (clustered.clusters, of_cluster),
        "members": (clustered.members, of_ids(clustered.members["doc_id"])),
        "false_components": (clustered.false_components, of_ids(clustered.false_components["component"])),
    }
    return Closed(documents, components, keep, results)


def _with_groups(scope: Scope) -> pa.Table:
    names = rank_ids(scope.documents["doc_id"])
    order = np.lexsort((names, scope.nodes))
    starts = np.append(True, scope.nodes[order][1:] != scope.nodes[order][:-1])[: len(order)]
    group = np.empty(len(order), np.int64)
    group[order] = order[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
    at = scope.documents.schema.get_field_index("group")
    return scope.documents.set_column(at, "group", take(scope.documents["doc_id"], group))


def _name(documents: pa.Table, scope: Scope, identity: Identity) -> Nodes:
    """Return the nodes, ordered by the keep policy; if frozen, by kept before or not, then version, then policy."""
    asked, levels = identity.config.keep, levels_of(identity.config)
    nodes = name_nodes(documents, order=asked.order, levels=levels, same=asked.same_places)
    if identity.mode == "rebuild":
        return nodes
    by_turn = np.lexsort((nodes.policy_rank, scope.versions, ~scope.was_kept))
    turns = np.empty(len(by_turn), np.int64)
    turns[by_turn] = np.arange(len(by_turn))
    at = documents.schema.get_field_index("doc_key")
    turned = documents.set_column(at, "doc_key", pa.array(turns))
    return name_nodes(turned, order=Order("first"), levels=levels, same=asked.same_places)


def _known_of(candidates: Matches, common: NDArray[np.int32]) -> Known:
    near = np.flatnonzero(common > 0)
    return Known(keys_of(candidates.ends[near]), common[near], candidates.resemblance[near])


def _as_matches(scope: Scope, nodes: Nodes, *, is_exact: bool) -> Matches:
    """Return the pairs of distinct sketches as `match` gives them: by the places of their `group` documents.

    Where all shingles decide, they are candidates, with the shingles that both have: 0 where too few.
    """
    edges = scope.edges.select(EDGES.names)
    order = np.argsort(scope.nodes, kind="stable")
    ends = np.stack([_places(edges[name].to_numpy(), scope.nodes, order, nodes) for name in ("node_a", "node_b")])
    is_turned = ends[0] > ends[1]
    ends = np.where(is_turned, ends[::-1], ends)
    by_place = np.lexsort((ends[1], ends[0]))
    other = {one: other for pair in DIRECTED.items() for one, other in (pair, pair[::-1])}

    def column_of(name: str) -> NDArray[np.generic]:
        values, turned = (edges[column].to_numpy(zero_copy_only=False) for column in (name, other.get(name, name)))
        return np.asarray(np.where(is_turned, turned, values)[by_place])

    return Matches(
        ends[0, by_place],
        ends[1, by_place],
        {column.name: column_of(column.name) for column in LIKENESS},
        np.empty((0, 2), np.int32),
        common=edges["common"].to_numpy()[by_place].astype(np.int32) if is_exact else None,
    )


def _places(
    wanted: NDArray[np.int64], of_documents: NDArray[np.int64], order: NDArray[np.int64], nodes: Nodes
) -> NDArray[np.int32]:
    if not len(wanted):
        return np.empty(0, np.int32)
    return nodes.node[order[np.searchsorted(of_documents[order], wanted)]]


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
