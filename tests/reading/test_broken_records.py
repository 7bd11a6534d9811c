"""Chunks that are not a whole record: each is a reject that says why, or nothing."""

from dataclasses import replace
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead
from nddup.reading.records import Record, Reject, content_fingerprint, parse_record, record_text
from tests.reading.record_files import HEAD, PIECES, read_all, records_of


def test_chunks_without_record() -> None:
    """The tail, blanks, and a prolog cut by an end tag inside a comment are neither records nor rejects."""
    for chunk in (
        b"",
        b" \n",
        b"\n</r>\n",
        b"<?xml version='1.0'?><r>",
        b"<!-- <doc>",
        b"<document>",
        b"</r><!-- x -->",
    ):
        assert parse_record(chunk, HEAD, is_last=True) is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<id>1</id><text>a</text>", None),
        ("<id>1</id><text>a</text><url>u</url>\n", None),
        ("<id>1</id><text>a</text><url>u", "truncated"),
        ("<id>1</id><text>a</tex", "truncated"),
        ("<id>1</id><text>a &", "truncated"),
        ("<id>1</id>", "truncated"),
        ("", "truncated"),
    ],
)
def test_the_end_of_the_file_is_the_end_tag_or_a_cut(body: str, reason: str | None) -> None:
    """A last chunk that lacks only its end tag is a record; one that lacks more is truncated."""
    chunk = f"<doc>{body}".encode()

    result = parse_record(chunk, HEAD, is_last=True)

    assert getattr(result, "reason", None) == reason
    if isinstance(result, Reject):
        assert "ends inside this record" in result.detail
        assert result.excerpt == chunk.decode()
    else:
        assert result == parse_record(chunk, HEAD, is_last=False)


def test_a_title_alone_is_not_the_content_of_a_cut_record() -> None:
    """In a cut record, every field that was chosen as the text must stand before the cut."""
    head = read_head(b"<r><doc><id>1</id><title>t</title><text>a</text></doc></r>")

    cut = parse_record(b"<doc><id>1</id><title>t</title>", head, is_last=True)

    assert head.format.content == ("title", "text")
    assert isinstance(cut, Reject)
    assert cut.reason == "truncated"


def test_nan_of_json_is_missing() -> None:
    """Python and pandas write NaN for a number or text that is missing; it is no id, no text and no value."""
    head = read_head(b'{"id": 1, "text": "a"}')
    head = replace(head, format=replace(head.format, policy=("score",)))
    found = [
        parse_record(line, head, is_last=False)
        for line in (
            b'{"id": NaN, "text": "a", "score": NaN}',
            b'{"id": 2, "text": NaN}',
            b'{"id": "NaN", "text": "a"}',
        )
    ]
    assert found[0] == Record(None, None, ("a",), None, policy=(None,))
    assert isinstance(found[1], Reject)
    assert found[2] == Record("NaN", None, ("a",), None, policy=(None,))


def test_cut_row_is_truncated() -> None:
    """A cut row is truncated, one that is not closed is malformed, and a whole one in the last line is a record."""
    start = b"<posts>\n<row Id='1' Body='a'/>\n"
    head = read_head(start)

    for end, seen in (
        (b"<row Id='2' Body='b", "truncated"),
        (b"<row Id='2' Body='b>c'/></posts>", ("b>c",)),
        (b"<row Id='2' Body='b'>\n<row Id='3' Body='c'/></posts>", "malformed"),
    ):
        found = read_all(start + end, head)[1]
        assert seen == (found.reason if isinstance(found, Reject) else found.fields)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a &amp; b", "a & b"),
        ("a & b", "a & b"),
        ("?x=1&y=2", "?x=1&y=2"),
        ("a&nbsp;b & c", "a\xa0b & c"),
        ("<![CDATA[a & b <x> &amp; </y>]]> & c", "a & b <x> &amp; </y> & c"),
        ("p < 0.05, <5 %, <= <<b>x</b> <![CDATA[< &lt;]]> <!-- a < b -->I <3 <", "p < 0.05, <5 %, <= <x < &lt; I <3 <"),
        ("if a<b <!-- <c <d> --><i>e</i> f<g", "if a<b e f<g"),
        ("&#1103; & &#x44f;", "я & я"),
        ("a<!-- no -->b<?no?>", "ab"),
        ("a\x01b &#x1F; &#0; &#11;&#xFFFE;\ufffe\0 &#00065;", "a\ufffdb \ufffd \ufffd \ufffd\ufffd\ufffd\ufffd A"),
        ("&#xD83D;&#xDE00; &#x110000; &#99999999999;", "\ufffd\ufffd \ufffd \ufffd"),
        ("<![CDATA[&#1; \x0c]]>", "&#1; \ufffd"),
        ("<p:b q:c='1'>d</p:b>", "d"),
        ("", ""),
    ],
)
def test_references_and_stray_ampersands(body: str, text: str) -> None:
    """References are resolved; a stray & or < is a character, what is none is U+FFFD; prefixes need no declaration."""
    result = parse_record(f"<doc><id>1</id><text>{body}</text>".encode(), HEAD, is_last=False)

    assert isinstance(result, Record)
    assert result.fields == (text,)


