"""The table `families`: what each kept document stands for, and the values that those documents have.

    keep, documents  --MEMBERS-->       family_members   the documents of families, with the values of the ledger
    family_members   --VALUES-->        family_values    how many documents of a family have a value
    family_values    --lay_ledgers-->   ledgers          LEDGERS: the values of a family, the most frequent first
    family_members, ledgers --ANSWER--> FAMILIES

A family is a kept document with those removed for it, so families divide all documents but those that `keep.force`
removes and that are like no kept one. A missing value is a value. Numbers and dates have a least and a greatest one
where every value of the family that is not missing is one.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.engines.engine import Batches, Engine, EngineTable
from nddup.tables import LEDGERS, MOST_VALUES

MEMBERS = """
    SELECT coalesce(k.duplicate_of, k.doc_id) AS stands, k.kept, k.lost, k.resemblance, d.group AS text_group,
           d.source, d.policy
    FROM keep AS k JOIN documents AS d ON k.doc_id = d.doc_id WHERE k.kept OR k.duplicate_of IS NOT NULL
"""

VALUES = """
    SELECT m.stands, p.place, CASE p.place {values} END AS value, count(*) AS n
    FROM family_members AS m CROSS JOIN ({places}) AS p GROUP BY m.stands, p.place, CASE p.place {values} END
"""

IN_ORDER = "SELECT stands, place, value, n, -n AS turn FROM family_values"

BY = ("stands", "place", "turn", "value")

ANSWER = """
    WITH own_texts AS (
        SELECT stands, text_group, count(*) AS n, count_if(kept) AS kept, max(lost) AS lost,
               min(resemblance) AS resemblance
        FROM family_members GROUP BY stands, text_group
    ),
    counted AS (
        SELECT stands, CAST(sum(n) AS BIGINT) AS documents,
               CAST(sum(CASE WHEN kept > 0 THEN n ELSE 0 END) AS BIGINT) AS equal, max(lost) AS lost_most,
               min(resemblance) AS resemblance_least
        FROM own_texts GROUP BY stands
    )
    SELECT c.stands AS doc_id, c.documents, c.equal, c.lost_most, c.resemblance_least, l.ledger
    FROM counted AS c JOIN ledgers AS l ON c.stands = l.doc_id
"""

NUMBERS: Final = r"^ *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,6})? *$"

DATES: Final = r"^\d{4}-\d{2}(-\d{2})?([T ].*)?$"
"""A month or a day, perhaps with a time: their order is that of texts."""

OTHER, NUMBER, DATE = 0, 1, 2
"""Kinds of values."""


def list_families(engine: Engine, columns: Sequence[str], places: Sequence[int | None]) -> EngineTable:
    """Return FAMILIES.

    Args:
        engine: with `documents` and `keep`.
        columns: those of `keep.ledger`.
        places: for each its place in `documents.policy`, from 0; None for the file.

    Cost: on Spark shuffles of documents and keep-list on the id, twice; of what is left of these on family and text,
        and on family and value; and of both results on the family. A task holds the distinct values of one family.
    """
    values = ["d.source" if place is None else f"element_at(d.policy, {place + 1})" for place in places]
    text = " ".join(f"WHEN {at} THEN {value.replace('d.', 'm.')}" for at, value in enumerate(values))
    listed = " UNION ALL ".join(f"SELECT {at} AS place" for at in range(len(values)))
    engine.see("family_members", engine.answer(MEMBERS))
    engine.see("family_values", engine.answer(VALUES.format(values=text, places=listed)))
    engine.see("ledgers", engine.answer(IN_ORDER, partial(lay_ledgers, columns=tuple(columns)), LEDGERS, by=BY))
    return engine.answer(ANSWER)


def lay_ledgers(batches: Batches, *, columns: Sequence[str]) -> Batches:
    """Yield LEDGERS of rows of `IN_ORDER`, sorted by `BY`: each family has a row for each value of each column."""
    for rows in _whole_families(batches):
        yield _lay(rows, columns)


def _whole_families(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the same rows so that no family is divided."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if not len(batch):
            continue
        stands = batch.column("stands")
        first = pc.index(stands, stands[-1]).as_py()
        if waiting and first == 0 and waiting[0].column("stands")[0] == stands[0]:
            waiting.append(batch)
            continue
        yield from _joined([*waiting, batch.slice(0, first)])
        waiting = [batch.slice(first)]
    yield from _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else ()


def _lay(rows: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Return LEDGERS of whole families."""
    stands, value, counts = (rows.column(name) for name in ("stands", "value", "n"))
    places = np.asarray(rows.column("place")).astype(np.int64)
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = np.asarray(pc.not_equal(stands[1:], stands[:-1])) | (places[1:] != places[:-1])
    starts = np.flatnonzero(begins)  # of the values of a family in a column
    sizes = np.diff(starts, append=len(rows))
    shown = np.arange(len(rows)) - starts.repeat(sizes) < MOST_VALUES
    fields = {field.name: field.type for field in LEDGERS.arrow.field("ledger").type.value_type}
    listed = pa.StructArray.from_arrays(
        [value.filter(pa.array(shown)), counts.filter(pa.array(shown)).cast(pa.int64())],
        fields=list(fields["values"].value_type),
    )
    bounds = np.concatenate([[0], np.cumsum(np.minimum(sizes, MOST_VALUES))]).astype(np.int32)
    least, greatest = _find_extremes(value, np.arange(len(starts)).repeat(sizes), len(starts))
    ledger = pa.StructArray.from_arrays(
        [
            pa.array(columns, pa.string()).take(pa.array(places[starts])),
            pa.ListArray.from_arrays(pa.array(bounds), listed),
            pa.array(sizes.astype(np.int64)),
            value.take(pa.array(least, mask=least < 0)),
            value.take(pa.array(greatest, mask=greatest < 0)),
        ],
        fields=[pa.field(name, kind) for name, kind in fields.items()],
    )
    firsts = np.arange(0, len(starts) + 1, len(columns), dtype=np.int32)
    families = stands.take(pa.array(starts[:: len(columns)]))
    return LEDGERS.batch([families, pa.ListArray.from_arrays(pa.array(firsts), ledger)])


def _find_extremes(
    values: pa.Array, runs: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the least and the greatest value of each run, (count,); -1 where it is no order.

    Args:
        values: (n,), strings.
        runs: (n,), ascending from 0; rows of one run are compared.
        count: number of runs.
    """
    valid = np.asarray(pc.is_valid(values))
    kinds = np.full(len(values), OTHER, np.int8)
    for kind, pattern in ((NUMBER, NUMBERS), (DATE, DATES)):
        kinds[np.asarray(pc.fill_null(pc.match_substring_regex(values, pattern), False))] = kind  # noqa: FBT003
    worst = np.full(count, DATE + 1, np.int8)
    best = np.full(count, -1, np.int8)
    np.minimum.at(worst, runs[valid], kinds[valid])
    np.maximum.at(best, runs[valid], kinds[valid])
    is_ordered = ((worst == best) & (best != OTHER))[runs] & valid
    numbers = np.zeros(len(values))
    as_numbers = is_ordered & (kinds == NUMBER)
    numbers[as_numbers] = pc.cast(pc.utf8_trim(values.filter(pa.array(as_numbers)), " "), pa.float64())
    texts = np.asarray(pc.rank(values, tiebreaker="dense")).astype(np.int64)
    order = np.lexsort((texts, numbers, runs))
    order = order[is_ordered[order]]
    least, greatest = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    greatest[runs[order]] = order  # of several the last one stays
    least[runs[order][::-1]] = order[::-1]
    return least, greatest
