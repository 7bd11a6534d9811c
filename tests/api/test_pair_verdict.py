"""`Run.explain_pair`: the numbers follow their definitions, and the verdict agrees with the run's tables."""

from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nddup
from nddup.api.run_object import Run
from nddup.checking.evidence import Promised
from nddup.embedded.run import run_locally
from nddup.errors import ConfigError
from nddup.settings.load import build_config
from nddup.verifying.definitions import compare, judge
from tests.counted_rows import once, once_each
from tests.finished_runs import write_texts
from tests.results.kind_runs import CHECKED, RUNS, nested, settings_of, texts
from tests.samples_by_night import every

NEAR, FAR = 5, 31
"""One in so many of the near-duplicates, and of the other pairs, is asked for: four queries each."""

FAMILY = ["blanks", "copy0", "copy1", "copy2", "f0v0", "f0v1", "f0v2", "f1v1", "f1v2"]

ESTIMATED = {"pairs.confirm": "none"}

QUIET = {"output.report": False, "output.texts": 0, "output.kept": "none", "output.context": False}


def make_run(folder: Path, keys: dict[str, Any], given: dict[str, str] | None = None) -> Run:
    """Make a run over files and open it."""
    pages = write_texts(folder / "pages.jsonl", given or texts())
    run_locally([str(pages)], str(folder / "run"), build_config(nested(keys | QUIET), origin="test"))
    return nddup.open(str(folder / "run"))


def listed_in(run: Run) -> set[tuple[str, str]]:
    """Return the rows of `pairs` among the documents of `FAMILY`."""
    rows = ((row["doc_a"], row["doc_b"]) for row in run.pairs.to_pylist())
    return {pair for pair in rows if set(pair) <= set(FAMILY)}


@pytest.mark.parametrize("name", every(6, [*RUNS, *CHECKED]))
def test_every_two_documents(name: str, tmp_path: Path) -> None:
    """For every kind the verdict agrees with `pairs`, and the numbers equal those of the definition and of the row."""
    run = make_run(tmp_path, settings_of(name) | {"pairs.max_edges": 10**6, "pairs.max_postings": 10**4})
    promised = Promised(run.metrics)
    rows = once_each(((row["doc_a"], row["doc_b"]), row) for row in run.pairs.to_pylist())
    documents = once_each((row["doc_id"], row) for row in run.documents.to_pylist())
    sketches = {name: np.array(row["sketch"], np.int64).view(np.uint64) for name, row in documents.items()}

    for place, (a, b) in enumerate(combinations(sorted(documents), 2)):
        if place % (NEAR if (a, b) in rows else FAR):
            continue
        said = run.explain_pair(b, a)
        levels = [_level(documents[one]["n_features"], promised.levels) for one in (a, b)]
        mask = np.uint64((1 << max(levels)) - 1)
        overlap, shared, seen, n_a, n_b = compare(sketches[a], sketches[b], promised.rule.sample, mask)

        assert (said.doc_a, said.doc_b) == (a, b)
        assert (said.common, said.features_a, said.features_b) == (overlap, n_a, n_b)
        assert said.is_pair == ((a, b) in rows), said.verdict
        assert said.verdict.startswith("Near-duplicates: " if said.is_pair else "No near-duplicates: ")
        assert said.estimate == (shared / seen if seen else None)
        is_exact = run.settings.pairs.confirm == "resemblance"
        known = rows.get((a, b), {}).get("resemblance") if is_exact else None
        assert said.resemblance == (said.estimate if known is None else known)
        if is_exact:
            assert said.threshold == run.settings.pairs.threshold
            assert str(said.threshold) in said.verdict or "equal" in said.verdict or "empty" in said.verdict
            assert not said.verdict.startswith("Near-duplicates: the sketches")
        if said.is_pair:
            assert said.common == rows[a, b]["overlap"] or a in (documents[b]["group"], documents[a]["group"])
            assert said.common >= said.needed or not run.settings.sketch.verify
            assert (said.value >= said.threshold) or documents[a]["group"] == documents[b]["group"]
        elif judge(sketches[a], sketches[b], mask, promised.rule)[1]:
            exact = "all their shingles is below pairs.threshold"
            assert (exact if run.settings.pairs.confirm == "resemblance" else "did not compare them") in said.verdict


