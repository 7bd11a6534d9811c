"""A run in a bucket: made, finished, shown, checked and compared as one in a folder of this machine."""

import json
import shutil
from pathlib import Path
from threading import Lock

import pytest

import nddup
from nddup.cli import main
from nddup.errors import OutputError, UnfinishedRunError
from nddup.remote import fetch
from nddup.remote.buckets import client_of, list_bucket
from nddup.storage import bucket_run
from nddup.storage.bucket_run import BucketRun
from tests.finished_runs import write_texts

TEXTS = {f"d{n}": " ".join([*(f"w{n // 2 * 100 + at}" for at in range(60)), f"x{n}"]) for n in range(20)}
BRIEF = ("--set", "output.report=false", "--set", "local.processes=1")


@pytest.fixture
def box(s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an address of this test in the bucket."""
    for name, value in {"ENDPOINT_URL": s3_server, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "FIRST_WAIT", 0.001)
    return f"s3://box/{tmp_path.name}"


def names_at(url: str) -> set[str]:
    return set(list_bucket(url))


def test_a_run_in_a_bucket_is_that_of_a_folder(box: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that reads a run reads it from the bucket, and adds what it writes."""
    page = write_texts(tmp_path / "in.jsonl", TEXTS)
    run = ["run", str(page), "--output", f"{box}/run", *BRIEF]
    assert main(run) == 0
    assert main(["run", str(page), "--output", str(tmp_path / "here"), *BRIEF]) == 0
    assert "sent to s3://box/" in capsys.readouterr().out
    assert main(run) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*run, "--resume"]) == 0
    assert "sent to" not in capsys.readouterr().out

    shutil.rmtree(tmp_path / "cache" / "runs")  # as on another machine
    assert main(["diff", f"{box}/run", str(tmp_path / "here"), "--exit-code"]) == 0
    assert main(["check", f"{box}/run"]) == 0
    assert "every promise holds" in capsys.readouterr().out
    assert {"check.json", "_COMPLETE", "documents/part-00000.zstd.parquet"} <= names_at(f"{box}/run")
    assert nddup.open(f"{box}/run").sql("SELECT count(*) AS n FROM documents").to_pylist() == [{"n": 20}]
    assert main(["report", f"{box}/run"]) == 0
    assert "report/index.html" in names_at(f"{box}/run")
    files, root = client_of(f"{box}/run")
    files.put_file(str(page), f"{root}/judged.csv")
    assert main(["run", str(page), "--output", f"{box}/run", "--overwrite", *BRIEF]) == 0
    assert "report/index.html" not in names_at(f"{box}/run")
    assert "judged.csv" in names_at(f"{box}/run")
    assert main(["check", f"{box}/run"]) == 0


