"""A new column, mode of clusters and streamed format work in every command once they are declared."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from tests.places import ROOT


def test_what_is_declared_is_all_that_is_needed(tmp_path: Path) -> None:
    """A run, its check, what is shown of it, and a repository take all three; each proves or stores the column."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.declared_facts", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "BROKEN" not in done.stdout
    assert "every promise holds" in done.stdout
    assert "fields     the lines of each card" in done.stdout
    assert "clusters: each two near-duplicates, the largest" in done.stdout
    for folder in ("run", "tables"):
        documents = pq.read_table(tmp_path / folder / "documents")
        assert dict(zip(documents["doc_id"].to_pylist(), documents["n_letters"].to_pylist(), strict=True)) == {
            f"{kind}{at}": 2 * 10 + 3 * 50 + 59 + 5
            for kind, many in (("a", 4), ("b", 2), ("c", 1))
            for at in range(many)
        }
        clusters = pq.read_table(tmp_path / folder / "clusters")
        assert (clusters["coverage"].to_pylist(), clusters["size"].to_pylist()) == (["twos"] * 3, [2] * 3)
