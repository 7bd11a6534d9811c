"""The verdicts on the records of one file, and the fields that a tagged record gets.

    Verdicts   for each record of a file, in order: whether it stays, what is cut from it, or its tags
    Reader     Verdicts -> one for each record met in the file
    Tags       the fields of a record by name: lists are in JSON where a format has no lists
    tag_json, tag_xml, tag_trec, tag_warc, tag_row    a record and its fields -> the tagged record

Without a value (`nddup_duplicate_of` of a kept document) there is no attribute, element or header field; a cell is
empty, a key null. None of these places is read as text, so tagging does not change the sketch of a record.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.ground.shown import as_text
from nddup.reading.csv_rows import Dialect
from nddup.reading.formats import FileHead
from nddup.reading.xml_records import wrapper_of
from nddup.rewriting.cut_records import Cuts, Cutting

NAMES: Final = ("nddup_kept", "nddup_duplicate_of", "nddup_cluster", "nddup_copies")
"""The names of the fields in a tagged record; in XML the prefix is a namespace prefix."""

SCHEMA: Final = pa.schema(
    [(NAMES[0], pa.bool_()), (NAMES[1], pa.string()), (NAMES[2], pa.string()), (NAMES[3], pa.int64())]
)
"""The fields as columns; all are null for a record that is no document."""

WEIGHT: Final = "nddup_weight"
"""The name of the field with the times that a kept document counts in training (`output.weights`)."""

SPANS: Final = pa.schema({
    "nddup_passages": pa.list_(pa.struct({
        "passage_id": pa.string(), "char": pa.int32(), "char_end": pa.int32(), "first": pa.bool_()
    })),
    "nddup_cuts": pa.list_(pa.struct({"char": pa.int32(), "char_end": pa.int32()})),
})  # fmt: skip
"""The fields of a record in which passages are repeated, as columns: each occurrence of a passage, and what may be cut,
in characters of its text, in order; null for a record that is no document."""

BLOCK: Final = 10_000
"""Records whose tags are converted to Python objects at a time."""


class RewriteError(Exception):
    """A file cannot be rewritten as requested; the message says why, in one line."""


class Tags(NamedTuple):
    """The fields that are added to a record: their names, such as `NAMES`, and values, None where there is none."""

    names: tuple[str, ...]
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on the n records and rejects of a file, in file order.

    Attributes:
        count: n.
        stays: (n,), whether each is written; None: all are.
        tags: n rows with the fields that are added; None if nothing is tagged.
        has_tags: (n,), whether each is a document and gets them; None if all are.
        may_go_on: whether the file may have more records, which are left out (`input.limit`).
        may_be_empty: whether the one verdict may be on a file without a record.
        cuts: n lists of runs of characters, null where nothing is cut; None if nothing is cut at all.
        cutting: how the texts were read of which something is cut.
    """

    count: int
    stays: NDArray[np.bool_] | None = None
    tags: pa.Table | None = None
    has_tags: NDArray[np.bool_] | None = None
    may_go_on: bool = False
    may_be_empty: bool = False
    cuts: pa.ChunkedArray | None = None
    cutting: Cutting = field(default_factory=lambda: Cutting(""))

    @property
    def names(self) -> list[str]:
        """The names of the fields that are added; none if nothing is tagged."""
        return [] if self.tags is None else list(self.tags.column_names)

    @property
    def is_tagging(self) -> bool:
        """Whether every record is written, with its tags."""
        return self.tags is not None and self.stays is None

    def each(self) -> Iterator[bool | Cuts | Tags | None]:
        """Yield, per record, whether it stays, or what is cut from it.

        When tagging, yield its tags, or None for a record to leave as it is.
        """
        stays = self.stays if self.stays is not None else np.ones(self.count, np.bool_)
        if self.tags is None:
            for low in range(0, self.count, BLOCK):
                flags = stays[low : low + BLOCK].tolist()
                for at, runs in enumerate([] if self.cuts is None else self.cuts.slice(low, BLOCK).to_pylist()):
                    if flags[at] and runs:
                        flags[at] = Cuts(tuple((run["char"], run["char_end"]) for run in runs))
                yield from flags
            return
        names, has_tags = tuple(self.names), np.ones(self.count, np.bool_) if self.has_tags is None else self.has_tags
        for low in range(0, self.count, BLOCK):
            columns = (column.to_pylist() for column in self.tags.slice(low, BLOCK).columns)
            flags = (of[low : low + BLOCK].tolist() for of in (stays, has_tags))
            for is_written, is_tagged, *row in zip(*flags, *columns, strict=True):
                yield is_written and (Tags(names, tuple(row)) if is_tagged else None)


