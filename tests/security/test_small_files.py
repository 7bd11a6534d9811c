"""A small file takes little time and memory, whatever it expands to: tried in a process with limits on both."""

import bz2
import gzip
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.embedded.run import run_locally
from nddup.errors import NeedsSparkError
from nddup.reading.containers import container_head
from nddup.reading.outcomes import Reject
from nddup.reading.parquet_rows import Rows, limit_rows, read_rows
from nddup.reading.streams import StoppedError
from nddup.scanning.collection import find_files
from nddup.scanning.file_heads import HeadError, inspect_head, most_expanded
from nddup.scanning.walk import members_of, open_member, open_stored, split_member
from nddup.settings.load import build_config, load_config
from nddup.storage.local_storage import LocalStorage
from tests.finished_runs import write_texts
from tests.places import ROOT
from tests.samples_by_night import first

PROGRAM = """
import io, os, resource, sys
from pathlib import Path
from nddup.reading.containers import container_head, read_container
from nddup.reading.streams import compression_of, expand_head

def read(file):
    with open("/proc/self/statm") as status:
        most = int(status.read().split()[0]) * resource.getpagesize() + (160 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    data, name = file.read_bytes(), file.name.partition("-")[2]
    compression = compression_of(data[:16])
    head = container_head(expand_head(data[:65536], 65536), name, None, {})
    found = read_container(
        io.BytesIO(data), head, source=name, compression=compression, limit=80 << 20, max_record=8 << 20
    )
    reasons = [getattr(item, "reason", "read") for item in found]
    print(*sorted({f"{reason} {reasons.count(reason)}" for reason in reasons}), flush=True)

for file in sorted(Path(sys.argv[1]).iterdir()):
    if not (child := os.fork()):
        read(file)
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        print("status", status, flush=True)
"""


def of_web(body: bytes, encoding: str, kind: str = "text/html") -> bytes:
    """Return one record of a WARC file, with an encoded body."""
    http = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Encoding: {encoding}\r\n\r\n".encode() + body
    head = f"WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: {len(http)}\r\n\r\n"
    return head.encode() + http + b"\r\n\r\n"


def nested(times: int) -> bytes:
    """Return gzip in gzip."""
    data = b"<p>a " * 1_000_000
    for _ in range(times):
        data = gzip.compress(data)
    return data


ENTITIES = b"".join(b'<!ENTITY l%d "%s">' % (i, b"&l%d;" % (i - 1) * 10) for i in range(1, 12))
FILES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "bz2": ("a.csv", lambda: bz2.compress(b"id,text\n" + b"a" * (90 << 20)), "too large 1"),
    "bodies": ("a.warc", lambda: of_web(gzip.compress(b"a b" * 2_000_000), "gzip") * 40, "read 1 too large 39"),
    "nested": ("a.warc", lambda: of_web(nested(3), "gzip, gzip, gzip") * 20, "read 1 too large 19"),
    "entities": (
        "a.warc",
        lambda: of_web(b"<!DOCTYPE r [<!ENTITY l0 'ha'>%s]><rss>&l11;</rss>" % ENTITIES, "", "application/rss+xml"),
        "read 1",
    ),
    "deep feed": ("a.warc", lambda: of_web(b"<rss>" + b"<a>" * 300_000, "", "application/rss+xml"), "read 1"),
    "lines of a row": ("a.csv", lambda: b'id,text\n1,"' + b"\n" * 1_100_000, "read 1"),
}


def test_small_files_take_little(tmp_path: Path) -> None:
    """Bombs of each kind are read or refused, within 30 s and 160 MB more than the program itself has."""
    for number, (name, make, _) in enumerate(FILES.values()):
        (tmp_path / f"{number}-{name}").write_bytes(make())

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False, cwd=ROOT
    )

    assert done.stderr == ""
    assert dict(zip(FILES, done.stdout.splitlines(), strict=True)) == {kind: file[2] for kind, file in FILES.items()}


