"""The texts stored with a repository, so that its reports can show them when the inputs are gone.

The first characters of each document are stored, as many as `create` says. A batch stores at most `MOST_CHARACTERS`
in all: a batch of a million documents stores about a quarter of the default for each. No result depends on these texts.
"""

import pyarrow as pa
import pyarrow.compute as pc

from nddup.local.outputs import list_shown
from nddup.local.reading.workers import Workers
from nddup.repository.segments.layout import TEXTS
from nddup.repository.segments.segment_files import among, read_all
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.scanning.read_again import Texts
from nddup.scanning.text_choice import choose_documents
from nddup.tables import STORED_TEXTS

MOST_CHARACTERS = 1 << 28
"""Characters stored for a batch, all documents together."""


def read_texts(snapshot: Snapshot, source: Collection | pa.Table, documents: pa.Table, workers: Workers) -> pa.Table:
    """Return TEXTS of the documents of a batch.

    Args:
        snapshot: the version before; its identity says how many characters.
        source: the batch, which is read a second time.
        documents: DOCUMENTS of a run, numbered by the repository.
        workers: the workers that read.

    Returns:
        One row per document; none for a document whose file changed between the two passes.
    """
    each = min(snapshot.identity.texts, MOST_CHARACTERS // max(len(documents), 1))
    if not each or not len(documents):
        return TEXTS.arrow.empty_table()
    keys = ["source", "content_fingerprint"]
    wanted = frozenset(documents["content_fingerprint"].to_pylist())
    plan = snapshot.identity.plan
    found = workers.scan(source, Texts(plan.text, wanted, each), plan.limits)
    one_each = found.group_by(keys).aggregate([("text", "min")]).rename_columns([*keys, "text"])
    return documents.select(["doc_key", *keys]).join(one_each, keys, join_type="inner").select(TEXTS.names)


def shown_texts(snapshot: Snapshot, tables: dict[str, pa.Table]) -> pa.Table:
    """Return STORED_TEXTS of the documents that a report over the tables of a version shows."""
    options = snapshot.identity.config.output
    if not snapshot.identity.texts or not options.texts:
        return STORED_TEXTS.arrow.empty_table()
    documents = tables["documents"]
    rows = list_shown(tables["clusters"], tables["members"], documents, sampled=options.texts // 2)
    no_files = dict.fromkeys(documents["source"].to_pylist(), 0)
    chosen = choose_documents(rows, no_files, most=options.texts, most_bytes=0).documents
    few = documents.filter(pc.is_in(documents["doc_id"], pa.array(chosen, pa.string()))).select(["doc_key", "doc_id"])
    few = few.sort_by("doc_key")
    where = among("doc_key", few["doc_key"].to_numpy())
    texts = read_all(snapshot.repo, snapshot.commit.segments, "texts", where=where)
    return few.join(texts, "doc_key", join_type="inner").select(STORED_TEXTS.names).sort_by("doc_id")
