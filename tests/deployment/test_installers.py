"""The scripts that find or install what the tests need, on a machine made of stubs: nothing is installed here."""

import shutil
import stat
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from tests.places import ROOT

TOOLS = (
    "bash", "cat", "cut", "dirname", "env", "flock", "grep", "head", "install", "mkdir", "mktemp", "readlink", "rm",
    "rmdir", "sed", "sha256sum", "sleep", "tail",
)  # fmt: skip
"""Programs of the real machine that the scripts run; all others are stubs."""

PROGRAMS = {"chromium.sh": "chromium", "java.sh": "java"}
PACKAGES = {"chromium.sh": "chromium", "java.sh": "openjdk-17-jre-headless"}

APT = """#!/usr/bin/env bash
echo "$*" >>"$STUBS/calls"
mkdir "$STUBS/busy" 2>/dev/null || { echo "E: Could not get lock /var/lib/dpkg/lock" >&2; exit 100; }
sleep 0.3
rmdir "$STUBS/busy"
case "$*" in
*" install "*) [ ! -e "$STUBS/full" ] || { echo "E: no space left for https://archive.example/pool" >&2; exit 100; } ;;
esac
case "$*" in
*" install "*chromium) install -m 755 "$STUBS/chromium" "$STUBS/bin/chromium" ;;
*" install "*openjdk*) install -m 755 "$STUBS/java" "$STUBS/bin/java" ;;
esac
"""
"""It fails where another is running, as apt does, or where the file `full` is there."""

JAVA = """#!/usr/bin/env bash
case "$1" in
-version) echo 'openjdk version "17.0.1"' >&2 ;;
--list-modules) echo jdk.incubator.vector@17 ;;
esac
"""
QUERY = """#!/usr/bin/env bash
[ ! -e "$STUBS/full" ] && grep -q " install .*${*: -1}" "$STUBS/calls" 2>/dev/null && echo -n installed
"""
"""It says `installed` of what apt was asked for."""


