"""The documents of a run onto another: its new records are settled beside those old ones that they concern.

    old run, records of NEW  --settle_onto-->  Settled: documents and rejects of both, and GIVEN for the next run

Old records come first, so they keep their ids. What may change is the `group` of those whose text a new one has. Where
more may change (a revisit whose original comes later, a name that looks made up, documents taken out) all are settled.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded.collapse import Collapsed, collapse, number_records
from nddup.embedded.old_run import Old
from nddup.ground.columns import one_chunk, ragged_of, sizes_of, take
from nddup.scanning.sketch_records import fingerprint_sketches, fingerprint_textless
from nddup.settings.plan import recipe_of
from nddup.settings.schema import Config
from nddup.sketching.min_s import Sketches
from nddup.stages.settle import MADE_UP
from nddup.tables import GIVEN, RECORDS, REJECTS

NUMBERS = ("doc_key", "record")


class Settled(NamedTuple):
    """DOCUMENTS and REJECTS of both runs, and what the next one needs.

    Attributes:
        documents: in collection order.
        rejects: of records and whole files.
        later: good records whose id an earlier one has.
        given: GIVEN of both.
        first_new: the `doc_key` of the first new record.
        regrouped: the places of old documents whose `group` has changed; None: any row may have.
    """

    documents: pa.Table
    rejects: pa.Table
    later: int
    given: pa.Table
    first_new: int
    regrouped: NDArray[np.int64] | None


def settle_onto(old: Old, config: Config, new: pa.Table, silent: pa.Table) -> Settled:
    """Make the documents and rejects of both runs.

    Args:
        new: RECORDS of NEW.
        silent: REJECTS of its files without records.

    Cost: a look-up of the ids and fingerprints of NEW among the old ones, and `collapse` of those concerned; where all
        are settled, `collapse` of all.
    """
    if not len(old.documents) or _concerns_all(old, new):
        return _settle_all(old, config, new, silent)
    concerned = _find_concerned(old, config, new)
    records = pa.concat_tables([concerned, number_records(new, old.n_records).select(concerned.column_names)])
    collapsed = collapse(records, silent, renames=True)

    is_new = np.asarray(pc.greater_equal(collapsed.documents["doc_key"], old.n_records))
    added, beside = collapsed.documents.filter(pa.array(is_new)), collapsed.documents.filter(pa.array(~is_new))
    documents, regrouped = _regroup(old.documents, beside)
    given = pa.concat_tables([old.stored["given"], note_given(new, added, old.n_records)])
    later = int(old.noted.get("later_ids", 0)) + collapsed.later
    rejects = pa.concat_tables([old.rejects, collapsed.rejects])
    return Settled(pa.concat_tables([documents, added]), rejects, later, given, old.n_records, regrouped)


def _concerns_all(old: Old, new: pa.Table) -> bool:
    """Return whether new records may change more of old ones than the groups of equal texts."""
    is_revisited = pc.any(pc.equal(new["reason"], "revisit")).as_py() or old.has_revisits
    is_like = pc.any(pc.match_substring_regex(new["doc_id"], MADE_UP)).as_py()
    batches = {source.partition("/")[0] for source in pc.unique(new["source"]).to_pylist()}
    is_named = any(pc.any(pc.starts_with(old.documents["doc_id"], f"{name}/")).as_py() for name in batches)
    return bool(len(old.taken)) or bool(is_revisited) or bool(is_like) or is_named


def _find_concerned(old: Old, config: Config, new: pa.Table) -> pa.Table:
    """Return the old records that have an id of a new one, or name the group of its text, numbered."""
    ids = old.documents["doc_id"]
    has_id = np.asarray(pc.is_in(ids, one_chunk(new["doc_id"]).drop_null()))
    is_name = np.asarray(pc.equal(ids, old.documents["group"]))
    prints = prints_of(old.documents, config)
    has_text = is_name & np.asarray(pc.is_in(prints, one_chunk(new["sketch_fingerprint"]).drop_null()))
    concerned = old.documents.append_column("sketch_fingerprint", prints).filter(pa.array(has_id | has_text))
    return _as_records(concerned)


def _regroup(documents: pa.Table, beside: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return old documents with the groups that those settled again have now, and the places of the changed rows."""
    changed = beside.filter(pc.not_equal(beside["group"], beside["doc_id"])).select(["doc_id", "group"])
    at = pc.index_in(documents["group"], one_chunk(changed["doc_id"]))
    places = np.flatnonzero(np.asarray(pc.is_valid(at)))
    if not len(places):
        return documents, places
    groups = pc.coalesce(changed["group"].take(one_chunk(at)), documents["group"])
    return documents.set_column(documents.schema.get_field_index("group"), "group", groups), places


