"""E-mail: a message in a file, or many in one (mbox) -> records. Python's parser finds the parts of a message.

    read_mail         stream -> records
    read_message      bytes of one message, from `cut_mail` -> its record, then those of messages inside it
    count_messages    the same -> how many

The id is the Message-ID. The text is the subject and every part that is text, in order; of a part in several forms the
plain one, or the page where that says much more. A part that is not read is a line `attachment: name`, is counted, and
its digest is part of the content's fingerprint. Charsets are those of `charsets`, as for pages.

Sources: RFC 5322 (messages), RFC 2045 to 2047 and 2231 (MIME), RFC 4155 (mbox).
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.message import Message
from email.parser import BytesParser
from email.policy import Compat32
from email.utils import parsedate_to_datetime
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from nddup.ground.shown import clean_id
from nddup.reading.charsets import canonical_charset, decode_content, find_encoding
from nddup.reading.decoding import EACH_BYTE, take_marks
from nddup.reading.mail_cutting import COUNTED, EXCERPT_BYTES, LEAD, cut_mail
from nddup.reading.mail_parts import (
    PAGE_TYPES,
    SIGNED_TYPES,
    STYLE_TYPES,
    SentFile,
    data_of,
    is_base64,
    is_quoted,
    is_text,
    join_lines,
    raw_of,
    signed_part,
    take_bytes,
    take_files,
    unquote,
)
from nddup.reading.markup import strip_markup
from nddup.reading.outcomes import EXCERPT_LENGTH, Record, Reject, Unread, decode_base64, excerpt, make_record
from nddup.reading.records import content_fingerprint
from nddup.reading.streams import Expanded

MAX_PARTS = 1_000
"""Parts of a message that are read; further ones are counted as unread."""

MAX_NAMED = 100
"""Attachments of a message that are named in its text."""

MAX_BOUNDARIES = 20_000
"""Lines of a message that may be boundaries between parts; a message with more is read as one text."""

MAX_DEPTH = 50
"""Messages inside each other that are records; deeper ones are unread parts."""

MAX_PARAMETERS = 8_192
"""Characters of a field that describes a part: Python's parser of its parameters takes quadratic time."""

MAX_SUBJECT = 16_384
"""Characters of a subject that are read; the rest is counted as unread."""

MAX_WORDS = 100
"""Encoded words of a subject or a name that are decoded; further ones stay as they are written."""

_MAY_HOLD = re.compile(rb"message/|multipart/digest", re.IGNORECASE)
"""In every message that holds another, as the type of a part; parts of a digest are messages without saying so."""

_NOTICE = re.compile(rb".{0,80}\bmulti-?part\b.{0,60}\b(?:MIME|format)\b.{0,200}", re.DOTALL | re.IGNORECASE)
"""Sentences that programs write before the first part, for readers that know no parts."""

_BOUNDARY = re.compile(
    rb"^--([^\r\n]{1,200}?)[ \t]*\r?\n(?=Content-[A-Za-z-]{1,40}[ \t]*:)", re.MULTILINE | re.IGNORECASE
)
"""A line between parts, by the field after it."""

MAX_DIVIDED = 20
"""Parts of a message that are divided at another boundary than they name: each costs a copy of what is in it."""

_DOUBLED = re.compile(rb"[^\r\n]*+\r\r\n")
"""A first line whose end was written twice as that of a text, as by FTP: all ends would be two lines."""

_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_WORD = re.compile(
    r"=\?([^?\s*]{1,60})(?:\*[^?\s]{0,60})?\?"
    r"(?:([bB])\?([^?]*)|([qQ])\?((?:(?!=\?[^?\s]{1,120}\?[bBqQ]\?).){0,2000}?))\?=",
    re.DOTALL,
)
"""An encoded word. Some programs leave blanks and question marks in it, which every reader shows as they are."""

