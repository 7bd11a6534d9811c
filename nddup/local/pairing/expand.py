"""From pairs of distinct sketches to pairs of documents: every document with an equal sketch gets its pairs.

Two groups of equal sketches that match give the product of their documents; a product of more rows than
`pairs.expand_limit` becomes a star around the groups' `group` documents.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.local.columns import take
from nddup.local.pairing.collapse import Nodes
from nddup.local.pairing.match import Matches
from nddup.matching.threshold import Threshold
from nddup.tables import PAIRS


class _Rows(NamedTuple):
    """Pairs of documents, given by their places in DOCUMENTS, as columns of equal length."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    overlap: NDArray[np.int32]
    resemblance: NDArray[np.float64]
    of_left: NDArray[np.float64]
    of_right: NDArray[np.float64]
    star: NDArray[np.bool_]
    edit: NDArray[np.float64]
    common: NDArray[np.float64]


class _Equal(NamedTuple):
    """Pairs of documents of one node."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    star: NDArray[np.bool_]


def count_pairs(matches: Matches, nodes: Nodes, *, threshold: Threshold, expand_limit: int) -> int:
    """Count the rows that `expand` will make of the matches and of equal sketches."""
    counts = nodes.equals.astype(np.int64)
    products = counts[matches.first] * counts[matches.second]
    equal = counts[nodes.is_first & (nodes.sizes >= threshold.least_size)]
    within = equal * (equal - 1) // 2
    between = np.where(products <= expand_limit, products, 1)
    return int(between.sum() + np.where(within <= expand_limit, within, equal - 1).sum())


def expand(matches: Matches, nodes: Nodes, *, threshold: Threshold, expand_limit: int) -> pa.Table:
    """Make PAIRS of the matches and of equal sketches.

    A product of two groups (or of one with itself) that would give more than `expand_limit` rows becomes a star: each
    member is paired with its own `group` document, and the two `group` documents with each other.

    Cost: linear in the rows that result.
    """
    counts = nodes.equals.astype(np.int64)
    is_full = counts[matches.first] * counts[matches.second] <= expand_limit
    full, starred = np.flatnonzero(is_full), np.flatnonzero(~is_full)
    bridges = _of_matches(matches, starred, matches.first[starred], matches.second[starred], is_star=True)
    within = (_equal(matches, nodes, equal, threshold) for equal in _within(nodes, bridges, threshold, expand_limit))
    parts = [_product(matches, full, nodes), bridges, *within]
    return _as_pairs(_Rows(*(np.concatenate(column) for column in zip(*parts, strict=True))), nodes)


def _of_matches(
    matches: Matches, rows: NDArray[np.int64], left: NDArray[np.int32], right: NDArray[np.int32], *, is_star: bool
) -> _Rows:
    about = (matches.overlap[rows], matches.resemblance[rows], matches.containments[0, rows])
    edit, common = (_told(one, rows) for one in (matches.edit, matches.common))
    return _Rows(left, right, *about, matches.containments[1, rows], np.full(len(rows), is_star), edit, common)


def _told(column: NDArray[Any] | None, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.full(len(rows), np.nan) if column is None else column[rows].astype(np.float64)


def _product(matches: Matches, full: NDArray[np.int64], nodes: Nodes) -> _Rows:
    """Pair every document of one node with every document of the other."""
    first, second = matches.first[full], matches.second[full]
    of_second = nodes.equals[second].astype(np.int64)
    rows = np.repeat(np.arange(len(full)), nodes.equals[first] * of_second)
    within = np.arange(len(rows)) - np.repeat(_starts(nodes.equals[first] * of_second), nodes.equals[first] * of_second)
    left = nodes.members[nodes.starts[first][rows] + within // of_second[rows]]
    right = nodes.members[nodes.starts[second][rows] + within % of_second[rows]]
    return _of_matches(matches, full[rows], left, right, is_star=False)


def _within(nodes: Nodes, bridges: _Rows, threshold: Threshold, limit: int) -> list[_Equal]:
    """Return the pairs of equal sketches: all of a group, or a star around its `group` document, its smallest id.

    A group may have all its pairs and still be in a star with another group; then the rows of its `group` document are
    marked as rows of a star.
    """
    groups = np.flatnonzero(nodes.is_first & (nodes.equals > 1) & (nodes.sizes >= threshold.least_size))
    counts = nodes.equals[groups].astype(np.int64)
    is_full = counts * (counts - 1) // 2 <= limit
    hubs = np.zeros(len(nodes.node), np.bool_)
    hubs[bridges.left] = hubs[bridges.right] = True

    # Of n members in order of their ids, member i is the left one of n - 1 - i rows.
    full, n = groups[is_full], counts[is_full]
    lefts = np.repeat(nodes.starts[full], n) + _places(n)
    followers = np.repeat(n, n) - 1 - _places(n)
    left = np.repeat(lefts, followers)
    right = left + 1 + _places(followers)
    whole = nodes.members[left], nodes.members[right]
    is_star = hubs[whole[0]] & nodes.is_first[whole[0]]

    star, n = groups[~is_full], counts[~is_full]
    places = np.repeat(nodes.starts[star], n) + _places(n)
    others = nodes.members[places[nodes.members[places] != np.repeat(star, n)]]
    return [_Equal(*whole, is_star), _Equal(nodes.node[others], others, np.ones(len(others), np.bool_))]


def _equal(matches: Matches, nodes: Nodes, equal: _Equal, threshold: Threshold) -> _Rows:
    left = equal.left
    share = np.full(len(left), 1.0 if threshold.shows_containment else np.nan)
    edit = np.full(len(left), np.nan if matches.edit is None else 1.0)
    common = np.full(len(left), np.nan) if matches.common is None else nodes.n_features[left].astype(np.float64)
    return _Rows(left, equal.right, nodes.sizes[left], np.ones(len(left)), share, share, equal.star, edit, common)


def _as_pairs(rows: _Rows, nodes: Nodes) -> pa.Table:
    """Make PAIRS: order the two ids of each row as bytes, and the containments with them."""
    is_turned = nodes.names[rows.left] > nodes.names[rows.right]
    by_name = np.where(is_turned, rows.right, rows.left), np.where(is_turned, rows.left, rows.right)
    columns = [
        *(take(nodes.ids, end) for end in by_name),
        pa.array(rows.overlap.astype(np.int32)),
        pa.array(rows.resemblance),
        pa.array(np.where(is_turned, rows.of_right, rows.of_left), from_pandas=True),
        pa.array(np.where(is_turned, rows.of_left, rows.of_right), from_pandas=True),
        pa.array(rows.star),
        pa.array(rows.edit, from_pandas=True),
        pa.array(rows.common, from_pandas=True).cast(pa.int32()),
        *(pa.array(nodes.n_features[end], mask=np.isnan(rows.common)) for end in by_name),
    ]
    return pa.Table.from_arrays(columns, schema=PAIRS.arrow)


def _starts(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where each of several runs begins."""
    return np.asarray(np.cumsum(counts) - counts)


def _places(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return 0, 1, … for each of several runs, end to end."""
    return np.arange(int(counts.sum())) - np.repeat(_starts(counts), counts)
