"""The texts of a chat: a list of turns, each the text of one side.

    CHAT_NAMES   usual names of a field that holds a chat
    texts_of     a value -> its texts: a string, a list of strings, or a chat
    left_of      a value -> the parts of a chat that are no text
    with_texts   a value, new texts -> the value with these
    holds_texts  the type of a column -> whether its values are such lists
    chats_of     a schema -> the columns that hold a chat

Who speaks is not part of the text: `user` and `assistant` would be words of every chat, and the same chat is stored
with other names (`human`, `gpt`).
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Final

import pyarrow as pa

from nddup.reading.outcomes import Unread, Value, unread_of

CHAT_NAMES: Final = ("messages", "conversations", "conversation")
TURNS: Final = (
    ("role", "content"), ("from", "value"), ("type", "content"), ("type", "text"), ("section", "text"),
)  # fmt: skip
"""The keys of a turn: the speaker, and the text; the kind, of parts of an article (TREC) or a message (Telegram); or
the section of a paragraph (CORD-19)."""

LISTS: Final = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)
UNREAD: Final = (
    "tool_calls", "function_call", "reasoning_content", "reasoning", "thinking", "refusal", "images", "videos",
    "audios", "audio",
)  # fmt: skip
"""The keys of a turn that hold more of what is said in it, and are not read."""


def said_in(value: object) -> str | None:
    """Return the key of the text, if a value is a turn; one that only calls tools may lack that key."""
    keys = value.keys() if isinstance(value, Mapping) else frozenset[str]()
    named = [key for who, key in TURNS if who in keys]
    return next((key for key in named if key in keys), named[0] if named and not keys.isdisjoint(UNREAD) else None)


def texts_of(value: object) -> list[str]:
    """Return the texts of a value, in order; empty if it holds none.

    Example:
        >>> texts_of("a"), texts_of(["a", "b"]), texts_of([{"role": "user", "content": "a"}]), texts_of([1])
        (['a'], ['a', 'b'], ['a'], [])
    """
    texts = []
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str):
            texts.append(one)
        elif isinstance(one, Mapping) and (key := said_in(one)):
            texts += [text for part in _parts(one.get(key)) if (text := _text(part)) is not None]
    return texts


def with_texts(value: object, new: Iterator[Value | None]) -> object:
    """Return a value with new texts in place of those of `texts_of` that are not empty; None where one stays.

    Example:
        >>> with_texts([{"role": "user", "content": ["a", ""]}, "b"], iter(["c", None]))
        [{'role': 'user', 'content': ['c', '']}, 'b']
    """
    return [_with_said(one, new) for one in value] if isinstance(value, list) else _with_said(value, new)


def _with_said(one: object, new: Iterator[Value | None]) -> object:
    key = said_in(one)
    if isinstance(one, str):
        return _with_text(one, new)
    if not isinstance(one, Mapping) or key not in one:
        return one
    content = one[key]
    changed = [_with_text(part, new) for part in content] if isinstance(content, list) else _with_text(content, new)
    return {**one, key: changed}


def _with_text(part: object, new: Iterator[Value | None]) -> object:
    text = _text(part)
    changed = next(new) if text else None
    if changed is None:
        return part
    return {**part, "text": changed} if isinstance(part, Mapping) else changed


def is_chat(value: object) -> bool:
    """Return whether a value is a list of turns with a text.

    A turn is an object of `role` and `content`, or the like (`TURNS`). Its content is a string, or a list of parts, of
    which those with a `text` are read; pictures, other parts, calls of tools and what else stands under UNREAD are left
    unread, and counted.
    """
    return isinstance(value, list) and all(map(said_in, value)) and bool(texts_of(value))


def left_of(value: object) -> list[object]:
    """Return the parts of a value that hold no text of it: parts of turns, and all of it, if it holds what is no turn.

    All of it is an iterator of what it holds: a list may be long.

    Example:
        >>> left_of([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}])
        [{'type': 'image'}]
        >>> len(left_of([{"text": "a"}, "b"])), left_of("a")
        (1, [])
    """
    ones = value if isinstance(value, list) else [value]
    is_other = any(one and isinstance(one, Mapping | list) and not said_in(one) for one in ones)
    turns = [(one, key) for one in ones if isinstance(one, Mapping) and (key := said_in(one))]
    parts = [part for turn, key in turns for part in _parts(turn.get(key)) if part is not None and _text(part) is None]
    return [iter(ones)] * is_other + parts + [turn[name] for turn, _ in turns for name in UNREAD if turn.get(name)]


def unread_parts(left: list[object], lost: bytes = b"") -> Unread:
    """Return what is unread of a record: the parts of `left_of`, and bytes that are counted elsewhere."""
    if not left:
        return unread_of(lost)
    digest, size = blake2b(lost, digest_size=16), 0
    for one in (one for part in left for one in (part if isinstance(part, Iterator) else [part])):
        data = json.dumps(one, sort_keys=True, default=str).encode()
        digest.update(b"\0" + data)
        size += len(data)
    return Unread(size, len(left), digest.digest())


def _parts(content: object) -> list[object]:
    return content if isinstance(content, list) else [content]


def _text(part: object) -> str | None:
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else None


def holds_texts(kind: pa.DataType, *, only_chats: bool = False) -> bool:
    """Return whether the values of a column are lists of strings or chats.

    Example:
        >>> turn = pa.struct({"role": pa.string(), "content": pa.string()})
        >>> holds_texts(pa.list_(turn)), holds_texts(pa.list_(pa.int64())), holds_texts(pa.list_(pa.string()))
        (True, False, True)
    """
    if not isinstance(kind, LISTS):
        return False
    of = kind.value_type
    if pa.types.is_struct(of):
        names = {of.field(at).name for at in range(of.num_fields)}
        return any({who, key} <= names for who, key in TURNS)
    return not only_chats and (pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of))


def chats_of(schema: pa.Schema) -> list[str]:
    """Return the names of the columns that hold a chat."""
    return [field.name for field in schema if holds_texts(field.type, only_chats=True)]
