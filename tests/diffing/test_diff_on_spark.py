"""Diffs and splits on Spark: of folders as on this machine, and of runs over DataFrames."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

import nddup
from nddup.diffing.diff_tables import diff_here, queries
from nddup.errors import ConfigError
from tests.diffing.changed_runs import change, draw_state, run_state
from tests.samples_by_night import by_day_if_changed
from tests.spark_holdings import checkpoints, left_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@by_day_if_changed("nddup/diffing", "nddup/engines", "nddup/spark", "nddup/stages")
def test_a_diff_on_spark_is_that_of_this_machine(tmp_path: Path, spark: "SparkSession") -> None:
    """Counts and all rows of all tables are the same, with causes that need the components of both; none is held."""
    from nddup.spark.runs_given import diff_on_spark  # noqa: PLC0415 - for Spark alone

    drawn = np.random.default_rng(5)
    earlier = draw_state(drawn, 40)
    later = change(drawn, earlier, ("come", "go", "text"))
    before, after = run_state(earlier, tmp_path, "before"), run_state(later, tmp_path, "after")

    held, (_, _, views) = checkpoints(spark), left_by(spark, set())
    here = diff_here(before, after, str(tmp_path / "here"))
    there = diff_on_spark(spark, before, after, str(tmp_path / "there"))

    assert here == there
    assert left_by(spark, held) == (0, [], views)
    assert here.causes.keys() >= {"text", "neighbours"}
    for name in queries():
        rows = [pq.read_table(tmp_path / where / name) for where in ("here", "there")]
        assert rows[0].num_rows
        assert rows[0].to_pylist() == rows[1].to_pylist(), name


@pytest.mark.nightly
def test_runs_over_dataframes(spark: "SparkSession") -> None:
    """`Run.diff` and `Run.split` of DataFrames say what they say of the same rows in this process.

    By day `deployment/test_connect.py` compares both over a remote session.
    """
    texts = {
        "a": "one two three four five six seven",
        "b": "one two three four five six seven eight",
        "c": "others are here",
    }
    later = {"a": texts["a"], "c": "quite another text than before", "d": texts["b"]}
    rows = [[{"id": one, "text": text} for one, text in some.items()] for some in (texts, later)]
    here = [nddup.find_duplicates(some) for some in rows]
    there = [nddup.find_duplicates(spark.createDataFrame(some)) for some in rows]

    diffs = [runs[0].diff(runs[1]) for runs in (here, there)]
    assert repr(diffs[0]) == repr(diffs[1])
    assert diffs[0].changes.to_table().to_pylist() == diffs[1].changes.to_table().to_pylist()
    splits = [
        run.split({"train": 0.5, "test": 0.5}, fixed={"c": "test"}).to_table().to_pylist()
        for run in (here[1], there[1])
    ]
    assert splits[0] == splits[1]
    assert {row["doc_id"] for row in splits[1]} == later.keys()
    with pytest.raises(ConfigError, match="one of each"):
        there[0].diff(here[1])
    for run in there:
        run.close()
