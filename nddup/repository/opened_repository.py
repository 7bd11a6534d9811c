"""A repository as an object: its verbs, on the embedded engine. It holds one version until it is refreshed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from nddup.local.reading.workers import Workers
from nddup.repository.batches import Inputs, read_batch
from nddup.repository.commits import Commit, read_commit
from nddup.repository.identity import Identity
from nddup.repository.snapshot import Snapshot
from nddup.repository.write_versions import Written, add, create, remove
from nddup.settings.derive import processes_of
from nddup.settings.schema import Config
from nddup.storage.local_storage import local_path


class Repository:
    """A growing collection whose near-duplicates are known.

    Attributes:
        snapshot: the version that is read.
    """

    def __init__(self, path: str, version: int | None = None) -> None:
        """Open a version, or the newest.

        Raises:
            OutputError: if there is none, or it was made by another layout or machine.
            IncompatibleSketchError: if sketches made here would not compare with those stored.
        """
        self._repo = Path(local_path(path))
        commit = read_commit(self._repo, version)
        self._identity = Identity.read(commit.repository, repo=str(self._repo))
        self.snapshot = Snapshot(self._repo, commit, self._identity)

    @classmethod
    def create(
        cls, path: str, config: Config, *, mode: str = "rebuild", store: str = "all", lowest: float | None = None
    ) -> Self:
        """Make an empty repository: see `nddup.repository.create`."""
        least = config.pairs.threshold if lowest is None else lowest
        create(Path(local_path(path)), Identity(config, mode, store, least))
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
        return Workers(processes_of(self._identity.config))

    def add(self, inputs: Inputs, *, replace: bool = False, id_prefix: str | None = None) -> Written:
        """Add a batch: one version; none where nothing of it is new.

        Args:
            inputs: paths; texts by id; or an Arrow table of `id` and `text`.
            replace: a live id with other content takes the place of the stored document.
            id_prefix: what comes before ids that are made up from file and record.

        Raises:
            ConfigError: for inputs that are missing, and for made-up ids without a prefix.
            LostRaceError: if another writer committed meanwhile; nothing was changed.
        """
        with self.workers() as workers:
            self.refresh()
            batch = read_batch(self.snapshot, inputs, workers, replace=replace, id_prefix=id_prefix)
            written = add(self.snapshot, batch, workers)
        if written.commit is not None:
            self._read(written.commit)
        return written

    def remove(self, ids: Sequence[str]) -> tuple[Written, list[str]]:
        """Remove documents: one version. Also the ids that do not live."""
        with self.workers() as workers:
            self.refresh()
            written, unknown = remove(self.snapshot, ids, workers)
        if written.commit is not None:
            self._read(written.commit)
        return written, unknown
