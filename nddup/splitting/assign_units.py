"""The parts of a split (`read_parts`), and the units of documents assigned to them so that sizes come near to shares.

Units are taken by size, the largest first, those of equal size by a hash of (seed, name). One of K documents, k_s of
them in stratum s, goes to the part p of greatest

    K lack(p) + sum over s of k_s lack(s, p)

among the parts whose whole share is at least K, or to the part of the greatest share if there is none. lack(p) are the
documents that p lacks of its share, lack(s, p) those of stratum s. Ties: the order of the parts. All is counted in
integers, so the result depends neither on the machine nor on the order of the units.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import blake2b
from math import lcm
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.errors import ConfigError
from nddup.ground.arrays import Ragged

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""The names that a part may have: those that a folder may have on any system."""

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


FREE: Final = -1
"""In `Units.given`: no part is given."""


class Units(NamedTuple):
    """n units of documents."""

    names: Sequence[str]
    """(n,), the smallest id of the documents of each; all differ."""

    sizes: NDArray[np.int64]
    """(n,), the documents of each that are in a part."""

    given: NDArray[np.int64]
    """(n,), the part that is given, or `FREE`."""

    strata: Ragged
    """n rows, the strata of each unit, numbered from 0; values uint64."""

    counts: NDArray[np.int64]
    """For each value of `strata` the documents of the unit in that stratum."""


class Assigned(NamedTuple):
    """The parts of n units."""

    parts: NDArray[np.int64]
    """(n,), the part of each."""

    is_beyond: NDArray[np.bool_]
    """(n,), whether a unit without a given part has more documents than the whole share of any part."""


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
        pairs = [(str(name), str(share)) for name, share in dict(given).items()]
    names, shares = [name for name, _ in pairs], [_read_share(name, share) for name, share in pairs]
    for name in names:
        if NAME.fullmatch(name) is None or name.lower() in TABLES:
            raise ConfigError(
                "--parts: expected a name of A to Z, digits, _, . and -, that begins with a letter or digit and is not"
                f" {' or '.join(TABLES)}, got {name!r}"
            )
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
        raise ConfigError(f"--parts: expected NAME=SHARE, a share between 0 and 1 of nine decimals at most, such as "
                          f"{name or 'test'}=.1 or {name or 'test'}=1/3, got {name}={share}"
                          if share else f"--parts: {name or 'a part'} has no share")  # fmt: skip
    return value


def order_units(names: Sequence[str], sizes: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return the order in which units are assigned, (n,): by size, the largest first, then by a hash of (seed, name).

    Example:
        >>> order_units(["a", "b", "c"], np.array([1, 1, 2]), seed=1).tolist()
        [2, 1, 0]
    """
    salt = f"{seed}\0".encode()
    marks = b"".join(blake2b(salt + name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in names)
    return np.lexsort((np.frombuffer(marks, ">u8"), -np.asarray(sizes, np.int64)))


def assign_units(units: Units, shares: Sequence[Fraction], *, seed: int) -> Assigned:
    """Assign each unit to a part.

    Half the decrease of the sum of squared distances from what is asked is the score of a part, less a term in K and
    k_s that all parts have in common. Without strata, the part that lacks most documents has the greatest score.

    Args:
        shares: (P,), of the parts; positive, of sum 1.
        seed: another gives another split of the same sizes.

    Returns:
        The part of each; given parts as they are. For no units, none.

    Cost: a digest of each name, a sort, and some P microseconds a unit; with strata as many for each of them. Memory:
        some 100 bytes a unit, 50 for each of its strata.

    Example:
        Of ten documents in six units, eight are to be in the first part.

        >>> none = Ragged(np.zeros(7, np.int64), np.empty(0, np.uint64))
        >>> sizes = np.array([4, 2, 1, 1, 1, 1])
        >>> units = Units(list("abcdef"), sizes, np.full(6, FREE), none, np.empty(0, np.int64))
        >>> parts = assign_units(units, [Fraction(4, 5), Fraction(1, 5)], seed=1).parts
        >>> np.bincount(parts, weights=sizes).tolist()
        [8.0, 2.0]
    """
    scale = lcm(*(share.denominator for share in shares))
    asked = [int(share * scale) for share in shares]
    largest = max(range(len(shares)), key=lambda part: (shares[part], -part))
    parts, is_beyond = units.given.astype(np.int64), np.zeros(len(units.names), np.bool_)
    free = np.flatnonzero(parts == FREE)
    order = free[order_units([units.names[unit] for unit in free.tolist()], units.sizes[free], seed)]
    lacks = _Lacks(units, asked, scale)
    for unit in np.flatnonzero(parts != FREE).tolist():
        lacks.take(unit, int(parts[unit]))

    whole = int(units.sizes.sum())
    for unit in order.tolist():
        size = int(units.sizes[unit])
        fitting = [part for part, share in enumerate(asked) if share * whole >= size * scale]
        is_beyond[unit] = not fitting
        parts[unit] = max(fitting, key=lambda part: (lacks.score(unit, part), -part)) if fitting else largest
        lacks.take(unit, int(parts[unit]))
    return Assigned(parts, is_beyond)


class _Lacks:
    """What each part lacks, in all and of each stratum, times `scale`."""

    def __init__(self, units: Units, asked: Sequence[int], scale: int) -> None:
        strata = units.strata.values.astype(np.int64)
        n_strata = int(strata.max(initial=-1)) + 1
        sums = np.zeros(n_strata, np.int64)
        np.add.at(sums, strata, units.counts)
        whole = int(units.sizes.sum())
        self._whole = [share * whole for share in asked]
        self._of_stratum = [[share * count for count in sums.tolist()] for share in asked]
        self._sizes, self._scale = units.sizes.tolist(), scale
        self._offsets, self._strata, self._counts = (
            units.strata.offsets.tolist(),
            strata.tolist(),
            units.counts.tolist(),
        )

    def score(self, unit: int, part: int) -> int:
        """Return K lack(p) + sum of k_s lack(s, p), times `scale`."""
        total: int = self._sizes[unit] * self._whole[part]
        of_stratum = self._of_stratum[part]
        for at in range(self._offsets[unit], self._offsets[unit + 1]):
            total += self._counts[at] * of_stratum[self._strata[at]]
        return total

    def take(self, unit: int, part: int) -> None:
        """Put a unit into a part."""
        self._whole[part] -= self._sizes[unit] * self._scale
        for at in range(self._offsets[unit], self._offsets[unit + 1]):
            self._of_stratum[part][self._strata[at]] -= self._counts[at] * self._scale
