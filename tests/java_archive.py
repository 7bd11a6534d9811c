"""The archive of Spark's classes that all JVMs of the tests map; made before the first of them if it is missing.

Otherwise every process that starts a session would write an archive at its end, and no JVM could map one until then.
"""

import fcntl
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from nddup.ground.start_up import cache_folder
from nddup.spark.java import archiving, find_java, users_options
from tests.places import ROOT

RUN = "import sys; from nddup.cli import main; sys.exit(main())"


@cache
def make_archive() -> None:
    """Write the archive by a small run on Spark if there is none; of several processes the first one writes it.

    So it is proved that a first session makes it, and that Java prints nothing about it. Where this Java or the disk
    allows none, the tests only take longer.
    """
    if not _is_missing():
        return
    with (cast("Path", cache_folder()) / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_missing():
            _run()


def _is_missing() -> bool:
    options = archiving(find_java(), {}, users_options({}))  # also creates the folder
    return any("ArchiveClassesAtExit" in option for option in options)


def _run() -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "pages.csv").write_text("id,text\n1,one and the same text\n2,one and the same text\n")
        arguments = ["run", "pages.csv", "--output", "out", "--engine", "spark", "--set", "shingle.length=2"]
        done = subprocess.run(
            [sys.executable, "-c", RUN, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not _is_missing(), "the first session left no archive"
    assert "][cds" not in done.stdout + done.stderr
