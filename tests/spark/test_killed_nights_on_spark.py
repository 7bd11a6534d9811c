"""A run onto another on Spark that is killed between two steps leaves the other as it was; `resume` finishes it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from nddup.spark import session_tables
from nddup.spark.run import run_job
from nddup.spark.session_tables import SparkFolder
from nddup.storage.local_folder import link_files
from tests.finished_runs import sorted_tables
from tests.nights import write_batches

SHORT = {"shingle": {"length": 2}, "sketch": {"size": 16}, "input": {"max_rejects": None}}


class _Copies:
    """Copies of the folder of a run, as a kill would have left it at each step."""

    def __init__(self, run: Path, where: Path) -> None:
        self.run, self.where, self.steps = run, where, list[str]()

    def before(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Return the step, before which the folder is copied."""

        def copied(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - those of any step
            self.steps.append(step.__name__)
            to = self.where / str(len(self.steps))
            shutil.copytree(self.run, to, ignore=shutil.ignore_patterns("_CLAIM-*"))  # of this process, which lives
            return step(*arguments, **named)

        return copied


@pytest.mark.nightly  # by day one is ended between two links (`test_nights_on_spark`)
@pytest.mark.parametrize("share", range(4))
def test_a_night_is_killed_between_two_steps(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    write_batches(tmp_path / "in")
    config = build_config({"output": {"report": False, "onto": True}, **SHORT}, origin="test")
    old, new, inputs = tmp_path / "old", tmp_path / "new", [str(tmp_path / "in" / "b")]
    run_locally([str(tmp_path / "in" / "a")], str(old), config, batch="a")
    files = {file: file.read_bytes() for file in old.rglob("*") if file.is_file()}
    copies = _Copies(new, tmp_path / "killed")
    with monkeypatch.context() as patched:
        patched.setattr(session_tables, "link_files", copies.before(link_files))
        for step in (SparkFolder.seal, SparkFolder.publish, SparkFolder.finish):
            patched.setattr(SparkFolder, step.__name__, copies.before(step))
        run_job(spark, inputs, str(new), config, batch="b", onto=str(old))
    due = sorted_tables(new)

    assert {"link_files", "seal", "finish"} <= set(copies.steps)
    for at in range(share, len(copies.steps), 4):
        killed = copies.where / str(at + 1)
        run_job(spark, inputs, str(killed), config, batch="b", onto=str(old), resume=True)
        assert sorted_tables(killed) == due, (at, copies.steps[at])
        assert {file: file.read_bytes() for file in old.rglob("*") if file.is_file()} == files, at
