"""A run onto a run: its pairs, and the rows that it takes over.

    documents of both     --Onto-->           the candidates: OLD's, those of NEW with OLD, and of NEW with NEW
    candidates            --Onto.changed-->   the documents whose pairs, clusters and verdicts are made anew
    rows made anew, OLD   --Onto.take_over--> the tables of the run
                          --Onto.keep-->      what the next run needs

A first run goes on from nothing, by the same steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded.collapse import Nodes
from nddup.embedded.confirm import Confirmer, Row, Texts, list_candidates, read_tokens
from nddup.embedded.match import Matches, PairingOptions, match
from nddup.embedded.old_run import Old
from nddup.embedded.workers import Workers
from nddup.ground.arrays import take_rows
from nddup.ground.columns import list_column, lists_of, one_chunk, pieces_of, ragged_of
from nddup.matching.reach import mark_new
from nddup.mining.pair_graph import label_components
from nddup.settings.plan import confirm_rule_of, kind_of, record_limits, tokens_of
from nddup.settings.schema import Config
from nddup.tables import CANDIDATES, SHINGLES

TURNED = {"containment_a": "containment_b", "containment_b": "containment_a"}
"""What a pair shows of one end, and of the other."""

SHINGLES_TOGETHER = 1 << 23
"""Shingles in one array of the stored table: 64 MB."""

ROWS_TOGETHER = 1 << 16
"""Old sketches that are looked at together: some 50 MB."""

NAMED_BY = {"pairs": "doc_a", "keep": "doc_id", "false_components": "component"}
"""The column of each table that names a document of the component of its row."""


@dataclass
class Onto:
    """The search of one run for its pairs, onto what it goes on from, and the documents that these change.

    A distinct sketch is named by the place of its first document. Old candidates are known, so only new sketches are
    looked for, among themselves and the old ones that they reach (`nddup.matching.reach`). What follows from the pairs
    is made anew for the documents of components, of candidates, that hold a new document; the rows of all others stay.

    Args:
        old: the finished run.
        documents: DOCUMENTS of both, n rows.
        first_new: the least `doc_key` that a record of NEW has.
        config: of both.
        source: NEW, to be read again where texts decide.
        workers: the threads and processes.
        is_whole: whether all documents count as changed.

    Cost: one look at each id of the old sketches; that of `match` for the new ones and those reached; a union-find over
        the candidates. All sketches and candidates are in memory.
    """

    old: Old
    documents: pa.Table
    first_new: int
    config: Config
    source: Any
    workers: Workers
    is_whole: bool = False

    def __post_init__(self) -> None:
        """Find the candidates, and what they change."""
        documents = self.documents
        self._keys, self._sketches = documents["doc_key"].to_numpy(), ragged_of(documents["sketch"])
        self._n_features = documents["n_features"].to_numpy()
        self._sizes = np.diff(self._sketches.offsets).astype(np.int32)
        self._firsts = _first_places(documents["group"])
        self._rule = PairingOptions.of(self.config)
        self._shingles: list[tuple[int, Row]] = []

        is_node = (self._firsts == np.arange(len(self._keys))) & (self._sizes > 0)
        is_new = (self._keys >= self.first_new) | np.isin(self._keys, self.old.anew)
        self._new = np.flatnonzero(is_node & is_new)
        self._find()
        self.changed = self._find_changed()

    def _find(self) -> None:
        """Find the candidates: those of a new sketch, and those that are stored."""
        is_new = np.zeros(len(self._keys), np.bool_)
        is_new[self._new] = True
        both = np.union1d(self._new, self._find_reached())
        sketches = take_rows(self._sketches, both)
        sketches.values.flags.writeable = False
        self._among = match(both.astype(np.int32), sketches, self._n_features[both], self._rule, self.workers)
        is_known = ~is_new[self._among.first] & ~is_new[self._among.second]
        among = self._among.take(np.flatnonzero(~is_known))

        stored = self.old.stored["candidates"]
        listed, large = stored.filter(pc.is_null(stored["pairs"])), stored.filter(pc.is_valid(stored["pairs"]))
        first, second = (self._places_of(listed[name].to_numpy()) for name in ("node_a", "node_b"))
        known = _Pairs(first, second, {name: listed[name].to_numpy() for name in among.told})
        self._pairs = _Pairs.joined([_Pairs(among.first, among.second, among.told), known])
        ends = [self._places_of(large[name].to_numpy()) for name in ("node_a", "node_b")]
        self._large = np.concatenate([self._new_large(is_new), np.stack([*ends, large["pairs"].to_numpy()], axis=1)])

    def _find_reached(self) -> NDArray[np.int64]:
        """Return the places of the old nodes that may be near to a new one."""
        is_node = (self._firsts == np.arange(len(self._keys))) & (self._sizes > 0)
        is_node[self._new] = False
        old, rule = np.flatnonzero(is_node), self._rule
        totals = rule.threshold.totals(self._sizes, self._n_features)
        keys = None if rule.finder is None else rule.finder.keys
        reach = mark_new(take_rows(self._sketches, self._new), totals[self._new], rule.threshold, keys)
        pieces = [old[at : at + ROWS_TOGETHER] for at in range(0, len(old), ROWS_TOGETHER)] if len(self._new) else []
        parts = [piece[reach.find(take_rows(self._sketches, piece), totals[piece])] for piece in pieces]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def _new_large(self, is_new: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the rows of components with too many pairs to list, without components of old sketches alone."""
        large = self._among.large
        changed = large[is_new[large[:, :2]].any(axis=1), 0]
        return large[np.isin(large[:, 0], changed)]

    def _places_of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of stored nodes."""
        return np.searchsorted(self._keys, keys)

    def _find_changed(self) -> NDArray[np.int64] | None:
        """Return the places of the documents of the components that hold a new one, ascending; None: of all."""
        if self.is_whole or not self.first_new:
            return None
        edges = [self._pairs.ends, self._large[:, :2], self._among.links]
        labels = label_components(np.concatenate(edges).astype(np.int32), nodes=len(self._keys)).ordinals
        is_touched = np.zeros(len(labels), np.bool_)
        is_touched[labels[self._firsts[self._keys >= self.first_new]]] = True
        return np.flatnonzero(is_touched[labels[self._firsts]])

    @property
    def changed_documents(self) -> pa.Table:
        """DOCUMENTS of which all that follows from the pairs is made anew."""
        if self.changed is None:
            return self.documents
        return self.documents.take(pa.array(self.changed)).combine_chunks()

    def search(self, nodes: Nodes) -> Matches:
        """Return the candidates among the changed documents, as `match` returns them."""
        changed = np.arange(len(self._keys)) if self.changed is None else self.changed
        is_changed = np.zeros(len(self._keys), np.bool_)
        is_changed[changed] = True

        def placed(places: NDArray[np.integer]) -> NDArray[np.int64]:
            return nodes.node[np.searchsorted(changed, places)].astype(np.int64)

        rows = np.flatnonzero(is_changed[self._pairs.first])
        likeness = {name: values[rows] for name, values in self._pairs.likeness.items()}
        pairs = _Pairs(placed(self._pairs.first[rows]), placed(self._pairs.second[rows]), likeness)
        pairs = _Pairs.joined([pairs])
        large = self._large[is_changed[self._large[:, 0]]]
        links = self._among.links[is_changed[self._among.links[:, 0]]]  # old sketches may be linked among themselves
        return replace(
            self._among,
            first=pairs.first.astype(np.int32),
            second=pairs.second.astype(np.int32),
            told=pairs.likeness,
            links=np.sort(placed(links), axis=1).astype(np.int32),
            candidates=len(self._pairs.first),
            large=np.concatenate([placed(large[:, :2]), large[:, 2:]], axis=1),
        )

    def read(self, matches: Matches, nodes: Nodes) -> Confirmer | None:
        """Return what compares the texts of candidates; None where the sketches decide.

        Cost: one pass over NEW, of whose distinct texts all are read whose sketches lack a shingle: a later run may
        need them. 8 bytes a shingle, in mapped files.
        """
        rule = confirm_rule_of(self.config)
        if rule is None:
            return None
        is_front = kind_of(self.config.sketch).estimate == "smallest"
        is_whole = (self._sizes == self._n_features) & is_front
        again = self._new[~is_whole[self._new] & (self._keys[self._new] >= self.first_new)].astype(np.int32)
        texts = Texts(self.source, tokens_of(self.config), record_limits(self.config), rule, is_front)
        rows = list(read_tokens(self.documents, again, texts, self.workers))
        self._shingles = list(zip(self._keys[again].tolist(), rows, strict=True))

        wanted, (offsets, ids) = list_candidates(matches, nodes, rule), self._sketches
        places = wanted.astype(np.int64) if self.changed is None else self.changed[wanted]
        firsts = self._firsts[places]
        stored = {**self._stored_shingles(self._keys[firsts[~is_whole[firsts]]]), **dict(self._shingles)}
        shingles = [
            Row(ids, *offsets[first : first + 2].tolist()) if is_whole[first] else stored[int(self._keys[first])]
            for first in firsts.tolist()
        ]
        return Confirmer(wanted, shingles, rule)

    def _stored_shingles(self, wanted: NDArray[np.int64]) -> dict[int, Row]:
        """Return where the shingles of some stored nodes lie; nothing is copied."""
        places = dict[int, Row]()
        for batch in self.old.stored["shingles"].to_batches():
            nodes, rows = batch["node"].to_numpy(), list_column(batch["shingles"])
            for i in np.flatnonzero(np.isin(nodes, wanted)).tolist():
                places[int(nodes[i])] = Row(rows.values, *rows.offsets[i : i + 2].tolist())
        return places

    def keep(self) -> dict[str, pa.Table]:
        """Return the tables of `ONTO` that a later run needs, without GIVEN; once the texts were read."""
        shingles = pa.concat_tables([self.old.stored["shingles"], *_lay_shingles(self._shingles)])
        return {"candidates": _lay_candidates(self._pairs, self._large, self._keys), "shingles": shingles}

    def counts(self) -> dict[str, int]:
        """Return the counts of the stage of pairs that tell of all documents."""
        is_node, least = self._firsts == np.arange(len(self._firsts)), self._rule.threshold.least_size
        sizes = self._sizes[is_node]
        return {
            "empty_sketches": int(np.count_nonzero(self._sizes == 0)),
            "below_count": int(np.count_nonzero((self._sizes > 0) & (self._sizes < least))),
            "equal_sketches": int(np.count_nonzero(~is_node)),
            "distinct_sketches": int(np.count_nonzero(sizes)),
            "postings": int(sizes.sum()),
        }

    def take_over(self, name: str, made: pa.Table) -> pa.Table:
        """Return a table of the run: the rows of what did not change, as OLD has them, and those made anew."""
        if self.changed is None:
            return made
        ids = one_chunk(self.changed_documents["doc_id"])
        before = self.old.table(name)
        if name == "clusters":
            members = self.old.table("members")
            gone = pc.unique(members.filter(pc.is_in(members["doc_id"], ids))["cluster_id"])
            is_gone = pc.is_in(before["cluster_id"], gone)
        elif name == "members":
            gone = pc.unique(before.filter(pc.is_in(before["doc_id"], ids))["cluster_id"])
            is_gone = pc.is_in(before["cluster_id"], gone)
        else:
            is_gone = pc.is_in(before[NAMED_BY[name]], ids)
        return pa.concat_tables([before.filter(pc.invert(is_gone)), made.select(before.column_names)])


def _first_places(groups: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return the place of the first document of each one's group, (n,)."""
    codes = one_chunk(groups).dictionary_encode().indices.to_numpy()
    firsts = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]  # of several documents the last one written, the first, stays
    places: NDArray[np.int64] = firsts[codes]
    return places


