"""No kernel that reads bytes of a record reads or writes beyond its arrays, whatever the bytes.

`python -m bench fuzz --parts kernels` does the same for a million cases.
"""

import sys
from pathlib import Path

import pytest

from bench.fuzz_kernels import KERNELS, checked_fuzz, fuzz_kernels, is_kernel, kernels_of_bytes
from tests.samples_by_night import by_day_if_changed

DEAR = {"tokens and sketches", "shingles of another collection", "words", "passages"}
"""Entries whose kernels take most of the time of the compiler."""


@by_day_if_changed("nddup/reading", "nddup/sketching", "nddup/ground", "bench/fuzz_kernels.py")
@pytest.mark.parametrize(
    ("cases", "entries"),
    [
        pytest.param(200, [name for name in KERNELS if name not in DEAR], id="some"),
        pytest.param(10_000, [], id="all", marks=pytest.mark.nightly),
    ],
)
def test_every_kernel_of_bytes_stays_within_its_arrays(tmp_path: Path, cases: int, entries: list[str]) -> None:
    """With bounds checking, the kernels of these entries read damaged cases; `make test` leaves out the dearest."""
    assert checked_fuzz(cases, 1, tmp_path, entries)


def test_no_kernel_of_bytes_is_missing() -> None:
    """Every module with a kernel of bytes has one that the list gives cases to, or that these call."""
    called = {name.rpartition(".")[0] for name in fuzz_kernels(50, 1)}
    used = {
        value.py_func.__module__ for name in called for value in vars(sys.modules[name]).values() if is_kernel(value)
    }

    assert KERNELS
    assert {name.rpartition(".")[0] for name in kernels_of_bytes()} <= used
