"""Every command on runs of collections that hold next to nothing: no document, one, and none with a text."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.cli import main

WORDS = " ".join(f"word{number}" for number in range(40))

COLLECTIONS: dict[str, list[dict[str, Any]]] = {
    "no document": [{"id": "x", "text": None}, {"id": "y", "text": None}],
    "one": [{"id": "only", "text": WORDS}],
    "no text": [{"id": f"e{number}", "text": text} for number, text in enumerate(["", " ", "\n", "...", "—"])],
}
SETTINGS: dict[str, dict[str, str]] = {
    "min-s": {"output.kept": "xml", "output.context": "true"},
    "lexicon": {"sketch.kind": "lexicon", "output.texts": "0", "output.report": "false"},
    "mod-pow2": {"sketch.kind": "mod-pow2", "clusters.mode": "partition"},
}
RUNS = [("no document", "min-s"), ("one", "lexicon"), ("no text", "mod-pow2"), ("no text", "lexicon")]


@pytest.mark.parametrize(("collection", "kind"), RUNS)
def test_every_command_ends_well(  # noqa: PLR0913, PLR0917 - fixtures
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    collection: str,
    kind: str,
) -> None:
    """Nothing is found, every promise holds, and an empty list of duplicates is compared as one."""
    del spark  # the commands take the session that runs
    monkeypatch.setenv("NDDUP_DEBUG", "1")
    records = COLLECTIONS[collection]
    documents = sum(record["text"] is not None for record in records)
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    pages, run, truth = str(tmp_path / "pages.jsonl"), str(tmp_path / "run"), str(tmp_path / "truth.csv")
    settings = [part for key, value in SETTINGS[kind].items() for part in ("--set", f"{key}={value}")]

    def say(*arguments: str) -> str:
        capsys.readouterr()
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    assert f"documents {documents:>24,}" in say("run", pages, "--output", run, *settings)
    assert f"results in {run}" in say("run", pages, "--output", run, "--resume", *settings)
    assert f"kept {documents:>29,}" in say("show", run)
    assert say("check", run).endswith("every promise holds\n")
    assert f": 0 pairs of {documents} documents" in say("truth", run, "--output", truth)
    assert "(pairs, comma, header id_a id_b similarity): 0 lines, 0 ids" in say("evaluate", run, "--truth", truth)
    assert say("report", run) == f"report in {run}/report/index.html\n"
    assert f"{documents} documents" in say("inspect", pages)
    assert pq.read_table(f"{run}/keep").num_rows == documents
