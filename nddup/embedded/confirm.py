"""Confirm candidates by their texts, which are read again from the input.

documents, candidates --read_candidates--> Confirmer: what is compared of their texts, in files that are mapped
candidates            --confirm-->         those whose texts are alike enough, with their similarity

Large components, represented by leaders, and families of heavy sketches (`nddup.mining.family_pairs`) are searched
separately.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import chain, pairwise
from tempfile import TemporaryFile
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded.collapse import Nodes
from nddup.embedded.match import Matches, PairingOptions
from nddup.embedded.outputs import holders_of, places_of
from nddup.embedded.workers import Workers
from nddup.errors import CapacityError, NddupError, NeedsSparkError
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import lists_of, one_chunk, take
from nddup.matching.confirm_texts import (
    Compared,
    ConfirmRule,
    EditRule,
    SetRule,
    compare_held,
    compare_one,
    compare_taken,
    divide_pairs,
    join_compared,
    least_common,
    may_confirm,
)
from nddup.matching.overlap_join import ComparisonLimits
from nddup.mining.family_join import FAMILY_HELD, FamilyTexts
from nddup.mining.family_pairs import FamilyRule, list_families, past_comparisons, search_families
from nddup.mining.keep_verdicts import FORCED_WEIGHT
from nddup.scanning.collection import Collection
from nddup.scanning.found import RecordLimits
from nddup.scanning.read_again import UNSTEADY, Tokens
from nddup.tables import CONNECTIONS, FAMILY_PAIRS, SEARCHED

ENDS = ("doc_a", "doc_b")


class Texts(NamedTuple):
    """Where texts come from, how they are read, and how they confirm a pair."""

    source: Collection | pa.Table
    tokens: Tokens
    limits: RecordLimits
    rule: ConfirmRule
    is_front: bool
    """Whether a sketch is the front of the shingle ids: of all of them, if it has as many ids as its document."""


class Confirmed(NamedTuple):
    """The candidates that are pairs, and the counts of the comparison for `metrics.json`."""

    matches: Matches
    counts: Mapping[str, int]


class Row(NamedTuple):
    """Where the tokens of a document lie."""

    values: NDArray[np.uint64]
    low: int
    high: int


class Confirmer(NamedTuple):
    """The tokens, or shingles, of the nodes in candidates, and when two texts confirm a pair."""

    nodes: NDArray[np.int32]
    """Ascending. Nodes that are in no candidate that their numbers of shingles allow need not be there."""

    rows: Sequence[Row]
    rule: ConfirmRule

    def of_family(self, names: NDArray[np.int64]) -> FamilyTexts:
        """Return the texts of some nodes, which are named by their places in `names`.

        A node that is not here is similar to none. Memory: 8 bytes a shingle; above `FAMILY_HELD` they lie in a mapped
        file. Tokens are taken at each comparison.
        """
        places, is_here = np.searchsorted(self.nodes, names), np.isin(names, self.nodes)
        nothing = Row(np.empty(0, np.uint64), 0, 0)
        rows = [
            self.rows[place] if here else nothing for place, here in zip(places.tolist(), is_here.tolist(), strict=True)
        ]
        if isinstance(self.rule, EditRule):
            family = Confirmer(names.astype(np.int32), rows, self.rule)
            return FamilyTexts(partial(compare_one, family.take, self.rule))
        shingles = _map_rows(rows)
        return FamilyTexts(partial(compare_held, shingles, self.rule), shingles, self.rule)

    def take(self, places: NDArray[np.int64]) -> Ragged:
        """Return the texts of the nodes at these places."""
        rows = [self.rows[place] for place in places.tolist()]
        offsets = np.concatenate([[0], np.cumsum([row.high - row.low for row in rows])]).astype(np.int64)
        nothing = np.empty(0, np.uint64)
        return Ragged(offsets, np.concatenate([nothing, *(row.values[row.low : row.high] for row in rows)]))

    def confirm(self, matches: Matches, workers: Workers) -> Confirmed:
        """Return the candidates whose texts are alike enough; a thread holds a portion at a time."""
        possible = np.flatnonzero(np.isin(matches.ends, self.nodes).all(axis=1))
        compared = self.compare(matches.ends[possible], workers)
        near = possible[compared.is_near]
        counts = _counts(len(matches.first), compared)
        similarity = compared.similarity[compared.is_near]
        if not isinstance(self.rule, SetRule):
            return Confirmed(replace(matches.take(near), edit=similarity), counts)
        common = compared.common[compared.is_near].astype(np.int32)
        return Confirmed(matches.take(near).with_resemblance(similarity, common), counts)

    def compare(self, ends: NDArray[np.integer], workers: Workers) -> Compared:
        """Compare the texts of pairs of nodes, (k, 2), in their order; a thread holds a portion at a time."""
        places = np.searchsorted(self.nodes, ends)
        sizes = np.array([row.high - row.low for row in self.rows], np.int64)
        portions = list(divide_pairs(places, sizes))
        if len(portions) == 1:  # no thread starts for the few pairs of a query
            workers.report_progress("confirm", 0, 1)
            compared = compare_taken(self.take, places, self.rule)
            workers.report_progress("confirm", 1, 1)
            return compared
        parts = list(workers.work("confirm", lambda part: compare_taken(self.take, places[part], self.rule), portions))
        order = np.argsort(np.concatenate([np.empty(0, np.int64), *portions]), kind="stable")
        joined = join_compared(parts)
        return Compared(joined.common[order], joined.similarity[order], joined.is_bounded[order])


def _map_rows(rows: Sequence[Row]) -> Ragged:
    """Return rows one after another; many of them in a mapped file."""
    offsets = np.concatenate([[0], np.cumsum([row.high - row.low for row in rows])]).astype(np.int64)
    nothing = np.empty(0, np.uint64)
    if offsets[-1] <= FAMILY_HELD:
        return Ragged(offsets, np.concatenate([nothing, *(row.values[row.low : row.high] for row in rows)]))
    with TemporaryFile(prefix="nddup-") as file:
        for row in rows:
            row.values[row.low : row.high].tofile(file)
        file.flush()
        return Ragged(offsets, np.memmap(file, np.uint64, mode="r").view(np.ndarray))


class Known(NamedTuple):
    """Pairs whose resemblance is known, in place of texts."""

    keys: NDArray[np.int64]
    """Ascending: of a pair of nodes a < b, a times 2^32 plus b."""

    common: NDArray[np.int32]
    resemblance: NDArray[np.float64]

    def of_family(self, names: NDArray[np.int64]) -> FamilyTexts:
        """Return the known facts of nodes, which are named by their places in `names`, ascending."""
        ends = np.stack([self.keys >> 32, self.keys & 0xFFFFFFFF], axis=1)
        inside = ends[np.isin(ends, names).all(axis=1)]
        return FamilyTexts(partial(self._compare_one, names), pairs=np.searchsorted(names, inside).astype(np.int32))

    def _compare_one(self, names: NDArray[np.int64], one: int, others: NDArray[np.int64]) -> Compared:
        ends = np.stack([np.full(len(others), names[one]), names[others]], axis=1)
        at = self._find(np.sort(ends, axis=1))
        known = np.flatnonzero(at >= 0)
        common, resemblance = np.zeros(len(at), np.int64), np.full(len(at), np.nan)
        common[known], resemblance[known] = self.common[at[known]], self.resemblance[at[known]]
        return Compared(common, resemblance, np.zeros(len(at), np.bool_))

    def confirm(self, matches: Matches, workers: Workers) -> Confirmed:
        """Return the candidates that are known."""
        del workers
        at = self._find(matches.ends)
        near = np.flatnonzero(at >= 0)
        confirmed = matches.take(near).with_resemblance(self.resemblance[at[near]], self.common[at[near]])
        return Confirmed(
            confirmed, _counts(len(at), Compared(np.maximum(at + 1, 0), np.full(len(at), np.nan), at < -1))
        )

    def _find(self, ends: NDArray[np.int32]) -> NDArray[np.int64]:
        wanted = keys_of(ends)
        at = np.searchsorted(self.keys, wanted)
        return np.where(np.append(self.keys, -1)[at] == wanted, at, -1)


def known_pairs(pairs: pa.Table, nodes: Nodes, share: Fraction) -> Known:
    """Return the pairs of nodes whose resemblance reaches `share`, from PAIRS with numbers of shingles.

    Documents of one node are in PAIRS too, and no pair of nodes.
    """
    ids = one_chunk(nodes.ids)
    places = [pc.index_in(one_chunk(pairs[name]), value_set=ids).to_numpy(zero_copy_only=False) for name in ENDS]
    ends = np.sort(np.stack([nodes.node[place.astype(np.int64)] for place in places], axis=1), axis=1)
    keys = keys_of(ends)
    common, first, second = (pairs[name].to_numpy() for name in ("common", "shingles_a", "shingles_b"))
    totals = first.astype(np.int64) + second
    is_near = common >= least_common(totals, SetRule(share.numerator, share.denominator))
    near = np.flatnonzero(is_near & (ends[:, 0] < ends[:, 1]))
    keys, first_rows = np.unique(keys[near], return_index=True)
    rows = near[first_rows]
    return Known(keys, common[rows].astype(np.int32), pairs["resemblance"].to_numpy()[rows])


def keys_of(ends: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the keys of pairs of nodes, (k, 2) ascending in each, as `Known` has them."""
    return np.asarray((ends[:, 0].astype(np.int64) << 32) + ends[:, 1])


