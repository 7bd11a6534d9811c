"""Where all shingles decide, a repository stores them: pairs and matches follow the definition, and are proved."""

import json
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nddup.repository
from nddup.checking.check_run import check_run
from nddup.cli import main
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError, OutputError
from nddup.repository.list_matches import Ask
from nddup.repository.opened_repository import Repository
from tests.counted_rows import once_each
from tests.repository.histories import Batch, play
from tests.repository.test_rebuild import require_equal
from tests.samples_by_night import examples, first

LENGTH, SIZE = 5, 48
SETTINGS: dict[str, Any] = {
    "sketch.size": SIZE, "shingle.length": LENGTH, "pairs.threshold": 0.7, "pairs.confirm": "resemblance",
    "local.processes": 1,
}  # fmt: skip


def draw_texts(seed: int, count: int = 14) -> dict[str, str]:
    """Draw texts of 120 words of two families, whose resemblance to each other lies on both sides of 0.7."""
    random = np.random.default_rng(seed)
    texts = {}
    for number in range(count):
        words = [f"f{number % 2}w{i}" for i in range(120)]
        for _ in range(int(random.integers(0, 5))):
            words[int(random.integers(len(words)))] = f"e{random.integers(6)}"
        texts[f"d{number:02}"] = " ".join(words[: int(random.integers(100, 121))])
    return texts


def shingles_of(text: str) -> set[tuple[str, ...]]:
    """Return the shingles of a text by their definition."""
    words = text.split()
    return {tuple(words[i : i + LENGTH]) for i in range(max(len(words) - LENGTH, 0) + 1)}


def count(first: str, second: str) -> tuple[int, int, int]:
    """Return the shingles common to two texts, those of one, and those of the other."""
    a, b = shingles_of(first), shingles_of(second)
    return len(a & b), len(a), len(b)


def is_near(counts: tuple[int, int, int], share: Fraction) -> bool:
    """Return whether two texts of these numbers of shingles have a resemblance."""
    return Fraction(counts[0], counts[1] + counts[2] - counts[0]) >= share


def make(path: Path, **given: Any) -> Repository:  # noqa: ANN401
    """Create an empty repository in which all shingles decide."""
    return nddup.repository.create(str(path), **SETTINGS | given)


def test_the_pairs_are_those_of_all_shingles(tmp_path: Path) -> None:
    """The pairs of five batches are those whose shingles reach the threshold, with these numbers; few are missed."""
    repo, texts = make(tmp_path / "repo"), draw_texts(1, 60)
    for part in np.array_split(sorted(texts), 5):
        repo.add({doc_id: texts[doc_id] for doc_id in part.tolist()})
    names = ("doc_a", "doc_b", "common", "shingles_a", "shingles_b")
    rows = repo.tables()["pairs"].select(names).to_pylist()
    found = once_each(((row["doc_a"], row["doc_b"]), tuple(row[name] for name in names[2:])) for row in rows)
    due = {pair: count(texts[pair[0]], texts[pair[1]]) for pair in combinations(sorted(texts), 2)}
    due = {pair: counts for pair, counts in due.items() if is_near(counts, Fraction(7, 10))}
    assert len(due) > 300
    assert found.items() <= due.items()
    assert len(due) - len(found) <= 4
    assert any(one.rows.get("shingles") for one in repo.snapshot.commit.segments)


@settings(max_examples=examples(2, 3), deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 14), max_size=4), mode=st.sampled_from(("all", "none")))
def test_any_batches_give_the_tables_of_one_run(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[int], mode: str
) -> None:
    """However texts near the threshold are divided, removed, replaced and compacted, the tables are those of a run."""
    repo = make(tmp_path_factory.mktemp("batches") / "repo", **{"clusters.mode": mode})
    texts = draw_texts(seed)
    ends = [0, *sorted(cuts), len(texts)]
    batches = [Batch(dict(list(texts.items())[low:high])) for low, high in pairwise(ends)]
    live = play(repo, [batch for batch in batches if batch.texts])
    require_equal(repo, live)

    changed = draw_texts(seed + 1, 4)
    steps = [Batch({}, sorted(live)[::3]), Batch(changed), Batch({}, ["d01"]), Batch({"d01": texts["d01"]})]
    for doc_id in steps[0].removed:
        del live[doc_id]
    play(repo, steps[:1])
    repo.compact(days=0)
    for doc_id, text in [*changed.items(), ("d01", texts["d01"])]:
        if live.get(doc_id) != text or doc_id == "d01":
            live.pop(doc_id, None)
            live[doc_id] = text
    play(repo, steps[1:])
    require_equal(repo, live)
    assert all(proof.holds for proof in repo.check())


