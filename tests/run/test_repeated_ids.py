"""Records whose id an earlier record has, on both engines: nothing is lost, and no made-up id takes another's."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nddup.engines.choose import choose_engine_of_paths
from nddup.errors import ConfigError
from nddup.ground.metrics import RunMetrics
from nddup.report.summary import notes
from nddup.settings.load import build_config
from tests.counted_rows import once
from tests.finished_runs import write_rows
from tests.run.accounts import run_that_adds_up, table


def texts_of(*rows: tuple[Any, str]) -> list[dict[str, Any]]:
    """Return records of these ids and texts; None: without an id."""
    return [{"text": text} | ({} if name is None else {"id": name}) for name, text in rows]


def test_a_later_record_of_other_content_gets_the_name_of_its_place(
    tmp_path: Path, session_or_none: SparkSession | None
) -> None:
    """The first keeps the id, an equal one is a reject, others are `source#record` with `+` where that is an id."""
    first = os.fsdecode(b"caf\xe9.jsonl")
    rows = [(1, "a"), (1, "b"), (1, "a"), (None, "c"), ("caf%E9.jsonl#4", "d"), ("caf%E9.jsonl#2+", "e"), (2, "f"),
            ("caf%E9.jsonl#2", "g"), ("caf%E9.jsonl#9", "own"), ("b.jsonl#4++", "h")]  # fmt: skip
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "b.jsonl", texts_of((1, "c"), (2, "f"), (1, "b"), ("b.jsonl#4", "i"), (2, "j")))
    write_rows(tmp_path / "in" / first, texts_of(*rows))

    metrics = run_that_adds_up(tmp_path, tmp_path / "in", spark=session_or_none)

    names = {(row["source"], row["record"]): row["doc_id"] for row in table(tmp_path, "documents")}
    assert {place: name for place, name in names.items() if place[0] == "b.jsonl"} == {
        ("b.jsonl", 1): "1",
        ("b.jsonl", 2): "2",
        ("b.jsonl", 3): "b.jsonl#3",
        ("b.jsonl", 4): "b.jsonl#4",
        ("b.jsonl", 5): "b.jsonl#5",
    }
    assert [names["caf%E9.jsonl", record] for record in (1, 2, 3, 4, 5, 6, 8, 9, 10)] == [
        "caf%E9.jsonl#1", "caf%E9.jsonl#2++", "caf%E9.jsonl#3", "caf%E9.jsonl#4+", "caf%E9.jsonl#4", "caf%E9.jsonl#2+",
        "caf%E9.jsonl#2", "caf%E9.jsonl#9", "b.jsonl#4++",
    ]  # fmt: skip
    assert [(row["source"], row["record"], row["doc_id"], row["reason"], row["detail"])
            for row in table(tmp_path, "rejects")] == [
        ("caf%E9.jsonl", 7, "2", "repeated id", "first seen as record 2 of b.jsonl"),
    ]  # fmt: skip
    assert (metrics["stages"]["sketch"]["renamed_ids"], metrics["stages"]["sketch"]["made_up_ids"]) == (5, 1)
    assert metrics["stages"]["sketch"]["respelled_names"] == 1
    told = [
        note for note in notes(RunMetrics.read(metrics)) if "set input.id to a column that no two records share" in note
    ]
    assert len(told) == 1
    assert told[0].startswith("5 documents have an id that an earlier record of other content has")


def test_the_file_before_each_id_where_ids_restart(tmp_path: Path) -> None:
    """With `input.id_prefix=source` no id is repeated, made up or renamed, in plain and compressed shards.

    `embedded/test_engines.py` shows that Spark gives the same ids.
    """
    lines = [json.dumps({"id": n, "text": f"text {n} of a shard"}) + "\n" for n in (1, 2)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("".join(lines))
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines).replace("a shard", "b").encode()))

    metrics = run_that_adds_up(tmp_path, tmp_path / "in", input={"id_prefix": "source"})

    names = once(row["doc_id"] for row in table(tmp_path, "documents"))
    assert names == {"a.jsonl/1", "a.jsonl/2", "b.jsonl.gz/1", "b.jsonl.gz/2"}
    assert metrics["stages"]["sketch"]["renamed_ids"] == 0


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("hf://a/b", "expected hf://datasets/OWNER/NAME"),
        ("zip://a.jsonl::s3://b/c.zip", "copy it to one of them first"),
    ],
)
def test_an_address_that_neither_engine_opens_is_refused(path: str, said: str) -> None:
    """Before Spark starts, one line says what to do instead."""
    with pytest.raises(ConfigError, match=said):
        choose_engine_of_paths([path], build_config({}, origin="test"), master=None)
