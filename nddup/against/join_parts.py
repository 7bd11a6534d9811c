"""B in parts: the shingles of each part are numbered, and looked up in A, separately.

number_items   shingle tables of the parts   -> the items as numbers of shingles
join_shared    SHARED of each part           -> SHARED of all, one row per document
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.against.against_tables import SHARED
from nddup.against.judge import Numbered
from nddup.against.lists import flatten, list_column
from nddup.against.shingle_table import Known
from nddup.errors import CapacityError

MOST_SHINGLES = (1 << 31) - 1
"""Shingles of all parts together: their numbers have 32 bits."""


def first_numbers(parts: Sequence[Known]) -> list[int]:
    """Return the number of the first shingle of each part, then the total of all shingles.

    Raises:
        CapacityError: for more than `MOST_SHINGLES` shingles.
    """
    numbers = [0, *np.cumsum([len(known.keys) for known in parts], dtype=np.int64).tolist()]
    if numbers[-1] > MOST_SHINGLES:
        raise CapacityError(
            f"B has {numbers[-1]:,} shingles; `against` takes at most {MOST_SHINGLES:,}: give B in parts"
        )
    return numbers


def number_items(parts: Sequence[Known]) -> Numbered:
    """Number the items of all parts. A shingle of several parts has a number in each; the later ones are `repeated`.

    Shingles of two parts are the same if their fingerprints are, as in the count of a document's distinct shingles.
    """
    numbers = first_numbers(parts)
    if len(parts) == 1:
        return Numbered(parts[0].firsts, parts[0].numbers, np.zeros(numbers[-1], np.bool_))
    tokens = np.cumsum([0, *(len(known.numbers) for known in parts)])
    firsts = [known.firsts[:-1] + before for known, before in zip(parts, tokens[:-1], strict=True)]
    moved = [
        np.where(known.numbers >= 0, known.numbers + np.int32(before), -1).astype(np.int32)
        for known, before in zip(parts, numbers[:-1], strict=True)
    ]
    repeated = np.ones(numbers[-1], np.bool_)
    repeated[np.unique(np.concatenate([known.keys for known in parts]), return_index=True)[1]] = False
    return Numbered(np.concatenate([*firsts, tokens[-1:]]), np.concatenate(moved), repeated)


def join_shared(tables: Sequence[pa.Table], first: Sequence[int]) -> pa.Table:
    """Join the documents found for each part, one row per document.

    Args:
        tables: SHARED of each part, documents only.
        first: the result of `first_numbers`.

    Returns:
        SHARED. The hits of a document are in the order of the parts; its pieces of text surround all its hits.

    Cost: a sort of the rows; none for one part.
    """
    if len(tables) == 1:
        return tables[0]
    moved = [_move(table, before) for table, before in zip(tables, first[:-1], strict=True)]
    rows = pa.concat_tables(moved).combine_chunks()
    source = np.asarray(pc.rank(rows["source"], tiebreaker="dense"))
    split, seq = rows["split"].to_numpy(), rows["seq"].to_numpy()
    rows = rows.take(pa.array(np.lexsort((seq, split, source))))  # stable: parts stay in their order
    places = [rows[name].to_numpy(zero_copy_only=False) for name in ("source", "split", "seq")]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = np.any([place[1:] != place[:-1] for place in places], axis=0)
    bounds = np.append(np.flatnonzero(is_first), len(rows))

    joined = rows.filter(pa.array(is_first))
    for name in ("tokens", "numbers", "begins", "ends"):
        offsets, values = flatten(rows[name])
        joined = _replace(joined, name, list_column(offsets[bounds], values))
    starts, regions = rows["region_starts"].to_pylist(), rows["regions"].to_pylist()
    pieces = [
        join_pieces(piece for row in range(low, high) for piece in zip(starts[row], regions[row], strict=True))
        for low, high in pairwise(bounds.tolist())
    ]
    joined = _replace(joined, "region_starts", pa.array([[start for start, _ in some] for some in pieces]))
    return _replace(joined, "regions", pa.array([[text for _, text in some] for some in pieces])).cast(SHARED.arrow)


def join_pieces(pieces: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Join pieces of one text that touch or overlap; each piece has the place of its first character.

    Example:
        >>> join_pieces([(10, "c"), (0, "one"), (2, "e two")])
        [(0, 'one two'), (10, 'c')]
    """
    joined: list[tuple[int, str]] = []
    for start, text in sorted(pieces):
        if joined and start <= (end := joined[-1][0] + len(joined[-1][1])):
            joined[-1] = (joined[-1][0], joined[-1][1] + text[end - start :])
        else:
            joined.append((start, text))
    return joined


def _move(table: pa.Table, before: int) -> pa.Table:
    """Return a table with its numbers shifted behind those of the parts before."""
    offsets, numbers = flatten(table["numbers"])
    moved: NDArray[np.int32] = numbers + np.int32(before)
    return _replace(table, "numbers", list_column(offsets, moved))


def _replace(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)
