"""A report's documents, large clusters and families, compared with the tables of the run."""

import json
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckEngine, DuckRun
from nddup.report import gather as gathering
from nddup.report.content import Content, Family, find_nearest_sets
from nddup.report.data import chunks
from nddup.report.gather import gather
from nddup.settings.load import build_config
from nddup.spark.engine import SparkRun
from tests.counted_rows import once, once_each
from tests.report.made_reports import make_shown

WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a run: 30 texts in a chain, each like its neighbours, two equal ones, one alone and 26 very short ones."""
    folder = tmp_path_factory.mktemp("documents")
    texts = {f"c{number:02}": " ".join([*WORDS[number:], *WORDS[:number]][: 60 - number]) for number in range(30)}
    texts |= {"same": texts["c03"], "alone": " ".join(f"{word}z" for word in WORDS)}
    texts |= {f"s{number:02}": "loading searching no matches" for number in range(26)}
    lines = [json.dumps({"id": name, "url": f"http://x.org/{name}", "text": text}) for name, text in texts.items()]
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    run_locally([str(folder / "a.jsonl")], str(folder / "run"), build_config({}, origin="test"))
    return str(folder / "run")


def test_documents_are_told_as_the_tables_do(finished: str) -> None:
    """For each document the removed duplicates, pairs, nearest documents and clusters equal those of the tables."""
    run = DuckRun(finished)
    tables = {
        name: pq.read_table(f"{finished}/{name}").to_pylist() for name in ("documents", "pairs", "keep", "members")
    }

    shown = gather(run)

    about, names = shown.about(), shown.documents["doc_id"].to_pylist()
    tokens = once_each((row["doc_id"], row["n_tokens"]) for row in tables["documents"])
    near: dict[str, list[tuple[float, int, str]]] = {doc: [] for doc in tokens}
    for row in tables["pairs"]:
        near[row["doc_a"]].append((-row["resemblance"], -row["overlap"], row["doc_b"]))
        near[row["doc_b"]].append((-row["resemblance"], -row["overlap"], row["doc_a"]))
    stands = {doc: [tokens[row["doc_id"]] for row in tables["keep"] if row["duplicate_of"] == doc] for doc in tokens}
    assert names == sorted(tokens)
    assert about.families == sum(map(bool, stands.values()))
    for row in shown.documents.to_pylist():
        doc = row["doc_id"]
        assert (row["stands"], row["longest"]) == (len(stands[doc]), max(stands[doc], default=None))
        assert row["pairs"] == len(near[doc])
    assert about.nearest is not None
    assert [(names[row["document"]], row["other"]) for row in about.nearest.to_pylist()] == [
        (doc, other) for doc in sorted(tokens) for _, _, other in sorted(near[doc])[:8]
    ]
    ranks = {cluster: rank for rank, cluster in enumerate(shown.clusters["cluster_id"].to_pylist())}
    held = sorted((row["doc_id"], ranks[row["cluster_id"]]) for row in tables["members"])
    assert [(names[row["document"]], row["rank"]) for row in about.memberships.to_pylist()] == held
    removed = sorted((row["duplicate_of"], row["doc_id"]) for row in tables["keep"] if row["duplicate_of"])
    assert [(names[row["document"]], row["other"]) for row in about.stands.to_pylist()] == removed


def test_leaders_are_told_as_the_keep_list_does(finished: str, tmp_path: Path) -> None:
    """With few pairs allowed the leaders of the chain are those of the table; else no document leads."""
    path = str(tmp_path / "run")
    run_locally([f"{Path(finished).parent}/a.jsonl"], path, build_config({"pairs": {"max_edges": 3}}, origin="test"))
    led, free = (gather(DuckRun(one)) for one in (path, finished))
    keep = {row["doc_id"]: row["leader"] for row in pq.read_table(f"{path}/keep").to_pylist()}

    documents = led.documents.to_pylist()

    assert 0 < sum(keep.values()) < len(keep)
    assert {row["doc_id"]: row["leader"] for row in documents} == keep
    assert not any(free.documents["leader"].to_pylist())


def test_the_weakest_pair_of_a_large_cluster_is_computed(finished: str) -> None:
    """The weakest pair is the lowest resemblance of all pairs of a cluster, also beyond the matrix."""
    run = DuckRun(finished)
    shown = gather(run)
    largest = shown.clusters.slice(0, 1).to_pylist()[0]
    members = set(largest["members"])
    pairs = run.sql("SELECT doc_a, doc_b, resemblance FROM pairs").to_pylist()
    inside = [row["resemblance"] for row in pairs if {row["doc_a"], row["doc_b"]} <= members]

    columns = dict(chunks(shown))["clusters-0"]

    assert largest["size"] == 26 > shown.matrix_each
    assert (columns["least"][0], columns["least_of"][0]) == (int(min(inside) * 1_000), 0)
    assert columns["longest"][0] == 4


@given(
    parts=st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=2), max_size=5),
    at_once=st.sampled_from([1, 5, 1_000]),
    pairs=st.dictionaries(st.sampled_from(list(combinations("abcdefgh", 2))), st.sampled_from([None, 0.7, 0.8, 0.9])),
)
def test_the_weakest_pair_of_overlapping_sets_is_of_both_ends(
    parts: list[set[str]], at_once: int, pairs: dict[tuple[str, str], float | None]
) -> None:
    """A pair counts in each set that holds both of its documents, and in no other, however many are asked at once."""
    told = DuckEngine("test")
    ends = [pa.array([pair[end] for pair in pairs], pa.string()) for end in (0, 1)]
    told.see("pairs", pa.table([*ends, pa.array(pairs.values(), pa.float64())], ["doc_a", "doc_b", "resemblance"]))
    rows = [(number, name) for number, part in enumerate(parts) for name in part]
    columns = [pa.array([row[0] for row in rows], pa.int32()), pa.array([row[1] for row in rows], pa.string())]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering, "PAIRS_AT_ONCE", at_once)
        found = gathering.find_weakest(told, pa.table(columns, ["part", "doc_id"])).to_pylist()

    within = [[value for pair, value in pairs.items() if part.issuperset(pair)] for part in parts]
    known = [[value for value in values if value is not None] for values in within]
    assert found == [
        {"rank": number, "pairs": len(values), "estimated": len(some), "least": min(some, default=None)}
        for number, (values, some) in enumerate(zip(within, known, strict=True))
        if values
    ]


def test_the_graph_of_a_family_has_its_pairs(finished: str) -> None:
    """The graph's nodes are the documents of overlapping clusters, and its edges are their rows of `pairs`."""
    run = DuckRun(finished)
    shown = gather(run)
    pairs = once((row["doc_a"], row["doc_b"]) for row in run.sql("SELECT doc_a, doc_b FROM pairs").to_pylist())

    made = dict(chunks(shown))["families-0"]

    assert len(made) == len(shown.families) >= 1
    for family in made:
        nodes = [node[0] for node in family["nodes"]]
        edges = family["edges"]
        drawn = once(tuple(sorted((nodes[edges[at]], nodes[edges[at + 1]]))) for at in range(0, len(edges), 3))
        assert drawn == {pair for pair in combinations(sorted(nodes), 2) if pair in pairs}
        for rank, place in zip(family["ranks"], range(len(family["ranks"])), strict=True):
            members = shown.clusters["members"][rank].as_py()
            assert sorted(members) == sorted(node[0] for node in family["nodes"] if place in node[3])


