"""`keep.max_lost`: what removal loses, recounted from the texts, on either engine; `check` proves it."""

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from tests.counted_rows import once_each
from tests.finished_runs import run_over
from tests.results.damages import change, rewrite
from tests.samples_by_night import first

Row = dict[str, Any]
Shingles = frozenset[tuple[str, ...]]


def write_texts(folder: Path, seed: int) -> dict[str, Shingles]:
    """Write families of texts that grow, shrink and change, with copies; return the shingles of each."""
    draw, texts = random.Random(seed), dict[str, list[str]]()  # noqa: S311 - texts
    for family in range(12):
        words = [f"family{family}word{place}" for place in range(80)]
        for _ in range(draw.randrange(1, 10)):
            way = draw.random()
            if way < 0.4:
                words = [*words, *(f"added{draw.randrange(10**6)}" for _ in range(draw.randrange(1, 12)))]
            elif way < 0.6:
                words = words[: -draw.randrange(1, 12)]
            elif way < 0.8:
                words[draw.randrange(len(words))] = f"other{draw.randrange(10**6)}"
            texts[f"d{len(texts):03}"] = list(words)
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"id": name, "text": " ".join(words)}) + "\n" for name, words in texts.items()]
    (folder / "texts.jsonl").write_text("".join(lines))
    return {name: frozenset(tuple(words[at : at + 5]) for at in range(len(words) - 4)) for name, words in texts.items()}


def settings_for(most: float | None, **keep: Any) -> dict[str, Any]:  # noqa: ANN401
    keep = {"policy": "first-id", "max_lost": most, **keep}
    return {"keep": keep, "pairs": {"confirm": "resemblance", "threshold": 0.6}, "output": {"report": False}}


def configure(most: float | None, **keep: Any) -> Config:  # noqa: ANN401
    return build_config(settings_for(most, **keep), origin="test")


def rows_of(folder: Path, name: str) -> list[Row]:
    found: list[Row] = pq.read_table(folder / name).to_pylist()
    return found


def define_keep(run: Path, sets: dict[str, Shingles], most: Fraction) -> dict[str, str | None]:
    """Return the kept document of each: equal sets count once, in the order of the first id of each."""
    near: dict[Shingles, set[Shingles]] = {one: set() for one in sets.values()}
    for pair in rows_of(run, "pairs"):
        a, b = sets[pair["doc_a"]], sets[pair["doc_b"]]
        near[a].add(b)
        near[b].add(a)
    first = {one: min(name for name, other in sets.items() if other == one) for one in near}
    kept: list[Shingles] = []
    stands: dict[Shingles, Shingles] = {}
    for one in sorted(near, key=first.__getitem__):
        offers = [other for other in kept if other in near[one] and Fraction(len(one - other), len(one)) <= most]
        if offers and one not in offers:
            stands[one] = min(offers, key=lambda other: (-Fraction(len(one & other), len(one | other)), first[other]))
        else:
            kept.append(one)
    return {name: first[stands.get(one, one)] for name, one in sets.items()}


@pytest.mark.parametrize("most", first(1, [0.05, 1.0, 0.0, 0.2]))
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_nothing_is_removed_that_loses_more(seed: int, most: float, tmp_path: Path) -> None:
    """What is kept is the kernel of the definition, `lost` is what the texts show, and `check` agrees."""
    sets, run = write_texts(tmp_path / "in", seed), tmp_path / "run"
    metrics = run_locally([str(tmp_path / "in")], str(run), configure(most))

    rows = once_each((row["doc_id"], row) for row in rows_of(run, "keep"))
    stands = define_keep(run, sets, Fraction(repr(most)))
    assert {name: row["duplicate_of"] or name for name, row in rows.items()} == stands
    for name, row in rows.items():
        if not row["kept"]:
            own, other = sets[name], sets[row["duplicate_of"]]
            assert row["lost"] == len(own - other) / len(own) <= most
            assert row["resemblance"] == len(own & other) / len(own | other)
    both = [row for row in rows_of(run, "pairs") if rows[row["doc_a"]]["kept"] and rows[row["doc_b"]]["kept"]]
    assert metrics["stages"]["keep"]["kept_pairs"] == len(both)
    report = check_run(DuckRun(str(run)), steps=["keep", "clusters"])
    assert report.is_sound, report.text()


@pytest.mark.parametrize(
    ("damage", "promise"),
    [
        (change("lost", 0.0, reason="near"), "keep: lost is what duplicate_of lacks, at most 0.1"),
        (change("resemblance", 0.99, reason="near"), "keep: resemblance is that of both documents"),
    ],
)
def test_a_wrong_number_breaks_its_promise(damage: Any, promise: str, tmp_path: Path) -> None:  # noqa: ANN401
    """A share or a resemblance that the texts do not show is found."""
    write_texts(tmp_path / "in", 1)
    run_locally([str(tmp_path / "in")], str(tmp_path / "run"), configure(0.1))
    rewrite(tmp_path / "run", "keep", damage)

    report = check_run(DuckRun(str(tmp_path / "run")), steps=["keep"])
    assert [finding.promise for finding in report.findings if finding.broken] == [promise]


def test_a_run_that_removes_more_is_found(tmp_path: Path) -> None:
    """The keep-list of a run without the limit breaks the promise of one with it."""
    write_texts(tmp_path / "in", 1)
    for name, most in (("free", None), ("bound", 0.02)):
        run_locally([str(tmp_path / "in")], str(tmp_path / name), configure(most))
    free = once_each((row["doc_id"], row) for row in rows_of(tmp_path / "free", "keep"))

    def as_free(rows: list[Row]) -> None:
        rows[:] = [free[row["doc_id"]] for row in rows]

    rewrite(tmp_path / "bound", "keep", as_free)

    report = check_run(DuckRun(str(tmp_path / "bound")), steps=["keep"])
    broken = [finding.promise for finding in report.findings if finding.broken]
    assert "keep: lost is what duplicate_of lacks, at most 0.02" in broken


@pytest.mark.spark
def test_spark_keeps_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Spark gives the same rows with forced documents, some alone."""
    write_texts(tmp_path / "in", 2)
    alone = {"id": "alone", "text": "a text that is like no other one of them all"}
    with (tmp_path / "in" / "texts.jsonl").open("a") as file:
        file.write(json.dumps(alone) + "\n")
    (tmp_path / "force.csv").write_text("d005,kept\nd007,removed\nd011,removed\nd012,kept\nalone,removed\n")
    settings = settings_for(0.05, force=str(tmp_path / "force.csv"))
    run_locally([str(tmp_path / "in")], str(tmp_path / "local"), build_config(settings, origin="test"))
    run_over(spark, [tmp_path / "in"], tmp_path / "spark", settings)

    for table in ("keep", "members"):
        told = [sorted(map(repr, rows_of(tmp_path / at, table))) for at in ("local", "spark")]
        assert told[0] == told[1], table
    gone = [row["doc_id"] for row in rows_of(tmp_path / "local", "keep") if not (row["kept"] or row["duplicate_of"])]
    assert "alone" in gone
    report = check_run(DuckRun(str(tmp_path / "spark")), steps=["keep"])
    assert report.is_sound, report.text()


def test_it_needs_counted_shingles() -> None:
    """Without exact pairs nothing is known of what is lost: refused in one line."""
    with pytest.raises(ConfigError, match=r"keep\.max_lost: needs pairs\.confirm resemblance"):
        build_config({"keep": {"max_lost": 0.1}, "pairs": {"confirm": "none"}}, origin="test")
