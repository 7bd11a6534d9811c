"""What `nddup check` compares a run with: its tables, its rule, and what was recounted about a sample or about all.

Nothing is computed before it is asked for, and then only once. `Evidence.forget` frees it.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from nddup.metrics import RunMetrics
from nddup.settings.derive import MODULUS, bands_of, kind_of
from nddup.settings.schema import Config
from nddup.sketching.kinds import Kind
from nddup.sketching.lsh_bands import Bands
from nddup.spark import heavy_keys
from nddup.spark.checking import prove_clusters, prove_names, prove_pairs
from nddup.spark.checking import prove_documents as tables
from nddup.storage.spark_folder import SparkFolder
from nddup.tables import RESULTS
from nddup.verifying.definitions import Rows, Rule, Sample
from nddup.verifying.near_pairs import Probes
from nddup.verifying.sketch_forms import Form

PROBES = 20_000
"""Distinct sketches, or clusters, up to which all are proved: 20,000 against 20,000 is some minutes of one core."""

COMPARISONS = PROBES * PROBES
"""Above it the sample is so small that sample times sketches stays below this, but never under `LEAST_PROBES`."""

LEAST_PROBES = 1_000
"""Sketches or clusters that are proved at any size of the run."""

PROBE_IDS = 10_000_000
"""Feature ids of the probes together: 80 MB on the driver and in each task. More ids mean fewer probes."""

INCIDENCES = 5_000_000
"""(cluster, sketch) rows whose connectedness is recounted on the driver; more: the components of the lowest ids."""

MEMBERS = 50_000
"""(cluster, sketch) rows of the clusters whose conditions are proved, together."""


class Chosen(NamedTuple):
    """Clusters to prove: their ids; (id, support, coverage, places of the nodes); the nodes' names and sketches."""

    cluster_ids: list[str]
    sets: list[tuple[str, int, str, list[int]]]
    names: list[str]
    sketches: Rows


