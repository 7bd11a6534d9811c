"""A file that one writer creates where the place itself cannot tell of two writers which was first.

Each writes a claim of its own, then looks at all claims, and goes on only if its claim is the only one and the file is
not there. Whoever claims later sees the earlier claim, or the file; of two at once both may lose. It relies on a
listing that shows every file written before it.
"""

import time
from contextlib import suppress
from secrets import token_hex

from nddup.repository.places.place import CommitFiles

CLAIMED = 600
"""Seconds that a claim counts; a living writer needs some milliseconds."""


def create_alone(files: CommitFiles, name: str, draft: str) -> None:
    """Give a draft its name; a claim that a killed writer left counts for `CLAIMED` seconds.

    Raises:
        FileExistsError: if the name is taken, or claimed.
        OSError: if it cannot be written.
    """
    prefix = f".{name.removesuffix('.json')}-"
    claim = f"{prefix}{token_hex(6)}.claim"
    began = time.monotonic()
    try:
        files.write_draft(claim, b"claimed")
        now = files.time_of(claim)  # by the clock of the place, as those of the others
        for other in files.commits():
            if other.startswith(prefix) and other.endswith(".claim") and other != claim:
                with suppress(FileNotFoundError):
                    if now - files.time_of(other) < CLAIMED:
                        raise FileExistsError(other)
        is_late = time.monotonic() - began > CLAIMED / 2  # was suspended: others may pass over its claim
        if is_late or name in files.commits():  # after the look at the claims: one goes only when its file is there
            raise FileExistsError(name)
        files.rename_draft(draft, name)
    finally:
        with suppress(OSError):
            files.remove_draft(claim)
