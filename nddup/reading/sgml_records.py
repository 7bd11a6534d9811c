"""Parse one record of a TREC collection: its id, URL and content. These files are not XML: no root, no escaping.

A web record has a DOCHDR. The first word in it is the URL, a Content-Type line may name the charset, and the page is
everything after `</DOCHDR>`. Every other record (newswire, CLEF, Reuters-21578) is read by the names of elements, at
any depth and in any case. Tags and references inside the fields are those of HTML, or do not matter, so the fields stay
bytes with markup. A title inside the content is not included twice.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from nddup.reading.formats import FileHead, Format, split_field
from nddup.reading.outcomes import Record, Reject, Value, declared_value, excerpt, make_record, plain_text
from nddup.reading.streams import Chunk

_HEADER = "DOCHDR"
_CHARSET = re.compile(rb"charset\s*+=\s*+[\"']?([\w.:+-]{1,40})", re.IGNORECASE)
_START_TAG = re.compile(rb"<[^<>]*>?")
HEADER_BYTES = 65_536
"""First bytes of a DOCHDR, which are searched for the URL and the Content-Type."""


class _Span(NamedTuple):
    """The places in an element: of its start tag, its inside, the end of its inside, and the end of its end tag.

    If it is not closed (`is_closed`), both ends are that of the record.
    """

    start: int
    inside: int
    inside_end: int
    end: int
    is_closed: bool


_Spans = dict[str, list[_Span]]
_Field = tuple[Value, bool | None]


class _Scanner:
    """The patterns for a file: the start of a record, a sure one, and the tags of the fields of its format."""

    def __init__(self, tag: str, declared: Format) -> None:
        name = re.escape(tag.encode())
        names = {_HEADER, "DOCNO"}
        names |= {path.upper() for field in declared.fields for path in split_field(field)[1] if path[0] not in "@."}
        wanted = b"|".join(re.escape(name.encode()) for name in sorted(names, key=len, reverse=True))
        self.start = re.compile(rb"<%s(?=[\s>])" % name, re.IGNORECASE)
        self.again = re.compile(rb"<%s(?:\s*+>\s*+<DOCNO\s*+>|\s[^<>]*\bNEWID\s*+=)" % name, re.IGNORECASE)
        self.tags = re.compile(rb"<(?P<end>/?)(?P<name>%s)(?=[\s>])[^<>]*+>" % wanted, re.IGNORECASE)

    def scan(self, body: bytes) -> _Spans:
        """Find the elements of a record, by name in upper case; none after a DOCHDR. Cost: linear in the body."""
        spans: _Spans = {}
        open_: dict[str, tuple[int, int]] = {}
        for tag in self.tags.finditer(body):
            name = tag["name"].decode().upper()
            if not tag["end"]:
                open_.setdefault(name, tag.span())
            elif name in open_:
                spans.setdefault(name, []).append(_Span(*open_.pop(name), tag.start(), tag.end(), is_closed=True))
                if name == _HEADER:
                    break

        for name, (start, inside) in open_.items():
            spans.setdefault(name, []).append(_Span(start, inside, len(body), len(body), is_closed=False))
        return spans


@lru_cache(maxsize=256)
def _scanner_of(tag: str, declared: Format) -> _Scanner:
    """Return the scanner of a file, made once per process."""
    return _Scanner(tag, declared)


def find_sgml_start(chunk: bytes, head: FileHead) -> int | None:
    """Find where the record starts in a chunk; None if none does. Cost: linear."""
    match = _scanner_of(head.tag, head.format).start.search(chunk)
    return None if match is None else match.start()


def divide_sgml(chunk: Chunk, head: FileHead) -> Iterator[Chunk]:
    """Divide a chunk in which another record starts before the end tag: one that has no end tag ends there.

    Cost: a search of the chunk.
    """
    scanner = _scanner_of(head.tag, head.format)
    first = scanner.start.search(chunk.value)
    starts = [match.start() for match in scanner.again.finditer(chunk.value, first.end())] if first else []
    for begin, end in pairwise([0, *starts]):
        yield Chunk(chunk.value[begin:end], is_last=True, is_whole=True)
    yield chunk._replace(value=chunk.value[starts[-1] :]) if starts else chunk


def parse_sgml(chunk: bytes, head: FileHead, *, is_last: bool) -> Record | Reject | None:
    """Read the record in one chunk.

    Args:
        chunk: bytes between two separators.
        is_last: whether the file ends here, or another record starts, so that the end tag may be missing. The record is
            then complete if its page ends with `</html>`, or if the last element of its content is closed.

    Returns:
        The record; a reject `truncated`, `malformed`, `no content`, `bad base64` or `id too long`; None if no record
        starts in the chunk. Never raises.

    Cost: linear.
    """
    scanner = _scanner_of(head.tag, head.format)
    match = scanner.start.search(chunk)
    if match is None:
        return None

    body = chunk[match.start() :]
    if scanner.again.search(body, 1):  # in an encoding in which `divide_sgml` finds none
        start = excerpt(body)
        return Reject("malformed", "another record starts before the end tag: an end tag is missing", start)

    spans = scanner.scan(body)
    doc_id = _first_text(body, spans, head.format.id)
    if spans.get(_HEADER):
        made = _parse_page(body, spans[_HEADER][0], doc_id, is_last=is_last)
    else:
        made = _parse_fields(body, spans, head.format, doc_id, is_last=is_last)
    if not head.format.policy or isinstance(made, Reject):
        return made
    return replace(made, policy=tuple(_first_text(body, spans, path) for path in head.format.policy))


def _parse_page(body: bytes, header: _Span, doc_id: str | None, *, is_last: bool) -> Record | Reject:
    """Read a page with its HTTP header. If its type is neither HTML nor XML, the text is tested for markup later."""
    if not header.is_closed:
        return Reject("truncated" if is_last else "malformed", f"no </{_HEADER}>", excerpt(body), doc_id)
    page = body[header.end :]
    if is_last and not page.rstrip().lower().endswith(b"</html>"):
        return Reject("truncated", "the file ends inside this record", excerpt(body), doc_id)

    lines = body[header.inside : header.inside_end][:HEADER_BYTES].split(b"\n")
    first = next((line.split() for line in lines if line.strip()), [b""])
    declared = next((line for line in lines if line.lower().startswith(b"content-type:")), b"html")
    charset = _CHARSET.search(declared)
    is_markup = True if b"html" in declared.lower() or b"xml" in declared.lower() else None
    label = charset[1].decode("ascii", "replace") if charset else None
    return make_record(doc_id, plain_text(first[0]), [(page, is_markup)], charset=label, start=excerpt(body))


def _parse_fields(
    body: bytes, spans: _Spans, declared: Format, doc_id: str | None, *, is_last: bool
) -> Record | Reject:
    """Read a record by its elements: its titles, then its content without the titles inside it."""
    content = [span for path in declared.content for span in _at(spans, path)]
    if is_last and not (content and content[-1].is_closed):
        return Reject("truncated", "the file ends inside this record", excerpt(body), doc_id)
    if not content:
        return Reject("no content", f"no {' or '.join(declared.content)}", excerpt(body), doc_id)

    titles = sorted(span for path in declared.title for span in _at(spans, path))
    fields: list[_Field] = []
    for paths, without in ((declared.title, []), (declared.content, titles)):
        for path in paths:
            kind, _ = split_field(path)
            for span in _at(spans, path):
                raw = _inside(body, span, without)
                value = declared_value(plain_text(raw), kind, declared.is_markup) if kind == "base64" else None
                if kind == "base64" and value is None:
                    return Reject("bad base64", f"in {path}", excerpt(body), doc_id)
                is_markup = {"html": True, "text": False}.get(kind, declared.is_markup)
                fields.append(value or (raw, is_markup))

    url = _first_text(body, spans, declared.url)
    return make_record(doc_id, url, fields, start=excerpt(body))


def _at(spans: _Spans, path: str) -> list[_Span]:
    return next((spans[name.upper()] for name in split_field(path)[1] if name.upper() in spans), [])


def _inside(body: bytes, span: _Span, without: list[_Span]) -> bytes:
    """Return the inside of an element, except the elements of `without` (sorted by start) that lie in it."""
    pieces, at = [], span.inside
    first, last = (bisect_left(without, place, key=attrgetter("start")) for place in (span.inside, span.inside_end))
    for other in without[first:last]:
        if at <= other.start and other.end <= span.inside_end:
            pieces.append(body[at : other.start])
            at = other.end
    return b" ".join((*pieces, body[at : span.inside_end]))


def _first_text(body: bytes, spans: _Spans, path: str | None) -> str | None:
    """Return the text at a path up to its first tag, or an attribute of the record; None if it is missing or empty."""
    for name in split_field(path)[1] if path else ():
        if name.startswith("@"):
            tag = _START_TAG.match(body)
            value = re.search(
                rb"\s%s\s*+=\s*+[\"']?([^\"'\s>]*)" % re.escape(name[1:].encode()),
                tag[0] if tag else b"",
                re.IGNORECASE,
            )
            raw = value[1] if value else b""
        else:
            raw = next((body[span.inside : span.inside_end] for span in spans.get(name.upper(), ())), b"")
        text = plain_text(raw.partition(b"<")[0].strip())
        if text:
            return text
    return None
