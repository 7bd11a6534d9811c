"""A repository as an object: its verbs, on the embedded engine. It holds one version until it is refreshed.

A query must answer soon after the start of a process, so each verb imports what a query does without.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from nddup.local.reading.workers import Progress, Workers
from nddup.repository.given_inputs import Inputs, Reading, find_source, reading_of
from nddup.repository.identity import Identity
from nddup.repository.places.find_place import find_place
from nddup.repository.query_stored import Ask, find_matches, read_queries, require_bands, sketch_texts
from nddup.repository.segments.commits import Commit, read_commit
from nddup.repository.segments.segment_files import read_all
from nddup.repository.snapshot import Snapshot
from nddup.settings.derive import processes_of

if TYPE_CHECKING:
    from nddup.repository.prove_version import Proof
    from nddup.repository.segments.compact import Compacted
    from nddup.repository.write_versions import Written


class Repository:
    """A growing collection whose near-duplicates are known.

    Attributes:
        snapshot: the version that is read.
    """

    def __init__(self, path: str, version: int | None = None) -> None:
        """Open a version, or the newest.

        Raises:
            OutputError: if there is none, it has another layout, or sketches made here would not compare with its own.
        """
        self._repo = find_place(path)
        self.progress: Progress | None = None
        commit = read_commit(self._repo, version)
        self._identity = Identity.read(commit.repository, repo=str(self._repo))
        self.snapshot = Snapshot(self._repo, commit, self._identity)

    @classmethod
    def create(cls, path: str, identity: Identity) -> Self:
        """Make an empty repository: see `nddup.repository.create`."""
        from nddup.repository.write_versions import create  # noqa: PLC0415

        create(find_place(path), identity)
        return cls(path)

    @property
    def version(self) -> int:
        """The number of the version that is read."""
        return self.snapshot.commit.version

    def refresh(self) -> Self:
        """Read the newest version."""
        self._read(read_commit(self._repo))
        return self

    def _read(self, commit: Commit) -> None:
        if commit.version != self.version:
            self.snapshot = Snapshot(self._repo, commit, self._identity)

    def workers(self) -> Workers:
        """Threads and processes as the settings say."""
        return Workers(processes_of(self._identity.config), progress=self.progress)

    def _reading(self, inputs: Inputs, engine: str | None) -> Reading:
        """What reads a batch or queries; how far it is, is told as of all workers."""
        reading = reading_of(inputs, self._identity.config, engine)
        reading.workers.progress = self.progress
        return reading

    def add(
        self, inputs: Inputs, *, replace: bool = False, id_prefix: str | None = None, engine: str | None = None
    ) -> "Written":
        """Add a batch: one version; none where nothing of it is new.

        Args:
            inputs: paths; texts by id; or an Arrow table of `id` and `text`.
            replace: a live id with other content takes the place of the stored document.
            id_prefix: what comes before ids that are made up from file and record.
            engine: `auto`, `local` or `spark`: what reads the files, in place of the repository's setting `engine`.

        Raises:
            ConfigError: for inputs that are missing, and for made-up ids without a prefix.
            LostRaceError: if another writer committed meanwhile; nothing was changed.
        """
        from nddup.repository.batches import read_batch  # noqa: PLC0415
        from nddup.repository.write_versions import add  # noqa: PLC0415

        config = self._identity.config
        reading = self._reading(inputs, engine)
        with reading.workers as workers:
            self.refresh()
            source = find_source(inputs, config, reading.files)
            batch = read_batch(self.snapshot, source, workers, replace=replace, id_prefix=id_prefix)
            written = add(self.snapshot, batch, workers)
        if written.commit is not None:
            self._read(written.commit)
        return written

    def query(self, texts: Sequence[str] | Mapping[str, str], ask: Ask | None = None) -> pa.Table:
        """MATCHES of texts, given by id or in order: `query_id` is then their number from 0.

        Args:
            texts: pages or plain texts; markup is removed as `input.markup` says.
            ask: bands, how many, and of which documents; None: near-duplicates at `pairs.threshold`.

        Raises:
            ConfigError: for bands below what the repository was created for.

        Cost: the first call loads what stays in memory; then some milliseconds.

        Example:
            repo.query({"new.html": page}, Ask(bands=(60, 70, 80)))
        """
        return find_matches(self.snapshot, sketch_texts(self._identity, texts), ask or Ask())

    def query_files(
        self, inputs: Sequence[str], ask: Ask | None = None, *, engine: str | None = None
    ) -> tuple[pa.Table, int]:
        """MATCHES of the documents of files and folders; and how many records could not be read."""
        require_bands(self._identity, ask or Ask(), name=str(self._repo))
        config = self._identity.config
        reading = self._reading(inputs, engine)
        with reading.workers as workers:
            queries = read_queries(self._identity, find_source(inputs, config, reading.files), workers)
        return find_matches(self.snapshot, queries, ask or Ask()), queries.rejects

    def tables(self) -> dict[str, pa.Table]:
        """The tables of this version, as of a run over its live documents."""
        from nddup.repository.live_tables import live_tables  # noqa: PLC0415

        return live_tables(self.snapshot)

    def write_tables(self, output: str) -> dict[str, Any]:
        """Write this version as the folder of a finished run; its metrics."""
        from nddup.repository.run_tables import write_run  # noqa: PLC0415

        return write_run(self.snapshot, output)

    def changes(self) -> pa.Table:
        """CHANGES of this version; empty where it changed nothing, or was compacted since."""
        commit = self.snapshot.commit
        named = [segment for segment in commit.segments if segment.name == commit.changes]
        return read_all(self._repo, named, "changes")

    def check(self) -> "list[Proof]":
        """The promises of this version, each with what was compared."""
        from nddup.repository.prove_version import prove  # noqa: PLC0415

        with self.workers() as workers:
            return list(prove(self.snapshot, workers))

    def compact(self, *, days: float | None = None) -> "Compacted":
        """Merge all segments, forget removed documents, remove files that no version of the last days (7) names."""
        from nddup.repository.segments.compact import DAYS, compact  # noqa: PLC0415

        done = compact(self.refresh().snapshot, days=DAYS if days is None else days)
        if done.commit is not None:
            self._read(done.commit)
        return done

    def remove(self, ids: Sequence[str]) -> "tuple[Written, list[str]]":
        """Remove documents: one version. Also the ids that do not live."""
        from nddup.repository.write_versions import remove  # noqa: PLC0415

        with self.workers() as workers:
            self.refresh()
            written, unknown = remove(self.snapshot, ids, workers)
        if written.commit is not None:
            self._read(written.commit)
        return written, unknown
