"""A file is what its first bytes say: names decide only where these say nothing."""

import gzip
import random
from pathlib import Path

import pytest

from nddup.scanning.collection import find_files
from nddup.settings.load import load_config
from nddup.storage.local_storage import LocalStorage

PROSE = b"Some notes on lists.\n\n<list><item><title>x</title><description>short</description></item></list>\n"
ZEROS = bytes(100)
PNG, PDF, ZIP, JPEG = b"\x89PNG\r\n\x1a\n" + ZEROS, b"%PDF-1.4\n1 0 obj", b"PK\3\4\x14\0word/", b"\xff\xd8\xff\xe0JFIF"

PAGES = [
    b"<!DOCTYPE HTML PUBLIC><p>a",
    b"\xef\xbb\xbf\n<html lang=en>a",
    b"<title>t</title>\n<body bgcolor=white>a",
    b"<head><title>t</title></head>a",
    b"<!-- made by hand -->\n<table><tr><td>a</table>",
    b"<!-- a --> text",
    b"<H1 ALIGN=center>a",
    b"<div>a</div>",
    b"<a href=x>a</a>",
    b"<script>a</script>a",
    b"<?xml version='1.0'?>\n<!DOCTYPE html><html>a</html>",
]
NO_PAGES = [b"<titles>a", b"<path/>", b"plain <p> text", b"<?xml version='1.0'?><table><a>b</a></table>", b"<>", b""]


def kinds(folder: Path, files: dict[str, bytes], *settings: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the format of each file that is read, and the reason for each other."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    found = find_files(LocalStorage(), [str(folder)], load_config(None, settings).input)
    read = {file.source: head.format.name for file, head in found.files}
    return read, {source: reason for source, reason, _ in found.unread}


@pytest.mark.parametrize("page", PAGES)
def test_how_a_page_begins(page: bytes, tmp_path: Path) -> None:
    """A page begins with a tag of those in the standard of MIME sniffing, whatever the name."""
    assert kinds(tmp_path, {"show.php?id=1": page})[0] == {"show.php?id=1": "html"}


@pytest.mark.parametrize("data", NO_PAGES)
def test_what_is_no_page(data: bytes, tmp_path: Path) -> None:
    """Other tags and text do not begin a page; XML that is declared may have any root."""
    assert "html" not in kinds(tmp_path, {"a": data, "b.txt": b"a text"})[0].values()


def test_names_of_pages_do_not_decide_alone(tmp_path: Path) -> None:
    """Compressed pages are expanded, other media are rejects, XML is XML, and text in a file named as a page is one."""
    feed = b"<?xml version='1.0'?><rss><channel><item><guid>1</guid><description>a</description></item></channel></rss>"
    noise = bytes(random.Random(1).randrange(256) for _ in range(300))  # noqa: S311 - repeatable

    read, unread = kinds(
        tmp_path,
        {
            "packed.html": gzip.compress(b"<html><p>a</p></html>"),
            "picture.html": PNG,
            "paper.htm": PDF,
            "zip.html": ZIP,
            "noise.html": b"\0" + noise,
            "feed.html": feed,
            "text.html": b"only words",
            "wide.html": "<p>a".encode("utf-16-le"),
        },
    )

    assert read == {"packed.html": "html", "feed.html": "rss", "text.html": "html", "wide.html": "html"}
    assert unread == dict.fromkeys(["noise.html", "paper.htm", "picture.html", "zip.html"], "binary")


def test_each_file_by_its_own_kind(tmp_path: Path) -> None:
    """Texts beside pages and XML are texts; prose with a sample of XML in it is prose; ARC files are archives."""
    read, unread = kinds(
        tmp_path,
        {
            "index.html": b"<html>a",
            "a.txt": b"a note",
            "howto.txt": PROSE,
            "tag.txt": b"<p align=center>A logo</p>\n# A title",
            "page.txt": b"<!doctype html><p>a",
            "dump.xml": b"<r><doc><id>1</id><text>a</text></doc></r>",
            "old.arc": b"filedesc://a.arc 0.0.0.0 2000 text/plain 76\n<r><doc><id>1</id><text>a</text></doc></r>",
            "sample": PROSE,
        },
    )

    assert read == {
        "index.html": "html", "a.txt": "text", "howto.txt": "text", "tag.txt": "text", "page.txt": "html",
        "dump.xml": "xml", "old.arc": "warc",
    }  # fmt: skip
    assert unread == {"sample": "no records"}


def test_a_text_with_a_stray_zero_is_a_text(tmp_path: Path) -> None:
    """One zero byte, or one in a hundred, makes no file binary with the name of a text; more, or controls, do."""
    read, unread = kinds(
        tmp_path,
        {
            "one.txt": b"a note of\0 some words",
            "some.md": b"of some words " * 100 + b"\0" * 9,
            "many.txt": b"of some words " * 10 + b"\0" * 9,
            "data.txt": b"a\1b\2c\3\4\5\6\0" * 2,
            "data": b"some\0words",
        },
    )

    assert read == {"one.txt": "text", "some.md": "text"}
    assert unread == dict.fromkeys(["many.txt", "data.txt", "data"], "binary")


@pytest.mark.parametrize("settings", [("input.format=text",), ("input.format=html",), ()])
def test_magic_bytes_come_first(settings: tuple[str, ...], tmp_path: Path) -> None:
    """No format makes a document of a Word file, a PDF or an image; a text may begin like one."""
    table = b"id,text\n1,a\n"
    read, unread = kinds(
        tmp_path, {"a.docx": ZIP, "b.pdf": PDF, "c.html": JPEG, "d.txt": PNG, "e.txt": b"RIFF files\n", "f.csv": table},
        *settings,
    )  # fmt: skip

    assert unread == dict.fromkeys(["a.docx", "b.pdf", "c.html", "d.txt"], "binary")
    assert set(read) == {"e.txt", "f.csv"}


SAMPLES = b"\n# Title\n\nProse.\n```\n<items><item><text>x</text></item><item><text>y</text></item></items>\n```\n"
SAMPLES += b'{"id": 1, "text": "x"}\n'


@pytest.mark.parametrize(
    "start",
    [
        b'<p align="center">Logo</p>\n',
        b"<!-- badges -->\n",
        b"<details>a</details>",
        b"<a/> <b/> and",
        b'{ "a": 1 }\n',
        b"{% raw %}",
    ],
)
def test_a_text_that_begins_with_a_tag_or_a_brace(start: bytes, tmp_path: Path) -> None:
    """A text with samples of XML and JSON is a document, not its samples; lines of JSON by their name are lines."""
    read, unread = kinds(tmp_path, {"a.md": start + SAMPLES, "a.jsonl": b'{"id": 1, "text": "x"}\nprose\n'})
    assert (read, unread) == ({"a.md": "text", "a.jsonl": "jsonl"}, {})


def test_joined_files_of_xml_are_xml(tmp_path: Path) -> None:
    """Blanks, marks and declarations may stand between them; a tag may be cut at the end of what is looked at."""
    one = b'\xef\xbb\xbf<?xml version="1.0"?>\n<!DOCTYPE doc []>\n<doc><id>1</id><text>a</text></doc>\r\n<!-- - -->\0'
    cut = b"<doc><id>1</id><text>" + b"a" * 4_000 + b"</text></doc>\n"

    assert kinds(tmp_path, {"a.txt": one * 3, "b.txt": cut * 100}) == ({"a.txt": "xml", "b.txt": "xml"}, {})
