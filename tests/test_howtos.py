"""The how-to pages: their commands run, and each way to join the keep-list back gives the clean data."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import nddup
from nddup.cli import main
from tests.places import ROOT
from tests.test_documentation import commands_of

HOWTO = ROOT / "docs" / "howto"


def texts() -> dict[str, str]:
    """Return twelve texts by URL; every third is a copy of the one before it with one word changed."""
    drawn = np.random.default_rng(5)
    made: dict[str, str] = {}
    for number in range(12):
        words = [f"w{drawn.integers(900)}" for _ in range(120)]
        if number % 3 == 2:
            words = made[f"http://example.org/{number + 14}"].split()
            words[7] = "changed"
        made[f"http://example.org/{number + 15}"] = " ".join(words)
    return made


def blocks(page: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (HOWTO / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a new folder that holds the files the pages name."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"url": url, "text": text, "title": "", "body": text, "article": {"body": text}}
        for url, text in texts().items()
    ]
    Path("news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with Path("pages.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, ["url", "title", "body"], extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    Path("mirror/sub").mkdir(parents=True)
    for number, text in enumerate(texts().values()):
        Path(f"mirror/sub/{number:02}.html").write_text(f"<html><body><p>{text}</p></body></html>", encoding="utf-8")


def kept_urls() -> set[str]:
    """Return the URLs that are kept: of two near-duplicates the longer one, else the one with the smaller id."""
    found = nddup.find_duplicates(pd.DataFrame({"id": list(texts()), "text": list(texts().values())}))
    return set(found.keep.query("kept")["doc_id"])


def run_commands(page: str, capsys: pytest.CaptureFixture[str]) -> str:
    for command in commands_of(HOWTO / page):
        assert main(command) == 0, f"{command}: {capsys.readouterr().err}"
    return capsys.readouterr().out


def rows_of(question: str) -> pd.DataFrame:
    return duckdb.connect().execute(question).df()


def run_python(code: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever a page names
    names = dict(given)
    exec(code, names)  # noqa: S102 - the project's own page
    return names


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """The kept lines, the join in SQL and the join in pandas give the same documents."""
    assert "every promise holds" in run_commands("json-lines.md", capsys)
    kept = kept_urls()
    assert 0 < len(kept) < len(texts())

    lines = Path("out/news/kept/part-00000.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["url"] for line in lines} == kept
    assert set(lines) < set(Path("news.jsonl").read_text(encoding="utf-8").splitlines())

    [question] = blocks("json-lines.md", "sql")
    assert set(rows_of(question)["url"]) == kept
    in_pandas = next(block for block in blocks("json-lines.md", "python") if "pandas" in block)
    assert set(run_python(in_pandas)["clean"]["url"]) == kept


def test_csv(capsys: pytest.CaptureFixture[str]) -> None:
    """The file that each join writes holds the kept rows with all their columns."""
    assert "every promise holds" in run_commands("csv.md", capsys)
    kept = kept_urls()

    duckdb.sql(blocks("csv.md", "sql")[0])
    by_sql = pd.read_csv("clean.csv")
    run_python(next(block for block in blocks("csv.md", "python") if "pandas" in block))
    by_pandas = pd.read_csv("clean.csv")

    for clean in (by_sql, by_pandas):
        assert list(clean.columns) == ["url", "title", "body"]
        assert set(clean["url"]) == kept


def test_a_folder_of_pages(capsys: pytest.CaptureFixture[str]) -> None:
    """The kept pages are copied, and the query lists the others, each with the page it duplicates."""
    assert "every promise holds" in run_commands("pages.md", capsys)

    [code] = re.findall(r"<<'END'\n(.*?)^END", blocks("pages.md", "sh")[-1], re.MULTILINE | re.DOTALL)
    run_python(code)

    copied = {path.name for path in Path("clean").rglob("*.html")}
    removed = {Path(name).name for name in rows_of(blocks("pages.md", "sql")[0])["doc_id"]}
    assert len(copied) == len(kept_urls())
    assert copied | removed == {path.name for path in Path("mirror").rglob("*.html")}
    assert not copied & removed


def test_dataframes() -> None:
    """The joins in pandas, Polars and DuckDB give the kept documents."""
    asked, in_pandas, in_polars, _, in_sql = blocks("dataframes.md", "python")
    pages = pd.DataFrame({"url": list(texts()), "body": list(texts().values())})

    import polars as pl  # noqa: PLC0415 - half a second to load

    for table, joins in ((pages, (in_pandas, in_sql)), (pl.from_pandas(pages), (in_polars,))):
        found = run_python(asked, pages=table)["found"]
        for join in joins:
            clean = run_python(join, pages=table, found=found)["clean"]
            assert set(clean["url"]) == kept_urls()


def test_pandas() -> None:
    """The blocks of the page run in order, on a frame in which one text is null."""
    pages = pd.DataFrame({"url": [*texts(), "none"], "body": [*texts().values(), None]})
    names: dict[str, Any] = {"pages": pages}

    for block in blocks("pandas.md", "python"):
        names = run_python(block, **names)

    assert set(names["clean"]["url"]) == kept_urls()
    assert set(names["clean"]["url"]) | set(names["gone"]["url"]) == set(texts())
    numbers = dict(zip(names["numbered"]["url"], names["numbered"]["cluster_id"], strict=True))
    assert all(numbers[row.url] == numbers[row.duplicate_of] for row in names["gone"].itertuples())
    assert names["stricter"].metrics.settings["shingle"]["length"] == 4
