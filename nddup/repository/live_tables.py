"""The tables of one version, as a run over its live documents would write them, and a folder that is read like any run.

The first characters of each document are stored, as many as `create` says, so that reports can show texts when the
inputs are gone. A batch stores at most `MOST_CHARACTERS` in all: a batch of a million documents stores about a quarter
of the default for each. No result depends on these texts.
"""

from contextlib import ExitStack
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded import outputs
from nddup.embedded.collapse import name_nodes
from nddup.embedded.confirm import ENDS
from nddup.embedded.workers import Workers
from nddup.engines.duck import DuckEngine, DuckRun, MemoryRun
from nddup.errors import OutputError, OutputExistsError
from nddup.ground.arrays import Ragged
from nddup.ground.columns import one_chunk
from nddup.ground.metrics import (
    ClustersMetrics,
    EditMetrics,
    KeepMetrics,
    PairsMetrics,
    RunMetrics,
    SketchMetrics,
    Stages,
    TextsMetrics,
)
from nddup.matching.lookups import distinct, is_among
from nddup.matching.preference import Order
from nddup.report.gather import report_run
from nddup.repository.identity import MOST_CHARACTERS
from nddup.repository.make_change import as_of_run
from nddup.repository.segment_files import NOT_STORED, RESULTS, TEXTS, among, read_all
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.scanning.read_again import Texts, choose_documents
from nddup.settings.plan import levels_of, record_limits, text_rule, threshold_of
from nddup.settings.schema import Config
from nddup.sketching.rolling_hash import fingerprint_rows
from nddup.stages import names
from nddup.stages.families import list_families
from nddup.stages.report_texts import list_shown
from nddup.stages.stage import Unpaired, dependencies_of, metrics_of, settings_of
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import local_path
from nddup.tables import FAMILIES, KEEP, PAIRS, REJECTS, STORED_TEXTS
from nddup.tables import RESULTS as RUN_RESULTS

ORDER = ("documents", "rejects", "pairs", "false_components", "clusters", "members", "keep", "families", "texts")
"""The tables in writing order, each after those it is made from."""


def live_tables(snapshot: Snapshot) -> dict[str, pa.Table]:
    """Return `documents`, `keep`, `pairs`, `clusters`, `members`, `false_components`; `families` if asked for."""
    keys = snapshot.live_keys
    state = snapshot.state_of(keys)
    documents = as_of_run(snapshot, snapshot.documents_of(keys))
    at = documents.schema.get_field_index("group")
    keep = state.append_column("doc_id", documents["doc_id"])
    live = distinct(state["component_key"].to_numpy())
    documents = documents.set_column(at, "group", state["group"])
    if snapshot.identity.is_exact:
        at = documents.schema.get_field_index("token_fingerprint")
        documents = documents.set_column(at, "token_fingerprint", _fingerprints(snapshot, documents, keys))
    tables = {"documents": documents}
    for name in RESULTS:
        rows = read_all(snapshot.repo, snapshot.commit.segments, name)
        alive = rows.filter(pa.array(is_among(rows["component_key"].to_numpy(), live)))
        if name == "pairs":
            for missing in NOT_STORED:
                alive = alive.append_column(missing, pa.nulls(len(alive), PAIRS.arrow.field(missing).type))
        tables[name] = alive.select(RUN_RESULTS[name].names)
    measured = _measure(keep, tables["documents"], tables["pairs"], is_exact=snapshot.identity.is_exact)
    tables["keep"] = measured.select(KEEP.names).cast(KEEP.arrow)
    return tables | _families_of(snapshot.identity.config, tables)


