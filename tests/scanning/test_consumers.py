"""Files of every format become the rows of every consumer, in this process, without Spark."""

import bz2
import gzip
import io
import json
import pickle
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from nddup.errors import ConfigError, NddupError
from nddup.scanning.collection import Collection, Group, find_files
from nddup.scanning.file_heads import Look, Seen
from nddup.scanning.found import Consumer, LocatedRecord, RecordLimits, SketchRule, TextRule
from nddup.scanning.input_files import InputFile, Listing, distinct_sources
from nddup.scanning.local_files import cut_file, read_texts, scan_files, scan_part
from nddup.scanning.read_again import Contents, Texts
from nddup.scanning.sketch_records import SketchRecords, WordCounter
from nddup.settings.schema import InputConfig
from nddup.sketching.recipe import Recipe
from nddup.sketching.vocabulary import LexiconRule
from nddup.tables import TEXTS

LIMITS = RecordLimits(max_record=2_000)
RULE = SketchRule(Recipe(), TextRule())
WORDS = LexiconRule((), stems=False, stops=False, low="0", high="1")
CONSUMERS: tuple[Consumer, ...] = (
    SketchRecords(RULE),
    Contents(TextRule()),
    Texts(TextRule()),
    WordCounter(WORDS, TextRule()),
)
TEXT = {n: " ".join(f"word{(n * 7 + i) % 11}" for i in range(9)) for n in range(12)}


class LocalFiles:
    """Lists and opens the files of a folder as the engine without Spark does."""

    def list_inputs(self, inputs: list[str]) -> Listing:
        """List every file of these folders."""
        files = [
            InputFile(str(path), path.name, path.stat().st_size, 0)
            for folder in inputs
            for path in sorted(Path(folder).iterdir())
        ]
        return Listing(tuple(files), (), ())

    def look_in_tasks(self, inputs: list[str], files: Sequence[InputFile], look: Look) -> dict[str, Seen]:
        """Return nothing."""
        del inputs, files, look
        return {}

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Implement `Files`."""
        try:
            return Path(path).read_bytes()[start : start + size]
        except OSError as error:
            raise NddupError(str(error)) from error


def lines() -> bytes:
    """Return the texts as JSON lines with a key that is not used."""
    return "".join(json.dumps({"id": f"d{n}", "text": text, "n": n}) + "\n" for n, text in TEXT.items()).encode()


def formats() -> dict[str, bytes]:
    """Return the texts in every kind of file, plain and compressed."""
    table = io.BytesIO()
    pq.write_table(pa.table({"id": [f"d{n}" for n in TEXT], "text": list(TEXT.values())}), table)
    warc = b"".join(
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://w/%d\r\nContent-Type: text/html\r\n"
        b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (n, len(text), text.encode())
        for n, text in TEXT.items()
    )
    rows = "".join(f"<doc><id>d{n}</id><text>{text}</text></doc>\n" for n, text in TEXT.items())
    trec = "".join(f"<DOC>\n<DOCNO>d{n}</DOCNO>\n<TEXT>{text}</TEXT>\n</DOC>\n" for n, text in TEXT.items())
    return {
        "a.jsonl": lines(),
        "a.jsonl.gz": gzip.compress(lines()),
        "a.jsonl.bz2": bz2.compress(lines()),
        "a.zst": zstandard.compress(lines()),
        "a.xml": f"<docs>\n{rows}</docs>\n".encode(),
        "b.xml": f"<?xml version='1.0' encoding='utf-16'?><docs>\n{rows}</docs>\n".encode("utf-16"),
        "a.trec": trec.encode(),
        "a.csv": ("id,text\n" + "".join(f"d{n},{text}\n" for n, text in TEXT.items())).encode(),
        "a.parquet": table.getvalue(),
        "a.warc": warc,
        "a.warc.gz": gzip.compress(warc),
    }


def find(folder: Path, files: dict[str, bytes], **options: Any) -> Collection:  # noqa: ANN401
    """Write these files to a folder and find the collection."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return find_files(LocalFiles(), [str(folder)], InputConfig(**options))