def test_equal_sketches_of_two_texts_are_two_nodes(tmp_path: Path) -> None:
    """Long texts that differ in one word often have equal sketches; they are told apart by their shingles."""
    words = [f"w{i}" for i in range(3000)]
    texts = {f"d{i}": " ".join([*words[:i * 100], "other", *words[i * 100 + 1:]]) for i in range(8)}  # fmt: skip
    repo = make(tmp_path / "repo", **{"sketch.size": 16})
    for doc_id, text in texts.items():
        repo.add({doc_id: text})
    tables = repo.tables()
    assert len(set(map(tuple, tables["documents"]["sketch"].to_pylist()))) < len(texts)
    assert len(tables["pairs"]) == 28
    counted = [count(*pair) for pair in combinations(texts.values(), 2)]
    due = sorted(common / (a + b - common) for common, a, b in counted)
    assert sorted(tables["pairs"]["resemblance"].to_pylist()) == due
    require_equal(repo, texts)


@pytest.mark.parametrize("bands", first(1, [(50, 62.5, 80), ()]))
def test_matches_are_those_of_all_shingles(tmp_path: Path, bands: tuple[float, ...]) -> None:
    """A query finds the candidates whose shingles reach the threshold or band, with their numbers, score and band."""
    repo, texts = make(tmp_path / "repo", lowest=0.5), draw_texts(2, 40)
    for part in np.array_split(sorted(texts), 5):
        repo.add({doc_id: texts[doc_id] for doc_id in part.tolist()})
    repo.remove(["d03", "d04"])
    queries = draw_texts(3, 10) | {"same": texts["d07"], "other": "nothing like the rest " * 9, "empty": ""}
    rows = repo.query(queries, Ask(bands=bands)).to_pylist()
    found = once_each(
        ((row["query_id"], row["doc_id"]), (row["common"], row["shingles_a"], row["shingles_b"]))
        for row in rows
        if row["doc_id"] is not None
    )
    share = Fraction(1, 2) if bands else Fraction(7, 10)
    due = {
        (query_id, doc_id): count(queries[query_id], texts[doc_id])
        for query_id in queries
        for doc_id in texts.keys() - {"d03", "d04"}
    }
    due = {pair: counts for pair, counts in due.items() if is_near(counts, share)}
    assert len(due) > 80
    assert found.items() <= due.items()
    assert len(due) - len(found) <= 3
    for row in rows:
        if row["doc_id"] is not None:
            union = row["shingles_a"] + row["shingles_b"] - row["common"]
            assert row["resemblance"] == row["common"] / union
            assert row["score"] == 100 * row["resemblance"]
        if row["doc_id"] is not None and bands:
            score = Fraction(100 * row["common"], union)
            assert row["band"] == (">=80" if score >= 80 else "62.5-80" if score >= Fraction(125, 2) else "50-62.5")
    notes = once_each((row["query_id"], row["note"]) for row in rows if row["doc_id"] is None)
    assert notes == {"other": None, "empty": "nothing to compare"}


