"""`tokens.ignore` from the settings to the tables: a run equals one over texts in which nothing is left to ignore."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import unicodedata2 as unicodedata
from pyspark.sql import SparkSession

import nddup
from nddup import repository
from nddup.checking.check_run import check_run
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError, OutputError
from nddup.report.summary import notes
from nddup.repository.identity import Identity
from nddup.settings.load import build_config
from nddup.settings.sections import TokensConfig
from nddup.settings.stored import complete_shown
from nddup.spark.run import run_job
from tests.finished_runs import rows_of, sorted_tables, write_texts

ALL = ["numbers", "digits", "width", "tatweel", "points"]
WORDS = [
    "invoice", "of", "may", "שָׁלוֹם", "כִתَابٌ", "كتـاب", "ガス", "sum", "due", "to", "the", "firm", "Ｎｏ", "ｶﾞｽ", "naïve",
    "mp3", "٤٧", "4711", "12", "３",
]  # fmt: skip


def plain(text: str) -> str:
    """Write a text so that nothing is left to ignore, by properties of Unicode instead of the map."""
    letters = []
    for character in unicodedata.normalize("NFKC", text):
        kind, name = unicodedata.category(character), unicodedata.name(character, "")
        if unicodedata.decimal(character, None) is not None:
            letters.append(str(unicodedata.digit(character)))
        elif name != "ARABIC TATWEEL" and not (kind == "Mn" and name.startswith(("HEBREW", "ARABIC"))):
            letters.append(character)
    return re.sub(r"(?<!\w)\d+(?!\w)", "0", "".join(letters))


def draw_texts() -> dict[str, str]:
    """Draw 12 texts of 60 words, each six times with other numbers, spellings and some words changed."""
    choose = random.Random(7)  # noqa: S311 - the same texts each time
    texts = {}
    for number in range(12):
        words = choose.choices([*WORDS, *(f"word{n}" for n in range(60))], k=60)
        for copy in range(6):
            some = [str(choose.randrange(10 ** choose.randrange(1, 6))) if word.isdecimal() else word for word in words]
            some = [plain(word) if copy % 2 and not word.isdecimal() else word for word in some]
            for _ in range(copy // 2):
                some[choose.randrange(60)] = f"other{copy}"
            texts[f"t{number:02}-{copy}"] = " ".join(some)
    return texts


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The texts, the same written plainly, and a run over each: `ignoring` and `plainly`; both store texts to read."""
    folder = tmp_path_factory.mktemp("ignored")
    texts = draw_texts()
    for name, ignore, form in (("ignoring", ALL, str), ("plainly", [], plain)):
        path = write_texts(folder / f"{name}.jsonl", {one: form(text) for one, text in texts.items()})
        config = build_config({"tokens": {"ignore": ignore}}, origin="test")
        run_locally([str(path)], str(folder / name), config)
    return folder


def results(folder: Path) -> dict[str, list[str]]:
    """Return the tables, of `documents` and `keep` what depends on the tokens alone: contents are never equal."""
    found = {name: rows_of(folder, name) for name in ("pairs", "clusters", "members")}
    found["keep"] = rows_of(folder, "keep", ["doc_id", "kept", "duplicate_of", "resemblance"])
    columns = ["doc_id", "n_tokens", "n_features", "sketch", "group", "token_fingerprint"]
    return found | {"documents": rows_of(folder, "documents", columns)}


def test_the_tables_are_those_of_plain_texts(drawn: Path, tmp_path: Path) -> None:
    """Sketches, pairs, clusters and keep-list are those of the plain texts; by default they are others."""
    run_locally([str(drawn / "ignoring.jsonl")], str(tmp_path / "default"), build_config({}, origin="test"))
    ignoring = results(drawn / "ignoring")

    assert ignoring == results(drawn / "plainly")
    assert len(ignoring["pairs"]) > len(rows_of(tmp_path / "default", "pairs"))


@pytest.mark.spark
def test_both_engines_ignore_alike(spark: SparkSession, drawn: Path, tmp_path: Path) -> None:
    config = build_config({"tokens": {"ignore": ALL}}, origin="test")
    run_job(spark, [str(drawn / "ignoring.jsonl")], str(tmp_path / "spark"), config)

    assert sorted_tables(tmp_path / "spark") == sorted_tables(drawn / "ignoring")
    assert check_run(DuckRun(str(tmp_path / "spark"))).is_sound


