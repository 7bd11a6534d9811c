"""A resumed run: the tables that it reuses from its folder, and those that it does not trust."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nddup.errors import FolderInUseError, NddupError
from nddup.storage.claim import PREFIX
from nddup.storage.local_folder import LocalFolder
from nddup.storage.run_folder import OUTPUTS
from nddup.tables import KEEP
from tests.storage.saved_tables import INPUTS, ONE_KEPT, fingerprints, names, save, started
from tests.storage.test_claim import holder


def remade(path: Path, **settings: int) -> list[str]:
    """Return which of two tables, the second made from the first, a resumed run would make again."""
    with LocalFolder(str(path)) as folder:
        folder.start(settings={}, inputs=INPUTS, resume=True)
    found = {
        "keep": folder.note("keep", settings=settings, reads=["input"]),
        "members": folder.note("members", settings={}, reads=["keep"]),
    }
    return [name for name, kept in found.items() if kept is None]


def test_a_table_is_taken_again_with_what_was_counted(tmp_path: Path) -> None:
    """A resumed run reuses an unchanged table with its counts; if a setting changes, it remakes all that follows."""
    save(started(tmp_path / "out"), "keep", ["input"], ONE_KEPT)
    again = LocalFolder(str(tmp_path / "out"))

    again.start(settings={}, inputs=INPUTS, resume=True)
    counted = again.note("keep", settings={}, reads=["input"])

    assert counted == {"rows": {"keep": 1}}
    assert again.read("keep").equals(ONE_KEPT)
    fingerprints(started(tmp_path / "two"))
    assert remade(tmp_path / "two") == []
    assert remade(tmp_path / "two", size=3) == ["keep", "members"]


@pytest.mark.parametrize("harm", ["cut note", "empty note", "odd note", "no note", "cut file", "no file", "more files"])
def test_a_table_that_is_not_whole_is_not_trusted(tmp_path: Path, harm: str) -> None:
    """A table with a note that was cut off, or with other files than its note lists, is made again."""
    save(started(tmp_path / "out"), "keep", ["input"], ONE_KEPT)
    note = tmp_path / "out" / "_stages" / "keep.json"
    part = next((tmp_path / "out" / "keep").glob("part-*"))
    assert "keep" not in remade(tmp_path / "out")

    if harm.endswith("note"):
        text = {"cut": note.read_text()[:-20], "empty": "", "odd": "[1]"}.get(harm.split(maxsplit=1)[0])
        note.unlink() if text is None else note.write_text(text)
    elif harm == "cut file":
        part.write_bytes(part.read_bytes()[:-1])
    elif harm == "no file":
        part.unlink()
    else:
        part.with_name("part-more.parquet").write_bytes(part.read_bytes())

    assert "keep" in remade(tmp_path / "out")


def test_writing_a_table_again_takes_back_what_was_said_of_it(tmp_path: Path) -> None:
    """When a table is rewritten, its note is removed before its old files, so it counts as missing."""
    folder = started(tmp_path / "out")
    fingerprints(folder)

    folder.write("keep", KEEP.arrow.empty_table())

    assert not (tmp_path / "out" / "_stages" / "keep.json").exists()
    assert remade(tmp_path / "out") == ["keep"]


def test_a_dropped_table_is_missed_only_where_it_is_needed(tmp_path: Path) -> None:
    """A dropped table is not made again as long as the tables made from it are whole."""
    folder = started(tmp_path / "out")
    save(folder, "records", ["input"])
    save(folder, "keep", ["records"])
    folder.drop("records", made=["keep"])
    again = LocalFolder(str(tmp_path / "out"))
    again.start(settings={}, inputs=INPUTS, resume=True)

    assert again.has("records", settings={}, reads=["input"])
    assert again.has("keep", settings={}, reads=["records"])
    next((tmp_path / "out" / "keep").glob("part-*")).unlink()
    assert not again.has("records", settings={}, reads=["input"])


def test_a_result_is_taken_as_it_is_unless_something_changed(tmp_path: Path) -> None:
    """The marker stays if settings, inputs and files are unchanged; otherwise it is removed before any change."""
    folder = started(tmp_path / "out")
    fingerprints(folder)
    folder.finish({})
    again = LocalFolder(str(tmp_path / "out"))

    with again:
        assert again.start(settings={}, inputs=INPUTS, resume=True)
        assert (tmp_path / "out" / "_COMPLETE").exists()
        assert not again.start(settings={"size": 1}, inputs=INPUTS, resume=True)
        assert not (tmp_path / "out" / "_COMPLETE").exists()
        assert again.has("keep", settings={}, reads=["input"])
        again.finish({})
    next((tmp_path / "out" / "keep").glob("part-*")).unlink()
    assert not again.start(settings={"size": 1}, inputs=INPUTS, resume=True)


def test_a_run_that_was_killed_at_once_can_be_resumed_or_replaced(tmp_path: Path) -> None:
    """A folder with nothing but a half-written `_RUN.json` is a run, which can be resumed or replaced."""
    for name, resume in (("resumed", True), ("replaced", False)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_RUN.json").write_text('{"layo')

        with LocalFolder(str(tmp_path / name)) as folder:
            folder.start(settings={}, inputs=INPUTS, resume=resume, overwrite=not resume)

        assert json.loads((tmp_path / name / "_RUN.json").read_text())["inputs"] == INPUTS


def test_outputs_of_other_settings_do_not_stay(tmp_path: Path) -> None:
    """A resumed run removes the outputs of earlier tables, and at its end the tables that it does not make."""
    folder = started(tmp_path / "out")
    for name in ("keep", "pairs", "lexicon", "records"):
        save(folder, name, ["input"])
    for name in OUTPUTS:
        folder.write_text(f"{name}/part" if "." not in name else name, "{}")
    folder.finish({})
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert names(tmp_path / "out") >= OUTPUTS

    with LocalFolder(str(tmp_path / "out")) as again:
        assert not again.start(settings={"size": 1}, inputs=INPUTS, resume=True)
        during = names(tmp_path / "out")
        assert again.has("keep", settings={}, reads=["input"])
        again.write_text("duplicates.txt", "new")
        (tmp_path / "out" / "evaluation.json").write_text("{}")  # by a command that began before the resumed run
        again.finish({})

    assert not during & OUTPUTS
    assert names(tmp_path / "out") == {
        "_RUN.json", "_stages", "_COMPLETE", "metrics.json", "duplicates.txt", "keep", "notes.txt"
    }  # fmt: skip
    assert {"keep.json", "records.json"} <= names(tmp_path / "out" / "_stages")
    assert not {"pairs.json", "lexicon.json"} & names(tmp_path / "out" / "_stages")


@pytest.mark.parametrize("mode", ["resume", "overwrite"])
def test_a_folder_where_a_run_works_is_left_alone(tmp_path: Path, mode: str) -> None:
    """A run is neither resumed nor replaced while its process lives; after kill -9 it is at once."""
    out, said = tmp_path / "out", list[str]()
    folder = started(out)
    folder.write_text("duplicates.txt", "mine")
    folder.finish({})
    before = names(out)
    start: dict[str, Any] = {"settings": {"size": 1}, "inputs": INPUTS, mode: True, "say": said.append}
    with holder(out) as process:
        with pytest.raises(FolderInUseError, match=f"another run works there, process {process.pid} on "):
            LocalFolder(str(out)).start(**start)
        assert {name for name in names(out) if not name.startswith(PREFIX)} == before
        assert sum(name.startswith(PREFIX) for name in names(out)) == 1

    with LocalFolder(str(out)) as second:
        assert not second.start(**start)
        assert "taken over from process" in said[-1]
        assert "_COMPLETE" not in names(out)
    assert not any(name.startswith(PREFIX) for name in names(out))


def test_a_run_that_lost_its_folder_stops(tmp_path: Path) -> None:
    """A run that lost its folder stops before it writes, seals or clears a table, writes a file, or finishes."""
    with LocalFolder(str(tmp_path / "out")) as folder:
        folder.start(settings={}, inputs=INPUTS)
        save(folder, "keep", ["input"])
        next((tmp_path / "out").glob(f"{PREFIX}*")).unlink()

        steps: tuple[Callable[[], object], ...] = (
            lambda: folder.write("keep", KEEP.arrow.empty_table()),
            lambda: folder.seal("keep", settings={}, reads=["input"], counted={}),
            lambda: folder.clear("keep"),
            lambda: folder.write_text("duplicates.txt", ""),
            lambda: folder.finish({}),
        )
        for step in steps:
            with pytest.raises(NddupError, match="was taken over by another run"):
                step()

    assert names(tmp_path / "out") == {"_RUN.json", "_stages", "keep"}
