"""Results of queries, against every stored document compared by definition; bands, filters, and printed output."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import nddup.repository
from nddup.cli import main
from nddup.errors import CapacityError, ConfigError
from nddup.ground.columns import ragged_of
from nddup.repository.list_matches import Ask
from nddup.repository.opened_repository import Repository
from nddup.repository.query_stored import sketch_texts
from nddup.settings.plan import threshold_of
from tests.counted_rows import once, once_each
from tests.repository.histories import draw_history, draw_text, play
from tests.samples_by_night import every

KINDS: dict[str, dict[str, Any]] = {
    "min-s": {"sketch.size": 24},
    "min-perm": {"sketch.kind": "min-perm", "sketch.size": 24},
    "mod-m": {"sketch.kind": "mod-m", "sketch.modulus": 1},
    "keywords": {"sketch.kind": "keywords"},
    "share": {"sketch.size": 24, "pairs.measure": "overlap"},
}


def fill(path: Path, lowest: float = 0.5, **settings: Any) -> tuple[Repository, dict[str, str]]:  # noqa: ANN401
    """Create a repository of several segments with removed and replaced documents; return it and the live texts."""
    given: dict[str, Any] = {"pairs.threshold": 0.8, "pairs.confirm": "none", "local.processes": 1} | settings
    repo = nddup.repository.create(str(path), lowest=lowest, **given)
    return repo, play(repo, draw_history(24, steps=8))


@pytest.mark.parametrize("kind", every(4, KINDS))
def test_every_document_at_the_lowest_band_is_found(tmp_path: Path, kind: str) -> None:
    """A query finds every document at the lowest band, with its scores and band; without a match it has one row."""
    repo, live = fill(tmp_path / "repo", **KINDS[kind])
    random = np.random.default_rng(5)
    texts = {f"q{i}": draw_text(random) for i in range(25)}
    found = once_each(
        ((row["query_id"], row["doc_id"]), (row["overlap"], row["resemblance"], row["band"]))
        for row in repo.query(texts, Ask(bands=(50, 80, 62.5))).to_pylist()
    )

    threshold = threshold_of(repo.snapshot.identity.config)
    documents = repo.tables()["documents"]
    stored = dict(zip(documents["doc_id"].to_pylist(), documents["sketch"].to_pylist(), strict=True))
    assert set(stored) == set(live)
    queries = sketch_texts(repo.snapshot.identity, texts)
    due: dict[tuple[str, str | None], tuple[Any, Any, Any]] = {}
    for i, query_id in enumerate(queries.ids):
        ids = queries.sketches.values[queries.sketches.offsets[i] : queries.sketches.offsets[i + 1]]
        for doc_id, sketch in stored.items():
            other = np.array(sketch, np.int64).view(np.uint64)
            shared, united = _resemblance(ids, other, threshold.size, by_slots=threshold.by_slots)
            if shared and Fraction(shared, united) >= Fraction(1, 2):
                score = Fraction(100 * shared, united)
                band = ">=80" if score >= 80 else "62.5-80" if score >= Fraction(125, 2) else "50-62.5"
                due[query_id, doc_id] = (len(np.intersect1d(ids, other)), shared / united, band)
        if not any(query == query_id for query, _ in due):
            due[query_id, None] = (None, None, None)
    assert found == due
    assert len([key for key in due if key[1] is not None]) > 10


def _resemblance(a: Any, b: Any, size: int, *, by_slots: bool) -> tuple[int, int]:  # noqa: ANN401
    """Return the numerator and denominator of the resemblance, by definition."""
    common, union = np.intersect1d(a, b), np.union1d(a, b)
    if by_slots:
        return len(common), size
    least = union if len(a) < size and len(b) < size else union[:size]
    return len(np.intersect1d(common, least)), max(len(least), 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"sketch.kind": "mod-m", "sketch.modulus": 1, "pairs.measure": "containment", "clusters.mode": "components"},
        {"sketch.kind": "mod-pow2", "sketch.size": 10, "clusters.mode": "components"},
        {"sketch.size": 24, "pairs.measure": "overlap", "pairs.threshold": 15},
        pytest.param({"sketch.kind": "super", "sketch.size": 24, "sketch.rows": 4}, marks=pytest.mark.nightly),
        pytest.param({"sketch.kind": "minhash", "sketch.size": 24}, marks=pytest.mark.nightly),
    ],
)  # fmt: skip
def test_a_stored_document_finds_its_near_duplicates(tmp_path: Path, settings: dict[str, Any]) -> None:
    """A stored document finds itself, its equals and its near-duplicates, for kinds without bands of their own."""
    threshold = settings.get("pairs.threshold", 0.6)
    repo, live = fill(tmp_path / "repo", lowest=threshold, **settings | {"pairs.threshold": threshold})
    tables = repo.tables()
    due = {
        frozenset((a, b))
        for a, b in zip(*(tables["pairs"][end].to_pylist() for end in ("doc_a", "doc_b")), strict=True)
    }
    least = threshold_of(repo.snapshot.identity.config).least_size
    sizes = zip(
        tables["documents"]["doc_id"].to_pylist(),
        np.diff(ragged_of(tables["documents"]["sketch"]).offsets),
        strict=True,
    )
    due |= {frozenset((doc_id,)) for doc_id, size in sizes if size >= max(least, 1)}

    rows = repo.query(live).to_pylist()
    found = {frozenset(ends) for ends in once((row["query_id"], row["doc_id"]) for row in rows if row["doc_id"])}

    assert found == due
    assert len(due) > len(live) // 2


def test_a_choice_of_versions_sources_and_number(tmp_path: Path) -> None:
    """A query can be limited to versions or source files and to a number of results, the most similar first."""
    words = [f"w{i}" for i in range(200)]
    repo = nddup.repository.create(str(tmp_path / "repo"), pairs={"threshold": 0.5})
    for number in range(3):
        path = tmp_path / f"part{number}.jsonl"
        path.write_text(json.dumps({"id": f"d{number}", "text": " ".join(words[: 150 + 20 * number])}) + "\n")
        repo.add([str(path)])
    page = {"q": " ".join(words[:150])}

    def ids(ask: Ask) -> list[str]:
        found: list[str] = repo.query(page, ask)["doc_id"].to_pylist()
        return found

    assert ids(Ask()) == ["d0", "d1", "d2"]
    assert ids(Ask(top=2)) == ["d0", "d1"]
    assert ids(Ask(versions=(3, 4))) == ["d1", "d2"]
    assert ids(Ask(sources="*2.jsonl")) == ["d2"]
    assert ids(Ask(sources="no*")) == [None]


def test_matches_of_very_many_equal_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches put in order a few at a time are those of the definition; too many are refused before any is made."""
    repo = nddup.repository.create(str(tmp_path / "repo"), local={"processes": 1})
    words = [f"w{i}" for i in range(40)]
    equal = {f"d{i}": " ".join(words) for i in range(20)}
    near = {f"n{i}": " ".join([*words[:-1], f"z{i}"]) for i in range(5)}
    for part in (near, dict(list(equal.items())[10:]), dict(list(equal.items())[:10])):
        repo.add(part)
    queries = {"d3": " ".join(words), "n1": near["n1"], "q": "others are here", "": " ", "d7": " ".join(words)}
    monkeypatch.setattr("nddup.repository.list_matches.TOGETHER", 30)

    def ids(ask: Ask) -> dict[str, list[str | None]]:
        rows = repo.query(queries, ask).to_pylist()
        return {name: [row["doc_id"] for row in rows if row["query_id"] == name] for name in queries}

    alike, last = sorted(equal), sorted(near)
    own = ["n1", *alike, *(one for one in last if one != "n1")]
    assert ids(Ask()) == {"d3": alike + last, "n1": own, "q": [None], "": [None], "d7": alike + last}
    assert ids(Ask(top=2, others=True)) == {
        "d3": ["d0", "d1"], "n1": alike[:2], "q": [None], "": [None], "d7": ["d0", "d1"],
    }  # fmt: skip
    monkeypatch.setattr("nddup.repository.list_matches.MOST_MATCHES", 74)
    with pytest.raises(ConfigError, match="75 matches, over 74: ask for fewer of each"):
        repo.query(queries)
    assert len(repo.query(queries, Ask(top=3))) == 3 * 3 + 2


