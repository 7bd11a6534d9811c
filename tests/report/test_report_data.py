"""The data of a report: scripts that cannot be broken out of, and rows against what the tables say."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from nddup.cli import main
from nddup.metrics import RunMetrics
from nddup.report import data
from nddup.report.data import chunks
from nddup.report.folder import report_run
from nddup.report.gather import MOST_CELLS, MOST_LISTED, _share_out, gather
from nddup.report.shown import LENGTHS, list_cells, list_documents
from nddup.report.write import script_of
from nddup.run.job import run_job
from nddup.settings.load import build_config
from nddup.storage.spark_folder import SparkFolder
from tests.report.made_reports import make_shown, many_clusters

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
values = st.recursive(st.none() | st.booleans() | st.integers() | any_text, lambda inner: st.lists(inner, max_size=4))


def value_of(script: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value that a chunk's script hands over."""
    assert script.startswith('nddup.put("a-1",')
    assert script.endswith(");\n")
    return json.loads(script.removeprefix('nddup.put("a-1",').removesuffix(");\n"))


@given(value=values)
def test_a_script_holds_its_value_and_nothing_else(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """The value comes back; no character of it ends a script, a line or the encoding."""
    script = script_of("a-1", value)

    assert value_of(script) == value
    assert not set(script[:-1]) & set("<>&\n\r\u2028\u2029\ufeff\x00")
    assert script.encode()


@given(
    sizes=st.dictionaries(st.integers(2, 200_000), st.integers(1, 200_000), max_size=8).map(lambda d: sorted(d.items()))
)
def test_what_is_shown_of_a_cluster_fits_the_bounds(sizes: list[tuple[int, int]]) -> None:
    """Documents listed and pairs in matrices stay in their bounds, counted cluster by cluster from the largest."""
    listed_each, matrix_each = _share_out(sizes)

    left, listed, cells = 100_000, 0, 0
    for size, count in reversed(sizes):
        taken = min(left, count)
        left -= taken
        held = min(size, matrix_each)
        listed += taken * min(size, listed_each)
        cells += taken * held * (held - 1) // 2
    assert 2 <= matrix_each <= listed_each <= 200
    assert listed <= MOST_LISTED or listed_each == 2
    assert cells <= MOST_CELLS or matrix_each == 2


@given(sizes=st.lists(st.integers(2, 6), max_size=5).map(lambda found: sorted(found, reverse=True)))
def test_documents_and_pairs_of_clusters_are_listed_once(sizes: list[int]) -> None:
    """The representative first, then by id; every pair of the first four, its ends in the order of their bytes."""
    clusters = [
        [(f"{number}-{member}é"[::-1], None, "") for member in range(size)] for number, size in enumerate(sizes)
    ]
    shown = make_shown(clusters)

    names = list_documents(shown.clusters)
    cells = list_cells(names, 4).to_pylist()

    listed = [
        (rank, place, doc)
        for rank, cluster in enumerate(clusters)
        for place, doc in enumerate([cluster[0][0], *sorted(one[0] for one in cluster[1:])])
    ]
    assert [tuple(row.values()) for row in names.to_pylist()] == listed
    docs = {(rank, place): doc for rank, place, doc in listed}
    expected = [
        (rank, i, j, *sorted((docs[rank, i], docs[rank, j]), key=str.encode))
        for rank, size in enumerate(sizes)
        for i, j in combinations(range(min(size, 4)), 2)
    ]
    assert [tuple(row.values()) for row in cells] == expected


WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture(scope="module")
def finished(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Inputs and a run: a family of near-equal texts, equal ones, ones alone, a reject."""
    folder = tmp_path_factory.mktemp("report")
    texts = {f"n{number}": [*WORDS[:number], "x", *WORDS[number:]] for number in range(4)}
    texts |= {"same": texts["n0"], "alone": [word.upper() + "z" for word in WORDS]}
    lines = [
        json.dumps({"id": name, "url": f"http://x.org/{name}", "text": " ".join(text)}) for name, text in texts.items()
    ]
    (folder / "a.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n")
    run_job(
        spark, [str(folder / "a.jsonl")], str(folder / "run"), build_config({"output": {"texts": 3}}, origin="test")
    )
    return folder / "a.jsonl", folder / "run"


def test_what_is_shown_is_what_the_tables_say(spark: SparkSession, finished: tuple[Path, Path]) -> None:
    """Clusters, documents, fates, pairs and histograms against the tables, row by row."""
    folder = SparkFolder(spark, str(finished[1]))
    tables = {name: folder.table(name).collect() for name in ("clusters", "documents", "pairs", "keep", "members")}

    shown = gather(spark, folder, RunMetrics.read(folder.open()))

    by_size = sorted(tables["clusters"], key=lambda row: (-row["size"], row["cluster_id"]))
    assert shown.clusters["cluster_id"].to_pylist() == [row["cluster_id"] for row in by_size]
    assert {(row["rank"], row["doc_id"]) for row in shown.listed.to_pylist()} == {
        (rank, doc) for rank, row in enumerate(by_size) for doc in row["members"]
    }
    fates = {row["doc_id"]: (row["kept"], row["duplicate_of"], row["reason"]) for row in tables["keep"]}
    places = {row["doc_id"]: (row["url"], row["record"], row["n_tokens"]) for row in tables["documents"]}
    for row in shown.listed.to_pylist():
        assert (row["kept"], row["duplicate_of"], row["reason"]) == fates[row["doc_id"]]
        assert (row["url"], row["record"], row["n_tokens"]) == places[row["doc_id"]]
    named = {(row["rank"], row["place"]): row["doc_id"] for row in shown.listed.to_pylist()}
    near = {(row["doc_a"], row["doc_b"]): (row["overlap"], row["resemblance"]) for row in tables["pairs"]}
    cells = {
        (row["rank"], *sorted((named[row["rank"], row["first"]], named[row["rank"], row["second"]]))): (
            row["overlap"],
            row["resemblance"],
        )
        for row in shown.cells.to_pylist()
    }
    assert cells == {
        (rank, *pair): near[pair]
        for rank, row in enumerate(by_size)
        for pair in combinations(sorted(row["members"]), 2)
    }
    assert len(cells) > 5
    lengths = [row["n_tokens"] for row in tables["documents"]]
    assert dict(shown.lengths) == {
        low: sum(low <= n < high for n in lengths) for low, high in zip(LENGTHS, [*LENGTHS[1:], 1 << 40], strict=True)
    }
    assert sum(count for _, count in shown.resemblances) == len(tables["pairs"])
    assert [row["reason"] for row in shown.rejects] == ["malformed"]


def test_a_report_needs_the_inputs_only_for_texts_that_were_not_stored(
    spark: SparkSession, finished: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Asked for, texts are read again; after the inputs changed that fails in one line, and the plain report works."""
    inputs, run = finished
    folder = SparkFolder(spark, str(run))
    shown = gather(spark, folder, RunMetrics.read(folder.open()))
    cluster = shown.clusters["cluster_id"].to_pylist()[0]
    assert len(shown.texts) <= 3

    assert main(["report", str(run), "--cluster", cluster]) == 0
    summary = (run / "report" / "data" / "summary.js").read_text()
    assert '"texts":{"documents":5,' in summary
    inputs.write_text("{}\n")
    assert main(["report", str(run), "--cluster", cluster]) == 1
    assert "a.jsonl; run the job again" in capsys.readouterr().err
    assert main(["report", str(run), "--cluster", "0" * 16]) == 2
    assert "no such cluster" in capsys.readouterr().err
    inputs.unlink()
    assert report_run(spark, str(run)) == f"{run}/report/index.html"
    made = dict(chunks(gather(spark, folder, RunMetrics.read(folder.open()))))
    names = {path.stem for path in (run / "report" / "data").iterdir() if path.suffix == ".js"}
    assert names == made.keys()


@pytest.mark.parametrize("characters", [1, 500, 10**9])
def test_what_is_searched_is_every_id_and_address(characters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of names follow each other without a gap, whatever their size."""
    monkeypatch.setattr(data, "NAMES_CHARACTERS", characters)
    clusters = many_clusters(30)

    made = dict(chunks(make_shown(clusters)))

    named = [made[f"names-{number}"] for number in range(made["summary"]["clusters"]["name_chunks"])]
    assert len(named) == {1: 30, 10**9: 1}.get(characters, len(named))
    lines: list[str] = []
    for first, of_clusters in named:
        assert first == len(lines)
        lines += of_clusters
    assert lines == ["\n".join(f"{doc_id}\n{url}" for doc_id, url, _ in cluster) for cluster in clusters]
