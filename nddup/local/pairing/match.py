"""Match: the pairs of near-duplicate sketches, by prefixes, which miss none, or by keys.

sketches --prune--> features left --join--> matches       kinds whose pairs are found by what they share
sketches --keys-->                --join--> matches       LSH bands, super-shingles

The arithmetic, and why prefixes miss no pair, is in `nddup.matching`. The features are divided among threads: a thread
makes the pairs whose first common feature it owns.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.arrays import Ragged, number_keys, take_rows
from nddup.errors import CapacityError, NeedsSparkError
from nddup.local.memory import OF_MATCH
from nddup.local.pairing.prune import Pruned, prune
from nddup.local.workers import Workers
from nddup.matching.overlap_join import (
    NO_LIMIT,
    ComparisonLimits,
    JoinResult,
    LongLists,
    Probes,
    begin_count,
    choose_pairs,
    join_prefixes,
    partition_of,
)
from nddup.matching.threshold import Threshold
from nddup.mining.family_pairs import past_comparisons
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.sketching.min_s import read_only
from nddup.sketching.minhash import Finder
from nddup.sketching.moduli import LEVEL_BITS, spread_levels
from nddup.sketching.recipe import level_of

PARTS = 4
"""Parts of the search for each thread. After each part, the pairs found are checked against the memory."""

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
        overlap: (k,), the number of ids in common.
        resemblance: (k,), estimated; exact where `common` is given.
        containments: (2, k), of the first in the second and the other way; NaN where the kind shows none.
        links: (l, 2), heavy nodes that were not compared and may belong to one family.
        candidates: the number of pairs that met.
        heavy: the number of heavy nodes.
        rounds: postings left after each round of pruning.
        edit: (k,), edit similarity of the texts; None unless it decides.
        common: (k,), the distinct shingles that both texts have; None unless their resemblance decides.
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    overlap: NDArray[np.int32]
    resemblance: NDArray[np.float64]
    containments: NDArray[np.float64]
    links: NDArray[np.int32]
    candidates: int = 0
    heavy: int = 0
    rounds: tuple[int, ...] = ()
    edit: NDArray[np.float64] | None = None
    common: NDArray[np.int32] | None = None

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
        names = ("first", "second", "overlap", "resemblance")
        chosen = {name: getattr(self, name)[rows] for name in names}
        return replace(self, **chosen, containments=self.containments[:, rows])

    def table(self, n_features: NDArray[np.int32]) -> pa.Table:
        """Return CONFIRMED as other stages read it; `n_features` are those of all documents."""
        rows = len(self.first)
        columns = {
            name: pa.array(end.astype(np.int64)) for name, end in (("node_a", self.first), ("node_b", self.second))
        }
        columns |= {"overlap": pa.array(self.overlap), "resemblance": pa.array(self.resemblance, from_pandas=True)}
        for end, containment in zip("ab", self.containments, strict=True):
            columns[f"containment_{end}"] = pa.array(containment, from_pandas=True)
        columns["edit"] = pa.nulls(rows, pa.float64()) if self.edit is None else pa.array(self.edit)
        shingles = (None, None) if self.common is None else (n_features[self.first], n_features[self.second])
        for name, counts in zip(("common", "shingles_a", "shingles_b"), (self.common, *shingles), strict=True):
            columns[name] = pa.nulls(rows, pa.int32()) if counts is None else pa.array(counts)
        return pa.table(columns)

    def counts(self) -> dict[str, int]:
        """Return the counts of the search for `metrics.json`."""
        return {"candidates": self.candidates, "crowd": self.heavy}


def match(
    nodes: NDArray[np.int32],
    sketches: Ragged,
    n_features: NDArray[np.int32],
    rule: PairingOptions,
    workers: Workers,
) -> Matches:
    """Find the near-duplicate pairs of distinct sketches.

    Args:
        nodes: (m,), the place of each in DOCUMENTS, ascending.
        sketches: m rows of ids; none is empty.
        n_features: (m,), distinct shingles of their documents, on which a varying modulus depends.
        rule: how pairs are found.
        workers: the threads to find them with.

    Raises:
        CapacityError: if one feature would take more than `max_comparisons`.
        NeedsSparkError: if the pairs may not fit in memory.

    Cost: see `join_prefixes`; the ids of the sketches that may be in a pair are held twice.
    """
    if rule.levels:
        own = np.array([level_of(count, rule.levels) for count in n_features.tolist()], np.int64)
        names, spread = spread_levels(nodes.astype(np.int64), own, sketches, int(own.max(initial=0)))
        return _at_coarser(_match(names, spread, rule, workers))
    return _match(nodes.astype(np.int64), sketches, rule, workers)


def _match(names: NDArray[np.int64], sketches: Ragged, rule: PairingOptions, workers: Workers) -> Matches:
    sketches = Ragged(sketches.offsets, read_only(sketches.values))  # kernels are compiled for one kind of array
    if rule.finder is None:
        pruned = prune(sketches, rule.threshold, workers)
        probes, rounds = _by_prefix(pruned, sketches, rule), tuple(pruned.rounds)
        rows, heavy = pruned.rows, probes.heavy
    else:
        rows, probes, heavy = _by_keys(sketches, rule.finder, rule)
        rounds = ()

    if workers.most_meetings is not None and _count_meetings(probes) > workers.most_meetings:
        raise NeedsSparkError(f"more than {workers.most_meetings:,} pairs of sketches meet")
    order = np.lexsort((rows, np.diff(probes.sketches.offsets)))
    probes = _reordered(probes, order)
    parts = PARTS * workers.count
    owner = partition_of(probes.prefixes.values, parts)
    max_edges = rule.limits.max_edges if rule.limits else NO_LIMIT
    long_lists = LongLists(rule.max_postings, rule.max_comparisons)
    join = partial(join_prefixes, threshold=rule.threshold, long_lists=long_lists, max_edges=max_edges)
    found, pairs, surplus = [], 0, max_edges
    for part in workers.work("match", lambda number: join(probes, owner == number), range(parts)):
        if part.stopped:
            raise CapacityError(past_comparisons(part.stopped, rule.max_comparisons))
        found.append(part)
        pairs += len(part.first) + len(part.links)
        if pairs > surplus:  # several parts may each have listed a large component
            found = _without_surplus(found, len(order), max_edges)
            pairs = sum(len(part.first) + len(part.links) for part in found)
            surplus = max(max_edges, 2 * pairs)
        workers.memory.require(OF_MATCH * pairs, f"{len(order):,} distinct sketches with {pairs:,} pairs so far")
    matches = _gather(found, probes, names[rows[order]], rule)
    return replace(matches, heavy=int(np.count_nonzero(heavy)), rounds=rounds)


def _count_meetings(probes: Probes) -> int:
    """Return a bound on the pairs that meet: a pair counts at each feature or key, but all pairs count once."""
    holders = np.bincount(number_keys(probes.prefixes.values)[0].astype(np.int64))
    sketches = len(probes.bounds)
    return min(int((holders * (holders - 1) // 2).sum()), sketches * (sketches - 1) // 2)


def _by_prefix(pruned: Pruned, sketches: Ragged, rule: PairingOptions) -> Probes:
    """Return the sketches with features left, each with its prefix.

    For containment that is all features left, since any sketch may contain another; `posted` then counts those that
    larger sketches look for.
    """
    whole = take_rows(sketches, pruned.rows)
    lengths = np.diff(pruned.offsets) - pruned.bounds + 1
    place = np.arange(len(pruned.features)) - np.repeat(pruned.offsets[:-1], np.diff(pruned.offsets))
    is_inside = place < np.repeat(lengths, np.diff(pruned.offsets))
    prefixes = Ragged(_ends(lengths), pruned.features[is_inside].astype(np.uint64))
    bounds, posted = pruned.bounds, lengths.astype(np.int32)
    if rule.threshold.is_containment:
        bounds = rule.threshold.bounds(np.diff(whole.offsets).astype(np.int32))
        posted = np.maximum(lengths - bounds + 1, 0).astype(np.int32)
    heavy = _find_heavy(prefixes, prefixes.values, len(pruned.holders), rule)
    return Probes(whole, prefixes, np.zeros(len(prefixes.values), np.int32), bounds, posted, heavy)


def _by_keys(
    sketches: Ragged, finder: Finder, rule: PairingOptions
) -> tuple[NDArray[np.int64], Probes, NDArray[np.bool_]]:
    """Return the places of the sketches not smaller than their bound, these with keys, and which of all are heavy."""
    sizes = np.diff(sketches.offsets).astype(np.int32)
    bounds = rule.threshold.bounds(sizes)
    rows = np.flatnonzero(bounds <= sizes)
    whole = take_rows(sketches, rows)
    all_keys = finder.keys(sketches)
    numbers, count = number_keys(all_keys.values)
    heavy = _find_heavy(all_keys, numbers, count, rule)
    keys = take_rows(all_keys, rows)
    posted = np.diff(keys.offsets).astype(np.int32)
    return rows, Probes(whole, keys, np.zeros(len(keys.values), np.int32), bounds[rows], posted, heavy[rows]), heavy


def _find_heavy(rows: Ragged, numbers: NDArray[np.integer], count: int, rule: PairingOptions) -> NDArray[np.bool_]:
    """Mark the sketches with a feature, or key, that more than `max_postings` have; none where there are no leaders."""
    is_heavy = np.zeros(len(rows.offsets) - 1, np.bool_)
    if rule.limits is not None:
        holders = np.bincount(numbers.astype(np.int64), minlength=count)
        owners = np.repeat(np.arange(len(is_heavy)), np.diff(rows.offsets))
        is_heavy[owners[holders[numbers.astype(np.int64)] > rule.max_postings]] = True
    return is_heavy


def _reordered(probes: Probes, order: NDArray[np.int64]) -> Probes:
    return Probes(
        take_rows(probes.sketches, order),
        take_rows(probes.prefixes, order),
        probes.holders,
        probes.bounds[order],
        probes.posted[order],
        probes.heavy[order],
    )


def _without_surplus(found: list[JoinResult], sketches: int, max_edges: int) -> list[JoinResult]:
    """Return what was found without surplus pairs of components of more than `max_edges`; empties the list given."""
    connected = begin_count(sketches, max_edges)
    chosen = []
    while found:
        part = found.pop(0)
        needed = choose_pairs(connected, part.first, part.second)
        columns = {name: getattr(part, name)[needed] for name in ("first", "second", "overlap", "resemblance")}
        chosen.append(part._replace(**columns))
    return chosen


def _gather(found: list[JoinResult], probes: Probes, names: NDArray[np.int64], rule: PairingOptions) -> Matches:
    """Join the pairs that all threads found, sorted by their names."""
    ends = np.concatenate([np.stack([part.first, part.second], axis=1) for part in found])
    overlap = np.concatenate([part.overlap for part in found])
    resemblance = np.concatenate([part.resemblance for part in found])
    named = names[ends]
    is_turned = named[:, 0] > named[:, 1]
    named[is_turned], ends[is_turned] = named[is_turned, ::-1], ends[is_turned, ::-1]
    order = np.lexsort((named[:, 1], named[:, 0]))
    containments = np.full((2, len(order)), np.nan)
    if rule.threshold.shows_containment:
        containments = (overlap[:, None] / np.diff(probes.sketches.offsets)[ends]).T[:, order]
    links = names[np.concatenate([part.links for part in found])]
    return Matches(
        named[order, 0],
        named[order, 1],
        overlap[order],
        resemblance[order],
        containments,
        np.sort(links, axis=1),
        sum(part.candidates for part in found),
    )


def _at_coarser(matches: Matches) -> Matches:
    """Choose, of pairs found at several levels, those at the coarser of both own levels; name them by their nodes."""
    own = (matches.ends >> LEVEL_BITS & LEVELS).max(axis=1)
    found = matches.take(np.flatnonzero((matches.first & LEVELS) == own))
    return replace(found, first=found.first >> 2 * LEVEL_BITS, second=found.second >> 2 * LEVEL_BITS)


def _ends(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
