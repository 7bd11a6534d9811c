"""Files that Spark rewrites: the same bytes as those of the embedded engine."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nddup.errors import ConfigError
from nddup.run.job import run_job
from nddup.run.local_job import run_locally
from nddup.settings.load import build_config
from tests.rewriting.written_shards import FORMS, write_parquet, write_shards

pytestmark = pytest.mark.spark
SETTINGS = {
    "shingle": {"length": 2},
    "pairs": {"threshold": 0.6},
    "output": {"kept": "as-input", "tagged": "as-input", "texts": 0, "report": False},
}


def test_both_engines_write_the_same_bytes(spark: SparkSession, tmp_path: Path) -> None:
    """For every format, and Parquet, the names, shards and bytes of both engines are equal."""
    for name, form in FORMS.items():
        write_shards(form, tmp_path / "in" / name, f"{name}-")
    write_parquet(tmp_path / "in" / "parquet", "parquet-")
    config = build_config(SETTINGS, origin="test")
    run_locally([str(tmp_path / "in")], str(tmp_path / "local"), config)
    run_job(spark, [str(tmp_path / "in")], str(tmp_path / "spark"), config)

    for name in ("kept", "tagged"):
        both = [
            {str(path.relative_to(tmp_path / at / name)): path.read_bytes()
             for path in (tmp_path / at / name).rglob("*") if path.is_file() and not path.name.endswith(".crc")}
            for at in ("local", "spark")
        ]  # fmt: skip
        assert both[0].keys() == both[1].keys()
        assert [name for name in both[0] if both[0][name] != both[1][name]] == []


def test_pages_are_left_to_the_embedded_engine(spark: SparkSession, tmp_path: Path) -> None:
    """Spark refuses pages in one line, before anything is written."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.html").write_text("<html><p>some words</p></html>")
    config = build_config(SETTINGS | {"output": {"kept": "as-input"}}, origin="test")

    with pytest.raises(ConfigError, match=r"a\.html is a page; only the embedded engine"):
        run_job(spark, [str(tmp_path / "in")], str(tmp_path / "out"), config)
    assert not (tmp_path / "out").exists()
