"""From sets of nodes to clusters of documents, named by their members.

sets, graph, nodes --name_clusters--> clusters --list_members--> members     joins on node, one on the set
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import CLUSTERS, MEMBERS, SETS, require

NAMED_MODES = ("partition", "components")
"""Modes whose sets are no maximal sets, and bear the mode's own name as their coverage."""


def name_clusters(
    sets: DataFrame, graph: DataFrame, nodes: DataFrame, *, least_size: int, mode: str = "all"
) -> DataFrame:
    """Clusters of documents: each set with all documents of its sketches, and each group that stands alone.

    Schema in:   SETS, GRAPH, NODES
    Schema out:  CLUSTERS
    Shuffles:  the members on node, and on their set.    Actions:  none.
    """
    require(sets, SETS, stage="clusters")
    place = graph.select("ordinal", "position", "node", "component")
    mined = (
        list_places(sets)
        .join(place, ["ordinal", "position"])
        .join(nodes.select("node", "doc_id"), "node")
        .groupBy("set_id")
        .agg(
            F.first("support").alias("support"),
            F.sort_array(F.collect_list("doc_id")).alias("members"),
            F.first("component").alias("component"),
            F.first("coverage").alias("coverage"),
        )
    )
    alone = (
        nodes.where(F.col("size") >= least_size)
        .join(graph.select("node"), "node", "left_anti")
        .groupBy("node")
        .agg(
            F.first("size").alias("support"),
            F.sort_array(F.collect_list("doc_id")).alias("members"),
            F.first("group").alias("component"),
            F.lit(mode if mode in NAMED_MODES else "all").alias("coverage"),
        )
    )
    ended = F.concat(F.array_join("members", "\0"), F.lit("\0"))
    return (
        mined.drop("set_id")
        .unionByName(alone.drop("node"))
        .withColumn("size", F.size("members"))
        .where(F.col("size") > 1)
        .withColumn("cluster_id", F.substring(F.sha2(ended.cast("binary"), 256), 1, 16))
        .select(*CLUSTERS.fieldNames())
    )


def list_places(sets: DataFrame) -> DataFrame:
    """One row a node of a set: set_id, ordinal, support, coverage, position. The set is named by a digest.

    Its positions would make rows as long as the set, and a large set the square of its size.

    Schema in:   SETS
    Shuffles:  none.    Actions:  none.
    """
    digest = F.md5(F.array_join(F.col("positions").cast("array<string>"), ",").cast("binary"))
    numbered = sets.withColumn("set_id", F.struct("ordinal", digest.alias("digest")))
    return numbered.select("set_id", "ordinal", "support", "coverage", F.explode("positions").alias("position"))


def list_members(clusters: DataFrame, nodes: DataFrame, *, by_weight: bool = False) -> DataFrame:
    """One row a member, marked where the keep policy prefers it to the other members; by weight, the heaviest first.

    Schema in:   CLUSTERS, NODES
    Schema out:  MEMBERS
    Shuffles:  the members on doc_id, and on their cluster.    Actions:  none.
    """
    require(clusters, CLUSTERS, stage="clusters")
    rows = clusters.select("cluster_id", F.explode("members").alias("doc_id")).join(
        nodes.select("doc_id", "policy", (-F.col("weight") if by_weight else F.lit(0)).alias("before")), "doc_id"
    )
    first = rows.groupBy("cluster_id").agg(F.min(F.struct("before", "policy", "doc_id"))["doc_id"].alias("first_id"))
    return (
        rows.join(first, "cluster_id")
        .withColumn("representative", F.col("doc_id") == F.col("first_id"))
        .select(*MEMBERS.fieldNames())
    )
