"""Start-up without what is not needed."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

BLAS = "scipy.linalg.cython_blas"


class _NoPandas:
    """Finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Refuse pandas, leave all else to others."""
        del path, target
        if name == "pandas":
            raise ImportError("pandas is not loaded here")
        return None


def spare_pandas() -> None:
    """Let pyarrow do without pandas in this process, unless it is loaded already.

    At its first list pyarrow asks whether the values are of pandas, and loads pandas for that: 0.3 s. It asks once.
    Pandas itself can be imported afterwards; only pyarrow knows nothing of it. For processes that are nddup's own.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)


def spare_blas() -> None:
    """Let numba do without scipy's BLAS and cffi in this process, unless they are loaded; no kernel calls either.

    numba looks for them once, with its first kernel: scipy.linalg takes 0.3 s, cffi with its parser 0.05 s. Both can be
    imported afterwards. For processes that are nddup's own and have kernels.
    """
    for wanted, user in ((BLAS, "numba.np.arraymath"), ("cffi", "numba.core.typing.cffi_utils")):
        if wanted in sys.modules or user in sys.modules:
            continue
        sys.modules[wanted] = None  # type: ignore[assignment] # the import fails, as where it is not installed
        try:
            import_module(user)
        finally:
            del sys.modules[wanted]
