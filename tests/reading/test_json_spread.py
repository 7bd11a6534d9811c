"""JSON in an array, or over several lines, is read as the same rows one a line are; Python's parser is the oracle."""

import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.embedded.run import run_locally
from nddup.reading.detect import read_head
from nddup.reading.formats import FormatError
from nddup.reading.json_spread import MOST_LISTS, LinedStream, as_lines, find_lists
from nddup.reading.outcomes import Record, Reject
from nddup.scanning.whole_files import read_stream
from nddup.settings.load import build_config

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('aé"\\{}[],: \n\t\r\u2028')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.text(st.sampled_from('ab"\\[{')), VALUES, max_size=4), max_size=5)
BLANKS = st.text(st.sampled_from(" \n\t\r"), max_size=3)


def values_in(lines: bytes) -> list[Any]:
    """Parse each line that is not blank."""
    return [json.loads(line) for line in lines.split(b"\n") if line.strip()]


@given(ROWS, st.sampled_from([None, 1, "\t"]), BLANKS, BLANKS, st.randoms())
def test_lines_hold_the_same_values(
    rows: list[dict[str, Any]], indent: int | str | None, before: str, after: str, draw: random.Random
) -> None:
    """In an array, or one after another with a blank, a comma or nothing between, in pieces of any size."""
    spelled = [json.dumps(row, indent=indent, ensure_ascii=draw.random() < 0.5) for row in rows]
    listed = f"{before}[{before}" + f"{after},{before}".join(spelled) + f"{after}]{after}"
    between = draw.choice((f"{before} {after}", f"{before},{after}", ""))
    for text, is_list in ((listed, True), (between.join(spelled), False)):
        data = text.encode()
        lines = as_lines(data)

        assert values_in(lines) == rows
        assert len(lines) == len(data) + (0 if between or is_list else max(len(rows) - 1, 0))
        stream, raw = LinedStream(io.BytesIO(data)), b""
        while piece := stream.read(draw.randint(1, 9)):
            raw += piece
        assert raw == lines
        assert stream.is_list == is_list


@given(st.lists(st.sampled_from([*'{}[],:"\\ \n\ta', '{"a": 1}']), max_size=30).map("".join))
def test_lines_stay_lines(text: str) -> None:
    """Whatever the bytes are, marks of text stay in their order, and no line end is put but between two objects."""
    lines = as_lines(text.encode()).decode()

    at = 0
    for was in text:
        if lines[at] == "\n" and was in "{[":
            at += 1
        assert was == lines[at] or (was in " \n\t\r,[]" and lines[at] in " \n")
        at += 1
    assert at == len(lines)


def texts(seed: int) -> str:
    """Return forty words drawn from a seed."""
    return " ".join(map(str, np.random.default_rng(seed).integers(0, 999, 40)))


