"""The walk over INPUT paths: what is read, what is skipped and said, and that it ends."""

import os
import socket
from pathlib import Path

import pytest

from nddup.errors import ConfigError
from nddup.scanning.input_files import BESIDE_WHY, Listing
from nddup.scanning.walk import NOWHERE, OTHER_FOLDER, OTHER_NAME, OUTSIDE, open_stored, sizes_of
from nddup.storage.local_storage import LocalStorage


def walk(*inputs: Path) -> Listing:
    """Return the listing of some INPUT paths."""
    return LocalStorage().list_inputs([str(path) for path in inputs])


def sources(listing: Listing) -> list[str]:
    """Return the names of the files that are read."""
    return [file.source for file in listing.files]


def reasons(listing: Listing, folder: Path) -> dict[str, str]:
    """Return why each file below a folder is skipped, without the details."""
    return {str(Path(path).relative_to(folder)): why.partition("; /")[0] for path, why in listing.skipped}


def test_links_are_followed_where_they_stay_inside_and_reach_something_new(tmp_path: Path) -> None:
    """A link gives what no other name gives, once; every other link is skipped with its reason."""
    base = tmp_path / "in"
    (base / "sub").mkdir(parents=True)
    (base / ".hidden").mkdir()
    for path in (base / "sub/a.txt", base / ".hidden/b.txt", tmp_path / "far.txt"):
        path.write_text(path.name)
    links = {"a-again.txt": "sub/a.txt", "b.txt": ".hidden/b.txt", "far.txt": "../far.txt", "gone.txt": "nothing",
             "self": "self", "sub/up": "..", "sub/here": ".", "twin": "sub", "behind": ".hidden"}  # fmt: skip
    for name, target in links.items():
        (base / name).symlink_to(target)

    listing = walk(base)

    assert sources(listing) == ["b.txt", "sub/a.txt"]
    assert reasons(listing, base) == {
        ".hidden": "hidden",
        "a-again.txt": OTHER_NAME,
        "behind/b.txt": OTHER_NAME,
        "far.txt": OUTSIDE,
        "gone.txt": NOWHERE,
        "self": NOWHERE,
        "sub/up": OTHER_FOLDER,
        "sub/here": OTHER_FOLDER,
        "twin": OTHER_FOLDER,
    }


def test_a_snapshot_of_a_hub_is_read_through_its_links(tmp_path: Path) -> None:
    """The files of a snapshot are links to contents beside it, which are read by the links' names; no other link is."""
    home = tmp_path / "datasets--a--b"
    data = home / "snapshots" / "5c1e" / "data"
    data.mkdir(parents=True)
    (home / "blobs").mkdir()
    (home / "refs").mkdir()
    (home / "blobs" / "0a1b").write_text("one")
    (home / "refs" / "main").write_text("5c1e")
    for name, target in {"train.txt": "blobs/0a1b", "main.txt": "refs/main", "all": "blobs"}.items():
        (data / name).symlink_to(f"../../../{target}")

    for given, name in ((data, "train.txt"), (data.parent, "data/train.txt")):
        listing = walk(given)
        assert sources(listing) == [name]
        assert reasons(listing, data) == {"main.txt": OUTSIDE, "all": OUTSIDE}