def _settle_all(old: Old, config: Config, new: pa.Table, silent: pa.Table) -> Settled:
    given = old.stored["given"]
    records = _all_records(old, config, new) if len(old.documents) or len(given) else new
    lost = given.filter(pc.invert(pc.is_in(given["doc_key"], one_chunk(old.documents["doc_key"]))))
    apart = old.rejects.join(lost.select(["source", "record"]), ["source", "record"], join_type="left anti")
    apart = pa.concat_tables([apart.select(REJECTS.names), silent])
    without = pa.table({"doc_id": old.taken}) if len(old.taken) else None
    collapsed: Collapsed = collapse(records, apart, renames=True, without=without)
    first = len(records) - len(new)
    return Settled(
        collapsed.documents, collapsed.rejects, collapsed.later, note_given(records, collapsed.documents), first, None
    )


def _all_records(old: Old, config: Config, new: pa.Table) -> pa.Table:
    """Return the records of both runs in collection order.

    Args:
        new: RECORDS of NEW.
    """
    given = old.stored["given"]
    documents = _as_given(old, old.documents.append_column("sketch_fingerprint", prints_of(old.documents, config)))
    is_revisit = pc.is_in(documents["doc_key"], given["doc_key"].filter(pc.equal(given["reason"], "revisit")))
    documents = documents.filter(pc.invert(is_revisit))
    is_document = pc.is_in(given["doc_key"], one_chunk(documents["doc_key"]))
    parts = [_as_records(documents), _as_records(_with_sketches(given.filter(pc.invert(is_document)), old.documents))]
    records = pa.concat_tables(parts).sort_by("doc_key") if len(parts[1]) else parts[0]
    return pa.concat_tables([records.drop_columns(["doc_key", "record"]), new])


def _with_sketches(rows: pa.Table, documents: pa.Table) -> pa.Table:
    """Return rows of GIVEN with the sketches of documents of their contents: a revisit may repeat one that is none."""
    at = pc.index_in(rows["content_fingerprint"], one_chunk(documents["content_fingerprint"]))
    places = np.asarray(pc.fill_null(at, -1))
    for name in ("sketch", "signature"):
        rows = rows.append_column(name, take(documents[name], places))
    return rows


def _as_given(old: Old, documents: pa.Table) -> pa.Table:
    others = old.stored["given"].filter(pc.is_in(old.stored["given"]["doc_key"], one_chunk(documents["doc_key"])))
    if not len(others):
        return documents
    is_other = pc.is_in(one_chunk(documents["doc_key"]), one_chunk(others["doc_key"]))
    for name in ("doc_id", "parent"):
        values = pc.replace_with_mask(one_chunk(documents[name]), is_other, one_chunk(others[name]))
        documents = documents.set_column(documents.schema.get_field_index(name), name, values)
    return documents


def _as_records(rows: pa.Table) -> pa.Table:
    columns = {
        name: rows[name] if name in rows.column_names else pa.nulls(len(rows), RECORDS.arrow.field(name).type)
        for name in RECORDS.names
    }
    numbers = {name: rows[name] for name in NUMBERS}
    schema = pa.schema([*((name, pa.int64()) for name in NUMBERS), *RECORDS.arrow])
    return pa.table({**numbers, **columns}).cast(schema)


def prints_of(documents: pa.Table, config: Config) -> pa.Array:
    """Return the `sketch_fingerprint` of DOCUMENTS."""
    if config.pairs.confirm == "none":
        rows, n_features = ragged_of(documents["sketch"]), documents["n_features"].to_numpy()
        made = Sketches(n_features, n_features, rows.offsets, rows.values)
        prints = pa.array(fingerprint_sketches(made, recipe_of(config)), pa.binary())
    else:
        prints = one_chunk(documents["token_fingerprint"])
    is_empty = sizes_of(documents["sketch"]) == 0
    if not is_empty.any():
        return prints
    rows_without = documents.select(["content_fingerprint", "n_tokens"]).filter(pa.array(is_empty)).to_pylist()
    marks = [fingerprint_textless(row["content_fingerprint"], row["n_tokens"]) for row in rows_without]
    return pc.replace_with_mask(prints, pa.array(is_empty), pa.array(marks, pa.binary()))


def note_given(records: pa.Table, documents: pa.Table, first: int = 0) -> pa.Table:
    """Return GIVEN: of RECORDS in collection order, those that are not in DOCUMENTS as they were read, revisits too.

    Args:
        records: of a collection, or of a batch of it.
        documents: that were made of them.
        first: the `doc_key` of the first record.
    """
    numbered = number_records(records, first)
    is_document = np.zeros(len(records), np.bool_)
    keys = documents["doc_key"].to_numpy() - first
    is_document[keys] = True
    same = [is_equal(numbered[name].take(pa.array(keys)), documents[name]) for name in ("doc_id", "parent")]
    is_told = ~is_document
    is_told[keys[~(same[0] & same[1])]] = True
    is_told |= np.asarray(pc.fill_null(pc.equal(records["reason"], "revisit"), fill_value=False))
    rows = numbered.filter(pa.array(is_told))
    return rows.select(GIVEN.names).cast(GIVEN.arrow)


def is_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return where two columns are equal, null to null."""
    both_null = pc.and_(pc.is_null(one), pc.is_null(other))
    return np.asarray(pc.or_(both_null, pc.fill_null(pc.equal(one, other), pa.scalar(value=False))))
