"""Mistakes of a first hour with nddup: the exit status and every printed line."""

import json
import socket
import sys
from pathlib import Path

import pandas as pd
import pytest

import nddup
from nddup.commands import COMMANDS
from nddup.errors import ConfigError
from tests.commands.transcripts import Transcript, record, record_apart

WORDS = {f"http://x/{row}": [f"w{row}x{number}" for number in range(30)] for row in range(5)}
TEXTS = {url: " ".join(words) for url, words in WORDS.items()} | {
    "http://x/5": " ".join([*WORDS["http://x/4"][:-1], "more"])
}
RULE = "─" * 76
RUN = ("run", "news.jsonl", "--output", "out", "--set", "output.report=false", "--set", "input.id=url")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder with six texts as JSON lines, two of them near-duplicates."""
    monkeypatch.chdir(tmp_path)
    rows = [{"url": url, "text": text} for url, text in TEXTS.items()]
    Path("news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> "Say":
    """A function that runs a command in this process."""
    return Say(capsys, monkeypatch)


class Say:
    """Runs commands in this process and records what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._given = capsys, monkeypatch

    def __call__(self, *arguments: str) -> Transcript:
        """Run a command; returns its exit status and printed lines."""
        return record(*self._given, *arguments)


def table(**numbers: str) -> list[str]:
    """Return the summary of the run over the six texts, with the given lines replaced."""
    lines = {
        "records read": "6   1 file, 1 kB",
        "rejected": "0",
        "documents": "6   0 have the same text as another",
        "near-duplicate pairs": "1   resemblance at least 0.7, exact",
        "": "expected missed: at most 1 in 1,640",
        "clusters": "1   in each, every two documents are alike",
        "kept": "5   83.3% of the documents",
        "removed": "1   each has a kept near-duplicate",
    } | {name.replace("_", " "): line for name, line in numbers.items()}
    spelled = []
    for name, line in lines.items():
        number, blank, note = line.partition(" ") if name else ("", "   ", line)
        spelled.append(f"  {name:<21}{number:>13}{blank}{note}")
    return [RULE, *spelled, RULE, SHORT]


SHORT = (
    "  note: the median document has 30 tokens: of pairs of such texts that differ in one word, 27% are found with"
    " shingles of 5 words; --config short is made for them"
)


STAGES = [
    "TIME nddup engine: local (the inputs are here, and fit in memory)",
    "TIME nddup sketch 0.0 s  6 documents, 0 rejects",
    "TIME nddup pairs 0.0 s  1 pair, 1 candidate",
    "TIME nddup clusters 0.0 s  1 cluster",
    "TIME nddup keep 0.0 s  5 kept",
    "TIME nddup texts 0.0 s  0 texts for the report",
]