def test_a_stray_sign_in_an_attribute() -> None:
    """As in rows that were written by hand; it costs neither the record nor its neighbours."""
    rows = b'<posts><row Id="1" Body="a < b" /><row Id="2" Body="I <3 c" Title="t"/><row Id="3" Body="d"/></posts>'

    assert [one.fields for one in records_of(rows)] == [("a < b",), ("t", "I <3 c"), ("d",)]


@pytest.mark.parametrize(
    "body",
    [
        "<text>a",
        "<text>a</txt>",
        "<text>a<b c>d</text>",
        "<text>a</text",
        "<text x=1>a</text>",
        "<",
    ],
)
def test_malformed(body: str) -> None:
    """A record that is not well-formed is a reject with the parser's message; it is never repaired."""
    result = parse_record(b"\n<doc><id>1</id>" + body.encode("latin-1"), HEAD, is_last=False)

    assert isinstance(result, Reject)
    assert result.reason == "malformed"
    assert result.detail
    assert result.excerpt.startswith("<doc><id>1</id>")


@pytest.mark.parametrize(
    ("doctype", "body"),
    [
        ('<!DOCTYPE r [<!ENTITY lol "boom">]>', "&lol;"),
        ('<!DOCTYPE r [<!ENTITY a "boom"><!ENTITY b "&a;&a;"><!ENTITY c "&b;&b;">]>', "&c;"),
        ('<!DOCTYPE r [<!ENTITY xxe SYSTEM "file:///etc/hostname">]>', "&xxe;"),
        ('<!DOCTYPE r SYSTEM "http://127.0.0.1:9/x.dtd">', "&far;"),
        ('<!DOCTYPE r [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]>', "&p;"),
    ],
)
def test_entities_are_never_expanded(doctype: str, body: str) -> None:
    """The DOCTYPE is not passed on: a record that uses its entities is rejected, the others are read."""
    data = f"{doctype}<r><doc><id>1</id><text>{body}</text></doc><doc><id>2</id><text>b</text></doc></r>"

    bad, good = read_all(data.encode())

    assert isinstance(bad, Reject)
    assert bad.reason == "malformed"
    assert "boom" not in bad.excerpt
    assert isinstance(good, Record)
    assert good.doc_id == "2"


def test_end_tag_inside_cdata_does_not_cut() -> None:
    """An end tag in a CDATA section, comment or instruction ends no record; the section must be closed."""
    for opening, closing in (("<![CDATA[", "]]>"), ("<!--", "-->"), ("<?p ", "?>")):
        cut, cdata = f"<text>{opening}</doc>{closing}</text>", "</doc>" if opening.startswith("<![") else ""
        data = f"<r><doc><id>1</id>{cut}</doc><doc><id>2</id><text>b</text></doc></r>"

        bad, good = read_all(data.replace(closing, "", 1).encode())

        assert [record.fields for record in records_of(data.encode())] == [(cdata,), ("b",)]
        assert isinstance(bad, Reject)
        assert (bad.reason, bad.detail[:34]) == ("malformed", "a comment, CDATA section or instru")
        assert isinstance(good, Record)


def test_a_record_inside_another_is_a_part_of_it() -> None:
    """Of nested records of one name the outer one is the record; where its end is missing, that is a reject."""
    data = b"<r><doc><id>1</id><doc><text>a</text></doc><text>b</text></doc><doc><id>2</id><text>c</text></doc></r>"

    bad, inner, good = read_all(data.replace(b"<text>b</text></doc>", b""))

    assert [record.fields for record in records_of(data)] == [("b",), ("c",)]
    assert isinstance(bad, Reject)
    assert bad.detail.startswith("another record starts before the end tag")
    assert isinstance(inner, Record)
    assert inner.fields == ("a",)
    assert isinstance(good, Record)
    assert good.doc_id == "2"


