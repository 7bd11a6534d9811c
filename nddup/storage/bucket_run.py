"""A folder of results in a bucket: made and read as a folder of this machine, which is brought into line with it.

    BucketRun(url).fetch()     bucket -> folder: what differs; the results are whole, or there is an error
    BucketRun(url).begin(…)    the folder of a new run, after refusing what may not be replaced
    BucketRun(url).send()      folder -> bucket: what differs; the marker that makes it a result comes last

What was equal on both sides is noted with size, time and ETag. Results that were replaced while they were fetched are
refused, and no run is begun or sent over one that another wrote meanwhile.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TypeVar

from nddup.errors import NotARunError, OutputError, UnfinishedRunError, first_line
from nddup.remote.addresses import RemoteFile, spell_bare
from nddup.remote.buckets import as_os_error, client_of, list_bucket
from nddup.remote.fetch import ATTEMPTS, FIRST_WAIT, read_remote
from nddup.remote.kept_copies import locked, own_folder, remove_unused
from nddup.scanning.input_files import RUN
from nddup.storage.claim import PREFIX
from nddup.storage.run_folder import COMPLETE, is_ours, require_ours

MARKERS = ("_PASSAGES.json", "_SPLIT.json", COMPLETE)
"""The files without which a folder is no result; they are sent after all others."""

AT_ONCE = 8
"""Files that are sent or fetched at the same time."""

R = TypeVar("R")

State = tuple[int, int, int, str]
"""Of a file that is equal on both sides: bytes and time here, bytes and version there."""


class BucketRun:
    """A folder of results in a bucket, and the folder of this machine that stands for it: `path`.

    Raises:
        ConfigError: if the client of the bucket is missing, or this machine has no folder for copies.
    """

    def __init__(self, url: str) -> None:
        self.url, self.name = url.rstrip("/"), spell_bare(url.rstrip("/"))
        key = sha256(self.url.encode()).hexdigest()[:16]
        client_of(self.url)
        above = own_folder(f"runs/{key}", f"{self.name}: needs a folder of your own for its copy")
        os.utime(above)
        remove_unused(above.parent)
        self.path, self._states, self._lock = above / self.url.rpartition("/")[2], above / "equal.json", above / "lock"
        self._seen: dict[str, RemoteFile] = {}

    def begin(self, inputs: Sequence[str], *, overwrite: bool, resume: bool) -> None:
        """Prepare the folder for a command that makes results.

        Raises:
            OutputError: if the bucket holds anything there that may not be replaced, or an input.
        """
        for path in map(spell_bare, inputs):
            if f"{path.rstrip('/')}/".startswith(f"{self.name}/"):
                raise OutputError(f"--output {self.name}: holds INPUT {path}, which would be removed")
            if f"{self.name}/".startswith(f"{path.rstrip('/')}/"):
                raise OutputError(f"--output {self.name}: lies in INPUT {path}, so the next run would read it")
        self._seen = self._list()
        require_ours(self.name, self._seen, may_change=overwrite or resume)
        if resume and COMPLETE in self._seen:
            self.fetch()
        elif not (resume and (self.path / RUN).is_file()):
            with locked(self._lock):
                shutil.rmtree(self.path, ignore_errors=True)

    def fetch(self) -> str:
        """Make the folder equal to the bucket, and return its path.

        Raises:
            NotARunError: if nothing is there.
            UnfinishedRunError: if what is there is no finished result.
            OutputError: if it was replaced meanwhile.
            UnreachableError: if a file cannot be fetched.
        """
        with locked(self._lock):
            listed = self._list()
            if not listed:
                raise NotARunError(f"{self.name}: no such folder")
            if not set(MARKERS) & listed.keys():
                raise UnfinishedRunError(f"{self.name}: the run did not finish; what it holds is not a result")
            states = self._read_states()
            for name in self._files_here() - listed.keys():
                (self.path / name).unlink()
            wanted = [name for name, file in listed.items() if not self._is_equal(states.get(name), name, file)]
            self._together(partial(self._fetch, listed), wanted)
            if self._list() != listed:
                raise OutputError(f"{self.name}: was replaced while it was read; run the command again")
            self._seen = listed
            self._note_states(listed)
        return str(self.path)

    def send(self) -> tuple[int, int]:
        """Make the bucket equal to the folder, but for what no run writes; return the number of files sent, and bytes.

        Raises:
            OutputError: if another wrote there meanwhile, or a file cannot be written.
        """
        with locked(self._lock):
            there = self._list()
            if there != self._seen:
                raise OutputError(f"{self.name}: another command wrote there meanwhile; the results are in {self.path}")
            states, here = self._read_states(), self._files_here()
            wanted = {name for name in here if not self._is_equal(states.get(name), name, there.get(name))}
            gone = {name for name in there.keys() - here if is_ours(name.partition("/")[0])}
            left = there.keys() - here - gone
            for name in MARKERS:
                if name in there and name in wanted | gone:
                    self._try(name, partial(self._remove, name))
            last = [name for name in ("metrics.json", *MARKERS) if name in wanted]
            self._together(self._send, sorted(wanted - set(last)))
            for name in sorted(gone - set(MARKERS)):
                self._try(name, partial(self._remove, name))
            for name in last:
                self._send(name)
            now = self._list()
            sent = {name: file for name, file in now.items() if name not in left}
            if {name: file.size for name, file in sent.items()} != {name: self._size(name) for name in here}:
                raise OutputError(f"{self.name}: holds other files than were sent; --resume sends them again")
            self._seen = now
            if wanted:
                self._note_states(sent)
            return len(wanted), sum(map(self._size, wanted))

    def _list(self) -> dict[str, RemoteFile]:
        listed = self._try("", lambda: list_bucket(self.url))
        for name in listed:
            if any(part in ("", ".", "..") or "\0" in part for part in name.split("/")):
                raise OutputError(f"{self.name}/{name}: is a name that no run writes; the folder is not used")
        return listed

    def _files_here(self) -> set[str]:
        files = (path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file())
        return {name for name in files if not name.startswith(PREFIX)}

    def _size(self, name: str) -> int:
        return (self.path / name).stat().st_size

    def _is_equal(self, state: State | None, name: str, file: RemoteFile | None) -> bool:
        try:
            status = (self.path / name).stat()
        except OSError:
            return False
        return file is not None and state == (status.st_size, status.st_mtime_ns, file.size, file.version)

    def _fetch(self, listed: Mapping[str, RemoteFile], name: str) -> None:
        target = self.path / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.part")
        try:
            with draft.open("wb") as file:
                file.writelines(read_remote(listed[name]))
            draft.replace(target)
        except OSError as error:
            raise OutputError(f"{target}: cannot be written ({error.strerror or error})") from error
        finally:
            draft.unlink(missing_ok=True)

    def _send(self, name: str) -> None:
        files, root = client_of(self.url)
        self._try(name, lambda: files.put_file(str(self.path / name), f"{root}/{name}"))

    def _remove(self, name: str) -> None:
        files, root = client_of(self.url)
        with suppress(FileNotFoundError):
            files.rm_file(f"{root}/{name}")

    def _try(self, name: str, work: Callable[[], R]) -> R:
        for failed in range(1, ATTEMPTS + 1):
            try:
                with as_os_error():
                    return work()
            except OSError as error:
                if failed == ATTEMPTS or isinstance(error, PermissionError):
                    raise OutputError(f"{self.name}/{name}".rstrip("/") + f": {first_line(error)}") from error
            time.sleep(FIRST_WAIT * 2 ** (failed - 1))
        raise AssertionError  # the last attempt returns or raises

    def _together(self, work: Callable[[str], None], names: Sequence[str]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for _ in threads.map(work, names):
                pass

    def _read_states(self) -> dict[str, State]:
        with suppress(OSError, ValueError):
            return {name: tuple(state) for name, state in json.loads(self._states.read_text(encoding="utf-8")).items()}
        return {}

    def _note_states(self, there: Mapping[str, RemoteFile]) -> None:
        states = {}
        for name, file in there.items():
            status = (self.path / name).stat()
            states[name] = (status.st_size, status.st_mtime_ns, file.size, file.version)
        self._states.write_text(json.dumps(states), encoding="utf-8")