def tables_of(values: pa.Array, **how: Any) -> bytes:  # noqa: ANN401
    """Return a file of Parquet with these texts."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(np.zeros(len(values), np.int8)), "text": values}), sink, **how)
    return sink.getvalue()


ROWS: dict[str, Callable[[], bytes]] = {
    "short": lambda: tables_of(pa.DictionaryArray.from_arrays(np.zeros(9_000_000, np.int32), ["a"])),
    "long": lambda: tables_of(pa.DictionaryArray.from_arrays(np.zeros(9_000, np.int32), ["a " * 500_000])),
    "pages": lambda: tables_of(
        pa.array(["a " * 500_000] * 100), use_dictionary=False, compression="zstd", write_batch_size=4
    ),
    "shared": lambda: tables_of(
        pa.array([f"{'a' * 500_000} {i}" for i in range(200)]), use_dictionary=False, compression="zstd",
        column_encoding={"id": "PLAIN", "text": "DELTA_BYTE_ARRAY"},
    ),
}  # fmt: skip


def chats_of(lengths: list[int], content: str, **how: Any) -> bytes:  # noqa: ANN401
    """Return a file of Parquet with chats of so many messages, all of which repeat a content."""
    total = sum(lengths)
    said = pa.DictionaryArray.from_arrays(np.zeros(total, np.int32), [content])
    messages = pa.StructArray.from_arrays([pa.repeat("user", total), said], ["role", "content"])
    lists = pa.ListArray.from_arrays(np.cumsum([0, *lengths]).astype(np.int32), messages)
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(len(lengths)), "messages": lists}), sink, store_schema=False, **how)
    return sink.getvalue()


CHATS: dict[str, tuple[Callable[[], bytes], str, int]] = {
    "one long list": (lambda: chats_of([9_000] + [1] * 9_000, "a b " * 100_000), "values of up to", 0),
    "many entries": (lambda: chats_of([4_300_000], ""), "lists of 4,300,000 entries", 0),
    "a long prompt": (lambda: chats_of([3] * 5_000, "a b " * 1_000), "", 5_000),
}


@pytest.mark.parametrize("kind", CHATS)
def test_lists_that_repeat_a_value_expand_to_a_bound(kind: str) -> None:
    """One row of a list may repeat a long value any number of times; many rows that repeat one are read."""
    make, detail, count = CHATS[kind]
    raw = io.BytesIO(make())
    head = container_head(raw.getvalue()[:100], "a.parquet", None, {})
    assert head is not None
    before, rows, refused, peak = pa.total_allocated_bytes(), 0, "", 0
    for some in read_rows(raw, head, 16 << 20):
        peak = max(peak, pa.total_allocated_bytes() - before)
        if isinstance(some, Rows):
            rows += some.batch.num_rows
        else:
            refused = some.detail
    assert rows == count
    assert refused.startswith(detail)
    assert peak < 16 << 20


@pytest.mark.parametrize("count", [4, 100])
def test_small_files_share_what_they_may_expand_to(tmp_path: Path, count: int) -> None:
    """Each counts as 4 kB at least, and all together expand to 64 MB, or to 200 times what they count for."""
    bomb = bz2.compress(b'{"id": 1, "text": "a b"}\n' * 5_000)
    for number in range(count):
        (tmp_path / f"{number}.jsonl.bz2").write_bytes(bomb)

    found = find_files(LocalStorage(), [str(tmp_path)], load_config().input)

    allowed = [entry.most for group in found.groups for entry in group.files]
    assert len(allowed) == count
    assert sum(allowed) <= max(64 << 20, count * max(len(bomb), 4_096) * 200)


@pytest.mark.parametrize("kind", ROWS)
def test_small_tables_expand_to_a_bound(kind: str) -> None:
    """Rows are decoded a few MB at a time, and those that pass the bound are one reject; empty ones count too."""
    raw, peak = io.BytesIO(ROWS[kind]()), 0
    head = container_head(raw.getvalue()[:100], "a.parquet", None, {})
    assert head is not None
    before, rows, last = pa.total_allocated_bytes(), 0, None
    for last in limit_rows(read_rows(raw, head, 8 << 20), raw, 64 << 20):
        peak = max(peak, pa.total_allocated_bytes() - before)
        rows += last.batch.num_rows if isinstance(last, Rows) else 0
    assert isinstance(last, Reject)
    assert last.reason == "too large"
    assert rows <= 1 << 20
    assert peak < 64 << 20


def zip_of(members: dict[str, bytes], *, lie: int = 0) -> bytes:
    """Return a ZIP archive; with `lie`, its directory names the first of them so many times by other names."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)
        first = file.filelist[0]
        for number in range(lie):
            other = copy(first)
            other.filename = f"archive/{number:06}.warc"
            file.filelist.append(other)
            file._didModify = True  # type: ignore[attr-defined]  # noqa: SLF001
    return sink.getvalue()


