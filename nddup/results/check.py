"""`nddup check RUN`: prove a finished run's promises by plain methods, a line a promise.

Proved in full at any size: the accounting, equal sketches, names of clusters, members and representatives, the reasons
of the keep-list, the names of components, `duplicates.txt`, and the form of `pairs`. A promise for which sketches are
compared is proved on a deterministic sample above the limits in `evidence`, and its line says so. A sampled sketch (the
smallest SHA-256 of the id) or cluster (the smallest ids) is still compared with ALL sketches.

Nothing of the pairs stage, of the miners or of the keep-list's computation is used: see `nddup.verifying.definitions`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.metrics import RunMetrics
from nddup.results.evidence import INCIDENCES, Evidence, described
from nddup.run.session import set_to
from nddup.spark.checking import prove_clusters, prove_components, prove_keep, prove_names, prove_pairs
from nddup.spark.checking import prove_documents as tables
from nddup.storage.spark_folder import SparkFolder

EXAMPLES = 3
"""Violations that the line of a promise shows."""


@dataclass(frozen=True)
class Finding:
    """One promise: how much of it was looked at, how often it is broken, and the first examples by id."""

    promise: str
    amount: str
    broken: int
    examples: tuple[str, ...] = ()
    note: str = ""

    def line(self) -> str:
        """The promise as a line of the report, its examples indented below."""
        verdict = f"BROKEN {self.broken:,}" if self.broken else "ok"
        said = f"{verdict:<10} {self.promise} ({self.amount}{'; ' + self.note if self.note else ''})"
        return "\n".join([said, *(f"           {example}" for example in self.examples)])


@dataclass(frozen=True)
class CheckReport:
    """What `check_run` found."""

    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether every promise holds, as far as it was looked at."""
        return not any(finding.broken for finding in self.findings)

    def text(self) -> str:
        """A line a promise, and a last one that sums them up."""
        broken = sum(1 for finding in self.findings if finding.broken)
        summary = f"{broken} of {len(self.findings)} promises BROKEN" if broken else "every promise holds"
        return "\n".join([*(finding.line() for finding in self.findings), summary]) + "\n"


def check_run(
    spark: SparkSession, path: str, *, steps: Sequence[str] | None = None, max_rejects: float | None = None
) -> CheckReport:
    """Prove the promises of the finished run in `path`.

    Args:
        spark: the session.
        path: folder of the run.
        steps: names of `STEPS`; None is all of them.
        max_rejects: share of the records that may be rejects; None is any.

    Returns:
        A finding a promise, in the order of the tables.

    Raises:
        OutputError: if the folder is no run, or the run did not finish.
        IncompatibleSketchError: if its sketches are of another format.

    Cost: some thirty Spark actions; the documents are shuffled once, the distinct sketches streamed twice.
    """
    folder = SparkFolder(spark, path)
    evidence = Evidence(spark, folder, RunMetrics.read(folder.open(), origin=f"{folder.path}/metrics.json"))
    try:
        limited = [] if max_rejects is None else [_few_rejects(evidence, max_rejects)]
        return CheckReport((*limited, *(finding for step in steps or STEPS for finding in STEPS[step](evidence))))
    finally:
        evidence.forget()


def _find(promise: str, broken: DataFrame | list[str], *, amount: str = "all", note: str = "") -> Finding:
    """Count the violations of a promise; the first of them are its examples."""
    if isinstance(broken, list):
        return Finding(promise, amount, len(broken), tuple(sorted(broken)[:EXAMPLES]), note)
    count = broken.count()
    rows = broken.sort("problem").limit(EXAMPLES).collect() if count else []
    return Finding(promise, amount, count, tuple(str(row["problem"]) for row in rows), note)


def _few_rejects(evidence: Evidence, limit: float) -> Finding:
    """Whether the rejects are at most this share of the records."""
    rejects, records = evidence.tables["rejects"].count(), evidence.metrics.records
    too_many = [f"{rejects:,} of {records:,} records are rejects"] if rejects > limit * records else []
    return _find(f"rejects: at most {limit:g} of the records", too_many)


