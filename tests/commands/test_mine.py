"""The command `nddup mine`: results, files, budgets, and one line per mistake."""

import gzip
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from nddup.cli import main
from nddup.ground import progress
from nddup.reading.streams import COMPRESSIONS

FAMILY = "1 2 3\n1 2 3\n1 2\n4 5\n4 5\n6\n6\n"


@pytest.fixture
def family(tmp_path: Path) -> Path:
    """A FIMI file: three documents with common features, two with others, and one alone."""
    path = tmp_path / "family.fimi"
    path.write_text(FAMILY)
    return path


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep steps from showing progress on standard error, however slow the machine."""
    monkeypatch.setattr(progress, "PATIENCE", float("inf"))


def mine(capfdbinary: pytest.CaptureFixture[bytes], *arguments: object) -> tuple[int, str, str]:
    """Run the command; returns its status, standard output and standard error."""
    try:
        status = main(["mine", *map(str, arguments)])
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    out, err = capfdbinary.readouterr()
    return status, out.decode(), err.decode()


def test_prints_maximal_sets(family: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Each maximal set is printed as one line, its items and then its support, and nothing else is printed."""
    assert mine(capfdbinary, family, "--support", 2) == (0, "1 2 3 2\n4 5 2\n6 2\n", "")
    assert mine(capfdbinary, family, "--support", 3) == (0, "1 2 3\n", "")


def test_options_choose_sets(family: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """`--closed` prints closed sets, and `--min-size` leaves out smaller sets."""
    assert mine(capfdbinary, family, "--support", 2, "--closed")[1] == "1 2 3\n1 2 3 2\n4 5 2\n6 2\n"
    assert mine(capfdbinary, family, "--support", 2, "--min-size", 2)[1] == "1 2 3 2\n4 5 2\n"


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_compressed_file_and_an_output(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], compression: str
) -> None:
    """A compressed input gives the same sets, `--output` writes them to a file, and no other file is left."""
    packed, output = tmp_path / "family", tmp_path / "sets.txt"
    packer = COMPRESSIONS[compression].packer()
    packed.write_bytes(packer.compress(FAMILY.encode()) + packer.flush())

    assert mine(capfdbinary, packed, "--support", 2, "--output", output) == (0, "", "")
    assert output.read_text() == "1 2 3 2\n4 5 2\n6 2\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["family", "sets.txt"]


def test_a_file_of_another_kind_is_named(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """An archive has no items: one line says what it is."""
    archive = tmp_path / "family.zip"
    with ZipFile(archive, "w") as file:
        file.writestr("family.fimi", FAMILY)

    status, out, err = mine(capfdbinary, archive, "--support", 1)

    assert (status, out) == (1, "")
    assert err.startswith(f"nddup: {archive}: binary: ")
    assert err.count("\n") == 1


def test_no_set_is_said(family: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """No line of output could also be a mistake in the options."""
    said = f"nddup: {family}: no set of 1 or more is in 4 of its 7 lines of 6 items\n"
    assert mine(capfdbinary, family, "--support", 4) == (0, "", said)


def test_a_budget_is_announced(family: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Past --max-sets, the sets found are printed and standard error says that there are more; at it, it is silent."""
    status, out, err = mine(capfdbinary, family, "--support", 2, "--max-sets", 2)

    assert (status, len(out.splitlines())) == (0, 2)
    assert err == f"nddup: stopped at --max-sets 2: {family} has more maximal sets than those given\n"
    assert mine(capfdbinary, family, "--support", 2, "--max-sets", 3)[2] == ""


def test_an_empty_file_is_no_mistake(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A file without transactions gives no sets and exit status 0, with a note, since it is seldom intended."""
    empty = tmp_path / "empty.fimi"
    empty.write_text("\n\n")

    assert mine(capfdbinary, empty, "--support", 1) == (0, "", f"nddup: {empty}: no transactions\n")


@pytest.mark.parametrize("support", ["0", "-3", "1.5", "85%", "x", "²"])
def test_support_is_a_positive_number(family: Path, capfdbinary: pytest.CaptureFixture[bytes], support: str) -> None:
    """A support that is not a whole number of at least 1 is refused in one line."""
    status, out, err = mine(capfdbinary, family, f"--support={support}")

    assert (status, out) == (2, "")
    assert "--support: expected a whole number of at least 1" in err
    assert err.count("\n") == 1


def test_mistakes_are_one_line(family: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Missing inputs and existing outputs are refused by name with status 2, and existing files are not touched."""
    missing, taken = tmp_path / "nothing.fimi", tmp_path / "taken.txt"
    taken.write_text("years of work")

    assert mine(capfdbinary, missing, "--support", 2) == (2, "", f"nddup: {missing}: no such file\n")
    assert mine(capfdbinary, tmp_path, "--support", 2) == (2, "", f"nddup: {tmp_path}: is a folder, not a FIMI file\n")
    status, _, err = mine(capfdbinary, family, "--support", 2, "--output", taken)
    assert (status, err) == (2, f"nddup: --output {taken}: exists already; give another file\n")
    status, _, err = mine(capfdbinary, family, "--support", 2, "--output", tmp_path / "no" / "sets.txt")
    assert (status, err) == (2, f"nddup: --output {tmp_path}/no/sets.txt: there is no folder {tmp_path}/no\n")
    assert mine(capfdbinary, family)[0] == 2
    assert taken.read_text() == "years of work"


def test_a_damaged_file_gives_no_result(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A truncated gzip file gives one line, status 1 and no output file."""
    packed, output = tmp_path / "family.gz", tmp_path / "sets.txt"
    packed.write_bytes(gzip.compress(FAMILY.encode() * 1000)[:-20])

    status, _, err = mine(capfdbinary, packed, "--support", 2, "--output", output)

    assert status == 1
    assert err.startswith(f"nddup: {packed}: damaged: the file ends inside")
    assert err.count("\n") == 1
    assert not output.exists()


def test_needs_no_spark(family: Path) -> None:
    """The command succeeds without loading pyspark."""
    code = (
        "import sys; from nddup.ground import progress; progress.PATIENCE = 1e9; from nddup.cli import main;"
        " s = main(sys.argv[1:]); sys.exit(s or 'pyspark' in sys.modules)"
    )
    command = [sys.executable, "-c", code, "mine", str(family), "--support", "2"]

    done = subprocess.run(command, capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"1 2 3 2\n4 5 2\n6 2\n", b"")