@dataclass
class Evidence:
    """What the promises of one run are compared with. Each table is computed once, when it is first asked for.

    Attributes:
        spark: the session.
        folder: of the run.
        metrics: of the run.
        persisted: what `forget` frees.
        not_found: recounted pairs of sketches that the run did not find and had not promised; known after `truth`.
    """

    spark: SparkSession
    folder: SparkFolder
    metrics: RunMetrics
    persisted: list[DataFrame] = field(default_factory=list)
    not_found: int = 0

    @cached_property
    def tables(self) -> dict[str, DataFrame]:
        """The tables of the run, under their names."""
        return {name: self.folder.table(name) for name in RESULTS}

    @cached_property
    def config(self) -> Config:
        """The settings of the run."""
        return Config.model_validate(self.metrics.settings)

    @cached_property
    def kind(self) -> Kind:
        """What the sketches are."""
        return kind_of(self.config.sketch)

    @cached_property
    def rule(self) -> Rule:
        """What a near-duplicate is, the threshold as the exact decimal that was written."""
        pairs, sketch = self.config.pairs, self.config.sketch
        bands = Bands(0, 0) if sketch.verify else bands_of(self.config)
        return Rule(
            pairs.share.numerator if sketch.verify else bands.rows,
            pairs.share.denominator if sketch.verify else 1,
            isinstance(pairs.threshold, int) or not sketch.verify,
            pairs.measure == "resemblance" and sketch.verify,
            Sample(self.kind.sample(sketch.size), self.kind.by_slots),
            pairs.measure == "containment",
            self.kind.shows_containment,
            *bands,
        )

    @cached_property
    def form(self) -> Form:
        """What a sketch must look like."""
        sketch = self.config.sketch
        size = self.config.lexicon.copies + 1 if sketch.kind == "i-match" else sketch.size
        return Form(sketch.kind, size, sketch.modulus or MODULUS, sketch.growth, sketch.tagged)

    @cached_property
    def is_cut(self) -> bool:
        """Whether candidates were cut, or found by chance: then the run's promises are about the pairs found."""
        is_by_chance = not self.kind.is_exact and self.config.sketch.verify
        return self.metrics.stages.pairs.cut_postings > 0 or is_by_chance

    @cached_property
    def support(self) -> int:
        """Features that all members of a cluster must share, beyond what the threshold asks; 0: no more."""
        return int(self.metrics.settings["clusters"]["support"] or 0)

    @cached_property
    def is_led(self) -> bool:
        """Whether components are given by leaders: pairs of two removed documents of these are not listed."""
        return self.metrics.stages.clusters.led_components > 0

    @cached_property
    def mode(self) -> str:
        """What the clusters are."""
        return str(self.metrics.settings["clusters"]["mode"])

    @cached_property
    def led_nodes(self) -> DataFrame:
        """The sketches in clusters that leaders made."""
        return self.placed.where("coverage = 'documents' and node is not null").select("node").distinct()

    @cached_property
    def kept_nodes(self) -> DataFrame:
        """The sketches of which a document is kept."""
        return self.keeping.where("kept").select("node").distinct()

    @cached_property
    def regrouped(self) -> DataFrame:
        """The documents under the names of their sketches, as recounted."""
        levels = self.config.sketch.size if self.kind.estimate == "levels" else 0
        return self.keep(
            tables.regroup(
                self.tables["documents"],
                policy=self.config.keep.policy,
                levels=levels,
                is_contained=self.rule.is_containment,
                is_large=self.metrics.equal_sketches + self.metrics.empty_sketches >= heavy_keys.HEAVY,
            )
        )

    @cached_property
    def docs(self) -> DataFrame:
        """The same without the sketches."""
        return self.regrouped.drop("sketch", "signature")

    @cached_property
    def sketches(self) -> DataFrame:
        """The distinct, non-empty sketches by node."""
        return self.regrouped.where("doc_id = node and size > 0").select("node", "n", "size", "level", "sketch")

    @cached_property
    def totals(self) -> tuple[int, int]:
        """How many distinct sketches there are, and their features together."""
        row = self.sketches.agg(F.count("*").alias("n"), F.coalesce(F.sum("size"), F.lit(0)).alias("ids")).first()
        return (int(row["n"]), int(row["ids"])) if row else (0, 0)

    @cached_property
    def probes(self) -> tuple[list[str], Probes]:
        """The sketches that are compared with all: all of them, or those with the smallest SHA-256 of the name."""
        count, ids = self.totals
        number = sample_size(count, count)
        if ids > PROBE_IDS:
            number = max(1, min(number, number * PROBE_IDS // ids))

        chosen = self.sketches if number == count else self.sketches.orderBy(F.sha2("node", 256)).limit(number)
        found = chosen.select("node", "sketch", "level").toArrow().combine_chunks()
        rows = tables.sketch_rows(_one(found["sketch"])).at_levels(found["level"].to_numpy())
        return found["node"].to_pylist(), Probes(rows)

    @cached_property
    def probe_nodes(self) -> DataFrame:
        """The names of the probes, as a table."""
        return self.spark.createDataFrame([(name,) for name in self.probes[0]], "node string")

    @cached_property
    def folded(self) -> DataFrame:
        """The rows of `pairs`, by pair of nodes."""
        return self.keep(prove_pairs.fold(self.tables["pairs"], self.docs))

    @cached_property
    def truth(self) -> DataFrame:
        """TRUTH of the probes, and `not_found`.

        Where candidates were cut or found by chance, only the pairs found are promised; where families were led, all
        but those of two removed documents.
        """
        recounted = self.keep(prove_pairs.recount(self.sketches, *self.probes, self.rule))
        if not self.is_cut and not self.is_led:
            return recounted

        found, lost = prove_pairs.split_found(recounted, self.folded)
        if not self.is_cut:
            optional = prove_pairs.between_removed(lost, self.led_nodes, self.kept_nodes)
            found, lost = recounted.join(optional, ["probe", "other"], "left_anti"), optional

        # Each pair of probes is there in both directions.
        self.not_found = lost.select(F.least("probe", "other"), F.greatest("probe", "other")).distinct().count()
        return found

    @cached_property
    def placed(self) -> DataFrame:
        """The nodes of each cluster."""
        return self.keep(prove_clusters.place(self.tables["clusters"], self.tables["members"], self.docs))

    @cached_property
    def recounted(self) -> DataFrame:
        """The digest, size and first ids of each cluster, as its members give them."""
        return prove_names.recount(self.tables["members"], max_listed=self.config.clusters.max_listed)

    @cached_property
    def keeping(self) -> DataFrame:
        """The documents with their rows of `keep`."""
        return self.keep(self.docs.join(self.tables["keep"], "doc_id"))

    @cached_property
    def twins(self) -> DataFrame:
        """The probes that several documents share and that are near-duplicates of themselves."""
        least = self.rule.numerator if self.rule.is_count else 1
        equal = self.sketches.where((F.col("n") > 1) & (F.col("size") >= least)).select("node")
        return equal.join(F.broadcast(self.probe_nodes), "node")

    @cached_property
    def clusters(self) -> int:
        """How many rows the table `clusters` has."""
        return self.tables["clusters"].count()

    @cached_property
    def chosen(self) -> Chosen:
        """The clusters whose conditions are proved, and the sketches of their members."""
        # The clusters with the smallest ids, as long as their members together stay below MEMBERS.
        clusters = self.tables["clusters"]
        number = sample_size(self.clusters, self.totals[0])
        low = clusters.select("cluster_id", "support", "coverage").distinct().sort("cluster_id").limit(number)
        held = self.placed.where("node is not null").select("cluster_id", "node").join(low, "cluster_id")
        of = ["cluster_id", "support", "coverage"]
        counted = held.groupBy(*of).agg(F.count("*").alias("n"))
        so_far = counted.withColumn("so_far", F.sum("n").over(Window.orderBy(*of)))
        few = so_far.where((F.col("so_far") <= MEMBERS) | (F.col("so_far") == F.col("n"))).select(*of)

        grouped = held.join(F.broadcast(few), of).groupBy(*of)
        rows = grouped.agg(F.sort_array(F.collect_list("node")).alias("nodes")).collect()
        names = sorted({node for row in rows for node in row["nodes"]})
        at = {name: i for i, name in enumerate(names)}

        wanted = self.spark.createDataFrame([(name,) for name in names], "node string")
        own = self.regrouped.where("doc_id = node").select("node", "sketch").join(F.broadcast(wanted), "node")
        found = own.dropDuplicates(["node"]).sort("node").toArrow().combine_chunks()

        ids = [row["cluster_id"] for row in rows]
        sets = [
            (row["cluster_id"], row["support"], row["coverage"], [at[node] for node in row["nodes"]]) for row in rows
        ]
        return Chosen(ids, sets, names, tables.sketch_rows(_one(found["sketch"])))

    @property
    def amount(self) -> str:
        """How much the truth covers."""
        return described(len(self.probes[0]), self.totals[0], "distinct sketches")

    def keep(self, table: DataFrame) -> DataFrame:
        """Compute a table once; it is forgotten at the end."""
        self.persisted.append(table.persist(StorageLevel.DISK_ONLY))
        return table

    def forget(self) -> None:
        """Free what was kept."""
        for kept in self.persisted:
            kept.unpersist()


def sample_size(probes: int, others: int) -> int:
    """How many of `probes` are compared with `others`: all up to `PROBES`, then what `COMPARISONS` allows."""
    return probes if max(probes, others) <= PROBES else min(probes, max(LEAST_PROBES, COMPARISONS // max(others, 1)))


def described(part: int, whole: int, what: str) -> str:
    """`all 362 clusters`, or `sample of 1,000 of 50,000 clusters`."""
    return f"all {whole:,} {what}" if part == whole else f"sample of {part:,} of {whole:,} {what}"


def _one(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
