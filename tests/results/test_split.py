"""`nddup split`: records by part, sizes by language, documents fixed or split before, and what is refused."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nddup
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.errors import ConfigError
from nddup.settings.load import build_config
from tests.changed_rows import faults
from tests.finished_runs import write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LANGUAGES = ("cs", "de", "en", "es", "fr", "ja", "ko", "pl", "pt", "ru")
PARTS = "train=.8,valid=.1,test=.1"
SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}


def pages() -> list[dict[str, Any]]:
    """Return 20 pages in each of ten languages: two families of three, near-duplicates but for a word, and 14 alone."""
    drawn, made = np.random.default_rng(10), list[dict[str, Any]]()
    for language in LANGUAGES:
        for number in range(20):
            words = [f"{language}{drawn.integers(10_000)}" for _ in range(60)]
            if number % 3 and number < 6:
                words = [*made[-1]["text"].split()[:-1], f"changed{number}"]
            name = f"{language}-{number:02}"
            made.append({"id": name, "text": " ".join(words), "lang": language, "site": f"s{number % 2}"})
    return made


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages in two files, and a run over them."""
    folder, rows = tmp_path_factory.mktemp("split"), pages()
    (folder / "in").mkdir()
    write_rows(folder / "in" / "a.jsonl", rows[:90])
    write_rows(folder / "in" / "b.jsonl", rows[90:])
    config = build_config({"output": {"report": False}}, origin="test")
    run_locally([str(folder / "in")], str(folder / "run"), config)
    return folder


@pytest.fixture(autouse=True)
def _there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def parts_of(folder: str) -> dict[str, Any]:
    """Return the part of each document."""
    rows = pq.read_table(f"{folder}/split").to_pylist()
    return {row["doc_id"]: row["part"] for row in rows}


def family_of(doc_id: str) -> str:
    """Return the first page of the family of a page, or the page itself."""
    language, number = doc_id.split("-")
    return f"{language}-{int(number) // 3 * 3:02}" if int(number) < 6 else doc_id


def test_ten_languages(capsys: pytest.CaptureFixture[str]) -> None:
    """Each part has its share of each language to a document, and its records as they came."""
    status = main(["split", "run", "--parts", PARTS, "--by", "lang", "-o", "by"])

    said = capsys.readouterr().out
    assert (status, said.splitlines()[0]) == (0, "documents: 200 in 160 units that are not divided; the largest has 3")
    parts = parts_of("by")
    counts = Counter((one[:2], part) for one, part in parts.items())
    assert all(abs(counts[name, part] - 20 * share) <= 1 for name in LANGUAGES for part, share in SHARES.items())
    assert all(abs(n - 200 * SHARES[part]) <= 1 for part, n in Counter(parts.values()).items())
    assert len({(family_of(one), part) for one, part in parts.items()}) == 160
    written = {
        (part, file.name): file.read_text(encoding="utf-8").splitlines(keepends=True)
        for part in SHARES for file in Path("by", part).iterdir()
    }  # fmt: skip
    for name in ("a.jsonl", "b.jsonl"):
        lines = Path("in", name).read_text(encoding="utf-8").splitlines(keepends=True)
        for part in SHARES:
            assert written[part, name] == [line for line in lines if parts[json.loads(line)["id"]] == part]
    assert main(["check", "by"]) == 0
    assert "every promise holds" in capsys.readouterr().out


def test_the_same_from_python(place: Path) -> None:
    """`Run.split` gives the rows that the command writes, for other orders of files too; another seed gives others."""
    assert main(["split", "run", "--parts", PARTS, "--no-records", "-o", "plain", "-q"]) == 0
    rows = pq.read_table("plain/split").to_pylist()
    found = nddup.open(place / "run").split(SHARES).to_table().to_pylist()
    frame = pa.Table.from_pylist([{"id": row["id"], "text": row["text"]} for row in reversed(pages())])
    run = nddup.find_duplicates(frame, id="id", text="text")

    assert found == rows == run.split(SHARES).to_table().to_pylist()
    assert not Path("plain/train").exists()
    again = (
        run.split(SHARES, seed=2, earlier=pa.Table.from_pylist(rows), fixed={"cs-00": "test"}).to_table().to_pylist()
    )
    assert {row["doc_id"]: row["part"] for row in again if row["decided_by"] == "earlier"}.items() <= parts_of(
        "plain"
    ).items()
    assert {row["part"] for row in again if row["decided_by"] == "fixed"} == {"test"}
    other = {row["doc_id"]: row["part"] for row in run.split(SHARES, seed=2).to_table().to_pylist()}
    assert Counter(other.values()) == Counter(row["part"] for row in rows)
    assert other != parts_of("plain")
    with pytest.raises(ConfigError, match="--fixed: has a part tset, which --parts does not name"):
        run.split(SHARES, fixed={"cs-00": "tset"})


