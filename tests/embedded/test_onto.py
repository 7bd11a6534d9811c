"""A run onto a finished run has the tables of one run over a folder that holds the batches of both."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.checking.check_run import check_run
from nddup.embedded.old_run import NO_NODE, Old, StoredShingles, find_fault
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError, OutputError
from nddup.settings.load import build_config
from nddup.stages import inputs_found
from nddup.storage import local_folder
from tests.finished_runs import sorted_tables, write_rows
from tests.run.crawls import Made, write_crawl
from tests.samples_by_night import first

Settings = Mapping[str, Mapping[str, Any]]

DRAWN: list[Settings] = [
    {},
    {"keep": {"max_lost": 0.1}},
    {"keep": {"same": ["lang"], "ledger": ["lang", "score", "nddup_source"], "policy": ["lang=b,a", "-score:number"]}},
    {"pairs": {"max_edges": 3}},
    {"pairs": {"max_postings": 3}},
    {"pairs": {"max_postings": 2, "max_edges": 4}},
    {"pairs": {"max_edges": 2}, "keep": {"max_lost": 0.1, "same": ["lang"], "ledger": ["score", "lang"]}},
    {"clusters": {"mode": "partition"}},
    {"pairs": {"confirm": "none"}, "sketch": {"size": 16}},
    {"sketch": {"size": 16}, "shingle": {"length": 2}},
    {"sketch": {"kind": "mod-m", "modulus": 3}, "pairs": {"measure": "containment", "threshold": 0.8},
     "clusters": {"mode": "partition"}},
    {"keep": {"policy": "longest"}, "pairs": {"threshold": 0.5}},
]  # fmt: skip


def draw_batch(chance: random.Random, texts: list[list[str]], path: Path) -> None:
    """Write records: near-copies of a few texts, some with the id of another, some without, one that is none.

    All but the first may lack values.
    """
    rows = list[dict[str, Any]]()
    for _ in range(chance.randint(1, 9)):
        words = list(chance.choice(texts))
        for _ in range(chance.choice([0, 0, 0, 1, 2, 4])):
            words[chance.randrange(len(words))] = str(chance.random())
        row = {"text": " ".join(words[: chance.choice([len(words), len(words), 2, 0])]), "lang": "a", "score": 7}
        if rows:
            row |= {"lang": chance.choice(["a", "b", None]), "score": chance.choice([None, 2, 10.5, "30", "2024-05"])}
        if chance.random() < 0.8:
            row["id"] = f"d{chance.randrange(40)}"
        rows.append(row)
    path.parent.mkdir(parents=True)
    write_rows(path, rows)
    if chance.random() < 0.3:
        with path.open("a", encoding="utf-8") as file:
            file.write("{\n")


def run(  # noqa: PLR0913 - of a run
    inputs: list[Path],
    output: Path,
    settings: Settings,
    *,
    onto: str | None = None,
    batch: str | None = None,
    without: str | None = None,
) -> None:
    quiet = {"output": {"report": False, "onto": True}, "local": {"processes": 1}, "input": {"max_rejects": None}}
    config = build_config({**quiet, **settings}, origin="test")
    run_locally([str(path) for path in inputs], str(output), config, onto=onto, batch=batch, without=without)


FOLLOWING = {"pairs", "clusters", "members", "keep", "false_components", "families"}


def make_history(folder: Path, seed: int, settings: Settings, nights: int) -> None:
    """Compare each night with a fresh run; those that take documents out also with one in which they never were."""
    chance = random.Random(seed)  # noqa: S311
    texts = [[f"{kind}{n}" for n in range(chance.choice([12, 30, 260]))] for kind in "vwxyz"]
    onto, gone = None, set[str]()
    for night in range(nights):
        name, without = f"night-{night}", None
        draw_batch(chance, texts, folder / "in" / name / "a.jsonl")
        run([folder / "in"], folder / f"fresh-{night}", settings)
        due = sorted_tables(folder / f"fresh-{night}")
        if onto and chance.random() < 0.5:
            ids = pq.read_table(folder / f"fresh-{night}" / "documents")["doc_id"].to_pylist()
            out = set(chance.sample(ids, min(len(ids) - 1, chance.choice([1, 2, 6]))))
            gone |= out if set(ids) - gone - out else set()
            out &= gone
            without = str(folder / "out.txt")
            Path(without).write_text("".join(f"{one}\n" for one in out), encoding="utf-8")
        if gone:
            leave_out(folder, night, gone)
            with pytest.MonkeyPatch.context() as patch:  # all that had a value may be gone
                patch.setattr(inputs_found, "require_policy", lambda *_, **__: None)
                run([folder / "left" / f"{night}"], folder / f"left-{night}", settings)
            due = {key: rows for key, rows in sorted_tables(folder / f"left-{night}").items() if key in FOLLOWING}
        run([folder / "in" / name], folder / name, settings, onto=onto, batch=name, without=without)
        onto = str(folder / name)
        made = sorted_tables(folder / name)
        assert {key: made[key] for key in due} == due, f"{name} of seed {seed}"


def leave_out(folder: Path, night: int, gone: set[str]) -> None:
    """Write the documents of a fresh run again under the ids that they have there, without some."""
    rows = pq.read_table(folder / f"fresh-{night}" / "documents", columns=["doc_id", "source", "record"]).to_pylist()
    for source in {row["source"] for row in rows}:
        lines = (folder / "in" / source).read_text(encoding="utf-8").splitlines()
        of = [row for row in rows if row["source"] == source and row["doc_id"] not in gone]
        target = folder / "left" / str(night) / source
        target.parent.mkdir(parents=True)
        write_rows(target, [{**json.loads(lines[row["record"] - 1]), "id": row["doc_id"]} for row in of])


@pytest.mark.parametrize("number", first(2, [5, 6, 10, 0, 1, 2, 3, 4, 7, 8, 9, 11]))
def test_nights_have_the_tables_of_one_run(tmp_path: Path, number: int) -> None:
    make_history(tmp_path, number, DRAWN[number], 3)


def draw_crawl(chance: random.Random, texts: list[list[str]], made: list[Made]) -> list[Made]:
    """
    Return captures of near-copies of a few texts, half of them revisits: by digest, by id, by address and date.

    What a revisit names may come before it, behind it, in another batch, under the id of another record, be a revisit
    itself, or nothing.
    """
    drawn = list[Made]()
    for _ in range(chance.randint(1, 8)):
        words = list(chance.choice(texts))
        for _ in range(chance.choice([0, 0, 0, 1, 3])):
            words[chance.randrange(len(words))] = str(chance.random())
        date = f"20{chance.randrange(10, 30)}-01-0{chance.randrange(1, 9)}T00:00:00Z"
        name, uri = f"r{chance.randrange(60)}", f"http://h{chance.randrange(4)}.example/"
        one = Made(name, uri, " ".join(words), date)
        if chance.random() < 0.5:
            of = chance.choice([*made, *drawn, one])
            more = [
                "",
                f"WARC-Refers-To: <urn:x:{of.name}>\r\n",
                f"WARC-Refers-To-Target-URI: {of.uri}\r\nWARC-Refers-To-Date: {of.date}\r\n",
            ]
            text = chance.choice([of.text, of.text, "another"])
            one = Made(name, uri, text, date, kind="revisit", more=chance.choice(more))
        drawn.append(one)
    return drawn


def make_crawls(folder: Path, seed: int, settings: Settings) -> None:
    """Compare each night of a crawl with a fresh run."""
    chance = random.Random(seed)  # noqa: S311
    texts = [[f"{kind}{n}" for n in range(chance.choice([12, 30, 260]))] for kind in "vwxyz"]
    onto, made = None, list[Made]()
    for night in range(3):
        name = f"night-{night}"
        made += (drawn := draw_crawl(chance, texts, made))
        write_crawl(folder / "in" / name, drawn)
        run([folder / "in"], folder / f"fresh-{night}", settings)
        run([folder / "in" / name], folder / name, settings, onto=onto, batch=name)
        onto = str(folder / name)
        assert sorted_tables(folder / name) == sorted_tables(folder / f"fresh-{night}"), f"{name} of seed {seed}"


CRAWLED = [settings for settings in DRAWN if "same" not in settings.get("keep", {})]


@pytest.mark.parametrize("seed", first(2, [0, 11, 3, 8]))
def test_nights_of_a_crawl_have_the_tables_of_one_run(tmp_path: Path, seed: int) -> None:
    """What a revisit repeats may come, or be hidden by another record of its name, in any night."""
    make_crawls(tmp_path, seed, CRAWLED[seed % len(CRAWLED)])


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_crawls(tmp_path: Path, seed: int) -> None:
    make_crawls(tmp_path, seed, CRAWLED[seed % len(CRAWLED)])


def test_a_night_of_pages_goes_onto_pages(tmp_path: Path) -> None:
    """A run of pages notes the files whose markup it stripped, or whose charset it guessed, with their numbers."""
    words = [f"word{n}" for n in range(40)]
    for name in ("a", "b"):
        page = f"<html><body><p>{' '.join(words)} {name}</p><p>\u00e9t\u00e9</p></body></html>"
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "page.html").write_text(page, encoding="latin-1")
        write_rows(tmp_path / "in" / name / "rows.jsonl", [{"id": f"d{name}", "text": page}])
    run([tmp_path / "in"], tmp_path / "fresh", {})
    run([tmp_path / "in" / "a"], tmp_path / "old", {}, batch="a")

    run([tmp_path / "in" / "b"], tmp_path / "new", {}, onto=str(tmp_path / "old"), batch="b")

    assert json.loads((tmp_path / "old" / "metrics.json").read_text())["stages"]["sketch"]["stripped_records"]
    assert sorted_tables(tmp_path / "new") == sorted_tables(tmp_path / "fresh")


@pytest.mark.parametrize("mode", first(1, ["all", "partition"]))
def test_a_night_beside_a_family_at_its_limits_is_sound(tmp_path: Path, mode: str) -> None:
    """Counts that no table tells are those of the run before, where its families did not change."""
    words = [f"w{n}" for n in range(80)]
    near = [{"id": f"d{n}", "text": " ".join([*words[: 70 + n % 9], f"x{n}"])} for n in range(9)]
    settings: Settings = {"pairs": {"max_edges": 2}, "keep": {"max_lost": 0.02}, "clusters": {"mode": mode}}
    onto = None
    for name, rows in {"a": near, "b": [{"id": "z", "text": "a text of its own"}]}.items():
        source = tmp_path / "in" / name / "a.jsonl"
        source.parent.mkdir(parents=True)
        run([write_rows(source, rows).parent], tmp_path / name, settings, onto=onto, batch=name)
        onto = str(tmp_path / name)
    before, after = (json.loads((tmp_path / name / "metrics.json").read_text())["stages"] for name in "ab")
    for stage, name in (("pairs", "limited"), ("clusters", "led_components"), ("clusters", "largest_component")):
        assert 0 < after[stage][name] == before[stage][name], name
    report = check_run(DuckRun(onto or ""))
    assert report.is_sound, report.text()


def test_a_group_is_found_by_any_of_its_documents(tmp_path: Path) -> None:
    """A later document of the same text may name the group, by a lesser id, and an earlier one may leave."""
    words = " ".join(f"w{n}" for n in range(260))
    nights = {"a": {"m1": words, "m2": f"{words} more"}, "b": {"a0": words}, "c": {"z": "a text of its own"}}
    onto, gone = None, tmp_path / "gone.txt"
    gone.write_text("m1\n", encoding="utf-8")
    for name, texts in nights.items():
        rows = [{"id": one, "text": text} for one, text in texts.items()]
        (tmp_path / "in" / name).mkdir(parents=True)
        source = write_rows(tmp_path / "in" / name / "a.jsonl", rows)
        without = str(gone) if name == "c" else None
        run([source.parent], tmp_path / name, {}, onto=onto, batch=name, without=without)
        onto = str(tmp_path / name)
    pairs = pq.read_table(tmp_path / "c" / "pairs", columns=["doc_a", "doc_b"]).to_pylist()
    assert pairs == [{"doc_a": "a0", "doc_b": "m2"}]


def test_what_left_an_archive_stands_for_no_other_document(tmp_path: Path) -> None:
    """The shingles of a document that is taken out are nobody's, also where revisits are settled again."""
    texts = {name: " ".join(f"{name}{n}" for n in range(300)) for name in ("first", "second")}
    made = [Made(name, f"http://{name}.example/", text, "2020-01-01T00:00:00Z") for name, text in texts.items()]
    made += [made[1]._replace(name="copy", kind="revisit"), made[1]._replace(name="again", kind="revisit")]
    near = made[0]._replace(name="near", uri="http://near.example/", text=f"{texts['first']} and more")
    gone = tmp_path / "gone.txt"
    gone.write_text("".join(f"urn:x:{one.name}\n" for one in made[1:]), encoding="utf-8")
    write_crawl(tmp_path / "in" / "a", made)
    run([tmp_path / "in" / "a"], tmp_path / "old", {}, batch="a")
    write_crawl(tmp_path / "in" / "b", [near])
    run([tmp_path / "in" / "b"], tmp_path / "new", {}, batch="b", onto=str(tmp_path / "old"), without=str(gone))

    pairs = pq.read_table(tmp_path / "new" / "pairs", columns=["doc_a", "doc_b"]).to_pylist()
    assert pairs == [{"doc_a": "urn:x:first", "doc_b": "urn:x:near"}]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_histories(tmp_path: Path, seed: int) -> None:
    make_history(tmp_path, seed, DRAWN[seed % len(DRAWN)], 2 + seed % 5)


