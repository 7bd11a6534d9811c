"""The versions of code and libraries that made a run, wherever the code is."""

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from nddup.storage import run_folder as module
from nddup.storage.run_folder import SHAPING, code_fingerprint, versions
from tests.places import ROOT

ELSEWHERE = {"datasketch", "duckdb", "pandas", "pydantic", "pyspark", "PyYAML", "rapidfuzz", "shtab", "waitress"}
"""Dependencies that shape no table: for finished runs, small results, settings and `truth`; Spark is recorded apart."""


def from_zip(path: Path) -> str:
    """Return the fingerprint of the package when it is imported from a zip, as with `--py-files`."""
    code = "import nddup.storage.run_folder as v; assert '.zip' in v.__file__; print(v.code_fingerprint())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(path)}, cwd=path.parent, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def pack(path: Path, *, but: str = "", suffixes: tuple[str, ...] = (".py", ".txt", ".npz")) -> Path:
    """Write the package as a zip, with one more line in the file `but`."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((ROOT / "nddup").rglob("*")):
            if file.suffix in suffixes:
                name = str(file.relative_to(ROOT))
                archive.writestr(name, file.read_bytes() + (b"\n# more\n" if name == but else b""))
    return path


def test_the_fingerprint_of_the_code_is_stable() -> None:
    """The fingerprint has 16 hex digits and is the same at every call."""
    assert code_fingerprint() == code_fingerprint()
    assert len(bytes.fromhex(code_fingerprint())) == 8


def test_code_in_a_zip_is_told_apart(tmp_path: Path) -> None:
    """The same code has the same fingerprint in a zip as in a folder; one more line changes it."""
    assert from_zip(pack(tmp_path / "same.zip")) == code_fingerprint()
    assert from_zip(pack(tmp_path / "other.zip", but="nddup/scanning/sketch_records.py")) != code_fingerprint()


def test_code_that_cannot_be_read_is_like_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If there is only compiled code, every run has its own fingerprint, so that none reuses another's tables."""
    monkeypatch.setattr(module, "files", lambda _: tmp_path)

    assert code_fingerprint.__wrapped__() != code_fingerprint.__wrapped__()


def test_every_dependency_is_decided_upon() -> None:
    """Each library of pyproject.toml is in the fingerprints, or is listed here as one that shapes no table."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}

    assert set(SHAPING) | ELSEWHERE == names
    assert not set(SHAPING) & ELSEWHERE


def test_versions_name_every_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions include Python and every library that shapes a table, each with its number."""
    found = versions()

    assert set(SHAPING) <= found.keys()
    assert found["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert all(re.match(r"\d+[.]", found[name]) for name in SHAPING)
    monkeypatch.setattr(module, "library_versions", lambda: {"lxml": "other"})
    assert versions() != found


def test_an_image_without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyspark is not installed, a run of the embedded engine still has its versions."""

    def installed(name: str) -> str:
        if name == "pyspark":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(module, "version", installed)
    monkeypatch.setattr(module, "_version_of", module._version_of.__wrapped__)  # noqa: SLF001

    assert module.versions()["spark"] == "unknown"
