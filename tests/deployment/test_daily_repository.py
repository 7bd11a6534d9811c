"""The repository task of the daily DAG, without Airflow, and the effect of repeating a day."""

import json
import re
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import nddup.repository
from nddup.cli import main
from nddup.repository.bucket_place import find_place
from nddup.repository.commits import versions_in
from tests.places import ROOT

DAG = ROOT / "jobs" / "dags" / "nddup_daily.py"

PROGRAM = """
import json, runpy, sys, types
from datetime import datetime, timedelta
from unittest.mock import MagicMock

tasks = {}
class Operator:
    def __init__(self, task_id, **given):
        tasks[task_id], self.name, self.after = given, task_id, []
    def __rshift__(self, other):
        order.append((self.name, other.name))
        return other
    def execute(self, context):
        raise OSError(context)
class Final(Exception):
    pass
order = []
submit = "airflow.providers.apache.spark.operators.spark_submit"
parts = submit.split(".")
for name in ["airflow.sdk", "airflow.sdk.exceptions", *(".".join(parts[:size]) for size in range(1, len(parts) + 1))]:
    sys.modules[name] = MagicMock()
sys.modules[submit].SparkSubmitOperator = Operator
sys.modules["airflow.sdk.exceptions"].AirflowException = OSError
sys.modules["airflow.sdk.exceptions"].AirflowFailException = Final
made = runpy.run_path(sys.argv[1])
def ends(message):
    try:
        made["Check"]("again").execute(message)
    except (OSError, Final) as failure:
        return type(failure).__name__
if len(sys.argv) == 2:
    print(json.dumps([{name: given["application_args"] for name, given in tasks.items()}, order]))
elif sys.argv[2] == "ends":
    print(json.dumps([ends(message) for message in sys.argv[3:]]))
elif sys.argv[2] == "before":
    print(json.dumps([made["night_before"](output) for output in sys.argv[3:]]))
elif sys.argv[2] == "heap":
    params = [call.kwargs for call in sys.modules["airflow.sdk"].Param.call_args_list]
    allowed = [given["pattern"] for given in params if "pattern" in given]
    print(json.dumps([allowed, [made["heap"](size) for size in sys.argv[3:]]]))
else:
    utc = datetime.fromisoformat(sys.argv[2])
    hours = [made["batch_before"](utc + timedelta(hours=hour)) for hour in range(int(sys.argv[3]))]
    dag = sys.modules["airflow.sdk"].DAG.call_args.kwargs
    print(json.dumps([hours, dag["start_date"].isoformat(), dag["schedule"], dag["catchup"]]))
"""


def ask_dag(environment: dict[str, str], *asked: str) -> Any:  # noqa: ANN401 - JSON values
    """Return what `PROGRAM` prints of the DAG file under these variables."""
    command = [sys.executable, "-c", PROGRAM, str(DAG), *asked]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def read_dag(environment: dict[str, str]) -> tuple[dict[str, list[str]], list[list[str]]]:
    """Return the arguments of each task and the pairs of tasks that follow one another, as the DAG file makes them."""
    arguments, order = ask_dag(environment)
    return arguments, order


@pytest.mark.parametrize(
    ("zone", "changed", "start", "hours"),
    [
        ("Asia/Tokyo", "2026-03-28T15:00+00:00", "2026-03-28T12:00:00+09:00", 24),
        ("Europe/Berlin", "2026-03-28T23:00+00:00", "2026-03-28T12:00:00+01:00", 23),
        ("America/Santiago", "2026-09-06T04:00+00:00", "2026-09-05T12:00:00-04:00", 23),
    ],
)
def test_days_are_those_of_the_time_zone(zone: str, changed: str, start: str, hours: int) -> None:
    """From each midnight to the next the batch is the day before, also on the short day on which summer time begins.

    `changed` is when that day begins: in Chile at 1 o'clock, for there is no midnight. The first batch is whole at the
    first midnight after `start`, and nights missed since are caught up with.
    """
    environment = {"NDDUP_TIMEZONE": zone, "NDDUP_START": start[:10]}

    batches, begun, schedule, is_caught_up = ask_dag(environment, changed, str(hours + 1))

    day = datetime.fromisoformat(start[:10])
    assert batches == [start[:10]] * hours + [f"{day + timedelta(days=1):%F}"]
    assert (begun, schedule, is_caught_up) == (start, "@daily", True)


