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
import zstandard

import nddup
from nddup.cli import main
from tests.places import ROOT
from tests.run.crawls import CRAWL, write_crawl
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
        {"url": url, "text": text, "title": "", "body": text, "article": {"body": text}, "section": f"s{at % 2}"}
        for at, (url, text) in enumerate(texts().items())
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
    """Run the commands of a page; `tests/remote` has those over files elsewhere."""
    here = [command for command in commands_of(HOWTO / page) if not any("://" in part for part in command)]
    for command in here:
        assert main(command) == 0, f"{command}: {capsys.readouterr().err}"
    return capsys.readouterr().out


def rows_of(question: str) -> pd.DataFrame:
    return duckdb.connect().execute(question).df()


def run_python(code: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever a page names
    names = dict(given)
    exec(code, names)  # noqa: S102 - the project's own page
    return names


def test_any_collection(capsys: pytest.CaptureFixture[str]) -> None:
    """The kept lines, the join in SQL and the join in pandas give the same documents."""
    assert "every promise holds" in run_commands("read-any-collection.md", capsys)
    kept = kept_urls()
    assert 0 < len(kept) < len(texts())

    lines = Path("out/news/kept/news.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["url"] for line in lines} == kept
    assert set(lines) < set(Path("news.jsonl").read_text(encoding="utf-8").splitlines())

    question = blocks("read-any-collection.md", "sql")[0]
    assert set(rows_of(question)["url"]) == kept
    in_pandas = next(block for block in blocks("read-any-collection.md", "python") if "pandas" in block)
    assert set(run_python(in_pandas)["clean"]["url"]) == kept


def test_web_archives(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands run over a crawl, and the question has the answer that follows from how it was made."""
    mirrored = [one._replace(name=f"m{one.name}", uri=one.uri.replace("a.example", "m.example")) for one in CRAWL[:1]]
    write_crawl(Path(), [*CRAWL, *mirrored])
    assert "every promise holds" in run_commands("web-archives.md", capsys)

    [sites] = blocks("web-archives.md", "sql")
    run = nddup.open("out/crawl")
    assert run.sql(sites).to_table().to_pylist() == [
        {"one": "a.example", "other": "m.example", "pairs": 2, "of_one": 2, "pages_of_one": 2, "of_other": 1,
         "pages_of_other": 1},
    ]  # fmt: skip


def test_a_mirrored_site(capsys: pytest.CaptureFixture[str]) -> None:
    """The query lists the removed pages, and the kept ones are in the folder of the clean data."""
    assert main(["run", "mirror/", "--output", "out/mirror", "--set", "output.kept=as-input"]) == 0, capsys.readouterr()

    kept = {path.name for path in Path("out/mirror/kept").rglob("*.html")}
    removed = {Path(name).name for name in rows_of(blocks("read-any-collection.md", "sql")[1])["doc_id"]}
    assert len(kept) == len(kept_urls())
    assert kept | removed == {path.name for path in Path("mirror").rglob("*.html")}
    assert not kept & removed


def test_a_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command leaves every pair in one part; fixed and earlier parts stay; Python gives the split by section."""
    Path("published.csv").write_text("http://example.org/15,test\n")
    assert "every promise holds" in run_commands("split-without-leaks.md", capsys)

    units, far = blocks("split-without-leaks.md", "sql")[0].strip().rstrip(";").split(";")
    assert rows_of(units)["documents"].sum() == len(texts())
    assert set(rows_of(far)["part"]) <= {"train", "valid", "test"}
    fixed, again = (
        dict(rows_of(f"FROM 'out/{name}/split/*.parquet'")[["doc_id", "part"]].itertuples(index=False))
        for name in ("fixed", "again")
    )
    assert fixed["http://example.org/15"] == "test"
    assert again == fixed
    split = run_python(blocks("split-without-leaks.md", "python")[0])["split"]
    assert set(split.to_table()["part"].to_pylist()) == {"train", "test"}


def test_training_data(capsys: pytest.CaptureFixture[str]) -> None:
    """Wiki stays before cc, and of one source the best score; copies add up; benchmark items are gone."""
    sources, rows = ("cc", "news", "wiki"), list[dict[str, Any]]()
    for at, text in enumerate(texts().values()):
        rows += [{"id": f"{at}{one}", "text": text, "source": sources[(at + one) % 3], "score": one, "date": "2025-01"}
                 for one in range(4)]  # fmt: skip
    for folder, some in {"shards/a": rows[::3], "shards/b": rows[1::3], "week2/c": rows[2::3]}.items():
        Path(folder).parent.mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in some)
        Path(f"{folder}.jsonl.zst").write_bytes(zstandard.compress(lines.encode()))
    Path("benchmark.jsonl").write_text(json.dumps({"id": "q", "text": rows[0]["text"]}) + "\n")
    for command in commands_of(HOWTO / "take-the-clean-data-home.md")[-3:]:
        assert main(command) == 0, f"{command}: {capsys.readouterr().err}"

    kept = [json.loads(line) for path in Path("out/week2/kept").rglob("*.zst")
            for line in zstandard.ZstdDecompressor().stream_reader(path.open("rb")).read().splitlines()]  # fmt: skip
    assert {row["nddup_first"] for row in kept} == {"2025-01"}
    assert all({one["value"] for one in row["nddup_sources"]} == set(sources) for row in kept)
    assert {row["source"] for row in kept} == {"wiki"}
    assert sum(row["nddup_copies"] for row in kept) == len(rows)
    counts = rows_of(blocks("take-the-clean-data-home.md", "sql")[-1])
    assert counts.set_index("source")["documents"].to_dict() == {one: len(rows) // 3 for one in sources}
    clean = b"".join(zstandard.ZstdDecompressor().stream_reader(path.open("rb")).read()
                     for path in Path("out/clean").rglob("*.zst"))  # fmt: skip
    assert len(clean.splitlines()) == len(kept) - 1


def test_an_upgrade(capsys: pytest.CaptureFixture[str]) -> None:
    """The threshold is the cause of each new verdict; the tables name them, and Python finds none newly removed."""
    said = run_commands("sign-off-an-upgrade.md", capsys)
    assert "setting pairs.threshold: 0.7 -> 0.95" in said
    assert "  4: settings differ" in said

    changed, families = blocks("sign-off-an-upgrade.md", "sql")[0].strip().rstrip(";").split(";")
    assert rows_of(changed)["kept_after"].all()
    assert set(rows_of(families)["change"]) == {"born", "split"}
    assert run_python(blocks("sign-off-an-upgrade.md", "python")[0])["removed"] == []
    named = rows_of("FROM 'out/tonight/names/*.parquet'")
    assert (len(named), named["documents"].sum()) == (len(texts()), len(texts()))


def test_tables_in_python() -> None:
    """The blocks of the page run in order, on a frame in which one text is null; Polars and DuckDB keep the same."""
    pages = pd.DataFrame({"url": [*texts(), "none"], "body": [*texts().values(), None]})
    asked, in_pandas, in_polars, in_sql, *others = blocks("pandas.md", "python")
    names = run_python(asked, pages=pages)
    for block in (in_sql, in_pandas, *others):
        names = run_python(block, **names)
        assert set(names["clean"]["url"]) == kept_urls()

    assert set(names["clean"]["url"]) | set(names["gone"]["url"]) == set(texts())
    numbers = dict(zip(names["numbered"]["url"], names["numbered"]["cluster_id"], strict=True))
    assert all(numbers[row.url] == numbers[row.duplicate_of] for row in names["gone"].itertuples())
    assert names["stricter"].metrics.settings["shingle"]["length"] == 4

    import polars as pl  # noqa: PLC0415 - half a second to load

    frame = pl.from_pandas(pages)
    found = run_python(asked, pages=frame)["found"]
    assert set(run_python(in_polars, pages=frame, found=found)["clean"]["url"]) == kept_urls()
