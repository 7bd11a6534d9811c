"""Fuzz: no input may make a reader hang, or raise an error that the reader does not declare.

records   damaged files of every format through head reading, cutting, parsing and text: here
values    heads, declarations, lists, containers, markup (`fuzz_values`)
kernels   the compiled code that reads bytes of a record, with bounds checking (`fuzz_kernels`)
settings  YAML and `--set` (`fuzz_settings`)
resumes   runs that are killed, damaged and resumed, on Spark (`fuzz_resumes`)
"""

import argparse
import bz2
import gzip
import random
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.fuzz_kernels import checked_fuzz
from bench.fuzz_resumes import fuzz_resumes
from bench.fuzz_samples import MOST_BYTES, mutate
from bench.fuzz_settings import fuzz_settings
from bench.fuzz_values import fuzz_repeats, fuzz_values
from bench.recording import BUILD, record, show
from nddup.reading.detect import read_head
from nddup.reading.formats import FileHead, FormatError
from nddup.reading.markup import strip_markup
from nddup.reading.records import Record, Reject, content_fingerprint, parse_record, record_text
from nddup.spark.session import start_session

SEED = 1
SLOW = 1.0
"""Seconds of CPU for a record of some kilobytes, above which it counts as a fault."""
AGAIN = 8
"""One file in AGAIN is read twice, and the results are compared."""


@dataclass
class Findings:
    """Counts of a run, and its slowest record."""

    files: int = 0
    chunks: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    slowest_at: str = ""


def read_damaged(data: bytes, head: FileHead, findings: Findings, name: str) -> list[Record | Reject | None]:
    """Read all chunks of a file, check the results, and count them.

    Raises:
        AssertionError: if a result breaks a promise.
        Exception: whatever the reader raises, which is a fault.
    """
    findings.files += 1
    chunks = data.split(head.separator)
    if chunks[-1] == b"":
        chunks.pop()
    results = []
    for place, chunk in enumerate(chunks, start=1):
        started = time.thread_time()
        result = parse_record(chunk, head, is_last=place == len(chunks))
        _check(result)
        taken = time.thread_time() - started
        if taken > findings.slowest:
            findings.slowest, findings.slowest_at = taken, f"{name}, chunk {place}, {len(chunk):,} bytes"
        findings.chunks += 1
        findings.outcomes[_outcome(result)] += 1
        results.append(result)
    return results


def _check(result: Record | Reject | None) -> None:
    """Assert that a record has a text and an id that can be written, and a reject a reason that can be read."""
    if isinstance(result, Record):
        assert result.fields  # noqa: S101 - what a fuzzer finds is an assertion
        record_text(result).encode()
        content_fingerprint(result)
        for text in (result.doc_id, result.url):
            assert text is None or not set(text) & {"\n", "\r", "\t", "\0"}  # noqa: S101
            assert text is None or text.strip().encode()  # noqa: S101
    elif isinstance(result, Reject):
        assert result.reason  # noqa: S101
        f"{result.detail}{result.excerpt}{result.doc_id or ''}".encode()
    else:
        assert result is None  # noqa: S101


def _outcome(result: Record | Reject | None) -> str:
    if result is None:
        return "no record"
    return "record" if isinstance(result, Record) else f"reject: {result.reason}"


def damaged_files(samples: Sequence[bytes], seed: int) -> Iterator[tuple[str, bytes, FileHead]]:
    """Yield damaged files endlessly, each with the sound file's head; one in four with its own, if it has one."""
    heads = [read_head(sample) for sample in samples]
    number = 0
    while True:
        choose = random.Random(f"{seed}/{number}")  # noqa: S311 - repeatable from the number
        which = choose.randrange(len(samples))
        data = mutate(samples[which], samples, choose)
        head = heads[which]
        if choose.randrange(4) == 0:
            try:
                head = read_head(data, charset=choose.choice((None, None, None, "koi8-r", "utf-16")))
            except FormatError:
                head = heads[which]
        yield f"file {number} of seed {seed}, sample {which}", data, head
        number += 1


def fuzz(samples: Sequence[bytes], records: int, seed: int = SEED) -> Findings:
    """Read damaged files until `records` chunks were read; read one file in AGAIN twice.

    Raises:
        AssertionError: naming the file, if a second reading gives another result.
        RuntimeError: naming the file, if anything was raised, a broken promise included.
    """
    findings = Findings()
    files = damaged_files(samples, seed)
    while findings.chunks < records:
        name, data, head = next(files)
        try:
            results = read_damaged(data, head, findings, name)
        except Exception as error:
            raise RuntimeError(f"{name}: {error!r}") from error
        if findings.files % AGAIN == 0:
            assert results == read_damaged(data, head, Findings(), name), name  # noqa: S101
    return findings


