"""Formats: the same pages in every format: the job's pass against a loop over the same functions in one process."""

import argparse
import bz2
import csv
import gzip
import itertools
import json
import lzma
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from fastwarc.warc import ArchiveIterator, WarcRecordType

from bench.debdocs import HEAD, load_pages, romip_records
from bench.recording import BUILD, drop, fresh, record, show
from nddup.reading.markup import strip_markup
from nddup.reading.records import Record, content_fingerprint, record_text
from nddup.scanning.collection import Collection, find_files
from nddup.scanning.found import text_buffers
from nddup.scanning.sketch_records import SketchRecords, sketch_texts
from nddup.scanning.whole_files import StoredFile, read_file
from nddup.settings.load import build_config
from nddup.settings.plan import record_limits, sketch_rule
from nddup.spark.hadoop_files import open_uri
from nddup.spark.run import SparkJob
from nddup.spark.scan import scan
from nddup.spark.session import start_session
from nddup.spark.session_files import Storage
from nddup.spark.session_tables import MemoryStore
from nddup.spark.steps.state import SparkProgress

Page = tuple[str, str, bytes]
FILES = 4
"""Files of each format; a task reads a whole file if it is compressed or a container."""
ROUNDS = 2
BATCH = 500


def run(options: argparse.Namespace) -> None:
    """Write the pages in every format, then read them by the loop and by the job."""
    megabytes = options.megabytes or (8 if options.small else 100)
    folder = fresh("formats")
    size = _write_all(folder, _pages(options, megabytes))
    job = _job(options)
    kinds = sorted(path.name for path in folder.iterdir())
    _read(job, folder / "jsonl")
    rows, values = [], {}
    bare, alone, share = _race(lambda: _loop(_find(job, folder / "warc.gz"), job, is_sketching=False),
                        lambda: _fastwarc(folder / "warc.gz"))  # fmt: skip
    for kind in kinds:
        found = _find(job, folder / kind)
        documents, loop = _best(partial(_loop, found, job))
        _, spark = _best(partial(_read, job, folder / kind))
        rates = size / 1e6 / loop, size / 1e6 / spark
        stored = sum(path.stat().st_size for path in (folder / kind).rglob("*") if path.is_file())
        rows.append([kind, stored / 1e6, documents, *rates, rates[1] / rates[0] / options.cores])
        values[kind] = {"loop": round(rates[0], 1), "job": round(rates[1], 1), "documents": documents}
    job.spark.stop()
    title = f"formats: {size / 1e6:,.0f} MB of HTML in {FILES} files each, local[{options.cores}], MB of HTML a second"
    show(title, ["format", "stored MB", "documents", "loop", "job", f"of {options.cores} loops"], rows)
    print(f"  warc.gz to plain text in one process: {size / 1e6 / bare:.1f} MB/s (encodings told, damage kept apart);")
    print(f"  FastWARC and markup removal alone: {size / 1e6 / alone:.1f} MB/s; so {share:.0%} of it")
    record("formats", options, megabytes=round(size / 1e6), megabytes_per_second=values,
           fastwarc_alone=round(size / 1e6 / alone, 1), warc_share=round(share, 3))  # fmt: skip
    drop(folder)


def _pages(options: argparse.Namespace, megabytes: int) -> list[Page]:
    """Return at least `megabytes` MB of pages (id, url, html), repeated under new ids if there are too few."""
    pages = load_pages(options)
    found, held = [], 0
    for number, (url, html) in enumerate(itertools.cycle(zip(pages["url"], pages["html"], strict=True))):
        found.append((str(number), url, html))
        held += len(html)
        if held >= megabytes * 1_000_000:
            break
    return found


def _write_all(folder: Path, pages: list[Page]) -> int:
    for kind, (head, lines, tail) in LINES.items():
        (folder / kind).mkdir()
        for part in range(FILES):
            with _open(folder / kind / f"part{part}.{kind}") as file:
                file.write(head)
                for page in pages[part::FILES]:
                    file.write(lines(page))
                file.write(tail)
    _write_tables(folder, pages)
    return sum(len(html) for _, _, html in pages)


