"""`nddup show` on a finished run, read in this process."""

import subprocess
import sys
from pathlib import Path

import pytest

from nddup.engines.duck import DuckRun
from nddup.engines.engine import FinishedRun
from nddup.errors import ConfigError
from nddup.results.show import removed_lines, show_removed, show_run
from tests.opened.made_runs import write_family, write_run

ODD = "c\"'"


def test_the_summary_lists_families_then_clusters(tmp_path: Path) -> None:
    """Families, then the largest clusters, are listed below the counts; without any there is no heading for them."""
    said = show_run(DuckRun(str(write_family(tmp_path / "run"))), cluster=None, doc=None)
    empty = show_run(DuckRun(str(write_run(tmp_path / "empty"))), cluster=None, doc=None)

    assert said.endswith(
        "families: one kept document and those that it stands for\n"
        "  documents  least alike    lost  kept\n"
        "          3            -       -  a  http://x.org/a\n"
        "\n"
        "the sets inside: every two documents of one are alike; the largest of each group\n"
        f"  {'cluster':<16}  documents  first document\n  {'f' * 16}          3  a\n"
    )
    assert not any(word in empty for word in ("first document", "families", "sets inside"))


def write_removed(folder: Path) -> FinishedRun:
    """Write a run with two families, one of two documents with odd names, and a document that was forced out."""
    names = ["a", "b", "=1+1", "c,d", "e", "gone"]
    documents = [
        {"doc_key": key, "doc_id": name, "url": f"http://x.org/{key}", "source": "p.xml", "record": key + 1}
        for key, name in enumerate(names)
    ]
    keep = [
        {"doc_id": "a", "kept": True},
        {"doc_id": "b", "kept": False, "duplicate_of": "a", "reason": "near", "resemblance": 0.75, "lost": 0.125},
        {"doc_id": "=1+1", "kept": False, "duplicate_of": "a", "reason": "equal", "resemblance": 1.0, "lost": 0.0},
        {"doc_id": "c,d", "kept": True},
        {"doc_id": "e", "kept": False, "duplicate_of": "c,d", "reason": "near", "resemblance": 0.9, "lost": 0.0001},
        {"doc_id": "gone", "kept": False, "reason": "forced"},
    ]
    return DuckRun(str(write_run(folder, documents=documents, keep=keep)))


def test_removed_documents_are_listed_by_family(tmp_path: Path) -> None:
    """What was removed is counted by reason and listed under the kept document, the largest family first."""
    assert show_removed(write_removed(tmp_path / "run")).splitlines() == [
        "removed: 4 of 6 documents (1 equal, 1 forced, 2 near)",
        "each kept document, and below it those removed for it:",
        "    reason   like    lost  document",
        "",
        "a  http://x.org/0",
        "    equal   1.000    0.0%  =1+1",
        "    near    0.750   12.5%  b",
        "",
        "c,d  http://x.org/3",
        "    near    0.900  < 0.1%  e",
        "",
        f"all of them: nddup show {tmp_path / 'run'} --removed --csv",
    ]
    assert show_removed(DuckRun(str(write_run(tmp_path / "none")))) == "removed: 0 of 0 documents\n"


def test_the_csv_of_removed_documents_names_each_once(tmp_path: Path) -> None:
    """Each removed document is a line with the kept one and both places; no cell is a formula for a spreadsheet."""
    folder = tmp_path / "run"
    run = write_removed(folder)
    lines = list(removed_lines(run))
    told = subprocess.run(
        [sys.executable, "-m", "nddup", "show", str(folder), "--removed", "--csv"], capture_output=True, text=True,
        check=True,
    )  # fmt: skip

    assert lines == [
        "doc_id,duplicate_of,reason,resemblance,lost,family,source,record,url,kept_source,kept_record,kept_url\n",
        "'=1+1,a,equal,1.0,0.0,3,p.xml,3,http://x.org/2,p.xml,1,http://x.org/0\n",
        "b,a,near,0.75,0.125,3,p.xml,2,http://x.org/1,p.xml,1,http://x.org/0\n",
        'e,"c,d",near,0.9,0.0001,2,p.xml,5,http://x.org/4,p.xml,4,http://x.org/3\n',
        "gone,,forced,,,,p.xml,6,http://x.org/5,,,\n",
    ]
    assert told.stdout == "".join(lines)


def test_a_cluster_lists_its_members(tmp_path: Path) -> None:
    """A cluster lists its members with their addresses and marks the preferred one."""
    said = show_run(DuckRun(str(write_family(tmp_path / "run"))), cluster="f" * 16, doc=None)

    assert said.splitlines() == [
        f"cluster {'f' * 16}: 3 documents, 7 features common to all; all maximal sets of its component are listed",
        "  * a  http://x.org/a",
        "    b",
        f"    {ODD}  http://x.org/{ODD}",
        "  * preferred by the keep policy",
        f"  common text: not shown, {tmp_path}/run/_RUN.json: names no inputs",
    ]


def test_a_document_lists_its_pairs_and_clusters(tmp_path: Path) -> None:
    """A document lists its pairs, the nearest first, from either side; an unknown resemblance is shown as a dash."""
    said = show_run(DuckRun(str(write_family(tmp_path / "run"))), cluster=None, doc=ODD)

    assert said.splitlines() == [
        f"document {ODD}: p.xml#3, 40 tokens, 9 features",
        f"  url       http://x.org/{ODD}",
        "  removed   near-duplicate of a",
        "  near      resemblance  common  document",
        "                  1.000       9  b",
        "                      -       7  a",
        f"  cluster   {'f' * 16}  of 3 documents",
    ]


def test_a_name_that_is_not_there_is_said(tmp_path: Path) -> None:
    """An unknown cluster or document is named in the error, with quotes and SQL in the name left as they are."""
    run = DuckRun(str(write_family(tmp_path / "run")))

    with pytest.raises(ConfigError, match="--cluster o'clock: no such cluster in"):
        show_run(run, cluster="o'clock", doc=None)
    with pytest.raises(ConfigError, match="--doc x' OR 'a' = 'a: no such document in"):
        show_run(run, cluster=None, doc="x' OR 'a' = 'a")


@pytest.mark.parametrize("asked", [["show", "--doc", "a"], ["report"]])
def test_looking_loads_neither_spark_nor_numba(asked: list[str], tmp_path: Path) -> None:
    """`show` and `report` import neither Spark nor Numba; `--help` imports no library that reads or computes.

    `test_start_up` has `show` of a whole run.
    """
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
