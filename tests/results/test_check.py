"""`nddup check`: sound runs pass, and each planted damage breaks the promise that it concerns."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.checking.check_run import CheckReport, Finding, Screen, check_run
from nddup.checking.evidence import Evidence
from nddup.cli import main
from nddup.engines.duck import DuckRun
from nddup.report.gather import script_of
from nddup.spark.engine import SparkRun
from tests.results.checked_run import Row, run
from tests.results.damages import DAMAGES, Damage, by_day, change, drop, named, plant, rewrite
from tests.run.crawls import Made, words, write_crawl
from tests.samples_by_night import by_day_if_changed, every


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an undamaged run."""
    return run(tmp_path_factory.mktemp("check"))


def test_a_limit_of_rejects_is_a_promise_like_others(sound: Path) -> None:
    """With one reject in 42 records a limit of 1/42 holds and any lower limit is broken."""
    limit = "rejects: at most 0.0238095 of the records"

    assert broken(check_run(DuckRun(str(sound)), steps=["groups"], max_rejects=1 / 42)) == []
    assert broken(check_run(DuckRun(str(sound)), steps=["groups"], max_rejects=1 / 42 - 1e-9)) == [limit]
    assert [finding.promise for finding in check_run(DuckRun(str(sound)), steps=["groups"]).findings] == [
        "groups: group is the smallest id with the same sketch and the same token_fingerprint"
    ]


@pytest.mark.parametrize("share", ["1.1", "-0.1", "nan", "few"])
def test_a_limit_that_is_no_share_is_refused(capsys: pytest.CaptureFixture[str], share: str) -> None:
    """A limit that is no share is refused while the arguments are parsed."""
    with pytest.raises(SystemExit) as end:
        main(["check", "run", f"--max-rejects={share}"])

    assert end.value.code == 2
    assert f"expected a number from 0 to 1, got '{share}'" in capsys.readouterr().err


def broken(report: CheckReport) -> list[str]:
    """Return the promises that do not hold."""
    return [finding.promise for finding in report.findings if finding.broken]


OF_TABLES = {
    "records": ({"documents", "rejects", "pairs"}, ["accounting", "groups", "pairs"]),
    "results, sampled": (
        {"clusters", "members", "keep"},
        ["accounting", "clusters", "members", "keep", "duplicates.txt"],
    ),
}
"""By case: the damaged tables, and the steps of the check that concern them."""
CHECKED = ("nddup/checking", "nddup/engines", "nddup/spark")


def test_passes_a_sound_run(sound: Path) -> None:
    """Every promise of a sound run holds in full, and each finding is reported as soon as it is proved."""
    told: list[str] = []
    report = check_run(DuckRun(str(sound)), tell=lambda finding: told.append(finding.line()))

    assert broken(report) == [], report.text()
    assert {finding.amount.split()[0] for finding in report.findings} == {"all"}
    assert report.text() == "\n".join([*told, "every promise holds\n"])


def test_a_screen_sums_up_what_holds_and_shows_the_rest_in_full() -> None:
    """Promises that hold are counted by topic, with what was checked of them; a broken one has its examples."""
    findings = [
        Finding("files: as written", "all", 0),
        *(
            Finding(f"pairs: {name}", amount, 0, note=note)
            for name, amount, note in (("a", "all", ""), ("b", "8", "n"))
        ),
        Finding("pairs: c", "all", 2, ("x", "y")),
        Finding("keep: d", "none", 0, unproved="gone"),
        Finding(f"keep: {'long ' * 19}long", "all", 0),
    ]
    shown: list[str] = []
    screen = Screen(shown.append)
    for finding in findings:
        screen.tell(finding)
    screen.end()

    assert shown == [
        "ok         files: as written (all)\n",
        "ok         pairs: 2 promises (8; n)\nBROKEN 2   pairs: c (all)\n           x\n           y\n",
        f"ok         keep: {'long ' * 11}long\n           {'long ' * 8}(all)\nnot proved keep: d (none)\n",
    ]
    full: list[str] = []
    screen = Screen(full.append, is_full=True)
    for finding in findings:
        screen.tell(finding)
    screen.end()
    assert "".join(full) == "".join(f"{finding.line()}\n" for finding in findings)


