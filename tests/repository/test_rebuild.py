"""Adding equals rebuilding: after any history the tables equal those of a fresh run over the live documents."""

import gzip
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nddup.repository
from nddup.repository.close_components import tables_totals
from nddup.repository.live_tables import live_tables
from nddup.repository.opened_repository import Repository
from tests.repository.histories import Batch, draw_history, play, rows_of, run_fresh
from tests.samples_by_night import every, examples, first

CHOICES: dict[str, dict[str, Any]] = {
    "min-s": {"sketch.size": 24, "pairs.threshold": 0.6, "pairs.confirm": "none"},
    "first": {"sketch.size": 24, "pairs.threshold": 0.6, "keep.policy": "first"},
    "count": {"sketch.size": 24, "pairs.measure": "overlap", "pairs.threshold": 16},
    "share, stars": {
        "sketch.size": 24, "pairs.measure": "overlap", "pairs.threshold": 0.5, "pairs.expand_limit": 2,
        "keep.policy": "first-id",
    },
    "min-perm": {"sketch.kind": "min-perm", "sketch.size": 24, "pairs.threshold": 0.6},
    "super": {"sketch.kind": "super", "sketch.size": 24, "sketch.rows": 4, "pairs.threshold": 0.6},
    "minhash": {"sketch.kind": "minhash", "sketch.size": 24, "pairs.threshold": 0.6},
    "mod-m": {"sketch.kind": "mod-m", "sketch.modulus": 2, "pairs.threshold": 0.5, "clusters.mode": "cover"},
    "contained": {
        "sketch.kind": "mod-m", "sketch.modulus": 1, "pairs.measure": "containment", "pairs.threshold": 0.7,
        "clusters.mode": "partition",
    },
    "levels": {"sketch.kind": "mod-pow2", "sketch.size": 10, "pairs.threshold": 0.5, "clusters.mode": "components"},
    "keywords": {"sketch.kind": "keywords", "pairs.threshold": 0.6},
    "covers": {
        "sketch.size": 24, "pairs.threshold": 0.5, "clusters.max_sets": 1, "clusters.max_members": 1,
        "clusters.max_nodes": 1, "clusters.max_listed": 2,
    },
    "partition": {"sketch.size": 24, "pairs.threshold": 0.6, "clusters.mode": "partition"},
    "leaders": {"sketch.size": 24, "pairs.threshold": 0.5, "pairs.confirm": "none", "pairs.max_edges": 2},
    "leaders, partition": {
        "sketch.size": 24, "pairs.threshold": 0.5, "pairs.confirm": "none", "pairs.max_edges": 1,
        "clusters.mode": "partition",
    },
    "leaders, long lists": {
        "sketch.size": 24, "pairs.threshold": 0.5, "pairs.confirm": "none", "pairs.max_edges": 2,
        "pairs.max_postings": 2,
    },
    "leaders, bands": {"sketch.kind": "minhash", "sketch.size": 24, "pairs.threshold": 0.5, "pairs.max_edges": 2},
    "exact": {"sketch.size": 24, "pairs.threshold": 0.6, "pairs.confirm": "resemblance", "keep.policy": "first"},
    "exact, slots": {
        "sketch.kind": "min-perm", "sketch.size": 24, "pairs.threshold": 0.6, "pairs.confirm": "resemblance",
    },
    "exact, bands, stars": {
        "sketch.kind": "minhash", "sketch.size": 24, "pairs.threshold": 0.6, "pairs.confirm": "resemblance",
        "pairs.expand_limit": 2,
    },
    "exact, leaders": {
        "sketch.size": 24, "pairs.threshold": 0.6, "pairs.confirm": "resemblance", "pairs.max_edges": 3,
    },
    "exact, long lists": {
        "sketch.size": 24, "pairs.threshold": 0.5, "pairs.confirm": "resemblance", "pairs.max_edges": 4,
        "pairs.max_postings": 2,
    },
    "exact, leaders, partition": {
        "sketch.size": 24, "pairs.threshold": 0.5, "pairs.confirm": "resemblance", "pairs.max_edges": 1,
        "clusters.mode": "partition",
    },
}  # fmt: skip


