"""Commands that only read print and write the same in this process and on Spark."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.evaluating.evaluate import Options, describe, evaluate_run
from nddup.results.opening import Opened, open_here, open_on_spark
from nddup.results.preview import preview
from nddup.settings.load import build_config
from nddup.spark.session_files import Storage
from nddup.storage.local_storage import LocalStorage
from tests.finished_runs import write_texts

WORDS = [f"w{number}" for number in range(60)]

LISTS = {
    "pairs.csv": "# of others\nid_a,id_b,likeness\nn1é',n0é',0.9\nn0é',same,1\nn2é',alone,0.5\nsame,nobody,0.25\n\n"
    + "n1é',n2é',0.75\n" * 9
    + "odd\nalone,alone,1\nn0é',n1é',0.7\n",
    "groups.jsonl": '["n0é\'", "n1é\'", "same", "nobody"]\n["same", "<n3é\'>", "n1é\'"]\n["alone"]\n{"no": 1}\n',
    "returns.txt": "n0é' n1é'\rsame n2é'\r\nn3é' alone\n",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with near-equal texts, equal ones, one alone, and a reject."""
    folder = tmp_path_factory.mktemp("both")
    texts = {f"n{number}é'": " ".join([*WORDS[:number], "x", *WORDS[number:]]) for number in range(4)}
    texts |= {"same": texts["n0é'"], "alone": " ".join(word + "z" for word in WORDS)}
    with write_texts(folder / "pages.jsonl", texts).open("a") as file:
        file.write("{broken\n")
    for name, text in LISTS.items():
        (folder / name).write_bytes(text.encode())
    run_locally([str(folder / "pages.jsonl")], str(folder / "run"), build_config({}, origin="test"))
    return folder / "run"


def evaluated(opened: Opened, truth: Path, options: Options) -> dict[str, str]:
    """Return the printed text and every file that is written, by name."""
    run = Path(opened.folder.path)
    for name in ("unique_to_reference", "unique_to_run"):
        (run / "evaluation" / f"{name}.csv").unlink(missing_ok=True)
    evaluation = evaluate_run(opened, str(truth), options)
    files = [run / "evaluation.json", *sorted((run / "evaluation").glob("*.csv"))]
    return {"printed": describe(evaluation, "run")} | {file.name: file.read_text() for file in files}


@pytest.mark.parametrize(
    ("name", "listed"), [("groups.jsonl", 1000), pytest.param("pairs.csv", 0, marks=pytest.mark.nightly)]
)
def test_evaluate(spark: SparkSession, finished: Path, name: str, listed: int) -> None:
    """Text and files are byte for byte equal: scored pairs, groups listed or only counted, an id in brackets."""
    truth, options = finished.parent / name, Options(listed=listed, written=3)

    here = evaluated(open_here(str(finished)), truth, options)
    there = evaluated(open_on_spark(spark, str(finished)), truth, options)

    assert here == there
    told = json.loads(here["evaluation.json"])["list"]
    assert told["lines"] > 2
    assert told["unknown"] == ["nobody"]


def test_inspect(spark: SparkSession, finished: Path) -> None:
    """Both previews are equal for files of several formats, a skipped file and an unreadable one."""
    (finished.parent / "empty.xml").write_text("<a>")
    (finished.parent / ".hidden").touch()
    inputs, config = [str(finished.parent)], build_config({}, origin="test")

    assert preview(LocalStorage(), inputs, config) == preview(Storage(spark), inputs, config)
