"""If a session does not start, the error gives the root cause, and mentions Java only if Java is the cause."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from nddup.spark.java import (
    DEFAULTS,
    HOW,
    REFUSED,
    SHORT_LIVED,
    SMALL_BYTES,
    Java,
    capture_jvm_stderr,
    give_way,
    is_small,
    join_options,
    users_options,
    why_not_started,
)
from nddup.spark.session import LOCAL, SMALL, _options_of_new
from tests.places import ROOT

JAVA = Java(Path("/java"), 'JAVA_VERSION="17.0.15"\nMODULES="java.base jdk.incubator.vector"\n', 17)
EXITED = RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")
CALLED = "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"


@pytest.mark.parametrize(
    ("java", "said"),
    [
        (None, "no Java was found"),
        (Java(Path("/old"), 'JAVA_VERSION="11.0.2"', 11), "/old is Java 11"),
        (Java(Path("/old"), 'JAVA_VERSION="1.8.0_402"', 8), "/old is Java 8"),
        (JAVA._replace(release='MODULES="java.base"'), "/java has no module jdk.incubator.vector"),
    ],
)
def test_a_java_that_cannot_do_says_how_to_get_one(java: Java | None, said: str) -> None:
    """An unsuitable Java is reported with how to install one, whatever else was printed."""
    assert why_not_started(EXITED, ["JAVA_HOME is not set"], java) == f"Spark did not start: {said}; {HOW}"


@pytest.mark.parametrize(
    ("error", "lines", "said"),
    [
        (
            EXITED,
            ["", "Invalid maximum heap size: -Xmxlots", "Error: Could not create the Java Virtual Machine."],
            "Invalid maximum heap size: -Xmxlots",
        ),
        (
            EXITED,
            [
                'Exception in thread "main" org.apache.spark.SparkException: Master must be yarn, or start with spark',
                "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1050)",
            ],
            "Master must be yarn, or start with spark",
        ),
        (
            RuntimeError(
                f"{CALLED}: org.apache.spark.SparkException: Could not parse Master URL: 'lokal'\n\tat a.b(C:1)"
            ),
            ["12:00:01 ERROR SparkContext: Error initializing SparkContext."],
            "Could not parse Master URL: 'lokal'",
        ),
        (
            RuntimeError(
                f"{CALLED}: java.lang.IllegalStateException: outer\n\tat a.b(C:1)\n"
                "Caused by: java.io.IOException: middle\n\tat a.b(C:1)\nCaused by: java.net.ConnectException: deepest\n"
            ),
            [],
            "deepest",
        ),
        (EXITED, [], str(EXITED)),
        (
            RuntimeError(
                f"{CALLED}: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
            ),
            [],
            REFUSED,
        ),
        (
            RuntimeError("Cannot call methods on a stopped SparkContext."),
            ["a word", "12:00:01 ERROR StandaloneSchedulerBackend: All masters are unresponsive! Giving up."],
            "All masters are unresponsive! Giving up.",
        ),
    ],
)
def test_the_deepest_cause_is_told_and_nothing_of_java(error: Exception, lines: list[str], said: str) -> None:
    """The error is the first useful line that the process printed, or the innermost cause of an exception."""
    assert why_not_started(error, lines, JAVA) == f"Spark did not start: {said}"


HEARING = """
import subprocess, sys
from nddup.spark.java import capture_jvm_stderr

try:
    with capture_jvm_stderr() as said:
        child = subprocess.Popen(
            ["sh", "-c", "echo 'WARNING: Using incubator modules: x' >&2; echo early >&2; read line; echo late >&2"],
            stdin=subprocess.PIPE,
        )
        while not said:
            pass
        sys.stderr.write("mine\\n"); sys.stderr.flush()
        if "fails" in sys.argv:
            raise ValueError("did not start")
except ValueError:
    print("heard", said[0])
child.communicate(b"go\\n")
import time; time.sleep(0.5)
sys.stderr.write("after\\n")
"""


@pytest.mark.parametrize(
    ("word", "out", "err"), [("starts", "", "mine early late after"), ("fails", "heard early", "mine after")]
)
def test_what_a_machine_says_is_passed_on_once_it_runs(word: str, out: str, err: str) -> None:
    """JVM output is passed on once it runs, except usual warnings and after a failed start; our own always at once."""
    done = subprocess.run(
        [sys.executable, "-c", HEARING, word],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert done.stdout.split() == out.split()
    assert done.stderr.split() == err.split()


def test_what_is_heard_is_left_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    """Standard error is restored after a `capture_jvm_stderr` block, however it ends."""
    with capture_jvm_stderr():
        pass
    with pytest.raises(KeyError), capture_jvm_stderr():
        raise KeyError
    os.write(2, b"straight\n")

    assert capfd.readouterr().err == "straight\n"


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("", SHORT_LIVED),
        ("-Xss4m -Da=b", SHORT_LIVED),
        ("-XX:+UseG1GC", SHORT_LIVED[:2]),
        ("-XX:TieredStopAtLevel=4", SHORT_LIVED[1:]),
        (" ".join(SHORT_LIVED), ()),
    ],
)
def test_the_options_of_the_user_win(given: str, left: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's Java options override ours wherever they are given: Java refuses to start with two collectors."""
    for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS"):
        monkeypatch.setenv(name, "")
    assert give_way(SHORT_LIVED, given) == list(left)
    for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS"):
        with monkeypatch.context() as patch:
            patch.setenv(name, given)
            assert give_way(SHORT_LIVED, users_options({})) == list(left)
    assert give_way(SHORT_LIVED, users_options({"spark.driver.extraJavaOptions": given})) == list(left)


def test_options_come_apart_again_as_they_were() -> None:
    """Joined options, split as a shell and Spark split them, are the originals, even with blanks and quotes."""
    options = ["-Da=b c", 'say "no"', "back\\slash", "-XX:+UseSerialGC"]

    assert shlex.split(join_options(options)) == options


def test_what_is_small_is_on_this_machine_and_short(tmp_path: Path) -> None:
    """Local files and whole folders of at most `SMALL_BYTES` together are small; missing paths count as empty."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    large = tmp_path / "a" / "b" / "large"
    with large.open("wb") as file:
        file.truncate(SMALL_BYTES)

    for name in ("up", "here", "again"):
        (tmp_path / name).symlink_to(tmp_path)
    assert is_small([str(tmp_path), "/no/such/file"])
    (tmp_path / "one").write_bytes(b"1")
    assert not is_small([str(tmp_path)])
    assert is_small([large.as_uri()])
    assert not is_small(["hdfs:///pages"])


def test_only_a_session_for_small_inputs_is_short_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a session for small inputs gets the options of a short-lived JVM, and the user's settings override."""
    for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    key = "spark.sql.shuffle.partitions"

    short = _options_of_new("local[2]", {}, None, is_small=True)
    assert short[DEFAULTS].endswith(" ".join(SHORT_LIVED))
    assert short.items() >= SMALL.items()
    unknown = _options_of_new("local[2]", {}, None, is_small=False)
    cluster = _options_of_new("spark://host:7077", {}, None, is_small=True)
    given = _options_of_new(
        "local[2]", {key: "7", "spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, None, is_small=True
    )

    assert cluster[DEFAULTS].endswith(" ".join(SHORT_LIVED))
    assert cluster.items() >= SMALL.items()
    assert all(option not in unknown[DEFAULTS] for option in SHORT_LIVED)
    assert (unknown[key], given[key]) == (LOCAL[key], "7")
    assert "GC" not in given[DEFAULTS]