def test_fixed_and_earlier_parts(capsys: pytest.CaptureFixture[str]) -> None:
    """A fixed page brings its family; one fixed elsewhere is left out; the rest stays as it was; moves are listed."""
    Path("fixed.csv").write_text("cs-00,test\n<de-00>,test\nde-01,train\nnobody,test\n")
    earlier = {one["id"]: "valid" if one["id"] in ("en-00", "en-01") else "train" for one in pages()[:100]}
    Path("old/split").mkdir(parents=True)
    pq.write_table(pa.table({"doc_id": list(earlier), "part": list(earlier.values())}), "old/split/part-0.parquet")
    arguments = ["--fixed", "fixed.csv", "--from", "old", "--no-records", "-o", "again"]

    status = main(["split", "run", "--parts", PARTS, *arguments])

    said, parts = capsys.readouterr().out, parts_of("again")
    assert status == 0
    assert {one: parts[one] for one in ("cs-00", "cs-01", "cs-02", "de-00", "de-01", "de-02")} == {
        "cs-00": "test", "cs-01": "test", "cs-02": "test", "de-00": None, "de-01": "train", "de-02": "train",
    }  # fmt: skip
    assert "1 id in --fixed without a document: nobody\n" in said
    assert "1 document left out: their unit is fixed to another part: de-00\n" in said
    assert [parts[one] for one in ("en-00", "en-01", "en-02")] == ["valid"] * 3
    assert "3 documents moved from the earlier split: cs-01, cs-02, en-02\n" in said
    kept = {one: part for one, part in earlier.items() if family_of(one) not in ("cs-00", "de-00", "en-00")}
    assert {one: parts[one] for one in kept} == kept
    assert main(["check", "again"]) == 0


def test_a_part_misses_its_share_for_what_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    """Where most documents have their part, the summary does not blame the size of units."""
    rows = "".join(f"{row['id']},train\n" for row in pages())
    Path("most.csv").write_text(rows)

    assert main(["split", "run", "--parts", "train=.5,test=.5", "--fixed", "most.csv", "-o", "most"]) == 0

    said = capsys.readouterr().out
    assert (
        "train: 200 documents, 100.00 % (asked 100.0; +100.0: units are whole, and 200 documents had a part)\n" in said
    )


