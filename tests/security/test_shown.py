"""Names, ids, addresses and details come from the data: shown, they act on no terminal, no log and no spreadsheet."""

import csv
import io
import os
import shutil
import subprocess
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from nddup.checking.prove_names import _read_id
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.errors import NddupError
from nddup.ground.shown import csv_line, escaped, one_line, printable, read_cell
from nddup.settings.load import build_config
from nddup.spark.steps.outputs import _escaped
from tests.finished_runs import write_rows
from tests.samples_by_night import first

ESC, RIGHT_TO_LEFT = "\x1b[2J", "\u202e"
IDS = (f"a{RIGHT_TO_LEFT}gpj.exe", "=cmd|' /C calc'!A0", "@SUM(1)", "-5", "'+x", "b")
FILE = f"pages{ESC}\nforged line.jsonl"
PROGRAM = "import sys; from nddup.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file with a hostile name, hostile ids and addresses, and a broken record, and its run."""
    folder = tmp_path_factory.mktemp("shown")
    (folder / "in").mkdir()
    words = " ".join(f"w{number}" for number in range(60))
    rows = [{"id": name, "url": f"http://{ESC}{name}", "text": f"{words} {name}"} for name in IDS]
    file = write_rows(folder / "in" / FILE, rows)
    file.write_text(file.read_text() + '{"id": "x\\u001b[2J", "text"\n')
    (folder / "list.csv").write_text("".join(csv_line(pair) for pair in ((IDS[1], IDS[4]), (IDS[0], "=none"))))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_locally(["in"], "run", build_config({}, origin="test"))
        write_rows(folder / "in.jsonl", [{"id": "день", "text": "один два три четыре пять шесть"}])
        run_locally(["in.jsonl"], "день", build_config({"output": {"report": False}}, origin="test"))
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, a copy of `made`."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path, dirs_exist_ok=True))
    return tmp_path


COMMANDS = (
    ["inspect", "in"], ["show", "run"], ["show", "run", "--doc", IDS[0]], ["show", "run", "--borderline", "9"],
    ["check", "run"], ["evaluate", "run", "--truth", "list.csv"], ["against", "in", "in"],
    ["run", "in", "--output", "2"],
    ["show", "run", "--doc", f"no{ESC}"], ["inspect", f"none{ESC}"], ["show", f"{ESC}--x"], ["run", f"--x{ESC}"],
)  # fmt: skip


