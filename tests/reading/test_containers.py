"""CSV, Parquet and pages: rows and files as records, with the pitfalls of real ones."""

import csv
import gzip
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.reading.containers import container_head, is_page, read_container
from nddup.reading.formats import FormatError
from nddup.reading.records import Record, Reject

NOTHING = {"id": None, "url": None, "content": None, "charset": None}


def read(
    data: bytes, name: str, compression: str = "", limit: int = 1 << 20, **options: object
) -> list[Record | Reject]:
    """Return the records of a file of this name."""
    expanded = gzip.decompress(data) if compression else data
    head = container_head(expanded[:5000], name, None, {**NOTHING, **options})
    assert head is not None
    raw = io.BytesIO(data)
    return list(read_container(raw, head, source=name, compression=compression, limit=None, max_record=limit))


def outcomes(found: list[Record | Reject]) -> list[str | None]:
    """Return the ids of the records and the reasons of the rejects."""
    return [item.reason if isinstance(item, Reject) else item.doc_id for item in found]


def table(rows: list[list[str]], delimiter: str = ",") -> bytes:
    """Return rows as Python's CSV writer writes them."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode()


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t")])
def test_fields_may_hold_anything(name: str, delimiter: str) -> None:
    """A field may hold quotes, delimiters and line ends; a blank id counts as none; the header shows the delimiter."""
    body = 'one "two"\r\nthree, four; five\tsix'

    found = read(table([["ID", "Title", "Text"], ["007", "T", body], ["", "U", "x"]], delimiter), name)

    assert found == [Record("007", None, ("T", body), None), Record(None, None, ("U", "x"), None)]


def test_rows_of_another_width_are_rejects() -> None:
    """A row of another width is a reject that says what was expected; blank lines are skipped."""
    found = read(b"id,text\n1,a\n\n2\n3,b,c\n4,d\n", "a.csv")

    assert [item.detail if isinstance(item, Reject) else item.doc_id for item in found] == [
        "1",
        "1 field, expected 2",
        "3 fields, expected 2",
        "4",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1251"])
def test_a_table_in_any_encoding(encoding: str) -> None:
    """The encoding of a table is known from its mark, or detected from its bytes."""
    text = "id,text\n1,Съешь же ещё этих мягких французских булок да выпей чаю\n" * 1

    found = read(text.encode(encoding), "a.csv")

    assert [item.fields for item in found if isinstance(item, Record)] == [
        ("Съешь же ещё этих мягких французских булок да выпей чаю",)
    ]


def test_a_field_without_end_does_not_hold_the_file() -> None:
    """A line beyond the limit is one reject, and the next line is read."""
    found = read(b'id,text\n1,a\n2,"' + b"x" * 5000 + b"\n3,b\n", "a.csv", limit=1000)

    assert outcomes(found) == ["1", "too large", "3"]


def test_columns_that_are_not_there_are_named() -> None:
    """The error for a missing column names the columns that are there."""
    with pytest.raises(FormatError, match=r"no column body; there are id, text"):
        read(b"id,text\n1,a\n", "a.csv", content=("body",))
    with pytest.raises(FormatError, match=r"which column is the text; there are a, b; set input.content"):
        read(b"a,b\n1,2\n", "a.csv")


def test_parquet_by_column() -> None:
    """Numbers are read as ids and bytes as content of unknown charset; chosen columns are joined, nulls left out."""
    data = io.BytesIO()
    columns = {"id": [1, 2, 3], "url": ["u", None, "w"], "html": [b"<p>\xcf\xf0", None, b""], "other": ["a", "b", None]}
    pq.write_table(pa.table(columns), data)

    found = read(data.getvalue(), "a.parquet", content=("html", "other"))

    assert found == [
        Record("1", "u", (b"<p>\xcf\xf0", "a"), None),
        Record("2", None, ("b",), None),
        Record("3", "w", (b"",), None),
    ]


def test_a_damaged_parquet_file_is_a_reject() -> None:
    """A Parquet file without its end, which says where its columns are, is one reject."""
    data = io.BytesIO()
    pq.write_table(pa.table({"id": ["1"], "text": ["a"]}), data)

    assert [item.reason for item in read(data.getvalue()[:-20], "a.parquet") if isinstance(item, Reject)] == ["damaged"]


@pytest.mark.parametrize(
    ("name", "data", "url"),
    [
        ("a.example/dir/page.html", b"just text", "http://a.example/dir/page.html"),
        ("dir/noext", b"<!DOCTYPE html><p>x", None),
        ("a.example:8080/q?x=1", b"<!-- c --> <html lang=en>", "http://a.example:8080/q?x=1"),
        ("index.htm", b"", None),
    ],
)
def test_a_page_is_a_record(name: str, data: bytes, url: str | None) -> None:
    """The path of a page is its id, and its URL if it can be that of a mirrored address."""
    assert read(data, name) == [Record(name, url, (data,), is_markup=True)]


def test_a_compressed_page_and_one_that_is_too_long() -> None:
    """A page is expanded like any file, and has the limit of a record."""
    assert read(gzip.compress(b"<html>a"), "a.html.gz", "gzip")[0] == Record(
        "a.html.gz", None, (b"<html>a",), is_markup=True
    )
    assert [item.reason for item in read(b"<html>" + b"x" * 2000, "a.html", limit=100) if isinstance(item, Reject)] == [
        "too large"
    ]


def test_names_that_tell_a_page() -> None:
    """Only a name that ends as that of a page marks one, also in capitals."""
    assert [is_page(name) for name in ("a.html", "a.HTM", "a.xhtml", "a.html.gz", "a.xml", "html")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_a_record_of_warc_is_what_it_begins_as() -> None:
    """A picture or a PDF that a server called a page is no text, whatever its header says."""
    data = b""
    for body in (b"\x89PNG\r\n\x1a\n\0\0", b"%PDF-1.4 text", b"<p>a page"):
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
        start = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: %d\r\n\r\n"
        data += start % len(block) + block + b"\r\n\r\n"
    head = container_head(data, "a.warc", None, {})
    assert head is not None

    found = read_container(io.BytesIO(data), head, source="a", compression="", limit=None, max_record=1 << 20)

    told = [one.detail if isinstance(one, Reject) else one.fields[0] for one in found]
    assert told == ["binary: a PNG image", "binary: a PDF; convert it to text first", b"<p>a page"]
