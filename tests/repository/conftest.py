"""Stand-ins for the places in which a repository may be stored."""

from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs as arrow_files


@pytest.fixture
def bucket(s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a repository in the bucket; the client finds the server through the usual variables."""
    for name, value in {"ENDPOINT_URL": s3_server, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "cache"))
    return f"s3://box/{tmp_path.name}/pages"


@pytest.fixture
def hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a path that goes through the adapter used for HDFS, with this machine's file system below it."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.arrow import ArrowFSWrapper  # noqa: PLC0415

    class StandIn(ArrowFSWrapper):  # type: ignore[misc]
        protocol = "hdfs"

        def __init__(self, **_: Any) -> None:  # noqa: ANN401
            super().__init__(arrow_files.LocalFileSystem())

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(path).removeprefix("hdfs://name").rstrip("/")

    fsspec.register_implementation("hdfs", StandIn, clobber=True)
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "cache"))
    return f"hdfs://name{tmp_path}/pages"
