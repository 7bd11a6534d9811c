"""A finished run as an object: its tables, SQL, documents and clusters, and their display in a notebook."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, get_type_hints

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import nddup
from nddup.api import views
from nddup.api.run_object import Run
from nddup.embedded.run import run_locally
from nddup.errors import CapacityError, ConfigError, OutputError
from nddup.ground.metrics import RunMetrics
from nddup.report.for_review import MOST_WORDS, side_by_side
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.tables import RESULTS
from tests.counted_rows import once, once_each
from tests.finished_runs import write_rows
from tests.places import ROOT
from tests.results.kind_runs import texts

SETTINGS: dict[str, Any] = {"sketch": {"size": 30}, "shingle": {"length": 2}, "pairs": {"threshold": 0.6}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run over texts, one with an id and an address that look like HTML, and a repeated id."""
    place = tmp_path_factory.mktemp("opened")
    rows = [{"id": name, "text": text} for name, text in texts().items()]
    rows += [{"id": "<b>", "text": texts()["f0v0"], "url": "http://x/<i>"}, {"id": "f0v0", "text": texts()["f0v0"]}]
    pages = write_rows(place / "pages.jsonl", rows)
    run_locally([str(pages)], str(place / "run"), build_config(SETTINGS, origin="test"))
    return place / "run"


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """Open the run."""
    return nddup.open(str(folder))


def test_tables_are_those_of_the_folder(folder: Path, run: Run) -> None:
    """Tables have every row and declared type, as Arrow, as pandas, and through Arrow's stream."""
    for name, table in RESULTS.items():
        rows = pq.read_table(folder / name)
        own = getattr(run, name)
        assert own.schema == table.arrow
        assert sorted(map(repr, own.to_pylist())) == sorted(map(repr, rows.to_pylist()))
        assert len(own) == len(own.to_pandas()) == len(pa.table(own)) == rows.num_rows
    assert run.pairs.to_table(["doc_a"], ds.field("overlap") < 0).num_rows == 0
    assert run.keep.to_pandas(["kept"]).columns.tolist() == ["kept"]
    assert run.pairs.head(2).num_rows == 2


def test_metrics_and_settings_are_typed(folder: Path, run: Run) -> None:
    """Metrics and settings have types and the values of the file, by attribute and by key."""
    said = json.loads((folder / "metrics.json").read_text())

    assert isinstance(run.metrics, RunMetrics)
    assert run.metrics.dump() == said
    assert run.metrics["stages"]["pairs"]["candidates"] == said["stages"]["pairs"]["candidates"]
    assert "recipe" in run.metrics
    assert "nothing" not in run.metrics
    assert run.settings.pairs.threshold == 0.6
    with pytest.raises(KeyError, match="dump"):
        _ = run.metrics["dump"]


