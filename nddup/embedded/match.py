"""Match: the pairs of near-duplicate sketches, by prefixes, which miss none, or by keys.

sketches --prune--> features left --join--> matches       kinds whose pairs are found by what they share
sketches --keys-->                --join--> matches       LSH bands, super-shingles

The arithmetic, and why prefixes miss no pair, is in `nddup.matching`. The sketches are divided among threads: a thread
makes the pairs of its sketches with smaller ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.embedded.memory import OF_MATCH
from nddup.embedded.workers import Workers
from nddup.errors import CapacityError, NeedsSparkError
from nddup.ground.arrays import Ragged, number_keys, take_rows
from nddup.ground.columns import nulls
from nddup.matching.bitmaps import make_bitmaps
from nddup.matching.cliques import connect_cliques
from nddup.matching.overlap_join import (
    NO_LIMIT,
    ComparisonLimits,
    ConnectedPairs,
    JoinResult,
    LongLists,
    Postings,
    Prefixes,
    Probes,
    begin_count,
    copy_count,
    count_pairs,
    find_large,
    find_nothing,
    join_prefixes,
    link_heavy,
    longest_list,
    post_prefixes,
    take_prefixes,
)
from nddup.matching.probes import CROWDED, find_heavy, make_probes
from nddup.matching.prune import prune
from nddup.matching.sift import sift, sifted_bytes
from nddup.matching.threshold import Threshold
from nddup.mining.family_pairs import past_comparisons
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.sketching.minhash import Finder
from nddup.sketching.recipe import LEVEL_BITS, level_of, spread_levels
from nddup.tables import CANDIDATES, LIKENESS, TYPES, likeness_of

PARTS = 4
"""Parts of the search for each thread. After each part, the pairs found are checked against the memory."""

MEETINGS = 200
"""Meetings of two sketches in a posting list that cost as much as one comparison."""

CROWD, OF_NODE = 1 << 18, 50
"""Candidates of a component, in all and for each of its sketches, above which its shingles are joined instead: they may
tell nearly all of these apart, at a tenth of the cost, before any is compared or stored."""

CROWD_PARTS = 8
"""Parts, for each of `PARTS`, where sketches meet so often that there may be such a component."""

IS_CROWD = 1 << 48
"""Added to the pairs of such a component: it is then larger than any limit."""

LEVELS = (1 << LEVEL_BITS) - 1


@dataclass(frozen=True)
class PairingOptions:
    """How pairs are found.

    Attributes:
        threshold: when two sketches are near-duplicates.
        finder: makes the keys by which sketches meet; None where they meet at common features.
        max_postings: sketches that may hold one feature without being heavy.
        limits: of a component and of a family; None where there are no leaders, and so no heavy sketches.
        levels: sketch size s if the modulus varies, else 0.
        max_comparisons: comparisons that a longer list may cost where there are no heavy sketches.
    """

    threshold: Threshold
    finder: Finder | None
    max_postings: int
    limits: ComparisonLimits | None
    levels: int = 0
    max_comparisons: int = NO_LIMIT

    @property
    def most_light(self) -> int:
        """Sketches that may hold one feature: without leaders none is heavy."""
        return NO_LIMIT if self.limits is None else self.max_postings

    @classmethod
    def of(cls, config: Config) -> Self:
        """Return how pairs are found with these settings."""
        finder, limits, pairs = plan.finder_of(config), plan.comparison_limits(config), config.pairs
        levels = plan.levels_of(config)
        return cls(plan.threshold_of(config), finder, pairs.max_postings, limits, levels, pairs.max_comparisons)


@dataclass(frozen=True)
class Matches:
    """The k near-duplicate pairs of distinct sketches, sorted by (first, second), and the figures of the search.

    Attributes:
        first: (k,), the node with the lower place.
        second: (k,), the other.
        measures: the columns LIKENESS by name, (k,) each, of the first as a and the second as b; without those that
            the kind does not show. `resemblance` is exact where `common` is given.
        links: (l, 2), heavy nodes that were not compared and may belong to one family.
        candidates: the number of pairs that met.
        heavy: the number of heavy nodes.
        rounds: postings left after each round of pruning.
        edit: (k,), edit similarity of the texts; None unless it decides.
        common: (k,), the distinct shingles that both texts have; None unless their resemblance decides.
        large: (g, 3), the components of more than `pairs.max_edges` pairs, or of very many candidates, which are not
            listed: the first node, one of the others, and how many the component has at least; 0 in all rows of a
            component but one.
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    measures: Mapping[str, NDArray[Any]]
    links: NDArray[np.int32]
    candidates: int = 0
    heavy: int = 0
    rounds: tuple[int, ...] = ()
    edit: NDArray[np.float64] | None = None
    common: NDArray[np.int32] | None = None
    large: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 3), np.int64))

    @property
    def overlap(self) -> NDArray[np.int32]:
        """The number of ids in common, (k,)."""
        return self.measures["overlap"]

    @property
    def resemblance(self) -> NDArray[np.float64]:
        """The resemblance, (k,)."""
        return self.measures["resemblance"]

    @property
    def containments(self) -> NDArray[np.float64]:
        """Of the first in the second and the other way, (2, k); NaN where the kind shows none."""
        nothing = np.full(len(self.first), np.nan)
        return np.stack([self.measures.get(f"containment_{end}", nothing) for end in "ab"])

    @property
    def likeness(self) -> NDArray[np.float64]:
        """The similarity, (k,), by which a document becomes the duplicate of one of several kept near-duplicates."""
        return self.resemblance if self.edit is None else self.edit

    @property
    def ends(self) -> NDArray[np.int32]:
        """Both nodes of each pair, (k, 2)."""
        return np.stack([self.first, self.second], axis=1)

    def take(self, rows: NDArray[np.int64]) -> "Matches":
        """Return some of the pairs, as the sketches decided them."""
        columns = {name: values[rows] for name, values in self.measures.items()}
        return replace(self, first=self.first[rows], second=self.second[rows], measures=columns)

    def with_resemblance(self, resemblance: NDArray[np.float64], common: NDArray[np.int32]) -> "Matches":
        """Return the pairs with the resemblance of their texts, and the shingles that both have."""
        return replace(self, measures={**self.measures, "resemblance": resemblance}, common=common)

    def table(self, n_features: NDArray[np.int32]) -> pa.Table:
        """Return CONFIRMED as other stages read it; `n_features` are those of all documents.

        Memory: 8 bytes a pair where shingles are known; else the arrays are those of the table.
        """
        rows = len(self.first)
        columns: dict[str, pa.Array | pa.ChunkedArray] = {
            "node_a": pa.array(self.first),
            "node_b": pa.array(self.second),
        }
        for column in LIKENESS:
            values = self.measures.get(column.name)
            columns[column.name] = (
                nulls(rows, TYPES[column.type]) if values is None else pa.array(values, from_pandas=True)
            )
        columns["edit"] = nulls(rows, pa.float64()) if self.edit is None else pa.array(self.edit)
        shingles = (None, None) if self.common is None else (n_features[self.first], n_features[self.second])
        for name, counts in zip(("common", "shingles_a", "shingles_b"), (self.common, *shingles), strict=True):
            columns[name] = nulls(rows, pa.int32()) if counts is None else pa.array(counts)
        return pa.table(columns)

    def counts(self) -> dict[str, int]:
        """Return the counts of the search for `metrics.json`."""
        return {"candidates": self.candidates, "crowd": self.heavy}