def _families_of(config: Config, tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    asked = config.keep
    if asked.ledger is None:
        return {}
    engine = DuckEngine.over("this version", documents=tables["documents"], keep=tables["keep"])
    families = list_families(engine, asked.ledger, asked.ledger_places)
    return {"families": families.select(FAMILIES.names).cast(FAMILIES.arrow)}


def _fingerprints(snapshot: Snapshot, documents: pa.Table, keys: NDArray[np.int64]) -> pa.ChunkedArray:
    """Return the `token_fingerprint` of the documents with some numbers: that of their shingles."""
    stored = read_all(snapshot.repo, snapshot.commit.segments, "sketches", ["node", "sketch_fingerprint"])
    nodes = snapshot.documents_of(keys, ["doc_key", "node"])["node"]
    prints = stored["sketch_fingerprint"].take(pc.index_in(nodes, value_set=one_chunk(stored["node"])))
    of_none = pa.scalar(fingerprint_rows(Ragged(np.zeros(2, np.int64), np.empty(0, np.uint64)))[0])
    return pc.if_else(pc.equal(documents["n_features"], 0), of_none, prints)


def _measure(keep: pa.Table, documents: pa.Table, pairs: pa.Table, *, is_exact: bool) -> pa.Table:
    """Add to KEEP, which has a row for each of DOCUMENTS, the columns that a repository does not store."""
    ids = one_chunk(documents["doc_id"])

    def group_of(names: pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the place of the `group` document of each; -1 for null."""
        at = pc.index_in(one_chunk(names), value_set=ids)
        places = groups[np.asarray(pc.fill_null(at, 0))] if len(groups) else np.asarray(at)
        return np.where(np.asarray(pc.is_valid(at)), places, -1)

    of_groups = pc.index_in(one_chunk(documents["group"]), value_set=ids)
    if of_groups.null_count:
        raise OutputError(
            f"{of_groups.null_count:,} documents name a `group` that is not live; the repository is damaged"
        )
    groups = np.asarray(of_groups).astype(np.int64)
    ends = np.stack([group_of(pairs["doc_a"]), group_of(pairs["doc_b"])])
    known = ends.min(axis=0) * len(ids) + ends.max(axis=0)
    order = np.argsort(known)
    ascending = known[order]

    wanted = np.stack([groups, group_of(keep["duplicate_of"])])
    is_near = (wanted[1] >= 0) & (wanted[0] != wanted[1])
    keys = wanted.min(axis=0)[is_near] * len(ids) + wanted.max(axis=0)[is_near]
    resemblance = np.where(wanted[0] == wanted[1], 1.0, np.nan)
    likeness = pairs["resemblance"].to_numpy(zero_copy_only=False)
    is_listed = is_among(keys, ascending)  # all are, but where a stranger wrote `duplicate_of`
    is_near[is_near] = is_listed
    near = order[np.searchsorted(ascending, keys[is_listed])]
    resemblance[is_near] = likeness[near]
    lost = np.full(len(keep), np.nan)
    is_copy = np.asarray(pc.equal(keep["reason"], "exact").fill_null(False)) | is_exact  # noqa: FBT003
    lost[(wanted[0] == wanted[1]) & is_copy] = 0.0
    if is_exact:
        sizes, common = documents["n_features"].to_numpy()[is_near], pairs["common"].to_numpy(zero_copy_only=False)
        lost[is_near] = (sizes - common[near]) / np.maximum(sizes, 1)
    columns = {"resemblance": resemblance, "lost": lost}
    for name, values in columns.items():
        keep = keep.append_column(name, pa.array(values, from_pandas=True))
    return keep


def read_texts(snapshot: Snapshot, source: Collection | pa.Table, documents: pa.Table, workers: Workers) -> pa.Table:
    """Return TEXTS of the documents of a batch.

    Args:
        snapshot: the version before; its identity says how many characters.
        source: the batch, which is read a second time.
        documents: DOCUMENTS of a run, numbered by the repository.

    Returns:
        One row per document; none for a document whose file changed between the two passes.
    """
    each = min(snapshot.identity.texts, MOST_CHARACTERS // max(len(documents), 1))
    if not each or not len(documents):
        return TEXTS.arrow.empty_table()
    keys = ["source", "content_fingerprint"]
    wanted = frozenset(documents["content_fingerprint"].to_pylist())
    config = snapshot.identity.config
    texts = workers.scan(source, Texts(text_rule(config), wanted, each), record_limits(config))
    one_each = texts.group_by(keys).aggregate([("text", "min")]).rename_columns([*keys, "text"])
    return documents.select(["doc_key", *keys]).join(one_each, keys, join_type="inner").select(TEXTS.names)


def shown_texts(snapshot: Snapshot, tables: dict[str, pa.Table]) -> pa.Table:
    """Return STORED_TEXTS of the documents that a report over the tables of a version shows."""
    options = snapshot.identity.config.output
    if not snapshot.identity.texts or not options.texts:
        return STORED_TEXTS.arrow.empty_table()
    documents = tables["documents"]
    seen = {name: tables[name] for name in ("clusters", "members", "documents")}
    rows = list_shown(DuckEngine.over("this version", **seen), sampled=options.texts // 2)
    no_files = dict.fromkeys(documents["source"].to_pylist(), 0)
    chosen = choose_documents(rows, no_files, most=options.texts, most_bytes=0).documents
    few = documents.filter(pc.is_in(documents["doc_id"], pa.array(chosen, pa.string()))).select(["doc_key", "doc_id"])
    few = few.sort_by("doc_key")
    where = among("doc_key", few["doc_key"].to_numpy())
    texts = read_all(snapshot.repo, snapshot.commit.segments, "texts", where=where)
    return few.join(texts, "doc_key", join_type="inner").select(STORED_TEXTS.names).sort_by("doc_id")


def write_run(snapshot: Snapshot, output: str) -> dict[str, Any]:
    """Write the tables of a version as a finished run; return its metrics. After an error nothing is left.

    Raises:
        OutputError: if the folder holds anything, or cannot be written.
    """
    config = snapshot.identity.config
    folder = LocalFolder(output, advice="")
    repo = snapshot.repo.full_name()
    inputs = {"paths": [repo], "files": {}, "repository": repo, "version": snapshot.commit.version}
    with ExitStack() as failing, folder:
        try:
            folder.start(settings=settings_of(config), inputs=inputs)
        except OutputExistsError:
            raise OutputExistsError(f"--output {output}: exists already; give another folder") from None
        failing.callback(rmtree, local_path(folder.path), ignore_errors=True)
        tables = live_tables(snapshot)
        tables |= {"rejects": REJECTS.arrow.empty_table(), "texts": shown_texts(snapshot, tables)}
        for name in (name for name in ORDER if name in tables):
            folder.write(name, tables[name])
            folder.seal(
                name, **dependencies_of(name, config), counted={"rows": len(tables[name]), "counts": {}, "noted": {}}
            )
        folder.write_text("duplicates.txt", outputs.spell_clusters(tables["clusters"], tables["members"]))
        metrics = _count(snapshot, tables)
        folder.finish(metrics)
        if config.output.report:
            report_run(DuckRun(folder.path, is_ours=True), folder)
        failing.pop_all()
    return metrics


def open_version(snapshot: Snapshot) -> MemoryRun:
    """Return a version as a run in memory, with the tables that `write_run` would write, but no texts."""
    tables = live_tables(snapshot)
    tables |= {"rejects": REJECTS.arrow.empty_table(), "texts": STORED_TEXTS.arrow.empty_table()}
    return MemoryRun(tables, RunMetrics.read(_count(snapshot, tables)))


def _count(snapshot: Snapshot, tables: dict[str, pa.Table]) -> dict[str, Any]:
    """Return the content of `metrics.json` for tables that were made over several versions."""
    identity = snapshot.identity
    rows = {name: len(table) for name, table in tables.items()}
    nodes = name_nodes(tables["documents"], order=Order("first-id"), levels=levels_of(identity.config))
    kept = pc.sum(tables["keep"]["kept"]).as_py() or 0
    leaders, keys = tables["keep"]["leader"], snapshot.state_of(snapshot.live_keys)["component_key"]
    sizes, engine = _sketches_of_components(tables), DuckEngine("the version")
    for name in ("clusters", "false_components"):
        engine.see(name, tables[name])
    engine.see("nodes", nodes.table)
    unpaired = engine.count("nodes", Unpaired.counts(threshold_of(identity.config).least_size))
    cluster_counts = engine.count("clusters", names.COUNTS["clusters"])
    stages = Stages(
        sketch=SketchMetrics(
            rows_in={"records": rows["documents"]}, rows_out={"documents": rows["documents"], "rejects": 0},
            files=pc.count_distinct(tables["documents"]["source"]).as_py(),
        ),
        pairs=PairsMetrics(
            rows_in={"documents": rows["documents"]},
            rows_out={"pairs": rows["pairs"]},
            distinct_sketches=len(nodes.distinct),
            edits=_count_pairs(tables) if identity.is_exact else None,
        ),
        clusters=ClustersMetrics(
            rows_in={"pairs": rows["pairs"]},
            rows_out={name: rows[name] for name in ("clusters", "members", "false_components")},
            components=len(sizes),
            largest_component=pc.max(sizes).as_py() or 0,
            led_components=pc.count_distinct(keys.filter(leaders)).as_py(),
            covered_clusters=cluster_counts["covered_clusters"],
            led_clusters=cluster_counts["led_clusters"],
            **engine.count("false_components", names.COUNTS["false_components"]),
        ),
        keep=KeepMetrics(
            rows_in={"documents": rows["documents"]}, kept=kept,
            rows_out={name: rows[name] for name in ("keep", "families") if name in rows},
            removed=rows["keep"] - kept,
        ),
        texts=TextsMetrics(rows_in={"clusters": rows["clusters"]}, rows_out={"texts": rows["texts"]}),
    )  # fmt: skip
    metrics = metrics_of(identity.config, stages, Unpaired(**unpaired))
    return metrics.model_copy(update={"repository": identity.mode}).dump()


def _count_pairs(tables: dict[str, pa.Table]) -> EditMetrics:
    """Count the pairs of distinct texts; candidates that were not confirmed are not stored."""
    documents, pairs = tables["documents"], tables["pairs"]
    ids, groups = one_chunk(documents["doc_id"]), one_chunk(documents["group"]).dictionary_encode()
    ends = np.stack([np.asarray(groups.indices.take(pc.index_in(one_chunk(pairs[name]), ids))) for name in ENDS])
    keys = ends.min(axis=0).astype(np.int64) * len(ids) + ends.max(axis=0)
    near = len(distinct(keys[ends[0] != ends[1]]))
    return EditMetrics(compared=near, confirmed=near, bounded=0, bounded_unconfirmed=0)


def _sketches_of_components(tables: dict[str, pa.Table]) -> pa.ChunkedArray:
    members = tables["members"].select(["cluster_id", "doc_id"])
    placed = members.join(tables["clusters"].select(["cluster_id", "component"]), "cluster_id")
    grouped = placed.join(tables["documents"].select(["doc_id", "group"]), "doc_id").group_by("component")
    sizes = grouped.aggregate([("group", "count_distinct")])["group_count_distinct"]
    return sizes.filter(pc.greater(sizes, 1))
