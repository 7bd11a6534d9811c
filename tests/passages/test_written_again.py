"""The collection without its repeated passages, or with their spans: what is written, format by format."""

import csv
import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from tests.counted_rows import once, once_each

RUN = "one two three, four five six seven eight; nine ten eleven twelve"
TEXTS = [
    ("a", f'Begin & <end> {RUN} of «a» with "quotes", and more words than the others have'),
    ("b", f"né {RUN}\tlast"),
    ("c", "nothing repeated <here> & there"),
    ("d", f"{RUN}"),
]
KEYS = ("passage_id", "char", "char_end", "first")
SIX = ["--set", "passages.min_tokens=6", "--set", "passages.min_left=0"]
"""Runs of six tokens; records left without text are written too."""


def json_lines(path: Path) -> None:
    """A field before the text and one after it, spelled as no writer would spell them again."""
    lines = [
        f'{{"n" : 1.50,"id":"{name}", "text":{json.dumps(text)} ,"meta":{{"text":"\\u00e9"}}}}' for name, text in TEXTS
    ]
    (path / "in.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n", encoding="utf-8")


def nested_json(path: Path) -> None:
    """The text is at a dotted path, and a list."""
    rows = [{"id": name, "doc": {"body": text.split(" of "), "x": [{"body": 1}]}} for name, text in TEXTS]
    (path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def pairs(path: Path) -> None:
    """Lines for Elasticsearch, each after one with its id; one changes a document."""
    rows = [
        ({"update" if at == 2 else "index": {"_id": name}}, {"text": text}) for at, (name, text) in enumerate(TEXTS)
    ]
    lines = [json.dumps(one) for action, row in rows for one in (action, {"doc": row} if "update" in action else row)]
    (path / "in.json").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def table(path: Path) -> None:
    """Values with and without quotes."""
    with (path / "in.csv").open("w", encoding="cp1251", newline="", errors="replace") as file:
        writer = csv.writer(file)
        writer.writerows([("id", "text", "other"), *((name, text.replace("é", "e"), 'x"y') for name, text in TEXTS)])


def tabs(path: Path) -> None:
    """Values that are never quoted."""
    rows = [("id", "text"), *((name, text.replace("\t", " ")) for name, text in TEXTS)]
    (path / "tabs.csv").write_text("".join(f"{name}\t{text}\n" for name, text in rows), encoding="utf-8")


def parquet(path: Path) -> None:
    """A dictionary, a list, and nulls."""
    columns = {
        "id": [name for name, _ in TEXTS],
        "text": pa.array([text for _, text in TEXTS]).dictionary_encode(),
        "more": pa.array([None, RUN, None, "more"], pa.large_string()),
        "list": [[1], None, [], [2, 3]],
    }
    pq.write_table(pa.table(columns), path / "in.parquet", row_group_size=2)


def xml(path: Path) -> None:
    """Text in CDATA, escaped, and in an element within; comments between."""
    bodies = [f"<![CDATA[{TEXTS[0][1]}]]>", escape(TEXTS[1][1]), escape(TEXTS[2][1]), f"<i>{escape(TEXTS[3][1])}</i>"]
    records = [
        f"<doc n='<1'><!-- <text> --><id>{name}</id><text k='>'>{body}</text><o>&amp;</o></doc>\n".replace(
            "'<1'", "'1'"
        )
        for (name, _), body in zip(TEXTS, bodies, strict=True)
    ]
    whole = f"<?xml version='1.0' encoding='utf-16'?>\n<docs>\n{''.join(records)}</docs>\n"
    (path / "in.xml").write_bytes(whole.encode("utf-16"))


def attributes(path: Path) -> None:
    """Comments of Stack Exchange: the text is an attribute."""
    rows = [f'  <row Id="{name}" Score="1" Text="{escape(text)}" />\n' for name, text in TEXTS]
    (path / "Comments.xml").write_text(
        f'<?xml version="1.0" encoding="utf-8"?>\n<comments>\n{"".join(rows)}</comments>\n'
    )


def plain(path: Path) -> None:
    """Files that are texts, one in a charset of its own."""
    for name, text in TEXTS:
        (path / f"{name}.txt").write_bytes(text.replace("é", "e").encode("cp1252") + b"\r\n")


def pages(path: Path) -> None:
    """Pages in JSON: what is cut loses its markup."""
    rows = [{"id": name, "html": f"<html><body><p>{escape(text)}</p></body></html>", "k": 1} for name, text in TEXTS]
    (path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def titles(path: Path) -> None:
    """Titles before the texts, one of them empty, which is no part of its record."""
    rows = [{"id": name, "title": title, "text": text.replace("\t", " ")}
            for (name, text), title in zip(TEXTS, ("first", "", "third", f"{RUN} again"), strict=True)]  # fmt: skip
    lines = [json.dumps(row | {"id": f"j{row['id']}"}) for row in rows]
    (path / "j.jsonl").write_text("\n".join(lines) + "\n")
    with (path / "c.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([list(rows[0]), *([f"c{row['id']}", row["title"], row["text"]] for row in rows)])
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    pq.write_table(pa.table(columns | {"id": [f"p{name}" for name in columns["id"]]}), path / "p.parquet")
    elements = [
        f"<doc><id>x{row['id']}</id><title>{row['title']}</title><text>{escape(row['text'])}</text></doc>\n"
        for row in rows
    ]
    elements[1] = elements[1].replace("<title></title>", "<title/>")
    (path / "x.xml").write_text(f"<docs>\n{''.join(elements)}</docs>\n", encoding="utf-8")


def chats(path: Path) -> None:
    """Turns of a chat: strings, lists of parts, one empty, and keys before and after what is said."""
    rows = []
    for name, text in TEXTS:
        question, *answer = text.split(" of ")
        parts = [{"type": "text", "text": "".join(answer)}, {"type": "image", "text": None, "url": "u"}]
        first = {"content": question, "role": "user", "at": 1}
        turns = [first, {"role": "x", "content": ""}, {"role": "assistant", "content": parts}]
        rows.append({"id": f"j{name}", "messages": turns})
    (path / "j.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    said = [[{"from": "human", "value": "hello"}, {"from": "gpt", "value": text}, {"from": "human", "value": None}]
            for _, text in TEXTS]  # fmt: skip
    pq.write_table(pa.table({"id": [f"p{name}" for name, _ in TEXTS], "conversations": said}), path / "p.parquet")


FORMS: list[tuple[Callable[[Path], None], list[str]]] = [
    (json_lines, []),
    (nested_json, ["--set", "input.content=doc.body"]),
    (pairs, []),
    (table, []),
    (tabs, []),
    (parquet, ["--set", "input.content=text"]),
    (xml, []),
    (attributes, []),
    (plain, []),
    (pages, ["--set", "input.content=html"]),
    (titles, []),
    (chats, []),
]


CASES = [
    pytest.param(*form, mark, marks=[pytest.mark.nightly] * ((at + number) % 3 > 0))
    for at, form in enumerate(FORMS)
    for number, mark in enumerate(["", "[cut]", "x"])
]
"""Each format with each mark; by day with one of them."""


@pytest.mark.parametrize(("form", "settings", "mark"), CASES)
def test_every_format_is_cut_in_place_and_proved(
    form: Callable[[Path], None], settings: list[str], mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kept collection, read again, has the tokens that are not cut; records without cuts keep their bytes."""
    (tmp_path / "in").mkdir()
    form(tmp_path / "in")
    given = [*SIX, *settings, "--set", "output.kept=as-input", "--set", f"passages.replace='{mark}'"]
    assert main(["passages", str(tmp_path / "in"), "--output", str(tmp_path / "out"), *given]) == 0
    assert "stay whole" not in capsys.readouterr().out

    assert pq.read_table(tmp_path / "out" / "cuts")["doc_id"].to_pylist()
    assert main(["check", str(tmp_path / "out")]) == 0
    assert "the kept collection has the tokens that are not cut" in capsys.readouterr().out
    for path in (tmp_path / "in").iterdir():
        kept = tmp_path / "out" / "kept" / path.name
        assert len(kept.read_bytes()) != len(path.read_bytes()) or path.name in ("a.txt", "c.txt")
        if path.suffix != ".parquet":
            whole = [line for line in path.read_bytes().splitlines() if b"nothing" in line.replace(b"\0", b"")]
            assert all(line in kept.read_bytes() for line in whole)


def test_nothing_but_the_text_of_a_record_changes(tmp_path: Path) -> None:
    """Other fields keep their spelling; a record that cannot be read goes, and so does one with too little left."""
    json_lines(tmp_path)
    given = [*SIX, "--set", "output.kept=as-input", "--set", "passages.min_left=2"]
    assert main(["passages", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out"), *given]) == 0

    before = (tmp_path / "in.jsonl").read_text("utf-8").splitlines()
    after = (tmp_path / "out/kept/in.jsonl").read_text("utf-8").splitlines()
    assert after == [before[0], before[1].replace(json.dumps(TEXTS[1][1]), '"né \\tlast"'), before[2]]
    assert main(["check", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("others", [True, False])
def test_files_of_pages_are_written_as_texts(
    others: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of pages only the texts are written, which is said; the proof covers them, also alone."""
    (tmp_path / "in").mkdir()
    for name, text in TEXTS:
        (tmp_path / "in" / f"{name}.html").write_text(f"<html><body>{escape(text)}</body></html>", encoding="utf-8")
    if others:
        plain(tmp_path / "in")
    given = [*SIX, "--set", "output.kept=as-input"]
    assert main(["passages", str(tmp_path / "in"), "--output", str(tmp_path / "out"), *given]) == 0

    assert "texts/: the texts of pages, as lines of JSON" in capsys.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / "out/texts/part-00000.jsonl").read_text("utf-8").splitlines()]
    assert once(row["id"] for row in rows) == {"a.html", "b.html", "c.html", "d.html"}
    assert not list((tmp_path / "out/kept").glob("*.html"))
    assert main(["check", str(tmp_path / "out")]) == 0


def spans_of(path: Path) -> dict[str, tuple[Any, Any]]:
    """Return the spans of each record by its id."""
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        rows = list(csv.DictReader(path.open(encoding="cp1251", newline="")))
        rows = [{key: json.loads(row[key]) if "nddup" in key else row[key] for key in row} for row in rows]
    else:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line != "{broken"]
    return once_each((row["id"], (row["nddup_passages"], row["nddup_cuts"])) for row in rows)


@pytest.mark.parametrize("form", [json_lines, table, parquet])
def test_spans_of_passages_are_fields_and_nothing_is_cut(form: Callable[[Path], None], tmp_path: Path) -> None:
    """Every record has the spans that the tables have, in characters of its text."""
    (tmp_path / "in").mkdir()
    form(tmp_path / "in")
    arguments = ["passages", str(tmp_path / "in"), "--output", str(tmp_path / "out"), *SIX]
    assert main([*arguments, "--set", "output.tagged=as-input", "--set", "input.content=text"]) == 0

    name = next((tmp_path / "in").iterdir()).name
    found = spans_of(tmp_path / "out/tagged" / name)
    assert list(found) == [name for name, _ in TEXTS]
    assert found["c"] == ([], [])
    occurrences = pq.read_table(tmp_path / "out/occurrences").to_pylist()
    listed = [(row["doc_id"], *(row[key] for key in KEYS)) for row in occurrences]
    tagged = [(name, *(span[key] for key in KEYS)) for name, (spans, _) in found.items() for span in spans]
    assert sorted(tagged) == sorted(listed)
    assert TEXTS[3][1][slice(*(found["d"][1][0][key] for key in ("char", "char_end")))] == RUN
    assert not (tmp_path / "out/kept").exists()
    assert main(["check", str(tmp_path / "out")]) == 0


def test_the_kept_documents_of_a_run_are_cut_in_their_files(tmp_path: Path) -> None:
    """Of a run, removed documents are not written, nor those too short to be compared; the kept ones are cut."""
    json_lines(tmp_path)
    copy = json.dumps({"id": "e", "text": TEXTS[0][1]})
    with (tmp_path / "in.jsonl").open("a") as file:
        file.write(f"{copy}\n")
    assert main(["run", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "run")]) == 0
    given = [*SIX, "--set", "output.kept=as-input"]
    assert main(["passages", str(tmp_path / "run"), "--output", str(tmp_path / "out"), *given]) == 0

    assert [json.loads(line)["id"] for line in (tmp_path / "out/kept/in.jsonl").open(encoding="utf-8")] == list("abc")
    assert main(["check", str(tmp_path / "out")]) == 0


