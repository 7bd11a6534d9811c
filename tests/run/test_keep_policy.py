"""`keep.policy` by columns and `keep.prefer` agree with a plain sort in Python, and `check` finds the promise kept."""

import json
import random
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError
from nddup.ground.metrics import RunMetrics
from nddup.matching.preference import order_key, parse_column, read_glob
from nddup.report.summary import notes
from nddup.settings.load import build_config, load_config
from nddup.spark.run import run_job
from tests.counted_rows import once, once_each
from tests.samples_by_night import first

VALUES: list[Any] = [
    None, "", "n/a", "0.5", 0.5, 12, -3, "1e3", "99999999999999999999.5", "99999999999999999999.25", "-0", "x", "Ж",
    "007", "x\x00y", "2020-01-02", "2019-12-31", "  8 ", "+4", "1_000", "inf", "0.0000000001", "-1e-5", True,
]  # fmt: skip
POLICIES = [
    ["-score:number", "date", "id"],
    ["score"],
    ["-score"],
    ["date:text", "-score:number"],
    ["-date:text", "-length"],
    ["url_length", "score:number"],
]
PREFER = ["clean/*", "*[12].jsonl"]


Row = dict[str, Any]


def as_text(value: Any) -> str | None:  # noqa: ANN401
    """Return a value as text, or None if it is missing or blank."""
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.strip() or None


def number(text: str) -> Decimal | None:
    """Return the number that a text spells; None if it spells none, is not finite or contains underscores."""
    if "_" in text:
        return None
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def compare(a: Row, b: Row, policy: list[str], prefer: list[str]) -> int:
    """Compare two documents by `prefer` and then column by column; negative if `a` comes first."""
    places = [next((at for at, glob in enumerate(prefer) if fnmatchcase(row["source"], glob)), 99) for row in (a, b)]
    if places[0] != places[1]:
        return places[0] - places[1]
    for column in policy:
        name, _, kind = column.removeprefix("-").partition(":")
        sides = []
        for row in (a, b):
            text = as_text(row[name])
            value = number(text) if text is not None and kind != "text" else None
            sides.append((2, None) if text is None or (kind == "number" and value is None)
                         else (0, value) if value is not None else (1, text.encode()))  # fmt: skip
        if sides[0][0] != sides[1][0]:
            return int(sides[0][0] - sides[1][0])
        if sides[0][1] != sides[1][1]:
            first = -1 if sides[0][1] < sides[1][1] else 1  # type: ignore[operator]
            return -first if column.startswith("-") else first
    return -1 if a["id"].encode() < b["id"].encode() else 1


def in_order(policy: list[str], prefer: list[str]) -> Callable[[Row], Any]:
    """Return a key for `sorted` that orders documents as `compare` does."""

    def told(a: Row, b: Row) -> int:
        return compare(a, b, policy, prefer)

    return cmp_to_key(told)


@pytest.mark.parametrize("seed", range(20))
def test_keys_are_in_the_order_of_a_plain_sort(seed: int) -> None:
    """For random values and random columns, sorting by `order_key` gives the order of the definition."""
    draw = random.Random(seed)  # noqa: S311 - values
    policy = [draw.choice(["", "-"]) + name + draw.choice(["", ":number", ":text"]) for name in ("a", "b")]
    rows = [{"id": f"{at:03}", "source": "s", "a": draw.choice(VALUES), "b": draw.choice(VALUES)} for at in range(80)]
    columns = [parse_column(column) for column in policy]

    by_key = sorted(rows, key=lambda row: (order_key([as_text(row["a"]), as_text(row["b"])], columns), row["id"]))
    assert by_key == sorted(rows, key=in_order(policy, []))