_BETWEEN_WORDS = re.compile(r"(\?=)\s+(?==\?[^?\s]{1,120}\?[bBqQ]\?)")
_IN_BRACKETS = re.compile(r"<([^<>]+)>")
_FOLD = re.compile(r"[\r\n]+")
_ENCODING = re.compile(r"[\s\"']*([\w-]+)")
_MISSING = re.compile(r"^(\s*[\w.+-]+/[\w.+-]+)(?=\s+[\w*]+=)")
"""A type without a semicolon before its first parameter, which Python takes for text/plain."""
_HEX = re.compile(rb"=([0-9A-Fa-f]{2})")
_NOT_QUOTED = re.compile(r"=(?![0-9A-Fa-f]{2}|\s*$)", re.MULTILINE)
_TOKEN = re.compile(r"\w+")
_NO_CHARSET: Final = frozenset(
    {"us-ascii", "ascii", "ansi_x3.4-1968", "unknown-8bit", "x-unknown", "unknown", "default", "binary", "8bit", "7bit"}
)
"""Labels that say nothing of bytes beyond ASCII."""

_UTF_7: Final = frozenset({"utf-7", "unicode-1-1-utf-7", "csunicode11utf7"})
"""Labels of an encoding of mail alone: pages must not be read in it."""


def read_mail(
    stream: Expanded, *, source: str, max_record: int, policy: Sequence[str] = ()
) -> Iterator[Record | Reject]:
    """Yield the records of a file of e-mail: each message, followed by those inside it. See `cut_mail`."""
    count = 0
    for message in cut_mail(stream, max_record=max_record):
        made_up = f"{source}#{count + 1}"
        for one in [message] if isinstance(message, Reject) else read_message(message, made_up=made_up, policy=policy):
            count += 1
            yield one


class _Bounded(Compat32):
    """Python's policy for raw fields; those that describe a part are unfolded, and cut at MAX_PARAMETERS characters.

    Of an encoding the word alone counts: Python knows none with a blank or a comment after it.
    """

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        if not name.lower().startswith("content-"):
            return name, value
        value = _FOLD.sub("", value)[:MAX_PARAMETERS]  # a folded boundary is one line
        value = _MISSING.sub(r"\1;", value)
        word = _ENCODING.match(value) if name.lower() == "content-transfer-encoding" else None
        return name, word[1] if word else value

    def header_fetch_parse(self, name: str, value: str) -> str:
        """Return a field as it stands: Python would put U+FFFD for each byte beyond ASCII."""
        del name
        return value


_PARSER = BytesParser(policy=_Bounded())
_AS_IT_IS = _Bounded(max_line_length=None, mangle_from_=False, cte_type="8bit")


class _Field(NamedTuple):
    """A part of the text of a message; `is_name`: a line that names a part."""

    text: str
    is_markup: bool = False
    is_name: bool = False


@dataclass
class _Message:
    """What was found in a message so far."""

    fields: list[_Field] = field(default_factory=list)
    replaced: int = 0
    size: int = 0
    parts: int = 0
    read: int = 0
    named: int = 0
    divided: int = 0
    is_form: bool = False
    """Whether it is one of several forms of one content: then its words are counted."""
    words: int = 0
    charset: str | None = None
    """Detected in an earlier part: an undeclared part is likely to have the same."""
    digest: Any = field(default_factory=partial(blake2b, digest_size=16))
    has_digest: bool = False
    inside: list[Message] = field(default_factory=list)

    def cover(self, data: bytes) -> None:
        """Make bytes that are not in the text a part of the content's fingerprint."""
        self.digest.update(len(data).to_bytes(8, "little") + data)
        self.has_digest = True

    def leave(self, data: bytes, size: int | None = None) -> None:
        """Count a part that is not read."""
        self.parts += 1
        self.size += len(data) if size is None else size
        self.cover(data)

    def decode(self, data: bytes, label: str | None) -> str:
        """Decode the bytes of a part or a field; LF ends its lines."""
        name = label.strip(" \"'").lower() if label else ""
        if name in _UTF_7 and data.isascii():
            return self._finish(*take_marks(data.decode("utf-7", EACH_BYTE)))
        given = name if name and name not in _NO_CHARSET else None
        encoding = find_encoding(data, given if given and canonical_charset(given) else self.charset)
        if not data.isascii() and encoding.encoding != "utf-8":
            self.charset = self.charset or encoding.encoding
        decoded = encoding.decode()
        return self._finish(decoded.text, decoded.lost)

    def _finish(self, text: str, lost: bytes) -> str:
        self.replaced += len(lost)
        if lost:
            self.cover(lost)
        return text.replace("\r\n", "\n").rstrip("\n")

    @property
    def unread(self) -> Unread:
        return Unread(self.size, self.parts, self.digest.digest() if self.has_digest else b"")


