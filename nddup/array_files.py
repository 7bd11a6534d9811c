"""One-dimensional arrays of numbers as files of Arrow, which the system maps into memory: only what is touched is read.

NumPy's own files are not used: it reads their head with Python's parser, which before 3.11.9 fails now and then where
two threads parse at once ("AST constructor recursion depth mismatch").
"""

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from numpy.typing import NDArray

_NAME = "array"


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array, (n,) of any integer or float, to a file; `map_array` reads it.

    Raises:  OSError where the file cannot be written.
    """
    # One batch, of no row too: a table would be written as none where it is empty.
    batch = pa.record_batch({_NAME: pa.array(array)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def map_array(path: Path) -> NDArray[Any]:
    """The array that `write_array` wrote, (n,) of its dtype, mapped and read-only as long as it lives.

    Raises:  OSError where there is no such file; ArrowInvalid where it is not one of Arrow.
    """
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        return cast(NDArray[Any], reader.get_batch(0)[_NAME].to_numpy())
