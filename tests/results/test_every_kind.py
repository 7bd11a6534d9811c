"""Every command on a finished run of every kind succeeds, and its output agrees with the run's tables.

`nddup sweep` over a grid of one point makes each run, one for each name in `kind_runs`; the other commands share it.
`NDDUP_DEBUG` is set, so that exceptions other than nddup's own errors are raised unchanged.
"""

import csv
import json
from collections.abc import Callable
from functools import cache
from itertools import combinations, product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rapidfuzz.distance import Levenshtein

from nddup import find_duplicates
from nddup.cli import main
from nddup.ground.metrics import RunMetrics
from nddup.settings.load import build_config
from nddup.sketching.kinds import KINDS
from tests.counted_rows import once
from tests.results.kind_runs import CHECKED, RUNS, Run, nested, settings_of, texts

SIMILARITY = 0.8


def test_every_kind_measure_and_mode_is_run() -> None:
    """Every kind, measure and cluster mode occurs in the runs, so that a new kind must be added here."""
    configs = [build_config(nested(settings_of(name)), origin=name) for name in RUNS | CHECKED]

    assert {config.sketch.kind for config in configs} == set(KINDS)
    assert {config.pairs.measure for config in configs} == {"resemblance", "overlap", "containment"}
    assert {config.clusters.mode for config in configs} == {"all", "cover", "partition", "components", "none"}


Say = Callable[..., str]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """Return a function that runs a command, asserts exit status 0, and returns its standard output."""
    monkeypatch.setenv("NDDUP_DEBUG", "1")

    def run_command(*arguments: object) -> str:
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out

    return run_command


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Return a function that makes the run of a name in `RUNS` or `CHECKED`, once, by `nddup sweep`."""
    inputs = tmp_path_factory.mktemp("inputs")
    pages = inputs / "pages.jsonl"
    lines = [json.dumps({"id": name, "text": text, "url": f"http://x/{name}"}) for name, text in texts().items()]
    pages.write_text("\n".join([*lines, '{"id": "torn", "text": "half a rec']) + "\n")

    @cache
    def make(name: str) -> Run:
        settings = settings_of(name)
        options = [part for key, value in settings.items() for part in ("--set", f"{key}={json.dumps(value)}")]
        folder = tmp_path_factory.mktemp("run")
        (folder / "grid.yaml").write_text(f"sketch.kind: [{settings['sketch.kind']}]\n")
        command = ["sweep", str(pages), "--grid", str(folder / "grid.yaml"), "--output", str(folder / "sweep")]
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("NDDUP_DEBUG", "1")
            assert main([*command, "--keep-runs", *options]) == 0
        return Run(folder / "sweep" / "runs" / "0001", pages, options)

    return make


def swept(run: Run, say: Say, tmp_path: Path) -> None:
    """The row of the point has the counts of the run's tables; `metrics.json` is unchanged by a read and a dump."""
    del say, tmp_path
    with (run.folder.parents[1] / "sweep.csv").open() as file:
        (row,) = csv.DictReader(file)

    assert row["refused"] == ""
    for name in ("documents", "pairs", "clusters"):
        assert int(row[name]) == len(run.rows(name))
    assert int(row["kept"]) == sum(line["kept"] for line in run.rows("keep"))
    assert len(run.pairs()) >= {"i-match": 4, "whole": 8}.get(run.metrics().settings["sketch"]["kind"], 9)
    assert run.metrics().records == len(texts()) + 1

    text = (run.folder / "metrics.json").read_text()
    assert json.dumps(RunMetrics.read(text).dump(), indent=2, ensure_ascii=False) + "\n" == text


def shown(run: Run, say: Say, tmp_path: Path) -> None:
    """`show` prints the summary, a cluster with its members, and documents of a pair, of no pair and without tokens."""
    del tmp_path
    clusters = run.rows("clusters")
    first, second = min(run.pairs())

    assert f"near-duplicate pairs {len(run.pairs()):>13,}" in say("show", run.folder)
    cluster = max(clusters, key=lambda row: row["size"])
    said = say("show", run.folder, "--cluster", cluster["cluster_id"])
    lines = said.splitlines()[1 : 1 + len(cluster["members"])]
    assert [line.split()[-2] for line in lines] == cluster["members"]
    assert f"  {second}\n" in say("show", run.folder, "--doc", first)
    assert "  kept\n" in say("show", run.folder, "--doc", "alone1")
    assert "0 tokens" in say("show", run.folder, "--doc", "empty1")


def checked(run: Run, say: Say, tmp_path: Path) -> None:
    """`check` finds that every promise holds."""
    del tmp_path
    said = say("check", run.folder, "--max-rejects", "0.5")

    assert said.endswith("every promise holds\n")
    assert "BROKEN" not in said


