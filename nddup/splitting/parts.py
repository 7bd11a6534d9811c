"""The parts of a split: their names, and the share of the documents that each should have, as an exact fraction."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from nddup.errors import ConfigError

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""What a part may be called: the name of a folder, on any system."""

TABLES: Final = ("split", "shares")
"""The tables of a split. Their folders are beside those of the parts, so no part has such a name."""

MOST_DIGITS: Final = 10**9
"""Greatest denominator of a share."""


class Parts(NamedTuple):
    """P parts in the order in which the user gave them, which decides ties."""

    names: tuple[str, ...]

    shares: tuple[Fraction, ...]
    """Positive; their sum is 1."""

    def place(self, name: str) -> int:
        """Return the place of a part. ValueError: there is no part of this name."""
        return self.names.index(name)


def read_parts(given: str | Mapping[str, float | str]) -> Parts:
    """Read the parts of a split.

    Args:
        given: `train=.8,valid=.1,test=.1`, or a mapping of the same.

    Raises:
        ConfigError: if there are fewer than two parts, a name is repeated or cannot name a folder, a share is not
            positive, or their sum is not exactly 1.

    Example:
        >>> read_parts("train=.9,test=.1").shares
        (Fraction(9, 10), Fraction(1, 10))
    """
    if isinstance(given, str):
        pairs = [tuple(map(str.strip, one.partition("=")[::2])) for one in given.split(",")]
    else:
        pairs = [(name, str(share)) for name, share in given.items()]
    names, shares = [name for name, _ in pairs], [_read_share(name, share) for name, share in pairs]
    for name in names:
        if NAME.fullmatch(name) is None or name.lower() in TABLES:
            raise ConfigError(f"--parts: expected a name of letters, digits, _, . and -, not {TABLES}, got {name!r}")
    if len({name.lower() for name in names}) < len(names):
        raise ConfigError(f"--parts: a part is named twice in {', '.join(names)}")
    if len(names) < 2:  # noqa: PLR2004 - of one part nothing is apart
        raise ConfigError("--parts: expected two parts or more, such as train=.9,test=.1")
    if sum(shares) != 1:
        raise ConfigError(f"--parts: expected shares whose sum is 1, got {float(sum(shares)):.9g}")
    return Parts(tuple(names), tuple(shares))


def _read_share(name: str, share: str) -> Fraction:
    try:
        value = Fraction(share)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value < 1 or value.denominator > MOST_DIGITS:
        raise ConfigError(f"--parts: expected NAME=SHARE, a share between 0 and 1, such as {name or 'test'}=.1, "
                          f"got {name}={share}" if share else f"--parts: {name or 'a part'} has no share")  # fmt: skip
    return value
