"""How much memory the Python worker of one task may take: it decides whether a whole graph goes to one task.

It is `spark.executor.pyspark.memory` of an executor, divided by the executor's cores; on a cluster Spark enforces it.
Where that is not set, `UNSET_BYTES` is assumed on a cluster, and a share of the machine's memory in local mode.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

UNSET_BYTES = 1 << 30
"""Memory assumed for a worker if the cluster sets none, as `docs/operations.md` recommends."""

LOCAL_SHARE = 4
"""In local mode a worker may use 1/LOCAL_SHARE of the machine's memory; the JVM takes most of the rest."""

PYTHON_MEMORY, CORES = "spark.executor.pyspark.memory", "spark.executor.cores"
_UNITS = {"b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


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
    """Return the bytes of memory of this machine, or of the container that this process runs in."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _LIMITS:
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        found += [int(text)] if text.isdigit() else []  # `max` where there is no limit
    return min(found)