class Machine:
    """A folder with the scripts, and an environment whose PATH has stubs only; `apt-get` notes its calls."""

    def __init__(self, folder: Path, *, user: int) -> None:
        self.folder, self.stubs = folder, folder / "stubs"
        self.programs = self.stubs / "bin"
        self.programs.mkdir(parents=True)
        (folder / "home").mkdir()
        shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        java = folder / "scripts" / "java.sh"
        java.write_text(java.read_text().replace("/usr/lib/jvm", str(folder / "jvm")))
        for name in TOOLS:
            (self.programs / name).symlink_to(str(shutil.which(name)))
        self.add("apt-get", APT)
        self.add("dpkg-query", QUERY)
        self.add("id", f"#!/usr/bin/env bash\necho {user}\n")
        (self.stubs / "chromium").write_text("#!/usr/bin/env bash\n")
        (self.stubs / "java").write_text(JAVA)

    def add(self, name: str, text: str) -> Path:
        """Add a program."""
        path = self.programs / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def start(self, script: str, *arguments: str, **more: str) -> "subprocess.Popen[str]":
        """Start a script."""
        given = {"PATH": str(self.programs), "HOME": str(self.folder / "home"), **more}
        command = [str(self.folder / "scripts" / script), *arguments]
        return subprocess.Popen(
            command, cwd=self.folder, env={**given, "STUBS": str(self.stubs)}, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    def place_of(self, script: str) -> Path:
        """Return what a script prints for an installed program: its path, or the home of Java."""
        return self.programs / PROGRAMS[script] if script == "chromium.sh" else self.stubs

    def calls(self) -> list[str]:
        """Return what `apt-get` was asked to install."""
        path = self.stubs / "calls"
        return [line for line in path.read_text().splitlines() if " install " in line] if path.exists() else []


@pytest.mark.parametrize("script", PROGRAMS)
def test_two_at_once_install_once(tmp_path: Path, script: str) -> None:
    """Of two processes that miss a program, one installs it and the other waits for it; both then print its place."""
    machine = Machine(tmp_path, user=0)

    started = [machine.start(script) for _ in range(2)]
    ended = [process.communicate(timeout=60) for process in started]

    assert [process.returncode for process in started] == [0, 0], ended
    assert {out.strip() for out, _ in ended} == {str(machine.place_of(script))}
    assert sorted("installing it with apt-get" in said for _, said in ended) == [False, True]
    (call,) = machine.calls()
    assert "DPkg::Lock::Timeout=" in call


@pytest.mark.parametrize("script", PROGRAMS)
def test_the_words_of_apt_are_shown(tmp_path: Path, script: str) -> None:
    """Where apt fails, its last words are shown without addresses, and then what to do."""
    machine = Machine(tmp_path, user=0)
    (machine.stubs / "full").touch()

    process = machine.start(script)
    out, said = process.communicate(timeout=60)

    assert (process.returncode, out) == (1, "")
    assert "E: no space left for (address)" in said
    assert f"(Debian: apt-get install {PACKAGES[script]})" in said.splitlines()[-1]


@pytest.mark.parametrize("script", PROGRAMS)
def test_a_user_who_is_not_root_installs_nothing(tmp_path: Path, script: str) -> None:
    """Without root and sudo, a program that is there is found, and one that is not is asked for; apt is not called."""
    machine = Machine(tmp_path, user=1000)

    missing = machine.start(script)
    out, said = missing.communicate(timeout=60)
    assert (missing.returncode, out) == (1, "")
    assert said.count("\n") == 1
    assert f"apt-get install {PACKAGES[script]}" in said

    machine.add(PROGRAMS[script], JAVA)
    found = machine.start(script)
    assert found.communicate(timeout=60) == (f"{machine.place_of(script)}\n", "")
    assert not (machine.stubs / "calls").exists()


def test_setup_finds_the_tools_of_a_user_who_is_not_root(tmp_path: Path) -> None:
    """Where .venv is up to date, `setup.sh dev` still sees to Java, Chromium and Airflow; it says which is missing."""
    machine = Machine(tmp_path, user=1000)
    for name in ("pyproject.toml", "requirements-dev.lock", "requirements.lock", "airflow-requirements.lock"):
        (tmp_path / name).write_text(f"# {name}\n")
    locked = (tmp_path / "requirements-dev.lock").read_bytes() + (tmp_path / "pyproject.toml").read_bytes()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(machine.add("true", "#!/usr/bin/env bash\n"))
    (tmp_path / ".venv" / ".installed").write_text(f"dev {sha256(locked).hexdigest()}\n")
    airflow = tmp_path / "build" / "airflow" / ".installed"
    airflow.parent.mkdir(parents=True)
    airflow.write_text(sha256((tmp_path / "airflow-requirements.lock").read_bytes()).hexdigest())

    machine.add("java", JAVA)
    without = machine.start("setup.sh", "dev")
    assert "need Chromium" in without.communicate(timeout=60)[1]
    assert without.returncode == 1

    machine.add("chromium", "#!/usr/bin/env bash\n")
    started = [machine.start("setup.sh", "dev") for _ in range(2)]
    assert [process.communicate(timeout=60) for process in started] == [("", ""), ("", "")]
    assert [process.returncode for process in started] == [0, 0]
    assert machine.start("setup.sh", "run").wait(timeout=60) == 0
    assert not (machine.stubs / "calls").exists()


def test_packages_are_installed_in_one_place() -> None:
    """Only `debian.sh` runs apt-get; other scripts name it in advice alone."""
    running = {
        path.name
        for path in (ROOT / "scripts").glob("*.sh")
        for line in path.read_text().splitlines()
        if "apt-get" in line and not line.lstrip().startswith(("#", "echo", "fail"))
        and "(Debian: apt-get" not in line
    }  # fmt: skip

    assert running == {"debian.sh"}
