"""Let at most one writer create a file, in places that have no operation for that.

Each writer writes a claim of its own, then lists all claims, and goes on only if its claim is the only one and the file
is not there. A later writer sees the earlier claim, or the file; of two at the same time both may lose. This relies on
a listing that shows every file written before it.
"""

import time
from contextlib import suppress
from secrets import token_hex

from nddup.repository.places.place import CommitFiles

CLAIMED = 600
"""Seconds for which a claim counts; a running writer needs some milliseconds."""


def create_alone(files: CommitFiles, name: str, draft: str) -> None:
    """Rename a draft to its name, unless the name is taken or claimed; a killed writer's claim counts for `CLAIMED` s.

    Raises:
        FileExistsError: if the name is taken or claimed, or the claim of this writer became too old.
        OSError: if a file cannot be written.
    """
    prefix = f".{name.removesuffix('.json')}-"
    claim = f"{prefix}{token_hex(6)}.claim"
    began = time.monotonic()
    try:
        files.write_draft(claim, b"claimed")
        now = files.time_of(claim)  # by the clock of the place, like the times of the other claims
        for other in files.commits():
            if other.startswith(prefix) and other.endswith(".claim") and other != claim:
                with suppress(FileNotFoundError):
                    if now - files.time_of(other) < CLAIMED:
                        raise FileExistsError(other)
        is_late = time.monotonic() - began > CLAIMED / 2  # this process was suspended: others may ignore its claim
        if is_late or name in files.commits():  # looked up after the claims: a winner's claim outlives its rename
            raise FileExistsError(name)
        files.rename_draft(draft, name)
    finally:
        with suppress(OSError):
            files.remove_draft(claim)
