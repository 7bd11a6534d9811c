"""Where the tables of a run are kept: a folder for a job, Spark's own storage for a notebook.

A run's folder:

    documents/ rejects/ pairs/ clusters/ members/ keep/     the tables, Parquet
    duplicates.txt  metrics.json  kept/                     what is written from them
    _stages/NAME.json                                       fingerprint, settings, rows, seconds of each table
    _stages/NAME/                                           working tables
    _RUN.json                                               this is a run: versions, settings, inputs
    _COMPLETE                                               written last; without it nothing here is a result

A stage's fingerprint is SHA-256 over its name, the package's code, the settings that reach it and the fingerprints of
the tables it reads (the first: paths, sizes and times of the input files). Equal fingerprint, equal table: that is
what resuming needs, so the layout does not change when it comes.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pyspark
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

import nddup
from nddup.algorithms.normalising import TOKEN_TABLE_VERSION
from nddup.algorithms.sketching import SKETCH_FORMAT
from nddup.errors import IncompatibleSketchError, OutputError
from nddup.schemas import TABLES
from nddup.storage import RUN, Storage

COMPLETE, STAGES = "_COMPLETE", "_stages"
LAYOUT = 1
"""Version of the folder's layout."""


class Store(Protocol):
    """Keeps a table so that it is computed once."""

    def save(
        self,
        name: str,
        table: DataFrame,
        schema: T.StructType,
        *,
        settings: Mapping[str, Any],
        reads: Sequence[str],
    ) -> DataFrame:
        """Compute and keep `table`; the DataFrame given back reads what was kept."""

    def drop(self, name: str) -> None:
        """Forget a working table that nothing reads any more."""


class MemoryStore:
    """Tables in Spark's block storage, on disk of the executors, as long as something refers to them."""

    def save(
        self,
        name: str,
        table: DataFrame,
        schema: T.StructType,
        *,
        settings: Mapping[str, Any],
        reads: Sequence[str],
    ) -> DataFrame:
        """As `Store.save`. One action.

        A checkpoint, for it forgets how the table was made. The plan of a table that is only persisted holds the plan
        of every table under it, once for each time it is read: doubling stage by stage, it fills the driver's memory.
        """
        del name, settings, reads
        return table.select(*schema.fieldNames()).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)

    def drop(self, name: str) -> None:
        """As `Store.drop`: Spark frees a checkpoint by itself."""


class RunFolder:
    """Tables as Parquet in one output folder, each with its fingerprint."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._storage = Storage(spark)
        self.path = path.rstrip("/")
        self._fingerprints: dict[str, str] = {}

    def start(self, *, settings: Mapping[str, Any], inputs: Mapping[str, Any], overwrite: bool) -> None:
        """Claim the folder and say in it what the run is.

        Raises:
            OutputError: if it holds anything and `overwrite` is not set, if what it holds is not a run, or an input.
        """
        there = self._storage.children(self.path) if self._storage.exists(self.path) else []
        if there and not overwrite:
            raise OutputError(
                f"--output {self.path}: exists already; give another folder, or --overwrite to replace it"
            )
        if there and RUN not in there:
            raise OutputError(f"--output {self.path}: holds files that are no run of nddup; it is not overwritten")
        for path in inputs.get("paths", []):
            if self._storage.is_within(path, self.path):
                raise OutputError(f"--output {self.path}: holds INPUT {path}, which would be removed")
        if there:
            self._storage.remove(self._at(COMPLETE))
            self._storage.remove(self.path)
        self._storage.make_folder(self._at(STAGES))
        header = {"layout": LAYOUT, "versions": versions(), "settings": settings, "inputs": inputs}
        self._storage.write_text(self._at(RUN), json.dumps(header, indent=2, ensure_ascii=False) + "\n")
        self._fingerprints["input"] = _digest(inputs)

    def save(
        self,
        name: str,
        table: DataFrame,
        schema: T.StructType,
        *,
        settings: Mapping[str, Any],
        reads: Sequence[str],
    ) -> DataFrame:
        """As `Store.save`: writes Parquet, then the stage's fingerprint, in this order."""
        started = time.monotonic()
        where = self._at(name if name in {*TABLES, "lexicon"} else f"{STAGES}/{name}")
        table.select(*schema.fieldNames()).write.mode("overwrite").parquet(where)
        kept = self._spark.read.schema(schema).parquet(where)
        reading = {read: self._fingerprints[read] for read in reads}
        self._fingerprints[name] = _digest([name, code_fingerprint(), settings, reading])
        note = {
            "fingerprint": self._fingerprints[name],
            "settings": settings,
            "reads": reading,
            "seconds": round(time.monotonic() - started, 3),
        }
        self._storage.write_text(self._at(f"{STAGES}/{name}.json"), json.dumps(note, indent=2) + "\n")
        return kept

    def drop(self, name: str) -> None:
        """As `Store.drop`; the note of its fingerprint stays."""
        self._storage.remove(self._at(f"{STAGES}/{name}"))

    def finish(self, metrics: Mapping[str, Any]) -> None:
        """Write `metrics.json`, and the marker that makes the run a result."""
        self._storage.write_text(self._at("metrics.json"), json.dumps(metrics, indent=2, ensure_ascii=False) + "\n")
        self._storage.write_text(self._at(COMPLETE), "")

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

    def table(self, name: str) -> DataFrame:
        """A table of the run, under its schema."""
        return self._spark.read.schema(TABLES[name]).parquet(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"


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
    root = Path(__file__).parent
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.txt")]):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
