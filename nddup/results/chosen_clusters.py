"""The clusters whose conditions `nddup check` proves: those with the smallest ids, with the sketches of their nodes."""

from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nddup.checking import prove_clusters, prove_pairs
from nddup.checking.prove_clusters import Claim
from nddup.opened.finished_run import FinishedRun
from nddup.results.promised import Promised
from nddup.verifying.cluster_proofs import Members, Sets, prepare_sets
from nddup.verifying.cluster_proofs import prove_clusters as prove

MEMBERS = 50_000
"""Most (cluster, sketch) rows of all clusters whose conditions are proved."""


class Chosen(NamedTuple):
    """Clusters whose conditions are proved."""

    cluster_ids: list[str]
    names: list[str]
    """Names of their nodes."""

    sets: Sets
    firsts: list[int]
    """Places in `names` of the first node of each cluster that is promised to be maximal."""

    problems: list[str]
    """Descriptions of the conditions that they break."""


def choose_clusters(run: FinishedRun, promised: Promised, number: int) -> Chosen:
    """Choose some clusters with the sketches of their nodes, and prove the conditions of each on its own.

    Args:
        run: the run, with the tables `placed` and `sketches`; the table `held` is added to it.
        promised: the promises of the run.
        number: number of clusters; fewer are chosen if these have more than `MEMBERS` nodes in total.
    """
    run.keep("held", prove_clusters.hold(number))
    rows = run.sql(prove_clusters.choose(MEMBERS))
    said = zip(*(rows[name].to_pylist() for name in Claim._fields), strict=True)
    sizes = [(Claim(*claim), len(list(same))) for claim, same in groupby(said)]
    claims, ends = [claim for claim, _ in sizes], np.cumsum([0, *(size for _, size in sizes)])

    nodes_of = rows["node"].to_pylist()
    names = sorted(set(nodes_of))
    wanted = pa.table({"node": pa.array(names, pa.string())})
    text = "SELECT /*+ BROADCAST(w) */ s.node, s.sketch, s.level FROM sketches AS s JOIN wanted AS w ON s.node = w.node"
    found, sketches = prove_pairs.gather_probes(run.sql(text, wanted=wanted))
    order = {name: i for i, name in enumerate(found)}

    nodes = sketches._replace(levels=None)
    places = np.array([order[node] for node in nodes_of], np.int64)
    members = Members(ends.astype(np.int64), places)
    proved = prove(nodes, members, promised.rule)
    bounds = np.maximum(proved.bounds, promised.support)
    problems = prove_clusters.describe_wrong(claims, proved, bounds)
    sets = prepare_sets(nodes, members, proved.joints, bounds)
    is_maximal = [claim.coverage in prove_clusters.MAXIMAL for claim in claims]
    firsts = np.unique(places[ends[:-1][is_maximal]]).tolist()
    return Chosen([claim.cluster_id for claim in claims], found, sets, firsts, problems)
