"""Worker processes: they read the same rows as one process, a failing one names its file, and none loads pyspark."""

import json
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nddup.embedded import memory, processes, workers
from nddup.embedded.collapse import collapse
from nddup.embedded.processes import Processes, is_worth_it
from nddup.embedded.read_records import join_sketches, number_texts, read_records
from nddup.embedded.workers import Workers
from nddup.errors import NddupError
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import lists_of, ragged_of
from nddup.scanning.collection import find_files
from nddup.settings.plan import record_limits
from nddup.settings.schema import Config
from nddup.storage.local_storage import LocalStorage
from tests.embedded.breaking import Breaking
from tests.embedded.edited_texts import make_texts, write_lines
from tests.places import ROOT

SAMPLES = ROOT / "samples"


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send everything to worker processes, in tasks of 20 KB."""
    monkeypatch.setattr(workers, "TASK_BYTES", 20_000)
    monkeypatch.setattr(workers, "FEW_BYTES", 0)


def read(inputs: list[Path], count: int) -> pa.Table:
    """Return RECORDS without their places, read by `count` workers."""
    config = Config()
    with Workers(count) as some:
        collection = find_files(LocalStorage(), [str(path) for path in inputs], config.input)
        return read_records(collection, config, some).records.drop_columns(["split", "seq"])


@pytest.mark.usefixtures("small_tasks")
def test_processes_read_what_one_reads(tmp_path: Path) -> None:
    """Two processes return the same records in collection order as one, from files cut into tasks and whole ones."""
    lines = write_lines(tmp_path / "a.jsonl", make_texts(families=20))

    assert read([SAMPLES, lines], 2).equals(read([SAMPLES, lines], 1))


@pytest.mark.usefixtures("small_tasks")
def test_processes_sketch_given_texts_as_one_does() -> None:
    """Given texts, sent to the workers in files, come back as the same rows, in order."""
    texts = make_texts(families=10)
    given = number_texts(pa.table({"id": list(texts), "body": list(texts.values())}), id="id", text="body")
    config = Config()

    with Workers(2) as two, Workers(1) as one:
        found = [read_records(given, config, some).records for some in (two, one)]

    assert found[0].equals(found[1])
    assert found[0]["doc_id"].to_pylist() == sorted(texts)


@pytest.mark.parametrize("mapped", [0, 1 << 30])
def test_sketches_of_all_batches_are_joined_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: int) -> None:
    """Rows of any number of batches are the same rows, their ids one array that later steps take without a copy.

    More ids than are kept in memory lie in a file that is gone from its folder.
    """
    monkeypatch.setattr(memory, "MAPPED", mapped)
    lines = write_lines(tmp_path / "a.jsonl", make_texts(families=20))
    config = Config()
    with Workers(1) as one:
        found = read_records(find_files(LocalStorage(), [str(SAMPLES), str(lines)], config.input), config, one).records
    some = found.combine_chunks().to_batches(max_chunksize=4)
    batches = [some[0].slice(0, 0), *some, some[0].slice(0, 0)]

    with Workers(1, spool=tmp_path / "spool") as here:
        joined = join_sketches(batches, here)

    assert not (tmp_path / "spool").exists()
    assert joined.equals(found)
    assert len(some) > 2 * 64, "too few batches to be joined in several steps"
    assert not batches, "the batches are still held"
    assert np.shares_memory(ragged_of(joined["sketch"]).values, ragged_of(joined["sketch"]).values)
    assert joined["sketch"].num_chunks == 1
    assert join_sketches([], one).equals(found.slice(0, 0))


@pytest.mark.parametrize("mapped", [0, 1 << 30])
def test_rows_are_taken_into_memory_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: int) -> None:
    """Rows taken a few at a time, repeated and left out, are the same; chunks one after another are not copied."""
    monkeypatch.setattr(memory, "MAPPED", mapped)
    monkeypatch.setattr(workers, "TAKEN_IDS", 5)
    random = np.random.default_rng(3)
    sizes = random.integers(0, 9, 40)
    rows = Ragged(np.append(0, np.cumsum(sizes)), random.integers(0, 1 << 63, sizes.sum()).astype(np.uint64))
    order = random.integers(0, 40, 60)

    with Workers(1, spool=tmp_path / "spool") as one:
        taken = one.take_rows(rows, order)

    due = take_rows(rows, order)
    assert [part.tolist() for part in taken] == [part.tolist() for part in due]
    assert not (tmp_path / "spool").exists()
    column = lists_of(taken.offsets, pa.array(taken.values.view(np.int64)), most=20)
    assert column.num_chunks > 5
    again = ragged_of(column)
    assert [part.tolist() for part in again] == [part.tolist() for part in due]
    assert np.shares_memory(again.values, taken.values)
    turned = pa.chunked_array([*column.chunks[2:], *column.chunks[:2]])
    assert ragged_of(turned).values.view(np.int64).tolist() == [*chain.from_iterable(turned.to_pylist())]


@pytest.mark.parametrize("is_repeated", [False, True])
def test_ids_of_documents_are_those_read(tmp_path: Path, *, is_repeated: bool) -> None:
    """Without the rejects, which have no ids, the sketches are not copied; without a copy of a document they are."""
    line = json.dumps({"id": "f1", "text": " ".join(f"word{i}" for i in range(60))})
    others = [json.dumps({"id": f"f{n}", "text": f"text {n} of few words and no other"}) for n in range(2, 9)]
    lines = ["{damaged", line, *([line] * is_repeated), *others[:4], "{damaged", *others[4:]]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    config = Config()
    with Workers(1) as one:
        read = read_records(find_files(LocalStorage(), [str(tmp_path)], config.input), config, one)

    documents, rejects, _ = collapse(read.records, read.silent)

    assert len(rejects) == 2 + is_repeated
    due = dict(zip(read.records["doc_id"].to_pylist(), read.records["sketch"].to_pylist(), strict=True))
    assert documents["sketch"].to_pylist() == [due[name] for name in documents["doc_id"].to_pylist()]
    before, after = (ragged_of(table["sketch"]).values for table in (read.records, documents))
    assert np.shares_memory(before, after) == (not is_repeated)


def test_ids_that_cannot_be_kept_are_an_error_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes no ids ends the run with one line that says what to do."""
    monkeypatch.setattr(memory, "MAPPED", 0)
    lines = write_lines(tmp_path / "a.jsonl", make_texts())
    (tmp_path / "spool").write_text("a file where a folder is needed")
    with Workers(1, spool=tmp_path / "spool") as one, pytest.raises(NddupError, match=r"cannot be kept .* free space"):
        read_records(find_files(LocalStorage(), [str(lines)], Config().input), Config(), one)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize(("is_death", "said"), [(True, "the worker process ended"), (False, "the disk is gone")])
