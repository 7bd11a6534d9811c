"""The disk cache of compiled kernels: each is kept under a name that identifies the sources it was compiled from.

To decide whether a cached kernel is current, numba looks at the kernel's own file only. But a kernel is compiled
together with the functions it calls and the constants of other modules, so after a change of only those numba would run
the old code. Here the name of a cached kernel holds a digest of its module, of the constants that the module imports,
and of the modules from which it takes kernels and types. A kernel compiled from other sources is not found under that
name, so it is compiled again.
"""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numba import config
from numba.core import caching
from numba.core.runtime.nrt import rtsys


@cache
def digest_sources(module: str) -> str:
    """Return a digest of the sources that the kernels of a module are compiled from, 16 hexadecimal digits.

    It is computed at the first kernel of a module, when all imports above it are done. A module without kernels is
    loaded completely before the modules that import it.
    """
    loaded = sys.modules[module]
    source = loaded.__loader__.get_data(loaded.__file__)  # type: ignore[union-attr]  # also in a zip archive
    names = sorted(name for name in vars(loaded) if not name.startswith("__"))
    taken = "".join(f"{name} {_digest_value(vars(loaded)[name], module)}\n" for name in names)
    return hashlib.sha256(source + taken.encode()).hexdigest()[:16]


def _digest_value(value: Any, module: str) -> str:  # noqa: ANN401 - whatever a module holds
    """Return text that identifies a value of a module as a kernel is compiled with it; empty if no kernel uses it."""
    package = module.partition(".")[0]
    if isinstance(value, bool | int | float | str | bytes | tuple | np.generic):
        return repr(value)
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()

    is_seen = hasattr(value, "py_func") or hasattr(value, "_fields") or isinstance(value, ModuleType)
    origin = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    return digest_sources(origin) if is_seen and origin != module and origin.startswith(f"{package}.") else ""


class KernelCache(caching.FunctionCache):
    """Loads a kernel from the disk without what numba needs only to compile one: 0.2 s of the first kernel's time.

    Where nothing is found numba compiles, and then loads the rest.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401 - of numba
        """Return the machine code for argument types `sig`; None if it is not on the disk."""
        rtsys.initialize(target_context)  # kernels allocate arrays
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


@contextmanager
def kept_by_sources() -> Iterator[None]:
    """Let numba name cached kernels by these digests inside the context; other users of numba are unaffected."""
    before = config.CACHE_LOCATOR_CLASSES  # type: ignore[attr-defined]
    config.CACHE_LOCATOR_CLASSES = ",".join(f"{__name__}.{locator.__name__}" for locator in _LOCATORS)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        config.CACHE_LOCATOR_CLASSES = before  # type: ignore[attr-defined]


class _BySources:
    """Adds the digest to the part of a file name that tells two kernels of one name apart."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:  # noqa: ANN401 - of numba
        """Return a locator of this class, or None where it does not apply."""
        locator = super().from_function(py_func, py_file)  # type: ignore[misc]
        if locator is not None:
            line = locator.get_disambiguator()
            locator.get_disambiguator = lambda: f"{line}-{digest_sources(py_func.__module__)}"
        return locator


class InGivenFolder(_BySources, caching.UserProvidedCacheLocator):
    """The cache in NUMBA_CACHE_DIR, if that is set."""


class BesideSource(_BySources, caching.InTreeCacheLocator):
    """The cache in `__pycache__` beside the source, if that can be written."""


class InUserFolder(_BySources, caching.UserWideCacheLocator):
    """The cache in the user's cache folder."""


class OfArchive(_BySources, caching.ZipCacheLocator):
    """The cache of a package in a zip archive."""


_LOCATORS = (InGivenFolder, BesideSource, InUserFolder, OfArchive)
