"""The size of the pairs stage on Spark for a collection of a given size: tasks, bytes, blocks, core hours.

The number of tasks is that of a run (`nddup.matching.task_sizes`). The rest is extrapolated from measured collections,
with its assumptions stated.
"""

from nddup.errors import ConfigError
from nddup.explaining.curves import SHUFFLED_BYTES
from nddup.matching.task_sizes import MOST_TASKS, tasks_needed, volume_of
from nddup.settings.derive import threshold_of
from nddup.settings.schema import Config

DISTINCT = 85
"""Distinct sketches for every hundred documents: the other documents have the sketch of an earlier one."""

NANOSECONDS_OF_ID = 450
"""Core time for an id, in the kernels of all tasks."""

NANOSECONDS_OF_BYTE = 9.3
"""Core time for a byte that goes from Python through a shuffle to Python, in blocks of 64 KB."""


def explain_capacity(config: Config, *, documents: int, memory: int, ids_of_sketch: int) -> tuple[str, ...]:
    """Return lines on the tasks, bytes and hours of the pairs stage.

    Args:
        config: the settings of the run.
        documents: number of documents of the collection.
        memory: of the Python worker of one task, in bytes.
        ids_of_sketch: ids of a usual sketch; 0 if sketches have no usual size.

    Raises:
        ConfigError: if sketches of the kind have no usual size.
    """
    if not ids_of_sketch:
        raise ConfigError(f"--documents: sketches of the kind {config.sketch.kind} have no usual size to count with")

    sketches = -(-documents * DISTINCT // 100)
    ids = sketches * ids_of_sketch
    tasks = tasks_needed(volume_of(ids, sketches, threshold_of(config)), memory)
    moved = ids * SHUFFLED_BYTES
    hours = ids * (NANOSECONDS_OF_ID + SHUFFLED_BYTES * NANOSECONDS_OF_BYTE) / 3.6e12
    lines = (
        f"The pairs stage on Spark, for {documents:,} documents and {memory >> 20:,} MB for the worker of a task:",
        f"  {sketches:,} distinct sketches ({DISTINCT} % of the documents), {ids:,} ids",
        f"  {tasks:,} tasks in each of 7 exchanges; more where there are more cores",
        f"  {moved / 1e9:,.1f} GB shuffled in all ({SHUFFLED_BYTES} bytes an id at 0.8; less above, more below)",
        f"  {moved / 7 / tasks**2 / 1e3:,.1f} kB in a block on average",
        f"  {hours:,.1f} core hours (extrapolated), without reading and sketching",
    )
    if tasks <= MOST_TASKS:
        return lines
    return (*lines, f"  more than the {MOST_TASKS:,} tasks there can be: give workers more memory")
