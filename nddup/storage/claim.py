"""One run at a time in a folder: a run that works there leaves a claim, and a second run is refused.

    DIR/_CLAIM-TOKEN         host, process and start of the run; written again every `BEAT_SECONDS`
    DIR/_CLAIM-TOKEN.lost    this claim was taken over: its owner stops if it wakes up again

    Claim                      the claim of one run; `ClaimFiles` is what it needs of a file system
    claims_among, is_running   the claims in a folder; whether their owners live

A run writes a claim under a name of its own, then lists the folder, and goes on only if no other living claim is there.
"""

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from nddup.errors import FolderInUseError, NddupError, OutputError
from nddup.ground.json_text import load_object

PREFIX, LOST = "_CLAIM-", ".lost"
BEAT_SECONDS = 15.0
SILENCE_SECONDS = 120.0
SETTLE_SECONDS = 5.0
"""How long the first of several claims by name waits for the others to withdraw."""

LOOK_SECONDS = 0.5
GONE = "its process is gone"

Say = Callable[[str], object]


class ClaimFiles(Protocol):
    """The part of a file system that claims need; `nddup.spark.session_files.Storage` has it."""

    def exists(self, path: str) -> bool:
        """Return whether a file is there."""

    def times(self, path: str) -> dict[str, int]:
        """Return when each file in a folder was last written, in milliseconds by the file system's clock."""

    def read_text(self, path: str) -> str:
        """Read a whole file; raise OutputError if it cannot be read."""

    def write_text(self, path: str, text: str) -> None:
        """Write a file, replacing what is there; make its folder."""

    def remove(self, path: str) -> None:
        """Remove a file; do nothing if it is not there."""


class FolderFiles(ClaimFiles, Protocol):
    """What a run's folder needs of a file system: `nddup.spark.session_files`, or `local_storage` without Spark."""

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path is a folder or lies in it, by the places that links lead to."""

    def find_link(self, path: str) -> str | None:
        """Return a link or special file below a folder of this machine; None if there is none."""

    def children(self, path: str) -> list[str]:
        """Return the names in a folder."""

    def sizes(self, path: str) -> dict[str, int]:
        """Return the bytes of each file in a folder; empty if there is no folder."""

    def digests(self, path: str) -> dict[str, int] | None:
        """Return the CRC-32 of a file, or of each file in a folder, by name; None where it is not on this machine."""

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents."""

    def move(self, path: str, target: str) -> None:
        """Give a file or a folder another name."""


