"""`nddup run --tables` saves the tables of a run in a catalog, with comments, or is refused before the run starts."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nddup.cli import main
from nddup.errors import ConfigError
from nddup.spark.steps.outputs import copy_table, require_place
from nddup.tables import RESULTS
from tests.finished_runs import rows_of, write_texts

WORDS = [f"word{number}" for number in range(60)]
TEXTS = {"a": " ".join(WORDS), "b": " ".join([*WORDS, "more"]), "far": " ".join(WORDS[::-1])}


def test_tables_are_saved_with_comments(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Saved tables have the rows of the folder and the declared meanings as comments; existing ones need --overwrite.

    INPUT is a table of the catalog, of which a copy stays: it may change meanwhile, and still the run can be checked.
    One table exists beforehand: a run with --overwrite replaces it and creates the others.
    """
    spark.sql(f"CREATE SCHEMA saved LOCATION '{tmp_path / 'warehouse'}'")
    spark.sql("CREATE TABLE saved.documents USING parquet AS SELECT 'of another run' AS doc_id")
    spark.read.json(str(write_texts(tmp_path / "a.jsonl", TEXTS))).write.saveAsTable("saved.pages")
    command = ["run", "--table", "saved.pages", "--output", str(tmp_path / "run"), "--tables", "saved"]
    command += ["--set", "output.texts=0", "--set", "output.report=false"]

    assert main(command) == 2
    assert "--tables saved: has a table documents already; --overwrite replaces it" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert main([*command, "--overwrite"]) == 0
    spark.sql("DROP TABLE saved.pages")
    assert main(["check", str(tmp_path / "run"), "--require-inputs"]) == 0
    assert main([*command, "--resume"]) == 0

    for name, table in RESULTS.items():
        if (tmp_path / "run" / name).is_dir():
            saved = spark.table(f"saved.{name}").collect()
            assert sorted(map(repr, saved)) == rows_of(tmp_path / "run", name)
            told = {column.name: column.description for column in spark.catalog.listColumns(f"saved.{name}")}
            assert told == {column.name: column.meaning for column in table.columns}
            assert spark.catalog.getTable(f"saved.{name}").description == table.meaning


def test_a_place_that_is_not_there_is_refused(spark: SparkSession) -> None:
    """A missing schema, a missing catalog and an invalid name are each refused in one line."""
    for place in ("nowhere", "no_catalog.nowhere", "a b"):
        with pytest.raises(ConfigError, match=rf"^--tables {place}: .+$"):
            require_place(spark, place, overwrite=True)


def test_a_table_that_is_not_there_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """It is named in one line, also where a copy is in the way."""
    for there, said in ((False, ".+"), (True, ".+ exists already; give another --output, or --overwrite")):
        (tmp_path / "run.table").mkdir() if there else None
        with pytest.raises(ConfigError, match=rf"^--table no.pages: {said}$"):
            copy_table(spark, "no.pages", str(tmp_path / "run"), overwrite=False, resume=False)


def test_the_embedded_engine_has_no_catalog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--tables` on the embedded engine is refused with exit status 2, and nothing is written."""
    pages = write_texts(tmp_path / "a.jsonl", TEXTS)

    for option in (["--tables", "saved"], ["--table", "saved.pages", "--engine", "local"]):
        assert main(["run", str(pages), "--output", str(tmp_path / "run"), *option]) == 2
        assert f"{option[0]} {option[1]}: only Spark knows catalogs" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