def test_a_failing_worker_names_its_file(tmp_path: Path, *, is_death: bool, said: str) -> None:
    """The error of a failing worker names the file; afterwards the workers can be used again."""
    lines = write_lines(tmp_path / "a.jsonl", make_texts())
    config = Config()
    collection = find_files(LocalStorage(), [str(lines)], config.input)
    with Workers(2) as some:
        with pytest.raises(NddupError, match=rf"a\.jsonl: cannot be read \(.*{said}"):
            some.scan(collection, Breaking(is_death), record_limits(config))

        assert len(read_records(collection, config, some).records) > 0


def test_a_run_loads_no_pyspark(tmp_path: Path) -> None:
    """Neither a run of the embedded engine nor its workers' module loads pyspark."""
    lines = write_lines(tmp_path / "a.jsonl", make_texts())
    program = (
        "import sys\n"
        "from nddup.embedded import steps as engine\n"
        "from nddup.embedded import worker\n"
        "from nddup.embedded.workers import Workers\n"
        "from nddup.scanning.collection import find_files\n"
        "from nddup.settings.schema import Config\n"
        "from nddup.storage.local_storage import LocalStorage\n"
        "config = Config()\n"
        "with Workers(1) as workers:\n"
        f"    collection = find_files(LocalStorage(), [{str(lines)!r}], config.input)\n"
        "    documents = engine.sketch(collection, config, workers).documents\n"
        "    paired = engine.pair(documents, config, workers, collection)\n"
        "    kept = engine.keep(paired, engine.cluster(paired, config, workers), config).keep\n"
        "sys.exit(1 if len(kept) < 9 or 'pyspark' in sys.modules or 'py4j' in sys.modules else 0)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)

    assert done.returncode == 0


def test_processes_are_started_for_large_inputs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The total size of the inputs, twice where not plain, decides on processes before anything is loaded."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.xml").write_text("x" * 100)
    (tmp_path / "b.jsonl").write_text("x" * 7)
    inputs = [str(tmp_path), str(tmp_path / "missing")]

    monkeypatch.setattr(processes, "FEW_BYTES", 206)
    assert is_worth_it(inputs)
    monkeypatch.setattr(processes, "FEW_BYTES", 207)
    assert not is_worth_it(inputs)


def test_processes_load_before_their_number_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """They start for large inputs, answer once there are connections, and are gone when these are closed."""
    monkeypatch.setattr(processes, "FEW_BYTES", 0)
    started = Processes.start([str(SAMPLES)])
    assert started is not None
    assert started.connections == []

    started.fork(3)
    assert len(started.connections) == 3
    started.close()

    assert started.first.returncode == 0


def test_processes_that_are_not_wanted_end() -> None:
    """Where the settings ask for Spark, or are refused, the process that was started is killed."""
    started = Processes()
    started.kill()

    assert started.first.returncode == -signal.SIGKILL
