"""Faster start-up: pyarrow and numba are kept from loading libraries that nddup does not need."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

BLAS = "scipy.linalg.cython_blas"


class _NoPandas:
    """An import finder that refuses pandas."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Refuse pandas; leave all other modules to other finders."""
        del path, target
        if name == "pandas":
            raise ImportError("pandas is not loaded here")
        return None


def spare_pandas() -> None:
    """Keep pyarrow from loading pandas in this process, unless pandas is loaded already.

    At its first list pyarrow checks whether the values come from pandas, and loads pandas for that: 0.3 s. It checks
    once. Pandas can be imported afterwards; only pyarrow does not know of it. For processes that are nddup's own.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)


def spare_blas() -> None:
    """Keep numba from loading SciPy's BLAS and cffi in this process, unless they are loaded; no kernel calls either.

    numba looks for them once, at its first kernel: scipy.linalg takes 0.3 s, cffi with its parser 0.05 s. Both can be
    imported afterwards. For processes that are nddup's own and run kernels.
    """
    for wanted, user in ((BLAS, "numba.np.arraymath"), ("cffi", "numba.core.typing.cffi_utils")):
        if wanted in sys.modules or user in sys.modules:
            continue
        sys.modules[wanted] = None  # type: ignore[assignment] # the import fails, as if it were not installed
        try:
            import_module(user)
        finally:
            del sys.modules[wanted]
