"""A component cut into shares has the sets of the definition, however small the shares are."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from nddup.embedded.run import run_locally
from nddup.mining.cluster_modes import Budget, LimitArguments
from nddup.mining.itemsets import COVER_SHARE
from nddup.settings.load import build_config
from tests.counted_rows import once_each
from tests.embedded import brute_force
from tests.finished_runs import write_texts
from tests.samples_by_night import first

SHARE_NODES = 7
TABLES = ("documents", "pairs", "clusters", "members")
RULE = brute_force.Rule("overlap", Fraction(3, 5), "smallest", 100)


def chain(seed: int) -> dict[str, str]:
    """Draw a chain of windows over a row of words, some of them replaced, and a separate family that is not cut."""
    random = np.random.default_rng(seed)
    texts = {}
    for number, low in enumerate(np.cumsum(random.integers(1, 5, 70)).tolist()):
        words = [f"w{low + place}" if random.random() < 0.97 else f"x{number}at{place}" for place in range(30)]
        texts[f"{number:02}"] = " ".join(words)
    texts |= {f"family{n}": " ".join(f"f{place}" for place in range(20 + n)) for n in range(4)}
    return texts | {"copy": texts["07"]}


def run_over(folder: Path, texts: dict[str, str], **clusters: Any) -> dict[str, list[dict[str, Any]]]:  # noqa: ANN401
    """Return the tables of a run, and the counts of its clusters stage as `graph`."""
    config = build_config(
        {
            "shingle": {"length": 1},
            "sketch": {"size": RULE.size},
            "pairs": {"measure": RULE.measure, "threshold": float(RULE.threshold)},
            "clusters": clusters,
            "output": {"report": False, "texts": 0},
        },
        origin="test",
    )
    folder.mkdir()
    metrics = run_locally([str(write_texts(folder / "a.jsonl", texts))], str(folder / "run"), config)
    tables = {name: pq.read_table(folder / "run" / name).to_pylist() for name in TABLES}
    return tables | {"graph": [metrics["stages"]["clusters"]]}


@pytest.fixture(autouse=True)
def _small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make shares of a few nodes instead of thousands."""
    monkeypatch.setattr("nddup.settings.plan.SHARE_NODES", SHARE_NODES)


@pytest.mark.parametrize("seed", first(1, range(4)))
@pytest.mark.parametrize(
    ("mode", "passed", "coverage"),
    [("all", 0, "all"), ("cover", 0, "pairs"), ("all", 1, "pairs"), ("all", COVER_SHARE, "documents")],
    ids=["all", "cover", "budget of all sets passed", "budget of covers passed too"],
)
def test_the_sets_are_what_their_coverage_says(  # noqa: PLR0913, PLR0917 - the case
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, mode: str, passed: int, coverage: str
) -> None:
    """By coverage: all maximal sets, maximal sets that hold every pair, or sets that hold every document; each once.

    `passed`: every share exceeds its budget up to this multiple.
    """
    real = Budget.of

    def of(budget: Budget, sketches: int, times: int = 1) -> LimitArguments:
        limits = real(budget, sketches, times)
        return limits if times > passed else {**limits, "max_sets": 1}

    monkeypatch.setattr(Budget, "of", of)
    tables = run_over(tmp_path / "cut", chain(seed), mode=mode)
    documents = once_each((row["doc_id"], row) for row in tables["documents"])
    pairs = brute_force.find_pairs(documents, RULE)
    maximal = brute_force.find_maximal(documents, pairs, RULE)

    (graph,) = tables["graph"]
    assert graph["spread_components"] == 1
    assert graph["shares"] > 5
    assert {row["coverage"] for row in tables["clusters"] if row["component"] == "00"} == {coverage}
    found = once_each((frozenset(row["members"]), row["support"]) for row in tables["clusters"])
    assert len(found) == len(tables["clusters"])
    if coverage == "documents":
        of_chain = brute_force.find_components(pairs)
        assert frozenset().union(*found) == frozenset().union(*of_chain)
        assert all(any(one <= whole for whole in maximal) for one in found)
        return
    assert found.items() <= maximal.items()
    held = {pair for pair in pairs if any(members.issuperset(pair) for members in found)}
    assert held == {pair for pair in pairs if any(members.issuperset(pair) for members in maximal)}
    assert (len(found) == len(maximal)) == (coverage == "all")


def test_a_complete_component_is_mined_once_though_it_would_be_cut(tmp_path: Path) -> None:
    """It is its own only set, so no share of it is mined: clusters and members have each row once."""
    words = [f"w{place}" for place in range(60)]
    texts = {f"{number:02}": " ".join([*words[:number], f"x{number}", *words[number + 1 :]]) for number in range(20)}

    tables = run_over(tmp_path / "whole", texts)

    assert [row["members"] for row in tables["clusters"]] == [sorted(texts)]
    assert sorted(row["doc_id"] for row in tables["members"]) == sorted(texts)
