"""The context of a run and its concepts, for the tools of formal concept analysis."""

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from nddup.cli import main
from nddup.errors import ConfigError
from nddup.opened.duck import DuckRun
from nddup.results import formal_context
from nddup.run.local_job import run_locally
from nddup.settings.load import build_config
from tests.opened.made_runs import write_run

WORDS = [f"w{number}" for number in range(60)]


def read_cxt(path: Path) -> tuple[list[str], list[str], list[list[bool]]]:
    """Read a file of Burmeister's format by its definition: objects, attributes, rows."""
    lines = path.read_text(encoding="utf-8").split("\n")
    assert (lines[0], lines[1], lines[4], lines[-1]) == ("B", "", "", "")
    n, m = int(lines[2]), int(lines[3])
    objects, attributes, rows = lines[5 : 5 + n], lines[5 + n : 5 + n + m], lines[5 + n + m : -1]
    assert len(rows) == n
    assert all(len(row) == m and set(row) <= {"X", "."} for row in rows)
    return objects, attributes, [[cell == "X" for cell in row] for row in rows]


def test_the_clusters_are_concepts_of_the_context(tmp_path: Path) -> None:
    """Read back, each cluster is a closed set of documents, its extent the features they share, as many as support."""
    texts = [" ".join([*WORDS[:cut], "edit", *WORDS[cut:]]) for cut in (5, 10, 30, 50)] + ["other words here"]
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f'"d\n{i}",{text}\n' for i, text in enumerate(texts)))
    settings = build_config({"pairs": {"threshold": 0.6}, "output": {"report": False}}, origin="test")
    run_locally([str(tmp_path / "a.csv")], str(tmp_path / "run"), settings)

    assert main(["show", str(tmp_path / "run"), "--context", str(tmp_path / "fca")]) == 0

    objects, attributes, cells = read_cxt(tmp_path / "fca" / "context.cxt")
    run = DuckRun(str(tmp_path / "run"))
    documents = run.sql("SELECT doc_id, sketch FROM documents ORDER BY doc_key").to_pylist()
    held = [set(map(str, row["sketch"])) for row in documents]
    shared = set.union(*(a & b for a, b in combinations(held, 2)))
    assert objects == sorted(shared, key=int)
    assert attributes == [row["doc_id"].replace("\n", "\\n") for row in documents]
    assert cells == [[feature in sketch for sketch in held] for feature in objects]

    with (tmp_path / "fca" / "context.csv").open(newline="") as file:
        heading, *rows = csv.reader(file)
    assert heading == ["", *(row["doc_id"] for row in documents)]
    assert [(row[0], [cell == "X" for cell in row[1:]]) for row in rows] == list(zip(objects, cells, strict=True))

    with (tmp_path / "fca" / "concepts.csv").open(newline="") as file:
        listed = list(csv.DictReader(file))
    clusters = run.sql("SELECT cluster_id, members, support FROM clusters").to_pylist()
    assert clusters
    sketches = dict(zip(heading[1:], held, strict=True))
    for cluster in clusters:
        parts = [(row["part"], row["id"]) for row in listed if row["cluster_id"] == cluster["cluster_id"]]
        extent = {id_ for part, id_ in parts if part == "extent"}
        intent = [id_ for part, id_ in parts if part == "intent"]
        assert intent == cluster["members"]
        assert extent == set.intersection(*(sketches[doc] for doc in intent))
        assert len(extent) == cluster["support"]
        assert [doc for doc, sketch in sketches.items() if sketch >= extent] == sorted(intent)
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
    assert read_cxt(tmp_path / "none" / "context.cxt") == ([], [], [])


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
