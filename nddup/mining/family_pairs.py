"""Families of heavy sketches and components with too many pairs: which there are, and their pairs made anew.

    list_families     CONNECTIONS                 -> SEARCHED, from all edges in one call
    search_families   rows of SEARCHED, FamilyRule  -> FAMILY_PAIRS, each family in one call
    pair_family       sketches, totals, threshold -> FamilyPairs of one family
    lead              a large Component           -> the pairs of its leaders
    lead_confirmed    Family, Confirm             -> leaders, where texts confirm pairs

A family is a connected component of the pairs found and of the links between heavy sketches. Links join at least the
heavy near-duplicates that were not compared, so no near-duplicate pair leaves a family. Where texts confirm pairs, two
sketches that satisfy the rule are only candidates. Where all shingles decide, pairs by both are found and counted, so
that texts which are hardly alike never have leaders; an edit similarity is compared with leaders only.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import ragged_of
from nddup.matching.confirm_texts import ConfirmRule, SetRule, compare_held, compare_one, confirms_any
from nddup.matching.overlap_join import NO_LIMIT, ComparisonLimits, find_large
from nddup.matching.threshold import Threshold
from nddup.mining.bounded_keeping import Choosing, Confirm, Divided, choose_freely, keep_apart, keep_bounded
from nddup.mining.family_join import FamilyTexts, Side, is_whole, join_family, join_side
from nddup.mining.keep_verdicts import classes_of
from nddup.mining.leaders import (
    Family,
    Index,
    Rows,
    as_pairs,
    begin_index,
    choose_leaders,
    compare_with,
    enter,
    find_leader_pairs,
    join_rows,
    rank_features,
)
from nddup.mining.pair_graph import Cost, Edges, label_components
from nddup.tables import FAMILY_PAIRS, LIKENESS, SEARCHED, TYPES, likeness_of

Batches = Iterator[pa.RecordBatch]

FAMILIES_COST = Cost(edge=40, node=48)
"""Memory of one task over all connections, rounded up from the measured one (`tests/spark/test_graph_memory.py`)."""

BATCH_ROWS = 100_000
"""Nodes in a batch of SEARCHED."""

EDGE_ROWS = 1 << 20
"""Connections that are counted at a time."""

ConfirmOf = Callable[[NDArray[np.int64]], FamilyTexts]
"""Gives the texts of a family, from its nodes, of which it names documents by their places."""

FAMILY_COLUMNS = {
    "sketch": "array<long>", "most": "long", "least": "long", "n": "long", "shingles": "int", "guard": "long"
}  # fmt: skip
"""What is known of a sketch in a family, for each value in the columns of `keep.same`: the greatest and least `weight`
of its documents of that value, their number, their distinct shingles, and the number of the value."""


def among(confirm: Confirm, members: NDArray[np.int64]) -> Confirm:
    """Return the same function for the documents `members`, which it names by their places in that array."""
    return lambda one, others: confirm(int(members[one]), members[others])


def lead_confirmed(
    family: Family, by_policy: NDArray[np.int64], always: NDArray[np.bool_], confirm: Confirm
) -> tuple[NDArray[np.bool_], Index]:
    """
    Let every document lead that is not a confirmed near-duplicate of a leader before it.

    Args:
        family: the sketches, and when two of them are candidates.
        by_policy: (n,), the documents in the order the keep policy prefers them.
        always: (n,), the documents that lead whatever is near them.

    Returns:
        Whether each document leads, (n,), and the index of the leaders, as `leaders.choose_leaders` does.

    Cost: that of `choose_leaders`, some 0.1 ms more for each document, and the comparisons of texts: at worst one for
        each leader that is a candidate of a document.
    """
    n = by_policy.size
    index, count = begin_index(family.prefixes.n_ranks), 0
    leads, met = np.zeros(n, np.bool_), np.full(n, -1, np.int32)
    for document in by_policy.tolist():
        if not always[document]:
            candidates = compare_with(family, np.array([document]), index, met)[:, 1].astype(np.int64)
            leads[document] = not confirms_any(confirm, document, candidates)
        leads[document] |= always[document]
        if leads[document]:
            index, count = enter(family.prefixes, index, document, count)
    return leads, index


class FamilyPairs(NamedTuple):
    """The pairs found among n sketches."""

    ends: NDArray[np.int32]
    """(p, 2), the pairs, each once."""

    overlap: NDArray[np.int32]
    """(p,), of each pair."""

    resemblance: NDArray[np.float64]
    """(p,), of each pair."""

    by_leaders: NDArray[np.bool_]
    """(n,), whether each is in a large component, whose listed pairs are those of leaders and of removed documents."""

    stands: NDArray[np.int32]
    """(n,), in a large component where losses are limited the kept document that replaces each; else each itself."""

    limited: int
    """Documents that were compared with heads only (`bounded_keeping`)."""

    comparisons: int
    """Comparisons of two sketches made to find out which components are large."""

    is_whole: bool
    """False where the search passed `max_comparisons`: then there are no pairs, and `by_leaders` is all false."""


def pair_family(
    sketches: Ragged,
    totals: NDArray[np.int32],
    by_policy: NDArray[np.int64],
    threshold: Threshold,
    limits: ComparisonLimits,
    keys: Ragged | None = None,
    texts: FamilyTexts | None = None,
    choosing: Choosing | None = None,
    divided: Divided | None = None,
) -> FamilyPairs:
    """
    Find the pairs of a family: all pairs of a component with at most `max_edges`, else as `lead` does.

    The sketches of a family have features in common with very many others, so comparing all with all may cost too much,
    and the pairs may divide it into many components. So the sketches that meet in a feature are compared one by one,
    and the pairs of each component are counted on the way:

        at most `max_edges`   all its pairs are listed
        more                  it is large: only the pairs of leaders are listed (`leaders`), and where losses are
                              limited those of removed documents with the kept ones that replace them
                              (`bounded_keeping`)

    So how a component is listed depends on its own sketches only, not on the rest of the family.

    Args:
        sketches: the distinct sketches, n rows, ids ascending in each.
        totals: (n,), what bounds the overlap of each: `threshold.totals` of the original sizes.
        by_policy: (n,), the sketches in the order the keep policy prefers them.
        threshold: when two are near-duplicates; any measure but containment.
        limits: `pairs.max_edges` and `pairs.max_comparisons`.
        keys: n rows; only sketches with a common key are compared, except around leaders, where keys are not used.
            None: all sketches that can be near-duplicates are compared.
        texts: where texts confirm pairs; the pairs returned may then be candidates that are none.
        choosing: what else decides; None: nothing.
        divided: as of `lead`.

    Returns:
        The pairs, and which sketches are in large components. For no sketches, no pairs.

    Cost:
        That of `connect_cliques` and of `join_prefixes`: of the shingles, where these are held, for sketches that are
        alike may have few pairs. Memory: 20 bytes a pair, twice that while the rows grow, for some `max_edges` pairs a
        component; 60 bytes for every id that is joined.

    Example:
        Every two of 0, 1 and 2 share two features; so do 3 and 4. At most two pairs a component: 0 leads 1 and 2.

        >>> ids = np.array([1, 2, 3, 1, 2, 4, 1, 2, 5, 7, 8, 7, 8, 9], np.uint64)
        >>> sketches, sizes = Ragged(np.array([0, 3, 6, 9, 11, 14]), ids), np.array([3, 3, 3, 2, 3], np.int32)
        >>> by_count = Threshold("overlap", 2, 1, is_count=True, size=3)
        >>> found = pair_family(sketches, sizes, np.arange(5), by_count, ComparisonLimits(2, 100))
        >>> sorted(found.ends.tolist()), found.by_leaders.tolist()
        ([[1, 0], [2, 0], [3, 4]], [True, True, True, False, False])
    """
    joined = join_family(Side(sketches, totals, threshold), limits, keys, texts)
    order, matches, confirm = joined.order, joined.matches, texts and texts.confirm
    nobody, stands = np.zeros(len(totals), np.bool_), np.arange(len(totals), dtype=np.int32)
    if matches.candidates > limits.max_comparisons:
        none = np.empty(0, np.int32)
        return FamilyPairs(none.reshape(0, 2), none, np.empty(0), nobody, stands, 0, matches.candidates, is_whole=False)

    roots = np.full(len(totals), -1, np.int32)
    roots[order] = find_large(joined.connected)
    ends = order[np.stack([matches.first, matches.second], axis=1)].astype(np.int32)
    listed = np.flatnonzero(roots[ends[:, 0]] < 0)
    parts = [Rows(ends[listed], matches.overlap[listed], matches.resemblance[listed])]
    limited, whole = 0, choosing or choose_freely(len(totals))
    for root in np.unique(roots[roots >= 0]):
        members = np.flatnonzero(roots == root)
        order = by_policy[roots[by_policy] == root]
        component = Component(take_rows(sketches, members), totals[members], np.searchsorted(members, order))
        of_members = confirm and among(confirm, members)
        by_value = divided and divided.take(members)
        within = lead(component, threshold, limits.max_edges, whole.take(members), of_members, by_value)
        parts.append(Rows(members[within.ends].astype(np.int32), within.overlap, within.resemblance))
        stands[members], limited = members[within.stands], limited + within.limited
    ends, overlap, resemblance = join_rows(parts)
    return FamilyPairs(ends, overlap, resemblance, roots >= 0, stands, limited, matches.candidates, is_whole=True)


def connect_sketches(sketches: Ragged, totals: NDArray[np.int32], threshold: Threshold) -> NDArray[np.int64]:
    """Return the component of each sketch, by its first one, (n,): any two that satisfy the threshold are in one.

    Args:
        sketches: n rows, ids ascending in each.
        totals: as of `pair_family`.

    Cost: that of `pair_family`, but two sketches known to be connected are not compared.

    Example:
        >>> sketches = Ragged(np.array([0, 2, 4, 6]), np.array([7, 8, 1, 2, 2, 9], np.uint64))
        >>> by_count = Threshold("overlap", 1, 1, is_count=True, size=2)
        >>> connect_sketches(sketches, np.full(3, 2, np.int32), by_count).tolist()
        [0, 1, 1]
    """
    order, connected, _ = join_side(Side(sketches, totals, threshold), ComparisonLimits(0, NO_LIMIT))
    roots = find_large(connected)
    roots = np.where(roots < 0, np.arange(len(order)), roots)
    firsts = np.full(len(order), len(totals))
    np.minimum.at(firsts, roots, order)
    values = np.arange(len(totals))
    values[order] = firsts[roots]
    return values


class Component(NamedTuple):
    """A component of n documents."""

    sketches: Ragged  # n rows, ids ascending in each
    totals: NDArray[np.int32]  # (n,), what bounds the overlap of each (`Threshold.totals`)
    by_policy: NDArray[np.int64]  # (n,), the documents in the order the keep policy prefers them


def lead(
    component: Component,
    threshold: Threshold,
    max_near: int,
    choosing: Choosing,
    confirm: Confirm | None = None,
    divided: Divided | None = None,
) -> FamilyPairs:
    """
    Find the pairs of a component that is known to be large: those of leaders, and of removed documents with a kept one.

    Args:
        threshold: when two are near-duplicates, or candidates.
        max_near: as of `keep_bounded`.
        choosing: what else decides. A limit of what may be lost needs `confirm`.
        confirm: compares texts. The pairs returned are then candidates; leaders and kept documents are those of the
            confirmed pairs.
        divided: the documents by their values in the columns of `keep.same`; None: there is one value.

    Cost: those of `choose_leaders` or `lead_confirmed`, `find_leader_pairs` and `keep_bounded`. Memory: 60 bytes for
        every id of every sketch, 24 for every pair.
    """
    family = rank_features(component.sketches, component.totals, threshold)
    order, always = np.ascontiguousarray(component.by_policy, np.int64), choosing.is_forced
    if confirm is None:
        leads, index = choose_leaders(family, order, always)
    else:
        leads, index = lead_confirmed(family, order, always, confirm)
    pairs, n = find_leader_pairs(family, leads, index, always), len(component.totals)
    stands, limited = np.arange(n, dtype=np.int32), 0
    if divided is not None:
        apart = keep_apart(family, divided, confirm, max_near)
        limited, pairs = apart.limited, _without_repeats(pairs, as_pairs(apart.rows))
    elif choosing.most_lost is not None and confirm is not None:
        kept = keep_bounded(family, order, choosing, confirm, max_near)
        stands, limited = kept.stands, kept.limited
        pairs = _without_repeats(pairs, as_pairs(kept.rows))
    return FamilyPairs(*pairs, np.ones(n, np.bool_), stands, limited, 0, is_whole=True)


def _without_repeats(pairs: Rows, more: Rows) -> Rows:
    """Return pairs and those of more that are not among them, in either direction."""
    whole = join_rows([pairs, more])
    low, high = np.sort(whole.ends, axis=1).astype(np.int64).T
    _, first = np.unique((low << 32) + high, return_index=True)
    first.sort()
    return Rows(whole.ends[first], whole.overlap[first], whole.resemblance[first])


def past_comparisons(sketches: int, max_comparisons: int) -> str:
    """Return the error message for a family whose pairs took too many comparisons."""
    return (
        f"a family of {sketches:,} sketches with features that very many hold took more than pairs.max_comparisons"
        f" ({max_comparisons:,}) comparisons; raise it, or raise pairs.threshold, or leave out common shingles with"
        " pairs.max_document_frequency"
    )


class FamilyRule(NamedTuple):
    """How the pairs of a family are found."""

    threshold: Threshold

    keys: Callable[[Ragged], Ragged] | None
    """Makes the keys by which sketches meet; None if they meet by shared features."""

    limits: ComparisonLimits
    """`pairs.max_edges` and `pairs.max_comparisons`."""

    confirm: ConfirmRule | None = None
    """When texts, in a column `tokens`, confirm a pair; None: there is no such column."""

    most_lost: Fraction | None = None
    """`keep.max_lost`."""


def list_families(batches: Batches, *, max_edges: int) -> Batches:
    """Yield SEARCHED, those with a heavy sketch and those with more than `max_edges` pairs, from all CONNECTIONS.

    A family without links is a component with all its pairs, or with more than `max_edges` of them. Families with
    links, with more than `max_edges` pairs, or with pairs that were counted but not listed, are searched again.

    A family is a number from 0. Memory: `FAMILIES_COST`.
    """
    edges, linked, unlisted = Edges(), [], []
    for batch in batches:
        first, second, counts = (batch.column(name).to_numpy() for name in ("node_a", "node_b", "pairs"))
        edges.add(first, second)
        linked.append(first[batch.column("is_link").to_numpy(zero_copy_only=False)])
        unlisted.append(np.stack([first, counts])[:, counts != 1])

    nodes = edges.names()
    ends = edges.take_ends(nodes)
    families = label_components(ends, nodes=len(nodes)).ordinals
    pairs = np.zeros(int(families.max(initial=-1)) + 1, np.int64)
    for low in range(0, len(ends), EDGE_ROWS):
        pairs += np.bincount(families[ends[low : low + EDGE_ROWS, 0]], minlength=len(pairs))
    del ends

    # Both ends of a link are heavy, so its family is wanted. Without links, a connection is one pair or many.
    is_linked, is_unlisted = (np.zeros(len(pairs), np.bool_) for _ in range(2))
    while linked:
        is_linked[families[np.searchsorted(nodes, linked.pop())]] = True
    while unlisted:
        first, counts = unlisted.pop()
        places = families[np.searchsorted(nodes, first)]
        np.add.at(pairs, places, counts - 1)
        is_unlisted[places] = True
    is_large = ~is_linked & (pairs > max_edges)

    chosen = np.flatnonzero((is_linked | is_unlisted | is_large)[families])
    for low in range(0, len(chosen), BATCH_ROWS):
        rows = chosen[low : low + BATCH_ROWS]
        yield SEARCHED.batch([nodes[rows], families[rows].astype(np.int64), is_large[families[rows]]])


def search_families(batches: Batches, *, rule: FamilyRule, confirm_of: ConfirmOf | None = None) -> Batches:
    """Yield FAMILY_PAIRS: the pairs of each family, and the sketches of components with more than `max_edges` pairs.

    Args:
        batches: rows of SEARCHED with the columns `FAMILY_COLUMNS`, and `tokens`, array<long>, by the rule; the rows of
            a family one after another, in the order of the keep policy.
        confirm_of: compares texts, where these confirm pairs and are not in the rows.

    Cost: of each family that of `pair_family`; one family is in memory.
    """
    for rows in _gather(batches):
        yield from _rows_of_family(rows, rule, confirm_of)


def _gather(batches: Batches) -> Iterator[pa.Table]:
    parts: list[pa.RecordBatch] = []
    for batch in batches:
        families = batch.column("family").to_numpy()
        cuts = [0, *(np.flatnonzero(np.diff(families)) + 1).tolist(), len(families)]
        for low, high in pairwise(cuts if len(families) else []):
            if parts and parts[0].column("family")[0].as_py() != families[low]:
                yield pa.Table.from_batches(parts)
                parts = []
            parts.append(batch.slice(low, high - low))
    if parts:
        yield pa.Table.from_batches(parts)


def _rows_of_family(rows: pa.Table, rule: FamilyRule, confirm_of: ConfirmOf | None) -> Batches:
    """Yield FAMILY_PAIRS for one family, from rows in the order of the keep policy."""
    # The order of the nodes is that of the pairs; by_policy has their places in it. Of its values, the first counts.
    nodes, first, place = np.unique(rows["node"].to_numpy(), return_index=True, return_inverse=True)
    guards, divided = rows["guard"].to_numpy(), None
    if guards.min() != guards.max():
        divided = Divided(place, guards, _choosing_of(rows, rule))
    rows, by_policy = rows.take(pa.array(first)), np.argsort(first)
    sketches = ragged_of(rows["sketch"])
    texts = None if confirm_of is None else confirm_of(nodes)
    if isinstance(rule.confirm, SetRule):
        shingles = ragged_of(rows["tokens"])
        texts = FamilyTexts(partial(compare_held, shingles, rule.confirm), shingles, rule.confirm)
    elif rule.confirm is not None:
        texts = FamilyTexts(partial(compare_one, partial(take_rows, ragged_of(rows["tokens"])), rule.confirm))
    pairs = _search(rows, by_policy, rule, texts, divided)
    if not pairs.is_whole:
        yield _lay_out("stopped", nodes[:1], np.array([len(nodes)]))
        return

    ends = np.sort(pairs.ends, axis=1)
    sizes, shows = np.diff(sketches.offsets)[ends.T], rule.threshold.shows_containment
    likeness = likeness_of(pairs.overlap.astype(np.int32), pairs.resemblance, sizes, shows_containment=shows)
    yield _lay_out("pair", nodes[ends[:, 0]], nodes[ends[:, 1]], likeness)

    yield _lay_out("leaders", nodes[pairs.by_leaders], nodes[pairs.stands[pairs.by_leaders]])
    if pairs.limited:
        yield _lay_out("limited", nodes[:1], np.array([pairs.limited]))


def _choosing_of(rows: pa.Table, rule: FamilyRule) -> Choosing:
    most, least, n, shingles = (rows[name].to_numpy().astype(np.int64) for name in ("most", "least", "n", "shingles"))
    return Choosing(classes_of(most), classes_of(least), n, shingles, rule.most_lost)


def _search(
    rows: pa.Table, by_policy: NDArray[np.int64], rule: FamilyRule, texts: FamilyTexts | None, divided: Divided | None
) -> FamilyPairs:
    sketches = ragged_of(rows["sketch"])
    sizes = np.diff(sketches.offsets).astype(np.int32)
    totals = rule.threshold.totals(sizes, rows["shingles"].to_numpy())
    choosing, limits = _choosing_of(rows, rule), rule.limits
    is_counted = texts is not None and (texts.shingles is not None or texts.pairs is not None)
    is_counted &= not is_whole(Side(sketches, totals, rule.threshold))
    if rows["is_large"][0].as_py() and not is_counted:  # so many candidates are pairs, or are taken for pairs
        component = Component(sketches, totals, by_policy)
        return lead(component, rule.threshold, limits.max_edges, choosing, texts and texts.confirm, divided)
    keys = None if rule.keys is None else rule.keys(sketches)
    return pair_family(sketches, totals, by_policy, rule.threshold, limits, keys, texts, choosing, divided)


def _lay_out(
    what: str,
    node_a: NDArray[np.int64],
    node_b: NDArray[np.int64],
    likeness: Mapping[str, NDArray[Any]] = MappingProxyType({}),
) -> pa.RecordBatch:
    """Return rows of FAMILY_PAIRS of one kind; only pairs have values besides their nodes."""
    rest = [
        pa.array(likeness[column.name]) if column.name in likeness else pa.nulls(len(node_a), TYPES[column.type])
        for column in LIKENESS
    ]
    return FAMILY_PAIRS.batch([pa.repeat(what, len(node_a)), pa.array(node_a), pa.array(node_b), *rest])
