"""What a run asks of an engine, beside the verbs of `nddup.engines.engine`: a few coarse steps, and its tables.

    RunEngine.sketch     files or texts  -->  SketchedRun    documents, rejects
    SketchedRun.pair                     -->  PairedRun      pairs
    PairedRun.cluster                    -->  ClusteredRun   clusters, members, false_components
    ClusteredRun.keep                    -->                 keep

`nddup.embedded.run` does it in this process, `nddup.spark.run` on Spark. A step finds its tables as an earlier attempt
left them, or makes and seals them (`Made`). What it returns holds what the next step needs, and is what takes it: how
pairs were found decides how clusters are. `nddup.stages.run` calls the steps in their order, and knows neither engine.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from nddup.engines.engine import Engine, EngineTable, FinishedRun
from nddup.ground.progress import Progress, Steps
from nddup.ground.shown import JsonValue
from nddup.mining.keep_verdicts import Forced
from nddup.scanning.collection import Collection, Files
from nddup.settings.schema import Config
from nddup.stages.stage import M, Stage, measured
from nddup.storage.run_folder import RunFolder


@dataclass(frozen=True)
class Saved:
    """A table that was made, or found as an earlier attempt left it.

    `counts` are sums over its rows, taken while they were written; `noted` holds other values noted by its maker.
    """

    table: Any
    """As the engine holds tables: of Arrow or Spark. None for one that is found but not read."""
    rows: int
    counts: Mapping[str, int]
    noted: Mapping[str, Any]


NO_COUNTS: Mapping[str, str] = {}


class New(NamedTuple):
    """What a run added to the one that it goes on from: its documents, and its rejects by reason."""

    documents: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Made:
    """The tables that a step made or found, and the counts of the step by their names in metrics."""

    saved: Mapping[str, Saved]
    counts: Mapping[str, Any]
    notes: Sequence[str] = ()
    """For people, in the line of the stage."""

    @property
    def tables(self) -> dict[str, Any]:
        """The tables themselves."""
        return {name: one.table for name, one in self.saved.items()}

    @property
    def rows(self) -> dict[str, int]:
        """The rows of each."""
        return {name: one.rows for name, one in self.saved.items()}


class ClusteredRun(Protocol):
    """A run with its clusters."""

    @property
    def made(self) -> Made:
        """Tables: clusters, members, false_components."""

    def keep(self) -> Made:
        """Decide which documents stay: keep."""


class PairedRun(Protocol):
    """A run with its pairs."""

    @property
    def made(self) -> Made:
        """Table: pairs."""

    def cluster(self) -> ClusteredRun:
        """Mine the components: clusters, members, false_components."""


class SketchedRun(Protocol):
    """A run with its documents, which can be read again."""

    @property
    def made(self) -> Made:
        """Tables: documents, rejects. Counts: `reasons` of the rejects; `lexicon`, if the kind has one; those noted."""

    @property
    def new(self) -> New | None:
        """What a run onto another added; None for any other run."""

    def pair(self, source: EngineTable, known: EngineTable = None) -> PairedRun:
        """Find the near-duplicates: pairs.

        Args:
            source: files or TEXTS, read again where texts confirm pairs.
            known: PAIRS at a lower threshold, which hold what texts would say; the source is then not read.
        """

    def write_kept(self, source: Collection, chosen: EngineTable) -> int:
        """Read the kept documents again and write them as `output.kept` says; return how many were found.

        Args:
            chosen: CHOSEN with the columns that each gets, as `RunEngine.hold` gives it.
        """

    def read_texts(self, source: Collection, documents: Mapping[str, tuple[str, bytes]]) -> EngineTable:
        """Return STORED_TEXTS of these documents (doc_id -> source, fingerprint): only their files are read."""


class RunFiles(Files, Protocol):
    """The files of an engine, with what a run notes of a path."""

    def full_path(self, path: str) -> str:
        """Return a path as an absolute URI with its file system."""

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path is a folder or lies in it, by the places that links lead to."""


