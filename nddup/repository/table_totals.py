"""Row counts and digests of a repository's tables, updated by the rows that each version adds and removes.

The digest of a table is free of order: the sum of the BLAKE2b-128 of its rows, modulo 2^128. A sum can be updated: it
is that of the version before, minus the rows of replaced components, plus the rows of new ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.repository.close_components import Closed
from nddup.repository.segments.layout import DIGESTS, RESULTS, table_of
from nddup.tables import LIKENESS

BYTES = 16
MODULUS = 1 << (8 * BYTES)

NULL, FIELD, ITEM = "\x00", "\x1f", "\x1e"
"""What stands for null, separates columns, and separates the items of a list."""

COLUMNS = {
    "documents": ("doc_id", "group"),
    "pairs": ("doc_a", "doc_b", *(column.name for column in LIKENESS), "star"),
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


@dataclass(frozen=True)
class Totals:
    """For each table, the number of rows and the sum of their digests."""

    by_table: Mapping[str, tuple[int, int]]

    def __sub__(self, other: Self) -> "Totals":
        """Subtract the rows of another."""
        return Totals(
            {
                name: (rows - other.by_table[name][0], (digest - other.by_table[name][1]) % MODULUS)
                for name, (rows, digest) in self.by_table.items()
            }
        )

    def added_to(self, before: Mapping[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
        """Return the totals as a commit records them, added to those of the commit before."""
        return {
            name: (
                before.get(name, (0, ""))[0] + rows,
                spell((parse(before[name][1]) if name in before else 0) + digest & MODULUS - 1),
            )
            for name, (rows, digest) in self.by_table.items()
        }


def make_totals(closed: Closed, first: int) -> tuple[Totals, pa.Table]:
    """Return the totals of new components, numbered from `first`, and DIGESTS of those of two documents or more.

    Cost: 1 to 2 µs per row.
    """
    documents = {"documents": closed.documents, "keep": closed.keep}
    sizes = np.bincount(closed.components)
    found: dict[str, tuple[int, int]] = {}
    rows = []
    for name in COLUMNS:
        table, components = (documents[name], closed.components) if name in documents else closed.results[name]
        digests = row_digests(table, name)
        found[name] = len(digests), total(digests)
        for component, (count, digest) in totals_by(digests, components).items():
            if sizes[component] > 1:
                rows.append((component + first, name, count, digest.to_bytes(BYTES, "little")))
    return Totals(found), table_of(DIGESTS, rows)


def replaced_totals(stored: pa.Table, old: pa.Table) -> Totals:
    """Return the totals of stored components; those of one document are computed from its row in STATE.

    Args:
        stored: DIGESTS of the components.
        old: STATE of their documents, each with its `doc_id`.
    """
    found = dict.fromkeys(COLUMNS, (0, 0))
    for name, count, digest in zip(*(stored[column].to_pylist() for column in DIGESTS.names[1:]), strict=True):
        rows, before = found[name]
        found[name] = rows + count, (before + int.from_bytes(digest, "little")) % MODULUS

    of_document = old["component_key"].to_numpy()
    known, counts = np.unique(of_document, return_counts=True)
    alone = old.filter(pa.array(np.isin(of_document, known[counts == 1])))
    for name in ("documents", "keep"):
        digests = row_digests(alone, name)
        rows, before = found[name]
        found[name] = rows + len(digests), (before + total(digests)) % MODULUS
    return Totals(found)


def tables_totals(tables: Mapping[str, pa.Table]) -> dict[str, tuple[int, str]]:
    """Return the number of rows and the digest of each table of a run."""
    return {name: digest_table(tables[name], name) for name in COLUMNS}


assert set(RESULTS) < set(COLUMNS)  # noqa: S101 - each result is digested
