"""Near-duplicate pairs of the sketches that meet at an element of their prefixes, in the task that owns the element.

    posted rows            --find_wanted-->  the rows whose sketches must be fetched
    the same, and sketches --join_posted-->     near-duplicate pairs, and links between heavy sketches

Two sketches that meet are a candidate pair unless their posted rows rule out that they are near-duplicates, or show
that they met at an earlier element (`elements` explains why nothing is lost). The candidate search runs twice,
once before the sketches are fetched and once after, so no candidate list is held in memory.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, group_rows
from nddup.ground.kernels import Written, compiled
from nddup.matching.bitmaps import count_different
from nddup.matching.elements import BEFORE, NO_ELEMENT
from nddup.matching.overlap_join import (
    NO_LIMIT,
    JoinResult,
    LongLists,
    begin_count,
    count_pair,
    find_nothing,
    find_root,
    find_too_long,
    share_large,
)
from nddup.matching.threshold import Rule, Threshold, common_needed, compare_sketches, is_too_small, overlap_or_less


class PostedSketches(NamedTuple):
    """The m sketches with postings in one task, ordered by (total, name)."""

    sizes: NDArray[np.int32]  # (m,), number of ids of the original sketch
    totals: NDArray[np.int32]  # (m,), what bounds its overlap (`Threshold.totals`), not falling
    bounds: NDArray[np.int32]  # (m,), its least overlap with a candidate (`Threshold.needs`)
    left: NDArray[np.int32]  # (m,), as in `elements.Prefixes`
    need: NDArray[np.int32]  # (m,), likewise
    bitmaps: NDArray[np.uint64]  # (m, WORDS)
    offsets: NDArray[np.int64]  # (m + 1,), where the postings of each begin; p postings in all
    rests: NDArray[np.uint64]  # (p,), the element, by its place in the owner's range
    places: NDArray[np.int32]  # (p,), its place in the total order of its sketch
    before: NDArray[np.uint64]  # (p, BEFORE), the elements before it


class CandidateRule(NamedTuple):
    """The rules by which candidates are found."""

    long_lists: LongLists
    """Limits on the cost of the holders of one element."""

    links: bool
    """Whether the sketches of a list of more than `max_postings` count as heavy: they are linked, not compared."""

    by_keys: bool
    """Whether sketches meet by keys, whose places say nothing about how much the sketches share."""


class _Lists(NamedTuple):
    """The postings that can be met at each element, ascending: list g holds entries starts[g] … starts[g + 1] - 1."""

    group: NDArray[np.int32]  # (p,), the list that each posting looks up; -1 for none
    starts: NDArray[np.int64]  # (g + 1,)
    entries: NDArray[np.int64]  # postings
    row: NDArray[np.int32]  # (p,), the sketch of each posting
    ends: NDArray[np.int64]  # (g,), end of the entries that are compared; the start of the list if they are heavy


class _Search(NamedTuple):
    """The input and the working arrays of the candidate search."""

    met: PostedSketches
    lists: _Lists
    begins: Written[np.int64]  # (g,), the first entry of each list not yet too small for later sketches
    last: Written[np.int32]  # (m,), the last sketch that met each one: where two do not become a candidate at the
    # first element at which they meet in this task, they do not at a later one, as postings ascend by place
    candidates: Written[np.int32]  # (m,)
    rule: Rule
    by_keys: bool


def find_wanted(met: PostedSketches, candidate_rule: CandidateRule, rule: Rule) -> NDArray[np.bool_]:
    """Return a mask, (m,), of the sketches that are in a candidate pair; all False if a list would cost too much.

    Cost: a sketch is looked at by those that meet it until both are wanted. In a family of near-duplicates that is a
    step a posting; where sketches meet and are no candidates, it is the search of `join_posted`.
    """
    lists, stopped = _make_lists(met, candidate_rule, is_containment=rule.is_containment)
    if stopped:
        return np.zeros(len(met.sizes), np.bool_)
    return _find_wanted(_begin(met, lists, candidate_rule, rule))


def join_posted(
    met: PostedSketches,
    candidate_rule: CandidateRule,
    sketches: Ragged,
    threshold: Threshold,
    *,
    keys: Ragged | None = None,
    max_edges: int = NO_LIMIT,
) -> JoinResult:
    """Find the near-duplicate pairs among the candidates.

    Args:
        met: the m sketches.
        candidate_rule: how candidates are found.
        sketches: the ids of each sketch that `find_wanted` selected, the other rows empty; m rows.
        threshold: when two sketches are near-duplicates.
        keys: the keys of each sketch, ascending: a pair must share one. None: sketches meet by their ids.
        max_edges: pairs of a component above which it gets no further ones, as in `overlap_join.join_prefixes`.

    Returns:
        Positions of sketches, first < second; each pair once in this task, perhaps in another too; links between heavy
        ones. No pairs if a list would cost too much (`JoinResult.stopped`).

    Cost: postings times the sketches they meet within the size bound, some 20 steps each; one merge per candidate.
    """
    lists, stopped = _make_lists(met, candidate_rule, is_containment=threshold.is_containment)
    if stopped:
        return find_nothing(stopped)
    no_keys = Ragged(np.zeros(1, np.int64), np.empty(0, np.uint64))
    search = _begin(met, lists, candidate_rule, threshold.rule)
    rows, candidates = _join(search, sketches, no_keys if keys is None else keys, threshold.rule, max_edges)
    first, second, overlap, shared, united = rows.T
    links = _link(lists, len(met.sizes)) if candidate_rule.links else np.empty((0, 2), np.int32)
    return JoinResult(first, second, overlap, shared / np.maximum(united, 1), candidates, stopped, links)


def _make_lists(met: PostedSketches, candidate_rule: CandidateRule, *, is_containment: bool) -> tuple[_Lists, int]:
    """Make the lists; also return the length of the longest that would cost too much, 0 if none does."""
    rows = np.repeat(np.arange(len(met.sizes), dtype=np.int32), np.diff(met.offsets))
    listed = np.arange(len(rows))
    if is_containment:
        # Any sketch may contain another, so all its elements look for the prefixes of the others.
        listed = np.flatnonzero(met.places <= (met.left - met.need)[rows])
    order, starts = group_rows(met.rests[listed])
    lengths = np.diff(starts)
    group = np.full(len(rows), -1, np.int32)
    group[listed[order]] = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    if is_containment:
        group = _find_groups(met.rests, listed[order[starts[:-1]]], group)

    if candidate_rule.links:
        compared = np.where(lengths > candidate_rule.long_lists.max_postings, 0, lengths)
        return _Lists(group, starts, listed[order], rows, starts[:-1] + compared), 0
    stopped = find_too_long(lengths, np.bincount(group[group >= 0], minlength=len(lengths)), candidate_rule.long_lists)
    return _Lists(group, starts, listed[order], rows, starts[1:]), stopped


def _find_groups(rests: NDArray[np.uint64], firsts: NDArray[np.int64], group: NDArray[np.int32]) -> NDArray[np.int32]:
    """Find the list of each posting that is in none itself, by the element of each list's first entry."""
    by_element = np.argsort(rests[firsts])
    names = rests[firsts][by_element]
    waiting = np.flatnonzero(group < 0)
    if len(names):
        at = np.minimum(np.searchsorted(names, rests[waiting]), len(names) - 1)
        is_listed = names[at] == rests[waiting]
        group[waiting[is_listed]] = by_element[at[is_listed]]
    return group


