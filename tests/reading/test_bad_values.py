"""One bad value is one reject, in every format: what follows it in the file, or in the batch, is read."""

import gzip
import io
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.reading.containers import container_head, read_container
from nddup.reading.formats import FormatError
from nddup.reading.outcomes import unread_of
from nddup.reading.records import Record, Reject, content_fingerprint
from nddup.scanning.found import SketchRule, TextRule
from nddup.scanning.local_files import read_texts
from nddup.scanning.sketch_records import SketchRecords
from nddup.sketching.recipe import Recipe

ROWS, BAD = 2_000, 700
NOTHING = {"id": None, "url": None, "content": None, "charset": None}
RULE = SketchRule(Recipe(), TextRule())


def read(data: bytes, name: str, *, limit: int = 1 << 20, most: int | None = None) -> list[Record | Reject]:
    """Return the records of a file of this name."""
    head = container_head(data[:5000], name, None, NOTHING | {"quote": '"', "escape": ""})
    assert head is not None
    raw = io.BytesIO(data)
    return list(read_container(raw, head, source=name, compression="", limit=most, max_record=limit))


def outcomes(found: list[Record | Reject]) -> list[str | None]:
    """Return the ids of the records and the reasons of the rejects."""
    return [item.reason if isinstance(item, Reject) else item.doc_id for item in found]


def with_bad(bad: str, at: int = BAD, rows: int = ROWS) -> list[str]:
    """Return the ids of a collection in which one row is a reject."""
    return [*map(str, range(at)), bad, *map(str, range(at + 1, rows))]