@pytest.mark.parametrize(
    ("name", "message"),
    [(None, "--as NAME"), ("2026-10", "must come after"), ("2026-11-27", "already"), ("_x", "skipped"), ("a/b", "one")],
)
def test_a_batch_comes_after_all_others(tmp_path: Path, name: str | None, message: str) -> None:
    row = {"id": "a", "text": "some words of a text"}
    source = write_rows(tmp_path / "a.jsonl", [row])
    run([source], tmp_path / "old", {}, batch="2026-11-27")
    with pytest.raises(ConfigError, match=message):
        run([source], tmp_path / "new", {}, onto=str(tmp_path / "old"), batch=name)


def test_records_are_told_by_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What records said of themselves may be stored in any order, as Spark stores it."""
    for name in "ab":
        rows = [{"id": f"{name}#1", "text": f"an id like a name that is made up, {name}"}]  # so all are settled again
        rows += [{"text": f"a text without id, {name}"}]
        rows += [{"id": f"d{n % 2}", "text": f"some words of text {name} {n}"} for n in range(6)]
        (tmp_path / "in" / name).mkdir(parents=True)
        write_rows(tmp_path / "in" / name / "a.jsonl", rows)
    run([tmp_path / "in"], tmp_path / "fresh", {})
    run([tmp_path / "in" / "a"], tmp_path / "a", {}, batch="a")
    [file] = (tmp_path / "a" / "_stages" / "given").glob("*.parquet")
    given = pq.read_table(file)
    assert len(given) == 5
    pq.write_table(given.take(list(reversed(range(5)))), file)
    monkeypatch.setattr(local_folder.LocalFolder, "require_same", lambda *_: None)  # as if it had been written so
    run([tmp_path / "in" / "b"], tmp_path / "b", {}, onto=str(tmp_path / "a"), batch="b")

    assert sorted_tables(tmp_path / "b") == sorted_tables(tmp_path / "fresh")


def test_a_run_that_kept_no_revisits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version noted a copy as a document alone: the next night would take it for a record of its own."""
    page = Made("a", "http://a.example/", "some words of a page", "2020-01-01T00:00:00Z")
    write_crawl(tmp_path / "in", [page, page._replace(name="b", kind="revisit")])
    run([tmp_path / "in"], tmp_path / "old", {}, batch="a")
    assert Old.open(str(tmp_path / "old")).has_revisits

    [file] = (tmp_path / "old" / "_stages" / "given").glob("*.parquet")
    pq.write_table(pq.read_table(file).slice(0, 0), file)
    monkeypatch.setattr(local_folder.LocalFolder, "require_same", lambda *_: None)  # as if it had been written so
    with pytest.raises(OutputError, match="earlier version"):
        Old.open(str(tmp_path / "old"))


