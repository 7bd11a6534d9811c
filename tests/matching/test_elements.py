"""Elements, their owners and their classes, against plain counting and exact integers."""

from collections import Counter
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged
from nddup.matching.elements import (
    BEFORE,
    LAST_CLASS,
    MOST_BITS,
    NO_ELEMENT,
    Division,
    cut_prefixes,
    list_elements,
    pack_classes,
    post,
    rarity_classes,
    unpack_classes,
)
from nddup.matching.task_sizes import BASE_BYTES, LEAST_SHARE, Volume, tasks_needed, volume_of
from nddup.matching.threshold import Threshold

IDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=60, unique=True)
DIVISIONS = st.builds(Division, st.integers(7, MOST_BITS), st.integers(1, 1 << 16))


@given(ids=IDS, division=DIVISIONS)
def test_an_owner_tells_its_elements_apart(ids: list[int], division: Division) -> None:
    """Owners ascend with the elements; the first element of the owner plus the rest is the element."""
    rows = Ragged(np.array([0, len(ids)]), np.array(ids, np.uint64))

    elements = list_elements(rows, division.bits).values
    owners = division.owners(elements)
    rests = division.rests(elements, owners)

    count, bits = division.partitions, division.bits
    assert elements.tolist() == sorted(set(elements.tolist()))
    assert owners.tolist() == [element * count >> bits for element in elements.tolist()]
    firsts = [-(-(owner << bits) // count) for owner in owners.tolist()]
    assert [first + rest for first, rest in zip(firsts, rests.tolist(), strict=True)] == elements.tolist()


@given(st.lists(st.integers(0, 40), max_size=200), st.integers(1, 50))
def test_classes_are_those_of_counting(elements: list[int], most: int) -> None:
    """Class c stands for 2**(c - 1) + 1 to 2**c holders, however many elements are counted at a time."""
    holders = Counter(elements)

    classes = rarity_classes(np.array(elements, np.uint32), most=most)

    assert classes.tolist() == [(holders[element] - 1).bit_length() for element in elements]


@given(st.lists(st.lists(st.integers(0, 20), max_size=7), max_size=9))
def test_packed_classes_are_unpacked(runs: list[list[int]]) -> None:
    """Runs of odd and even lengths come back; classes above `LAST_CLASS` come back as `LAST_CLASS`."""
    lengths = np.array([len(run) for run in runs], np.int64)
    classes = np.array([value for run in runs for value in run], np.uint8)

    packed, sizes = pack_classes(classes, lengths)

    assert sizes.tolist() == [(len(run) + 1) // 2 for run in runs]
    assert unpack_classes(packed, lengths).tolist() == np.minimum(classes, LAST_CLASS).tolist()


def test_missing_classes_are_an_error() -> None:
    """A reply that is too short raises an error."""
    with pytest.raises(ValueError, match="expected 2 bytes of classes, got 1"):
        unpack_classes(np.zeros(1, np.uint8), np.array([3]))


@given(ids=IDS, classes=st.data(), partitions=st.integers(1, 9), bound=st.integers(1, 20))
def test_what_owners_are_told(ids: list[int], classes: st.DataObject, partitions: int, bound: int) -> None:
    """Each prefix element is sent once, to its owner, with its place and the elements before it, rare ones first."""
    division = Division(MOST_BITS, partitions)
    elements = list_elements(Ragged(np.array([0, len(ids)]), np.array(ids, np.uint64)), division.bits)
    drawn = classes.draw(st.lists(st.integers(0, 3), min_size=len(ids), max_size=len(ids)))
    rare = dict(zip(elements.values.tolist(), drawn, strict=True))

    prefixes = cut_prefixes(
        elements,
        np.array(drawn, np.uint8),
        np.array([len(ids)], np.int32),
        np.array([bound], np.int32),
        whole=False,
    )

    left = sum(kind > 0 for kind in drawn)
    if left < bound:
        assert len(prefixes.sketch) == 0
        return
    order = prefixes.elements.values.tolist()
    assert (prefixes.left.tolist(), prefixes.need.tolist(), len(order)) == ([left], [bound], left - bound + 1)
    assert [rare[element] for element in order] == sorted(kind for kind in drawn if kind)[: len(order)]

    posted = post(prefixes, division)
    told: dict[int, tuple[int, list[int]]] = {}
    for row, owner in enumerate(posted.owner.tolist()):
        places = posted.places.values[posted.places.offsets[row] : posted.places.offsets[row + 1]].tolist()
        before = posted.before.values[posted.before.offsets[row] : posted.before.offsets[row + 1]]
        for place, one in zip(places, before.reshape(-1, BEFORE).tolist(), strict=True):
            told[place] = (owner, one)
    owners = division.owners(prefixes.elements.values).tolist()
    padded = [NO_ELEMENT] * BEFORE + order
    assert told == {at: (owners[at], padded[at : at + BEFORE][::-1]) for at in range(len(order))}


def test_more_memory_is_fewer_tasks() -> None:
    """The number of tasks grows with the ids and falls as memory grows; longer prefixes need more tasks."""
    close, loose = (
        volume_of(10**10, 10**8, Threshold("resemblance", share, 10, is_count=False, size=100)) for share in (9, 5)
    )

    for memory in (2 << 30, 4 << 30):
        assert tasks_needed(close, memory) == ceil(48 * 10**10 / (memory - BASE_BYTES))
    assert tasks_needed(loose, 2 << 30) > 3 * tasks_needed(close, 2 << 30)
    assert tasks_needed(close, BASE_BYTES) == ceil(48 * 10**10 / (BASE_BYTES // LEAST_SHARE))
    assert tasks_needed(Volume(0, 0.0), 1 << 30) == 1
