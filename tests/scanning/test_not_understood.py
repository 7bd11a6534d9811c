"""Files that people pass and that are no collection: one line says what each is and what to do."""

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from nddup.errors import ConfigError
from nddup.scanning.collection import find_files
from nddup.settings.load import load_config
from nddup.storage.local_storage import LocalStorage

ROWS = [{"id": str(row), "text": f"text {row}"} for row in range(3)]
NO_COLUMN = "cannot tell which column is the text; there are"
WORD = "a Word document"


def archive() -> bytes:
    """Return a tar archive of one HTML page, which could be mistaken for a page."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        page = b"<html><body>a page</body></html>"
        info = tarfile.TarInfo("page.html")
        info.size = len(page)
        tar.addfile(info, io.BytesIO(page))
    return file.getvalue()


def parquet(**columns: list[object]) -> bytes:
    """Return a Parquet file of these columns."""
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


FILES: dict[str, tuple[bytes, str]] = {
    "array.json": (
        json.dumps(ROWS).encode("utf-16"),
        "no line at its start is a JSON object; an array, or objects over several lines, are not read in utf-16-le",
    ),
    "nested.jsonl": (
        b'{"key": "a", "article": {"by": "b", "words": "c"}}',
        "cannot tell which key holds the text (seen: key, article.by, article.words); set input.content and input.id",
    ),
    "headless.csv": (
        b"7,2026-01-02," + b"word " * 20 + b"\n",
        f"{NO_COLUMN} 7, 2026-01-02, {'word ' * 8}… (the first row must name the columns); set input.content",
    ),
    "odd.parquet": (parquet(key=[1], words=["a"]), f"{NO_COLUMN} key, words; set input.content"),
    "letter.docx": (b"PK\3\4\0\0", f"binary: {WORD}; convert it to text first (soffice --convert-to txt:Text FILE)"),
    "paper.pdf": (b"%PDF-1.7\n\0", "binary: a PDF; convert it to text first"),
    "pages.tar": (archive(), "binary: a tar archive; unpack it first"),
    "a.feather": (b"ARROW1\0\0\0", "binary: a file of Arrow (Feather); write its table as Parquet"),
    "a.jsonl.lz4": (
        b'\x04"M\x18dp\xb9{"id": 1}', "binary: compressed by lz4; decompress it (unlz4), or compress it with zstd"
    ),
    "a.jsonl.gz": (gzip.compress(gzip.compress(b"{}")), "binary: compressed twice; decompress it once"),
    "logo.bin": (b"\1\2\0", "binary, of no format that nddup reads"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_alone_is_refused(name: str, tmp_path: Path) -> None:
    """A file that cannot be understood is refused with the line that says what it is."""
    content, said = FILES[name]
    (tmp_path / name).write_bytes(content)

    with pytest.raises(ConfigError) as refused:
        find_files(LocalStorage(), [str(tmp_path / name)], load_config().input)

    assert str(refused.value) == f"{tmp_path / name}: {said}"


def test_an_empty_table_is_a_reject(tmp_path: Path) -> None:
    """An empty table is a reject, as every empty file is; the message does not mention columns."""
    (tmp_path / "empty.csv").touch()

    found = find_files(LocalStorage(), [str(tmp_path)], load_config().input)

    assert found.unread == (("empty.csv", "no records", "the file is empty"),)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_a_compressed_file_of_nothing_is_empty(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """It is no damaged file, unless its end is missing."""
    (tmp_path / "a.packed").write_bytes(pack(b""))
    (tmp_path / "b.packed").write_bytes(pack(b"")[:-1])

    found = find_files(LocalStorage(), [str(tmp_path)], load_config().input)

    assert [reason for _, reason, _ in found.unread] == ["no records", "damaged"]
    assert found.unread[0][2] == "the file is empty"
    assert re.fullmatch(r"none of it can be decompressed \(\w+: the file ends .*, after 0 bytes\)", found.unread[1][2])


def test_a_text_may_begin_with_the_letters_of_a_kind_of_file(tmp_path: Path) -> None:
    """Only zero bytes make such a file binary."""
    (tmp_path / "a.txt").write_text("ORC is a kind of file, as LZIP is.")

    assert not find_files(LocalStorage(), [str(tmp_path)], load_config().input).unread


def test_one_table_without_a_text_does_not_refuse_the_others(tmp_path: Path) -> None:
    """A table without a text is not refused if another table has one."""
    (tmp_path / "a.parquet").write_bytes(FILES["odd.parquet"][0])
    (tmp_path / "b.parquet").write_bytes(parquet(id=["a"], text=["b"]))

    assert len(find_files(LocalStorage(), [str(tmp_path)], load_config().input).files) == 2


def test_a_column_of_pages_is_the_text_where_no_other_is(tmp_path: Path) -> None:
    """In tables and JSON lines: `html` names what it holds; beside a text it is not read."""
    (tmp_path / "a.parquet").write_bytes(parquet(doc_id=["a"], lang=["de"], html=[b"<p>one</p>"]))
    (tmp_path / "b.jsonl").write_text('{"id": "b", "raw_html": "<p>one</p>", "lang": "de"}\n')
    (tmp_path / "c.csv").write_text("id,html,text\n1,<p>two</p>,two\n")

    found = find_files(LocalStorage(), [str(tmp_path)], load_config().input).files

    assert [head.format.content[-1] for _, head in found if head.format.kind != "parquet"] == ["raw_html", "text"]
    assert len(found) == 3  # of Parquet the columns are chosen where it is read


def test_blanks_around_the_names_of_columns_are_nothing(tmp_path: Path) -> None:
    """`title + body` means `title+body`; the error for a comma says so."""
    (tmp_path / "a.csv").write_text("id,title,body\n1,a,b\n", encoding="utf-8")
    spaced = load_config(None, ["input.content=title + body"]).input
    comma = load_config(None, ["input.content=title,body"]).input

    [(_, head)] = find_files(LocalStorage(), [str(tmp_path)], spaced).files

    assert head.format.content == ("title", "body")
    with pytest.raises(ConfigError, match=r"no column title,body; .*; several are joined by \+, as title\+body$"):
        find_files(LocalStorage(), [str(tmp_path)], comma)