def strings(values: list[bytes]) -> pa.Array:
    """Return a column that claims to be UTF-8, whatever its bytes are."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def parquet(columns: dict[str, Any], options: dict[str, Any] | None = None) -> bytes:
    """Return a Parquet file of these columns."""
    data = io.BytesIO()
    pq.write_table(pa.table(columns), data, **(options or {}))
    return data.getvalue()


@pytest.mark.parametrize("place", ["id", "url", "text"])
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "row_group_size": 300}])
def test_a_string_of_parquet_that_is_no_utf_8(place: str, options: dict[str, Any]) -> None:
    """The row of a string that is not UTF-8 is a reject that names column and place; all other rows are read."""
    numbers = [b"%d" % row for row in range(ROWS)]
    columns = {"id": numbers, "url": [b"u"] * ROWS, "text": numbers}
    columns[place] = [*columns[place][:BAD], b"ab\xffcd", *columns[place][BAD + 1 :]]

    found = read(parquet({name: strings(values) for name, values in columns.items()}, options), "a.parquet")

    assert outcomes(found) == with_bad("malformed")
    bad = found[BAD]
    assert isinstance(bad, Reject)
    assert (bad.detail, bad.excerpt) == (
        f"{place}: 'utf-8' codec can't decode byte 0xff in position 2: invalid start byte",
        "ab\ufffdcd",
    )
    assert bad.doc_id == (None if place == "id" else str(BAD))


def test_other_values_of_parquet_as_text() -> None:
    """Numbers, categories and times are read as Arrow writes them; a time of a zone in UTC, known or not."""
    times, zone = [0, None, 2_000_000], pa.timestamp("us", "Nowhere/Town")
    kinds = {"id": [1, 2, 3], "url": pa.array(["a", "b", "a"]).dictionary_encode()}

    found = read(parquet({**kinds, "text": pa.array(times, pa.timestamp("us"))}), "a.parquet")
    of_no_zone = read(parquet({**kinds, "text": pa.array(times, zone)}), "a.parquet")

    assert found[::2] == [
        Record("1", "a", ("1970-01-01 00:00:00.000000",), None),
        Record("3", "a", ("1970-01-01 00:00:02.000000",), None),
    ]
    assert outcomes(found)[1] == "no content"
    assert outcomes(of_no_zone) == ["1", "no content", "3"]
    assert of_no_zone[0] == Record("1", "a", ("1970-01-01 00:00:00.000000Z",), None)


@pytest.mark.parametrize(
    ("columns", "detail"),
    [
        (pa.table([["1"], ["a"], ["b"]], names=["id", "text", "text"]), "2 columns named text"),
        (pa.table({"id": ["1"], "text": [[1]]}), "column text holds list<element: int64>, which is not text"),
    ],
)
def test_columns_that_cannot_be_read_are_one_reject(columns: pa.Table, detail: str) -> None:
    """The file is one reject that says why its columns cannot be read."""
    data = io.BytesIO()
    pq.write_table(columns, data)

    assert read(data.getvalue(), "a.parquet") == [Reject("no records", detail, "")]


def test_a_table_names_each_column_that_is_read_once() -> None:
    """Two columns of one name are refused, of any table: one of two texts would be lost. Others may be named twice."""
    with pytest.raises(FormatError, match="2 columns named text"):
        read(b"id,text,text\n1,a,b\n", "a.csv")
    assert read(b"id,x,text,x\n1,a,b,c\n", "a.csv") == [Record("1", None, ("b",), None)]


def test_marks_of_files_that_were_joined_are_no_part_of_names_and_ids() -> None:
    """A byte order mark stands at the start of each file that is joined: before the header, and before later rows."""
    mark = b"\xef\xbb\xbf"
    found = read(mark + mark + b"id,text\n1,a\n" + mark + b"2,b\n", "a.csv")
    assert found == [Record("1", None, ("a",), None), Record("2", None, ("b",), None)]


def test_a_nested_value_of_the_policy_is_missing() -> None:
    """A list or a map orders no documents: it is missing, as in JSON lines, and its file is read all the same."""
    rows = parquet({"id": ["1"], "text": ["a"], "some": [["x"]], "score": [2.0]})
    head = container_head(rows, "a.parquet", None, {})
    assert head is not None
    head = replace(head, format=replace(head.format, policy=("some", "score")))
    found = read_container(io.BytesIO(rows), head, source="", compression="", limit=None, max_record=1 << 20)
    assert list(found) == [Record("1", None, ("a",), None, policy=(None, "2"))]


def test_a_damaged_page_ends_its_row_group_only() -> None:
    """A damaged page is a reject that counts the rows of its row group; the other row groups are read."""
    ids = [str(row) for row in range(ROWS)]
    data = bytearray(parquet({"id": ids, "text": ids}, {"row_group_size": 500, "use_dictionary": False}))
    start = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(1).data_page_offset
    data[start + 30 : start + 130] = b"\xff" * 100

    found = read(bytes(data), "a.parquet")

    assert outcomes(found) == [*ids[:500], "damaged", *ids[1000:]]
    assert isinstance(found[500], Reject)
    assert found[500].detail.endswith("; row group 2 of 4: 0 of its 500 rows are read; the file has 2,000")


def test_a_quote_that_is_never_closed() -> None:
    """A quote that is never closed spoils its own row only, not all lines to the end of the file."""
    lines = [f"{row},text {row}" for row in range(ROWS)]
    lines[BAD] = f'{BAD},"open'

    found = read("\n".join(["id,text", *lines, ""]).encode(), "a.csv")

    assert outcomes(found) == with_bad("malformed")
    assert found[BAD] == Reject("malformed", "a quote is not closed, or closed inside a field", f'{BAD},"open\n')


def test_a_quote_that_is_closed_by_that_of_a_later_row() -> None:
    """A quote that a later row would close spoils its own row only; the rows between are read."""
    lines = [f"{row}\ttext {row}" for row in range(ROWS)]
    lines[BAD] = f'{BAD}\t"Open'
    lines[BAD + 100] = f'{BAD + 100}\ta "word" in quotes'

    found = read("\n".join(["id\ttext", *lines, ""]).encode(), "a.tsv")

    assert outcomes(found) == with_bad("malformed")


def test_fields_of_several_lines_stay_whole() -> None:
    """A field of several lines stays whole, well quoted or not; only a line that is a row by itself counts as one."""
    data = b'id,text\n1,"one\n2,""two""\nthree"\n4,"four\n and "five"\n6,six\n'

    found = read(data, "a.csv")

    assert found[0] == Record("1", None, ('one\n2,"two"\nthree',), None)
    assert outcomes(found) == ["1", "4", "6"]


def test_bad_quotes_on_every_line_are_read_in_linear_time() -> None:
    """Reading lines again is bounded; beyond the bound, a bad quote skips the lines that it encloses."""
    found = read(b"id,text\n" + b'a"b,"c\n' * 50_000 + b'x","y\n', "a.csv", limit=1 << 30)

    assert len(found) < 200
    assert "lines are skipped" in found[-1].detail if isinstance(found[-1], Reject) else False


def test_bytes_of_a_table_that_cannot_be_decoded_are_counted() -> None:
    """Undecodable bytes of a table become U+FFFD and are counted; a U+FFFD of the file itself is not."""
    found = read(b"id,text\n" + "1,Привет \ufffd мир\n".encode() * 20 + b"2,a\xffb\xfe\n3,c\n", "a.csv")

    assert [item.replaced for item in found if isinstance(item, Record)] == [0] * 20 + [2, 0]
    assert found[20] == Record("2", None, ("a\ufffdb\ufffd",), None, replaced=2, unread=unread_of(b"\xff\xfe"))


def test_a_frame_with_strings_that_are_no_utf_8() -> None:
    """Spark's strings may hold any bytes: a bad id or text is one reject of the batch."""
    ids, texts = ([b"%d" % row for row in range(5)] for _ in range(2))
    ids[1], texts[3] = b"\xff", b"ab\xe9cd"
    columns = {
        "doc_id": strings(ids),
        "url": pa.nulls(5, pa.string()),
        "title": pa.nulls(5, pa.string()),
        "text": strings(texts),
        "turns": pa.nulls(5, pa.string()),
        "source": pa.array(["dataframe"] * 5),
        "split": pa.array([0] * 5),
        "seq": pa.array(range(5)),
        "policy": pa.nulls(5, pa.list_(pa.string())),
    }

    batches = SketchRecords(RULE).batches(read_texts([pa.RecordBatch.from_pydict(columns)]), None)
    rows = pa.Table.from_batches(batches).to_pylist()

    assert [row["reason"] or row["doc_id"] for row in rows] == ["0", "malformed", "2", "malformed", "4"]
    assert [row["detail"][:20] for row in rows if row["reason"]] == ["the id is not UTF-8:", "the text is not UTF-"]
    assert (rows[3]["doc_id"], rows[3]["excerpt"]) == ("3", "ab\ufffdcd")


