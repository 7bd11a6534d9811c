"""`nddup show` on a finished run, read in this process."""

import subprocess
import sys
from pathlib import Path

import pytest

from nddup.errors import ConfigError
from nddup.opened.duck import DuckRun
from nddup.results.show import show_run
from tests.opened.made_runs import write_family, write_run

ODD = "c\"'"


def test_the_summary_lists_the_largest_clusters(tmp_path: Path) -> None:
    """The summary lists the largest clusters below the counts; a run without clusters has no heading for them."""
    said = show_run(DuckRun(str(write_family(tmp_path / "run"))), cluster=None, doc=None)
    empty = show_run(DuckRun(str(write_run(tmp_path / "empty"))), cluster=None, doc=None)

    assert said.endswith(f"  {'cluster':<16}     size  support  first member\n  {'f' * 16}        3        7  a\n")
    assert "first member" not in empty


def test_a_cluster_lists_its_members(tmp_path: Path) -> None:
    """A cluster lists its members with their addresses and marks the preferred one."""
    said = show_run(DuckRun(str(write_family(tmp_path / "run"))), cluster="f" * 16, doc=None)

    assert said.splitlines() == [
        f"cluster {'f' * 16}: 3 documents, 7 features common to all; all maximal sets of its component are listed",
        "  * a  http://x.org/a",
        "    b  ",
        f"    {ODD}  http://x.org/{ODD}",
        "  * preferred by the keep policy",
    ]


def test_a_document_lists_its_pairs_and_clusters(tmp_path: Path) -> None:
    """A document lists its pairs, the nearest first, from either side; an unknown resemblance is shown as a dash."""
    said = show_run(DuckRun(str(write_family(tmp_path / "run"))), cluster=None, doc=ODD)

    assert said.splitlines() == [
        f"document {ODD}: p.xml#3, 40 tokens, 9 features",
        f"  url       http://x.org/{ODD}",
        "  removed   near of a",
        "  near      resemblance  common  document",
        "                  1.000       9  b",
        "                      -       7  a",
        f"  cluster   {'f' * 16}  of 3, support 7",
    ]


def test_a_name_that_is_not_there_is_said(tmp_path: Path) -> None:
    """An unknown cluster or document is named in the error, with quotes and SQL in the name left as they are."""
    run = DuckRun(str(write_family(tmp_path / "run")))

    with pytest.raises(ConfigError, match="--cluster o'clock: no such cluster in"):
        show_run(run, cluster="o'clock", doc=None)
    with pytest.raises(ConfigError, match="--doc x' OR 'a' = 'a: no such document in"):
        show_run(run, cluster=None, doc="x' OR 'a' = 'a")


@pytest.mark.parametrize("asked", [["show"], ["show", "--doc", "a"], ["report"]])
def test_looking_loads_neither_spark_nor_numba(asked: list[str], tmp_path: Path) -> None:
    """`show` and `report` import neither Spark nor Numba; `--help` imports no library that reads or computes."""
    folder = write_family(tmp_path / "run")
    heavy = ["pyspark", "py4j", "numba", "scipy", "lxml", *(["pandas"] if asked[0] == "show" else [])]
    program = (
        "import sys\n"
        "from nddup.cli import main\n"
        "try: status = main(sys.argv[2:])\n"
        "except SystemExit as left: status = left.code\n"
        "sys.exit(status or ' '.join(set(sys.argv[1].split()) & set(sys.modules)) or None)\n"
    )

    for given, absent in (
        ([asked[0], str(folder), *asked[1:]], heavy),
        ([asked[0], "--help"], [*heavy, "pyarrow", "duckdb", "pydantic"]),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, " ".join(absent), *given], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
