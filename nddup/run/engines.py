"""Choose the engine of a run: this process and its workers, or Spark. The tables are the same on both."""

import os
import shutil
from collections.abc import Sequence
from typing import Literal, NamedTuple

from nddup.errors import ConfigError
from nddup.local.memory import BASE
from nddup.redaction import drop_login
from nddup.run.task_memory import machine_memory
from nddup.scanning.input_files import refuse_foreign
from nddup.scanning.walk import sizes_of
from nddup.settings.schema import Config
from nddup.storage.local_storage import is_local, is_submitted, local_path

LOCAL_SHARE = 0.75
"""Share of the machine's memory that the embedded engine may take where `local.memory` is not given."""

BYTES_OF_INPUT = {"": 6.0, ".gz": 30.0, ".bz2": 36.0, ".xz": 40.0, ".zst": 36.0}
"""Bytes of memory that a stored byte may need, by the ending of its file. Short texts have nearly an id for each word,
long pages are cut to the size of a sketch. Compressed files hold five to seven times as much."""


class EngineChoice(NamedTuple):
    """The engine of a run, and the reason for it."""

    engine: Literal["local", "spark"]
    why: str


def choose_engine(
    inputs: Sequence[str], output: str, config: Config, *, master: str | None, weight: float = 1
) -> EngineChoice:
    """Return the engine that the settings ask for; for `auto`, the embedded one wherever it can do the work.

    Args:
        inputs: INPUT paths.
        output: the run's folder.
        config: of the run.
        master: `--master`, if given.
        weight: bytes of memory that the work needs for each that a run over the same files would need.

    Raises:
        ConfigError: if `local` is asked for, but a path or another setting needs Spark; for an address that neither
            engine opens.
    """
    lexicon = [] if config.lexicon.saved is None else [config.lexicon.saved]
    choice = choose_engine_of_paths([*inputs, output, *lexicon], config, master=master)
    if choice.engine == "spark" or config.engine == "local":
        return choice

    needed, given = estimate_memory(inputs, weight), memory_of(config)
    if needed > given:
        return EngineChoice(
            "spark", f"the inputs may need {needed / 1e9:.1f} GB of memory, more than local.memory {given / 1e9:.1f} GB"
        )
    return EngineChoice("local", "the inputs are on this machine and fit its memory")


def choose_engine_of_paths(paths: Sequence[str], config: Config, *, master: str | None) -> EngineChoice:
    """Return the engine as `choose_engine` does, but whatever the size of the files at these paths.

    Raises:
        ConfigError: as `choose_engine`.
    """
    refuse_foreign(paths)
    reason = _needs_spark(paths, config, master)
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
    """Estimate the bytes of memory of a run over these local files, from their sizes and endings alone.

    `weight` is as of `choose_engine`.
    """
    needed = float(BASE)
    for path, size in sizes_of([local_path(path) for path in inputs]):
        suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122 - thousands of files, so `os` for speed
        needed += weight * size * BYTES_OF_INPUT.get(suffix, BYTES_OF_INPUT[""])
    return int(needed)


def _needs_spark(paths: Sequence[str], config: Config, master: str | None) -> str | None:
    """Return why only Spark can do what is asked; None if the embedded engine can."""
    if is_submitted():
        return "spark-submit started it"
    if master is not None:
        return "--master is given"
    if config.spark:
        return f"{min(config.spark)} is given"
    if config.clusters.miner == "fpgrowth":
        return "clusters.miner is fpgrowth, which is Spark's"
    remote = [path for path in paths if not is_local(path)]
    return f"{drop_login(remote[0])} is not a path of this machine" if remote else None