def _accounting(evidence: Evidence) -> Iterator[Finding]:
    """Every record is a document or a reject, every document is well formed and once in the keep-list."""
    read, metrics = evidence.tables, evidence.metrics
    counted = {name: table.count() for name, table in read.items()}
    wrong = [f"{name}: {metrics.rows.get(name)} in metrics.json, {rows} in the table" for name, rows in counted.items()
             if metrics.rows.get(name) != rows]  # fmt: skip
    total = counted["documents"] + counted["rejects"]
    if metrics.records != total:
        wrong.append(f"records: {metrics.records} read, {total} documents and rejects")

    documents = read["documents"]
    yield _find("accounting: records = documents + rejects, rows as metrics.json says", wrong)
    yield _find("accounting: record ordinals of each source are 1 to n", tables.misnumbered_records(read))
    yield _find("accounting: doc_id unique", tables.repeated_ids(documents))
    yield _find("accounting: doc_key in the order of source and record", tables.misplaced_keys(documents))
    yield _find("accounting: every document once in keep", tables.unaccounted_documents(read))
    yield _find(
        "accounting: sketches are ascending sets as their kind calls for",
        tables.wrong_sketches(documents, form=evidence.form),
    )


def _groups(evidence: Evidence) -> Iterator[Finding]:
    """Equal sketches are found again by a digest of all their ids."""
    yield _find("groups: group is the smallest id with the same sketch", tables.wrong_groups(evidence.docs))


def _pairs(evidence: Evidence) -> Iterator[Finding]:
    """The rows are the near-duplicates of the probes, no fewer and no more, with the right numbers."""
    pairs, limit = evidence.tables["pairs"], int(evidence.metrics.settings["pairs"]["expand_limit"])
    yield _find("pairs: ids in order, each pair once", prove_pairs.disordered_pairs(pairs))
    yield _find("pairs: a containment where the kind shows one", prove_pairs.wrong_claims(pairs, rule=evidence.rule))

    sizes, probes = evidence.sketches.select("node", "n", "size"), evidence.probe_nodes
    expected = prove_pairs.expect_rows(evidence.truth, sizes, probes, rule=evidence.rule, limit=limit)
    wrong = prove_pairs.wrong_pairs(expected, evidence.folded, probes)
    note = f"candidates were cut: {evidence.not_found:,} pairs of sketches not found" if evidence.is_cut else ""
    promise = "pairs: the near-duplicates, all and only, with overlap and resemblance"
    yield _find(promise, wrong, amount=evidence.amount, note=note)


def _clusters(evidence: Evidence) -> Iterator[Finding]:
    """Names on everything; conditions and maximality of the chosen clusters; coverage; components."""
    clusters, placed, chosen = evidence.tables["clusters"], evidence.placed, evidence.chosen
    amount = described(len(chosen.sets), evidence.clusters, "clusters")
    yield _find(
        "clusters: id, size and order of members, none twice", prove_names.wrong_names(clusters, evidence.recounted)
    )

    sets, problems = prove_clusters.prove(chosen.sets, chosen.sketches, evidence.rule, evidence.support)
    yield _find("clusters: all pairs near-duplicates, support as said and enough", problems, amount=amount)

    # A chosen cluster is maximal if no sketch of the whole run can be added, and no document of its own sketches.
    added = prove_clusters.extend(evidence.sketches, chosen.names, chosen.cluster_ids, sets, evidence.rule)
    added = prove_clusters.maximal_only(added, placed)
    open_sets = prove_clusters.extensible(added, placed, evidence.folded, is_cut=evidence.is_cut)
    broken = open_sets.unionAll(prove_clusters.partial_groups(placed))
    yield _find("clusters: no document can be added", broken, amount=amount)
    ids = evidence.spark.createDataFrame([(cluster_id,) for cluster_id in chosen.cluster_ids], "cluster_id string")
    yield _find("clusters: none inside another", prove_clusters.nested(placed, ids), amount=amount)

    yield from _coverage(evidence)
    yield _components(evidence)
    # Otherwise a document with near-duplicates may be in no cluster, and its component is not known from clusters.
    if evidence.mode != "partition" and not evidence.support:
        wrong = prove_components.wrong_false_components(evidence.tables, placed, evidence.folded, evidence.docs)
        yield _find("false_components: size, pairs and invented pairs of each", wrong)


def _coverage(evidence: Evidence) -> Iterator[Finding]:
    """Who must be in a cluster, and with whom, by the mode.

    A partition promises its stars. The other modes promise a common cluster for every pair that reaches the support,
    except in led families: there each document is only promised some cluster.
    """
    placed, amount = evidence.placed, evidence.amount
    if evidence.mode == "partition":
        wrong = prove_keep.wrong_stars(evidence.tables["members"], evidence.tables["keep"])
        yield _find("clusters: each kept document with its duplicates, and no others", wrong)
        return

    led = evidence.led_nodes.select(F.col("node").alias("probe"))
    met = evidence.truth.where(F.col("overlap") >= evidence.support)
    due = met.join(led, "probe", "left_anti")
    large = evidence.sketches.where(F.col("size") >= evidence.support).select("node")
    twins = evidence.twins.join(evidence.led_nodes, "node", "left_anti").join(large, "node", "left_semi")

    lost = prove_clusters.uncovered(due, twins, placed, evidence.probe_nodes)
    yield _find("clusters: every pair of near-duplicates is in one", lost, amount=amount)
    lonely = prove_clusters.left_out(met, placed)
    yield _find("clusters: every document with a near-duplicate is in one", lonely, amount=amount)
    yield _find(
        "clusters: those of led families hold a kept one", prove_clusters.leaderless(placed, evidence.kept_nodes)
    )


