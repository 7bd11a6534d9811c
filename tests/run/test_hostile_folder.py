"""A folder of files that mean harm ends in rejects, on Spark as on the embedded engine, with the same tables."""

import bz2
import gzip
import io
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from tests.finished_runs import run_over, sorted_tables

SETTINGS = {"input": {"max_record": "1MB", "max_rejects": 1.0}, "output": {"report": False}}
LINE = b'{"id": %d, "text": "a b c d e f g h %d"}\n'


def captured(body: bytes, encoding: str) -> bytes:
    """Return one record of a WARC file, with an encoded body."""
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {encoding}\r\n\r\n".encode() + body
    head = f"WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: {len(http)}\r\n\r\n"
    return head.encode() + http + b"\r\n\r\n"


def archive_of(count: int) -> bytes:
    """Return a WACZ file of empty files, and of one that is compressed twice."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(count):
            file.writestr(f"archive/{number}.warc", b"")
        file.writestr("archive/twice.warc.gz", gzip.compress(bytes(8 << 20)) * 4)
        file.writestr("../../outside.warc", captured(b"<p>outside", "identity"))
    return sink.getvalue()


def chats() -> bytes:
    """Return a file of Parquet with a row that repeats a long value through the dictionary."""
    said = pa.DictionaryArray.from_arrays(np.zeros(9_000, np.int32), ["a " * 100_000])
    messages = pa.StructArray.from_arrays([pa.repeat("user", 9_000), said], ["role", "content"])
    table = pa.table({"id": [1], "messages": pa.ListArray.from_arrays(pa.array([0, 9_000], pa.int32()), messages)})
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False)
    return sink.getvalue()


FILES: dict[bytes, Callable[[], bytes]] = {
    b"good.jsonl": lambda: b"".join(LINE % (number, number % 7) for number in range(40)),
    b"row.csv": lambda: b'id,text\n1,"' + b"\n" * 1_100_000 + b'"\n2,a b c d e f g h\n',
    b"long.csv.bz2": lambda: bz2.compress(b"id,text\n1,a" + b"a" * (8 << 20)),
    b"zeros.bz2": lambda: bz2.compress(bytes(8 << 20)),
    b"lines.jsonl.zst": lambda: zstandard.compress((LINE[:-3] % (1, 1) + b"x" * 2_000 + b'"}\n') * 9_000),
    b"short.jsonl.zst": lambda: zstandard.compress(b"{}\n" * 2_000),
    b"cut.jsonl.gz": lambda: gzip.compress(b"".join(LINE % (number, number) for number in range(50)))[:-9],
    b"nothing.jsonl.gz": lambda: gzip.compress(b""),
    b"bodies.warc": lambda: captured(gzip.compress(b"a b" * 900_000), "gzip") * 9 + captured(b"<p>" * 9_000, ""),
    b"many.wacz": lambda: archive_of(300),
    b"bomb.zip": lambda: archive_of(3),
    b"head.eml": lambda: b"Subject: =?utf-8?q?" + b"=41" * 90_000 + b"?=\nX: " + b"y;" * 90_000 + b"\n\nbody a b c\n",
    b"entities.xml": lambda: b'<!DOCTYPE r [<!ENTITY b "' + b"&a;" * 900 + b'">]><r><d>&b;</d></r>',
    b"deep.json": lambda: b'{"id": 1, "text": ' + b"[" * 90_000 + b"}\n" + LINE % (1, 1),
    b"array.json": lambda: b"[\n" + b",\n".join([LINE[:-1] % (70, 1), b'{"id": 71}', b"[[", LINE[:-1] % (72, 2)]),
    b"list.json": lambda: b'{"data": [' + b", ".join([LINE[:-1] % (90, 1), b"[[", LINE % (91, 2)]) + b'], "a',
    b"deep.data.json": lambda: b'{"data": ' * 90_000 + b'[{"text": "a b"}]',
    b"spread.json.gz": lambda: gzip.compress((LINE % (80, 1) + LINE % (81, 2)).replace(b", ", b",\n ")),
    b"deep.html": lambda: b"<p>a b c" + b"<b>" * 90_000,
    b"chats.parquet": chats,
    b"half.parquet": lambda: chats()[:-300],
    b"caf\xe9\xff.jsonl": lambda: LINE % (7, 7),
    b"line\nend\x1b[2J.jsonl": lambda: LINE % (8, 8),
}  # fmt: skip
"""Files by their names, which are bytes."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of `FILES`, with links that lead outside and in circles, a pipe, and a folder within a folder."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.jsonl").write_bytes(LINE % (99, 99))
    folder = tmp_path_factory.mktemp("hostile")
    for name, make in FILES.items():
        (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).write_bytes(make())
    (folder / "circle").symlink_to(folder)
    (folder / "outside").symlink_to(outside)
    (folder / "secret.jsonl").symlink_to(outside / "secret.jsonl")
    (folder / "memory.jsonl").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.jsonl")
    return folder


def test_a_hostile_folder_is_read_alike_by_both_engines(spark: SparkSession, hostile: Path, tmp_path: Path) -> None:
    """Each run ends; what is not read is in rejects or skipped, nothing outside is read, and all tables are equal."""
    run_locally([str(hostile)], str(tmp_path / "embedded"), build_config(SETTINGS, origin="test"))
    run_over(spark, [hostile], tmp_path / "spark", SETTINGS)

    due, made = (sorted_tables(tmp_path / name) for name in ("embedded", "spark"))
    assert made == due
    assert len(due["documents"]) > 40
    assert not any("secret" in row or "doc_id='99'" in row for row in due["documents"])
    reasons = {reason for row in due["rejects"] for reason in re.findall(r"reason='([a-z ]+)'", row)}
    assert reasons >= {"too large", "damaged", "no records", "binary"}
