"""Count the words of a task's records, for the lexicon. A consumer: found records -> TERMS."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from nddup.reading.formats import FileHead
from nddup.reading.outcomes import Record
from nddup.scanning.found import Batches, Found
from nddup.scanning.rules import TextRule
from nddup.scanning.text_buffers import join_encoded
from nddup.sketching.words.lexicon import LexiconRule, TermCounts
from nddup.table_types import Table
from nddup.working_tables import TERMS

MOST_ROWS = 100_000
"""Rows per batch."""


@dataclass(frozen=True)
class WordCounter:
    """Counts the terms of all records of a task. The engine sums these partial counts by (term, feature).

    A term may be in several rows, because a task with very many distinct words counts in parts. Every readable record
    is counted, even with a repeated id; texts of fewer than `min_tokens` tokens are not.
    """

    words: LexiconRule
    text: TextRule
    min_tokens: int = 0
    table: ClassVar[Table] = TERMS

    def batches(self, found: Iterable[list[Found]], head: FileHead | None) -> Batches:
        """Yield TERMS after everything has been read. Memory: that of `TermCounts`."""
        del head
        counts = TermCounts(self.words, least_tokens=self.min_tokens)
        for some in found:
            texts = [self.text.read_encoded(one.record).text for one in some if isinstance(one.record, Record)]
            counts.add(*join_encoded(texts))

        for part in counts.drain():
            columns = {
                "term": pa.array(part.terms, pa.string()),
                "feature": pa.array(part.ids.view(np.int64)),
                "occurrences": pa.array(part.occurrences),
                "documents": pa.array(part.documents),
            }
            yield from pa.table({name: columns[name] for name in TERMS.names}).to_batches(max_chunksize=MOST_ROWS)