def test_1_a_wrong_id(say: Say) -> None:
    """`input.id` is refused if no record has it, and records that lack it are counted."""
    refused = say("run", "news.jsonl", "--output", "out", "--set", "input.id=nope")
    said = "nddup: input.id=nope: no record at the start of any file has it; news.jsonl has url, text"
    assert refused == Transcript(2, [], [said])

    with Path("news.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"text": "it has words of its own, and none of the others"}) + "\n")
    counted = say(*RUN)
    assert counted.status == 0
    assert counted.out[-2] == "  note: 1 document without an id: named file#record"


def test_2_spark_that_does_not_start() -> None:
    """If Spark does not start, one line names the root cause; it mentions Java only if Java is missing."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    here = Path()

    nobody = record_apart(here, *RUN, "--master", f"spark://127.0.0.1:{port}")
    no_java = record_apart(here, *RUN, "--engine", "spark", JAVA_HOME="/none", PATH="/none")

    no_master = f"nddup: Spark did not start: no master can be reached at 127.0.0.1:{port} (connection refused)"
    assert nobody == Transcript(2, [], [no_master])
    assert no_java.status == 2
    assert [line.partition("; ")[0] for line in no_java.err] == ["nddup: Spark did not start: no Java was found"]
    assert not Path("out").exists()


@pytest.mark.spark
def test_2_a_heap_that_java_refuses() -> None:
    """The line repeats Java's own message, without advice on how to install Java."""
    lots = record_apart(Path(), *RUN, "--set", "spark.driver.memory=lots")

    assert lots == Transcript(2, [], ["nddup: Spark did not start: Invalid maximum heap size: -Xmxlots"])


def test_3_a_run_and_its_check(say: Say) -> None:
    """A run prints a line for each stage, and `check` one screen (`test_start_up` tests the first line)."""
    assert say(*RUN) == Transcript(0, [*table(), " 0.0 s, results in out"], STAGES)

    checked = say("check", "out")
    assert checked.status == 0
    assert checked.err == []
    assert {line[:11].strip() for line in checked.out[:-1]} == {"ok", ""}
    assert len(checked.out) <= 24
    assert max(map(len, checked.out)) <= 80
    assert checked.out[-1] == "every promise holds"


def test_4_an_interrupted_run_is_resumed(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt prints one line, and the resumed run names the tables it reused."""
    with monkeypatch.context() as patch:
        patch.setattr("nddup.embedded.steps.pair", interrupt)
        stopped = say(*RUN)
    resumed = say(*RUN, "--resume")

    assert stopped == Transcript(130, [], [*STAGES[:2], "nddup: interrupted; `--resume` finishes it"])
    reused = "TIME nddup sketch 0.0 s  6 documents, 0 rejects, reused: documents, rejects"
    assert resumed == Transcript(0, [*table(), " 0.0 s, results in out"], [STAGES[0], reused, *STAGES[2:]])


@pytest.mark.parametrize(
    ("arguments", "afterwards"),
    [
        (["inspect", "news.jsonl"], ""),
        (["check", "out"], ""),
        (["truth", "out", "--output", "truth.csv"], "; any output is incomplete"),
        (["sweep", "news.jsonl", "--grid", "grid", "--output", "all"], "; `--resume` finishes it"),
        (["index", "list", "pages"], "; the repository is at its last version (`nddup index list`)"),
    ],
)
def test_4_what_an_interrupt_leaves(
    arguments: list[str], afterwards: str, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt prints one line, which says in what state the command leaves its output, if it has any."""
    monkeypatch.setattr(COMMANDS[arguments[0]], "execute", interrupt)

    assert say(*arguments) == Transcript(130, [], [f"nddup: interrupted{afterwards}"])


def interrupt(*_: object, **__: object) -> None:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt


def test_5_cheap_mistakes(say: Say) -> None:
    """A missing input, an output that exists, a folder that is no run, and an unknown option or command are named."""
    Path("taken").mkdir()
    Path("taken/file").touch()

    cases = {
        ("run", "none.jsonl", "--output", "out"): "INPUT none.jsonl: no such file or folder",
        ("run", "news.jsonl", "--output", "taken"): "--output taken: exists already; give another folder,"
        " or --overwrite to replace it, or --resume to finish it",
        ("show", "none"): "none: no such folder",
        ("check", "taken"): "taken: is not a run of nddup (it has no _RUN.json)",
        ("run", "news.jsonl", "--output", "out", "--fast"): "unrecognized arguments: --fast (see nddup run --help)",
        ("rnu", "news.jsonl"): "no command rnu; did you mean run? (see nddup --help)",
    }  # fmt: skip
    assert {given: say(*given) for given in cases} == {
        given: Transcript(2, [], [f"nddup: {said}"]) for given, said in cases.items()
    }


def test_6_files_that_are_not_read(say: Say) -> None:
    """The summary names the first unread files with their reasons."""
    Path("in").mkdir()
    Path("news.jsonl").rename("in/news.csv")
    Path("in/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    Path("in/list.json").write_text('[{"url": "a", "text": "b"}', encoding="utf-16")
    Path("in/old.docx").write_bytes(b"PK\3\4\0")
    Path("in/README").touch()

    done = say("run", "in", *RUN[2:])

    skipped = "1 images, styles, scripts and the like of pages, 1 named as a readme, licence, notice or changelog"
    why = "no line at its start is a JSON object"
    unread = f"list.json ({why}), old.docx (binary: a Word document); each is in rejects/"
    assert done == Transcript(
        0,
        [*table(records_read="8   3 files, 1 kB", rejected="2   1 binary, 1 no records"),
         f"  note: 2 files skipped ({skipped}), listed in metrics.json",
         f"  note: files that gave no document: {unread}",
         " 0.0 s, results in out"],
        [STAGES[0], STAGES[1].replace("0 rejects", "2 rejects"), *STAGES[2:]],
    )  # fmt: skip


def test_7_find_duplicates_in_python() -> None:
    """`find_duplicates` refuses settings and inputs that it does not take, and says how to give them."""
    pages = pd.DataFrame({"id": ["a", "b"], "text": ["one two", "three four"]})

    with pytest.raises(ConfigError, match=r"^find_duplicates: output: it writes no folder, the tables are returned; "):
        nddup.find_duplicates(pages, output={"kept": "jsonl"})
    with pytest.raises(ConfigError, match=r"threshold is a setting of pairs: pairs=\{'threshold': 0.9\}$"):
        nddup.find_duplicates(pages, threshold=0.9)
    with pytest.raises(ConfigError, match=r"or Arrow, or a list of dictionaries, got str; of a file, "):
        nddup.find_duplicates("news.jsonl")
    with pytest.raises(ConfigError, match=r"^find_duplicates: no column 'body'; there are id, text$"):
        nddup.find_duplicates(pages, text="body")


HINTS = {
    "pairs.threshold=80": "--set: pairs.threshold: an integer (80) is a count, which needs measure overlap; for a share"
    " write 0.8",
    "pairs.threshold=90%": "--set: pairs.threshold: Input should be a valid number, got '90%'; write 0.9",
    "pairs.threshold=0,9": "--set: pairs.threshold: Input should be a valid number, got '0,9'; write 0.9",
    "keep.same=lang": "--set: keep.same: Input should be a valid list, got 'lang'; write keep.same=[lang]",
    "threshold=0.9": "--set threshold: threshold is a setting of pairs: --set pairs.threshold=…",
    "pairs.treshold=0.9": "--set: pairs.treshold: unknown key; did you mean threshold?",
    "pairs.threshold": "argument --set: expected pairs.threshold=VALUE, without blanks around =, got 'pairs.threshold'"
    " (see nddup run --help)",
    "input.charset=latin99": "input.charset=latin99: unknown encoding; expected a name such as utf-8 or cp1252",
    "input.content=url,text": "input.content=url,text: no record at the start of any file has it; news.jsonl has"
    " url, text",
}


@pytest.mark.parametrize("setting", HINTS)
def test_8_hints_for_settings(setting: str, say: Say) -> None:
    """The refusal of a mistyped setting says what was probably meant."""
    assert say("run", "news.jsonl", "--output", "out", "--set", setting) == Transcript(
        2, [], [f"nddup: {HINTS[setting]}"]
    )


def test_8_hints_for_options(say: Say) -> None:
    """Options named like settings, options of other programs, quoted wildcards and `~` get a hint."""
    cases = {
        ("news.jsonl", "--threshold", "0.9"): "unrecognized arguments: --threshold 0.9; a setting is given as"
        " --set pairs.threshold=0.9 (see nddup run --help)",
        ("news.jsonl", "--threads", "4"): "unrecognized arguments: --threads 4; a setting is given as"
        " --set local.processes=4 (see nddup run --help)",
        ("*.jsonl",): "INPUT *.jsonl: no such file or folder; wildcards are taken literally: leave out the quotes, or"
        " name the folder",
        ("~/news.jsonl",): "INPUT ~/news.jsonl: no such file or folder; ~ is taken literally: leave out the quotes, or"
        " write the path from the root",
    }  # fmt: skip
    assert {given: say("run", "--output", "out", *given) for given in cases} == {
        given: Transcript(2, [], [f"nddup: {said}"]) for given, said in cases.items()
    }


def test_9_looking_at_a_result(say: Say) -> None:
    """The columns that `show` prints have headings, and kept JSON lines are written to files named .jsonl."""
    assert say(*RUN, "--set", "output.kept=jsonl").status == 0

    shown = say("show", "out", "--doc", "http://x/5")
    assert [path.name for path in Path("out/kept").iterdir()] == ["part-00000.jsonl"]
    assert shown.out[:4] == [
        "document http://x/5: news.jsonl#6, 30 tokens, 26 features",
        "  removed   near-duplicate of http://x/4, 3.9% of its shingles lost",
        "  near      resemblance  common  document",
        "                  0.925      25  http://x/4",
    ]
    assert say("show", "out").out[-2].split() == ["cluster", "documents", "first", "document"]
    assert "pyspark.sql.session" not in sys.modules or shown.err == []
