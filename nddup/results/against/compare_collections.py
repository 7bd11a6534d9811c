"""`nddup against A B`: find exactly which items of B occur in A."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa

from nddup.against.join_parts import number_items
from nddup.against.judge import Judged, Rules, judge
from nddup.local.memory import Memory
from nddup.local.reading.workers import Workers
from nddup.results.against.against_inputs import By, Items, Side, find_side, read_items
from nddup.results.against.against_rows import item_rows, matrix_rows, span_rows, suppressed_rows
from nddup.results.against.share_documents import Share, Shared, read_shared, share_here
from nddup.run.engines import memory_of
from nddup.scanning.collection import Files
from nddup.settings.derive import processes_of
from nddup.settings.schema import Config
from nddup.steps import Steps
from nddup.storage.local_storage import LocalStorage

STEPS = 6
"""Number of steps of `compare`, for progress."""

ADVICE = "give more, or B in several commands"
"""Advice in the error if even one item, or the shared shingles, do not fit in memory."""


@dataclass(frozen=True)
class AskedAgainst:
    """The settings of a comparison.

    Attributes:
        rules: when an item counts as found.
        length: number of tokens in a shingle.
        by: parts of the matrix: files (`source`) or folders.
    """

    rules: Rules
    length: int = 8
    by: By = "source"


class Engine(NamedTuple):
    """The readers of the collections: `files` lists and opens files, `workers` reads B, and `share` reads A."""

    files: Files
    workers: Workers
    share: Share


class Compared(NamedTuple):
    """The result: the collections, the verdicts, and the tables to write, by name."""

    a: Side
    b: Side
    items: Items
    shared: Shared
    judged: Judged
    tables: dict[str, pa.Table]


Start = Callable[[Config, Path, Steps], AbstractContextManager[Engine]]
"""Starts an engine, with a folder of this machine for its temporary files."""


def compare(
    a: tuple[str, Config], b: tuple[str, Config], asked: AskedAgainst, steps: Steps, start: Start | None = None
) -> Compared:
    """Compare every document of A with the items of B.

    Args:
        a: path of the collection that may contain items, and the settings for reading it.
        b: path of the items, and the settings for reading them.
        asked: settings of the comparison.
        steps: progress.
        start: starts the engine; None: this machine's.

    Raises:
        ConfigError: if a path is missing, or nothing in it can be read.
        NddupError: if more files or records are unreadable than the settings allow.
        NeedsSparkError: if the texts of B, or the shared shingles, need more than `local.memory`.

    Cost: reads A once for each part of B, on Spark once in all, as fast as its records can be parsed.
    """
    with TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as name:
        spool = Path(name)
        with (start or start_here)(a[1], spool, steps) as engine:
            steps.begin("find the files and their formats")
            side_a, side_b = (find_side(*one, asked.by, engine.files) for one in (a, b))
            steps.begin("read the items")
            items = read_items(side_b, asked.length, engine.workers, spool)
            steps.begin("compare with A")
            shared = read_shared(side_a, items, engine.workers, engine.share, counts=asked.rules.of != "item")

        steps.begin("judge the items")
        judged = judge(number_items(items.tables), shared.holders, asked.rules, is_all_read=shared.is_all_read)
        steps.begin("find what is shared")
        tables = {
            "items": item_rows(items, shared, judged),
            "spans": span_rows(items, shared, judged),
            "suppressed": suppressed_rows(items, judged),
            "matrix": matrix_rows(side_a, side_b, items, judged),
            "rejects": pa.concat_tables([shared.rejects, items.rejects]),
        }
        return Compared(side_a, side_b, items, shared, judged, tables)


def tell_far(steps: Steps) -> Callable[[str, int, int], None]:
    """Return a progress callback for workers that ignores their step names: the command's steps have their own."""
    return lambda _, done, whole: steps.far(done, whole)


@contextmanager
def start_here(config: Config, spool: Path, steps: Steps) -> Iterator[Engine]:
    """Start this machine's engine: worker processes, each with the shingles of one part of B."""
    memory = Memory(memory_of(config), advice=ADVICE)
    with Workers(processes_of(config), spool=spool / "rows", progress=tell_far(steps), memory=memory) as workers:
        yield Engine(LocalStorage(), workers, share_here(workers))
