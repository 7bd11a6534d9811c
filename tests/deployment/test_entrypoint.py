"""The entry point of the image starts what Spark on Kubernetes asks of it, and any command of docker-compose.yml."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.places import ROOT

POD = {
    "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.1",
    "SPARK_DRIVER_URL": "spark://driver:7078", "SPARK_EXECUTOR_ID": "3", "SPARK_EXECUTOR_CORES": "4",
    "SPARK_EXECUTOR_MEMORY": "2g", "SPARK_APPLICATION_ID": "app", "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_RESOURCE_PROFILE_ID": "0", "SPARK_EXECUTOR_POD_NAME": "pod",
    "SPARK_JAVA_OPT_10": "-Dlast=a b", "SPARK_JAVA_OPT_2": "-Dfirst=1",
}  # fmt: skip
"""What Kubernetes sets in the pods of a driver and of an executor."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Spark and a Java that print their arguments."""
    for name in ("bin/spark-submit", "java/bin/java"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        (tmp_path / name).chmod(0o755)
    return tmp_path


def started(home: Path, *words: str, **variables: str) -> list[str]:
    """Return the arguments of what the entry point starts."""
    settings = {
        "PATH": os.environ["PATH"],
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(home / "java"),
        **POD,
        **variables,
    }
    script = ROOT / "scripts" / "entrypoint.sh"
    return subprocess.run(
        [script, *words], env=settings, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_a_driver_is_submitted_in_its_pod(home: Path) -> None:
    """`driver` is spark-submit in client mode, bound to the pod's address, with the arguments that follow."""
    assert started(home, "driver", "--properties-file", "/conf", "local:///job.py", "a b") == [
        "--conf", "spark.driver.bindAddress=10.0.0.1", "--conf", "spark.executorEnv.SPARK_DRIVER_POD_IP=10.0.0.1",
        "--deploy-mode", "client", "--properties-file", "/conf", "local:///job.py", "a b",
    ]  # fmt: skip


def test_an_executor_is_started_with_its_options_in_order(home: Path) -> None:
    """`executor` is Spark's backend for Kubernetes, with Java's options by number and every value of the pod."""
    told = started(home, "executor")

    assert told[:4] == ["-Dfirst=1", "-Dlast=a b", "-Xms2g", "-Xmx2g"]
    assert f"{home}/jars/*" in told[told.index("-cp") + 1]
    backend = told[told.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend") + 1 :]
    assert dict(zip(backend[::2], backend[1::2], strict=True)) == {
        "--driver-url": "spark://driver:7078", "--executor-id": "3", "--cores": "4", "--app-id": "app",
        "--hostname": "10.0.0.2", "--resourceProfileId": "0", "--podName": "pod",
    }  # fmt: skip


def test_any_other_words_are_a_command(home: Path) -> None:
    """A command of docker-compose.yml runs as it is."""
    assert started(home, "printf", "%s\n", "a b", "c") == ["a b", "c"]


def test_a_cpu_below_the_level_of_the_kernels_compiles_its_own(home: Path) -> None:
    (home / "new").write_text("flags : fpu avx avx2 bmi1 bmi2 f16c fma abm movbe sse4_2\n")
    (home / "old").write_text("flags : fpu avx bmi1 bmi2 f16c fma abm movbe sse4_2 avx512\n")
    show = ("sh", "-c", "echo ${NUMBA_CPU_NAME-own}${NUMBA_CPU_FEATURES- own}")
    level = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}

    assert started(home, *show, NDDUP_CPUINFO=str(home / "new"), **level) == ["x86-64-v3"]
    assert started(home, *show, NDDUP_CPUINFO=str(home / "old"), **level) == ["own own"]
    assert started(home, *show, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="", NDDUP_CPUINFO=str(home / "old")) == [
        "generic"
    ]