def test_nothing_is_read_before_it_is_asked_for(folder: Path, tmp_path: Path) -> None:
    """Opening a run reads no table: a missing table is an error only when it is read."""
    copy = tmp_path / "run"
    copy.mkdir()
    for path in folder.rglob("*"):
        if path.is_file():
            (copy / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            (copy / path.relative_to(folder)).write_bytes(path.read_bytes())
    run = nddup.open(str(copy))
    for path in (copy / "pairs").iterdir():
        path.unlink()

    assert len(run.keep) == len(texts()) + 1
    with pytest.raises(OutputError, match="is missing"):
        run.pairs.to_table()


def test_sql_over_all_tables_and_those_of_the_caller(run: Run) -> None:
    """SQL can join Arrow and pandas tables of the caller under the given names."""
    own = run.sql(
        "SELECT k.doc_id FROM keep AS k JOIN mine USING (doc_id)", mine=pd.DataFrame({"doc_id": ["f0v0", "x"]})
    )
    other = run.sql("SELECT count(*) AS n FROM mine", mine=run.pairs)

    assert own.to_pylist() == [{"doc_id": "f0v0"}]
    assert other.to_pylist() == [{"n": len(run.pairs)}]
    assert run.sql("SELECT * FROM pairs WHERE false").column_names == RESULTS["pairs"].names


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT nope FROM pairs", 'sql: Binder Error: Referenced column "nope"'),
        ("SELECT * FROM pears", "sql: Catalog Error: Table with name pears does not exist"),
        ("selec", "sql: Parser Error: syntax error"),
        ("CREATE TABLE x AS SELECT 1", "sql: expected one SELECT"),
        ("SELECT 1; SELECT 2", "sql: expected one SELECT"),
        ("COPY pairs TO '/tmp/x.csv'", "sql: expected one SELECT"),
        ("", "sql: expected one SELECT"),
    ],
)
def test_wrong_queries_are_refused(run: Run, query: str, said: str) -> None:
    """A wrong query is refused with the database's message."""
    with pytest.raises(ConfigError) as caught:
        run.sql(query)

    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_question_that_is_none_harms_no_later_one(run: Run) -> None:
    """A table of the caller does not take the place of one of the run; counts are whole numbers."""
    with pytest.raises(ConfigError, match="sql: keep is a table of the run; give yours another name"):
        run.sql("SELECT * FROM keep", keep=pd.DataFrame({"doc_id": ["f0v0"]}))
    assert run.sql("SELECT count(*) AS n FROM keep").to_pylist() == [{"n": len(run.keep)}]
    for wrong in (-1, 2.5, "2", None):
        with pytest.raises(ConfigError, match="closest_calls: expected a number of rows"):
            run.closest_calls(wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="largest_families: expected a number of rows"):
            run.largest_families(wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="sql: expected one SELECT, got NoneType"):
        run.sql(None)  # type: ignore[arg-type]


def test_parts_and_columns_of_a_split_as_they_come(run: Run) -> None:
    """A list of pairs and numbers are parts, thirds are written as fractions, and one column needs no list."""
    expected = run.split({"0": "1/3", "1": "2/3"}, by=["source"]).to_pylist()
    assert run.split([(0, "1/3"), (1, "2/3")], by="source").to_pylist() == expected  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"of nine decimals at most, such as a=.1 or a=1/3, got a=0.333"):
        run.split({"a": 1 / 3, "b": 2 / 3})
    halves = {"a": 0.5, "b": 0.5}
    assert len(run.split(halves, earlier=run.split(halves))) == len(run.documents)
    with pytest.raises(ConfigError, match=r"^split: earlier: expected a table of Arrow, pandas or Polars, got str$"):
        run.split(halves, earlier="out/split")
    with pytest.raises(ConfigError, match=r"^split: earlier: no column doc_id; there are id, part$"):
        run.split(halves, earlier=pa.table({"id": ["a"], "part": ["a"]}))


QUERIES = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/howto/ask-a-run.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_the_questions_of_the_page_have_answers(run: Run, query: str) -> None:
    """Each query of the page runs; only two may have no rows: no file lacks a kept document, no clusters overlap."""
    rows = run.sql(query).to_pylist()

    assert rows or "NOT bool_or(k.kept)" in query or "HAVING count(*) > 1" in query
    assert len(QUERIES) > 9


def test_every_document(folder: Path, run: Run) -> None:
    """The outcome, pairs and clusters of every document are those of the tables."""
    keep = once_each((row["doc_id"], row) for row in pq.read_table(folder / "keep").to_pylist())
    pairs = pq.read_table(folder / "pairs").to_pylist()
    members = pq.read_table(folder / "members").to_pylist()
    for row in pq.read_table(folder / "documents").to_pylist():
        name = row["doc_id"]

        document = run.document(name)

        near = {p["doc_a"] if p["doc_b"] == name else p["doc_b"] for p in pairs if name in (p["doc_a"], p["doc_b"])}
        assert once(pair["other"] for pair in document.pairs.to_pylist()) == near
        own = {member["cluster_id"] for member in members if member["doc_id"] == name}
        assert once(cluster["cluster_id"] for cluster in document.clusters.to_pylist()) == own
        assert document.sketch.tolist() == [value % 2**64 for value in row["sketch"]]
        kept_one = keep[name]["duplicate_of"]
        assert (document.kept, document.duplicate_of) == (keep[name]["kept"], kept_one)
        assert document.why.startswith("removed: " if kept_one else "kept: ")
        assert (kept_one or "kept") in document.why
        assert ("no near-duplicate" in document.why) == (kept_one is None)


