"""Folders that the user may not open are refused in one line with exit status 2: no file is left out silently."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from nddup.cli import main
from nddup.errors import ConfigError
from nddup.storage.local_storage import LocalStorage

NOBODY = 65534


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run in a folder with a collection that a user other than root can read: root can open everything."""
    with TemporaryDirectory() as made:
        place, user = Path(made), os.geteuid()
        place.chmod(0o755)
        (place / "in/sub").mkdir(parents=True)
        for name in ("a.jsonl", "sub/b.jsonl"):
            (place / "in" / name).write_text('{"id": "a", "text": "one two three"}\n', encoding="utf-8")
        monkeypatch.chdir(place)

        yield place

        os.seteuid(user)
        for folder in ("in", "in/sub"):
            (place / folder).chmod(0o755)


def lock(path: Path, mode: int) -> None:
    """Set the mode of a path and, as root, become a user to whom it applies."""
    path.chmod(mode)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)


@pytest.mark.parametrize("mode", [0o000, 0o444])
@pytest.mark.parametrize("locked", ["in", "in/sub"])
def test_a_locked_folder(locked: str, mode: int, place: Path) -> None:
    """A folder is refused if it may not be listed, or if it may be listed but its files may not be examined."""
    lock(place / locked, mode)

    with pytest.raises(ConfigError, match=r"^INPUT in: cannot be listed \(.*Permission denied\)$") as refused:
        LocalStorage().list_inputs(["in"])

    unseen = {"in": place / "in/a.jsonl", "in/sub": place / "in/sub/b.jsonl"}[locked] if mode else place / locked
    assert (str(unseen) in str(refused.value)) == (mode != 0 or locked == "in/sub")


def test_what_the_commands_say(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`inspect` of a locked collection and `show` of a locked run give exit status 2 and one line."""
    assert main(["inspect", "in"]) == 0  # loads the modules, which the other user may not be able to read
    assert main(["show", "in"]) == 2
    capsys.readouterr()
    lock(place / "in", 0)

    assert main(["inspect", "in"]) == 2
    assert capsys.readouterr() == ("", "nddup: INPUT in: cannot be listed (Permission denied)\n")
    assert main(["show", "in"]) == 2
    assert capsys.readouterr() == ("", "nddup: in: cannot be listed (Permission denied)\n")
