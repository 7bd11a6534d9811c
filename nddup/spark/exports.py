"""What is written for other programs: the kept documents as ROMIP XML, and the inverted table of the sketches.

kept       --as_xml-->           lines    each partition a file that is whole XML
documents  --invert_sketches-->  lines    `context.fimi`: one feature a line, the `doc_key`s that hold it
"""

import base64
import codecs
import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import DOCUMENTS, require

Batches = Iterator[pa.RecordBatch]

FIRST = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<romip:dataset xmlns:romip="http://www.romip.ru/data/common"><collection>nddup</collection>'
)
LAST = "</romip:dataset>"
NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold; in an id or an address they become U+FFFD."""


def as_xml(kept: DataFrame) -> DataFrame:
    """Documents as ROMIP XML, written one partition a file; a partition without documents gives no line.

    The content is base64 of UTF-8 with a byte order mark, which wins over whatever charset its markup declares.

    Schema in:   doc_id string, url string, content string, …
    Schema out:  value string: a line each of prolog, documents, and end
    Shuffles:  none.    Actions:  none.
    """
    return kept.select("doc_id", "url", "content").mapInArrow(_xml_lines, "value string")


def invert_sketches(documents: DataFrame) -> DataFrame:
    """The inverted table, in the form frequent-itemset programs read: an item is a `doc_key`, a line is a feature.

    Schema in:   DOCUMENTS
    Schema out:  value string: keys ascending, blanks between; lines in the order of the features as signed numbers
    Shuffles:  every feature of every sketch once, and the lines once, for their order.    Actions:  none.
    """
    require(documents, DOCUMENTS, stage="output")
    postings = documents.select("doc_key", F.explode("sketch").alias("feature"))
    holders = postings.groupBy("feature").agg(F.sort_array(F.collect_list("doc_key")).alias("holders"))
    return holders.orderBy("feature").select(F.array_join(F.col("holders").cast("array<string>"), " ").alias("value"))


def _xml_lines(batches: Batches) -> Batches:
    has_any = False
    for batch in batches:
        rows = zip(*(batch.column(name).to_pylist() for name in ("doc_id", "url", "content")), strict=True)
        lines = [_document(doc_id, url, content) for doc_id, url, content in rows]
        if lines:
            yield _values(lines if has_any else [FIRST, *lines])
            has_any = True
    if has_any:
        yield _values([LAST])


def _document(doc_id: str, url: str | None, content: str) -> str:
    data = base64.b64encode(codecs.BOM_UTF8 + content.encode()).decode()
    address = "" if url is None else f"<docURL>{_text(url)}</docURL>"
    return f'<document><docID>{_text(doc_id)}</docID>{address}<content encoding="base64">{data}</content></document>'


def _text(value: str) -> str:
    return escape(NO_XML.sub("\ufffd", value))


def _values(lines: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(lines, pa.string())})
