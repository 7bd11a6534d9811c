"""`keep.same`: no document stands for one of other values; the oracle is the definition on texts.

`test_families.py` has it on Spark.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import nddup
from nddup.checking.check_run import check_run
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError
from nddup.settings.load import build_config
from tests.counted_rows import once_each
from tests.finished_runs import write_rows
from tests.results.damages import change, rewrite
from tests.run.valued_texts import Row, choose, define_keep, rows_of, write_texts
from tests.samples_by_night import first


def require_kept(seed: int, folder: Path) -> None:
    """Make a run under drawn settings, compare its keep-list with the definition, and check it."""
    records, run = write_texts(folder / "in", seed), folder / "run"
    settings, said = choose(seed, list(records), folder)
    metrics = run_locally([str(folder / "in")], str(run), build_config(settings, origin="test"))

    found = once_each(
        (row["doc_id"], row["doc_id"] if row["kept"] else row["duplicate_of"]) for row in rows_of(run, "keep")
    )
    if not metrics["stages"]["pairs"]["limited"]:
        assert found == define_keep(records, settings, said), (seed, settings)
    report = check_run(DuckRun(str(run)), steps=["keep", "clusters", "members"])
    assert report.is_sound, (seed, settings, report.text())


@pytest.mark.parametrize("seed", first(1, [4, 0, *range(1, 4), *range(5, 12)]))
def test_what_is_kept_is_the_kernel_value_by_value(seed: int, tmp_path: Path) -> None:
    """With missing values, equal texts, limits of loss, forced documents, leaders and textless documents."""
    require_kept(seed, tmp_path)


@pytest.mark.parametrize("mode", first(1, ["partition", "components"]))
def test_what_sketches_decide_is_kept_value_by_value(mode: str, tmp_path: Path) -> None:
    """Also where no text is compared and leaders stand for the pairs; copies of other values have their own cluster."""
    records, given = write_texts(tmp_path / "in", 2), {"threshold": 0.6, "max_edges": 3, "confirm": "none"}
    keep = {"policy": "first-id", "same": ["lang"], "max_lost": None}
    settings = {"pairs": given, "keep": keep, "clusters": {"mode": mode}, "output": {"report": False}}
    run_locally([str(tmp_path / "in")], str(tmp_path / "run"), build_config(settings, origin="test"))
    found = {row["doc_id"]: row["duplicate_of"] or row["doc_id"] for row in rows_of(tmp_path / "run", "keep")}
    assert found == define_keep(records, settings, {})
    report = check_run(DuckRun(str(tmp_path / "run")))
    assert report.is_sound, report.text()


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_a_run_equals_those_of_each_value(seed: int, tmp_path: Path) -> None:
    """Without `max_lost` the keep-list is the union of those of the documents of each value; pairs do not change."""
    write_texts(tmp_path / "in", seed)
    whole = {"keep": {"same": ["nddup_source"]}, "output": {"report": False}}
    run_locally([str(tmp_path / "in")], str(tmp_path / "same"), build_config(whole, origin="test"))
    free = build_config({"output": {"report": False}}, origin="test")
    run_locally([str(tmp_path / "in")], str(tmp_path / "free"), free)
    for file in "ab":
        run_locally([str(tmp_path / "in" / f"{file}.jsonl")], str(tmp_path / file), free)

    parts = [row for file in "ab" for row in rows_of(tmp_path / file, "keep")]
    assert sorted(map(repr, rows_of(tmp_path / "same", "keep"))) == sorted(map(repr, parts))
    for table in ("pairs", "clusters", "members", "false_components"):
        assert rows_of(tmp_path / "same", table) == rows_of(tmp_path / "free", table)


def test_a_removal_across_values_is_found(tmp_path: Path) -> None:
    """`check` names a document that one of another value replaces."""
    records, run = write_texts(tmp_path / "in", 3), tmp_path / "run"
    settings = {"keep": {"same": ["lang"]}, "output": {"report": False}}
    run_locally([str(tmp_path / "in")], str(run), build_config(settings, origin="test"))
    kept = next(row["doc_id"] for row in rows_of(run, "keep") if row["kept"] and records[row["doc_id"]]["lang"] == "ru")
    removed = next(row["doc_id"] for row in rows_of(run, "keep")
                   if not row["kept"] and records[row["doc_id"]]["lang"] != "ru")  # fmt: skip

    rewrite(run, "keep", change("duplicate_of", kept, doc_id=removed))

    report = check_run(DuckRun(str(run)), steps=["keep"])
    assert "BROKEN 1   keep: none removed for one of another lang" in report.text(), report.text()


def test_a_column_that_no_record_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message has the setting and the column; repeated and empty columns are refused."""
    write_texts(tmp_path / "in", 1)
    run = ["run", str(tmp_path / "in"), "--output", str(tmp_path / "run"), "--set"]

    assert main([*run, "keep.same=[nothing]"]) == 2
    assert "keep.same: nothing: no record at the start of any file has it" in capsys.readouterr().err

    repo = str(tmp_path / "repo")
    assert main(["index", "create", repo, "--set", "keep.policy=[nothing]", "--set", "keep.same=[lang]"]) == 0
    assert main(["index", "add", repo, str(tmp_path / "in")]) == 2
    said = "keep.policy or keep.same: nothing: no record at the start of any file has it"
    assert said in capsys.readouterr().err
    assert main([*run, "keep.same=[lang, lang]"]) == 2
    assert "expected different columns such as [license, lang]" in capsys.readouterr().err


