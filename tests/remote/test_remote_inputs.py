"""Files in buckets, on the Hub and on web servers as INPUT: the tables of a folder, or one line that says why not."""

import io
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.request import Request

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.embedded import workers
from nddup.errors import ConfigError, UnreachableError
from nddup.remote import fetch, kept_copies
from nddup.remote.addresses import RemoteFile
from nddup.storage.local_storage import LocalStorage
from tests.remote.faulty_server import FAULTS, FaultyServer, serving
from tests.samples_by_night import first

TABLES = ("documents", "rejects", "pairs", "clusters", "keep")
QUICK = ("--set", "output.report=false", "--set", "local.processes=1")
WORDS = [f"w{number}" for number in range(400)]


def text_of(seed: int) -> str:
    """Return a text; seeds 2n and 2n + 1 give near-duplicates."""
    drawn = random.Random(seed // 2)  # noqa: S311 - drawn texts, no secrets
    return " ".join([*(drawn.choice(WORDS) for _ in range(80)), f"x{seed}"])


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of three files, whose bytes are `contents`."""
    folder = tmp_path_factory.mktemp("pages")
    for number in range(3):
        rows = [{"id": f"d{n}", "text": text_of(n)} for n in range(number * 20, number * 20 + 22)]
        (folder / f"p {number}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {f"/in/{path.name.replace(' ', '%20')}": path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test copies of its own, and quick attempts."""
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "FIRST_WAIT", 0.001)


@pytest.fixture
def server(collection: Path, _alone: None) -> Iterator[FaultyServer]:
    with serving(contents(collection)) as one:
        yield one


def urls(server: FaultyServer) -> list[str]:
    return [f"{server.address}{path}" for path in sorted(server.files)]


def run(inputs: list[str], output: Path, *settings: str) -> int:
    given = [word for one in settings for word in ("--set", one)]
    return main(["run", *inputs, "--output", str(output), *QUICK, *given])


def tables(output: Path) -> dict[str, pa.Table]:
    return {name: pq.read_table(output / name) for name in TABLES}


@pytest.fixture(scope="module")
def expected(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, pa.Table]:
    """Return the tables of a run over the folder."""
    output = tmp_path_factory.mktemp("run") / "out"
    assert run([str(collection)], output) == 0
    return tables(output)


