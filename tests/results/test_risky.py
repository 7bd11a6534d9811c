"""Removals drawn to be judged, what their judgements say of all removals, and `keep.force` from them."""

import csv
import io
import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.evaluating.judged import rate_of, wilson
from nddup.reading.id_lists import JUDGEMENTS
from nddup.report.for_review import ask_strata, draw_risky, risky_lines, share_out
from nddup.results.opening import open_here, open_on_spark
from nddup.settings.load import build_config
from tests.counted_rows import once_each
from tests.results.damages import rewrite
from tests.run.valued_texts import Row, rows_of, write_texts

KEEP: dict[str, Any] = {"ledger": ["lang"], "policy": ["licence=MIT,-", "-score"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Row]]:
    """Make a run of texts with labels, scores and two files; return its folder and its records."""
    folder, draw = tmp_path_factory.mktemp("risky"), random.Random(3)  # noqa: S311 - scores
    records = write_texts(folder / "in", 11, families=30)
    for row in records.values():
        row["score"] = draw.choice([1, 2.5, None])
    for file in "ab":
        rows = [json.dumps({name: value for name, value in row.items() if name != "file"}) + "\n"
                for row in records.values() if row["file"] == file]  # fmt: skip
        (folder / "in" / f"{file}.jsonl").write_text("".join(rows))
    settings = {"keep": KEEP, "pairs": {"threshold": 0.6}, "output": {"report": False}}
    run_locally([str(folder / "in")], str(folder / "run"), build_config(settings, origin="test"))
    return folder / "run", records


def define_strata(run: Path, records: dict[str, Row]) -> dict[str, str]:
    """Return the stratum of each removal, by its definition."""
    tokens = once_each((row["doc_id"], row["n_tokens"]) for row in rows_of(run, "documents"))
    strata = {}
    for row in rows_of(run, "keep"):
        if row["kept"] or row["duplicate_of"] is None:
            continue
        one, other = records[row["doc_id"]], records[row["duplicate_of"]]
        scores = one["score"], other["score"]
        risks = {
            "label": one["lang"] != other["lang"],
            "score": None not in scores and scores[1] < scores[0],
            "shorter": tokens[other["id"]] < tokens[one["id"]],
            "close": row["resemblance"] < 0.65,
            "source": one["file"] != other["file"],
        }
        strata[row["doc_id"]] = next((name for name, holds in risks.items() if holds), "rest")
    return strata


def test_strata_are_those_of_the_records(made: tuple[Path, dict[str, Row]]) -> None:
    """Every removal is in the first stratum that holds; a draw takes equal shares, each removal once."""
    opened, due = DuckRun(str(made[0])), define_strata(*made)
    counts = Counter(due.values())
    assert ask_strata(opened) == counts
    assert {"label", "score", "shorter", "rest"} <= counts.keys()

    everything = once_each((row["doc_id"], row["stratum"]) for row in draw_risky(opened, 10**6))
    assert everything == due

    few = draw_risky(opened, 12, seed=4)
    assert Counter(row["stratum"] for row in few) == {
        name: n for name, n in share_out(ask_strata(opened), 12).items() if n
    }
    assert len({row["doc_id"] for row in few}) == 12
    first = few[: len(counts)]
    assert len({row["stratum"] for row in first}) == len(first)  # one of each in turn
    assert draw_risky(opened, 12, seed=4) == few
    assert draw_risky(opened, 12, seed=5) != few


def test_every_removal_of_a_stratum_is_drawn_alike(made: tuple[Path, dict[str, Row]]) -> None:
    """Over many seeds each removal of a stratum comes as often as the others."""
    seeds = 60
    opened, due = DuckRun(str(made[0])), define_strata(*made)
    drawn = Counter(row["doc_id"] for seed in range(seeds) for row in draw_risky(opened, 12, seed))
    size, each = Counter(due.values()), share_out(ask_strata(opened), 12)
    for doc, stratum in due.items():
        chance = each[stratum] / size[stratum]
        assert abs(drawn[doc] - seeds * chance) <= 5 * max(1.0, (seeds * chance * (1 - chance)) ** 0.5)


