"""Rows compared with their number: a set, or a mapping by key, of rows none of which may occur twice.

A set forgets how often a row occurs, so a table that holds each of its rows twice would equal the table that is due.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def once(rows: Iterable[Key]) -> set[Key]:
    """Return the rows as a set; fails if one occurs twice."""
    counts = Counter(rows)
    assert not (twice := {row: count for row, count in counts.items() if count > 1}), f"more than once: {twice}"
    return set(counts)


def once_each(items: Iterable[tuple[Key, Value]]) -> dict[Key, Value]:
    """Return keys with their values as a dictionary; fails if a key occurs twice."""
    rows = list(items)
    once(key for key, _ in rows)
    return dict(rows)