def _counts(candidates: int, compared: Compared) -> dict[str, int]:
    return {
        "compared": candidates,
        "confirmed": int(np.count_nonzero(compared.is_near)),
        "bounded": int(np.count_nonzero(compared.is_bounded)),
        "bounded_unconfirmed": int(np.count_nonzero(compared.is_bounded & ~compared.is_near)),
    }


def read_candidates(matches: Matches, documents: pa.Table, nodes: Nodes, texts: Texts, workers: Workers) -> Confirmer:
    """Read what is compared of all nodes in candidates, and of heavy ones whose candidates are still to be made.

    Where shingles decide, a sketch that holds all shingles of its document is not read again, nor is a document whose
    candidates have far more shingles, or far fewer, than it.

    Args:
        matches: the near-duplicate sketches, by the places of their documents, and the links.
        texts: the source to read again, and the rule.

    Raises:
        NddupError: if a text is no longer found because the input changed meanwhile.

    Cost: one pass over the input; each document of a candidate is tokenised once. The tokens stay in mapped files, 8
        bytes each, until the run ends.
    """
    rule, wanted = texts.rule, list_candidates(matches, nodes, texts.rule)
    is_whole = (nodes.sizes == nodes.n_features)[wanted] & (isinstance(rule, SetRule) and texts.is_front)
    read = iter(read_tokens(documents, wanted[~is_whole], texts, workers))
    offsets, ids = nodes.sketches
    rows = [
        Row(ids, *offsets[node : node + 2].tolist()) if whole else next(read)
        for node, whole in zip(wanted.tolist(), is_whole.tolist(), strict=True)
    ]
    return Confirmer(wanted, rows, rule)


