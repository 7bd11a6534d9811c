"""Folders of runs with one or two tables."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from nddup.storage.local_folder import LocalFolder
from nddup.tables import KEEP, table_called

INPUTS: dict[str, Any] = {"paths": ["a.xml"], "files": {"a.xml": [10, 1]}}

ONE_KEPT = pa.Table.from_pylist([{"doc_id": "a", "kept": True, "leader": False}], KEEP.arrow)
"""KEEP of one document."""


def started(path: Path, inputs: dict[str, Any] | None = None) -> LocalFolder:
    """Return a folder that a run has started; its claim is released, as if its process had ended."""
    folder = LocalFolder(str(path))
    folder.start(settings={}, inputs=inputs or INPUTS, overwrite=False)
    folder.__exit__()
    return folder


def names(path: Path) -> set[str]:
    """Return the names in a folder, without hidden files."""
    return {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}


def save(folder: LocalFolder, name: str, reads: list[str], table: pa.Table | None = None, **settings: int) -> None:
    """Write and seal a table, without rows if none is given."""
    assert folder.note(name, settings=settings, reads=reads) is None
    folder.write(name, table_called(name).arrow.empty_table() if table is None else table)
    folder.seal(name, settings=settings, reads=reads, counted={"rows": {name: 1}})


def fingerprints(folder: LocalFolder, **settings: int) -> list[str]:
    """Return the fingerprints of a table with these settings, and of a table made from it."""
    save(folder, "keep", ["input"], **settings)
    save(folder, "members", ["keep"])
    notes = (Path(folder.path) / "_stages" / f"{name}.json" for name in ("keep", "members"))
    return [json.loads(note.read_text())["fingerprint"] for note in notes]
