"""Settings from variables of the environment: below a file and --set, refused like them, and nothing from a folder."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nddup.cli import main
from nddup.errors import ConfigError
from nddup.settings.load import load_config
from tests.places import ROOT


def test_a_variable_replaces_a_default_and_nothing_else(tmp_path: Path) -> None:
    """A file overrides a variable key by key, and --set overrides both."""
    path = tmp_path / "a.yaml"
    path.write_text("pairs: {threshold: 0.8}\n")
    variables = {"NDDUP_PAIRS_THRESHOLD": "0.9", "NDDUP_PAIRS_CONFIRM": "edit", "NDDUP_LOCAL_MEMORY": "8GB",
                 "NDDUP_ENGINE": "local", "NDDUP_DEBUG": "1", "NDDUP_CACHE_DIR": "/x", "OTHER": "y"}  # fmt: skip

    alone, both = load_config(variables=variables), load_config(str(path), ["pairs.confirm=none"], variables)

    assert (alone.pairs.threshold, alone.pairs.confirm, alone.engine) == (0.9, "edit", "local")
    assert alone.local.memory == 8 * 10**9 or alone.local.memory == 8 << 30
    assert (both.pairs.threshold, both.pairs.confirm) == (0.8, "none")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NDDUP_PAIRS_TRESHOLD", "0.9", "no setting; did you mean NDDUP_PAIRS_THRESHOLD?"),
        ("NDDUP_PAIRS_THRESHOLD", "2", "an integer \\(2\\) is a count"),
        ("NDDUP_ENGINE", "java", "engine: "),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, said: str) -> None:
    """The one line names the variable, and what was expected."""
    with pytest.raises(ConfigError, match=f"^{name}: {said}|^{name}: .*{said}"):
        load_config(variables={name: value})


def test_settings_that_need_each_other_may_come_from_different_places(tmp_path: Path) -> None:
    """Variables, a file and --set are compared together; what contradicts at the end names the first that does so."""
    path = tmp_path / "a.yaml"
    path.write_text("output: {weights: log2}\n")
    variables = {"NDDUP_SKETCH_KIND": "mod-m", "NDDUP_PAIRS_MEASURE": "containment", "NDDUP_CLUSTERS_MODE": "none"}

    config = load_config(str(path), ["output.kept=jsonl"], variables)

    assert (config.sketch.kind, config.pairs.measure, config.output.weights) == ("mod-m", "containment", "log2")
    with pytest.raises(ConfigError, match=rf"^{path}: output.weights: stands in records"):
        load_config(str(path), ["sketch.size=9"])
    with pytest.raises(ConfigError, match=r"^NDDUP_PAIRS_MEASURE: pairs.measure: containment needs kind mod-m"):
        load_config(variables={"NDDUP_PAIRS_MEASURE": "containment"})
    with pytest.raises(ConfigError, match=r"^--set: clusters.mode: its pairs do not make maximal sets"):
        load_config(str(path), ["output.kept=jsonl", "clusters.mode=all"], variables)


def test_commands_heed_variables_and_no_file_beside_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run takes a variable, is quiet with -q, and reads no settings from where the input lies; a repository that is
    opened takes only how to compute.
    """
    lines = [json.dumps({"id": name, "text": f"{' '.join(f'w{k}' for k in range(30))} {name}"}) for name in "abc"]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "nddup.yaml").write_text("pairs: {threshold: 0.01}\nspark: {spark.jars: /x}\n")

    variables = {"NDDUP_PAIRS_THRESHOLD": "0.99", "NDDUP_LOCAL_PROCESSES": "1"}

    done = subprocess.run(
        [sys.executable, "-m", "nddup", "run", "a.jsonl", "-o", "out", "-q", "--json", "--set", "output.report=false"],
        cwd=tmp_path, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT), "PATH": ""} | variables,
    )  # fmt: skip

    assert done.stderr == ""
    assert json.loads(done.stdout)["settings"]["pairs"]["threshold"] == 0.99
    monkeypatch.chdir(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["index", "create", "repo"]) == 0
    assert main(["index", "add", "repo", "a.jsonl"]) == 0
    assert "3 added" in capsys.readouterr().out


def test_the_schema_of_settings_can_be_had(capsys: pytest.CaptureFixture[str]) -> None:
    """Its properties are the sections, with the descriptions of the keys."""
    assert main(["explain", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)

    assert {"pairs", "input", "engine"} <= set(schema["properties"])
    assert schema["$defs"]["PairsConfig"]["properties"]["threshold"]["description"]
