"""`nddup check` where texts confirm the pairs: the texts are read again, and changed inputs are reported."""

import hashlib
import json
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from nddup.checking import compared_texts
from nddup.checking.check_run import CheckReport, check_run
from nddup.checking.compared_texts import pairs_of
from nddup.checking.prove_documents import mark
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.engines.engine import text_places
from nddup.reading.json_lines import PlainRecords, read_lines
from nddup.results.opening import read_texts
from nddup.scanning.found import text_buffers
from nddup.settings.load import build_config
from nddup.settings.plan import recipe_of
from nddup.sketching.recipe import make_sketches
from nddup.verifying.definitions import Form
from nddup.verifying.edit_similarity import count_common
from tests.counted_rows import once
from tests.embedded.confirmed_texts import draw_together, longest_common
from tests.samples_by_night import first

RECORDS = "records: address, tokens and fingerprints of documents, and reasons of rejects, as read again"
PAIRS = "pairs: the near-duplicates, all and only, with overlap and resemblance"


@pytest.fixture(scope="module", params=first(1, ["edit", "resemblance"]))
def confirm(request: pytest.FixtureRequest) -> str:
    """What decides about pairs of texts."""
    return str(request.param)


def test_characters_are_compared_again(confirm: str, tmp_path: Path) -> None:
    """Where shingles are of characters, every pair is compared by them, and a wrong similarity is found."""
    case = draw_together([0])._replace(length=4, unit="char", confirm=confirm)
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in case.texts.items()]
    (tmp_path / "texts.jsonl").write_text("".join(lines))
    config = build_config({**case.settings, "output": {"report": False}}, origin="test")
    run_locally([str(tmp_path / "texts.jsonl")], str(tmp_path / "run"), config)
    sound = check_run(DuckRun(str(tmp_path / "run")))
    pairs = pq.read_table(tmp_path / "run" / "pairs")
    at = next(row for row, value in enumerate(pairs[confirm].to_pylist()) if value < 1)
    rows = [row | {confirm: row[confirm] - 0.01 * (place == at)} for place, row in enumerate(pairs.to_pylist())]
    rewrite(tmp_path / "run", "pairs", pa.Table.from_pylist(rows, pairs.schema))

    report = check_run(DuckRun(str(tmp_path / "run")))

    assert sound.is_sound
    assert not any("not compared" in finding.note for finding in sound.findings)
    assert PAIRS in broken(report)


