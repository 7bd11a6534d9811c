"""`nddup passages`: its tables, the cut texts, what it refuses, and the proof of what it wrote."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.engines.choose import choose_engine
from nddup.passages.find_passages import WEIGHT, paths_read
from nddup.settings.load import load_config
from nddup.sketching.tokens import tokenise
from tests.changed_rows import faults

DOCUMENTS = [
    {"id": "a", "text": "one two three four five six seven eight nine ten"},
    {"id": "b", "text": "zero, one two three FOUR five; end of it"},
    {"id": "c", "text": "é two three four five and six seven eight nine ten é"},
    {"text": "alone"},
]

FOUR = ["--set", "passages.min_tokens=4"]


def rows_of(name: str, folder: str = "out") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(f"{folder}/{name}").to_pylist()
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four documents and a record that cannot be read."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(row, ensure_ascii=False) for row in DOCUMENTS]
    Path("in.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n", encoding="utf-8")
    return tmp_path


def test_tables_and_cut_texts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Occurrences have the tokens and characters of their passage; the longest document keeps the first copy."""
    assert main(["passages", "in.jsonl", "--output", "out", *FOUR, "--set", "output.kept=jsonl"]) == 0

    said = capsys.readouterr().out
    assert "passages: 3 of 4 tokens or more in two documents or more, 7 occurrences\n" in said
    assert "repeated: 24 tokens, 75.0 %, in 3 documents; 11, 34.4 %, can go" in said
    texts = {row.get("id", "in.jsonl#4"): row["text"] for row in DOCUMENTS}
    passages = {row["passage_id"]: row for row in rows_of("passages")}
    assert sorted(row["text"] for row in passages.values()) == [
        "one two three four", "six seven eight nine ten", "two three four five"
    ]  # fmt: skip
    for row in rows_of("occurrences"):
        tokens = tokenise(texts[row["doc_id"]])[row["token"] : row["token_end"]]
        assert tokens == tokenise(texts[row["doc_id"]][row["char"] : row["char_end"]])
        assert tokens == tokenise(passages[row["passage_id"]]["text"])
        assert row["first"] == (row["doc_id"] == ("a" if tokens[0] == "one" else "c"))
    kept = [json.loads(line) for line in (place / "out/kept/part-00000.jsonl").read_text("utf-8").splitlines()]
    assert kept == [
        {"id": "a", "text": "one two three four "},
        {"id": "b", "text": "zero, ; end of it"},
        {"id": "c", "text": DOCUMENTS[2]["text"]},
        {"id": "in.jsonl#4", "text": "alone"},
    ]
    assert [row["record"] for row in rows_of("rejects")] == [5]


