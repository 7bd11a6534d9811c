"""The Spark session of the tests, the folder of the shared test data, and how random tests run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from nddup import steps
from nddup.run.session import set_to, start_session
from tests.java_archive import make_archive
from tests.places import SHARED

PROOFS = {"spark", "local", "test_large_clusters", "test_confirmed_on_spark"}
"""Folders and modules that prove each stage on Spark, and that both engines agree."""

settings.register_profile("nddup", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("nddup")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a JVM or the shared data by the fixtures it asks for."""
    for item in items:
        for name in {"spark", "shared"}.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(name)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without the shared data skip what is marked `shared`, or fail it where NDDUP_REQUIRE_SHARED=1.

    What needs a JVM finds the archive of Spark's classes.
    """
    if any(item.get_closest_marker(name) for name in ("spark", "cluster", "airflow")):
        make_archive()
    if item.get_closest_marker("shared") is None or SHARED.is_dir():
        return
    reason = f"no test data in {SHARED}; NDDUP_SHARED names another folder"
    if os.environ.get("NDDUP_REQUIRE_SHARED") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def _patience() -> Iterator[None]:
    """No command tells how it goes on, however slow the machine: what it prints is compared with what it should."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "PATIENCE", float("inf"))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the shared test data."""
    return SHARED


@pytest.fixture(scope="session")
def _session() -> Iterator[SparkSession]:
    """One session for all tests, of two cores."""
    session = start_session(
        master="local[2]",
        settings={
            "spark.default.parallelism": "2",
            "spark.driver.memory": "2g",
        },
        is_small=True,
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def spark(_session: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """
    The session of all tests. It shuffles to two partitions where stages are proved, so that a wrong order can show.

    Elsewhere to one, as each task costs some 10 ms: what reads, resumes, checks or prints a run asks for no more.
    """
    is_proof = bool(PROOFS & {request.node.path.parent.name, request.node.path.stem})
    with set_to(_session, {"spark.sql.shuffle.partitions": "2" if is_proof else "1"}):
        yield _session


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session_or_none(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test that asks for it is done twice: without a session, by the embedded engine, and on Spark."""
    return request.getfixturevalue("spark") if request.param == "spark" else None
