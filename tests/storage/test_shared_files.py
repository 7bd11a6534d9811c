"""Files over Spark Connect: only those that this process and the server share."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from nddup.errors import ConfigError, OutputError
from nddup.scanning.input_files import uri_of
from nddup.spark.session_files import SharedStorage
from nddup.storage.local_storage import LocalStorage


class Server:
    """A stand-in for a session, which reads the files of this machine, or finds none."""

    def __init__(self, *, sees: bool = True, longer_by: int = 0) -> None:
        self._sees, self._longer = sees, longer_by
        self.read = self

    def format(self, source: str) -> "Server":
        """Accept any format."""
        self._source = source
        return self

    def options(self, **_: str) -> "Server":
        """Accept any options."""
        return self

    def load(self, path: str) -> Any:  # noqa: ANN401
        """Return the lines of a text, or the name and the size of a file."""
        if self._source == "text":
            return self._rows(lambda: [{"value": line} for line in Path(path).read_text().splitlines()])
        found = self._rows(lambda: [(uri_of(path), Path(path).stat().st_size + self._longer)])
        return SimpleNamespace(select=lambda *_: found)

    def _rows(self, rows: Any) -> Any:  # noqa: ANN401
        def collect() -> Any:  # noqa: ANN401
            if not self._sees:
                raise PySparkException("PATH_NOT_FOUND")
            return rows()

        return SimpleNamespace(collect=collect)


def storage(**server: Any) -> SharedStorage:  # noqa: ANN401
    """Return the storage of a session with such a server."""
    return SharedStorage(Server(**server))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace Spark's columns, which need a session; the server here ignores them."""
    monkeypatch.setattr("nddup.spark.session_files.F", SimpleNamespace(col=str))


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder with names that Spark would interpret."""
    folder = tmp_path / "in put"
    (folder / "date=1").mkdir(parents=True)
    for name in ("a[1].xml", "date=1/б.xml", "_hidden.xml", ".x.xml", "README.md"):
        (folder / name).write_text(f"<a>{name}</a>")
    return folder


def test_the_listing_is_that_of_this_machine(pages: Path) -> None:
    """The same files are listed and skipped as on this machine; paths are URIs in Spark's spelling."""
    here, shared = LocalStorage().list_inputs([str(pages)]), storage().list_inputs([str(pages)])

    assert (
        [file.source for file in shared.files] == [file.source for file in here.files] == ["a[1].xml", "date=1/б.xml"]
    )
    assert [file.path for file in shared.files] == [uri_of(file.path) for file in here.files]
    assert shared.skipped == here.skipped
    assert len(shared.skipped) == 3


@pytest.mark.parametrize(
    ("server", "said"), [({"sees": False}, "finds nothing there"), ({"longer_by": 1}, "finds file:.* 16 bytes")]
)
def test_inputs_that_the_server_does_not_find_are_refused(pages: Path, server: dict[str, Any], said: str) -> None:
    """An input that is missing on the server, or of another size there, is refused: it is on another disk."""
    with pytest.raises(ConfigError, match=said):
        storage(**server).list_inputs([str(pages)])


def test_a_folder_that_the_server_does_not_see_is_not_left(tmp_path: Path) -> None:
    """A new folder that the server does not see is removed again; an existing one keeps its files."""
    there = tmp_path / "there"
    there.mkdir()
    (there / "mine.txt").write_text("mine")
    for folder in (there, tmp_path / "new"):
        with pytest.raises(OutputError, match="the Spark server does not see"):
            storage(sees=False).make_folder(str(folder))

    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert [path.name for path in there.iterdir()] == ["mine.txt"]
    storage().make_folder(str(tmp_path / "new"))
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("name", ["exists", "make_folder"])
def test_another_file_system_is_refused(name: str) -> None:
    """A URI of another file system is refused, with where files must lie, and without its credentials."""
    with pytest.raises(ConfigError, match=r"s3a://bucket/a: over Spark Connect files lie where"):
        getattr(storage(), name)("s3a://me:secret@bucket/a")
