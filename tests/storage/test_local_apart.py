"""A folder that is written apart: a fault of what is read is not blamed on the output."""

from pathlib import Path

import pytest

from nddup.errors import OutputError
from nddup.storage.local_storage import written_apart


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OutputError("run/keep: is not the file that was written"), "^run/keep: is not the file that was written$"),
        (OSError(28, "No space left on device"), r"^--output .*/out: cannot be written \(No space left on device\)$"),
    ],
)
def test_an_error_is_that_of_what_was_done(error: OSError, said: str, tmp_path: Path) -> None:
    """Nothing is left either way."""
    with pytest.raises(OutputError, match=said), written_apart(str(tmp_path / "out")):
        raise error
    assert list(tmp_path.iterdir()) == []


def test_of_two_that_write_one_output_the_first_stays_whole(tmp_path: Path) -> None:
    """The second is refused, and takes nothing away; what a killed command left is removed."""
    out = tmp_path / "out"
    (tmp_path / ".out.part").mkdir()
    (tmp_path / ".out.part/left").touch()
    with written_apart(str(out)) as apart:
        (apart / "first").touch()
        with pytest.raises(OutputError, match=r"/out: another command writes there$"), written_apart(str(out)):
            pass
        (apart / "last").touch()

    assert list(tmp_path.iterdir()) == [out]
    assert sorted(path.name for path in out.iterdir()) == ["first", "last"]