def is_plain(text: str) -> bool:
    """Return whether a text has no character that acts, apart from ends of lines."""
    return not any(unicodedata.category(one) in {"Cc", "Zl", "Zp", "Cs"} or one in RIGHT_TO_LEFT for one in
                   text.replace("\n", ""))  # fmt: skip


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_what_a_command_prints_is_plain(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """Neither results nor errors hold a control character, and no line of theirs is of the data's making."""
    with suppress(SystemExit):
        main(arguments)

    printed = capfd.readouterr()
    lines = (printed.out + printed.err).splitlines()
    assert lines
    assert is_plain(printed.out + printed.err)
    assert not any(line.startswith("forged") for line in lines)


def test_lists_for_programs_are_plain_and_exact(place: Path) -> None:
    """`duplicates.txt` escapes what acts; its ids can be read back."""
    (line,) = (place / "run" / "duplicates.txt").read_text().splitlines()

    assert is_plain(line.replace("\t", ""))
    assert sorted(map(_read_id, line.split("\t")[:-1])) == sorted(IDS)


def test_csv_files_hold_no_formula_and_give_ids_back(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No cell of a list begins as a formula, and numbers are numbers; the program that reads the lists sees the ids."""
    assert main(["evaluate", "run", "--truth", "list.csv"]) == 0
    assert main(["truth", "run", "--similarity", "0.8", "--output", "truth.csv"]) == 0
    files = [*(place / "run" / "evaluation").glob("*.csv"), place / "truth.csv"]
    assert len(files) == 3
    for file in files:
        for row in csv.reader(file.read_text().splitlines()):
            assert not any(cell.startswith(("=", "+", "@", "\t", "-x")) for cell in row)
    capsys.readouterr()

    assert main(["evaluate", "run", "--truth", "truth.csv"]) == 0

    assert f"{len(IDS)} ids" in capsys.readouterr().out
    assert "0 ids of no document" not in capsys.readouterr().out


BLANKS = "\t\r\n \x00\x85\xa0\xad\u200b\u2060\u3000\u3164\ufeff\U000e0001"
CELLS = st.text() | st.builds("".join, st.lists(st.sampled_from([*BLANKS, *"'=+-@＝＋－＠﹦⁻\u22121a"]), max_size=5))


@given(st.lists(st.one_of(CELLS, st.integers(), st.floats(allow_nan=False)), min_size=1))
def test_cells_are_read_back(values: list[str | int | float]) -> None:
    """Texts come back as they were, and numbers are unchanged, whatever they begin with."""
    texts = [value if isinstance(value, str) else str(value) for value in values]
    (row,) = csv.reader(io.StringIO(csv_line(values), newline=""))

    assert [read_cell(cell) for cell in row] == texts
    for cell in row:
        begun = unicodedata.normalize("NFKC", cell.lstrip(BLANKS)).lstrip(BLANKS)
        assert not cell.startswith(("\t", "\r"))
        assert not begun.startswith(("=", "@", "+", "-")) or cell.isascii()
        assert not begun.startswith(("=", "@", "\u2212"))


def test_no_character_hides_a_formula() -> None:
    """Behind each character without a picture, and by each that becomes its sign in some form, a formula is seen."""
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    kinds = {one: unicodedata.category(one) for one in every}
    unseen = [one for one in every if kinds[one][0] in "CMZ" and (kinds[one] not in {"Cn", "Co"} or one > "\U0010fff0")]
    signs = [one for one in every if unicodedata.normalize("NFKD", one)[0] in "=+-@"]
    assert len(signs) >= 20
    for begun in ("=1+1", "\uff20a"):
        assert not [one for one in [*unseen, "\ufe0f\u3000"] if not csv_line([one + begun]).strip('"').startswith("'")]
    assert not [one for one in signs if csv_line([f"{one}1+1"]) != f"'{one}1+1\n"]


@given(st.text())
def test_an_id_is_escaped_in_one_way(doc_id: str) -> None:
    """What `duplicates.txt` and lines show is plain, and an escaped id gives the id back."""
    assert is_plain(one_line(doc_id))
    assert is_plain(escaped(doc_id))
    assert _read_id(escaped(doc_id)) == doc_id
    assert printable(printable(doc_id)) == printable(doc_id)


@pytest.mark.spark
def test_spark_escapes_ids_as_the_embedded_engine_does(spark: SparkSession) -> None:
    """Both engines write the same `duplicates.txt`, for every character that is escaped."""
    ids = [chr(code) + "a\\x1b" for code in (*range(0x1, 0xFF), 0x61C, *range(0x2000, 0x2070))] + ["plain", "\\"]
    table = spark.createDataFrame([(one,) for one in ids], "doc_id string")

    found = table.select("doc_id", _escaped(table["doc_id"]).alias("escaped")).collect()

    assert [row.escaped for row in found] == [escaped(row.doc_id) for row in found]


def test_errors_are_plain_in_a_program_too() -> None:
    """The message of an error that names a file is plain, wherever it is printed."""
    assert is_plain(str(NddupError(f"{ESC}{FILE}: cannot be read")))


NO_UNICODE = {"ascii": {"PYTHONIOENCODING": "ascii"}, "C": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}}


@pytest.mark.parametrize("case", first(2, ["show ascii", "inspect C", "show C", "run ascii", "run C", "inspect ascii"]))
def test_a_terminal_without_unicode_shows_everything(place: Path, case: str) -> None:
    """Where output is ASCII, nothing fails: rules and bars become ASCII, letters of ids their escapes."""
    command, output = case.split()
    of_command = {"run": ["in.jsonl", "--output", "день2"], "show": ["день"], "inspect": ["in.jsonl"]}

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, command, *of_command[command]], cwd=place,
        env={**os.environ, **NO_UNICODE[output]}, capture_output=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    if output == "ascii":
        assert (done.stdout + done.stderr).isascii()
