"""A batch: the documents read from its inputs, which of them are new, and what they replace; matched by id."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.columns import fingerprints_of, one_chunk
from nddup.engines.embedded import DuckEngine
from nddup.errors import ConfigError
from nddup.local import engine
from nddup.local.rewritten_files import Rewriter, verdicts_of, write_apart
from nddup.local.workers import Workers
from nddup.repository.live_tables import read_texts
from nddup.repository.segment_files import TEXTS
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.stages.losses import require_few_losses
from nddup.tables import DOCUMENTS, REJECTS, REPEATED


@dataclass(frozen=True)
class Batch:
    """The documents of a batch that are added, and what happens to the rest.

    Attributes:
        documents: DOCUMENTS of a run, numbered by the repository.
        gone: numbers of the live documents they replace, ascending.
        rejects: REJECTS, including repeated ids.
        unchanged: number of documents that are already live with the same content.
        numbers: how many document numbers the batch uses up.
        records: `doc_id`, `source` and `record` of all documents that were read, unchanged ones too.
        unread: REJECTS of reading alone.
        texts: TEXTS of the documents.
        source: what they were read from, which is read again where all shingles decide.
    """

    documents: pa.Table
    gone: NDArray[np.int64]
    rejects: pa.Table
    unchanged: int
    numbers: int
    texts: pa.Table = field(default_factory=TEXTS.arrow.empty_table)
    records: pa.Table = field(default_factory=DOCUMENTS.arrow.empty_table)
    unread: pa.Table = field(default_factory=REJECTS.arrow.empty_table)
    source: Collection | pa.Table | None = None

    def counts(self) -> dict[str, int]:
        """Return the counts that a commit records of the batch, with rejects by reason."""
        reasons = Counter(self.rejects["reason"].to_pylist())
        return {"unchanged": self.unchanged, "rejects": len(self.rejects)} | {
            f"rejects {reason}": count for reason, count in sorted(reasons.items())
        }


def read_batch(
    snapshot: Snapshot,
    source: Collection | pa.Table,
    workers: Workers,
    *,
    replace: bool = False,
    id_prefix: str | None = None,
) -> Batch:
    """Read and sketch a batch, and find which of its documents are new.

    Args:
        snapshot: the version before.
        source: files, or given texts.
        workers: the workers that read.
        replace: whether a live id with other content replaces the stored document; else it is a reject `repeated id`.
        id_prefix: prefix of ids made up from file and record.

    Raises:
        ConfigError: for made-up ids without a prefix, or if a prefixed one equals another id of the batch.
        NddupError: if more files cannot be read, or more records are rejected, than the settings allow.
    """
    config = snapshot.identity.config
    sketched = engine.sketch(source, config, workers)
    ask = partial(DuckEngine.over, "this batch", documents=sketched.documents, rejects=sketched.rejects)
    require_few_losses(ask, len(sketched.documents), sketched.reasons, config.input, source)

    documents = _with_ids(sketched.documents, id_prefix)
    stored = snapshot.find_ids(one_chunk(documents["doc_id"]))
    live = np.flatnonzero(stored >= 0)
    keys = stored[live]
    is_same = _same_contents(snapshot, documents.take(pa.array(live)), keys)
    changed, same = live[~is_same], live[is_same]

    chosen = np.ones(len(documents), np.bool_)
    chosen[same] = False
    rejects, gone = sketched.rejects, np.sort(keys[~is_same])
    if not replace:
        chosen[changed] = False
        rejects, gone = pa.concat_tables([rejects, _repeated(documents.take(pa.array(changed)))]), np.empty(0, np.int64)
    numbers = int(pc.max(documents["doc_key"]).as_py() or 0) + 1 if len(documents) else 0
    added = _numbered(documents, snapshot.commit.next_key).filter(pa.array(chosen))
    texts = read_texts(snapshot, source, added, workers)
    records = documents.select(["doc_id", "source", "record"])
    return Batch(added, gone, rejects, len(same), numbers, texts, records, sketched.rejects, source)


def write_delta(batch: Batch, changes: pa.Table, rewriter: Rewriter, output: str, workers: Workers) -> None:
    """Write the files of a batch again with only the documents that were not live before and are kept now.

    Args:
        batch: the batch.
        changes: CHANGES of the version that it makes.
        rewriter: of its files; it gets the verdicts here.
        output: the new folder. It gets its name when it is complete.
        workers: the workers that write.

    Raises:
        OutputError: if it exists or cannot be written.
        NddupError: if a file cannot be written again.
    """
    is_new = pc.and_(pc.is_in(changes["was"], pa.array(["absent"])), pc.equal(changes["is"], "kept"))
    is_new = pc.or_(is_new, pc.and_(pc.equal(changes["cause"], "replaced"), pc.equal(changes["is"], "kept")))
    stays = pc.is_in(batch.records["doc_id"], value_set=one_chunk(changes["doc_id"].filter(is_new)))
    verdicts = verdicts_of(batch.records.append_column("stays", stays), batch.unread)
    write_apart(rewriter._replace(verdicts=verdicts), output, workers)


def _with_ids(documents: pa.Table, prefix: str | None) -> pa.Table:
    """Return the documents with the prefix added to made-up ids, also in `group`."""
    record = documents["record"].cast(pa.string())
    made = pc.binary_join_element_wise(documents["source"], record, "#")
    is_made = pc.equal(documents["doc_id"], made)
    count = pc.sum(is_made).as_py() or 0
    if not count:
        return documents
    if prefix is None:
        raise ConfigError(
            f"{count:,} records have no id, and ids made up from file and record may repeat in another batch; name"
            " the field with input.id at `index create`, or give --id-prefix"
        )
    for name in ("doc_id", "group"):  # a group is named by a document's id
        at = documents.schema.get_field_index(name)
        is_of_made = is_made if name == "doc_id" else pc.is_in(documents["group"], value_set=one_chunk(made).filter(
            one_chunk(is_made)))  # fmt: skip
        renamed = pc.if_else(is_of_made, pc.binary_join_element_wise(prefix, documents[name], ""), documents[name])
        documents = documents.set_column(at, name, renamed)
    if len(pc.unique(documents["doc_id"])) < len(documents):
        raise ConfigError(f"--id-prefix {prefix}: a made-up id with it equals another id of the batch")
    return documents


def _numbered(documents: pa.Table, first: int) -> pa.Table:
    """Return the documents numbered from `first`, without their dates: stored ones have none to be compared with."""
    at, date = (documents.schema.get_field_index(name) for name in ("doc_key", "date"))
    dateless = documents.set_column(date, "date", pa.nulls(len(documents), pa.string()))
    return dateless.set_column(at, "doc_key", pc.add(documents["doc_key"], first))


def _same_contents(snapshot: Snapshot, documents: pa.Table, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each document has the content of the stored document with its number in `keys`, (n,)."""
    stored = snapshot.documents_of(np.sort(keys), ["doc_key", "content_fingerprint"])
    at = np.searchsorted(stored["doc_key"].to_numpy(), keys)
    theirs = fingerprints_of(stored["content_fingerprint"])[at]
    return np.asarray((fingerprints_of(documents["content_fingerprint"]) == theirs).all(axis=1))


def _repeated(documents: pa.Table) -> pa.Table:
    """Return REJECTS for documents whose id is live with other content."""
    n = len(documents)
    columns = {
        "source": documents["source"],
        "record": documents["record"],
        "doc_id": documents["doc_id"],
        "reason": pa.array([REPEATED] * n, pa.string()),
        "detail": pa.array(
            ["lives in the repository with other content; --replace takes the new one"] * n, pa.string()
        ),
        "excerpt": pa.array([""] * n, pa.string()),
    }
    return pa.table(columns).cast(REJECTS.arrow)
