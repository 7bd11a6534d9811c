"""Records with less text: runs of characters are cut from the content, and nothing else of the record changes.

    cut_text      a text and runs of characters -> the text without them
    Cutting       how the texts of a run were read, so that characters are counted as the run counted them
    cut_chunk     a record of XML or JSON lines -> its bytes with less text
    cut_row       a row of a table              -> its values with less text
    cut_file      a plain text                  -> its bytes with less text

A field of markup has no place for characters counted without markup: it becomes its text, on a page without other
elements where the format calls for markup. What is written is read again at once; a record whose new content would be
read as another text is left whole, and counted.
"""

import html
import json
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from operator import itemgetter
from typing import NamedTuple
from xml.sax.saxutils import escape

from nddup.reading.charsets import MARKS, find_encoding
from nddup.reading.decoding import decode_anyway
from nddup.reading.formats import FileHead
from nddup.reading.markup import begins_as_page
from nddup.reading.outcomes import Record, Value
from nddup.reading.records import Markup, Part, find_literals, parse_record, read_fields
from nddup.reading.streams import Chunk
from nddup.reading.xml_records import find_contents, repair, wrapper_of

Run = tuple[int, int]
"""Characters of a text from the first of these up to the second."""

Values = list[Value | None]
"""New values for the fields of a record; None where a field stays."""


class Cuts(NamedTuple):
    """What is cut from a record: runs of characters of its text, ascending and apart."""

    runs: tuple[Run, ...]


@dataclass
class Cutting:
    """How texts were read, and what stands in the place of a cut.

    Attributes:
        mark: the text in the place of a cut.
        charset: as of `records.read_text`.
        markup: likewise.
        part: likewise.
        whole: how many records were left whole because their new content would be read as another text.
        plain: how many lost markup together with the text.
    """

    mark: str
    charset: str | None = None
    markup: Markup = "auto"
    part: Part = "all"
    whole: int = 0
    plain: int = 0

    def read(self, record: Record) -> list[str]:
        """Return the text of each field."""
        return read_fields(record, self.charset, self.markup, self.part)

    def apply(self, record: Record, cuts: Cuts, write: Callable[[Values], tuple[Record | None, bytes]]) -> bytes | None:
        """Write a record with less text; None, and count it, if it would be read as another text.

        Args:
            write: makes the record of new values, and its bytes; a record of None says that they cannot be written.
        """
        texts = self.read(record)
        wanted = cut_fields(texts, cuts.runs, self.mark)
        for values, is_plain in self._spell(record, texts, wanted):
            again, data = write(values)
            if isinstance(again, Record) and _words(self.read(again)) == _words(wanted):
                self.plain += is_plain
                return data
        self.whole += 1
        return None

    def _spell(self, record: Record, texts: list[str], wanted: list[str]) -> Iterator[tuple[Values, bool]]:
        """Yield new values for the fields, the most natural first, and whether markup is lost."""
        changed = [old != new for old, new in zip(texts, wanted, strict=True)]
        kinds = record.is_markup if isinstance(record.is_markup, tuple) else (record.is_markup,) * len(texts)
        encodings = [_encoding_of(field, self.charset or record.charset) for field in record.fields]
        raw = [
            field if isinstance(field, str) else field.decode(encoding, "replace")
            for field, encoding in zip(record.fields, encodings, strict=True)
        ]
        is_page = [kind is True or begins_as_page(field) for kind, field in zip(kinds, raw, strict=True)]
        is_stripped = [kind is True or text != field for kind, text, field in zip(kinds, texts, raw, strict=True)]
        is_plain = any(one and other for one, other in zip(is_stripped, changed, strict=True))
        has_bytes = any(isinstance(field, bytes) for field in record.fields)
        for swap, fallback in product((False, True), (False, True) if has_bytes else (False,)):
            values: Values = [None] * len(texts)
            for place in (at for at, is_changed in enumerate(changed) if is_changed):
                text, field = wanted[place], record.fields[place]
                text = _page(text) if is_page[place] != swap else text
                encoding = "utf-8" if fallback else encodings[place]
                values[place] = text if isinstance(field, str) else _encode(text, field, encoding)
            yield values, is_plain


def cut_text(text: str, cuts: Sequence[Run], mark: str) -> str:
    """Return a text without runs of characters, each replaced by a mark.

    Where the words on both sides, or a word and the mark, would touch, a blank is put between them.

    Example:
        >>> cut_text("one two three", [(4, 8)], ""), cut_text("one, two", [(3, 5)], ""), cut_text("abc", [(1, 2)], "…")
        ('one three', 'one two', 'a…c')
    """
    parts, at = [], 0
    for begin, end in cuts:
        before, after = text[at:begin], text[end : end + 1]
        last = text[begin - 1] if begin else ""
        parts.append(before)
        if not mark:
            parts.append(" " if last and after and not last.isspace() and not after.isspace() else "")
        else:
            parts.append(" " if last.isalnum() and mark[0].isalnum() else "")
            parts.append(mark)
            parts.append(" " if after.isalnum() and mark[-1].isalnum() else "")
        at = end
    return "".join([*parts, text[at:]])