def joined_ends(matches: Matches) -> NDArray[np.int32]:
    """Return pairs of nodes, (e, 2), that join all nodes which may be near-duplicates: listed, counted or linked."""
    return np.concatenate([matches.ends, matches.links, matches.large[:, :2].astype(np.int32)])


def name_candidates(ends: NDArray[np.int32], keys: NDArray[np.int64]) -> pa.Table:
    """Return CANDIDATES of pairs of places, (e, 2), in DOCUMENTS with these keys."""
    columns = [pa.array(keys[ends[:, at]]) for at in range(2)]
    return pa.table(dict(zip(CANDIDATES.names, columns, strict=True))).cast(CANDIDATES.arrow)


def match(
    nodes: NDArray[np.int32], sketches: Ragged, n_features: NDArray[np.int32], rule: PairingOptions, workers: Workers
) -> Matches:
    """Find the near-duplicate pairs of distinct sketches.

    Args:
        nodes: (m,), the place of each in DOCUMENTS, ascending.
        sketches: n rows of ids, by these places; none of the m is empty.
        n_features: (n,), distinct shingles of the documents: they bound what two have in common, and a varying
            modulus depends on them.

    Raises:
        CapacityError: if one feature would take more than `max_comparisons`.
        NeedsSparkError: if the pairs may not fit in memory.

    Cost: see `join_prefixes`; the ids of the sketches that may be in a pair are held twice. Where ids are mapped, those
        that `sift` tells to be in none are passed over, and the copies are mapped.
    """
    rows = nodes.astype(np.int64)
    totals = rule.threshold.totals(np.diff(sketches.offsets).astype(np.int32), n_features)[rows]
    if workers.memory.is_mapped and not (rule.levels or rule.finder or rule.threshold.is_containment):
        is_possible = _sift(sketches, rows, totals, rule.threshold, workers)
        rows, totals = rows[is_possible], totals[is_possible]
    compared = sketches if len(rows) == len(n_features) else workers.take_rows(sketches, rows)
    if rule.levels:
        levels = np.array([level_of(count, rule.levels) for count in n_features[rows].tolist()], np.int64)
        names, spread = spread_levels(rows, levels, compared, int(levels.max(initial=0)))
        sizes = np.diff(spread.offsets).astype(np.int32)
        return _at_coarser(_match(names, spread, sizes, rule, workers))
    return _match(rows, compared, totals, rule, workers)


