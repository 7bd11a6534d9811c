"""Helpers for the tests of records: files read whole, heads, and pieces of records."""

import io
from typing import Any

import pytest

from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead
from nddup.reading.records import Record, Reject
from nddup.reading.streams import Expanded
from nddup.scanning.whole_files import read_stream
from tests.places import SHARED

FIXTURES = SHARED / "ruweb" / "fixtures"
needs_shared = pytest.mark.shared


def read_all(data: bytes, head: FileHead | None = None, **settings_: Any) -> list[Record | Reject]:  # noqa: ANN401
    """Read a file from its start, as one task does."""
    head = head or read_head(data[:65_536], **settings_)
    stream = Expanded(io.BytesIO(data), "")
    return [record for record, _ in read_stream(stream, head, len(data))]


def records_of(data: bytes, **settings_: Any) -> list[Record]:  # noqa: ANN401
    results = read_all(data, **settings_)
    assert all(isinstance(result, Record) for result in results), results
    return [result for result in results if isinstance(result, Record)]


HEAD = read_head(b"<r><doc><id>1</id><url>u</url><text>a</text></doc></r>")
PIECES = [
    *(b"<doc>", b"<document>", b"<row Id='1' Body='x'/>", b"<row ", b"<text>", b"</text>"),
    *(b"<text encoding='base64'>", b"<content encoding='base64'>", b"</content>", b"YWJj", b"&", b"&amp;"),
    *(b"&x;", b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<!DOCTYPE r [", b"]>", b"<?", b"?>", b"\xff", b"\0"),
    *(b'{"text":', b'"a"}', b"<", b">", b"'", b"\n"),
]
