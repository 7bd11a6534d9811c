"""The one place where a kernel is handed to the compiler.

A kernel is a plain Python function over NumPy arrays and numbers; `compiled` turns it into machine code at its
first call and keeps the result on disk, so that only the first process of an installation pays for it (1-7 s a
kernel). Where the package's own folder cannot be written, numba falls back to the user's cache folder; set
NUMBA_CACHE_DIR on a cluster whose workers have neither.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba, cached on disk, without the interpreter's lock."""
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True)(function))
