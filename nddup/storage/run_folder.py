"""Where the tables of a run are kept: a folder for a job, Spark's own storage for a notebook.

A run's folder:

    documents/ rejects/ pairs/ clusters/ members/ keep/     the tables, Parquet
    duplicates.txt  metrics.json  kept/                     what is written from them
    _stages/NAME.json                                       of each table fingerprint, counts, files; written after it
    _stages/NAME/                                           working tables
    _RUN.json                                               this is a run: versions, settings, inputs
    _COMPLETE                                               written last; without it nothing here is a result

A table's fingerprint is SHA-256 over its name, the package's code, the settings that reach it and the fingerprints of
the tables it reads (the first: paths, sizes and times of the input files). Equal fingerprint, equal table: a resumed
run takes the tables of an earlier attempt whose fingerprint is the one it would give them, and makes the others.

Nothing relies on renaming. A table counts from the moment when its note is there, written after its last file, whole,
and naming every file of it with its size; a note that cannot be read, or files that differ from it, count as nothing.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pyspark
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

import nddup
from nddup.errors import IncompatibleSketchError, OutputError
from nddup.sketching.min_s import SKETCH_FORMAT
from nddup.sketching.tokens import TOKEN_TABLE_VERSION
from nddup.spark.schemas import local_table, schema_of
from nddup.storage.files import RUN, Storage
from nddup.tables import RESULTS

COMPLETE, STAGES = "_COMPLETE", "_stages"
IN_SIGHT = frozenset([*RESULTS, "kept", "lexicon"])
"""What lies in the folder itself; working tables lie in `_stages`."""

LAYOUT = 1
"""Version of the folder's layout."""


@dataclass(frozen=True)
class Kept:
    """A table of an earlier attempt, and what was counted while it was made."""

    table: DataFrame
    counted: Mapping[str, Any]


class Store(Protocol):
    """Keeps a table so that it is computed once: found, or written and then sealed."""

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> Kept | None:
        """The table as an earlier attempt left it, if this one would make the same; None if it is to be made."""

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """Compute `table` and keep it in the place of an earlier one; the DataFrame given back reads what was kept."""

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Say that the table is whole, and what was counted while it was made."""

    def drop(self, name: str) -> None:
        """Forget a working table that nothing reads any more."""


class MemoryStore:
    """Tables in Spark's block storage, on disk of the executors, as long as something refers to them."""

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> Kept | None:
        """Nothing: a session begins empty."""
        del name, schema, settings, reads
        return None

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """As `Store.write`. One action.

        A checkpoint, for it forgets how the table was made. The plan of a table that is only persisted holds the plan
        of every table under it, once for each time it is read: doubling stage by stage, it fills the driver's memory.
        """
        del name
        return table.select(*schema.fieldNames()).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """Nothing: what is written is whole."""

    def drop(self, name: str) -> None:
        """As `Store.drop`: Spark frees a checkpoint by itself."""


