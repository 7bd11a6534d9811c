"""The archive of Spark's classes: its name, when there is none, and when it is made. No Java is started."""

import os
import time
from pathlib import Path

import pytest

from nddup.ground.start_up import cache_folder
from nddup.spark import java as class_archive
from nddup.spark.java import Java, archive_path, archiving, find_java

JAVA = Java(Path("/java"), 'JAVA_VERSION="17.0.15"', 17)
OUTSIDE = ("NDDUP_CACHE_DIR", "XDG_CACHE_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "JAVA_HOME")


@pytest.fixture(autouse=True)
def spark_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Spark of one jar and a cache folder that does not exist yet, without the machine's own settings."""
    for name in OUTSIDE:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "core.jar").write_bytes(b"classes")
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "cache"))
    return home


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """An empty cache folder."""
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def name_now(java: Java = JAVA, users: str = "") -> Path:
    """Return the path of the archive for a Java and its options."""
    path = archive_path(java, {}, users)
    assert path is not None
    return path


def test_the_name_changes_with_all_that_java_compares(spark_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name changes with the Java, its path, its options, the jars, their times, and the version of Spark."""
    jar = spark_home / "jars" / "core.jar"
    names = [
        name_now(),
        name_now(JAVA._replace(release='JAVA_VERSION="17.0.16"')),
        name_now(JAVA._replace(home=Path("/other"))),
        name_now(users="-XX:-UseCompressedOops"),
    ]
    assert name_now() == names[0]

    os.utime(jar, ns=(1, 1))
    names.append(name_now())
    jar.write_bytes(b"more classes")
    names.append(name_now())
    (spark_home / "jars" / "more.jar").write_bytes(b"")
    names.append(name_now())
    monkeypatch.setattr("pyspark.__version__", "4.3.1")
    names.append(name_now())

    assert len(set(names)) == len(names)
    assert names[0].name.startswith("spark-4.3.0-java-17-")


@pytest.mark.parametrize(
    "option",
    ["-Xshare:off", "-XX:SharedArchiveFile=/a.jsa", "-XX:ArchiveClassesAtExit=/a", "-XX:+AutoCreateSharedArchive"],
)
def test_a_users_own_archive_leaves_ours_out(option: str) -> None:
    """A user's own option about archives rules out the archive."""
    assert archiving(JAVA, {}, f"-Da=b {option}") == []
    assert archiving(JAVA, {}, "-Da=b") != []


def test_another_class_path_has_no_archive(spark_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No archive is used if folders of settings or the user's jars change the class path, or without Java or Spark."""
    assert archiving(None, {}, "") == []
    assert archiving(JAVA, {"spark.driver.extraClassPath": "/a.jar"}, "") == []
    with monkeypatch.context() as patch:
        patch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
        assert archiving(JAVA, {}, "") == []
    with monkeypatch.context() as patch:
        patch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "a:b"))
        assert archiving(JAVA, {}, "") == []
    (spark_home / "conf").mkdir()
    assert archiving(JAVA, {}, "") == []
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "none"))
    assert archiving(JAVA, {}, "") == []


def test_it_is_made_once_and_then_used() -> None:
    """A session makes the archive if there is none; otherwise it maps the file and updates its modification time."""
    path = name_now()
    assert archiving(JAVA, {}, "") == [f"-XX:ArchiveClassesAtExit={path}", class_archive.SILENT]

    path.write_bytes(b"archive")
    os.utime(path, (1, 1))

    assert archiving(JAVA, {}, "") == [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", class_archive.SILENT]
    assert time.time() - path.stat().st_mtime < 60


def test_one_that_was_begun_and_never_ended_is_made_again(cache: Path) -> None:
    """A file without a head, which Java writes last, is made again, but only once it is too old to be in progress."""
    path = name_now()
    path.write_bytes(bytes(4096))
    assert archiving(JAVA, {}, "")[0].startswith("-XX:SharedArchiveFile=")

    os.utime(path, (1, 1))
    assert path.parent == cache
    assert archiving(JAVA, {}, "")[0] == f"-XX:ArchiveClassesAtExit={path}"


def test_where_none_can_be_made_none_is_recorded_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No archive is made if the folder is a file, the disk is full, or Java may not start with the options."""
    for java in (JAVA._replace(major=11), JAVA._replace(major=25), JAVA._replace(release='JVM_VARIANT="Openj9"')):
        assert archiving(java, {}, "") == []
    with monkeypatch.context() as patch:
        patch.setattr(class_archive, "FREE_BYTES", 1 << 62)
        assert archiving(JAVA, {}, "") == []
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert archiving(JAVA, {}, "") == []


def test_the_cache_folder_is_that_of_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache folder is NDDUP_CACHE_DIR, else that of XDG_CACHE_HOME if it is absolute, else that of `~/.cache`."""
    monkeypatch.setenv("NDDUP_CACHE_DIR", "/ours")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/ours")
    monkeypatch.delenv("NDDUP_CACHE_DIR")
    assert cache_folder() == Path("/xdg/nddup")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path("/home/me/.cache/nddup")


def test_archives_that_nobody_takes_any_more_are_removed(cache: Path) -> None:
    """Making an archive removes old archives, but neither recent ones nor other files."""
    old, young, other = (cache / name for name in ("spark-old.jsa", "spark-young.jsa", "other.jsa"))
    for path in (old, young, other):
        path.write_bytes(b"archive")
    for path in (old, other):
        os.utime(path, (1, 1))

    assert archiving(JAVA, {}, "") != []

    assert {path.name for path in cache.iterdir()} == {"spark-young.jsa", "other.jsa"}


def test_java_is_the_one_that_sparks_scripts_take(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Java is taken from JAVA_HOME if it is set, even if there is none, else from PATH, with links resolved."""
    home = tmp_path / "jdk-21"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert find_java() == Java(home, "", 0)
    (home / "release").write_text('JAVA_VERSION="21.0.2"\nMODULES="java.base"\n')
    found = find_java()
    assert found is not None
    assert (found.major, found.lacks_module) == (21, True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert find_java() is None


def test_a_machine_keeps_few_archives(cache: Path) -> None:
    """Making an archive leaves the last used, `MOST` with the new one, however young the others are."""
    now = time.time()
    for age in range(class_archive.MOST + 2):
        (cache / f"spark-{age}.jsa").write_bytes(b"archive")
        os.utime(cache / f"spark-{age}.jsa", (now, now - 60 * age))

    assert archiving(JAVA, {}, "") != []

    assert {path.name for path in cache.iterdir()} == {f"spark-{age}.jsa" for age in range(class_archive.MOST - 1)}
