"""Records: bytes of memory for each byte of one record, from its file to its sketch, for usual and hostile records.

The function that Spark's workers run reads each record in another process; the peak is above the memory held before.
"""

import argparse
import base64
import ctypes
import gc
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.recording import BUILD, drop, record, show
from nddup.reading.containers import container_head
from nddup.reading.detect import read_head
from nddup.reading.page_limits import count_parts
from nddup.scanning.collection import ListedFile
from nddup.scanning.found import RecordLimits, SketchRule, TextRule
from nddup.scanning.input_files import InputFile
from nddup.scanning.local_files import scan_files
from nddup.scanning.sketch_records import SketchRecords
from nddup.sketching.recipe import Recipe
from nddup.spark.daemon import load_kernels

PROSE = b"the quick brown fox jumped over 13 lazy dogs and went on to write about it 42 times. "
PIECES = {
    "prose": PROSE,
    "Cyrillic": "Съешь же ещё этих мягких французских булок, да выпей чаю. ".encode(),
    "words of a letter": b"a b c d e f g h i j k l m n o p q r s t u v w x y z ",
    "with an emoji": PROSE,
    "empty tags": b"<p>",
    "attributes": b"<p a b c d e f>",
    "tags and letters": b"a<b/>",
    "empty objects": b'{"a":{}},',
    "short values": '"яя",'.encode(),
    "short cells": b"aa,",
    "short lines": b"ab\n",
    "empty elements": b"</TEXT><TEXT>",
}
"""Fillings of a record. The emoji is one last character, by which every character of a string takes four bytes."""

TEXTS = ("prose", "Cyrillic", "words of a letter", "with an emoji")
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
CASES = {
    "html": (b"<html><body>", b"", (*TEXTS, "empty tags", "attributes")),
    "xml": (b"<r><doc><id>1</id><text>", b"</text></doc></r>", (*TEXTS, "empty tags", "tags and letters")),
    "romip": (b'<r><document><docID>1</docID><content encoding="base64">', b"</content></document></r>", TEXTS),
    "jsonl": (b'{"id": "1", "text": "', b'"}\n', TEXTS),
    "json values": (b'{"id": "1", "text": ["a",', b'""]}\n', ("empty objects", "short values")),
    "csv": (b'id,text\n1,"', b'"\n', (*TEXTS, "short lines")),
    "csv cells": (b"id,text\n1,", b"\n", ("short cells",)),
    "parquet": (b"", b"", TEXTS),
    "warc": (
        b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: %d\r\n\r\n" + PAGE,
        b"\r\n\r\n",
        (*TEXTS, "empty tags"),
    ),
    "trec": (b"<DOC><DOCNO>1</DOCNO><TEXT>", b"</TEXT></DOC>", (*TEXTS, "empty tags", "empty elements")),
}
"""By format: the bytes before and after a record's filling, and its fillings."""

NAMES = {"html": "a.html", "csv": "a.csv", "csv cells": "a.csv", "parquet": "a.parquet"}
OPTIONS = {"id": None, "url": None, "content": None, "charset": None}
CONSUMER = SketchRecords(SketchRule(Recipe(), TextRule()))
LIMITS = RecordLimits(max_record=64 << 20)
CHILD = "import sys; from bench.records import measure_all; measure_all(sys.argv[1], sys.argv[2:])"
Case = tuple[str, str]
"""A format and a filling."""


def run(options: argparse.Namespace) -> None:
    """Measure each case; print the bytes of memory per byte of record, and the outcome."""
    megabytes = options.megabytes or (3 if options.small else 30)
    peaks = peaks_of([(kind, filling) for kind in CASES for filling in CASES[kind][2]], megabytes)
    rows = [[*case, peak / 1e6, peak / megabytes / 1e6, outcome] for case, (peak, outcome) in peaks.items()]
    show(f"records: memory of one record of {megabytes} MB, from file to sketch",
         ["format", "filled with", "MB", "bytes a byte", "outcome"], rows)  # fmt: skip
    record("records", options, megabytes=megabytes, rows=rows)


def peaks_of(cases: Sequence[Case], megabytes: int) -> dict[Case, tuple[int, str]]:
    """Return the bytes of memory and the outcome for a record of `megabytes` MB in each case."""
    command = [sys.executable, "-c", CHILD, str(megabytes * 1_000_000), *("/".join(case) for case in cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(zip(cases, (tuple(json.loads(line)) for line in done.stdout.splitlines()), strict=True))


def make_file(kind: str, filling: str, size: int) -> bytes:
    """Return a file of one record with `size` bytes of a filling."""
    before, after, _ = CASES[kind]
    body = PIECES[filling] * (size // len(PIECES[filling]))
    body += "😀".encode() if filling == "with an emoji" else b""
    if kind == "romip":
        body = base64.b64encode(body[: size * 3 // 4])
    if kind == "warc":
        before %= len(before.partition(b"\r\n\r\n")[2]) + len(body)
    if kind == "parquet":
        data = io.BytesIO()
        pq.write_table(pa.table({"id": ["1"], "text": [body.decode()]}), data, compression="none")
        return data.getvalue()
    return before + body + after


def measure_all(size: str, cases: Sequence[str]) -> None:
    """Print the bytes of memory and the outcome of each case, a line each; runs in a process of its own."""
    load_kernels()
    count_parts(b"<p>", is_xml=False)
    for case in cases:
        kind, _, filling = case.partition("/")
        print(json.dumps(_measure(kind, filling, int(size))))


def _measure(kind: str, filling: str, size: int) -> tuple[int, str]:
    """Read and sketch one record; return the peak above the memory held before, and the outcome."""
    path = BUILD.absolute() / f"{os.getpid()}-{NAMES.get(kind, 'a')}"
    BUILD.mkdir(parents=True, exist_ok=True)
    path.write_bytes(make_file(kind, filling, size))
    front = make_file(kind, CASES[kind][2][0], 100)
    head = container_head(front, path.name, None, OPTIONS) or read_head(front)
    entry = ListedFile(InputFile(str(path), "a", path.stat().st_size, 0), "", -1)

    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    before = _status("VmRSS")
    outcomes = set()
    for made in scan_files([entry], head, CONSUMER, LIMITS):
        outcomes |= {reason or "read" for reason in made.column("reason").to_pylist()}
    peak = _status("VmHWM") - before
    drop(path)
    return peak, ", ".join(sorted(outcomes))


def _status(name: str) -> int:
    """Return the bytes that Linux reports for this process under a name."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) << 10 if found else 0
