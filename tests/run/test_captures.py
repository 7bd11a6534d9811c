"""Archives of the web: dates, statuses and revisits decide what is a document, and which of several is kept."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator
from pyspark.sql import SparkSession

from nddup.checking.check_run import check_run
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.engines.engine import text_places
from nddup.errors import ConfigError
from nddup.settings.load import build_config
from nddup.spark.run import run_job
from tests import samples_by_night
from tests.counted_rows import once_each
from tests.run.crawls import CRAWL, Made, words, write_crawl


def run_of(tmp_path: Path, source: Path, *, is_checked: bool = True, **settings: dict[str, Any]) -> DuckRun:
    """Run the embedded engine, and check all that the run promises."""
    settings = {"output": {"report": False}} | settings
    run_locally([str(source)], str(tmp_path / "run"), build_config(settings, origin="test"))
    run = DuckRun(str(tmp_path / "run"))
    assert not is_checked or check_run(run).is_sound
    return run


def verdicts(folder: Path) -> dict[str, tuple[bool, str | None, str | None]]:
    """Return what became of each document: kept, the id it duplicates, the reason."""
    rows = pq.read_table(folder / "keep").to_pylist()
    return once_each((row["doc_id"], (row["kept"], row["duplicate_of"], row["reason"])) for row in rows)


def copies(first: str, others: Mapping[str, str] | list[str]) -> dict[str, tuple[bool, str | None, str | None]]:
    """Return the verdicts on a kept document and its exact copies."""
    return {f"urn:x:{first}": (True, None, None)} | {
        f"urn:x:{one}": (False, f"urn:x:{first}", "exact") for one in others
    }


@pytest.mark.parametrize("pack", samples_by_night.first(1, [gzip.compress, bytes]), ids=["gzip", "plain"])
def test_the_columns_of_a_capture_are_those_of_another_reader(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Date, status, media type, address, digest and place in the file are those that FastWARC finds."""
    data = b"".join(pack(one.warc()) for one in CRAWL)
    path = tmp_path / "a.warc"
    path.write_bytes(data)

    rows = run_of(tmp_path, path).sql("SELECT * FROM documents").to_pylist()

    found = once_each((row["doc_id"], row) for row in rows)
    compared = 0
    for record in ArchiveIterator(io.BytesIO(data), parse_http=True):
        row = found.get(record.headers["WARC-Record-ID"].strip("<>"))
        if row is None:
            continue
        told = (row["status"], row["target_uri"], row["payload_digest"], row["file_offset"], row["record_type"])
        of_other = (record.http_headers.status_code, record.headers["WARC-Target-URI"],
                    record.headers["WARC-Payload-Digest"], record.stream_pos, record.headers["WARC-Type"])  # fmt: skip
        assert told == of_other
        assert row["date"] == record.headers["WARC-Date"][:19] + "Z"
        assert row["media_type"] == "text/html"
        compared += 1
    assert compared == len(rows) == 6


def test_other_formats_have_no_captures(tmp_path: Path) -> None:
    """The columns of captures are null for records of any other format."""
    (tmp_path / "a.jsonl").write_text('{"id": "a", "text": "some words", "date": "2020"}\n')

    rows = run_of(tmp_path, tmp_path / "a.jsonl").sql("SELECT date, status, record_type, file_offset FROM documents")

    assert rows.to_pylist() == [{"date": None, "status": None, "record_type": None, "file_offset": None}]


@pytest.mark.parametrize(
    ("policy", "first", "others"),
    [
        ("longest", "z", ["a", "b"]),
        pytest.param("oldest", "z", ["a", "b"], marks=pytest.mark.nightly),
        ("newest", "a", ["z", "b"]),
        pytest.param(["-WARC-Date"], "a", ["z", "b"], marks=pytest.mark.nightly),
        (["X-Rank"], "z", ["a", "b"]),
        pytest.param("first-id", "a", ["z", "b"], marks=pytest.mark.nightly),
    ],
)
def test_identical_captures_are_kept_by_date(
    tmp_path: Path, policy: str | list[str], first: str, others: list[str]
) -> None:
    """Of equal pages the older stays, unless the policy says otherwise; a revisit never, however new it is."""
    is_checked = policy in ("oldest", "first-id")
    run = run_of(tmp_path, write_crawl(tmp_path / "in"), is_checked=is_checked, keep={"policy": policy})

    assert verdicts(Path(run.path)) == copies(first, others) | copies("c", ["d", "e"])


