"""Numbers of bytes as people write them: `1048576`, `64MB`, `1 gb`."""

import re

MOST_BYTES = (1 << 31) - 1
"""Longest record: Java holds at most this many bytes in one piece."""

UNITS = {"": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


def parse_size(value: int | str) -> int:
    """The number of bytes that a setting means; units are powers of 1024.

    Raises:
        ValueError: if the text is not a number with an optional unit, or the number is less than 1.

    Example:
        >>> parse_size("64MB")
        67108864
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*+(\d{1,18})\s*+([kmg]b)?\s*+", value.lower())
        if not match:
            raise ValueError(f"expected bytes such as 64MB, got {value!r}")
        value = int(match[1]) * UNITS[match[2] or ""]
    if value < 1:
        raise ValueError(f"must be at least 1 byte, got {value}")
    return value
