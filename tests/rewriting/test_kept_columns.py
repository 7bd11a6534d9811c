"""Kept records bear what they stand for: the columns of `output.columns` and `output.weights`, whatever their form."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import nddup
from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError, NddupError
from nddup.settings.load import build_config
from nddup.spark.run import run_job
from tests.results.kind_runs import texts

ASKED = ["copies", "equal", "lost_most", "least_alike=resemblance_least", "sources=meta.from", "first=day:least",
         "day:greatest", "meta.from:distinct", "nddup_source"]  # fmt: skip
NAMES = ["copies", "equal", "lost_most", "least_alike", "sources", "first", "day_greatest", "meta_from_distinct",
         "source", "weight"]  # fmt: skip


def settings(form: str, **output: object) -> dict[str, Any]:
    """Return settings under which families are counted, and kept documents written in a form."""
    given = {"kept": form, "columns": ASKED, "weights": "log2", "report": False, **output}
    return {"shingle": {"length": 2}, "pairs": {"threshold": 0.5}, "output": given,
            "keep": {"ledger": ["meta.from", "day", "nddup_source"]}}  # fmt: skip


def write(folder: Path) -> dict[str, dict[str, Any]]:
    """Write two files with equal texts, near ones and missing values; return the records by id."""
    told = list(texts().values())[:30]
    told += told[:6] + [f"{text} more" for text in told[:9]]
    records = {
        f"d{at}": {"id": f"d{at}", "text": text, "day": f"2024-01-{at % 9 + 10}", "meta": {"from": "abc"[at % 3]}}
        for at, text in enumerate(told)
    }
    for record in list(records.values())[::5]:
        del record["meta"]
    folder.mkdir(exist_ok=True)
    for at, name in enumerate(("one.jsonl", "two.jsonl")):
        (folder / name).write_text("".join(json.dumps(one) + "\n" for one in list(records.values())[at::2]))
    return records


def counted(records: dict[str, dict[str, Any]], out: Path) -> dict[str, list[Any]]:
    """Return what each kept document must bear, from the keep-list and the records alone."""
    rows = {row["doc_id"]: row for row in pq.read_table(out / "keep").to_pylist()}
    place = {name: ("one.jsonl", "two.jsonl")[at % 2] for at, name in enumerate(records)}
    found: dict[str, list[Any]] = {}
    for name in (name for name, row in rows.items() if row["kept"]):
        members = [one for one, row in rows.items() if name in (one, row["duplicate_of"])]
        gone = [rows[one] for one in members if one != name]
        days = sorted(records[one]["day"] for one in members)

        files = sorted(listed(map(place.__getitem__, members)), key=str)
        sources = listed(records[one].get("meta", {}).get("from") for one in members)
        found[name] = [
            len(members), sum(records[one]["text"] == records[name]["text"] for one in members),
            max((row["lost"] for row in gone), default=None), min((row["resemblance"] for row in gone), default=None),
            sorted(sources, key=str), days[0], days[-1], len(sources), files,
            len(members).bit_length(),
        ]  # fmt: skip
    return found


def listed(values: Iterable[str | None]) -> list[dict[str, Any]]:
    """Return the values with their counts."""
    return [{"value": value, "documents": count} for value, count in Counter(values).items()]


def borne(rows: list[dict[str, Any]], name: str) -> dict[str, list[Any]]:
    """Return what records bear, lists in any order."""
    values = ([row[f"nddup_{name}"] for name in NAMES] for row in rows)
    return {
        row[name]: [sorted(one, key=str) if isinstance(one, list) else one for one in value]
        for row, value in zip(rows, values, strict=True)
    }


def lines(folder: Path) -> list[str]:
    """Return the lines of all files in a folder."""
    return [
        line for file in sorted(folder.iterdir()) if file.suffix != ".crc" for line in file.read_text().splitlines()
    ]


def test_every_form_of_kept_bears_the_same_columns(tmp_path: Path) -> None:
    """They are what the keep-list and the records say: as they came, as lines, in Parquet, and as attributes."""
    records = write(tmp_path / "in")
    for form in ("as-input", "jsonl", "parquet", "xml"):
        run_locally([str(tmp_path / "in")], str(tmp_path / form), build_config(settings(form), origin="test"))
    due = counted(records, tmp_path / "jsonl")
    assert len(due) < len(records) - 9
    assert max(len(values[4]) for values in due.values()) > 1

    for form in ("as-input", "jsonl"):
        kept = list(map(json.loads, lines(tmp_path / form / "kept")))
        assert borne(kept, "id") == due
        assert all(records[row["id"]].items() <= row.items() for row in kept)
    assert borne(pq.read_table(tmp_path / "parquet" / "kept").to_pylist(), "doc_id") == due
    attributes = {
        re.findall("<docID>(.*)</docID>", line)[0]: dict(re.findall(r"nddup:(\w+)=[\"'](.*?)[\"'](?=[ >])", line))
        for line in lines(tmp_path / "xml" / "kept") if "<document " in line
    }  # fmt: skip
    spelled = {
        name: {name: value if isinstance(value, str) else json.dumps(value)
               for name, value in zip(NAMES, values, strict=True) if value is not None and not isinstance(value, list)}
        for name, values in due.items()
    }  # fmt: skip
    assert {name: {at: one for at, one in row.items() if at not in ("sources", "source")}
            for name, row in attributes.items()} == spelled  # fmt: skip
    assert {name: sorted(json.loads(row["sources"]), key=str) for name, row in attributes.items()} == {
        name: values[4] for name, values in due.items()
    }


def test_other_columns_are_written_when_a_run_is_resumed(tmp_path: Path) -> None:
    """Kept documents written with other columns or weights are written again."""
    write(tmp_path / "in")
    asked: list[dict[str, Any]] = [{"columns": ["copies"], "weights": None}, {"columns": ["equal"], "weights": "log2"}]
    for output in asked:
        for form in ("jsonl", "as-input"):
            config = build_config(settings(form, **output), origin="test")
            run_locally([str(tmp_path / "in")], str(tmp_path / form), config, resume=True)
            added = [f"nddup_{output['columns'][0]}", *(["nddup_weight"] if output["weights"] else [])]
            written = lines(tmp_path / form / "kept")
            assert {tuple(json.loads(line))[-len(added) :] for line in written} == {tuple(added)}
            assert all(line.count("nddup_") == len(added) for line in written)


def test_a_run_with_a_table_of_weights_is_finished_and_opened_again(tmp_path: Path) -> None:
    """Its metrics store the table as JSON, with strings as keys; they are numbers again."""
    write(tmp_path / "in")
    config = build_config(settings("jsonl", weights={1: 1, 2: 7, 100: 9}), origin="test")
    for resume in (False, True):
        run_locally([str(tmp_path / "in")], str(tmp_path / "run"), config, resume=resume)
    with nddup.open(tmp_path / "run") as run:
        assert run.settings.output.weights == {1: 1, 2: 7, 100: 9}
    assert check_run(DuckRun(str(tmp_path / "run"))).is_sound


@pytest.mark.parametrize(
    ("output", "ledger", "says"),
    [
        ({"columns": ["equal"]}, None, "output.columns: keep.ledger counts these"),
        ({"columns": ["copies", "lang"]}, ["day"], "'lang' is not counted: expected one of copies, equal"),
        ({"columns": ["day:most"]}, ["day"], "'day:most' is not counted"),
        ({"columns": ["day", "day=day:least"]}, ["day"], "'day=day:least': nddup_day is there already"),
        ({"columns": ["weight=copies"]}, ["day"], "nddup_weight is there already"),
        ({"columns": ["copies"], "kept": "none"}, None, "output.columns: stands in records that are written"),
    ],
)
def test_columns_that_mean_nothing_are_refused(output: dict[str, Any], ledger: list[str] | None, says: str) -> None:
    """In one line, before anything is read."""
    with pytest.raises(ConfigError, match=re.escape(says)):
        build_config({"output": {"kept": "jsonl", **output}, "keep": {"ledger": ledger}}, origin="test")


def test_a_record_that_bears_a_column_already_is_named(tmp_path: Path) -> None:
    """Nothing is written twice under one key."""
    line = {"id": "a", "text": "some words that are in no other", "nddup_equal": 3}
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n")
    given = settings("jsonl", columns=["copies", "equal"], weights=None) | {"keep": {"ledger": ["nddup_source"]}}
    with pytest.raises(NddupError, match=r"a\.jsonl: record 1: a record has nddup tags already"):
        run_locally([str(tmp_path / "a.jsonl")], str(tmp_path / "out"), build_config(given, origin="test"))


@pytest.mark.spark
@pytest.mark.nightly  # by day `test_written_by_spark` compares the files of both
def test_spark_writes_the_same_columns(spark: SparkSession, tmp_path: Path) -> None:
    """A run gives the same lines on both engines."""
    write(tmp_path / "in")
    config = build_config(settings("jsonl"), origin="test")
    run_locally([str(tmp_path / "in")], str(tmp_path / "local"), config)
    run_job(spark, [str(tmp_path / "in")], str(tmp_path / "spark"), config)
    both = [list(map(json.loads, lines(tmp_path / at / "kept"))) for at in ("local", "spark")]
    assert both[0] == both[1]
