"""Families of documents, on either engine: what each stands for (FAMILIES), and names that last from run to run.

    keep, documents  --MEMBERS-->       family_members   the documents of families, with the values of the ledger
    family_members   --VALUES-->        family_values    how many documents of a family have a value
    family_values    --lay_ledgers-->   ledgers          LEDGERS: the values of a family, the most frequent first
    family_members, ledgers --ANSWER--> FAMILIES
    families before and now that share documents --match_names--> which later family has an earlier's name

A family is a kept document with those removed for it, so families divide all documents but those that `keep.force`
removes and that are like no kept one. In a run that takes no earlier names a family is called by its oldest document,
the first in the collection.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.engines.engine import Batches, Engine, EngineTable, FinishedRun
from nddup.errors import OutputError
from nddup.ground.columns import one_chunk
from nddup.stages.label_components import make_seen
from nddup.tables import LEDGERS, MOST_VALUES, NAMES, Table, working

if TYPE_CHECKING:
    from nddup.stages.run_engine import RunEngine


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


MATCHED = working("matched", "name string, doc_id string", "Later families that have an earlier one's name.")

NO_ROWS = pa.table({
    **{name: pa.array([], pa.string()) for name in ("name", "head", "least")},
    **{name: pa.array([], pa.int64()) for name in ("shared", "size")},
})  # fmt: skip
"""No rows of `CONTESTED`."""

NAMED_MEMBERS = """
    SELECT doc_id, coalesce(duplicate_of, doc_id) AS head FROM {before}keep WHERE kept OR duplicate_of IS NOT NULL
"""
"""The family of each document: one that is forced out, and like no kept one, has none."""

FIRST_NAMES = """
    SELECT min_by(m.doc_id, m.doc_key) AS name, m.head AS doc_id FROM ({members}) AS m WHERE m.head IS NOT NULL
    GROUP BY m.head
"""

AGED_MEMBERS = """
    SELECT m.doc_id, d.doc_key, m.head FROM before_family_members AS m JOIN before_documents AS d ON m.doc_id = d.doc_id
"""

HEADS = """
    SELECT a.head AS head_before, b.head AS head_after
    FROM before_family_members AS a FULL OUTER JOIN family_members AS b ON a.doc_id = b.doc_id
"""
"""The family of each document in both runs."""

MEETINGS = "SELECT head_before, head_after, count(*) AS n FROM heads GROUP BY head_before, head_after"
"""How many documents each two families share; null: those that are in none."""

CONTENDERS = """
    SELECT n.name, k.head_after AS head, k.n AS shared, count(*) OVER (PARTITION BY n.name) AS laters,
           count(*) OVER (PARTITION BY k.head_after) AS earliers
    FROM meetings AS k JOIN before_names AS n ON k.head_before = n.doc_id WHERE k.head_after IS NOT NULL
"""

CONTESTED = """
    WITH sized AS (SELECT head, min(doc_id) AS least, count(*) AS size FROM family_members GROUP BY head)
    SELECT 0 AS one, o.name, o.head, o.shared, s.least, s.size
    FROM contenders AS o JOIN sized AS s ON o.head = s.head WHERE o.laters > 1 OR o.earliers > 1
"""

KEPT_NAMES = """
    SELECT name, head AS doc_id FROM contenders WHERE laters = 1 AND earliers = 1
    UNION ALL SELECT name, doc_id FROM matched
"""

NEW_NAMES = """
    SELECT m.head AS doc_id, min(m.doc_id) AS least, min(CASE WHEN n.name IS NULL THEN m.doc_id END) AS name
    FROM family_members AS m ANTI JOIN kept_names AS k ON m.head = k.doc_id
    LEFT JOIN before_names AS n ON m.doc_id = n.name
    GROUP BY m.head
"""

SPELLED = """
    SELECT name FROM before_names WHERE name LIKE '%~%' UNION SELECT doc_id AS name FROM keep WHERE doc_id LIKE '%~%'
"""

ALL_NAMES = """
    SELECT name, doc_id FROM kept_names
    UNION ALL SELECT name, doc_id FROM new_names WHERE name IS NOT NULL
    UNION ALL SELECT name, doc_id FROM other_names
"""

WITH_RETIRED = """
    WITH heads_before AS (SELECT head_before AS head, CAST(sum(n) AS BIGINT) AS n FROM meetings GROUP BY head_before),
    heads_after AS (SELECT head_after AS head, CAST(sum(n) AS BIGINT) AS n FROM meetings GROUP BY head_after)
    SELECT coalesce(l.name, b.name) AS name, l.doc_id, coalesce(m.n, 0) AS documents, coalesce(s.n, 0) AS before
    FROM live_names AS l FULL OUTER JOIN before_names AS b ON l.name = b.name
    LEFT JOIN heads_after AS m ON l.doc_id = m.head LEFT JOIN heads_before AS s ON b.doc_id = s.head
"""

STORED_NAMES = "SELECT name, doc_id FROM names"


def match_names(
    earlier: pa.Array, later: pa.Array, shared: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rows, of p pairs of families, whose later family has the name of the earlier one, ascending.

    Args:
        earlier: (p,) names.
        later: (p,) the smallest id of each later family.
        shared: (p,) documents that both have.
        sizes: (p,) documents of the later family.

    Returns:
        (m,), none without pairs; each earlier and each later family is in one of these rows at most.

    Cost: a sort of the rows, 100 bytes each.
    """
    if not len(shared):
        return np.empty(0, np.int64)
    names, ids = (_rank(values) for values in (earlier, later))
    order = np.lexsort((ids, -sizes, names, -shared))
    return np.sort(order[_take_free(names[order], ids[order])])


