"""The table `families` of a repository, after every batch, against one run over what is live."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nddup.repository
from nddup.checking.check_run import check_run
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.settings.load import build_config
from tests.repository.histories import draw_text
from tests.run.valued_texts import Row, rows_of, write_texts
from tests.samples_by_night import examples, first

KEEP = {"ledger": ["lang", "licence", "nddup_source"]}


def write_batches(folder: Path, seed: int) -> list[list[Row]]:
    """Write the records in four files, a batch each; the third has no languages."""
    rows = [row for row in write_texts(folder / "all", seed).values() if row["text"].strip()]
    batches = [rows[at::4] for at in range(4)]
    (folder / "in").mkdir()
    for at, batch in enumerate(batches):
        lacking = {"file", "lang"} if at == 2 else {"file"}
        told = [{name: value for name, value in row.items() if name not in lacking} for row in batch]
        (folder / "in" / f"{at}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))
    return batches


def spelled(rows: Any) -> list[str]:  # noqa: ANN401 - rows of a table
    return sorted(map(repr, rows))


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_a_version_has_the_families_of_a_run(seed: int, tmp_path: Path) -> None:
    """After each batch, a removal and a replacement; and what is written as a run is sound."""
    write_batches(tmp_path, seed)
    sets = ["--set", "keep.ledger=[lang, licence, nddup_source]", "--set", "output.report=false"]
    repo, files = str(tmp_path / "repo"), [tmp_path / "in" / f"{at}.jsonl" for at in range(4)]
    assert main(["index", "create", repo, *sets]) == 0
    config = build_config({"keep": KEEP, "output": {"report": False}}, origin="test")
    for at, file in enumerate(files):
        assert main(["index", "add", repo, str(file)]) == 0
        run_locally([str(one) for one in files[: at + 1]], str(tmp_path / f"run{at}"), config)
        found = nddup.repository.open(repo).tables()["families"].to_pylist()
        assert spelled(found) == spelled(rows_of(tmp_path / f"run{at}", "families"))

    (tmp_path / "gone.txt").write_text(found[0]["doc_id"] + "\n")
    assert main(["index", "remove", repo, "--ids", str(tmp_path / "gone.txt")]) == 0
    assert main(["index", "tables", repo, "--output", str(tmp_path / "version")]) == 0
    assert check_run(DuckRun(str(tmp_path / "version")), steps=["accounting", "families"]).is_sound
    assert main(["index", "check", repo]) == 0


def test_a_table_gives_its_columns(tmp_path: Path) -> None:
    """Rows of an added table are stored with the columns of the ledger; texts by id have none."""
    assert main(["index", "create", str(tmp_path / "repo"), "--set", "keep.ledger=[lang]"]) == 0
    repo, text = nddup.repository.open(str(tmp_path / "repo")), " ".join(f"w{at}" for at in range(40))
    repo.add(pa.table({"id": ["a", "b"], "text": [text, text], "lang": ["ru", None]}))
    repo.add({"c": text})
    (family,) = repo.tables()["families"].to_pylist()
    assert family["ledger"][0]["values"] == [{"value": None, "documents": 2}, {"value": "ru", "documents": 1}]


@pytest.mark.parametrize("max_edges", [3, pytest.param(1_000_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("confirm", ["none", pytest.param("resemblance", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_a_version_keeps_what_a_run_keeps_by_stored_columns(
    seed: int, confirm: str, max_edges: int, tmp_path: Path
) -> None:
    """By listed values, numbers, sources and equal values: after each batch all tables are those of a fresh run."""
    batches = write_batches(tmp_path, seed)
    keep = {"policy": ["licence=-,MIT", "-lang", "length"], "same": ["lang"], "prefer": ["2*"], "ledger": ["lang"]}
    given: dict[str, Any] = {
        "keep": keep, "pairs": {"threshold": 0.6, "confirm": confirm, "max_edges": max_edges},
        "clusters": {"mode": ["partition", "components", "cover"][seed]},
    }  # fmt: skip
    repo = nddup.repository.create(str(tmp_path / "repo"), **given)
    for at in range(4):
        repo.add([str(tmp_path / "in" / f"{at}.jsonl")])
    files = [str(tmp_path / "in" / f"{at}.jsonl") for at in range(4)]
    (again,) = (row for row in batches[0] if row["id"] == batches[0][0]["id"])
    told = {**{name: value for name, value in again.items() if name != "file"}, "lang": "other"}
    rest = Path(files[0]).read_text().splitlines()[1:]
    (tmp_path / "in" / "4.jsonl").write_text(json.dumps(told) + "\n")  # the same text, with another value
    repo.add([str(tmp_path / "in" / "4.jsonl")], replace=True)
    Path(files[0]).write_text("".join(f"{line}\n" for line in rest))

    run_locally(
        [*files, str(tmp_path / "in" / "4.jsonl")], str(tmp_path / "run"),
        build_config(given | {"output": {"report": False}}, origin="test"),
    )  # fmt: skip
    tables = repo.tables()
    for name in ("keep", "families", "clusters", "members"):
        assert spelled(tables[name].to_pylist()) == spelled(rows_of(tmp_path / "run", name)), name
    assert main(["index", "check", str(tmp_path / "repo")]) == 0
    assert main(["index", "tables", str(tmp_path / "repo"), "--output", str(tmp_path / "version")]) == 0
    assert check_run(DuckRun(str(tmp_path / "version"))).is_sound


def as_table(rows: dict[str, Row]) -> pa.Table:
    columns = {name: pa.array([row[name] for row in rows.values()], pa.string()) for name in ("text", "lang", "score")}
    return pa.table({"id": pa.array(rows, pa.string()), **columns})


@settings(max_examples=examples(2, 4), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(2, 4))
def test_any_history_has_the_families_of_a_run(tmp_path_factory: pytest.TempPathFactory, seed: int, steps: int) -> None:
    """Texts and values that come, change and leave; missing, equal and listed values, guards, and leaders.

    The first document of a table is that of the least id; of a repository, the oldest: `first` is not compared.
    """
    draw, texts = random.Random(seed), np.random.default_rng(seed)  # noqa: S311 - a history
    keep = {
        "ledger": ["lang", "score"], "same": draw.choice([None, ["lang"], ["score", "lang"]]),
        "policy": draw.choice(["longest", "first-id", ["lang=b,a", "-score:number"], ["score", "-length"]]),
    }  # fmt: skip
    pairs = {"threshold": 0.6, "max_edges": draw.choice([10**6, 2]), "confirm": draw.choice(["none", "resemblance"])}
    asked: dict[str, Any] = {"keep": keep, "pairs": pairs, "sketch": {"size": 24}, "local": {"processes": 1}}
    repo, live = nddup.repository.create(str(tmp_path_factory.mktemp("history") / "repo"), **asked), dict[str, Row]()
    for _ in range(steps):
        gone = draw.sample(sorted(live), draw.randint(0, len(live) // 3))
        if gone:
            repo.remove(gone)
        live = {name: row for name, row in live.items() if name not in gone}
        rows = dict[str, Row]()
        for _ in range(draw.randint(1, 9)):
            values = {"lang": draw.choice(["a", "b", None]), "score": draw.choice([None, "3", "1e1", "-2", "many"])}
            name = f"d{draw.randrange(16):02}"
            is_known = name in live and draw.random() < 0.5  # the same text, with other values
            rows[name] = {"text": live[name]["text"] if is_known else draw_text(texts), **values}
        repo.add(as_table(rows), replace=True)
        for name, row in rows.items():
            if live.get(name) != row:
                live.pop(name, None)
                live[name] = row

        fresh, tables = nddup.find_duplicates(as_table(live), progress=False, **asked), repo.tables()
        assert spelled(tables["families"].to_pylist()) == spelled(fresh.families.to_pylist()), asked
        assert spelled(tables["keep"].to_pylist()) == spelled(fresh.keep.to_pylist()), asked
        assert sum(tables["families"]["documents"].to_pylist()) == len(live)
