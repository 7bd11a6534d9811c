"""One-dimensional arrays of numbers in memory-mapped Arrow files, and the CRC-32 of files.

    write_array, map_array   an array -> a file, and back: only the parts that are touched are read
    crc_of                   a file   -> its CRC-32, which finds every change of up to 32 neighbouring bits

NumPy's own files are not used: NumPy reads their header with Python's parser, which before 3.11.9 sometimes fails when
two threads parse at once ("AST constructor recursion depth mismatch").
"""

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from isal import isal_zlib
from numpy.typing import NDArray

_NAME = "array"

READ = 1 << 20
"""Bytes of a file that are read at a time."""


def crc_of(path: Path) -> int:
    """Return the CRC-32 of a file. Raises OSError if it cannot be read. Cost: reads the file, several GB a second."""
    crc = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(READ):
            crc = isal_zlib.crc32(piece, crc)
    return int(crc)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array, (n,) of any integer or float type, to a file that `map_array` reads.

    Raises:  OSError if the file cannot be written.
    """
    # Always one batch: an empty table would be written as no batch at all.
    batch = pa.record_batch({_NAME: pa.array(array)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def map_array(path: Path) -> NDArray[Any]:
    """Map the array that `write_array` wrote, (n,) of its dtype: read-only, and mapped as long as the array lives.

    Raises:  OSError if there is no such file; ArrowInvalid if it is not an Arrow file.
    """
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        return cast(NDArray[Any], reader.get_batch(0)[_NAME].to_numpy())
