"""`Run.rethreshold`: every table and count equals that of a fresh run over the texts."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nddup
from nddup.api.run_object import Run
from nddup.embedded.run import run_locally
from nddup.errors import ConfigError, OutputError
from nddup.settings.load import build_config
from tests.embedded.edited_texts import make_texts
from tests.finished_runs import write_texts
from tests.results.kind_runs import CHECKED, RUNS, nested, settings_of, texts
from tests.samples_by_night import examples, first

SHARES = (0.3, 0.7, 1.0)
COUNTS = (1, 12, 30)
MADE_AGAIN = ("pairs", "clusters", "members", "keep", "false_components", "documents", "rejects")

LARGE: dict[str, dict[str, Any]] = {
    "stars": {"pairs.expand_limit": 2},
    "leaders": {"pairs.max_edges": 2, "pairs.max_postings": 3},
    "listed": {"clusters.max_listed": 2, "clusters.support": 25, "keep.policy": "shortest-url"},
    "first": {"keep.policy": "first", "clusters.mode": "partition"},
    "frequent": {"pairs.max_document_frequency": 4},
}  # fmt: skip
"""Settings under which a run is cut, covered or led, as large runs are."""


def settings_for(name: str) -> dict[str, Any]:
    """Return the settings of a run by their keys; sketches decide, so that any other threshold may be asked for."""
    estimated = {"pairs.confirm": "none"}
    if name in LARGE:
        return (
            {"shingle.length": 2, "sketch.size": 30, "pairs.threshold": 0.6}
            | estimated
            | LARGE[name]
            | ({"sketch.size": 200} if LARGE[name].get("sketch.kind") == "mod-m" else {})
        )
    return settings_of(name) | estimated


def rows_of(run: Run, name: str) -> list[str]:
    """Return the rows of a table, sorted."""
    table = getattr(run, name)
    return sorted(map(repr, (table if isinstance(table, pa.Table) else table.to_table()).to_pylist()))


def counted(run: Run) -> dict[str, Any]:
    """Return the metrics of the recomputed stages, without seconds, and the settings of pairs."""
    metrics = run.metrics.dump()
    stages = {name: metrics["stages"][name] for name in ("pairs", "clusters", "keep")}
    for stage in stages.values():
        stage.pop("seconds")
    if stages["clusters"]["led_components"]:
        stages["pairs"].pop("candidates")  # depends on the threads where a component is large
    rows = {name: metrics["rows"][name] for name in MADE_AGAIN}
    return {"stages": stages, "rows": rows, "records": metrics["records"], "pairs": metrics["settings"]["pairs"]}


def make_run(folder: Path, keys: dict[str, Any]) -> Run:
    """Make a run over files and open it."""
    folder.mkdir(exist_ok=True)
    pages = write_texts(folder / "pages.jsonl", texts())
    quiet = {"output.report": False, "output.texts": 0, "output.kept": "none", "output.context": False}
    run_locally([str(pages)], str(folder / "run"), build_config(nested(keys | quiet), origin="test"))
    return nddup.open(str(folder / "run"))


@pytest.mark.parametrize("name", first(2, dict.fromkeys(["stars", "leaders", "mod-pow2", *LARGE, *RUNS, *CHECKED])))
def test_it_is_a_fresh_run(name: str, tmp_path: Path) -> None:
    """At thresholds around its own the run equals a fresh one, for every kind, measure, mode and limit.

    Sketches decide; where all shingles do, only thresholds above its own can be asked for. Other thresholds are drawn
    below.
    """
    keys = settings_for(name)
    run = make_run(tmp_path / "own", keys)
    thresholds = COUNTS if isinstance(keys["pairs.threshold"], int) else SHARES

    found = []
    for threshold in thresholds:
        again = run.rethreshold(threshold)
        fresh = make_run(tmp_path / f"fresh{threshold}", keys | {"pairs.threshold": threshold})
        for table in MADE_AGAIN:
            assert rows_of(again, table) == rows_of(fresh, table), (table, threshold)
        assert counted(again) == counted(fresh)
        found.append(len(fresh.pairs))

    if keys.get("sketch.verify", True):
        assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] or not keys.get("sketch.verify", True) or name in ("i-match", "whole")


def test_equal_texts_in_a_family_that_is_searched_for_itself(tmp_path: Path) -> None:
    """All shingles decided: the pairs of equal texts are known too, and none is one of a sketch with itself."""
    words = [f"w{at}" for at in range(30)]
    pages = {f"d{at}": " ".join([*words[: 30 - at // 2], f"x{at // 2}"]) for at in range(16)}
    keys: dict[str, Any] = {"pairs.max_postings": 2, "output.report": False}
    write_texts(tmp_path / "pages.jsonl", pages)
    for threshold in (0.7, 0.85):
        config = build_config(nested(keys | {"pairs.threshold": threshold}), origin="test")
        run_locally([str(tmp_path / "pages.jsonl")], str(tmp_path / f"{threshold}"), config)
    with nddup.open(tmp_path / "0.7") as own, nddup.open(tmp_path / "0.85") as fresh:
        again = own.rethreshold(0.85)
        for table in MADE_AGAIN:
            assert rows_of(again, table) == rows_of(fresh, table), table
        assert len(own.pairs) > len(again.pairs) > 8


@pytest.mark.parametrize("name", LARGE)
def test_the_large_runs_are_large(name: str, tmp_path: Path) -> None:
    """Each run of `LARGE` shows what it is named for."""
    run = make_run(tmp_path, settings_for(name))

    stages = run.metrics.stages
    reached = {
        "stars": any(run.pairs.to_table()["star"].to_pylist()),
        "leaders": stages.clusters.led_components > 0,
        "listed": any(row["size"] > len(row["members"]) for row in run.clusters.to_pylist()),
        "first": run.settings.keep.policy == "first",
        "frequent": stages.sketch.left_out_shingles > 0,
    }
    assert reached[name]


@settings(max_examples=examples(3, 6))
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from([
        {"sketch": {"size": 40}},
        {"sketch": {"size": 40}, "pairs": {"measure": "overlap"}},
        {"sketch": {"kind": "min-perm", "size": 20}},
        {"sketch": {"kind": "minhash", "size": 20}},
        {"sketch": {"kind": "super", "size": 40}},
        {"sketch": {"kind": "mod-m", "modulus": 5}, "pairs": {"measure": "containment"},
         "clusters": {"mode": "partition"}},
        {"sketch": {"kind": "mod-pow2", "size": 20}, "clusters": {"mode": "components"}},
    ]),
    own=st.integers(1, 100),
    other=st.integers(1, 100),
    limits=st.sampled_from([{}, {"expand_limit": 1}, {"max_edges": 3, "max_postings": 2}]),
)  # fmt: skip
def test_drawn_collections(seed: int, kind: dict[str, Any], own: int, other: int, limits: dict[str, int]) -> None:
    """For random texts and any two thresholds the run equals a fresh one, also with leaders and stars."""
    given_texts = make_texts(seed, families=2)
    table = pa.table({"id": list(given_texts), "text": list(given_texts.values())})
    pairs = {"confirm": "none"} | kind.get("pairs", {}) | limits

    def find(percent: int) -> Run:
        return nddup.find_duplicates(table, **kind | {"pairs": pairs | {"threshold": percent / 100}})

    run, fresh = find(own), find(other)
    again = run.rethreshold(other / 100)

    for name in MADE_AGAIN:
        assert rows_of(again, name) == rows_of(fresh, name), name
    assert counted(again) == counted(fresh)


def test_a_count_is_refused_where_the_measure_takes_none(tmp_path: Path) -> None:
    """A count is refused where the measure takes none, with the error of the settings."""
    run = make_run(tmp_path, {"sketch.size": 30})

    with pytest.raises(ConfigError, match=r"rethreshold: pairs\.threshold: an integer \(5\) is a count"):
        run.rethreshold(5)
    with pytest.raises(ConfigError, match=r"rethreshold: pairs\.threshold: a share must lie in"):
        run.rethreshold(1.5)
    with pytest.raises(ConfigError, match=r"rethreshold: pairs\.threshold: Input should be a valid number, got '0\.9'"):
        run.rethreshold("0.9")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"diff: expected a run, got str; nddup\.open opens the folder of one"):
        run.diff("run")  # type: ignore[arg-type]


def test_a_version_of_a_repository_is_refused(tmp_path: Path) -> None:
    """A version of a repository is refused: its keep-list may depend on earlier versions."""
    run = make_run(tmp_path, {"sketch.size": 30})
    header = tmp_path / "run" / "_RUN.json"
    said = json.loads(header.read_text())
    said["inputs"] |= {"repository": "/pages", "version": 3}
    header.write_text(json.dumps(said))

    with pytest.raises(ConfigError, match="is a version of a repository"):
        run.rethreshold(0.9)


def test_the_texts_are_not_read_again(tmp_path: Path) -> None:
    """The new threshold needs no texts: it works after the inputs are deleted."""
    run = make_run(tmp_path, settings_for("stars"))
    (tmp_path / "pages.jsonl").unlink()

    again = run.rethreshold(0.95)

    assert again.texts is None
    assert 0 < len(again.pairs) < len(run.pairs)
    with pytest.raises(OutputError, match="run in memory"):
        again._ask.read_text("duplicates.txt")  # noqa: SLF001 - what `nddup check` would ask
