"""Both engines write the same folder, and each finishes a run that the other began."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nddup.checking.check_run import check_run
from nddup.embedded.run import LocalJob, run_locally
from nddup.engines.choose import choose_engine
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError, NeedsSparkError
from nddup.ground.metrics import ENGINES_OWN
from nddup.ground.shown import FIRST, LAST
from nddup.settings.load import build_config
from nddup.spark.run import run_job
from nddup.tables import RESULTS
from tests.embedded.edited_texts import make_texts, write_lines
from tests.finished_runs import sorted_tables, stopped_before

FRAME = {*FIRST.splitlines(), LAST}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Edited, damaged and repeated records."""
    return write_lines(tmp_path_factory.mktemp("engines") / "pages.jsonl", make_texts())


def counted(value: Any) -> Any:  # noqa: ANN401 - of JSON
    """Return the metrics without `ENGINES_OWN`."""
    if isinstance(value, dict):
        return {key: counted(item) for key, item in value.items() if key not in ENGINES_OWN}
    return value


def lines(folder: Path) -> list[str]:
    """Return the sorted lines of the text files in a folder, without the lines that frame each XML file."""
    found = (line for part in folder.glob("part-*") for line in part.read_text(encoding="utf-8").splitlines())
    return sorted(line for line in found if line not in FRAME)


def test_the_folders_are_equal(spark: SparkSession, tmp_path: Path, pages: Path) -> None:
    """Tables, lists, counts, kept documents as JSON lines and then as XML, and the files of the report are the same."""
    for form in ("jsonl", "xml"):
        config = build_config({"output": {"kept": form, "context": True}}, origin="test")

        local = run_locally([str(pages)], str(tmp_path / "local"), config, resume=form == "xml")
        there = run_job(spark, [str(pages)], str(tmp_path / "spark"), config, resume=form == "xml")

        assert counted(local) == counted(there)
        assert lines(tmp_path / "local" / "kept") == lines(tmp_path / "spark" / "kept")
        assert any("<" in line for line in lines(tmp_path / "local" / "kept")) == (form == "xml")
    assert sorted_tables(tmp_path / "local") == sorted_tables(tmp_path / "spark")
    for name in ("duplicates.txt", "context.fimi"):
        assert (tmp_path / "local" / name).read_bytes() == (tmp_path / "spark" / name).read_bytes()
    reports = [
        {path.relative_to(tmp_path / name) for path in (tmp_path / name / "report").rglob("*") if path.suffix != ".crc"}
        for name in ("local", "spark")
    ]
    assert reports[0] == reports[1]
    assert check_run(DuckRun(str(tmp_path / "local"))).is_sound


@pytest.mark.parametrize("stopped", ["pairs", "keep", "texts"])
def test_spark_finishes_what_the_embedded_engine_began(
    spark: SparkSession, tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    """Spark reuses the documents and rejects of a run that the embedded engine began, and makes the missing tables."""
    outputs = {"report": False, **({} if stopped == "texts" else {"texts": 0})}
    config, output = build_config({"output": outputs}, origin="test"), str(tmp_path / "run")
    whole = run_locally([str(pages)], str(tmp_path / "whole"), config)
    real = LocalJob.save

    def save(job: LocalJob, name: str, table: Any, **noted: Any) -> Any:  # noqa: ANN401
        if name == stopped:
            raise KeyboardInterrupt
        return real(job, name, table, **noted)

    with monkeypatch.context() as patched:
        patched.setattr(LocalJob, "save", save)
        with pytest.raises(KeyboardInterrupt):
            run_locally([str(pages)], output, config)
    made = run_job(spark, [str(pages)], output, config, resume=True)

    assert counted(made) == counted(whole)
    assert {"documents", "rejects"} <= set(made["stages"]["sketch"]["resumed"])
    assert sorted_tables(tmp_path / "run") == sorted_tables(tmp_path / "whole")


def test_the_embedded_engine_finishes_what_spark_began(spark: SparkSession, tmp_path: Path, pages: Path) -> None:
    """The embedded engine reuses the documents of a run stopped on Spark, and Spark reuses a finished run whole."""
    config, output = build_config({}, origin="test"), str(tmp_path / "run")
    with stopped_before("pairs"), pytest.raises(KeyboardInterrupt):
        run_job(spark, [str(pages)], output, config)
    made = run_locally([str(pages)], output, config, resume=True)
    before = (tmp_path / "run" / "metrics.json").read_bytes()
    again = run_job(spark, [str(pages)], output, config, resume=True)

    assert made["stages"]["sketch"]["resumed"] == ["documents", "rejects"]
    assert json.loads(before) == again
    assert set(made["rows"]) == set(RESULTS)


def test_too_little_memory_leaves_the_documents(tmp_path: Path, pages: Path) -> None:
    """With too little memory the run stops before the pairs, keeps the documents and says how to go on."""
    config = build_config({"local": {"memory": "1MB"}}, origin="test")

    with pytest.raises(NeedsSparkError, match=r"may need .* go on with --engine spark --resume"):
        run_locally([str(pages)], str(tmp_path / "run"), config)

    assert (tmp_path / "run" / "_stages" / "documents.json").exists()
    assert not (tmp_path / "run" / "_COMPLETE").exists()


def test_the_engine_is_the_embedded_one_where_it_can_do_the_work(pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Local files go to the embedded engine; remote paths, Spark's own settings or too many bytes go to Spark."""
    for name in ("SPARK_ENV_LOADED", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)

    def chosen(*inputs: str, output: str = "out", master: str | None = None, **settings: Any) -> str:  # noqa: ANN401
        config = build_config(settings, origin="test")
        return choose_engine(inputs or [str(pages)], output, config, master=master).engine

    assert chosen() == chosen(pages.as_uri()) == chosen(engine="local") == "local"
    assert chosen(engine="spark") == chosen(master="local[2]") == chosen("s3a://bucket/pages") == "spark"
    assert chosen(spark={"spark.driver.memory": "2g"}) == chosen(clusters={"miner": "fpgrowth"}) == "spark"
    assert chosen(output="hdfs:///out") == chosen(local={"memory": "100MB"}) == "spark"
    with pytest.raises(ConfigError, match=r"engine: local, but --master is given"):
        chosen(engine="local", master="yarn")
    large = pages.parent / "large.jsonl"
    with large.open("wb") as file:
        file.truncate(28 << 30)  # of which the ids would be mapped
    sizes = {memory: chosen(str(large), local={"memory": memory}) for memory in ("12GB", "16GB")}
    assert sizes == {"12GB": "spark", "16GB": "local"}
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert chosen() == "spark"