def make(path: Path, choice: str, **given: Any) -> Repository:  # noqa: ANN401
    """Create an empty repository."""
    return nddup.repository.create(str(path), **CHOICES[choice] | {"local.processes": 1}, **given)


def require_equal(repo: Repository, live: dict[str, str]) -> None:
    """Assert that the stored tables and the commit's digests equal those of a fresh run."""
    fresh = run_fresh(live, repo.snapshot.identity.config)
    stored = live_tables(repo.snapshot)

    assert rows_of(stored) == rows_of(fresh)
    if repo.snapshot.identity.is_exact:  # the numbers of shingles, and what removal loses
        for name in ("pairs", "keep"):
            assert sorted(map(repr, stored[name].to_pylist())) == sorted(map(repr, fresh[name].to_pylist()))
    assert leaders_of(stored) == leaders_of(fresh)
    assert dict(repo.snapshot.commit.digests) == tables_totals(fresh)


def leaders_of(tables: dict[str, pa.Table]) -> list[str]:
    """Return the documents that lead."""
    keep = tables["keep"]
    return sorted(keep.filter(keep["leader"])["doc_id"].to_pylist())


@pytest.mark.parametrize("seed", first(1, [1, 0, 2]))  # with 1, every history removes and replaces
@pytest.mark.parametrize("choice", every(5, CHOICES))
def test_a_random_history_equals_a_fresh_run(tmp_path: Path, choice: str, seed: int) -> None:
    """After adds, repeated adds, replacements and removals the tables equal a fresh run's, for all settings."""
    repo = make(tmp_path / "repo", choice)
    live = play(repo, draw_history(1000 * seed + len(choice)))
    require_equal(repo, live)


@pytest.mark.parametrize("choice", ["exact", "levels"])
def test_sketches_are_looked_up_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    """Of a batch larger than a portion every new sketch finds the stored one near it, which no other is near.

    Nor does it matter that stored ones which were hit are left out of later portions.
    """
    for name, value in {"LEAST": 2, "TOGETHER": 2, "WORTH": 10**6}.items():
        monkeypatch.setattr(f"nddup.repository.batch_nodes.{name}", value)
    repo, texts = make(tmp_path / "repo", choice), [" ".join(f"f{n}w{i}" for i in range(60)) for n in range(7)]
    batches = [Batch({f"{add or 'a'}{n}": f"{text} {add}" for n, text in enumerate(texts)}) for add in ("", "more")]
    live = play(repo, batches)
    require_equal(repo, live)

    repo = make(tmp_path / "other", choice)
    require_equal(repo, play(repo, draw_history(7, steps=5, most=16)))


def test_what_leaders_leave_apart_stays_one_component(tmp_path: Path) -> None:
    """Of a chain a-c-d-b of near-duplicates a and b lead, so c-d is not listed: a text near b still touches all."""
    words = [f"w{i}" for i in range(80)]
    texts = {name: " ".join(words[8 * at : 8 * at + 40]) for at, name in enumerate("acdbe")}
    limits: dict[str, Any] = {"pairs.threshold": 0.6, "pairs.max_edges": 2, "keep.policy": "first"}
    repo = nddup.repository.create(str(tmp_path / "repo"), **limits)
    live = play(repo, [Batch({name: texts[name] for name in "abcd"})])
    stored = live_tables(repo.snapshot)
    assert leaders_of(stored) == ["a", "b"]
    assert [*zip(*stored["pairs"].select(["doc_a", "doc_b"]).to_pydict().values(), strict=True)] == [
        ("a", "c"),
        ("b", "d"),
    ]

    require_equal(repo, live | play(repo, [Batch({"e": texts["e"]})]))


