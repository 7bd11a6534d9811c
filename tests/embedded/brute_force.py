"""Near-duplicates, clusters and the keep-list by their definitions, on Python sets, comparing every two documents."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

from tests.counted_rows import once_each

Row = Mapping[str, Any]
Pair = tuple[str, str]
Sets = dict[frozenset[str], int]
"""Clusters with their support, the number of features that all members share."""


class Rule(NamedTuple):
    """When two documents are near: `estimate` and `size` are the sketch kind's; the threshold is a share.

    The measure `count` is the overlap with a count as its threshold. With `exact`, the resemblance of all shingles
    decides in the end, and sketches that rule it out are not near.
    """

    measure: str
    threshold: Fraction
    estimate: str
    size: int
    exact: Fraction | None = None

    def is_near(self, one: Row, other: Row) -> bool:
        """Return whether two documents that have features are near."""
        return self.measured(one, other) >= self.threshold and self.may_reach(one, other)

    def may_reach(self, one: Row, other: Row) -> bool:
        """Return whether documents with these sketches and numbers of shingles can have the resemblance `exact`."""
        if self.exact is None:
            return True
        few, many = sorted((one["n_features"], other["n_features"]))
        common = len(set(one["sketch"]) & set(other["sketch"]))
        shared = min(common + max(many - self.size, 0), few)  # all that is not in the larger sketch may be common
        return Fraction(shared, few + many - shared) >= self.exact

    def measured(self, one: Row, other: Row) -> Fraction:
        """Return the measure of two documents that have features."""
        first, second = set(one["sketch"]), set(other["sketch"])
        if self.estimate == "levels":  # compare both at the coarser modulus
            level = max(self.level(one), self.level(other))
            first, second = ({value for value in ids if value % 2**level == 0} for ids in (first, second))
        common = len(first & second)
        if not common or self.measure == "count":
            return Fraction(common)
        if self.measure == "overlap":
            return Fraction(common, max(len(first), len(second)))
        if self.measure == "containment":
            return Fraction(common, min(len(first), len(second)))
        if self.estimate == "slots":
            return Fraction(common, self.size)
        if self.estimate == "smallest" and self.size <= max(len(first), len(second)):
            seen = sorted(first | second, key=lambda value: value % 2**64)[: self.size]
            return Fraction(len(first & second & set(seen)), len(seen))
        return Fraction(common, len(first | second))

    def level(self, row: Row) -> int:
        """Return the least i with n / 2**i <= size."""
        return next(level for level in range(64) if row["n_features"] <= self.size << level)

    def alpha(self, row: Row) -> int:
        """Return how many features the members of a cluster with this document must share."""
        if self.measure == "count":
            return int(self.threshold)
        return max(1, -(-self.threshold.numerator * len(row["sketch"]) // self.threshold.denominator))


def find_pairs(documents: Mapping[str, Row], rule: Rule) -> set[Pair]:
    """Return the near-duplicate pairs, the smaller id first."""
    return {
        (a, b)
        for a, b in combinations(sorted(documents), 2)
        if documents[a]["sketch"] and documents[b]["sketch"] and rule.is_near(documents[a], documents[b])
    }  # fmt: skip


def find_components(pairs: Iterable[Pair]) -> set[frozenset[str]]:
    """Return the connected components of the pairs."""
    of: dict[str, frozenset[str]] = {}
    for pair in pairs:
        whole = frozenset(pair).union(*(of.get(name, ()) for name in pair))
        of |= dict.fromkeys(whole, whole)
    return set(of.values())


def find_maximal(documents: Mapping[str, Row], pairs: set[Pair], rule: Rule, *, least: int = 0) -> Sets:
    """Return the maximal sets of near-duplicates that share at least `least` and the largest alpha of their members.

    Any subset of such a set meets both conditions too, so adding one document at a time finds all of them.
    """
    features = {name: frozenset(row["sketch"]) for name, row in documents.items()}
    alpha = {name: rule.alpha(row) for name, row in documents.items()}

    def support(members: frozenset[str]) -> int:
        return len(frozenset.intersection(*(features[name] for name in members)))

    def grown(members: frozenset[str]) -> set[frozenset[str]]:
        """Return the sets with one more document."""
        near = {b if a in members else a for a, b in pairs if (a in members) != (b in members)}
        wider = (members | {name} for name in near if all(tuple(sorted((name, m))) in pairs for m in members))
        return {one for one in wider if support(one) >= max(least, *(alpha[name] for name in one))}

    maximal: Sets = {}
    seen: set[frozenset[str]] = set()
    waiting = [frozenset({name}) for name in {name for pair in pairs for name in pair}]
    while waiting:
        members = waiting.pop()
        wider = grown(members)
        if not wider and len(members) > 1:
            maximal[members] = support(members)
        waiting += wider - seen
        seen |= wider
    return maximal


def require_keep_list(keep: Iterable[Row], pairs: set[Pair]) -> None:
    """Assert that no two kept documents are near, and that each removed one names a kept near-duplicate."""
    of = once_each((row["doc_id"], row["duplicate_of"]) for row in keep)
    kept = {name for name, duplicate_of in of.items() if duplicate_of is None}

    assert not {pair for pair in pairs if kept.issuperset(pair)}
    for name, duplicate_of in of.items():
        assert duplicate_of is None or (duplicate_of in kept and tuple(sorted((name, duplicate_of))) in pairs)
