"""What may be given to a repository, to add or to ask about, as the embedded engine reads it."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from nddup.local.reading.given_texts import number_texts
from nddup.run.limits import require_readable
from nddup.scanning.collection import Collection, find_files
from nddup.settings.schema import Config
from nddup.storage.local_storage import LocalStorage

Inputs: TypeAlias = Sequence[str] | Mapping[str, str] | pa.Table
"""Paths of files and folders; texts by id; or an Arrow table of `id` and `text`."""


def find_source(inputs: Inputs, config: Config) -> Collection | pa.Table:
    """Inputs as the embedded engine reads them.

    Raises:
        ConfigError: if one is missing.
        NddupError: if more files than `input.max_unreadable` cannot be read.
    """
    if isinstance(inputs, pa.Table):
        return number_texts(inputs, id="id", text="text")
    if isinstance(inputs, Mapping):
        columns = [pa.array(inputs.keys(), pa.string()), pa.array(inputs.values(), pa.string())]
        return number_texts(pa.Table.from_arrays(columns, names=["id", "text"]), id="id", text="text")
    found = find_files(LocalStorage(), list(inputs), config.input)
    require_readable(found.unread, config.input.max_unreadable)
    return found
