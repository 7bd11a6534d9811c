"""`nddup evaluate` against brute force: every pair of documents is compared, and every list is a Python set."""

import csv
import gzip
import json
import random
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.evaluating.evaluate import Options, describe, evaluate_run
from nddup.results.opening import open_here
from tests.counted_rows import once, once_each
from tests.results.evaluated_runs import SIZE, documents, start

Pairs = set[tuple[str, str]]
NOBODY = ["nobody", "nothing", "x,y"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run in which the pairs of large groups of equal sketches are written as stars."""
    return start(tmp_path_factory.mktemp("evaluate"), documents(), expand_limit=6)


def ordered(pairs: Iterable[tuple[str, str]]) -> Pairs:
    """Return a set of pairs, the smaller id first, without pairs of a document with itself."""
    return {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}


def resemblance(first: list[int], second: list[int]) -> Fraction:
    """Return the resemblance by Broder's definition, on unsigned ids."""
    a, b = ({value % 2**64 for value in ids} for ids in (first, second))
    is_whole = len(a) < SIZE and len(b) < SIZE
    sample = a | b if is_whole else set(sorted(a | b)[:SIZE])
    return Fraction(len(sample & a & b), len(sample)) if sample else Fraction(0)


def near(run: Path) -> Pairs:
    """Return all near-duplicates of a run, from its sketches alone."""
    rows = pq.read_table(run / "documents", columns=["doc_id", "sketch"]).to_pylist()
    return ordered(
        (a["doc_id"], b["doc_id"])
        for a, b in combinations(rows, 2)
        if resemblance(a["sketch"], b["sketch"]) >= Fraction(7, 10)
    )


def together(run: Path) -> Pairs:
    """Return all pairs that share a cluster."""
    clusters = pq.read_table(run / "clusters", columns=["members"])["members"].to_pylist()
    return ordered(pair for members in clusters for pair in combinations(members, 2))


def five(reference: Pairs, found: Pairs) -> list[int]:
    """Return the papers' five numbers."""
    return [len(reference), len(found), len(reference - found), len(found - reference), len(reference & found)]


def said(evaluation: dict[str, Any], side: str) -> list[int]:
    """Return the same numbers from an evaluation."""
    names = ("reference", "found", "unique_to_reference", "unique_to_run", "common")
    return [evaluation[side][name] for name in names]


def draw_list(run: Path, seed: int) -> dict[tuple[str, str], float]:
    """Draw a scored list that agrees with the run in part; some of its ids are unknown or the reject's."""
    draw = random.Random(seed)  # noqa: S311 - a list
    ids = [*documents(), *NOBODY, "torn"]
    pairs = [pair for pair in sorted(near(run)) if draw.random() < 0.6]
    pairs += [tuple(draw.sample(ids, 2)) for _ in range(60)]  # type: ignore[misc]
    return {pair: round(draw.uniform(0.5, 1), 3) for pair in ordered(pairs)}


def write_list(path: Path, scored: dict[tuple[str, str], float], seed: int) -> Path:
    """Write a CSV with a header, a bad line, a repeated pair and a pair of a document with itself."""
    draw = random.Random(seed)  # noqa: S311
    rows: list[tuple[object, ...]] = [(*draw.sample(pair, 2), score) for pair, score in scored.items()]
    rows += [(*reversed(next(iter(scored))), 0.1), ("alone", "alone", 1)]
    open_list = gzip.open if path.suffix == ".gz" else open
    with open_list(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id_a", "id_b", "likeness"])
        writer.writerows(rows)
        file.write("only one\n")
    return path


def test_the_clusters_of_a_run_are_a_list(finished: Path) -> None:
    """`duplicates.txt`, as of an earlier run, is read as it is written: the number on a line is no document."""
    evaluation = evaluate_run(open_here(str(finished)), str(finished / "duplicates.txt"))

    assert said(evaluation, "clusters") == five(together(finished), together(finished))
    assert evaluation["list"]["unknown_ids"] == 0


@pytest.mark.parametrize(("seed", "name"), [(1, "list.csv"), (2, "list.csv.gz"), (3, "list [1].bin")])
def test_numbers_are_those_of_brute_force(finished: Path, tmp_path: Path, seed: int, name: str) -> None:
    """On a random list the numbers, ratios, curves, counts and pairs found on one side only equal brute force."""
    scored = draw_list(finished, seed)
    reference, found, clustered = set(scored), near(finished), together(finished)
    ids = {end for pair in scored for end in pair}
    known = {pair for pair in reference if set(pair) <= set(documents())}

    evaluation = evaluate_run(open_here(str(finished)), str(write_list(tmp_path / name, scored, seed)))

    assert said(evaluation, "pairs") == five(reference, found)
    assert said(evaluation, "clusters") == five(reference, clustered)
    assert evaluation["pairs"]["precision"] == len(reference & found) / len(found)
    assert evaluation["pairs"]["recall"] == len(reference & found) / len(reference)
    assert evaluation["pairs"]["recall_of_known"] == len(reference & found) / len(known)
    assert evaluation["list"] == {
        "kind": "pairs", "delimiter": "comma", "header": ["id_a", "id_b", "likeness"], "score": "likeness",
        "lines": len(scored) + 3, "unreadable": 1, "with_itself": 1, "repeated": 1,
        "ids": len(ids | {"alone"}), "unknown_ids": len(ids & {*NOBODY, "torn"}), "rejected_ids": 0,
        "unknown": sorted(ids & {*NOBODY, "torn"}), "unknown_pairs": len(reference - known), "counted": False,
    }  # fmt: skip
    for point in evaluation["curves"]["score"]:
        above = {pair for pair, score in scored.items() if score >= point["at"] - 1e-9}
        assert [point[key] for key in ("reference", "common", "together")] == [
            len(above), len(above & found), len(above & clustered)]  # fmt: skip
    by_id = dict(zip(*pq.read_table(finished / "documents", columns=["doc_id", "sketch"]).to_pydict().values(),
                     strict=True))  # fmt: skip
    measured = {pair: resemblance(by_id[pair[0]], by_id[pair[1]]) for pair in found | known}
    for point in evaluation["curves"]["resemblance"]:
        above = {pair for pair in found if measured[pair] >= Fraction(round(point["at"] * 100), 100)}
        assert [point["found"], point["common"]] == [len(above), len(above & reference)]
    missed = read_csv(finished, "unique_to_reference")
    assert once_each(((row["doc_a"], row["doc_b"]), float(row["score"])) for row in missed) == {
        pair: scored[pair] for pair in reference - found
    }
    for row in missed:
        pair = row["doc_a"], row["doc_b"]
        assert row["estimate"] == (repr(float(measured[pair])) if pair in known else "")
        assert row["why"] == ("below threshold" if pair in known else "unknown id")
        assert row["together"] == str(pair in clustered).lower()
        assert row["url_a"] == (f"http://x/{pair[0]}" if pair[0] in by_id else "")
    unasked = read_csv(finished, "unique_to_run")
    rows = pq.read_table(finished / "pairs").to_pylist()
    listed = once((row["doc_a"], row["doc_b"]) for row in rows)
    assert any(row["star"] for row in rows)
    assert once((row["doc_a"], row["doc_b"]) for row in unasked) == listed - reference


def read_csv(run: Path, name: str) -> list[dict[str, str]]:
    """Read one of the two lists of unique pairs."""
    with (run / "evaluation" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def as_pairs(groups: list[list[str]]) -> list[str]:
    """Return the pairs of groups as tab-separated lines."""
    return ["\t".join(pair) for pair in sorted(ordered(p for ids in groups for p in combinations(ids, 2)))]


def test_groups_give_the_numbers_of_their_pairs(finished: Path, tmp_path: Path) -> None:
    """Overlapping groups give the same numbers listed as pairs, counted only, or given as a file of pairs."""
    draw = random.Random(5)  # noqa: S311
    groups = [draw.sample([*documents(), *NOBODY], draw.randrange(1, 12)) for _ in range(9)]
    groups.append([name for name in documents() if name.startswith(("f0", "copy"))])
    (tmp_path / "groups.jsonl").write_text("".join(json.dumps(ids) + "\n" for ids in groups))
    (tmp_path / "pairs.tsv").write_text("\n".join(as_pairs(groups)))
    reference = ordered(pair for ids in groups for pair in combinations(ids, 2))

    by_pairs, by_groups, counted = (
        evaluate_run(open_here(str(finished)), str(tmp_path / name), Options(listed=most))
        for name, most in (("pairs.tsv", 0), ("groups.jsonl", 1000), ("groups.jsonl", 0))
    )

    for evaluation in (by_pairs, by_groups, counted):
        assert said(evaluation, "pairs") == five(reference, near(finished))
        assert said(evaluation, "clusters") == five(reference, together(finished))
        assert evaluation["list"]["unknown_pairs"] == by_pairs["list"]["unknown_pairs"]
    assert [evaluation["list"]["counted"] for evaluation in (by_pairs, by_groups, counted)] == [False, False, True]
    assert counted["pairs"] == by_pairs["pairs"]
    assert counted["lists"]["unique_to_reference"] == {"file": None, "rows": 0, "of": len(reference - near(finished))}
    assert "counted, not listed" in describe(counted, "out")


def test_pairs_that_a_large_component_does_not_list_are_told_apart(tmp_path: Path) -> None:
    """Pairs of removed documents that leaders leave out count as unlisted, whether listed as pairs or as groups."""
    run = start(tmp_path, documents(), max_postings=2, max_edges=3)
    kept = once(row["doc_id"] for row in pq.read_table(run / "keep").to_pylist() if row["kept"])
    docs = once_each((row["doc_id"], row["group"]) for row in pq.read_table(run / "documents").to_pylist())
    standing = {docs[doc] for doc in kept}
    clusters = pq.read_table(run / "clusters").to_pylist()
    family = {doc: row["component"] for row in clusters if row["coverage"] == "documents" for doc in row["members"]}
    every = [sorted(documents())]
    found = ordered((row["doc_a"], row["doc_b"]) for row in pq.read_table(run / "pairs").to_pylist())
    due = {
        pair
        for pair in ordered(combinations(every[0], 2)) - found
        if all(doc in family and docs[doc] not in standing for doc in pair) and family[pair[0]] == family[pair[1]]
    }
    (tmp_path / "pairs.tsv").write_text("\n".join(as_pairs(every)))
    (tmp_path / "groups.jsonl").write_text(json.dumps(every[0]))

    listed = evaluate_run(open_here(str(run)), str(tmp_path / "pairs.tsv"))
    rows = read_csv(run, "unique_to_reference")
    told = once((row["doc_a"], row["doc_b"]) for row in rows if row["why"] == "unlisted")
    counted = evaluate_run(open_here(str(run)), str(tmp_path / "groups.jsonl"), Options(listed=0))

    assert due
    assert told == due
    assert (listed["unlisted"], counted["unlisted"]) == (len(due), len(due))
    assert listed["pairs"] == counted["pairs"]
    assert listed["pairs"]["found"] == len(found)


def test_a_first_line_of_documents_is_no_header(finished: Path, tmp_path: Path) -> None:
    """A first line that could be a header is a pair where both names are documents of the run."""
    (tmp_path / "list.txt").write_text("tiny1,tiny2\nalone,empty1\n")

    evaluation = evaluate_run(open_here(str(finished)), str(tmp_path / "list.txt"))

    assert evaluation["list"]["header"] == []
    assert evaluation["pairs"]["common"] == 1


@pytest.mark.parametrize("pairs", [["alone,copy1,0.9\n"], []], ids=len)
def test_a_header_over_one_pair_or_none_is_none_itself(finished: Path, tmp_path: Path, pairs: list[str]) -> None:
    """The header over one pair or none is recognised; without a pair recall is undefined."""
    (tmp_path / "list.csv").write_text("# 1 pair\nid_a,id_b,similarity\n" + "".join(pairs))

    evaluation = evaluate_run(open_here(str(finished)), str(tmp_path / "list.csv"))

    assert evaluation["list"]["header"] == ["id_a", "id_b", "similarity"]
    assert evaluation["list"]["lines"] == evaluation["pairs"]["reference"] == len(pairs)
    assert evaluation["pairs"]["recall"] == (0 if pairs else None)


def test_the_command_prints_the_table_and_refuses_what_is_no_list(
    capsys: pytest.CaptureFixture[str], finished: Path, tmp_path: Path
) -> None:
    """A list gives exit status 0 and the table; an empty or missing file gives status 2 and one line."""
    (tmp_path / "list.txt").write_text("copy0\tcopy1\ncopy0\tnobody\ncopy0\talone\n")
    (tmp_path / "empty.txt").write_text("")

    def evaluate(*arguments: str) -> int:
        return main(["evaluate", str(finished), "--truth", *arguments])

    assert evaluate(str(tmp_path / "list.txt"), "--rows", "1") == 0
    shown = capsys.readouterr().out
    statuses = [evaluate(str(tmp_path / name)) for name in ("empty.txt", "none.txt")]
    refused = capsys.readouterr().err

    assert f"common{1:>34,}{1:>16,}" in shown
    assert "recall of known ids" in shown
    assert f"unique to reference: 1 of 2 in {finished}/evaluation/unique_to_reference.csv" in shown
    assert len(read_csv(finished, "unique_to_reference")) == 1
    assert statuses == [2, 2]
    assert refused == (f"nddup: --truth {tmp_path}/empty.txt: it holds no line\n"
                       f"nddup: --truth {tmp_path}/none.txt: no such file\n")  # fmt: skip


def test_false_components_count_what_transitive_closure_invents(finished: Path) -> None:
    """Each component with pairs that are no near-duplicates is listed with their number; the drifting chain is one."""
    found = near(finished)
    parts: list[set[str]] = []
    for pair in found:
        joined = [part for part in parts if part & set(pair)]
        parts = [part for part in parts if part not in joined] + [set(pair).union(*joined)]
    due = {
        min(part): (len(part), inside, len(part) * (len(part) - 1) // 2 - inside, True)
        for part in parts
        for inside in [sum(pair[0] in part for pair in found)]
    }

    rows = {
        row.pop("component"): tuple(row.values()) for row in pq.read_table(finished / "false_components").to_pylist()
    }
    clusters = json.loads((finished / "metrics.json").read_text())["stages"]["clusters"]

    assert rows == {component: row for component, row in due.items() if row[2]}
    assert rows["drift0"][2] > rows["drift0"][1]
    assert clusters["invented_pairs"] == sum(row[2] for row in rows.values())


@pytest.mark.parametrize("rest", ["", "alone,tiny1,0.1\n"])
def test_ids_that_begin_with_the_sign_of_a_comment_are_read(rest: str, tmp_path: Path) -> None:
    """Lines at the start are entries if their ids are documents, or if all lines begin so; else they are comments."""
    texts = {f"#{name}": text for name, text in documents().items() if name.startswith("copy")}
    run = start(tmp_path, texts | {"alone": "one text", "tiny1": "two words"})
    (tmp_path / "truth.csv").write_text("#copy0,#copy1,1.0\n#copy0,#copy2,0.9\n" + rest)

    told = evaluate_run(open_here(str(run)), str(tmp_path / "truth.csv"), Options())

    assert told["list"]["lines"] == 2 + bool(rest)
    assert told["list"]["ids"] == (5 if rest else 3)


LISTS = {
    "mail": (["<copy0>,<copy1>", "<tiny1>,<copy0>"], ["copy0", "copy1", "tiny1"]),
    "some with brackets": (["<copy0>,copy1", "tiny1,<copy0>"], ["copy0", "copy1", "tiny1"]),
    "brackets of their own": (["<copy0>,<copy1>", "<copy0>,tiny1"], ["<copy0>", "<copy1>", "tiny1"]),
    "printed": (["a\\\\b\tcopy1", "tiny1\ta\\\\b"], ["a\\b", "copy1", "tiny1"]),
    "json": (
        ['{"a": "two\\nlines", "b": "copy1"}', '{"a": "tiny1", "b": "two\\nlines"}'],
        ["two lines", "copy1", "tiny1"],
    ),
    "groups": (["<copy0> <copy1>", "<copy0> <tiny1>"], ["copy0", "copy1", "tiny1"]),
}


@pytest.mark.parametrize("name", LISTS)
def test_ids_in_another_spelling_are_those_of_documents(name: str, tmp_path: Path) -> None:
    """A list may have the ids as mail, `duplicates.txt` or the JSON of the collection spells them, as other lists may.

    Where documents have brackets of their own, an id is read as it is.
    """
    lines, (first, second, other) = LISTS[name]
    text = " ".join(f"w{number}" for number in range(60))
    run = start(tmp_path, {first: text, second: text, other: "two words"})
    (tmp_path / "truth.txt").write_text("".join(f"{line}\n" for line in lines))

    told = evaluate_run(open_here(str(run)), str(tmp_path / "truth.txt"), Options())

    assert (told["list"]["ids"], told["list"]["unknown"]) == (3, [])
    assert [told["pairs"][count] for count in ("reference", "found", "common")] == [2, 1, 1]