def list_candidates(matches: Matches, nodes: Nodes, rule: ConfirmRule) -> NDArray[np.int32]:
    """Return the nodes whose texts may be compared, ascending: see `read_candidates`."""
    ends, searched = matches.ends, np.concatenate([matches.links, matches.large[:, :2]])
    if isinstance(rule, SetRule) and not len(searched):
        ends = ends[may_confirm(nodes.n_features[ends].T, rule)]
    return np.unique(np.concatenate([ends.ravel(), searched.ravel()])).astype(np.int32)


def read_tokens(documents: pa.Table, nodes: NDArray[np.int32], texts: Texts, workers: Workers) -> Sequence[Row]:
    """Read the tokens of these documents, in their order."""
    if not len(nodes):
        return []
    wanted, holders = take(documents["token_fingerprint"], nodes), holders_of(documents, nodes)
    contents = frozenset(take(documents["content_fingerprint"], holders).to_pylist())
    source = texts.source
    if isinstance(source, Collection):
        source = source.only(set(pc.unique(take(documents["source"], holders)).to_pylist()))

    places = places_of(take(documents["doc_key"], holders), workers.parts)
    token_rows = workers.scan(source, replace(texts.tokens, contents=contents, places=places), texts.limits)
    at = pc.index_in(one_chunk(wanted), value_set=one_chunk(token_rows["token_fingerprint"]))
    if at.null_count and (places is not None or source is not texts.source):  # look everywhere
        token_rows = workers.scan(texts.source, replace(texts.tokens, contents=contents), texts.limits)
        at = pc.index_in(one_chunk(wanted), value_set=one_chunk(token_rows["token_fingerprint"]))
    if at.null_count:
        raise NddupError(
            f"pairs.confirm: {len(nodes) - at.null_count:,} of {len(nodes):,} texts were found again: {UNSTEADY}"
        )
    starts = np.cumsum([0, *(len(chunk) for chunk in token_rows["tokens"].chunks)])
    chunks = [
        (chunk.values.to_numpy().view(np.uint64), chunk.offsets.to_numpy()) for chunk in token_rows["tokens"].chunks
    ]
    places = at.to_numpy(zero_copy_only=False).astype(np.int64)
    of_chunk = np.searchsorted(starts, places, "right") - 1
    return [
        Row(chunks[number][0], *chunks[number][1][place : place + 2].tolist())
        for number, place in zip(of_chunk.tolist(), (places - starts[of_chunk]).tolist(), strict=True)
    ]