@settings(max_examples=examples(3, 5), deadline=None)
@given(choice=st.sampled_from(sorted(CHOICES)), seed=st.integers(0, 2**32), steps=st.integers(2, 8))
def test_any_history_equals_a_fresh_run(
    tmp_path_factory: pytest.TempPathFactory, choice: str, seed: int, steps: int
) -> None:
    """After any drawn history the tables equal a fresh run's."""
    repo = make(tmp_path_factory.mktemp("history") / "repo", choice)
    require_equal(repo, play(repo, draw_history(seed, steps)))


@pytest.mark.nightly
@pytest.mark.parametrize("order", ["drawn", "sorted"])
def test_real_pages_in_several_batches(tmp_path: Path, shared: Path, order: str) -> None:
    """Real pages with near-duplicates, added in eleven batches and two orders, give the tables of a fresh run."""
    table = pq.read_table(shared / "debdocs-dev" / "docs.parquet", columns=["doc_id", "html"])
    with gzip.open(shared / "debdocs-dev" / "pairs_w5_j070.tsv.gz", "rt", encoding="ascii") as file:
        alike = {int(name) for line in islice(file, 1, 250) for name in line.split()[:2]}
    table = table.filter(pc.is_in(table["doc_id"], pa.array(sorted(alike))))
    pages = zip(table["doc_id"].to_pylist(), table["html"].to_pylist(), strict=True)
    texts = {f"p{doc_id:05}": page.decode("utf-8", "replace") for doc_id, page in pages}
    ordered = np.array(sorted(texts))
    repo = nddup.repository.create(str(tmp_path / "repo"), pairs={"threshold": 0.6})
    for part in np.array_split(np.random.default_rng(3).permutation(ordered) if order == "drawn" else ordered, 11):
        repo.add({doc_id: texts[doc_id] for doc_id in part.tolist()})
    require_equal(repo, texts)
    assert len(repo.snapshot.commit.segments) < 6
    assert len(repo.tables()["pairs"]) > 100


def test_a_sketch_comes_again_while_its_last_document_goes(tmp_path: Path) -> None:
    """A sketch that returns while its last document is replaced keeps its pairs with stored sketches."""
    words = [f"w{i}" for i in range(40)]
    first, near = " ".join(words), " ".join(words[:39])
    repo = make(tmp_path / "repo", "min-s")
    live = play(repo, [Batch({"a": first, "b": near}), Batch({"a": "another text by now", "c": first})])

    require_equal(repo, live)
    assert repo.tables()["pairs"].select(["doc_a", "doc_b"]).to_pylist() == [{"doc_a": "b", "doc_b": "c"}]


def test_the_namesake_of_a_group_lives_already(tmp_path: Path) -> None:
    """A batch may contain a group's live namesake, unchanged or refused, with new documents of the same sketch."""
    repo = make(tmp_path / "repo", "min-s")
    text = " ".join(f"w{i}" for i in range(40))
    repo.add({"a": text, "b": "another text"})
    repo.add({"a": text, "b": text.upper(), "c": text, "d": "b stays as it was"})
    repo.add({"a": "other content", "e": "other content"})

    require_equal(repo, {"a": text, "b": "another text", "c": text, "d": "b stays as it was", "e": "other content"})


def test_equal_sketches_that_are_no_pair_share_a_group(tmp_path: Path) -> None:
    """With a count threshold a short text is in no pair, but a smaller id that arrives later still names its group."""
    repo = make(tmp_path / "repo", "count")
    live = play(repo, [Batch({"b": "a short text"}), Batch({"x": "another"}), Batch({"a": "a short text"})])

    require_equal(repo, live)
    assert repo.tables()["documents"]["group"].to_pylist() == ["a", "x", "a"]
    repo.remove(["a"])
    del live["a"]
    require_equal(repo, live)