def test_a_damaged_end_loses_no_row_before_it() -> None:
    """Rows that were waiting to be read again are read before the reject for the rest."""
    data = gzip.compress(b'id,text\n1,a\n2,"open\n3,b\n4,c\n' + b"5,d\n" * 50_000)
    head = container_head(b"id,text\n1,a\n", "a.csv", None, NOTHING)
    assert head is not None

    raw = io.BytesIO(data[:-20])
    found = list(read_container(raw, head, source="a", compression="gzip", limit=None, max_record=1 << 20))

    assert outcomes(found)[:4] == ["1", "malformed", "3", "4"]
    assert outcomes(found)[-1] == "damaged"


def test_rows_that_differ_in_bytes_that_no_encoding_decodes_are_no_equal_contents() -> None:
    """Such bytes become U+FFFD in the text; the fingerprint of the content tells them apart."""
    found = read(b"id,text\n" + "1,Привет мир\n".encode() * 20 + b"2,a\xffb\n3,a\xfeb\n4,a\xffb\n", "a.csv")
    rows = [item for item in found[20:] if isinstance(item, Record)]

    prints = [content_fingerprint(row) for row in rows]

    assert {row.fields for row in rows} == {("a\ufffdb",)}
    assert prints[0] == prints[2] != prints[1]