def test_an_unfinished_run_is_no_result(box: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its marker comes, last of all, the bucket holds no result; `--resume` sends the rest."""
    page = write_texts(tmp_path / "in.jsonl", TEXTS)
    run = ["run", str(page), "--output", f"{box}/run", *BRIEF]
    send, left = BucketRun._send, [10]  # noqa: SLF001

    def send_some(self: BucketRun, name: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OutputError("the line is cut")
        send(self, name)

    monkeypatch.setattr(BucketRun, "_send", send_some)
    monkeypatch.setattr(bucket_run, "AT_ONCE", 1)
    assert main(run) == 2
    assert len(names_at(f"{box}/run")) == 10
    with pytest.raises(UnfinishedRunError):
        nddup.open(f"{box}/run")
    left[0] = 1_000
    assert main([*run, "--resume"]) == 0
    assert nddup.open(f"{box}/run").sql("SELECT count(*) AS n FROM documents").to_pylist() == [{"n": 20}]
    assert "_COMPLETE" in names_at(f"{box}/run")


def test_another_writer_is_noticed(box: str, tmp_path: Path) -> None:
    """What is in the bucket is not replaced by a run that began before it came."""
    here = BucketRun(f"{box}/run")
    here.begin([], overwrite=False, resume=False)
    here.path.mkdir(parents=True)
    (here.path / "metrics.json").write_text("{}")
    other = tmp_path / "x"
    other.write_text("x")
    files, root = client_of(f"{box}/run")
    files.put_file(str(other), f"{root}/_COMPLETE")
    with pytest.raises(OutputError, match="another command wrote there meanwhile"):
        here.send()
    files.put_file(str(other), f"{root}/a/../../x")
    with pytest.raises(OutputError, match="is a name that no run writes"):
        here.fetch()


def test_a_run_that_is_replaced_meanwhile_is_no_result(
    box: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of two runs are never read as one: what comes into the bucket between the first and the last is noticed."""
    page = write_texts(tmp_path / "in.jsonl", TEXTS)
    assert main(["run", str(page), "--output", f"{box}/run", *BRIEF]) == 0
    shutil.rmtree(tmp_path / "cache" / "runs")
    get, once = BucketRun._fetch, Lock()  # noqa: SLF001

    def replace_other(self: BucketRun, *given: object) -> None:
        get(self, *given)  # type: ignore[arg-type]
        if once.acquire(blocking=False):
            files, root = client_of(f"{box}/run")
            files.put_file(str(page), f"{root}/other.txt")

    monkeypatch.setattr(BucketRun, "_fetch", replace_other)
    capsys.readouterr()
    assert main(["show", f"{box}/run"]) == 2
    assert "was replaced while it was read" in capsys.readouterr().err


def test_inputs_and_output_are_apart(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{box}/run/in", "--output", f"{box}/run"]) == 2
    assert "holds INPUT" in capsys.readouterr().err
    assert main(["run", box, "--output", f"{box}/run"]) == 2
    assert "lies in INPUT" in capsys.readouterr().err
    assert main(["show", f"{box}/none"]) == 2
    assert json.dumps("no such folder")[1:-1] in capsys.readouterr().err


ADDRESSES = {"s3": "s3://box/x", "https": "https://host.example/x", "hf": "hf://datasets/o/n@main/x"}
RUNS = [
    ("show", "@"), ("report", "@"), ("check", "@"), ("evaluate", "@", "--truth", "t.csv"), ("diff", "a", "@"),
    ("truth", "@", "--output", "t.csv"), ("split", "@", "--parts", "a=.5,b=.5", "--output", "s"),
    ("run", "p.jsonl", "--onto", "@", "--output", "o"), ("run", "p.jsonl", "--output", "@"),
    ("passages", "p.jsonl", "--output", "@"), ("split", "r", "--parts", "a=.5,b=.5", "--output", "@"),
]  # fmt: skip
PATHS = [
    ("evaluate", "r", "--truth", "@"), ("sweep", "p.jsonl", "--grid", "@", "--output", "s"),
    ("mine", "@", "--support", "2"),
    ("sweep", "p.jsonl", "--grid", "g.yaml", "--output", "@"), ("explain", "--config", "@"), ("demo", "--output", "@"),
    ("truth", "r", "--output", "@"), ("against", "a", "b", "--output", "@"),
    ("run", "p.jsonl", "--config", "@", "-o", "o"),
    ("diff", "a", "b", "--output", "@"),
]  # fmt: skip
REPOSITORIES = [
    ("index", "create", "@"), ("index", "add", "@", "p.jsonl"), ("index", "list", "@"), ("index", "check", "@"),
    ("index", "query", "r", "p.jsonl", "--also", "@"), ("serve", "@"),
]  # fmt: skip


@pytest.mark.parametrize("scheme", ADDRESSES)
def test_an_address_that_is_of_no_use_is_refused_in_one_line(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the Hub and web servers only INPUT is of use; of buckets, all but what must be a file of this machine."""
    monkeypatch.chdir(tmp_path)
    refused = PATHS + (RUNS if scheme != "s3" else []) + (REPOSITORIES if scheme == "https" else [])
    for command in refused:
        assert main([ADDRESSES[scheme] if word == "@" else word for word in command]) == 2, command
        said = capsys.readouterr()
        lines = [line for line in said.err.splitlines() if line.startswith("nddup: ")]
        assert len(lines) == 1, command
        assert f"{ADDRESSES[scheme]}: expected a " in lines[0], command
        assert "of this machine" in lines[0]
    assert list(tmp_path.iterdir()) == []


def test_passages_reads_the_kept_documents_of_a_run_in_a_bucket(box: str, tmp_path: Path) -> None:
    page = write_texts(tmp_path / "in.jsonl", TEXTS)
    assert main(["run", str(page), "--output", f"{box}/run", *BRIEF]) == 0
    for number, run in enumerate((f"{box}/run", str(BucketRun(f"{box}/run").path))):
        assert main(["passages", run, "--output", str(tmp_path / f"{number}")]) == 0
    noted = [json.loads((tmp_path / name / "_PASSAGES.json").read_text()) for name in "01"]
    assert noted[0] == noted[1]


def test_runs_that_follow_one_in_a_bucket_name_its_address(
    box: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--onto` and `--names-from` take it; a mistake names the address, not the copy, and it is not written over."""
    page, run = str(write_texts(tmp_path / "in.jsonl", TEXTS)), f"{box}/run"
    assert main(["run", page, "--output", run, *BRIEF, "--set", "output.onto=true", "--as", "1"]) == 0
    onto = ["run", page, "--output", str(tmp_path / "out"), *BRIEF, "--onto", run, "--as"]
    assert main([*onto, "0"]) == 2
    assert f"must come after every source of {run}, whose last is" in capsys.readouterr().err
    assert main([*onto, "2"]) == 0
    named = ["run", page, *BRIEF, "--names-from", run, "--output"]
    assert main([*named, str(tmp_path / "named")]) == 0
    assert nddup.open(str(tmp_path / "named")).metrics["settings"]["output"]["names_from"] == run
    capsys.readouterr()
    assert main([*named, run, "--overwrite"]) == 2
    assert f"--output {run}: is the run that this one follows" in capsys.readouterr().err