ROWS_OF_FILES = [{"id": f"d{at}", "title": "a\nb", "text": texts(at // 2), "tags": ["x", {"y": at}]} for at in range(6)]
SPELLED = {
    "array.json": json.dumps(ROWS_OF_FILES).encode(),
    "spread.json": json.dumps(ROWS_OF_FILES, indent=2, ensure_ascii=False).encode("utf-8-sig") + b"\r\n",
    "lines.json": b"[\n" + b",\n".join(json.dumps(row).encode() for row in ROWS_OF_FILES) + b"\n]",
    "values.json": "\n".join(json.dumps(row, indent=1) for row in ROWS_OF_FILES).encode(),
    "joined.json": "".join(json.dumps(row) for row in ROWS_OF_FILES).encode(),
    "commas.json": ",\n".join(json.dumps(row) for row in ROWS_OF_FILES).encode() + b",\n",
    "shards.jsonl": b"\n".join(json.dumps(row).encode() for row in ROWS_OF_FILES)
    .replace(b"}\n{", b"}{", 5)
    .replace(b"}{", b"}\n{", 4),
    "blank.jsonl": " ".join(json.dumps(row) for row in ROWS_OF_FILES).encode(),
    "packed.json.gz": gzip.compress(json.dumps(ROWS_OF_FILES, indent=4).encode()),
    "service.json": json.dumps({"status": 0, "response": {"docs": ROWS_OF_FILES, "start": [1]}, "a": "]}"}).encode(),
    "export.json": json.dumps({"data": ROWS_OF_FILES}, indent=2).encode("utf-8-sig"),
    "sets.json": json.dumps(
        {
            "a": ["b"],
            "train": ROWS_OF_FILES[:4],
            "users": [{"name": "c"}],
            "more": {"d": [[{"id": "e"}]], "val": [], "test": ROWS_OF_FILES[4:]},
            "f": {},
        }
    ).encode(),
    "sequence.json": b"".join(b"\x1e" + json.dumps(row).encode() + b"\n" for row in ROWS_OF_FILES),
}


@pytest.mark.parametrize("name", SPELLED)
def test_a_file_is_read_as_lines_are_and_written_in_its_form(name: str, tmp_path: Path) -> None:
    """The tables are those of the rows one a line; what is kept is an array again where it was one, in its object."""
    source = tmp_path / "in" / name
    source.parent.mkdir()
    tables = list[list[list[str]]]()
    for data in (SPELLED[name], "".join(json.dumps(row) + "\n" for row in ROWS_OF_FILES).encode()):
        packed = data if name.endswith("gz") == data.startswith(b"\x1f") else gzip.compress(data)
        source.write_bytes(packed)
        output = tmp_path / f"out {len(tables)}"
        settings = {"keep": {"policy": ["first"]}, "output": {"report": False, "kept": "as-input"}}
        run_locally([str(source)], str(output), build_config(settings, origin="test"))
        names = ("documents", "pairs", "keep", "rejects")
        tables.append([sorted(map(str, pq.read_table(output / one).to_pylist())) for one in names])

    assert tables[0] == tables[1]
    assert len(tables[0][1]) == 3
    written = (tmp_path / "out 0" / "kept" / name).read_bytes()
    text = (gzip.decompress(written) if name.endswith("gz") else written).decode("utf-8-sig")
    if name in ("service.json", "export.json"):
        due = json.loads(SPELLED[name])
        (due if "data" in due else due["response"])["data" if "data" in due else "docs"] = ROWS_OF_FILES[::2]
        assert json.loads(text) == due
        return
    if name == "sets.json":
        due = json.loads(SPELLED[name])
        due["train"], due["more"]["test"] = ROWS_OF_FILES[:4:2], ROWS_OF_FILES[4::2]
        assert json.loads(text) == due
        return
    is_list = text.startswith("[")
    kept = json.loads(text) if is_list else [json.loads(line) for line in text.splitlines()]
    assert kept == ROWS_OF_FILES[::2]
    assert is_list == (name in {"array.json", "spread.json", "lines.json", "packed.json.gz"})


@given(
    ROWS, st.dictionaries(st.sampled_from("ab"), VALUES), st.dictionaries(st.sampled_from("cd"), VALUES), st.randoms()
)
def test_an_array_in_an_object_is_read_as_one_alone(
    rows: list[dict[str, Any]], before: dict[str, Any], after: dict[str, Any], draw: random.Random
) -> None:
    """Whatever stands before it and after it, in pieces of any size; and this is known again at the end."""
    indent = draw.choice([None, 1])
    data = json.dumps({**before, "Results": rows, **after}, indent=indent, ensure_ascii=draw.random() < 0.5).encode()
    (keys, _), *_ = find_lists(data)
    lines = as_lines(data, keys)

    assert keys == ("Results",)
    assert values_in(lines) == rows
    assert len(lines) == len(data)
    source, raw = io.BytesIO(data), b""
    stream = LinedStream(source, keys)
    while piece := stream.read(draw.randint(1, 9)):
        raw += piece
    assert raw == lines
    assert json.loads(stream.around[0] + b"[]" + stream.end) == {**before, "Results": [], **after}


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=6), st.booleans(), st.randoms())
def test_all_arrays_of_like_records_are_read(sets: list[list[int]], is_named: bool, draw: random.Random) -> None:  # noqa: FBT001
    """In pieces of any size, and with other values between them; arrays of other objects are none of records."""
    names = draw.sample(("test", "dev", "val", "posts", "rows", "items"), 6) if is_named else "ABCDEF"
    whole: dict[str, Any] = {"train": [{"id": "0", "text": "["}]}
    for name, rows in zip(names, sets, strict=False):
        whole |= {
            name: [{"id": "x", "text": f'"{at}', "n": [{}]} for at in rows],
            f"{name} of": draw.choice(([{"u": 1}], {}, "]")),
        }
    data = json.dumps(whole, indent=draw.choice((None, 1))).encode()
    stream, lines = LinedStream(io.BytesIO(data), ("train",)), b""
    while piece := stream.read(draw.randint(1, 99)):
        lines += piece

    read = [row for name in ("train", *names) for row in whole.get(name, ())]
    assert values_in(lines.replace(b"\0", b"")) == read
    assert json.loads(b"[]".join([*stream.around, stream.end])) == {
        key: [] if key in ("train", *names) else value for key, value in whole.items()
    }


def test_of_very_many_arrays_the_rest_is_one_reject() -> None:
    """Each costs a look at what stands around it."""
    data = json.dumps({f"part{at}" if at else "train": [{"id": at, "text": "a"}] for at in range(30)}).encode()
    records = [one for one, _ in read_stream(LinedStream(io.BytesIO(data), ("train",)), read_head(data), 1 << 20)]

    assert [isinstance(one, Record) for one in records] == [True] * MOST_LISTS + [False]
    assert isinstance(records[-1], Reject)
    assert records[-1].detail == f"the records at part{MOST_LISTS} are not read, only those at train"


@pytest.mark.parametrize(
    "data",
    [
        {"id": "paper", "data": ROWS_OF_FILES},
        {"text": texts(1), "items": ROWS_OF_FILES},
        {"description": texts(1), "items": [{"id": 1, "abstract": "a"}]},
        {"body_text": ROWS_OF_FILES},
        {"data": {"text": ROWS_OF_FILES}},
    ],
)
def test_an_object_with_an_id_or_a_text_is_a_record(data: dict[str, Any]) -> None:
    """So are those whose array has another name: it may hold the parts of one text."""
    try:
        head = read_head(json.dumps(data).encode())
    except FormatError as error:
        assert "cannot tell which key holds the text" in str(error)  # noqa: PT017
    else:
        assert not head.list_keys


def test_a_feed_with_a_description_is_its_items() -> None:
    """As JSON Feed has it, also where the object ends behind the first bytes."""
    feed = {"title": "F", "description": "of all", "items": [{"id": "1", "content_html": "<p>a</p>"}] * 9}
    for data in (json.dumps(feed), json.dumps(feed)[:200]):
        head = read_head(data.encode())
        assert (head.list_keys, head.format.id) == (("items",), "id")
        assert "content_html" in head.format.content[-1]


def test_lines_with_arrays_are_no_array() -> None:
    """The texts of the other lines would be lost."""
    line = json.dumps({"data": [{"text": "a b"}]}) + "\n"
    with pytest.raises(FormatError, match="cannot tell which key holds the text"):
        read_head((line * 3).encode())


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ("]}", ""),
        ("], ", "damaged"),
        ("]} {}", "damaged"),
        ("]", "damaged"),
        ('], "posts": [{"body": "a"}]}', "no content"),
        ('], "pages": [{"number": 1}], "data": []}', ""),
        (f'], "a": "{"b" * (1 << 20)}"}}', "too large"),
    ],
)
def test_what_follows_the_array_is_looked_at(after: str, reason: str, tmp_path: Path) -> None:
    """Of a file longer than its first bytes; the records before it are read, and the rest is one reject."""
    rows = [{"id": f"d{at}", "text": f"{texts(at)} " * 100} for at in range(300)]
    data = json.dumps({"count": 3, "results": rows})
    assert len(data) > 4 << 20
    (tmp_path / "in.json").write_text(data[: -len("]}")] + after, encoding="utf-8")
    settings = {"input": {"max_rejects": 1.0}, "output": {"report": False}}
    run_locally([str(tmp_path / "in.json")], str(tmp_path / "out"), build_config(settings, origin="test"))

    assert len(pq.read_table(tmp_path / "out" / "documents")) == len(rows)
    assert pq.read_table(tmp_path / "out" / "rejects")["reason"].to_pylist() == [reason] * bool(reason)


