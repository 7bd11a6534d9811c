"""Files of other kinds beside the documents are rejects, and no reason to end a run."""

from pathlib import Path

import pyarrow.parquet as pq

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(50_000)


def test_images_named_as_pages_do_not_end_a_run(tmp_path: Path) -> None:
    """Images and PDF that are named as pages outweigh the pages: they are rejects `binary`, and the run succeeds."""
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "page.html").write_text("<html><p>" + " ".join(f"w{i}" for i in range(60)), encoding="utf-8")
    (mirror / "picture.html").write_bytes(PICTURE)
    output = tmp_path / "out"

    run_locally([str(mirror)], str(output), build_config({"output": {"report": False}}, origin="test"))

    assert pq.read_table(output / "documents").column("source").to_pylist() == ["page.html"]
    assert pq.read_table(output / "rejects").column("reason").to_pylist() == ["binary"]
