"""The run's folder: what is written when, fingerprints, and what may be replaced."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import IncompatibleSketchError, NddupError, OutputError
from nddup.spark.schemas import KEEP
from nddup.storage import versions as module
from nddup.storage.claim import PREFIX
from nddup.storage.run_folder import OUTPUTS
from nddup.storage.session_tables import MemoryStore
from nddup.storage.spark_folder import SparkFolder
from nddup.storage.versions import versions
from tests.storage.test_claim import holder

INPUTS: dict[str, Any] = {"paths": ["a.xml"], "files": {"a.xml": [10, 1]}}


def started(spark: SparkSession, path: Path, inputs: dict[str, Any] | None = None) -> SparkFolder:
    """A folder that a run has claimed; its claim is forgotten, as if its process had ended."""
    folder = SparkFolder(spark, str(path))
    folder.start(settings={}, inputs=inputs or INPUTS, overwrite=False)
    folder.__exit__()
    return folder


def names(path: Path) -> set[str]:
    """What lies in a folder, hidden files apart."""
    return {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}


def save(folder: SparkFolder, name: str, table: DataFrame, reads: list[str], **settings: int) -> DataFrame:
    """Write and seal a table with the columns of KEEP."""
    assert folder.find(name, KEEP, settings=settings, reads=reads) is None
    kept = folder.write(name, table, KEEP)
    folder.seal(name, settings=settings, reads=reads, counted={"rows": {name: 1}})
    return kept


def fingerprints(folder: SparkFolder, **settings: int) -> list[str]:
    """The fingerprints of a table, and of one made from it, under these settings."""
    empty = folder._spark.createDataFrame([], KEEP)  # noqa: SLF001
    save(folder, "keep", empty, ["input"], **settings)
    save(folder, "again", empty, ["keep"])
    notes = (Path(folder.path) / "_stages" / f"{name}.json" for name in ("keep", "again"))
    return [json.loads(note.read_text())["fingerprint"] for note in notes]


def test_a_run_is_complete_only_at_its_end(spark: SparkSession, tmp_path: Path) -> None:
    """The folder says from the start that it is a run, and at the very end that it is a result."""
    path = tmp_path / "out"
    folder = started(spark, path)
    kept = save(folder, "keep", spark.createDataFrame([("a", True, None, None)], KEEP), ["input"])
    before = names(path)

    folder.write_text("duplicates.txt", iter(["a\tb\t3\n"]))
    folder.finish({"versions": versions()})

    assert before == {"_RUN.json", "_stages", "keep"}
    assert names(path) == {*before, "duplicates.txt", "metrics.json", "_COMPLETE"}
    assert [row["doc_id"] for row in kept.collect()] == ["a"]
    assert folder.open() == {"versions": versions()}
    assert folder.table("keep").schema == KEEP
    header = json.loads((path / "_RUN.json").read_text())
    assert header == {"layout": 1, "versions": versions(), "settings": {}, "inputs": INPUTS}


def test_fingerprints_follow_all_that_a_table_is_made_of(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other settings, inputs, code, libraries, Python or upstream tables: another fingerprint; equal: the same."""
    first = fingerprints(started(spark, tmp_path / "a"), size=1)
    same = fingerprints(started(spark, tmp_path / "b"), size=1)
    settings = fingerprints(started(spark, tmp_path / "c"), size=2)
    changed = {**INPUTS, "files": {"a.xml": [10, 2]}}
    inputs = fingerprints(started(spark, tmp_path / "d", changed), size=1)
    with monkeypatch.context() as patched:
        patched.setattr(module, "code_fingerprint", lambda: "other code")
        code = fingerprints(started(spark, tmp_path / "e"), size=1)
    with monkeypatch.context() as patched:
        patched.setattr(module, "library_versions", lambda: {"selectolax": "0.0.1"})
        library = fingerprints(started(spark, tmp_path / "f"), size=1)
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0")
    python = fingerprints(started(spark, tmp_path / "g"), size=1)

    assert first == same
    for other in (settings, inputs, code, library, python):
        assert not set(first) & set(other)