def drop_files(records: dict[str, Row]) -> list[Row]:
    """Return the records as rows of a table, without their files; a row lacks no column."""
    return [{name: row.get(name) for name in ("id", "text", "lang", "licence")} for row in records.values()]


@pytest.mark.parametrize("make", first(2, [pd.DataFrame, list, pa.Table.from_pylist, pl.DataFrame, pl.LazyFrame]))
def test_columns_of_a_table_are_those_of_files(make: Callable[[list[Row]], Any], tmp_path: Path) -> None:
    """A table of any library gives the keep-list that files of its rows give, and stores the same values."""
    rows = drop_files(write_texts(tmp_path / "in", 5))
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keep = {"same": ["lang"], "policy": ["licence=-,MIT", "-licence", "id"]}
    config = build_config({"keep": keep, "output": {"report": False}}, origin="test")
    run_locally([str(tmp_path / "rows.jsonl")], str(tmp_path / "files"), config)

    run = nddup.find_duplicates(make(rows), keep=keep, progress=False)

    found = {name: getattr(run, name) for name in ("keep", "documents")}
    told = {name: pa.table(table) if isinstance(table, pl.DataFrame) else pa.Table.from_pandas(table)
            if isinstance(table, pd.DataFrame) else table for name, table in found.items()}  # fmt: skip
    assert once_each((row["doc_id"], row["duplicate_of"]) for row in told["keep"].to_pylist()) == once_each(
        (row["doc_id"], row["duplicate_of"]) for row in rows_of(tmp_path / "files", "keep")
    )
    assert once_each((row["doc_id"], list(row["policy"])) for row in told["documents"].to_pylist()) == once_each(
        (row["doc_id"], row["policy"]) for row in rows_of(tmp_path / "files", "documents")
    )


def test_a_column_may_be_named_twice(tmp_path: Path) -> None:
    """Listed values come first, then the others by the same column, whatever other columns are read."""
    rows = [
        {"id": f"d{at}", "text": "the same nine words of a text for all", "lang": lang, "n": number, "x": "abcdef"[at]}
        for at, (lang, number) in enumerate([("b", "7"), ("c", "10"), ("a", "x"), ("ru", None), ("a", "9"), ("d", "8")])
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    policies = {("lang=zz", "-lang"): "d3", ("lang=d,c", "n", "lang"): "d5", ("x=q", "n:number", "-x", "-n"): "d0"}
    policies |= {("lang=zz", "lang", "-n:number"): "d4", ("n:text", "-lang", "n:number"): "d1"}
    for at, (policy, kept) in enumerate(policies.items()):
        keep = {"policy": list(policy), "ledger": ["x", "n"]}
        config = build_config({"keep": keep, "output": {"report": False}}, origin="test")
        run_locally([str(tmp_path / "rows.jsonl")], str(tmp_path / f"{at}"), config)

        assert [row["doc_id"] for row in rows_of(tmp_path / f"{at}", "keep") if row["kept"]] == [kept]
        assert check_run(DuckRun(str(tmp_path / f"{at}"))).is_sound


def test_a_table_lacks_a_column_or_files() -> None:
    """A missing column is named with those that there are; a table has no sources."""
    table = pa.table({"id": ["a"], "text": ["some words"]})
    with pytest.raises(ConfigError, match="no column 'lang'; there are id, text"):
        nddup.find_duplicates(table, keep={"same": ["lang"]})
    with pytest.raises(ConfigError, match="a table has no sources"):
        nddup.find_duplicates(table, keep={"same": ["nddup_source"]})
