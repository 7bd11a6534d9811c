"""`keep.force`: what a person says of a document comes before the policy, on either engine, and `check` proves it."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nddup
from nddup.checking.check_run import check_run
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError
from nddup.ground.metrics import RunMetrics
from nddup.ground.shown import csv_line
from nddup.report.summary import _why_removed, notes
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.stages.inputs_found import read_forced
from nddup.storage.local_storage import LocalStorage
from tests.counted_rows import once_each
from tests.samples_by_night import first

Row = dict[str, Any]


def write_texts(folder: Path, seed: int) -> list[str]:
    """Write chains of texts, each a little different from the one before, and copies; return the ids."""
    draw, lines, ids = random.Random(seed), list[str](), list[str]()  # noqa: S311 - texts
    for family in range(14):
        words = [f"family{family}word{place}" for place in range(60)]
        for _ in range(draw.randrange(1, 9)):
            if draw.random() < 0.6:
                words[draw.randrange(60)] = f"other{draw.randrange(10**6)}"
            ids.append(f"d{len(ids):03}")
            lines.append(json.dumps({"id": ids[-1], "text": " ".join(words + ["more"] * draw.randrange(3))}) + "\n")
    folder.mkdir(exist_ok=True)
    (folder / "texts.jsonl").write_text("".join(lines))
    return ids


def write_force(path: Path, ids: list[str], seed: int) -> dict[str, str]:
    """Write a file of `keep.force` about a third of the documents, each in brackets; return its words by id."""
    draw = random.Random(seed)  # noqa: S311 - a choice
    said = {one: draw.choice(["kept", "removed"]) for one in ids if draw.random() < 0.35}
    path.write_text("doc_id,decision\n" + "".join(f"<{one}>,{word}\n" for one, word in said.items()) + "nobody,kept\n")
    return said


def configure(path: Path, **sections: Any) -> Config:  # noqa: ANN401
    given: dict[str, Any] = {"keep": {"force": str(path), "policy": "first-id"}, "output": {"report": False}}
    return build_config(given | sections, origin="test")


def rows_of(folder: Path, name: str) -> list[Row]:
    found: list[Row] = pq.read_table(folder / name).to_pylist()
    return found


def define_keep(run: Path, ids: list[str], said: dict[str, str]) -> dict[str, tuple[bool, str | None, float | None]]:
    """Return for each document whether it is kept, and the kept near-duplicate of highest resemblance."""
    near: dict[str, dict[str, float]] = {one: {} for one in ids}
    for pair in rows_of(run, "pairs"):
        near[pair["doc_a"]][pair["doc_b"]] = near[pair["doc_b"]][pair["doc_a"]] = pair["resemblance"]
    order = sorted(ids, key=lambda one: (("kept", None, "removed").index(said.get(one)), one))
    kept: set[str] = set()
    for one in order:
        if said.get(one) == "kept" or (one not in said and not kept & near[one].keys()):
            kept.add(one)
    found: dict[str, tuple[bool, str | None, float | None]] = dict.fromkeys(kept, (True, None, None))
    for one in set(ids) - kept:
        before = kept & near[one].keys() & set(order[: order.index(one)])
        offers = [(-near[one][other], order.index(other), other) for other in before]
        best = min(offers, default=None)
        found[one] = (False, best and best[2], best and -best[0])
    return found


@pytest.mark.parametrize("seed", first(1, range(6)))
def test_what_is_forced_is_done_and_the_others_follow(seed: int, tmp_path: Path) -> None:
    """The keep-list is that of the definition over the pairs of the run, the counts are told, and `check` agrees."""
    ids, run = write_texts(tmp_path / "in", seed), tmp_path / "run"
    said = write_force(tmp_path / "force.csv", ids, seed)
    tagging = {"report": False, "tagged": "as-input"}
    run_locally([str(tmp_path / "in")], str(run), configure(tmp_path / "force.csv", output=tagging))

    rows = once_each((row["doc_id"], row) for row in rows_of(run, "keep"))
    expected = define_keep(run, ids, said)
    assert {one: (row["kept"], row["duplicate_of"], row["resemblance"]) for one, row in rows.items()} == expected
    assert all((row["reason"] == "forced") == (said.get(one) == "removed") for one, row in rows.items())
    report = check_run(DuckRun(str(run)), steps=["members", "keep", "clusters"])
    assert report.is_sound, report.text()

    metrics = RunMetrics.read((run / "metrics.json").read_text())
    counted = metrics.stages.keep
    words = list(said.values())
    assert (counted.forced_kept, counted.forced_removed) == (words.count("kept"), words.count("removed"))
    assert counted.forced_unknown == 1
    both = [row for row in rows_of(run, "pairs") if rows[row["doc_a"]]["kept"] and rows[row["doc_b"]]["kept"]]
    assert counted.kept_pairs == len(both)
    assert any("; ids that are no document: 1 (" in note for note in notes(metrics))
    opened = nddup.open(str(run))
    for one, row in rows.items():
        if row["reason"] == "forced":
            assert opened.document(one).why.startswith("removed: keep.force says so;")
    require_tags(run, rows)


def require_tags(run: Path, rows: dict[str, Row]) -> None:
    """Compare the fields of a tagged run: of a document, the smallest cluster of its kept one, if there is one."""
    stands = Counter(one if row["kept"] else row["duplicate_of"] for one, row in rows.items())
    clusters = dict[str, str]()
    for row in sorted(rows_of(run, "members"), key=lambda row: row["cluster_id"], reverse=True):
        clusters[row["doc_id"]] = row["cluster_id"]
    for line in (run / "tagged" / "texts.jsonl").read_text().splitlines():
        tagged = json.loads(line)
        row = rows[tagged["id"]]
        target = tagged["id"] if row["kept"] else row["duplicate_of"]
        assert (tagged["nddup_kept"], tagged["nddup_duplicate_of"]) == (row["kept"], row["duplicate_of"])
        assert tagged["nddup_cluster"] == clusters.get(target)
        assert tagged["nddup_copies"] == (stands[target] if row["kept"] else None)


def test_a_family_that_is_forced_out_is_tagged_with_no_cluster(tmp_path: Path) -> None:
    """None of its documents has a kept one, and what stands for it is in no cluster."""
    ids, run = write_texts(tmp_path / "in", 0), tmp_path / "run"
    (tmp_path / "force.csv").write_text("".join(f"{one},removed\n" for one in ids[:8]))
    tagging = {"report": False, "tagged": "as-input"}
    run_locally([str(tmp_path / "in")], str(run), configure(tmp_path / "force.csv", output=tagging))

    rows = once_each((row["doc_id"], row) for row in rows_of(run, "keep"))
    members = {row["doc_id"] for row in rows_of(run, "members")}
    assert any(one in members and not row["kept"] and not row["duplicate_of"] for one, row in rows.items())
    require_tags(run, rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,kept\nb,perhaps\n", "line 2: expected an id and kept or removed"),
        ("a,kept\na,removed\n", "line 2: 'a' is both kept and removed"),
        ("a b kept\n", "line 1: expected an id and kept or removed"),
        ("\xff\xfe\xfd", "expected UTF-8"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_written(text: str, message: str, tmp_path: Path) -> None:
    """A line that says neither word, an id with both, and bytes that are no text stop the run before it begins."""
    write_texts(tmp_path / "in", 0)
    (tmp_path / "force.csv").write_bytes(text.encode("latin-1"))

    with pytest.raises(ConfigError, match=message):
        run_locally([str(tmp_path / "in")], str(tmp_path / "run"), configure(tmp_path / "force.csv"))
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match=r"keep\.force: clusters\.mode partition"):
        configure(tmp_path / "force.csv", clusters={"mode": "partition"})
    contained: dict[str, Any] = {"pairs": {"measure": "containment"}, "sketch": {"kind": "mod-m", "modulus": 2}}
    with pytest.raises(ConfigError, match=r"keep\.force: pairs\.measure containment"):
        configure(tmp_path / "force.csv", **contained)


def test_two_spellings_of_an_id_say_one_thing(tmp_path: Path) -> None:
    """A document that is kept with brackets and removed without them is named in both spellings."""
    write_texts(tmp_path / "in", 0)
    (tmp_path / "force.csv").write_text("d000,kept\n<d000>,removed\n")

    with pytest.raises(ConfigError, match="'<d000>' and 'd000' name the same, once as removed, once as kept"):
        run_locally([str(tmp_path / "in")], str(tmp_path / "run"), configure(tmp_path / "force.csv"))


def test_files_of_spreadsheets_are_read(tmp_path: Path) -> None:
    """Tabs, semicolons, quotes, a byte order mark, a header, comments and blanks around the words are understood."""
    path = tmp_path / "force.txt"
    path.write_bytes('\ufeffid;what\r\n# by hand\r\n"a;b"; Kept \r\nc ;removed\r\n\r\nc;removed\r\n'.encode())

    assert read_forced(LocalStorage(), str(path)) == (("a;b",), ("c",))


def test_ids_of_our_own_tables_are_read_back_whole(tmp_path: Path) -> None:
    """Ids that a CSV file of ours guards are read, with a word beside them or true or false in the column `kept`."""
    ids, path = ["@alice", "+49 30 1", "-x", "=sum", "'@b", "plain, and", "'tis", "-5"], tmp_path / "force"
    lines = [csv_line(["doc_id", "duplicate_of", "url"]), *(csv_line([one, "=k", None]) for one in ids)]
    words = [f"{line.rstrip()},{word}\r\n" for line, word in zip(lines, ["verdict", *["kept"] * 8], strict=True)]
    table = pa.table({"kept": [False] * 8, "doc_id": ids})
    pq.write_table(table, tmp_path / "keep.parquet")
    for data in (
        "\ufeff" + "".join(words),
        "".join(csv_line([one, "kept"]) for one in ids).replace(",kept", ";kept"),
        "".join(json.dumps({"doc_id": one, "word": "kept"}) + "\n" for one in ids),
    ):
        path.write_text(data)
        assert read_forced(LocalStorage(), str(path)) == (tuple(sorted(ids)), ())
    assert read_forced(LocalStorage(), str(tmp_path / "keep.parquet")) == ((), tuple(sorted(ids)))


def test_unknown_ids_are_named_and_may_be_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A note names ids that are no document; a list of nothing else exits with 2, with `--all-known` that of any."""
    ids, path = write_texts(tmp_path / "in", 1), tmp_path / "force.csv"
    run = ["run", str(tmp_path / "in"), "--set", "output.report=false", "--set", f"keep.force={path}", "--output"]
    path.write_text(f"{ids[0]},kept\nnobody,kept\n")

    assert main([*run, str(tmp_path / "one"), "--set", "keep.prefer=['nowhere/*','*']"]) == 0
    told = capsys.readouterr().out
    assert "ids that are no document: 1 (nobody)" in told
    assert "keep.prefer matches no source of a document: nowhere/*" in told
    assert main([*run, str(tmp_path / "two"), "--all-known"]) == 2
    path.write_text("nobody,kept\nnone,removed\n")
    assert main([*run, str(tmp_path / "two"), "--resume"]) == 2
    assert "keep.force: none of 2 ids is a document: nobody, none" in capsys.readouterr().err


