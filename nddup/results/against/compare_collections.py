"""`nddup against A B`: which items of B stand in A, exactly, on this machine."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa

from nddup.against.judge import Judged, Rules, judge
from nddup.local.memory import Memory
from nddup.local.reading.workers import Workers
from nddup.results.against.against_inputs import By, Items, Shared, Side, find_side, read_items, read_shared
from nddup.results.against.against_rows import item_rows, matrix_rows, span_rows, suppressed_rows
from nddup.run.engines import memory_of
from nddup.settings.derive import processes_of
from nddup.settings.schema import Config
from nddup.steps import Steps

STEPS = 6
"""Of `compare`."""


@dataclass(frozen=True)
class AskedAgainst:
    """What is asked.

    Attributes:
        rules: when an item is found.
        length: tokens of a shingle.
        by: what the parts of the matrix are.
    """

    rules: Rules
    length: int = 8
    by: By = "source"


class Compared(NamedTuple):
    """What was found: the collections, the verdicts, and the tables that are written, by name."""

    a: Side
    b: Side
    items: Items
    shared: Shared
    judged: Judged
    tables: dict[str, pa.Table]


def compare(a: tuple[str, Config], b: tuple[str, Config], asked: AskedAgainst, steps: Steps) -> Compared:
    """Compare every document of A with the items of B.

    Args:
        a: path of the collection that may hold items, and how it is read.
        b: path of the items, and how they are read.
        asked: when an item is found.
        steps: is told what is done.

    Raises:
        ConfigError: if a path is missing, or nothing in it can be read.
        NddupError: if more is unreadable than the settings allow.
        NeedsSparkError: if the items, or what is shared, need more than `local.memory`.

    Cost: A is read once by all processors, at the speed at which its records can be parsed; B is in memory.
    """
    with TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as spool:
        with _workers(a[1], Path(spool), steps) as workers:
            steps.begin("find the files and their formats")
            side_a, side_b = find_side(*a, asked.by), find_side(*b, asked.by)
            steps.begin("read the items")
            items = read_items(side_b, asked.length, workers)
            known = Path(spool) / "known"
            known.mkdir()
            items.known.save(known)
            steps.begin("compare with A")
            shared = read_shared(side_a, known, workers, counts=asked.rules.of != "item")

        steps.begin("judge the items")
        judged = judge(items.known, shared.holders, asked.rules)
        steps.begin("find what is shared")
        tables = {
            "items": item_rows(items, shared, judged),
            "spans": span_rows(items, shared, judged),
            "suppressed": suppressed_rows(items, judged),
            "matrix": matrix_rows(side_a, side_b, items, judged),
            "rejects": pa.concat_tables([shared.rejects, items.rejects]),
        }
        return Compared(side_a, side_b, items, shared, judged, tables)


def _workers(config: Config, spool: Path, steps: Steps) -> Workers:
    def tell(name: str, done: int, whole: int) -> None:
        del name  # the steps of the command have names of their own
        steps.far(done, whole)

    memory = Memory(memory_of(config), advice="give B in parts")
    return Workers(processes_of(config), spool=spool / "rows", progress=tell, memory=memory)
