"""A consumer of found records: READ_ITEMS, the texts of B."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from nddup.against.against_tables import READ_ITEMS
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Reject
from nddup.scanning.found import Batches, Found
from nddup.scanning.rules import TextRule
from nddup.table_types import TYPES, Table


@dataclass(frozen=True)
class ReadItems:
    """Makes one row per record: a document with its text, or a reject with its reason."""

    rule: TextRule
    table: ClassVar[Table] = READ_ITEMS

    def batches(self, found: Iterable[list[Found]], head: FileHead | None) -> Batches:
        """Yield READ_ITEMS, one batch per list of records."""
        del head
        for some in found:
            rows = [self._row_of(one) for one in some]
            kinds = [TYPES[column.type] for column in READ_ITEMS.columns]
            yield READ_ITEMS.batch(
                [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
            )

    def _row_of(self, one: Found) -> tuple[object, ...]:
        place, record = (one.source, one.split, one.seq), one.record
        if isinstance(record, Reject):
            return (*place, record.doc_id, record.reason, record.detail, record.excerpt, "")
        return (*place, record.doc_id, None, "", "", self.rule.read(record).text)
