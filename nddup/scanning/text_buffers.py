"""A list of texts as the two arrays that the compiled kernels read."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def text_buffers(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Texts as UTF-8, one after another, and where each begins and ends.

    Returns:
        Shape (bytes,) uint8, and (n + 1,) int64: text i is `data[bounds[i]:bounds[i + 1]]`. Of no texts, no bytes and
        one bound.

    Cost: one copy.
    """
    array = pa.array(texts, pa.large_string())
    _, bounds, data = array.buffers()
    return np.frombuffer(data or b"", np.uint8), np.frombuffer(bounds, np.int64)[: len(array) + 1]
