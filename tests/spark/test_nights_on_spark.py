"""A run onto a finished run has the same tables on Spark as of the embedded engine (`tests/embedded/test_onto.py`)."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.nights import assert_nights_equal


@pytest.mark.parametrize(
    "is_followed", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["one night", "two nights"]
)
def test_a_night_has_the_tables_of_one_run(spark: SparkSession, tmp_path: Path, *, is_followed: bool) -> None:
    assert_nights_equal(spark, tmp_path, is_followed=is_followed)
