"""How much memory the Python worker of one task may take: it decides whether a whole graph goes to one task.

It is `spark.executor.pyspark.memory` of an executor, divided by the executor's cores; on a cluster Spark enforces it.
Where that is not set, `UNSET_BYTES` is assumed on a cluster, and a share of the machine's memory in local mode.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

UNSET_BYTES = 1 << 30
"""Memory assumed for a worker if the cluster sets none, as `docs/operations.md` recommends."""

LOCAL_SHARE = 4
"""In local mode a worker may use 1/LOCAL_SHARE of the machine's memory; the JVM takes most of the rest."""

PYTHON_MEMORY, CORES = "spark.executor.pyspark.memory", "spark.executor.cores"
_UNITS = {"b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_VERSION_1 = (("sys/fs/cgroup/memory",), "memory.limit_in_bytes")
_VERSION_2 = (("sys/fs/cgroup", "sys/fs/cgroup/unified"), "memory.max")
"""Where the groups of each version are mounted, and the file of a group's limit."""


def task_memory(settings: Mapping[str, str], *, machine: int | None = None) -> int:
    """Return the bytes of memory that the Python worker of one task may take.

    Args:
        settings: Spark's, from its context.
        machine: bytes of memory of this machine, used in local mode only; None: looked up.

    Example:
        >>> task_memory({"spark.executor.pyspark.memory": "2g", "spark.executor.cores": "2"}) == 1 << 30
        True
    """
    if PYTHON_MEMORY in settings:
        return read_size(settings[PYTHON_MEMORY]) // int(settings.get(CORES, "1"))
    if settings.get("spark.master", "").startswith("local"):
        return (machine_memory() if machine is None else machine) // LOCAL_SHARE
    return UNSET_BYTES


def read_size(text: str) -> int:
    """Return the bytes of a size in Spark's notation; without a unit it is in MiB, as Spark reads this setting.

    Raises:
        ValueError: if it is not a size.

    Example:
        >>> read_size("2g") == read_size("2048") == read_size("2048MB")
        True
    """
    found = re.fullmatch(r"\s*(\d+)\s*(?:([kmgtp])b?|(b))?\s*", text.lower())
    if found is None:
        raise ValueError(f"{PYTHON_MEMORY}: expected a size such as 2g, got {text!r}")
    return int(found[1]) << _UNITS[found[2] or found[3] or "m"]


def machine_memory() -> int:
    """Return the bytes of memory of this machine, or what its control groups allow, if that is less."""
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *group_limits()])


def group_limits(system: Path = Path("/")) -> list[int]:
    """Return the limits on memory, in bytes, of the control groups that this process is in, version 1 and 2.

    A group may use no more than each group above it, so all up to the root count. In a container, the path of a group
    can be that of the host, of which only the root is seen; its limits are the container's.

    Args:
        system: the root of the file system.
    """
    try:
        lines = (system / "proc/self/cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        lines = []
    found = []
    for line in ["0::/", "0:memory:/", *lines]:
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        mounts, name = _VERSION_1 if controllers else _VERSION_2
        for mount in mounts:
            inner = PurePosixPath(group.lstrip("/"))
            found += [_read_limit(system / mount / folder / name) for folder in (inner, *inner.parents)]
    return [limit for limit in found if limit is not None]


def _read_limit(file: Path) -> int | None:
    """Return the number in a file; None if it is not there, or says `max`, that there is no limit."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() else None
