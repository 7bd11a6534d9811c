"""`nddup check`: sound runs pass, and each planted damage breaks the promise it is about."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.cli import main
from nddup.results.check import CheckReport, check_run
from tests.results.checked_run import Row, run

Damage = Callable[[list[Row]], None]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody touched."""
    return run(tmp_path_factory.mktemp("check"))


def test_a_limit_of_rejects_is_a_promise_like_others(spark: SparkSession, sound: Path) -> None:
    """One record of 42 is a reject: 1/42 allows it, anything less does not."""
    limit = "rejects: at most 0.0238095 of the records"

    assert broken(check_run(spark, str(sound), steps=["groups"], max_rejects=1 / 42)) == []
    assert broken(check_run(spark, str(sound), steps=["groups"], max_rejects=1 / 42 - 1e-9)) == [limit]
    assert [finding.promise for finding in check_run(spark, str(sound), steps=["groups"]).findings] == [
        "groups: group is the smallest id with the same sketch"
    ]


@pytest.mark.parametrize("share", ["1.1", "-0.1", "nan", "few"])
def test_a_limit_that_is_no_share_is_refused(capsys: pytest.CaptureFixture[str], share: str) -> None:
    """One line, before Spark is asked."""
    with pytest.raises(SystemExit) as end:
        main(["check", "run", f"--max-rejects={share}"])

    assert end.value.code == 2
    assert f"expected a number from 0 to 1, got '{share}'" in capsys.readouterr().err


def rewrite(folder: Path, name: str, damage: Damage) -> None:
    """Change the rows of one table."""
    table = pq.ParquetDataset(folder / name).read()
    rows = table.to_pylist()
    damage(rows)
    shutil.rmtree(folder / name)
    (folder / name).mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), folder / name / "part-0.parquet")


def broken(report: CheckReport) -> list[str]:
    """The promises that do not hold."""
    return [finding.promise for finding in report.findings if finding.broken]


def of(rows: list[Row], **values: object) -> Row:
    """The first row, by all its values as text, that has these values."""
    return next(row for row in sorted(rows, key=str) if all(row[key] == value for key, value in values.items()))


def change(column: str, value: object, **where: object) -> Damage:
    """Set one column of the first row that matches; a function is given the old value."""

    def damage(rows: list[Row]) -> None:
        row = of(rows, **where)
        row[column] = value(row[column]) if callable(value) else value

    return damage


def drop(**where: object) -> Damage:
    """Remove the first row that matches."""
    return lambda rows: rows.remove(of(rows, **where))


def repeat(**where: object) -> Damage:
    """Write a row twice."""
    return lambda rows: rows.append(dict(of(rows, **where)))


def both_kept(rows: list[Row]) -> None:
    """Keep a removed document."""
    of(rows, kept=False, reason="near").update(kept=True, duplicate_of=None, reason=None)


def lost_member(rows: list[Row]) -> None:
    """Take a document out of a cluster and name the rest properly."""
    row = max(rows, key=lambda row: (row["size"], row["cluster_id"]))
    rename(row, row["members"][:-1])


def foreign_member(rows: list[Row]) -> None:
    """Add a document that is alone to a cluster, properly named."""
    rename(rows[0], [*rows[0]["members"], "lone1"])


def inner_cluster(rows: list[Row]) -> None:
    """Add a cluster that lies inside another."""
    row = dict(max(rows, key=lambda row: (row["size"], row["cluster_id"])))
    rename(row, row["members"][:2])
    rows.append(row)


def rename(row: Row, members: list[str]) -> None:
    """Give a cluster other members, with the id and size they call for."""
    import hashlib  # noqa: PLC0415

    row["members"] = sorted(members)
    ended = "".join(f"{member}\0" for member in row["members"]).encode()
    row.update(size=len(members), cluster_id=hashlib.sha256(ended).hexdigest()[:16])


