"""A session without an executor says so, with what was asked and offered; what no worker can meet is refused."""

from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from nddup.errors import ConfigError, reason_of
from nddup.spark import session
from nddup.spark.session import Size, Worker, asked_of, explain_wait, require_fitting, settings_for, tell_if_waiting

SMALL = Worker(Size(1, 1900), Size(1, 300))
LARGE = Worker(Size(8, 4096), Size(0, 4096))


def test_a_request_that_no_worker_meets_is_refused() -> None:
    """It is refused in one line with both sizes; it passes if a worker could meet it when idle, or workers may come."""
    asked = asked_of({"spark.master": "spark://m:7077", "spark.executor.memory": "2g"})
    assert asked == Size(1, 2048)

    with pytest.raises(
        ConfigError, match=r"room for an executor of 1 core and 2,048 MB; the largest of 2 workers has 1"
    ):
        require_fitting(asked, [SMALL, SMALL], "spark://m:7077")
    require_fitting(asked, [SMALL, LARGE], "spark://m:7077")
    require_fitting(asked, [], "spark://m:7077")


def test_other_clusters_grant_python_its_memory_too() -> None:
    """YARN and Kubernetes count the heap, its overhead and the memory of the Python workers."""
    settings = {"spark.master": "yarn", "spark.executor.memory": "8g", "spark.executor.pyspark.memory": "4g"}

    assert asked_of(settings | {"spark.executor.cores": "4"}) == Size(4, 8192 + 819 + 4096)


def test_a_wait_is_explained_once_and_only_without_an_executor() -> None:
    """A session that waits is explained once; one that has asked for nothing, or gets an executor in time, is not."""
    told: list[float] = []
    tell_if_waiting(lambda: True, told.append, patience=0.05)
    assert len(told) == 1
    assert told[0] >= 0.05

    answers = iter([True, None, True, False])
    tell_if_waiting(lambda: next(answers), told.append, patience=0.2)
    assert len(told) == 1


def test_the_wait_names_what_is_free() -> None:
    """The line has the sizes that are free now; where the master does not tell, what may be the cause."""
    asked = Size(2, 1024)

    assert explain_wait(asked, [SMALL, LARGE], 15.2) == (
        "no executor for 15 s: asked for executors of 2 cores and 1,024 MB;"
        " free on 2 workers: 1 core and 300 MB, 0 cores and 4,096 MB"
    )
    assert "its queue may be full" in explain_wait(asked, None, 15.2)


def test_too_little_memory_is_said_as_such() -> None:
    """The error of a worker without memory says what to raise, in place of an allocator's sentence alone."""
    raw = (
        "[PYTHON_EXCEPTION] org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "large_components.py", line 1, in families_pairs_task\n'
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.95 GiB for an array with shape (1,)\n"
    )

    assert reason_of(RuntimeError(raw)) == (
        "a task needs more memory than its Python worker may take (Unable to allocate 1.95 GiB for an array with shape"
        " (1,)): raise spark.executor.pyspark.memory, or lower spark.executor.cores"
    )
    assert "MemoryError" in reason_of(MemoryError())
    assert "no more memory" in reason_of(MemoryError())


def test_small_inputs_take_few_tasks_unless_the_run_asks_for_a_number() -> None:
    """A shuffle gets a task for each 8 MB of input, never more than the session's default; a user's number is kept."""
    untouched, defaulted, chosen_there = (
        cast("SparkSession", SimpleNamespace(conf={session.PARTITIONS: number} if number else {}))
        for number in ("", "2000", "auto")
    )

    assert session.few_tasks(untouched, {}, 3 << 20) == {session.PARTITIONS: "2"}
    assert session.few_tasks(untouched, {}, 80 << 20) == {session.PARTITIONS: "10"}
    assert session.few_tasks(untouched, {}, 80 << 30) == {}
    assert session.few_tasks(defaulted, {}, 8 << 30) == {session.PARTITIONS: "1024"}
    asked = session.few_tasks(untouched, {session.PARTITIONS: "50"}, 1)
    assert asked == session.few_tasks(chosen_there, {}, 1) == {}


def test_only_the_settings_of_the_run_ask_for_a_number() -> None:
    """`auto`, as on Databricks, asks for none; what is no number is refused in one line."""
    assert session.given_partitions({}) is session.given_partitions({session.PARTITIONS: "auto"}) is None
    assert session.given_partitions({session.PARTITIONS: "5"}) == 5
    for wrong in ("0", "-1", "2.5", "some"):
        with pytest.raises(ConfigError, match=f"expected a number of tasks, at least 1, or auto, got {wrong}"):
            session.given_partitions({session.PARTITIONS: wrong})


def test_a_heap_is_a_size_as_anywhere() -> None:
    """A JVM refuses `-Xmx1536MB`, which Spark hands on as it is; what is no size is left to Spark."""
    said = {"1536MB": "1536M", "1536 mb": "1536m", "1536m": "1536m", "2g": "2g", "2 parsecs": "2 parsecs"}
    for given, due in said.items():
        assert settings_for({"spark.driver.memory": given})["spark.driver.memory"] == due