def rows_of(batches: Iterator[pa.RecordBatch], consumer: Consumer) -> list[dict[str, Any]]:
    """Return all rows, after checking that every batch has the schema of the consumer's table."""
    found = list(batches)
    assert all(batch.schema == consumer.table.arrow for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def scan_whole(group: Group, consumer: Consumer) -> list[dict[str, Any]]:
    """Return the rows of a group whose files are read from their start, after pickling it as for a worker."""
    group, sent = pickle.loads(pickle.dumps((group, consumer)))  # noqa: S301 - made here
    return rows_of(scan_files(group.files, group.head, sent, LIMITS), consumer)


@pytest.mark.parametrize("name", formats())
def test_every_format_gives_the_same_sketches_and_words(tmp_path: Path, name: str) -> None:
    """The same texts give the same sketches and words, plain or compressed, cut at separators or not."""
    [group] = find(tmp_path, {name: formats()[name]}).groups
    [plain] = find(tmp_path, {name: lines()}, format="jsonl").groups

    (tmp_path / name).write_bytes(formats()[name])
    records = scan_whole(group, SketchRecords(RULE))
    terms = scan_whole(group, WordCounter(WORDS, TextRule()))
    (tmp_path / name).write_bytes(lines())

    expected = scan_whole(plain, SketchRecords(RULE))
    assert [row["sketch"] for row in records] == [row["sketch"] for row in expected]
    assert [(row["source"], row["split"], row["seq"]) for row in records] == [(name, 0, n) for n in TEXT]
    assert all(row["reason"] is None for row in records)
    assert sorted(map(str, terms)) == sorted(map(str, scan_whole(plain, WordCounter(WORDS, TextRule()))))


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda consumer: type(consumer).__name__)
@pytest.mark.parametrize("name", ["a.jsonl", "a.xml", "b.xml", "a.trec"])
def test_the_parts_of_a_file_give_the_rows_of_the_whole(tmp_path: Path, name: str, consumer: Consumer) -> None:
    """The rows are the same except for their places, which are counted in each part; words are summed."""
    [group] = find(tmp_path, {name: formats()[name]}).groups
    [entry] = group.files
    assert not group.is_whole

    whole = scan_whole(group, consumer)
    parts = [
        row for part in cut_file(entry, 200) for row in rows_of(scan_part(part, group.head, consumer, LIMITS), consumer)
    ]

    if isinstance(consumer, WordCounter):
        assert sum_of(parts) == sum_of(whole)
    else:
        places = {"split": 0, "seq": 0}
        assert [row | places for row in parts] == [row | places for row in whole]
        assert len(parts) == len(TEXT)


def sum_of(rows: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Return the occurrences and documents of each term."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        occurrences, documents = found.get(row["term"], (0, 0))
        found[row["term"]] = occurrences + row["occurrences"], documents + row["documents"]
    return found


def test_contents_keep_markup_and_lines(tmp_path: Path) -> None:
    """The content keeps its markup, and JSON lines keep the line as it came; a reject has no content."""
    line = b'{"text": "<p>a</p>", "more": 1}'
    [group] = find(tmp_path, {"a.jsonl": line + b"\nno json\n"}).groups

    [row] = scan_whole(group, Contents(TextRule()))

    assert row == {"source": "a.jsonl", "split": 0, "seq": 0, "content": "<p>a</p>", "line": line.decode()}


def test_texts_are_those_of_the_wanted_contents(tmp_path: Path) -> None:
    """Texts are selected by fingerprint and cut to the wanted number of characters."""
    [group] = find(tmp_path, {"a.jsonl": lines()}).groups
    wanted = blake2b(TEXT[3].encode(), digest_size=16).digest()

    [row] = scan_whole(group, Texts(TextRule(), frozenset([wanted]), 5))

    assert row == {"source": "a.jsonl", "content_fingerprint": wanted, "text": TEXT[3][:5]}


def test_words_are_counted_in_documents_of_enough_tokens(tmp_path: Path) -> None:
    """Occurrences and documents of each word are counted, except in documents with too few tokens."""
    data = b'{"id": "1", "text": "a b a"}\n{"id": "2", "text": "b"}\n{"id": "3", "text": "b c"}\n'
    [group] = find(tmp_path, {"a.jsonl": data}).groups

    assert sum_of(scan_whole(group, WordCounter(WORDS, TextRule(), min_tokens=2))) == {
        "a": (2, 1),
        "b": (2, 2),
        "c": (1, 1),
    }


def test_rejects_have_their_reasons(tmp_path: Path) -> None:
    """A bad line, a document with too few tokens, a damaged file and a missing file are rejects with their reasons."""
    files = {
        "a.jsonl": b'{"id": "1", "text": "a b"}\nno json\n{"id": "2", "text": "a"}\n',
        "b.gz": gzip.compress(lines()),
    }
    collection = find(tmp_path, files)
    (tmp_path / "b.gz").write_bytes(files["b.gz"][:-12])
    rule = SketchRule(Recipe(), TextRule(), min_tokens=2)

    rows = {group.files[0].file.source: scan_whole(group, SketchRecords(rule)) for group in collection.groups}
    (tmp_path / "b.gz").unlink()
    gone = next(group for group in collection.groups if group.is_whole)

    assert [row["reason"] for row in rows["a.jsonl"]] == [None, "malformed", "short"]
    assert rows["b.gz"][-1]["reason"] == "damaged"
    assert f"the last good record is {len(rows['b.gz']) - 1} (d" in rows["b.gz"][-1]["detail"]
    assert [row["reason"] for row in scan_whole(gone, SketchRecords(rule))] == ["unreadable"]


def test_given_texts_are_sketched_as_those_of_files(tmp_path: Path) -> None:
    """Given texts have the sketches of texts in files; a null is a reject that says what is missing."""
    [group] = find(tmp_path, {"a.jsonl": lines()}).groups
    ids, texts = [f"d{n}" for n in TEXT], list(TEXT.values())
    columns = {
        "doc_id": pa.array([*ids, None, "x"], pa.string()),
        **{name: pa.nulls(14, pa.string()) for name in ("url", "title", "turns")},
        "text": pa.array([*texts, "a", None], pa.string()),
        "source": pa.array(["dataframe"] * 14),
        "split": pa.array([0] * 14, pa.int64()),
        "seq": pa.array(range(14), pa.int64()),
        "policy": pa.nulls(14, pa.list_(pa.string())),
    }
    batch = TEXTS.batch([columns[name] for name in TEXTS.names])

    rows = rows_of(SketchRecords(RULE).batches(read_texts([batch]), None), SketchRecords(RULE))

    assert [row["sketch"] for row in rows[:12]] == [row["sketch"] for row in scan_whole(group, SketchRecords(RULE))]
    assert [(row["doc_id"], row["reason"]) for row in rows[12:]] == [(None, "no id"), ("x", "no text")]


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda consumer: type(consumer).__name__)
def test_nothing_read_gives_no_row(consumer: Consumer) -> None:
    """A task without records gives no rows, nor does an empty list of records."""
    empty: list[list[LocatedRecord]] = [[]]

    assert rows_of(consumer.batches([], None), consumer) == []
    assert rows_of(consumer.batches(empty, None), consumer) == []