@pytest.mark.spark
def test_spark_draws_the_same(spark: SparkSession, made: tuple[Path, dict[str, Row]]) -> None:
    """The file is byte for byte that of this process."""
    here, there = open_here(str(made[0])).run, open_on_spark(spark, str(made[0])).run
    assert list(risky_lines(here, 9, 2)) == list(risky_lines(there, 9, 2))


def test_an_interval_holds_the_rate_as_often_as_it_says() -> None:
    """Of drawn collections the 95 % interval holds the true rate at least 93 times in 100; one stratum is Wilson's."""
    draw, held = np.random.default_rng(1), 0
    for _ in range(1_500):
        sizes = draw.integers(40, 3_000, 4)
        bad = [int(draw.binomial(size, share)) for size, share in zip(sizes, (0.02, 0.1, 0.4, 0.0), strict=True)]
        strata = [(int(size), 25, int(draw.hypergeometric(count, size - count, 25)))
                  for size, count in zip(sizes, bad, strict=True)]  # fmt: skip
        _, low, high = rate_of(strata)
        held += low <= sum(bad) / sizes.sum() <= high
    assert held / 1_500 > 0.93
    assert rate_of([(10**12, 20, 3)]) == pytest.approx((0.15, *wilson(3, 20)), abs=1e-6)