@pytest.mark.parametrize("settings", [{"pairs": {"confirm": "edit"}}, {"shingle": {"unit": "char"}}])
def test_texts_that_confirm_ignore(drawn: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    for name, ignore in (("ignoring", ALL), ("plainly", [])):
        config = build_config({**settings, "tokens": {"ignore": ignore}, "output": {"report": False}}, origin="test")
        run_locally([str(drawn / f"{name}.jsonl")], str(tmp_path / name), config)

    assert results(tmp_path / "ignoring") == results(tmp_path / "plainly")
    assert check_run(DuckRun(str(tmp_path / "ignoring"))).is_sound


def test_check_compares_the_texts_as_the_run_did(drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sound run is sound; a check that ignored nothing would refute its pairs."""
    assert check_run(DuckRun(str(drawn / "ignoring"))).is_sound

    monkeypatch.setattr(TokensConfig, "ignored", ())
    assert not check_run(DuckRun(str(drawn / "ignoring"))).is_sound


def test_what_is_left_out_may_be_lost(drawn: Path) -> None:
    """The first note of the summary says so, and the report names it where it answers what is lost."""
    said, unsaid = (notes(DuckRun(str(drawn / name)).metrics) for name in ("ignoring", "plainly"))
    pages = [(drawn / name / "report" / "data" / "summary.js").read_text() for name in ("ignoring", "plainly")]

    assert said[0].startswith(f"tokens.ignore: texts that differ only in {', '.join(ALL)} are equal")
    assert not any("tokens.ignore" in note for note in unsaid)
    assert [json.loads(re.search(r'"ignored":(\[[^]]*\])', page)[1]) for page in pages] == [ALL, []]  # type: ignore[index]


def test_a_run_of_an_earlier_version_ignores_nothing() -> None:
    settings = build_config({}, origin="test").model_dump()
    del settings["tokens"]

    assert complete_shown(settings, origin="run")["tokens"] == {"ignore": []}


def test_names_are_in_one_order_and_known() -> None:
    config = build_config({"tokens": {"ignore": ["width", "numbers", "width"]}}, origin="test")

    assert config.tokens.ignore == ["numbers", "width"]
    with pytest.raises(ConfigError, match=r"tokens.ignore.*numbers.*points"):
        build_config({"tokens": {"ignore": ["vowels"]}}, origin="test")


def test_a_table_is_read_so(drawn: Path) -> None:
    texts = draw_texts()
    run = nddup.find_duplicates(pa.table({"id": list(texts), "text": list(texts.values())}), tokens={"ignore": ALL})

    assert run.keep.num_rows == len(texts)
    assert sorted(map(str, run.keep.to_pylist())) == sorted(
        map(str, pq.read_table(drawn / "ignoring/keep").to_pylist())
    )


def test_a_repository_ignores_and_refuses_another_choice(drawn: Path, tmp_path: Path) -> None:
    """Added, asked and opened again, it ignores what it was made to; settings that ignore less give another recipe."""
    path = tmp_path / "repo"
    repo = repository.create(str(path), tokens={"ignore": ALL})
    repo.add([str(drawn / "ignoring.jsonl")])
    texts = draw_texts()

    found = repository.open(str(path)).query(plain(texts["t00-0"]))
    assert max(row["resemblance"] for row in found.to_pylist()) == 1
    assert all(proof.holds for proof in repository.open(str(path)).check())

    asked = ["index", "add", str(path), str(drawn / "plainly.jsonl"), "--set", "tokens.ignore=[]"]
    assert main(asked) == 2
    note = json.loads((path / "commits/1.json").read_text())["repository"]
    assert Identity.read(note, repo="repo").config.tokens.ignore == ALL
    note["settings"]["tokens"]["ignore"] = []
    with pytest.raises(OutputError, match=r"its recipe is .*ignore=numbers\+digits"):
        Identity.read(note, repo="repo")


def test_a_repository_of_an_earlier_version_ignores_nothing(tmp_path: Path) -> None:
    repository.create(str(tmp_path / "repo"))
    note = json.loads((tmp_path / "repo/commits/1.json").read_text())["repository"]
    del note["settings"]["tokens"]

    assert not Identity.read(note, repo="repo").config.tokens.ignore


PASSAGE = "the {} parties agreed on {} May that no. {} holds for all goods of this kind and for ever after that day"


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    texts = {
        "a": f"first part ١ {PASSAGE.format(1, 17, 4)} end",
        "b": f"quite other {PASSAGE.format('٣', 4, 99)} words",
    }
    return write_texts(tmp_path / "texts.jsonl", texts)


@pytest.mark.parametrize(
    "engine",  # by day `results/test_passages_on_spark.py` ignores on Spark
    ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly])],
)
def test_passages_ignore(passages: Path, tmp_path: Path, engine: str) -> None:
    """A passage with other numbers is found, at the characters of the text as it is, and proved."""
    asked = ["passages", str(passages), "--set", "passages.min_tokens=20", "--set", f"engine={engine}"]
    ignoring = ["--set", "tokens.ignore=[numbers]", "-o", str(tmp_path / "out")]

    assert main([*asked, *ignoring]) == 0
    rows = pq.read_table(tmp_path / "out/occurrences").to_pylist()
    texts = {row["id"]: row["text"] for row in map(json.loads, passages.read_text().splitlines())}
    found = {row["doc_id"]: texts[row["doc_id"]][row["char"] : row["char_end"]] for row in rows}
    assert found == {"a": PASSAGE.format(1, 17, 4), "b": PASSAGE.format("٣", 4, 99)}
    assert main(["check", str(tmp_path / "out")]) == 0
    if engine == "spark":
        return
    assert main([*asked, "-o", str(tmp_path / "default")]) == 0
    assert not pq.read_table(tmp_path / "default/occurrences").num_rows


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_against_ignores(passages: Path, tmp_path: Path, engine: str) -> None:
    items = write_texts(tmp_path / "items.jsonl", {"item": PASSAGE.format(5, "۶", 7)})
    asked = ["against", str(passages), str(items), "--length", "8", "--set", f"engine={engine}"]

    assert main([*asked, "--set", "tokens.ignore=[numbers]", "-o", str(tmp_path / "out")]) == 0
    (row,) = pq.read_table(tmp_path / "out/items").to_pylist()
    assert (row["verdict"], row["containment"]) == ("found", 1)
    span = pq.read_table(tmp_path / "out/spans").to_pylist()[0]
    assert span["excerpt"] == PASSAGE.format(1, 17, 4)
    if engine == "spark":
        return
    assert main([*asked, "-o", str(tmp_path / "default")]) == 0
    assert pq.read_table(tmp_path / "default/items")["verdict"].to_pylist() != ["found"]