def evaluated(run: Run, say: Say, tmp_path: Path) -> None:
    """`evaluate` gives the five numbers that Python's sets give."""
    names, found = sorted(texts()), run.pairs()
    reference = {*sorted(found)[::2], (names[0], names[5]), (names[3], "unknown")}
    (tmp_path / "pairs.csv").write_text("id_a,id_b\n" + "".join(f"{a},{b}\n" for a, b in reference))

    say("evaluate", run.folder, "--truth", tmp_path / "pairs.csv")
    said = json.loads((run.folder / "evaluation.json").read_text())["pairs"]

    assert (said["reference"], said["found"], said["common"]) == (len(reference), len(found), len(reference & found))
    assert said["unique_to_reference"] == len(reference - found)
    assert said["unique_to_run"] == len(found - reference)


def listed(run: Run, say: Say, tmp_path: Path) -> None:
    """`truth` lists the pairs whose texts are similar, and counts those that share no feature."""
    plain = {name: " ".join(text.split()) for name, text in texts().items()}
    alike = {(a, b) for a, b in combinations(sorted(plain), 2) if plain[a] and plain[b]
             and Levenshtein.normalized_similarity(plain[a], plain[b]) >= SIMILARITY}  # fmt: skip
    options = ("--similarity", SIMILARITY, "--candidates", 0.05, "--sample", len(plain))

    said = say("truth", run.folder, "--output", tmp_path / "truth.csv", *options)
    lines = [line for line in (tmp_path / "truth.csv").read_text().splitlines() if not line.startswith("#")]
    found = {(row["id_a"], row["id_b"]) for row in csv.DictReader(lines)}

    assert found <= alike
    assert f" {len(alike - found):,} of {len(alike):,} are not in this list" in said
    settings, is_cut = run.metrics().settings, "not complete" in said
    assert is_cut == (settings["pairs"]["max_edges"] == 3)
    if settings["sketch"]["kind"] != "i-match" and not is_cut:  # two texts may share none of its few signatures
        assert found == alike


def reported(run: Run, say: Say, tmp_path: Path) -> None:
    """`report` writes a page with a cluster of the run, whose texts are read again."""
    del tmp_path
    cluster = run.rows("clusters")[0]

    said = say("report", run.folder, "--cluster", cluster["cluster_id"])

    assert said == f"report in {run.folder}/report/index.html\n"
    data = "".join(path.read_text() for path in sorted((run.folder / "report").rglob("*.js")))
    assert all(member in data for member in cluster["members"])
    assert cluster["cluster_id"] in data


def explained(run: Run, say: Say, tmp_path: Path) -> None:
    """`explain` names the kind and the threshold."""
    del tmp_path
    settings = run.metrics().settings

    said = say("explain", *run.options)

    assert f"sketch: {settings['sketch']['kind']}, " in said
    assert f"pairs: {settings['pairs']['measure']} at least {settings['pairs']['threshold']:g}" in said


def inspected(run: Run, say: Say, tmp_path: Path) -> None:
    """`inspect` counts the documents and the reject under the run's settings."""
    del tmp_path
    assert f"{len(texts())} documents, 1 malformed" in say("inspect", run.pages, *run.options)


def resumed(run: Run, say: Say, tmp_path: Path) -> None:
    """`run --resume` on a finished run makes nothing again and prints the summary."""
    del tmp_path
    before = (run.folder / "metrics.json").stat().st_mtime_ns

    said = say("run", run.pages, "--output", run.folder, "--resume", *run.options)

    assert (run.folder / "metrics.json").stat().st_mtime_ns == before
    assert f"results in {run.folder}\n" in said
    assert ("  report: " in said) == run.metrics().settings["output"]["report"]


COMMANDS = {"sweep": swept, "show": shown, "check": checked, "evaluate": evaluated, "truth": listed,
            "report": reported, "explain": explained, "inspect": inspected, "run": resumed}  # fmt: skip


WHOLE = ("min-s", "minhash", "i-match")
"""Runs on which every command is tried: of resemblance by counts, of an estimate with leaders, and of words."""

TRIED = [
    *product(WHOLE, COMMANDS),
    *product([name for name in RUNS | CHECKED if name not in WHOLE], ("sweep", "check")),
]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param(*tried, id="-".join(tried), marks=[pytest.mark.nightly] * (at % 6 > 0))
        for at, tried in enumerate(TRIED)
    ],
)
def test_every_command_on_every_kind(
    run_of: Callable[[str], Run], say: Say, tmp_path: Path, name: str, command: str
) -> None:
    """Each command succeeds on each run; the docstring of its function says what it must print."""
    COMMANDS[command](run_of(name), say, tmp_path)


def test_find_duplicates_gives_the_tables_of_the_run(spark: SparkSession, run_of: Callable[[str], Run]) -> None:
    """`find_duplicates` gives the run's tables, for the kind that reads most of the documents: their lexicon too.

    For files, `embedded/test_matrix.py` compares both engines by every kind.
    """
    name = "i-match"
    run = run_of(name)
    pages = spark.createDataFrame(list(texts().items()), "id string, text string")

    tables = find_duplicates(pages, **settings_of(name))

    assert once((row["doc_a"], row["doc_b"]) for row in tables.pairs.collect()) == run.pairs()
    kept = once((row["doc_id"], row["duplicate_of"]) for row in tables.keep.collect())
    assert kept == once((row["doc_id"], row["duplicate_of"]) for row in run.rows("keep"))
    assert tables.metrics["rows"]["clusters"] == len(run.rows("clusters"))