def read_message(message: bytes, *, made_up: str, policy: Sequence[str] = ()) -> Iterator[Record | Reject]:
    """Yield the record of a message, then those of the messages inside it, whose ids are `PARENT/1`, `PARENT/2`, …

    The content's fingerprint covers the subject and the text of all parts with LF as line end, and the decoded bytes of
    what was not read; it is the same for a message in a file of its own and in an mbox.

    Args:
        message: its bytes, with the envelope if it is from an mbox; lines quoted as `>From ` are then unquoted.
        made_up: the id that messages inside it call it by if it has no Message-ID.
        policy: header fields whose values are read; the Date as a time in UTC.

    Returns:
        Records and rejects: `no content` without a subject, a text and an attachment; `malformed`. Never raises.

    Cost: linear, but for fields bounded by `MAX_PARAMETERS`. Memory: some copies of the message.
    """
    start = excerpt(message[:EXCERPT_BYTES])
    message = message.lstrip(LEAD)
    if counted := COUNTED.match(message):
        message = message[counted.end() :][: int(counted[1])]
    if _DOUBLED.match(message):
        message = message.replace(b"\r\r\n", b"\n")
    if message.startswith(b"From "):
        message = _QUOTED_FROM.sub(rb"\1", message.partition(b"\n")[2])
    parsed = _parse(message)
    if parsed is None:
        whole = _read_undivided(message, start)
        yield replace(whole, policy=(None,) * len(policy)) if isinstance(whole, Record) else whole
        return
    yield from _read(parsed, _Place(None, made_up, start, 0), policy)


def count_messages(message: bytes) -> int:
    """Return how many records `read_message` yields; a message that names no type of messages is not parsed."""
    return sum(1 for _ in read_message(message, made_up="")) if _MAY_HOLD.search(message) else 1


def _parse(message: bytes) -> Message | None:
    """Divide a message into parts; None if it has too many, or they lie too deep."""
    if message.count(b"\n--") > MAX_BOUNDARIES:
        return None
    try:
        return _PARSER.parsebytes(message)
    except Exception:  # noqa: BLE001 - a parser of untrusted bytes may raise anything
        return None


def _read_undivided(message: bytes, start: str) -> Record | Reject:
    """Read a message that cannot be divided as one text, its header included."""
    decoded = decode_content(message)
    digest = blake2b(message, digest_size=16).digest()
    unread = Unread(0, 1, digest)
    return make_record(None, None, [(decoded.text, False)], start=start, replaced=decoded.replaced, unread=unread)


class _Place(NamedTuple):
    """Where a message lies: in `parent`, if that is one, called `name` if it has no id or lies in another."""

    parent: str | None
    name: str
    start: str
    depth: int


def _read(parsed: Message, place: _Place, policy: Sequence[str]) -> Iterator[Record | Reject]:
    content, (parent, name, start, depth) = _Message(), place
    doc_id: str | None = name
    try:
        if parent is None:
            doc_id = _id_of(_field(parsed, "Message-ID")) or None
        _add_parts(parsed, content, depth)
        _add_subject(parsed, content)
        nested = list(_read_nested(content.inside, place._replace(name=doc_id or name), policy, content))
        values = tuple(_value_of(parsed, one) for one in policy)
    except Exception as error:  # noqa: BLE001 - whatever the bytes: it becomes the reason
        yield Reject("malformed", str(error)[:EXCERPT_LENGTH] or type(error).__name__, start, doc_id)
        return
    if not content.fields and not content.parts:
        yield Reject("no content", "a message without subject, text and attachment", start, doc_id)
    else:
        fields = [(one.text, one.is_markup) for one in content.fields or [_Field("")]]
        yield make_record(
            doc_id,
            None,
            fields,
            start=start,
            replaced=content.replaced,
            policy=values,
            unread=content.unread,
            parent=parent,
        )
    yield from nested