def test_every_cluster(folder: Path, run: Run) -> None:
    """A cluster has its members, the preferred one first, and the pairs among them."""
    pairs = pq.read_table(folder / "pairs").to_pylist()
    for row in pq.read_table(folder / "clusters").to_pylist():
        cluster = run.cluster(row["cluster_id"])

        members = cluster.members.to_pylist()
        assert sorted(member["doc_id"] for member in members) == sorted(row["members"])
        assert members[0]["representative"]
        within = {(p["doc_a"], p["doc_b"]) for p in pairs if {p["doc_a"], p["doc_b"]} <= set(row["members"])}
        assert once((pair["doc_a"], pair["doc_b"]) for pair in cluster.pairs.to_pylist()) == within
        assert (cluster.support, cluster.size) == (row["support"], row["size"])


def test_closest_calls(run: Run) -> None:
    """The closest calls are rows of `pairs`: the lowest that share no group of equal sketches, then others."""
    groups = once_each((row["doc_id"], row["group"]) for row in run.documents.to_pylist())
    rows = once_each(((row["doc_a"], row["doc_b"]), row["resemblance"]) for row in run.pairs.to_pylist())
    best: dict[frozenset[str], float] = {}
    for (a, b), resemblance in rows.items():
        if groups[a] != groups[b]:
            best[frozenset((groups[a], groups[b]))] = resemblance

    found = run.closest_calls(5).to_pylist()

    order = sorted(best.items(), key=lambda item: item[1])
    apart: dict[frozenset[str], float] = {}
    for both, resemblance in order:
        if not any(both & other for other in apart):
            apart[both] = resemblance
    others = [resemblance for both, resemblance in order if both not in apart]
    assert [row["resemblance"] for row in found] == sorted([*apart.values(), *others][:5])
    assert all(rows[row["doc_a"], row["doc_b"]] == row["resemblance"] for row in found)


def test_what_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    """An unknown id or cluster, and a folder that is no run, are refused."""
    with pytest.raises(ConfigError, match="document 'nobody': there is none in"):
        run.document("nobody")
    with pytest.raises(ConfigError, match="cluster 'nothing': there is none in"):
        run.cluster("nothing")
    with pytest.raises(OutputError, match="is not a run of nddup"):
        nddup.open(str(tmp_path))