class Led(NamedTuple):
    """The components that are given by leaders."""

    nodes: NDArray[np.int32]
    """Ascending."""

    stands: NDArray[np.int32] | None = None
    """Where losses are limited, the kept node that replaces each, or itself; else the pairs decide."""

    limited: int = 0
    """Nodes that were compared with heads only (`nddup.mining.bounded_keeping`)."""


NO_LEADERS = Led(np.empty(0, np.int32))


def pair_families(  # noqa: PLR0913, PLR0917 - the last only where texts confirm pairs
    matches: Matches,
    nodes: Nodes,
    rule: PairingOptions,
    limits: ComparisonLimits,
    workers: Workers,
    confirmer: "Confirmer | Known | None" = None,
    *,
    most_lost: Fraction | None = None,
) -> tuple[Matches, Led]:
    """Replace the matches within each family that has a heavy node or too many pairs, whether these are listed or not.

    Args:
        limits: `pairs.max_edges` and `pairs.max_comparisons`.
        workers: each family is searched by one thread.
        confirmer: compares texts, where these confirm pairs; the matches are then candidates.

    Returns:
        All matches, and the components given by leaders.

    Raises:
        CapacityError: if a family takes more than `max_comparisons`.

    Cost: see `pair_family`; other families are left as they are.
    """
    if not len(matches.links) and not len(matches.large) and len(matches.first) <= limits.max_edges:
        return matches, NO_LEADERS
    ends = np.concatenate([matches.ends, matches.links, matches.large[:, :2]]).astype(np.int64)
    is_link = np.repeat([False, True, False], [len(matches.ends), len(matches.links), len(matches.large)])
    stands_for = np.append(np.ones(len(ends) - len(matches.large), np.int64), matches.large[:, 2])
    connections = CONNECTIONS.batch([*map(pa.array, (*ends.T, is_link, stands_for))])
    families = pa.Table.from_batches(list_families(iter([connections]), max_edges=limits.max_edges), SEARCHED.arrow)
    most = min(limits.max_comparisons, workers.most_compared or limits.max_comparisons)
    keys = rule.finder and rule.finder.keys
    search_rule = FamilyRule(rule.threshold, keys, limits._replace(max_comparisons=most), most_lost=most_lost)
    confirm_of = None if confirmer is None else confirmer.of_family

    def search(rows: pa.Table) -> list[pa.RecordBatch]:
        return list(search_families(iter(rows.to_batches()), rule=search_rule, confirm_of=confirm_of))

    parts = workers.threads.map(search, _sketches_of(families, nodes))
    family_pairs = pa.Table.from_batches(chain.from_iterable(parts), FAMILY_PAIRS.arrow)
    of_kind = {
        what: family_pairs.filter(pc.equal(family_pairs["what"], what))
        for what in ("stopped", "leaders", "limited", "pair")
    }
    if len(stopped := of_kind["stopped"]):
        failed = CapacityError if most == limits.max_comparisons else NeedsSparkError
        raise failed(past_comparisons(stopped["node_b"][0].as_py(), most))
    return _replace(matches, families["node"].to_numpy(), of_kind["pair"]), _led_of(of_kind, most_lost)


