"""The memory of one record: bounded for each of its bytes, and for its tags, in every format."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from bench.records import CASES, peaks_of
from nddup.reading import parquet_rows
from nddup.reading.containers import container_head, read_container
from nddup.reading.detect import read_head
from nddup.reading.markup import strip_markup
from nddup.reading.page_limits import (
    MAX_ATTRIBUTES,
    MAX_PARTS,
    count_parts,
    has_too_many,
    is_too_costly,
    most_attributes,
    trace_elements,
)
from nddup.reading.records import Record, Reject, parse_record
from tests.samples_by_night import by_day_if_changed, first

LINUX = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are told by Linux")
MEGABYTES, PER_BYTE, FOR_PARTS = 4, 36, 400
"""MB of a case, and the limits of docs/sizing.md: bytes per byte of a record, MB for tags and attributes."""

USUAL = ("prose", "Cyrillic", "with an emoji")
SLOW = [("csv", "short lines"), ("trec", "empty elements")]
"""Cases of which each line or element is read by itself: they are smaller, yet more than a record may have."""

HOSTILE = [
    (kind, filling)
    for kind in CASES
    for filling in CASES[kind][2]
    if filling not in USUAL and (kind, filling) not in SLOW
]
PIECES = ["<", ">", "/", "p", "<p>", "<b a=1 c>", "</p>", '"', "'", "=", " ", "a", "<!--", "-->", "<![CDATA[", "]]>"]
PIECES += ["</b>", "</x>", "<div>", "</div>", "<table>", "<td>", "<svg>", "</svg>", "<style>", "</style>", "<marquee>"]
XML_PIECES = ["<b>", "</b>", "<b/>", "<b c='1 2' d=\"'\"/>", "<!-- <b> -->", "<![CDATA[<b>]]>", "<?a <b>?>", "a"]


@by_day_if_changed("nddup/reading", "nddup/scanning", "nddup/sketching", "nddup/spark/daemon.py", "bench/records.py")
@LINUX
@pytest.mark.parametrize("step", first(1, [2, 1]), ids=["every second", "all"])
def test_the_memory_of_a_record(step: int) -> None:
    """A record of several MB stays within the documented memory; of tags alone no tree is built: 9 MB took 560."""
    of_parts = [case for case in HOSTILE if "tag" in case[1] or case[1] == "attributes"]
    others = [case for case in HOSTILE if case not in of_parts] + SLOW
    for cases, megabytes in ((of_parts[::step], MEGABYTES), (others[::step], 2)):
        for (kind, filling), (peak, outcome) in peaks_of(cases, megabytes).items():
            limit = FOR_PARTS if (kind, filling) in of_parts else megabytes * PER_BYTE
            assert peak < limit * 1e6, (kind, filling)
            assert outcome in ("read", "too large", "malformed"), (kind, filling)
            assert peak < megabytes * 8e6 or filling != "empty tags", kind


def test_a_record_of_too_many_tags() -> None:
    """An XML record of too many tags is a reject that says so; a page of as many keeps its words."""
    head = read_head(b"<r><doc><id>1</id><text>a</text></doc></r>")
    many = b"<b/>" * MAX_PARTS

    found = parse_record(b"<doc><id>1</id><text>" + many + b"</text>", head, is_last=False)

    assert isinstance(found, Reject)
    assert (found.reason, found.detail) == ("too large", "more than 1,048,576 tags and attributes in a record")
    assert strip_markup(b"one" + many + b"<p title='no'>two &amp; &#1103;").split() == ["one", "two", "&", "я"]


def test_what_only_looks_like_tags_is_text() -> None:
    """Tags in comments and CDATA sections of XML are text, and equal signs and blanks in a text make no tag."""
    head = read_head(b"<r><doc><id>1</id><text>a</text></doc></r>")
    section = b"<![CDATA[" + b"<b>" * MAX_PARTS + b"]]><!-- " + b"<b>" * MAX_PARTS + b" -->"

    found = parse_record(b"<doc><id>1</id><text>" + section + b"</text>", head, is_last=False)

    assert isinstance(found, Record)
    assert found.fields == ("<b>" * MAX_PARTS,)
    assert not has_too_many(b"a = b < c " * MAX_PARTS, is_xml=False)


@given(st.lists(st.sampled_from(PIECES)).map("".join))
@example("<p><b a=1 c><p><b a=1 c><p><")
@example("<b a=1 c></i><p><!--</b>--><p></x><p>")
def test_no_part_is_missed(page: str) -> None:
    """The count, with elements opened again, is at least the number of elements and attributes that a parser makes."""
    html = f"<html><head></head><body>{page}</body></html>"
    made = sum(1 + len(node.attributes) for node in LexborHTMLParser(html).css("*"))

    data = np.frombuffer(html.encode(), np.uint8)
    reopened = trace_elements(data).reopened * (1 + most_attributes(data))
    assert count_parts(html.encode(), is_xml=False) + reopened >= made


def test_attributes_that_are_opened_again() -> None:
    """A small page whose tree would take gigabytes is read without one."""
    names = " ".join(f"a{number}" for number in range(MAX_ATTRIBUTES - 1))
    page = f"<p><b {names}>one" + "<p>two" * 900

    assert is_too_costly(page.encode())
    assert strip_markup(page).split() == ["one"] + ["two"] * 900


@given(st.lists(st.sampled_from(XML_PIECES)))
def test_parts_of_xml_are_counted_as_they_are(pieces: list[str]) -> None:
    """The parts of XML are its elements and attributes, and each CDATA section as one part."""
    page = "".join(pieces)
    try:
        root = etree.fromstring(f"<r>{page}</r>")
    except etree.XMLSyntaxError:
        return
    made = sum(1 + len(node.attrib) for node in root.iter("b")) + page.count("<![CDATA[")

    assert count_parts(page.encode(), is_xml=True) == made


def read(data: bytes, *, most: int | None = None, max_record: int = 1 << 20) -> list[Record | Reject]:
    """Return the records of a Parquet file."""
    head = container_head(data[:16], "a", None, {"id": None, "url": None, "content": None, "charset": None})
    assert head is not None
    raw = io.BytesIO(data)
    return list(read_container(raw, head, source="a", compression="", limit=most, max_record=max_record))


def parquet(text: pa.Array, **options: object) -> bytes:
    """Return a Parquet file of these texts, all of one id."""
    data = io.BytesIO()
    pq.write_table(pa.table({"id": ["1"] * len(text), "text": text}), data, compression="zstd", **options)
    return data.getvalue()


def test_a_dictionary_is_not_expanded_by_hundreds() -> None:
    """Of 500 texts of 1 MB in a file of 1 KB, Arrow holds a few at a time, not 500 MB."""
    data = parquet(pa.array(["a " * 500_000] * 500))
    assert len(data) < 2_000
    before, most = pa.total_allocated_bytes(), 0

    head = container_head(data[:16], "a", None, {"id": None, "url": None, "content": None, "charset": None})
    assert head is not None
    for found in read_container(io.BytesIO(data), head, source="a", compression="", limit=None, max_record=1 << 20):
        assert isinstance(found, Record)
        most = max(most, pa.total_allocated_bytes() - before)

    assert most < 20_000_000


def test_values_far_beyond_the_limit_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values longer than twice the limit, in a dictionary or plain, are one reject that counts the rows."""
    monkeypatch.setattr(parquet_rows, "_read_row", lambda *_: pytest.fail("decoded"))
    for data in (parquet(pa.array(["a" * 5_000] * 7)), parquet(pa.array(["a" * 5_000] * 7), use_dictionary=False)):
        (found,) = read(data, max_record=1_000)

        assert isinstance(found, Reject)
        assert found.reason == "too large"
        assert found.detail.endswith("row group 1 of 1: 0 of its 7 rows are read; the file has 7")


def test_a_small_file_does_not_become_a_large_collection() -> None:
    """Beyond `input.max_expansion` the rest of a file is a reject."""
    found = read(parquet(pa.array(["a" * 5_000] * 5_000)), most=10_000_000)

    assert 1_000 < len(found) < 2_000
    assert isinstance(found[-1], Reject)
    assert found[-1].detail == "expands to more than 10,000,000 bytes (input.max_expansion); 5,000 rows are promised"