def cut_fields(texts: Sequence[str], cuts: Sequence[Run], mark: str) -> list[str]:
    """Return the texts of fields without runs of characters of their join by line breaks.

    Example:
        >>> cut_fields(["one two", "three four"], [(4, 13)], "…")
        ['one …', '… four']
    """
    fields, low = [], 0
    ends = [end for _, end in cuts]
    for text in texts:
        high = low + len(text)
        inside: list[Run] = []
        for begin, end in islice(cuts, bisect_right(ends, low), None):
            if begin >= high:
                break
            inside.append((max(begin - low, 0), min(end, high) - low))
        fields.append(cut_text(text, inside, mark))
        low = high + 1
    return fields


def _words(texts: list[str]) -> list[str]:
    return "\n".join(texts).split()


def _page(text: str) -> str:
    return f"<!DOCTYPE html><html><body><pre>{html.escape(text, quote=False)}</pre></body></html>"


def _encoding_of(field: Value, charset: str | None) -> str:
    return "utf-8" if isinstance(field, str) else find_encoding(field, charset).encoding.replace("ascii", "utf-8")


def _encode(text: str, field: bytes, encoding: str) -> bytes:
    mark = next((mark for mark, name in MARKS if field.startswith(mark) and name == encoding), b"")
    return mark + text.encode(encoding, "xmlcharrefreplace")


def cut_chunk(chunk: Chunk, head: FileHead, cuts: Cuts, cutting: Cutting) -> bytes:
    """Return the bytes of a chunk, its record with less text; unchanged if it is left whole.

    Args:
        chunk: the chunk, without a byte order mark.
        cutting: how the text was read.
    """
    value, is_last, is_whole = chunk.value, chunk.is_last, chunk.is_whole
    record = parse_record(value, head, is_last=is_last, is_whole=is_whole)
    if not isinstance(record, Record):
        return value
    text = decode_anyway(value, head.encoding).text
    spell, places = _find_places(text, head, is_whole=is_whole and not is_last)

    def write(values: Values) -> tuple[Record | None, bytes]:
        if len(places) != len(values):
            return None, value
        parts, at = list[str](), 0
        for (low, high), field in sorted(zip(places, values, strict=True), key=itemgetter(0)):
            if field is not None and low >= at:
                parts += [text[at:low], spell(text[low - 1 : low], _as_text(field))]
                at = high
        data = "".join([*parts, text[at:]]).encode(head.encoding, "xmlcharrefreplace")
        again = parse_record(data, head, is_last=is_last, is_whole=is_whole)
        return (again if isinstance(again, Record) else None), data

    data = cutting.apply(record, cuts, write)
    return value if data is None else data


def _find_places(text: str, head: FileHead, *, is_whole: bool) -> tuple[Callable[[str, str], str], list[Run]]:
    """Return how a value is spelled, given the character before it, and where the values of the fields stand."""
    if head.format.kind == "jsonl":
        wide = not head.encoding.startswith("utf")
        at = text.rfind("\n") + 1  # of two lines of one record the second
        places = [(at + low, at + high) for low, high in find_literals(text[at:], head.format.content)]
        return lambda _, new: json.dumps(new, ensure_ascii=wide), places
    body = text.encode()
    wrapper = wrapper_of(head.tag, head.namespaces)
    start = wrapper.find_start(body) or 0
    closing = b"" if is_whole else head.separator_text.encode()
    spans = [(start + low, start + high) for low, high in find_contents(body[start:], wrapper, closing, head.format)]
    characters, count, at = dict[int, int](), 0, 0
    for place in sorted({place for both in spans for place in both}):
        count, at = count + len(body[at:place].decode()), place
        characters[place] = count
    return _spell_xml, [(characters[low], characters[high]) for low, high in spans]


def _spell_xml(before: str, new: str) -> str:
    """Return a value as XML: after a tag, or after the quote of an attribute."""
    in_quotes = {"\t": "&#9;", "\n": "&#10;", '"': "&quot;", "'": "&apos;"} if before != ">" else {}
    return repair(escape(new, {"\r": "&#13;", **in_quotes}).encode()).decode()


def _as_text(field: Value) -> str:
    return field if isinstance(field, str) else b64encode(field).decode()


def cut_row(record: Record, cuts: Cuts, cutting: Cutting) -> Values:
    """Return new values for the fields of a row of a table, all None if it is left whole."""
    chosen: list[Values] = []

    def write(values: Values) -> tuple[Record, bytes]:
        chosen[:] = [values]
        fields = zip(values, record.fields, strict=True)
        return replace(record, fields=tuple(old if new is None else new for new, old in fields)), b""

    is_written = cutting.apply(record, cuts, write) is not None
    return chosen[0] if is_written else [None] * len(record.fields)


def cut_file(data: bytes, cuts: Cuts, cutting: Cutting, head: FileHead) -> bytes:
    """Return a text that is a file, with less text; unchanged if it is left whole."""
    value = cut_row(Record(None, None, (data,), head.format.is_markup), cuts, cutting)[0]
    return value if isinstance(value, bytes) else data
