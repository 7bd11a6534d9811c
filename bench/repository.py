"""A repository of many documents: the cost of adding a thousand, and the time of a query.

The sketches are those of real pages. Each copy of the collection has its ids permuted by its own seed, so that families
are as in the original and no two copies have anything in common.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nddup.repository
from nddup.ground.arrays import Ragged
from nddup.ground.columns import lists_of, ragged_of
from nddup.matching.lookups import Rows
from nddup.repository.list_matches import Ask
from nddup.repository.opened_repository import Repository
from nddup.repository.places import SEGMENTS
from nddup.repository.query_stored import Queries, find_matches, sketch_texts
from nddup.repository.write_versions import Batch, add
from nddup.sketching.permutations import mix
from nddup.tables import DOCUMENTS, REJECTS

BATCH = 1_000
LOOKUPS = 2_000

BY_SKETCHES: dict[str, Any] = {"pairs.confirm": "none"}
"""Copies have permuted sketches and no shingles, so the sketches decide."""


def real_texts(data: Path) -> dict[str, str]:
    """Return the pages of debdocs-dev by id."""
    table = pq.read_table(data / "debdocs-dev" / "docs.parquet", columns=["doc_id", "html"])
    pages = zip(table["doc_id"].to_pylist(), table["html"].to_pylist(), strict=True)
    return {f"p{doc_id:05}": page.decode("utf-8", "replace") for doc_id, page in pages}


def copy_documents(queries: Queries, copies: range) -> pa.Table:
    """Return DOCUMENTS of permuted copies, one document for each distinct sketch."""
    sketches = queries.sketches
    sizes = np.diff(sketches.offsets)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    parts = []
    for copy in copies:
        values = mix(sketches.values, seed=copy + 1) >> np.uint64(6)
        values = values[np.lexsort((values, owners))]
        names = [f"c{copy}-{name}" for name in queries.ids]
        n = len(names)
        content = [f"{name:>32}".encode()[-16:] for name in names]
        columns = {
            "doc_key": np.arange(n), "doc_id": names, "source": [f"part-{copy}"] * n, "record": np.arange(1, n + 1),
            "n_tokens": queries.n_features, "n_features": queries.n_features,
            "content_fingerprint": pa.array(content, pa.binary()), "group": names,
            "sketch": lists_of(sketches.offsets, pa.array(values.view(np.int64))),
        }  # fmt: skip
        columns |= {field.name: pa.nulls(n, field.type) for field in DOCUMENTS.arrow if field.name not in columns}
        parts.append(pa.table(columns).select(DOCUMENTS.names).cast(DOCUMENTS.arrow))
    whole = pa.concat_tables(parts)
    return whole.set_column(0, "doc_key", pa.array(np.arange(len(whole))))


class Cost(NamedTuple):
    """Cost of a batch: elapsed seconds, CPU seconds, bytes read by system calls, and bytes of mapped files held."""

    seconds: float
    cpu: float
    read: int
    mapped: int


def add_documents(repo: Repository, documents: pa.Table) -> Cost:
    """Add a batch as one version; return its cost."""
    repo.refresh()
    first = repo.snapshot.commit.next_key
    numbered = documents.set_column(0, "doc_key", pa.array(np.arange(len(documents)) + first))
    batch = Batch(numbered, np.empty(0, np.int64), REJECTS.arrow.empty_table(), 0, len(documents))
    read, held = _read_bytes(), _mapped_bytes()
    cpu, started = sum(os.times()[:4]), time.perf_counter()
    with repo.workers() as workers:
        add(repo.snapshot, batch, workers)
    seconds, spent = time.perf_counter() - started, sum(os.times()[:4]) - cpu
    took = Cost(seconds, spent, _read_bytes() - read, _mapped_bytes() - held)
    repo.refresh()
    return took


def _read_bytes() -> int:
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(lines[0].split()[1])


def _mapped_bytes() -> int:
    """Return the resident bytes of mapped segment files: pages touched and pages read ahead."""
    found, is_segment = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        name = line.partition(" ")[0]
        if not name.endswith(":"):
            is_segment = f"/{SEGMENTS}/" in line
        elif is_segment and name == "Rss:":
            found += 1024 * int(line.split()[1])
    return found


def measure_queries(repo: Repository, queries: Queries, texts: list[str]) -> str:
    """Return a line: CPU milliseconds, median and 95th percentile, of sketch look-ups and of queries with pages."""
    random = np.random.default_rng(1)
    snapshot, took, pages = repo.snapshot, [], []
    snapshot.mapped  # noqa: B018 - opened once, before the first query
    matching = snapshot.identity.matching
    for row in random.integers(0, len(queries.ids), LOOKUPS):
        low, high = queries.sketches.offsets[row : row + 2]
        ids = np.sort(mix(queries.sketches.values[low:high], seed=2) >> np.uint64(6))
        ids.flags.writeable = False
        given = Rows(np.zeros(1, np.int64), Ragged(np.array([0, high - low]), ids), np.array([high - low], np.int32))
        started = time.thread_time()
        snapshot.find_near(given, matching)
        took.append(time.thread_time() - started)
    for number in random.integers(0, len(texts), LOOKUPS // 4):
        started = time.thread_time()
        find_matches(snapshot, sketch_texts(snapshot.identity, [texts[number]]), Ask())
        pages.append(time.thread_time() - started)
    said = [np.percentile(np.array(some) * 1000, (50, 95)).round(2).tolist() for some in (took, pages)]
    return f"look-up p50, p95 {said[0]} ms; page with markup {said[1]} ms"


def run(options: argparse.Namespace) -> None:
    """Print a line for each number of documents."""
    given = options.records or ("5000" if options.small else "100000,1000000")
    measure([int(size) for size in given.split(",")], options.data)


def measure(sizes: list[int], data: Path) -> None:
    """Fill a repository of each size, add a thousand documents, and query it."""
    texts = real_texts(data)
    with TemporaryDirectory() as folder:
        first = nddup.repository.create(f"{folder}/real", **BY_SKETCHES)
        queries = sketch_texts(first.snapshot.identity, texts)
        sizes_of = np.diff(queries.sketches.offsets)
        rows = ragged_of(lists_of(queries.sketches.offsets, pa.array(queries.sketches.values.view(np.int64))))
        filled = np.flatnonzero(sizes_of > 0)
        whole = [rows.values[rows.offsets[i] : rows.offsets[i + 1]].tobytes() for i in filled]
        _, one = np.unique(whole, return_index=True)
        chosen = np.sort(filled[one])
        values = np.concatenate([rows.values[rows.offsets[i] : rows.offsets[i + 1]] for i in chosen])
        offsets = np.concatenate([[0], np.cumsum(sizes_of[chosen])]).astype(np.int64)
        queries = Queries([queries.ids[i] for i in chosen], Ragged(offsets, values), queries.n_features[chosen])
        for size in sizes:
            repo = nddup.repository.create(f"{folder}/{size}", **BY_SKETCHES)
            step = max(1, 100_000 // len(chosen))
            copies = -(-size // len(chosen))
            started = time.perf_counter()
            for low in range(1, copies + 1, step):
                add_documents(repo, copy_documents(queries, range(low, min(low + step, copies + 1))))
            made = time.perf_counter() - started
            documents = repo.snapshot.commit.counts["documents"]
            posted = sum(one.files["postings.parquet"][0] for one in repo.snapshot.commit.segments)
            stored = sum(one.rows["sketches"] for one in repo.snapshot.commit.segments)
            extra = copy_documents(queries, range(copies + 1, copies + 2)).slice(0, BATCH // 2)
            edited = copy_documents(queries, range(1, 2)).slice(0, BATCH - len(extra))
            names = pa.array([f"again-{name}" for name in edited["doc_id"].to_pylist()])
            edited = edited.set_column(1, "doc_id", names).set_column(
                edited.schema.get_field_index("group"), "group", names
            )
            again = Repository(f"{folder}/{size}")
            cost = add_documents(again, pa.concat_tables([extra, edited]))
            sys.stdout.write(
                f"{documents:,} documents in {made:.0f} s; postings {posted / stored:.0f} bytes a sketch;"
                f" {BATCH} more: {cost.seconds:.2f} s, {cost.cpu:.2f} s of CPU, {cost.read / 1e6:.0f} MB read,"
                f" {cost.mapped / 1e6:.0f} MB of mapped files held;"
                f" {measure_queries(again, queries, list(texts.values()))};"
                f" {len(list(Path(folder, str(size), SEGMENTS).iterdir()))} folders\n"
            )
            sys.stdout.flush()