def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the limits above which a sample is proved so low that the run exceeds them."""
    for name, value in {"PROBES": 10, "COMPARISONS": 100, "LEAST_PROBES": 8}.items():
        monkeypatch.setattr(f"nddup.checking.evidence.{name}", value)
    monkeypatch.setattr("nddup.checking.evidence.MEMBERS", 9)
    monkeypatch.setattr("nddup.checking.check_run.INCIDENCES", 12)


def test_the_report_says_what_it_said(tmp_path: Path) -> None:
    """The verdict is noted beside the run and in its report; a run that is made again has none."""
    path = run(tmp_path)
    page = path / "report" / "data" / "check.js"
    assert page.read_text() == 'nddup.put("check",null);\n'

    assert main(["check", str(path)]) == 0

    noted = json.loads((path / "check.json").read_text())
    assert (noted["is_sound"], noted["summary"], noted["unproved"]) == (True, "every promise holds", 0)
    assert page.read_text() == script_of("check", noted)
    assert main(["report", str(path)]) == 0
    assert page.read_text() == script_of("check", noted)
    assert main(["run", str(tmp_path / "pages.jsonl"), "--output", str(path), "--overwrite"]) == 0
    assert not (path / "check.json").exists()
    assert page.read_text() == 'nddup.put("check",null);\n'


def test_says_what_it_sampled(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limits a sample is proved, and each line says how large it was."""
    limit(monkeypatch)

    report = check_run(DuckRun(str(sound)), steps=["pairs", "clusters", "keep"])

    amounts = {finding.amount.split()[0] for finding in report.findings}
    assert broken(report) == [], report.text()
    assert "sample of 8" in report.text()
    assert amounts == {"all", "sample", "connectedness"}


def test_of_large_inputs_some_files_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other files hold is not held against the run."""
    for name, size in (("a", 30), ("b", 300), ("c", 3000)):
        rows = [json.dumps({"id": f"{name}{n}", "text": f"{n} " * size}) for n in range(3)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    files, folder = [str(tmp_path / f"{name}.jsonl") for name in "abc"], tmp_path / "run"
    assert main(["run", *files, "--output", str(folder), "--set", "output.report=false"]) == 0
    monkeypatch.setattr("nddup.checking.compared_texts.MOST_BYTES", (tmp_path / "b.jsonl").stat().st_size)

    report = check_run(DuckRun(str(folder)))

    assert broken(report) == []
    assert [one.amount for one in report.findings if "as read again" in one.promise] == ["sample of 1 of 3 files"]


def test_what_files_that_are_not_read_decide_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sample of files: which record of an id was the first, and what a revisit repeats."""
    page, address = words(1), "http://a.example/"
    write_crawl(tmp_path / "in" / "1", [Made("old", address, page, "2020-01-01T00:00:00Z")])
    write_crawl(tmp_path / "in" / "2", [Made("new", address, page, "2021-01-01T00:00:00Z", kind="revisit")])
    for name in "345":
        (tmp_path / "in" / f"{name}.jsonl").write_text(json.dumps({"id": "same", "text": page}) + "\n")
    assert main(["run", str(tmp_path / "in"), "--output", str(tmp_path / "run")]) == 0

    for most in range(60, 1600, 60):
        monkeypatch.setattr("nddup.checking.compared_texts.MOST_BYTES", most)
        report = check_run(DuckRun(str(tmp_path / "run")), steps=["records"])
        assert broken(report) == [], report.text()
    monkeypatch.undo()
    rewrite(tmp_path / "run", "documents", change("n_tokens", 1, doc_id="same"))
    assert len(broken(check_run(DuckRun(str(tmp_path / "run")), steps=["records"]))) == 1