def test_a_dropped_table_leaves_its_note(spark: SparkSession, tmp_path: Path) -> None:
    """Working tables go, what they were stays on record."""
    folder = started(spark, tmp_path / "out")
    fingerprints(folder)

    folder.drop("again", made=[])

    assert sorted(path.name for path in (tmp_path / "out" / "_stages").iterdir() if path.name[0] != ".") == [
        "again.json",
        "keep.json",
    ]


def test_existing_output_is_refused_and_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Without `overwrite` nothing that is there is touched."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    for name in ("file", "full"):
        with pytest.raises(OutputError, match="exists already; give another folder, or --overwrite to"):
            SparkFolder(spark, str(tmp_path / name)).start(settings={}, inputs=INPUTS, overwrite=False)
        with pytest.raises(OutputError, match="holds files that are no run of nddup; it is not overwritten"):
            SparkFolder(spark, str(tmp_path / name)).start(settings={}, inputs=INPUTS, overwrite=True)

    assert (tmp_path / "file").read_text() == (tmp_path / "full" / "mine").read_text() == "mine"


def test_an_empty_folder_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    """A folder with nothing in it may have been made for the run."""
    (tmp_path / "out").mkdir()

    started(spark, tmp_path / "out")

    assert (tmp_path / "out" / "_RUN.json").exists()


def test_overwrite_replaces_a_run_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing of the earlier run stays, finished or not."""
    folder = started(spark, tmp_path / "out")
    folder.write_text("duplicates.txt", "old")
    folder.finish({})

    with folder:
        folder.start(settings={}, inputs=INPUTS, overwrite=True)

    assert names(tmp_path / "out") == {"_RUN.json", "_stages"}


def test_overwrite_does_not_remove_an_input(spark: SparkSession, tmp_path: Path) -> None:
    """The kept documents of a run may be the next run's input, but not into the same folder."""
    folder = started(spark, tmp_path / "out")
    (tmp_path / "out" / "kept").mkdir()
    (tmp_path / "out" / "kept" / "part").write_text("mine")
    inputs = {"paths": [f"{tmp_path}/out/kept"], "files": {}}

    with pytest.raises(OutputError, match=r"holds INPUT .*/kept, which would be removed"):
        folder.start(settings={}, inputs=inputs, overwrite=True)

    assert (tmp_path / "out" / "kept" / "part").read_text() == "mine"


def test_only_finished_runs_of_this_sketch_format_are_opened(spark: SparkSession, tmp_path: Path) -> None:
    """No run, no end, another format: each refused with what it is."""
    with pytest.raises(OutputError, match="is not a run of nddup"):
        SparkFolder(spark, str(tmp_path / "none")).open()
    folder = started(spark, tmp_path / "out")
    with pytest.raises(OutputError, match="the run did not finish; what it holds is not a result"):
        folder.open()
    folder.finish({"versions": {"sketch_format": "0/unicode-0"}})
    with pytest.raises(IncompatibleSketchError, match="its sketches are of format 0/unicode-0, this version reads"):
        folder.open()


def test_tables_in_memory_are_computed_once(spark: SparkSession) -> None:
    """A kept table has the columns of its schema, does not change, and its plan does not hold what it is made of."""
    ids = spark.range(3).select(
        F.uuid().alias("doc_id"),
        F.lit(None).cast("boolean").alias("kept"),
        F.lit(None).cast("string").alias("duplicate_of"),
        F.lit(None).cast("string").alias("reason"),
        "id",
    )

    table = MemoryStore().write("keep", ids, KEEP)

    assert table.columns == KEEP.fieldNames()
    assert sorted(table.collect()) == sorted(table.collect())
    assert "Range" not in str(table._jdf.queryExecution().toString())  # noqa: SLF001


def remade(spark: SparkSession, path: Path, **settings: int) -> list[str]:
    """The names of what another attempt at the run would make again, of a table and one made of it."""
    with SparkFolder(spark, str(path)) as folder:
        folder.start(settings={}, inputs=INPUTS, resume=True)
    found = {
        "keep": folder.find("keep", KEEP, settings=settings, reads=["input"]),
        "again": folder.find("again", KEEP, settings={}, reads=["keep"]),
    }
    return [name for name, kept in found.items() if kept is None]