def test_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary of a run of one document counts it in the singular, and a deviation below one is no zero."""
    Path("one.jsonl").write_text('{"id": "a", "text": "one two three four five six"}\n')
    assert main(["run", "one.jsonl", "-o", "one", "--set", "output.report=false"]) == 0
    capsys.readouterr()

    assert main(["split", "one", "--parts", "train=.8,test=.2", "-o", "one-split"]) == 0

    said = capsys.readouterr().out
    assert "train: 1 document, 100.00 % (asked 0.8; +0.2: a unit goes to one part as a whole)\n" in said


def test_check_counts_what_crosses(capsys: pytest.CaptureFixture[str]) -> None:
    """A document in another part than its family is found."""
    assert main(["split", "run", "--parts", PARTS, "--no-records", "-o", "bad", "-q"]) == 0
    table = pq.read_table("bad/split")
    moved = ["test" if one == "cs-00" else "train" for one in table["doc_id"].to_pylist()]
    pq.write_table(table.set_column(1, "part", pa.array(moved)), "bad/split/part-00000.zstd.parquet")
    capsys.readouterr()

    assert main(["check", "bad"]) == 1
    said = capsys.readouterr().out
    assert "BROKEN 2   no found pair is in two parts" in said
    assert "cs-00 in test, cs-01 in train" in said


def test_each_fault_of_a_table_is_found() -> None:
    """A row that is missing, there twice or changed; why a document is in its part is not proved."""
    assert main(["split", "run", "--parts", PARTS, "--by", "lang", "--no-records", "-o", "faults", "-q"]) == 0
    for name in ("split", "shares"):
        for fault in faults("faults", name, ("decided_by", "given")):
            assert main(["check", "faults"]) == 1, fault
    assert main(["check", "faults"]) == 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--parts", "a=.5,b=.4"], 2, "--parts: expected shares whose sum is 1, got 0.9"),
        (["--parts", PARTS, "--fixed", "none.csv"], 2, "none.csv: no such file or folder"),
        (["--parts", PARTS, "--fixed", "ids.csv"], 2,
         "--fixed ids.csv: line 2: expected an id and one of train, valid, test, got 'cs-01,dev'"),
        (["--parts", PARTS, "--fixed", "twice.csv"], 2,
         "--fixed: '<cs-00>' and 'cs-00' name the same, once as train, once as test"),
        (["--parts", PARTS, "--fixed", "unknown.csv"], 2, "--fixed: none of 1 ids is a document: nobody"),
        (["--parts", PARTS, "--from", "in"], 2, "--from in: expected a folder that `nddup split` wrote"),
        (["--parts", "a=.5,b=.5", "--from", "old-parts"], 2, "--from: has a part train, which --parts does not name"),
        (["--parts", PARTS, "--by", "nothing"], 2, "--by: nothing: no record at the start of any file has it"),
        (["--parts", PARTS, "-o", "in"], 2, "--output in: exists already"),
        (["--parts", PARTS, "-o", "run/parts"], 2, "--output run/parts: lies in"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong arguments are one line and exit status 2, and nothing is written."""
    Path("ids.csv").write_text("cs-00,test\ncs-01,dev\n")
    Path("twice.csv").write_text("cs-00,test\n<cs-00>,train\n<cs-01>,test\n")
    Path("unknown.csv").write_text("nobody,test\n")
    Path("old-parts/split").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"doc_id": ["cs-00"], "part": ["train"]}), "old-parts/split/part-0.parquet")
    output = [] if "-o" in arguments else ["-o", "refused"]

    assert main(["split", "run", *arguments, *output, "-q"]) == status
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not Path("refused").exists()


def test_inputs_that_are_gone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without its inputs a run gives its tables, and columns that it stored; what must be read fails with status 1."""
    Path("in").rename("away")
    try:
        assert main(["split", "run", "--parts", PARTS, "--by", "source", "--no-records", "-o", "tables"]) == 0
        assert main(["split", "run", "--parts", PARTS, "--no-records", "--by", "lang", "-o", "gone"]) == 1
        assert main(["split", "run", "--parts", PARTS, "-o", "gone"]) == 1
        assert capsys.readouterr().err.count("no such file or folder; the inputs of") == 2
    finally:
        Path("away").rename("in")
    assert not (place / "gone").exists()


@pytest.mark.spark
def test_spark_writes_the_same(spark: "SparkSession", place: Path) -> None:
    """On Spark the tables and the records of each part are those of this machine; the session holds none of them."""
    from nddup.spark.runs_given import split_on_spark  # noqa: PLC0415
    from nddup.splitting.assign_units import read_parts  # noqa: PLC0415
    from nddup.splitting.write_split import SplitCall, split_here  # noqa: PLC0415
    from tests.spark_holdings import checkpoints, left_by  # noqa: PLC0415

    call = SplitCall(read_parts(PARTS), 1, ("lang",), str(place / "here"), None, None, all_known=False, is_writing=True)
    held, (_, _, views) = checkpoints(spark), left_by(spark, set())
    _, here = split_here(str(place / "run"), call)
    _, there = split_on_spark(spark, str(place / "run"), call._replace(output=str(place / "there")))

    assert (there, left_by(spark, held)) == (here, (0, [], views))
    assert parts_of("there") == parts_of("here")
    for file in sorted(Path("here").glob("[!s_]*/*.jsonl")):
        assert Path("there", *file.parts[1:]).read_bytes() == file.read_bytes()
