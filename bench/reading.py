"""Reading: the job's pass from file to sketches, against one process that calls the same functions in a loop."""

import argparse
import cProfile
import itertools
import pstats
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from bench.debdocs import HEAD, load_pages, romip_records
from bench.recording import BUILD, drop, record, show
from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead
from nddup.reading.records import Record, content_fingerprint, parse_record, read_encoded
from nddup.scanning.collection import find_files
from nddup.scanning.file_heads import HEAD_BYTES
from nddup.scanning.found import join_encoded
from nddup.scanning.sketch_records import SketchRecords, parse_chunks
from nddup.settings.load import build_config
from nddup.settings.plan import record_limits, sketch_rule
from nddup.sketching.min_s import sketch_texts
from nddup.spark.hadoop_files import read_chunks
from nddup.spark.run import SparkJob
from nddup.spark.scan import scan
from nddup.spark.session import start_session
from nddup.spark.session_files import Storage
from nddup.spark.session_tables import MemoryStore
from nddup.spark.steps.state import SparkProgress

BLOCK = 16 << 20
"""Bytes that the loop reads at a time, and of text that it sketches at a time, as in a batch of the job."""
WARM_MEGABYTES = 20
ROUNDS = 3


def run(options: argparse.Namespace) -> None:
    """Make the file, then measure the loop, the job's pass, and the parts of the pass that only move bytes."""
    megabytes = options.megabytes or (40 if options.small else 500)
    big, warm = BUILD / "big.xml", BUILD / "warm.xml"
    _write_collection(warm, options, WARM_MEGABYTES)
    size = _write_collection(big, options, megabytes)
    head = read_head(_front(big))
    _loop(warm, head)
    job = _job(options)
    if options.profile:
        _profile(warm, head, job)
    passes = _passes(job, head)
    for work in passes.values():
        work(warm)
    seconds: dict[str, list[float]] = {"loop, 1 process": [], **{name: [] for name in passes}}
    for _ in range(ROUNDS):
        seconds["loop, 1 process"].append(_timed(lambda: _loop(big, head)))
        for name, work in passes.items():
            seconds[name].append(_timed(partial(work, big)))
    job.spark.stop()
    rates = {name: size / 1e6 / sorted(taken)[len(taken) // 2] for name, taken in seconds.items()}
    ideal = options.cores * rates["loop, 1 process"]
    rows = [[name, rate, min(seconds[name]), max(seconds[name]), rate / ideal] for name, rate in rates.items()]
    title = f"reading: {size / 1e6:,.0f} MB of base64 XML, local[{options.cores}], median of {ROUNDS}"
    show(title, ["pass", "MB/s", "best s", "worst s", f"of {options.cores} loops"], rows)
    record("reading", options, megabytes=round(size / 1e6), seconds=seconds,
           megabytes_per_second={name: round(rate, 1) for name, rate in rates.items()},
           share_of_ideal=round(rates["job: read, sketch, noop"] / ideal, 3))  # fmt: skip
    drop(big, warm, BUILD / "records.parquet")


def _write_collection(path: Path, options: argparse.Namespace, megabytes: int) -> int:
    """Write a ROMIP collection of at least `megabytes` MB, repeating the pages under new ids; return its bytes."""
    pages = load_pages(options)
    parts = itertools.cycle(romip_records(zip(itertools.repeat("ID"), pages["url"], pages["html"], strict=False)))
    written = 0
    with path.open("wb") as file:
        written += file.write(f"{HEAD}<collection>big</collection>\n".encode())
        for number, part in enumerate(parts):
            written += file.write(part.replace("<docID>ID<", f"<docID>{number}<", 1).encode())
            if written >= megabytes * 1_000_000:
                break
        written += file.write(b"</romip:dataset>\n")
    return written


def _front(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _chunks(path: Path, head: FileHead) -> Iterator[bytes]:
    rest = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            *whole, rest = (rest + block).split(head.separator)
            yield from whole
    yield rest


def _loop(path: Path, head: FileHead) -> int:
    """Read, cut, parse, strip, sketch and fingerprint in one process, without Spark; return the number of documents."""
    texts: list[bytes] = []
    held = documents = 0
    for chunk in _chunks(path, head):
        found = parse_record(chunk, head, is_last=False)
        if isinstance(found, Record):
            content_fingerprint(found)
            texts.append(read_encoded(found).text)
            held += len(chunk)
        if held >= BLOCK:
            documents += _sketch(texts)
            texts, held = [], 0
    return documents + _sketch(texts)


def _sketch(texts: list[bytes]) -> int:
    made = sketch_texts(*join_encoded(texts))
    ids = memoryview(made.ids.tobytes())
    for low, high in itertools.pairwise((made.offsets * 8).tolist()):
        blake2b(ids[low:high], digest_size=16).digest()
    return len(texts)


def _job(options: argparse.Namespace) -> SparkJob:
    local = (BUILD / "local").absolute()
    local.mkdir(parents=True, exist_ok=True)
    spark = start_session(master=f"local[{options.cores}]", settings={"spark.local.dir": str(local)})
    return SparkJob(spark, build_config({}, origin="bench"), MemoryStore(spark), SparkProgress(spark, is_quiet=True))


def _passes(job: SparkJob, head: FileHead) -> dict[str, Callable[[Path], None]]:
    """Return the timed passes: the job's into nothing and into Parquet, and its parts that only move the records."""

    def records(path: Path) -> DataFrame:
        files = Storage(job.spark)
        found = find_files(files, [str(path)], job.config.input)
        return scan(
            job.spark, found, SketchRecords(sketch_rule(job.config)), files=files, limits=record_limits(job.config)
        )

    def chunks(path: Path) -> DataFrame:
        return read_chunks(
            job.spark,
            [(path.absolute().as_uri(), path.name, -1)],
            head,
            max_record=record_limits(job.config).max_record,
        )

    return {
        "job: read, sketch, noop": lambda path: _to_nothing(records(path)),
        "job: read, sketch, Parquet": lambda path: records(path).write.parquet(
            str(BUILD / "records.parquet"), mode="overwrite"
        ),
        "part: cut in the JVM only": lambda path: _to_nothing(chunks(path)),
        "part: cut, bytes to Python": lambda path: _to_nothing(chunks(path).mapInArrow(_count, "n long")),
        "part: as above, to objects": lambda path: _to_nothing(chunks(path).mapInArrow(_list, "n long")),
    }


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"n": [batch.num_rows]})


def _list(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"n": [len(batch.column("value").to_pylist())]})


