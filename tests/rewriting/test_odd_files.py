"""Files that are written again although they hold no record, bytes of no encoding, or columns of a rare type."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from tests.rewriting.written_shards import FORMS

TEXTS = ("one two three four five six", "one two three four five six", "quite another text stands here now")

PACKED = {FORMS[name].ending.split(".")[1]: FORMS[name] for name in ("jsonl.gz", "xml.bz2", "csv.xz", "trec.zst")}
"""How the bytes of a file are packed and unpacked, by the ending of its name."""


def write_again(folder: Path, **inputs: Any) -> tuple[Path, Path]:  # noqa: ANN401 - settings
    """Run, and return the folders of the kept and the tagged collection."""
    output = {"report": False, "kept": "as-input", "tagged": "as-input"}
    config = build_config({"output": output, "input": inputs}, origin="test")
    run_locally([str(folder / "in")], str(folder / "out"), config)
    return folder / "out" / "kept", folder / "out" / "tagged"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    rows = "".join(f"{at},{text}\n" for at, text in enumerate(TEXTS))
    (tmp_path / "in" / "a.csv").write_text("id,text\n" + rows)
    return tmp_path


def test_files_without_a_record(folder: Path) -> None:
    """A table of a header only and an empty Parquet file are written again, and tagged, as they are."""
    (folder / "in" / "header.csv").write_text("id,text\n")
    empty = pa.table({"id": pa.array([], pa.string()), "text": pa.array([], pa.string())})
    pq.write_table(empty, folder / "in" / "empty.parquet")
    (folder / "in" / "empty.jsonl").write_bytes(b"")

    kept, tagged = write_again(folder, max_rejects=None)

    assert (kept / "header.csv").read_text() == "id,text\n"
    assert (tagged / "header.csv").read_text().startswith("id,text,nddup_kept")
    assert pq.read_table(kept / "empty.parquet").equals(empty)
    assert pq.read_table(tagged / "empty.parquet").num_columns == 6
    assert (kept / "empty.jsonl").read_bytes() == (tagged / "empty.jsonl").read_bytes() == b""


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly])])
def test_a_table_that_cannot_be_opened_is_not_written(folder: Path, engine: str) -> None:
    """A Parquet file without its end is a reject, as of any other kind; all other files are written again."""
    pq.write_table(pa.table({"id": ["7"], "text": ["a"]}), folder / "in" / "cut.parquet")
    with (folder / "in" / "cut.parquet").open("r+b") as file:
        file.truncate(100)

    output = ["--output", str(folder / "out"), "--engine", engine]
    settings = ["output.report=false", "output.kept=as-input", "output.tagged=as-input", "input.max_rejects=null"]
    assert main(["run", str(folder / "in"), *output, *(one for text in settings for one in ("--set", text))]) == 0

    for name in ("kept", "tagged"):
        assert [one.name for one in (folder / "out" / name).iterdir()] == ["a.csv"]


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly])])
def test_a_table_without_a_text_keeps_its_columns(folder: Path, engine: str) -> None:
    """It is one reject: of its rows none is kept, and all are tagged, without a value."""
    table = pa.table({"key": [7, 8], "number": [1.5, None]})
    pq.write_table(table, folder / "in" / "numbers.parquet")

    output = ["--output", str(folder / "out"), "--engine", engine]
    settings = ["output.report=false", "output.kept=as-input", "output.tagged=as-input", "input.max_rejects=null"]
    assert main(["run", str(folder / "in"), *output, *(one for text in settings for one in ("--set", text))]) == 0

    assert pq.read_table(folder / "out" / "kept" / "numbers.parquet").equals(table[:0])
    assert pq.read_table(folder / "out" / "tagged" / "numbers.parquet").select(["key", "number"]).equals(table)


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly])])
def test_a_packed_file_of_which_no_record_stays(folder: Path, engine: str) -> None:
    """It holds no bytes, packed: a file of 0 bytes is damaged, or of no known format, to the programs of the packer."""
    record = "<DOC><DOCNO>y{}</DOCNO><TEXT>{}</TEXT></DOC>\n"
    for name, text in (("jsonl", '{{"id": "x{}", "text": "{}"}}\n'), ("trec", record)):
        data = b"".join(text.format(at, TEXTS[0]).encode() for at in range(2))
        for ending, form in PACKED.items():
            (folder / "in" / f"b.{name}.{ending}").write_bytes(form.pack(data))

    output = ["--output", str(folder / "out"), "--engine", engine]
    settings = ["output.report=false", "output.kept=as-input", "keep.policy=first", "output.texts=0"]
    assert main(["run", str(folder / "in"), *output, *(one for text in settings for one in ("--set", text))]) == 0

    written = sorted((folder / "out" / "kept").glob("b.*"))
    assert len(written) == 2 * len(PACKED)
    for path in written:
        assert path.read_bytes()
        assert PACKED[path.suffix[1:]].unpack(path.read_bytes()) == b"", path.name


def wide(text: str, order: str = "le") -> bytes:
    """Return UTF-16 with its mark; half a character stays half a character."""
    return f"\ufeff{text}".encode(f"utf-16-{order}", "surrogatepass")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("b.csv", b"id,text\r\n7,caf\xe9 \xff bad\r\n8,\xd0\x96 \xc3\xa9 four\r\n"),
        ("b.csv", wide("id,text\n7,one \ud800 two\n8,three \ud83d\ude00\n")),
        ("b.csv", wide("id,text\n7,one \udc00 two\n8,\u0a0d\u0d0a", "be")),
        ("b.csv", b"id,text\n7,\x83\\\x81\xff\n8,\xed\x40 \x87\x90 \x81\xe0\n"),
        ("b.jsonl", b'{"id": 7, "text": "bad \xff bytes"}\n{"id": 8, "text": "\xd0\x96 }"}\n'),
        ("b.xml", b"<docs>\n<doc><id>7</id><text>bad \xff bytes</text></doc>\n</docs>\n"),
        ("b.xml", wide("<docs>\n<doc><id>7</id><text>one \ud800 two</text></doc>\n</docs>\n")),
    ],
)
def test_bytes_that_are_no_text_stay(folder: Path, name: str, data: bytes) -> None:
    """Records with bytes that cannot be decoded are written as they came; tags are added around them."""
    (folder / "in" / name).write_bytes(data)

    kept, tagged = write_again(folder)

    assert (kept / name).read_bytes().rstrip(b"\n\0") == data.rstrip(b"\n\0")
    with_tags = (tagged / name).read_bytes()
    assert len(with_tags) > len(data)
    at = 0
    for byte in data:  # what came is still there, in order
        at = with_tags.find(byte, at) + 1
        assert at


def test_columns_of_rare_types(folder: Path) -> None:
    """Arrow cannot take rows of a column of string views: they are cut out, and keep their types."""
    columns = {
        "id": pa.array(["u", "v", "w"], pa.string_view()),
        "text": pa.array(TEXTS, pa.string_view()),
        "lists": pa.array([[1], [], [2, 3]]),
        "views": pa.array([b"a" * 20, None, b""], pa.binary_view()),
        "words": pa.array(["x", "y", "x"]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), folder / "in" / "b.parquet")

    kept, tagged = write_again(folder)

    before = pq.read_table(folder / "in" / "b.parquet")
    assert pq.read_table(kept / "b.parquet").schema == before.schema
    tagged_rows = pq.read_table(tagged / "b.parquet")
    assert tagged_rows.select(before.column_names).equals(before)
    assert tagged_rows["nddup_kept"].to_pylist() == [False, False, False]


def test_rows_of_parquet_that_were_not_read(folder: Path) -> None:
    """A tagged table has the rows that are no documents, such as one whose text is no UTF-8; a kept one has not."""
    data = pa.array([b"some good text", b"bad \xff text", b"another good text"])
    text = pa.StringArray.from_buffers(3, data.buffers()[1], data.buffers()[2])
    pq.write_table(pa.table({"id": ["u", "v", "w"], "text": text}), folder / "in" / "b.parquet")

    kept, tagged = write_again(folder)

    rows = pq.read_table(tagged / "b.parquet", columns=["id", "nddup_kept"]).to_pylist()
    assert rows == [{"id": "u", "nddup_kept": True}, {"id": "v", "nddup_kept": None}, {"id": "w", "nddup_kept": True}]
    assert pq.read_table(kept / "b.parquet", columns=["id"])["id"].to_pylist() == ["u", "w"]


def test_a_limit_leaves_no_element_open(folder: Path) -> None:
    """Where `input.limit` ends inside a file of XML, the elements around its records are closed."""
    (folder / "in" / "a.csv").unlink()
    record = "<doc><id>{0}</id><text>text number {0}</text></doc>\n"
    (folder / "in" / "b.xml").write_text("<all><docs>\n" + "".join(map(record.format, range(5))) + "</docs></all>\n")

    kept, tagged = write_again(folder, limit=2)

    for written in (kept, tagged):
        text = (written / "b.xml").read_text()
        assert text.count("<doc>") + text.count("<doc ") == 2
        assert text.endswith("</doc>\n</docs>\n</all>\n")


def test_the_images_of_a_mirror_are_copied(tmp_path: Path) -> None:
    """A kept mirror has its pages without the removed ones, and all files that are no pages."""
    site = tmp_path / "in" / "a.example"
    site.mkdir(parents=True)
    for at, text in enumerate(TEXTS):
        (site / f"{at}.html").write_text(f"<html><body>{text}</body></html>")
    (site / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    config = build_config({"output": {"report": False, "kept": "as-input"}}, origin="test")

    run_locally([str(tmp_path / "in")], str(tmp_path / "out"), config)

    kept = tmp_path / "out" / "kept"
    assert sorted(path.name for path in kept.rglob("*.*") if path.is_file()) == ["0.html", "2.html", "logo.png"]
    assert next(kept.rglob("logo.png")).read_bytes() == (site / "logo.png").read_bytes()


@pytest.mark.parametrize("name", ["b.xml", "b.trec"])
def test_a_record_without_its_end_tag_stays_as_it_is(folder: Path, name: str) -> None:
    """What is kept are the bytes of the input, without what was removed: of three records the second, a copy."""
    (folder / "in" / "a.csv").unlink()
    record, id_, around = "<{0}><{1}>{2}</{1}><TEXT>{3}</TEXT></{0}>\n", "DOCNO", ("", "")
    tag = "DOC"
    if name == "b.xml":
        id_, around = "id", ("<r>\n", "</r>\n")
    records = [record.format(tag, id_, at, text) for at, text in enumerate(TEXTS)]
    records[0] = records[0].replace(f"</{tag}>", "")
    (folder / "in" / name).write_text(around[0] + "".join(records) + around[1])

    kept, tagged = write_again(folder)

    assert (kept / name).read_text().split() == (around[0] + records[0] + records[2] + around[1]).split()
    assert re.sub(
        r' xmlns:nddup="[^"]*"| nddup:\w+="[^"]*"|\n<nddup_\w+>.*?</nddup_\w+>', "", (tagged / name).read_text()
    ) == (around[0] + "".join(records) + around[1])
