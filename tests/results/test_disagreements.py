"""`nddup show --disagree`: the families whose documents have two values, against the records."""

import csv
import io
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.report.for_review import DISAGREEMENT_COLUMNS, ask_disagreements, disagreement_lines, show_disagreements
from nddup.results.opening import open_here, open_on_spark
from nddup.settings.load import build_config
from tests.run.valued_texts import Row, rows_of, write_texts


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Row]]:
    """Make a run that stores two columns, and return its folder and its records."""
    folder = tmp_path_factory.mktemp("differing")
    records = write_texts(folder / "in", 6)
    settings = {"keep": {"ledger": ["lang", "nddup_source"], "policy": ["licence"]}, "output": {"report": False}}
    run_locally([str(folder / "in")], str(folder / "run"), build_config(settings, origin="test"))
    return folder / "run", records


def define(run: Path, records: dict[str, Row], column: str) -> dict[str, list[str]]:
    """Return the documents of each family with two values."""
    families = defaultdict[str, list[str]](list)
    for row in rows_of(run, "keep"):
        families[row["doc_id"] if row["kept"] else row["duplicate_of"]].append(row["doc_id"])
    return {kept: sorted(family) for kept, family in families.items()
            if len({records[name].get(column) for name in family}) > 1}  # fmt: skip


@pytest.mark.parametrize(("column", "field"), [("lang", "lang"), ("nddup_source", "file"), ("licence", "licence")])
def test_families_that_differ_are_those_with_two_values(
    made: tuple[Path, dict[str, Row]], column: str, field: str
) -> None:
    """Of a column of the ledger, of the policy, and of the file; a missing value is one."""
    run, records = made
    due = define(run, records, field)
    found = defaultdict[str, list[str]](list)
    for row in csv.DictReader(io.StringIO("".join(disagreement_lines(DuckRun(str(run)), column)))):
        found[row["family"]].append(row["doc_id"])
        assert int(row["documents"]) == len(due[row["family"]])
        value = records[row["doc_id"]].get(field) or ""
        assert row["value"] in ({f"{value}.jsonl"} if field == "file" else {value, f"'{value}"})
    assert due
    assert {kept: sorted(family) for kept, family in found.items()} == due

    together = sum(map(len, due.values()))
    assert show_disagreements(DuckRun(str(run)), column).startswith(f"{len(due)} of ")
    assert f"differ in {column}, with {together} documents together" in show_disagreements(DuckRun(str(run)), column)


def test_the_report_shows_columns_of_the_ledger(made: tuple[Path, dict[str, Row]]) -> None:
    """Each with its families, the largest first, and their values with counts that add up."""
    run, records = made
    lang, source = ask_disagreements(DuckRun(str(run))) or []
    due = define(run, records, "lang")
    assert (lang["column"], lang["families"], source["column"]) == ("lang", len(due), "nddup_source")
    assert [one["family"] for one in lang["largest"]] == sorted(due, key=lambda kept: (-len(due[kept]), kept))[:10]
    for one in lang["largest"]:
        assert sum(value["documents"] for value in one["values"]) == one["documents"] == len(due[one["family"]])


def test_a_column_that_is_not_stored(made: tuple[Path, dict[str, Row]], capsys: pytest.CaptureFixture[str]) -> None:
    """One line says where to name it, with exit status 1."""
    assert main(["show", str(made[0]), "--disagree", "author"]) == 1
    told = capsys.readouterr()
    assert "does not store this column; it stores licence, lang; name it in keep.ledger and run again" in told.err
    assert main(["show", str(made[0]), "--disagree", "lang", "--csv"]) == 0
    assert capsys.readouterr().out.startswith(",".join(DISAGREEMENT_COLUMNS))


@pytest.mark.spark
def test_spark_says_the_same(spark: SparkSession, made: tuple[Path, dict[str, Row]]) -> None:
    """The text and the CSV are byte for byte those of this process."""
    here, there = open_here(str(made[0])).run, open_on_spark(spark, str(made[0])).run
    assert show_disagreements(here, "lang") == show_disagreements(there, "lang")
    assert list(disagreement_lines(here, "lang")) == list(disagreement_lines(there, "lang"))
