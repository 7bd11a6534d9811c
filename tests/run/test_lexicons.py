"""Sketch kinds of words in whole runs: the lexicon equals a plain count, and is saved, reused or refused."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import nddup
from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError
from nddup.ground.metrics import RunMetrics
from nddup.results.show import summarise
from nddup.settings.load import build_config, load_config
from nddup.settings.plan import recipe_of
from nddup.sketching.tokens import tokenise
from nddup.sketching.vocabulary import Terms, letter_number, term_ids
from nddup.spark.run import run_job
from tests.counted_rows import once_each
from tests.finished_runs import sorted_tables

LOW, HIGH = 0.1, 0.5
WORDS: dict[str, Any] = {"sketch": {"kind": "lexicon"}, "lexicon": {"low": LOW, "high": HIGH}}


def texts_in_two_languages() -> dict[str, str]:
    """Return families of edited texts in two languages, a reordered copy, and texts with no or only unique words."""
    rng = np.random.default_rng(4)
    texts: dict[str, str] = {}
    for family, stock in enumerate(("walks talked документы houses", "стол running дома cities roses")):
        words = [f"{word}{value}" for word in stock.split() for value in rng.integers(0, 40, 12)] + stock.split() * 3
        for version in range(3):
            edited = [*words[2 * version :], "common " * 4, f"edit{family}{version}"]
            texts[f"f{family}v{version}"] = " ".join(edited)
    reversed_words = " ".join(reversed(texts["f0v0"].split()))
    return texts | {"turned": reversed_words, "stop": "the and of и не", "empty": "", "lone": "unheard unseen"}


def write(folder: Path, texts: dict[str, str]) -> str:
    """Write the texts as JSON lines, and a broken line that gives a reject; returns the path."""
    lines: list[str] = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    (folder / "pages.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n", encoding="utf-8")
    return str(folder / "pages.jsonl")


def counted(texts: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Return the lexicon by plain counting: the occurrences and documents of each of its terms."""
    terms = Terms(("english", "russian"))
    bags = [Counter(term for term in terms(tokenise(text)) if term) for text in texts.values()]
    total = sum(bags, Counter[str]())
    commonest = max(total.values())
    return {
        term: (count, sum(term in bag for bag in bags))
        for term, count in total.items()
        if LOW * commonest <= count <= HIGH * commonest
    }


def sketches(run: Path) -> dict[str, set[int]]:
    """Return the sketch of each document by its id, as unsigned ids."""
    table = pq.read_table(run / "documents", columns=["doc_id", "sketch"])
    found = zip(table["doc_id"].to_pylist(), table["sketch"].to_pylist(), strict=True)
    return {name: {value % 2**64 for value in ids} for name, ids in found}


def ran(
    spark: SparkSession, source: str, output: Path, settings: dict[str, Any], *, is_local: bool = True
) -> dict[str, Any]:
    """Run on either engine and check the result; returns the metrics."""
    config = build_config({"output": {"report": False, "texts": 0}, **settings}, origin="test")
    run = run_locally if is_local else partial(run_job, spark)
    metrics = run([source], str(output), config)
    report = check_run(DuckRun(str(output)), steps=("accounting", "groups", "pairs", "keep"))

    assert report.is_sound, report.text()
    assert metrics["rows"]["rejects"] == 1
    return metrics


def test_a_lexicon_is_counted_saved_and_taken_again(spark: SparkSession, tmp_path: Path) -> None:
    """A lexicon equals a plain count, also on Spark; a run there that reuses it for fewer documents makes the same
    sketches.
    """
    texts = texts_in_two_languages()
    metrics = ran(spark, write(tmp_path, texts), tmp_path / "first", WORDS)
    expected = counted(texts)
    table = pq.read_table(tmp_path / "first" / "lexicon").to_pydict()
    lexicon = dict(zip(table["term"], zip(table["occurrences"], table["documents"], strict=True), strict=True))
    terms = Terms(("english", "russian"))

    assert lexicon == expected
    assert 20 < len(lexicon) < metrics["stages"]["sketch"]["lexicon"]["counted"]
    assert metrics["stages"]["sketch"]["lexicon"]["terms"] == len(lexicon)
    made = sketches(tmp_path / "first")
    assert made == {
        name: set(term_ids(set(terms(tokenise(text))) & set(expected)).tolist()) for name, text in texts.items()
    }
    assert made["turned"] == made["f0v0"]
    assert made["stop"] == made["empty"] == set()
    assert metrics["rows"]["pairs"] >= 6
    assert f"{len(lexicon)} of " in summarise(RunMetrics.read(metrics), str(tmp_path / "first"))

    ran(spark, str(tmp_path / "pages.jsonl"), tmp_path / "there", WORDS, is_local=False)
    assert sorted_tables(tmp_path / "there") == sorted_tables(tmp_path / "first")
    there = pq.read_table(tmp_path / "there" / "lexicon").to_pydict()
    assert dict(zip(there["term"], zip(there["occurrences"], there["documents"], strict=True), strict=True)) == expected

    fewer = tmp_path / "fewer"
    fewer.mkdir()
    saved = {**WORDS, "lexicon": {**WORDS["lexicon"], "saved": str(tmp_path / "first")}}
    ran(
        spark,
        write(fewer, {name: texts[name] for name in ("f0v1", "lone", "f1v2")}),
        fewer / "second",
        saved,
        is_local=False,
    )

    assert sketches(fewer / "second") == {name: made[name] for name in ("f0v1", "lone", "f1v2")}
    assert json.loads((fewer / "second" / "lexicon.json").read_text())["taken_from"] == str(tmp_path / "first")