def _sift(
    sketches: Ragged, rows: NDArray[np.int64], totals: NDArray[np.int32], threshold: Threshold, workers: Workers
) -> NDArray[np.bool_]:
    """Tell which sketches may be in a pair, by a filter of their ids."""
    ids, bounds = len(sketches.values), threshold.prune_bounds(totals)
    workers.memory.require(sifted_bytes(ids), f"{len(rows):,} sketches of {ids:,} ids")
    return sift(sketches, rows, bounds, partial(workers.work, "sift"), workers.count)


def _match(
    names: NDArray[np.int64], sketches: Ragged, totals: NDArray[np.int32], rule: PairingOptions, workers: Workers
) -> Matches:
    if rule.finder is None:
        memory, count = workers.memory, len(names)

        def require(shared: int) -> None:
            memory.require(memory.of_shared(shared), f"{count:,} sketches with {shared:,} ids in common")

        memory.require(memory.of_numbered(len(sketches.values)), f"{count:,} sketches that may be near another")
        pruned = prune(sketches, totals, rule.threshold, partial(workers.work, "prune"), require)
        most_light, take = rule.most_light, workers.take_rows
        rows, probes = make_probes(pruned, sketches, totals, rule.threshold, max_postings=most_light, take=take)
        heavy, rounds = probes.heavy, tuple(pruned.rounds)
        del pruned
    else:
        rows, probes, heavy = _by_keys(sketches, totals, rule.finder, rule)
        rounds = ()

    postings = post_prefixes(probes)
    if too_long := longest_list(probes, postings, LongLists(rule.max_postings, rule.max_comparisons)):
        raise CapacityError(past_comparisons(too_long, rule.max_comparisons))
    most = workers.most_compared or NO_LIMIT
    if postings.meetings.sum() > MEETINGS * most:
        raise NeedsSparkError(f"more than {MEETINGS * most:,} pairs of sketches meet")

    links = link_heavy(probes)
    search = _Search(probes, postings, rule, begin_count(len(rows), rule.limits.max_edges if rule.limits else NO_LIMIT))
    if rule.finder is None:
        connect_cliques(search.connected, probes, rule.threshold.rule)
    results, pairs, compared = [], len(links), 0
    is_dense = search.is_by_shingles and postings.meetings.sum() > CROWDED * len(rows)
    number = PARTS * workers.count * (CROWD_PARTS if is_dense else 1)
    parts = _divide(postings.meetings + np.diff(probes.prefixes.offsets), number)
    for part in workers.work("match", partial(search.join, most=most), parts):
        results.append(part)
        pairs += len(part.first)
        compared += part.candidates
        if compared > most:
            raise NeedsSparkError(f"more than {most:,} pairs of sketches are candidates")
        shared_bytes = workers.memory.of_shared(len(probes.sketches.values))
        workers.memory.require(
            shared_bytes + OF_MATCH * pairs, f"{len(rows):,} distinct sketches with {pairs:,} pairs so far"
        )
    matches = _gather([search.listed(part) for part in results], links, probes, names[rows], rule)
    large = search.large(names[rows])
    return replace(matches, large=large, heavy=int(np.count_nonzero(heavy)), rounds=rounds)


def _divide(costs: NDArray[np.int64], parts: int) -> list[range]:
    """Divide rows into parts of nearly equal cost; there may be fewer."""
    ends = np.cumsum(costs)
    shares = np.arange(1, parts) * costs.sum() // parts
    cuts = [0, *np.searchsorted(ends, shares).tolist(), len(costs)]
    return [range(low, high) for low, high in pairwise(cuts) if low < high]