def test_a_revisit_may_precede_what_it_repeats(tmp_path: Path) -> None:
    """Where texts are compared, that of a revisit is read from the record that has it, in whichever file that is."""
    page, address = words(1, length=300), "http://a.example/"
    early = Made("early", address, page, "2024-01-01T00:00:00Z", kind="revisit")
    late = Made("late", address, page, "2020-01-01T00:00:00Z")
    near = Made("near", "http://b.example/", f"{page} and more", "2020-01-01T00:00:00Z")
    write_crawl(tmp_path / "in" / "1", [early, near])
    write_crawl(tmp_path / "in" / "2", [late])

    run = run_of(tmp_path, tmp_path / "in")

    pairs = run.sql("SELECT doc_a, doc_b, resemblance FROM pairs ORDER BY doc_a, doc_b").to_pylist()
    assert [(one["doc_a"], one["doc_b"]) for one in pairs] == [
        ("urn:x:early", "urn:x:late"), ("urn:x:early", "urn:x:near"), ("urn:x:late", "urn:x:near"),
    ]  # fmt: skip
    assert [one["resemblance"] for one in pairs] == [1.0, 296 / 298, 296 / 298]


@pytest.mark.parametrize(
    ("session_or_none", "form"),
    [
        ("local", "jsonl"),
        ("local", "parquet"),
        pytest.param("spark", "parquet", marks=pytest.mark.spark),
        pytest.param("spark", "jsonl", marks=[pytest.mark.spark, pytest.mark.nightly]),
    ],
    indirect=["session_or_none"],
)
def test_a_kept_revisit_has_the_text_that_it_repeats(
    session_or_none: SparkSession | None, tmp_path: Path, form: str
) -> None:
    """It is kept where its original may not stand for it; it is written beside that, from whichever file has it."""
    page, address = words(1), "http://a.example/"
    write_crawl(tmp_path / "in" / "1", [Made("early", address, page, "2024-01-01T00:00:00Z", kind="revisit")])
    write_crawl(tmp_path / "in" / "2", [Made("other", "http://b.example/", words(2), "2020-01-01T00:00:00Z")])
    write_crawl(tmp_path / "in" / "3", [Made("late", address, page, "2020-01-01T00:00:00Z")])
    settings = {"output": {"report": False, "kept": form}, "keep": {"same": ["nddup_source"]}}
    config, output = build_config(settings, origin="test"), tmp_path / "out"
    if session_or_none is None:
        run_locally([str(tmp_path / "in")], str(output), config)
    else:
        run_job(session_or_none, [str(tmp_path / "in")], str(output), config)

    files = sorted((output / "kept").iterdir())
    if form == "jsonl":
        rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    else:
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert [row["doc_id"] for row in rows] == ["urn:x:other", "urn:x:early", "urn:x:late"]
    assert [row["source"] for row in rows] == ["2/crawl.warc.gz", "1/crawl.warc.gz", "3/crawl.warc.gz"]
    assert rows[1]["content"] == rows[2]["content"] != rows[0]["content"]


def test_a_revisit_is_the_copy_of_what_it_refers_to(tmp_path: Path) -> None:
    """Found by id, by digest, or by address and date, it is an exact duplicate; else it is counted as `revisit`."""
    run = run_of(tmp_path, write_crawl(tmp_path / "in"))

    rejects = run.sql("SELECT doc_id, reason FROM rejects ORDER BY doc_id").to_pylist()
    assert [tuple(row.values()) for row in rejects] == [
        ("urn:x:lost", "revisit"),
        ("urn:x:moved", "status"),
        ("urn:x:style", "not text"),
    ]


