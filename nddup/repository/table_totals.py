"""Row counts and digests of a repository's tables, updated by the rows that each version adds and removes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from nddup.repository.close_components import Closed
from nddup.repository.row_digests import (
    BYTES,
    COLUMNS,
    MODULUS,
    digest_table,
    parse,
    row_digests,
    spell,
    total,
    totals_by,
)
from nddup.repository.segments.layout import DIGESTS, RESULTS, table_of


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
