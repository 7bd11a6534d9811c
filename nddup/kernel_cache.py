"""The disk cache of compiled kernels: each is kept under a name that identifies the sources it was compiled from.

To decide whether a cached kernel is current, numba looks at the kernel's own file only. But a kernel is compiled
together with the functions it calls and the constants of other modules, so after a change of only those numba would run
the old code. Here the name of a cached kernel holds a digest of its module, of the constants that the module imports,
and of the modules from which it takes kernels and types. A kernel compiled from other sources is not found under that
name, so it is compiled again.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numba import config
from numba.core import caching
from numba.core.runtime.nrt import rtsys

from nddup.start_up import cache_folder

GIVEN = "NUMBA_CACHE_DIR"
"""Environment variable with a folder for compiled kernels."""


def _leave_folder_settings_out() -> None:
    """Keep numba to its settings in the environment.

    It also reads `.numba_config.yaml` of the current folder, which may hold anybody's files, and takes from it the
    folder of compiled kernels, which it would execute.
    """
    name = config._config_fname  # noqa: SLF001 - numba has no switch
    config._config_fname = os.devnull  # noqa: SLF001
    if os.path.exists(name):  # noqa: PTH110 - relative, as numba reads it
        config.reload_config()  # type: ignore[no-untyped-call]


_leave_folder_settings_out()


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
    """The folders that may hold a compiled kernel: all are read, and the first that can be written keeps a new one.

    They are that of NUMBA_CACHE_DIR, `__pycache__` beside the source, and that of the user. So kernels that were
    compiled at the installation serve everyone, also where only its owner can write. Where none can be written, or none
    has room, each process compiles for itself, and the first kernel says so on standard error.

    From the disk a kernel is loaded without what numba needs only to compile one: 0.2 s of the first kernel's time.
    """

    def __init__(self, function):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204 - as numba's own
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._place = self._impl.locator
        self._files = [
            caching.IndexDataCacheFile(folder, self._impl.filename_base, self._place.get_source_stamp())  # type: ignore[no-untyped-call]
            for folder in self._place.folders
        ]

    @property
    def cache_path(self) -> str:
        """The first folder that holds the kernel for some types of arguments; if none does, the first of all."""
        holding: list[str] = [file._cache_path for file in self._files if os.path.exists(file._index_path)]  # noqa: PTH110, SLF001
        return holding[0] if holding else str(self._place.folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401 - of numba
        """Return the machine code for argument types `sig`; None if no folder holds it, or only damaged files."""
        rtsys.initialize(target_context)  # kernels allocate arrays
        for file in self._files:
            self._cache_file = file
            with suppress(Exception):  # unpickling what is damaged may raise anything
                found = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
                if found is not None:
                    return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401 - of numba
        """Keep machine code in the first folder that can be written."""
        failed = []
        for folder, file in zip(self._place.folders, self._files, strict=True):
            self._place.folder, self._cache_file = folder, file
            try:
                self._begin_anew_if_damaged()
                self._save_overload(sig, data)  # type: ignore[no-untyped-call]
            except OSError as error:
                failed.append(f"{folder} ({error.strerror})")
            else:
                return
        say_not_kept("; ".join(failed))

    def _begin_anew_if_damaged(self) -> None:
        """Empty the list of kept code if it cannot be read."""
        try:
            self._cache_file._load_index()  # type: ignore[no-untyped-call] # noqa: SLF001
        except OSError:
            raise
        except Exception:  # noqa: BLE001 - as in `load_overload`
            self._cache_file.flush()  # type: ignore[no-untyped-call]


def say_not_kept(folders: str) -> None:
    """Say once on standard error that compiled kernels cannot be kept in these folders.

    Args:
        folders: each with the reason.
    """
    if not _said:
        _said.append(folders)
        sys.stderr.write(
            f"nddup: compiled kernels cannot be kept, so each process compiles them again, for about a minute; "
            f"NUMBA_CACHE_DIR names a folder for them. Not written: {folders}\n"
        )


def leave_saying_to_others() -> None:
    """Keep this process from saying that kernels cannot be kept: the one that started it says so."""
    _said.append("")


_said: list[str] = []


@contextmanager
def kept_by_sources() -> Iterator[None]:
    """Let numba find kernels as `_BySources` says inside the context; other users of numba are unaffected."""
    before = config.CACHE_LOCATOR_CLASSES  # type: ignore[attr-defined]
    config.CACHE_LOCATOR_CLASSES = f"{__name__}.{_BySources.__name__}"  # type: ignore[attr-defined]
    try:
        yield
    finally:
        config.CACHE_LOCATOR_CLASSES = before  # type: ignore[attr-defined]


class _BySources(caching.InTreeCacheLocator):
    """Names the folders of a source file's kernels, and the sources in the name of each kernel."""

    def __init__(self, function: Any, file: str) -> None:  # noqa: ANN401 - of numba
        super().__init__(function, file)  # type: ignore[no-untyped-call]
        self._digest = digest_sources(function.__module__)
        self.folders = _list_folders(file, os.environ.get(GIVEN, ""))
        self.folder = self.folders[0]

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:  # noqa: ANN401 - of numba
        """Return a locator: it applies to every kernel, and writes nothing."""
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        """Return the folder that is written."""
        return self.folder

    def get_source_stamp(self) -> object:
        """Return numba's stamp of the source file, or the digest where it is in a zip archive."""
        try:
            return super().get_source_stamp()  # type: ignore[no-untyped-call]
        except OSError:
            return self._digest

    def get_disambiguator(self) -> str:
        """Return the part of a file name that tells two kernels of one name apart."""
        return f"{super().get_disambiguator()}-{self._digest}"  # type: ignore[no-untyped-call]


@cache
def _list_folders(file: str, given: str) -> list[str]:
    """Return the folders for kernels of a source file, `given` first if it is not empty."""
    below = caching._CacheLocator.get_suitable_cache_subpath(file)  # type: ignore[no-untyped-call] # noqa: SLF001
    own = cache_folder()
    folders = [os.path.join(given, below)] if given else []  # noqa: PTH118
    folders.append(os.path.join(os.path.dirname(os.path.abspath(file)), "__pycache__"))  # noqa: PTH100, PTH118, PTH120
    return folders if own is None else [*folders, str(own / "kernels" / below)]
