"""Run a program and measure it with all its descendants: time, CPU, memory and disk.

Linux only. The measuring process adopts orphans (`PR_SET_CHILD_SUBREAPER`), so the CPU seconds of a JVM and of Python
workers that outlive their parent are counted too.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SET_CHILD_SUBREAPER = 36
GRACE = 15.0
"""Seconds that descendants may outlive the program before they are killed."""


class ProgramFailedError(RuntimeError):
    """A measured program ended with another status than 0."""


@dataclass
class Usage:
    """Resources used by a program and its descendants.

    Attributes:
        seconds: elapsed until the program itself ended.
        cpu_seconds: user and system seconds of all processes.
        memory: peak bytes of all processes together, each shared page counted once.
        unmapped: the same without the pages of files, which the system drops where it needs them.
        worker_rss: peak bytes held by one Python worker of Spark (pages shared with its parent included).
        workers_rss: peak bytes held by all workers together, shared pages counted for each.
        read: bytes that all processes read from files and pipes, as of the last sample, but for mapped files.
        disk: peak bytes in each watched folder, and in all of them together (`all`).
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory: int = 0
    unmapped: int = 0
    worker_rss: int = 0
    workers_rss: int = 0
    read: int = 0
    disk: dict[str, int] = field(default_factory=dict)


def nddup() -> str:
    """Return the path of the nddup command of this environment."""
    return str(Path(sys.executable).with_name("nddup"))


def run_measured(
    command: Sequence[str],
    *,
    folders: Mapping[str, Path] | None = None,
    environment: Mapping[str, str] | None = None,
    limit: float | None = None,
    every: float = 0.25,
) -> Usage:
    """Run a program to its end and measure it.

    Args:
        command: program and arguments; its output goes to build/bench/last.log.
        folders: folders whose size is watched, by name.
        environment: variables of the program; None: those of this process.
        limit: seconds after which the program is killed; None: never.
        every: seconds between two samples of memory and disk.

    Raises:
        ProgramFailedError: with the end of the log, if the status is not 0; or if the limit was reached.
    """
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    usage, done = Usage(), threading.Event()
    forked: dict[int, float] = {}
    log = Path("build/bench/last.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    before = _children_cpu()
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        seen = (process.pid, folders or {}, every, usage, forked, done)
        watcher = threading.Thread(target=_watch, args=seen, daemon=True)
        watcher.start()
        status: int | str
        try:
            status = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            _kill(descendants(process.pid))
            status = f"ended by force: still running after {limit:.0f} s"
    usage.seconds = time.monotonic() - started
    done.set()
    watcher.join()
    _reap_orphans(forked)
    usage.cpu_seconds = _children_cpu() - before + sum(forked.values())
    if status:
        said = log.read_text(errors="replace")[-2000:] if isinstance(status, int) else status
        raise ProgramFailedError(f"{' '.join(command)}: status {status}\n{said}")
    return usage


def folder_bytes(path: Path) -> int:
    """Return the bytes of all files below a folder; files that vanish meanwhile are not counted."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - called for thousands of files
    return total


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _reap_orphans(forked: dict[int, float]) -> None:
    """Wait for orphans of the program, so that their CPU seconds count; kill those that do not end within GRACE.

    Those that are waited for here are taken out of `forked`. Only one program runs at a time, so all remaining children
    are its descendants.
    """
    end = time.monotonic() + GRACE
    with suppress(ChildProcessError):
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            forked.pop(pid, None)
            if pid == 0 and time.monotonic() > end:
                _kill(descendants(os.getpid())[1:])
            if pid == 0:
                time.sleep(0.02)


def _kill(processes: Sequence[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _watch(  # noqa: PLR0913, PLR0917 - what is watched, and where it is noted
    pid: int,
    folders: Mapping[str, Path],
    every: float,
    usage: Usage,
    forked: dict[int, float],
    done: threading.Event,
) -> None:
    read: dict[int, int] = {}
    while not done.wait(every):
        processes = descendants(pid)
        read |= {process: _read_by(process) for process in processes}
        usage.read = sum(read.values())
        forked |= {process: cpu for process in processes if (cpu := _forked_cpu(process)) is not None}
        memory = [_memory(process) for process in processes]
        usage.memory = max(usage.memory, sum(whole for whole, _ in memory))
        usage.unmapped = max(usage.unmapped, sum(unmapped for _, unmapped in memory))
        held = [_worker_rss(process) for process in processes]
        usage.worker_rss = max([usage.worker_rss, *(peak for _, peak in held)])
        usage.workers_rss = max(usage.workers_rss, sum(now for now, _ in held))
        sizes = {name: folder_bytes(path) for name, path in folders.items()}
        sizes["all"] = sum(sizes.values())
        for name, size in sizes.items():
            usage.disk[name] = max(usage.disk.get(name, 0), size)


def _forked_cpu(pid: int) -> float | None:
    """Return the CPU seconds of a worker that Spark's daemon forked so far; None for any other process.

    The daemon does not wait for its workers, so the system adds their times to nobody's.
    """
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if b"pyspark.daemon" in Path(f"/proc/{fields[1]}/cmdline").read_bytes():
            return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return None


def descendants(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                parents.setdefault(int(parent), []).append(int(entry.name))
    found = [pid]
    for process in found:
        found += parents.get(process, [])
    return found


def _memory(pid: int) -> tuple[int, int]:
    """Return the bytes that a process holds, of shared pages its share; and those that are no pages of files."""
    with suppress(OSError, KeyError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        sizes = {name: int(size.split()[0]) << 10 for name, size in (line.split(":") for line in lines)}
        return sizes["Pss"], sizes["Pss_Anon"] + sizes["Pss_Shmem"]
    return 0, 0


def _read_by(pid: int) -> int:
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))
    return 0


def _worker_rss(pid: int) -> tuple[int, int]:
    """Return the current and peak bytes of a Python worker; (0, 0) for another process."""
    with suppress(OSError, KeyError):
        if b"pyspark.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
            lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            return int(lines["VmRSS"].split()[0]) << 10, int(lines["VmHWM"].split()[0]) << 10
    return 0, 0
