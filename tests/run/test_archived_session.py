"""The archive of Spark's classes in real sessions: a later session maps it; a damaged one is ignored.

`tests/java_archive.py` proves that a first session makes it, wherever there is none yet.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nddup.spark.java import archive_path, archiving, find_java
from tests.places import ROOT

pytestmark = pytest.mark.spark

SESSION = """
from pathlib import Path
from nddup.spark.session import start_session
from nddup.ground.start_up import cache_folder

spark = start_session(master="local[1]", settings={"spark.driver.memory": "1g"}, is_small=True)
process = spark._jvm.java.lang.ProcessHandle.current().pid()
is_mapped = str(cache_folder()) in Path(f"/proc/{process}/maps").read_text()
print("rows", spark.range(3).selectExpr("id + 1").count(), "mapped", is_mapped)
"""


def test_a_later_session_maps_what_the_first_has_loaded(tmp_path: Path) -> None:
    """A session maps the archive that another has made, and Java prints nothing about it."""
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))}

    done = subprocess.run(
        [sys.executable, "-c", SESSION], env={**settings, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True,
        text=True, timeout=300, check=True,
    )  # fmt: skip

    assert (done.stdout, done.stderr) == ("rows 3 mapped True\n", "")


def test_a_damaged_archive_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java starts as usual with the options of a session, prints nothing, and leaves the file as it is."""
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path))
    java = find_java()
    assert java is not None
    archive = archive_path(java, {}, "")
    assert archive is not None
    archive.write_bytes(b"no archive" * 1000)
    options = archiving(java, {}, "")

    done = subprocess.run([java.home / "bin" / "java", *options, "-version"], capture_output=True, text=True,
                          check=True)  # fmt: skip

    assert f"-XX:SharedArchiveFile={archive}" in options
    assert (done.stdout, archive.name in done.stderr) == ("", False)
    assert archive.stat().st_size == 10_000