def test_another_file_makes_only_what_follows_from_the_policy_again(tmp_path: Path) -> None:
    """A resumed run whose file has changed keeps its documents and makes pairs and keep-list again."""
    ids, path, run = write_texts(tmp_path / "in", 1), tmp_path / "force.csv", str(tmp_path / "run")
    path.write_text(f"{ids[0]},kept\n")
    run_locally([str(tmp_path / "in")], run, configure(path))
    path.write_text(f"{ids[0]},removed\n")
    metrics = run_locally([str(tmp_path / "in")], run, configure(path), resume=True)

    assert once_each((row["doc_id"], row["reason"]) for row in rows_of(tmp_path / "run", "keep"))[ids[0]] == "forced"
    assert metrics["stages"]["sketch"]["resumed"] == ["documents", "rejects"]
    assert metrics["stages"]["keep"]["resumed"] == []


def test_a_table_takes_the_file_too(tmp_path: Path) -> None:
    """`find_duplicates` reads `keep.force` of this machine."""
    path = tmp_path / "force.csv"
    path.write_text("b,kept\n")
    texts = {"id": ["a", "b"], "text": ["one and the same text of some words"] * 2}
    run = nddup.find_duplicates(pa.table(texts), keep={"force": str(path)}, progress=False)

    assert run.keep.to_pylist()[0] == {
        "doc_id": "a", "kept": False, "duplicate_of": "b", "reason": "exact", "resemblance": 1.0, "lost": 0.0,
        "leader": False,
    }  # fmt: skip


def test_another_threshold_keeps_what_is_forced(tmp_path: Path) -> None:
    """`rethreshold` gives the keep-list of a fresh run with the same file, even if the file is gone."""
    ids, path = write_texts(tmp_path / "in", 4), tmp_path / "force.csv"
    write_force(path, ids, 4)
    made = {}
    for threshold in (0.6, 0.8):
        config = configure(path, pairs={"threshold": threshold, "confirm": "none"})
        run_locally([str(tmp_path / "in")], str(tmp_path / f"{threshold}"), config)
        made[threshold] = rows_of(tmp_path / f"{threshold}", "keep")
    path.unlink()

    again = nddup.open(str(tmp_path / "0.6")).rethreshold(0.8).keep.to_pylist()

    assert sorted(map(repr, again)) == sorted(map(repr, made[0.8]))


def test_the_summary_claims_nothing_of_documents_that_are_forced_out() -> None:
    """Only what the policy removes has a kept near-duplicate."""
    assert _why_removed(3, 0) == "each has a kept near-duplicate"
    assert _why_removed(3, 2) == "2 by keep.force; each other has a kept near-duplicate"
    assert _why_removed(3, 3) == "3 by keep.force"