def test_nothing_runs_by_itself_before_it_is_told_the_first_batch() -> None:
    """Without the date of the first batch there is no schedule, so no night is passed over in silence."""
    assert ask_dag({}, "2026-01-05T00:00+00:00", "1")[::2] == [["2026-01-04"], None]


def test_only_failures_of_the_cluster_are_tried_again() -> None:
    """A broken promise, wrong use and lost inputs fail for good; a killed driver or a lost master is tried again."""
    final = ("Error code is: 1.\n2 of 33 promises BROKEN\n", "Error code is: 2.\n", "Error code is: 3.\n")
    passing = ("Error code is: 137.\n", "Error code is: 1.\nAll masters are unresponsive! Giving up.\n")

    assert ask_dag({}, "ends", *final, *passing) == ["Final"] * 3 + ["OSError"] * 2


def test_the_heap_of_the_driver_is_a_size_as_anywhere() -> None:
    """With or without the letter B, in small letters or large: a JVM refuses `-Xmx1536MB`."""
    sizes = ["1536m", "1536MB", "2g", "2Gb"]
    (pattern,), heaps = ask_dag({}, "heap", *sizes)
    assert all(re.search(pattern, size) for size in sizes)
    assert heaps == ["1536m", "1536M", "2g", "2G"]
    assert not re.search(pattern, "2 parsecs")


def test_the_first_night_goes_onto_none() -> None:
    """Nor does any where no date of the first is given: Compose passes a variable that is not set as an empty one."""
    outputs = [f"s3a://runs/{day}" for day in ("2026-01-03", "2026-01-04", "2026-03-01")]
    assert ask_dag({"NDDUP_START": "2026-01-03"}, "before", *outputs) == [
        None, "s3a://runs/2026-01-03", "s3a://runs/2026-02-28"
    ]  # fmt: skip
    unset = ("START", "TIMEZONE", "INPUT", "OUTPUT", "CONFIG", "HOME", "INDEX", "ONTO", "DRIVER_MEMORY")
    for environment in ({}, {f"NDDUP_{name}": "" for name in unset}):
        assert ask_dag(environment, "before", *outputs) == [None, None, None]
    assert read_dag({f"NDDUP_{name}": "" for name in unset}) == read_dag({})


def test_a_repository_is_a_task_where_one_is_named() -> None:
    """With a repository named, a task more adds the day after the quality task."""
    arguments, order = read_dag({"NDDUP_INDEX": "/srv/pages"})

    assert order == [["dedup", "quality"], ["quality", "diff"], ["quality", "repository"]]
    assert arguments["repository"][:2] == ["add", "/srv/pages"]
    assert read_dag({})[1] == [["dedup", "quality"], ["quality", "diff"]]


def test_a_day_that_is_repeated_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Adding a day again changes nothing, with ids or without, even after a later day has made another version."""
    repo = nddup.repository.create(str(tmp_path / "repo"), input={"id": "id"}, local={"processes": 1})
    arguments, _ = read_dag({"NDDUP_INDEX": str(tmp_path / "repo")})
    for date, texts in {"2026-01-04": ["one", "two"], "2026-01-05": ["one", "three"]}.items():
        (tmp_path / date).mkdir()
        lines = [json.dumps({"text": f"{text} text of the day"}) for text in texts]
        lines.append(json.dumps({"id": "named", "text": f"as it is on {date}"}))
        (tmp_path / date / "pages.jsonl").write_text("\n".join(lines) + "\n")

    def add(date: str) -> str:
        rendered = [re.sub(r"{{ params.input }}", str(tmp_path), one) for one in arguments["repository"]]
        assert main(["index", *(re.sub(r"{{.*?}}", date, one) for one in rendered)]) == 0
        return capsys.readouterr().out

    told = [add(date) for date in ("2026-01-04", "2026-01-04", "2026-01-05", "2026-01-04", "2026-01-05")]

    assert ["nothing changed" in one for one in told] == [False, True, False, True, True]
    assert versions_in(find_place(tmp_path / "repo")) == [1, 2, 3]
    ids = repo.refresh().tables()["documents"]["doc_id"].to_pylist()
    assert sorted(ids) == [
        "2026-01-04/pages.jsonl#1", "2026-01-04/pages.jsonl#2", "2026-01-05/pages.jsonl#1",
        "2026-01-05/pages.jsonl#2", "named",
    ]  # fmt: skip