def _led_of(of_kind: Mapping[str, pa.Table], most_lost: Fraction | None) -> Led:
    nodes, stands = (of_kind["leaders"][name].to_numpy().astype(np.int32) for name in ("node_a", "node_b"))
    order = np.argsort(nodes)
    limited = pc.sum(of_kind["limited"]["node_b"]).as_py() or 0
    return Led(nodes[order], None if most_lost is None else stands[order], limited)


def _sketches_of(families: pa.Table, nodes: Nodes) -> list[pa.Table]:
    """Return the rows of each family with `FAMILY_COLUMNS`, in the order of the keep policy."""
    rows = np.full(len(nodes.node), -1)
    rows[families["node"].to_numpy()] = np.arange(len(families))
    members = np.flatnonzero(rows[nodes.node] >= 0)
    kinds = np.stack([nodes.node[members].astype(np.int64), nodes.guards[members]])
    by_kind = np.lexsort((nodes.policy_rank[members], *kinds))
    members, kinds = members[by_kind], kinds[:, by_kind]
    starts = np.flatnonzero(np.append(True, (kinds[:, 1:] != kinds[:, :-1]).any(axis=0))[: len(members)])
    weights = (nodes.weights - nodes.forced * np.int64(FORCED_WEIGHT))[members]

    of_row = rows[kinds[0, starts]]
    family = families["family"].to_numpy()[of_row]
    order = np.lexsort((nodes.policy_rank[members[starts]], family))
    chosen = kinds[0, starts][order]
    offsets, ids = take_rows(nodes.sketches, chosen)
    about = {
        "sketch": lists_of(offsets, pa.array(ids.view(np.int64))),
        "most": pa.array(weights[starts][order]),
        "least": pa.array(np.minimum.reduceat(weights, starts)[order] if len(starts) else weights),
        "n": pa.array(np.diff(np.append(starts, len(members)))[order]),
        "shingles": pa.array(nodes.n_features[chosen].astype(np.int32)),
        "guard": pa.array(kinds[1, starts][order]),
    }
    laid = families.take(of_row[order])
    for name, column in about.items():
        laid = laid.append_column(name, column)
    cuts = [0, *(np.flatnonzero(np.diff(family[order])) + 1).tolist(), len(order)]
    return [laid.slice(low, high - low) for low, high in pairwise(cuts) if high > low]


def _replace(matches: Matches, inside: NDArray[np.int64], within: pa.Table) -> Matches:
    """Return the matches outside these nodes and the new ones within, rows of FAMILY_PAIRS, sorted by their ends."""
    outside = np.flatnonzero(~np.isin(matches.first, inside))
    new = {name: within[name].to_numpy() for name in within.column_names[1:]}
    ends = np.concatenate([matches.ends[outside], np.stack([new["node_a"], new["node_b"]], axis=1)]).astype(np.int32)
    by_name = np.lexsort((ends[:, 1], ends[:, 0]))
    return replace(
        matches,
        first=ends[by_name, 0],
        second=ends[by_name, 1],
        measures={name: np.concatenate([old[outside], new[name]])[by_name] for name, old in matches.measures.items()},
    )