def list_again(folder: Path) -> None:
    """Make the table `members` of the rows of `clusters`."""
    clusters = pq.ParquetDataset(folder / "clusters").read().to_pylist()

    def listed(rows: list[Row]) -> None:
        rows[:] = [{"cluster_id": row["cluster_id"], "doc_id": doc_id, "representative": doc_id == row["members"][0]}
                   for row in clusters for doc_id in row["members"]]  # fmt: skip

    rewrite(folder, "members", listed)


def swap_ends(rows: list[Row]) -> None:
    """Write a pair with its larger id first."""
    row = of(rows)
    row["doc_a"], row["doc_b"] = row["doc_b"], row["doc_a"]


def invent_pair(rows: list[Row]) -> None:
    """A pair of documents that share nothing."""
    rows.append({**of(rows), "doc_a": "lone0", "doc_b": "lone1"})


def other_representative(rows: list[Row]) -> None:
    """The mark moves to another member."""
    old = of(rows, representative=True)
    old["representative"] = False
    of(rows, cluster_id=old["cluster_id"], representative=False)["representative"] = True
    second = [row for row in rows if row["cluster_id"] == old["cluster_id"] and row is not old]
    for row in second:
        row["representative"] = row is second[-1]


DAMAGES: list[tuple[str, str, str, Damage]] = [
    ("accounting", "records = documents", "rejects", drop(reason="malformed")),
    ("accounting", "record ordinals", "documents", change("record", 99, doc_id="lone0")),
    ("accounting", "doc_id unique", "documents", change("doc_id", "lone1", doc_id="lone0")),
    ("accounting", "doc_key", "documents", change("doc_key", 0, doc_id="lone0")),
    ("accounting", "once in keep", "keep", repeat(doc_id="lone0")),
    ("accounting", "sketches", "documents", change("sketch", lambda ids: [ids[1], ids[0], *ids[2:]], doc_id="lone0")),
    ("accounting", "sketches", "documents", change("sketch", lambda ids: ids[1:], doc_id="lone0")),
    ("groups", "groups", "documents", change("group", "f0v0", doc_id="copy1")),
    ("groups", "groups", "documents", change("group", "empty1", doc_id="empty2")),
    ("pairs", "ids in order", "pairs", swap_ends),
    ("pairs", "ids in order", "pairs", repeat()),
    ("pairs", "all and only", "pairs", drop()),
    ("pairs", "all and only", "pairs", invent_pair),
    ("pairs", "all and only", "pairs", change("overlap", lambda value: value + 1)),
    ("pairs", "all and only", "pairs", change("resemblance", lambda value: value - 1e-9)),
    ("pairs", "all and only", "pairs", change("star", value=True)),
    ("clusters", "id, size", "clusters", change("cluster_id", "0123456789abcdef")),
    ("clusters", "id, size", "clusters", change("members", lambda members: members[::-1])),
    ("clusters", "id, size", "clusters", repeat()),
    ("clusters", "support as said", "clusters", change("support", lambda value: value + 1)),
    ("clusters", "support as said", "clusters", foreign_member),
    ("clusters", "can be added", "clusters", lost_member),
    ("clusters", "inside another", "clusters", inner_cluster),
    ("clusters", "every pair", "clusters", drop()),
    ("clusters", "component", "clusters", change("component", "f9")),
    ("clusters", "id, size", "members", drop()),
    ("clusters", "id, size", "clusters", change("members", lambda members: members[:-1])),
    ("members", "row by row", "members", drop()),
    ("members", "row by row", "members", repeat()),
    ("members", "row by row", "clusters", change("members", lambda members: [*members, "lone0"])),
    ("members", "one representative", "members", other_representative),
    ("members", "one representative", "members", change("representative", value=False, representative=True)),
    ("keep", "fit", "keep", change("reason", "near", reason="exact")),
    ("keep", "fit", "keep", change("duplicate_of", "lone0", kept=True)),
    ("keep", "no two kept", "keep", both_kept),
    ("keep", "every removed", "keep", change("duplicate_of", "lone0", kept=False)),
]


