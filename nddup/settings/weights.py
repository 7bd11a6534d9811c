"""How many times a kept document counts in training, by the number of documents that it stands for."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Schedule = Literal["fineweb2", "log2"]
"""The names of tables."""

SCHEDULES: Mapping[str, Mapping[int, int]] = MappingProxyType({
    "fineweb2": {1: 1, 2: 2, 3: 3, 5: 5, 100: 8, 1000: 1},
    "log2": {2**power: power + 1 for power in range(40)},
})  # fmt: skip
"""Tables by name. `fineweb2` is that by which FineWeb-2 repeats documents (README of huggingface/fineweb-2, 2024): very
large clusters are taken for worse texts. `log2` is 1 + log₂ of the copies, rounded down."""


def require_table(table: Mapping[int, int]) -> None:
    """Refuse a table that does not say how often each document counts.

    Raises:
        ValueError: with what was expected.
    """
    if min(table, default=0) != 1 or min(table.values()) < 0:
        raise ValueError(
            "expected numbers of copies, from 1 on, and how many times from there on, 0 or more, such as"
            " {1: 1, 2: 2, 100: 1}"
        )


def spell_times(weights: Mapping[int, int] | str, copies: str) -> str:
    """Return the times of so many copies in SQL: those of the largest number in the table that is not above.

    Example:
        >>> spell_times({1: 1, 3: 2}, "n")
        'CASE WHEN n >= 3 THEN 2 WHEN n >= 1 THEN 1 END'
    """
    table = SCHEDULES[weights] if isinstance(weights, str) else weights
    cases = (f"WHEN {copies} >= {least} THEN {table[least]}" for least in sorted(table, reverse=True))
    return f"CASE {' '.join(cases)} END"
