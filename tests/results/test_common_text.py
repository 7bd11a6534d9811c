"""The common text of clusters: `show --cluster` and `--extents`, over the sample and over short texts."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.engines.engine import TextPlace
from nddup.results.formal_context import Shingles, extent_lines
from nddup.results.opening import read_texts
from nddup.results.show import show_run
from nddup.settings.load import build_config
from tests.counted_rows import once, once_each

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "debdocs"


def make(inputs: Path, folder: Path, **sections: Any) -> DuckRun:  # noqa: ANN401
    config = build_config({"output": {"report": False}} | sections, origin="test")
    run_locally([str(inputs)], str(folder), config)
    return DuckRun(str(folder))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> DuckRun:
    """Make a run over the sample."""
    return make(SAMPLE, tmp_path_factory.mktemp("sample") / "run")


def texts_of(run: DuckRun) -> dict[str, str]:
    """Return the text of every document, read again."""
    rows = pq.read_table(f"{run.path}/documents").to_pylist()
    places = once_each(
        (row["doc_id"], TextPlace(row["source"], row["content_fingerprint"], row["record"])) for row in rows
    )
    found = read_texts(run.path, places, master=None, is_whole=True)
    return dict(zip(found["doc_id"].to_pylist(), found["text"].to_pylist(), strict=True))


def test_extents_are_the_intersections_of_all_members(sample: DuckRun) -> None:
    """For every cluster of the sample, the common shingles and their places are those of sets in plain Python."""
    run = sample
    texts, of = texts_of(run), Shingles(run.metrics.settings)
    shingles = {
        name: [tuple(tokens[at : at + 5]) for at in range(max(len(tokens) - 4, 1))] if tokens else []
        for name, tokens in ((name, of.tokens(text)) for name, text in texts.items())
    }
    members = once_each(
        (row["cluster_id"], row["members"]) for row in pq.read_table(f"{run.path}/clusters").to_pylist()
    )
    rows = pq.read_table(f"{run.path}/members").to_pylist()
    first = once_each((row["cluster_id"], row["doc_id"]) for row in rows if row["representative"])
    sizes = once_each((row["doc_id"], row["n_features"]) for row in pq.read_table(f"{run.path}/documents").to_pylist())

    found = list(csv.DictReader(io.StringIO("".join(extent_lines(run, master=None)))))

    assert once(row["cluster_id"] for row in found) == members.keys()
    assert {name: len(set(one)) for name, one in shingles.items()} == sizes
    for row in found:
        sets = [set(shingles[name]) for name in members[row["cluster_id"]]]
        common = set.intersection(*sets)
        assert int(row["common"]) == len(common)
        assert float(row["share"]) == len(common) / min(map(len, sets))
        spans = [tuple(map(int, span.split("-"))) for span in row["spans"].split()]
        held = {at for low, high in spans for at in range(low, max(high - 4, low + 1))}
        assert held == {at for at, one in enumerate(shingles[first[row["cluster_id"]]]) if one in common}


def test_a_family_of_one_frame_shows_the_frame_and_what_differs(tmp_path: Path) -> None:
    """The common ranges of the representative and the words beside them are shown as they are written in the texts."""
    frame, ends = " ".join(f"Frame{n}," for n in range(30)), " ".join(f"Foot{n}." for n in range(20))
    lines = [{"id": name, "text": f"{frame} {name.upper()} stands here {ends}"} for name in ("one", "two", "three")]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = make(tmp_path / "in.jsonl", tmp_path / "run", pairs={"threshold": 0.5})
    cluster = pq.read_table(f"{run.path}/clusters")["cluster_id"][0].as_py()

    said = show_run(run, cluster=cluster, doc=None).splitlines()

    at = next(place for place, line in enumerate(said) if line.startswith("  common text"))
    assert said[at:] == [
        "  common text: 44 of 49 shingles of the shortest, 89.8%",
        *(
            f"    {text[:199]}…" if len(text) > 200 else f"    {text}"
            for text in (frame[:-1], f"stands here {ends[:-1]}")
        ),
        "  beside it:",
        "    one  1 token of 53: ONE",
        "    three  1 token of 53: THREE",
        "    two  1 token of 53: TWO",
    ]
    (tmp_path / "in.jsonl").write_text("{}\n")
    assert "common text: not shown, the inputs of" in show_run(run, cluster=cluster, doc=None)


@pytest.mark.parametrize("length", [4, 12])
def test_characters_are_counted_as_the_run_counts_them(length: int, tmp_path: Path) -> None:
    """With shingles of characters, a text has as many of them as the run says; marks and blanks count alike."""
    texts = [
        "  e\u0301te\u0301, na\u0308h -- ¡mañana!  ",
        "a\u0301",
        "",
        "ß ﬁ İI",
        "漢字かな Thai ภาษาไทย",
        "한국어 각",
    ]
    lines = [json.dumps({"id": str(at), "text": text}) + "\n" for at, text in enumerate(texts)]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    shingle = {"unit": "char", "length": length}
    run = make(tmp_path / "in.jsonl", tmp_path / "run", shingle=shingle, input={"max_rejects": 1.0})
    of = Shingles(run.metrics.settings)

    counted = once_each(
        (row["doc_id"], row["n_features"]) for row in pq.read_table(f"{run.path}/documents").to_pylist()
    )

    for doc_id, number in counted.items():
        tokens = of.tokens(texts[int(doc_id)])
        found = {tuple(tokens[at : at + length]) for at in range(max(len(tokens) - length, 0) + 1)} if tokens else set()
        assert len(found) == number, texts[int(doc_id)]


def test_the_command_prints_a_csv_of_extents(sample: DuckRun, capsys: pytest.CaptureFixture[str]) -> None:
    """`nddup show RUN --extents` prints the lines of the function."""
    assert main(["show", sample.path, "--extents"]) == 0

    assert capsys.readouterr().out == "".join(extent_lines(sample, master=None))
