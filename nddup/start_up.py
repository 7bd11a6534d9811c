"""Faster start-up: pyarrow and numba are kept from loading libraries that nddup does not need."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

COLLECTED_AFTER = 50_000
"""New objects between two searches for cycles among young objects. What libraries create while loading is never freed;
with Python's default of 700 a short command spends a tenth of its time on searching it."""


class _NoPandas:
    """An import finder that refuses pandas."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Refuse pandas; leave all other modules to other finders."""
        del path, target
        if name == "pandas":
            raise ImportError("pandas is not loaded here")
        return None


def collect_rarely() -> None:
    """Let Python look for garbage in this process once in `COLLECTED_AFTER` objects."""
    gc.set_threshold(COLLECTED_AFTER)


def spare_pandas() -> None:
    """Keep pyarrow from loading pandas in this process, unless pandas is loaded already.

    At its first list pyarrow checks whether the values come from pandas, and loads pandas for that: 0.3 s. It checks
    once. Pandas can be imported afterwards; only pyarrow does not know of it. For processes that are nddup's own.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415 - a command that only prints help needs none

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)


def spare_blas() -> None:
    """Keep numba from loading SciPy's BLAS in this process, unless it is loaded; no kernel calls it.

    numba looks for it once, when a kernel searches a sorted array for the first time: 0.3 s. SciPy can be imported
    afterwards. For processes that are nddup's own and run such kernels.
    """
    wanted, user = "scipy.linalg.cython_blas", "numba.np.arraymath"
    if wanted in sys.modules or user in sys.modules:
        return
    sys.modules[wanted] = None  # type: ignore[assignment] # the import fails, as if it were not installed
    try:
        import_module(user)
    finally:
        del sys.modules[wanted]
