"""Collections of two shards in many formats, with every byte known: each record, and the bytes around the records."""

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.results.kind_runs import texts


class Form(NamedTuple):
    """A format: the ending of its files, the bytes before and after the records, and how a record is written.

    `pack` compresses bytes; with `members` each record is compressed on its own.
    """

    ending: str
    head: bytes
    spell: Callable[[str, str, int], bytes]
    tail: bytes
    pack: Callable[[bytes], bytes] = bytes
    unpack: Callable[[bytes], bytes] = bytes
    members: bool = False


def json_line(name: str, text: str, number: int) -> bytes:
    """Write an object with more keys, irregular blanks, and a number with more digits than a float."""
    rest = f'"score": 0.1000000000000000055511151231257827, "tags": ["a", {{"b": {number}}}], "lang" :"рус"'
    return f'{{"id":{json.dumps(name)},"text": {json.dumps(text)},  {rest} }}\n'.encode()


def json_pair(name: str, text: str, number: int) -> bytes:
    """Write an action of Elasticsearch, and the line of a document with another id."""
    return f'{{"index": {{"_index":"a", "_id": {json.dumps(name)}}}}}\n'.encode() + json_line("7", text, number)


def xml_record(name: str, text: str, number: int) -> bytes:
    """Write a record with attributes, a prefix, a comment and a stray `&`."""
    extra = f"<!-- {number} --><x:date at='2020-01-{number % 28 + 1:02}'/><link>http://x/?a=1&b=2</link>"
    return f"  <doc n={quoteattr(name)} lang='ru'>{extra}<id>{name}</id><text>{escape(text)} Ж</text></doc>".encode()


def cyrillic_record(name: str, text: str, number: int) -> bytes:
    """Write the same record in windows-1251."""
    return xml_record(name, text, number).decode().encode("cp1251")


def wide_record(name: str, text: str, number: int) -> bytes:
    """Write the same record in UTF-16."""
    return xml_record(name, text, number).decode().encode("utf-16-le")


def row(name: str, text: str, number: int) -> bytes:
    """Write a self-closing row on its own line."""
    body = quoteattr(f"<p>{text}</p>")
    return f'  <row Id={quoteattr(name)} Score="{number}" Body={body} />\r\n'.encode()


def trec_record(name: str, text: str, number: int) -> bytes:
    """Write a newswire record with a date."""
    return f"<DOC>\n<DOCNO> {name} </DOCNO>\n<DATE>{number}</DATE>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n".encode()


def warc_record(name: str, text: str, number: int) -> bytes:
    """Write a page after its request, and a picture after some pages; requests and pictures are no documents."""
    page = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><p>{text}</p></html>".encode()
    picture = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n\r\n\0"
    found = _warc("request", f"{name}.q", b"GET / HTTP/1.1\r\n\r\n", "application/http; msgtype=request")
    found += _warc("response", name, page, "application/http; msgtype=response")
    return found + (
        _warc("response", f"{name}.png", picture, "application/http; msgtype=response") if number % 3 else b""
    )


def _warc(kind: str, name: str, block: bytes, content_type: str) -> bytes:
    fields = f"WARC-Type: {kind}\r\nWARC-Record-ID: <{name}>\r\nWARC-Target-URI: http://x.example/{name}\r\n"
    head = f"WARC/1.0\r\n{fields}Content-Type: {content_type}\r\nContent-Length: {len(block)}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"


def csv_row(name: str, text: str, number: int) -> bytes:
    """Write a row with a date and a quoted cell that holds line ends and quotes."""
    written = io.StringIO(newline="")
    csv.writer(written).writerow([name, "2020-01-01", 'he said "no"\r\nand left', text, f"{number}.50"])
    return written.getvalue().encode()


def wide_row(name: str, text: str, number: int) -> bytes:
    """Write a row with semicolons in UTF-16."""
    return f"{name};{text};{number}\n".encode("utf-16-le")


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