def _level(features: int, size: int) -> int:
    return next(level for level in range(64) if features <= size << level) if size else 0


def test_a_star_stands_for_a_pair(tmp_path: Path) -> None:
    """The same documents are near-duplicates whether stars or all pairs are written."""
    keys = {"shingle.length": 2, "sketch.size": 30, "pairs.threshold": 0.6}
    (tmp_path / "full").mkdir()
    (tmp_path / "stars").mkdir()
    full = make_run(tmp_path / "full", keys)
    run = make_run(tmp_path / "stars", keys | {"pairs.expand_limit": 1})
    rows, written = listed_in(full), listed_in(run)

    said = {pair: run.explain_pair(*pair) for pair in combinations(FAMILY, 2)}

    assert written < rows
    assert {pair for pair, verdict in said.items() if verdict.is_pair} == rows
    assert all("star" in said[pair].verdict for pair in rows - written)


def test_removed_documents_of_a_component_given_by_leaders(tmp_path: Path) -> None:
    """The verdict on removed documents of a component with leaders says why `pairs` lacks a pair at the threshold."""
    keys = {"shingle.length": 2, "sketch.size": 30, "pairs.threshold": 0.6}
    for mode in ("all", "partition"):
        folder = tmp_path / mode
        folder.mkdir()
        run = make_run(folder, keys | {"pairs.max_edges": 1, "clusters.mode": mode})
        rows = listed_in(run)
        near = [run.explain_pair(*pair) for pair in combinations(FAMILY, 2)]
        unlisted = [said for said in near if not said.is_pair and said.value >= said.threshold]

        assert once((said.doc_a, said.doc_b) for said in near if said.is_pair) == rows
        assert unlisted
        assert all("given by leaders" in said.verdict for said in unlisted)


def test_standard_errors(tmp_path: Path) -> None:
    """The standard error of an estimate is sqrt(r (1 - r) / s), corrected for a finite union; 0 for whole sketches."""
    words = [f"w{number}" for number in range(3000)]
    parts = {"a": words[:2000], "b": words[1000:], "c": words[:100], "d": words[50:150]}
    run = make_run(tmp_path, ESTIMATED, {name: " ".join(part) for name, part in parts.items()})

    sampled, whole = run.explain_pair("a", "b"), run.explain_pair("d", "c")

    united = round(2 * 1996 / (1 + sampled.value))
    due = sampled.value * (1 - sampled.value) / 200 * (united - 200) / (united - 1)
    assert sampled.standard_error == pytest.approx(sqrt(due))
    assert abs(sampled.value - 996 / 2996) < 4 * sqrt(due)
    assert whole.standard_error == 0
    assert whole.value == 46 / 146


def test_a_close_call_is_called_one(tmp_path: Path) -> None:
    """Where sketches decide, a pair within two standard errors of the threshold is called a close call."""
    words = [f"w{number}" for number in range(4000)]
    parts = {"a": words[:2000], "near": words[:1650] + words[2000:2350], "far": words[1000:3000]}
    run = make_run(tmp_path, ESTIMATED, {name: " ".join(part) for name, part in parts.items()})

    near, far = run.explain_pair("a", "near"), run.explain_pair("a", "far")

    assert near.standard_error is not None
    assert abs(near.value - 0.7) < 2 * near.standard_error
    assert near.verdict.endswith(f"; a close call, the standard error of the estimate is {near.standard_error:.3f}.")
    assert "close call" not in far.verdict


def test_what_is_no_pair_of_documents_is_refused(tmp_path: Path) -> None:
    """An unknown id, or the same document twice, is refused."""
    run = make_run(tmp_path, {})

    with pytest.raises(ConfigError, match="'nobody' is no document of"):
        run.explain_pair("f0v0", "nobody")
    with pytest.raises(ConfigError, match="expected two documents, got 'f0v0' twice"):
        run.explain_pair("f0v0", "f0v0")