def test_queries_of_files_are_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`nddup index query` of files gives the same matches as texts in memory, and several repositories are asked."""
    texts, queries = draw_texts(4, 20), draw_texts(5, 5)
    repo, second = make(tmp_path / "repo"), make(tmp_path / "second", **{"pairs.confirm": "none"})
    for one in (repo, second):
        one.add(texts)
    path = tmp_path / "queries.jsonl"
    path.write_text("".join(json.dumps({"id": name, "text": queries[name]}) + "\n" for name in sorted(queries)))
    alone, _ = repo.query_files([str(path)])
    assert alone.to_pylist() == repo.query(dict(sorted(queries.items()))).to_pylist()

    command = ["index", "query", str(tmp_path / "repo"), str(path), "--also", str(tmp_path / "second"), "--json"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)["matches"]
    exact = [row for row in rows if row["repository"] == str(tmp_path / "repo")]
    assert exact
    assert all(row["common"] for row in exact)
    assert {row["common"] for row in rows if row["repository"] == str(tmp_path / "second")} == {None}


def test_a_damaged_shingle_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shingles that are not those that were written are refused where they are read; `index check` names the file."""
    repo, texts = make(tmp_path / "repo"), draw_texts(6)
    repo.add(texts)
    (path,) = (tmp_path / "repo" / "segments").glob("*/shingles.arrow")
    data = bytearray(path.read_bytes())
    at = data.index(np.sort(repo.snapshot.shingles[0].batches[0][0][:1]).tobytes())
    data[at] ^= 1
    path.write_bytes(data)
    again = nddup.repository.open(str(tmp_path / "repo"))
    with pytest.raises(OutputError, match=r"shingles\.arrow is not the file that was written, bit for bit"):
        again.query(texts)
    with pytest.raises(OutputError, match=r"shingles\.arrow is not the file that was written, bit for bit"):
        again.add({"x": texts["d00"] + " more"})
    assert main(["index", "check", str(tmp_path / "repo")]) == 1
    assert "BROKEN the files are those that were written" in capsys.readouterr().out


def test_a_version_is_a_run_that_says_it_is_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables of a version pass `nddup check`; its summary says exact, and the list of versions too."""
    repo, texts = make(tmp_path / "repo"), draw_texts(7, 30)
    for part in np.array_split(sorted(texts), 3):
        repo.add({doc_id: texts[doc_id] for doc_id in part.tolist()})
    metrics = repo.write_tables(str(tmp_path / "run"))
    assert metrics["stages"]["pairs"]["edits"]["confirmed"] == len(repo.tables()["pairs"])
    report = check_run(DuckRun(str(tmp_path / "run")))
    assert report.is_sound, report.text()
    assert main(["show", str(tmp_path / "run")]) == 0
    assert "resemblance at least 0.7, exact" in capsys.readouterr().out
    assert main(["index", "list", str(tmp_path / "repo")]) == 0
    assert "pairs: resemblance at least 0.7, exact: all shingles decide\n" in capsys.readouterr().out


def test_a_repository_without_shingles_stays_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One whose settings name no confirmation goes on by its sketches and says so; an unknown layout is refused."""
    repo, texts = make(tmp_path / "repo", **{"pairs.confirm": "none"}), draw_texts(8)
    repo.add(texts)
    commit = tmp_path / "repo" / "commits" / "2.json"
    stored = json.loads(commit.read_text())
    assert stored["repository"]["layout"] == 4
    del stored["digest"], stored["repository"]["settings"]["pairs"]["confirm"]
    commit.write_text(json.dumps(stored))
    again = nddup.repository.open(str(tmp_path / "repo"))
    assert not again.snapshot.identity.is_exact
    again.add({"x": texts["d00"] + " more"})
    assert set(again.query(texts)["common"].to_pylist()) == {None}
    assert main(["index", "list", str(tmp_path / "repo")]) == 0
    assert "pairs: resemblance at least 0.7, estimated from sketches\n" in capsys.readouterr().out

    make(tmp_path / "exact").add(texts)
    commit = tmp_path / "exact" / "commits" / "2.json"
    stored = json.loads(commit.read_text())
    assert stored["repository"]["layout"] == 5
    del stored["digest"]
    stored["repository"]["layout"] = 3
    commit.write_text(json.dumps(stored))
    with pytest.raises(OutputError, match=r"its layout is 3, expected 4 or 5"):
        nddup.repository.open(str(tmp_path / "exact"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pairs.confirm": "edit"}, "pairs.confirm: edit compares whole texts"),
        ({"pairs.measure": "overlap"}, "pairs.confirm: resemblance needs pairs.measure resemblance, got overlap"),
        ({"sketch.kind": "mod-m"}, "pairs.confirm: resemblance needs sketches that estimate"),
    ],
)
def test_what_cannot_be_exact_is_refused(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    """Settings under which all shingles cannot decide are refused in one line where that was asked for."""
    with pytest.raises(ConfigError, match=said):
        make(tmp_path / "repo", **given)