class Reader:
    """Gives the verdicts in order, one for each record met in the file."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._each = verdicts.each()
        self._may_go_on = verdicts.may_go_on
        self._may_be_empty = verdicts.may_be_empty
        self.cutting = verdicts.cutting
        self.met = 0
        self.is_over = False

    def next(self) -> bool | Cuts | Tags | None:
        """Return the verdict on the next record; False after the last one, if the file may go on.

        Raises:
            RewriteError: if the file has more records than verdicts, and may not go on.
        """
        verdict = next(self._each, self)
        if isinstance(verdict, Reader):
            if not self._may_go_on:
                raise RewriteError(f"it has more than the {self.met:,} records of the run; the input changed meanwhile")
            self.is_over = True
            return False
        self.met += 1
        return verdict

    def require_all(self, count: int) -> None:
        """Raise RewriteError if fewer than `count` records were met."""
        if self.met != count and not (self._may_be_empty and self.met == 0):
            raise RewriteError(f"it has {self.met:,} of the {count:,} records of the run; the input changed meanwhile")


NAMESPACE = "urn:nddup:tags"
AGAIN = "a record has nddup tags already; take them out, or tag the collection they were made from"

UNKNOWN = "\ufffd"
"""Replaces a character that XML does not allow."""

_DOCNO = re.compile(rb"</DOCNO\s*+>", re.IGNORECASE)
_START_TAG = re.compile(rb"<[^<>]*>")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def spelled(tags: Tags) -> list[tuple[str, str]]:
    """Return the fields that have a value, as text.

    Example:
        >>> spelled(Tags(NAMES, (True, None, None, 2)))
        [('nddup_kept', 'true'), ('nddup_copies', '2')]
    """
    return [(name, as_text(value)) for name, value in zip(*tags, strict=True) if value is not None]


def tag_json(line: bytes, tags: Tags, encoding: str) -> bytes:
    """Return a line of JSON with the fields as its last keys; bytes that cannot be decoded stay as they are.

    The keys `nddup_kept` … come before the brace that ends the object; null where there is no value.

    Raises:
        RewriteError: if it has them already.
    """
    if any(f'"{name}"'.encode(encoding) in line for name in tags.names):
        raise RewriteError(AGAIN)
    brace = "}".encode(encoding)
    end = line.rindex(brace)
    while end % len(brace):  # between two characters of UTF-16
        end = line.rindex(brace, 0, end + len(brace) - 1)
    members = json.dumps(dict(zip(*tags, strict=True)), ensure_ascii=not encoding.startswith("utf"))
    return line[:end] + f", {members[1:-1]}".encode(encoding) + line[end:]


def tag_xml(record: bytes, tags: Tags, head: FileHead) -> bytes:
    """Return a record with the fields as the last attributes of its start tag.

    They are `nddup:kept` …, in the namespace `urn:nddup:tags`.

    Args:
        record: bytes that start with a start tag, in an encoding readable as ASCII.

    Raises:
        RewriteError: if it has the fields already, or a start tag that cannot be tagged.
    """
    match = wrapper_of(head.tag, head.namespaces).open_tag.match(record)
    if match is None:
        raise RewriteError("a record has a start tag that cannot be tagged")
    if NAMESPACE.encode() in match[0]:
        raise RewriteError(AGAIN)
    inserted = spell_attributes(tags).encode(head.encoding, "xmlcharrefreplace")
    end = match.end() - match[0].endswith(b"/")
    return record[:end] + inserted + record[end:]


def spell_attributes(tags: Tags) -> str:
    """Return the fields as attributes of XML, each after a blank."""
    fields = "".join(f" nddup:{name[6:]}={quoteattr(_NOT_XML.sub(UNKNOWN, value))}" for name, value in spelled(tags))
    return f' xmlns:nddup="{NAMESPACE}"{fields}'


def tag_trec(record: bytes, tags: Tags, encoding: str) -> bytes:
    """Return a record with the fields as elements, a line each.

    They are `<nddup_kept>` …, after the DOCNO, else after the start tag.

    Raises:
        RewriteError: if it has them already.
    """
    if any(f"<{name}>".encode() in record for name in tags.names):
        raise RewriteError(AGAIN)
    match = _DOCNO.search(record) or _START_TAG.match(record)
    end = match.end() if match else 0
    lines = "".join(f"\n<{name}>{escape(value)}</{name}>" for name, value in spelled(tags))
    return record[:end] + lines.encode(encoding, "xmlcharrefreplace") + record[end:]


def tag_warc(header: bytes, tags: Tags) -> bytes:
    """Return the header of a record, which includes its blank line, with the fields added after the others.

    They are `nddup_kept: true` ….

    Raises:
        RewriteError: if it has them already, or is that of an ARC file.
    """
    if not header.startswith(b"WARC/"):
        raise RewriteError("a record of an ARC file has no place for tags")
    if any(b"\n%s:" % name.encode() in header for name in tags.names):
        raise RewriteError(AGAIN)
    end = b"\r\n" if header.endswith(b"\r\n") else b"\n"
    lines = b"".join(f"{name}: {value}".encode() + end for name, value in spelled(tags))
    return header[: -len(end)] + lines + end


def tag_row(tags: Tags | None, dialect: Dialect, count: int = len(NAMES)) -> str:
    r"""Return the `count` cells to append to a row of CSV, each after a delimiter; empty cells without tags.

    Example:
        >>> tag_row(Tags(NAMES, (False, 'a,b', None, None)), Dialect(",")), tag_row(None, Dialect(","))
        (',false,"a,b",,', ',,,,')
    """
    cells = [""] * count
    if tags is not None:
        cells = ["" if value is None else as_text(value) for value in tags.values]
    return dialect.delimiter + dialect.write(cells) if cells else ""
