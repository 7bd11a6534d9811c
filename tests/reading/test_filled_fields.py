"""Of several fields with usual names, the first that holds something is read; an empty one never hides another."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.reading.containers import container_head, read_container
from nddup.reading.detect import read_head
from nddup.reading.outcomes import Record
from nddup.reading.records import record_text
from tests.reading.record_files import records_of

Rows = list[dict[str, str]]

EMPTY: Rows = [
    {"docid": "", "_id": "a", "content": "", "description": " ", "text": "one two"},
    {"docid": "", "_id": "b", "content": "", "description": "", "text": "three <four>"},
]
EMPTY_FIRST: Rows = [
    {"id": "a", "content": "", "text": "short"},
    {"id": "b", "content": "the whole", "text": "short"},
]


def lines(rows: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def nulls(rows: Rows) -> str:
    return "\n".join(json.dumps({key: value or None for key, value in row.items()}) for row in rows)


def lists(rows: Rows) -> str:
    return "\n".join(json.dumps({key: value or [{"type": "image"}] for key, value in row.items()}) for row in rows)


def table(rows: Rows) -> str:
    made = io.StringIO(newline="")
    writer = csv.DictWriter(made, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return made.getvalue()


def elements(rows: Rows) -> str:
    records = ("".join(f"<{key}><!-- - -->{escape(value)}</{key}>" for key, value in row.items()) for row in rows)
    return f"<r>{''.join(f'<doc>{record}</doc>' for record in records)}</r>"


def columns(rows: Rows) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table({name: [row[name] for row in rows] for name in rows[0]}), made)
    return made.getvalue()


def null_columns(rows: Rows) -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table({name: [row[name] or None for row in rows] for name in rows[0]}), made)
    return made.getvalue()


WRITERS = {one.__name__: one for one in (lines, nulls, lists, table, elements, columns, null_columns)}


def read(text: str | bytes, *, is_table: bool) -> list[tuple[str | None, str]]:
    """Return the ids and texts of a file."""
    data = text.encode() if isinstance(text, str) else text
    if is_table or isinstance(text, bytes):
        head = container_head(data, "a.csv", None, {})
        assert head is not None
        found = read_container(io.BytesIO(data), head, source="a", compression="", limit=None, max_record=1 << 20)
        records = [one for one in found if isinstance(one, Record)]
    else:
        records = records_of(data)
    return [(one.doc_id, record_text(one, markup="text")) for one in records]


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_an_empty_field_hides_no_other(writer: Callable[[Rows], str | bytes]) -> None:
    """The id and the text come from the fields that hold something, in every format."""
    assert read(writer(EMPTY), is_table=writer is table) == [(row["_id"], row["text"]) for row in EMPTY]


@pytest.mark.parametrize("writer", [lines, table, elements, columns])
def test_a_field_that_is_empty_in_the_first_record_only(writer: Callable[[Rows], str | bytes]) -> None:
    """One that holds something in a later record is read of all; where it is empty, so is the record."""
    found = dict(read(writer(EMPTY_FIRST), is_table=writer is table))

    assert found.get("a", "") == ""
    assert found["b"] == "the whole"


@pytest.mark.parametrize("name", ["text", "content"])
def test_an_empty_text_hides_no_chat(name: str) -> None:
    """Whatever the order of keys; a chat beside a text is not read."""
    chat = [{"role": "user", "content": "one two"}, {"role": "assistant", "content": "three"}]
    empty, full = ({"id": "a", name: text, "messages": chat} for text in ("", "four"))

    for rows, text in (
        ([empty], "one two\nthree"),
        ([full], "four"),
        ([dict(reversed(empty.items()))], "one two\nthree"),
    ):
        made = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), made)

        assert read(lines(rows), is_table=False) == read(made.getvalue(), is_table=True) == [("a", text)]


def test_a_column_of_numbers_in_lists_hides_no_text() -> None:
    """A `content` of Parquet that holds no text is refused only if nothing else does."""
    made = io.BytesIO()
    pq.write_table(pa.table({"id": ["a"], "content": [[1, 2]], "text": ["one"]}), made)

    assert read(made.getvalue(), is_table=True) == [("a", "one")]


def test_an_address_or_id_that_is_a_list() -> None:
    """Its first text counts, as in JSON; what is an object is none, and takes no other part of a file with it."""
    rows = [{"id": {"of": "a"}, "_id": "a", "url": ["u", "v"], "text": "one"}]
    made = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), made)
    found = records_of(lines(rows).encode())
    head = container_head(made.getvalue(), "a", None, {})
    assert head is not None
    of_table = list(read_container(made, head, source="a", compression="", limit=None, max_record=1 << 20))

    assert [(one.doc_id, one.url) for one in of_table if isinstance(one, Record)] == [("a", "u")]
    assert [(one.doc_id, one.url) for one in found] == [("a", "u")]


def test_a_header_that_is_repeated_fills_no_column() -> None:
    """The names of the columns in a table that was appended are no values of theirs."""
    joined = table(EMPTY) + table(EMPTY)

    assert read(joined, is_table=True) == [(row["_id"], row["text"]) for row in EMPTY * 2]


def test_an_id_that_the_first_record_lacks() -> None:
    """Ids of later lines are read, and their addresses; what has a text beside that of the first line is not."""
    rows = [{"text": "one"}, {"text": "two", "id": "b", "content": "-"}, {"text": "three", "id": "c", "url": "u"}]
    data = "\n".join(map(json.dumps, rows)).encode()

    found = [(one.doc_id, one.url, record_text(one)) for one in records_of(data)]

    assert found == [(None, None, "one"), ("b", None, "two"), ("c", "u", "three")]


def test_an_element_without_text_is_no_record() -> None:
    """The record is the element that has a text, also where one above it has an empty field of such a name."""
    data = (
        b"<r><item><description/><page><id>1</id><text>a</text></page><page><id>2</id><text>b</text></page></item></r>"
    )

    assert read_head(data).tag == "page"
    assert [one.doc_id for one in records_of(data)] == ["1", "2"]


def test_the_names_of_articles_of_reuters() -> None:
    """Every file of RCV1 has the same `id`, of its root; its number is `itemid`."""
    (found,) = records_of(b'<newsitem itemid="2286" id="root"><title>T</title><text><p>a</p></text></newsitem>')

    assert found.doc_id == "2286"


def test_texts_with_ids_of_their_own_are_records() -> None:
    """A corpus of `<text id="1">` was one document; texts of a record, or without different ids, are parts of it."""
    texts = '<text id="1">one</text><text id="2"><s>two</s></text>'

    def ids(data: str) -> list[tuple[str | None, str]]:
        return [(one.doc_id, record_text(one)) for one in records_of(data.encode())]

    assert ids(f"<corpus><title>C</title>{texts}</corpus>") == [("1", "one"), ("2", "two")]
    assert ids(f"<corpus><part n='1'>{texts}</part><part n='2'><text id='3'>three</text></part></corpus>") == [
        ("1", "one"),
        ("2", "two"),
        ("3", "three"),
    ]
    assert ids(f"<corpus><id>7</id>{texts}</corpus>") == [("7", "one\ntwo")]
    assert ids(f"<r><doc>{texts}</doc><doc><text>three</text></doc></r>") == [(None, "one\ntwo"), (None, "three")]
    assert ids(f"<corpus>{texts.replace('2', '1')}</corpus>") == [(None, "one\ntwo".replace("2", "1"))]
    assert ids("<corpus><text>one</text><text>two</text></corpus>") == [(None, "one\ntwo")]
