"""Settings stored in a folder decide what is found, and never how and where a command computes."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import nddup
from nddup.cli import main
from nddup.engines.duck import DuckEngine
from nddup.errors import ConfigError, OutputError
from nddup.ground.shown import HIDDEN
from nddup.settings.schema import Config, LocalConfig
from nddup.stages.inputs_found import config_of
from nddup.stages.keep import find_idle_globs
from nddup.storage.local_folder import LocalFolder
from tests.finished_runs import write_texts

TEXTS = {name: f"{name} has some words of its own to tell" for name in "abc"}
FOREIGN = {
    "engine": "spark",
    "local": {"processes": 7, "memory": "1GB"},
    "spark": {"spark.driver.extraJavaOptions": "-XX:OnError=touch", "spark.hadoop.fs.s3a.secret.key": HIDDEN},
}


def change(file: Path, **sections: object) -> None:
    """Set sections of the settings that a file stores, and forget its digest."""
    value = json.loads(file.read_text())
    value.pop("digest", None)
    settings = value["repository"]["settings"] if "repository" in value else value["settings"]
    settings.update(sections)
    file.write_text(json.dumps(value))
    if (file.parent / "_COMPLETE").exists():
        (file.parent / "_COMPLETE").write_text("{}")


def computes_as_by_default(config: Config) -> bool:
    """Return whether the settings say nothing of how and where to compute."""
    return config.engine == "auto" and config.local == LocalConfig() and not config.spark


def test_a_repository_stores_only_what_decides_its_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`index create` says which settings it does not store, and neither secrets nor Java options reach the files."""
    assert main(["index", "create", f"{tmp_path}/repo", "--set", "spark.hadoop.fs.s3a.secret.key=abcdefgh",
                 "--set", "local.processes=3", "--set", "pairs.threshold=0.7"]) == 0  # fmt: skip
    assert capsys.readouterr().err == "local, spark: not stored; give each command what it computes with\n"

    stored = json.loads((tmp_path / "repo" / "commits" / "1.json").read_text())["repository"]["settings"]
    assert stored["pairs"]["threshold"] == 0.7
    assert not {"spark", "local", "engine"} & stored.keys()


def test_a_foreign_repository_says_nothing_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Engine, processes and Spark settings in a commit are passed over by `query` and `add`; the caller's count."""
    repo, pages = tmp_path / "repo", write_texts(tmp_path / "a.jsonl", TEXTS)
    assert main(["index", "create", str(repo)]) == 0
    change(repo / "commits" / "1.json", **FOREIGN)
    monkeypatch.setattr("nddup.spark.session.start_session", lambda **given: pytest.fail(f"Spark starts: {given}"))

    assert main(["index", "add", str(repo), str(pages)]) == 0
    assert main(["index", "query", str(repo), str(pages)]) == 0
    assert computes_as_by_default(nddup.repository.open(str(repo)).snapshot.identity.config)
    own = nddup.repository.open(str(repo), local={"processes": 2}, spark={"spark.a": "b"}).snapshot.identity.config
    assert (own.local.processes, own.spark) == (2, {"spark.a": "b"})

    capsys.readouterr()
    assert main(["index", "query", str(repo), str(pages), "--set", "pairs.threshold=0.5"]) == 2
    assert "pairs: is fixed when a repository is made; expected engine, local, spark" in capsys.readouterr().err


def test_the_callers_settings_reach_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark starts with the settings of the command that asks for it."""
    given: list[dict[str, str]] = []

    def start(*, settings: dict[str, str], **_: object) -> None:
        given.append(settings)
        raise ConfigError("no session")

    monkeypatch.setattr("nddup.spark.session.start_session", start)
    pages = write_texts(tmp_path / "a.jsonl", TEXTS)
    assert main(["index", "create", f"{tmp_path}/repo", "--set", "spark.b=1"]) == 0
    arguments = ["index", "add", f"{tmp_path}/repo", str(pages), "--engine", "spark", "--set", "spark.a=2"]
    assert main(arguments) == 2
    assert given == [{"spark.a": "2"}]


def test_a_foreign_run_says_nothing_of_the_engine(tmp_path: Path) -> None:
    """`explain`, `truth`, `check` and the API read no setting of an engine, and no hidden secret as a value."""
    write_texts(tmp_path / "a.jsonl", TEXTS)
    run = tmp_path / "run"
    assert main(["run", f"{tmp_path}/a.jsonl", "--output", str(run)]) == 0
    for name in ("_RUN.json", "metrics.json"):
        change(run / name, **FOREIGN)

    opened = nddup.open(str(run))
    assert computes_as_by_default(config_of(LocalFolder(str(run))))
    assert computes_as_by_default(opened.settings)
    assert opened.rethreshold(0.9).settings.pairs.threshold == 0.9


def test_a_repository_with_settings_that_create_refuses_is_refused(tmp_path: Path) -> None:
    """Settings that no repository can have been made with are refused when it is opened."""
    assert main(["index", "create", f"{tmp_path}/repo"]) == 0
    change(tmp_path / "repo" / "commits" / "1.json", keep={"max_lost": 0.1})

    with pytest.raises(ConfigError, match=r"keep\.max_lost"):
        nddup.repository.open(f"{tmp_path}/repo")


def test_a_repository_keeps_its_seed(tmp_path: Path) -> None:
    """Its sketches are made with it; a version that names another is refused, as sketches made with that are others."""
    assert main(["index", "create", f"{tmp_path}/repo", "--set", "sketch.seed=7"]) == 0
    repo = nddup.repository.open(f"{tmp_path}/repo")
    assert repo.snapshot.identity.config.sketch.seed == 7
    repo.add(TEXTS)
    settings = json.loads((tmp_path / "repo" / "commits" / "2.json").read_text())["repository"]["settings"]
    change(tmp_path / "repo" / "commits" / "2.json", sketch={**settings["sketch"], "seed": 8})

    with pytest.raises(OutputError):
        nddup.repository.open(f"{tmp_path}/repo")


def test_a_stored_glob_takes_linear_time() -> None:
    """A glob of a foreign run or repository meets sources that are as hostile; Python's `re` would take hours."""
    hostile, usual = "*a*a*a*a*a*a*b", "a*"
    engine = DuckEngine.over("a run", documents=pa.table({"source": ["a" * 300]}))
    assert find_idle_globs(lambda: engine, [hostile, usual]) == [hostile]
