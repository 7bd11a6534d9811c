"""The session: settings that are restored or refused, and when Python workers are started by nddup's daemon."""

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from nddup.errors import ConfigError
from nddup.spark.session import PINNED, RUNTIME, set_to, settings_for, workers_find_us
from scripts.standalone import HOME, environment, for_java
from tests.places import ROOT
from tests.samples_by_night import by_day_if_changed

BARE = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
"""A Python in which nothing is installed."""

LIBRARIES = Path(np.__file__).parents[1]
SIZE = "spark.sql.shuffle.partitions"


def test_settings_are_restored_whatever_happens(spark: SparkSession) -> None:
    """Settings get their old values back or are unset again, and if Spark refuses one, none is changed."""
    before, unset = spark.conf.get(SIZE), "spark.sql.session.localRelationCacheThreshold"

    def fail_in_between() -> None:
        with set_to(spark, {SIZE: "7", unset: "1234"}):
            assert (spark.conf.get(SIZE), spark.conf.get(unset)) == ("7", "1234")
            raise KeyError

    with pytest.raises(KeyError):
        fail_in_between()

    with pytest.raises(ConfigError) as caught, set_to(spark, {SIZE: "7", "spark.executor.memory": "1g", unset: "1"}):
        pytest.fail("a running session cannot change this")

    assert str(caught.value).startswith("spark.executor.memory=1g: ")
    assert "\n" not in str(caught.value)
    assert (spark.conf.get(SIZE), spark.conf.get(unset, None)) == (before, None)


@pytest.mark.parametrize("key", PINNED)
def test_what_the_stages_count_on_is_not_to_be_changed(key: str) -> None:
    """A pinned setting with another value is refused in one line with its key, the required and the given value."""
    other = "false" if PINNED[key] == "true" else "true"

    with pytest.raises(ConfigError) as caught:
        settings_for({key: other})

    assert str(caught.value) == f"{key}: nddup works with {PINNED[key]} only, got {other}"
    assert settings_for({key: PINNED[key].upper(), "spark.x": "y"})["spark.x"] == "y"
    assert settings_for({}) == {**RUNTIME, **PINNED}


def test_a_setting_that_is_given_wins() -> None:
    """A setting that the user gives overrides nddup's default."""
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"

    assert settings_for({key: "5"})[key] == "5"


@pytest.mark.parametrize(
    ("python", "path", "finds"),
    [(BARE, ROOT, True), (BARE, LIBRARIES, False), (sys.executable, ROOT, True), ("/no/such/python", ROOT, False)],
)
def test_our_daemon_is_for_workers_that_can_load_it(
    python: Path | str, path: Path, *, finds: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The daemon is used only if the workers' own Python and PYTHONPATH can load nddup."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(path))
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))

    assert workers_find_us() is finds


JOB = """
from nddup.spark.session import start_session
from nddup.spark.blocks import with_rows

spark = start_session(master=None, settings={"spark.ui.enabled": "false"})
theirs = spark.range(4).mapInArrow(lambda batches: (batch for batch in batches), "id long").count()
ours = spark.range(4).mapInArrow(with_rows, "id long").count()
print(f"rows {theirs} {ours}")
"""


@by_day_if_changed("nddup/spark", "nddup/storage", "nddup/ground", "nddup/__init__.py")
@pytest.mark.spark
def test_code_that_comes_as_py_files_breaks_no_task(tmp_path: Path) -> None:
    """A job whose code comes as `--py-files` succeeds, though the workers' daemon starts before these files arrive."""
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as packed:
        for path in [*(ROOT / "nddup").rglob("*.py"), *(ROOT / "nddup").rglob("*.txt")]:
            packed.write(path, path.relative_to(ROOT))
    (tmp_path / "job.py").write_text(JOB)
    bare = {
        **environment(),
        "PYTHONPATH": str(LIBRARIES),
        "PYSPARK_PYTHON": str(BARE),
        "PYSPARK_DRIVER_PYTHON": str(BARE),
        "SPARK_SUBMIT_OPTS": for_java(),
    }

    submitted = subprocess.run(
        [HOME / "bin" / "spark-submit", "--master", "local[1]", "--py-files", "code.zip", "job.py"],
        cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert "rows 4 4" in submitted.stdout, submitted.stderr[-3000:]
