"""The head of a collection file: how to cut the file into records, and how to read them.

    read_head   first bytes of a file -> FileHead

Detection of a plain XML file, when no format is given. The record is the shallowest element, at most three
levels under the root, that is repeated (or bears a usual name: document, doc, item, ...) and has something to
read; else the root itself. Of its children and attributes, the first of these names, whatever their case, is
taken:
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from nddup.algorithms.charsets import canonical_charset
from nddup.algorithms.formats import FORMATS, FileHead, Format, FormatError, NoRecordsError, parse_path
from nddup.algorithms.wrapping import ATTRIBUTES, SKIPPED, UNFINISHED

ID_NAMES = (
    "docid",
    "docno",
    "doc_id",
    "id",
    "@id",
    "@docid",
    "@doc_id",
    "@newid",
    "@itemid",
    "guid",
    "identifier",
)
URL_NAMES = ("docurl", "url", "link", "loc", "uri", "@url", "@href")
TITLE_NAMES = ("title", "subject", "headline", "@title")
BODY_NAMES = (
    "content",
    "text",
    "body",
    "raw_content",
    "description",
    "abstract",
    "@body",
    "@text",
    "@content",
)
RECORD_NAMES = ("document", "doc", "record", "item", "entry", "page", "article", "row")
SETTINGS = "set input.record, input.id and input.content (and input.format)"


def read_head(
    head: bytes,
    *,
    format: str | None = None,  # noqa: A002 - the setting's name
    record: str | None = None,
    id: str | None = None,  # noqa: A002
    url: str | None = None,
    content: str | tuple[str, ...] | None = None,
    charset: str | None = None,
) -> FileHead:
    """Tell from the first bytes of a file how to cut and parse it.

    Args:
        head: the start of the file, decompressed; may end anywhere.
        format: a name in FORMATS; None to detect.
        record: the record element, by local name; given, it overrules the format's, as do the next three.
        id: path of the id.
        url: path of the URL.
        content: one path, several as a tuple, or several separated by commas.
        charset: the user's setting. It overrules the file's own declaration (not a byte order mark) unless
            the format's content is encoded apart from the file, as romip's is.

    Returns:
        The head. Where the first record does not end inside `head` its end tag is taken as `</tag>`: ask
        `result.separator in head`, and read more if it must be known.

    Raises:
        NoRecordsError: if no record starts in `head`; an empty head has none.
        FormatError: if format, record or content cannot be told, with the settings that would tell them.
    """
    if format is not None and format not in FORMATS:
        raise FormatError(f"input.format: expected one of {', '.join(FORMATS)}, got {format!r}")
    if not head.strip():
        raise NoRecordsError("the file is empty")
    given = charset if format is None or not FORMATS[format].has_own_charset else None
    encoding, mark = _file_encoding(head, given)
    text = head[mark:].decode(encoding, "replace")
    paths = (content,) if isinstance(content, str) else content
    if isinstance(content, str) and "[" not in content:
        paths = tuple(path.strip() for path in content.split(","))
    chosen = {"record": record and record.rpartition(":")[2], "id": id, "url": url, "content": paths}
    settings = {key: value for key, value in chosen.items() if value}
    if format == "jsonl" or (format is None and text.lstrip().startswith("{")):
        return _json_head(text, encoding, settings)
    shape = _scan(text)
    if not shape.elements:
        raise FormatError(f"neither XML nor JSON lines; {SETTINGS}")
    if format is None:
        format = "romip" if record is None and _is_romip(shape) else "xml"  # noqa: A001
        if FORMATS[format].has_own_charset and charset:
            encoding, mark = _file_encoding(head, None)
            shape = _scan(head[mark:].decode(encoding, "replace"))
    declared = replace(FORMATS[format], **settings)  # type: ignore[arg-type]
    return _xml_head(shape, _complete(declared, shape), encoding)


# --- encoding ---

_ENCODING = re.compile(r"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([^\"']*)[\"']")


def _file_encoding(head: bytes, charset: str | None) -> tuple[str, int]:
    """The codec of the file and the length of its byte order mark: mark, setting, XML declaration, UTF-8."""
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ):
        if head.startswith(mark):
            return encoding, len(mark)
    if head.startswith((b"<\0", b"{\0")):
        return "utf-16-le", 0
    if head.startswith((b"\0<", b"\0{")):
        return "utf-16-be", 0
    label, source = charset, "input.charset"
    if label is None:
        found = _ENCODING.match(head[:1024].decode("latin-1"))
        label, source = (found.group(1), "the XML declaration") if found else ("utf-8", "")
    encoding_or_none = canonical_charset(label)
    if encoding_or_none is None:
        raise FormatError(f"unknown encoding {label!r} in {source}; set input.charset")
    # No mark and no zero bytes at the start: readable as ASCII, whatever it says.
    return ("utf-8" if encoding_or_none.startswith("utf-16") else encoding_or_none), 0


# --- XML ---

_TOKEN = re.compile(
    rf"(?P<skipped>{SKIPPED})|(?P<unfinished>{UNFINISHED})"
    rf"|</(?P<end>[^\s<>/]+)\s*>|<(?P<start>[^\s<>/!?=\"']+)(?P<attributes>{ATTRIBUTES})>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=\"'/]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
MAX_TOKENS = 200_000
MAX_CANDIDATES = 50


@dataclass(slots=True)
class _Element:
    """One start tag of the head: where it stands, how it is spelled, what it declares, how it ends."""

    path: tuple[str, ...]
    tag: str
    attributes: tuple[str, ...]
    namespaces: dict[str, str]
    is_empty: bool
    parent: int
    end_tag: str = ""


@dataclass(slots=True)
class _Shape:
    """The elements of a head in document order."""

    elements: list[_Element]

    def fields(self, record: tuple[str, ...]) -> list[str]:
        """Children (by local name) and attributes (`@name`) seen in the elements at path `record`."""
        seen: dict[str, None] = {}
        depth = len(record)
        for element in self.elements:
            if element.path == record:
                seen.update(dict.fromkeys(f"@{name}" for name in element.attributes))
            elif len(element.path) == depth + 1 and element.path[:depth] == record:
                seen[element.path[-1]] = None
        return list(seen)


def _scan(text: str) -> _Shape:
    """Read the tags outside comments, CDATA, instructions and DOCTYPE; stop where one of these is cut."""
    elements: list[_Element] = []
    stack: list[int] = []
    for count, token in enumerate(_TOKEN.finditer(text)):
        if token["unfinished"] or count > MAX_TOKENS:
            break
        if token["end"]:
            local = token["end"].rpartition(":")[2]
            if stack and elements[stack[-1]].path[-1] == local:
                elements[stack.pop()].end_tag = token[0]
        elif token["start"]:
            attributes = {m[1]: m[2] if m[2] is not None else m[3] for m in _ATTRIBUTE.finditer(token["attributes"])}
            parent = stack[-1] if stack else -1
            above = elements[parent] if stack else None
            namespaces = {
                key.partition(":")[2]: value
                for key, value in attributes.items()
                if key == "xmlns" or key.startswith("xmlns:")
            }
            local = token["start"].rpartition(":")[2]
            path = (*(above.path if above else ()), local)
            names = tuple(key.rpartition(":")[2] for key in attributes if not key.startswith("xmlns"))
            is_empty = token["attributes"].endswith("/")
            elements.append(_Element(path, token["start"], names, namespaces, is_empty, parent))
            if not is_empty:
                stack.append(len(elements) - 1)
    return _Shape(elements)


def _is_romip(shape: _Shape) -> bool:
    """ROMIP by its namespace on the root, or by `document` records with a docID."""
    if any("romip.ru" in uri for uri in shape.elements[0].namespaces.values()):
        return True
    return any(element.path[-2:] == ("document", "docID") for element in shape.elements)


def _first_of(names: tuple[str, ...], fields: list[str]) -> str | None:
    """The field that stands first in `names`, compared without case."""
    spelled = {field.lower(): field for field in reversed(fields)}
    return next((spelled[name] for name in names if name in spelled), None)


def _complete(declared: Format, shape: _Shape) -> Format:
    """Fill in what neither the format nor the user said: record, then id, URL and content."""
    if declared.record:
        path = next((e.path for e in shape.elements if e.path[-1] == declared.record), None)
        if path is None:
            raise NoRecordsError(f"no <{declared.record}> in the first part of the file; set input.record")
    else:
        path = _find_record(shape, needs_body=not declared.content)
    fields = shape.fields(path)
    content = declared.content
    if not content:
        body = _first_of(BODY_NAMES, fields)
        title = _first_of(TITLE_NAMES, fields)
        content = tuple(name for name in (title, body) if name) if body else ()
    if not content:
        raise FormatError(f"cannot tell which part of <{path[-1]}> is its text (seen: {', '.join(fields)}); {SETTINGS}")
    return replace(
        declared,
        record=path[-1],
        id=declared.id or _first_of(ID_NAMES, fields),
        url=declared.url or _first_of(URL_NAMES, fields),
        content=content,
    )


def _find_record(shape: _Shape, *, needs_body: bool) -> tuple[str, ...]:
    """The path of the record element, by the rule on top of this file."""
    counts: dict[tuple[str, ...], int] = {}
    for element in shape.elements:
        counts[element.path] = counts.get(element.path, 0) + 1
    root = shape.elements[0].path
    candidates = sorted((path for path in counts if 1 < len(path) <= 4), key=len)  # noqa: PLR2004
    likely = [path for path in candidates if counts[path] > 1 or path[-1].lower() in RECORD_NAMES]
    for path in (*likely[:MAX_CANDIDATES], root):
        fields = shape.fields(path)
        if _first_of(BODY_NAMES, fields) or (not needs_body and _first_of(ID_NAMES, fields)):
            return path
    raise FormatError(f"cannot tell which element is a record under <{root[-1]}>; {SETTINGS}")


def _xml_head(shape: _Shape, declared: Format, encoding: str) -> FileHead:
    """The head of an XML file whose format is complete."""
    records = [element for element in shape.elements if element.path[-1] == declared.record]
    first = records[0]
    namespaces: dict[str, str] = {}
    above = first.parent
    while above >= 0:
        namespaces = {**shape.elements[above].namespaces, **namespaces}
        above = shape.elements[above].parent
    is_by_line = all(element.is_empty for element in records)
    ended = next((element.end_tag for element in records if element.end_tag), f"</{first.tag}>")
    for field in (*(p for p in (declared.id, declared.url) if p), *declared.title, *declared.content):
        parse_path(field)
    return FileHead(
        format=declared,
        encoding=encoding,
        separator=("\n" if is_by_line else ended).encode(encoding),
        tag=first.tag,
        namespaces=tuple(sorted(namespaces.items())),
        is_root_record=first.parent < 0,
        is_by_line=is_by_line,
    )


# --- JSON lines ---


def _json_head(text: str, encoding: str, settings: Mapping[str, object]) -> FileHead:
    """The head of a JSON lines file: keys are taken from the first line that is an object."""
    declared = replace(FORMATS["jsonl"], **settings)  # type: ignore[arg-type]
    keys: list[str] = []
    for line in text.split("\n")[:100]:
        try:
            row = json.loads(line, parse_int=str)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            keys = list(row)
            break
    content = declared.content
    if not content:
        body = _first_of(BODY_NAMES, keys)
        content = (body,) if body else ()
    if not content:
        raise FormatError(
            f"cannot tell which key holds the text (seen: {', '.join(keys)}); set input.content and input.id"
        )
    declared = replace(
        declared,
        record="",
        id=declared.id or _first_of(ID_NAMES, keys),
        url=declared.url or _first_of(URL_NAMES, keys),
        content=content,
    )
    return FileHead(format=declared, encoding=encoding, separator="\n".encode(encoding), is_by_line=True)
