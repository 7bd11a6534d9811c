"""Files that cannot be rewritten are refused in one line, and nothing that looks finished is left."""

import errno
import json
from pathlib import Path
from typing import Any, get_args

import pytest

from nddup.embedded.rewrite import RewrittenFile
from nddup.embedded.run import run_locally
from nddup.errors import ConfigError, NddupError
from nddup.reading.formats import FILE_KINDS, Kind
from nddup.rewriting.rewrite_file import STREAMED, can_rewrite
from nddup.settings.load import build_config
from tests.rewriting.written_shards import FORMS, write_parquet, write_shards
from tests.samples_by_night import every

TAGGED: dict[str, Any] = {"tagged": "as-input", "report": False}


def run(source: Path, output: Path, *, resume: bool = False, **writes: Any) -> None:  # noqa: ANN401
    """Run the embedded engine."""
    config = build_config({"output": {"report": False, **writes}}, origin="test")
    run_locally([str(source)], str(output), config, resume=resume)


def test_a_page_cannot_be_tagged(tmp_path: Path) -> None:
    """Tagging pages is refused before anything is written; kept pages are copied, and removed ones are left out."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name, text in {"a": "some words of a page", "sub/b": "some words of a page", "c": "another page"}.items():
        (tmp_path / "in" / f"{name}.html").write_text(f"<html><p>{text}</p></html>")

    with pytest.raises(ConfigError, match=r"output\.tagged: a\.html is a page"):
        run(tmp_path / "in", tmp_path / "out", **TAGGED)
    assert not (tmp_path / "out").exists()
    run(tmp_path / "in", tmp_path / "out", kept="as-input")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out" / "kept").rglob("*.html")}
    assert kept == {name: (tmp_path / "in" / name).read_bytes() for name in ("a.html", "c.html")}


def test_a_kind_that_nothing_writes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that is read as a stream, and is not written again, is refused before anything is read; none is so now."""
    assert set(FILE_KINDS) == set(get_args(Kind))
    assert all(map(can_rewrite, FILE_KINDS))

    monkeypatch.delitem(STREAMED, "mail")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.eml").write_text("Subject: some words\n\nof a message\n")
    for output in ({"kept": "as-input"}, TAGGED):
        with pytest.raises(ConfigError, match=r"^output\.[a-z]+: a\.eml: files of the format mail cannot be"):
            run(tmp_path / "in", tmp_path / "out", **output)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", every(3, ["jsonl", "xml", "rows", "trec", "warc", "csv", "parquet"]))
def test_tags_are_not_put_twice(name: str, tmp_path: Path) -> None:
    """A tagged collection is not tagged again, which would give its records two of each tag."""
    if name == "parquet":
        write_parquet(tmp_path / "in")
    else:
        write_shards(FORMS[name], tmp_path / "in")
    run(tmp_path / "in", tmp_path / "out", **TAGGED)

    with pytest.raises(NddupError, match="has nddup tags already"):
        run(tmp_path / "out" / "tagged", tmp_path / "again", **TAGGED)
    assert not (tmp_path / "again" / "tagged").exists()
    assert not (tmp_path / "again" / "_COMPLETE").exists()


def test_a_full_disk_leaves_nothing_that_looks_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk ends the run in one line that names the file; the run can be resumed once there is space."""
    source = write_shards(FORMS["jsonl"], tmp_path / "in")

    def fill(self: RewrittenFile, pieces: Any) -> None:  # noqa: ANN401
        target = self.folder / "part.jsonl"
        target.write_bytes(next(pieces)[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(RewrittenFile, "_write", fill)
        with pytest.raises(NddupError, match=r"kept/.*jsonl: cannot be written \(No space left on device\)$"):
            run(source, tmp_path / "out", kept="as-input")
    assert not list((tmp_path / "out").rglob("*.jsonl"))
    assert not (tmp_path / "out" / "_COMPLETE").exists()

    run(source, tmp_path / "out", resume=True, kept="as-input")
    assert len(list((tmp_path / "out" / "kept").rglob("*.jsonl"))) == 2


def test_a_limit_leaves_out_what_was_not_read(tmp_path: Path) -> None:
    """With `input.limit` only the records that were read are kept or tagged."""
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"id": str(i), "text": f"w{i} x{i}"}) + "\n" for i in range(9))
    )
    config = build_config({"input": {"limit": 4}, "output": {"kept": "as-input", **TAGGED}}, origin="test")
    run_locally([str(tmp_path / "a.jsonl")], str(tmp_path / "out"), config)

    for at in ("kept", "tagged"):
        found = (tmp_path / "out" / at / "a.jsonl").read_text().splitlines()
        assert [json.loads(line)["id"] for line in found] == ["0", "1", "2", "3"]


def test_broken_records_are_left_out_or_left_alone(tmp_path: Path) -> None:
    """A kept file has none of its broken records and is well-formed; a tagged file has them unchanged."""
    record = "<doc><id>{0}</id><text>{1}</text></doc>"
    records = [
        record.format("a", "some text"), "<doc><id>b</id><text><b>open</text></doc>",
        record.format("c", "<![CDATA[an end tag </doc> inside]]>"), record.format("d", "more text"),
        record.format("e", "x" * 3_000), "<doc><id>f</id><text>cut",
    ]  # fmt: skip
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xml").write_text("<docs>\n" + "\n".join(records))
    (tmp_path / "in" / "a.csv").write_text('id,text\n1,one text\n2,"an open quote\n3,two,many\n\n4,a fourth text\n')
    settings = {"input": {"max_record": 2_000, "max_rejects": None}, "output": {"kept": "as-input", **TAGGED}}
    run_locally([str(tmp_path / "in")], str(tmp_path / "out"), build_config(settings, origin="test"))

    kept, tagged = (tmp_path / "out" / at for at in ("kept", "tagged"))
    assert (kept / "a.xml").read_text() == f"<docs>\n{records[0]}\n{records[2]}\n{records[3]}\n</docs>\n"
    assert (kept / "a.csv").read_text() == "id,text\n1,one text\n4,a fourth text\n"
    written = (tagged / "a.xml").read_text()
    assert [part for part in (records[1], records[4], records[5]) if part not in written] == []
    assert written.count("nddup:kept") == 3
    assert '2,"an open quote\n3,two,many,,,,\n\n4,' in (tagged / "a.csv").read_text()