def test_what_a_run_could_not_compare_is_refused(tmp_path: Path) -> None:
    """Where nothing leads, a batch in which one feature takes more than `pairs.max_comparisons` changes nothing."""
    words = [f"w{i}" for i in range(200)]
    pairs = {"measure": "containment", "threshold": 0.5, "max_postings": 3, "max_comparisons": 2}
    sketch, clusters = {"kind": "mod-m", "modulus": 1}, {"mode": "components"}
    repo = nddup.repository.create(str(tmp_path / "repo"), sketch=sketch, pairs=pairs, clusters=clusters)
    repo.add({"a": " ".join(words)})

    with pytest.raises(CapacityError, match=r"pairs\.max_comparisons"):
        repo.add({f"d{n}": " ".join(words[: 150 + 10 * n]) for n in range(5)})

    assert repo.snapshot.live_keys.tolist() == [0]
    assert repo.query({"q": " ".join(words[:150])}, Ask())["doc_id"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("settings", "bands", "said"),
    [
        ({}, (50, 80), "--bands 50: expected 60 to 100"),
        ({}, (101,), "--bands 101: expected 60 to 100"),
        ({"pairs.measure": "overlap", "pairs.threshold": 85, "lowest": 70}, (80,), "--bands: a score is"),
        ({"sketch.kind": "minhash", "pairs.threshold": 0.8, "lowest": 0.8}, (70,), "--bands 70: expected 80 to 100"),
    ],
)
def test_a_wrong_band_is_refused(tmp_path: Path, settings: dict[str, Any], bands: tuple[int, ...], said: str) -> None:
    """A wrong band is refused in one line that gives the allowed range."""
    repo = nddup.repository.create(str(tmp_path / "repo"), **{"lowest": 0.6} | settings)

    with pytest.raises(ConfigError) as refused:
        repo.query(["a text"], Ask(bands=bands))

    assert str(refused.value).startswith(said)