@pytest.mark.usefixtures("_alone")
def test_a_folder_a_bucket_a_server_and_the_hub_give_equal_tables(  # noqa: PLR0913, PLR0917
    s3_server: str,
    server: FaultyServer,
    collection: Path,
    expected: Mapping[str, pa.Table],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import s3fs  # noqa: PLC0415 - an extra
    from fsspec import register_implementation  # noqa: PLC0415
    from fsspec.implementations.memory import MemoryFileSystem  # noqa: PLC0415

    class Hub(MemoryFileSystem):  # type: ignore[misc]
        protocol = "hf"
        store: dict[str, Any] = {}  # noqa: RUF012 - as its base
        pseudo_dirs = [""]  # noqa: RUF012

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return "/" + path.removeprefix("hf://").strip("/")

    register_implementation("hf", Hub, clobber=True)
    for name, value in {"ENDPOINT_URL": s3_server, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    bucket, hub = s3fs.S3FileSystem(use_listings_cache=False), Hub()
    for path in collection.iterdir():
        bucket.put_file(str(path), f"box/{tmp_path.name}/{path.name}")
        hub.pipe_file(f"/datasets/o/n@main/{path.name}", path.read_bytes())
    bucket.pipe_file(f"box/{tmp_path.name}/_hidden/x.jsonl", b"{}")
    bucket.pipe_file(f"box/{tmp_path.name}-other/x.jsonl", b"{}")

    for number, inputs in enumerate(
        ([f"s3://box/{tmp_path.name}"], [f"s3://box/{tmp_path.name}/"], urls(server), ["hf://datasets/o/n@main"])
    ):
        assert run(inputs, tmp_path / f"{number}") == 0
        assert tables(tmp_path / f"{number}") == expected
    noted = json.loads((tmp_path / "0" / "_RUN.json").read_text())["inputs"]["files"]
    assert all(len(state) == 3 for state in noted.values())


@pytest.mark.parametrize("room", ["", "8k"])
def test_inputs_are_sent_once_where_their_copies_have_room(
    room: str, server: FaultyServer, expected: Mapping[str, pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else they are sent as often as the run reads them: to look at their first bytes, to sketch, and to confirm.

    A request that only looks at a file has one byte.
    """
    largest = max(map(len, server.files.values()))
    if room:
        monkeypatch.setenv("NDDUP_CACHE_SIZE", str(largest))
        monkeypatch.setattr(kept_copies, "SMALL", 0)
    assert run(urls(server), tmp_path / "out", *([] if room else ["output.kept=jsonl"])) == 0
    assert tables(tmp_path / "out") == expected
    whole = sum(map(len, server.files.values()))
    assert server.sent <= (3 if room else 1) * whole + server.asked


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize(("setting", "share"), [("output.kept=none", 1 / 2), ("output.kept=jsonl", 2 / 3)])
def test_inputs_are_sent_at_most_twice_where_most_copies_have_room(
    setting: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are read one after another, in turn from the last and from the first; heads and kept records are passes."""
    monkeypatch.setattr(workers, "LEAST_TASK_BYTES", 1)
    files = {
        f"/in/{number:02}.jsonl": "".join(
            f"{json.dumps({'id': f'd{n}', 'text': text_of(n)})}\n" for n in range(number * 20, number * 20 + 20)
        ).encode()
        for number in range(24)
    }
    whole, largest = sum(map(len, files.values())), max(map(len, files.values()))
    monkeypatch.setenv("NDDUP_CACHE_SIZE", str(int(share * whole) + 2 * largest))
    with serving(files) as server:
        assert run(urls(server), tmp_path / "out", setting) == 0
        assert server.sent <= 2 * whole + server.asked
    assert len(pq.read_table(tmp_path / "out" / "documents")) == 480


def test_every_command_with_inputs_reads_them_from_elsewhere(
    server: FaultyServer, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run` has tests of its own; the others read a page of a server as the file that it is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.yaml").write_text("pairs.threshold: [0.7]\n")
    (tmp_path / "list.csv").write_text("d0,d1,0.9\n")
    page, here = urls(server)[0], str(min(collection.iterdir()))
    assert main(["index", "create", "repo"]) == 0
    for command in (
        ["inspect", page],
        ["against", page, here],
        ["against", here, page],
        ["passages", page, "--output", "passages"],
        ["index", "add", "repo", page],
        ["index", "query", "repo", page],
        ["sweep", page, "--grid", "grid.yaml", "--truth", "list.csv", "--output", "sweep"],
    ):
        assert main(command) == 0, command


def test_a_file_that_changes_is_found(server: FaultyServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before `check` and `--resume`, and between the listing and the reading."""
    assert run(urls(server), tmp_path / "out") == 0
    path = min(server.files)
    server.files[path] = server.files[path].replace(b"w1", b"w2")
    assert main(["check", str(tmp_path / "out")]) == 1
    assert "changed since the run" in capsys.readouterr().out
    assert main(["run", *urls(server), "--output", str(tmp_path / "out"), "--resume", *QUICK]) == 0

    storage = LocalStorage()
    listed = storage.list_inputs(urls(server)).files
    server.files[path] = server.files[path].replace(b"w2", b"w3")
    for file in listed:
        if path in file.path:
            for copy in (tmp_path / "cache" / "inputs").glob("*-*"):
                copy.unlink()
            with pytest.raises(UnreachableError, match="changed since it was listed"):
                storage.read_part(file.path, 0, 10)


@pytest.mark.parametrize("seed", first(4, range(100)))
def test_faults_give_equal_tables_or_one_line(  # noqa: PLR0913, PLR0917
    seed: int,
    server: FaultyServer,
    collection: Path,
    expected: Mapping[str, pa.Table],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drawn = random.Random(seed)  # noqa: S311
    share = drawn.choice([0.1, 0.3, 0.6])
    server.fault = lambda: drawn.choice(FAULTS) if drawn.random() < share else ""
    server.change = lambda content: content.replace(b"w7 ", b"w8 ")

    status = run(urls(server), tmp_path / "out")

    said = capsys.readouterr().err
    if status:
        assert [line.startswith("nddup: ") for line in said.splitlines()].count(True) == 1
        assert said.splitlines()[-1].startswith("nddup: ")
        assert not (tmp_path / "out" / "_COMPLETE").exists()
        return
    made = tables(tmp_path / "out")
    if made != expected:  # then the files had changed before they were listed
        there = {path.name: path.read_bytes() for path in collection.iterdir()}
        noted = json.loads((tmp_path / "out" / "_RUN.json").read_text())["inputs"]["files"]
        folder = tmp_path / "changed"
        folder.mkdir()
        for name, content in there.items():
            changed, is_same = server.change(content), etag(content) == noted[name][2]
            assert is_same or etag(changed) == noted[name][2]
            (folder / name).write_bytes(content if is_same else changed)
        assert run([str(folder)], tmp_path / "again") == 0
        assert made == tables(tmp_path / "again")


def etag(content: bytes) -> str:
    return f'"{sha256(content).hexdigest()[:16]}"'


def one_line_of(call: Callable[[], object]) -> str:
    with pytest.raises((UnreachableError, ConfigError)) as told:
        call()
    return str(told.value)


@pytest.mark.usefixtures("_alone")
def test_redirects_keep_scheme_and_logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/a.jsonl": b'{"id": "1", "text": "a"}\n'}) as one, serving({"/b.jsonl": b"x" * 9}) as other:
        one.redirects = {
            "/to": f"{other.address}/b.jsonl",
            "/safe": f"https://127.0.0.1:{one.server_address[1]}/a.jsonl",
            "/round": "/round",
            "/file": "file:///etc/passwd",
        }
        assert fetch.look_at_web(f"{one.address}/to").size == 9
        assert "another scheme" in one_line_of(lambda: fetch.list_remote(f"{one.address}/safe"))
        assert "not allowed" in one_line_of(lambda: fetch.list_remote(f"{one.address}/file"))
        assert "302" in one_line_of(lambda: fetch.list_remote(f"{one.address}/round"))
        one.redirects |= {"/1": "/a.jsonl", **{f"/{number}": f"/{number - 1}" for number in range(2, 7)}}
        assert fetch.look_at_web(f"{one.address}/5").size > 0
        assert "302" in one_line_of(lambda: fetch.list_remote(f"{one.address}/6"))
        assert "no such file" in one_line_of(lambda: fetch.list_remote(f"{one.address}/none"))
        login = f"http://me:secret@127.0.0.1:{one.server_address[1]}/a.jsonl"
        assert "secret" not in (said := one_line_of(lambda: fetch.list_remote(login)))
        assert "~/.netrc" in said

    (tmp_path / ".netrc").write_text("machine one.example login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    request = fetch._with_login(Request("https://one.example/a", headers={"Range": "bytes=0-0"}))  # noqa: SLF001
    assert request.get_header("Authorization", "").startswith("Basic ")
    follow: Any = fetch._Redirects().redirect_request  # noqa: SLF001
    request.timeout = 1
    same = follow(request, io.BytesIO(), 302, "", {}, "/b")
    away = follow(request, io.BytesIO(), 302, "", {}, "https://two.example/b")
    assert same.get_header("Authorization", "").startswith("Basic ")
    assert away.get_header("Authorization") is None
    assert away.get_header("Range") == "bytes=0-0"
    assert fetch._with_login(Request("http://one.example/a")).get_header("Authorization") is None  # noqa: SLF001
    with pytest.raises(UnreachableError, match="another scheme"):
        follow(request, io.BytesIO(), 302, "", {}, "http://one.example/b")


@pytest.mark.usefixtures("_alone")
def test_time_and_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256)) * 400
    with serving({"/a": content, "/empty": b""}) as server:
        file = fetch.list_remote(f"{server.address}/a")[""]
        assert b"".join(fetch.read_remote(file)) == content
        assert b"".join(fetch.read_remote(file, 7, 9)) == content[7:9]
        assert fetch.list_remote(f"{server.address}/empty")[""].size == 0
        server.fault = lambda: "whole"
        assert b"".join(fetch.read_remote(file, 7, 9)) == content[7:9]
        server.fault = lambda: "slow"
        monkeypatch.setattr(fetch, "GRACE", 0.0)
        monkeypatch.setattr(fetch, "LEAST_RATE", 1 << 30)
        with pytest.raises(UnreachableError, match="comes slower than"):
            list(fetch.read_remote(file))
        with monkeypatch.context() as patched:
            patched.setattr(fetch, "HEADER_SECONDS", 0.3)
            patched.setattr(fetch, "ATTEMPTS", 2)
            server.fault, begun = (lambda: "dripped header"), time.monotonic()
            with pytest.raises(UnreachableError, match="does not come in time"):
                fetch.list_remote(f"{server.address}/a")
            assert time.monotonic() - begun < 5
            server.fault = lambda: "late"  # the limit of the header is none of the body
            assert fetch.look_at_web(f"{server.address}/a").size == len(content)
            assert b"".join(fetch.stream_web(file, 0, len(content))) == content
        monkeypatch.setenv("NDDUP_CACHE_SIZE", "1k")
        kept_copies.list_kept([f"{server.address}/a"])
        with pytest.raises(UnreachableError, match="raise NDDUP_CACHE_SIZE"):
            kept_copies.open_kept(f"{server.address}/a")
        server.fault = lambda: "cut"
        file = RemoteFile(f"{server.address}/a", len(content) * 2, 0, file.version)
        with pytest.raises(UnreachableError, match="changed since it was listed"):
            list(fetch.read_remote(file))


def test_spark_does_not_open_what_only_this_process_opens(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for url in ("hf://datasets/o/n", "https://host/a.jsonl"):
        assert main(["run", url, "--output", str(tmp_path / "out"), "--engine", "spark"]) == 2
        assert "only the embedded engine opens it" in capsys.readouterr().err
