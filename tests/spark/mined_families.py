"""Clusters of sketches: by definition, and as the stage lists them."""

import hashlib
from fractions import Fraction
from itertools import combinations

from pyspark.sql import DataFrame

from nddup.matching.threshold import Threshold

SIZE = 20
Sketch = tuple[int, ...]
Cluster = tuple[tuple[str, ...], int, str, str]


# The definition, on documents.


def resemblance(a: Sketch, b: Sketch, size: int) -> Fraction:
    """Estimate from MIN_s of the union; two sketches below the size limit are the whole documents."""
    union = sorted({*a, *b})
    if len(a) == size or len(b) == size:
        union = union[:size]
    return Fraction(len(set(union) & set(a) & set(b)), max(len(union), 1))


def is_near(a: Sketch, b: Sketch, threshold: Threshold) -> bool:
    """Return whether two sketches are near-duplicates, by the definition of the measure."""
    common, least = len(set(a) & set(b)), Fraction(threshold.numerator, threshold.denominator)
    if threshold.is_count:
        return common >= least
    if threshold.measure == "overlap":
        return common > 0 and common >= least * max(len(a), len(b))
    return common > 0 and resemblance(a, b, threshold.size) >= least


def alpha(sketch: Sketch, threshold: Threshold) -> int:
    """Return the least overlap that a near-duplicate of this sketch can have."""
    if threshold.is_count:
        return threshold.numerator
    share = Fraction(threshold.numerator, threshold.denominator)
    return next(o for o in range(1, len(sketch) + 1) if Fraction(o, len(sketch)) >= share)


def define(sketches: dict[str, Sketch], threshold: Threshold) -> set[Cluster]:
    """List the maximal sets of documents: members, support, component, coverage.

    The search is Bron and Kerbosch's without pruning: once a condition fails, adding documents cannot restore it.
    """
    names = sorted(name for name, sketch in sketches.items() if sketch)
    needs = {name: alpha(sketches[name], threshold) for name in names}
    near = {(a, b) for a, b in combinations(names, 2) if is_near(sketches[a], sketches[b], threshold)}
    found: set[Cluster] = set()

    def joint(chosen: tuple[str, ...]) -> int:
        return len(frozenset.intersection(*(frozenset(sketches[name]) for name in chosen)))

    def can_join(chosen: tuple[str, ...], name: str) -> bool:
        whole = (*chosen, name)
        return all((min(a, name), max(a, name)) in near for a in chosen) and joint(whole) >= max(
            needs[one] for one in whole
        )

    def search(chosen: tuple[str, ...], after: list[str], before: list[str]) -> None:
        after = [name for name in after if can_join(chosen, name)]
        before = [name for name in before if can_join(chosen, name)]
        if not after and not before and len(chosen) > 1:
            found.add((chosen, joint(chosen), smallest[chosen[0]], "all"))
        for at, name in enumerate(after):
            search((*chosen, name), after[at + 1 :], before + after[:at])

    smallest = dict(zip(names, names, strict=True))
    for _ in names:
        for a, b in near:
            smallest[a] = smallest[b] = min(smallest[a], smallest[b])
    for at, name in enumerate(names):
        search((name,), names[at + 1 :], names[:at])
    return found


def listed(clusters: DataFrame) -> list[Cluster]:
    rows = clusters.collect()
    assert all(row.size == len(row.members) for row in rows)
    assert all(row.cluster_id == name_of(row.members) for row in rows)
    return sorted((tuple(row.members), row.support, row.component, row.coverage) for row in rows)


def name_of(members: list[str]) -> str:
    """Return the id of a cluster: 16 hex digits of SHA-256 over the sorted ids, each followed by a zero byte."""
    return hashlib.sha256(b"".join(member.encode() + b"\0" for member in sorted(members))).hexdigest()[:16]