def _open(path: Path) -> Any:  # noqa: ANN401 - a file object of one of five libraries
    if path.name.endswith(".warc.gz"):
        return _Members(path)
    openers: dict[str, Callable[..., Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
        ".zst": zstandard.open,
    }
    return openers.get(path.suffix, open)(path, "wb")


class _Members:
    """A file in which every record is a gzip member, as crawlers write it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        if data:
            self._file.write(gzip.compress(data, 6))


def _write_tables(folder: Path, pages: list[Page]) -> None:
    csv.field_size_limit(sys.maxsize)
    for kind in ("csv", "parquet", "html"):
        (folder / kind).mkdir()
    for part in range(FILES):
        mine = pages[part::FILES]
        with (folder / "csv" / f"part{part}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "url", "content"])
            rows.writerows([number, url, html.decode("utf-8", "replace")] for number, url, html in mine)
        numbers, urls, contents = (list(column) for column in zip(*mine, strict=True))
        table = pa.table({"id": numbers, "url": urls, "content": pa.array(contents, pa.binary())})
        pq.write_table(table, folder / "parquet" / f"part{part}.parquet", compression="zstd")
    for number, _, html in pages:
        (folder / "html" / f"{number}.html").write_bytes(html)


def _xml(page: Page) -> bytes:
    number, url, html = page
    text = escape(html.decode("utf-8", "replace").translate(CONTROLS))
    return f"<doc><id>{number}</id><url>{escape(url)}</url><content>{text}</content></doc>\n".encode()


def _row(page: Page) -> bytes:
    number, _, html = page
    body = quoteattr(html.decode("utf-8", "replace").translate(CONTROLS), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
    return f'  <row Id="{number}" Title="" Body={body} />\n'.encode()


def _json(page: Page) -> bytes:
    number, url, html = page
    row = {"id": number, "url": url, "content": html.decode("utf-8", "replace")}
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _trec(page: Page) -> bytes:
    number, url, html = page
    head = f"<DOC>\n<DOCNO>{number}</DOCNO>\n<DOCHDR>\n{url}\nHTTP/1.1 200 OK\nContent-Type: text/html\n</DOCHDR>\n"
    return head.encode() + html + b"\n</DOC>\n"


def _warc(page: Page) -> bytes:
    number, url, html = page
    payload = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + html
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{number}>\r\nWARC-Target-URI: {url}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(payload)}\r\n\r\n"
    )
    return head.encode() + payload + b"\r\n\r\n"


def _romip(page: Page) -> bytes:
    return next(romip_records([page])).encode()


CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF], " ")
LINES: dict[str, tuple[bytes, Callable[[Page], bytes], bytes]] = {
    "romip.xml": (HEAD.encode(), _romip, b"</romip:dataset>\n"),
    "xml": (b"<docs>\n", _xml, b"</docs>\n"),
    "rows.xml": (b"<posts>\n", _row, b"</posts>\n"),
    "trec": (b"", _trec, b""),
    "jsonl": (b"", _json, b""),
    "jsonl.gz": (b"", _json, b""),
    "jsonl.bz2": (b"", _json, b""),
    "jsonl.xz": (b"", _json, b""),
    "jsonl.zst": (b"", _json, b""),
    "warc": (b"", _warc, b""),
    "warc.gz": (b"", _warc, b""),
}


def _job(options: argparse.Namespace) -> SparkJob:
    local = (BUILD / "local").absolute()
    shutil.rmtree(local, ignore_errors=True)
    local.mkdir(parents=True)
    spark = start_session(master=f"local[{options.cores}]", settings={"spark.local.dir": str(local)})
    config = build_config({"input": {"markup": "html"}}, origin="bench")
    return SparkJob(spark, config, MemoryStore(spark), SparkProgress(spark, is_quiet=True))


def _find(job: SparkJob, path: Path) -> Collection:
    return find_files(Storage(job.spark), [str(path)], job.config.input)


def _loop(found: Collection, job: SparkJob, *, is_sketching: bool = True) -> int:
    """Read, parse, strip, and by default sketch and fingerprint, in one process; return the number of documents."""
    documents, texts = 0, []
    for group in found.groups:
        for entry in group.files:
            file = entry.file
            stored = StoredFile(file.source, entry.compression, 1 << 40, partial(open_uri, file.path))
            for record_, _ in read_file(stored, group.head, record_limits(job.config).max_record):
                if not isinstance(record_, Record):
                    continue
                text = record_text(record_, None, "html")
                documents += 1
                if is_sketching:
                    content_fingerprint(record_)
                    texts.append(text)
                if len(texts) >= BATCH:
                    sketch_texts(*text_buffers(texts), sketch_rule(job.config))
                    texts = []
    sketch_texts(*text_buffers(texts), sketch_rule(job.config))
    return documents


def _read(job: SparkJob, path: Path) -> int:
    consumer, files = SketchRecords(sketch_rule(job.config)), Storage(job.spark)
    records = scan(job.spark, _find(job, path), consumer, files=files, limits=record_limits(job.config))
    records.write.format("noop").mode("overwrite").save()
    return 0


def _fastwarc(folder: Path) -> int:
    pages = 0
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            for found in ArchiveIterator(file, record_types=WarcRecordType.response):
                strip_markup(found.reader.read())
                pages += 1
    return pages


def _best(work: Callable[[], int]) -> tuple[int, float]:
    """Return the result of the work, and the seconds of its fastest round."""
    seconds = []
    for _ in range(ROUNDS):
        started = time.monotonic()
        result = work()
        seconds.append(time.monotonic() - started)
    return result, min(seconds)


def _race(first: Callable[[], int], second: Callable[[], int]) -> tuple[float, float, float]:
    """Return the median CPU seconds of both, and of the ratio second / first; they alternate to see equal noise."""
    seconds = [(_cpu(first), _cpu(second)) for _ in range(8 * ROUNDS)]
    ratios = [theirs / ours for ours, theirs in seconds]
    return (
        statistics.median(ours for ours, _ in seconds),
        statistics.median(time for _, time in seconds),
        statistics.median(ratios),
    )


def _cpu(work: Callable[[], int]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
