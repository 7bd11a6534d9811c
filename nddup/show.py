"""Results in the terminal: the summary of a run, one cluster, one document."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError
from nddup.store import RunFolder

WIDTH = 76
LARGEST = 10
SHOWN_IDS = 20


def summarise(metrics: dict[str, Any], path: str) -> str:
    """The table at the end of a run: what was read, rejected, found, kept, and where it is.

    Args:
        metrics: as in `metrics.json`.
        path: the run's folder.
    """
    rows, stages = metrics["rows"], metrics["stages"]
    read, found, kept = stages["sketch"], stages["clusters"], stages["keep"]
    measure, threshold = metrics["settings"]["pairs"]["measure"], metrics["settings"]["pairs"]["threshold"]
    seconds = sum(stage["seconds"] for stage in stages.values())
    largest = f"{found['largest_component']:,}"
    lines = [
        ("records read", metrics["records"], f"{read['files']} files, {read['bytes'] / 1e6:.1f} MB"),
        ("rejected", rows["rejects"], _reasons(read["rejected"])),
        ("documents", rows["documents"], f"{metrics['equal_sketches']:,} share the sketch of another"),
        ("near-duplicate pairs", rows["pairs"], f"{measure} at least {threshold}"),
        ("clusters", rows["clusters"], f"in {found['components']:,} components, largest {largest} distinct sketches"),
        ("kept", kept["kept"], _share(kept["kept"], rows["documents"])),
        ("removed", kept["removed"], "each has a kept near-duplicate"),
    ]  # fmt: skip
    body = "".join(f"  {name:<21}{count:>13,}   {note}\n" for name, count, note in lines)
    notes = "".join(f"  note: {note}\n" for note in _notes(metrics))
    rule = "─" * WIDTH + "\n"
    return f"{rule}{body}{rule}{notes}  {seconds:.1f} s, results in {path}\n"


def show_run(spark: SparkSession, path: str, *, cluster: str | None, doc: str | None) -> str:
    """What a finished run holds: the summary and the largest clusters, or one cluster, or one document.

    Raises:
        ConfigError: if there is no such cluster or document.
        OutputError: if `path` is not a finished run.
    """
    folder = RunFolder(spark, path)
    metrics = folder.open()
    if cluster is not None:
        return _show_cluster(folder, cluster)
    if doc is not None:
        return _show_document(folder, doc)
    top = folder.table("clusters").orderBy(F.desc("size"), "cluster_id").limit(LARGEST).collect()
    lines = [
        f"  {row['cluster_id']}  {row['size']:>7,}  {row['support']:>7,}  {_short(row['members'][0])}" for row in top
    ]
    heading = f"  {'cluster':<16}  {'size':>7}  {'support':>7}  first member\n" if lines else ""
    return summarise(metrics, path) + "\n" + heading + "\n".join(lines) + "\n"


def _show_cluster(folder: RunFolder, cluster: str) -> str:
    row = folder.table("clusters").where(F.col("cluster_id") == cluster).first()
    if row is None:
        raise ConfigError(f"--cluster {cluster}: no such cluster in {folder.path}")
    members = folder.table("members").where(F.col("cluster_id") == cluster)
    chosen = {r["doc_id"] for r in members.where("representative").collect()}
    first = row["members"][:SHOWN_IDS]
    described = _urls(folder, first)
    lines = [f"  {'*' if doc in chosen else ' '} {doc}  {described.get(doc) or ''}" for doc in first]
    more = [f"    … and {row['size'] - len(first):,} more"] if row["size"] > len(first) else []
    head = f"cluster {cluster}: {row['size']:,} documents, {row['support']:,} features common to all, {row['coverage']}"
    return "\n".join([head, *lines, *more, "  * preferred by the keep policy", ""])


def _show_document(folder: RunFolder, doc: str) -> str:
    row = folder.table("documents").where(F.col("doc_id") == doc).first()
    if row is None:
        raise ConfigError(f"--doc {doc}: no such document in {folder.path}")
    kept = folder.table("keep").where(F.col("doc_id") == doc).first()
    lines = [
        f"document {doc}: {row['source']}#{row['record']}, {row['n_tokens']:,} tokens, {row['n_features']:,} features",
        f"  url       {row['url'] or ''}",
        "  kept"
        if kept and kept["kept"]
        else f"  removed   {kept['reason']} of {kept['duplicate_of']}"
        if kept
        else "",
    ]
    pairs = _pairs_of(folder.table("pairs"), doc)
    lines += [f"  near      {r['resemblance']:.3f}  {r['overlap']:>6}  {r['other']}" for r in pairs[:SHOWN_IDS]]
    if len(pairs) > SHOWN_IDS:
        lines.append("            … and more")
    clusters = folder.table("clusters").where(F.array_contains("members", doc)).limit(SHOWN_IDS).collect()
    lines += [f"  cluster   {r['cluster_id']}  of {r['size']:,}, support {r['support']:,}" for r in clusters]
    return "\n".join([*lines, ""])


def _pairs_of(pairs: DataFrame, doc: str) -> list[Any]:
    other = F.when(F.col("doc_a") == doc, F.col("doc_b")).otherwise(F.col("doc_a"))
    own = pairs.where((F.col("doc_a") == doc) | (F.col("doc_b") == doc)).withColumn("other", other)
    return own.orderBy(F.desc("resemblance"), "other").limit(SHOWN_IDS + 1).collect()


def _urls(folder: RunFolder, ids: list[str]) -> dict[str, str]:
    rows = folder.table("documents").where(F.col("doc_id").isin(ids)).select("doc_id", "url").collect()
    return {row["doc_id"]: row["url"] for row in rows}


def _reasons(reasons: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%} of the documents" if whole else ""


def _sketch_notes(metrics: dict[str, Any]) -> list[str]:
    """What did not become a sketch as it is, in words."""
    sketch, notes = metrics["stages"]["sketch"], []
    skipped = len(sketch["skipped_files"])
    if skipped:
        notes.append(f"{skipped} files skipped, listed in metrics.json")
    if sketch["undecodable_records"]:
        notes.append(
            f"{sketch['undecodable_records']:,} records hold bytes that are no text:"
            f" {sketch['undecodable_places']:,} places became U+FFFD"
        )
    if sketch["left_out_shingles"]:
        left_out = sketch["left_out_shingles"]
        notes.append(f"{left_out:,} shingles in more documents than pairs.max_document_frequency were left out")
    if lexicon := sketch.get("lexicon"):
        notes.append(f"{lexicon['terms']:,} of {lexicon['counted']:,} words of the collection are in the lexicon")
    if metrics["empty_sketches"]:
        notes.append(f"{metrics['empty_sketches']:,} documents with an empty sketch are kept and paired with nothing")
    if metrics["below_count"]:
        notes.append(f"{metrics['below_count']:,} documents have fewer features than the count asks: kept, in no pair")
    return notes


def _notes(metrics: dict[str, Any]) -> list[str]:
    """Everything that was left out, cut or replaced, in words."""
    stages, notes = metrics["stages"], _sketch_notes(metrics)
    if stages["pairs"]["cut_postings"]:
        notes.append(
            f"{stages['pairs']['cut_features']:,} features were held by more than pairs.max_postings documents:"
            f" {stages['pairs']['cut_postings']:,} postings cut, pairs may be missing"
        )
    if stages["clusters"]["pairs_below_support"]:
        notes.append(
            f"{stages['clusters']['pairs_below_support']:,} pairs share fewer features than clusters.support: in no"
            " cluster together"
        )
    if stages["clusters"]["covered_components"]:
        notes.append(
            f"{stages['clusters']['covered_components']:,} components passed their budget: covered by"
            f" {stages['clusters']['covered_clusters']:,} maximal sets, every pair in one of them"
        )
    if stages["clusters"]["led_clusters"]:
        notes.append(
            f"{stages['clusters']['led_clusters']:,} clusters of families too large for all their sets were made around"
            " kept documents: every document with a near-duplicate is in one"
        )
    if stages["clusters"]["led_components"]:
        notes.append(
            f"in {stages['clusters']['led_components']:,} of these components pairs of two removed documents"
            " are not listed"
        )
    return notes


def _short(text: str) -> str:
    return text if len(text) <= WIDTH // 2 else text[: WIDTH // 2 - 1] + "…"
