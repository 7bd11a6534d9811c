"""A repository as an object: its commands, on the embedded engine. It holds one version until it is refreshed.

A query must answer soon after a process starts, so the other methods import what only they need when they are called.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from nddup.local.reading.workers import Progress, Workers
from nddup.repository.given_inputs import Given, Inputs, Paths, Reading, find_source, paths_given, reading_of
from nddup.repository.identity import Identity
from nddup.repository.places.find_place import find_place
from nddup.repository.query_stored import Ask, Queries, find_matches, read_queries, require_bands, sketch_texts
from nddup.repository.segments.commits import Commit, read_commit
from nddup.repository.segments.segment_files import read_all
from nddup.repository.snapshot import Snapshot
from nddup.settings.derive import processes_of
from nddup.settings.schema import Config

if TYPE_CHECKING:
    from nddup.repository.prove_version import Proof
    from nddup.repository.segments.compact import Compacted
    from nddup.repository.write_versions import Written


class Repository:
    """A growing collection whose near-duplicates are known.

    Attributes:
        snapshot: the version being read.
    """

    def __init__(self, path: str, version: int | None = None, *, caller: Config | None = None) -> None:
        """Open a version, or the newest.

        Args:
            path: its folder, or a URL.
            version: the version; None: the newest.
            caller: settings of the caller, of which `engine`, `local` and `spark` say how and where to compute; None:
                the defaults.

        Raises:
            OutputError: if there is none, its layout differs, or sketches made here cannot be compared with its own.
        """
        self._repo = find_place(path)
        self.progress: Progress | None = None
        commit = read_commit(self._repo, version)
        self._identity = Identity.read(commit.repository, repo=str(self._repo)).on(caller)
        self.snapshot = Snapshot(self._repo, commit, self._identity)

    @classmethod
    def create(cls, path: str, identity: Identity) -> Self:
        """Make an empty repository: see `nddup.repository.create`."""
        from nddup.repository.write_versions import create  # noqa: PLC0415

        create(find_place(path), identity)
        return cls(path, caller=identity.config)

    @property
    def version(self) -> int:
        """The number of the version being read."""
        return self.snapshot.commit.version

    def refresh(self) -> Self:
        """Switch to the newest version."""
        self._read(read_commit(self._repo))
        return self

    def _read(self, commit: Commit) -> None:
        if commit.version != self.version:
            self.snapshot = Snapshot(self._repo, commit, self._identity)

    def workers(self) -> Workers:
        """Return workers with the threads and processes that the settings ask for."""
        return Workers(processes_of(self._identity.config), progress=self.progress)

    def _reading(self, inputs: Given, engine: str | None) -> Reading:
        """Return what reads a batch or queries, set to report progress."""
        reading = reading_of(inputs, self._identity.config, engine)
        reading.workers.progress = self.progress
        return reading

    def add(
        self, inputs: Inputs, *, replace: bool = False, id_prefix: str | None = None, engine: str | None = None
    ) -> "Written":
        """Add a batch as one version; make none if nothing is stored or replaced.

        Args:
            inputs: a path or several; texts by id; or an Arrow table of `id` and `text`.
            replace: whether a live id with other content replaces the stored document.
            id_prefix: prefix of ids made up from file and record.
            engine: `auto`, `local` or `spark`: what reads the files; None: as the repository was opened with.

        Raises:
            ConfigError: for missing inputs, and for made-up ids without a prefix.
            OutputError: if the repository lies in an input, or an input in it.
            LostRaceError: if another writer committed meanwhile; nothing was changed.
        """
        from nddup.repository.batches import read_batch  # noqa: PLC0415
        from nddup.repository.places.live_claims import claimed  # noqa: PLC0415
        from nddup.repository.write_versions import add  # noqa: PLC0415
        from nddup.storage.apart import require_apart  # noqa: PLC0415
        from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415

        config = self._identity.config
        given = inputs if isinstance(inputs, pa.Table | Mapping) else paths_given(inputs)
        reading = self._reading(given, engine)
        with reading.workers as workers, claimed(self._repo):
            self.refresh()
            if isinstance(given, list):
                require_apart(LocalStorage(), given, self._repo.full_name(), name="REPO")
            source = find_source(given, config, reading.files)
            batch = read_batch(self.snapshot, source, workers, replace=replace, id_prefix=id_prefix)
            written = add(self.snapshot, batch, workers)
        if written.commit is not None:
            self._read(written.commit)
        return written

    def query(self, texts: str | Sequence[str] | Mapping[str, str], ask: Ask | None = None) -> pa.Table:
        """Return MATCHES of texts, given by id, or in order with `query_id` their number from 0.

        Args:
            texts: pages or plain texts; markup is removed as `input.markup` says. A string is one text.
            ask: the score bands, how many matches, and among which documents; None: near-duplicates at
                `pairs.threshold`.

        Raises:
            ConfigError: for bands below the `lowest` of the repository, and for texts that are no strings.

        Cost: some milliseconds; the first call also loads what stays in memory.

        Example:
            repo.query({"new.html": page}, Ask(bands=(60, 70, 80)))
        """
        return find_matches(self.snapshot, sketch_texts(self._identity, texts), ask or Ask())

    def query_files(self, inputs: Paths, ask: Ask | None = None, *, engine: str | None = None) -> tuple[pa.Table, int]:
        """Return MATCHES of the documents in files and folders, and how many records were rejected."""
        found, queries = self.match_files(inputs, ask, engine=engine)
        return found, queries.rejects

    def match_files(
        self, inputs: Paths, ask: Ask | None = None, *, engine: str | None = None
    ) -> tuple[pa.Table, Queries]:
        """Return MATCHES of the documents in files and folders, and these documents with what could not be read."""
        require_bands(self._identity, ask or Ask(), name=str(self._repo))
        config, paths = self._identity.config, paths_given(inputs)
        reading = self._reading(paths, engine)
        with reading.workers as workers:
            queries = read_queries(self._identity, find_source(paths, config, reading.files), workers)
        return find_matches(self.snapshot, queries, ask or Ask()), queries

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables of this version, as a run over its live documents would give them."""
        from nddup.repository.live_tables import live_tables  # noqa: PLC0415

        return live_tables(self.snapshot)

    def write_tables(self, output: str) -> dict[str, Any]:
        """Write this version as the folder of a finished run; return its metrics."""
        from nddup.repository.run_tables import write_run  # noqa: PLC0415

        return write_run(self.snapshot, output)

    def changes(self) -> pa.Table:
        """Return CHANGES of this version; empty if it changed nothing, as one made by `compact`."""
        commit = self.snapshot.commit
        named = [segment for segment in commit.segments if segment.name == commit.changes]
        return read_all(self._repo, named, "changes")

    def check(self) -> "list[Proof]":
        """Check the promises of this version; return each with what was compared."""
        from nddup.repository.prove_version import prove  # noqa: PLC0415

        with self.workers() as workers:
            return list(prove(self.snapshot, workers))

    def compact(self, *, days: float | None = None) -> "Compacted":
        """Merge all segments, drop removed documents, and remove segments out of use for `days` (None: 7)."""
        from nddup.repository.places.live_claims import claimed  # noqa: PLC0415
        from nddup.repository.segments.compact import DAYS, compact  # noqa: PLC0415

        with claimed(self._repo) as claim:
            done = compact(self.refresh().snapshot, claim, days=DAYS if days is None else days)
        if done.commit is not None:
            self._read(done.commit)
        return done

    def remove(self, ids: str | Sequence[str]) -> "tuple[Written, list[str]]":
        """Remove documents as one version; return it and the ids that are not live. A string is one id."""
        from nddup.repository.places.live_claims import claimed  # noqa: PLC0415
        from nddup.repository.write_versions import remove  # noqa: PLC0415

        with self.workers() as workers, claimed(self._repo):
            self.refresh()
            written, unknown = remove(self.snapshot, [ids] if isinstance(ids, str) else ids, workers)
        if written.commit is not None:
            self._read(written.commit)
        return written, unknown