def test_a_table_is_taken_again_with_what_was_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Another attempt finds rows and counts of a table it would make the same; with another setting none made of it."""
    save(started(spark, tmp_path / "out"), "keep", spark.createDataFrame([("a", True, None, None)], KEEP), ["input"])
    again = SparkFolder(spark, str(tmp_path / "out"))

    again.start(settings={}, inputs=INPUTS, resume=True)
    kept = again.find("keep", KEEP, settings={}, reads=["input"])

    assert kept is not None
    assert kept.counted == {"rows": {"keep": 1}}
    assert [row["doc_id"] for row in kept.table.collect()] == ["a"]
    fingerprints(started(spark, tmp_path / "two"))
    assert remade(spark, tmp_path / "two") == []
    assert remade(spark, tmp_path / "two", size=3) == ["keep", "again"]


@pytest.mark.parametrize("harm", ["cut note", "empty note", "odd note", "no note", "cut file", "no file", "more files"])
def test_a_table_that_is_not_whole_is_not_trusted(spark: SparkSession, tmp_path: Path, harm: str) -> None:
    """A note that was not written to its end, and files that are not those of the note, count as nothing."""
    save(started(spark, tmp_path / "out"), "keep", spark.createDataFrame([("a", True, None, None)], KEEP), ["input"])
    note = tmp_path / "out" / "_stages" / "keep.json"
    part = next((tmp_path / "out" / "keep").glob("part-*"))
    (note.parent / ".keep.json.crc").unlink()  # a file system without checksums shows the half-written bytes
    assert "keep" not in remade(spark, tmp_path / "out")

    if harm.endswith("note"):
        text = {"cut": note.read_text()[:-20], "empty": "", "odd": "[1]"}.get(harm.split(maxsplit=1)[0])
        note.unlink() if text is None else note.write_text(text)
    elif harm == "cut file":
        part.write_bytes(part.read_bytes()[:-1])
    elif harm == "no file":
        part.unlink()
    else:
        part.with_name("part-more.parquet").write_bytes(part.read_bytes())

    assert "keep" in remade(spark, tmp_path / "out")


def test_writing_a_table_again_takes_back_what_was_said_of_it(spark: SparkSession, tmp_path: Path) -> None:
    """From the moment when its old files go, the table counts as missing."""
    folder = started(spark, tmp_path / "out")
    fingerprints(folder)

    folder.write("keep", spark.createDataFrame([], KEEP), KEEP)

    assert not (tmp_path / "out" / "_stages" / "keep.json").exists()
    assert remade(spark, tmp_path / "out") == ["keep"]


def test_a_dropped_table_is_missed_only_where_it_is_needed(spark: SparkSession, tmp_path: Path) -> None:
    """It is not made again while what was made of it is whole."""
    folder = started(spark, tmp_path / "out")
    empty = spark.createDataFrame([], KEEP)
    save(folder, "records", empty, ["input"])
    save(folder, "keep", empty, ["records"])
    folder.drop("records", made=["keep"])
    again = SparkFolder(spark, str(tmp_path / "out"))
    again.start(settings={}, inputs=INPUTS, resume=True)

    assert again.has("records", settings={}, reads=["input"])
    assert again.has("keep", settings={}, reads=["records"])
    next((tmp_path / "out" / "keep").glob("part-*")).unlink()
    assert not again.has("records", settings={}, reads=["input"])


def test_a_result_is_taken_as_it_is_unless_something_changed(spark: SparkSession, tmp_path: Path) -> None:
    """The marker stays for equal settings, inputs and files, and goes before anything is changed for others."""
    folder = started(spark, tmp_path / "out")
    fingerprints(folder)
    folder.finish({})
    again = SparkFolder(spark, str(tmp_path / "out"))

    with again:
        assert again.start(settings={}, inputs=INPUTS, resume=True)
        assert (tmp_path / "out" / "_COMPLETE").exists()
        assert not again.start(settings={"size": 1}, inputs=INPUTS, resume=True)
        assert not (tmp_path / "out" / "_COMPLETE").exists()
        assert again.has("keep", settings={}, reads=["input"])
        again.finish({})
    next((tmp_path / "out" / "keep").glob("part-*")).unlink()
    assert not again.start(settings={"size": 1}, inputs=INPUTS, resume=True)


def test_a_run_that_was_killed_at_once_can_be_resumed_or_replaced(spark: SparkSession, tmp_path: Path) -> None:
    """All that may be left of it is its name, half-written; it is a run all the same."""
    for name, resume in (("resumed", True), ("replaced", False)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_RUN.json").write_text('{"layo')

        with SparkFolder(spark, str(tmp_path / name)) as folder:
            folder.start(settings={}, inputs=INPUTS, resume=resume, overwrite=not resume)

        assert json.loads((tmp_path / name / "_RUN.json").read_text())["inputs"] == INPUTS


def test_outputs_of_other_settings_do_not_stay(spark: SparkSession, tmp_path: Path) -> None:
    """A resumed run removes what was written from other tables, and in the end the tables that it does not make."""
    folder = started(spark, tmp_path / "out")
    empty = spark.createDataFrame([], KEEP)
    for name in ("keep", "kept", "lexicon", "records"):
        save(folder, name, empty, ["input"])
    for name in OUTPUTS:
        folder.write_text(f"{name}/part" if "." not in name else name, "{}")
    folder.finish({})
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert names(tmp_path / "out") >= OUTPUTS

    with SparkFolder(spark, str(tmp_path / "out")) as again:
        assert not again.start(settings={"size": 1}, inputs=INPUTS, resume=True)
        during = names(tmp_path / "out")
        assert again.has("keep", settings={}, reads=["input"])
        again.write_text("duplicates.txt", "new")
        (tmp_path / "out" / "evaluation.json").write_text("{}")  # of the run before, by a command that began then
        again.finish({})

    assert not during & OUTPUTS
    assert names(tmp_path / "out") == {
        "_RUN.json", "_stages", "_COMPLETE", "metrics.json", "duplicates.txt", "keep", "notes.txt"
    }  # fmt: skip
    assert {"keep.json", "records.json"} <= names(tmp_path / "out" / "_stages")
    assert not {"kept.json", "lexicon.json"} & names(tmp_path / "out" / "_stages")


def test_only_known_outputs_are_written(spark: SparkSession, tmp_path: Path) -> None:
    """What is not listed would outlive a change of settings."""
    with pytest.raises(ValueError, match=r"other.txt is not in OUTPUTS"):
        started(spark, tmp_path / "out").write_text("other.txt", "")


@pytest.mark.parametrize("mode", ["resume", "overwrite"])
def test_a_folder_where_a_run_works_is_left_alone(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """Neither resumed nor replaced while its process lives; after kill -9 at once."""
    out, said = tmp_path / "out", list[str]()
    folder = started(spark, out)
    folder.write_text("duplicates.txt", "mine")
    folder.finish({})
    before = names(out)
    start: dict[str, Any] = {"settings": {"size": 1}, "inputs": INPUTS, mode: True, "say": said.append}
    with holder(out) as process:
        with pytest.raises(OutputError, match=f"another run works there, process {process.pid} on "):
            SparkFolder(spark, str(out)).start(**start)
        assert {name for name in names(out) if not name.startswith(PREFIX)} == before
        assert sum(name.startswith(PREFIX) for name in names(out)) == 1

    with SparkFolder(spark, str(out)) as second:
        assert not second.start(**start)
        assert "taken over from process" in said[-1]
        assert "_COMPLETE" not in names(out)
    assert not any(name.startswith(PREFIX) for name in names(out))


def test_a_run_that_lost_its_folder_stops(spark: SparkSession, tmp_path: Path) -> None:
    """Before it writes a table, seals it, writes a file or finishes."""
    empty = spark.createDataFrame([], KEEP)
    with SparkFolder(spark, str(tmp_path / "out")) as folder:
        folder.start(settings={}, inputs=INPUTS)
        save(folder, "keep", empty, ["input"])
        next((tmp_path / "out").glob(f"{PREFIX}*")).unlink()

        for step in (
            lambda: folder.write("keep", empty, KEEP),
            lambda: folder.seal("keep", settings={}, reads=["input"], counted={}),
            lambda: folder.clear("keep"),
            lambda: folder.write_text("duplicates.txt", ""),
            lambda: folder.finish({}),
        ):
            with pytest.raises(NddupError, match="was taken over by another run"):
                step()

    assert names(tmp_path / "out") == {"_RUN.json", "_stages", "keep"}
