"""Random histories: a diff applied to the earlier tables gives the later ones; causes are as they are defined."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.diffing.diff_tables import diff_finished
from nddup.engines.duck import DuckRun
from nddup.engines.engine import FinishedRun
from nddup.tables import DOCUMENTS
from tests.diffing.changed_runs import (
    CHANGES,
    State,
    apply_diff,
    causes_plainly,
    change,
    changed_verdicts,
    components,
    draw_state,
    run_state,
    table,
    unlike,
    with_only,
)
from tests.samples_by_night import every, first

ALONE = {
    "come": {"neighbours"}, "go": {"neighbours"}, "text": {"text", "neighbours"}, "values": {"values", "neighbours"},
    "order": {"order"}, "threshold": {"settings"}, "policy": {"settings"},
    "same": {"settings"}, "forced": {"values", "neighbours"},
}  # fmt: skip
"""What a change alone can cause."""


def spelled(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def require_diff(folder: Path, before: str, states: tuple[State, State]) -> set[str]:
    """Compare the diff of a history, whose earlier run is made, with its definition; return the causes that it has."""
    earlier, later = states
    after = run_state(later, folder, "after")

    run = DuckRun(after)
    found = diff_finished(DuckRun(before), run)

    require_applied(run, before, after)
    changes = {row["doc_id"]: row for row in run.sql("SELECT * FROM changes").to_pylist()}
    causes = {one: row["cause"] for one, row in changes.items() if row["cause"] is not None}
    plainly = causes_plainly(before, after, earlier, later)
    assert causes == {one: holds[0] for one, holds in plainly.items()}
    require_explained(folder, before, after, states, plainly)
    require_pairs(run, before, after)
    ids = [{row["doc_id"] for row in table(one, "documents")} for one in (before, after)]
    assert {one for one, row in changes.items() if row["change"] == "added"} == ids[1] - ids[0]
    assert {one for one, row in changes.items() if row["change"] == "gone"} == ids[0] - ids[1]
    assert sum(found.causes.values()) == len(causes) == found.counts["verdicts"]
    return set(causes.values())


def require_explained(
    folder: Path, before: str, after: str, states: tuple[State, State], causes: Mapping[str, list[str]]
) -> Counter[str]:
    """
    What a cause promises: where it alone holds, a rerun of the earlier inputs with only that cause has the verdict.

    Nothing is promised where a later cause holds too, or where the rerun connects the document with one that later is
    gone or another.
    """
    counts = Counter[str]()
    for cause in ("text", "values", "settings", "order"):
        alone = [one for one, holds in causes.items() if holds == [cause]]
        rerun = with_only(cause, *states)
        if not alone or rerun == states[1]:
            continue
        run = run_state(rerun, folder, f"with-{cause}")
        around, otherwise = components(run), unlike(rerun, states[1])
        explained = [one for one in alone if not around[one] & otherwise]
        assert not changed_verdicts(run, after) & set(explained), cause
        assert changed_verdicts(before, run) >= set(explained)
        counts[cause] += len(explained)
    return counts


def require_applied(run: FinishedRun, before: str, after: str) -> None:
    """Apply a diff to the earlier tables, and compare every column but `doc_key` with the later ones."""
    columns = [name for name in DOCUMENTS.names if name != "doc_key"]
    documents = [{name: row[name] for name in columns} for row in table(after, "documents")]
    run.see("earlier_documents", pq.read_table(f"{before}/documents"))
    assert spelled(run.sql(apply_diff("documents")).to_pylist()) == spelled(documents)
    assert spelled(run.sql(apply_diff("keep")).to_pylist()) == spelled(table(after, "keep"))
    earlier = list_families(before, first_names(before))
    run.see("earlier_families", pa.Table.from_pylist(earlier))
    live = {row["doc_id"]: row["name"] for row in run.sql("SELECT * FROM live_names").to_pylist()}
    later = list_families(after, {row["doc_id"]: row["name"] for row in earlier} | live)
    assert spelled(run.sql(apply_diff("families")).to_pylist()) == spelled(later)
    assert len({row["name"] for row in later}) == len(later)


def first_names(run: str) -> dict[str, str]:
    """Return the oldest document of each family."""
    keys = {row["doc_id"]: row["doc_key"] for row in table(run, "documents")}
    names = dict[str, str]()
    for row in sorted((row for row in table(run, "keep") if in_family(row)), key=lambda row: keys[row["doc_id"]]):
        names.setdefault(row["duplicate_of"] or row["doc_id"], row["doc_id"])
    return names


def list_families(run: str, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the name, the kept document and the size of each family."""
    sizes = Counter(row["duplicate_of"] or row["doc_id"] for row in table(run, "keep") if in_family(row))
    return [{"name": names[head], "doc_id": head, "documents": n} for head, n in sizes.items()]


def in_family(row: dict[str, Any]) -> bool:
    return bool(row["kept"] or row["duplicate_of"])


def require_pairs(run: FinishedRun, before: str, after: str) -> None:
    pairs = [{(row["doc_a"], row["doc_b"]) for row in table(one, "pairs")} for one in (before, after)]
    rows = {
        (r["doc_a"], r["doc_b"], r["change"])
        for r in run.sql("SELECT doc_a, doc_b, change FROM pair_changes").to_pylist()
    }
    won, lost = pairs[1] - pairs[0], pairs[0] - pairs[1]
    assert rows == {(*pair, "won") for pair in won} | {(*pair, "lost") for pair in lost}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, State]:
    """A collection of which order and values decide, and its run."""
    state = draw_state(np.random.default_rng(1), 40)._replace(policy="first", same=("score",))
    return run_state(state, tmp_path_factory.mktemp("base"), "before"), state


@pytest.mark.parametrize("kind", every(3, CHANGES))
def test_one_change_alone_has_its_own_causes(kind: str, base: tuple[str, State], tmp_path: Path) -> None:
    """A run that differs in one thing only has verdicts with causes of that, and no others."""
    before, earlier = base
    later = change(np.random.default_rng(CHANGES.index(kind)), earlier, (kind,))

    causes = require_diff(tmp_path, before, (earlier, later))

    assert causes
    assert causes <= ALONE[kind]


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_random_histories(seed: int, tmp_path: Path) -> None:
    """Several changes at once: `apply` gives the later tables, and causes are as defined."""
    drawn = np.random.default_rng(seed)
    kinds = tuple(drawn.permutation(CHANGES)[: drawn.integers(2, 5)].tolist())
    earlier = draw_state(drawn, 40)
    later = change(drawn, earlier, kinds)

    require_diff(tmp_path, run_state(earlier, tmp_path, "before"), (earlier, later))


def test_a_run_has_no_difference_with_itself(base: tuple[str, State]) -> None:
    """`diff A A` is empty."""
    run, _ = base

    found = diff_finished(DuckRun(run), DuckRun(run))

    assert (found.is_empty, found.rows) == (True, 0)
