"""Choose the engine of a run: this process and its workers, or Spark; and the memory it may take.

The tables are the same on both. The memory of one Python worker on Spark decides whether a whole graph goes to one
task. It is `spark.executor.pyspark.memory` of an executor, divided by the executor's cores; on a cluster Spark enforces
it. Where that is not set, `UNSET_BYTES` is assumed on a cluster, and a share of the machine's memory in local mode.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from nddup.embedded.memory import BASE
from nddup.errors import ConfigError
from nddup.ground.shown import drop_login, parse_size
from nddup.remote.addresses import is_remote, scheme_of, spell_bare
from nddup.scanning.input_files import refuse_foreign, split_version
from nddup.scanning.walk import sizes_of
from nddup.settings.schema import Config
from nddup.storage.local_storage import is_readable, is_submitted, local_path

UNSET_BYTES = 1 << 30
"""Memory assumed for a worker if the cluster sets none, as `docs/operations.md` recommends."""

WORKER_SHARE = 4
"""In local mode a worker may use 1/WORKER_SHARE of the machine's memory; the JVM takes most of the rest."""

PYTHON_MEMORY, CORES = "spark.executor.pyspark.memory", "spark.executor.cores"
_VERSION_1 = (("sys/fs/cgroup/memory",), "memory.limit_in_bytes")
_VERSION_2 = (("sys/fs/cgroup", "sys/fs/cgroup/unified"), "memory.max")
"""Where the groups of each version are mounted, and the file of a group's limit."""

HERE_ALONE = frozenset(["hf", "https", "http", "az"])
"""Schemes that Hadoop does not open."""

LOCAL_SHARE = 0.75
"""Share of the machine's memory that the embedded engine may take where `local.memory` is not given."""

BYTES_OF_INPUT = {"": 6.0, ".gz": 30.0, ".bz2": 36.0, ".xz": 40.0, ".zst": 36.0}
"""Bytes of memory that a stored byte may need, by the ending of its file. Short texts have nearly an id for each word,
long pages are cut to the size of a sketch. Compressed files hold five to seven times as much."""

LARGE, OF_LARGE = 4e9, 1 / 15
"""Bytes that a run may need above which it needs this share of what more input would need: ids are then mapped
(`nddup.embedded.memory`). A million texts of 400 words, 2.8 GB, take 2.1 GB of memory, ten million 10.6."""


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
        return (machine_memory() if machine is None else machine) // WORKER_SHARE
    return UNSET_BYTES


def read_size(text: str) -> int:
    """Return the bytes of a size in Spark's notation; without a unit it is in MiB, as Spark reads this setting.

    Raises:
        ValueError: if it is not a size.

    Example:
        >>> read_size("2g") == read_size("2048") == read_size("2048MB")
        True
    """
    return parse_size(text, unit="m", least=0)


def machine_memory() -> int:
    """Return the bytes of memory of this machine, or what its control groups allow, if that is less."""
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *group_limits()])


