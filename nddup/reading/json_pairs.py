"""Files for the bulk interface of Elasticsearch and OpenSearch: a line that says what to do, and one with the document.

    is_paired     first bytes of a file -> whether it is such a file
    paired_rows   its first lines       -> lines of JSON, an object for each document
    join_pairs    chunks of a line each -> chunks of both lines
    split_pair    such a chunk          -> the Action, and the line with the document

A document is read with the fields of its action that begin with `_`, such as `_id`; that of an `update` lies under
`doc`. A `delete` has no second line. Source: the Bulk API of both.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from nddup.reading.outcomes import Reject
from nddup.reading.streams import Chunk, Part

UPDATED = "doc."
"""What comes before the fields of a document in an update."""

_ACTION = re.compile(rb'(?:\xef\xbb\xbf)?\s*+\{\s*+"(?:index|create|update|delete)"\s*+:\s*+\{')
_BLANKS = b" \t\r\n\0"
_ROWS = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)


class Action(NamedTuple):
    """What is done with a document, and the fields of it that the action has."""

    name: str
    fields: dict[str, Any]


NO_ACTION = Action("", {})


def action_of(line: bytes) -> Action:
    """Return the action of a line; NO_ACTION for any other line.

    Example:
        >>> action_of(b'{"index": {"_id": 7, "routing": "a"}}'), action_of(b'{"index": {"text": "a"}}').name
        (Action(name='index', fields={'_id': '7'}), '')
    """
    if not _ACTION.match(line):
        return NO_ACTION
    try:
        row = _ROWS.decode(line.decode("utf-8-sig").strip("\0"))
    except (ValueError, RecursionError):
        return NO_ACTION
    [(name, given), *others] = row.items()
    fields = {key: value for key, value in given.items() if key.startswith("_")} if isinstance(given, dict) else {}
    return Action(name, fields) if not others and (fields or given == {}) else NO_ACTION


def is_paired(start: bytes) -> bool:
    """Return whether a file begins with an action."""
    return action_of(start.lstrip().partition(b"\n")[0]) is not NO_ACTION


def paired_rows(start: bytes, encoding: str) -> list[str]:
    """Return an object for each document at the start of a file, with the fields of its action."""
    rows = []
    for chunk in join_pairs(Chunk(line, is_last=False) for line in start.split(b"\n")):
        action, line = split_pair(chunk.value) if isinstance(chunk, Chunk) else (NO_ACTION, b"")
        try:
            row = _ROWS.decode(line.decode(encoding, "replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            inner = row.get(UPDATED.rstrip(".")) if action.name == "update" else None
            rows.append(json.dumps((inner if isinstance(inner, dict) else row) | action.fields))
    return rows


def join_pairs(pieces: Iterable[Chunk | Part | Reject]) -> Iterator[Chunk | Part | Reject]:
    """Yield the same bytes in the same order; an action and the document after it are one chunk, with its line end."""
    before: list[bytes] = []  # an action, and blank lines after it
    for piece in pieces:
        if isinstance(piece, Reject):
            if before:
                yield Chunk(b"\n".join(before), is_last=False)
            before = []
            yield piece
        elif before:
            before.append(piece.value)
            if piece.is_last or piece.value.strip(_BLANKS):
                yield piece._replace(value=b"\n".join(before))
                before = []
        elif isinstance(piece, Chunk) and not piece.is_last and action_of(piece.value).name not in ("", "delete"):
            before = [piece.value]
        else:
            yield piece
    if before:
        yield Chunk(b"\n".join(before), is_last=False)


def split_pair(chunk: bytes) -> tuple[Action, bytes]:
    r"""Return the action in a chunk of `join_pairs`, and the line with the document; empty if there is none.

    Example:
        >>> split_pair(b'{"create": {}}\n{"text": "a"}'), split_pair(b'{"delete": {"_id": "1"}}')[1]
        ((Action(name='create', fields={}), b'{"text": "a"}'), b'')
    """
    first, _, line = chunk.rpartition(b"\n")
    if first:
        return action_of(first.strip()), line
    action = action_of(chunk)
    return (NO_ACTION, chunk) if action is NO_ACTION else (action, b"")