def _begin(met: PostedSketches, lists: _Lists, candidate_rule: CandidateRule, rule: Rule) -> _Search:
    count = len(met.sizes)
    last, candidates = np.full(count, -1, np.int32), np.empty(count, np.int32)
    return _Search(met, lists, lists.starts[:-1].copy(), last, candidates, rule, candidate_rule.by_keys)


@compiled
def _find_wanted(search: _Search) -> NDArray[np.bool_]:
    met, lists = search.met, search.lists
    wanted = np.zeros(len(search.last), np.bool_)
    # In each list the entries of sketches that are not wanted yet stand first; `taken` have been entered or left out.
    waiting, ends, taken = lists.entries.copy(), lists.starts[:-1].copy(), lists.starts[:-1].copy()
    for i in range(len(wanted)):
        for at in range(met.offsets[i], met.offsets[i + 1]):
            group = lists.group[at]
            if group < 0:
                continue
            while taken[group] < lists.ends[group] and lists.row[lists.entries[taken[group]]] < i:
                waiting[ends[group]] = lists.entries[taken[group]]
                ends[group] += 1
                taken[group] += 1

            kept = lists.starts[group]
            for entry in range(kept, ends[group]):
                other = waiting[entry]
                j = lists.row[other]
                if wanted[j] or _differ(search, j, i):
                    continue
                if search.last[j] != i:
                    search.last[j] = i
                    if _may_be_near(search, i, at, j, other):
                        wanted[i] = wanted[j] = True
                        continue
                waiting[kept] = other
                kept += 1
            ends[group] = kept
            wanted[i] = wanted[i] or _meets_any(search, i, at)
    return wanted


@compiled
def _meets_any(search: _Search, i: int, at: int) -> bool:
    """Return whether a sketch before sketch i is a candidate at this posting."""
    lists = search.lists
    group = lists.group[at]
    for entry in range(_first_entry(search, group, i), lists.ends[group]):
        other = lists.entries[entry]
        j = lists.row[other]
        if j >= i:
            return False
        if search.last[j] != i:
            search.last[j] = i
            if _may_be_near(search, i, at, j, other):
                return True
    return False


