"""Lines of JSON give the same rows whether they are read together, in blocks, or one by one."""

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead
from nddup.reading.json_lines import Keys, find_blank, find_ends, plain_keys, read_lines
from nddup.reading.outcomes import Record
from nddup.reading.records import parse_record, read_encoded
from nddup.scanning import record_blocks
from nddup.scanning.collection import ListedFile
from nddup.scanning.found import LocatedRecord, RecordLimits, SketchRule, TextRule, in_batches
from nddup.scanning.input_files import InputFile
from nddup.scanning.local_files import cut_file, read_part, scan_part
from nddup.scanning.record_blocks import LineBlock, Places, read_blocks
from nddup.scanning.sketch_records import SketchRecords, parse_chunks
from nddup.scanning.walk import open_stored
from nddup.scanning.whole_files import StoredFile, _found_in, read_files
from nddup.sketching.recipe import Recipe
from nddup.tables import CHUNKS

HEAD = read_head(b'{"id": "1", "url": "u", "text": "a"}')
VALUED = replace(HEAD, format=replace(HEAD.format, policy=("x", "score")))
MAX_RECORD = 400
LIMITS = RecordLimits(MAX_RECORD)
PIECES = (
    '{"id": "', '{"id": 1, ', '"id": -0.5e+7', '"url": "http://a/"', '"url": null', '"text": "', '"text": ["a"]',
    '", ', '"}', "}", "{", "[", "]", ",", ":", '"', " ", "\t", "\\", "\\n", '\\"', "\\/", "\\u0430", "\\ud83d\\ude00",
    "\\ud83d", "\\ude00", "\\u003cb>", "<p>a <b>b</b></p>", "a < b", "one two three ", "а б в", "\u2028", "\x7f",
    "\ufeff", "\0", "01", "true", "nul", "NaN", '"x": {"y": [1, {"text": "z"}, []]}, ', '"t\\u0065xt": "q", ',
    "[" * 70, "]" * 70, "w" * 40,
    '"score": "', '"score": 1.50, ', '"score": [1], ', '"x": true, ', '"x": "", ',
    '"title": "b c", ', '"title": "", ', '"title": null, ', '"headline": "<b>d</b>", ', '"text": "", ',
)  # fmt: skip


