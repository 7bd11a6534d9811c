"""A link that somebody puts into a repository while something is removed there leads no removal outside."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from nddup.repository.mapped import FOLDER, _set_aside
from nddup.repository.places import DiskPlace, remove_mapped_drafts

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


def remove_with_swap(removal: Removal, repo: Path, swapped: Path, target: Path, moment: int) -> bool:
    """Remove, and put a link in a folder's place just before a call to the system; return whether it came so far."""
    calls = 0

    def count(_: FrameType, event: str, called: object) -> None:
        nonlocal calls
        if event == "c_call" and getattr(called, "__module__", "") in {"posix", "nt"}:
            calls += 1
            if calls == moment and swapped.exists():
                os.rename(swapped, repo / "aside")  # noqa: PTH104 - as short as can be
                os.symlink(target, swapped)  # noqa: PTH211

    sys.setprofile(count)
    try:
        with suppress(OSError):
            removal(repo)
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
        is_reached = remove_with_swap(REMOVALS[removal], repo, repo / name, outside / name, moment)
        assert sum(file.read_text() == "precious" for file in outside.rglob("*.array")) == 2, moment
    assert moment > 3
