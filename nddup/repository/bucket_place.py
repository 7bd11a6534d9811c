"""A repository in a bucket, or wherever else `fsspec` leads: `s3://bucket/pages`.

S3 can create an object only if it is absent (`If-None-Match: *`), so of two writers one wins. Some stores that speak S3
ignore the condition, so each commit tests it by creating a draft twice. Where it is ignored, and in all other places,
writers claim the version (`create_exclusively`). So they do on HDFS: pyarrow's client, which `fsspec` uses, removes
the target of a failed rename and renames again, so it has no rename that does not overwrite.

Segments never change, so they are copied to a folder of this machine when they are first read, and mapped from there.
"""

import errno
import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

from nddup.ground.own_files import make_own
from nddup.ground.shown import drop_login
from nddup.ground.start_up import cache_folder
from nddup.remote.addresses import BUCKETS, scheme_of
from nddup.remote.buckets import as_os_error, open_bucket, time_in
from nddup.remote.kept_copies import remove_unused
from nddup.repository.places import (
    COMMITS,
    SEGMENTS,
    DiskPlace,
    Place,
    StoredFolder,
    UnknownOutcome,
    create_exclusively,
    digest_file,
    require_unmade,
)

CONDITIONAL = {"s3", "s3a"}
"""Schemes whose client can create an object only if it is absent, in one request."""

WITHOUT_FOLDERS = CONDITIONAL | BUCKETS | {"gcs", "abfs", "abfss", "memory"}
"""Schemes in which a path needs no folder; some of their clients would create a bucket for a misspelt name."""

READ = 1 << 20


