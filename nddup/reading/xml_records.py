"""Parse one record of an XML file: find its id, URL and content fields by the paths of its format."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from lxml import etree

from nddup.reading.base64_text import decode_base64
from nddup.reading.bounded_parts import MAX_PARTS, has_too_many
from nddup.reading.formats import FieldKind, Format, Path, Step, parse_path, split_field
from nddup.reading.outcomes import (
    Record,
    Reject,
    Value,
    declared_value,
    excerpt,
    make_record,
    plain_text,
)
from nddup.reading.pages.page_elements import INLINE
from nddup.reading.xml_parsing import Wrapper, repair

Node = etree._Element | str  # noqa: SLF001 - an attribute is its value
Field = tuple[Value, bool | None]


def parse_xml(body: bytes, wrapper: Wrapper, closing: bytes, declared: Format, *, is_last: bool) -> Record | Reject:
    """Parse a record in UTF-8 that begins with its start tag and lacks `closing`.

    Args:
        body: the record.
        wrapper: wrapper of its file.
        closing: its end tag; empty for a row.
        declared: its format.
        is_last: whether the file ends here, without even the end tag of the root, so that the record may be cut. It
            must then be well-formed with `closing`, and have all the content of its format.

    Returns:
        The record; a reject `truncated` (only if `is_last`), `malformed`, `deleted`, `no content`, `bad base64`,
        `id too long`, or `too large` for more than MAX_PARTS tags and attributes.
    """
    start = excerpt(body)
    if has_too_many(body, is_xml=True):
        return Reject("too large", f"more than {MAX_PARTS:,} tags and attributes in a record", start)

    element, detail = _element(body, wrapper, closing)
    if element is None:
        detail = wrapper.explain(body) or detail
        if is_last:
            return Reject("truncated", f"the file ends inside this record ({detail})", start)
        return Reject("malformed", detail, start)

    doc_id = _first_text(element, declared.id)
    found = _content(element, declared, is_last=is_last)
    if isinstance(found, tuple):
        return Reject(*found, start, doc_id)
    url = _first_text(element, declared.url)
    url = _plain_url(url) if url and declared.may_encode_url else url
    policy = tuple(_first_text(element, path) for path in declared.policy)
    return make_record(doc_id, url, found, start=start, policy=policy)


def _content(element: etree._Element, declared: Format, *, is_last: bool) -> list[Field] | tuple[str, str]:
    """Return the fields of a record, titles first; or the reason and detail of a reject."""
    if declared.deleted and _select(element, parse_path(declared.deleted)):
        return "deleted", f"marked as deleted ({declared.deleted})"

    content = [_nodes(element, path) for path in declared.content]
    if is_last and not all(nodes for _, nodes in content):
        return "truncated", f"the file ends inside this record, without {' or '.join(declared.content)}"
    if not any(nodes for _, nodes in content):
        return "no content", f"no {' or '.join(declared.content)}"

    # A title inside the content is already part of it.
    titles = [_nodes(element, path) for path in declared.title]
    if any(nodes for _, nodes in titles):
        inside = {node for _, nodes in content for node in nodes if not isinstance(node, str)}
        titles = [(kind, [node for node in nodes if not _is_within(node, inside)]) for kind, nodes in titles]

    fields: list[Field] = []
    for kind, nodes in (*titles, *content):
        for node in nodes:
            field = _field(node, kind, declared.is_markup)
            if field is None:
                return "bad base64", f"in {node[:100] if isinstance(node, str) else _local(node.tag)}"
            fields.append(field)
    return fields


def _element(body: bytes, wrapper: Wrapper, closing: bytes) -> tuple[etree._Element | None, str]:
    """Parse a record, repaired only if it does not parse without; or return None and the parser's message."""
    try:
        return wrapper.parse(body, closing), ""
    except (etree.XMLSyntaxError, ValueError) as error:
        detail = str(error)

    try:
        return wrapper.parse(repair(body), closing, declares=True), ""
    except (etree.XMLSyntaxError, ValueError) as error:
        return None, str(error) if b"&" in body else detail


@lru_cache(maxsize=1024)
def _read_field(path: str) -> tuple[FieldKind, tuple[Path, ...]]:
    """Return the kind of a field, and its alternative paths."""
    kind, alternatives = split_field(path)
    return kind, tuple(parse_path(alternative) for alternative in alternatives)


