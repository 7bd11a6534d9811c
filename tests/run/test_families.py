"""The table `families`, on either engine: the oracle is its definition on texts and values, in Python.

On Spark with `keep.same`, whose definition is in `test_same_values.py`.
"""

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nddup
from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.settings.load import build_config
from nddup.stages.families import lay_ledgers
from tests.finished_runs import run_over, sorted_tables
from tests.results.damages import rewrite
from tests.run.valued_texts import Row, choose, define_keep, rows_of, shingles, write_texts
from tests.samples_by_night import first

LEDGER = ["licence", "nddup_source", "score", "day"]


def write_valued(folder: Path, seed: int) -> dict[str, Row]:
    """Write the texts with numbers and dates, some missing and some others, and return the records by id."""
    records, draw = write_texts(folder, seed), random.Random(seed)  # noqa: S311 - values
    for row in records.values():
        row["score"] = draw.choice([None, 3, -1, 20, 1.5, "1e1", "+7"] if seed % 3 else [1, "many", 10])
        row["day"] = draw.choice([None, "2024-05-31", "2023-12", "2024-05-31T10:00:00Z"] if seed % 2 else ["", "may"])
    for file in "ab":
        rows = [json.dumps({name: value for name, value in row.items() if name != "file"}) + "\n"
                for row in records.values() if row["file"] == file]  # fmt: skip
        (folder / f"{file}.jsonl").write_text("".join(rows))
    return records


def define_families(records: Mapping[str, Row], stands: Mapping[str, str | None], ledger: Sequence[str]) -> list[Row]:
    """Return the rows of `families` in order of their ids, without those of losses."""
    found = []
    for kept in sorted({kept for kept in stands.values() if kept is not None}):
        family = [records[name] for name, stand in stands.items() if stand == kept]
        own = shingles(records[kept]["text"])
        found.append({
            "doc_id": kept,
            "documents": len(family),
            "equal": sum(shingles(row["text"]) == own for row in family),
            "ledger": [define_values(name, [spell(row, name) for row in family]) for name in ledger],
        })  # fmt: skip
    return found


def spell(row: Row, name: str) -> str | None:
    if name == "nddup_source":
        return f"{row['file']}.jsonl"
    value = row.get(name)
    return value if isinstance(value, str | None) else json.dumps(value)