CHANGES = {
    "candidates": {"node_a": -1, "node_b": 10**9},
    "shingles": {"node": 77},
}


@pytest.mark.parametrize(("name", "column"), [(name, column) for name, of in CHANGES.items() for column in of])
def test_a_foreign_run_leads_nowhere(tmp_path: Path, name: str, column: str) -> None:
    """A stored number that no run writes is refused, whatever the digests say."""
    rows = [{"id": f"d{n}", "text": " ".join(f"w{k}" for k in range(250)) + f" {n}"} for n in range(6)]
    run([write_rows(tmp_path / "a.jsonl", rows)], tmp_path / "old", {}, batch="a")
    old = Old.open(str(tmp_path / "old"))
    stored = {**old.stored, "shingles": old.table("shingles")}
    assert find_fault(old.documents, stored) is None
    table = stored[name]
    assert len(table), name
    values = table[column].to_pylist()
    values[len(values) // 2] = CHANGES[name][column]
    changed = table.set_column(table.schema.get_field_index(column), column, pa.array(values, table[column].type))
    assert find_fault(old.documents, {**stored, name: changed})


def test_stored_shingles_are_read_past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wanted rows are those of the whole table, under the names of their nodes, however few are read at a time."""
    rows = [{"id": f"d{n}", "text": " ".join(f"w{k}" for k in range(250)) + f" {n}"} for n in range(7)]
    run([write_rows(tmp_path / "a.jsonl", rows)], tmp_path / "old", {}, batch="a")
    old = Old.open(str(tmp_path / "old"))
    table, nodes = old.table("shingles"), old.shingles.nodes
    assert len(nodes) == 7
    is_wanted = np.array([False, True, True, False, False, True, False])

    for size in (1, 2, 3, 7):
        monkeypatch.setattr(local_folder, "ROWS_SCANNED", size)
        assert old.shingles.take(is_wanted).equals(table.filter(pa.array(is_wanted))), size
    renamed = StoredShingles(np.where(is_wanted, nodes + 1, NO_NODE), old.shingles.scan).take(is_wanted)
    assert renamed["node"].to_pylist() == (nodes[is_wanted] + 1).tolist()
    assert not len(old.shingles.take(np.zeros(7, np.bool_)))

    [file] = (tmp_path / "old" / "_stages" / "shingles").glob("*.parquet")
    monkeypatch.setattr(local_folder.LocalFolder, "require_same", lambda *_: None)  # its digest is its writer's own
    [clusters] = (tmp_path / "old" / "clusters").glob("*.parquet")
    lacking = pa.array([[None]] * len(old.table("clusters")), pa.list_(pa.string()))
    pq.write_table(old.table("clusters").drop_columns("members").append_column("members", lacking), clusters)
    with pytest.raises(OutputError, match="holds what nddup does not write"):
        old.table("clusters")
    pq.write_table(table.set_column(1, "shingles", pa.nulls(7, table["shingles"].type)), file)
    with pytest.raises(OutputError, match="holds what nddup does not write"):
        old.shingles.take(is_wanted)
