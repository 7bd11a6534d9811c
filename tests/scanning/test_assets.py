"""Folders of pages and documents: what pages are shown with is skipped, what is not read is named by kind."""

import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard

from nddup.embedded.run import run_locally
from nddup.ground.metrics import RunMetrics
from nddup.report.summary import notes
from nddup.scanning.input_files import why_skipped
from nddup.settings.load import build_config
from tests.finished_runs import rows_of

PAGE = "<html><body><p>{}</p></body></html>"
WORDS = " ".join(f"w{number}" for number in range(60))


def run(folder: Path, **settings: object) -> RunMetrics:
    quick = {"output": {"texts": 0, "report": False, "kept": "as-input"}} | settings
    return RunMetrics.read(run_locally([str(folder)], f"{folder}-out", build_config(quick, origin="test")))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two pages, one of them named as a licence, with an image, a style and a script."""
    folder = tmp_path / "site"
    (folder / "img").mkdir(parents=True)
    for name in ("a.html", "license.html"):
        (folder / name).write_text(PAGE.format(f"{WORDS} {name}"))
    for name, data in {"img/a.png": b"\x89PNG\r\n\x1a\n\0", "a.css": b"body {}", "app.js": b"let a = 1;"}.items():
        (folder / name).write_bytes(data)
    (folder / "LICENSE").write_text("the licence of the data set")
    return folder


def test_assets_are_skipped_counted_and_copied(site: Path) -> None:
    """They are no rejects, count for no limit, and stay in the site that is written again."""
    metrics = run(site, input={"max_rejects": 0.0})

    assert (metrics.records, metrics.rows["rejects"], metrics.stages.sketch.files) == (2, 0, 2)
    whys = [file.why.partition(" (")[0].partition(",")[0] for file in metrics.stages.sketch.skipped_files]
    assert sorted(whys) == ["images", "images", "images", "named as a readme"]
    assert {path.name for path in Path(f"{site}-out/kept").rglob("*.*")} >= {"a.png", "a.css", "app.js"}


def test_a_page_may_be_named_as_an_image(site: Path) -> None:
    """Wikis call the page about a picture as the picture: its bytes decide."""
    (site / "File:Map.png").write_text(f"\n<!DOCTYPE html>{PAGE.format(WORDS)}")
    (site / "img" / "b.svg").write_text('<?xml version="1.0"?><svg><text>some words of a picture</text></svg>')

    metrics = run(site)

    sources = pq.read_table(f"{site}-out/documents")["source"].to_pylist()
    assert sorted(sources) == ["File:Map.png", "a.html", "license.html"]
    assert sum("images" in file.why for file in metrics.stages.sketch.skipped_files) == 4


def test_an_asset_alone_is_read_as_any_file(tmp_path: Path) -> None:
    """A script that is the only INPUT is a text of its format."""
    (tmp_path / "data.js").write_text("".join(json.dumps({"id": name, "text": WORDS}) + "\n" for name in "ab"))

    assert run(tmp_path / "data.js", output={"report": False}).rows["documents"] == 2


@pytest.mark.parametrize("name", ["license.html", "README.htm", "notice.xhtml", "readme.jsonl", "changelog.csv.gz"])
def test_pages_and_data_may_be_named_as_notices(name: str) -> None:
    """Only a name without an ending, or that of a note, is passed over."""
    assert why_skipped(name, is_folder=False) is None
    assert why_skipped(name.partition(".")[0], is_folder=False) is not None
    assert why_skipped(f"{name.partition('.')[0]}.txt", is_folder=False) is not None


def test_documents_that_are_not_read_are_named_by_kind_with_what_to_do(site: Path) -> None:
    """One line counts them; each is a reject, and none is read as bytes."""
    for number in range(2):
        with zipfile.ZipFile(site / f"{number}.docx", "w") as packed:
            packed.writestr("word/document.xml", WORDS)
        (site / f"{number}.pdf").write_bytes(b"%PDF-1.4\n" + WORDS.encode())
    (site / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
    (site / "pages.wacz").write_bytes(b"PK\3\4rest")
    (site / "pages.cdx").write_bytes(b" CDX N b a m s k r M S V g\n")
    (site / "bare.cdx").write_bytes(b"example,a)/ 20200101000000 http://a.example/ text/html 200 A - - 1 0 a.warc\n")
    (site / "pages.cdxj").write_bytes(b'example,a)/x 20200101000000 {"url": "http://a.example/x", "offset": "0"}\n')

    metrics = run(site)

    said = next(note for note in notes(metrics) if note.startswith("files that gave no document: "))
    for part in ("2 binary: a Word document: convert it to text first",
                 "2 binary: a PDF: convert it to text first (0.pdf, …)",
                 "1 binary: an Excel workbook: export each sheet as CSV (old.xls)",
                 "1 a WACZ archive that is damaged, without WARC files, or not of this machine: unpack it",
                 "2 binary: an index of WARC files (CDX), without pages: give the WARC files",
                 "1 binary: an index of WARC files (CDXJ), without pages: give the WARC files"):  # fmt: skip
        assert part in said
    assert len(rows_of(Path(f"{site}-out"), "rejects", ["source"])) == 9


def test_mail_is_read_and_written_again(tmp_path: Path) -> None:
    """The messages of a folder are documents; those that are kept are written byte for byte."""
    folder = tmp_path / "mail"
    folder.mkdir()
    one = f"Message-ID: <{{}}>\nSubject: a contract\n\n{WORDS}"
    (folder / "a.eml").write_text(one.format("a"))
    date = "Thu Jan  1 00:00:00 2024"
    box = f"From x {date}\n{one.format('b')}\n\nFrom y {date}\n{one.format('c').replace('w1', 'other')}\n"
    (folder / "b.mbox").write_text(box)

    metrics = run(folder)

    assert metrics.rows["documents"] == 3
    assert (Path(f"{folder}-out/kept/a.eml")).read_text() == one.format("a")
    assert (Path(f"{folder}-out/kept/b.mbox")).read_text() == box[box.index("From y") :]


@pytest.mark.parametrize(
    "name",
    [
        "notice-of-sale.txt",
        "notice-my.txt",
        "license-agreement.txt",
        "notice-of.txt",
        "a.md",
        "part-0.tsv",
        "readme_first.txt",
    ],
)
def test_a_name_that_goes_on_with_words_is_a_document(name: str) -> None:
    """Only a name that is exactly a readme or licence, with an ending or a language, is passed over."""
    assert why_skipped(name, is_folder=False) is None


def test_a_folder_of_notes_is_read_and_proved_by_one_listing(tmp_path: Path) -> None:
    """Files that would be skipped beside others are the collection where there are none; no change is noted."""
    (tmp_path / "in").mkdir()
    for name in ("README.md", "LICENSE.txt", "readme.de.md"):
        (tmp_path / "in" / name).write_text(f"{name} {WORDS}")
    metrics = run(tmp_path / "in", output={"report": False})

    assert (metrics.rows["documents"], metrics.stages.sketch.changed_files) == (3, 0)


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("utf-8", bytes),
        ("utf-8", gzip.compress),
        ("utf-8-sig", bytes),
        ("utf-16", bytes),
        pytest.param("utf-16-be", lzma.compress, marks=pytest.mark.nightly),
        ("utf-32", zstandard.compress),
    ],
)
def test_a_first_line_that_is_too_large_is_one_reject(
    tmp_path: Path, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    """The keys are those of the lines after it; so of two long lines, and where the content is named."""
    rows = [{"id": "long", "text": "word " * 60_000}] * 2 + [{"id": name, "text": WORDS} for name in "ab"]
    (tmp_path / "in.jsonl").write_bytes(pack("".join(json.dumps(row) + "\n" for row in rows).encode(encoding)))
    settings = {"max_record": 100_000, "max_rejects": None, "content": "text" if encoding != "utf-8" else None}
    metrics = run(tmp_path / "in.jsonl", input=settings, output={"report": False})

    assert (metrics.rows["documents"], metrics.rows["rejects"], metrics.stages.sketch.made_up_ids) == (2, 2, 0)


def test_a_damaged_archive_ends_no_run(tmp_path: Path) -> None:
    """Each of its files is a reject with the archive's name; the others, and what lies beside it, are read."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jsonl").write_text(json.dumps({"id": "a", "text": WORDS}) + "\n")
    for kind in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        stored = io.BytesIO()
        with zipfile.ZipFile(stored, "w", kind) as packed:
            packed.writestr("archive/a.warc", "WARC/1.0\r\n" + WORDS)
        data = bytearray(stored.getvalue())
        data[50:60] = bytes(range(200, 210))
        (tmp_path / f"in/{kind}.wacz").write_bytes(data)
        (tmp_path / f"in/{kind}-cut.wacz").write_bytes(data[:70])
        data[data.index(b"PK\1\2") + 8] |= 1
        (tmp_path / f"in/{kind}-encrypted.wacz").write_bytes(data)
    metrics = run(tmp_path / "in", input={"max_rejects": None}, output={"report": False})

    assert (metrics.rows["documents"], metrics.stages.sketch.rejected) == (1, {"damaged": 9})
