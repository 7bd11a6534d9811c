"""A link that somebody puts into a folder meanwhile leads outside neither a removal in a repository nor an input."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from nddup.repository.mapped import FOLDER, _set_aside
from nddup.repository.places import DiskPlace, remove_mapped_drafts
from nddup.scanning.walk import open_stored
from nddup.storage.local_storage import LocalStorage

Removal = Callable[[Path], object]

REMOVALS: dict[str, Removal] = {
    "a segment": lambda repo: DiskPlace(str(repo)).remove_segment("one"),
    "old drafts": lambda repo: remove_mapped_drafts(repo, before=1e12),
    "mapped files": lambda repo: _set_aside(repo / "segments" / "one" / FOLDER),
}
SWAPPED = ("segments", "segments/one", f"segments/one/{FOLDER}", "segments/one/.mapped-draft")


def make_files(folder: Path) -> None:
    """Write what a repository and the folder of its owner both hold, so that a link has all the names."""
    for name in (FOLDER, ".mapped-draft"):
        (folder / "segments" / "one" / name).mkdir(parents=True)
        (folder / "segments" / "one" / name / "a.array").write_text("precious")


def make_input(folder: Path, line: bytes) -> Path:
    """Write a file two folders deep, in folders where all may write."""
    file = folder / "pages" / "deep" / "a.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(line)
    for one in (folder, folder / "pages", file.parent):
        one.chmod(0o777)
    return file


def do_with_swap(action: Callable[[], object], swapped: Path, aside: Path, target: Path, moment: int) -> bool:
    """Act, and put a link in the place of a file or folder just before a call to the system; say if it came so far."""
    calls = 0

    def count(_: FrameType, event: str, called: object) -> None:
        nonlocal calls
        if event == "c_call" and getattr(called, "__module__", "") in {"posix", "nt"}:
            calls += 1
            if calls == moment and swapped.exists():
                os.rename(swapped, aside)  # noqa: PTH104 - as short as can be
                os.symlink(target, swapped)  # noqa: PTH211

    sys.setprofile(count)
    try:
        with suppress(OSError):
            action()
    finally:
        sys.setprofile(None)
    return calls >= moment


@pytest.mark.parametrize("name", SWAPPED)
@pytest.mark.parametrize("removal", REMOVALS)
def test_no_removal_follows_a_link_that_appears(removal: str, name: str, tmp_path: Path) -> None:
    """At each call to the system, between looking and opening too, a folder becomes a link to files of the owner."""
    moment, is_reached = 0, True
    while is_reached:
        moment += 1
        repo, outside = tmp_path / f"repo{moment}", tmp_path / f"outside{moment}"
        make_files(repo)
        make_files(outside)
        remove = REMOVALS[removal]
        is_reached = do_with_swap(lambda: remove(repo), repo / name, repo / "aside", outside / name, moment)  # noqa: B023
        assert sum(file.read_text() == "precious" for file in outside.rglob("*.array")) == 2, moment
    assert moment > 3


@pytest.mark.parametrize("name", ["pages", "pages/deep", "pages/deep/a.jsonl"])
def test_no_input_is_read_through_a_link_that_appears(name: str, tmp_path: Path) -> None:
    """Between the listing and each call to the system that opens a file, this or its folder becomes a link."""
    make_input(tmp_path / "outside", b"of the owner")
    moment, is_reached, found = 0, True, list[bytes]()

    def read(path: str) -> None:
        with open_stored(path) as file:
            found.append(file.read())

    while is_reached:
        moment += 1
        inputs = tmp_path / f"input{moment}"
        make_input(inputs, b"of the input")
        (listed,) = LocalStorage().list_inputs([str(inputs)]).files
        swap = inputs / name, inputs / "aside", tmp_path / "outside" / name
        is_reached = do_with_swap(lambda: read(listed.path), *swap, moment)  # noqa: B023
    assert moment > 3
    assert set(found) == {b"of the input"}


def test_a_link_where_nobody_else_may_write_is_followed(tmp_path: Path) -> None:
    """Of a collection that several machines read, a folder may be a link on some; nobody else can have put it there."""
    file = make_input(tmp_path / "mounted", b"of the input")
    (tmp_path / "pages").symlink_to("mounted/pages")
    (file.parent / "again.jsonl").symlink_to("a.jsonl")

    with open_stored(str(tmp_path / "pages/deep/a.jsonl")) as opened:
        assert opened.read() == b"of the input"
    with pytest.raises(OSError, match="a link came in its way"):
        open_stored(str(file.parent / "again.jsonl"))
