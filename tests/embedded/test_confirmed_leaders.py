"""Components with too many candidates, where texts confirm pairs: the keep-list is that of the whole pair graph."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.checking.check_run import check_run
from nddup.embedded import confirm, match, steps
from nddup.embedded.run import run_locally
from nddup.embedded.workers import Workers
from nddup.engines.duck import DuckRun
from nddup.matching.confirm_texts import SetRule
from nddup.mining import family_join
from nddup.settings.load import build_config
from tests.counted_rows import once_each
from tests.embedded.confirmed_texts import draw_together, find_confirmed, keep_longest
from tests.embedded.drawn_collections import connect
from tests.embedded.test_one_task import texts_of
from tests.samples_by_night import every, first


@pytest.mark.parametrize("confirm", first(1, ["edit", "resemblance"]))
@pytest.mark.parametrize("limits", every(2, [{"max_edges": 1}, {"max_edges": 3}, {"max_edges": 2, "max_postings": 2}]))
def test_components_given_by_leaders(limits: dict[str, int], confirm: str, tmp_path: Path) -> None:
    """Confirmed leaders give the keep-list by definition, all pairs with a kept end, and clusters of listed pairs only.

    With few postings, the families are those of heavy sketches, whose components are counted during the search.
    """
    case = draw_together(range(30, 42))._replace(confirm=confirm)
    chosen = {**case.settings, "pairs": {**case.settings["pairs"], **limits}, "output": {"report": False}}
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in case.texts.items()]
    (tmp_path / "texts.jsonl").write_text("".join(lines))

    run_locally([str(tmp_path / "texts.jsonl")], str(tmp_path / "run"), build_config(chosen, origin="test"))

    tables = {name: pq.read_table(tmp_path / "run" / name).to_pylist() for name in ("documents", "pairs", "clusters",
                                                                                    "keep")}  # fmt: skip
    pairs = find_confirmed(case, once_each((row["doc_id"], row) for row in tables["documents"]))
    keep = once_each((row["doc_id"], row["duplicate_of"]) for row in tables["keep"])
    assert keep == keep_longest(case, pairs)

    measure = "edit" if confirm == "edit" else "resemblance"
    listed = once_each(((row["doc_a"], row["doc_b"]), row[measure]) for row in tables["pairs"])
    assert listed.items() <= {pair: float(share) for pair, share in pairs.items()}.items()
    kept = {name for name, leader in keep.items() if leader is None}
    assert {pair for pair in pairs if kept & set(pair)} <= listed.keys()

    led = [row for row in tables["clusters"] if row["coverage"] == "documents"]
    assert led
    assert all(pair in listed for row in tables["clusters"] for pair in combinations(row["members"], 2))
    assert all(kept & set(row["members"]) for row in led)
    assert {name for pair in pairs for name in pair} <= {name for row in tables["clusters"] for name in row["members"]}

    report = check_run(DuckRun(str(tmp_path / "run")))
    assert report.is_sound, report.text()


@pytest.mark.parametrize("held", [0, 100])
def test_a_text_that_no_candidate_needs_is_near_none(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes whose texts were not read, because no candidate of theirs can be confirmed, are not taken for others."""
    monkeypatch.setattr(confirm, "FAMILY_HELD", held)
    values = np.array([1, 2, 3, 1, 2, 3, 4], np.uint64)
    read = confirm.Confirmer(
        np.array([2, 5], np.int32), [confirm.Row(values, 0, 3), confirm.Row(values, 3, 7)], SetRule(3, 4)
    )

    compare = read.of_family(np.array([2, 3, 5, 9])).confirm

    assert compare(0, np.array([1, 2, 3])).is_near.tolist() == [False, True, False]
    assert not compare(1, np.array([0, 2])).is_near.any()
    of_none = confirm.Confirmer(read.nodes[:0], [], read.rule).of_family(np.array([2, 3]))
    assert not of_none.confirm(0, np.array([1])).is_near


@pytest.mark.parametrize("held", [0, 1 << 24])
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    max_edges=st.integers(1, 12),
    max_postings=st.sampled_from([2, 10_000]),
    crowd=st.sampled_from([0, 3, 1 << 18]),
)
def test_only_pairs_count(held: int, seed: int, max_edges: int, max_postings: int, crowd: int) -> None:
    """A component has leaders if more than `max_edges` candidates are pairs, however many there are; else all its pairs
    are listed: by its shingles, its sketches or both, with candidates counted or not.
    """
    case = draw_together(range(seed, seed + 6))._replace(confirm="resemblance")
    limits = {"max_edges": max_edges, "max_postings": max_postings}
    config = build_config({**case.settings, "pairs": {**case.settings["pairs"], **limits}}, origin="test")
    patches = {(family_join, "FAMILY_HELD"): held, (match, "CROWD"): crowd, (match, "OF_NODE"): 0 if crowd else 1}
    texts = texts_of(case.texts)
    with Workers(2) as workers, pytest.MonkeyPatch.context() as patch:
        for (module, name), value in patches.items():
            patch.setattr(module, name, value)
        sketched = steps.sketch(texts, config, workers)
        paired = steps.pair(sketched.documents, config, workers, texts)

    rows = sketched.documents.to_pylist()
    group_of = once_each((row["doc_id"], row["group"]) for row in rows)
    confirmed = find_confirmed(case, once_each((row["doc_id"], row) for row in rows))
    near = {frozenset((group_of[a], group_of[b])) for a, b in confirmed if group_of[a] != group_of[b]}
    components = connect(sorted({name for pair in near for name in pair}), near)
    large = {name for names in components if sum(pair <= names for pair in near) > max_edges for name in names}
    assert {rows[place]["doc_id"] for place in paired.led.nodes} == large

    ends = zip(paired.pairs["doc_a"].to_pylist(), paired.pairs["doc_b"].to_pylist(), strict=True)
    found = {frozenset((group_of[a], group_of[b])) for a, b in ends}
    assert {pair for pair in found if len(pair) == 2 and not pair <= large} == {p for p in near if not p <= large}
    assert {pair for pair in found if pair <= large and len(pair) == 2} <= near