def test_a_changed_kept_file_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A word that is missing in the kept collection breaks its promise."""
    json_lines(tmp_path)
    given = [*SIX, "--set", "output.kept=as-input"]
    assert main(["passages", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out"), *given]) == 0
    kept = tmp_path / "out/kept/in.jsonl"
    kept.write_text(kept.read_text("utf-8").replace("there", ""), encoding="utf-8")
    capsys.readouterr()
    assert main(["check", str(tmp_path / "out")]) == 1
    assert "BROKEN 1   the kept collection has the tokens that are not cut" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "promise"),
    [
        ("nothing", "something", "the tagged collection has the texts of the inputs"),
        ('"first": true', '"first": false', "every record has the spans of the tables"),
    ],
)
def test_a_changed_tagged_file_is_found(
    old: str, new: str, promise: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another word, or another span, breaks its promise."""
    json_lines(tmp_path)
    given = [*SIX, "--set", "output.tagged=as-input"]
    assert main(["passages", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out"), *given]) == 0
    tagged = tmp_path / "out/tagged/in.jsonl"
    tagged.write_text(tagged.read_text("utf-8").replace(old, new, 1), encoding="utf-8")
    capsys.readouterr()
    assert main(["check", str(tmp_path / "out")]) == 1
    assert f"BROKEN 1   {promise}" in capsys.readouterr().out
