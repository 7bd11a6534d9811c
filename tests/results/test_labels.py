"""`nddup evaluate --labels`: precision and recall over thresholds, against a separate count."""

import json
from itertools import combinations
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from tests.counted_rows import once_each
from tests.finished_runs import write_texts
from tests.results.evaluated_runs import THRESHOLD, documents, start


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run in which the pairs of large groups of equal sketches are written as stars."""
    return start(tmp_path_factory.mktemp("labels"), documents(), expand_limit=6)


def test_the_curve_is_that_of_the_pairs(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With labels for all pairs of some documents, every point of the curve equals a recount from `pairs`."""
    names = sorted(name for name in documents() if name[0] in "fcs")
    rows = [(a, b, "yes" if a[:2] == b[:2] else "no") for a, b in combinations(names, 2)]
    lines = [*(",".join(row) for row in rows), "nobody,copy0,yes", "f0 v1,f0 v2,no", "f0 v2,f0 v1,yes",
             "f0 v1,f0 v1,yes", f"<{names[0]}>,<{names[1]}>,{rows[0][2]}"]  # fmt: skip
    (tmp_path / "judged.csv").write_text("first,second,judged\n" + "\n".join(lines) + "\n")

    assert main(["evaluate", str(run), "--labels", str(tmp_path / "judged.csv")]) == 0

    told = json.loads((run / "evaluation" / "labels.json").read_text())
    group = once_each((row["doc_id"], row["group"]) for row in pq.read_table(run / "documents").to_pylist())
    measured = {frozenset((group[row["doc_a"]], group[row["doc_b"]])): row["resemblance"]
                for row in pq.read_table(run / "pairs").to_pylist()}  # fmt: skip
    judged = {(a, b): said == "yes" for a, b, said in rows if {a, b} != {"f0 v1", "f0 v2"}}
    same = sum(judged.values())
    assert told["labels"] == {
        "lines": len(lines), "pairs": len(judged) + 1, "contradictory": 1, "unknown": 1, "same": same,
        "unknown_ids": 1, "first_unknown": ["nobody"], "first_contradictory": ["f0 v1 and f0 v2"],
        "below": sum(frozenset((group[a], group[b])) not in measured for a, b in judged),
    }  # fmt: skip
    assert told["curve"][0]["at"] == THRESHOLD
    for point in told["curve"]:
        found = [is_same for (a, b), is_same in judged.items()
                 if measured.get(frozenset((group[a], group[b])), 0) >= point["at"]]  # fmt: skip
        assert point["found"] == len(found)
        assert point["recall"] == sum(found) / same
        assert point["precision"] == (sum(found) / len(found) if found else None)
    out = capsys.readouterr().out
    assert "best F1" in out
    assert f"labels: {len(judged) + 1:,} pairs; 1 more have two labels: f0 v1 and f0 v2\n" in out


def test_blanks_marks_and_ids_that_begin_with_a_number_sign_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What spreadsheets and people put around fields is no part of an id; a line with a label is no comment."""
    words = [f"word{n}" for n in range(40)]
    texts = {"#1": " ".join(words), "#2": " ".join([*words, "more"]), "b 3": " ".join(words[::-1])}
    run_locally([str(write_texts(tmp_path / "a.jsonl", texts))], str(tmp_path / "run"), build_config({}, origin="test"))
    judged = tmp_path / "judged.csv"
    judged.write_bytes("\ufeff# by hand, no pair\r\n#1, #2, yes\r\n  #2 ,\t b\u00073, no \r\n".encode())

    assert main(["evaluate", str(tmp_path / "run"), "--labels", str(judged)]) == 0

    told = json.loads((tmp_path / "run" / "evaluation" / "labels.json").read_text())["labels"]
    assert (told["lines"], told["pairs"], told["unknown"], told["same"]) == (2, 2, 0, 1)
    assert "labels: 2 pairs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no labelled pair"),
        ("a,b,maybe\n", "holds no labelled pair"),
        ("a;b;yes\na;c;perhaps\n", "line 2: expected two ids and a label"),
        ("# by hand\n\na;b;yes\na;c;perhaps\n", "line 4: expected two ids and a label"),
        ("a\tb\n", "holds no labelled pair"),
    ],
)
def test_a_file_of_another_form_is_refused(
    text: str, said: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file in another form is refused in one line that says what was expected."""
    (tmp_path / "judged.txt").write_text(text)

    assert main(["evaluate", str(run), "--labels", str(tmp_path / "judged.txt")]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_of_labels_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels are one file; a folder is refused in one line."""
    (tmp_path / "labels").mkdir()

    assert main(["evaluate", str(run), "--labels", str(tmp_path / "labels")]) == 2
    assert "expected a file, got a folder of 0 files" in capsys.readouterr().err