def test_files_are_grouped_by_their_heads(tmp_path: Path) -> None:
    """Files with equal heads are read together, a compressed one apart; one that is not understood is left unread."""
    files = {"a.jsonl": lines(), "b.jsonl": lines(), "c.gz": gzip.compress(lines()), "d.bin": b"\0\1\2" * 100}

    collection = find(tmp_path, files)

    groups = {tuple(entry.file.source for entry in group.files): group.is_whole for group in collection.groups}
    assert groups == {("a.jsonl", "b.jsonl"): False, ("c.gz",): True}
    assert [(source, reason) for source, reason, _ in collection.unread] == [("d.bin", "binary")]
    assert collection.only({"c.gz"}).groups[0].files[0].compression == "gzip"
    assert {group.is_whole for group in collection.read_whole({"a.jsonl", "b.jsonl"}).groups} == {True}


def test_a_collection_that_cannot_be_understood_says_what_would_help(tmp_path: Path) -> None:
    """The error says that there are no files, or names the file that cannot be read."""
    with pytest.raises(ConfigError, match="no files to read"):
        find(tmp_path, {})
    with pytest.raises(ConfigError, match=r"d\.bin: "):
        find(tmp_path, {"d.bin": b"\0\1\2" * 100})


def test_sources_are_lengthened_until_they_differ() -> None:
    """Sources are lengthened by parent folders; files that none distinguishes keep their addresses, without a login."""
    paths = {"x": ("/d/x", "/d/x/a"), "y": ("/d/y", "/d/y/a"), "z": ("/d/z", "/d/z/b")}
    twins = {"s3a://me:secret@one/a": ("", "/a"), "s3a://two/a": ("", "/a")}

    assert distinct_sources(paths) == {"x": "x/a", "y": "y/a", "z": "b"}
    assert set(distinct_sources(twins).values()) == {"s3a://one/a", "s3a://two/a"}


def test_characters_of_a_later_unicode_are_unread_bytes(tmp_path: Path) -> None:
    """In lines that are read in blocks, and in pages; they are added to bytes that cannot be decoded."""
    known = [b'{"id": "a", "text": "one two"}\n', '{"id": "b", "text": "one \u0378\u0379 two"}\n'.encode()]
    files = {
        "a.jsonl": b"".join([*known, b'{"id": "c", "text": "one \xcd\xb8 \xff"}\n']),
        "b.html": "<html><p title='\u0378'>one \U0001fffd".encode(),
    }
    groups = find(tmp_path, files).groups

    rows = {group.files[0].file.source: scan_whole(group, SketchRecords(RULE)) for group in groups}

    assert [row["unread_bytes"] for row in rows["a.jsonl"]] == [0, 4, 3]
    assert [row["unread_bytes"] for row in rows["b.html"]] == [4]
