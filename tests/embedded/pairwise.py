"""Pairwise covering arrays: few cells that together hold every two values of two axes."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product

Cell = Mapping[str, str]
"""A value of each axis, by the axis name."""


def cover_pairs(axes: Mapping[str, Sequence[str]], is_allowed: Callable[[Cell], bool]) -> list[Cell]:
    """Choose cells so that every two values that occur together in an allowed cell do so in a chosen one.

    Args:
        axes: the values of each axis, by the axis name.
        is_allowed: whether a cell may be chosen.

    Returns:
        The chosen cells, the same every time; empty if no cell is allowed.

    Cost: chosen cells times allowed cells.

    Source:
        The greedy choice of AETG (Cohen, Dalal, Fredman, Patton 1997), with all allowed cells as candidates.

    Example:
        >>> chosen = cover_pairs({"a": "12", "b": "12", "c": "12"}, lambda cell: True)
        >>> ["".join(cell.values()) for cell in chosen]
        ['111', '122', '212', '221']
    """
    cells = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    left = [(cell, pairs_in(cell)) for cell in cells if is_allowed(cell)]
    chosen: list[Cell] = []
    while left:
        best, covered = max(left, key=lambda one: len(one[1]))
        chosen.append(best)
        left = [(cell, pairs - covered) for cell, pairs in left if pairs - covered]
    return chosen


def pairs_in(cell: Cell) -> frozenset[tuple[tuple[str, str], tuple[str, str]]]:
    """Return every two values of a cell, each with its axis."""
    return frozenset(combinations(sorted(cell.items()), 2))
