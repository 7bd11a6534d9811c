"""No kernel that reads bytes of a record reads or writes beyond its arrays, whatever the bytes.

`python -m bench fuzz --parts kernels` does the same for a million cases.
"""

import sys
from pathlib import Path

import pytest

from bench.fuzz_kernels import KERNELS, checked_fuzz, fuzz_kernels, is_kernel, kernels_of_bytes


def test_every_kernel_of_bytes_stays_within_its_arrays(pytestconfig: pytest.Config) -> None:
    """With bounds checking, every kernel of KERNELS reads 10,000 damaged cases; they are compiled once for all runs."""
    cache = Path(pytestconfig.cache.mkdir("checked_kernels")) if pytestconfig.cache else Path(".checked_kernels")

    assert checked_fuzz(10_000, 1, cache)


def test_no_kernel_of_bytes_is_missing() -> None:
    """Every module with a kernel of bytes has one that the list gives cases to, or that these call."""
    called = {name.rpartition(".")[0] for name in fuzz_kernels(50, 1)}
    used = {
        value.py_func.__module__ for name in called for value in vars(sys.modules[name]).values() if is_kernel(value)
    }

    assert KERNELS
    assert {name.rpartition(".")[0] for name in kernels_of_bytes()} <= used
