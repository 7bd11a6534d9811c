"""Look-ups in the mapped files of a segment: each equals a scan of all rows and reads nothing else."""

import shutil
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nddup.repository
from nddup.ground.arrays import Ragged
from nddup.matching.lookups import (
    Matching,
    Rows,
    build_postings,
    distinct,
    find_near,
    find_rows,
    hash_strings,
    is_among,
    key_rows,
    spread_rows,
)
from nddup.matching.threshold import Threshold
from nddup.repository import mapped, segment_files
from tests.repository.histories import draw_history, play

NUMBERS = st.lists(st.integers(-3, 12), max_size=20)


@given(NUMBERS, NUMBERS)
def test_every_row_of_a_key_is_found(keys: list[int], wanted: list[int]) -> None:
    """A look-up gives every row of each wanted key, in the order of the wanted keys, repeated where a key is."""
    stored, asked = np.array(keys, np.int64), np.array(wanted, np.int64)

    which, rows = key_rows(stored).find(asked)

    assert list(zip(which, rows, strict=True)) == [
        (i, row) for i, key in enumerate(wanted) for row, other in enumerate(keys) if other == key
    ]
    ascending = np.sort(stored)
    assert ascending[find_rows(ascending, asked).rows].tolist() == [k for k in wanted for other in keys if other == k]
    assert is_among(asked, ascending).tolist() == [key in keys for key in wanted]
    assert distinct(stored).tolist() == sorted(set(keys))


@given(st.lists(st.text(max_size=6)))
def test_a_hash_depends_on_the_string_alone(strings: list[str]) -> None:
    """The hash of a string does not depend on the array: slices, and short strings beside longer ones, hash alike."""
    whole = hash_strings(pa.array(strings, pa.string()))

    assert whole.tolist() == [hash_strings(pa.array([one], pa.string()))[0] for one in strings]
    assert whole[1:].tolist() == hash_strings(pa.array(strings, pa.string())[1:]).tolist()
    assert len(set(whole.tolist())) == len(set(strings))


SIZE = 6
SOME = st.integers(1, 14)
DOCUMENT = st.sets(SOME, min_size=1) | st.builds(set(range(2, 12)).symmetric_difference, st.sets(SOME, max_size=4))
DOCUMENTS = st.lists(DOCUMENT, min_size=1, max_size=8)
"""The shingles of documents, half of which are of one family; many have more than the `SIZE` that a sketch holds."""

THRESHOLDS = [
    Threshold("resemblance", 1, 2, is_count=False, size=SIZE),
    Threshold("resemblance", 2, 5, is_count=False, size=SIZE, exact=Fraction(7, 10)),
    Threshold("resemblance", 1, 3, is_count=False, size=SIZE, exact=Fraction(1, 2)),
    Threshold("overlap", 3, 1, is_count=True, size=SIZE),
    Threshold("overlap", 3, 4, is_count=False, size=SIZE),
    Threshold("containment", 3, 4, is_count=False, size=SIZE),
]


@settings(max_examples=600)
@given(DOCUMENTS, DOCUMENTS, st.sampled_from(THRESHOLDS))
def test_every_near_sketch_is_found(stored: list[set[int]], asked: list[set[int]], threshold: Threshold) -> None:
    """What is found is what the definition says of every two sketches; of those that texts decide, all of the pairs."""
    matching = Matching(threshold, None, levels=0)
    near = find_near(build_postings(_rows(stored, matching), matching), _rows(asked, matching), matching)

    pairs = list(zip(near.given.tolist(), near.stored.tolist(), strict=True))
    due = [
        (i, j) for (i, a), (j, b) in product(enumerate(asked), enumerate(stored))
        if _is_near(set(sorted(a)[:SIZE]), set(sorted(b)[:SIZE]), threshold)
    ]  # fmt: skip
    if threshold.exact is None:
        assert pairs == due
        return
    assert set(pairs) <= set(due)
    true = [(i, j) for i, j in due if Fraction(len(asked[i] & stored[j]), len(asked[i] | stored[j])) >= threshold.exact]
    assert set(pairs) >= set(true)


