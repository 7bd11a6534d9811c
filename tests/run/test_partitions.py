"""The number of tasks of the pairs stage: by the memory of a task, more if more are set."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from nddup.errors import CapacityError, ConfigError
from nddup.matching.task_sizes import BASE_BYTES
from nddup.matching.threshold import Threshold
from nddup.mining.pair_graph import most_nodes
from nddup.settings.load import load_config
from nddup.spark.steps.clustering import STORED_DOCUMENT, require_one_graph, tell_one_graph
from nddup.spark.steps.pairing import choose_partitions
from nddup.spark.steps.state import Job

NEEDED = 1_000
"""Tasks that `IDS` ids need if each task has 1 GB to spare and prefixes are almost empty."""

IDS = (NEEDED << 30) // 48


def choose(given: str | None, *, cores: int = 4, memory: int = BASE_BYTES + (1 << 30), ids: int = IDS) -> int:
    """Choose the partitions of a job with these cores, this memory per task and so many ids."""
    return _choose(given, cores, memory, ids)[0]


def noted(given: str) -> list[str]:
    """Return the notes of a choice."""
    return _choose(given, 4, BASE_BYTES + (1 << 30), IDS)[1]


def _choose(given: str | None, cores: int, memory: int, ids: int) -> tuple[int, list[str]]:
    job: Any = SimpleNamespace(
        threshold=Threshold("resemblance", 1, 1, is_count=False, size=200),
        task_memory=memory,
        config=SimpleNamespace(spark={} if given is None else {"spark.sql.shuffle.partitions": given}),
        spark=SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores)),
    )
    tasks, notes = choose_partitions(cast("Job", job), ids=ids, sketches=ids // 200)
    assert bool(notes) == (tasks == NEEDED)
    return tasks, notes


def test_the_memory_or_the_cores_decide() -> None:
    """There are as many tasks as the ids need, and at least one per core; twice the spare memory halves the need."""
    assert choose(None) == NEEDED
    assert choose(None, memory=BASE_BYTES + (2 << 30)) == NEEDED // 2
    assert choose(None, cores=5_000) == 5_000
    assert choose(None, ids=0) == 4


def test_what_is_set_is_taken_if_it_is_enough() -> None:
    """A number that fits the memory is used; of too few the note says what is used instead; too many are refused."""
    assert choose("1001") == 1_001
    assert choose("7", ids=100) == 7
    assert choose("auto") == choose("999") == NEEDED
    assert noted("999")[-1].startswith("1,000 tasks instead of 999: 22,369,621,333 ids")
    with pytest.raises(ConfigError, match=r"shuffle\.partitions: expected a number of tasks, .* got many"):
        choose("many")
    with pytest.raises(ConfigError, match=r"more than the 65,536 there can be; raise spark\.executor\.pyspark\.memory"):
        choose(None, ids=200 * IDS)


CONTAINED = ["sketch.kind=mod-m", "pairs.measure=containment", "pairs.confirm=none", "clusters.mode=partition"]


@pytest.mark.parametrize(
    ("settings", "is_refused"),
    [([], False), (CONTAINED, True), (["keep.force=force.csv"], True), (["keep.max_lost=0.1"], True)],
)
def test_rules_with_a_direction_are_refused_before_pairs(
    settings: list[str],
    is_refused: bool,  # noqa: FBT001 - a parameter of the test
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Where not every pair may remove a document, one task must hold all sketches; the memory named is just enough.

    It is said before anything is read, of inputs that may hold so many.
    """
    config = load_config(None, settings)
    job: Any = SimpleNamespace(config=config, task_memory=1 << 30)
    job.most_nodes = lambda bits: most_nodes(job.task_memory, bits)
    tell_one_graph(job, 30_000_000 * STORED_DOCUMENT)
    assert caplog.messages == []
    tell_one_graph(job, 40_000_000 * STORED_DOCUMENT)
    foretold = " ".join(caplog.messages)
    documents: Any = SimpleNamespace(counts={"distinct_sketches": 40_000_000})
    said = ""
    try:
        require_one_graph(job, documents)
    except CapacityError as error:
        said = str(error)

    assert bool(said) == bool(foretold) == is_refused
    if is_refused:
        enough = said.partition("give each task ")[2].split()[0]
        assert f" {enough} MB for each task" in foretold
        job.task_memory = int(enough.replace(",", "")) << 20
        require_one_graph(job, documents)
        job.task_memory -= 1 << 20
        with pytest.raises(CapacityError, match="40,000,000 distinct sketches, more than"):
            require_one_graph(job, documents)