@pytest.fixture(scope="module")
def made(confirm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run over some families of texts; return the folder of the run and its input."""
    folder, case = tmp_path_factory.mktemp("confirmed"), draw_together(range(8))._replace(confirm=confirm)
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
def test_a_pair_that_the_texts_do_not_give_is_found(damage: str, confirm: str, made: Path, tmp_path: Path) -> None:
    """A missing confirmed pair, a pair that its texts refute and a wrong similarity are found."""
    shutil.copytree(made / "run", tmp_path / "run")
    pairs = pq.read_table(tmp_path / "run" / "pairs")
    at = next(row for row, value in enumerate(pairs[confirm].to_pylist()) if value < 1)
    if damage == "lost":
        changed = pairs.filter(pa.array([row != at for row in range(len(pairs))]))
    else:
        low = build_config({"pairs": {"threshold": 0.1}, "shingle": {"length": 2}, "sketch": {"size": 25},
                            "output": {"report": False}}, origin="test")  # fmt: skip
        run_locally([str(made / "texts.jsonl")], str(tmp_path / "low"), low)
        more = pq.read_table(tmp_path / "low" / "pairs").to_pylist()
        known = once((row["doc_a"], row["doc_b"]) for row in pairs.to_pylist())
        unlike = next(row for row in more if (row["doc_a"], row["doc_b"]) not in known) | {confirm: 0.8}
        other = [row | {confirm: row[confirm] - 0.01 * (place == at)} for place, row in enumerate(pairs.to_pylist())]
        rows = [*pairs.to_pylist(), unlike] if damage == "unlike" else other
        changed = pa.Table.from_pylist(rows, pairs.schema)
    rewrite(tmp_path / "run", "pairs", changed)

    assert PAIRS in broken(check_run(DuckRun(str(tmp_path / "run"))))


@pytest.mark.parametrize("change", ["changed", "gone"])
def test_changed_inputs_are_told(change: str, made: Path, tmp_path: Path) -> None:
    """The finding says that the pairs were not compared; changed inputs break the promise of exact decisions alone."""
    shutil.copytree(made, tmp_path / "moved")
    header = tmp_path / "moved" / "run" / "_RUN.json"
    header.write_text(header.read_text().replace(str(made), str(tmp_path / "moved")))
    (tmp_path / "moved" / "run" / "_COMPLETE").write_text("{}")  # as if the run had been made there
    if change == "gone":
        (tmp_path / "moved" / "texts.jsonl").unlink()
    else:
        with (tmp_path / "moved" / "texts.jsonl").open("a") as file:
            file.write(json.dumps({"id": "new", "text": "another"}) + "\n")

    report = check_run(DuckRun(str(tmp_path / "moved" / "run")))

    notes = {finding.promise: finding.note for finding in report.findings}
    assert report.is_sound == (change == "gone")
    assert (report.summary() == "every promise holds", bool(report.unproved)) == (False, change == "gone")
    assert "texts not compared" in notes[PAIRS]
    assert broken(report) == [] if report.is_sound else [RECORDS, "pairs: the texts are those that the run read"]


@pytest.mark.parametrize("is_cut", [True, False])
def test_lines_are_read_where_their_ordinals_say(
    *, is_cut: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files of lines, `check` reads the records that it compares; where one is not at its ordinal, it reads all."""
    read = list[int]()

    def count(data: NDArray[np.uint8], ends: NDArray[np.int64], *how: Any) -> PlainRecords:  # noqa: ANN401
        read.append(ends.size)
        return read_lines(data, ends, *how)

    family = [f"w{number}" for number in range(400)]
    texts = {f"{number:02}": f"alone {number} " * 30 for number in range(40)}
    texts |= {name: " ".join([*family, name]) for name in ("15a", "35b", "41c")}
    lines = [json.dumps({"id": name, "text": texts[name]}) for name in sorted(texts)]
    (tmp_path / "in").mkdir()
    for name, some in (("a.jsonl", [*lines[:9], "", "broken", *lines[9:30]]), ("b.jsonl", lines[30:])):
        (tmp_path / "in" / name).write_text("\n".join(some))
    if is_cut:
        monkeypatch.setattr("nddup.embedded.workers.LEAST_TASK_BYTES", 1_000)
    config = build_config({"sketch": {"size": 50}, "output": {"report": False}}, origin="test")
    run_locally([str(tmp_path / "in")], str(tmp_path / "run"), config)
    monkeypatch.setattr("nddup.scanning.record_blocks.read_lines", count)

    run = DuckRun(str(tmp_path / "run"))
    assert check_run(run, steps=["pairs"]).is_sound
    assert sum(read) == 3

    places = text_places(run, ["15a", "41c"])
    wrong = {name: place._replace(record=place.record + 30 * (name > "2")) for name, place in places.items()}
    for given, expected in ((places, 2), (wrong, 1 + len(lines) + 1)):
        read.clear()
        found = read_texts(run.path, given, master=None, is_whole=True).to_pylist()
        assert found == [{"doc_id": name, "text": texts[name]} for name in ("15a", "41c")]
        assert sum(read) == expected


@pytest.mark.parametrize("families", [1, 12])
def test_missed_pairs_are_counted(families: int, tmp_path: Path) -> None:
    """A pair whose sketches are far less alike than its texts is no fault; more than the margin allows are."""
    config = build_config(
        {"pairs": {"threshold": 0.8, "confirm": "resemblance"}, "sketch": {"size": 25}, "shingle": {"length": 1},
         "output": {"report": False}}, origin="test")  # fmt: skip
    lines = []
    for family in range(families):
        words = [f"f{family}w{number}" for number in range(200)]
        made = make_sketches(*text_buffers(words), recipe_of(config))
        by_id = [words[place] for place in np.argsort(made.ids)]
        lines += [{"id": f"{family}a", "text": " ".join(by_id)}, {"id": f"{family}b", "text": " ".join(by_id[13:])}]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run_locally([str(tmp_path / "texts.jsonl")], str(tmp_path / "run"), config)

    report = check_run(DuckRun(str(tmp_path / "run")))

    (finding,) = (one for one in report.findings if "missed by the sketches" in one.promise)
    assert finding.note.startswith(f"{families} missed, at most")
    assert report.is_sound == (families == 1)


@pytest.mark.parametrize("seed", range(20))
def test_bit_vectors_count_what_the_recurrence_does(seed: int) -> None:
    """`count_common` equals the longest common subsequence by its recurrence, for texts of two families."""
    texts = [text.split() for text in draw_together(range(seed, seed + 2)).texts.values()][:6]

    for one in texts:
        for other in texts:
            assert count_common(one, other) == longest_common(one, other)


def test_equal_sketches_of_unequal_texts_are_two_nodes_whatever_their_digest() -> None:
    """One sketch in 256 has a digest that begins as what stands for an empty one: its text decides all the same."""
    ids = next(n for n in range(10_000) if hashlib.sha256(b"\0" + n.to_bytes(8, "little")).digest()[:1] == b"=")
    sequences = [b"a" * 16, b"b" * 16, None, None, b"c" * 16, b"c" * 16]
    sketches = [[ids], [ids], [ids], [ids], [], []]
    columns = {
        "doc_id": pa.array(list("uvwxyz")),
        "doc_key": pa.array(range(6)),
        "said": pa.array(list("uvwxyz")),
        "content": pa.array([b"c" * 16] * 5 + [b"d" * 16]),
        "rank": pa.array([0] * 6),
        "n_features": pa.array([1] * 4 + [0] * 2, pa.int32()),
        "sketch": pa.array(sketches, pa.list_(pa.int64())),
        "sequence": pa.array(sequences),
        "n_tokens": pa.array([7] * 6, pa.int32()),
        "class": pa.array([0] * 6, pa.int32()),
    }

    marked = list(mark(iter([pa.record_batch(columns)]), form=Form("min-s", 200), levels=0, is_contained=False))

    same = marked[0].column("same").to_pylist()
    assert len(set(same)) == 5
    assert same[2] == same[3], "without texts, equal sketches are one node"


def test_the_texts_compared_are_those_of_drawn_documents_and_all_their_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Documents are drawn until there are enough texts; what is drawn does not depend on the order of the pairs."""
    ends = [(f"{group}.{a}", f"{group}.{b}") for group in range(50) for a, b in combinations(range(9), 2)]
    names = {name for pair in ends for name in pair}
    assert chosen_of(ends) == names

    monkeypatch.setattr(compared_texts, "MOST_TEXTS", 40)
    chosen = chosen_of(ends)

    assert chosen == {f"{name.partition('.')[0]}.{member}" for name in chosen for member in range(9)}
    assert len(chosen) == 45
    assert chosen_of([(second, first) for first, second in reversed(ends)] * 2) == chosen
    assert chosen_of([]) == set()


def test_pairs_are_found_by_either_order_of_their_ids() -> None:
    """A pair listed in both directions is one, its smaller id first; ids that are no pair have no place."""
    pairs = pairs_of(recounted([("é", "b"), ("b", "é"), ("a", "é")]))

    assert pairs.names.to_pylist() == ["a", "b", "é"]
    assert pairs.first.tolist() == [1, 0]
    assert pairs.second.tolist() == [2, 2]
    assert pairs.of_row.tolist() == [0, 0, 1]
    assert pairs.find(pa.array(["é", "b", "a", "x"]), pa.array(["a", "é", "b", "a"])).tolist() == [1, 0, -1, -1]


def recounted(ends: list[tuple[str, str]]) -> pa.Table:
    """Return the columns of RECOUNTED that name the ends of pairs."""
    columns = list(zip(*ends, strict=True)) or [(), ()]
    return pa.table({name: pa.array(ids, pa.string()) for name, ids in zip(("probe", "other"), columns, strict=True)})


def chosen_of(ends: list[tuple[str, str]]) -> set[str]:
    """Return the texts that are compared of these pairs."""
    pairs = pairs_of(recounted(ends))
    return set(pairs.names.filter(pa.array(compared_texts.choose_texts(pairs))).to_pylist())
