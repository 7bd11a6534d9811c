"""A document is identified by its id: repeated ids, with equal or other content, and generated ids."""

import json
from pathlib import Path

import pytest

import nddup.repository
from nddup.cli import main
from nddup.errors import ConfigError
from nddup.repository.close_components import tables_totals
from nddup.repository.opened_repository import Repository
from tests.repository.histories import rows_of, run_fresh

ONE, OTHER = "the text of a page that comes again", "the text of a page that was edited since"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Create a repository of two documents."""
    made = nddup.repository.create(str(tmp_path / "repo"))
    made.add({"a": ONE, "b": "something else"})
    return made


def test_the_same_again_changes_nothing(repo: Repository) -> None:
    """Adding the same documents again makes no version, with or without `replace`."""
    for replace in (False, True):
        written = repo.add({"a": ONE, "b": "something else"}, replace=replace)
        assert (written.commit, written.counts["unchanged"], repo.version) == (None, 2, 2)


def test_other_content_is_a_reject_or_replaces(repo: Repository) -> None:
    """Other content under a known id is rejected; with `replace` it is a removal and an addition in one version."""
    refused = repo.add({"a": OTHER, "c": "a third text"})
    assert refused.rejects["reason"].to_pylist() == ["repeated id"]
    assert refused.rejects["doc_id"].to_pylist() == ["a"]
    assert repo.tables()["documents"]["doc_id"].to_pylist() == ["a", "b", "c"]

    taken = repo.add({"a": OTHER}, replace=True)
    assert taken.changes.to_pylist() == [
        {"doc_id": "a", "was": "kept", "is": "kept", "duplicate_of": None, "cause": "replaced"}
    ]
    live = {"b": "something else", "c": "a third text", "a": OTHER}
    assert rows_of(repo.tables()) == rows_of(run_fresh(live, repo.snapshot.identity.config))


def test_earlier_versions_stay_readable(repo: Repository, tmp_path: Path) -> None:
    """A version can be opened by its number as long as its segments exist."""
    repo.remove(["a"])
    before = Repository(str(tmp_path / "repo"), 2)
    assert tables_totals(before.tables()) == dict(before.snapshot.commit.digests)
    assert len(before.tables()["documents"]) == 2
    assert len(repo.tables()["documents"]) == 1


def test_unknown_ids_are_listed(repo: Repository) -> None:
    """Unknown ids are listed; removing only unknown ids makes no version."""
    written, unknown = repo.remove(["a", "nobody", "none"])
    assert (unknown, written.counts["removed"], written.counts["unknown"]) == (["nobody", "none"], 1, 2)
    assert repo.remove(["nobody"])[0].commit is None


def test_made_up_ids_need_a_prefix(repo: Repository, tmp_path: Path) -> None:
    """Generated ids need a prefix, which makes those of each batch distinct; given ids stay unchanged."""
    path = tmp_path / "news.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ({"id": "n", "text": "first"}, {"text": "second"})))

    with pytest.raises(ConfigError, match=r"1 record has no id, .* or give --id-prefix"):
        repo.add([str(path)])
    assert repo.version == 2
    repo.add([str(path)], id_prefix="monday/")
    path.write_text(json.dumps({"text": "third"}) + "\n")
    repo.add([str(path)], id_prefix="tuesday/")

    ids = sorted(repo.tables()["documents"]["doc_id"].to_pylist())
    assert ids == ["a", "b", "monday/news.jsonl#2", "n", "tuesday/news.jsonl#1"]
    assert all(proof.holds for proof in repo.check())


def test_what_the_commands_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`add` names rejects and, in a frozen repository, unstored documents; `list`, `tables` and `check` read it."""
    repo, path = str(tmp_path / "pages"), tmp_path / "pages.jsonl"
    words = " ".join(f"w{i}" for i in range(60))
    rows = [{"id": "a", "text": words}, {"id": "b", "text": words + " more"}, {"id": "a", "text": "again"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["index", "create", repo, "--mode", "frozen", "--store", "kept"]) == 0
    capsys.readouterr()

    assert main(["index", "add", repo, str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{repo}: version 2, 1 document; 1 reject, 2 added"
    assert said[1:] == [
        "rejected: record 3 of pages.jsonl: repeated id (first seen as record 1 of pages.jsonl)",
        "not stored: a, a near-duplicate of b",
    ]
    assert main(["index", "check", repo]) == 0
    assert capsys.readouterr().out.count("ok ") == 9
    assert main(["index", "tables", repo, "--output", str(tmp_path / "out")]) == 0
    assert main(["show", str(tmp_path / "out")]) == 0
    assert "documents                        1" in capsys.readouterr().out
    assert main(["index", "list", repo]) == 0
    assert [line.split()[:1] for line in capsys.readouterr().out.splitlines()[2:4]] == [["1"], ["2"]]
    assert main(["index", "add", repo, str(tmp_path / "nowhere")]) == 2
    assert main(["index", "query", repo, str(path), "--bands", "60"]) == 2
