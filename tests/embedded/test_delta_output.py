"""The kept documents as a Delta table: the rows of the Parquet output, in one commit, or no table."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.errors import ConfigError
from nddup.storage import delta_log
from tests.finished_runs import write_texts

TEXTS = {f"d{n}": " ".join([*(f"w{n // 2 * 100 + at}" for at in range(60)), f"x{n}"]) for n in range(20)}
BRIEF = ("--set", "output.report=false", "--set", "local.processes=1")


def test_kept_documents_are_a_delta_table_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import deltalake  # noqa: PLC0415 - an extra

    page, out = str(write_texts(tmp_path / "in.jsonl", TEXTS)), tmp_path / "out"
    run = ["run", page, "--output", str(out), *BRIEF, "--set", "output.kept=delta"]
    with monkeypatch.context() as failing:
        failing.setattr(deltalake, "convert_to_deltalake", None)
        assert main(run) == 2
    assert "kept: its log cannot be written" in capsys.readouterr().err
    assert not (out / "_COMPLETE").exists()
    assert not deltalake.DeltaTable.is_deltatable(str(out / "kept"))

    assert main([*run, "--resume"]) == 0
    table = deltalake.DeltaTable(str(out / "kept"))
    assert table.version() == 0
    assert main(["run", page, "--output", str(tmp_path / "plain"), *BRIEF, "--set", "output.kept=parquet"]) == 0
    assert table.to_pyarrow_table().to_pylist() == pq.read_table(tmp_path / "plain" / "kept").to_pylist()
    assert len(table.to_pyarrow_table()) == 10
    assert main(["check", str(out)]) == 0
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["run", str(out / "kept"), "--output", str(tmp_path / "again"), *BRIEF]) == 0  # it is read as one
    assert "10   0 have the same text" in capsys.readouterr().out


def test_where_it_cannot_be_written_it_is_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="only the embedded engine writes it"):
        delta_log.require_delta("delta", is_on_spark=True)
    monkeypatch.setattr(delta_log, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"nddup\[delta\]"):
        delta_log.require_delta("delta", is_on_spark=False)
    delta_log.require_delta("parquet", is_on_spark=True)
