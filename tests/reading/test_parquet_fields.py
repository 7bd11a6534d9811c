"""Fields of the objects in a column of Parquet are named as keys of JSON are; the same rows are the oracle."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.errors import NddupError
from nddup.ground.columns import field_of, fields_in, kind_of
from nddup.settings.load import build_config

COPIED = " ".join(f"w{word}" for word in range(80))
ROWS: list[dict[str, Any]] = [
    {"meta": {"id": f"d{at}", "of": {"score": at}}, "row": {"text": f"{COPIED} {at // 2}", "lang": "en"}, "n": at}
    for at in range(6)
]
ROWS += [{"meta": {"id": "none", "of": None}, "row": None, "n": 6}, {"meta": None, "row": {"text": "alone"}, "n": 7}]
SETTINGS: dict[str, Any] = {
    "input": {"id": "meta.id", "content": "row.text"},
    "keep": {"policy": ["-meta.of.score"], "ledger": ["row.lang"]},
    "output": {"report": False, "kept": "as-input"},
}


def write(folder: Path) -> list[Path]:
    """Write the rows as lines of JSON and as Parquet, each in a folder."""
    for kind in ("json", "parquet"):
        (folder / kind).mkdir()
    (folder / "json" / "a").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "parquet" / "a", row_group_size=3)
    return [folder / "json", folder / "parquet"]


def test_the_tables_are_those_of_json(tmp_path: Path) -> None:
    """Also where an object is missing; and what is kept holds the whole rows."""
    tables, kept = list[list[str]](), list[list[dict[str, Any]]]()
    for source in write(tmp_path):
        output = tmp_path / f"{source.name} run"
        run_locally([str(source)], str(output), build_config(SETTINGS, origin="test"))
        rows = [row for name in ("documents", "keep", "families") for row in pq.read_table(output / name).to_pylist()]
        tables.append(sorted(map(str, rows)))
        rejects = pq.read_table(output / "rejects")
        assert rejects["reason"].to_pylist() == ["no content"]
        written = output / "kept" / "a"
        is_json = source.name == "json"
        lines = map(json.loads, written.read_text().splitlines()) if is_json else pq.read_table(written).to_pylist()
        kept.append(sorted(lines, key=lambda row: row["n"]))

    assert tables[0] == tables[1]
    assert [row["n"] for row in kept[0]] == [row["n"] for row in kept[1]] == [5, 7]
    assert kept[1][0] == ROWS[5]


@pytest.mark.parametrize("kind", ["json", "parquet", "hits"])
def test_what_elasticsearch_exports_names_its_fields(kind: str, tmp_path: Path) -> None:
    """The text of a document is under `_source`, its id beside it: as lines, in a table, and in an answer."""
    hits = [{"_index": "a", "_id": f"x{at}", "_source": {"title": "t", "body": f"a b {at}", "n": 1}} for at in range(3)]
    source = tmp_path / f"in.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(hits), source)
    elif kind == "hits":
        source.write_text(json.dumps({"took": 1, "hits": {"total": 3, "hits": hits}}), encoding="utf-8")
    else:
        source.write_text("".join(json.dumps(hit) + "\n" for hit in hits), encoding="utf-8")
    run_locally([str(source)], str(tmp_path / "run"), build_config({"output": {"report": False}}, origin="test"))

    documents = pq.read_table(tmp_path / "run" / "documents").to_pylist()
    assert sorted((row["doc_id"], row["n_tokens"]) for row in documents) == [("x0", 4), ("x1", 4), ("x2", 4)]


def test_a_passage_is_cut_out_of_a_field(tmp_path: Path) -> None:
    """The other fields, and objects that are missing, stay."""
    _, source = write(tmp_path)
    chosen = [f"--set=input.{name}={value}" for name, value in SETTINGS["input"].items()]
    arguments = ["passages", str(source), "--output", str(tmp_path / "out"), "--set=passages.min_left=0", *chosen]
    assert main([*arguments, "--set=output.kept=as-input", "--set=output.report=false", "--quiet"]) == 0

    rows = pq.read_table(tmp_path / "out" / "kept" / "a").to_pylist()
    texts = {row["n"]: row["row"]["text"].split() for row in rows}
    assert texts[0][:2] == ["w0", "w1"]
    assert all("w0" not in text for n, text in texts.items() if n)
    assert [{**row, "row": None} for row in rows] == [
        {**ROWS[n], "meta": ROWS[n]["meta"], "row": None} for n in sorted(texts)
    ]
    assert {row["row"]["lang"] for row in rows if row["n"] < 6} == {"en"}


def test_what_is_no_text_or_missing_is_said(tmp_path: Path) -> None:
    """An object is no text, and a message lists the fields that there are."""
    _, source = write(tmp_path)
    for content, message in (
        ("row", "no records"),
        ("row.body", "row.text"),
        (None, "there are meta, meta.id, .*row.text"),
    ):
        settings = {"input": {"content": content}, "output": {"report": False}}
        with pytest.raises(NddupError, match=message):
            run_locally([str(source)], str(tmp_path / str(content)), build_config(settings, origin="test"))


def test_a_name_with_a_dot_comes_first() -> None:
    """A column `a.b` is not the field b of a column `a`; of columns `a` and `a.b` the longer has the field."""
    columns = {"a": [{"b": 1, "b.c": 2}], "a.b": [{"c": "x"}]}
    batch = pa.RecordBatch.from_pydict(columns)

    assert fields_in(batch.schema) == ["a", "a.b", "a.b.c", "a.b", "a.b.c"]
    assert pa.types.is_struct(kind_of(batch.schema, "a.b"))
    assert kind_of(batch.schema, "a.b.c") == pa.string()
    assert field_of(batch, "a.b.c").to_pylist() == ["x"]