class RunEngine(ABC):
    """One run on one engine: its settings, its tables, and the steps that make them."""

    is_on_spark: ClassVar[bool] = False
    config: Config
    progress: Progress
    resumed: dict[str, None]
    """The tables reused from an earlier attempt, in order."""
    forced: Forced | None
    """The documents of `keep.force`."""
    earlier: FinishedRun | None
    """The run in memory that `output.names_from` names; None where it names a folder."""
    onto: str | None = None
    """The folder of the finished run that this one goes on from."""
    without: Sequence[Sequence[str]] = ()
    """The ids of the documents that this one takes out, in each way in which their list can be read."""

    @property
    @abstractmethod
    def folder(self) -> RunFolder:
        """The run's folder; called only for a run that has one."""

    @property
    @abstractmethod
    def files(self) -> RunFiles:
        """The files that paths of inputs and settings name."""

    def shuffled_bytes(self) -> int:
        """Return the bytes written to shuffles so far."""
        return 0

    def stage(self, name: str, counts: type[M]) -> AbstractContextManager[Stage[M]]:
        """Run a stage: show it, and measure its seconds and the bytes it writes to shuffles."""
        return measured(self.progress, name, counts, resumed=self.resumed, shuffled=self.shuffled_bytes)

    @abstractmethod
    def require_able(self, source: Collection) -> None:
        """Refuse what this engine cannot do, before anything is written: a saved lexicon that is not as the run's own.

        Raises:
            ConfigError: naming the setting, and the file or folder.
        """

    def prepare(self, steps: Steps, source: Collection) -> None:  # noqa: B027 - most engines have nothing to do
        """Do what takes a while before the first stage, as one more step."""

    @abstractmethod
    def attempt(self, source: Collection) -> AbstractContextManager[None]:
        """Hold what an attempt at this run needs while its tables and files are made."""

    @abstractmethod
    def ask(self, **tables: EngineTable) -> Engine:
        """Return an engine that answers questions over these tables, by their names."""

    def look(self, **tables: EngineTable) -> Engine:
        """Return an engine for small answers over saved tables, by their names."""
        return self.ask(**tables)

    @abstractmethod
    def sketch(self, source: EngineTable) -> SketchedRun:
        """Read and sketch every record of files or texts: documents, rejects."""

    # What is written beside the tables.

    @abstractmethod
    def find(self, name: str) -> Saved | None:
        """Return a table left by an earlier attempt, if its inputs and settings are unchanged; else None."""

    @abstractmethod
    def put(self, name: str, table: JsonValue, **noted: JsonValue) -> Saved:
        """Write a table and seal it with the values `noted`."""

    @abstractmethod
    def write_duplicates(self, clustered: Made) -> None:
        """Write `duplicates.txt`: a cluster a line, its ids separated by tabs, then the number of common features."""

    @abstractmethod
    def write_context(self, sketched: Made) -> None:
        """Write `context.fimi`: a feature a line, the `doc_key`s of the documents that hold it."""

    @abstractmethod
    def hold(self, verdicts: EngineTable) -> AbstractContextManager[EngineTable]:
        """Hold VERDICTS or CHOSEN, an answer, while files are written by them."""

    @abstractmethod
    def rewrite(self, source: Collection, verdicts: EngineTable, apart: str, *, is_tagging: bool) -> int:
        """Write the inputs into the folder `apart`: without the removed documents, or with tags in every record.

        Returns:
            The number of records written. After an error nothing is left there.
        """

    @abstractmethod
    def folder_at(self, path: str) -> RunFolder:
        """Return the folder of another run."""

    def open_earlier(self, path: str) -> FinishedRun:
        """Open the run that names are taken from; errors as of `open_other`."""
        return self.open_other(path) if self.earlier is None else self.see_other(self.earlier)

    @abstractmethod
    def see_other(self, run: FinishedRun) -> FinishedRun:
        """Return a run in the memory of this process as one of this engine: its `documents` and `keep`."""

    @abstractmethod
    def open_other(self, path: str) -> FinishedRun:
        """Open another finished run, in any folder that this engine reads.

        Raises:
            OutputError: if it is not a finished run.
        """

    @abstractmethod
    def open_finished(self) -> FinishedRun:
        """Open the finished run in the folder for its report."""