def test_a_link_to_another_input_is_inside(tmp_path: Path) -> None:
    """A link that leads from one INPUT to another stays inside; the file is read under its own name, in any order."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(name)
    (tmp_path / "one/again.txt").symlink_to(tmp_path / "two/two.txt")

    assert sources(walk(tmp_path / "one", tmp_path / "two")) == ["one.txt", "two.txt"]
    assert walk(tmp_path / "one", tmp_path / "two") == walk(tmp_path / "two", tmp_path / "one")


def test_an_input_that_is_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    """A folder given by a link is read, and so is what its own links reach inside it; a file keeps the name given."""
    (tmp_path / "2024/.kept").mkdir(parents=True)
    (tmp_path / "2024/.kept/a.txt").write_text("a")
    (tmp_path / "2024/b.txt").symlink_to(".kept/a.txt")
    (tmp_path / "latest").symlink_to("2024")
    (tmp_path / "named.txt").symlink_to("2024/.kept/a.txt")

    assert sources(walk(tmp_path / "latest")) == ["b.txt"]
    assert sources(walk(tmp_path / "named.txt")) == ["named.txt"]


def test_a_file_of_two_names_is_read_once(tmp_path: Path) -> None:
    """Of the names of a file the first in the order of bytes is read, whatever the order of the inputs."""
    (tmp_path / "b.txt").write_text("text")
    os.link(tmp_path / "b.txt", tmp_path / "a.txt")

    for inputs in ([tmp_path], [tmp_path / "b.txt", tmp_path / "a.txt"]):
        listing = walk(*inputs)
        assert sources(listing) == ["a.txt"]
        assert listing.skipped == ((str(tmp_path / "b.txt"), f"{OTHER_NAME}; {tmp_path}/a.txt"),)


def test_files_that_are_not_regular_are_skipped_unopened(tmp_path: Path) -> None:
    """Pipes and sockets in a folder are listed as skipped; as an INPUT a pipe is refused in one line."""
    (tmp_path / "a.txt").write_text("text")
    os.mkfifo(tmp_path / "queue.jsonl")
    (tmp_path / "to-queue").symlink_to("queue.jsonl")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "door"))
        listing = walk(tmp_path)

    assert sources(listing) == ["a.txt"]
    assert reasons(listing, tmp_path) == {
        "door": "a socket", "queue.jsonl": "a named pipe", "to-queue": "a named pipe",
    }  # fmt: skip
    with pytest.raises(ConfigError, match=r"^INPUT \S+: expected a file or a folder, got a named pipe; [^\n]*$"):
        walk(tmp_path / "queue.jsonl")


def test_a_file_that_became_a_pipe_is_refused(tmp_path: Path) -> None:
    """It is not waited for, also where a link leads to it."""
    pipe = tmp_path / "a.jsonl"
    os.mkfifo(pipe)
    (tmp_path / "b.jsonl").symlink_to(pipe)
    for name in ("a.jsonl", "b.jsonl"):
        with pytest.raises(OSError, match="since it was listed it became a named pipe"):
            open_stored(str(tmp_path / name))


def test_names_that_are_not_utf8_are_spelled_with_percent(tmp_path: Path) -> None:
    """The file is read under a spelling of its name, apart from a file whose name is that spelling."""
    raw = os.fsencode(tmp_path)
    for name in (b"caf\xe9.txt", b"caf%E9.txt", b"\xff/deep.txt", b"\xe9/README.md", b"same/caf\xe9.txt"):
        path = raw + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - bytes
        Path(os.fsdecode(path)).write_bytes(name)

    listing = walk(tmp_path)

    assert [source.replace(str(tmp_path), "") for source in sources(listing)] == [
        "%FF/deep.txt", "/caf%E9.txt", "file:/caf%E9.txt", "same/caf%E9.txt",
    ]  # fmt: skip
    assert listing.skipped == ((f"file:{tmp_path}/%E9/README.md", BESIDE_WHY),)
    for file in listing.files:
        assert LocalStorage().read_part(file.path, 0, 100).endswith(b".txt")
        assert walk(Path(os.fsdecode(os.fsencode(file.path)))).files[0].size == file.size or file.path[0] != "/"
        assert LocalStorage().list_inputs([file.path]).files[0].path == file.path


@pytest.mark.parametrize(
    ("log", "what"),
    [("_delta_log/0.json", "Delta"), (".hoodie/x", "Hudi"), ("metadata/v1.metadata.json", "Iceberg")],
)
def test_a_table_with_a_log_is_refused_in_one_line(tmp_path: Path, log: str, what: str) -> None:
    """Its files hold deleted rows; the folder, a folder above it and one in it are refused, a file is read."""
    data = tmp_path / "lake/pages/date=2024/a.parquet"
    for path in (tmp_path / "lake/pages" / log, data):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")

    for folder in (tmp_path / "lake", tmp_path / "lake/pages", data.parent):
        told = rf"an? {what} table, " if folder.name != "pages" or what == "Hudi" else r"\w+ does not read it"
        with pytest.raises(ConfigError, match=rf"^INPUT [^\n]*/lake/pages: {told}[^\n]+$"):
            walk(folder)
    assert sources(walk(data)) == ["date=2024/a.parquet"]


@pytest.mark.parametrize(("extra", "way"), [(["state.json"], "load_from_disk"), ([], "Dataset.from_file")])
def test_a_saved_dataset_is_refused_in_one_line(tmp_path: Path, extra: list[str], way: str) -> None:
    """The folders that `Dataset.save_to_disk` writes, and those of its cache, say what reads them."""
    saved = tmp_path / "corpus" / "train"
    saved.mkdir(parents=True)
    for name in ("dataset_info.json", "data-00000-of-00001.arrow", *extra):
        (saved / name).write_bytes(b"{}")

    with pytest.raises(
        ConfigError, match=rf"^INPUT [^\n]*/corpus/train: a dataset [^\n]*{way}[^\n]+find_duplicates[^\n]+$"
    ):
        walk(tmp_path)


def test_sizes_are_those_of_regular_files_without_links(tmp_path: Path) -> None:
    """An estimate ends, too, where links lead up, and waits for no pipe."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/a.txt").write_text("four")
    os.mkfifo(tmp_path / "pipe")
    for name in ("up", "down"):
        (tmp_path / "deep" / name).symlink_to("..")

    assert list(sizes_of([str(tmp_path), str(tmp_path / "none")])) == [(str(tmp_path / "deep/a.txt"), 4)]