def write_line(row: dict[str, Any], *, is_ascii: bool, cut: slice | None, piece: str, at: int) -> bytes:
    """Return a line of JSON, maybe cut, and with a piece of another put into it."""
    line = json.dumps(row, ensure_ascii=is_ascii)[cut or slice(None)]
    at %= len(line) + 1
    return (line[:at] + piece + line[at:]).encode("utf-8", "surrogatepass")


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
)  # fmt: skip
ROWS = st.dictionaries(st.sampled_from(("id", "url", "text", "title", "subject", "x", "score", "")), VALUES, max_size=5)
WRITTEN = st.builds(
    write_line,
    ROWS,
    is_ascii=st.booleans(),
    cut=st.sampled_from([None, None, None, slice(0, -1), slice(1, None), slice(0, 20)]),
    piece=st.sampled_from(["", "", "", *PIECES]),
    at=st.integers(0, 200),
)
MADE = st.lists(st.sampled_from(PIECES), max_size=12).map("".join).map(lambda line: line.encode("utf-8", "replace"))
BROKEN = st.builds(
    lambda line, raw, at: line[: at % (len(line) + 1)] + raw + line[at % (len(line) + 1) :],
    WRITTEN,
    st.sampled_from([b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xd0", b"\xf5\x80\x80\x80", b"\r", b"\x1f", b"\0"]),
    st.integers(0, 200),
)
FILES = st.builds(
    lambda lines, end: b"\n".join(lines) + end,
    st.lists(st.one_of(WRITTEN, MADE, BROKEN, st.just(b'{"id": "1", "text": "one two"}')), max_size=8),
    st.sampled_from([b"", b"\n", b"\r\n\n"]),
).map(lambda data: data.replace(b"\n\n", b"\n \n"))
TITLED = b"""{"title": "a b", "text": "c"}
{"text": "", "subject": "d e"}
{"title": "", "text": "f g"}"""
MARKED = b"""{"text": "a b", "x": "b", "score": -1.50e+3}
{"score": null, "text": "c d", "id": 7}
{"score": "", "x": true, "text": "e f"}
{"score": [1], "x": "\\u0430", "text": "g h"}
{"x": "", "text": "i j"}"""
TWO_IN_A_LINE = b'{"id": "1", "text": "a"} {"id": "2", "text": "b"}'
RULES = [SketchRule(Recipe(length=1), TextRule(markup), min_tokens=2, confirm="resemblance")
         for markup in ("auto", "text", "html")]  # fmt: skip


def rows_of(found: Iterable[Sequence[LocatedRecord]], rule: SketchRule, head: FileHead = HEAD) -> list[dict[str, Any]]:
    """Return the rows of RECORDS."""
    return [row for batch in SketchRecords(rule).batches(found, head) for row in batch.to_pylist()]


@given(data=FILES, size=st.integers(1, 300), rule=st.sampled_from(RULES), head=st.sampled_from((HEAD, VALUED)),
       name=st.sampled_from(("a", "x=1/a")))  # fmt: skip
@example(data=b'{"id": "1", "text": "\\ud83d\\ude00 a"}\n{"id": 1.50, "text": ""}\n{"text": "a", "text": "b"}', size=30,
         rule=RULES[0], head=HEAD, name="a")  # fmt: skip
@example(data=TITLED, size=300, rule=RULES[0], head=VALUED, name="a")
@example(data=MARKED, size=300, rule=RULES[0], head=VALUED, name="a")
@example(data=MARKED, size=300, rule=RULES[0], head=VALUED, name="x=1/a")
def test_blocks_give_the_rows_of_single_records(  # noqa: PLR0913, PLR0917 - what is drawn
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int, rule: SketchRule, head: FileHead, name: str
) -> None:
    """Whatever the lines, the parts of a file, a file read from its start and chunks of Spark give the same rows.

    With values of columns too, also where the folders of a file have some.
    """
    path = tmp_path_factory.getbasetemp() / "lines.jsonl"
    path.write_bytes(data)
    parts = cut_file(ListedFile(InputFile(str(path), name, len(data), 0), "", -1), size)
    file = StoredFile(name, "", 0, partial(BytesIO, data))
    chunks = [(line, name, 0, False) for line in data.split(b"\n")]
    from_spark = CHUNKS.batch([pa.array(column) for column in zip(*chunks, strict=True)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_blocks, "BLOCK_BYTES", size)
        patch.setattr(record_blocks, "PIECE", max(size // 3, 1))
        scanned = [batch for part in parts for batch in scan_part(part, head, SketchRecords(rule), LIMITS)]
        whole = rows_of(read_files([file], head, MAX_RECORD), rule, head)
        spark = rows_of(parse_chunks([from_spark], head, MAX_RECORD), rule, head)

    by_parts = [row for batch in scanned for row in batch.to_pylist()]
    assert by_parts == [
        row for part in parts for row in rows_of(in_batches(read_part(part, head, MAX_RECORD), head.format), rule)
    ]
    assert whole == spark == rows_of(in_batches(_found_in(file, head, MAX_RECORD), head.format), rule)


@given(data=FILES, size=st.integers(1, 300), step=st.integers(1, 3))
def test_records_at_known_places_are_those_of_the_whole(data: bytes, size: int, step: int) -> None:
    """Of each part, the records of some numbers are found as they are when all are read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_blocks, "BLOCK_BYTES", size)
        pieces = [("a", split, line + b"\n") for split, line in enumerate(data.split(b"\n"))] + [("b", 0, data + b"\n")]
        blocks = [block for block in read_blocks(pieces, HEAD, MAX_RECORD) if isinstance(block, LineBlock)]
    numbers = {
        part: range(0, len(pieces), step) for part in {(one.source, one.split) for some in blocks for one in some}
    }
    ends = np.cumsum([0, *map(len, numbers.values())]).tolist()
    places = Places(dict(zip(numbers, pairwise(ends), strict=True)), np.array([*chain(*numbers.values())], np.int64))

    for block in blocks:
        assert list(block.among(places)) == [one for one in block if one.seq % step == 0]


@given(data=FILES)
@example(data=TITLED)
@example(data=TWO_IN_A_LINE)
@example(data=MARKED)
@example(data=TWO_IN_A_LINE + b'\n{"text": "c", "x":\n{"id": "1"}}')
def test_a_plain_line_is_what_json_says(data: bytes) -> None:
    """A line that is plain has the id, URL, title, text and columns of the record that `parse_record` makes of it."""
    keys = plain_keys(VALUED)
    assert keys is not None
    data += b"\n"
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))

    read = read_lines(np.frombuffer(data, np.uint8), ends, keys, MAX_RECORD)
    is_blank = find_blank(np.frombuffer(data, np.uint8), ends)

    for row, line in enumerate(data.split(b"\n")[:-1]):
        record = parse_record(line, VALUED, is_last=False)
        assert not is_blank[row] or record is None
        if read.is_plain[row]:
            assert isinstance(record, Record)
            assert (read.ids[row].as_py(), read.urls[row].as_py()) == (record.doc_id, record.url)
            assert read.fields(row) == record.fields
            assert tuple(column[row].as_py() for column in read.columns) == record.policy
            assert read.join("\n")[row].as_py().encode() == read_encoded(record, markup="text").text


def test_usual_lines_are_plain() -> None:
    """What other programs write is read together: escapes, nested values, numbers as ids, and any order of keys."""
    rows: list[dict[str, Any]] = [
        {"id": 7, "text": 'a\n"b" \\ / \u00e9 \U0001f600 \u0430', "meta": {"a": [1, 2.5e-3, {"b": None}], "text": 1}},
        {"text": "", "url": None, "id": 12, "more": [True, False, []], "none": {}},
        {"text": "without an id"},
        {"title": "with a title", "text": "of it", "lang": "\u0430", "score": -1.50},
        {"subject": "a subject", "id": 12, "text": ""},
        {"title": "", "text": "a"},
    ]  # fmt: skip
    for is_ascii in (True, False):
        data = "".join(json.dumps(row, ensure_ascii=is_ascii) + "\r\n" for row in rows).encode()
        data = data * 50 + b"broken\n" + data * 50
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))

        read = read_lines(
            np.frombuffer(data, np.uint8), ends, Keys("text", "id", "url", ("title", "subject"), ("lang", "score")),
            MAX_RECORD,
        )  # fmt: skip

        assert np.flatnonzero(~read.is_plain).tolist() == [300]
        assert read.texts.to_pylist()[:6] == [row["text"] for row in rows]
        assert [column.to_pylist()[2:5] for column in read.columns] == [[None, "\u0430", None], [None, "-1.5", None]]
        assert read.ids.to_pylist()[-6:-3] == ["7", "12", None]
        assert read.join("\n").to_pylist()[-3:] == ["with a title\nof it", "a subject", "a"]


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 300)), max_size=20), st.integers(0, 100))
def test_line_ends_are_found_wherever_they_stand(lengths: list[int], rest: int) -> None:
    data = np.frombuffer(b"".join([b"w" * length + b"\n" for length in lengths]) + b"w" * rest, np.uint8)

    assert find_ends(data).tolist() == np.flatnonzero(data == ord("\n")).tolist()


def test_marks_are_found_wherever_they_stand() -> None:
    """Bytes are looked at many at a time: each mark is found at each place among them, also at the end of the line."""
    marks = ["", '"', "\\", "\n", "\x1f", "\x7f", "/", "\u00e9", "\u20ac", "\U0001f600", "\ud83d", "\ude00"]
    texts = [begin * "w" + mark + end * "w" for mark in marks for begin in range(70) for end in (0, 1, 31, 32, 33, 64)]
    for is_ascii in (True, False):
        written = [json.dumps({"text": text}, ensure_ascii=is_ascii).replace("\\u001f", "\x1f") for text in texts]
        data = ("\n".join(written) + "\n").encode("utf-8", "surrogatepass")
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))

        read = read_lines(np.frombuffer(data, np.uint8), ends, Keys("text"), MAX_RECORD)

        is_odd = np.array(["\x1f" in text or "\ud83d" in text or "\ude00" in text for text in texts])
        assert read.is_plain.tolist() == (~is_odd).tolist()
        plain = np.flatnonzero(read.is_plain).tolist()
        assert [read.texts[row].as_py() for row in plain] == [texts[row] for row in plain]


@pytest.mark.parametrize("line", [
    *(f'{{"text": "a", "x": {value}}}' for value in (
        "01", "1.", ".5", "-", "1e", "+1", "nul", "NaN", "[1,]", "{", '"\\x"', '"\\u12g4"', "[}", "[" * 61 + "]" * 61)),
    '{"text": "a",}', '{"text": "a"} 1', '{"text": "a", "text": "a"}', '{"text": "a", "t\\u0065xt": "a"}',
    '{"text" "a"}', '["text", "a"]', '{"text": ["a"]}', '{"text": null}', '{"x": {"text": "a"}}',
    '{"text": "a", "title": "b", "subject": "c"}', '{"text": "a", "title": 1}', '{"text": "a", "title": ["b"]}',
    '{"text": "a", "id": 1.5}', '{"text": "a", "id": true}', '{"text": "a", "url": 1}', '{"text": "a', '{"text": "\\',
])  # fmt: skip
def test_other_lines_are_odd(line: str) -> None:
    """Broken ones, and those whose text, id or URL is not one string."""
    data = np.frombuffer(line.encode() + b"\n", np.uint8)

    read = read_lines(data, np.array([len(line)]), Keys("text", "id", "url", ("title", "subject")), MAX_RECORD)

    assert not read.is_plain[0]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \n"])
@pytest.mark.parametrize("line", [b'{"id": "1", "text": "a"}', b'{"id": "1", "text": ["a"]}'])
def test_a_line_that_holds_a_byte_order_mark_alone_is_blank(line: bytes, end: bytes, tmp_path: Path) -> None:
    """Spark removes the mark, and no reader has a reject for it; in blocks and one by one."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + end + line + end)
    head = read_head(path.read_bytes())
    stored = StoredFile("a.jsonl", "", 1 << 20, partial(open_stored, str(path)))

    for lists in (read_files([stored], head, MAX_RECORD), [list(_found_in(stored, head, MAX_RECORD))]):
        assert [(one.seq, one.record.doc_id) for records in lists for one in records] == [(0, "1")]


def test_a_damaged_file_names_its_last_good_record(tmp_path: Path) -> None:
    """The rows of a compressed file that ends early are those of single records, the reject included."""
    lines = b"".join(b'{"id": "%d", "text": "one two %d"}\n' % (n, n * n) for n in range(2_000))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(lines)[:-500])
    files = [StoredFile(name, "gzip", 1 << 30, partial(open_stored, str(path))) for name in "ab"]

    whole = rows_of(read_files(files, HEAD, MAX_RECORD), RULES[0])

    assert whole == rows_of(
        (one for file in files for one in in_batches(_found_in(file, HEAD, MAX_RECORD), HEAD.format)), RULES[0]
    )
    assert "the last good record" in whole[-1]["detail"]


@pytest.mark.parametrize("declared", ["a.b", "html(text)", "text|body"])
def test_other_paths_are_read_by_records(declared: str) -> None:
    """A path that may mean more than a key is not read here."""
    assert plain_keys(read_head(b'{"id": "1", "text": "a"}', content=(declared,))) is None
