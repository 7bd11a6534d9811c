"""The folder of a run: when its files are written, fingerprints, and what may be replaced."""

import json
from pathlib import Path

import pytest

from nddup.errors import IncompatibleSketchError, NotARunError, OutputError, OutputExistsError, UnfinishedRunError
from nddup.storage import run_folder as module
from nddup.storage.local_folder import LocalFolder
from nddup.storage.run_folder import versions
from tests.storage.saved_tables import INPUTS, ONE_KEPT, fingerprints, names, save, started


def test_a_run_is_complete_only_at_its_end(tmp_path: Path) -> None:
    """The folder is marked as a run from the start, and as complete only at the very end."""
    path = tmp_path / "out"
    folder = started(path)
    save(folder, "keep", ["input"], ONE_KEPT)
    before = names(path)

    folder.write_text("duplicates.txt", iter(["a\tb\t3\n"]))
    folder.finish({"versions": versions()})

    assert before == {"_RUN.json", "_stages", "keep"}
    assert names(path) == {*before, "duplicates.txt", "metrics.json", "_COMPLETE"}
    assert folder.read("keep").equals(ONE_KEPT)
    assert folder.open() == {"versions": versions()}
    header = json.loads((path / "_RUN.json").read_text())
    assert header == {"layout": 1, "versions": versions(), "settings": {}, "inputs": INPUTS}


def test_fingerprints_follow_all_that_a_table_is_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changed settings, inputs, code, libraries, Python or upstream tables change a fingerprint; equal ones do not."""
    first = fingerprints(started(tmp_path / "a"), size=1)
    same = fingerprints(started(tmp_path / "b"), size=1)
    settings = fingerprints(started(tmp_path / "c"), size=2)
    changed = {**INPUTS, "files": {"a.xml": [10, 2]}}
    inputs = fingerprints(started(tmp_path / "d", changed), size=1)
    with monkeypatch.context() as patched:
        patched.setattr(module, "code_fingerprint", lambda: "other code")
        code = fingerprints(started(tmp_path / "e"), size=1)
    with monkeypatch.context() as patched:
        patched.setattr(module, "library_versions", lambda: {"selectolax": "0.0.1"})
        library = fingerprints(started(tmp_path / "f"), size=1)
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0")
    python = fingerprints(started(tmp_path / "g"), size=1)

    assert first == same
    for other in (settings, inputs, code, library, python):
        assert not set(first) & set(other)


def test_a_dropped_table_leaves_its_note(tmp_path: Path) -> None:
    """A dropped working table keeps its note."""
    folder = started(tmp_path / "out")
    fingerprints(folder)

    folder.drop("members", made=[])

    assert sorted(path.name for path in (tmp_path / "out" / "_stages").iterdir() if path.name[0] != ".") == [
        "keep.json",
        "members.json",
    ]


def test_existing_output_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Existing files are refused and left alone; with `overwrite` too, unless they are a run."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    for name in ("file", "full"):
        with pytest.raises(OutputExistsError, match="exists already; give another folder, or --overwrite to"):
            LocalFolder(str(tmp_path / name)).start(settings={}, inputs=INPUTS, overwrite=False)
        with pytest.raises(OutputExistsError, match="holds files that are no run of nddup; it is not overwritten"):
            LocalFolder(str(tmp_path / name)).start(settings={}, inputs=INPUTS, overwrite=True)

    assert (tmp_path / "file").read_text() == (tmp_path / "full" / "mine").read_text() == "mine"


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    """An empty folder may be the output of a run."""
    (tmp_path / "out").mkdir()

    started(tmp_path / "out")

    assert (tmp_path / "out" / "_RUN.json").exists()


def test_overwrite_replaces_a_run_whole(tmp_path: Path) -> None:
    """With `overwrite`, nothing of the earlier run stays, and what others put beside it is left alone."""
    folder = started(tmp_path / "out")
    folder.write_text("duplicates.txt", "old")
    folder.finish({})
    (tmp_path / "out" / "judged.csv").write_text("mine")

    with folder:
        folder.start(settings={}, inputs=INPUTS, overwrite=True)

    assert names(tmp_path / "out") == {"_RUN.json", "_stages", "judged.csv"}
    assert (tmp_path / "out" / "judged.csv").read_text() == "mine"


def test_overwrite_does_not_remove_an_input(tmp_path: Path) -> None:
    """A run whose kept documents are the next run's input is not overwritten by that run."""
    folder = started(tmp_path / "out")
    (tmp_path / "out" / "kept").mkdir()
    (tmp_path / "out" / "kept" / "part").write_text("mine")
    inputs = {"paths": [f"{tmp_path}/out/kept"], "files": {}}

    with pytest.raises(OutputError, match=r"holds INPUT .*/kept, which would be removed"):
        folder.start(settings={}, inputs=inputs, overwrite=True)

    assert (tmp_path / "out" / "kept" / "part").read_text() == "mine"


def test_only_finished_runs_of_this_sketch_format_are_opened(tmp_path: Path) -> None:
    """A missing folder, a folder of no run, an unfinished run, and another sketch format are refused, each by name."""
    with pytest.raises(NotARunError, match="no such folder"):
        LocalFolder(str(tmp_path / "none")).open()
    (tmp_path / "other").mkdir()
    with pytest.raises(NotARunError, match="is not a run of nddup"):
        LocalFolder(str(tmp_path / "other")).open()
    folder = started(tmp_path / "out")
    with pytest.raises(UnfinishedRunError, match="the run did not finish; what it holds is not a result"):
        folder.open()
    folder.finish({"versions": {"sketch_format": "0/unicode-0"}})
    with pytest.raises(IncompatibleSketchError, match="its sketches are of format 0/unicode-0, this version reads"):
        folder.open()


def test_only_known_outputs_are_written(tmp_path: Path) -> None:
    """An output that is not in OUTPUTS is refused: it would stay when settings change."""
    with pytest.raises(ValueError, match=r"other.txt is not in OUTPUTS"):
        started(tmp_path / "out").write_text("other.txt", "")
