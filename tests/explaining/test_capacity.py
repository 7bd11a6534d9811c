"""The tasks that `nddup explain --documents` reports are those that a run would take."""

import pytest

from nddup.cli import main
from nddup.matching.task_sizes import tasks_needed, volume_of
from nddup.settings.load import load_config
from nddup.settings.plan import threshold_of
from nddup.spelling import parse_size


def test_the_tasks_are_those_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The number of tasks follows from a run's formula, over the distinct sketches of the documents."""
    status = main(["explain", "--documents", "1000000000", "--memory", "4GB", "--set", "pairs.threshold=0.9"])
    said = capsys.readouterr().out

    threshold = threshold_of(load_config(None, ["pairs.threshold=0.9"]))
    needed = tasks_needed(volume_of(850_000_000 * 200, 850_000_000, threshold), parse_size("4GB"))
    assert status == 0
    assert f"  {needed:,} tasks in each of 7 exchanges" in said
    assert "850,000,000 distinct sketches" in said


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
