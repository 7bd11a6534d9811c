"""Convert columns of lists to arrays and back: where each row begins, and the values."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def flatten(column: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where each row of an `array<int>` column without nulls begins, (n + 1,), and the values."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    sizes = [np.zeros(1, np.int64), *(np.asarray(pc.list_value_length(chunk), np.int64) for chunk in chunks)]
    values = [np.empty(0, np.int32), *(np.asarray(chunk.flatten()) for chunk in chunks)]
    return np.cumsum(np.concatenate(sizes)), np.concatenate(values)


def list_column(offsets: NDArray[Any], values: NDArray[Any]) -> pa.ListArray:
    """Build the column that `flatten` takes apart; fewer than 2**31 values."""
    return pa.ListArray.from_arrays(offsets.astype(np.int32), values)
