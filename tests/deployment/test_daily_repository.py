"""The repository task of the daily DAG, without Airflow, and the effect of repeating a day."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nddup.repository
from nddup.cli import main
from nddup.repository.bucket_place import find_place
from nddup.repository.commits import versions_in
from tests.places import ROOT

DAG = ROOT / "jobs" / "dags" / "nddup_daily.py"

PROGRAM = """
import json, runpy, sys, types
from unittest.mock import MagicMock

tasks = {}
class Operator:
    def __init__(self, task_id, **given):
        tasks[task_id], self.name, self.after = given, task_id, []
    def __rshift__(self, other):
        order.append((self.name, other.name))
        return other
order = []
submit = "airflow.providers.apache.spark.operators.spark_submit"
parts = submit.split(".")
for name in ["airflow.sdk", *(".".join(parts[:size]) for size in range(1, len(parts) + 1))]:
    sys.modules[name] = MagicMock()
sys.modules[submit].SparkSubmitOperator = Operator
runpy.run_path(sys.argv[1])
print(json.dumps([{name: given["application_args"] for name, given in tasks.items()}, order]))
"""


def read_dag(environment: dict[str, str]) -> tuple[dict[str, list[str]], list[list[str]]]:
    """Return the arguments of each task and the pairs of tasks that follow one another, as the DAG file makes them."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(DAG)], env=environment, capture_output=True, text=True,
                          check=True)  # fmt: skip
    arguments, order = json.loads(done.stdout)
    return arguments, order


def test_a_repository_is_a_third_task_where_one_is_named() -> None:
    """With a repository named, a third task adds the day after the quality task; otherwise there are two tasks."""
    arguments, order = read_dag({"NDDUP_INDEX": "/srv/pages"})

    assert order == [["dedup", "quality"], ["quality", "repository"]]
    assert arguments["repository"][:2] == ["add", "/srv/pages"]
    assert read_dag({})[1] == [["dedup", "quality"]]


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