class _Pairs(NamedTuple):
    """The two ends of k pairs, in any order, and their LIKENESS by the names of its columns."""

    first: NDArray[np.integer]
    second: NDArray[np.integer]
    likeness: Mapping[str, NDArray[Any]]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Both ends of each, (k, 2)."""
        return np.stack([self.first, self.second], axis=1).astype(np.int64)

    @classmethod
    def joined(cls, parts: Sequence["_Pairs"]) -> "_Pairs":
        """Return all pairs, sorted, the lesser end of each first."""
        parts = [part.ascending() for part in parts]
        first = np.concatenate([part.first.astype(np.int64) for part in parts])
        second = np.concatenate([part.second.astype(np.int64) for part in parts])
        order = np.lexsort((second, first))
        likeness = {name: np.concatenate([part.likeness[name] for part in parts])[order] for name in parts[0].likeness}
        return cls(first[order], second[order], likeness)

    def ascending(self) -> "_Pairs":
        """Return the pairs with the lesser end first."""
        is_turned = self.first > self.second
        likeness = {
            name: np.where(is_turned, self.likeness[TURNED.get(name, name)], values)
            for name, values in self.likeness.items()
        }
        return _Pairs(np.minimum(self.first, self.second), np.maximum(self.first, self.second), likeness)


def _lay_candidates(pairs: _Pairs, large: NDArray[np.int64], keys: NDArray[np.int64]) -> pa.Table:
    """Return CANDIDATES; places ascend as keys do."""
    columns = {"node_a": pa.array(keys[pairs.first]), "node_b": pa.array(keys[pairs.second])}
    columns |= {name: pa.array(values) for name, values in pairs.likeness.items()}
    counted = {"node_a": keys[large[:, 0]], "node_b": keys[large[:, 1]], "pairs": large[:, 2]}
    rows = {name: pa.array(values) for name, values in counted.items()}
    return pa.concat_tables([_complete(columns, len(pairs.first)), _complete(rows, len(large))])


def _complete(columns: Mapping[str, pa.Array], rows: int) -> pa.Table:
    arrays = {field.name: columns.get(field.name, pa.nulls(rows, field.type)) for field in CANDIDATES.arrow}
    return pa.table(arrays).cast(CANDIDATES.arrow)


def _lay_shingles(shingles: Sequence[tuple[int, Row]]) -> Iterator[pa.Table]:
    """Yield SHINGLES of some nodes, some MB in an array."""
    sizes = np.array([row.high - row.low for _, row in shingles], np.int64)
    for part in pieces_of(sizes, SHINGLES_TOGETHER):
        chosen = shingles[part.start : part.stop]
        ends = np.concatenate([[0], np.cumsum(sizes[part.start : part.stop])])
        values = np.concatenate([row.values[row.low : row.high] for _, row in chosen])
        lists = lists_of(ends, pa.array(values.view(np.int64)))
        yield pa.table({"node": pa.array([node for node, _ in chosen], pa.int64()), "shingles": lists}).cast(
            SHINGLES.arrow
        )
