"""Secrets that must not be written: settings by Spark's rule, logins in URIs, and messages that quote them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nddup.cli import main
from nddup.errors import ConfigError, NddupError
from nddup.evaluating.sweep import Point, read_grid, table_of
from nddup.ground import shown
from nddup.ground.shown import DEFAULT, HIDDEN, clean, drop_login, follow, hide_settings
from nddup.settings.load import build_config, load_config

SECRET = "AKzz9/qq+77"  # noqa: S105 - of nobody


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the rules and forget the values that a test has added."""
    monkeypatch.setattr(shown, "_patterns", dict(shown._patterns))  # noqa: SLF001
    monkeypatch.setattr(shown, "_remembered", set())


def test_the_rule_is_sparks(spark: SparkSession) -> None:
    """The default rule is that of the installed Spark."""
    jvm: Any = spark._jvm  # noqa: SLF001
    config = getattr(jvm.org.apache.spark.internal.config, "package$")
    rule = getattr(config, "MODULE$").SECRET_REDACTION_PATTERN()

    assert rule.key() == shown.RULE
    assert rule.defaultValueString() == DEFAULT


def test_settings_are_hidden_by_key_and_by_value() -> None:
    """Spark settings are hidden by key and value as Spark hides them; other sections lose only the logins in URIs."""
    settings: dict[str, dict[str, Any]] = {
        "spark": {
            "spark.hadoop.fs.s3a.secret.key": SECRET,
            "spark.hadoop.fs.s3a.Access.Key": "AKIA",
            "spark.driver.extraJavaOptions": "-Dhttp.proxyPassword=x",
            "spark.eventLog.dir": "hdfs://me:pw@nn:8020/events",
            "spark.driver.memory": "8g",
        },
        "lexicon": {"saved": "ftp://me:pw@host/run", "low": 3},
        "keep": {"policy": "longest"},
    }

    assert hide_settings(settings) == {
        "spark": {
            "spark.hadoop.fs.s3a.secret.key": HIDDEN,
            "spark.hadoop.fs.s3a.Access.Key": HIDDEN,
            "spark.driver.extraJavaOptions": HIDDEN,
            "spark.eventLog.dir": "hdfs://nn:8020/events",
            "spark.driver.memory": "8g",
        },
        "lexicon": {"saved": "ftp://host/run", "low": 3},
        "keep": {"policy": "longest"},
    }


def test_a_rule_of_the_settings_is_added() -> None:
    """`spark.shown.regex` hides more settings, and a pattern that only Java understands hides all."""
    assert hide_settings({"spark": {"spark.my.pin": "1234"}}) == {"spark": {"spark.my.pin": "1234"}}
    follow([(shown.RULE, "(?i)[.]pin$")])
    assert hide_settings({"spark": {"spark.my.pin": "1234"}}) == {"spark": {"spark.my.pin": HIDDEN}}
    follow([(shown.RULE, "\\p{Alpha}")])
    assert hide_settings({"spark": {"spark.driver.memory": "8g"}}) == {"spark": {"spark.driver.memory": HIDDEN}}


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3a://KEY:SEC/RET@bucket/a", "s3a://bucket/a"),
        ("s3a://KEY:S EC@RET@bucket/a@b", "s3a://bucket/a@b"),
        ("hdfs://me@nn:8020/a", "hdfs://nn:8020/a"),
        ("hdfs://nn:8020/a@b", "hdfs://nn:8020/a@b"),
        ("abfss://box@account.example/a", "abfss://box@account.example/a"),
        ("file:///home/a:b@c", "file:///home/a:b@c"),
        ("/home/a:b@c", "/home/a:b@c"),
        ("title+body", "title+body"),
    ],
)
def test_a_uri_loses_its_login(uri: str, expected: str) -> None:
    """A URI loses its login and nothing else; an Azure container is not a login."""
    assert drop_login(uri) == expected


def test_errors_are_clean_wherever_they_come_from() -> None:
    """Errors of nddup and of others are cleaned of secret settings, their values alone, and logins in URIs."""
    follow([("spark.hadoop.fs.s3a.secret.key", SECRET), ("spark.hadoop.fs.s3a.session.token", "abc")])

    assert SECRET not in clean(f"java.io.IOException: key {SECRET} does not match")
    assert clean("abc spark.hadoop.fs.x.password: abc") == f"abc spark.hadoop.fs.x.password: {HIDDEN}"
    assert str(NddupError("INPUT ftp://me:pw@host/a b: no such file")) == "INPUT ftp://host/a b: no such file"
    assert clean("--set: input.min_tokens: Input should be a valid integer") == (
        "--set: input.min_tokens: Input should be a valid integer"
    )


