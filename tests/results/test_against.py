"""`nddup against` as a command: planted items, with both collections read from files."""

import json
import random
import re
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.cli import main
from nddup.sketching.tokens import tokenise
from tests.run.crawls import write_crawl
from tests.samples_by_night import first

WORDS = [f"w{number}" for number in range(4_000)]
BANNER = " ".join(f"banner{number}" for number in range(20))


class Planted(NamedTuple):
    """The folders of A and B, and the kind of each item."""

    a: Path
    b: Path
    kinds: dict[str, str]


def text(rng: random.Random, tokens: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(tokens))


def edit(rng: random.Random, words: list[str], changed: int) -> str:
    """Replace `changed` of the words and join them."""
    places = set(rng.sample(range(len(words)), changed))
    return " ".join("edited" if place in places else word for place, word in enumerate(words))


def plant(folder: Path, seed: int = 3) -> Planted:
    """Write 300 items of 11 to 160 words, and documents that hold some of them."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    items, documents, kinds = [], [{"id": f"d{n}", "text": text(rng, 300)} for n in range(250)], {}
    for number in range(300):
        kind = ("verbatim", "embedded", "edited1", "edited9", "absent", "short", "common")[number % 7]
        name, body = f"{kind}-{number}", text(rng, rng.randint(40, 160))
        kinds[name] = kind
        held = {
            "verbatim": body,
            "embedded": f"{text(rng, 500)}, {body.upper()}! {text(rng, 500)}",
            "edited1": edit(rng, body.split(), 1),
            "edited9": edit(rng, body.split(), len(body.split()) // 3),
        }.get(kind)
        body = {"short": text(rng, 11), "common": BANNER}.get(kind, body)
        items.append({"id": name, "text": body})
        documents += [{"id": f"of-{name}", "text": held}] if held else []
    documents += [{"id": f"banner-{n}", "text": f"{BANNER} {text(rng, 30)}"} for n in range(30)]
    rng.shuffle(documents)

    places = {"A/one/a.jsonl": documents[:150], "A/two/a.jsonl": documents[150:], "B/qa/b.jsonl": items}
    for place, rows in places.items():
        (folder / place).parent.mkdir(parents=True)
        (folder / place).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return Planted(folder / "A", folder / "B", kinds)


def rows(output: Path, table: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = pq.read_table(output / table).to_pylist()
    return read


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return plant(tmp_path_factory.mktemp("against"))


@pytest.fixture(scope="module")
def output(planted: Planted) -> Path:
    folder = planted.a.parent / "out"
    status = main(["against", str(planted.a), str(planted.b), "--output", str(folder), "--by", "folder",
                   "--set", "against.max_document_frequency=20", "--exit-code"])  # fmt: skip
    assert status == 3
    return folder


def test_planted_items_have_their_verdicts(planted: Planted, output: Path) -> None:
    """Verbatim and embedded items are found whole, edited ones in part or whole, and absent ones are clean."""
    expected = {"verbatim": "found", "embedded": "found", "absent": "clean"}
    for row in rows(output, "items"):
        kind = planted.kinds[row["item"]]
        if kind in ("short", "common"):
            assert (row["verdict"], row["reason"]) == ("not testable", kind)
            assert (row["containment"], row["document"]) == (None, None)
            continue
        assert row["reason"] is None
        share = row["containment"]
        assert row["verdict"] == expected.get(kind, "found" if share >= 0.8 else "part" if share else "clean")
        assert share > 0 or kind in ("edited9", "absent")
        if kind in ("verbatim", "embedded"):
            assert (row["document"], row["containment"], row["covered"]) == (f"of-{row['item']}", 1.0, 1.0)


def test_spans_have_equal_tokens_on_both_sides(planted: Planted, output: Path) -> None:
    """The token and character ranges of a span name the same text, and the excerpt is that text in A."""
    texts = {
        row["id"]: row["text"]
        for path in [*planted.a.rglob("*.jsonl"), *planted.b.rglob("*.jsonl")]
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    }
    spans = rows(output, "spans")

    assert {row["item"].partition("-")[0] for row in spans} >= {"verbatim", "embedded", "edited1"}
    for row in spans:
        mine, theirs = texts[row["item"]], texts[row["document"]]
        run = tokenise(mine)[row["item_token"] : row["item_token_end"]]
        assert run == tokenise(theirs)[row["document_token"] : row["document_token_end"]]
        assert run == tokenise(mine[row["item_char"] : row["item_char_end"]])
        found = theirs[row["document_char"] : row["document_char_end"]]
        assert run == tokenise(found)
        assert row["excerpt"] == found[:300]


def test_what_too_many_documents_have_is_counted(output: Path) -> None:
    """Each of the banner's thirteen shingles is reported as suppressed, with its thirty documents."""
    words = BANNER.split()
    expected = {" ".join(words[place : place + 8]): 30 for place in range(13)}

    assert {row["shingle"]: row["documents"] for row in rows(output, "suppressed")} == expected