def test_all_removed_is_an_empty_array_and_damage_costs_what_it_touches(tmp_path: Path) -> None:
    """A value that is no object is a reject, as is the rest of a file that ends inside one."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(json.dumps(ROWS_OF_FILES[:1]), encoding="utf-8")
    (tmp_path / "in" / "b.json").write_text(json.dumps([{**ROWS_OF_FILES[0], "id": "other"}]), encoding="utf-8")
    broken = f'[{{"id": 1, "text": "raw\nline {texts(7)}"}}, 5, [], {{"id": 2}}, {{"id": 3, "text": "cut'
    (tmp_path / "in" / "c.json").write_text(broken, encoding="utf-8")
    settings = {"input": {"max_rejects": 1.0}, "output": {"report": False, "kept": "as-input"}}
    run_locally([str(tmp_path / "in")], str(tmp_path / "out"), build_config(settings, origin="test"))

    assert json.loads((tmp_path / "out" / "kept" / "b.json").read_bytes()) == []
    documents = pq.read_table(tmp_path / "out" / "documents")["doc_id"].to_pylist()
    assert sorted(documents) == ["1", "d0", "other"]
    rejects = pq.read_table(tmp_path / "out" / "rejects")["reason"].to_pylist()
    assert sorted(rejects) == ["damaged", "malformed", "malformed", "no content"]


@pytest.mark.parametrize("end", [b"]", b"}]", b'y"}]'])
def test_what_is_missing_at_the_end_is_counted(end: bytes, tmp_path: Path) -> None:
    """A file cut between two objects, inside one or inside a string is damaged; what came before is read."""
    data = json.dumps(ROWS_OF_FILES[:3]).encode()[:-1] + b', {"id": "x", "text": "y"}]'
    (tmp_path / "in.json").write_bytes(data.removesuffix(end))
    settings = {"input": {"max_rejects": 1.0}, "output": {"report": False}}
    run_locally([str(tmp_path / "in.json")], str(tmp_path / "out"), build_config(settings, origin="test"))

    (reject,) = pq.read_table(tmp_path / "out" / "rejects").to_pylist()
    assert (reject["reason"], "a bracket or quote is missing" in reject["detail"]) == ("damaged", True)
    names = pq.read_table(tmp_path / "out" / "documents")["doc_id"].to_pylist()
    assert sorted(names)[:3] == ["d0", "d1", "d2"]


@pytest.mark.parametrize("text", ["[{{fullurl: of a wiki}}] words", "{{template}} words", "[1, 2]", "[]", "{", "[{"])
def test_what_is_no_json_is_not_taken_for_it(text: str) -> None:
    """A text that begins like an array or an object is none."""
    with pytest.raises(ValueError, match=r"JSON"):
        read_head(text.encode())
