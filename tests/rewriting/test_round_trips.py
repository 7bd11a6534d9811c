"""Rewritten files, kept and tagged: every byte is compared, and the files are read back."""

import csv
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from lxml import etree

from nddup.embedded.run import run_locally
from nddup.rewriting.verdicts import NAMES, WEIGHT
from nddup.settings.load import build_config
from tests.counted_rows import once, once_each
from tests.rewriting.written_shards import FORMS, lay_out, shards, write_parquet, write_shards
from tests.samples_by_night import every, first

BOTH = {"kept": "as-input", "tagged": "as-input"}


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of a run."""
    found: list[dict[str, Any]] = pq.read_table(folder / table).to_pylist()
    return found


def run(source: Path, output: Path, writes: Mapping[str, Any] = BOTH) -> None:
    """Run the embedded engine."""
    settings = {"shingle": {"length": 2}, "pairs": {"threshold": 0.6}, "output": {"report": False, **writes}}
    run_locally([str(source)], str(output), build_config(settings, origin="test"))


def removed(folder: Path) -> set[str]:
    """Return the removed documents of a run."""
    return once(row["doc_id"] for row in rows(folder, "keep") if not row["kept"])


def files_of(folder: Path) -> set[str]:
    """Return all files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", every(2, FORMS))
def test_the_kept_are_the_bytes_of_the_input(name: str, tmp_path: Path) -> None:
    """Each kept shard has the input's kept records and the bytes around the records, and nothing else."""
    form = FORMS[name]
    source = write_shards(form, tmp_path / "in")
    run(source, tmp_path / "out")

    gone, written = removed(tmp_path / "out"), tmp_path / "out" / "kept"
    assert len(gone) > 5
    assert files_of(written) == files_of(source) == files_of(tmp_path / "out" / "tagged")
    for shard, placed in shards().items():
        due = [form.spell(*one) for one in placed if one[0] not in gone]
        if form.ending.startswith("warc"):  # records that are no documents stay
            due = [without_page(form.spell(*one), one[0]) if one[0] in gone else form.spell(*one) for one in placed]
        data = form.unpack((written / f"{shard}.{form.ending}").read_bytes())
        assert data == lay_out(form, due)


def without_page(records: bytes, name: str) -> bytes:
    """Return WARC records without the one of this name."""
    parts = re.split(rb"(?=WARC/1\.0\r\n)", records)
    return b"".join(part for part in parts if f"<{name}>".encode() not in part)


@pytest.mark.parametrize("name", every(5, FORMS))
def test_both_are_read_back(name: str, tmp_path: Path) -> None:
    """Read back, the kept collection has the kept documents and no duplicates; the tagged one has all, unchanged."""
    form = FORMS[name]
    run(write_shards(form, tmp_path / "in"), tmp_path / "out")
    columns = ("doc_id", "source", "n_tokens", "content_fingerprint", "sketch")
    for at in ("kept", "tagged"):
        run(tmp_path / "out" / at, tmp_path / at, writes={})

    read = {at: [{key: row[key] for key in columns} for row in rows(tmp_path / at, "documents")]
            for at in ("out", "kept", "tagged")}  # fmt: skip
    gone = removed(tmp_path / "out")
    assert read["tagged"] == read["out"]
    assert read["kept"] == [row for row in read["out"] if row["doc_id"] not in gone]
    assert not removed(tmp_path / "kept")
    reasons = [[row["reason"] for row in rows(tmp_path / at, "rejects")] for at in read]
    assert reasons[0] == reasons[1] == reasons[2]


def test_parquet_has_all_columns(tmp_path: Path) -> None:
    """Parquet keeps its rows, columns, types and order; tagging adds columns, with the values of the keep-list."""
    names = write_parquet(tmp_path / "in")
    run(tmp_path / "in", tmp_path / "out")

    gone, keep = removed(tmp_path / "out"), once_each((row["doc_id"], row) for row in rows(tmp_path / "out", "keep"))
    for shard in shards():
        before, kept, tagged = (
            pq.ParquetFile(tmp_path / at / f"{shard}.parquet") for at in ("in", "out/kept", "out/tagged")
        )
        assert kept.schema_arrow == before.schema_arrow
        assert tagged.schema_arrow.names == [*names, *NAMES]
        assert kept.metadata.row_group(0).column(0).compression == "ZSTD"
        whole = before.read().to_pylist()
        assert kept.read().to_pylist() == [row for row in whole if row["id"] not in gone]
        found = tagged.read()
        assert found.select(names).to_pylist() == whole
        for row in found.to_pylist():
            assert (row["nddup_kept"], row["nddup_duplicate_of"]) == (
                keep[row["id"]]["kept"],
                keep[row["id"]]["duplicate_of"],
            )


