"""The versions that made a run: of the code, of the libraries that shape its tables, of Python and Spark.

All of them are in the fingerprint of every table (`run_folder`), so that a resumed run does not mix tables of two
versions.
"""

import hashlib
import json
import platform
import secrets
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable

import nddup
from nddup.sketching.tokens import FULL_FORMAT

SHAPING = (
    "chardet", "fastwarc", "isal", "lxml", "numba", "numpy", "pyarrow", "PyStemmer", "resiliparse",
    "selectolax", "stop-words", "zstandard",
)  # fmt: skip
"""Libraries that decide records, texts, tokens, sketches or sets."""

SOURCES = (".py", ".txt", ".npz")
"""Suffixes of the files of the package that decide what it does: code, word lists, tables of characters."""


def versions() -> dict[str, str]:
    """Return all versions that made a run. Sketches can be compared only if `sketch_format` is equal."""
    return {
        "nddup": nddup.__version__,
        "spark": _version_of("pyspark"),
        "sketch_format": FULL_FORMAT,
        "code": code_fingerprint(),
        "python": platform.python_version(),  # its codecs and its unicodedata decide texts
        **library_versions(),
    }


@cache
def library_versions() -> dict[str, str]:
    """Return the installed version of each of `SHAPING`."""
    return {name: _version_of(name) for name in SHAPING}


@cache
def code_fingerprint() -> str:
    """Return 16 hex digits of SHA-256 over the package's source files; the same for a folder and for a zip.

    If the code cannot be read, each process has a fingerprint of its own, so that nothing is reused.
    """
    digest, read = hashlib.sha256(), 0
    for name, content in sorted(_read_sources(files("nddup"))):
        digest.update(name.encode() + b"\0" + content)
        read += name.endswith(".py")
    return digest.hexdigest()[:16] if read else secrets.token_hex(8)


def _read_sources(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of the sources at or below a folder."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read_sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(SOURCES):
            yield prefix + entry.name, entry.read_bytes()


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # copied without its metadata, or an image without Spark
        return "unknown"


def digest(value: object) -> str:
    """Return SHA-256, in hexadecimal digits, over a value as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