def test_the_text_of_a_revisit_is_that_of_what_it_repeats(tmp_path: Path) -> None:
    """In whatever file that is: `check` recounts its pairs, and the report shows it."""
    near = Made("near", "http://f.example/", words(1) + " and more", "2025-01-01T00:00:00Z")
    again = Made("a", "http://a.example/", words(1), "2024-01-01T00:00:00Z", kind="revisit")
    for name, one in {"1": again, "2": CRAWL[0], "3": near}.items():
        write_crawl(tmp_path / "in" / name, [one])

    run = run_of(tmp_path, tmp_path / "in", output={})

    texts = once_each((row["doc_id"], row["text"]) for row in run.sql("SELECT doc_id, text FROM texts").to_pylist())
    assert texts["urn:x:a"] == texts["urn:x:z"] == words(1)
    assert text_places(run, ["urn:x:a", "nobody"])["urn:x:a"][0] == "2/crawl.warc.gz"
    run = run_of(tmp_path / "later", tmp_path / "in", output={"texts": 0})
    assert main(["report", run.path, "--doc", "urn:x:a"]) == 0
    assert main(["show", run.path, "--extents"]) == 0


def test_every_status_is_read_if_that_is_asked(tmp_path: Path) -> None:
    """`input.statuses` says which answers are documents; redirects and error pages are none by default."""
    source = write_crawl(tmp_path / "in")

    run = run_of(tmp_path, source, input={"statuses": "all"})
    assert run.sql("SELECT status FROM documents WHERE doc_id = 'urn:x:moved'").to_pylist() == [{"status": 301}]
    with pytest.raises(ConfigError, match=r"input.statuses: .*100 to 599"):
        build_config({"input": {"statuses": [20]}}, origin="test")


def test_dates_need_captures(tmp_path: Path) -> None:
    """An order by dates over files that have no captures is refused, with what to write instead."""
    (tmp_path / "a.jsonl").write_text('{"id": "a", "text": "some words"}\n')

    with pytest.raises(ConfigError, match=r"keep.policy newest: needs captures .* keep.policy=\[-date\]"):
        run_of(tmp_path, tmp_path / "a.jsonl", keep={"policy": "newest"})


