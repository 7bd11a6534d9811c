"""From texts to a lexicon: the terms of a collection are counted, and those in an interval of frequencies kept.

    chunks, files, texts  --count_...-->  partial counts, a row a term a task     no shuffle
    partial counts        --sum_terms-->  TERMS                                   1 shuffle, of these rows
    TERMS                 --choose-->     LEXICON                                 no shuffle

A task counts its tokens in one kernel over the Arrow buffers; what leaves it is one row a distinct term. The arithmetic
is in `nddup.sketching.words.lexicon`. Every record that can be read is counted, one of a repeated id too; shorter
ones than `min_tokens` are not.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.reading.formats import FileHead
from nddup.reading.records import Record, read_text
from nddup.sketching.words.lexicon import LexiconRule, TermCounts
from nddup.spark.reading.sketch_scan import Found, Rule, parse_chunks
from nddup.spark.reading.unsplit_files import read_batches
from nddup.spark.schemas import CHUNKS, FILES, LEXICON, TERMS, TEXTS, require

Batches = Iterator[pa.RecordBatch]


def count_chunks(chunks: DataFrame, *, head: FileHead, rule: Rule, lexicon: LexiconRule) -> DataFrame:
    """Partial counts of files that Spark cuts. Schema in: CHUNKS, out: TERMS, a term in several rows. No shuffle."""
    require(chunks, CHUNKS, stage="lexicon")
    return chunks.mapInArrow(partial(_count_chunks, head=head, rule=rule, lexicon=lexicon), TERMS)


def count_files(files: DataFrame, *, head: FileHead, rule: Rule, lexicon: LexiconRule) -> DataFrame:
    """Partial counts of files read from their start. Schema in: FILES, out: TERMS, a term in several rows."""
    require(files, FILES, stage="lexicon")
    return files.mapInArrow(partial(_count_files, head=head, rule=rule, lexicon=lexicon), TERMS)


def count_frame(texts: DataFrame, *, rule: Rule, lexicon: LexiconRule) -> DataFrame:
    """Partial counts of documents whose text is given. Schema in: TEXTS, out: TERMS, a term in several rows."""
    require(texts, TEXTS, stage="lexicon")
    return texts.select("doc_id", "text").mapInArrow(partial(_count_texts, rule=rule, lexicon=lexicon), TERMS)


def sum_terms(counted: DataFrame) -> DataFrame:
    """Each term once.

    Schema in/out:  TERMS
    Shuffles:  one, of a row a term a task.    Actions:  none.
    """
    require(counted, TERMS, stage="lexicon")
    return counted.groupBy("term", "feature").agg(
        F.sum("occurrences").alias("occurrences"), F.sum("documents").alias("documents")
    )


def choose(terms: DataFrame, *, least: int, most: int) -> DataFrame:
    """The terms that occur at least and at most so often. Schema in: TERMS, out: LEXICON. No shuffle."""
    require(terms, TERMS, stage="lexicon")
    return terms.where(F.col("occurrences").between(least, most)).select(*LEXICON.fieldNames())


def _count_chunks(batches: Batches, *, head: FileHead, rule: Rule, lexicon: LexiconRule) -> Batches:
    yield from _count(_texts_of(parse_chunks(batches, head=head, max_record=rule.max_record), rule), rule, lexicon)


def _count_files(batches: Batches, *, head: FileHead, rule: Rule, lexicon: LexiconRule) -> Batches:
    yield from _count(_texts_of(read_batches(batches, head, rule.max_record), rule), rule, lexicon)


def _count_texts(batches: Batches, *, rule: Rule, lexicon: LexiconRule) -> Batches:
    def texts() -> Iterator[list[str]]:
        for batch in batches:
            found = zip(batch.column("doc_id").to_pylist(), batch.column("text").to_pylist(), strict=True)
            records = [Record(doc_id, None, (text,), None) for doc_id, text in found if None not in (doc_id, text)]
            yield [read_text(record, rule.charset, rule.markup, rule.part)[0] for record in records]

    yield from _count(texts(), rule, lexicon)


def _texts_of(parsed: Iterable[list[Found]], rule: Rule) -> Iterator[list[str]]:
    for found in parsed:
        records = [record for _, record, _ in found if isinstance(record, Record)]
        yield [read_text(record, rule.charset, rule.markup, rule.part)[0] for record in records]


def _count(texts: Iterable[list[str]], rule: Rule, lexicon: LexiconRule) -> Batches:
    counts = TermCounts(lexicon, least_tokens=rule.min_tokens)
    for batch in texts:
        array = pa.array(batch, pa.large_string())
        _, offsets, data = array.buffers()
        counts.add(np.frombuffer(data or b"", np.uint8), np.frombuffer(offsets, np.int64)[: len(array) + 1])
    for part in counts.drain():
        columns = {
            "term": pa.array(part.terms, pa.string()),
            "feature": part.ids.view(np.int64),
            "occurrences": part.occurrences,
            "documents": part.documents,
        }
        yield from pa.table(columns).to_batches(max_chunksize=100_000)
