"""Find the file of a reference list, and detect its layout from its first lines."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from nddup.errors import ConfigError
from nddup.reading.reference_lists.layouts import (
    DELIMITERS,
    Kind,
    Layout,
    LayoutError,
    first_lines,
    guess_layout,
    split_fields,
)
from nddup.reading.streams import compression_of, expand_head
from nddup.scanning.input_files import InputFile, Listing

HEAD_BYTES = 1 << 18
"""Bytes at the start of the expanded file from which the layout is detected."""

MOST_COMMENTS = 5
"""Most lines that begin with `#` whose fields are looked for among the documents."""

RAW_BYTES = 4 * HEAD_BYTES
"""Bytes read at the start of the stored file: a block of bzip2, up to 900 kB, expands only as a whole."""


class Files(Protocol):
    """The operations that a command needs of a file system, this machine's or Hadoop's."""

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path is a folder or lies in it, by the places that links lead to."""

    def list_inputs(self, inputs: list[str]) -> Listing:
        """List the files of INPUT paths."""

    def look_in_tasks(self, inputs: list[str], files: Sequence[InputFile], look: Any) -> dict[str, Any]:  # noqa: ANN401 - its types come with all parsers
        """Look into files, as `nddup.scanning.collection` requires."""

    def read_head(self, path: str, size: int) -> bytes:
        """Read the first `size` bytes of a file."""

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Read `size` bytes of a file from `start`."""

    def write_text(self, path: str, text: str | Iterator[str]) -> None:
        """Write a UTF-8 file, whole or piece by piece."""


@dataclass(frozen=True)
class Reading:
    """How to read the lines of a list; None: as its first lines suggest.

    Attributes:
        kind: whether a line is a pair or a group.
        delimiter: a name of `reference_lists.DELIMITERS`.
        header: whether the first line names the columns.
        score: name or number of the score's column, or `none`.
    """

    kind: Kind | None = None
    delimiter: str | None = None
    header: bool | None = None
    score: str | None = None


class ReferenceFile(NamedTuple):
    """A file and how to read it: its URI, stored bytes, compression (empty: plain), layout of its lines."""

    path: str
    size: int
    compression: str
    layout: Layout


def open_reference(
    storage: Files, truth: str, reading: Reading, are_documents: Callable[[Sequence[str]], bool]
) -> ReferenceFile:
    """Find the file and detect its layout.

    Args:
        storage: the file system.
        truth: the path as the user gave it.
        reading: the parts of the layout that the user gave.
        are_documents: returns whether all of some ids are documents of the run.

    Raises:
        ConfigError: if there is no such file, it is a folder of several files, or its lines are not a list.

    Cost: reads the first `RAW_BYTES`.
    """
    if not storage.exists(truth):
        raise ConfigError(f"--truth {truth}: no such file")
    files = storage.list_inputs([truth]).files
    if len(files) != 1:
        raise ConfigError(f"--truth {truth}: expected one file, got a folder of {len(files)}")

    raw = storage.read_head(files[0].path, RAW_BYTES)
    text = expand_head(raw, HEAD_BYTES)
    lines = first_lines(text, is_whole=len(text) < HEAD_BYTES)
    try:
        layout = _tell_layout(lines, reading, header=reading.header)
        # An id may begin with the sign of a comment. If both fields are documents, such a line is an entry.
        has_comments = not any(are_documents(ids) for ids in _marked_ids(layout))
        if not has_comments:
            layout = _tell_layout(lines, reading, header=reading.header, has_comments=False)
        # An id may look like a column name. If both names are documents, the first line is an entry.
        if reading.header is None and layout.header and are_documents(layout.header[:2]):
            layout = _tell_layout(lines, reading, header=False, has_comments=has_comments)
    except LayoutError as error:
        raise ConfigError(f"--truth {truth}: {error}") from error
    return ReferenceFile(files[0].path, files[0].size, compression_of(raw), layout)


def _marked_ids(layout: Layout) -> Iterator[list[str]]:
    """Yield the first two fields of the first lines that were taken for comments, if they have two."""
    if layout.delimiter == "json":
        return
    marked = [line for line in layout.skipped if line.startswith("#")]
    for line in marked[:MOST_COMMENTS]:
        ids = split_fields(line, DELIMITERS[layout.delimiter])[:2]
        if len(ids) > 1 and all(ids):
            yield ids


def _tell_layout(lines: Sequence[str], reading: Reading, *, header: bool | None, has_comments: bool = True) -> Layout:
    options = {"kind": reading.kind, "delimiter": reading.delimiter, "score": reading.score}
    return guess_layout(lines, header=header, has_comments=has_comments, **options)  # type: ignore[arg-type]
