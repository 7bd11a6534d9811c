"""`nddup demo`: one command after the installation shows a result."""

import gzip
import json
from pathlib import Path

import pytest

import nddup
from nddup.cli import main


def test_the_demo_shows_a_result_and_what_to_type_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pages of the package are written and read; the summary and the next commands follow. Nothing is replaced."""
    folder = tmp_path / "demo"

    assert main(["demo", "--output", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"nddup show {folder}/run" in said
    lines = gzip.decompress((folder / "pages" / "boost.jsonl.gz").read_bytes()).splitlines()
    found = nddup.open(str(folder / "run"))
    assert len(found.documents) == len(lines) == len({json.loads(line)["id"] for line in lines})
    assert 20 < found.sql("SELECT count(*) AS n FROM keep WHERE NOT kept").to_pylist()[0]["n"] < 110

    assert main(["demo", "--output", str(folder)]) == 2
    assert "give another folder" in capsys.readouterr().err
