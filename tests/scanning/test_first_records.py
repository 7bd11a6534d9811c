"""Settings are checked against the first records of a collection, before a run, on real files of a folder."""

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.errors import ConfigError
from nddup.scanning.collection import Collection, find_files
from nddup.scanning.first_records import note_ids, note_others
from nddup.settings.schema import InputConfig
from nddup.storage.local_storage import LocalStorage

ROWS = [{"url": f"http://x/{i}", "text": f"some text {i}", "meta": {"body": "b"}} for i in range(3)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
PAGES = b"<pages>" + b"".join(b"<page><url>u%d</url><text>a text</text></page>" % i for i in range(3)) + b"</pages>"


def table() -> bytes:
    said = io.StringIO()
    csv.writer(said).writerows([["url", "text"], *((row["url"], row["text"]) for row in ROWS)])
    return said.getvalue().encode()


def parquet() -> bytes:
    said = io.BytesIO()
    pq.write_table(pa.table({"url": ["u1", "u2"], "text": ["a", "b"]}), said)
    return said.getvalue()


COLLECTIONS = {
    "a.jsonl": LINES,
    "a.jsonl.gz": gzip.compress(LINES),
    "a.csv": table(),
    "a.parquet": parquet(),
    "a.xml": PAGES,
}


def find(folder: Path, files: dict[str, bytes], **settings: str) -> Collection:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return find_files(LocalStorage(), [str(folder)], InputConfig(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", COLLECTIONS)
@pytest.mark.parametrize("settings", [{"id": "nope"}, {"content": "nope"}, {"content": "text+nope", "id": "nope"}])
def test_a_path_that_no_file_has_is_refused(name: str, settings: dict[str, str], tmp_path: Path) -> None:
    """The error is one line that names the path and the fields that are there."""
    with pytest.raises(ConfigError, match=r"nope.*url") as refused:
        find(tmp_path, {name: COLLECTIONS[name]}, **settings)

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_path_that_is_there_is_taken_and_one_that_is_not_set_is_named(name: str, tmp_path: Path) -> None:
    """Without `input.id`, a note says that ids are made up and which field could be the id."""
    found = find(tmp_path, {name: COLLECTIONS[name]}, id="url", content="text")
    assert note_ids(LocalStorage(), found.files) is None

    without = find(tmp_path, {})
    hint = "perhaps input.id=url, if no two records share it"
    assert note_ids(LocalStorage(), without.files) == f"{name}: no id found, using file#record; {hint}"


def test_a_field_that_repeats_is_not_named_as_the_id(tmp_path: Path) -> None:
    """A URL that the first records share is no id; the next field that tells them apart is named, or none."""
    lines = b'{"url": "u", "text": "a", "key": 1}\n{"url": "u", "text": "b", "key": 2}\n'
    found = find(tmp_path, {"a.jsonl": lines})

    said = note_ids(LocalStorage(), found.files)

    assert said is not None
    assert said.endswith("(its fields: url, text, key); set input.id to one that no two records share")


def test_other_elements_with_texts_beside_the_records_are_named(tmp_path: Path) -> None:
    """They are in no table: what is not read is said, unless the record is set; an image of a channel has no text."""
    record = "<{0}><id>{1}</id><text>a</text></{0}>"
    others = record.format("news", 2) + record.format("news", 3) + "<image><id>4</id><text/></image>"
    data = f"<r>{record.format('doc', 1)}{others}{record.format('doc', 5)}</r>".encode()

    said = note_others(LocalStorage(), find(tmp_path, {"a.xml": data}).files)

    assert said == "a.xml: <doc> is read, not <news> beside it with texts; input.record names one"
    assert note_others(LocalStorage(), find(tmp_path, {"a.xml": data}, record="doc").files) is None
    alone = data.replace(b"news", b"doc")
    assert note_others(LocalStorage(), find(tmp_path, {"a.xml": alone}).files) is None


def test_records_in_records_and_books_beside_articles_are_said(tmp_path: Path) -> None:
    """A record holds all that is in it, but its text is that at its own paths; of PubMed one element is the record."""
    answer = "<comment><id>2</id><text>b</text></comment>"
    data = f"<r><comment><id>1</id><text>a</text>{answer}</comment><comment><id>3</id><text>c</text></comment></r>"
    article = "<PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>a</ArticleTitle></Article>"
    article += "</MedlineCitation></PubmedArticle>"
    book = "<PubmedBookArticle><BookDocument><PMID>2</PMID></BookDocument></PubmedBookArticle><DeleteCitation/>"
    pubmed = f"<PubmedArticleSet>{article}{book}</PubmedArticleSet>"

    said = [note_others(LocalStorage(), find(tmp_path, {"a.xml": one.encode()}).files) for one in (data, pubmed)]

    assert said == [
        "a.xml: <comment> is read, not one in another, though it has a text too",
        "a.xml: <PubmedArticle> is read, not <PubmedBookArticle> beside it with texts; input.record names one",
    ]
    assert note_others(LocalStorage(), find(tmp_path, {"a.xml": data.replace(answer, "").encode()}).files) is None


def test_one_file_that_has_the_path_is_enough(tmp_path: Path) -> None:
    """A path that only one file has is accepted; the run counts the records that lack it."""
    found = find(tmp_path, {"a.jsonl": LINES, "b.jsonl": b'{"text": "t", "key": "k"}\n'}, id="key")

    assert len(found.files) == 2


def test_a_damaged_start_says_nothing_of_the_paths(tmp_path: Path) -> None:
    """A damaged start does not refuse a path: its records are rejects, and the run goes on to the good ones."""
    found = find(
        tmp_path,
        {"a.jsonl": b'{"id": "1", "text": "t"}\n'.replace(b"}", b"") * 3 + LINES * 60},
        id="url",
        content="text",
    )
    assert len(found.files) == 1

    torn = tmp_path / "torn"
    torn.mkdir()
    assert len(find(torn, {"a.jsonl": b'{"text": "t", "url": \n' * 5000}, id="url", content="text").files) == 1


def test_an_object_is_no_text_and_its_keys_are_named(tmp_path: Path) -> None:
    """An object is refused as content, and the error names its keys."""
    with pytest.raises(ConfigError, match=r"input.content=meta: no record .* has it; a.jsonl has url, text, meta.body"):
        find(tmp_path, {"a.jsonl": LINES}, content="meta")


def test_a_folder_of_texts_is_a_collection_of_them(tmp_path: Path) -> None:
    """Texts are documents, also beside a collection; Markdown is if it is alone."""
    texts = find(tmp_path, {"a.txt": b"one text", "b.txt": "тоже".encode("cp1251"), "x.png": b"\x89PNG\0\0"})
    assert [(file.source, head.format.name) for file, head in texts.files] == [("a.txt", "text"), ("b.txt", "text")]
    assert [file.source for file in texts.assets] == ["x.png"]
    assert texts.unread == ()

    notes = tmp_path / "notes"
    notes.mkdir()
    found = find(notes, {"one.md": b"# One", "two.md": b"two", "README.md": b"about"})
    assert sorted(file.source for file, _ in found.files) == ["one.md", "two.md"]

    beside = tmp_path / "beside"
    beside.mkdir()
    mixed = find(beside, {"a.jsonl": LINES, "note.txt": b"a note"})
    assert {file.source: head.format.name for file, head in mixed.files} == {"a.jsonl": "jsonl", "note.txt": "text"}


def test_content_counts_before_the_name(tmp_path: Path) -> None:
    """JSON lines and XML are recognised in files that are named as tables."""
    found = find(tmp_path, {"a.csv": LINES, "b.tsv.csv": b'<?xml version="1.0"?>' + PAGES, "c.csv": table()})

    assert {file.source: head.format.name for file, head in found.files} == {
        "a.csv": "jsonl", "b.tsv.csv": "xml", "c.csv": "csv",
    }  # fmt: skip


def test_lines_that_are_no_objects_may_come_first_in_a_file_of_that_name(tmp_path: Path) -> None:
    """They are rejects, as in the middle of the file; a file of another name is no JSON lines then."""
    lines = b"# made in May\nnull\n" + b"".join(b'{"id": "%d", "text": "a text"}\n' % n for n in range(2))

    found = find(tmp_path, {"a.jsonl": lines, "b.ndjson.gz": gzip.compress(lines), "c.odd": lines})

    assert [file.file.source for group in found.groups for file in group.files] == ["a.jsonl", "b.ndjson.gz"]
    assert {(group.head.format.name, group.head.format.content[-1]) for group in found.groups} == {("jsonl", "text")}
    assert [source for source, _, _ in found.unread] == ["c.odd"]


def test_a_file_that_is_one_document_names_parts_that_may_be_records(tmp_path: Path) -> None:
    """Those with a text and an id, of which there are several; paragraphs with ids are none."""
    for part, said in (
        ("unit", "a.xml: all of <dump> is one document; if each <unit> in it is one, set input.record=unit"),
        ("p", None),
    ):
        units = "".join(f"<{part} uid='{at}'>words {at}</{part}>" for at in range(3))
        files = find(tmp_path, {"a.xml": f"<dump><body>{units}</body></dump>".encode()}).files
        assert note_others(LocalStorage(), files) == said
