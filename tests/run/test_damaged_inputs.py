"""Records and files that cannot be read completely: what is read, and one reject for the rest."""

import bz2
import gzip
import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.finished_runs import write_rows
from tests.run.accounts import LINES, rejects, run_that_adds_up, table


def test_long_records_and_many_short_ones_are_all_read(tmp_path: Path) -> None:
    """Two near-duplicate records of 20 MB and 20,000 short ones in one file are all read."""
    draw = Random(1)  # noqa: S311 - noise
    noise = [draw.randbytes(6).hex() for _ in range(1_500_000)]
    rows = [{"id": str(n), "text": f"page {n} of many"} for n in range(20_000)]
    long = [{"id": "x", "text": " ".join(noise)}, {"id": "y", "text": " ".join([*noise[1000:], "end"])}]
    write_rows(tmp_path / "a.jsonl", [*rows, *long])

    metrics = run_that_adds_up(tmp_path, tmp_path / "a.jsonl")

    assert metrics["rows"]["documents"] == 20_002
    assert metrics["rows"]["rejects"] == 0
    pairs = [row for row in table(tmp_path, "pairs") if "x" in (row["doc_a"], row["doc_b"])]
    assert [(row["doc_a"], row["doc_b"]) for row in pairs] == [("x", "y")]


def test_records_beyond_a_limit_are_rejects(tmp_path: Path) -> None:
    """A record above `input.max_record` is rejected as `too large`, one below `input.min_tokens` as `short`."""
    rows = [
        *LINES,
        {"id": "long", "text": "x " * 2000},
        {"id": "short", "text": "two words"},
        {"id": "none", "text": ""},
    ]
    write_rows(tmp_path / "a.jsonl", rows)

    run_that_adds_up(tmp_path, tmp_path / "a.jsonl", input={"max_record": "2KB", "min_tokens": 3})

    assert rejects(tmp_path) == [
        ("a.jsonl", 4, "too large"),
        ("a.jsonl", 5, "short"),
        ("a.jsonl", 6, "short"),
    ]
    assert sorted(row["doc_id"] for row in table(tmp_path, "documents")) == ["a", "b", "c"]


def test_of_a_damaged_file_all_that_decodes_is_kept(session_or_none: SparkSession | None, tmp_path: Path) -> None:
    """A truncated file gives its records up to the cut, and one reject that names the last good record.

    An empty file, blanks and garbage give one reject each; a good file is read as usual, and a text as one document.
    """
    pages = tmp_path / "pages"
    pages.mkdir()
    for kind in ("bz2", "gz"):
        draw = Random(kind)  # noqa: S311 - noise
        noise = [{"id": f"{kind}{n}", "text": draw.randbytes(20_000).hex()} for n in range(40)]
        whole = "".join(json.dumps(row) + "\n" for row in noise).encode()
        packed = bz2.compress(whole, 1) if kind == "bz2" else gzip.compress(whole)
        (pages / f"cut.jsonl.{kind}").write_bytes(packed[: len(packed) // 2])
    write_rows(pages / "good.jsonl", LINES)
    (pages / "empty.jsonl").write_text("")
    (pages / "blank.xml").write_text(" \n\n")
    (pages / "garbage.xml").write_bytes(bytes(range(256)) * 100)
    (pages / "text.txt").write_text("just some words")

    metrics = run_that_adds_up(tmp_path, pages, spark=session_or_none)

    found = Counter(row["source"] for row in table(tmp_path, "documents"))
    details = {row["source"]: row["detail"] for row in table(tmp_path, "rejects")}
    assert metrics["rows"]["documents"] == found.total()
    assert found.pop("good.jsonl") == len(LINES)
    damaged = [(name, found[name] + 1, "damaged") for name in ("cut.jsonl.bz2", "cut.jsonl.gz")]
    assert found.pop("text.txt") == 1
    without = [("blank.xml", 1, "no records"), ("empty.jsonl", 1, "no records"), ("garbage.xml", 1, "binary")]
    assert rejects(tmp_path) == sorted(damaged + without)
    for name, good in found.items():
        assert 10 < good <= 20
        assert details[name].endswith(f"; the last good record is {good} ({name.rpartition('.')[2]}{good - 1})")


def test_bytes_that_are_no_text_are_counted_and_kept(tmp_path: Path) -> None:
    """A line with an undecodable byte becomes a document and can be kept, and the run counts such records and bytes."""
    (tmp_path / "a.jsonl").write_bytes(b'{"id": "1", "text": "one \xff two"}\n{"id": "2", "text": "three"}\n')

    metrics = run_that_adds_up(tmp_path, tmp_path / "a.jsonl", output={"kept": "jsonl"})

    assert metrics["stages"]["sketch"]["undecodable_records"] == 1
    assert metrics["stages"]["sketch"]["undecodable_places"] == 1
    written = [line for part in (tmp_path / "out" / "kept").glob("part-*") for line in part.read_text().splitlines()]
    assert sorted(written) == ['{"id": "1", "text": "one \ufffd two"}', '{"id": "2", "text": "three"}']


def test_a_bomb_stops_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed file that expands too far gives its records up to the limit, and one reject."""
    monkeypatch.setattr("nddup.scanning.file_heads.SHARED_EXPANSION", 1 << 20)
    line = json.dumps({"text": "x " * 500}) + "\n"
    (tmp_path / "bomb.jsonl.gz").write_bytes(gzip.compress(line.encode() * 20_000))

    metrics = run_that_adds_up(tmp_path, tmp_path / "bomb.jsonl.gz", input={"max_expansion": 2})

    assert 500 < metrics["rows"]["documents"] < 2_100
    found = rejects(tmp_path)
    assert [reason for _, _, reason in found] == ["too large"]