def _to_nothing(table: DataFrame) -> None:
    table.write.format("noop").mode("overwrite").save()


def _timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _profile(path: Path, head: FileHead, job: SparkJob) -> None:
    """Print the functions of a sketch task by their own time, in this process, over batches as Spark makes them."""
    chunks = list(_chunks(path, head))
    starts = range(0, len(chunks), 500)
    size = path.stat().st_size
    batches = [
        pa.RecordBatch.from_pydict(
            {
                "value": pa.array(part, pa.binary()),
                "source": [path.name] * len(part),
                "split": pa.array([0] * len(part), pa.int64()),
                "ends_open": [True] * len(part),
            }
        )
        for part in (chunks[start : start + 500] for start in starts)
    ]

    def sketch_all() -> None:
        found = parse_chunks(batches, head, record_limits(job.config).max_record)
        for _ in SketchRecords(sketch_rule(job.config)).batches(found, head):
            pass

    bare = _timed(sketch_all)
    profiler = cProfile.Profile()
    profiler.runcall(sketch_all)
    loop = _timed(lambda: _loop(path, head))
    print(f"\nthe sketch task alone: {size / 1e6 / bare:.1f} MB/s; the loop: {size / 1e6 / loop:.1f} MB/s")
    pstats.Stats(profiler).sort_stats("tottime").print_stats(16)