def test_the_bands_of_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manual's example prints its bands, with exit status 3 for a match under `--exit-code`."""
    monkeypatch.chdir(tmp_path)
    words = [f"{a}{b}{c}word" for a in "bcdfgklmnprst" for b in "aeiou" for c in "bdgklmnprst"]
    shares = {"w1": 0, "w2": 40, "w3": 31, "w4": 26, "w5": 30, "w6": 25, "w7": 24}
    texts = {name: words[:count] + words[100 : 100 + (40 if name == "w1" else 0)] for name, count in shares.items()}
    Path("seven.jsonl").write_text("".join(json.dumps({"id": k, "text": " ".join(v)}) + "\n" for k, v in texts.items()))
    Path("new.html").write_text(f"<html><body><p>{' '.join(words[:40])}</p></body></html>")
    Path("other.html").write_text("<html><body><p>nothing of this kind is stored anywhere</p></body></html>")

    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        return main(["index", *arguments]), capsys.readouterr().out

    assert run("create", "pages", "--set", "sketch.kind=keywords", "--lowest", "0.6")[0] == 0
    assert run("add", "pages", "seven.jsonl") == (0, "pages: version 2, 7 documents; 12 candidates, 7 added\n")
    assert run("add", "pages", "seven.jsonl") == (0, "pages: nothing changed (7 unchanged)\n")
    shown = "new.html   >=80: w2   70-80: w3 w5   60-70: w4 w6 w7\n"
    assert run("query", "pages", "new.html", "--bands", "60,70,80") == (0, shown)
    assert run("query", "pages", "new.html", "--bands", "60,70,80", "--exit-code") == (3, shown)
    assert run("query", "pages", "other.html", "--exit-code") == (0, "other.html   no match\n")
    assert run("create", "more")[0] == 0
    assert run("query", "pages", "new.html", "--also", "more", "--top", "1", "--output", "found") == (
        0, f"new.html   w2@{tmp_path}/pages 1.000\n",
    )  # fmt: skip
    Path("link").symlink_to("pages")  # one repository, however it is spelled, counts once
    assert run("query", "pages", "new.html", "--also", "link", "--also", "./pages", "--bands", "60,70,80") == (0, shown)


def test_a_query_that_one_repository_cannot_see_was_compared_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In whatever order repositories are named, a query has nothing to compare only if it has nothing for any."""
    monkeypatch.chdir(tmp_path)
    Path("asked.jsonl").write_text('{"id": "a", "text": "three words here"}\n{"id": "b", "text": ""}\n')
    nddup.repository.create("whole")
    nddup.repository.create("sampled", sketch={"kind": "mod-m", "modulus": 10**6})

    for first, second in (("whole", "sampled"), ("sampled", "whole")):
        assert main(["index", "query", first, "asked.jsonl", "--also", second]) == 0
        assert capsys.readouterr().out == "a   no match\nb   nothing to compare\n"


def test_matches_that_cannot_be_written_leave_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a full disk the output of a query is not there at all, and the command can be run again."""
    monkeypatch.chdir(tmp_path)
    nddup.repository.create("pages").add({"a": "a text of some words"})
    Path("asked.txt").write_text("a text of some words")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pyarrow.parquet.write_table", fail)
        assert main(["index", "query", "pages", "asked.txt", "--output", "found"]) == 2
    assert "--output found: cannot be written (No space left on device)" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked.txt", "pages"]
    assert main(["index", "query", "pages", "asked.txt", "--output", "found"]) == 0
    assert Path("found/matches").is_dir()


def test_what_a_program_gives_in_other_types(tmp_path: Path) -> None:
    """Numbers are ids, half a surrogate is one lost character; the names of a table are no texts."""
    repo = nddup.repository.create(str(tmp_path / "repo"), lowest=np.float64(0.6))
    texts = ["some words of one text " * 3, "quite another text stands here now and here"]
    repo.add({1: texts[0], np.int64(2): texts[1], "\ud800": "a text of its own words", "c": "x\ud800"})
    assert sorted(repo.tables()["documents"]["doc_id"].to_pylist()) == ["1", "2"]

    found = repo.query([f"\ud800 {texts[0]}"], Ask(bands=np.array([70, 80])))  # type: ignore[arg-type]
    assert found["doc_id"].to_pylist() == ["1"]
    for table in (pl.DataFrame({"id": [1], "text": texts[:1]}), pa.table({"id": [1], "text": texts[:1]})):
        with pytest.raises(ConfigError, match=r"query: expected texts, got (DataFrame|Table): give \{id: text\}"):
            repo.query(table)  # type: ignore[arg-type]

    assert repo.remove([1, "2"])[1] == []
    with pytest.raises(ConfigError, match="remove: expected ids as strings, got NoneType"):
        repo.remove([None])  # type: ignore[list-item]
