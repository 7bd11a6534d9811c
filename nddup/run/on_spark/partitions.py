"""The number of tasks of the block shuffles: as set, else by the size of the collection and the memory of a task."""

from nddup.errors import ConfigError
from nddup.matching.task_sizes import MOST_TASKS, tasks_needed, volume_of
from nddup.run.on_spark.state import Job
from nddup.run.task_memory import PYTHON_MEMORY
from nddup.spark.reach import reach

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def choose_partitions(job: Job, *, ids: int, sketches: int) -> int:
    """Return the number of tasks of the block shuffles, for `ids` ids in `sketches` distinct sketches.

    Raises:
        ConfigError: if `spark.sql.shuffle.partitions` is set to fewer tasks than the memory of a task allows, or if
            more than `MOST_TASKS` would be used.
    """
    needed = tasks_needed(volume_of(ids, sketches, job.threshold), job.task_memory)
    given = job.config.spark.get(SHUFFLE_PARTITIONS)
    chosen = int(given) if given else max(reach(job.spark).parallelism(), needed)

    memory = f"{job.task_memory >> 20:,} MB"
    if chosen < needed:
        raise ConfigError(
            f"{SHUFFLE_PARTITIONS}={chosen}: {ids:,} ids of {sketches:,} distinct sketches need {needed:,} tasks of"
            f" {memory}; set at least that many, or raise {PYTHON_MEMORY}"
        )
    if chosen > MOST_TASKS:
        raise ConfigError(
            f"{chosen:,} tasks of {memory} for {ids:,} ids of {sketches:,} distinct sketches, more than the"
            f" {MOST_TASKS:,} there can be; raise {PYTHON_MEMORY}"
        )
    return chosen