def write_collection(folder: Path, seed: int) -> list[dict[str, Any]]:
    """Write families of equal texts to three files, each text with a score and a date; returns the rows."""
    draw, found = random.Random(seed), []  # noqa: S311 - values
    for file in ("clean/0.jsonl", "raw1.jsonl", "raw3.jsonl"):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = []
        for line in range(40):
            family = draw.randrange(12)
            words = [f"family{family}word{word}" for word in range(20)] + ["more"] * (line % 2)
            row: Row = {"id": f"{file}{line}", "url": "http://x/" + "a" * draw.randrange(5), "text": " ".join(words)}
            row |= {"score": draw.choice(VALUES), "date": draw.choice(VALUES)}
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
            found.append(row | {"source": file, "length": len(words), "url_length": len(row["url"])})
        path.write_text("".join(lines))
    return found


def kept_by(rows: list[dict[str, Any]], folder: Path, policy: list[str], prefer: list[str]) -> set[str]:
    """Return the lexicographically first maximal independent set of the pairs of a run, by its definition."""
    pairs = pq.read_table(folder / "pairs").to_pylist()
    near: dict[str, set[str]] = {}
    for pair in pairs:
        near.setdefault(pair["doc_a"], set()).add(pair["doc_b"])
        near.setdefault(pair["doc_b"], set()).add(pair["doc_a"])
    kept: set[str] = set()
    for row in sorted(rows, key=in_order(policy, prefer)):
        if not near.get(row["id"], set()) & kept:
            kept.add(row["id"])
    return kept


@pytest.mark.parametrize(
    ("policy", "prefer"),
    [
        pytest.param(policy, prefer, marks=[pytest.mark.nightly] * ((at + 2 * bool(prefer)) % 3 > 0))
        for at, policy in enumerate(POLICIES)
        for prefer in ([], PREFER)
    ],
)
def test_the_kept_are_those_of_a_plain_sort(policy: list[str], prefer: list[str], tmp_path: Path) -> None:
    """The kept documents are those of the definition, `check` agrees, and `documents` holds the values compared."""
    rows = write_collection(tmp_path / "in", len(policy))
    keep = {"policy": policy, "prefer": prefer or None}
    config = build_config({"keep": keep, "output": {"report": False}}, origin="test")
    run_locally([str(tmp_path / "in")], str(tmp_path / "out"), config)

    found = once(row["doc_id"] for row in pq.read_table(tmp_path / "out" / "keep").to_pylist() if row["kept"])
    assert found == kept_by(rows, tmp_path / "out", policy, prefer)
    assert 10 < len(found) < 60
    report = check_run(DuckRun(str(tmp_path / "out")), steps=["members", "keep"])
    assert report.is_sound, report.text()
    metrics = RunMetrics.read((tmp_path / "out" / "metrics.json").read_text())
    for column in policy:
        path, _, kind = column.removeprefix("-").partition(":")
        texts = [as_text(row[path]) for row in rows if path in ("score", "date")]
        assert metrics.stages.keep.without_value.get(path, 0) == texts.count(None)
        wrong = [text for text in texts if kind == "number" and text is not None and number(text) is None]
        assert metrics.stages.keep.unparsable.get(path, 0) == len(wrong)
        assert any(f"have no {path}:" in note for note in notes(metrics)) == (None in texts)
    read = [column for column in policy if column.strip("-").partition(":")[0] in ("score", "date")]
    documents = once_each(
        (row["doc_id"], row["policy"]) for row in pq.read_table(tmp_path / "out" / "documents").to_pylist()
    )
    name = read[0].strip("-").partition(":")[0]
    assert all(as_text(documents[row["id"]][0]) == as_text(row[name]) for row in rows)