def test_a_table_that_does_not_fit_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that does not fit into memory is refused before it is read; a few of its columns still fit."""
    monkeypatch.setattr(views, "machine_memory", lambda: 5_000)

    with pytest.raises(CapacityError, match=r"documents: may take .* choose columns, to_table\(columns="):
        run.documents.to_pandas()
    assert len(run.documents.to_pandas(["n_tokens"])) == len(run.documents)


def test_everything_looks_like_something_in_a_notebook(run: Run) -> None:
    """Every object has HTML for notebooks, with escaped values and no colours of its own."""
    cluster = run.document("<b>").clusters.to_pylist()[0]["cluster_id"]
    shown = [run, run.pairs, run.document("<b>"), run.cluster(cluster), run.explain_pair("<b>", "f0v1"),
             run.sql("SELECT * FROM documents"), run.rethreshold(0.9)]  # fmt: skip

    for one in shown:
        page = one._repr_html_()
        assert page.startswith("<")
        assert "<b>" not in page
        assert "<i>" not in page
        assert "color" not in page
        assert "0x" not in repr(one)


def test_a_pair_shows_both_texts_and_marks_what_differs(run: Run) -> None:
    """A pair shows both texts with the differing words marked; without stored texts it says so."""
    page = run.explain_pair("f0v0", "f0v1")._repr_html_()

    boxes = page.partition("display:flex")[2].split("<strong>")[1:]
    marked = [re.findall(r"<mark>(.*?)</mark>", box) for box in boxes]
    given_texts = [texts()[name].split() for name in ("f0v0", "f0v1")]
    edited = [place for place, words in enumerate(zip(*given_texts, strict=True)) if len(set(words)) > 1]
    assert [" ".join(side).split() for side in marked] == [[side[place] for place in edited] for side in given_texts]
    assert len(edited) == 4
    assert "did not store both texts" in run.rethreshold(0.6).explain_pair("f0v0", "f0v1")._repr_html_()


def test_long_texts_are_cut_where_they_are_compared() -> None:
    """Long texts are compared up to a limit, and the page says how many words are left."""
    words = [f"w{number}" for number in range(MOST_WORDS + 7)]

    page = side_by_side(("<a>", "b"), (" ".join(words), " ".join(words[:5]).upper()))

    assert "&lt;a&gt;" in page
    assert "… and 7 more words, not compared" in page
    assert page.count("<mark>") == 1
    assert "w0 w1 w2 w3 w4 <mark>w5 w6 " in page


def test_a_small_cluster_has_a_matrix(run: Run) -> None:
    """A small cluster has a matrix with the resemblance of every two members in whole per cent."""
    for row in run.clusters.to_pylist():
        cluster = run.cluster(row["cluster_id"])
        names = [member["doc_id"] for member in cluster.members.to_pylist()]
        page = cluster._repr_html_().partition("resemblance in per cent")[2]

        cells = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in page.split("<tr>")[2:]]
        near = once_each((frozenset((p["doc_a"], p["doc_b"])), p["resemblance"]) for p in cluster.pairs.to_pylist())
        assert [line[0] for line in cells] == [escape(name) for name in names[1:]]
        for place, line in enumerate(cells, 1):
            due = [near[frozenset((names[place], other))] for other in names[:place]]
            assert line[1:] == [str(int(value * 100 + 1e-9)) for value in due]


def test_find_duplicates_gives_the_same_object(run: Run) -> None:
    """`find_duplicates` returns the same object, with tables of the given type."""
    frame = pd.DataFrame({"id": list(texts()), "text": list(texts().values())})

    found = nddup.find_duplicates(frame, **SETTINGS)

    assert isinstance(found.pairs, pd.DataFrame)
    assert found.sql("SELECT count(*) AS n FROM pairs").to_pylist() == [{"n": len(found.pairs)}]
    assert found.explain_pair("f0v0", "f0v1").verdict == run.explain_pair("f0v0", "f0v1").verdict
    assert found.document("copy1").why.startswith("removed: ")


def test_a_section_is_its_class_or_a_mapping(run: Run) -> None:
    """`find_duplicates` takes each section as the class that declares it, too: only what is given counts."""
    sections: dict[str, Any] = {name: field.annotation for name, field in Config.model_fields.items()}
    frame = pd.DataFrame({"id": list(texts()), "text": list(texts().values())})

    found = nddup.find_duplicates(frame, **{name: sections[name](**keys) for name, keys in SETTINGS.items()})

    taken = get_type_hints(nddup.find_duplicates)
    for name in sections.keys() - {"engine", "output", "spark", "against", "passages"}:
        assert taken[name] == sections[name] | Mapping[str, Any] | None
    assert found.settings == run.settings


def test_a_notebook_without_widgets_opens_a_run(folder: Path) -> None:
    """In a kernel without ipywidgets, where DuckDB can draw no bar, a run opens; its folder may be a `Path`."""
    program = (
        "import sys, types; shell = types.SimpleNamespace(config={'IPKernelApp': {}}, kernel=None);"
        "sys.modules['ipywidgets'] = None; sys.modules['IPython'] = types.ModuleType('IPython');"
        "sys.modules['IPython'].get_ipython = lambda: shell;"
        "import pathlib, nddup; print(len(nddup.open(pathlib.Path(sys.argv[1])).sql('SELECT * FROM keep')))"
    )

    found = subprocess.run(
        [sys.executable, "-c", program, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (found.returncode, found.stdout) == (0, f"{pq.read_table(folder / 'keep').num_rows}\n"), found.stderr
