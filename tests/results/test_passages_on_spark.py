"""`nddup passages` on Spark writes the tables of the embedded engine, however the work is divided."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.errors import ConfigError, OutputError
from nddup.ground.progress import Steps
from nddup.passages import passages_output
from nddup.passages.passages_output import summarise
from nddup.settings.load import load_config
from nddup.spark import inputs_given
from nddup.spark.inputs_given import find_on_spark
from nddup.spark.session import set_to
from tests.samples_by_night import by_day_if_changed
from tests.spark_holdings import checkpoints, files_of, left_by, shuffles_left

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("passages", "occurrences", "cuts", "repeating", "rejects")
FEW = ("passages.min_tokens=6", "output.kept=jsonl", "passages.min_left=3", "output.report=false")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 70 texts of short sentences, some without ids or with one of another, a page, and a broken record.

    One begins with a digit of another width. And two texts that end without a line end, of which one is a copy.
    """
    chance = Random(3)  # noqa: S311 - texts
    folder = tmp_path_factory.mktemp("texts")
    rows: list[dict[str, object]] = [{"id": "three.jsonl#2", "text": "1 2 0 1 2 0 1 1"}, {"text": "a " * 200}]
    rows.append({"id": "wide", "text": "\uff11 2 0 1 2 0 1 1"})
    for _ in range(70):
        text = " ".join(f"{chance.randrange(3)}{chance.choice(['', '', '.'])}" for _ in range(chance.randrange(60)))
        known: dict[str, object] = {"id": f"d{chance.randrange(65)}"} if chance.random() < 0.8 else {}
        rows.append(known | {"text": text})
    rows.append({"id": "ä", "text": "é " * 120})
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / "three.jsonl").write_text("\n".join([*lines[:60], "{broken", *lines[60:]]) + "\n", "utf-8")
    (folder / "page.html").write_text("<html><body><p>1 2 0 1 2 0 1 1</p></body></html>")
    (folder / "copy.txt").write_text("1 2 0 1 2 0 1 1")
    (folder / "more.txt").write_bytes("more and more é 1 2 0 1 2 0 1 1, in the end".encode("utf-16"))
    return folder


def read(folder: Path) -> dict[str, Any]:
    """Return the rows of all tables and the lines of texts, sorted, and the bytes of all files beside them."""
    found: dict[str, Any] = {name: sorted(map(repr, pq.read_table(folder / name).to_pylist())) for name in TABLES}
    parts = folder.glob("*/part-*.jsonl")
    found["lines"] = sorted(line for part in parts for line in part.read_text("utf-8").splitlines())
    others = [path for name in ("kept", "tagged", "report") for path in folder.glob(f"{name}/**/*") if path.is_file()]
    return found | {str(path.relative_to(folder)): path.read_bytes() for path in others}


def find(spark: "SparkSession", inputs: Sequence[Path], output: Path, *settings: str) -> dict[str, Any]:
    with Steps("passages", 6, is_quiet=True) as steps:
        find_on_spark(spark, list(map(str, inputs)), load_config(None, list(settings)), str(output), steps)
    return read(output)


def find_here(inputs: Sequence[Path], output: Path, *settings: str) -> dict[str, Any]:
    given = [word for setting in settings for word in ("--set", setting)]
    assert main(["passages", *map(str, inputs), "--output", str(output), "--engine", "local", *given]) == 0
    return read(output)