ARCHIVES: dict[str, tuple[Callable[[], bytes], int]] = {
    "compressed twice": (lambda: zip_of({"archive/a.warc.gz": gzip.compress(b"\0" * (100 << 20)) * 50}), 1),
    "overlapping": (lambda: zip_of({"archive/a.warc": b"a" * 999_999}, lie=2_000), 0),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_archives_in_archives_expand_to_a_bound(tmp_path: Path, kind: str) -> None:
    """What a file of a WACZ file may expand to follows its stored bytes; files that overlap are not read at all."""
    make, count = ARCHIVES[kind]
    (tmp_path / "a.wacz").write_bytes(make())
    files = LocalStorage().list_inputs([str(tmp_path / "a.wacz")]).files
    listed = [file for file in files if split_member(file.path)]
    assert len(listed) == count
    assert sum(most_expanded(file, 200, len(listed)) for file in listed) <= 64 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_file_of_an_archive_that_expands_at_once_is_not_opened(tmp_path: Path, method: int) -> None:
    """What Python's reader expands without a bound, some 1,400 times and more, is a reject."""
    with zipfile.ZipFile(tmp_path / "a.wacz", "w", method) as file:
        file.writestr("archive/a.warc", of_web(b"<p>a b", ""))
    (listed,) = LocalStorage().list_inputs([str(tmp_path / "a.wacz")]).files
    with pytest.raises(StoppedError, match="stored or deflated"):
        open_stored(listed.path)


@pytest.mark.parametrize("name", ["archive/../../x.warc", "archive/./x.warc", "archive//x.warc", "archive/a/../x.warc"])
def test_names_in_an_archive_lead_nowhere(tmp_path: Path, name: str) -> None:
    """As a path such a name would be another file, which Spark opens: the archive is not read as one."""
    (tmp_path / "in").mkdir()
    (tmp_path / "x.warc").write_text("a file of the user, outside")
    (tmp_path / "in" / "a.wacz").write_bytes(zip_of({name: b"a" * 99, "archive/b.warc": b"b" * 99}))
    files = LocalStorage().list_inputs([str(tmp_path / "in")]).files
    assert [file.source for file in files] == ["a.wacz"]


def test_damaged_files_of_an_archive_are_one_line(tmp_path: Path) -> None:
    """Bytes that do not decompress, and files that are no WARC: each is a reject or a line of the command."""
    packed = bytearray(
        zip_of(
            {"archive/a.warc": os.urandom(9_000).hex().encode(), "archive/b.warc": b'{"id": 1, "text": "a b"}\n' * 99}
        )
    )
    packed[60:300] = b"\xff" * 240
    (tmp_path / "a.wacz").write_bytes(packed)

    files, found = LocalStorage(), {}
    for file in files.list_inputs([str(tmp_path / "a.wacz")]).files:
        seen = inspect_head(files, file, build_config({}, origin="test").input)
        found[file.source] = seen.detail if isinstance(seen, HeadError) else ""
    assert found["a.wacz!archive/a.warc"]
    assert "no WARC file" in found["a.wacz!archive/b.warc"]


def test_a_directory_of_an_archive_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many files of a WACZ file are opened; a file that was replaced is read again."""
    path, opened, archive = tmp_path / "a.wacz", list[str](), zipfile.ZipFile

    def count_opened(name: str) -> zipfile.ZipFile:
        opened.append(name)
        return archive(name)

    monkeypatch.setattr(zipfile, "ZipFile", count_opened)
    for count in (300, 20):
        with archive(path, "w") as file:
            for number in range(count):
                file.writestr(f"archive/{number}.warc", b"%d" % number)
        names = [name for name, _ in members_of(str(path))]

        assert [open_member(str(path), name).read() for name in names] == [b"%d" % number for number in range(count)]
    assert len(opened) == 2


@pytest.mark.parametrize("closed", first(1, ["2>&- 1< /dev/null", "2>&-", "1< /dev/null", ">&-", "2< /dev/null"]))
def test_closed_streams_change_nothing(tmp_path: Path, closed: str) -> None:
    """A run without an output or error that can be written succeeds, and what would be printed gets into no file."""
    (tmp_path / "a.jsonl").write_text("".join(f'{{"id": "{i}", "text": "{"a b c d e f g " * 9}"}}\n' for i in (1, 2)))
    program = f"{sys.executable} -c 'import sys; from nddup.cli import main; sys.exit(main(sys.argv[1:]))'"
    command = f"{program} run {tmp_path}/a.jsonl --output {tmp_path}/out --engine local --set output.report=false"

    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {closed}"], env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False
    )

    assert done.returncode == 0
    assert (tmp_path / "out" / "_COMPLETE").exists()
    for file in (tmp_path / "out").rglob("*"):
        assert file.is_dir() or b"documents read" not in file.read_bytes()


@pytest.mark.parametrize("threshold", [0.67, 0.7])
def test_texts_just_below_the_threshold_are_compared_with_none(tmp_path: Path, threshold: float) -> None:
    """Any number of short texts, each two of a resemblance of 2/3, make no candidates, which would be two million."""
    texts = {f"d{number}": f"a b c d e f g h {number}" for number in range(2_000)}
    file = write_texts(tmp_path / "a.jsonl", texts)
    config = build_config({"pairs": {"threshold": threshold}, "output": {"report": False}}, origin="test")

    metrics = run_locally([str(file)], str(tmp_path / "run"), config)

    assert metrics["stages"]["pairs"]["distinct_sketches"] == len(texts)
    assert metrics["stages"]["pairs"]["candidates"] == 0


def test_rows_of_copies_are_refused_before_they_are_made(tmp_path: Path) -> None:
    """Few groups of equal texts that are all alike would have millions of pairs; a lower limit gives a star of each."""
    same = " ".join("abcdefghijklmnopqrstuvwxy")
    texts = {f"d{group}-{copy}": f"{same} {group}" for group in range(5) for copy in range(990)}
    file = write_texts(tmp_path / "a.jsonl", texts)
    given = {"output": {"report": False}, "local": {"memory": "1GB"}}

    with pytest.raises(NeedsSparkError, match="4,950 documents with 12,248,775 pairs may need"):
        run_locally([str(file)], str(tmp_path / "run"), build_config(given, origin="test"))
    starred = build_config({**given, "pairs": {"expand_limit": 1000}}, origin="test")
    metrics = run_locally([str(file)], str(tmp_path / "few"), starred)

    assert metrics["rows"]["pairs"] < 2 * len(texts)