@dataclass
class _Search:
    """The search for the pairs of some sketches in parts, each of which knows what earlier ones have counted."""

    probes: Probes
    postings: Postings
    rule: PairingOptions
    connected: ConnectedPairs
    """The components of all pairs found so far."""

    lock: Lock = field(default_factory=Lock)

    @property
    def is_by_shingles(self) -> bool:
        """Whether all shingles decide, and components may be searched by them (`nddup.mining.family_pairs`)."""
        return self.rule.threshold.exact is not None and self.rule.limits is not None

    def join(self, rows: range, most: int) -> JoinResult:
        """Return what `join_prefixes` finds for some sketches, but for pairs in components that are large by now."""
        with self.lock:
            known = copy_count(self.connected)
        part = join_prefixes(
            self.probes, self.postings, rows, threshold=self.rule.threshold, connected=known, most=most
        )
        with self.lock:
            count_pairs(self.connected, part.first, part.second)
            if self.is_by_shingles:
                self._mark_crowds()
            return self.listed(part)

    def _mark_crowds(self) -> None:
        """Let components with very many candidates be large; but where sketches hold all shingles, these are pairs."""
        above, pairs = self.connected.above, self.connected.pairs
        many = np.flatnonzero((pairs > CROWD) & (pairs < IS_CROWD) & (above == np.arange(len(above))))
        if len(many):
            roots = find_large(self.connected._replace(max_edges=-1))
            sizes = np.bincount(roots, minlength=len(above))
            is_cut = np.diff(self.probes.sketches.offsets) != self.probes.totals
            cut = np.bincount(roots[is_cut], minlength=len(above))
            pairs[many[(cut[many] > 0) & (pairs[many] > OF_NODE * sizes[many])]] += IS_CROWD

    def listed(self, part: JoinResult) -> JoinResult:
        """Return a part without the pairs of large components."""
        rows = find_large(self.connected)[part.first] < 0
        columns = {name: getattr(part, name)[rows] for name in ("first", "second", "overlap", "resemblance")}
        return part._replace(**columns)

    def large(self, names: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return `Matches.large`."""
        roots = find_large(self.connected)
        others = np.flatnonzero((roots >= 0) & (roots != np.arange(len(roots))))
        first, at = np.unique(roots[others], return_index=True)
        counts = np.zeros(len(others), np.int64)
        counts[at] = self.connected.pairs[first] % IS_CROWD
        return np.stack([names[roots[others]], names[others], counts], axis=1)


def _by_keys(
    sketches: Ragged, totals: NDArray[np.int32], finder: Finder, rule: PairingOptions
) -> tuple[NDArray[np.int64], Probes, NDArray[np.bool_]]:
    """Return the places of the sketches not smaller than their bound, by total, these with keys, and which of all are
    heavy.
    """
    bounds = rule.threshold.needs(totals)
    rows = np.flatnonzero(bounds <= np.diff(sketches.offsets))
    rows = rows[np.argsort(totals[rows], kind="stable")]
    all_keys = finder.keys(sketches)
    numbered = Prefixes(all_keys.offsets, *number_keys(all_keys.values))
    heavy, _ = find_heavy(numbered, rule.most_light)
    lengths = np.diff(all_keys.offsets)[rows].astype(np.int32)
    keys = take_prefixes(numbered, rows, lengths)
    by_total = take_rows(sketches, rows)
    return (
        rows,
        Probes(by_total, keys, totals[rows], bounds[rows], lengths, lengths, heavy[rows], make_bitmaps(*by_total)),
        heavy,
    )


def _gather(
    results: list[JoinResult], links: NDArray[np.int32], probes: Probes, names: NDArray[np.int64], rule: PairingOptions
) -> Matches:
    """Join the pairs that all threads found, sorted by their names."""
    results = results or [find_nothing(0)]
    ends = np.concatenate([np.stack([part.first, part.second], axis=1) for part in results])
    overlap = np.concatenate([part.overlap for part in results])
    resemblance = np.concatenate([part.resemblance for part in results])
    named = names[ends]
    is_turned = named[:, 0] > named[:, 1]
    named[is_turned], ends[is_turned] = named[is_turned, ::-1], ends[is_turned, ::-1]
    order = np.lexsort((named[:, 1], named[:, 0]))
    sizes = np.diff(probes.sketches.offsets)[ends[order].T]
    shows = rule.threshold.shows_containment
    return Matches(
        named[order, 0],
        named[order, 1],
        likeness_of(overlap[order], resemblance[order], sizes, shows_containment=shows),
        np.sort(names[links], axis=1),
        sum(part.candidates for part in results),
    )


def _at_coarser(matches: Matches) -> Matches:
    """Choose, of pairs found at several levels, those at the coarser of both own levels; name them by their nodes."""
    levels = (matches.ends >> LEVEL_BITS & LEVELS).max(axis=1)
    chosen = matches.take(np.flatnonzero((matches.first & LEVELS) == levels))
    return replace(chosen, first=chosen.first >> 2 * LEVEL_BITS, second=chosen.second >> 2 * LEVEL_BITS)
