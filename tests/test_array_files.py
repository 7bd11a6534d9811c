"""Array files: every array, even an empty one, is mapped as it was written, also by many threads at once."""

import ast
import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nddup.ground.array_files import map_array, write_array

PACKAGE = Path(__file__).resolve().parents[1] / "nddup"


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "int64", "uint64", "float64"])
@pytest.mark.parametrize("size", [0, 1, 3, 100_003])
def test_an_array_comes_back_as_it_was(tmp_path: Path, dtype: str, size: int) -> None:
    array = np.arange(size).astype(dtype)[::-1]

    write_array(tmp_path / "array", array)
    found = map_array(tmp_path / "array")

    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.aligned
    assert not found.flags.writeable


def test_an_array_is_mapped_and_not_read(tmp_path: Path) -> None:
    write_array(tmp_path / "array", np.ones(5_000_000, np.int64))
    before = pa.total_allocated_bytes()

    found = map_array(tmp_path / "array")

    assert pa.total_allocated_bytes() - before < found.nbytes / 100
    assert found[-1] == 1  # the mapping stays open as long as the array exists


def test_a_file_that_holds_no_array_is_said(tmp_path: Path) -> None:
    (tmp_path / "array").write_bytes(b"something else")

    with pytest.raises(pa.ArrowInvalid):
        map_array(tmp_path / "array")
    with pytest.raises(FileNotFoundError):
        map_array(tmp_path / "none")


def test_threads_map_at_the_same_time(tmp_path: Path) -> None:
    """Threads map one file while garbage is collected, where NumPy's reader fails about once in some thousand reads."""

    def let_others_run(*_: object) -> None:
        time.sleep(0)

    write_array(tmp_path / "array", np.arange(7, dtype=np.uint64))
    threshold = gc.get_threshold()
    gc.callbacks.append(let_others_run)
    gc.set_threshold(1)
    try:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(map_array, [tmp_path / "array"] * 2_000))
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(let_others_run)

    assert {tuple(array) for array in found} == {tuple(range(7))}


def test_no_module_reads_files_of_numpy() -> None:
    """No module reads or writes NumPy files: their header needs Python's parser, not thread-safe before 3.11.9."""
    called = {
        (path.name, node.attr)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"
        if node.attr in {"load", "save", "savez", "savez_compressed"}
    }

    assert called == set()