def test_documents_with_little_left_are_dropped_and_listed(place: Path) -> None:
    """A document left with fewer tokens than asked is listed and not written; a mark stands for what was cut."""
    Path("in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in [*DOCUMENTS, DOCUMENTS[1] | {"id": "d"}]))
    given = ["--set", "output.kept=jsonl", "--set", "passages.min_left=4", "--set", "passages.replace=(…)"]
    assert main(["passages", str(place / "in.jsonl"), "--output", "out", *FOUR, *given]) == 0

    assert [row["doc_id"] for row in rows_of("repeating") if row["dropped"]] == ["d"]
    kept = [json.loads(line) for line in Path("out/kept/part-00000.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in kept] == ["a", "b", "c", "in.jsonl#4"]
    assert kept[0]["text"] == "one two three four (…)"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("given", "said", "left"),
    [([], "dropped: 1 document left without any token\n", ["a", "b", "c", "in.jsonl#4"]),
     (["--set", "passages.min_left=0"], "left without any token, and written: 1 document (passages.min_left: 0)\n",
      ["a", "b", "c", "in.jsonl#4", "d"])],
)  # fmt: skip
def test_a_document_left_without_tokens_is_said(
    given: list[str], said: str, left: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A document of which every token is cut is dropped by default; where it is written, the summary counts it."""
    Path("in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in [*DOCUMENTS, DOCUMENTS[1] | {"id": "d"}]))

    assert main(["passages", "in.jsonl", "--output", "out", *FOUR, "--set", "output.kept=jsonl", *given]) == 0

    assert said in capsys.readouterr().out
    lines = Path("out/kept/part-00000.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == left


@pytest.mark.usefixtures("place")
def test_the_kept_documents_of_a_run_are_read_with_its_ids(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a run, only kept documents count: a removed copy is no second document."""
    text = " ".join(f"w{number}" for number in range(60))
    rows = [("a", text), ("b", text), ("c", " ".join(f"z{number}" for number in range(200)) + " " + text)]
    Path("two.jsonl").write_text("".join(f"{json.dumps({'id': name, 'text': text})}\n" for name, text in rows))
    assert main(["run", "two.jsonl", "--output", "run"]) == 0
    assert main(["passages", "run", "--output", "out"]) == 0

    assert "kept documents of the run: 2, " in capsys.readouterr().out
    assert [(row["doc_id"], row["first"]) for row in rows_of("occurrences")] == [("a", False), ("c", True)]
    assert main(["check", "out"]) == 0


def test_what_was_written_need_not_have_a_column_of_the_policy(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The only record with a value may be dropped: what is left is read again for its texts alone."""
    rows = [{"id": "a", "text": DOCUMENTS[0]["text"]}, {"id": "b", "text": "two three four five six seven", "rank": 2}]
    Path("ranked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["run", "ranked.jsonl", "--output", "run", "--set", "keep.policy=[rank, length]"]) == 0
    asked = ["passages", "run", "--output", "out", *FOUR]
    asked += ["--set", "output.kept=as-input", "--set", "output.tagged=as-input"]
    assert main(asked) == 2
    assert "keep.policy: passages takes longest, " in capsys.readouterr().err
    assert main([*asked, "--set", "keep.policy=longest", "--set", "tokens.ignore=[numbers]"]) == 2
    assert "tokens.ignore: run is read as the run read it; give its INPUT instead" in capsys.readouterr().err
    assert main([*asked, "--set", "keep.policy=longest", "--set", "tokens.ignore=[]"]) == 0
    assert "rank" not in (place / "out/kept/ranked.jsonl").read_text()
    capsys.readouterr()

    assert main(["check", "out"]) == 0
    assert "every promise holds" in capsys.readouterr().out


@pytest.mark.usefixtures("place")
def test_the_first_place_in_a_run_is_that_of_the_order_asked_for() -> None:
    """The order of the run, unless another is given; what is written is proved in that order too."""
    texts = [DOCUMENTS[0]["text"], f"{DOCUMENTS[0]['text']} and much that is long behind it, in the second one"]
    rows = [{"id": name, "text": text} for name, text in zip("ab", texts, strict=True)]
    Path("two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["run", "two.jsonl", "--output", "run"]) == 0

    for given, first in (([], "b"), (["--set", "keep.policy=first"], "a")):
        assert main(["passages", "run", "--output", first, *FOUR, *given]) == 0
        assert {row["doc_id"] for row in rows_of("occurrences", first) if row["first"]} == {first}
        assert main(["check", first]) == 0


@pytest.mark.parametrize("within", ["false", "true"])
@pytest.mark.usefixtures("place")
def test_what_was_written_is_proved(within: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every promise holds for random texts; a changed row breaks those that it concerns."""
    chance = np.random.default_rng(7)
    texts = [" ".join(map(str, chance.integers(0, 3, chance.integers(0, 60)))) for _ in range(40)]
    Path("random.csv").write_text("id,text\n" + "".join(f"{number},{text}\n" for number, text in enumerate(texts)))
    arguments = ["passages", "random.csv", "--output", "out", "--set", "passages.min_tokens=6"]
    assert main([*arguments, "--set", f"passages.within={within}", "--set", "input.content=text"]) == 0
    capsys.readouterr()
    assert main(["check", "out"]) == 0
    assert capsys.readouterr().out.endswith("every promise holds\n")

    for name, broken in (("occurrences", "every place of a repeated window"), ("cuts", "every kept token")):
        path = Path("out", name, "part-00000.zstd.parquet")
        table = pq.read_table(path)
        pq.write_table(table.slice(1), path)
        assert main(["check", "out"]) == 1
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("BROKEN")]
        assert any(broken in line for line in lines)
        pq.write_table(table, path)
    wider = pq.read_table("out/cuts").to_pylist()
    wider[0] |= {"token": 0, "token_end": 1_000}
    pq.write_table(pa.Table.from_pylist(wider, pq.read_schema(path)), path)
    assert main(["check", "out"]) == 1
    assert "no token of a first place" in capsys.readouterr().out


@pytest.mark.usefixtures("place")
def test_each_fault_of_a_table_is_found() -> None:
    """A row that is missing, there twice or changed; but for a blank at the end of a place."""
    assert main(["passages", "in.jsonl", "--output", "out", *FOUR]) == 0
    for name in ("passages", "occurrences", "cuts", "repeating", "rejects"):
        for fault in faults("out", name, ("char_end",)):
            assert main(["check", "out"]) == 1, fault
    assert main(["check", "out"]) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--engine", "local", "--master", "local[1]"], "--master is given"),
        (["--set", "output.kept=parquet"], "output.kept: "),
        (["--set", "passages.min_left=51"], "at most min_tokens, 50"),
        (["--set", "keep.policy=[id]"], "keep.policy: "),
    ],
)
@pytest.mark.usefixtures("place")
def test_what_it_cannot_do_is_refused_in_one_line(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written, and the line names the setting."""
    assert main(["passages", "in.jsonl", "--output", "out", *given]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not Path("out").exists()


@pytest.mark.usefixtures("place")
def test_much_text_needs_spark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the tokens may not fit in memory, Spark is chosen by the size of the files that are read, also of a run."""
    paths = [paths_read(["in.jsonl"])]
    assert main(["run", "in.jsonl", "--output", "run"]) == 0
    paths.append(paths_read(["run"]))
    given = [f"local.memory={(1 << 29) + 3_000}"]
    chosen = [choose_engine(some, "out", load_config(None, given), master=None, weight=WEIGHT) for some in paths]
    assert [choice.engine for choice in chosen] == ["spark", "spark"]
    assert all("more than local.memory" in choice.why for choice in chosen)
    assert choose_engine(paths[0], "out", load_config(None, given), master=None).engine == "local"

    monkeypatch.setattr("nddup.engines.choose.has_java", lambda: False)
    monkeypatch.setattr("nddup.passages.find_passages.OF_TOKEN", 1 << 40)
    assert main(["passages", "in.jsonl", "--output", "out", *FOUR]) == 1
    assert "the 32 tokens may need" in capsys.readouterr().err


def test_a_finished_search_is_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The summary with what saves most; one passage with its places; one document with its repeated parts; JSON."""
    assert main(["passages", "in.jsonl", "--output", "out", *FOUR]) == 0
    summary = capsys.readouterr().out.splitlines()[:4]
    assert main(["show", "out"]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[:4] == summary
    assert summary[3].startswith("rejects, not read: 1")
    assert "         5       5        2  six seven eight nine ten\n" in shown
    name = next(row["passage_id"] for row in rows_of("passages") if row["tokens"] == 5)
    assert main(["show", str(place / "out"), "--passage", name]) == 0
    assert "               26 to 50  c: first place\n               24 to 48  a: cut\n" in capsys.readouterr().out
    assert main(["show", "out", "--doc", "b"]) == 0
    told = capsys.readouterr().out
    assert "of 9 tokens 5 are repeated, 5 can be cut" in told
    assert "2  cut: one two three four\n" in told
    assert main(["show", "out", "--doc", "b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["occurrences"] == 2

    for given, said in (
        (["--doc", "in.jsonl#4"], "--doc in.jsonl#4: nothing of such a document is repeated"),
        (["--passage", "0"], "--passage 0: no such passage"),
        (["--removed"], "--removed: out was written by `nddup passages`"),
    ):
        assert main(["show", "out", *given]) == 2
        assert said in capsys.readouterr().err
