"""A run onto a run: the documents whose pairs, clusters and verdicts it makes anew, and the rows that it takes over.

    documents of both     --Onto-->           those of components, of candidates, that hold a new or changed document
    rows made anew, OLD   --Onto.take_over--> the tables of the run
                          --Onto.keep-->      what the next run needs

No near-duplicates are in two components of candidates. So what follows from the documents of some components alone is
what a run over all of them would make of these. A first run goes on from nothing, by the same steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded.collapse import Nodes
from nddup.embedded.confirm import Confirmer, Row, Texts, list_candidates, read_tokens
from nddup.embedded.match import Matches, PairingOptions, joined_ends, name_candidates
from nddup.embedded.old_run import NO_NODE, Old
from nddup.embedded.settle_onto import is_equal
from nddup.embedded.workers import Workers
from nddup.errors import OutputError
from nddup.ground.columns import list_column, lists_of, one_chunk, pieces_of, ragged_of, sizes_of
from nddup.matching.reach import mark_new
from nddup.mining.pair_graph import label_components
from nddup.settings.plan import confirm_rule_of, kind_of, record_limits, threshold_of, tokens_of
from nddup.settings.schema import Config
from nddup.stages.onto import IN_ROWS, NAMED_BY
from nddup.tables import CANDIDATES, SHINGLES

SHINGLES_TOGETHER = 1 << 23
"""Shingles in one array of the stored table: 64 MB."""

ROWS_TOGETHER = 1 << 16
"""Old sketches that are looked at together: some 50 MB."""


@dataclass
class Onto:
    """The documents that a run makes all tables anew for, onto what it goes on from, and what it stores.

    A distinct sketch is named by the place of its first document. Changed are new documents, and those in a component
    of OLD's candidates that has lost or changed a document, or has a sketch that a new one may be near to
    (`nddup.matching.reach`).

    Args:
        documents: DOCUMENTS of both, n rows.
        first_new: the least `doc_key` that a record of NEW has.
        source: NEW, to be read again where texts decide.
        is_whole: whether all documents count as changed.

    Cost: one look at each id of the old sketches; a union-find over the candidates.
    """

    old: Old
    documents: pa.Table
    first_new: int
    config: Config
    source: Any
    workers: Workers
    is_whole: bool = False

    def __post_init__(self) -> None:
        """Find the changed documents."""
        documents = self.documents
        if self.old.has_revisits:  # a text may have changed, and with it what a stored name stands for
            self.old = self.old.renamed(self._find_same(("token_fingerprint",)))
        self._keys, self._n_features = documents["doc_key"].to_numpy(), documents["n_features"].to_numpy()
        self._sizes = sizes_of(documents["sketch"])
        self._firsts = _first_places(documents)
        self._is_node = (self._firsts == np.arange(len(self._keys))) & (self._sizes > 0)
        self._shingles: list[tuple[int, Row]] = []
        self._candidates = CANDIDATES.arrow.empty_table()
        self.changed: NDArray[np.int64] | None = None
        """The places of the changed documents, ascending; None: all."""
        if self.first_new and not self.is_whole:
            self._find_changed()

    def _find_changed(self) -> None:
        old, stored = self.old.documents, self.old.stored["candidates"]
        keys = old["doc_key"].to_numpy()
        firsts = _first_places(old)  # a stored node may be any document of its group
        ends = [firsts[np.searchsorted(keys, stored[name].to_numpy())] for name in ("node_a", "node_b")]
        labels = label_components(np.stack(ends, axis=1).astype(np.int32), nodes=len(keys)).ordinals[firsts]

        is_same = self._find_same(IN_ROWS)
        is_new = ~np.isin(self._keys, keys[is_same])
        is_joined = np.zeros(len(is_new), np.bool_)
        is_joined[self._firsts[is_new]] = True  # an old record that is a document only now may be the first of others
        beside = np.flatnonzero(is_joined[self._firsts] & ~is_new)
        near = np.concatenate([beside, self._find_reached(self._is_node & is_new)])
        is_touched = np.zeros(len(keys), np.bool_)
        is_touched[labels[~is_same]] = True
        is_touched[labels[np.searchsorted(keys, self._keys[near])]] = True
        is_left = is_touched[labels]
        self._keys_left, self._left = keys[is_left], one_chunk(old["doc_id"].filter(pa.array(is_left)))
        self.changed = np.flatnonzero(~np.isin(self._keys, keys[~is_left]))

    def _find_same(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Return which documents of OLD have the same values in some columns."""
        old, now = self.old.documents["doc_key"].to_numpy(), self.documents["doc_key"].to_numpy()
        is_there = np.isin(old, now)
        at = pa.array(np.searchsorted(now, old[is_there]))
        before = self.old.documents.select(list(names)).filter(pa.array(is_there))
        is_same = is_there.copy()
        is_same[is_there] = np.all([is_equal(before[name], self.documents[name].take(at)) for name in names], axis=0)
        return is_same

    def _find_reached(self, is_new: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the places of the other nodes that may be near to a new one. No old sketch is copied."""
        rule = PairingOptions.of(self.config)
        totals = rule.threshold.totals(self._sizes, self._n_features)
        keys = None if rule.finder is None else rule.finder.keys
        new = ragged_of(self.documents["sketch"].filter(pa.array(is_new)))
        reach, is_reached = mark_new(new, totals[is_new], rule.threshold, keys), np.zeros(len(is_new), np.bool_)
        at = 0
        for batch in self.documents.select(["sketch"]).to_batches(ROWS_TOGETHER) if len(new) else ():
            rows = slice(at, at + len(batch))
            is_reached[rows] = reach.find(list_column(batch["sketch"]), totals[rows])
            at += len(batch)
        return np.flatnonzero(is_reached & self._is_node & ~is_new)

    @cached_property
    def changed_documents(self) -> pa.Table:
        """DOCUMENTS of which all that follows from the pairs is made anew."""
        if self.changed is None:
            return self.documents
        is_changed = np.zeros(len(self._keys), np.bool_)
        is_changed[self.changed] = True
        return self.documents.filter(pa.array(is_changed)).combine_chunks()

    def read(self, matches: Matches, nodes: Nodes) -> Confirmer | None:
        """Return what compares the texts of candidates; None where the sketches decide.

        Cost: one pass over NEW, of whose distinct texts all are read whose sketches lack a shingle: a later run may
        need them. 8 bytes a shingle, in mapped files.
        """
        changed = np.arange(len(self._keys)) if self.changed is None else self.changed
        self._candidates = name_candidates(joined_ends(matches), self._keys[changed])
        rule = confirm_rule_of(self.config)
        if rule is None:
            return None
        is_front = kind_of(self.config.sketch).estimate == "smallest"
        is_whole = (self._sizes == self._n_features) & is_front
        is_late = (self._keys >= self.first_new) | self.old.has_revisits  # which may be documents only now
        is_stored = np.isin(self._keys, self._names_stored())
        again = np.flatnonzero(self._is_node & ~is_whole & ~is_stored & is_late).astype(np.int32)
        texts = Texts(self.source, tokens_of(self.config), record_limits(self.config), rule, is_front)
        rows = list(read_tokens(self.documents, again, texts, self.workers))
        self._shingles = list(zip(self._keys[again].tolist(), rows, strict=True))

        wanted, (offsets, ids) = list_candidates(matches, nodes, rule), ragged_of(self.changed_documents["sketch"])
        firsts = self._firsts[changed[wanted]]
        stored = {**self._stored_shingles(self._keys[firsts[~is_whole[firsts]]]), **dict(self._shingles)}
        if lacking := set(self._keys[firsts[~is_whole[firsts]]].tolist()) - stored.keys():
            raise OutputError(f"--onto: the run kept no shingles of document {min(lacking)}, which nddup always does")
        shingles = [
            Row(ids, *offsets[row : row + 2].tolist()) if is_whole[first] else stored[int(self._keys[first])]
            for row, first in zip(wanted.tolist(), firsts.tolist(), strict=True)
        ]
        return Confirmer(wanted, shingles, rule)

    def _names_stored(self) -> NDArray[np.int64]:
        """Return the names that the nodes with stored shingles have now."""
        stored, names = self.old.shingles, np.full(len(self.old.shingles.nodes), NO_NODE, np.int64)
        is_left = stored.nodes != NO_NODE
        names[is_left] = self._keys[self._firsts[np.searchsorted(self._keys, stored.nodes[is_left])]]
        return names

    def _stored_shingles(self, wanted: NDArray[np.int64]) -> dict[int, Row]:
        """Return where the shingles of some stored nodes lie; these are held, the others read past."""
        stored, names = self.old.shingles, self._names_stored()
        is_wanted = np.isin(names, wanted)
        offsets, values = ragged_of(stored.take(is_wanted)["shingles"])
        rows = zip(names[is_wanted].tolist(), pairwise(offsets.tolist()), strict=True)
        return {node: Row(values, low, high) for node, (low, high) in rows}

    def keep(self) -> dict[str, pa.Table]:
        """Return the tables of `ONTO` that a later run needs, without GIVEN; once the texts were read.

        SHINGLES has the rows that the old table lacks; where documents are taken out, it has all.
        """
        before = self.old.stored["candidates"]
        if self.changed is None:
            before = before.schema.empty_table()
        else:
            before = before.filter(pa.array(~np.isin(before["node_a"].to_numpy(), self._keys_left)))
        stored, new = self.old.shingles, list(_lay_shingles(self._shingles))
        left = [stored.take(stored.nodes != NO_NODE)] if len(self.old.taken) else []
        shingles = pa.concat_tables([SHINGLES.arrow.empty_table(), *left, *new])
        return {"candidates": pa.concat_tables([before, self._candidates]), "shingles": shingles}

    def counts(self) -> dict[str, int]:
        """Return the counts of the stage of pairs that tell of all documents."""
        is_node, least = self._firsts == np.arange(len(self._firsts)), threshold_of(self.config).least_size
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
        ids, before = self._left, self.old.table(name)
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


def _first_places(documents: pa.Table) -> NDArray[np.int64]:
    """Return, for each document, the place of the first one of its group. Only groups of several are looked up."""
    firsts, groups = np.arange(len(documents)), documents["group"]
    shared = pc.unique(groups.filter(pc.not_equal(groups, documents["doc_id"])))
    places = np.flatnonzero(np.asarray(pc.is_in(groups, shared))) if len(shared) else firsts[:0]
    codes = pc.index_in(one_chunk(groups.take(pa.array(places))), shared).to_numpy()
    first_of = np.empty(len(shared), np.int64)
    first_of[codes[::-1]] = places[::-1]  # of several documents the last one written, the first, stays
    firsts[places] = first_of[codes]
    return firsts


def _lay_shingles(shingles: Sequence[tuple[int, Row]]) -> Iterator[pa.Table]:
    sizes = np.array([row.high - row.low for _, row in shingles], np.int64)
    for part in pieces_of(sizes, SHINGLES_TOGETHER):
        chosen = shingles[part.start : part.stop]
        ends = np.concatenate([[0], np.cumsum(sizes[part.start : part.stop])])
        values = np.concatenate([row.values[row.low : row.high] for _, row in chosen])
        lists = lists_of(ends, pa.array(values.view(np.int64)))
        yield pa.table({"node": pa.array([node for node, _ in chosen], pa.int64()), "shingles": lists}).cast(
            SHINGLES.arrow
        )
