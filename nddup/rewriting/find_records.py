"""Find the record in a chunk as `parse_record` finds it, but without parsing it."""

from nddup.reading.charsets import decode_anyway
from nddup.reading.formats import FileHead
from nddup.reading.sgml_records import find_sgml_start
from nddup.reading.xml_cutting import is_readable_as_ascii
from nddup.reading.xml_parsing import wrapper_of

JSON_BLANKS = b" \t\r\n\0"


def find_record(chunk: bytes, head: FileHead) -> tuple[int, int] | None:
    """Return the start and end of the record in a chunk; None where `parse_record` finds neither record nor reject.

    Args:
        chunk: bytes between two separators, without a byte order mark.
        head: the head of the file.

    Returns:
        Byte offsets; the end is that of the chunk.

    Cost: linear.
    """
    if head.format.kind == "jsonl":
        return (0, len(chunk)) if chunk.strip(JSON_BLANKS) else None
    if is_readable_as_ascii(head.encoding):
        return _find(chunk, head)

    text = decode_anyway(chunk, head.encoding).text
    place = _find(text.encode(), head)
    return None if place is None else _in_bytes(chunk, text, place, head.encoding)


def _find(chunk: bytes, head: FileHead) -> tuple[int, int] | None:
    if head.format.kind == "sgml":
        start = find_sgml_start(chunk, head)
        return None if start is None else (start, len(chunk))
    wrapper = wrapper_of(head.tag, head.namespaces)
    start = wrapper.find_start(chunk)
    return None if start is None else (start, len(chunk))


def _in_bytes(chunk: bytes, text: str, place: tuple[int, int], encoding: str) -> tuple[int, int]:
    """Convert places in the UTF-8 of a text to places in the bytes it was decoded from."""
    data = text.encode()
    start, end = (len(data[:at].decode().encode(encoding, "replace")) for at in place)
    return start, len(chunk) if place[1] == len(data) else end