def write_hive_table(root: Path) -> dict[str, list[str | None]]:
    """Write records to folders that are columns, one of them of a hidden name; returns the language and score of each.

    A value of a record comes before that of its folder.
    """
    files: dict[str, str | pa.Table] = {
        "lang=en/score=1/a.jsonl": '{"id": "1", "text": "some words"}\n{"id": "2", "text": "and more", "lang": "fr"}\n',
        "lang=zh%2DHans/score=__HIVE_DEFAULT_PARTITION__/b.parquet": pa.table({"id": ["3"], "text": ["other words"]}),
        "lang=__HIVE_DEFAULT_PARTITION__/score=3/c.csv": "id,text\n4,third words\n",
        "_kind=x/lang=de/d.txt": "plain words",
        "lang=en/_hidden.jsonl": '{"id": "5", "text": "never read"}\n',
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            (root / name).write_text(content)
        else:
            pq.write_table(content, root / name)
    return {"1": ["en", "1"], "2": ["fr", "1"], "3": ["zh-Hans", None], "4": [None, "3"],
            "_kind=x/lang=de/d.txt": ["de", None]}  # fmt: skip


HIVE = {"keep": {"policy": ["lang", "-score:number"]}, "output": {"report": False}}


def test_folders_are_columns(tmp_path: Path) -> None:
    """Folders such as `lang=en` are columns of the records below them, as in tables of Hive, and also if one is INPUT.

    Their values are percent-encoded. A column that no folder has is refused with those that there are.
    """
    wanted = write_hive_table(tmp_path / "in")
    config = build_config(HIVE, origin="test")
    run_locally([str(tmp_path / "in")], str(tmp_path / "out"), config)
    run_locally([str(tmp_path / "in" / "lang=en" / "score=1")], str(tmp_path / "part"), config)

    assert policies(tmp_path / "out") == wanted
    assert policies(tmp_path / "part") == {"1": ["en", "1"], "2": ["fr", "1"]}
    assert check_run(DuckRun(str(tmp_path / "out"))).is_sound
    with pytest.raises(ConfigError, match=r"keep\.policy: colour: .* has _kind, lang"):
        run_locally(
            [str(tmp_path / "in")], str(tmp_path / "not"), build_config({"keep": {"policy": ["colour"]}}, origin="test")
        )


def policies(folder: Path) -> dict[str, list[str | None]]:
    """Return the values of the policy of each document of a run."""
    return once_each((row["doc_id"], row["policy"]) for row in pq.read_table(folder / "documents").to_pylist())


@pytest.mark.spark
def test_spark_reads_folders_as_columns(spark: SparkSession, tmp_path: Path) -> None:
    """As the embedded engine, in lines that Spark cuts and files that it reads whole; it adds no column of its own."""
    wanted = write_hive_table(tmp_path / "in")
    run_job(spark, [str(tmp_path / "in")], str(tmp_path / "out"), build_config(HIVE, origin="test"))

    assert policies(tmp_path / "out") == wanted


@pytest.mark.spark
def test_spark_keeps_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Spark and the embedded engine give the same keep-list, members and documents, row for row."""
    write_collection(tmp_path / "in", 3)
    keep = {"policy": POLICIES[0], "prefer": PREFER}
    config = build_config({"keep": keep, "output": {"texts": 0, "report": False}}, origin="test")
    run_locally([str(tmp_path / "in")], str(tmp_path / "local"), config)
    run_job(spark, [str(tmp_path / "in")], str(tmp_path / "spark"), config)

    for table in ("keep", "members", "documents"):
        both = [sorted(map(repr, pq.read_table(tmp_path / at / table).to_pylist())) for at in ("local", "spark")]
        assert both[0] == both[1], table


def test_columns_of_every_format(tmp_path: Path) -> None:
    """A policy column may be a column of CSV or Parquet, an attribute or element of XML, or an element of TREC."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "a.csv").write_text("id,text,score\n1,some words,3\n")
    pq.write_table(pa.table({"id": ["2"], "text": ["other words"], "score": [2.5]}), pages / "b.parquet")
    (pages / "c.xml").write_text("<docs><doc score='1'><id>3</id><text>a b</text></doc></docs>")
    (pages / "d.xml").write_text("<docs><doc><id>4</id><text>c d</text><score> 7 </score></doc></docs>")
    (pages / "e.trec").write_text("<DOC><DOCNO>5</DOCNO><SCORE>9</SCORE><TEXT>e f</TEXT></DOC>\n")
    config = build_config({"keep": {"policy": ["-score"]}, "output": {"report": False}}, origin="test")
    run_locally([str(pages)], str(tmp_path / "out"), config)

    found = once_each(
        (row["doc_id"], row["policy"]) for row in pq.read_table(tmp_path / "out" / "documents").to_pylist()
    )
    assert found == {"1": ["3"], "2": ["2.5"], "3": ["1"], "4": ["7"], "5": ["9"]}


def test_a_wrong_column_is_one_line(tmp_path: Path) -> None:
    """An unknown policy column is refused with the columns that exist, and nothing is written."""
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "some words", "score": 2}\n')
    config = build_config({"keep": {"policy": ["-scores"]}}, origin="test")

    with pytest.raises(ConfigError, match=r"keep\.policy: scores: no record .* a\.jsonl has id, text, score"):
        run_locally([str(tmp_path / "a.jsonl")], str(tmp_path / "out"), config)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match=r"keep\.policy"):
        build_config({"keep": {"policy": []}}, origin="test")
    with pytest.raises(ConfigError, match=r"keep\.prefer"):
        build_config({"keep": {"prefer": ["a^b"]}}, origin="test")
    assert load_config(None, ["keep.policy=[-score:number, date]"]).keep.policy == ["-score:number", "date"]


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_listed_values_come_first(seed: int, tmp_path: Path) -> None:
    """Of each family stays a document of the first listed value it has; `check` agrees; idle values are named."""
    draw, rows = random.Random(seed), list[dict[str, Any]]()  # noqa: S311 - values
    for family in range(30):
        words = " ".join(f"family{family}word{word}" for word in range(20))
        rows += [{"id": f"{family}-{at}", "text": words, "from": draw.choice(["news", "it's", "\\", "web", " ", None])}
                 for at in range(draw.randrange(1, 5))]  # fmt: skip
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    listed = ["wiki", "\\", "it's", "news"]
    config = build_config({"keep": {"policy": [f"from={','.join(listed)}", "id"]}, "output": {"report": False}},
                          origin="test")  # fmt: skip
    run_locally([str(tmp_path / "in.jsonl")], str(tmp_path / "out"), config)

    def turn(row: dict[str, Any]) -> tuple[int, str]:
        value = (row["from"] or "").strip()
        return listed.index(value) if value in listed else 4 + (not value), row["id"]

    families = {row["id"].split("-")[0]: min((other for other in rows if other["text"] == row["text"]), key=turn)["id"]
                for row in rows}  # fmt: skip
    kept = once(row["doc_id"] for row in pq.read_table(tmp_path / "out" / "keep").to_pylist() if row["kept"])
    assert kept == set(families.values())
    report = check_run(DuckRun(str(tmp_path / "out")), steps=["members", "keep"])
    assert report.is_sound, report.text()
    metrics = RunMetrics.read((tmp_path / "out" / "metrics.json").read_text())
    assert "from=wiki" in metrics.stages.keep.listed_idle
    assert any("of no document: from=wiki" in note for note in notes(metrics))


