"""The tasks that `nddup explain --documents` reports are those that a run would take."""

import re
from itertools import product

import pytest

from nddup.cli import main
from nddup.explaining.curves import DISTINCT, explain_capacity
from nddup.ground.shown import parse_size
from nddup.matching.task_sizes import (
    BLOCK_BYTES,
    BYTES_OF_ID,
    MOST_TASKS,
    ample_memory,
    block_bytes,
    free_memory,
    say_small,
    tasks_needed,
    volume_of,
)
from nddup.matching.threshold import Threshold
from nddup.mining.pair_graph import GRAPH_BITS, most_nodes
from nddup.settings.load import load_config
from nddup.settings.plan import threshold_of
from tests.places import ROOT


def test_the_tasks_are_those_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The number of tasks follows from a run's formula, over the distinct sketches of the documents."""
    status = main(["explain", "--documents", "1000000000", "--memory", "3GB", "--set", "pairs.threshold=0.9"])
    said = capsys.readouterr().out

    threshold = threshold_of(load_config(None, ["pairs.threshold=0.9"]))
    needed = tasks_needed(volume_of(850_000_000 * 200, 850_000_000, threshold), parse_size("3GB"))
    assert status == 0
    assert f"  {needed:,} tasks in each of 7 exchanges" in said
    assert "850,000,000 distinct sketches" in said
    assert "below 32 kB a byte costs more: workers of 4 GB make larger ones" in said
    assert "spark-submit --master MASTER --driver-memory 4g --executor-cores 4 --executor-memory 8g" in said
    assert f" --conf spark.executor.pyspark.memory={4 * parse_size('3GB') >> 20}m jobs/dedup.py" in said


def test_the_page_on_sizing_has_the_same_tasks() -> None:
    """The table of tasks and blocks in docs/sizing.md is what the formulas give."""
    page = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
    for size, power in product((200,), (6, 7, 8, 9)):
        sketches = 10**power * DISTINCT // 100
        threshold = Threshold("resemblance", 7, 10, is_count=False, size=size)
        cells = []
        for memory in (1 << 30, 2 << 30, 4 << 30, 8 << 30):
            tasks = tasks_needed(volume_of(sketches * size, sketches, threshold), memory)
            block = f"{tasks:,} ({block_bytes(sketches * size, tasks, memory) / 1024:,.1f})"
            cells.append(block if tasks <= MOST_TASKS else "more than there can be")
        assert f"| {size} | 10^{power} | {' | '.join(cells)} |" in page


@pytest.mark.parametrize("memory", [1 << 30, 3 << 29, 2 << 30, 4 << 30])
@pytest.mark.parametrize(("size", "power"), list(product((64, 200), (6, 7, 8, 9))))
def test_the_least_memory_of_large_blocks(size: int, power: int, memory: int) -> None:
    """As few tasks as hold the ids; where their blocks are below 32 kB, the least memory is named of which none are."""
    volume = volume_of(10**power * size, 10**power, Threshold("resemblance", 8, 10, is_count=False, size=size))
    tasks, ample = tasks_needed(volume, memory), ample_memory(volume)
    small = [size for size in range(1, ample >> 30) if not say_small(volume, size << 30)]

    held = max(BYTES_OF_ID * volume.ids, 8 * volume.posting_bytes)
    assert held / tasks <= free_memory(memory) < held / max(tasks - 1, 1e-9)
    assert not small
    assert not say_small(volume, ample)
    is_small = tasks > 1 and block_bytes(volume.ids, tasks, memory) < BLOCK_BYTES
    said = f"below 32 kB a byte costs more: workers of {ample >> 30} GB make larger ones"
    assert say_small(volume, memory).partition("and ")[2] == (said if is_small else "")


@pytest.mark.parametrize(("documents", "memory"), [(10**6, "2,048"), (10**9, "6,144")])
def test_the_memory_that_is_planned(documents: int, memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no memory is given, a plan has workers of 2 GB, or of as much as blocks of 32 kB take."""
    assert main(["explain", "--documents", str(documents)]) == 0
    said = capsys.readouterr().out
    assert f"documents and {memory} MB for the worker of a task" in said
    assert "costs more" not in said


def bill_of(documents: int, *settings: str, memory: int | None = None) -> dict[str, tuple[float, float]]:
    """Return the GB shuffled and the core hours of each part of the work, by its name without its number."""
    lines = explain_capacity(load_config(None, list(settings)), documents=documents, memory=memory, ids_of_sketch=200)
    first = next(number for number, line in enumerate(lines) if "core hours" in line) + 1
    last = next(number for number, line in enumerate(lines) if line.strip().startswith("in all"))
    rows = [line.rsplit(maxsplit=2) for line in lines[first : last + 1]]
    return {re.sub(r"^[\d,]+ |, .*", "", name.strip()): (number(moved), number(hours)) for name, moved, hours in rows}


def test_what_a_run_would_refuse_is_said() -> None:
    """A rule by which one task must hold the whole graph names the memory with which it does; with that it is quiet."""
    config = load_config(None, ["keep.max_lost=0.1"])
    *_, last = explain_capacity(config, documents=10**9, memory=3 << 30, ids_of_sketch=200)
    assert last.startswith("  keep.max_lost: one task takes at most 53")
    enough = int(last.partition("it needs ")[2].split()[0].replace(",", "")) << 20
    assert most_nodes(enough - (1 << 20), GRAPH_BITS) < 850_000_000 <= most_nodes(enough, GRAPH_BITS)
    for given, memory in ((config, enough), (load_config(None, []), 3 << 30)):
        lines = explain_capacity(given, documents=10**9, memory=memory, ids_of_sketch=200)
        assert not any("one task takes" in line for line in lines)


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_each_part_of_the_work_is_counted() -> None:
    """The parts sum to the whole; exact decisions are one of them; small blocks cost as their number, not as bytes."""
    exact, estimated = bill_of(10**9), bill_of(10**9, "pairs.confirm=none")
    small = bill_of(10**9, memory=3 << 30)

    for bill in (exact, estimated, small):
        parts = [values for name, values in bill.items() if name != "in all"]
        assert bill["in all"] == pytest.approx([sum(column) for column in zip(*parts, strict=True)], abs=0.3)
    assert exact["exact decisions"][0] == 3 * 10**8 * 400 * 24 / 1e9
    assert "exact decisions" not in estimated
    assert small["blocks"][1] > 4 * exact["blocks"][1]
    assert small["their exchanges"] == exact["their exchanges"]


def test_the_page_on_sizing_has_the_same_bill() -> None:
    """The table of core hours in docs/sizing.md is what `nddup explain` says of the default settings."""
    page = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
    for name, documents in {"10^7": 10**7, "10^8": 10**8, "10^9": 10**9, "2.53·10^9": 2_530_000_000}.items():
        bill = bill_of(documents)
        hours = [bill[part][1] for part in ("ids", "their exchanges", "blocks", "exact decisions", "in all")]
        cells = [f"{value:,.1f}" for value in (*hours, bill["in all"][0])]
        assert re.search(rf"^\| {re.escape(name)} \| [\d,]+ \| {re.escape(' | '.join(cells))} \|$", page, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bands", "20", "--rows", "5"], "--documents goes with the settings of a run"),
        (["--memory", "much"], "--memory much: expected bytes such as 64MB or 64m"),
        (["--set", "sketch.kind=keywords"], "sketches of the kind keywords have no usual size"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Settings that do not go with `--documents` end with status 2 and a message that names them."""
    status = main(["explain", "--documents", "1000", *arguments])

    assert status == 2
    assert message in capsys.readouterr().err