def test_a_lexicon_of_other_settings_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A lexicon of other settings, or a folder without one, is refused in one line before anything is written."""
    note = {"made_by": "languages=german stems=True", "counted": 1, "occurrences": 1, "commonest": 1}
    (tmp_path / "lexicon.json").write_text(json.dumps(note))
    source = write(tmp_path, {"a": "text"})
    for path, said in ((str(tmp_path), r"made by other settings, \[languages=german.*; not by \[languages=english"),
                       (str(tmp_path / "none"), "holds no lexicon")):  # fmt: skip
        config = build_config({**WORDS, "lexicon": {**WORDS["lexicon"], "saved": path}}, origin="test")
        with pytest.raises(ConfigError, match=f"lexicon.saved .*{said}") as refused:
            run_job(spark, [source], str(tmp_path / "out"), config)
        assert "\n" not in str(refused.value)

    assert not (tmp_path / "out").exists()


def test_i_match_finds_what_shares_a_signature(spark: SparkSession, tmp_path: Path) -> None:
    """I-Match pairs exactly the texts that share a signature; the same lexicon words give equal sketches."""
    texts = texts_in_two_languages() | {"few": "walks houses cities"}  # fewer terms than signatures
    settings = {
        "sketch": {"kind": "i-match", "seed": 3},
        "lexicon": {"low": LOW, "high": HIGH, "copies": 9},
        "pairs": {"measure": "overlap", "threshold": 1},
    }
    ran(spark, write(tmp_path, texts), tmp_path / "run", settings)
    made = sketches(tmp_path / "run")
    terms = Terms(("english", "russian"))
    words = {name: set(terms(tokenise(text))) & set(counted(texts)) for name, text in texts.items()}
    pairs = pq.read_table(tmp_path / "run" / "pairs", columns=["doc_a", "doc_b", "overlap"]).to_pylist()

    assert len(words["few"]) < len(made["few"]) <= 10
    assert {name: bool(ids) for name, ids in made.items()} == {name: bool(held) for name, held in words.items()}
    assert once_each(((row["doc_a"], row["doc_b"]), row["overlap"]) for row in pairs) == {
        (a, b): len(made[a] & made[b]) for a in made for b in made if a < b and made[a] & made[b]
    }
    assert all(made[a] == made[b] for a in made for b in made if words[a] == words[b])


def test_keywords_of_a_data_frame(spark: SparkSession) -> None:
    """`find_duplicates` supports the kind `keywords`, whose features are numbers made from the letters of a word."""
    texts = texts_in_two_languages()
    pages = spark.createDataFrame(list(texts.items()), "id string, text string")
    found = nddup.find_duplicates(pages, sketch={"kind": "keywords"}, lexicon={"letters": 3})
    made = once_each(
        (row["doc_id"], set(row["sketch"])) for row in found.documents.select("doc_id", "sketch").collect()
    )
    terms = Terms(("english", "russian"))

    assert made == {
        name: {letter_number(t, letters=3) for t in terms(tokenise(text)) if t} for name, text in texts.items()
    }


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"lexicon.languages": ["klingon"], "sketch.kind": "lexicon"}, "unknown language 'klingon'"),
        ({"lexicon.letters": 4}, "lexicon.letters: kind min-s takes none; keywords does"),
        ({"sketch.kind": "keywords", "lexicon.low": 0.1}, "lexicon.low: kind keywords takes none"),
        ({"sketch.kind": "lexicon", "lexicon.low": 0.6}, "lexicon.low: must be less than lexicon.high 0.5"),
        ({"sketch.kind": "lexicon", "lexicon.high": 1.5}, "lexicon.high: .*less than or equal to 1"),
        ({"sketch.kind": "lexicon", "shingle.length": 3}, "shingle.length: kind lexicon is of words"),
        ({"sketch.kind": "lexicon", "sketch.size": 50}, "sketch.size: kind lexicon is of words"),
        ({"sketch.kind": "lexicon", "sketch.seed": 7}, "sketch.seed: kind lexicon is of words"),
        ({"sketch.kind": "lexicon", "pairs.measure": "containment"}, "holds words without their order"),
        ({"sketch.kind": "i-match", "lexicon.copies": -1}, "lexicon.copies: .*greater than or equal to 0"),
        ({"sketch.kind": "keywords", "lexicon.letters": 0}, "lexicon.letters: .*greater than or equal to 1"),
    ],
)
def test_wrong_settings_are_one_line(settings: dict[str, Any], said: str) -> None:
    """A wrong setting of a kind of words is refused in one line that names its key and what is allowed."""
    with pytest.raises(ConfigError, match=said) as refused:
        load_config(None, [f"{key}={json.dumps(value)}" for key, value in settings.items()])

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("romip2005-lexicon", "kind=lexicon languages=russian+english stems=True stops=True low=1e-05 high=0.5"),
        ("i-match", "copies=10 left_out=0.3"),
        ("dd2014", "letters=3"),
    ],
)
def test_profiles_say_what_the_papers_say(profile: str, said: str) -> None:
    """The key of the sketches of each profile contains the published settings."""
    assert said in recipe_of(load_config(profile)).key