def _nodes(element: etree._Element, path: str) -> tuple[FieldKind, list[Node]]:
    """Return the kind of a field, and the nodes of the first alternative with text, else of the first one present."""
    kind, alternatives = _read_field(path)
    present: list[Node] = []
    for alternative in alternatives:
        nodes = _select(element, alternative)
        if len(alternatives) == 1 or any(_has_text(node) for node in nodes):
            return kind, nodes
        present = present or nodes
    return kind, present


def _select(element: etree._Element, path: Path) -> list[Node]:
    """Return all elements, or attribute values, at `path` under `element`, in document order."""
    nodes: list[Any] = [element]
    for step in path:
        if step.is_attribute:
            return [value for node in nodes for key, value in node.attrib.items() if step.name in ("*", _local(key))]
        nodes = _children(nodes[0], step) if len(nodes) == 1 else [c for node in nodes for c in _children(node, step)]
    return nodes


def _children(node: etree._Element, step: Step) -> list[etree._Element]:
    found = [child for child in node if isinstance(child.tag, str) and step.name in ("*", _local(child.tag))]
    if step.where is not None:
        name, value = step.where
        found = [child for child in found if _attribute(child, name) == value]
    return found if step.position is None else found[step.position :][:1]


def _attribute(node: etree._Element, name: str) -> str:
    """Return an attribute by its local name; empty if there is none."""
    return next((str(value) for key, value in node.attrib.items() if _local(str(key)) == name), "")


def _local(tag: str) -> str:
    return tag.rpartition("}")[2] if tag[0] == "{" else tag


def _is_within(node: Node, others: set[etree._Element]) -> bool:
    return not isinstance(node, str) and any(above in others for above in node.iterancestors())


def _has_text(node: Node) -> bool:
    return any(text.strip() for text in ([node] if isinstance(node, str) else _strings(node)))


def _text(element: etree._Element) -> str:
    return (element.text or "") if len(element) == 0 else "".join(_strings(element))


def _text_apart(element: etree._Element) -> str:
    """Return the text nodes of an element, with a blank between two where one begins or ends that is not inline."""
    if len(element) == 0:
        return element.text or ""
    parts: list[str] = []
    is_apart = False
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if node is not element and _local(str(node.tag)).lower() not in INLINE:
            is_apart = True
        text = node.text if event == "start" else node.tail if node is not element else None
        if text:
            if is_apart and parts:
                parts.append(" ")
            parts.append(text)
            is_apart = False
    return "".join(parts)


def _strings(element: etree._Element) -> Iterator[str]:
    return (str(text) for text in element.itertext())


def _first_text(element: etree._Element, path: str | None) -> str | None:
    """Return the first non-empty text at a path, stripped; None if there is none."""
    kind, nodes = _nodes(element, path) if path else ("auto", [])
    for node in nodes:
        text = node if isinstance(node, str) else _text(node)
        if kind == "base64":
            text = plain_text(decode_base64(text) or b"")
        text = text.strip()
        if text:
            return text
    return None


def _field(node: Node, kind: FieldKind, is_markup: bool | None) -> Field | None:  # noqa: FBT001
    """Return a content field: bytes if it is base64, else text, with blanks around elements that are not inline.

    None if the base64 cannot be decoded.
    """
    if isinstance(node, str):
        return declared_value(node, kind, is_markup)
    if kind == "base64" or (kind == "auto" and (node.get("encoding") or "").strip().lower() == "base64"):
        return declared_value(_text(node), "base64", is_markup)
    if kind == "typed":
        kind = _kind_of_type(_attribute(node, "type").strip().lower())
        if kind == "base64":
            return declared_value(_text(node), kind, is_markup)
    return declared_value(_text_apart(node), kind, is_markup)


def _kind_of_type(name: str) -> FieldKind:
    """Return the kind of an Atom element by its attribute `type`: text, html, xhtml, or a media type."""
    if name in ("html", "text/html"):
        return "html"
    is_text = name in ("", "text", "xhtml") or name.startswith("text/") or name.endswith(("+xml", "/xml"))
    return "text" if is_text else "base64"


def _plain_url(url: str) -> str:
    """Return the URL, decoded if it is base64 of printable text."""
    raw = decode_base64(url) if len("".join(url.split())) % 4 == 0 else None
    if not raw:
        return url

    try:
        decoded = raw.decode()
    except UnicodeDecodeError:
        decoded = raw.decode("cp1251", "replace") if raw.startswith((b"http://", b"https://")) else ""

    decoded = decoded.strip()
    return decoded if decoded and decoded.isprintable() else url
