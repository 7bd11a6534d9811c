"""Cuts of whole sentences: where sentences end, and that one is cut iff every token of it may be."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st

from nddup.cli import main
from nddup.passages.tabulate import find_sentences
from nddup.sketching.tokens import tokenise
from tests.samples_by_night import examples

WORDS = st.lists(st.lists(st.sampled_from("AB"), min_size=1, max_size=4), min_size=1, max_size=8)
"""The sentences of a text."""


@pytest.mark.parametrize(
    "parts",
    [
        ["One two. ", "Three! ", "Four? five"],
        ["See e.g. the U.S. law at 3.14 or nddup.run. ", "Not www.example.org."],
        ['He said: "Stop." ', "(She did.) ", "«Well…» ", "“Yes?” he asked."],
        ["A line that is wrapped\nhere. ", "A heading\n", "- Another\n\n", "an empty line before. "],
        ["\u4e00\u4e8c\u3002", "\u4e09\u56db\uff01\u300d", "\u4e94"],
        ["\u0938\u0935\u0964 ", "\u0927\u0930\u0964 ", "\u041f\u0440\u0438\u0432\u0435\u0442. ", "\u041a\u0430\u043a"],
        ["no end at all"],
        ["Marks " + "." * 300_000 + "go on. ", "Then an end" + "!" * 300_000 + ") ", "And another."],
        ["  \n\n* * *\nTitle\n* * *\n\n", "text after what has no token"],
    ],
)
def test_where_sentences_begin(parts: list[str]) -> None:
    """Small letters go on after a stop or a line end, not after an empty line; what has no token ends a sentence."""
    text = "".join(parts)
    found = find_sentences(text.encode(), len(tokenise(text)))

    begins = np.cumsum([0, *map(len, parts)]).tolist()
    assert found.chars.tolist()[1:] == begins[1:]
    assert not any(letter.isalnum() for letter in text[: found.chars[0]])
    assert found.tokens.tolist() == np.cumsum([0, *(len(tokenise(part)) for part in parts)]).tolist()[:-1]


@trying(max_examples=examples(10, 100))
@given(st.lists(WORDS, min_size=2, max_size=5))
def test_a_sentence_is_cut_if_every_token_may_be(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[list[str]]]
) -> None:
    """The tokens that may be cut are those of a run without the setting; `check` proves the one with it."""
    folder = tmp_path_factory.mktemp("sentences")
    texts = [" ".join(f"{' '.join(sentence)}." for sentence in document) for document in documents]
    lines = [json.dumps({"id": f"d{at}", "text": f"{text} X{at}"}) for at, text in enumerate(texts)]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    given = ["passages", str(folder / "in.jsonl"), "--set", "passages.min_tokens=3", "--set", "output.kept=jsonl"]
    given += ["--set", "output.report=false", "--set", "passages.min_left=0"]
    assert main([*given, "--output", str(folder / "any")]) == 0
    assert main([*given, "--output", str(folder / "whole"), "--set", "passages.whole_sentences=true"]) == 0
    may_go, goes = ({(row["doc_id"], at) for row in pq.read_table(folder / name / "cuts").to_pylist()
                     for at in range(row["token"], row["token_end"])} for name in ("any", "whole"))  # fmt: skip

    expected, kept = set(), {}
    for at, document in enumerate(documents):
        token, left = 0, []
        for sentence in document:
            tokens = {(f"d{at}", token + n) for n in range(len(sentence))}
            token += len(sentence)
            if tokens <= may_go:
                expected |= tokens
            else:
                left.append(f"{' '.join(sentence)}.")
        kept[f"d{at}"] = " ".join([*left, f"X{at}"])

    assert goes == expected
    rows = map(json.loads, (folder / "whole" / "kept" / "part-00000.jsonl").read_text().splitlines())
    assert {row["id"]: row["text"] for row in rows} == kept
    assert main(["check", str(folder / "whole")]) == 0


def test_a_sentence_cut_in_part_is_no_proof(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A folder whose settings ask for whole sentences, and whose cuts are not."""
    run = "one two three four five six"
    texts = [f"{run}, first. And more.", f"Before: {run}. Another."]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps({'id': n, 'text': t})}\n" for n, t in enumerate(texts)))
    given = ["passages", str(tmp_path / "in.jsonl"), "--output", str(tmp_path / "out")]
    assert main([*given, "--set", "passages.min_tokens=4"]) == 0
    assert main(["check", str(tmp_path / "out")]) == 0

    header = tmp_path / "out" / "_PASSAGES.json"
    header.write_text(header.read_text().replace('"whole_sentences": false', '"whole_sentences": true'))
    assert main(["check", str(tmp_path / "out")]) == 1
    assert "or of a sentence with such a token" in capfd.readouterr().out
