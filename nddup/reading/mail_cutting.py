"""E-mail, cut into messages: a file of one, or a mailbox of many (mbox).

    starts_as_mail    first bytes of a file -> whether it holds e-mail
    cut_mail          stream -> the bytes of each message

Sources: RFC 5322 (messages), RFC 4155 (mbox).
"""

import re
from collections.abc import Iterator
from typing import Final

from nddup.reading.outcomes import EXCERPT_LENGTH, Reject, excerpt
from nddup.reading.streams import PIECE, Expanded, StoppedError

MAIL_NAME = re.compile(r"\.(emlx?|mbox|mbx)(\.(gz|bz2|zst|xz))?$", re.IGNORECASE)
"""Endings of the names of files with e-mail; their first line may be any field of a header."""

_DATE = (
    rb"(?:(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?[ \t]+)?"
    rb"(?:[A-Z][a-z]{2}[ \t]+\d{1,2}|\d{1,2}[ \t]+[A-Z][a-z]{2}[ \t]+\d{4}),?[ \t]+|\d{4}-\d\d-\d\d[T \t])"
    rb"\d{1,2}: ?\d\d(?:: ?\d\d)?[^\r\n]{0,60}"
)
_SENDER = (
    rb"(?:(?:\"[^\"\r\n]{1,100}\")?[^ \t\r\n]{1,300}(?:[ \t]+at[ \t]+[^ \t\r\n]{1,300})?"
    rb"|[^< \t\r\n][^<\r\n]{0,100}<[^ \t\r\n<>]{1,300}>)"
)
_NUMBER = rb"-?\d{12,20}[ \t]*"
"""What stands for sender and date in collections of Usenet made from Google Groups."""

_KNOWN = rb"(?:" + _SENDER + rb"[ \t]+)?" + _DATE + rb"|" + _NUMBER
_FIELD_BEHIND = rb"\r{0,2}\n>?[!-9;-~]{1,100}[ \t]*:"
_PATCH = rb"[0-9a-f]{40,64} Mon Sep 17 00:00:00 2001"
"""The sender and date of a patch of git, which stands in messages as it is, unless a file holds nothing else."""

_ENVELOPE_START = re.compile(rb"From[ \t]+(?:" + _KNOWN + rb")" + _FIELD_BEHIND)
_NEXT_ENVELOPE = re.compile(rb"(?<=\n)From[ \t]+(?!" + _PATCH + rb")(?:" + _KNOWN + rb")" + _FIELD_BEHIND)
_UNDATED = rb"(?:-|[^@ \t\r\n]{1,200}@[^ \t\r\n]{1,200}|)[ \t]*"
_ODD_ENVELOPE = re.compile(rb"From[ \t]+(?:" + _PATCH + rb"|" + _UNDATED + rb")" + _FIELD_BEHIND)
"""Of a patch, of an address alone, or of nothing, as Thunderbird writes it for a message without a date. Others do so
too where one begins a file."""

_ANY_ENVELOPE = re.compile(rb"(?<=\n)From[ \t]+(?:" + _KNOWN + rb"|" + _UNDATED + rb")" + _FIELD_BEHIND)
_REACH = 1_000
"""No envelope, with the start of the field after it, is longer."""

LEAD = b"\xef\xbb\xbf \t\r\n"
"""A byte order mark and blanks, which may stand before a header or an envelope."""

COUNTED = re.compile(rb"(\d{1,12})[ \t]*\r?\n(?=[!-9;-~]++[ \t]*+:)")
"""The first line of a message of Apple Mail (.emlx): its bytes. What follows these says how it was shown."""

_FIELD = re.compile(rb"([!-9;-~]{1,100})[ \t]*:([^\r\n]*)")
_FIRST_FIELD = re.compile(rb"(From [^\r\n]*+\r?\n|[!-9;-~]++[ \t]*+:)")
_SURE_FIELDS: Final = frozenset({b"message-id", b"received", b"return-path", b"mime-version", b"delivered-to"})
_USUAL_FIELDS: Final = frozenset({b"from", b"to", b"date", b"subject", b"newsgroups", b"path", b"cc", b"reply-to"})
_OF_NEWS: Final = frozenset({b"organization", b"lines", b"nntp-posting-host", b"x-newsreader", b"distribution"})
"""Fields of a news article, of which a collection may have left others out."""

