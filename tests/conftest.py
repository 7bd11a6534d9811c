"""The Spark session of the tests, the folder of the shared test data, and the profile of the random tests.

Spark's modules are loaded by the fixtures that use them: a test without Spark starts half a second earlier.
"""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from nddup.ground import progress
from tests.places import SHARED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from nddup.engines.engine import Engine

PARTITIONS = "spark.sql.shuffle.partitions"
PROOFS = {"spark", "stages", "embedded", "test_large_clusters", "test_confirmed_on_spark"}
"""Folders and modules whose tests prove each stage on Spark, or that both engines agree."""
READING = {"test_long_records", "test_hadoop_files"}
"""Modules of these folders that prove how Spark reads: one task does the rest, for a tenth of the CPU time."""

RETAINED = ("ui.retainedJobs", "ui.retainedStages", "ui.retainedTasks", "sql.ui.retainedExecutions")
"""What Spark keeps for its web page, which no test opens: plans of a thousand queries, in the way of each collection
of garbage."""

collect_ignore_glob = ["*conftest.py"]
"""None has an example; read for examples, those of two folders given together would be two modules of one name."""

# Each random test draws the same in every run, and nothing is stored that a later run would draw from; `make explore`
# chooses the second profile, with a seed and more examples.
settings.register_profile("nddup", deadline=None, derandomize=True, database=None, max_examples=30)
settings.register_profile("explore", deadline=None, derandomize=False, database=None)
settings.load_profile("nddup")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that needs a JVM or the shared data, by the fixtures it requests."""
    for item in items:
        for name in {"spark", "shared"}.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:  # noqa: ANN401 - xdist has no types
    """Let few of the processes start a session of Spark."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.spark_files import FewSessions  # noqa: PLC0415 - xdist may be missing

    return FewSessions(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Make the class archive before a test that needs a JVM; skip tests marked `shared` if the shared data is missing.

    With NDDUP_REQUIRE_SHARED=1 these tests fail instead.
    """
    if any(item.get_closest_marker(name) for name in ("spark", "cluster", "airflow")):
        from tests.java_archive import make_archive  # noqa: PLC0415 - for Spark alone

        make_archive()
    if item.get_closest_marker("shared") is None or SHARED.is_dir():
        return
    reason = f"no test data in {SHARED}; NDDUP_SHARED names another folder"
    if os.environ.get("NDDUP_REQUIRE_SHARED") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def _patience() -> Iterator[None]:
    """Keep commands from showing progress, however slow the machine: tests compare what commands print."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "PATIENCE", float("inf"))
        yield


@pytest.fixture(autouse=True)
def _heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `-q` of one test not silence the next: a command turns progress off for its whole process."""
    monkeypatch.setattr(progress, "_quiet", [])


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the shared test data."""
    return SHARED


@pytest.fixture(scope="session")
def _session() -> "Iterator[SparkSession]":
    """One session of two cores for all tests; its JVM collects garbage seldom, and is otherwise that of a short run."""
    from nddup.spark.java import SHORT_LIVED  # noqa: PLC0415 - for Spark alone
    from nddup.spark.session import start_session  # noqa: PLC0415 - for Spark alone

    options = ("-Xmn1500m", *(f"-Dspark.{key}=9" for key in RETAINED))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nddup.spark.session.SHORT_LIVED", (*SHORT_LIVED, *options))
        session = start_session(
            master="local[2]",
            settings={"spark.default.parallelism": "2", "spark.driver.memory": "4g"},
            is_small=True,
        )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def spark(_session: "SparkSession", request: pytest.FixtureRequest) -> "Iterator[SparkSession]":
    """
    The session of all tests; it shuffles to two partitions where stages are proved, so that a wrong order can show.

    There the driver takes no records, documents that are alone do not move, and no task takes all documents except in
    modules of `READING`. Elsewhere it shuffles to one, which is enough to read, resume, check or print a run: each task
    costs some 10 ms.
    """
    from nddup.spark.session import set_to  # noqa: PLC0415 - for Spark alone
    from nddup.spark.steps import clustering, documents, one_task  # noqa: PLC0415 - for Spark alone

    is_proof = bool(PROOFS & {request.node.path.parent.name, request.node.path.stem})
    with set_to(_session, {PARTITIONS: "2" if is_proof else "1"}), pytest.MonkeyPatch.context() as patch:
        if is_proof:
            patch.setattr(documents, "FEW_BYTES", -1)
            patch.setattr(clustering, "MANY", 0)
        if is_proof and request.node.path.stem not in READING:
            patch.setattr(one_task, "fits_one", lambda *_, **__: False)
        yield _session


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session_or_none(request: pytest.FixtureRequest) -> "SparkSession | None":
    """None for the embedded engine, then the session: each test that requests it runs once with each."""
    return request.getfixturevalue("spark") if request.param == "spark" else None


@pytest.fixture
def engine(session_or_none: "SparkSession | None") -> "Iterator[Engine]":
    """The embedded engine, then Spark's, over no tables: each test that requests it proves a stage on both."""
    from tests.engine_rows import engine_over  # noqa: PLC0415 - loads DuckDB

    engine = engine_over(session_or_none)
    yield engine
    engine.forget()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Start a stand-in for S3 with a bucket `box`; yield its address."""
    s3fs = pytest.importorskip("s3fs")
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - optional

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    s3fs.S3FileSystem(key="a", secret="b", endpoint_url=address).mkdir("box")  # noqa: S106 - for a stand-in
    yield address
    server.stop()
