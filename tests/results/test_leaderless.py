"""Clusters that were made around leaders, of which none is in them."""

import pyarrow as pa
import pytest

from nddup.checking.prove_clusters import leaderless
from nddup.engines.duck import DuckEngine


@pytest.mark.parametrize(("is_free", "due"), [(True, ["c2", "c4"]), (False, ["c2"])])
def test_a_cluster_without_a_leader_is_reported(is_free: bool, due: list[str]) -> None:  # noqa: FBT001
    """Where no leader of a component is told, a kept document shows one, unless losses are limited."""
    clusters = {
        "c1": ("led", "documents", "ab"), "c2": ("led", "documents", "cd"), "c3": ("past", "documents", "ef"),
        "c4": ("past", "documents", "gh"), "c5": ("past", "documents", "i"), "c6": ("whole", "all", "jk"),
        "c7": ("out", "documents", "lm"),
    }  # fmt: skip
    placed = [
        {"cluster_id": name, "component": component, "coverage": coverage, "node": node}
        for name, (component, coverage, nodes) in clusters.items()
        for node in nodes
    ]
    keeping = [{"node": node, "kept": node in "ace", "class": int(node in "lm")} for node in "abcdefghijklm"]
    engine = DuckEngine("the clusters")
    for name, rows in {"placed": placed, "keeping": keeping, "leader_nodes": [{"node": "a"}]}.items():
        engine.see(name, pa.Table.from_pylist(rows))

    assert sorted(name for (name,) in engine.rows(leaderless(is_free=is_free).text)) == due
