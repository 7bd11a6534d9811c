"""Patterns and scanners over untrusted bytes take linear time, whatever repeats, and raise no unexpected error.

`python -m bench fuzz` repeats the fragments of every reader; this module has the worst of each family of patterns.
"""

import io
import re
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.fuzz_samples import WARC
from bench.fuzz_values import TREC, allowed, seconds, warm_up
from nddup.errors import reason_of
from nddup.ground.shown import parse_size
from nddup.reading.charsets import _without_comments, declared_charset
from nddup.reading.containers import container_head, read_container
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS, FileHead, FormatError, _split_outside_brackets
from nddup.reading.markup import strip_markup
from nddup.reading.outcomes import Record, Reject
from nddup.reading.page_limits import MAX_ATTRIBUTES, MAX_OPTIONS, most_attributes
from nddup.reading.records import parse_record, record_text
from nddup.reading.reference_lists import LayoutError, guess_layout, lines_of, read_lines
from nddup.scanning.input_files import BESIDE

SIZE = 400_000
"""Bytes of a case: linear work on them takes a tenth of a second, quadratic work many seconds."""

PAGE_HEAD = b"<!-- a -->\n"
ARC = b"filedesc://a 0.0.0.0 20200101000000 text/plain 0\n"


def read_as(kind: str, data: bytes) -> list[Record | Reject]:
    """Return the records of a container in memory."""
    head = FileHead(FORMATS[kind], "utf-8", b",")
    return list(read_container(io.BytesIO(data), head, source="a/b", compression="", limit=None, max_record=SIZE))


