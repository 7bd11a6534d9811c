"""The clusters of `clusters.support`, and the representatives of `partition`, against brute force; `check` agrees.

Random collections of a few short texts, many of them equal. `spark/test_large_graph.py` has a support on Spark, and
`test_matrix` the representatives.
"""

import tempfile
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st

from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.settings.load import build_config
from nddup.settings.plan import candidate_share, kind_of
from tests.counted_rows import once, once_each
from tests.embedded.brute_force import Rule, Sets, find_maximal, find_pairs
from tests.samples_by_night import examples

SIZE = 12
SEEDS = st.sets(st.integers(0, 2**32), min_size=2, max_size=4)
SKETCH = build_config({"sketch": {"size": SIZE}}, origin="test").sketch
CHOICES: dict[str, dict[str, Any]] = {
    "all": {},
    "cover": {"clusters": {"mode": "cover"}},
    "over the budget": {"clusters": {"max_sets": 1, "max_members": 1, "max_nodes": 1}},
    "leaders": {"pairs": {"max_edges": 2}},
    "count": {"pairs": {"measure": "overlap", "threshold": 6}},
    "shares": {"clusters": {"max_sets": 100}},
    "covered shares": {"clusters": {"mode": "cover"}},
    "edit": {"pairs": {"confirm": "edit", "edit_threshold": 0.6}},
    "exact": {"pairs": {"confirm": "resemblance"}},
}


def draw_texts(seed: int) -> dict[str, str]:
    """Draw texts of a few families, with some edits, some shorter, many of them equal."""
    random = np.random.default_rng(seed)
    drawn: list[str] = []
    for _ in range(int(random.integers(4, 16))):
        if drawn and random.random() < 0.4:
            drawn.append(drawn[int(random.integers(len(drawn)))])
            continue
        words = [f"w{i}" for i in range(16)]
        for _ in range(int(random.integers(0, 4))):
            words[int(random.integers(len(words)))] = f"e{random.integers(3)}"
        drawn.append(" ".join(words[: int(random.integers(8, 17))]))
    return {f"d{place:02}": text for place, text in enumerate(drawn)}


def draw_together(seeds: Iterable[int]) -> dict[str, str]:
    """Draw texts of each seed, with words and names of its own: one run and one check serve several collections."""
    return {
        f"{seed}-{name}": " ".join(f"{seed}{word}" for word in text.split())
        for seed in seeds
        for name, text in draw_texts(seed).items()
    }


def settings_of(choice: str, support: int) -> dict[str, Any]:
    """Return the settings of a run by one of `CHOICES`."""
    given = CHOICES[choice]
    return {
        "sketch": {"size": SIZE},
        "shingle": {"length": 1},
        "pairs": {"threshold": 0.5, "confirm": "none", **given.get("pairs", {})},
        "clusters": {"support": support, **given.get("clusters", {})},
        "output": {"report": False},
        "local": {"processes": 1},
    }


def run_over(texts: Mapping[str, str], folder: Path, settings: dict[str, Any]) -> Path:
    """Run over texts on the embedded engine; return the folder of the run."""
    pq.write_table(pa.table({"id": list(texts), "text": list(texts.values())}), folder / "texts.parquet")
    run_locally([str(folder / "texts.parquet")], str(folder / "local"), build_config(settings, origin="test"))
    return folder / "local"


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of a run."""
    rows: list[dict[str, Any]] = pq.read_table(folder / name).to_pylist()
    return rows


def require_definition(folder: Path, choice: str, support: int) -> None:
    """Assert that the clusters of a run are maximal sets, or those that a cover or leaders give."""
    documents = once_each((row["doc_id"], row) for row in read(folder, "documents"))
    threshold = candidate_share(build_config(settings_of(choice, support), origin="test"))
    rule = Rule("count" if choice == "count" else "resemblance", threshold, kind_of(SKETCH).estimate, SIZE)
    pairs = find_pairs(documents, rule)
    if choice in ("edit", "exact"):
        pairs = once((row["doc_a"], row["doc_b"]) for row in read(folder, "pairs"))
    rows = read(folder, "clusters")
    clusters = once_each((frozenset(row["members"]), row["support"]) for row in rows)
    assert len(clusters) == len(rows)
    assert once((row["cluster_id"], row["doc_id"]) for row in read(folder, "members")) == once(
        (row["cluster_id"], doc_id) for row in rows for doc_id in row["members"]
    )

    maximal = find_maximal(documents, pairs, rule, least=support)
    if choice in ("all", "count", "shares", "edit", "exact"):
        assert clusters == maximal
    elif choice == "leaders":
        require_around_leaders(folder, clusters, maximal)
    else:
        assert clusters.items() <= maximal.items()
        assert {pair for pair in pairs if is_held(pair, clusters)} == {pair for pair in pairs if is_held(pair, maximal)}


def is_held(pair: tuple[str, str], clusters: Sets) -> bool:
    """Return whether a cluster holds both documents."""
    return any(members.issuperset(pair) for members in clusters)


def require_around_leaders(folder: Path, clusters: Sets, maximal: Sets) -> None:
    """Assert that the clusters are parts of maximal sets, none inside another, and hold every document that is due.

    That is one which shares enough with a near-duplicate, where one of the two is kept, or with an equal document.
    """
    for members in clusters:
        assert any(members <= whole for whole in maximal)
        assert not any(members < other for other in clusters)
    kept = once(row["doc_id"] for row in read(folder, "keep") if row["kept"])
    group = once_each((row["doc_id"], row["group"]) for row in read(folder, "documents"))
    kept_groups = {group[doc_id] for doc_id in kept}
    due = {
        doc_id for members in maximal for a, b in combinations(sorted(members), 2) for doc_id in (a, b)
        if group[a] == group[b] or {group[a], group[b]} & kept_groups
    }  # fmt: skip
    assert due <= {doc_id for members in clusters for doc_id in members}


@pytest.mark.thorough
@trying(max_examples=examples(4, 12))
@given(choice=st.sampled_from(sorted(CHOICES)), seeds=SEEDS, support=st.integers(4, SIZE))
def test_clusters_are_the_maximal_sets_of_that_support(choice: str, seeds: set[int], support: int) -> None:
    """Equal documents whose other near-duplicates share too little are a cluster; a check of the run breaks nothing."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        if "shares" in choice:
            patch.setattr("nddup.settings.plan.SHARE_NODES", 3)
        folder = run_over(draw_together(seeds), Path(name), settings_of(choice, support))

        require_definition(folder, choice, support)
        assert [one for one in check_run(DuckRun(str(folder))).findings if one.broken] == []