def name_others(ids: Sequence[str], used: Collection[str]) -> list[str]:
    """Return names for k families of which every id is or was a name: the smallest id with `~2`, or `~3`, and so on.

    Args:
        ids: (k,) the smallest id of each.
        used: all names and ids that hold a `~`.

    Returns:
        (k,) names, all different, whatever the order of the families.
    """
    taken, names = set(used), dict[str, str]()
    for one in sorted(ids):
        number = 2
        while f"{one}~{number}" in taken:
            number += 1
        names[one] = f"{one}~{number}"
        taken.add(names[one])
    return [names[one] for one in ids]


def _rank(values: pa.Array) -> NDArray[np.int64]:
    """Return the place of each value among all, as bytes, (p,)."""
    encoded = values.dictionary_encode()
    spelled = [value.encode() for value in encoded.dictionary.to_pylist()]
    ranks = np.empty(len(spelled), np.int64)
    ranks[sorted(range(len(spelled)), key=spelled.__getitem__)] = np.arange(len(spelled))
    places: NDArray[np.int64] = ranks[np.asarray(encoded.indices)]
    return places


def _take_free(names: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are taken, gone through once in order."""
    is_named, is_called, is_taken = set[int](), set[int](), np.zeros(len(names), np.bool_)
    for row, (name, one) in enumerate(zip(names.tolist(), ids.tolist(), strict=True)):
        if name not in is_named and one not in is_called:
            is_taken[row] = True
            is_named.add(name)
            is_called.add(one)
    return is_taken


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


def require_other(engine: "RunEngine", path: str) -> None:
    """Refuse an earlier run that is none, or that this run replaces.

    Raises:
        OutputError: naming it.
    """
    if engine.earlier is not None:
        return
    engine.open_other(path)
    require_other_place(engine, path, "output.names_from:")


def require_other_place(engine: "RunEngine", path: str, asked: str) -> None:
    """Refuse a run that is read, wherever links lead to, if the run that is to be made takes its place.

    Raises:
        OutputError: naming it, and what was asked.
    """
    if engine.files.is_within(path, engine.folder.path):
        raise OutputError(f"{asked} {path} is the run that is to be made; give another --output")


def names_after(earlier: FinishedRun, engine: Engine) -> str:
    """Return the query for NAMES of a run that follows another.

    Args:
        earlier: the other run, of the same engine.
        engine: with `documents` and `keep` of the run.

    Cost: as `name_families`.
    """
    engine.see("before_keep", earlier.answer("SELECT doc_id, kept, duplicate_of FROM keep"))
    list_meetings(engine)
    if earlier.holds(NAMES.name):
        engine.see("before_names", earlier.answer(STORED_NAMES))
    else:
        engine.see("before_documents", earlier.answer("SELECT doc_id, doc_key FROM documents"))
        name_first(engine, AGED_MEMBERS)
    return name_families(engine)


def list_meetings(engine: Engine) -> None:
    """Materialise the families of both runs and how many documents each two share.

    Args:
        engine: with `keep` and `before_keep`. It gets `family_members` and `before_family_members` (doc_id, head, the
            kept document that stands for it), `heads` and `meetings`.
    """
    for before in ("before_", ""):
        engine.materialise(f"{before}family_members", NAMED_MEMBERS.format(before=before))
    engine.materialise("heads", HEADS)
    engine.materialise("meetings", MEETINGS)


def name_first(engine: Engine, members: str) -> None:
    """Materialise `before_names` (name, doc_id) of the families of a run that takes no names from another.

    Args:
        engine: with the tables that the query names.
        members: a query for doc_id, doc_key and head of each document; one without a head is in no family.
    """
    engine.materialise("before_names", FIRST_NAMES.format(members=members))


def name_families(engine: Engine) -> str:
    """Name the families of a run that follows another.

    Args:
        engine: with `keep` and `family_members` of the run, `meetings` of its families with those of the earlier run,
            and `before_names` of these, as NAMES. It gets `live_names` (name, doc_id), of its families.

    Returns:
        The query for NAMES of the run: these, and the names that no longer are.

    Cost: joins of narrow rows: on Spark one shuffle each; of families that share documents with several, and only of
        these, the rows are in one task.
    """
    engine.materialise("contenders", CONTENDERS)
    make_seen(engine, MATCHED, CONTESTED, partial(match_batches, table=MATCHED), by=("one",))
    engine.materialise("kept_names", KEPT_NAMES)
    engine.materialise("new_names", NEW_NAMES)
    rest = engine.sql("SELECT doc_id, least FROM new_names WHERE name IS NULL ORDER BY least")
    used = engine.sql(SPELLED)["name"].to_pylist() if len(rest) else []
    others = pa.array(name_others(rest["least"].to_pylist(), used), pa.string())
    engine.put("other_names", pa.table({"name": others, "doc_id": rest["doc_id"].cast(pa.string())}))
    engine.materialise("live_names", ALL_NAMES)
    return WITH_RETIRED


def match_batches(batches: Batches, *, table: Table) -> Batches:
    """Yield MATCHED, or a table like it, from rows of `CONTESTED`, in any order."""
    given = [batch for batch in batches if len(batch)]
    rows = pa.Table.from_batches(given) if given else NO_ROWS
    name, least = (one_chunk(rows[column].cast(pa.string())) for column in ("name", "least"))
    shared, sizes = (rows[column].to_numpy().astype(np.int64) for column in ("shared", "size"))
    taken = pa.array(match_names(name, least, shared, sizes))
    yield table.batch([name.take(taken), one_chunk(rows["head"].cast(pa.string())).take(taken)])
