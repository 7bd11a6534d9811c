"""A night onto a run of few documents is settled at the driver and decided in one task, with the same tables."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nddup.spark.steps import changed, onto
from tests.nights import assert_nights_equal
from tests.samples_by_night import first


@pytest.mark.parametrize("is_followed", first(1, [False, True]), ids=["one night", "two nights"])
def test_small_nights_have_the_tables_of_one_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_followed: bool
) -> None:
    monkeypatch.setattr(onto, "join_old", None)
    monkeypatch.setattr(changed, "_find_reached", None)

    assert_nights_equal(spark, tmp_path, is_followed=is_followed)