def define_values(name: str, values: list[str | None]) -> Row:
    counts = Counter(values)
    there = sorted(value for value in counts if value is not None)
    keys: dict[str, Any] = {}
    if all(re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?(e[0-9]+)?", value) for value in there):
        keys = {value: (float(value), value) for value in there}
    elif all(re.fullmatch(r"\d{4}-\d{2}(-\d{2}(T.*)?)?", value) for value in there):
        keys = {value: value for value in there}
    listed = sorted(counts.items(), key=lambda one: (-one[1], one[0] is not None, one[0] or ""))
    return {
        "name": name,
        "values": [{"value": value, "documents": number} for value, number in listed[:100]],
        "distinct": len(counts),
        "least": min(keys, key=keys.__getitem__, default=None),
        "greatest": max(keys, key=keys.__getitem__, default=None),
    }


def require_families(seed: int, folder: Path) -> None:
    """Make a run under drawn settings, compare its families with the definition, and check them."""
    records, run = write_valued(folder / "in", seed), folder / "run"
    settings, said = choose(seed, list(records), folder)
    settings["keep"] |= {"ledger": LEDGER, "same": settings["keep"]["same"] if seed % 4 else None}
    stands = define_keep(records, {**settings, "keep": settings["keep"] | {"same": settings["keep"]["same"] or []}},
                         said)  # fmt: skip
    metrics = run_locally([str(folder / "in")], str(run), build_config(settings, origin="test"))

    keep, found = rows_of(run, "keep"), sorted(rows_of(run, "families"), key=lambda row: row["doc_id"])
    if metrics["stages"]["pairs"]["limited"]:
        stands = {row["doc_id"]: row["doc_id"] if row["kept"] else row["duplicate_of"] for row in keep}
    told = [{name: row[name] for name in ("doc_id", "documents", "equal", "ledger")} for row in found]
    assert told == define_families(records, stands, LEDGER), (seed, settings)
    for row in found:
        replaced = [other for other in keep if other["duplicate_of"] == row["doc_id"]]
        assert row["lost_most"] == max((other["lost"] for other in replaced if other["lost"] is not None), default=None)
        assert row["resemblance_least"] == min((other["resemblance"] for other in replaced), default=None)
    alone = sum(not row["kept"] and row["duplicate_of"] is None for row in keep)
    assert sum(row["documents"] for row in found) == len(records) - alone
    report = check_run(DuckRun(str(run)), steps=["accounting", "families"])
    assert report.is_sound, (seed, report.text())


@pytest.mark.parametrize("seed", first(4, range(8)))
def test_a_family_is_counted_as_defined(seed: int, tmp_path: Path) -> None:
    """With missing values, equal texts, limits of loss, forced documents, guards, leaders and textless documents."""
    require_families(seed, tmp_path)


def test_values_beyond_the_most_frequent_are_counted() -> None:
    """A family of 130 documents lists 100 values and says how many there are; batches of any size give the same."""
    text = " ".join(f"w{word}" for word in range(30))
    rows: list[Row] = [{"id": f"d{at:03}", "text": text, "at": str(at // 2 if at < 50 else at)} for at in range(130)]
    rows.append({"id": "z", "text": "another text of a few words", "at": None})
    run = nddup.find_duplicates(pa.Table.from_pylist(rows), keep={"ledger": ["at"]}, progress=False)
    records = {row["id"]: {**row, "file": ""} for row in rows}
    stands = dict(zip(run.keep["doc_id"].to_pylist(), run.keep["duplicate_of"].to_pylist(), strict=True))
    due = define_families(records, {name: stand or name for name, stand in stands.items()}, ["at"])
    found = [row for row in run.families.to_pylist() if row["doc_id"] == due[0]["doc_id"]]
    assert found[0]["ledger"] == due[0]["ledger"]
    assert (found[0]["ledger"][0]["distinct"], len(found[0]["ledger"][0]["values"])) == (105, 100)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_family_may_lie_in_several_batches(size: int) -> None:
    """The rows of families are laid out alike in batches of any size."""
    rows = [{"stands": f"k{family}", "place": place, "turn": -1, "value": f"v{value}", "n": 1}
            for family in range(5) for place in range(2) for value in range(family + 1)]  # fmt: skip
    whole = pa.Table.from_pylist(rows).combine_chunks()
    found = pa.Table.from_batches(lay_ledgers(iter(whole.to_batches(max_chunksize=size)), columns=("a", "b")))
    assert found.to_pylist() == pa.Table.from_batches(
        lay_ledgers(iter(whole.to_batches()), columns=("a", "b"))).to_pylist()  # fmt: skip
    assert [len(row["ledger"][0]["values"]) for row in found.to_pylist()] == [1, 2, 3, 4, 5]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with families."""
    folder = tmp_path_factory.mktemp("families")
    write_valued(folder / "in", 4)
    settings = {"keep": {"ledger": LEDGER}, "output": {"report": False}}
    run_locally([str(folder / "in")], str(folder / "run"), build_config(settings, origin="test"))
    return folder / "run"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda row: row | {"documents": row["documents"] + 1}, "documents, counted"),
        (lambda row: row | {"equal": 0}, "equal, lost_most or resemblance_least is another"),
        (lambda row: row | {"ledger": [{**row["ledger"][0], "least": "0"}, *row["ledger"][1:]]}, "least 0"),
        (lambda row: row | {"ledger": [{**row["ledger"][0], "distinct": 50}, *row["ledger"][1:]]}, "another name"),
        (lambda row: row | {"ledger": [{**row["ledger"][0], "values": []}, *row["ledger"][1:]]}, "does not list"),
    ],
)
def test_a_wrong_family_is_found(counted: Path, damage: Any, says: str, tmp_path: Path) -> None:  # noqa: ANN401
    """`check` counts the table again."""
    shutil.copytree(counted, tmp_path / "run")

    rewrite(tmp_path / "run", "families", lambda rows: rows.append(damage(rows.pop())))

    report = check_run(DuckRun(str(tmp_path / "run")), steps=["families"])
    assert says in report.text(), report.text()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("seed", "partitions", "max_edges"),
    [(2, 3, 3), *(pytest.param(*case, marks=pytest.mark.nightly) for case in [(7, 1, 10**6), (1, 7, 10**6)])],
)
def test_spark_counts_the_same(spark: SparkSession, seed: int, partitions: int, max_edges: int, tmp_path: Path) -> None:
    """In so many tasks: every table is that of the embedded engine, with guards, forced documents and limits of loss.

    The input files come in another order, and are read in splits of 4 kB.

    Also where components are given by leaders, and documents of some are compared with heads only.
    """
    records, force = write_valued(tmp_path / "in", seed), tmp_path / "force.csv"
    force.write_text("".join(f"{name},{'removed' if at % 2 else 'kept'}\n" for at, name in enumerate([*records][::5])))
    keep: dict[str, Any] = {"same": ["lang", "nddup_source"], "policy": ["-licence", "id"], "ledger": LEDGER}
    keep |= {"force": str(force), "max_lost": 0.05}
    pairs = {"threshold": 0.6, "max_edges": max_edges, "max_postings": 3, "expand_limit": 3}
    settings: dict[str, Any] = {"keep": keep, "pairs": pairs, "output": {"report": False, "texts": 0}}
    run_locally([str(tmp_path / "in")], str(tmp_path / "local"), build_config(settings, origin="test"))
    settings["spark"] = {
        "spark.sql.shuffle.partitions": str(partitions), "spark.sql.files.maxPartitionBytes": "4096",
        "spark.sql.files.openCostInBytes": "0",
    }  # fmt: skip
    made = run_over(spark, [tmp_path / "in" / "b.jsonl", tmp_path / "in" / "a.jsonl"], tmp_path / "spark", settings)

    assert sorted_tables(tmp_path / "local") == sorted_tables(tmp_path / "spark")
    assert made["stages"]["clusters"]["components"] > made["stages"]["clusters"]["led_components"]
    assert (made["stages"]["clusters"]["led_components"] > 0) == (max_edges == 3)
    assert (made["stages"]["pairs"]["limited"] > 0) == (max_edges == 3)
    assert made["stages"]["pairs"]["crowd"] > 0
    assert (made["rows"]["false_components"] > 0) == (max_edges == 3)
    assert max_edges > 3 or any(row["star"] for row in rows_of(tmp_path / "spark", "pairs"))
    assert check_run(DuckRun(str(tmp_path / "spark")), steps=["families"]).is_sound


@pytest.mark.spark
def test_a_shuffled_table_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of a DataFrame in any order, with numbers and missing values, give the tables of an Arrow table."""
    rows = [{name: spell(row, name) for name in ("id", "text", "lang", "licence", "score")} | {"at": at % 7}
            for at, row in enumerate(write_valued(tmp_path / "in", 8).values())]  # fmt: skip
    keep = {"same": ["lang"], "policy": ["-at:number", "id"], "ledger": ["score", "licence"]}
    here = nddup.find_duplicates(pa.Table.from_pylist(rows), keep=keep, progress=False)
    random.Random(1).shuffle(rows)  # noqa: S311 - an order
    schema = "id string, text string, lang string, licence string, score string, at int"
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], schema)
    with nddup.find_duplicates(frame.repartition(3), id="id", text="text", keep=keep, progress=False) as there:
        for name in ("keep", "families"):
            told = sorted(map(repr, getattr(there, name).toArrow().to_pylist()))
            assert sorted(map(repr, getattr(here, name).to_pylist())) == told, name
