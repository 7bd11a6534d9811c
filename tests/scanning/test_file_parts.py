"""The same bytes give the same records: cut off anywhere, split anyhow, or read from their start."""

import io
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nddup.reading.formats import FileHead
from nddup.reading.records import Record, Reject
from nddup.reading.streams import find_open_end
from nddup.scanning.collection import ListedFile
from nddup.scanning.input_files import InputFile
from nddup.scanning.local_files import cut_file, find_separator, read_part
from nddup.scanning.sketch_records import parse_chunks
from nddup.scanning.whole_files import StoredFile, read_file
from nddup.tables import CHUNKS
from tests.samples_by_night import every, first
from tests.scanning.small_files import WHOLE, cut, head_of

MAX_RECORD = 10_000


def chunks_of(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """Return a batch of CHUNKS as a worker gets it."""
    return CHUNKS.batch([pa.array(column) for column in zip(*rows, strict=True)])


def read_from_start(data: bytes, head: FileHead) -> list[Record | Reject]:
    """Read a file from its start, as one task does."""
    file = StoredFile("a", "", 0, partial(io.BytesIO, data))
    return [record for record, _ in read_file(file, head, MAX_RECORD)]


def read_split(data: bytes, head: FileHead, ends: list[int], chunks: list[tuple[int, bytes]]) -> list[Record | Reject]:
    """Read a file that is split at `ends`, the last split first, as different tasks would."""
    at = find_open_end(lambda start, size: data[start : start + size], len(data), head.separator, max_record=MAX_RECORD)
    found: list[Record | Reject] = []
    for start, end in reversed(list(pairwise([0, *ends, len(data)]))):
        rows = [(value, "a", start, start <= at < end) for anchor, value in chunks if start <= anchor < end]
        if rows:
            parsed = parse_chunks([chunks_of(rows)], head, MAX_RECORD)
            found[:0] = [one.record for some in parsed for one in some]
    return found


@pytest.mark.parametrize("name", first(4, dict.fromkeys(["xml", "trec", "jsonl", "utf-16", *WHOLE])))
def test_a_file_cut_off_anywhere_and_split_anyhow_gives_the_same_records(name: str) -> None:
    """Every length of a small file, under every size of split, gives the same records, rejects and reasons."""
    head = head_of(name)
    for length in range(1, len(WHOLE[name]) + 1):
        data = WHOLE[name][:length]
        chunks, expected, seen = cut(data, head.separator), read_from_start(data, head), set()
        for size in range(1, length + 1):
            places = tuple(anchor // size for anchor, _ in chunks)
            if places not in seen:  # else each split has the same chunks as before
                seen.add(places)
                found = read_split(data, head, list(range(size, length, size)), chunks)
                assert found == expected, (length, size)


def test_the_end_of_a_file_is_found_however_far_its_last_separator_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last separator is found for any length of the last chunk up to the longest record, in one read or several."""
    monkeypatch.setattr("nddup.reading.streams.TAIL", 3)
    for separator in (b"\n", b"</d>"):
        for before in (b"", separator, b"<d>a" + separator):
            for length in range(130):
                data = before + b"x" * length

                at = find_open_end(lambda start, size: data[start : start + size], len(data), separator, max_record=100)  # noqa: B023

                open_end = max(data.rfind(separator), 0)
                is_seen = length and (length <= 100 or len(data) <= 100 + len(separator))
                assert at == (open_end if is_seen else -1 if before or length else 0), (before, length)


@pytest.mark.parametrize("name", every(2, WHOLE))
def test_the_parts_of_a_file_give_its_records(tmp_path: Path, name: str) -> None:
    """No record is lost or read twice, for every size of part of a small file, whole or cut off in its last record."""
    head = head_of(name)
    for length in (len(WHOLE[name]), len(WHOLE[name]) - 5):
        data = WHOLE[name][:length]
        (tmp_path / "a").write_bytes(data)
        entry = ListedFile(InputFile(str(tmp_path / "a"), "a", length, 0), "", -1)
        expected = read_from_start(data, head)

        for size in range(1, length + 1):
            found = [one for part in cut_file(entry, size) for one in read_part(part, head, MAX_RECORD)]

            assert [one.record for one in found] == expected, (length, size)
            assert [(one.split, one.seq) for one in found] == sorted({(one.split, one.seq) for one in found})


def test_a_record_that_is_too_long_is_a_reject_of_its_part(tmp_path: Path) -> None:
    """A record that is too long is one reject, also if it goes on through several parts."""
    head = head_of("jsonl")
    lines = [b'{"id": "1", "text": "a"}', b'{"id": "2", "text": "' + b"b" * 500 + b'"}', b'{"id": "3", "text": "c"}']
    data = b"\n".join(lines)
    (tmp_path / "a").write_bytes(data)
    entry = ListedFile(InputFile(str(tmp_path / "a"), "a", len(data), 0), "", -1)

    for size in (7, 100, 1000):
        found = [one.record for part in cut_file(entry, size) for one in read_part(part, head, 100)]

        assert [one.reason if isinstance(one, Reject) else one.doc_id for one in found] == ["1", "too large", "3"]


def test_a_separator_is_found_across_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A separator is found wherever a piece ends; in UTF-16 only at a whole code unit."""
    data = b"ab</d>c</d></d"
    for piece in range(1, 8):
        monkeypatch.setattr("nddup.scanning.local_files.PIECE", piece)
        places = [find_separator(io.BytesIO(data), start, b"</d>") for start in range(len(data) + 2)]

        assert places == [2] * 3 + [7] * 5 + [None] * 8
        assert find_separator(io.BytesIO(b"xab ab "), 0, b"ab", 2) == 4
