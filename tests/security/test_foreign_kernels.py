"""Compiled kernels are executed: none is read that another user could have written, wherever it lies."""

import fcntl
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest

from nddup.ground.own_files import ForeignFileError, KernelFolder, open_lock, open_own
from nddup.ground.start_up import CACHE_FOLDER, KERNELS, cache_folder
from nddup.remote import kept_copies
from tests.security.test_other_users import everyones_python, packages

VICTIM, ATTACKER, GROUP = 61_001, 61_002, 61_003
"""Users and a group that own nothing on this machine."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="acts as two other users")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can enter and that only root may write."""
    folder = Path(mkdtemp(prefix="nddup-kernels-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def own(path: Path, mode: int, *, user: int = VICTIM, group: int = VICTIM) -> Path:
    """Give a file, or a folder that is made if it is not there, to a user."""
    if not path.exists():
        path.mkdir(parents=True)
    os.chown(path, user, group)
    path.chmod(mode)
    return path


def as_user(user: int, action: Callable[[], object], *, umask: int = 0o022) -> bool:
    """Return whether an action succeeds, and returns something true, in a child that belongs to a user and GROUP."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([GROUP])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            os.umask(umask)
            os._exit(0 if action() else 1)
        except BaseException:  # noqa: BLE001 - it must not return to the test
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def is_used(home: Path) -> bool:
    """Return whether a user with a home takes kernels from its cache."""
    os.environ.pop(CACHE_FOLDER, None)
    os.environ.pop("XDG_CACHE_HOME", None)
    os.environ["HOME"] = str(home)
    return cache_folder() is not None


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def move_home(home: Path) -> None:
    """Move a home to a folder that all may write, and link it."""
    opened = own(home.parent / "open", 0o777, user=0)
    home.rename(opened / "real")
    home.symlink_to(opened / "real")


def link_home(home: Path, mode: int, user: int) -> None:
    """Move a home to a folder that only root writes, and link it from one of another mode, as a user's link."""
    there = own(home.parents[1] / "there", 0o755, user=0) / "victim"
    home.rename(there)
    home.symlink_to(there)
    os.lchown(home, user, user)
    own(home.parent, mode, user=0)


LAYOUTS: dict[str, Callable[[Path], object]] = {
    "a cache that a group may write": lambda home: own(home / ".cache", 0o775, group=GROUP),
    "a folder of ours in it that a group may write": lambda home: own(home / ".cache" / "nddup", 0o775, group=GROUP),
    "a cache that all may write": lambda home: own(home / ".cache", 0o777),
    "one that all may write, sticky": lambda home: own(home / ".cache" / "nddup", 0o1777),
    "a home that a group may write": lambda home: own(home, 0o770, group=GROUP),
    "a home in a folder that all may write": lambda home: own(home.parent, 0o777, user=0),
    "a home in a folder of the other": lambda home: own(home.parent, 0o755, user=ATTACKER),
    "a cache of the other": lambda home: own(home / ".cache", 0o755, user=ATTACKER),
    "a cache that is a link to a folder of the other": lambda home: link(
        home / ".cache", own(home.parent / "other", 0o755, user=ATTACKER)
    ),
    "a cache that is a link to what all may write": lambda home: link(
        home / ".cache", own(own(home.parent / "other", 0o777, user=0) / "cache", 0o700)
    ),
    "a home that is a link of the other": move_home,
    "a home that all may link elsewhere": lambda home: link_home(home, 0o777, VICTIM),
    "a home that the other links to ours": lambda home: link_home(home, 0o1777, ATTACKER),
    "a home far below a folder that a group may write": lambda home: own(home.parents[1], 0o775, user=0, group=GROUP),
    "a cache that links lead to, by a folder of a group": lambda home: link(
        home / ".cache", own(own(home.parent / "group", 0o2770, group=GROUP) / "own", 0o700) / ".." / "own"
    ),
    "a folder of ours that is a file's link to the other": lambda home: link(
        own(home / ".cache", 0o700) / "nddup", own(home.parent / "other", 0o700, user=ATTACKER)
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cache_that_another_could_fill_is_not_used(place: Path, layout: str) -> None:
    """Every folder and link on the way belongs to the user or root, and nobody else may write there."""
    home = own(place / "homes" / "victim", 0o755)
    assert as_user(VICTIM, lambda: is_used(home))
    LAYOUTS[layout](home)
    assert as_user(VICTIM, lambda: not is_used(home))


def makes(folder: KernelFolder) -> bool:
    folder.make()
    return True


def is_safe(folder: KernelFolder) -> bool:
    return not folder.stranger()


def replace_by_link(file: Path) -> None:
    file.rename(file.with_name("there"))
    file.symlink_to("there")


def replace_by_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)
    own(file, 0o600)


def test_a_cache_in_a_sticky_folder_is_used(place: Path) -> None:
    """In a folder as `/tmp` nobody else can exchange the user's own folder; the cache is made for the user alone."""
    own(place, 0o1777, user=0)
    for umask in (0o000, 0o002, 0o077):
        made = KernelFolder(str(place / f"cache{umask}" / "a"), mode=0o700)
        assert as_user(VICTIM, partial(makes, made), umask=umask)
        assert {path.stat().st_mode & 0o777 for path in (Path(made.path), Path(made.path).parent)} == {0o700}
        assert as_user(VICTIM, partial(is_safe, made))
        assert not as_user(ATTACKER, partial(is_safe, made))


def test_a_cache_that_links_of_ours_lead_to_is_used(place: Path) -> None:
    """Links of the user or root are followed, in a sticky folder too, where nobody else can exchange them."""
    home = own(place / "homes" / "victim", 0o755)
    link_home(home, 0o1777, VICTIM)
    link(home / ".cache", Path("..", "there", "victim", "own", "..", "own"))
    own(place / "there" / "victim" / "own", 0o700)
    assert as_user(VICTIM, lambda: is_used(home))
    (home / ".cache").unlink()
    link(home / ".cache", Path(".cache"))
    assert as_user(VICTIM, lambda: not is_used(home))


@pytest.mark.parametrize(
    "change",
    [
        lambda file: own(file, 0o664, group=GROUP),
        lambda file: own(file, 0o646),
        lambda file: own(file, 0o644, user=ATTACKER),
        replace_by_link,
        replace_by_pipe,
    ],
)
def test_a_file_that_another_could_write_is_not_read(place: Path, change: Callable[[Path], object]) -> None:
    """The file that was opened is looked at: its owner, who may write it, and whether it is a file."""
    file = own(place / "cache", 0o700) / "kernel"
    file.touch()
    own(file, 0o644)
    assert as_user(VICTIM, lambda: open_own(str(file)).close() is None)
    change(file)

    def is_refused() -> bool:
        with pytest.raises(ForeignFileError):
            open_own(str(file))
        return True

    assert as_user(VICTIM, is_refused)


def test_what_is_made_in_a_cache_is_for_its_user_alone(place: Path) -> None:
    """Whatever the umask is, each folder down to the copies is; a lock in a folder that all may read is as well."""
    home = own(place / "victim", 0o755)

    def make_copies() -> bool:
        os.environ["HOME"] = str(home)
        return is_used(home) and kept_copies._folder().is_dir()  # noqa: SLF001 - as a command would

    def make_lock() -> bool:
        with open_lock(home / "lock") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
        return True

    assert as_user(VICTIM, make_copies, umask=0)
    assert {path.stat().st_mode & 0o777 for path in (home / ".cache").rglob("*")} == {0o700}
    assert as_user(VICTIM, make_lock, umask=0)
    assert not as_user(ATTACKER, (home / "lock").open)
    own(home, 0o775, group=GROUP)
    assert as_user(VICTIM, make_lock)
    assert (home / "lock").stat().st_mode & 0o777 == 0o660


def test_kernels_beside_the_sources_are_trusted_as_these(place: Path) -> None:
    """The owner of the sources may be anyone: it is executed as well. A folder that is more open than theirs is not."""
    package = own(place / "package", 0o775, user=ATTACKER, group=GROUP)
    beside = own(package / "__pycache__", 0o775, user=ATTACKER, group=GROUP)
    folder = KernelFolder(str(beside), above=str(package))
    assert as_user(VICTIM, lambda: not folder.stranger())
    for mode, user in ((0o777, ATTACKER), (0o1777, ATTACKER), (0o755, VICTIM + 9)):
        own(beside, mode, user=user)
        assert as_user(VICTIM, folder.stranger)
    own(beside, 0o775, user=ATTACKER, group=GROUP + 1)
    assert as_user(VICTIM, folder.stranger)


class Bomb:
    """What leaves a trace when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        """Call the shell."""
        return os.system, (f"touch {self._trace}",)


CALL = """
from nddup.ground.arrays import compiled

@compiled
def add(x: int) -> int:
    return x + 1
"""


def test_planted_kernels_are_not_executed(place: Path) -> None:
    """Files in the folder that was named, beside the source and in the cache, all open to others, are not unpickled."""
    program = everyones_python()
    if program is None:
        pytest.skip("no Python that another user can execute")
    sources = own(place / "sources", 0o755, user=0)
    (sources / "made.py").write_text(CALL)
    cache, named = own(place / "home", 0o755) / ".cache" / "nddup" / "kernels", own(place / "named", 0o700)
    variables = {"HOME": f"{place}/home", "PYTHONPATH": os.pathsep.join((str(sources), *sys.path, packages()))}
    command = ["setpriv", f"--reuid={VICTIM}", f"--regid={VICTIM}", "--clear-groups", program, "-c"]
    command.append("from made import add; print(add(1), len(add.stats.cache_hits))")

    def call() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, env=variables | {KERNELS: str(named)}, cwd="/", capture_output=True, text=True, check=False
        )

    first = call()
    assert (first.stdout, first.stderr) == ("2 0\n", "")
    [below] = named.iterdir()
    folders = {named: below, cache: cache / below.name, sources / "__pycache__": sources / "__pycache__"}
    names = [file.name for file in below.iterdir()]
    assert len(names) == 3  # an index, and the code for Python and for other kernels
    for opened, folder in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).unlink(missing_ok=True)
            (folder / name).write_bytes(pickle.dumps(Bomb(place / "home" / "trace")))
            own(folder / name, 0o644, user=ATTACKER)
        own(opened, 0o777)

    second = call()

    assert second.stdout == "2 0\n"
    assert not (place / "home" / "trace").exists()
    assert second.stderr.count("\n") == 1
    assert all(f"{opened} can be written by others" in second.stderr for opened in folders)
