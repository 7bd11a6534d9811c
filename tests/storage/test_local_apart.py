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
