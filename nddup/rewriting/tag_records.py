r"""Add the four fields of a tagged record, in each format.

    JSON lines    keys `nddup_kept` …, before the brace that ends the object; null where there is no value
    XML           attributes `nddup:kept` … of the record element, in the namespace `urn:nddup:tags`
    TREC          elements `<nddup_kept>` …, a line each, after the DOCNO, else after the start tag
    WARC          header fields `nddup_kept: true` …, after the others
    CSV           four columns after the others
    Parquet       four columns after the others

Without a value (`nddup_duplicate_of` of a kept document) there is no attribute, element or header field; a cell is
empty. None of these places is read as text, so tagging does not change the sketch of a record.
"""

import json
import re
from xml.sax.saxutils import escape, quoteattr

from nddup.reading.csv_dialects import Dialect
from nddup.reading.formats import FileHead
from nddup.reading.xml_parsing import wrapper_of
from nddup.rewriting.verdicts import NAMES, RewriteError, Tags

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
        >>> spelled(Tags(True, None, None, 2))
        [('nddup_kept', 'true'), ('nddup_copies', '2')]
    """
    values = (str(tags.kept).lower(), *tags[1:])
    return [(name, str(value)) for name, value in zip(NAMES, values, strict=True) if value is not None]


def tag_json(line: bytes, tags: Tags, encoding: str) -> bytes:
    """Return a line of JSON with the fields as its last keys; bytes that cannot be decoded stay as they are.

    Raises:
        RewriteError: if it has them already.
    """
    if f'"{NAMES[0]}"'.encode(encoding) in line:
        raise RewriteError(AGAIN)
    brace = "}".encode(encoding)
    end = line.rindex(brace)
    while end % len(brace):  # between two characters of UTF-16
        end = line.rindex(brace, 0, end + len(brace) - 1)
    fields = json.dumps(dict(zip(NAMES, tags, strict=True)), ensure_ascii=not encoding.startswith("utf"))
    return line[:end] + f", {fields[1:-1]}".encode(encoding) + line[end:]


def tag_xml(record: bytes, tags: Tags, head: FileHead) -> bytes:
    """Return a record with the fields as the last attributes of its start tag.

    Args:
        record: bytes that start with a start tag, in an encoding readable as ASCII.
        tags: the fields.
        head: the head of the file.

    Raises:
        RewriteError: if it has the fields already, or a start tag that cannot be tagged.
    """
    found = wrapper_of(head.tag, head.namespaces).open_tag.match(record)
    if found is None:
        raise RewriteError("a record has a start tag that cannot be tagged")
    if NAMESPACE.encode() in found[0]:
        raise RewriteError(AGAIN)
    fields = "".join(f" nddup:{name[6:]}={quoteattr(_NOT_XML.sub(UNKNOWN, value))}" for name, value in spelled(tags))
    inserted = f' xmlns:nddup="{NAMESPACE}"{fields}'.encode(head.encoding, "xmlcharrefreplace")
    end = found.end() - found[0].endswith(b"/")
    return record[:end] + inserted + record[end:]


def tag_trec(record: bytes, tags: Tags, encoding: str) -> bytes:
    """Return a record with the fields as elements, a line each.

    Raises:
        RewriteError: if it has them already.
    """
    if f"<{NAMES[0]}>".encode() in record:
        raise RewriteError(AGAIN)
    found = _DOCNO.search(record) or _START_TAG.match(record)
    end = found.end() if found else 0
    lines = "".join(f"\n<{name}>{escape(value)}</{name}>" for name, value in spelled(tags))
    return record[:end] + lines.encode(encoding, "xmlcharrefreplace") + record[end:]


def tag_warc(header: bytes, tags: Tags) -> bytes:
    """Return the header of a record, which includes its blank line, with the fields added after the others.

    Raises:
        RewriteError: if it has them already.
    """
    if b"\n%s:" % NAMES[0].encode() in header:
        raise RewriteError(AGAIN)
    end = b"\r\n" if header.endswith(b"\r\n") else b"\n"
    lines = b"".join(f"{name}: {value}".encode() + end for name, value in spelled(tags))
    return header[: -len(end)] + lines + end


def tag_row(tags: Tags | None, dialect: Dialect) -> str:
    r"""Return the four cells to append to a row of CSV, each after a delimiter; empty cells without tags.

    Example:
        >>> tag_row(Tags(False, 'a,b', None, None), Dialect(",")), tag_row(None, Dialect(","))
        (',false,"a,b",,', ',,,,')
    """
    cells = ["", "", "", ""]
    if tags is not None:
        cells = ["" if value is None else str(value) for value in (str(tags.kept).lower(), *tags[1:])]
    return dialect.delimiter + dialect.write(cells)
