"""Why a command failed over a run folder that somebody else wrote: a value in its tables that no run writes."""

import argparse

from nddup.commands.in_buckets import READ
from nddup.errors import OutputError
from nddup.scanning.input_files import RUN
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import LocalStorage
from nddup.tables import RESULTS


def find_unsound(options: argparse.Namespace) -> OutputError | None:
    """Return the first fault in the tables of the runs that a command read; None if there is none.

    Tables are not read for this before a command: a pass over all would cost more than most questions.

    Cost: a pass over the tables, each in memory.
    """
    named = [getattr(options, name, None) or [] for name in READ]
    for path in (path for value in named for path in ([value] if isinstance(value, str) else value)):
        storage = LocalStorage()
        if not storage.exists(f"{path}/{RUN}"):
            continue
        folder = LocalFolder(path)
        for name in RESULTS:
            if not storage.exists(folder.place(name)):
                continue
            try:
                folder.read_sound(name)
            except OutputError as fault:
                return fault
    return None
