"""Argument checks that several modules of this package share."""

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float64]
"""Numbers from 0 to 1, any shape."""


def check_shares(values: Shares | float) -> Shares:
    """Return the values as an array.

    Raises:
        ValueError: if one lies outside [0, 1].
    """
    shares = np.asarray(values, np.float64)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError(f"a share must lie in [0, 1], got {values}")
    return shares


def check_at_least_one(**values: int) -> None:
    """Refuse numbers below 1.

    Raises:
        ValueError: naming the first such argument.
    """
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
