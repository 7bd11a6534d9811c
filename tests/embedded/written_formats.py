"""The same texts as a file, or a folder, of each format."""

import bz2
import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq

Texts = Mapping[str, str]


def write_jsonl(path: Path, texts: Texts) -> None:
    """Write one JSON object per line."""
    lines = (json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items())
    path.write_text("".join(lines))


def write_csv(path: Path, texts: Texts) -> None:
    """Write a header and rows, compressed."""
    rows = io.StringIO()
    csv.writer(rows).writerows([("id", "text"), *texts.items()])
    path.write_bytes(gzip.compress(rows.getvalue().encode()))


def write_parquet(path: Path, texts: Texts) -> None:
    """Write two columns."""
    pq.write_table(pa.table({"id": list(texts), "text": list(texts.values())}), path)


def write_xml(path: Path, texts: Texts) -> None:
    """Write records without nesting, compressed."""
    records = "".join(f"<doc><id>{name}</id><text>{escape(text)}</text></doc>\n" for name, text in texts.items())
    path.write_bytes(bz2.compress(f"<docs>\n{records}</docs>\n".encode()))


def write_trec(path: Path, texts: Texts) -> None:
    """Write SGML records without a root."""
    records = (f"<DOC>\n<DOCNO>{name}</DOCNO>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n" for name, text in texts.items())
    path.write_text("".join(records))


def write_warc(path: Path, texts: Texts) -> None:
    """Write `conversion` records of plain text."""
    records = []
    for name, text in texts.items():
        fields = {
            "WARC-Type": "conversion", "WARC-Record-ID": f"<{name}>", "WARC-Target-URI": f"http://x.example/{name}",
            "Content-Type": "text/plain", "Content-Length": len(text.encode()),
        }  # fmt: skip
        head = "".join(f"{key}: {value}\r\n" for key, value in fields.items())
        records.append(f"WARC/1.0\r\n{head}\r\n{text}\r\n\r\n")
    path.write_bytes("".join(records).encode())


def write_pages(path: Path, texts: Texts) -> None:
    """Write a folder with one HTML page per text."""
    path.mkdir()
    for name, text in texts.items():
        (path / f"{name}.html").write_text(f"<html><body><p>{escape(text)}</p></body></html>")


WRITERS: dict[str, tuple[str, Callable[[Path, Texts], None]]] = {
    "jsonl": ("a.jsonl", write_jsonl),
    "csv": ("a.csv.gz", write_csv),
    "parquet": ("a.parquet", write_parquet),
    "xml": ("a.xml.bz2", write_xml),
    "trec": ("a.trec", write_trec),
    "warc": ("a.warc", write_warc),
    "html": ("pages", write_pages),
}
"""For each format, the name of the file or folder, and the function that writes it."""


def write_texts_as(form: str, folder: Path, texts: Texts) -> Path:
    """Write the texts in a format of `WRITERS`; returns the file or folder."""
    name, write = WRITERS[form]
    write(folder / name, texts)
    return folder / name