class Claim:
    """The claim of one run on a folder.

    The file system must list every file that was written before the listing began. It need not create a file
    atomically: Hadoop does not promise that everywhere (its local file system looks, then writes). Of two runs that
    start together, the one that lists last sees the other's claim, so they never both go on. If each sees the other,
    the one whose claim comes first by name waits for the other to withdraw.

    A claim of the same machine is dead when its process is gone. Any other claim is dead when it has not been written
    for `SILENCE_SECONDS`, by the file system's clock. A run that finds a silent claim waits: it is refused as soon as
    the claim is written again, and takes the folder over once the claim is dead.

    Args:
        beat: seconds between two writes of the claim.
        silence: seconds without a write after which another claim is dead.
    """

    def __init__(
        self, files: ClaimFiles, folder: str, *, beat: float = BEAT_SECONDS, silence: float = SILENCE_SECONDS
    ) -> None:
        self._files, self._folder, self._beat, self._silence = files, folder, beat, silence
        self._name = PREFIX + secrets.token_hex(8)
        owner = this_process()
        self._place, self._text = owner["place"], json.dumps(owner)
        self._read_before: dict[str, dict[str, Any]] = {}
        self._done = threading.Event()
        self._heart: threading.Thread | None = None

    def take(self, say: Say) -> None:
        """Claim the folder; do nothing if this run has it already.

        Args:
            say: called with a line before the claim of a dead run is taken over, and before a silent one is waited for.

        Raises:
            OutputError: if another run works there.
        """
        if self._heart is not None:
            return
        try:
            self._wait_until_alone(say)
        except BaseException:
            with suppress(Exception):  # as in `release`; the reason is what was raised
                self._files.remove(self._at(self._name))
            raise
        self._done.clear()
        self._heart = threading.Thread(target=self._keep_alive, daemon=True)
        self._heart.start()

    def check(self) -> None:
        """Check that a folder that this run claimed is still its own. Cost: two looks at the file system.

        Raises:
            NddupError: if another run has taken it over meanwhile.
        """
        if self._heart is not None and self._is_lost():
            silent = f"after {self._silence:g} s without a heartbeat"
            raise NddupError(f"--output {self._folder}: was taken over by another run {silent}")

    def release(self) -> None:
        """Give the folder back, if it is claimed. Problems are ignored: a claim that stays is dead."""
        if self._heart is None:
            return
        self._done.set()
        self._heart.join(timeout=self._beat)  # it may be writing
        self._heart = None
        with suppress(Exception):
            self._files.remove(self._at(self._name))

    def _wait_until_alone(self, say: Say) -> None:
        """Write the claim and list the folder, until no other living claim is there; then take over the dead ones."""
        first_seen: dict[str, int] = {}
        contested: float | None = None
        is_said = False
        for looks in count():
            look = self._look(first_seen)
            if look.is_own_listed and not look.living and not look.silent:
                for name, why in look.dead.items():
                    self._take_over(name, why, say)
                return

            # Of several that start together, the first by name stays; another that does not withdraw is a run at work.
            if look.living or not look.is_own_listed:
                contested = contested or time.monotonic()
                if time.monotonic() - contested > SETTLE_SECONDS or min(look.living, default="~") < self._name:
                    raise FolderInUseError(self._refusal(look.living))
            elif looks and not is_said:  # at the first look, the other may be writing its claim
                is_said = True
                say(f"{self._folder}: waiting up to {self._silence:.0f} s for a sign of {self._owner(look.silent[0])}")
            time.sleep(min(LOOK_SECONDS, self._beat))

    def _look(self, first_seen: dict[str, int]) -> "_Look":
        """Write the own claim and judge the others; `first_seen`: the time of each at the first look."""
        self._files.write_text(self._at(self._name), self._text)
        times = claims_among(self._files.times(self._folder))
        now = times.pop(self._name, None)  # just written: the time of the file system
        look = _Look(now is not None)
        for name, written in sorted(times.items()):
            rival, silence = self._read(name), ((now or written) - written) / 1000
            if rival.get("place") == self._place and self._place:
                if is_running(rival.get("process"), rival.get("born")):
                    look.living.append(name)
                else:
                    look.dead[name] = GONE
            elif silence > self._silence:
                look.dead[name] = f"nothing was heard of it for {silence:.0f} s"
            elif first_seen.setdefault(name, written) != written:
                look.living.append(name)
            else:
                look.silent.append(name)
        return look

    def _take_over(self, name: str, why: str, say: Say) -> None:
        say(f"{self._folder}: taken over from {self._owner(name)}: {why}")
        if why != GONE:  # it may only sleep: when it wakes up, it finds this
            self._files.write_text(self._at(name + LOST), "")
        self._files.remove(self._at(name))

    def _keep_alive(self) -> None:
        """Write the claim again and again, unless it was taken over."""
        while not self._done.wait(self._beat):
            with suppress(Exception):  # the next time may succeed; past the silence, another run may take over
                if self._is_lost():
                    return
                self._files.write_text(self._at(self._name), self._text)

    def _is_lost(self) -> bool:
        return self._files.exists(self._at(self._name + LOST)) or not self._files.exists(self._at(self._name))

    def _read(self, name: str) -> dict[str, Any]:
        """Return what a claim says, which never changes; empty if it cannot be read, as while it is written."""
        if name not in self._read_before:
            with suppress(OutputError, ValueError):
                self._read_before[name] = load_object(self._files.read_text(self._at(name)))
        return self._read_before.get(name, {})

    def _owner(self, name: str) -> str:
        claim = self._read(name)
        return f"process {claim.get('process')} on {claim.get('host')}, started {claim.get('since')}" if claim else name

    def _refusal(self, living: list[str]) -> str:
        if not living:
            return f"--output {self._folder}: a file that was written there is not listed; it cannot be claimed"
        return (
            f"--output {self._folder}: another run works there, {self._owner(living[0])};"
            " wait for its end, or give another folder"
        )

    def _at(self, name: str) -> str:
        return f"{self._folder}/{name}"


@dataclass
class _Look:
    """The other claims at one moment; each dead one with the reason."""

    is_own_listed: bool
    living: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    dead: dict[str, str] = field(default_factory=dict)


def claims_among(times: Mapping[str, int]) -> dict[str, int]:
    """Return the claims in a folder that were not taken over, with their times."""
    return {
        name: seen
        for name, seen in times.items()
        if name.startswith(PREFIX) and not name.endswith(LOST) and name + LOST not in times
    }


def this_process() -> dict[str, Any]:
    """Return what a claim says of its owner.

    `place` identifies the machine's boot and its process number space, which two containers of one host do not share;
    empty where the system does not tell. `born` is when the process started, in ticks since the boot.
    """
    return {
        "host": socket.gethostname(),
        "place": _place(),
        "process": os.getpid(),
        "born": _born(os.getpid()),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def is_running(process: object, born: object) -> bool:
    """Return whether a process of this place is running: one with this number and start that is not a zombie."""
    return isinstance(process, int) and born is not None and _born(process) == born


def _place() -> str:
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return ""


def _born(process: int) -> int | None:
    """Return the start of a process in ticks, from /proc; None if it is gone, or a zombie."""
    with suppress(OSError, ValueError, IndexError):
        state, *fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return None if state in "ZX" else int(fields[18])
    return None
