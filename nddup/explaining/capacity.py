"""How the pairs stage on Spark is divided for a collection of a given size: tasks, bytes, blocks, core hours.

The number of tasks is what a run takes (`nddup.matching.task_sizes`). The rest is arithmetic from measured collections,
with its assumptions said beside it.
"""

from nddup.errors import ConfigError
from nddup.explaining.curves import SHUFFLED_BYTES
from nddup.matching.task_sizes import MOST_TASKS, tasks_needed, volume_of
from nddup.settings.derive import threshold_of
from nddup.settings.schema import Config

DISTINCT = 85
"""Of a hundred documents, those with a sketch of their own: the others have the sketch of one before."""

NANOSECONDS_OF_ID = 450
"""Of one core, in the kernels of all tasks."""

NANOSECONDS_OF_BYTE = 9.3
"""Of one core, for a byte that goes from Python through a shuffle to Python, in blocks of 64 KB."""


def explain_capacity(config: Config, *, documents: int, memory: int, ids_of_sketch: int) -> tuple[str, ...]:
    """Lines on tasks, bytes and hours of the pairs stage.

    Args:
        config: the settings of the run.
        documents: of the collection.
        memory: of the Python worker of one task, in bytes.
        ids_of_sketch: of the usual sketch; 0 if it has no limit.

    Raises:
        ConfigError: if sketches of the kind have no usual size.
    """
    if not ids_of_sketch:
        raise ConfigError(f"--documents: sketches of the kind {config.sketch.kind} have no size of their own to count")

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
        f"  {hours:,.1f} core hours (by arithmetic); reading and sketching come on top",
    )
    if tasks <= MOST_TASKS:
        return lines
    return (*lines, f"  more than the {MOST_TASKS:,} tasks there can be: give workers more memory")