def load_samples(folder: Path) -> list[bytes]:
    """Return the front of every sample file of the shared data that is readable without settings, and JSON lines."""
    paths = sorted([*(folder / "xml-samples").iterdir(), *(folder / "ruweb" / "fixtures").iterdir()])
    samples = [b'{"id": "1", "url": "u", "text": "one"}\n{"id": 2, "text": "two \\u044f"}\n']
    for path in paths:
        data = path.read_bytes()
        if path.suffix in {".bz2", ".gz"}:
            try:
                data = bz2.decompress(data) if path.suffix == ".bz2" else gzip.decompress(data)
            except (OSError, EOFError, ValueError):
                continue
        try:
            samples.append(front(data, read_head(data[: 1 << 18])))
        except FormatError:
            continue
    return samples


def front(data: bytes, head: FileHead) -> bytes:
    """Return the head of a file and as many whole records as fit; at least one."""
    if len(data) <= MOST_BYTES:
        return data
    end = data.rfind(head.separator, 0, MOST_BYTES)
    end = data.find(head.separator) if end < 0 else end
    return data[: end + len(head.separator)]


SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark settings for hundreds of runs over a few rows, as in the tests."""

PARTS = {
    "records": (1_000_000, 20_000), "values": (1_000_000, 20_000), "kernels": (1_000_000, 10_000),
    "settings": (10_000, 500), "resumes": (100, 3),
}  # fmt: skip
"""Number of cases of each part, in full and in a small run."""


def run(options: argparse.Namespace) -> None:
    """Fuzz each part, and report its outcomes."""
    for part in options.parts.split(",") if options.parts else PARTS:
        count = PARTS[part][options.small]
        if part == "records":
            run_records(options, int(options.records or count))
        else:
            run_other(options, part, count)


def run_other(options: argparse.Namespace, part: str, count: int) -> None:
    """Fuzz another part than records; a failure ends the run with the name of its case."""
    started, cpu = time.monotonic(), time.process_time()
    seen: dict[str, Any] = {}
    if part == "values":
        repeated = fuzz_repeats()
        found = fuzz_values(count, SEED)
        seen = {"repeated": repeated, "readers": dict(found.cases), "refused": dict(found.refused),
                "slowest": round(found.slowest, 4), "slowest_at": found.slowest_at}  # fmt: skip
    elif part == "kernels":
        with TemporaryDirectory() as folder:
            seen = {"kernels": len(checked_fuzz(count, SEED, Path(folder)))}
    elif part == "settings":
        seen = dict(fuzz_settings(count, SEED))
    else:
        session = start_session(master="local[2]", settings=SMALL)
        with TemporaryDirectory() as folder:
            seen = dict(fuzz_resumes(session, count, SEED, Path(folder)))
        session.stop()
    seconds, cpu = time.monotonic() - started, time.process_time() - cpu
    rows = [[key, value] for key, value in seen.items() if not isinstance(value, dict)]
    rows += [
        [f"{key}: {name}", n] for key, value in seen.items() if isinstance(value, dict) for name, n in value.items()
    ]
    show(f"fuzz: {count:,} {part}, {seconds:,.0f} s, CPU {cpu:,.0f} s, 1 process", ["what", "count"], rows)
    record("fuzz", options, part=part, cases=count, seconds=round(seconds), **seen)


def run_records(options: argparse.Namespace, records: int) -> None:
    """Fuzz `records` records, and report their outcomes."""
    samples = load_samples(options.data)
    strip_markup("<b>" * 2000)  # compiled before the clock runs
    started = time.monotonic()
    findings = fuzz(samples, records)
    seconds = time.monotonic() - started
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = [[name, count, count / findings.chunks] for name, count in findings.outcomes.most_common()]
    title = (
        f"fuzz: {findings.chunks:,} damaged records of {findings.files:,} files from {len(samples)} samples, 1 process"
    )
    show(title, ["outcome", "chunks", "share"], rows)
    print(
        f"  {findings.chunks / seconds:,.0f} records/s; slowest {findings.slowest:.3f} s ({findings.slowest_at});"
        f" peak memory {megabytes:,.0f} MB"
    )
    record("fuzz", options, records=findings.chunks, files=findings.files, per_second=round(findings.chunks / seconds),
           outcomes=dict(findings.outcomes), slowest=round(findings.slowest, 4), slowest_at=findings.slowest_at,
           peak_megabytes=round(megabytes))  # fmt: skip
    if findings.slowest > SLOW:
        raise SystemExit(f"a record took {findings.slowest:.1f} s: {findings.slowest_at} (see {BUILD})")