def test_a_record_inside_a_comment_is_none() -> None:
    """The first record in a comment is skipped; the records around it are read."""
    data = b"""<r><!-- <doc><id>0</id><text>x</text></doc> --><doc><id>1</id><text>a</text></doc>
    <!-- <doc><id>0</id><text>x</text></doc> --><doc><id>2</id><text>b</text></doc></r>"""

    assert [record.doc_id for record in records_of(data)] == ["1", "2"]


def test_no_content_and_bad_base64() -> None:
    """Records without content or with bad base64 are rejects with the id of the document."""
    results = [
        parse_record(f"<doc><id>7</id>{body}".encode(), HEAD, is_last=False)
        for body in (
            "<url>u</url>",
            "<text encoding='base64'>YW*j</text>",
            "<text encoding='base64'>YWJjZ</text>",
        )
    ]

    assert [(r.reason, r.doc_id) for r in results if isinstance(r, Reject)] == [
        ("no content", "7"),
        ("bad base64", "7"),
        ("bad base64", "7"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": 1, "text": "a"', "malformed"),
        (b"[1]", "malformed"),
        (b"\xff", "malformed"),
        (b"[" * 100_000, "malformed"),
        (b'{"id": 1}', "no content"),
        (b'{"id": 1, "text": null}', "no content"),
    ],
)
def test_bad_json_lines(line: bytes, reason: str) -> None:
    """A line that is not a document is a reject with its reason."""
    result = parse_record(line, read_head(b'{"id": 1, "text": "a"}'), is_last=False)

    assert isinstance(result, Reject)
    assert result.reason == reason


@lru_cache
def heads() -> list[FileHead]:
    samples = (
        b"<r><doc><id>1</id><text>a</text></doc></r>",
        b"<?xml version='1.0' encoding='cp1251'?><dataset><document><docID/><content/></document>",
        b"<posts>\n<row Id='1' Body='a'/>\n</posts>",
        "<r><doc><id>1</id><text>a</text></doc></r>".encode("utf-16"),
        b'{"id": 1, "text": "a"}',
    )
    return [read_head(sample) for sample in samples]


@given(
    chunk=st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join),
    is_last=st.booleans(),
)
@settings(deadline=None, max_examples=300)
def test_any_chunk_is_a_record_a_reject_or_nothing(chunk: bytes, is_last: bool) -> None:  # noqa: FBT001
    """No bytes raise an error, and every record has a text and a fingerprint."""
    for head in heads():
        for data in (chunk, chunk.decode("latin-1").encode("utf-16-le")):
            result = parse_record(data, head, is_last=is_last)

            assert result is None or isinstance(result, Record | Reject)
            if isinstance(result, Record):
                record_text(result).encode()
                content_fingerprint(result)


TREC = """<DOC>
<DOCNO>{}</DOCNO>
<TEXT>text of {}</TEXT>
</DOC>
"""


@pytest.mark.parametrize("missing", [(1,), (0, 1), (1, 2, 3)])
@pytest.mark.parametrize("kind", ["trec", "xml", "reuters"])
def test_a_record_without_its_end_tag_costs_none(kind: str, missing: tuple[int, ...]) -> None:
    """It ends where the next one starts; of one whose text is open nothing says that it is whole."""
    record, around = TREC, ("", "")
    if kind == "xml":
        record, around = "<doc><id>{}</id><text>text of {}</text></doc>\n", ("<r>\n", "</r>\n")
    elif kind == "reuters":
        record = '<REUTERS NEWID="{}">\n<TEXT><BODY>text of {}</BODY></TEXT>\n</REUTERS>\n'
    end = record.rstrip()[record.rindex("</") :]
    records = [record.format(number, number) for number in range(5)]
    data = "".join(one.replace(end, "") if at in missing else one for at, one in enumerate(records))

    found = records_of(f"{around[0]}{data}{around[1]}".encode())

    assert [one.doc_id for one in found] == list("01234")
    assert [record_text(one).strip() for one in found] == [f"text of {number}" for number in range(5)]
    if kind == "trec" and missing == (1,):
        cut = read_all(data.replace("of 1</TEXT>", "of 1").encode())
        assert [one.doc_id if isinstance(one, Record) else one.reason for one in cut] == ["0", "malformed", *"234"]
