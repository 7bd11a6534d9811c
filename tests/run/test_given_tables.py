"""`find_duplicates` on pandas and Arrow tables finds what a run over the same texts finds, without Spark."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import nddup
from nddup.errors import ConfigError
from nddup.run.local_job import run_locally
from nddup.settings.load import build_config
from nddup.storage.local_folder import LocalFolder
from tests.finished_runs import write_texts
from tests.local.edited_texts import make_texts
from tests.places import ROOT


def test_an_arrow_table_gives_the_tables_of_a_run(tmp_path: Path) -> None:
    """An Arrow table gives the same pairs, clusters, members and keep-list as a file with the same texts."""
    texts = make_texts()
    table = pa.table({"name": list(texts), "body": list(texts.values())})
    pages = write_texts(tmp_path / "pages.jsonl", texts)
    run_locally([str(pages)], str(tmp_path / "run"), build_config({}, origin="test"))
    folder = LocalFolder(str(tmp_path / "run"))

    found = nddup.find_duplicates(table, id="name", text="body")

    for name in ("pairs", "clusters", "members", "keep", "false_components"):
        assert sorted(map(repr, getattr(found, name).to_pylist())) == sorted(map(repr, folder.read(name).to_pylist()))
    assert found.metrics["rows"]["documents"] == len(texts)
    assert "texts" not in found.metrics["stages"]


def test_a_frame_of_pandas_gives_frames() -> None:
    """A pandas frame gives pandas frames: ids become text, and a row with a null text is a reject and frees its id."""
    frame = pd.DataFrame({"n": [3, 1, 2, 2], "body": ["a b c d e f", "a b c d e f", None, "x"]})

    found = nddup.find_duplicates(frame, id="n", text="body", pairs={"threshold": 0.9})

    assert found.keep.to_dict("records") == [
        {"doc_id": "1", "kept": True, "duplicate_of": None, "reason": None},
        {"doc_id": "2", "kept": True, "duplicate_of": None, "reason": None},
        {"doc_id": "3", "kept": False, "duplicate_of": "1", "reason": "exact"},
    ]
    assert list(found.rejects["doc_id"]) == ["2"]


def test_what_is_no_table_or_needs_spark_is_refused() -> None:
    """An unknown column, and options that need a Spark DataFrame, are refused."""
    table = pa.table({"id": ["a"], "text": ["b"]})
    with pytest.raises(ConfigError, match="no column 'url'; there are id, text"):
        nddup.find_duplicates(table, id="url")
    with pytest.raises(ConfigError, match="checkpoint and engine=spark are for a DataFrame of Spark"):
        nddup.find_duplicates(table, checkpoint="/tmp/x")  # noqa: S108 - it is refused


def test_no_spark_is_loaded() -> None:
    """`find_duplicates` on an Arrow table does not load pyspark."""
    program = (
        "import sys, pyarrow as pa, nddup; nddup.find_duplicates(pa.table({'id': ['a', 'b'], 'text': ['c d', 'c d']}));"
        " sys.exit('pyspark' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