class RunFolder:
    """Tables as Parquet in one output folder, each with its fingerprint."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._storage = Storage(spark)
        self.path = path.rstrip("/")
        self._fingerprints: dict[str, str] = {}
        self._readers: dict[str, list[str]] = {}
        self._started: dict[str, float] = {}

    def start(
        self, *, settings: Mapping[str, Any], inputs: Mapping[str, Any], overwrite: bool = False, resume: bool = False
    ) -> bool:
        """Claim the folder and say in it what the run is.

        Returns:
            Whether it holds the finished result of the same inputs, settings and code already, and `resume` is set:
            then nothing is changed.

        Raises:
            OutputError: if it holds anything and neither `overwrite` nor `resume` is set, if what it holds is not a
                run, or an input.
        """
        there = self._storage.children(self.path) if self._storage.exists(self.path) else []
        if there and not overwrite and not resume:
            raise OutputError(
                f"--output {self.path}: exists already; give another folder, or --overwrite to replace it,"
                " or --resume to finish it"
            )
        if there and RUN not in there:
            raise OutputError(f"--output {self.path}: holds files that are no run of nddup; it is not overwritten")
        for path in inputs.get("paths", []):
            if self._storage.is_within(path, self.path):
                raise OutputError(f"--output {self.path}: holds INPUT {path}, which would be removed")
        header = {"layout": LAYOUT, "versions": versions(), "settings": settings, "inputs": inputs}
        text = json.dumps(header, indent=2, ensure_ascii=False) + "\n"
        self._fingerprints["input"] = _digest(inputs)
        if resume and COMPLETE in there and self._reads_as(RUN, text) and self._is_sound():
            return True
        # The marker goes first, so that a half-removed run is no result; the name of a run stays, so that it is one.
        for name in sorted(there, key=lambda name: name != COMPLETE):
            if name == COMPLETE or (overwrite and name != RUN):
                self._storage.remove(self._at(name))
        self._storage.write_text(self._at(RUN), text)
        self._storage.make_folder(self._at(STAGES))
        return False

    def find(
        self, name: str, schema: T.StructType, *, settings: Mapping[str, Any], reads: Sequence[str]
    ) -> Kept | None:
        """As `Store.find`: its note has the fingerprint, and its files are those that the note names.

        A table that was dropped counts as there while all that read it is there.
        """
        if not self.has(name, settings=settings, reads=reads):
            return None
        note, where = self._note(name), self._place(name)
        is_there = not note.get("dropped")
        table = self._spark.read.schema(schema).parquet(where) if is_there else local_table(self._spark, schema)
        return Kept(table, note["counted"])

    def has(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str]) -> bool:
        """Whether a table, or what else was sealed, is there as this attempt would make it."""
        self._fingerprints[name] = self._fingerprint(name, settings, reads)
        self._started[name] = time.monotonic()
        for read in reads:
            self._readers.setdefault(read, []).append(name)
        note = self._note(name)
        return note.get("fingerprint") == self._fingerprints[name] and self._is_whole(name, note)

    def write(self, name: str, table: DataFrame, schema: T.StructType) -> DataFrame:
        """As `Store.write`: Parquet. What was said of an earlier table of this name is taken back first."""
        self._storage.remove(self._at(f"{STAGES}/{name}.json"))
        where = self._place(name)
        table.select(*schema.fieldNames()).write.mode("overwrite").parquet(where)
        return self._spark.read.schema(schema).parquet(where)

    def seal(self, name: str, *, settings: Mapping[str, Any], reads: Sequence[str], counted: Mapping[str, Any]) -> None:
        """As `Store.seal`: writes the note."""
        self._fingerprints[name] = self._fingerprint(name, settings, reads)
        note = {
            "fingerprint": self._fingerprints[name],
            "settings": settings,
            "reads": {read: self._fingerprints[read] for read in reads},
            "seconds": round(time.monotonic() - self._started.get(name, time.monotonic()), 3),
            "counted": counted,
            "files": self._storage.sizes(self._place(name)),
        }
        self._storage.write_text(self._at(f"{STAGES}/{name}.json"), json.dumps(note, indent=2) + "\n")

    def clear(self, name: str) -> None:
        """Remove files beside the tables, and what was said of them."""
        self._storage.remove(self._at(f"{STAGES}/{name}.json"))
        self._storage.remove(self._place(name))

    def drop(self, name: str) -> None:
        """As `Store.drop`; its note stays, and says which tables were made of it."""
        note = self._note(name)
        if note:
            note["dropped"] = sorted(self._readers.get(name, []))
            self._storage.write_text(self._at(f"{STAGES}/{name}.json"), json.dumps(note, indent=2) + "\n")
        self._storage.remove(self._at(f"{STAGES}/{name}"))

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Write `metrics.json`, and the marker that makes the run a result."""
        self._storage.write_text(self._at("metrics.json"), json.dumps(metrics, indent=2, ensure_ascii=False) + "\n")
        self._storage.write_text(self._at(COMPLETE), "")

    def remove(self, name: str) -> None:
        """Remove a file or folder beside the tables; nothing if it is not there."""
        self._storage.remove(self._at(name))

    def write_text(self, name: str, text: Any) -> None:  # noqa: ANN401 - a text or pieces of one
        """A text file beside the tables."""
        self._storage.write_text(self._at(name), text)

    def read_text(self, name: str) -> str:
        """A text file beside the tables, whole."""
        return self._storage.read_text(self._at(name))

    def open(self) -> dict[str, Any]:
        """The metrics of a finished run.

        Raises:
            OutputError: if the folder is not a run, or the run did not finish.
            IncompatibleSketchError: if its sketches are of another format than this version's.
        """
        there = self._storage.children(self.path)
        if RUN not in there:
            raise OutputError(f"{self.path}: is not a run of nddup (it has no {RUN})")
        if COMPLETE not in there:
            raise OutputError(f"{self.path}: the run did not finish; what it holds is not a result")
        metrics: dict[str, Any] = json.loads(self.read_text("metrics.json"))
        made, known = metrics["versions"]["sketch_format"], versions()["sketch_format"]
        if made != known:
            raise IncompatibleSketchError(
                f"{self.path}: its sketches are of format {made}, this version reads {known}; run the job again"
            )
        return metrics

    def holds(self, name: str) -> bool:
        """Whether a table or a file of this name is there."""
        return self._storage.exists(self._at(name))

    def table(self, name: str) -> DataFrame:
        """A table of the run, under its schema."""
        return self._spark.read.schema(schema_of(RESULTS[name])).parquet(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _place(self, name: str) -> str:
        return self._at(name if name in IN_SIGHT else f"{STAGES}/{name}")

    def _fingerprint(self, name: str, settings: Mapping[str, Any], reads: Sequence[str]) -> str:
        return _digest([name, code_fingerprint(), settings, {read: self._fingerprints[read] for read in reads}])

    def _note(self, name: str) -> dict[str, Any]:
        """The note of a table; empty where there is none, or none that can be read to its end."""
        with suppress(OutputError, ValueError):
            note = json.loads(self._storage.read_text(self._at(f"{STAGES}/{name}.json")))
            if isinstance(note, dict):
                return note
        return {}

    def _is_whole(self, name: str, note: Mapping[str, Any]) -> bool:
        """Whether the files of a table are those of its note; of a dropped one, of all tables that were made of it."""
        if note.get("dropped"):
            return all(self._is_whole(reader, self._note(reader)) for reader in note["dropped"])
        return bool(note) and self._storage.sizes(self._place(name)) == note.get("files")

    def _is_sound(self) -> bool:
        """Whether every table that has a note is whole; working tables may be gone."""
        noted = {name.removesuffix(".json") for name in self._storage.children(self._at(STAGES))}
        return all(self._is_whole(name, self._note(name)) for name in IN_SIGHT & noted)

    def _reads_as(self, name: str, text: str) -> bool:
        with suppress(OutputError, ValueError):
            return self._storage.read_text(self._at(name)) == text
        return False


def versions() -> dict[str, str]:
    """What made a run: the sketch format is the one that must agree for sketches to be compared."""
    return {
        "nddup": nddup.__version__,
        "spark": pyspark.__version__,
        "sketch_format": f"{SKETCH_FORMAT}/unicode-{TOKEN_TABLE_VERSION}",
        "code": code_fingerprint(),
    }


@cache
def code_fingerprint() -> str:
    """SHA-256 over the package's source files, 16 hex digits: another code, another fingerprint."""
    digest = hashlib.sha256()
    root = Path(nddup.__file__).parent
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.txt")]):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
