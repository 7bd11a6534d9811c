"""Units are assigned as the rule says, recounted for every unit in plain fractions."""

from fractions import Fraction
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.errors import ConfigError
from nddup.ground.arrays import Ragged
from nddup.splitting.assign_units import FREE, Units, assign_units, read_parts

SHARES = ([Fraction(4, 5), Fraction(1, 10), Fraction(1, 10)], [Fraction(1, 3), Fraction(2, 3)])


def assign_plainly(  # noqa: PLR0913, PLR0917 - what the rule reads
    sizes: list[int],
    given: list[int],
    strata: list[dict[int, int]],
    shares: list[Fraction],
    seed: int,
    names: list[str],
) -> list[int]:
    """Return the part of each unit by the rule, every lack counted anew."""

    def in_part(part: int, stratum: int | None) -> int:
        return sum(
            size if stratum is None else own.get(stratum, 0)
            for size, own, at in zip(sizes, strata, parts, strict=True)
            if at == part
        )

    def lack(part: int, stratum: int | None) -> Fraction:
        whole = sum(sizes) if stratum is None else sum(own.get(stratum, 0) for own in strata)
        return shares[part] * whole - in_part(part, stratum)

    parts = list(given)
    marks = [blake2b(f"{seed}\0{unit}".encode(), digest_size=8).digest() for unit in names]
    for unit in sorted(range(len(sizes)), key=lambda unit: (-sizes[unit], marks[unit])):
        if given[unit] != FREE:
            continue
        fitting = [part for part, share in enumerate(shares) if share * sum(sizes) >= sizes[unit]]
        scores = {
            part: sizes[unit] * lack(part, None) + sum(n * lack(part, one) for one, n in strata[unit].items())
            for part in fitting
        }
        best = max(scores.values()) if scores else max(shares)
        chosen = [part for part in fitting if scores[part] == best] or [shares.index(best)]
        parts[unit] = chosen[0]
    return parts


@given(data=st.data(), shares=st.sampled_from(SHARES), seed=st.integers(0, 3))
def test_each_unit_goes_where_most_is_lacking(data: st.DataObject, shares: list[Fraction], seed: int) -> None:
    """Random units with given parts and strata get the parts of the plain rule."""
    sizes = data.draw(st.lists(st.integers(1, 9), max_size=12))
    given_parts = [data.draw(st.sampled_from([FREE, FREE, *range(len(shares))])) for _ in sizes]
    strata = [data.draw(st.dictionaries(st.integers(0, 3), st.integers(1, size), max_size=3)) for size in sizes]
    offsets = np.cumsum([0, *map(len, strata)])
    values = np.array([one for own in strata for one in own], np.uint64)
    counts = np.array([n for own in strata for n in own.values()], np.int64)
    names = [str(unit) for unit in range(len(sizes))]
    units = Units(names, np.array(sizes, np.int64), np.array(given_parts, np.int64), Ragged(offsets, values), counts)

    found = assign_units(units, shares, seed=seed)

    assert found.parts.tolist() == assign_plainly(sizes, given_parts, strata, shares, seed, names)
    large = [given == FREE and size > max(shares) * sum(sizes) for given, size in zip(given_parts, sizes, strict=True)]
    assert found.is_beyond.tolist() == large


def test_sizes_are_within_a_percent() -> None:
    """Five thousand units, the largest of 400 documents, leave each part within 1 % of its share."""
    drawn = np.random.default_rng(61)
    sizes = np.append(np.minimum(drawn.zipf(2.1, 5_000), 60), 400).astype(np.int64)
    none = Ragged(np.zeros(len(sizes) + 1, np.int64), np.empty(0, np.uint64))
    names = [str(unit) for unit in range(len(sizes))]
    units = Units(names, sizes, np.full(len(sizes), FREE), none, np.empty(0, np.int64))

    parts = assign_units(units, SHARES[0], seed=1).parts

    asked = np.array([float(share) for share in SHARES[0]]) * sizes.sum()
    assert (np.abs(np.bincount(parts, weights=sizes) - asked) <= 0.01 * asked).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("train=.8,test=.1", "whose sum is 1, got 0.9"),
        ("train=1", "between 0 and 1"),
        ("train=.5,Train=.5", "named twice"),
        ("train=.5,a/b=.5", "a name of A to Z"),
        ("split=.5,train=.5", "a name of A to Z"),
        ("train=.5,test", "test has no share"),
        ("train=x,test=.5", "got train=x"),
    ],
)
def test_parts_that_cannot_be(text: str, said: str) -> None:
    """Parts without a name, a share, or the right sum are refused."""
    with pytest.raises(ConfigError, match=said):
        read_parts(text)