@pytest.mark.parametrize("column", ["-a=b", "=b", "a=b,,c", "a=b,b", "id=x"])
def test_listed_values_that_order_nothing_are_refused(column: str) -> None:
    """A sign, no name, an empty or repeated value, and a column that is not read."""
    with pytest.raises(ValueError, match="different values, as source=wiki,news"):
        parse_column(column)


def test_a_glob_matches_what_fnmatch_does_or_is_refused() -> None:
    """Java and RE2 read the expression as Python does; sets that one of them reads otherwise, or not, are refused."""
    chance = random.Random(1)  # noqa: S311 - values
    for glob in ("", "[", "[z-a]", "[!]a]", "[[]x", "[a[b]", "a[1", "[a&&b]"):
        with pytest.raises(ValueError, match="expected a glob"):
            read_glob(glob)
    read = 0
    for _ in range(5000):
        glob = "".join(chance.choices("ab[]!-*?.&+(", k=chance.randint(1, 7)))
        source = "".join(chance.choices("ab[]!-.&+(", k=chance.randint(0, 5)))
        try:
            pattern = read_glob(glob)
        except ValueError:
            continue
        read += 1
        expected = fnmatchcase(source, glob)
        assert (re.match(pattern, source) is not None) == expected, (glob, source)
        assert pc.match_substring_regex(pa.scalar(source), pattern).as_py() == expected, (glob, source)
    assert read > 3000