def judge(run: Path, number: int) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return a file of judgements, and what was said of each removal, with the kept one."""
    rows = list(csv.DictReader(io.StringIO("".join(risky_lines(DuckRun(str(run)), number)))))
    for place, row in enumerate(rows):
        row["judgement"] = (*JUDGEMENTS, "")[place % 5].upper()
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    told = {row["doc_id"]: (row["judgement"].lower(), row["duplicate_of"]) for row in rows if row["judgement"]}
    return text.getvalue(), told


def test_judgements_give_rates(
    made: tuple[Path, dict[str, Row]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rates are those of the strata, weighted by their removals; with all of them judged they are exact."""
    run, due = made[0], define_strata(*made)
    sizes = Counter(due.values())
    for number in (15, 10**6):
        text, told = judge(run, number)
        (tmp_path / "judged.csv").write_text(text, encoding="utf-8")
        assert main(["evaluate", str(run), "--judged", str(tmp_path / "judged.csv"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)

        judged = Counter(due[doc] for doc in told)
        whole = sum(sizes[name] for name in judged)
        assert (found["judged"], found["unknown"], found["outside"]) == (len(told), 0, sizes.total() - whole)
        for said in JUDGEMENTS:
            count = Counter(due[doc] for doc, (word, _) in told.items() if word == said)
            rate = sum(sizes[name] * count[name] / judged[name] for name in judged) / whole
            assert found["rates"][said]["rate"] == pytest.approx(rate)
            assert found["rates"][said]["low"] <= rate + 1e-9
            assert rate <= found["rates"][said]["high"] + 1e-9
    assert json.loads((run / "evaluation" / "judged.json").read_text()) == found
    assert main(["evaluate", str(run), "--judged", str(tmp_path / "judged.csv")]) == 0
    assert "worse or not a duplicate" in capsys.readouterr().out


def test_judgements_are_taken_by_keep_force(made: tuple[Path, dict[str, Row]], tmp_path: Path) -> None:
    """A removed document that is better than the kept one takes its place; of no duplicates both are kept."""
    run, _ = made
    text, told = judge(run, 15)
    (tmp_path / "judged.csv").write_text(text, encoding="utf-8")
    keep = KEEP | {"force": str(tmp_path / "judged.csv")}
    config = build_config({"keep": keep, "pairs": {"threshold": 0.6}, "output": {"report": False}}, origin="test")

    run_locally([str(run.parent / "in")], str(tmp_path / "run"), config)

    kept = once_each((row["doc_id"], row["kept"]) for row in rows_of(tmp_path / "run", "keep"))
    assert {word for word, _ in told.values()} == set(JUDGEMENTS)
    for doc, (word, of) in told.items():
        if word in ("worse", "not a duplicate"):
            assert kept[doc]
        if word == "worse":
            assert not kept[of]
        elif word == "not a duplicate" and ("worse", of) not in told.values():
            assert kept[of]


def test_one_removal_is_judged_once(
    made: tuple[Path, dict[str, Row]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In brackets a removal is the same; two judgements of it are refused, by `keep.force` too, and named."""
    run, path = made[0], tmp_path / "judged.csv"
    doc, (_, of) = next(iter(judge(run, 15)[1].items()))
    head, line = "doc_id,duplicate_of,judgement\n", f"<{doc}>,<{of}>,equal\n"
    path.write_text(f"{head}{doc},{of},equal\n{line}", encoding="utf-8")
    assert main(["evaluate", str(run), "--judged", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["judged"], found["unknown"], found["rates"]["equal"]["rate"]) == (1, 0, 1)

    path.write_text(f"{head}{doc},{of},worse\n{line}", encoding="utf-8")
    assert main(["evaluate", str(run), "--judged", str(path)]) == 2
    assert f"({f'<{doc}>'!r}, {f'<{of}>'!r}) and ({doc!r}, {of!r}) name the same, once as equal, once as worse" in (
        capsys.readouterr().err
    )

    path.write_text(f"{head}{doc},{of},worse\n{doc},{of},equal\n", encoding="utf-8")
    said = f"line 3: {doc!r} and {of!r} are judged twice, 'worse' and 'equal'"
    assert main(["evaluate", str(run), "--judged", str(path)]) == 2
    assert said in capsys.readouterr().err
    arguments = [str(run.parent / "in"), "--set", f"keep.force={path}", "--output", str(tmp_path / "run"), "--quiet"]
    assert main(["run", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("doc_id,kept\na,b\n", "expected the columns doc_id, duplicate_of, judgement"),
        ("doc_id,duplicate_of,judgement\na,b,good\n", "line 2: expected two ids and a judgement (better, equal, worse"),
        ("doc_id,duplicate_of,judgement\na,b,worse\n", "judges no removal of"),
    ],
)
def test_a_file_that_judges_nothing_is_refused(
    made: tuple[Path, dict[str, Row]], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    """One line says what is wrong, with exit status 2."""
    (tmp_path / "judged.csv").write_text(text)
    assert main(["evaluate", str(made[0]), "--judged", str(tmp_path / "judged.csv")]) == 2
    assert said in capsys.readouterr().err


def test_the_report_takes_what_is_drawn(made: tuple[Path, dict[str, Row]], capsys: pytest.CaptureFixture[str]) -> None:
    """`report --risky` stores the drawn removals with both texts; `show` prints the strata and the command."""
    run, _ = made
    assert main(["show", str(run), "--risky", "6"]) == 0
    assert f"side by side: nddup report {run} --risky 6" in capsys.readouterr().out
    assert main(["report", str(run), "--risky", "6"]) == 0
    summary = json.loads((run / "report/data/summary.js").read_text().removeprefix('nddup.put("summary",')[:-3])
    drawn = draw_risky(DuckRun(str(run)), 6)
    assert summary["risky"] == drawn
    assert summary["texts"]["documents"] >= len({row[name] for row in drawn for name in ("doc_id", "duplicate_of")})


def test_the_older_and_the_newer_are_strata(made: tuple[Path, dict[str, Row]], tmp_path: Path) -> None:
    """Of removals with no graver risk, those whose kept capture has another date; the CSV says the same."""
    run, draw = tmp_path / "run", random.Random(8)  # noqa: S311 - dates
    shutil.copytree(made[0], run)
    dates = {name: draw.choice([None, *(f"20{year}-05-01T12:00:00Z" for year in range(10, 30))]) for name in made[1]}

    def date(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["date"] = dates[row["doc_id"]]

    rewrite(run, "documents", date)
    due = define_strata(*made)
    for row in rows_of(run, "keep"):
        if due.get(row["doc_id"]) == "rest":
            one, other = dates[row["doc_id"]], dates[row["duplicate_of"]]
            if one and other and one != other:
                due[row["doc_id"]] = "older" if other < one else "newer"
    opened = DuckRun(str(run))
    assert {"older", "newer"} <= set(due.values())
    assert ask_strata(opened) == Counter(due.values())
    told = csv.DictReader(io.StringIO("".join(risky_lines(opened, 10**6))))
    assert once_each((row["doc_id"], row["stratum"]) for row in told) == due
