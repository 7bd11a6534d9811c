"""`nddup check` where texts confirm the pairs: the texts are read again, and changed inputs are reported."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.opened.duck import DuckRun
from nddup.results.check import CheckReport, check_run
from nddup.run.local_job import run_locally
from nddup.settings.load import build_config
from nddup.verifying.edit_similarity import count_common
from tests.local.confirmed_texts import draw_together, longest_common

PAIRS = "pairs: the near-duplicates, all and only, with overlap and resemblance"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run over some families of texts; return the folder of the run and its input."""
    folder, case = tmp_path_factory.mktemp("confirmed"), draw_together(range(8))
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in case.texts.items()]
    (folder / "texts.jsonl").write_text("".join(lines))
    config = build_config({**case.settings, "output": {"report": False}}, origin="test")
    run_locally([str(folder / "texts.jsonl")], str(folder / "run"), config)
    return folder


def broken(report: CheckReport) -> list[str]:
    return [finding.promise for finding in report.findings if finding.broken]


def rewrite(folder: Path, name: str, table: pa.Table) -> None:
    """Replace the single Parquet file of a table, of which nothing is noted then."""
    (folder / "_stages" / f"{name}.json").unlink()
    (file,) = (folder / name).glob("*.parquet")
    pq.write_table(table, file)


def test_passes_a_sound_run(made: Path) -> None:
    """Every promise of a sound run holds, and every pair is compared with its texts."""
    report = check_run(DuckRun(str(made / "run")))

    assert report.is_sound
    assert not any("not compared" in finding.note for finding in report.findings)


@pytest.mark.parametrize("damage", ["lost", "unlike", "other"])
def test_a_pair_that_the_texts_do_not_give_is_found(damage: str, made: Path, tmp_path: Path) -> None:
    """A missing confirmed pair, a pair that its texts refute and a wrong similarity are found."""
    shutil.copytree(made / "run", tmp_path / "run")
    pairs = pq.read_table(tmp_path / "run" / "pairs")
    at = next(row for row, edit in enumerate(pairs["edit"].to_pylist()) if edit < 1)
    if damage == "lost":
        changed = pairs.filter(pa.array([row != at for row in range(len(pairs))]))
    else:
        low = build_config({"pairs": {"threshold": 0.4}, "shingle": {"length": 2}, "sketch": {"size": 25},
                            "output": {"report": False}}, origin="test")  # fmt: skip
        run_locally([str(made / "texts.jsonl")], str(tmp_path / "low"), low)
        more = pq.read_table(tmp_path / "low" / "pairs").to_pylist()
        known = {(row["doc_a"], row["doc_b"]) for row in pairs.to_pylist()}
        unlike = next(row for row in more if (row["doc_a"], row["doc_b"]) not in known) | {"edit": 0.8}
        other = [row | {"edit": row["edit"] - 0.01 * (place == at)} for place, row in enumerate(pairs.to_pylist())]
        rows = [*pairs.to_pylist(), unlike] if damage == "unlike" else other
        changed = pa.Table.from_pylist(rows, pairs.schema)
    rewrite(tmp_path / "run", "pairs", changed)

    assert PAIRS in broken(check_run(DuckRun(str(tmp_path / "run"))))


def test_changed_inputs_are_told(made: Path, tmp_path: Path) -> None:
    """With changed inputs nothing counts as broken, and the finding says that the pairs were not compared."""
    shutil.copytree(made, tmp_path / "moved")
    header = tmp_path / "moved" / "run" / "_RUN.json"
    header.write_text(header.read_text().replace(str(made), str(tmp_path / "moved")))
    (tmp_path / "moved" / "run" / "_COMPLETE").write_text("{}")  # as if the run had been made there
    with (tmp_path / "moved" / "texts.jsonl").open("a") as file:
        file.write(json.dumps({"id": "new", "text": "another"}) + "\n")

    report = check_run(DuckRun(str(tmp_path / "moved" / "run")))

    notes = {finding.promise: finding.note for finding in report.findings}
    assert report.is_sound
    assert "changed since the run" in notes[PAIRS]


@pytest.mark.parametrize("seed", range(20))
def test_bit_vectors_count_what_the_recurrence_does(seed: int) -> None:
    """`count_common` equals the longest common subsequence by its recurrence, for texts of two families."""
    texts = [text.split() for text in draw_together(range(seed, seed + 2)).texts.values()][:6]

    for first in texts:
        for second in texts:
            assert count_common(first, second) == longest_common(first, second)
