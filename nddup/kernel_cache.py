"""Where the machine code of a kernel is kept: under a name that holds every source it was compiled from.

numba compares the file of a kernel with what it has cached, and no other file. A kernel compiles what it calls into
itself, though, and takes the constants of other modules as they are, so after an update of only those it would go on
with the old code. Here the name of a cached kernel holds a digest of its module and of all modules of the package which
that one imports, directly or not. What was compiled from other sources is not found, and compiled again.
"""

import hashlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba import config
from numba.core import caching

# Only imports of the module itself: what a function imports later depends on the order of calls.
_IMPORTS = re.compile(r"^(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+([\w.]+))", re.MULTILINE)


@cache
def digest_sources(module: str) -> str:
    """A digest of the sources of a loaded module and of all it imports from its own package, 16 hexadecimal digits."""
    reached, waiting = {module}, [module]
    while waiting:
        further = _imports_of(waiting.pop()) - reached
        reached |= further
        waiting += further
    sources = "".join(f"{name} {hashlib.sha256(_source_of(name)).hexdigest()}\n" for name in sorted(reached))
    return hashlib.sha256(sources.encode()).hexdigest()[:16]


@contextmanager
def kept_by_sources() -> Iterator[None]:
    """While it lasts, numba names what it caches by these digests. Other users of numba in the process keep theirs."""
    before = config.CACHE_LOCATOR_CLASSES  # type: ignore[attr-defined]
    config.CACHE_LOCATOR_CLASSES = ",".join(f"{__name__}.{locator.__name__}" for locator in _LOCATORS)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        config.CACHE_LOCATOR_CLASSES = before  # type: ignore[attr-defined]


def _source_of(module: str) -> bytes:
    """The source of a loaded module; it may be in a zip archive."""
    loaded = sys.modules[module]
    return bytes(loaded.__loader__.get_data(loaded.__file__))  # type: ignore[union-attr]


@cache
def _imports_of(module: str) -> set[str]:
    """The loaded modules of its own package that a module imports."""
    found = set()
    for source, names, plain in _IMPORTS.findall(_source_of(module).decode()):
        found |= {plain or source, *(f"{source}.{name}" for name in re.findall(r"\w+", names))}
    package = module.partition(".")[0]
    return {name for name in found if name.startswith(f"{package}.") and name in sys.modules}


class _BySources:
    """Adds the digest to what tells two kernels of one name apart in the names of files."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:  # noqa: ANN401 - of numba
        """A locator of this class, or None where it does not apply."""
        locator = super().from_function(py_func, py_file)  # type: ignore[misc]
        if locator is not None:
            line = locator.get_disambiguator()
            locator.get_disambiguator = lambda: f"{line}-{digest_sources(py_func.__module__)}"
        return locator


class InGivenFolder(_BySources, caching.UserProvidedCacheLocator):
    """In NUMBA_CACHE_DIR, where that is set."""


class BesideSource(_BySources, caching.InTreeCacheLocator):
    """In `__pycache__`, where that can be written."""


class InUserFolder(_BySources, caching.UserWideCacheLocator):
    """In the cache folder of the user."""


class OfArchive(_BySources, caching.ZipCacheLocator):
    """Of a package in a zip archive."""


_LOCATORS = (InGivenFolder, BesideSource, InUserFolder, OfArchive)
