"""DuckDB and Spark give the same answer to every question."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.engines.engine import PLACES, FinishedRun
from nddup.report import gather as gathering
from nddup.report.content import CLUSTERS, LISTED, list_cells, list_documents
from nddup.report.data import chunks
from nddup.report.gather import gather
from nddup.results import show
from nddup.settings.load import build_config
from nddup.spark.engine import SparkRun
from tests.opened.made_runs import write_family, write_run
from tests.samples_by_night import by_day_if_changed, first

WORDS = [f"w{number}" for number in range(60)]


def wanted_by(run: FinishedRun) -> dict[str, list[pa.Table]]:
    """Return the small tables that each question is asked with; each id is asked for by every second question."""
    names = list_documents(run.sql(gathering.largest_clusters(200)).cast(CLUSTERS))
    parts = names.select(["rank", "place", "doc_id"]).rename_columns(["part", "place", "doc_id"])
    numbers = gathering.number_documents(gathering.ask_documents(run, names))
    document = pc.index_in(names["doc_id"], value_set=numbers["doc_id"])
    cells = list_cells(pa.table([names["rank"], names["place"], document], LISTED), 24)
    cells = cells.append_column("cell", pa.array(range(len(cells)), pa.int32()))
    clusters, documents = (
        [pa.table({"id": pa.array([one], pa.string())}) for one in [*run.sql(text)["id"].to_pylist(), "nobody's"]]
        for text in ("SELECT cluster_id AS id FROM clusters", "SELECT doc_id AS id FROM documents")
    )
    return {
        gathering.NEAR: [cells],
        PLACES: [names.select(["doc_id"])],
        gathering.ASK_DOCUMENTS: [names.select(["doc_id"])],
        gathering.WITHIN: [parts],
        gathering.ASK_WEAKEST: [gathering.number_members(parts)[0]],
        gathering.ASK_MEMBERS: [pa.table({"cluster_id": clusters[0]["id"], "part": pa.array([0], pa.int32())})],
        show.ONE_CLUSTER: clusters,
        show.FIRST_MEMBERS: clusters,
        show.ONE_DOCUMENT: documents,
        show.NEAR_PAIRS: documents[::2],
        show.NEAREST: documents[1::2],
        show.STANDS_FOR: documents[1::2],
        show.OWN_CLUSTERS: documents[::2],
        show.LARGEST_OWN_CLUSTERS: documents[1::2],
        show.FIRST_REMOVED: documents[::2],
    }


FAMILY_NAMES = pa.table(
    {"name": ["a", "b", "c"], "doc_id": ["a", None, "c"], "documents": [3, 0, 2], "before": [1, 2, 1]}
)


def asked_of(module: object) -> list[str]:
    """Return the questions of a module."""
    return [text for name, text in vars(module).items() if name.isupper() and "SELECT" in str(text)]


def answer(run: FinishedRun, text: str, given: dict[str, pa.Table]) -> list[dict[str, Any]]:
    """Return the rows; sorted, unless the question sets an order."""
    rows: list[dict[str, Any]] = run.sql(text, **given).to_pylist()
    return rows if "ORDER BY" in text else sorted(rows, key=str)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with near-equal texts, equal ones, one alone, and a reject."""
    folder = tmp_path_factory.mktemp("same")
    texts = {f"n{number}é'": [*WORDS[:number], "x", *WORDS[number:]] for number in range(4)}
    texts |= {"same": texts["n0é'"], "alone": [word.upper() + "z" for word in WORDS]}
    lines = [json.dumps({"id": name, "text": " ".join(text)}) for name, text in texts.items()]
    (folder / "a.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n")
    run_locally([str(folder / "a.jsonl")], str(folder / "run"), build_config({}, origin="test"))
    return folder / "run"


@by_day_if_changed("nddup/report", "nddup/results", "nddup/engines", "nddup/spark")
@pytest.mark.parametrize("kind", first(1, ["family", "empty", "made"]))
def test_both_engines_give_the_same_answers(
    kind: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Both engines answer alike for a run, for one with nulls and odd ids, and for one without rows."""
    if kind == "made":
        folder = request.getfixturevalue("made")
    else:
        folder = {"family": write_family, "empty": write_run}[kind](tmp_path / "run")
    here, there = DuckRun(str(folder)), SparkRun(spark, str(folder))
    given = wanted_by(here)
    names = list_documents(here.sql(gathering.largest_clusters(200)).cast(CLUSTERS)).rename_columns(
        ["part", "place", "doc_id"]
    )
    others, numbered = gathering.number_members(names)
    numbers = gathering.number_documents(gathering.ask_documents(here, names))

    for text in [*asked_of(gathering), *asked_of(show), PLACES, gathering.largest_clusters(2)]:
        for table in given.get(text, [None]):
            tables = {} if table is None else {"wanted": table}
            tables |= {"names": FAMILY_NAMES} if "FROM names" in text else {}  # of a run with `output.names_from`
            tables |= {"others": others, "numbered": numbered} if text == gathering.ASK_WEAKEST else {}
            tables |= {"numbered": numbers} if text == gathering.NEAR else {}
            assert answer(here, text, tables) == answer(there, text, tables), text
    if kind != "made":  # report/test_gathered_documents.py compares the report of such a run
        assert list(chunks(gather(here))) == list(chunks(gather(there)))
    assert show.show_run(here, cluster=None, doc=None) == show.show_run(there, cluster=None, doc=None)


def test_views_of_the_caller_stay(spark: SparkSession, tmp_path: Path) -> None:
    """A run opened by Spark leaves the views of the caller's session unchanged."""
    spark.range(3).createOrReplaceTempView("documents")

    run = SparkRun(spark, str(write_family(tmp_path / "run")))

    assert run.sql("SELECT count(*) AS n FROM documents")["n"].to_pylist() == [4]
    assert spark.table("documents").count() == 3
    spark.catalog.dropTempView("documents")