def test_the_tags_are_what_the_tables_say(tmp_path: Path) -> None:
    """The tags agree with the tables: copies add up to the documents, and the cluster is the kept document's."""
    run(write_shards(FORMS["jsonl"], tmp_path / "in"), tmp_path / "out")

    keep = once_each((row["doc_id"], row) for row in rows(tmp_path / "out", "keep"))
    clusters: dict[str, set[str]] = {}
    for row in rows(tmp_path / "out", "members"):
        clusters.setdefault(row["doc_id"], set()).add(row["cluster_id"])
    tagged = [
        json.loads(line) for shard in shards() for line in (tmp_path / "out" / "tagged" / f"{shard}.jsonl").open()
    ]
    assert sum(row["nddup_copies"] or 0 for row in tagged) == len(keep) == len(tagged)
    for row in tagged:
        stays = keep[row["id"]]
        target = stays["duplicate_of"] or row["id"]
        copies = 1 + sum(other["duplicate_of"] == row["id"] for other in keep.values())
        assert row["nddup_kept"] == stays["kept"]
        assert row["nddup_cluster"] == min(clusters.get(target, {None}), key=str)
        assert row["nddup_copies"] == (copies if stays["kept"] else None)


WEIGHTED: dict[str, str] = {
    "jsonl": r'"nddup_weight": (\d+)}', "xml.bz2": r' nddup:weight="(\d+)"', "csv": ",(\\d+)\r\n",
    "trec": "<nddup_weight>(\\d+)</nddup_weight>", "warc.gz": "nddup_weight: (\\d+)\r\n",
}  # fmt: skip
"""How formats spell the times that a document counts."""


@pytest.mark.parametrize("name", every(2, WEIGHTED))
def test_kept_documents_say_how_often_they_count(name: str, tmp_path: Path) -> None:
    """Each kept record has the times of the table, in its place; without these it is as it came."""
    form = FORMS[name]
    run(write_shards(form, tmp_path / "in"), tmp_path / "out", {**BOTH, "weights": {1: 7, 2: 30, 3: 900}})

    stands = Counter(row["duplicate_of"] or row["doc_id"] for row in rows(tmp_path / "out", "keep"))
    due = Counter(7 if count == 1 else 30 if count == 2 else 900 for count in stands.values())
    assert len(due) > 1
    for at in ("kept", "tagged"):
        read = [form.unpack((tmp_path / "out" / at / f"{shard}.{form.ending}").read_bytes()) for shard in shards()]
        times = [int(one) for data in read for one in re.findall(WEIGHTED[name], data.decode("latin-1"))]
        assert Counter(one for one in times if one in due) == due
    run(tmp_path / "out" / "kept", tmp_path / "again", writes={})
    texts = {
        at: sorted(row["content_fingerprint"] for row in rows(tmp_path / at, "documents")) for at in ("out", "again")
    }
    assert set(texts["again"]) <= set(texts["out"])
    assert len(texts["again"]) == len(stands)


def test_parquet_has_a_column_for_how_often_a_document_counts(tmp_path: Path) -> None:
    """The kept rows have one column more; a published table is known by its name."""
    names = write_parquet(tmp_path / "in")
    run(tmp_path / "in", tmp_path / "out", {**BOTH, "weights": "fineweb2"})
    stands = Counter(row["duplicate_of"] or row["doc_id"] for row in rows(tmp_path / "out", "keep"))
    table = pq.read_table(tmp_path / "out" / "kept")
    assert table.column_names == [*names, WEIGHT]
    due = {1: 1, 2: 2, 3: 3, 4: 3, 5: 5}
    assert dict(zip(*(table[name].to_pylist() for name in ("id", WEIGHT)), strict=True)) == {
        name: due[min(count, 5)] for name, count in stands.items()
    }
    assert pq.read_table(tmp_path / "out" / "tagged").column_names == [*names, *NAMES, WEIGHT]


@pytest.mark.parametrize("name", first(3, ["xml", "warc.gz", "csv", "xml.cp1251", "rows", "warc"]))
def test_other_libraries_read_both(name: str, tmp_path: Path) -> None:
    """Strict readers of XML (lxml), WARC (FastWARC) and CSV (Python) accept both collections and find the tags."""
    form = FORMS[name]
    run(write_shards(form, tmp_path / "in"), tmp_path / "out")
    gone = removed(tmp_path / "out")
    for at in ("kept", "tagged"):
        found: dict[str, str | None] = {}
        for shard in shards():
            path = tmp_path / "out" / at / f"{shard}.{form.ending}"
            found |= READERS[name.partition(".")[0]](path)
        documents = once(row["doc_id"] for row in rows(tmp_path / "out", "documents"))
        assert found.keys() == (documents if at == "tagged" else documents - gone)
        said = {doc: str(doc not in gone).lower() if at == "tagged" else None for doc in found}
        assert found == said


def read_xml(path: Path) -> dict[str, str | None]:
    """Return the tag `kept` of each record by id; a stray `&` is escaped first, as lxml requires."""
    data = re.sub(rb"&(?=b=)", b"&amp;", path.read_bytes())
    root = etree.fromstring(data)
    return {str(one.get("Id") or one.findtext("id")): one.get("{urn:nddup:tags}kept") for one in root}


def read_warc(path: Path) -> dict[str, str | None]:
    """Return the tag `kept` of each page by id."""
    found = {}
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            name = str(record.record_id).strip("<>")
            if record.record_type == WarcRecordType.response and not name.endswith(".png"):
                found[name] = record.headers.get("nddup_kept")
    return found


def read_csv(path: Path) -> dict[str, str | None]:
    """Return the tag `kept` of each row by id."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return {row["id"]: row.get("nddup_kept") for row in csv.DictReader(file, strict=True)}


READERS = {"xml": read_xml, "rows": read_xml, "warc": read_warc, "csv": read_csv}