def _id_of(value: str) -> str:
    """Return a Message-ID without its brackets, and what a relay writes behind them."""
    inside = _IN_BRACKETS.match(value.strip())
    return clean_id(inside[1] if inside else value.strip().strip("<>"))


def _value_of(parsed: Message, name: str) -> str | None:
    text = " ".join(_decode_words(_field(parsed, name)[:MAX_SUBJECT], _Message()).split())
    if name.lower() == "date":
        with suppress(ValueError, OverflowError, TypeError, IndexError):
            moment = parsedate_to_datetime(text)
            text = (moment if moment.tzinfo is None else moment.astimezone(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return text or None


def _read_nested(
    inside: list[Message], place: _Place, policy: Sequence[str], content: _Message
) -> Iterator[Record | Reject]:
    for number, message in enumerate(inside, 1):
        within = _Place(place.name, f"{place.name}/{number}", "", place.depth + 1)
        for one in _read(message, within, policy):
            if isinstance(one, Record):
                content.cover(content_fingerprint(one))
            yield one


def _add_subject(parsed: Message, content: _Message) -> None:
    """Add the subject in front of the parts, whose charset is that of a subject of undeclared bytes."""
    subject = _field(parsed, "Subject")
    beyond = subject[MAX_SUBJECT:].encode("utf-8", "surrogatepass")
    if beyond:
        content.leave(beyond)
    text = " ".join(_decode_words(subject[:MAX_SUBJECT], content).split())
    if text:
        content.fields.insert(0, _Field(text))


def _field(parsed: Message, name: str) -> str:
    """Return a field of a header as Python holds it: bytes beyond ASCII are lone surrogates; empty if there is none."""
    for key, value in parsed.raw_items():
        if key.lower() == name.lower():
            return str(value)
    return ""


def _decode_words(text: str, content: _Message) -> str:
    """Decode the encoded words of a field (RFC 2047), and its raw bytes. Adjacent words of one charset are one text."""
    text = _BETWEEN_WORDS.sub(r"\1", text)
    pieces, at, run, label = list[str](), 0, b"", ""
    for number, word in enumerate(_WORD.finditer(text)):
        if number == MAX_WORDS:
            break
        if run and (word.start() > at or word[1].lower() != label):
            pieces.append(content.decode(run, label))
            run = b""
        pieces.append(_decode_raw(text[at : word.start()], content))
        label, at = word[1].lower(), word.end()
        run += _word_bytes("b", word[3]) if word[2] else _word_bytes("q", word[5])
    if run:
        pieces.append(content.decode(run, label))
    pieces.append(_decode_raw(text[at:], content))
    return "".join(pieces)


def _word_bytes(kind: str, encoded: str) -> bytes:
    data = encoded.encode("utf-8", "surrogateescape")
    if kind == "b":
        joined = "".join(encoded.split()).rstrip("=")
        return decoded if (decoded := decode_base64(joined)) is not None else data
    return _HEX.sub(lambda digits: bytes([int(digits[1], 16)]), data.replace(b"_", b" "))


def _decode_raw(text: str, content: _Message) -> str:
    if text.isascii() and "\x1b" not in text:
        return text
    return content.decode(text.encode("utf-8", "surrogateescape"), None)


def _parts_of(part: Message) -> list[Message]:
    payload = part.get_payload() if part.is_multipart() else []
    return [one for one in payload if isinstance(one, Message)] if isinstance(payload, list) else []


def _add_parts(part: Message, content: _Message, depth: int) -> None:
    kind, parts = part.get_content_type(), _parts_of(part)
    if not parts and kind.startswith("multipart/") and (divided := _divide(part, content)):
        part, parts = divided, _parts_of(divided)
    if not parts and kind in SIGNED_TYPES and (signed := _open_signed(part, content)):
        _add_parts(signed, content, depth)
        return
    if not parts:
        _add_leaf(part, content)
    elif kind == "message/delivery-status":
        rows = [f"{name}: {_decode_raw(str(value), content)}" for block in parts for name, value in block.raw_items()]
        content.fields.append(_Field("\n".join(rows)))
    elif kind.startswith("message/"):
        _add_message(part, parts[0], content, depth)
    elif kind == "multipart/alternative":
        _add_better(parts, content, depth)
    else:
        for one in parts:
            if kind == "multipart/related" and one.get_content_type() in STYLE_TYPES:
                content.leave(data_of(one)[0])
            else:
                _add_parts(one, content, depth)
    _leave_outside(part, content)


def _divide(part: Message, content: _Message) -> Message | None:
    """Divide a part at the boundary that stands in it, where its header names none, or another."""
    data = str(part.get_payload()).encode("utf-8", "surrogateescape")
    seen = _BOUNDARY.search(data) if content.divided < MAX_DIVIDED else None
    if seen is None:
        return None
    content.divided += 1
    boundary = seen[1].replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    named = b'Content-Type: %s; boundary="%s"' % (part.get_content_type().encode("ascii", "replace"), boundary)
    return _parse(named + b"\n\n" + data)


def _open_signed(part: Message, content: _Message) -> Message | None:
    """Return what a part holds that is signed as a whole; its signature is covered by the content's fingerprint."""
    encoding = part.get("Content-Transfer-Encoding")
    data, _ = data_of(part)
    inside = signed_part(data) if content.divided < MAX_DIVIDED else None
    opened = _parse(inside) if inside else None
    if opened is None:
        if encoding is not None:  # which `data_of` forgets
            part["Content-Transfer-Encoding"] = encoding
        return None
    content.divided += 1
    content.cover(data)
    return opened


def _leave_outside(part: Message, message: _Message) -> None:
    """Count what stands before the first part and after the last, which no program shows, but for the usual notice."""
    for outside in (part.preamble, part.epilogue):
        data = (outside or "").encode("utf-8", "surrogateescape").replace(b"\r\n", b"\n").strip()
        if data and not _NOTICE.fullmatch(data):
            message.leave(data)


def _add_message(part: Message, inner: Message, content: _Message, depth: int) -> None:
    """Add a message inside a message: a line for it, and later a record of its own."""
    if is_base64(part) and not inner.keys():
        data = decode_base64(raw_of(inner).decode("latin-1"))
        inner = (_parse(data) if data else None) or inner
    elif is_quoted(part) and (data := _unquoted(inner)):
        inner = _parse(data) or inner
    _add_name(_name_of(part, content), part.get_content_type(), content)
    is_whole = part.get_content_type() in ("message/rfc822", "message/global", "message/news")
    if is_whole and depth < MAX_DEPTH:
        content.inside.append(inner)
    else:
        content.leave(_as_bytes(inner))


def _unquoted(message: Message) -> bytes | None:
    """Return the bytes of a message that was encoded whole as quoted-printable, its header too; None if it was not."""
    if any(_NOT_QUOTED.search(str(value)) for _, value in message.raw_items()):
        return None
    try:
        return unquote(message.as_bytes(policy=_AS_IT_IS))
    except Exception:  # noqa: BLE001 - a writer of what a parser made of untrusted bytes
        return None


def _as_bytes(message: Message) -> bytes:
    rows = [f"{name}:{value}" for part in message.walk() for name, value in part.raw_items()]
    payloads = [raw_of(part) for part in message.walk() if not part.is_multipart()]
    return b"\0".join([*(row.encode("utf-8", "surrogatepass") for row in rows), *payloads])


def _add_better(forms: list[Message], content: _Message, depth: int) -> None:
    """Add the better of the forms of one content: a plain text, unless it is empty, or a mere note beside a page.

    A note is a plain text that the page has over twice the words of, and twenty more. Texts of other types, such as a
    calendar, come last. Attachments of all forms count.
    """
    read = []
    for form in forms:
        one = _Message(charset=content.charset, read=content.read, divided=content.divided, is_form=True)
        _add_parts(form, one, depth)
        content.divided = one.divided
        content.charset = content.charset or one.charset
        read.append(one)
    words = [one.words for one in read]
    is_page = [any(text.is_markup for text in one.fields) for one in read]
    is_other = [_is_other(form) for form in forms]
    order = sorted(range(len(read)), key=lambda at: (words[at] == 0, is_other[at], is_page[at], -words[at]))
    chosen = order[0] if order else -1
    richest = max((at for at in order if not is_other[at]), key=lambda at: words[at], default=-1)
    if richest >= 0 and words[richest] > 2 * words[chosen] + 20:
        chosen = richest
    for at, one in enumerate(read):
        content.parts, content.size = content.parts + one.parts, content.size + one.size
        content.read = max(content.read, one.read)
        content.inside += one.inside
        if at == chosen:
            content.fields += one.fields
            content.named, content.replaced = content.named + one.named, content.replaced + one.replaced
            content.words += one.words
        else:
            content.fields += [text for text in one.fields if text.is_name]
            content.cover("\0".join(text.text for text in one.fields).encode("utf-8", "surrogatepass"))
        if one.has_digest:
            content.cover(one.digest.digest())


def _is_other(form: Message) -> bool:
    return not _parts_of(form) and form.get_content_type() != "text/plain" and form.get_content_type() not in PAGE_TYPES


def _add_leaf(part: Message, content: _Message) -> None:
    """Add a part that holds no others: its text, or its name and its digest."""
    data, is_binary = data_of(part)
    kind, name = part.get_content_type(), _name_of(part, content)
    is_attached = str(part.get("Content-Disposition", "")).strip().lower().startswith("attachment")
    if name or is_attached:
        _add_name(name, kind, content)
    if content.read >= MAX_PARTS or not is_text(kind, data):
        content.leave(data if is_binary else data.replace(b"\r\n", b"\n").rstrip(b"\n"), len(data))
        return
    content.read += 1
    for piece in take_bytes(data):
        if isinstance(piece, tuple):
            _add_name(_decode_raw(piece[0].decode("ascii", "surrogateescape"), content), "", content)
            content.leave(piece[1].replace(b"\r\n", b"\n"))
        elif piece.strip() or piece == data:
            _add_text(piece, part, content)


def _add_text(data: bytes, part: Message, content: _Message) -> None:
    """Add the bytes of a text, by what the header of its part says."""
    kind = part.get_content_type()
    text = content.decode(data, _parameter(part, "charset", content))
    text = join_lines(text, _parameter(part, "format", content), _parameter(part, "delsp", content))
    for piece in take_files(text) if kind not in PAGE_TYPES else [text]:
        if isinstance(piece, SentFile):
            _add_name(piece.name, "", content)
            content.leave(piece.data)
        elif piece.strip():
            content.fields.append(_Field(piece, is_markup=kind in PAGE_TYPES))
            if content.is_form:
                content.words += sum(1 for _ in _TOKEN.finditer(strip_markup(piece) if kind in PAGE_TYPES else piece))


def _add_name(name: str, kind: str, content: _Message) -> None:
    if content.named < MAX_NAMED:
        content.fields.append(_Field(f"attachment: {name or kind}", is_name=True))
    content.named += 1


def _name_of(part: Message, content: _Message) -> str:
    name = _parameter(part, "filename", content, "Content-Disposition") or _parameter(part, "name", content)
    return " ".join(_decode_words(name, content).split()) if name else ""


def _parameter(part: Message, name: str, content: _Message, header: str = "Content-Type") -> str | None:
    """Return a parameter of a field, decoded by RFC 2231 where it says so; None if there is none, or it is broken."""
    try:
        value = part.get_param(name, header=header)
    except (ValueError, IndexError, KeyError):
        return None
    if isinstance(value, tuple):
        label, _, text = value
        return content.decode(text.encode("latin-1", "replace"), label)
    return str(value).strip() or None if value else None