def times(fragment: bytes, size: int = SIZE) -> bytes:
    """Repeat a fragment up to `size` bytes."""
    return fragment * (size // len(fragment))


def spellings(word: bytes) -> list[bytes]:
    """Return a word with each choice of large and small letters."""
    return [bytes(letters) for letters in product(*zip(word.lower(), word.upper(), strict=True))]


def join_lines(data: bytes) -> object:
    """Return the lines of a stream that gives five bytes at a time."""
    return list(lines_of(data[at : at + 5] for at in range(0, len(data), 5)))


def text(data: bytes) -> str:
    """Return bytes as text, one character each."""
    return data.decode("latin-1")


FAMILIES: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "comments before a root": (lambda data: container_head(data, "a", None, {}), PAGE_HEAD * 30 + b"<r>"),
    "many comments before a root": (lambda data: container_head(data, "a", None, {}), times(b"<!---->")),
    "blanks before a root": (lambda data: container_head(data, "a", None, {}), times(b" ")),
    "blanks in a doctype": (lambda data: container_head(data, "a", None, {}), b"<!doctype" + times(b" ")),
    "blanks behind charset=": (declared_charset, b"<meta " * 80 + b"charset=" + b" " * 3_500 + b"!"),
    "open comments before <meta": (declared_charset, b"charset" + times(b"<!--", 4_000)),
    "namespaces around every record": (
        lambda data: [parse_record(chunk, head, is_last=False) for head in [read_head(data)]
                      for chunk in data.split(head.separator)],
        b"<r " + b" ".join(b"xmlns:p%d='u'" % i for i in range(SIZE // 40)) + b">"
        + b"".join(b"<doc><id>%d</id><p5:text>a</p5:text></doc>" % i for i in range(SIZE // 80)) + b"</r>",
    ),
    "arrays in one object": (read_head, b"{" + times(b'"data": [{}], ') + b'"x": 1}'),
    "arrays under many spellings of a key": (
        read_head, b"{" + b"".join(b'"%s": [{}], ' % spelling for spelling in spellings(b"documents")) * 20 + b'"x": 1}'
    ),
    "arrays in objects in one object": (read_head, b"{" + times(b'"response": {"docs": [{}]}, ') + b'"x": 1}'),
    "blanks behind encoding": (read_head, b"<?xml encoding" + times(b" ", 1_000) + b"<r>"),
    "starts of WARC records": (lambda data: read_as("warc", data), times(b"\nWARC/")),
    "headers of WARC without returns": (
        lambda data: read_as("warc", data), times(b"WARC/1.0\nContent-Length:0\n\n", 4 * SIZE)
    ),
    "blanks in a WARC header": (
        lambda data: read_as("warc", data), b"WARC/1.0\r\nContent-Length: 1" + times(b"\t") + b"x\r\n\r\n"
    ),
    "digits in a WARC header": (
        lambda data: read_as("warc", data), b"WARC/1.0\r\nContent-Length: " + times(b"1") + b"\r\n\r\n"
    ),
    "line ends after an ARC header": (lambda data: read_as("warc", data), ARC + times(b"\n", 4 * SIZE)),
    "lines of an ARC file": (lambda data: read_as("warc", data), ARC + times(b"a b 20200101000000 c x\n", 4 * SIZE)),
    "blanks in a line of an ARC file": (lambda data: read_as("warc", data), ARC + times(b" 20200101000000 ", 4 * SIZE)),
    "records of an ARC file": (lambda data: read_as("warc", data), ARC + times(b"http:/ 1 20200101000000 a/b 0\n\n")),
    "a line in small pieces": (join_lines, times(b"a", 4 * SIZE)),
    "titles in texts of TREC": (
        lambda data: parse_record(b"<DOC>" + data, TREC, is_last=False),
        times(b"<TEXT></TEXT>", SIZE // 2) + times(b"<TITLE></TITLE>", SIZE // 2),
    ),
    "attributes of a tag": (strip_markup, b"<p " + b" ".join(b"a%d" % i for i in range(SIZE // 7)) + b">"),
    "attributes behind a comment": (
        strip_markup, b'<!-- <p a=" --><p ' + b" ".join(b"a%d" % i for i in range(SIZE // 7)) + b">"
    ),
    "attributes of many bodies": (strip_markup, b"".join(b"<body a%d>" % i for i in range(SIZE // 14))),
    "items of a page": (strip_markup, b"<div>" * 900 + times(b"<li>")),
    "links of a page": (strip_markup, b"<div>" * 900 + times(b"<a>x</a>")),
    "signs of a page": (strip_markup, times(b"<")),
    "scripts of a page": (strip_markup, times(b"<script></scripx")),
    "cells of a drawing": (strip_markup, b"<svg>" + times(b"<td>", SIZE // 2) + times(b"</x>", SIZE // 2)),
    "images of a formula": (strip_markup, b"<math>" + times(b"<link>", SIZE // 2) + times(b"</x>", SIZE // 2)),
    "elements closed as others": (strip_markup, times(b"<div></x>", SIZE // 2) + times(b"<li>", SIZE // 2)),
    "elements closed in comments": (
        strip_markup, times(b"<div><!--</div>-->", SIZE // 2) + times(b"</h1>", SIZE // 2)
    ),
    "elements closed in attributes": (
        strip_markup, times(b"<div a='</div>'>", SIZE // 2) + times(b"</h1>", SIZE // 2)
    ),
    "elements closed in styles": (
        strip_markup, times(b"<div><style></div></style>", SIZE // 2) + times(b"</h1>", SIZE // 2)
    ),
    "elements closed behind a scope": (
        strip_markup, (b"<div>" * 900 + b"<marquee>" + b"</div>" * 900) * (SIZE // 10_000)
    ),
    "formatting closed as another": (
        strip_markup, b"".join(b"<b a=%d></i>" % i for i in range(SIZE // 30)) + times(b"<p>x", SIZE // 2)
    ),
    "text between cells": (strip_markup, b"<table><tr>" + times(b"x<td>y</td>", 2 * SIZE)),
    "text between fields of a table": (strip_markup, b"<table>" + times(b"x<input type=hidden>", 2 * SIZE)),
    "options": (strip_markup, b"<select>" + times(b"<option>x")),
    "slashes of a path": (lambda data: read_head(b"<r><doc><text>", content=text(data)), times(b"/")),
    "bars of a field": (lambda data: read_head(b"<r><doc><text>", content=text(data)), times(b"|")),
    "brackets of a field": (lambda data: read_head(b"<r><doc><text>", content=text(data)), b"html(" + times(b"()")),
    "blanks of a size": (lambda data: parse_size(text(data)), b"1" + times(b" ") + b"x"),
    "digits of a size": (lambda data: parse_size(text(data)), times(b"1")),
    "names of files": (lambda data: BESIDE.fullmatch(text(data)), times(b".sha1") + b"!"),
    "words of an error": (
        lambda data: reason_of(RuntimeError(text(data))), times(b"Encountered error while reading file x.")
    ),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    warm_up()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_worst_of_each_family_is_linear(family: str) -> None:
    """Each reader stays within a limit of ten times its time; quadratic work would take ten times the limit."""
    read, data = FAMILIES[family]

    def work() -> None:
        try:
            read(data)
        except ValueError:  # a FormatError, or of a setting
            return

    assert seconds(work, allowed(len(data))) < allowed(len(data))


@pytest.mark.parametrize(
    "data", [b"<?xml?>\n<!-- a --> <!DOCTYPE html>", b" <!----><html lang=a>", b"<HTML>", b"<?XML ?><html "]
)
def test_a_page_begins_with_its_root(data: bytes) -> None:
    """A page is known by its root after blanks, a declaration and comments."""
    head = container_head(data, "a", None, {})

    assert head is not None
    assert head.format.name == "html"


@pytest.mark.parametrize(
    "data", [b"<!-- <html>", b"<!-- a --> <r> b <html>", b"<htmlx>", b"<?xml <html>", b"<r><html>", b""]
)
def test_another_root_is_no_page(data: bytes) -> None:
    """A file is not a page if its root is another, or if it begins with text or a comment that does not end."""
    assert container_head(data, "a", None, {}) is None


@given(st.lists(st.sampled_from([b"<!--", b"-->", b"-", b">", b"<", b"a", b"\n"])).map(b"".join))
def test_comments_are_left_out_as_a_pattern_would(head: bytes) -> None:
    """The scanner removes what the pattern `<!--.*?-->` matches."""
    assert _without_comments(head) == re.sub(rb"<!--.*?-->", b"", head, flags=re.DOTALL)


@given(st.text("/|[]a", max_size=30))
def test_paths_are_split_as_a_pattern_would(path: str) -> None:
    """The scanner splits where the pattern `/(?![^[]*])` does."""
    assert _split_outside_brackets(path, "/") == re.split(r"/(?![^\[]*\])", path)


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\xff", b"bc"])).map(b"".join), st.integers(1, 5))
def test_lines_do_not_depend_on_pieces(data: bytes, size: int) -> None:
    """Lines are the same wherever the stream is cut."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]

    assert list(lines_of(pieces)) == list(lines_of([data]))


@pytest.mark.parametrize(
    ("page", "most"),
    [
        (b"<p a b=1 c='x y' d=\"q > r\" e/f>x y z ", 6),
        (b"<p>a b <b >c d < e ", 0),
        (b"a=1 b=2 ", 0),
        (b'<!-- <p a=" --><b a b c> ', 3),
        (b"<p <a <b> ", 2),
        (b"<p a = b = c ", 3),
    ],
)
def test_attributes_are_counted_in_what_may_be_a_tag(page: bytes, most: int) -> None:
    """Quotation marks only enclose values, and a comment does not hide the tag after it."""
    assert most_attributes(np.frombuffer(page, np.uint8)) == most


def test_a_page_beyond_the_bounds_gives_the_same_words() -> None:
    """A page beyond the bounds is read flat, without what is not text."""
    attributes = b" ".join(b"a%d=b" % i for i in range(MAX_ATTRIBUTES + 1))

    assert strip_markup(b"<p %s>one<br>two" % attributes).split() == ["one", "two"]
    assert strip_markup(b"<select>" + b"<option>x" * (MAX_OPTIONS + 1)).split() == ["x"] * (MAX_OPTIONS + 1)


@pytest.mark.parametrize(
    ("reference", "character"),
    [
        (b"&#" + b"9" * 5_000 + b";", "\ufffd"),
        (b"&#" + b"0" * 5_000 + b"65;", "A"),
        (b"&#00000000", "\ufffd"),
        (b"&#65", "A"),
    ],
    ids=["too large", "zeros", "zero", "short"],
)
def test_numbers_of_any_length_in_a_deep_page(reference: bytes, character: str) -> None:
    """Python refuses to read a number of more than 4,300 digits; a page may hold one."""
    assert strip_markup(b"<b>" * 2_000 + reference).strip() == character


@pytest.mark.parametrize(
    ("line", "members", "score"),
    [
        ("[" * 100_000, None, None),
        ('{"id_a": "a", "id_b": "b", "score": %s}' % ("9" * 400), ["a", "b"], None),
        ('{"id_a": "a", "id_b": "\\ud800", "score": 1}', ["a", "\ufffd"], 1.0),
        ('{"id_a": "a", "id_b": "b", "score": NaN}', ["a", "b"], None),
    ],
    ids=["deep", "large score", "half a character", "no number"],
)
def test_lines_of_json_lists(line: str, members: list[str] | None, score: float | None) -> None:
    """Values that JSON can spell and a table cannot hold are None, or replaced by U+FFFD."""
    layout = guess_layout(['{"id_a": "a", "id_b": "b", "score": 1}'])

    assert read_lines([line], layout) == ([members], [score])


def test_lists_whose_first_lines_are_odd() -> None:
    """Odd first lines are read or refused: a deep array, a long quoted field, a return inside, a header alone."""
    with pytest.raises(LayoutError, match="looks like JSON"):
        guess_layout(["[" * 100_000])
    with pytest.raises(LayoutError, match="no column"):
        guess_layout(["a,b,1", "c,d,2"], score="\u00b2")

    assert guess_layout(['"%s",b' % ("a" * 200_000)]).kind == "pairs"
    assert guess_layout(['"a"\r"b,c",b', "1,2"]).delimiter == "comma"
    assert guess_layout(["id_a,id_b"], header=True).kind == "pairs"


def test_a_table_whose_lines_end_in_returns() -> None:
    """A table may end its lines in returns, as in the reader of rows; blank lines before the header are skipped."""
    head = container_head(b"\r\n\rid;text\r1;a\r", "a.csv", None, {})

    assert head is not None
    assert (head.format.id, head.format.content, head.separator) == ("id", ("text",), b";")
    with pytest.raises(FormatError, match="not a row of a table"):
        container_head(b"id," + b"a" * 200_000, "a.csv", None, {})


def test_lengths_and_ends_of_warc_headers() -> None:
    """A length of too many digits is malformed; a header ends at its blank line or where a record starts."""
    long = WARC.replace(b"Content-Length: 76", b"Content-Length: " + b"7" * 5_000)
    first, *_ = read_as("warc", long)
    lost, *found = read_as("warc", b"WARC/1.0\r\nContent-Length: 1\r\n" + WARC)

    assert isinstance(first, Reject)
    assert first.reason == "malformed"
    assert isinstance(lost, Reject)
    assert lost.reason == "malformed"
    assert [record_text(record).strip() for record in found if isinstance(record, Record)] == ["a ПР", "abcd"]


def test_a_record_named_like_a_pattern() -> None:
    """The end tag of a file that is not XML is searched for as it is spelled."""
    head = read_head(b"<a(b>x<TEXT>y</TEXT></a(b>", format="trec", record="a(b")

    assert head.separator == b"</a(b>"
