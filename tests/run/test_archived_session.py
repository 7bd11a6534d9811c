"""The archive of Spark's classes in real sessions: the first makes it, the next maps it; a damaged one is ignored."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nddup.run.java import archiving, find_java
from tests.places import ROOT

SESSION = """
import os, sys
from pathlib import Path
from nddup.run.session import start_session

spark = start_session(master="local[1]", settings={"spark.driver.memory": "1g"}, is_small=True)
process = spark._jvm.java.lang.ProcessHandle.current().pid()
is_mapped = os.environ["NDDUP_CACHE_DIR"] in Path(f"/proc/{process}/maps").read_text()
rows = spark.range(3).selectExpr("id + 1").count() if "count" in sys.argv else None
print("rows", rows, "mapped", is_mapped)
"""


def test_a_second_session_maps_what_the_first_has_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second session maps the archive that the first made; a damaged one is ignored, and nothing is printed."""
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))}
    environment = {**settings, "PYTHONPATH": str(ROOT), "NDDUP_CACHE_DIR": str(tmp_path / "cache")}

    def start(*arguments: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", SESSION, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True,
            timeout=300, check=True,
        )  # fmt: skip
        return done.stdout, done.stderr

    assert start() == ("rows None mapped False\n", "")
    (archive,) = (tmp_path / "cache").iterdir()  # Java keeps standard output open until the archive is written
    assert archive.stat().st_size > 10 << 20

    assert start("count") == ("rows 3 mapped True\n", "")
    assert list((tmp_path / "cache").iterdir()) == [archive]

    archive.unlink()  # Java makes the file read-only, so it is replaced
    archive.write_bytes(b"no archive" * 1000)
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(archive.parent))
    java = find_java()
    assert java is not None
    options = archiving(java, {}, "")  # with which a session would start Java
    done = subprocess.run([java.home / "bin" / "java", *options, "-version"], capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert f"-XX:SharedArchiveFile={archive}" in options
    assert (done.stdout, archive.name in done.stderr) == ("", False)
    assert archive.stat().st_size == 10_000