LEAST_FIELDS = 3
"""Usual fields, one of them From with an address, that begin e-mail or news where none of `_SURE_FIELDS` does."""

EXCERPT_BYTES = 4 * EXCERPT_LENGTH


def starts_as_mail(head: bytes, name: str) -> bool:
    """Return whether a file holds e-mail: an mbox by its first line, else a header that no other text begins with.

    Args:
        head: the first bytes, expanded.
        name: the name of the file; with a name of e-mail any field is enough.
    """
    head = head.lstrip(LEAD)
    if MAIL_NAME.search(name) and (_FIRST_FIELD.match(head) or COUNTED.match(head)):
        return True
    if head.startswith(b"From "):
        if _ENVELOPE_START.match(head) or not _ODD_ENVELOPE.match(head):
            return _ENVELOPE_START.match(head) is not None
        head = head.partition(b"\n")[2]
    fields = dict[bytes, bytes]()
    for line in head.split(b"\n"):
        if not line.strip():
            break
        if line[:1] in (b" ", b"\t") and fields:
            continue
        field_ = _FIELD.match(line)
        if field_ is None:
            return False
        fields[field_[1].lower()] = field_[2]
    names = fields.keys()
    sure = names & _SURE_FIELDS
    if len(sure) > 1 or (sure and names & (_USUAL_FIELDS | {b"content-type"})):
        return True
    return len(names & (_USUAL_FIELDS | _OF_NEWS)) >= LEAST_FIELDS and b"@" in fields.get(b"from", b"")


def cut_mail(stream: Expanded, *, max_record: int) -> Iterator[bytes | Reject]:
    """Yield each message, with the envelope before it; together they are the file, except for rejects.

    A message ends before a line `From ADDRESS DATE` that a field of a header follows, whether a blank line precedes it
    or not. Other lines that begin with From are text, also those of a patch of git, unless the file begins with one. A
    file that does not begin with From is one message.

    Returns:
        Bytes of at most `max_record`; a reject `too large` for a longer message, and the reason if the stream stops.

    Cost: linear. Memory: `max_record` and a piece.
    """
    window, searched, lost, is_over = bytearray(), 0, 0, False
    following: re.Pattern[bytes] | None = None
    try:
        while not is_over:
            piece = stream.read(PIECE)
            is_over, window = not piece, window + piece
            following = following or (
                _ANY_ENVELOPE if _ODD_ENVELOPE.match(window, _lead_of(window)) else _NEXT_ENVELOPE
            )
            while lost or window.startswith(b"From ", _lead_of(window)):
                match = following.search(window, searched or _lead_of(window) + 1)
                if match is None:
                    break
                message, searched = bytes(window[: match.start()]), 0
                del window[: match.start()]
                yield _too_large(lost, message) if lost or len(message) > max_record else message
                lost = 0
            searched = max(0, len(window) - _REACH)
            if len(window) > max_record + PIECE:
                # One byte stays before the place that is searched on: a line end, maybe.
                gone = max(0, searched - 1)
                lost += gone
                del window[:gone]
                searched -= gone
        if window or lost:
            yield _too_large(lost, window) if lost or len(window) > max_record else bytes(window)
    except StoppedError as error:
        yield Reject(error.reason, str(error), excerpt(bytes(window[:EXCERPT_BYTES])))


def _lead_of(message: bytes | bytearray) -> int:
    """Return how many bytes stand before a header or an envelope that say nothing."""
    start = message[:_REACH]
    return len(start) - len(start.lstrip(LEAD))


def _too_large(lost: int, rest: bytes | bytearray) -> Reject:
    size = lost + len(rest)
    return Reject("too large", f"{size:,} bytes, more than input.max_record", excerpt(bytes(rest[:EXCERPT_BYTES])))