@pytest.mark.parametrize(
    "assignments",
    [
        [f"spark.hadoop.fs.s3a.secret.key:{SECRET}"],
        [f"sparks.hadoop.fs.s3a.secret.key={SECRET}"],
        [f"spark=spark.hadoop.fs.s3a.secret.key={SECRET}", "pairs.threshold=7"],
        [f"spark.hadoop.fs.s3a.secret.key={SECRET}", "pairs.threshold=7"],
    ],
)
def test_a_wrong_assignment_is_refused_without_its_secret(assignments: list[str]) -> None:
    """A wrong assignment of a secret, even under a misspelt key, is refused without its value."""
    with pytest.raises(ConfigError) as caught:
        load_config(None, assignments)

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("value", [[SECRET], {"a": SECRET}])
def test_a_wrong_value_of_a_secret_is_refused_without_it(value: object) -> None:
    """A secret of the wrong type is refused with what was expected, without its value."""
    with pytest.raises(ConfigError, match=r"secret.key: expected a text or a number") as caught:
        build_config({"spark": {"spark.hadoop.fs.s3a.secret.key": value}}, origin="test")

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("text", ["spark:\n  spark.secret.key: *{}\n", "spark.secret.key: \t@{}\n", "a: '{}\n"])
def test_what_is_no_yaml_is_refused_without_its_text(text: str) -> None:
    """Invalid YAML is refused with the line of the error, without its text."""
    secret = "AKzz9qq77"  # noqa: S105
    with pytest.raises(ConfigError, match=r"grid.yaml: not YAML: .*line") as caught:
        read_grid(text.format(secret), origin="grid.yaml", base=load_config())

    assert secret not in str(caught.value)


def test_a_sweep_over_secrets_does_not_tell_them() -> None:
    """A sweep over a secret setting uses its values but hides them in its table."""
    grid = f"spark.hadoop.fs.s3a.secret.key: [{SECRET}]\npairs.threshold: [0.7, 7]\n"

    points: list[Point] = read_grid(grid, origin="grid.yaml", base=load_config())

    assert points[0].config is not None
    assert points[0].config.spark == {"spark.hadoop.fs.s3a.secret.key": SECRET}
    assert points[1].refused
    assert SECRET not in table_of(points)
    assert HIDDEN in table_of(points)


def test_plans_hide_logins(spark: SparkSession) -> None:
    """The plan of a query, which Spark writes to its event log, does not show the password of a URI."""
    plan = spark.range(1).select(F.lit("ftp://me:pw@host:21/a"))._jdf.queryExecution().toString()  # noqa: SLF001

    assert "me:pw" not in plan
    assert "@host:21/a" in plan


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> str:
    """The password of a login to `s3a://lake/d`, a view of a folder."""
    password = "pw9x7Qz33"  # noqa: S105 - of nobody
    hadoop = spark._jsc.hadoopConfiguration()  # noqa: SLF001
    view = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
    hadoop.set("fs.s3a.impl", view)
    hadoop.set("fs.viewfs.overload.scheme.target.file.impl", "org.apache.hadoop.fs.LocalFileSystem")
    for table in ("lake", f"me:{password}@lake"):
        hadoop.set(f"fs.viewfs.mounttable.{table}.link./d", tmp_path.as_uri())
    return password


@pytest.mark.usefixtures("spark")
def test_no_secret_is_in_a_run(lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No secret of a setting or URI is written to any file of a run or printed by any command or error."""
    base = f"s3a://me:{lake}@lake/d"
    texts = [" ".join(f"w{number}" for number in range(30)), "some other words " * 5]
    for name, rows in {"a/x.jsonl": texts, "b/x.jsonl": texts[:1]}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": f"{name}{number}", "text": text}) for number, text in enumerate(rows)]
        (tmp_path / name).write_text("\n".join(lines))
    (tmp_path / "truth.csv").write_text("id_a,id_b\na/x.jsonl0,b/x.jsonl0\n")
    secret = ["--set", f"spark.hadoop.fs.s3a.secret.key={SECRET}"]

    arguments = [f"{base}/a", f"{base}/b", f"{base}/a/x.jsonl", "--output", f"{base}/out", *secret]
    assert main(["run", *arguments]) == 0
    assert main(["evaluate", f"{base}/out", "--truth", f"{base}/truth.csv"]) == 0
    assert main(["report", f"{base}/out"]) == 0
    assert main(["show", f"{base}/out"]) == 0
    assert main(["run", *arguments]) == 2
    assert main(["run", f"{base}/none", "--output", f"{base}/out2", *secret]) == 2
    assert main(["run", f"{base}/out", "--output", f"{base}/out", "--overwrite", *secret]) == 2
    changed = [argument.replace(SECRET, "another-key") for argument in arguments]
    assert main(["run", *changed, "--resume"]) == 0

    said = capsys.readouterr()
    assert "results in s3a://lake/d/out" in said.out
    assert "INPUT s3a://lake/d/none: no such file or folder" in said.err
    assert "INPUT s3a://lake/d/out: holds the results of a run" in said.err
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["path"] == "s3a://lake/d/truth.csv"
    assert json.loads((tmp_path / "out" / "_RUN.json").read_text())["inputs"]["paths"][0] == "s3a://lake/d/a"
    written = [Path(folder) / name for folder, _, names in os.walk(tmp_path / "out") for name in names]
    assert len(written) > 50
    for text in (lake, SECRET):
        assert text not in said.out + said.err
        assert [path for path in written if text.encode() in path.read_bytes()] == []