@pytest.mark.parametrize("pack", samples_by_night.first(1, [gzip.compress, bytes]), ids=["gzip", "plain"])
def test_arc_is_read_as_warc(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """The older form of an archive gives the same pages with address, date, status and place; a cut one says so."""
    body = b"1 0 Maker\nURL IP-address Archive-date Content-type Archive-length\n"
    start = f"filedesc://x.arc 0.0.0.0 20200101000000 text/plain {len(body)}\n".encode() + body + b"\n"
    pages = [one for one in CRAWL if one.kind == "response"]
    records = [pack(part) for part in (start, *(one.arc() for one in pages))]
    path = tmp_path / "a.arc.gz"
    path.write_bytes(b"".join(records))

    run = run_of(tmp_path, path, output={"kept": "as-input"})

    rows = run.sql("SELECT doc_id, url, date, status, file_offset FROM documents ORDER BY doc_key").to_pylist()
    offsets = [sum(map(len, records[:at])) for at in range(1, 4)]
    assert [tuple(row.values()) for row in rows] == [
        (f"a.arc.gz#{at + 1}", one.uri, one.date[:19] + "Z", 200, offsets[at]) for at, one in enumerate(pages[:3])
    ]
    assert {row["reason"] for row in run.sql("SELECT reason FROM rejects").to_pylist()} == {"status", "not text"}
    kept = (Path(run.path) / "kept" / "a.arc.gz").read_bytes()
    whole = gzip.decompress(kept) if pack is gzip.compress else kept
    assert whole == b"".join([start, *(pages[at].arc() for at in (0, 2, 3, 4))])


def test_bytes_between_the_records_of_an_arc_are_one_reject(tmp_path: Path) -> None:
    """After bytes that begin no record, reading goes on at the next line that begins one."""
    start = b"filedesc://x.arc 0.0.0.0 20200101000000 text/plain 4\nx\ny\n\n"
    path = tmp_path / "a.arc"
    path.write_bytes(start + CRAWL[0].arc() + b"no record\nfor two lines\n" + CRAWL[3].arc())

    run = run_of(tmp_path, path)

    assert run.sql("SELECT url FROM documents ORDER BY doc_key")["url"].to_pylist() == [CRAWL[0].uri, CRAWL[3].uri]
    assert run.sql("SELECT reason FROM rejects").to_pylist() == [{"reason": "malformed"}]


def write_wacz(path: Path, how: int = zipfile.ZIP_STORED) -> Path:
    """Write a WACZ file of two WARC files, as web recorders do: stored, with an index and pages beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", how) as packed:
        packed.writestr("archive/a.warc.gz", b"".join(gzip.compress(one.warc()) for one in CRAWL[:3]))
        packed.writestr("archive/b.warc", b"".join(one.warc() for one in CRAWL[3:6]))
        packed.writestr("indexes/index.cdx", " CDX N b a m s k r M S V g")
        packed.writestr(
            "pages/pages.jsonl", '{"format": "json-pages-1.0"}\n{"url": "http://a.example/", "text": "a"}\n'
        )
        packed.writestr("datapackage.json", "{}")
    return path


@pytest.mark.parametrize("how", samples_by_night.first(1, [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED]))
def test_the_warc_files_of_a_wacz_file_are_read(tmp_path: Path, how: int) -> None:
    """Each has a name of its own, its revisits find what they repeat, and the kept records are written again."""
    run = run_of(tmp_path, write_wacz(tmp_path / "in" / "c.wacz", how), output={"kept": "as-input"})

    rows = run.sql(
        "SELECT source, record, file_offset FROM documents WHERE doc_id IN ('urn:x:z', 'urn:x:c')"
    ).to_pylist()
    assert sorted(map(tuple, (row.values() for row in rows))) == [
        ("c.wacz!archive/a.warc.gz", 1, 0),
        ("c.wacz!archive/b.warc", 1, 0),
    ]
    assert verdicts(Path(run.path)) == copies("z", ["a", "b"]) | copies("c", ["d", "e"])
    kept = (Path(run.path) / "kept" / "c.wacz!archive" / "a.warc.gz").read_bytes()
    assert gzip.decompress(kept) == CRAWL[0].warc()


def test_a_damaged_wacz_file_is_named(tmp_path: Path) -> None:
    """A WACZ file that is no ZIP archive, and one whose member is damaged, are rejects beside what can be read."""
    write_crawl(tmp_path / "in")
    (tmp_path / "in" / "cut.wacz").write_bytes(b"PK\3\4 and no more" + bytes(50))
    whole = write_wacz(tmp_path / "in" / "c.wacz").read_bytes()
    at = whole.index(b"\x1f\x8b") + 150
    (tmp_path / "in" / "c.wacz").write_bytes(whole[:at] + b"????" + whole[at + 4 :])

    run = run_of(tmp_path, tmp_path / "in")

    rows = run.sql("SELECT source, reason FROM rejects ORDER BY source, record").to_pylist()
    assert ("cut.wacz", "damaged") in [tuple(row.values()) for row in rows]
    assert ("c.wacz!archive/a.warc.gz", "damaged") in [tuple(row.values()) for row in rows]


def test_both_engines_read_a_crawl_alike(tmp_path: Path, spark: SparkSession) -> None:
    """Documents, rejects and the keep-list of a crawl with revisits are the same on Spark."""
    write_wacz(tmp_path / "in" / "c.wacz")
    source = str(write_crawl(tmp_path / "in").parent)
    config = build_config({"keep": {"policy": "newest"}}, origin="test")
    run_locally([source], str(tmp_path / "one"), config)
    run_job(spark, [source], str(tmp_path / "other"), config)

    for name, key in (("documents", "doc_id"), ("rejects", "record"), ("keep", "doc_id")):
        tables = [pq.read_table(tmp_path / folder / name).sort_by(key).to_pylist() for folder in ("one", "other")]
        assert tables[0] == tables[1]
