"""Numbers as people write them: bytes such as `1048576`, `64MB` or `1 gb`, and counts of things."""

import re

MOST_BYTES = (1 << 31) - 1
"""Bytes of the longest record: a Java array holds no more."""

UNITS = {"": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


def parse_size(value: int | str) -> int:
    """Return the number of bytes that a setting means; units are powers of 1024.

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


def spell_size(size: int) -> str:
    """Write a file's size for people; here units are powers of 1000, as in programs that list files.

    Example:
        >>> spell_size(1), spell_size(640), spell_size(4_200), spell_size(3_300_000)
        ('1 byte', '640 bytes', '4 kB', '3.3 MB')
    """
    if size < 1_000:  # noqa: PLR2004 - a kilobyte
        return counted(size, "byte")
    return f"{size / 1e3:,.0f} kB" if size < 1_000_000 else f"{size / 1e6:,.1f} MB"  # noqa: PLR2004 - a megabyte


def counted(count: int, name: str) -> str:
    """Write a count of things whose plural ends in s.

    Example:
        >>> counted(1, "file"), counted(1_200, "file")
        ('1 file', '1,200 files')
    """
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"
