"""Order-free digest of a table: the sum of the BLAKE2b-128 of its rows, modulo 2^128.

A sum can be updated: the digest of a table is that of the version before, minus the rows of replaced components, plus
the rows of new ones.
"""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

BYTES = 16
MODULUS = 1 << (8 * BYTES)

NULL, FIELD, ITEM = "\x00", "\x1f", "\x1e"
"""What stands for null, separates columns, and separates the items of a list."""

COLUMNS = {
    "documents": ("doc_id", "group"),
    "pairs": ("doc_a", "doc_b", "overlap", "resemblance", "containment_a", "containment_b", "star"),
    "clusters": ("cluster_id", "support", "size", "members", "component", "coverage"),
    "members": ("cluster_id", "doc_id", "representative"),
    "keep": ("doc_id", "kept", "duplicate_of", "reason"),
    "false_components": ("component", "size", "pairs", "invented", "exact"),
}
"""The columns of each table that a repository promises to keep equal to a fresh run; these are digested."""


def row_digests(table: pa.Table, name: str) -> list[int]:
    """Return the digest of each row, as a number. Cost: 1 to 2 µs per row."""
    texts = [_spell(table[column]) for column in COLUMNS[name]]
    rows = pc.binary_join_element_wise(*texts, pa.scalar(FIELD, pa.large_string())) if len(texts) > 1 else texts[0]
    return [int.from_bytes(blake2b(row.encode(), digest_size=BYTES).digest(), "little") for row in rows.to_pylist()]


def _spell(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_list(column.type):
        column = pc.binary_join(column.cast(pa.list_(pa.string())), ITEM)
    return pc.fill_null(column.cast(pa.large_string()), NULL)


def total(digests: Iterable[int]) -> int:
    """Return the digest of a set of rows, the sum of theirs."""
    return sum(digests) % MODULUS


def digest_table(table: pa.Table, name: str) -> tuple[int, str]:
    """Return the number of rows of a table, and their digest as hex."""
    return len(table), spell(total(row_digests(table, name)))


def totals_by(digests: list[int], groups: NDArray[np.int64]) -> dict[int, tuple[int, int]]:
    """Return the number of rows and the digest of each group of rows."""
    found: dict[int, tuple[int, int]] = {}
    for digest, group in zip(digests, groups.tolist(), strict=True):
        rows, before = found.get(group, (0, 0))
        found[group] = rows + 1, (before + digest) % MODULUS
    return found


def spell(number: int) -> str:
    """Spell a digest as 32 hex digits."""
    return number.to_bytes(BYTES, "little").hex()


def parse(text: str) -> int:
    """Parse a digest that `spell` wrote."""
    return int.from_bytes(bytes.fromhex(text), "little")
