"""Inputs with a name: the files of a batch are called `NAME/…`, as if a folder that holds the batches were read.

Batch            a name, and INPUT paths
list_batches     batches  -> Listing: the files of all, under the names of their batches
name_fault       a name   -> what is wrong with it
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from nddup.scanning.input_files import InputFile, Listing, why_skipped


class Batch(NamedTuple):
    """INPUT paths, and the name of their batch; "" for none."""

    name: str
    paths: tuple[str, ...]


class Lists(Protocol):
    """What lists the files at and below INPUT paths."""

    def list_inputs(self, inputs: list[str]) -> Listing:
        """As of `nddup.scanning.collection.Files`."""


def list_batches(files: Lists, batches: Iterable[Batch]) -> Listing:
    """List the files of batches, sorted by source; a path that is skipped or given twice keeps its own name.

    Raises:
        ConfigError: as `list_inputs`.
    """
    listings = [(batch.name, files.list_inputs(list(batch.paths))) for batch in batches]
    named = [_under(name, file) for name, listing in listings for file in listing.files]
    named.sort(key=lambda file: file.source.encode())
    skipped = (why for _, listing in listings for why in listing.skipped)
    return Listing(tuple(named), tuple(skipped), tuple(path for _, listing in listings for path in listing.repeated))


def _under(name: str, file: InputFile) -> InputFile:
    return replace(file, source=f"{name}/{file.source}") if name else file


def name_fault(name: str) -> str | None:
    """Return why a batch cannot have a name; None if it can.

    Example:
        >>> name_fault("2026-11-27"), name_fault("a/b")
        (None, 'expected the name of one folder, without /')
    """
    if not name or "/" in name or name in (".", ".."):
        return "expected the name of one folder, without /"
    if not name.isprintable():
        return "expected printable characters"
    if why_skipped(name, is_folder=True):
        return "a folder of this name would be skipped; leave out the _ or . at its start"
    return None


def paths_of_batches(batches: Sequence[Batch]) -> list[str]:
    """Return the INPUT paths of all batches."""
    return [path for batch in batches for path in batch.paths]
