"""What is known of each record that a run writes again, on either engine.

    documents, rejects, keep, members, families --judge_records-->  VERDICTS  for `kept` and `tagged` as they came
    keep, families                              --choose_kept-->    CHOSEN    for `kept` in another form

Both have the columns of `output.columns` and `output.weights`, null for what is not kept. In another form, `KeptFiles`
says which document is in which file.
"""

from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from nddup.engines.engine import Engine, EngineTable
from nddup.scanning.collection import Collection
from nddup.settings.plan import kept_columns
from nddup.settings.schema import Config
from nddup.tables import CHOSEN, VERDICTS, Table
from nddup.tables.declared import TYPES, Column

JUDGED = """
    WITH told AS (
        SELECT doc_id, kept, duplicate_of, CASE WHEN kept THEN doc_id ELSE duplicate_of END AS target FROM keep
    ),
    copies AS (SELECT target, count(*) AS n FROM told GROUP BY target),
    smallest AS (SELECT doc_id, min(cluster_id) AS cluster_id FROM members GROUP BY doc_id)
    SELECT d.source, d.record, t.kept AS nddup_kept, t.duplicate_of AS nddup_duplicate_of,
           s.cluster_id AS nddup_cluster, CASE WHEN t.kept THEN c.n END AS nddup_copies, CAST(NULL AS STRING) AS reason
           {columns}
    FROM documents AS d JOIN told AS t ON d.doc_id = t.doc_id
    LEFT JOIN copies AS c ON t.target = c.target LEFT JOIN smallest AS s ON t.target = s.doc_id {families}
    UNION ALL
    SELECT source, record, NULL, NULL, NULL, NULL, reason{none} FROM rejects
"""
"""The cluster is that of the kept document; one that is forced out, and like no kept one, has none."""

KEPT = """
    WITH copies AS (
        SELECT coalesce(duplicate_of, doc_id) AS target, count(*) AS n FROM keep GROUP BY coalesce(duplicate_of, doc_id)
    )
    SELECT t.doc_id{columns} FROM keep AS t JOIN copies AS c ON t.doc_id = c.target {families} WHERE t.kept
"""

FILE_BYTES = 1 << 28
"""Bytes of the inputs, as they are stored, whose kept documents are one file of `kept`."""


class KeptFiles(NamedTuple):
    """The files of `kept` in a form other than that of the inputs, the same on both engines.

    Each holds the kept documents of as many consecutive records, by `doc_key`. The first is there even if it has none.

    Attributes:
        records: of each file; the last has those that are left.
        files: their greatest number.
    """

    records: int
    files: int
    form: str

    @classmethod
    def of(cls, source: Collection, n_records: int, form: str) -> "KeptFiles":
        """Return them for a collection with so many records, documents and rejects."""
        files = max(1, -(-sum(file.size for file in source.listing.files) // FILE_BYTES))
        return cls(max(1, -(-n_records // files)), files, form)

    @property
    def is_table(self) -> bool:
        """Whether they are Parquet, by Zstandard, rather than lines of text."""
        return self.form in ("parquet", "delta")

    def name(self, number: int) -> str:
        """Return the name of a file; numbers begin at 0."""
        return f"part-{number:05}.{'zstd.parquet' if self.is_table else self.form}"


FAMILIES = "LEFT JOIN families AS f ON t.doc_id = f.doc_id"


def added_fields(config: Config) -> pa.Schema:
    """Return the columns that kept records get."""
    return pa.schema({name: TYPES[kind] for name, (kind, _) in kept_columns(config).items()})


def with_added(table: Table, config: Config) -> Table:
    """Return VERDICTS or CHOSEN with these columns."""
    added = (Column(name, kind) for name, (kind, _) in kept_columns(config).items() if name not in table.names)
    return replace(table, columns=(*table.columns, *added))


def judge_records(engine: Engine, config: Config) -> EngineTable:
    """Return VERDICTS, with what kept records get.

    Args:
        engine: with `documents`, `rejects`, `keep`, `members`, and `families` if there is one.

    Cost: joins of narrow rows on the id.
    """
    return engine.answer(_spell(JUDGED, VERDICTS, config))


def choose_kept(engine: Engine, config: Config) -> EngineTable:
    """Return CHOSEN, with what kept records get.

    Args:
        engine: with `keep`, and `families` if there is one.

    Cost: a join of narrow rows on the id.
    """
    return engine.answer(_spell(KEPT, CHOSEN, config))


def _spell(query: str, table: Table, config: Config) -> str:
    values = {name: value for name, (_, value) in kept_columns(config).items() if name not in table.names}
    columns = "".join(f", CASE WHEN t.kept THEN {value} END AS {name}" for name, value in values.items())
    families = FAMILIES if config.keep.ledger is not None else ""
    return query.format(columns=columns, families=families, none=", NULL" * len(values))
