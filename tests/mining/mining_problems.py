"""Random components as mining problems, with near-duplicate pairs by definition."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from nddup.mining.itemsets import Itemsets, mine_component

Sketch = frozenset[int]
Members = tuple[int, ...]


@dataclass(frozen=True)
class Problem:
    """A component to mine: its sketches, the alpha of each, and its near-duplicate pairs."""

    sketches: tuple[Sketch, ...]
    bounds: tuple[int, ...]
    edges: frozenset[tuple[int, int]]


# The three kinds of near-duplicate pairs, by definition.


def by_count(sketches: Sequence[Sketch], k: int) -> Problem:
    """Make the problem where near-duplicates share k features."""
    return relate(sketches, [k] * len(sketches), lambda a, b: len(a & b) >= k)


def least_overlap(size: int, share: Fraction) -> int:
    """Return the least o >= 1 with o / size >= share."""
    return next(o for o in range(1, size + 2) if Fraction(o, max(size, 1)) >= share)


def by_share(sketches: Sequence[Sketch], share: Fraction) -> Problem:
    """Make the problem where near-duplicates share a part of the larger sketch."""
    bounds = [least_overlap(len(sketch), share) for sketch in sketches]
    return relate(sketches, bounds, lambda a, b: len(a & b) >= share * max(len(a), len(b), 1))


def resemblance(a: Sketch, b: Sketch, size: int) -> Fraction:
    """Estimate from MIN_s of the union; if both sketches are whole documents, the value is exact."""
    union = sorted(a | b)
    if len(a) == size or len(b) == size:
        union = union[:size]
    return Fraction(len(set(union) & a & b), max(len(union), 1))


def by_resemblance(sketches: Sequence[Sketch], threshold: Fraction, size: int) -> Problem:
    """Make the problem where near-duplicates are min-s sketches of high resemblance."""
    smallest = [frozenset(sorted(sketch)[:size]) for sketch in sketches]
    bounds = [least_overlap(len(sketch), threshold) for sketch in smallest]
    return relate(smallest, bounds, lambda a, b: resemblance(a, b, size) >= threshold)


def relate(sketches: Sequence[Sketch], bounds: Iterable[int], is_pair: Callable[[Sketch, Sketch], bool]) -> Problem:
    """Make the problem whose pairs are those that satisfy `is_pair`."""
    pairs = combinations(range(len(sketches)), 2)
    edges = frozenset((a, b) for a, b in pairs if is_pair(sketches[a], sketches[b]))
    return Problem(tuple(sketches), tuple(bounds), edges)


# Problems as arrays, and back.


def as_arrays(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a problem as the arrays of `mine_component`."""
    sizes = [len(sketch) for sketch in problem.sketches]
    return (
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.array([i for sketch in problem.sketches for i in sorted(sketch)], dtype=np.int64),
        np.array(problem.bounds, dtype=np.int32),
        np.array(sorted(problem.edges), dtype=np.int32).reshape(-1, 2),
    )


def as_list(itemsets: Itemsets) -> list[tuple[Members, int]]:
    """Return the sets of a ragged array with their supports, in its order."""
    rows = np.split(itemsets.members, itemsets.offsets[1:-1]) if itemsets.supports.size else []
    return [(tuple(row.tolist()), support) for row, support in zip(rows, itemsets.supports.tolist(), strict=True)]


def mine(problem: Problem, min_support: int = 0, max_sets: int = 10**6) -> Itemsets:
    """Mine with a budget that small problems do not reach."""
    return mine_component(*as_arrays(problem), max_sets=max_sets, max_members=10**8, min_support=min_support)


def perturbed(rng: np.random.Generator, m: int, size: int, *, changed: float, spread: int = 0) -> list[Sketch]:
    """Draw copies of one original whose features are each replaced with probability `changed`."""
    fresh = iter(rng.permutation(10 * m * (size + spread)) + size + spread)
    sketches = []
    for _ in range(m):
        original = rng.permutation(size + spread)[: size + int(rng.integers(-spread, spread + 1))]
        sketches.append(frozenset(int(i) if rng.random() >= changed else int(next(fresh)) for i in original))
    return sketches


def draw_problem(rng: np.random.Generator) -> Problem:
    """Draw a small problem of any kind in which thresholds are often just met or just missed."""
    m, universe = int(rng.integers(2, 9)), int(rng.integers(4, 14))
    density = rng.uniform(0.4, 0.95)
    sketches = [frozenset(np.flatnonzero(rng.random(universe) < density).tolist()) for _ in range(m)]
    threshold = Fraction(int(rng.integers(4, 19)), 20)
    form = rng.integers(3)
    if form == 0:
        return by_count(sketches, int(rng.integers(1, universe)))
    if form == 1:
        return by_share(sketches, threshold)
    return by_resemblance(sketches, threshold, int(rng.integers(3, universe + 1)))