@pytest.mark.spark
def test_passes_a_sound_run(spark: SparkSession, sound: Path) -> None:
    """All promises hold, all of each was looked at, and the status is 0."""
    report = check_run(spark, str(sound))

    assert broken(report) == [], report.text()
    assert {finding.amount.split()[0] for finding in report.findings} == {"all"}
    assert report.text().endswith("every promise holds\n")


@pytest.mark.spark
def test_says_what_it_sampled(spark: SparkSession, sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limits a sample is proved, and each line says of how many."""
    limits = {"PROBES": 10, "COMPARISONS": 100, "LEAST_PROBES": 8, "MEMBERS": 9}
    for name, value in limits.items():
        monkeypatch.setattr(f"nddup.results.evidence.{name}", value)
    monkeypatch.setattr("nddup.results.check.INCIDENCES", 12)

    report = check_run(spark, str(sound), steps=["pairs", "clusters", "keep"])

    amounts = {finding.amount.split()[0] for finding in report.findings}
    assert broken(report) == [], report.text()
    assert "sample of 8" in report.text()
    assert amounts == {"all", "sample", "connectedness"}


@pytest.mark.spark
@pytest.mark.parametrize(
    "damage",
    DAMAGES,
    ids=[f"{promise}-{i}".replace(" ", "-") for i, (_, promise, _, _) in enumerate(DAMAGES)],
)
def test_reports_a_damage(
    spark: SparkSession, sound: Path, tmp_path: Path, damage: tuple[str, str, str, Damage]
) -> None:
    """One changed value breaks the promise that is about it."""
    step, promise, table, change_rows = damage
    shutil.copytree(sound, tmp_path / "run")
    rewrite(tmp_path / "run", table, change_rows)
    if change_rows in (lost_member, foreign_member, inner_cluster):
        list_again(tmp_path / "run")

    report = check_run(spark, str(tmp_path / "run"), steps=[step])

    assert any(promise in name for name in broken(report)), report.text()
    assert all(finding.examples for finding in report.findings if finding.broken)


@pytest.mark.spark
def test_reports_a_line_of_duplicates_and_the_status(
    spark: SparkSession,  # noqa: ARG001 - the session that the command finds
    sound: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A changed line is broken twice, missing and no cluster; the command says so with status 1."""
    shutil.copytree(sound, tmp_path / "run")
    (tmp_path / "run" / ".duplicates.txt.crc").unlink(missing_ok=True)  # Hadoop's own checksum would refuse the file
    lines = (tmp_path / "run" / "duplicates.txt").read_text().splitlines()
    (tmp_path / "run" / "duplicates.txt").write_text("\n".join([lines[0] + "0", *lines[1:]]) + "\n")

    status = main(["check", str(tmp_path / "run")])

    assert status == 1
    assert "BROKEN 2   duplicates.txt" in capsys.readouterr().out


@pytest.mark.spark
@pytest.mark.parametrize(
    "settings",
    [
        {"pairs": {"measure": "overlap", "threshold": 60}, "sketch": {"size": 100}},
        {"pairs": {"measure": "overlap", "threshold": 0.7}, "keep": {"policy": "first-id"}},
        {"pairs": {"threshold": 0.6, "expand_limit": 3}, "keep": {"policy": "shortest-url"}},
        {"pairs": {"threshold": 0.9, "expand_limit": 20}, "sketch": {"size": 50}, "keep": {"policy": "first"}},
        {"pairs": {"max_postings": 2, "max_edges": 3}},
    ],
    ids=["count", "share", "stars", "some-stars", "leaders"],
)
def test_passes_other_settings(spark: SparkSession, tmp_path: Path, settings: Row) -> None:
    """Counts, shares, policies, groups whose products are stars, and pairs that leaders leave out."""
    report = check_run(spark, str(run(tmp_path, **settings)))

    assert broken(report) == [], report.text()
