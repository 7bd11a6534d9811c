"""Matches of sketches that one document each has become rows without a join: those that the join gives; what of them
is held in memory.
"""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nddup.embedded import steps
from nddup.embedded.collapse import Nodes
from nddup.embedded.match import Matches
from nddup.embedded.run import run_locally
from nddup.embedded.workers import Workers
from nddup.engines.duck import DuckEngine
from nddup.ground.columns import TAKEN, nulls
from nddup.settings.load import build_config
from nddup.settings.plan import threshold_of
from nddup.settings.schema import Config
from nddup.stages.expand import expand
from nddup.tables import PAIRS
from tests.finished_runs import write_texts
from tests.samples_by_night import first

BY = [("doc_a", "ascending"), ("doc_b", "ascending")]

SETTINGS: dict[str, dict[str, Any]] = {
    "texts decide": {"pairs": {"threshold": 0.5}},
    "containment": {
        "pairs": {"measure": "containment", "threshold": 0.6},
        "clusters": {"mode": "partition"},
        "sketch": {"kind": "mod-pow2", "size": 40},
    },
    "edit": {"pairs": {"confirm": "edit", "threshold": 0.5}},
}


def by_join(matches: Matches, nodes: Nodes, config: Config, confirm: str) -> pa.Table:
    with_all = DuckEngine.over("all", nodes=nodes.table, matches=matches.table(nodes.n_features))
    limit = config.pairs.expand_limit
    return expand(with_all, threshold=threshold_of(config), expand_limit=limit, confirm=confirm).cast(PAIRS.arrow)


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("copies", first(1, [3, 0]), ids=["copies", "no copies"])
def test_rows_are_those_of_the_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, copies: int) -> None:
    """Under ids in another order than the texts, of texts of different lengths."""
    chance = random.Random(5)  # noqa: S311 - no secret
    words = [f"w{n}" for n in range(60)]
    texts = [" ".join([*words[: 30 + chance.randrange(30)], f"x{n}"]) for n in range(30)]
    texts += texts[:copies] * 2
    ids = chance.sample(range(100, 900), len(texts))
    source = write_texts(tmp_path / "a.jsonl", {str(one): text for one, text in zip(ids, texts, strict=True)})
    quiet = {"output": {"report": False, "texts": 0}, "shingle": {"length": 2}, "local": {"processes": 1}}
    config = build_config({**quiet, **SETTINGS[kind]}, origin="test")
    listed, rows = steps.list_pairs, []

    def compare(matches: Matches, nodes: Nodes, config: Config) -> tuple[pa.Table, DuckEngine]:
        made, engine = listed(matches, nodes, config)
        confirm = config.pairs.confirm if config.pairs.confirm in ("edit", "resemblance") else "none"
        confirm = "none" if matches.common is None and matches.edit is None else confirm
        assert made.to_pylist() == by_join(matches, nodes, config, confirm).sort_by(BY).to_pylist()
        rows.append(len(made))
        return made, engine

    monkeypatch.setattr(steps, "list_pairs", compare)
    run_locally([str(source)], str(tmp_path / "run"), config)
    assert rows[0] > len(texts)


@pytest.mark.parametrize("rows", [0, 1, TAKEN, 3 * TAKEN + 7])
def test_columns_of_nulls_share_memory(rows: int) -> None:
    """Nothing but nulls, as many as asked, in no more bytes than one chunk has."""
    column = nulls(rows, pa.float64())
    assert (len(column), column.null_count, column.type) == (rows, rows, pa.float64())
    assert len({chunk.buffers()[1].address for chunk in column.chunks}) <= 1


def test_written_pairs_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the clusters on a run asks the files of `pairs`; the counts are those of the rows."""
    source = write_texts(tmp_path / "a.jsonl", {str(n): f"a b c d e f g h i j k l m n o p {n}" for n in range(9)})
    clustered, held = steps.cluster, list[int]()

    def count_held(paired: steps.Paired, config: Config, workers: Workers) -> steps.Clustered:
        held.append(sum(isinstance(value, pa.Table) for value in vars(paired).values()))
        return clustered(paired, config, workers)

    monkeypatch.setattr(steps, "cluster", count_held)
    given = {"pairs": {"threshold": 0.6}, "output": {"report": False}, "local": {"processes": 1}}
    metrics = run_locally([str(source)], str(tmp_path / "run"), build_config(given, origin="test"))
    assert held == [0]
    assert metrics["rows"]["pairs"] == 9 * 8 // 2