@by_day_if_changed("nddup/passages", "nddup/spark/passages.py", "nddup/spark/inputs_given.py", "nddup/scanning")
def test_tables_and_summary_are_those_of_the_embedded_engine(
    spark: "SparkSession",
    texts: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every table, file of kept lines and line of the summary is the same, but for the shuffle, by adaptive plans too.

    A file holds the kept lines of so many consecutive records.
    """
    for module in (passages_output, inputs_given):
        monkeypatch.setattr(module, "FILE_RECORDS", 20)
    held, (_, _, views) = checkpoints(spark), left_by(spark, set())
    shuffles = files_of(spark, "shuffle")
    config = load_config(None, [*FEW, "spark.sql.shuffle.partitions=3"])
    here = find_here([texts], tmp_path / "here", *FEW)
    said = capsys.readouterr().out.splitlines()[:-1]
    adaptive = set_to(spark, {"spark.sql.adaptive.enabled": "true"})
    with adaptive, Steps("passages", 6, is_quiet=True) as steps:
        told, _ = find_on_spark(spark, [str(texts)], config, str(tmp_path / "there"), steps)

    assert left_by(spark, held) == (0, [], views)
    assert shuffles_left(spark, shuffles) == set()
    assert read(tmp_path / "there") == here
    assert len(here["passages"]) > 100
    assert sorted(name for name in here if name.startswith("kept/")) == [f"kept/part-0000{at}.jsonl" for at in range(4)]
    assert any("three.jsonl#2+" in row for row in here["lines"])
    lines = list(summarise(told, config))
    shuffled = next(line for line in lines if line.startswith("shuffled: "))
    header: dict[str, Any] = json.loads((tmp_path / "there/_PASSAGES.json").read_text())
    assert [line for line in lines if line != shuffled] == said
    assert header["found"] == json.loads((tmp_path / "here/_PASSAGES.json").read_text())["found"]
    assert told.emptied
    assert shuffled.startswith(f"shuffled: {header['shuffled_bytes']:,} bytes, ")


def test_two_tasks_within_documents_and_preferred_sources(spark: "SparkSession", texts: Path, tmp_path: Path) -> None:
    """Repeats within a document, preferred files, ignored widths, whole sentences: the same in two tasks, and proved.

    The files without what is cut have the same bytes, those of which nothing is left are missing, and the page is one.
    """
    output = ("output.kept=as-input", "output.report=true", "input.limit=72")
    passages = ("passages.within=true", "passages.whole_sentences=true")
    given = (*FEW, *output, *passages, "keep.prefer=[page*]", "tokens.ignore=[width]")
    there = find(spark, [texts], tmp_path / "there", *given, "spark.sql.shuffle.partitions=2")
    assert there == find_here([texts], tmp_path / "here", *given)
    assert any("doc_id': 'wide'" in row and "'char': 0" in row for row in there["occurrences"])
    assert {"kept/three.jsonl", "kept/more.txt", "report/index.html"} < there.keys()
    assert "kept/copy.txt" not in there
    assert main(["check", str(tmp_path / "there")]) == 0


def test_records_in_another_order(tmp_path: Path) -> None:
    """Records with ids of their own have the same passages, places and cuts in any order."""
    chance = Random(5)  # noqa: S311 - texts
    rows = [{"id": f"d{number}", "text": " ".join(str(chance.randrange(3)) for _ in range(30))} for number in range(60)]
    path, found = tmp_path / "in.jsonl", []
    for name in ("once", "again"):
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        found.append(find_here([path], tmp_path / name, *FEW))
        chance.shuffle(rows)
    for name in ("passages", "occurrences", "cuts", "lines"):
        assert found[0][name] == found[1][name]


@pytest.mark.nightly  # by day the embedded engine reads them (`test_passages`)
def test_the_kept_documents_of_a_run_are_read(spark: "SparkSession", tmp_path: Path) -> None:
    """Of a run only kept documents count, under the names that the run gave, and get tags."""
    text = " ".join(f"w{number}" for number in range(60))
    texts = {"a": text, "b": text, "c": " ".join(f"z{number}" for number in range(200)) + " " + text}
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f"{json.dumps({'id': name, 'text': text})}\n" for name, text in texts.items()))
    assert main(["run", str(path), "--output", str(tmp_path / "run"), "--engine", "local"]) == 0

    there = find(spark, [tmp_path / "run"], tmp_path / "there", "output.tagged=as-input")
    assert there == find_here([tmp_path / "run"], tmp_path / "here", "output.tagged=as-input")
    assert there["tagged/in.jsonl"].count(b'"nddup_passages": [{') == len(there["occurrences"])
    assert len(there["occurrences"]) == 2


def test_what_it_cannot_do_is_refused(spark: "SparkSession", texts: Path, tmp_path: Path) -> None:
    """An output that exists, columns in the policy, and inputs without a record are told.

    Nothing is written, and nothing stays on the executors.
    """
    held, (_, _, views) = checkpoints(spark), left_by(spark, set())
    (tmp_path / "old").mkdir()
    (tmp_path / "empty.jsonl").write_text('{"text": null}\n')
    with pytest.raises(OutputError, match="exists already"):
        find(spark, [texts], tmp_path / "old")
    with pytest.raises(ConfigError, match=r"keep\.policy: "):
        find(spark, [texts], tmp_path / "new", "keep.policy=[id]")
    brief = ("--engine", "local", "--set", "output.report=false", "--set", "keep.policy=[-length]")
    assert main(["run", str(texts), "--output", str(tmp_path / "run"), *brief]) == 0
    with pytest.raises(ConfigError, match=r"keep\.policy: "):
        find(spark, [tmp_path / "run"], tmp_path / "new")
    with pytest.raises(ConfigError, match=r"no document can be read: empty\.jsonl: no content"):
        find(spark, [tmp_path / "empty.jsonl"], tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert left_by(spark, held) == (0, [], views)
