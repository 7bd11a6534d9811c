"""The parent process of Spark's Python workers: it loads the kernels before it forks them.

Loading numba and its compiled kernels costs a process some 1.5 s of CPU. Each executor forks its workers from one
daemon, so this cost is paid once there, not in each worker. Workers collect garbage after each task; searching the
loaded objects, none of which is garbage, took a tenth of a second each time, so they are frozen. Spark starts this
module instead of its own daemon if `spark.python.daemon.module` names it; jobs also run without it.

All Python tasks of the application run in these workers, not only ours. So an error while loading must not reach them:
the kernels are loaded within `preload`, and a worker that lacks something loads it itself.
"""

import ctypes
import gc
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from pyspark import daemon

STDOUT, STDERR = 1, 2
ARENA = str(32 << 10)
"""KiB that Arrow's allocator reserves at a time in the workers."""

M_ARENA_MAX = -8
"""The number of glibc's setting for its arenas (`malloc.h`)."""


def preload(load: Callable[[], object]) -> None:
    """Call `load`; its output goes to standard error, and so does any error, which is not raised.

    Spark reads the daemon's port from standard output: if anything is written before it, no Python task of the executor
    can run.
    """
    out = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        load()
    except BaseException:  # noqa: BLE001 - also SystemExit: a worker can do without
        traceback.print_exc()
        sys.stderr.write("nddup.spark.daemon: the kernels were not loaded; each worker loads what it needs\n")
    finally:
        # What is still in Python's and C's buffers was printed by `load`.
        sys.stdout.flush()
        sys.stdout = sys.__stdout__
        ctypes.CDLL(None).fflush(None)
        os.dup2(out, STDOUT)
        os.close(out)


def load_kernels() -> None:
    """Import and call the kernels of the usual path.

    Arrow's allocator would reserve a gigabyte of addresses at its first allocation, and every worker would be forked
    with it: with `spark.executor.pyspark.memory=1g` nothing would be left. It reads this limit when Arrow is loaded.
    """
    os.environ.setdefault("MIMALLOC_ARENA_RESERVE", ARENA)
    keep_one_arena()
    from nddup.compiling import warm_up as kernels  # noqa: PLC0415 - what fails here fails behind `preload`

    kernels.load_kernels()


def keep_one_arena() -> None:
    """Let all threads of this process and its children allocate from one arena.

    glibc reserves 64 MB of addresses for each thread, and DuckDB has ten: of the gigabyte that a worker may have,
    nothing would be left. Other C libraries have no such setting.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def seed_anew() -> None:
    """Give a forked worker random numbers of its own: NumPy seeds its generator only once, when it is loaded."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


if __name__ == "__main__":
    preload(load_kernels)
    os.register_at_fork(after_in_child=seed_anew)
    gc.freeze()
    daemon.manager()