def _rows(documents: list[set[int]], matching: Matching) -> Rows:
    """Return the sketches of documents, named by their places."""
    sketches = [sorted(shingles)[:SIZE] for shingles in documents]
    offsets = np.cumsum([0, *map(len, sketches)])
    ids = np.array([value for sketch in sketches for value in sketch], np.uint64)
    counts = np.array([len(shingles) for shingles in documents], np.int32)
    return spread_rows(np.arange(len(documents)), Ragged(offsets, ids), counts, matching)


def _is_near(a: set[int], b: set[int], threshold: Threshold) -> bool:
    """Apply the table of `nddup.matching.threshold` to two sketches, as sets."""
    common, share = len(a & b), Fraction(threshold.numerator, threshold.denominator)
    if threshold.is_count:
        return common >= threshold.numerator
    if threshold.measure == "overlap":
        return common > 0 and common >= share * max(len(a), len(b))
    if threshold.measure == "containment":
        return common > 0 and common >= share * min(len(a), len(b))
    first = sorted(a | b)[:SIZE] if max(len(a), len(b)) == SIZE else sorted(a | b)
    return common > 0 and len(a & b & set(first)) >= share * len(first)


def test_ids_of_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash that is equal for all ids leaves the result of a history unchanged."""
    due = nddup.repository.create(str(tmp_path / "due"), local={"processes": 1})
    live = play(due, draw_history(7, steps=6))
    for module in ("mapped", "snapshot"):
        monkeypatch.setattr(f"nddup.repository.{module}.hash_strings", lambda column: np.zeros(len(column), np.uint64))
    repo = nddup.repository.create(str(tmp_path / "repo"), local={"processes": 1})

    assert play(repo, draw_history(7, steps=6)) == live
    assert dict(repo.snapshot.commit.digests) == dict(due.snapshot.commit.digests)


def test_adding_and_asking_read_no_stored_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Additions, removals and queries read no stored table, only the new segment; the cost follows the batch."""
    repo = nddup.repository.create(str(tmp_path / "repo"), local={"processes": 1})
    repo.add({f"d{i}": " ".join(f"w{i}x{n}" for n in range(30)) for i in range(40)})
    stored = repo.snapshot.commit.segments[0].name
    read, before = set[str](), segment_files.read_table

    def note(place: Any, segment: Any, name: str, *arguments: Any) -> pa.Table:  # noqa: ANN401
        read.add(segment.name)
        return before(place, segment, name, *arguments)

    for module in ("mapped", "segment_files", "write_versions"):
        monkeypatch.setattr(f"nddup.repository.{module}.read_table", note)
    again = nddup.repository.open(str(tmp_path / "repo"))
    near = " ".join(f"w3x{n}" for n in range(30)) + " more"
    added = again.add({"near": near, "d5": " ".join(f"w5x{n}" for n in range(30))}).counts
    again.remove(["d7"])

    assert (added["added"], added["unchanged"], added["touched"]) == (1, 1, 1)
    assert again.query({"q": near})["doc_id"].to_pylist() == ["near", "d3"]
    assert read
    assert stored not in read


def test_mapped_files_are_made_again(tmp_path: Path) -> None:
    """Missing mapped files are rebuilt from the tables, and queries and changes give the same results."""
    repo = nddup.repository.create(str(tmp_path / "repo"), local={"processes": 1})
    live = play(repo, draw_history(11, steps=5))
    due = repo.query(live).to_pylist()
    for folder in (tmp_path / "repo" / "segments").glob(f"*/{mapped.FOLDER}"):
        shutil.rmtree(folder)

    again = nddup.repository.open(str(tmp_path / "repo"))

    assert again.query(live).to_pylist() == due
    assert len(list((tmp_path / "repo" / "segments").glob(f"*/{mapped.FOLDER}"))) == len(again.snapshot.commit.segments)
