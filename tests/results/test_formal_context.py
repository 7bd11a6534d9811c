"""The context of a run and its concepts, for the tools of formal concept analysis."""

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from concepts import load

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError
from nddup.results import formal_context
from nddup.settings.load import build_config
from tests.opened.made_runs import write_run

WORDS = [f"w{number}" for number in range(60)]


def test_the_clusters_are_concepts_of_the_context(tmp_path: Path) -> None:
    """Read back by a tool of formal concept analysis, each cluster is a concept, with as many features as support."""
    texts = [" ".join([*WORDS[:cut], "edit", *WORDS[cut:]]) for cut in (5, 10, 30, 50)] + ["other words here"]
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f'"d\n{i}",{text}\n' for i, text in enumerate(texts)))
    settings = build_config({"pairs": {"threshold": 0.6}, "output": {"report": False}}, origin="test")
    run_locally([str(tmp_path / "a.csv")], str(tmp_path / "run"), settings)

    assert main(["show", str(tmp_path / "run"), "--context", str(tmp_path / "fca")]) == 0

    run = DuckRun(str(tmp_path / "run"))
    documents = run.sql("SELECT doc_id, sketch FROM documents ORDER BY doc_key").to_pylist()
    held = [set(map(str, row["sketch"])) for row in documents]
    shared = set.union(*(a & b for a, b in combinations(held, 2)))
    tables = {frmat: load(str(tmp_path / "fca" / f"context.{frmat}"), frmat=frmat) for frmat in ("cxt", "csv")}
    for table in tables.values():
        assert table.objects == tuple(sorted(shared, key=int))
        assert table.bools == [tuple(feature in sketch for sketch in held) for feature in table.objects]
    assert tables["csv"].properties == tuple(row["doc_id"] for row in documents)
    assert tables["cxt"].properties == tuple(row["doc_id"].replace("\n", "\\n") for row in documents)

    with (tmp_path / "fca" / "concepts.csv").open(newline="") as file:
        listed = list(csv.DictReader(file))
    clusters = run.sql("SELECT cluster_id, members, support FROM clusters").to_pylist()
    assert clusters
    for cluster in clusters:
        parts = [(row["part"], row["id"]) for row in listed if row["cluster_id"] == cluster["cluster_id"]]
        extent = [id_ for part, id_ in parts if part == "extent"]
        intent = [id_ for part, id_ in parts if part == "intent"]
        assert intent == cluster["members"]
        assert len(extent) == cluster["support"]
        concept = tables["csv"].lattice[tuple(intent)]
        assert (concept.extent, set(concept.intent)) == (tuple(extent), set(intent))
    assert {row["cluster_id"] for row in listed} == {cluster["cluster_id"] for cluster in clusters}


def test_a_context_too_large_for_a_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A context of too many cells is refused with its size; an empty run has an empty one."""
    rows = [{"doc_key": key, "doc_id": f"d{key}", "sketch": [1, 2, 3]} for key in range(3)]
    run = DuckRun(str(write_run(tmp_path / "run", documents=rows)))
    monkeypatch.setattr(formal_context, "MOST_CELLS", 8)
    with pytest.raises(ConfigError, match=r"3 features of 3 documents are 9 cells, more than 8; context\.fimi"):
        formal_context.write_context(run, str(tmp_path / "fca"))
    assert not (tmp_path / "fca").exists()

    empty = formal_context.write_context(DuckRun(str(write_run(tmp_path / "empty"))), str(tmp_path / "none"))
    assert (len(empty.features), empty.documents) == (0, [])
    assert (tmp_path / "none" / "context.cxt").read_text() == "B\n\n0\n0\n\n"


@pytest.mark.parametrize("cells", [1, 7, 100])
def test_a_context_is_spelled_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """However many rows are spelled at a time, the file is the same."""
    drawn = np.random.default_rng(7).integers(0, 9, (6, 5))
    rows = [{"doc_key": i, "doc_id": f"d{i}", "sketch": sorted(set(row.tolist()))} for i, row in enumerate(drawn)]
    run = DuckRun(str(write_run(tmp_path / "run", documents=rows)))
    formal_context.write_context(run, str(tmp_path / "whole"))
    monkeypatch.setattr(formal_context, "BLOCK_CELLS", cells)

    formal_context.write_context(run, str(tmp_path / "parts"))

    for name in ("context.cxt", "context.csv"):
        assert (tmp_path / "parts" / name).read_text() == (tmp_path / "whole" / name).read_text()