def test_the_matrix_accounts_for_every_item(planted: Planted, output: Path) -> None:
    """The matrix has a row for each part of A, its counts add up, and an item found in a part is found overall."""
    matrix = rows(output, "matrix")
    assert {row["source_a"] for row in matrix} == {f"{planted.a}/one", f"{planted.a}/two"}
    for row in matrix:
        assert row["source_b"] == f"{planted.b}/qa"
        assert (row["items"], row["testable"]) == (300, row["found"] + row["part"] + row["clean"])

    found = [row for row in rows(output, "items") if row["verdict"] == "found"]
    assert sum(row["found"] for row in matrix) == len(found)  # each is in one document only


def test_the_summary_and_the_page(planted: Planted, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The summary has one line for each part of B, in the documented form; the page marks spans and loads nothing."""
    assert main(["against", str(planted.a), str(planted.b), "--by", "folder"]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    page = (output / "index.html").read_text(encoding="utf-8")

    assert line.startswith(f"{planted.b}/qa: 300 items, ")
    assert line.endswith(" clean; not testable: 43 short")  # the banner is in 30 documents, fewer than 1,000
    assert "<mark>" in page
    assert "prefers-color-scheme: dark" in page
    assert not any(mark in page for mark in ("<script", "<link", "src=", "@import", "url("))


def test_workers_find_the_same(planted: Planted, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes that each read a part give the same tables."""
    monkeypatch.setattr("nddup.embedded.workers.FEW_BYTES", 0)
    again = planted.a.parent / "again"
    main(["against", str(planted.a), str(planted.b), "--output", str(again), "--by", "folder",
          "--set", "against.max_document_frequency=20", "--set", "local.processes=2"])  # fmt: skip

    for table in ("items", "spans", "suppressed", "matrix", "rejects"):
        assert rows(again, table) == rows(output, table)


@pytest.mark.parametrize("of", first(2, ["item", "any", "document"]))
def test_parts_of_b_give_the_same(
    planted: Planted, tmp_path: Path, of: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B in parts, for lack of memory, gives the same tables and page, also where items share suppressed shingles."""
    arguments = ["against", str(planted.a), str(planted.b), "--of", of, "--set", "against.max_document_frequency=20"]
    main([*arguments, "--output", str(tmp_path / "whole")])
    monkeypatch.setattr("nddup.against.against_inputs.OF_SHINGLES", 4_000)
    main([*arguments, "--output", str(tmp_path / "parts"), "--set", "local.memory=600000000"])

    told = re.search(r"its shingles were taken in (\d+) parts", capsys.readouterr().out)
    assert told is not None
    assert int(told[1]) > 2
    for table in ("items", "spans", "suppressed", "matrix", "rejects"):
        assert rows(tmp_path / "parts", table) == rows(tmp_path / "whole", table)
    pages = [(tmp_path / name / "index.html").read_text(encoding="utf-8") for name in ("whole", "parts")]
    assert pages[0] == "\n".join(line for line in pages[1].split("\n") if "were taken in" not in line)


@pytest.mark.spark
@pytest.mark.parametrize("of", ["item", "any"])
def test_spark_finds_the_same(
    planted: Planted, tmp_path: Path, of: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark gives the same tables, also with B in parts and a filter so small that many unshared shingles pass it."""
    assert spark.version
    monkeypatch.setattr("nddup.against.against_inputs.OF_SHINGLES", 4_000)
    arguments = ["against", str(planted.a), str(planted.b), "--of", of, "--set", "against.max_document_frequency=20"]
    main([*arguments, "--output", str(tmp_path / "local")])
    monkeypatch.setattr("nddup.spark.inputs_given.FILTER_BYTES", 1 << 13)
    memory = ["--set", "local.memory=600000000"] if of == "any" else []
    main([*arguments, "--output", str(tmp_path / "spark"), "--engine", "spark", *memory])

    for table in ("items", "spans", "suppressed", "matrix", "rejects"):
        assert rows(tmp_path / "spark", table) == rows(tmp_path / "local", table)


def test_an_item_is_shown_beside_its_own_place(tmp_path: Path) -> None:
    """The page shows each of two items in a document with its own surroundings, without those of the other."""
    first, between, second = (" ".join(f"{name}{n}" for n in range(40)) for name in ("first", "between", "second"))
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "a", "text": f"{first} {between} {second}"}), encoding="utf-8")
    items = [{"id": "one", "text": first}, {"id": "two", "text": second}]
    (tmp_path / "b.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items), encoding="utf-8")
    main(["against", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "--output", str(tmp_path / "out")])

    shown = (tmp_path / "out" / "index.html").read_text(encoding="utf-8").split("<details")[1:]

    assert [f"<mark>{words}</mark>" in one for one in shown for words in (first, second)] == [True, False, False, True]
    assert ["second0" in shown[0], "first39" in shown[1]] == [False, False]


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    """Markup in an id or a text is escaped in the page; broken records are counted as rejects."""
    words = " ".join(f"word{number}" for number in range(30))
    row = json.dumps({"id": "<script>alert(1)</script>", "text": f"{words} <img src=x onerror=alert(1)> 1 < 2"})
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(f"{row}\n{row}\n{{broken\n", encoding="utf-8")

    main(["against", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "--output", str(tmp_path / "out"),
          "--set", "input.markup=text"])  # fmt: skip

    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img" not in page
    assert [row["collection"] for row in rows(tmp_path / "out", "rejects")] == ["A", "B"]
    assert [row["item"] for row in rows(tmp_path / "out", "items")] == ["<script>alert(1)</script>", "b.jsonl#2"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", "B"], "nowhere: no such file or folder"),
        (["A", "empty.jsonl"], "empty.jsonl: no document can be read: empty.jsonl: no records"),
        (["empty.jsonl", "B"], "empty.jsonl: no document can be read: empty.jsonl: no records"),
        (["A", "B", "--output", "A"], "--output A: exists already"),
        (["A", "B", "--length", "2000"], "--length 2000: expected at most 1,000"),
        (["A", "B", "--set", "against.min_shingles=0"], "against.min_shingles: "),
        (["A", "B", "--engine", "local", "--master", "local[1]"], "engine: local, but --master is given"),
        (["A", "B", "--set-b", "input.format=jpeg"], "input.format: "),
    ],
)
def test_wrong_use_is_one_line(
    planted: Planted,
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wrong arguments end with exit status 2 and one line that says what to correct."""
    monkeypatch.chdir(planted.a.parent)
    Path("empty.jsonl").touch()

    assert main(["against", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("threshold", ["0", "1.2", "much", "0.12345678901"])
def test_a_threshold_is_a_share(threshold: str) -> None:
    """A threshold that is no share is refused while the arguments are parsed."""
    with pytest.raises(SystemExit) as stopped:
        main(["against", "A", "B", "--threshold", threshold])

    assert stopped.value.code == 2


def test_an_archive_is_all_read_without_its_images_and_redirects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Captures that hold no text, or that the settings leave out, do not keep an item from being clean."""
    source = write_crawl(tmp_path / "in")
    (tmp_path / "items.jsonl").write_text('{"id": "a", "text": "no document of the crawl has any of these words"}\n')

    assert main(["against", str(source), str(tmp_path / "items.jsonl"), "--output", str(tmp_path / "out")]) == 0

    told = "".join(capsys.readouterr())
    assert "rejects, not compared: 6" in told
    assert "not all of it was read" not in told