def _components(evidence: Evidence) -> Finding:
    """The names of all components, and that the documents of each are connected, as far as `INCIDENCES` goes.

    Every pair lies in a cluster, so clusters connect the same documents as pairs do. This fails for a partition, for
    led families and for a higher support: there the pairs themselves are looked at.
    """
    if evidence.mode == "partition" or evidence.support or evidence.led_nodes.limit(1).count():
        return _components_by_pairs(evidence)

    # Whole components are chosen by a hash of their names, so that at most about INCIDENCES rows come to the driver.
    nodes = evidence.placed.where("node is not null").select("cluster_id", "node", "component")
    parts = 1 + nodes.count() // INCIDENCES
    some = nodes.where(F.crc32(F.col("component").cast("binary")) % parts == 0).toArrow()
    sets, members = (
        some[name].cast(pa.large_string()).combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        for name in ("cluster_id", "node")
    )

    torn = prove_components.split_components(sets, members, some["component"].to_pylist())
    broken = evidence.spark.createDataFrame([(problem,) for problem in torn], "problem string")
    amount = "all" if parts == 1 else f"connectedness of about one in {parts}, the rest of all"
    strays = prove_components.straying_components(evidence.placed)
    return _find("clusters: component is the smallest id of a connected part", strays.unionAll(broken), amount=amount)


def _components_by_pairs(evidence: Evidence) -> Finding:
    """The same from `pairs`, all of them or, above `INCIDENCES`, not at all."""
    promise = "clusters: component is the smallest id of a connected part"
    pairs = evidence.folded.where("node_a is not null and node_a <> node_b").select("node_a", "node_b")
    if pairs.count() > INCIDENCES:
        return Finding(promise, f"not looked at: more than {INCIDENCES:,} pairs of sketches", 0)

    ends = pairs.toArrow()
    said = evidence.placed.where("node is not null").select("node", "component").distinct().toArrow()
    named = zip(said["node"].to_pylist(), said["component"].to_pylist(), strict=True)
    torn = prove_components.misnamed_parts(ends["node_a"].to_pylist(), ends["node_b"].to_pylist(), list(named))
    return _find(promise, torn)


def _members(evidence: Evidence) -> Iterator[Finding]:
    """The members are those of the clusters, one of each marked as the first by the keep policy."""
    yield _find("members: the clusters, row by row", tables.wrong_members(evidence.tables))
    firsts = tables.wrong_representatives(evidence.tables, evidence.docs)
    yield _find("members: one representative, the first by policy", firsts)


def _keep(evidence: Evidence) -> Iterator[Finding]:
    """The keep promise: kept documents are no near-duplicates, and each removed one has a kept one before it."""
    keeping, probes, amount = evidence.keeping, evidence.probe_nodes, evidence.amount
    offers = evidence.keep(prove_keep.weigh(evidence.truth, keeping, probes, rule=evidence.rule))
    yield _find("keep: kept, duplicate_of and reason fit", prove_keep.wrong_reasons(keeping))
    yield _find(
        "keep: no two kept are near-duplicates", prove_keep.crowded(offers, keeping, evidence.rule), amount=amount
    )
    lost = prove_keep.broken_promises(offers, keeping, probes)
    yield _find("keep: every removed has a preferred kept near-duplicate, and the best", lost, amount=amount)


def _lines(evidence: Evidence) -> Iterator[Finding]:
    """The lines of `duplicates.txt` are the clusters. Each file is read by one task, in its order."""
    with set_to(evidence.spark, prove_names.WHOLE_FILES):
        pieces = evidence.spark.read.text(f"{evidence.folder.path}/duplicates.txt", lineSep="\t")
        wrong = prove_names.wrong_lines(evidence.tables["clusters"], prove_names.read_lines(pieces))
        found = _find("duplicates.txt: the clusters, line by line", wrong)
    yield found


STEPS: dict[str, Callable[[Evidence], Iterator[Finding]]] = {
    "accounting": _accounting,
    "groups": _groups,
    "pairs": _pairs,
    "clusters": _clusters,
    "members": _members,
    "keep": _keep,
    "duplicates.txt": _lines,
}
"""The promises by what they are about, in the order of the report."""
