"""Parse one line of a JSON lines file into a record or a reject."""

import json
import re
from typing import Any

from nddup.reading.formats import FieldKind, FileHead, split_field
from nddup.reading.outcomes import Record, Reject, Value, declared_value, excerpt, make_record, plain_text

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)  # `json.loads` would make one per call
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json(chunk: bytes, head: FileHead) -> Record | Reject | None:
    """Read one line. Numbers are kept as written, so that an id such as 7.50 or 10^400 is not changed.

    Returns:
        The record; a reject `malformed`, `no content`, `bad base64` or `id too long`; None for a blank line. Never
        raises.
    """
    if not chunk.strip(b" \t\r\n\0"):
        return None

    start = excerpt(chunk, head.encoding)
    try:
        row = _decode(chunk, head.encoding)
    except (ValueError, RecursionError) as error:  # a UnicodeDecodeError is a ValueError
        return Reject("malformed", str(error), start)
    if not isinstance(row, dict):
        return Reject("malformed", f"expected an object, got {type(row).__name__}", start)

    declared = head.format
    doc_id, url = (_first(row, path) for path in (declared.id, declared.url))
    fields: list[tuple[Value, bool | None]] = []
    for path in declared.content:
        kind, texts = _texts(row, path)
        for text in texts:
            value = declared_value(text, kind, declared.is_markup)
            if value is None:
                return Reject("bad base64", f"in {path}", start, doc_id)
            fields.append(value)
    if not fields:
        return Reject("no content", f"no text at {' or '.join(declared.content)}", start, doc_id)
    policy = tuple(_scalar(_reach(row, path)) for path in declared.policy)
    return make_record(doc_id, url, fields, start=start, policy=policy)


def _decode(chunk: bytes, encoding: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Decode the JSON value in a line. Raises ValueError or RecursionError for anything else."""
    line = chunk.decode(encoding).lstrip("\ufeff")
    row = _DECODER.decode(line)
    may_be_half = "\\u" in line and ("\\ud" in line or "\\uD" in line)  # a lone surrogate can only come from an escape
    return _without_surrogates(row) if may_be_half else row


def _first(row: dict[str, Any], path: str | None) -> str | None:
    """Return the first string at a path, stripped; None if there is none or it is empty."""
    kind, texts = _texts(row, path) if path else ("auto", [])
    value = declared_value(texts[0], kind, None) if texts else None
    return (plain_text(value[0]).strip() or None) if value else None


def _texts(row: dict[str, Any], path: str) -> tuple[FieldKind, list[str]]:
    """Return the kind of a field, and its strings (numbers as written) at the first alternative that is not empty."""
    if path in row:  # an existing key is taken literally, even if it looks like a path
        return "auto", _strings(row[path])

    kind, alternatives = split_field(path)
    found = [texts for texts in (_strings(_reach(row, keys)) for keys in alternatives) if texts]
    return kind, next((texts for texts in found if any(text.strip() for text in texts)), found[0] if found else [])


def _reach(row: dict[str, Any], path: str) -> object:
    """Return the value at a key or a dotted path; None if there is none."""
    value: Any = row
    for key in [path] if path in row else path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _scalar(value: object) -> str | None:
    """Return a string, a number as written, `true` or `false`; None for anything else."""
    return str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else None


def _strings(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def _without_surrogates(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return the value with each lone surrogate in it replaced by U+FFFD."""
    if isinstance(value, list):
        return [_without_surrogates(one) for one in value]
    if isinstance(value, dict):
        return {key: _without_surrogates(one) for key, one in value.items()}
    if not isinstance(value, str) or value.isascii():  # `isascii` costs nothing
        return value
    try:
        value.encode()  # a fifth of the time of a regex search that finds nothing
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", value)
    return value
