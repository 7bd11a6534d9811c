"""E-mail: a message in a file (.eml), or many in one (mbox). Python's own parser reads each message.

    cut_mail     stream -> the bytes of each message
    parse_mail   those bytes -> Record | Reject

The id is the Message-ID; the text is the subject, the body, and a line `attachment: name` for each attachment, which is
not read. Of a body in two forms the plain one is taken.
"""

import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart

from nddup.reading.outcomes import EXCERPT_LENGTH, Record, Reject, excerpt, make_record
from nddup.reading.streams import PIECE, Expanded, StoppedError

MAIL_NAME = re.compile(r"\.(eml|mbox|mbx)(\.(gz|bz2|zst|xz))?$", re.IGNORECASE)
"""Endings of the names of files with e-mail."""

MAIL_START = re.compile(rb"\s*+(From [^\r\n]++\r?\n|[!-9;-~]++[ \t]*+:)")
"""How such a file begins: with the line before a message of an mbox, or with a field of a header."""

_NEXT = re.compile(rb"\n\r?\n(?=From )")
_BETWEEN = len(b"\n\r\nFrom ")
_EXCERPT_BYTES = 4 * EXCERPT_LENGTH
MOST_NAMED = 100
"""Most attachments of a message that are named."""


def cut_mail(stream: Expanded, *, max_record: int) -> Iterator[bytes | Reject]:
    """Yield each message, with the line before it; together they are the file, except for rejects.

    Returns:
        Bytes of at most `max_record`; a reject `too large` for a longer message, and the reason if the stream stops.

    Cost: linear. Memory: `max_record` and a piece.
    """
    held, searched, lost, is_over = bytearray(), 0, 0, False
    try:
        while not is_over:
            piece = stream.read(PIECE)
            is_over, held = not piece, held + piece
            while held.startswith(b"From ") or lost:
                found = _NEXT.search(held, searched)
                if found is None:
                    break
                message, searched = bytes(held[: found.end()]), 0
                del held[: found.end()]
                yield _too_large(lost, message) if lost or len(message) > max_record else message
                lost = 0
            searched = max(0, len(held) - _BETWEEN)
            if len(held) > max_record + PIECE:
                lost += searched
                del held[:searched]
                searched = 0
        if held or lost:
            yield _too_large(lost, held) if lost or len(held) > max_record else bytes(held)
    except StoppedError as error:
        yield Reject(error.reason, str(error), excerpt(bytes(held[:_EXCERPT_BYTES])))


def _too_large(lost: int, rest: bytes | bytearray) -> Reject:
    size = lost + len(rest)
    return Reject("too large", f"{size:,} bytes, more than input.max_record", excerpt(bytes(rest[:_EXCERPT_BYTES])))


def parse_mail(message: bytes) -> Record | Reject:
    """Read a message. Rejects: `no content` without a subject, a body and an attachment; `malformed`. Never raises."""
    start = excerpt(message[:_EXCERPT_BYTES])
    try:
        header = message.partition(b"\n")[2] if message.startswith(b"From ") else message
        parsed = message_from_bytes(header, EmailMessage, policy=policy.default)
        fields = _fields_of(parsed)
        doc_id = str(parsed.get("Message-ID") or "").strip().strip("<>")
    except Exception as error:  # noqa: BLE001 - a parser of untrusted bytes may raise anything: it becomes the reason
        return Reject("malformed", str(error) or type(error).__name__, start)
    if not fields:
        return Reject("no content", "a message without subject, body and attachment", start, doc_id or None)
    return make_record(doc_id, None, fields, start=start)


def _fields_of(message: EmailMessage) -> list[tuple[str, bool | None]]:
    """Return the subject, the body and the names of attachments, each with whether it is markup."""
    body = message.get_body(("plain", "html"))
    found: list[tuple[str, bool | None]] = []
    subject = str(message.get("Subject") or "").strip()
    if subject:
        found.append((subject, False))
    if body is not None and (text := _decoded(body)):
        found.append((text, body.get_content_subtype() == "html"))
    names = [part.get_filename() or part.get_content_type() for part in _parts(message) if part is not body]
    return found + [(f"attachment: {' '.join(str(name).split())}", False) for name in names[:MOST_NAMED]]


def _parts(message: EmailMessage) -> Iterator[EmailMessage]:
    """Yield what is attached: every part with a name, or declared as an attachment."""
    for part in message.walk():
        if isinstance(part, EmailMessage) and (part.is_attachment() or (part.get_filename() and part is not message)):
            yield part


def _decoded(body: MIMEPart) -> str:
    """Return the text of a body; bytes that its charset does not have become U+FFFD, as in an unknown charset."""
    try:
        return str(body.get_content(errors="replace"))
    except (LookupError, AttributeError):
        data = body.get_payload(decode=True)
        return data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