class BucketPlace:
    """A repository behind a URL, with copies of its segments on this machine."""

    def __init__(self, url: str) -> None:
        self._name, self._scheme = drop_login(url.rstrip("/")), scheme_of(url)
        self._files, self._root = open_bucket(url)
        key = hashlib.sha256(self.full_name().encode()).hexdigest()[:16]
        base = cache_folder()
        if base is None:  # the copies last as long as this object
            self._temporary = TemporaryDirectory(prefix="nddup-")
            base = Path(self._temporary.name)
        self.folder = base / "repositories" / key

    def __str__(self) -> str:
        """The URL as given, without its login."""
        return self._name

    def full_name(self) -> str:
        """As `Place.full_name`: the URL in the form of its client, without a login."""
        return drop_login(str(self._files.unstrip_protocol(self._root)))

    def begin(self) -> None:
        """As `Place.begin`."""
        with as_os_error():
            listing = self._files.ls(self._root, detail=False) if self._files.exists(self._root) else []
        require_unmade(self, {str(path).rstrip("/").rpartition("/")[2] for path in listing})
        self._make_folder(COMMITS)
        self._make_folder(SEGMENTS)

    def commits(self) -> list[str]:
        """As `CommitFiles.commits`."""
        with as_os_error():
            listing = self._files.ls(self._at(COMMITS), detail=False)
        return [name for path in listing if (name := str(path).rstrip("/").rpartition("/")[2]) != COMMITS]

    def read_commit(self, name: str) -> bytes:
        """As `Place.read_commit`."""
        with as_os_error():
            return bytes(self._files.cat_file(self._at(COMMITS, name)))

    def create_commit(self, name: str, data: bytes) -> None:
        """As `Place.create_commit`."""
        draft = f".{name.removesuffix('.json')}-{token_hex(6)}.draft"
        try:
            if self._keeps_condition(draft):
                self._create(name, data)
            else:
                self.write_draft(draft, data)
                create_exclusively(self, name, draft)
        finally:
            with suppress(OSError):
                self.remove_draft(draft)

    def _keeps_condition(self, draft: str) -> bool:
        """Return whether the store refuses to create an object that exists. Cost: two requests."""
        if self._scheme not in CONDITIONAL:
            return False
        path = self._at(COMMITS, draft)
        with as_os_error():
            try:
                self._files.pipe_file(path, b"draft", mode="create")
                self._files.pipe_file(path, b"draft", mode="create")
            except FileExistsError:
                return True
            except OSError as error:
                if error.errno != errno.ENOSYS:  # ENOSYS: the store does not support the condition
                    raise
        return False

    def _create(self, name: str, data: bytes) -> None:
        """Create a commit in one request; if it fails, as after a lost answer or a retry, the stored bytes decide."""
        path = self._at(COMMITS, name)
        try:
            with as_os_error():
                self._files.pipe_file(path, data, mode="create")
        except PermissionError:
            raise
        except OSError as error:
            try:
                stored = self.read_commit(name)
            except OSError:
                raise UnknownOutcome(error.errno or errno.EIO, str(error.strerror or error)) from error
            if stored != data:
                raise FileExistsError(name) from error

    def write_draft(self, name: str, data: bytes) -> None:
        """As `CommitFiles.write_draft`."""
        with as_os_error():
            self._files.pipe_file(self._at(COMMITS, name), data)

    def time_of(self, name: str) -> float:
        """As `CommitFiles.time_of`."""
        with as_os_error():
            return time_in(self._files.info(self._at(COMMITS, name)))

    def rename_draft(self, name: str, target: str) -> None:
        """As `CommitFiles.rename_draft`; for objects a copy, which exists whole or not at all."""
        with as_os_error():
            self._files.mv(self._at(COMMITS, name), self._at(COMMITS, target))

    def remove_draft(self, name: str) -> None:
        """As `CommitFiles.remove_draft`."""
        with as_os_error(), suppress(FileNotFoundError):
            self._files.rm_file(self._at(COMMITS, name))

    def fetch(self, name: str, size: int, digest: str) -> Path:
        """As `Place.fetch`: the path of the copy on this machine, made at the first call."""
        path = self.folder / SEGMENTS / name
        if path.is_file() and path.stat().st_size == size:
            with suppress(OSError):
                os.utime(path.parent)  # marks the copy as in use
            return path
        make_own(str(path.parent))
        draft = path.with_name(f".{path.name}-{token_hex(6)}")
        try:
            with as_os_error():
                self._files.get_file(self._at(SEGMENTS, name), str(draft))
            if draft.stat().st_size != size or digest_file(draft) != digest:
                raise OSError(errno.EIO, "it is not the file that was written")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        return path

    def publish(self, segment: str) -> None:
        """As `Place.publish`; also removes unused copies of segments from this machine."""
        self._make_folder(SEGMENTS, segment)
        for path in sorted((self.folder / SEGMENTS / segment).glob("*.parquet")):
            with as_os_error():
                self._files.put_file(str(path), self._at(SEGMENTS, segment, path.name))
        remove_unused(self.folder / SEGMENTS)

    def segments(self) -> dict[str, StoredFolder]:
        """As `Place.segments`."""
        folders: dict[str, StoredFolder] = {}
        with as_os_error():
            files = self._files.find(self._at(SEGMENTS), detail=True)
        for path, info in files.items():
            name, _, file = str(path).removeprefix(self._at(SEGMENTS, "")).partition("/")
            if not file:  # an object that represents a folder
                continue
            before = folders.get(name, StoredFolder(0.0, 0))
            folders[name] = StoredFolder(max(before.time, time_in(info)), before.size + int(info["size"] or 0))
        return folders

    def sizes(self, segment: str) -> dict[str, int]:
        """As `Place.sizes`."""
        with suppress(FileNotFoundError), as_os_error():
            listing = self._files.ls(self._at(SEGMENTS, segment), detail=True)
            return {str(one["name"]).rstrip("/").rpartition("/")[2]: int(one["size"] or 0) for one in listing}
        return {}

    def remove_segment(self, segment: str) -> None:
        """As `Place.remove_segment`; also removes the copy on this machine."""
        shutil.rmtree(self.folder / SEGMENTS / segment, ignore_errors=True)
        with as_os_error(), suppress(FileNotFoundError):
            self._files.rm(self._at(SEGMENTS, segment), recursive=True)

    def measure(self, name: str) -> tuple[int, str]:
        """As `Place.measure`: reads the object, not its copy."""
        digest, size = hashlib.sha256(), 0
        with as_os_error(), self._files.open(self._at(SEGMENTS, name), "rb") as file:
            while piece := file.read(READ):
                digest.update(piece)
                size += len(piece)
        return size, digest.hexdigest()

    def _at(self, *names: str) -> str:
        return "/".join([self._root, *names])

    def _make_folder(self, *names: str) -> None:
        if self._scheme not in WITHOUT_FOLDERS:
            with as_os_error():
                self._files.makedirs(self._at(*names), exist_ok=True)


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def find_place(path: str | Path) -> Place:
    """Return a folder of this machine, or a bucket for a URL with another scheme than `file`.

    Raises:
        ConfigError: if the client for the URL is not installed, or refuses the URL.

    Example:
        >>> str(find_place("/srv//pages")), str(find_place("file:/srv/pages"))
        ('/srv/pages', '/srv/pages')
    """
    scheme = _SCHEME.match(str(path))
    if scheme is None or scheme[1].lower() == "file":
        return DiskPlace(str(path))

    return BucketPlace(str(path))
