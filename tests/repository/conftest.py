"""Stand-ins for the places in which a repository may be stored."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs as arrow_files


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Start a stand-in for S3 with a bucket `box`; yield its address."""
    s3fs = pytest.importorskip("s3fs")
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - optional

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    s3fs.S3FileSystem(key="a", secret="b", endpoint_url=address).mkdir("box")  # noqa: S106 - for a stand-in
    yield address
    server.stop()


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a repository in the bucket; the client finds the server through the usual variables."""
    for name, value in {"ENDPOINT_URL": server, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items():
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