@compiled
def _join(search: _Search, sketches: Ragged, keys: Ragged, rule: Rule, max_edges: int) -> tuple[NDArray[np.int32], int]:
    """Return rows (first, second, overlap, shared, united), and the number of candidates."""
    met = search.met
    connected, has_large = begin_count(len(met.sizes), max_edges), False
    pairs, count, n_candidates = np.empty((1024, 5), np.int32), 0, 0
    for i in range(len(met.sizes)):
        n_found = _list_candidates(search, i)
        n_candidates += n_found

        for j in search.candidates[:n_found]:
            if has_large and share_large(connected, i, j):
                continue
            if search.by_keys and not _share_key(keys, i, j):
                continue

            # i is the larger one, so a containment takes the bound of j, which i must contain.
            need = met.bounds[j] if rule.is_containment else max(met.bounds[i], met.bounds[j])
            need = max(need, common_needed(met.totals[i], met.totals[j], rule))
            overlap, shared, united = compare_sketches(sketches, i, j, need, rule)
            if overlap < 0:
                continue
            if count == len(pairs):
                pairs = np.concatenate((pairs, np.empty_like(pairs)))
            pairs[count, 0], pairs[count, 1], pairs[count, 2] = j, i, overlap
            pairs[count, 3], pairs[count, 4] = shared, united
            count += 1
            has_large |= count_pair(connected, i, j)
    return pairs[:count].copy(), n_candidates


@compiled
def _share_key(keys: Ragged, i: int, j: int) -> bool:
    """Return whether two sketches have a key in common: elements of different keys may be equal."""
    offsets, values = keys
    return overlap_or_less(values, offsets[i], offsets[i + 1], offsets[j], offsets[j + 1], 1) > 0


@compiled
def _list_candidates(search: _Search, i: int) -> int:
    """Write into `search.candidates` the sketches before sketch i to compare it with; return how many."""
    met, lists = search.met, search.lists
    count = 0
    for at in range(met.offsets[i], met.offsets[i + 1]):
        group = lists.group[at]
        if group < 0:
            continue

        for entry in range(_first_entry(search, group, i), lists.ends[group]):
            other = lists.entries[entry]
            j = lists.row[other]
            if j >= i:
                break
            if search.last[j] == i:
                continue
            search.last[j] = i
            if _may_be_near(search, i, at, j, other):
                search.candidates[count] = j
                count += 1
    return count


@compiled
def _first_entry(search: _Search, group: int, i: int) -> int:
    """Return the first entry of a list that is not too small for sketch i, and so for all sketches that follow."""
    lists = search.lists
    while search.begins[group] < lists.ends[group]:
        if not _differ(search, lists.row[lists.entries[search.begins[group]]], i):
            break
        search.begins[group] += 1
    return int(search.begins[group])


@compiled
def _differ(search: _Search, small: int, large: int) -> bool:
    """Return whether two sketches are no candidates by their totals: all those before the smaller are none either."""
    met, rule = search.met, search.rule
    if rule.exact_numerator:
        return is_too_small(met.totals[small], met.totals[large], rule)
    return bool(not rule.is_containment and met.totals[small] < met.bounds[large])


@compiled
def _may_be_near(search: _Search, i: int, at: int, j: int, other: int) -> bool:
    """Return whether sketches i and j, which meet at these postings, may be near-duplicates that meet here first."""
    met = search.met
    need = met.need[j] if search.rule.is_containment else max(met.need[i], met.need[j])
    if not search.by_keys and need > 1:
        # What is needed of ids, less the ids that a sketch loses to collisions: its bound less what it needs here.
        lost = min(met.bounds[i] - met.need[i], met.bounds[j] - met.need[j])
        need = max(need, common_needed(met.totals[i], met.totals[j], search.rule) - lost)

    # All elements they share are at or after the first one.
    if not search.by_keys and min(met.left[i] - met.places[at], met.left[j] - met.places[other]) < need:
        return False
    if _share_before(met.before, at, other):
        return False
    return bool(met.left[i] + met.left[j] - count_different(met.bitmaps, i, j) >= 2 * need)


@compiled
def _share_before(before: NDArray[np.uint64], at: int, other: int) -> bool:
    """Return whether one of the elements sent as before one posting is also before the other."""
    for a in range(BEFORE):
        if before[at, a] == np.uint64(NO_ELEMENT):
            return False
        for b in range(BEFORE):
            if before[at, a] == before[other, b]:
                return True
    return False


@compiled
def _link(lists: _Lists, count: int) -> NDArray[np.int32]:
    """Link the sketches of each list that is not compared; return a spanning forest of them, (l, 2)."""
    connected = begin_count(count, NO_LIMIT)
    links, n_links = np.empty((count, 2), np.int32), 0
    for group in range(len(lists.ends)):
        low, high = lists.starts[group], lists.starts[group + 1]
        if lists.ends[group] > low:
            continue
        for entry in range(low + 1, high):
            a, b = lists.row[lists.entries[entry - 1]], lists.row[lists.entries[entry]]
            if find_root(connected.above, a) != find_root(connected.above, b):
                count_pair(connected, a, b)
                links[n_links, 0], links[n_links, 1] = a, b
                n_links += 1
    return links[:n_links].copy()