def group_limits(system: Path = Path("/")) -> list[int]:
    """Return the limits on memory, in bytes, of the control groups that this process is in, version 1 and 2.

    A group may use no more than each group above it, so all up to the root count. In a container, the path of a group
    can be that of the host, of which only the root is seen; its limits are the container's.
    """
    try:
        lines = (system / "proc/self/cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        lines = []
    limits = []
    for line in ["0::/", "0:memory:/", *lines]:
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        mounts, name = _VERSION_1 if controllers else _VERSION_2
        for mount in mounts:
            inner = PurePosixPath(group.lstrip("/"))
            limits += [_read_limit(system / mount / folder / name) for folder in (inner, *inner.parents)]
    return [limit for limit in limits if limit is not None]


def _read_limit(file: Path) -> int | None:
    """Return the number in a file; None if it is not there, or says `max`, that there is no limit."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() else None


class EngineChoice(NamedTuple):
    """The engine of a run, and the reason for it."""

    engine: Literal["local", "spark"]
    why: str


def choose_engine(
    inputs: Sequence[str], output: str | None, config: Config, *, master: str | None, weight: float = 1
) -> EngineChoice:
    """Return the engine that the settings ask for; for `auto`, the embedded one wherever it can do the work.

    Args:
        output: the run's folder; None where there is none.
        weight: bytes of memory that the work needs for each that a run over the same files would need.

    Raises:
        ConfigError: if `local` is asked for, but a path or another setting needs Spark; for an address that neither
            engine opens.
    """
    lexicon = [] if config.lexicon.saved is None else [config.lexicon.saved]
    paths = [*inputs, *lexicon] if output is None else [*inputs, output, *lexicon]
    choice = choose_engine_of_paths(paths, config, master=master)
    if choice.engine == "spark" or config.engine == "local":
        return choice

    needed, given = estimate_memory(inputs, weight), memory_of(config)
    if needed > given and (away := [path for path in inputs if is_remote(path)]):
        raise ConfigError(
            f"INPUT {spell_bare(away[0])}: the inputs may need {needed / 1e9:.1f} GB of memory, more than local.memory"
            f" {given / 1e9:.1f} GB; raise it, or give Spark addresses that Hadoop opens (s3a, gs, abfss)"
        )
    if needed > given:
        return EngineChoice(
            "spark", f"the inputs may need {needed / 1e9:.1f} GB of memory, more than local.memory {given / 1e9:.1f} GB"
        )
    return EngineChoice("local", "the inputs are here, and fit in memory")


def choose_engine_of_paths(paths: Sequence[str], config: Config, *, master: str | None) -> EngineChoice:
    """Return the engine as `choose_engine` does, but whatever the size of the files at these paths.

    Raises:
        ConfigError: as `choose_engine`.
    """
    refuse_foreign(paths)
    reason = _needs_spark(paths, config, master)
    if (config.engine == "spark" or reason is not None) and config.engine != "local":
        ours = [path for path in paths if scheme_of(path) in HERE_ALONE]
        if ours:
            raise ConfigError(
                f"INPUT {spell_bare(ours[0])}: only the embedded engine opens it, and {reason or 'engine is spark'};"
                " copy it to where Hadoop opens it"
            )
    if config.engine == "spark":
        return EngineChoice("spark", "as asked")
    if config.engine == "local" and reason is not None:
        raise ConfigError(f"engine: local, but {reason}; leave it out, or give --engine spark")
    if reason is not None:
        return EngineChoice("spark", reason)
    return EngineChoice("local", "as asked" if config.engine == "local" else "the inputs are on this machine")


def memory_of(config: Config) -> int:
    """Return the bytes of memory that the embedded engine may take."""
    return int(config.local.memory or machine_memory() * LOCAL_SHARE)


def has_java() -> bool:
    """Return whether there is a Java to start Spark with."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None) is not None


def estimate_memory(inputs: Sequence[str], weight: float = 1) -> int:
    """Estimate the bytes of memory of a run over these files, from their sizes and endings alone.

    `weight` is as of `choose_engine`.
    """
    needed = 0.0
    sizes = list(sizes_of([split_version(local_path(path))[0] for path in inputs if not is_remote(path)]))
    if away := [path for path in inputs if is_remote(path)]:
        from nddup.scanning.walk_remote import sizes_of_remote  # noqa: PLC0415 - most inputs are on this machine

        sizes += sizes_of_remote(away)
    for path, size in sizes:
        suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122 - thousands of files, so `os` for speed
        needed += weight * size * BYTES_OF_INPUT.get(suffix, BYTES_OF_INPUT[""])
    if weight == 1:
        needed = min(needed, LARGE + OF_LARGE * max(needed - LARGE, 0))
    return int(BASE + needed)


def _needs_spark(paths: Sequence[str], config: Config, master: str | None) -> str | None:
    """Return why only Spark can do the work; None if the embedded engine can."""
    if is_submitted():
        return "spark-submit started it"
    if master is not None:
        return "--master is given"
    if config.spark:
        return f"{min(config.spark)} is given"
    if config.clusters.miner == "fpgrowth":
        return "clusters.miner is fpgrowth, which is Spark's"
    remote = [path for path in paths if not is_readable(path)]
    return f"{drop_login(remote[0])} is not a path of this machine" if remote else None
