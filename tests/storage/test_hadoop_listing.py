"""Statuses of Hadoop's file systems, in each form that they have; no Java is needed."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from nddup.spark import session_files
from nddup.spark.session_files import Entry, list_folder

Listed = Callable[[str | None], list[Entry]]

PLAIN = {"path": {"uri": "hdfs://lake/d/a%20b%3F[1].xml"}, "length": 3, "isdir": False, "modification_time": 7,
         "permission": None, "owner": "x"}  # fmt: skip
FOLDER = {"path": {"uri": "hdfs://lake/d/deep"}, "length": 0, "isdir": True, "modification_time": 8}
VIEW = {"myFs": {**PLAIN, "path": {"uri": "file:/mnt/a.xml"}}, "modifiedPath": {"uri": "viewfs://lake/d/a.xml"},
        "path": None, "length": 0, "isdir": None, "modification_time": 0}  # fmt: skip


def status(name: str) -> Any:  # noqa: ANN401 - as Java has it
    """Return a status that answers each getter."""
    uri = SimpleNamespace(toString=lambda: f"odd://{name}", getPath=lambda: f"/{name}")
    path = SimpleNamespace(toUri=lambda: uri)
    asked = {"getPath": path, "getLen": 5, "getModificationTime": 6, "isDirectory": False}
    return SimpleNamespace(**{question: lambda answer=answer: answer for question, answer in asked.items()})


SYSTEM = SimpleNamespace(listStatus=lambda _: [status("b"), status("a")])


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Listed:
    """A function that lists a folder of two statuses, which Java serialises as the given text."""

    def say(text: str | None) -> list[Entry]:
        mapper = SimpleNamespace(writeValueAsString=lambda _: text)
        monkeypatch.setattr(session_files, "_mapper_of", lambda _: mapper)
        return list_folder(None, SYSTEM, None)

    return say


def test_plain_statuses_and_those_of_a_view(listed: Listed) -> None:
    """The path is the URI without escapes; a view has its own URI, and the size and time of the file it shows."""
    assert listed(json.dumps([FOLDER, PLAIN, VIEW])) == [
        Entry("hdfs://lake/d/a%20b%3F[1].xml", "/d/a b?[1].xml", is_folder=False, size=3, modified=7),
        Entry("viewfs://lake/d/a.xml", "/d/a.xml", is_folder=False, size=3, modified=7),
        Entry("hdfs://lake/d/deep", "/d/deep", is_folder=True, size=0, modified=8),
    ]


@pytest.mark.parametrize("text", [None, "", "{}x", '[{"path": null}]', '[{"path": {"uri": "a:/b"}, "isdir": true}]'])
def test_statuses_that_cannot_be_written_are_asked(text: str | None, listed: Listed) -> None:
    """If Java cannot serialise the statuses, or not in a known form, each status is asked for its fields."""
    asked = [Entry(f"odd://{name}", f"/{name}", is_folder=False, size=5, modified=6) for name in "ab"]

    assert listed(text) == asked


def test_a_spark_without_the_library_asks_each() -> None:
    """If Spark lacks the class that serialises statuses, each status is asked for its fields."""
    found = list_folder(SimpleNamespace(com=None), SYSTEM, None)

    assert [(entry.name, entry.size) for entry in found] == [("a", 5), ("b", 5)]
