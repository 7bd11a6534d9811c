"""A table that is added to a repository is read as `find_duplicates` and files are: id, title, and text or chats."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import nddup
import nddup.repository
from nddup.errors import ConfigError
from tests.samples_by_night import every, first

WORDS = " ".join(f"word{n}" for n in range(60))
CHAT = [{"role": "user", "content": "What is a sketch?"}, {"role": "assistant", "content": WORDS}]

TABLES: dict[str, list[dict[str, Any]]] = {
    "text": [{"id": "a", "text": WORDS}, {"id": "b", "text": f"{WORDS} more"}, {"id": "c", "text": None}],
    "title": [{"id": "a", "title": "On sketches", "text": WORDS}, {"id": "b", "title": None, "text": WORDS}],
    "content": [{"id": "a", "title": "One title", "content": WORDS}, {"id": "b", "title": "Two", "content": WORDS}],
    "body": [{"id": "a", "body": f"<p>{WORDS}</p>"}, {"id": "b", "body": WORDS}],
    "chats": [{"id": "a", "messages": CHAT}, {"id": "b", "messages": CHAT[1:]}],
    "numbers": [{"id": 10, "content": WORDS}, {"id": 9, "content": f"{WORDS} more"}],
}
"""Rows of a table, by what is special in them."""

SAME = ("doc_id", "n_tokens", "n_features", "content_fingerprint", "token_fingerprint")


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    """Return what is known of the text of each document."""
    return sorted(tuple(str(row[name]) for name in SAME) for row in table.to_pylist())


@pytest.mark.parametrize("name", every(2, TABLES))
def test_a_table_is_read_as_find_duplicates_and_a_file(tmp_path: Path, name: str) -> None:
    """Texts, pairs and rejects are the same, whichever way the rows come."""
    rows = TABLES[name]
    repo, of_file = (nddup.repository.create(str(tmp_path / folder)) for folder in ("repo", "of-file"))
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    whole = nddup.find_duplicates(pa.Table.from_pylist(rows))

    written = repo.add(pa.Table.from_pylist(rows))
    of_file.add(str(tmp_path / "rows.jsonl"))

    added, filed = repo.tables(), of_file.tables()
    assert rows_of(added["documents"]) == rows_of(whole.documents)
    assert len(added["pairs"]) == len(whole.pairs) == len(filed["pairs"])
    assert [row[:3] for row in rows_of(added["documents"])] == [row[:3] for row in rows_of(filed["documents"])]
    assert written.rejects["reason"].to_pylist() == whole.rejects["reason"].to_pylist()
    assert all(proof.holds for proof in repo.check())


@pytest.mark.parametrize("library", first(1, ["pandas", "rows", "polars", "lazy"]))
def test_a_table_of_any_library_is_added_as_that_of_arrow(tmp_path: Path, library: str) -> None:
    """Titles, chats and whole numbers as ids arrive alike."""
    made = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "lazy": lambda rows: pl.DataFrame(rows).lazy(),
        "rows": list,
    }
    for name in ("title", "chats", "numbers"):
        rows = TABLES[name]
        repo, same = (nddup.repository.create(str(tmp_path / name / kind)) for kind in ("given", "arrow"))
        repo.add(made[library](rows))
        same.add(pa.Table.from_pylist(rows))
        assert rows_of(repo.tables()["documents"]) == rows_of(same.tables()["documents"])


@pytest.mark.parametrize("given", [7, pd.Series(["a"]), [{"id": "a"}, 7], [Path("a"), {"id": "b"}]])
def test_what_is_no_table_is_refused(tmp_path: Path, given: object) -> None:
    """One line says what was expected."""
    repo = nddup.repository.create(str(tmp_path / "repo"))
    with pytest.raises(ConfigError, match=r"^add: expected a table"):
        repo.add(given)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"text": [WORDS]}, "^add: no column 'id'; there are text$"),
        ({"id": ["a"], "words": [WORDS]}, "^add: no column of texts; there are id, words; call it text$"),
        ({"id": ["a"], "text": [7]}, "^add: column 'text' holds int64; expected text$"),
    ],
)
def test_a_table_without_an_id_or_a_text_is_refused(tmp_path: Path, columns: dict[str, Any], said: str) -> None:
    """One line names the column; no version is made."""
    repo = nddup.repository.create(str(tmp_path / "repo"))
    before = repo.version

    with pytest.raises(ConfigError, match=said):
        repo.add(pa.table(columns))

    assert repo.refresh().version == before