XML_HEAD = b"<?xml version='1.0' encoding='utf-8'?>\n<!DOCTYPE docs>\n<docs xmlns:x='urn:x'>\n"
INFO = _warc("warcinfo", "info", b"software: a\r\n", "application/warc-fields")
FORMS: dict[str, Form] = {
    "jsonl": Form("jsonl", b"", json_line, b""),
    "pairs": Form("json", b"", json_pair, b""),
    "jsonl.gz": Form("jsonl.gz", b"", json_line, b"", gzip.compress, gzip.decompress),
    "xml": Form("xml", XML_HEAD, xml_record, b"\n</docs>\n"),
    "xml.bz2": Form("xml.bz2", XML_HEAD, xml_record, b"\n</docs>\n", bz2.compress, bz2.decompress),
    "xml.cp1251": Form("xml", XML_HEAD.replace(b"utf-8", b"windows-1251"), cyrillic_record, b"\n</docs>\n"),
    "xml.utf16": Form(
        "xml", b"\xff\xfe" + XML_HEAD.decode().replace("utf-8", "utf-16").encode("utf-16-le"), wide_record,
        "\n</docs>\n".encode("utf-16-le"),
    ),
    "rows": Form("xml", b'<?xml version="1.0"?>\r\n<posts>\r\n', row, b"</posts>\r\n"),
    "trec": Form("trec", b"", trec_record, b""),
    "trec.zst": Form("trec.zst", b"", trec_record, b"", zstandard.ZstdCompressor().compress, _zstd),
    "warc": Form("warc", INFO, warc_record, b""),
    "warc.gz": Form("warc.gz", INFO, warc_record, b"", gzip.compress, gzip.decompress, members=True),
    "csv": Form("csv", b"id,date,remark,text,score\r\n", csv_row, b""),
    "csv.xz": Form(
        "csv.xz", b"\xef\xbb\xbfid,date,remark,text,score\r\n", csv_row, b"", lzma.compress, lzma.decompress
    ),
    "csv.utf16": Form("csv", b"\xff\xfe" + "id;text;score\n".encode("utf-16-le"), wide_row, b""),
}  # fmt: skip
SHARDS = ("one/part", "part")


def documents() -> dict[str, str]:
    """Return texts that every format can hold."""
    return {name: text.replace("\n", " ") for name, text in texts().items() if text.strip()}


def shards() -> dict[str, list[tuple[str, str, int]]]:
    """Return the documents of each shard, in order: name, text, number."""
    placed = [(name, text, number) for number, (name, text) in enumerate(documents().items())]
    return {shard: placed[at :: len(SHARDS)] for at, shard in enumerate(SHARDS)}


def lay_out(form: Form, records: list[bytes]) -> bytes:
    """Return the uncompressed bytes of a shard."""
    return form.head + BETWEEN.get(form.spell, b"").join(records) + form.tail


BETWEEN: dict[Any, bytes] = {xml_record: b"\n", cyrillic_record: b"\n", wide_record: "\n".encode("utf-16-le")}
"""Bytes between two records that do not end with a line end."""


def write_shards(form: Form, folder: Path, prefix: str = "") -> Path:
    """Write both shards, with `prefix` before each id; return the folder."""
    for shard, placed in shards().items():
        records = [form.spell(prefix + name, text, number) for name, text, number in placed]
        path = folder / f"{shard}.{form.ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = b"".join(map(form.pack, [form.head, *records])) if form.members else form.pack(lay_out(form, records))
        path.write_bytes(data)
    return folder


def write_parquet(folder: Path, prefix: str = "") -> list[str]:
    """Write both shards as Parquet of several row groups and many column types; return the names of the columns."""
    for shard, placed in shards().items():
        path = folder / f"{shard}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({
            "at": pa.array([one[2] * 10**15 for one in placed], pa.timestamp("us", "UTC")),
            "text": [one[1] for one in placed],
            "tags": [[{"a": one[2]}] * (one[2] % 3) for one in placed],
            "id": [prefix + one[0] for one in placed],
            "lang": pa.array(["ru", None] * 50)[: len(placed)].dictionary_encode(),
            "price": pa.array([Decimal(one[2]) / 8 for one in placed], pa.decimal128(9, 3)),
        })  # fmt: skip
        pq.write_table(table, path, row_group_size=5, compression="zstd")
    return list(table.schema.names)
