"""The tasks that `nddup explain --documents` reports are those that a run would take."""

from itertools import product

import pytest

from nddup.cli import main
from nddup.explaining.curves import DISTINCT
from nddup.matching.task_sizes import MOST_TASKS, free_memory, piece_ids, tasks_needed, volume_of
from nddup.matching.threshold import Threshold
from nddup.settings.load import load_config
from nddup.settings.plan import threshold_of
from nddup.shown import parse_size
from tests.places import ROOT


def test_the_tasks_are_those_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The number of tasks follows from a run's formula, over the distinct sketches of the documents."""
    status = main(["explain", "--documents", "1000000000", "--memory", "4GB", "--set", "pairs.threshold=0.9"])
    said = capsys.readouterr().out

    threshold = threshold_of(load_config(None, ["pairs.threshold=0.9"]))
    needed = tasks_needed(volume_of(850_000_000 * 200, 850_000_000, threshold), parse_size("4GB"))
    assert status == 0
    assert f"  {needed:,} tasks in each of 7 exchanges" in said
    assert "850,000,000 distinct sketches" in said
    assert "below 32 kB a byte costs more: --memory 8GB makes larger ones" in said
    assert "spark-submit --master MASTER --driver-memory 4g --executor-cores 4 --executor-memory 8g" in said
    assert f" --conf spark.executor.pyspark.memory={4 * parse_size('4GB') >> 20}m jobs/dedup.py" in said


def test_the_page_on_sizing_has_the_same_tasks() -> None:
    """The table of tasks and blocks in docs/sizing.md is what the formulas give."""
    page = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
    for size, power in product((200,), (6, 7, 8, 9)):
        sketches = 10**power * DISTINCT // 100
        threshold = Threshold("resemblance", 7, 10, is_count=False, size=size)
        cells = []
        for memory in (1 << 30, 2 << 30, 4 << 30, 8 << 30):
            tasks = tasks_needed(volume_of(sketches * size, sketches, threshold), memory)
            piece = min(piece_ids(free_memory(memory), tasks), -(-sketches * size // tasks))
            block = f"{tasks:,} ({4 * piece / tasks / 1024:,.1f})"
            cells.append(block if tasks <= MOST_TASKS else "more than there can be")
        assert f"| {size} | 10^{power} | {' | '.join(cells)} |" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bands", "20", "--rows", "5"], "--documents goes with the settings of a run"),
        (["--memory", "much"], "--memory much: expected bytes such as 64MB"),
        (["--set", "sketch.kind=keywords"], "sketches of the kind keywords have no usual size"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Settings that do not go with `--documents` end with status 2 and a message that names them."""
    status = main(["explain", "--documents", "1000", *arguments])

    assert status == 2
    assert message in capsys.readouterr().err