def partition(support: int | None = None, **pairs: Any) -> dict[str, Any]:  # noqa: ANN401 - settings
    """Return the settings of a run in mode `partition`."""
    return settings_of("all", 0) | {
        "clusters": {"mode": "partition", "support": support}, "pairs": {"threshold": 0.5, **pairs},
    }  # fmt: skip


CONTAINED = {**partition(measure="containment", threshold=0.7), "sketch": {"kind": "mod-m", "modulus": 1}}


@pytest.mark.thorough
@trying(max_examples=examples(3, 6))
@given(settings=st.sampled_from([partition(), partition(max_edges=2), CONTAINED]), seeds=SEEDS)
def test_the_kept_document_represents_its_star(settings: dict[str, Any], seeds: set[int]) -> None:
    """A partition's clusters are the stars of the keep-list, each represented by its kept document; `check` agrees."""
    with tempfile.TemporaryDirectory() as name:
        folder = run_over(draw_together(seeds), Path(name), settings)

        require_stars(folder)
        assert [one for one in check_run(DuckRun(str(folder))).findings if one.broken] == []


def require_stars(folder: Path) -> None:
    """Assert that the members are the stars of two documents or more, and the kept ones the representatives."""
    stars: dict[str, set[str]] = {}
    for row in read(folder, "keep"):
        stars.setdefault(row["duplicate_of"] or row["doc_id"], set()).add(row["doc_id"])
    found: dict[str, set[str]] = {}
    represented: dict[str, str] = {}
    for row in read(folder, "members"):
        found.setdefault(row["cluster_id"], set()).add(row["doc_id"])
        if row["representative"]:
            assert represented.setdefault(row["cluster_id"], row["doc_id"]) == row["doc_id"]

    due = {kept: star for kept, star in stars.items() if len(star) > 1}
    assert {represented[cluster]: members for cluster, members in found.items()} == due


def test_check_finds_another_representative_of_a_star(tmp_path: Path) -> None:
    """Of containment the heaviest document is kept and represents its star; `check` finds another one in its place."""
    texts = {name: " ".join(f"w{i}" for i in range(size)) for name, size in {"a": 20, "b": 30, "z": 40}.items()}
    folder = run_over(texts, tmp_path, CONTAINED | {"keep": {"policy": "first-id"}})
    rows = once_each((row["doc_id"], row["representative"]) for row in read(folder, "members"))
    assert rows == {"a": False, "b": False, "z": True}

    (folder / "_stages" / "members.json").unlink()  # and its digests
    (file,) = (folder / "members").glob("*.parquet")
    table = pq.read_table(file)
    at = table.schema.get_field_index("representative")
    pq.write_table(table.set_column(at, table.schema.field(at), pc.equal(table["doc_id"], "a")), file)
    broken = [one for one in check_run(DuckRun(str(folder)), steps=["members"]).findings if one.broken]
    assert [one.promise for one in broken] == ["members: one representative, the first by policy"]