def test_the_neighbours_of_chosen_clusters_are_found_without_recounting_all(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The neighbours of sampled clusters, found on their own, equal those among all near-duplicates."""
    whole = Evidence(DuckRun(str(sound)))
    whole.see("recounted")
    near = whole.run.sql("SELECT probe, other FROM recounted").to_pylist()
    limit(monkeypatch)
    some = Evidence(DuckRun(str(sound)))

    some.see("beside")

    firsts = {some.chosen.names[place] for place in some.chosen.firsts}
    found = some.run.sql("SELECT probe, other FROM beside").to_pylist()
    assert len(some.probes[0]) < some.totals[0]
    assert sorted(map(str, found)) == sorted(str(pair) for pair in near if pair["probe"] in firsts)
    assert found


@pytest.mark.parametrize("damage", by_day(DAMAGES, 1), ids=named(DAMAGES))
def test_reports_a_damage(sound: Path, tmp_path: Path, damage: tuple[str, str, str, Damage]) -> None:
    """One damage breaks the promise that it concerns, and the finding has examples."""
    step, promise, *_ = damage

    report = check_run(DuckRun(str(plant(sound, tmp_path / "run", damage))), steps=[step])

    assert any(promise in name for name in broken(report)), report.text()
    assert all(finding.examples for finding in report.findings if finding.broken)


@pytest.mark.spark
@pytest.mark.parametrize("case", ["records", pytest.param("results, sampled", marks=by_day_if_changed(*CHECKED))])
def test_both_engines_say_the_same(
    spark: SparkSession, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Both engines report the same lines, counts and examples for a run with many damages, in full and sampled.

    It is checked by the steps that concern the damaged tables. The one that is sampled has components given by leaders.
    """
    damaged, steps = OF_TABLES[case]
    is_sampled = "sampled" in case
    shutil.copytree(run(tmp_path / "in", **SETTINGS["leaders"]) if is_sampled else sound, tmp_path / "run")
    if is_sampled:
        limit(monkeypatch)
        assert any(row["leader"] for row in pq.read_table(tmp_path / "run" / "keep").to_pylist())
    for _, _, table, change_rows in [damage for damage in DAMAGES if damage[2] in damaged]:
        with suppress(StopIteration):  # another damage removed the row
            rewrite(tmp_path / "run", table, change_rows)

    runs = (DuckRun(str(tmp_path / "run")), SparkRun(spark, str(tmp_path / "run")))
    here, there = (check_run(run, steps=steps) for run in runs)

    assert here.text().splitlines() == there.text().splitlines()
    assert len(broken(here)) >= 6, here.text()  # one damage may hide another
    assert ("sample of 8" in here.text()) == is_sampled


def test_reports_a_line_of_duplicates_and_the_status(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed line counts as one missing line and one that is no cluster; the command exits with status 1."""
    shutil.copytree(sound, tmp_path / "run")
    (tmp_path / "run" / ".duplicates.txt.crc").unlink(missing_ok=True)  # Hadoop's own checksum would refuse the file
    (tmp_path / "run" / "_COMPLETE").write_text("{}")  # nothing is noted of the file
    lines = (tmp_path / "run" / "duplicates.txt").read_text().splitlines()
    (tmp_path / "run" / "duplicates.txt").write_text("\n".join([lines[0] + "0", *lines[1:]]) + "\n")

    status = main(["check", str(tmp_path / "run")])

    said = capsys.readouterr().out
    assert status == 1
    assert "BROKEN 2   duplicates.txt" in said
    assert re.search(r"\n1 of \d+ promises BROKEN\n$", said)


SETTINGS: dict[str, Row] = {
    "count": {"pairs": {"measure": "overlap", "threshold": 60}, "sketch": {"size": 100}},
    "share": {"pairs": {"measure": "overlap", "threshold": 0.7}, "keep": {"policy": "first-id"}},
    "stars": {"pairs": {"threshold": 0.6, "expand_limit": 3}, "keep": {"policy": "shortest-url"}},
    "some-stars": {
        "pairs": {"threshold": 0.9, "expand_limit": 20}, "sketch": {"size": 50}, "keep": {"policy": "first"},
    },
    "leaders": {"pairs": {"max_postings": 2, "max_edges": 3}},
    "leaders, partition": {"pairs": {"max_postings": 2, "max_edges": 3}, "clusters": {"mode": "partition"}},
    "leaders, no clusters": {"pairs": {"max_postings": 2, "max_edges": 3}, "clusters": {"mode": "none"}},
    "leaders, components": {"pairs": {"max_postings": 2, "max_edges": 3}, "clusters": {"mode": "components"}},
    "partition": {"clusters": {"mode": "partition"}},
    "contained": {
        "sketch": {"kind": "mod-m", "modulus": 3}, "pairs": {"measure": "containment", "threshold": 0.7},
        "clusters": {"mode": "components"},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", every(5, SETTINGS))
def test_passes_other_settings(tmp_path: Path, name: str) -> None:
    """Runs with counts, shares, keep policies, stars, containment, and leaders in every cluster mode pass."""
    report = check_run(DuckRun(str(run(tmp_path, **SETTINGS[name]))))

    assert broken(report) == [], report.text()


def test_a_leader_in_no_pair_is_found(tmp_path: Path) -> None:
    """Which of its equals leads, `pairs` tells; a document that is in none of them does not lead."""
    folder = run(tmp_path, **SETTINGS["leaders"])
    rewrite(folder, "keep", change("leader", value=True, doc_id="lone0"))

    findings = check_run(DuckRun(str(folder)), steps=["keep"]).findings

    assert [one.examples for one in findings if one.broken] == [("lone0: leads, but is in no pair",)]


@pytest.mark.parametrize("column", ["size", "pairs", "invented", "exact"])
def test_each_number_of_false_components_is_recounted(tmp_path: Path, column: str) -> None:
    """Of components given by leaders, whose invented pairs are a bound."""
    folder = run(tmp_path, **SETTINGS["leaders"])
    rewrite(folder, "false_components", change(column, lambda value: not value if column == "exact" else value + 1))

    found = [one.promise for one in check_run(DuckRun(str(folder)), steps=["clusters"]).findings if one.broken]

    assert len(found) == 1
    assert found[0].startswith("false_components: exact" if column == "exact" else "false_components: size")


STEPS = {
    "leaders": ["pairs", "clusters", "members", "keep"],
    "contained": ["pairs", "keep"],  # its clusters are components, as those of no other promise
    "leaders, partition": ["clusters", "members", "keep"],  # its pairs equal those of "leaders"
    "stars": ["pairs", "keep"],  # its sets equal those of other settings
}


@pytest.mark.spark
@pytest.mark.nightly  # by day a run with leaders is damaged above
@pytest.mark.parametrize("name", STEPS)
def test_both_engines_say_the_same_under_other_settings(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Both engines report the same lines for runs damaged in `pairs`, `keep` and `clusters`, under other settings."""
    folder = run(tmp_path, **SETTINGS[name])
    rewrite(folder, "pairs", drop())
    rewrite(folder, "keep", change("duplicate_of", "lone0", kept=False))
    rewrite(folder, "clusters", change("component", "f9"))

    here, there = (check_run(run, steps=STEPS[name]) for run in (DuckRun(str(folder)), SparkRun(spark, str(folder))))

    assert here.text().splitlines() == there.text().splitlines()
    assert len(broken(here)) > 1


def test_loads_no_spark_and_what_was_not_proved_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check imports no Spark; with the inputs gone it says what was not proved, with status 3 if asked for."""
    sound = run(tmp_path, pairs={"confirm": "none"})
    program = """
import sys
from nddup.cli import main
status = main(sys.argv[1:])
sys.exit(status or ("pyspark" in sys.modules and "pyspark") or None)
"""

    command = [sys.executable, "-c", program, "check", str(sound), "--require-inputs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "every promise holds")
    (tmp_path / "pages.jsonl").unlink()
    last = r"no promise is broken, but 1 of \d+ were not proved \(records\): "
    assert main(["check", str(sound)]) == 0
    capsys.readouterr()
    assert main(["check", str(sound), "--require-inputs"]) == 3
    assert re.match(last, capsys.readouterr().out.splitlines()[-1])


def test_a_terminal_shows_the_step(sound: Path) -> None:
    """A terminal shows a bar with the step, as for every command; the findings go to standard output."""
    ours, theirs = pty.openpty()
    start = "from nddup import cli; from nddup.ground import progress; progress.PATIENCE = 0"
    program = f"{start}; cli.main(['check', {str(sound)!r}])"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = os.read(ours, 100).decode()
        found = process.communicate()[0].decode()
    os.close(ours)

    assert shown.startswith("\r\x1b[K  check ")
    assert "····" in shown
    assert any(step in shown for step in ("load the program", "open the run"))
    assert found.endswith("every promise holds\n")