def test_a_report_of_spark_says_the_same(finished: str, spark: SparkSession) -> None:
    """Every table of the content is equal on Spark and in the embedded engine."""
    local, on_spark = gather(DuckRun(finished)), gather(SparkRun(spark, finished))

    for name in ("weakest", "edges", "documents", "listed", "cells", "clusters"):
        assert getattr(local, name).to_pylist() == getattr(on_spark, name).to_pylist(), name
    for here, there in zip(local.about()[:-1], on_spark.about()[:-1], strict=True):
        assert here.to_pylist() == there.to_pylist()
    assert local.about().families == on_spark.about().families > 1


def test_bounds_leave_out_what_is_in_no_cluster_first(finished: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound on documents leaves out those in no cluster first; a bound on pairs leaves out the nearest documents."""
    whole = gather(DuckRun(finished))
    listed = {whole.documents["doc_id"][row].as_py() for row in whole.listed["document"].to_pylist()}
    monkeypatch.setattr(gathering, "MOST_DOCUMENTS", len(listed))
    monkeypatch.setattr(gathering, "MOST_PAIRS", 1)

    shown = gather(DuckRun(finished))

    assert once(shown.documents["doc_id"].to_pylist()) == listed
    removed_for = pq.read_table(f"{finished}/keep", columns=["duplicate_of"])["duplicate_of"].to_pylist()
    monkeypatch.setattr(gathering, "MOST_DOCUMENTS", 2)
    few = gather(DuckRun(finished))  # the listed ones are never left out
    assert (len(few.documents), few.about().families) == (len(listed), len({*removed_for} - {None}))
    assert shown.about().nearest is None
    assert dict(chunks(shown))["nearest-0"] is None
    assert dict(chunks(shown))["summary"]["documents"]["all"] == len(listed) + 1


@given(sets=st.lists(st.sets(st.integers(0, 5), min_size=2).map(sorted), max_size=8))
def test_sets_are_compared_with_all_before_them(sets: list[list[int]]) -> None:
    """For each set the earlier set that shares most members is found, or none if nothing is shared."""
    found = find_nearest_sets([Family("a", range(len(sets)), 6, [])], sets)

    for rank, members in enumerate(sets):
        shared = [(len({*members} & {*sets[other]}), -other) for other in range(rank)]
        most = max(shared, default=(0, 0))
        assert found.get(rank) == ((-most[1], most[0]) if most[0] else None)


def test_settings_that_differ_and_short_texts_are_told() -> None:
    """A changed setting is shown with its default, others without; clusters of short texts are counted."""
    shown = make_shown([[("a", None, ""), ("b", None, "")]])
    shown.metrics.settings["pairs"]["threshold"] = 0.5

    summary = dict(chunks(_with_tokens(shown, 4)))["summary"]

    assert [one for one in summary["settings"] if len(one) > 2] == [["pairs.threshold", "0.5", "0.7"]]
    assert summary["short"] == {"tokens": 20, "clusters": 1, "largest": 2, "min_tokens": 0}


def _with_tokens(shown: Content, tokens: int) -> Content:
    place = shown.documents.column_names.index("n_tokens")
    documents = shown.documents.set_column(place, "n_tokens", pa.array([tokens] * len(shown.documents), pa.int32()))
    return Content(**{**vars(shown), "documents": documents})


def test_sites_and_sources_are_counted() -> None:
    """Sites and sources are counted, the most frequent first; ports and logins are no part of a site."""
    urls = ["http://a.example/1", "https://me:pw@A.example:81/2", "mailto:x"]
    shown = make_shown([[(str(number), url, "") for number, url in enumerate(urls)]])

    found = dict(chunks(shown))["summary"]["documents"]

    assert found["sites"] == [["a.example", 2], ["elsewhere.example", 1]]
    assert found["sources"] == [["pages.xml", 3], ["other.xml", 1]]
