"""One record of an XML file: its start in a chunk, its element, and its id, URL and content by the paths of its format.

    wrapper_of            head of a file    -> the Wrapper of all its records
    Wrapper.find_start    chunk             -> where the record starts
    Wrapper.parse         record            -> its element, without DOCTYPE, entities or network access
    parse_xml             record, Wrapper   -> Record | Reject
    find_contents         record, Wrapper   -> where the values of its content stand

`repair` makes the only repairs: a stray `&` becomes `&amp;`, a `<` that begins no tag `&lt;`, a character that XML
forbids U+FFFD. What WikiExtractor writes is no XML, but plain text between tags: tags in it that do not match are text.
"""

import html
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from html.entities import html5
from operator import itemgetter
from typing import Any

from lxml import etree

from nddup.reading.formats import FieldKind, Format, Path, Step, parse_path, split_field
from nddup.reading.markup import INLINE
from nddup.reading.outcomes import (
    Record,
    Reject,
    Value,
    declared_value,
    decode_base64,
    excerpt,
    make_record,
    plain_text,
)
from nddup.reading.page_limits import MAX_PARTS, has_too_many

# Before Python 3.11.5 a possessive group, `(…)*+`, may end past its last match: at the point where one more repetition
# failed midway. So an alternative here that begins with a quote, `<!--` or `<?` never fails: without its end it extends
# to the end of the text, or to a `<`, where nothing after the group matches.
_QUOTED = r"\"[^\"]*+\"?+|'[^']*+'?+"

# Markup that may stand before a record: a tag inside it does not start one.
SKIPPED = (
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    rf"|<!DOCTYPE(?:[^\[>\"']|{_QUOTED})*+"
    rf"(?:\[(?:<!--(?:.*?-->|.*+)|<\?(?:.*?\?>|.*+)|{_QUOTED}|[^\]\"'])*+\]\s*+)?>"
)
FEW_NAMESPACES = 16
"""Namespaces that are declared around every record; of more, only those that the record names."""

MOST_UNDECLARED = 100
"""Maximum number of prefixes declared for a record because no declaration of them is known."""

HIDDEN = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
"""The beginning of what may hide tags, and its end."""

_PREFIX = re.compile(rb"(?<=[<\s/])[^\s<>/=\"'&;:]++(?=:)")
UNFINISHED = r"<!--|<!\[CDATA\[|<\?|<!DOCTYPE"
ATTRIBUTES = r"(?:[^\"'<>]|\"[^\"<]*+\"?+|'[^'<]*+'?+)*+"

_NAME = re.compile(rb"[A-Za-z_][\w.-]*+")
_DECLARATION = rb"\sxmlns%b\s*=\s*(?:\"([^\"]*)\"|'([^']*)')"

_PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, recover=False, huge_tree=True,
    remove_comments=True, remove_pis=True,
)  # fmt: skip


class Wrapper:
    """The start of a file's records, and the element that is put around each record for parsing."""

    def __init__(self, tag: str, namespaces: tuple[tuple[str, str], ...]) -> None:
        """Prepare the tags and patterns; `tag` and `namespaces` as in `FileHead`."""
        prefix, _, local = tag.rpartition(":")
        name = rb"(?:[^\s<>/!?:=\"'&]++:)?" + re.escape(local.encode())
        self.declarations = {
            prefix.encode(): f' xmlns{":" if prefix else ""}{prefix}="{html.escape(_plain(uri))}"'.encode()
            for prefix, uri in namespaces
        }
        self.root_close = b"</records>"
        self.tag = tag.encode()
        self._uris = {prefix.encode(): uri.encode() for prefix, uri in namespaces}
        self._uri = self._uris.get(prefix.encode(), b"")
        self.at_once = re.compile(rb"\s*+<(" + name + rb")(?=[\s/>])")
        pattern = rb"%s|(?P<unfinished>%s)|<(?P<start>%s)(?=[\s/>])"
        self.anywhere = re.compile(pattern % (SKIPPED.encode(), UNFINISHED.encode(), name), re.DOTALL)
        self.open_tag = re.compile(rb"<[^\s<>/!?=\"'&]++(?=[\s/>])" + ATTRIBUTES.encode())
        self.any_end = re.compile(rb"</" + name + rb"\s*+>")
        self.marks = re.compile(rb"<(?:[!?]|" + re.escape(local.encode()) + rb"(?=[\s/>]))")
        self.prefixed = re.compile(rb":" + re.escape(local.encode()) + rb"[\s/>]")

    def root_open(self, body: bytes, *, declares: bool = False) -> bytes:
        """Return the start tag of the wrapping element; of many namespaces it declares those that the record names.

        With `declares`, it also declares prefixes of the record that an element further out may have declared.
        """
        declared = self.declarations
        if declares or len(declared) > FEW_NAMESPACES:
            named = {b"", *_PREFIX.findall(body)}
            unknown = sorted(named - declared.keys() - {b"", b"xml", b"xmlns"})[: MOST_UNDECLARED if declares else 0]
            declared = {prefix: declared[prefix] for prefix in named if prefix in declared}
            declared |= {
                prefix: b" xmlns:%s='urn:nddup:undeclared'" % prefix for prefix in unknown if _NAME.fullmatch(prefix)
            }
        return b"".join((b"<records", *declared.values(), b">"))

    def find_start(self, chunk: bytes | bytearray, at: int = 0) -> int | None:
        """Find where the record starts in a chunk, after comments, CDATA, instructions and other tags; else None."""
        return self.seek_start(chunk, at)[0]

    def seek_start(self, data: bytes | bytearray, at: int = 0, end: int = sys.maxsize) -> tuple[int | None, int | None]:
        """Find where a record starts from a place on, in the data up to another.

        Returns:
            The start, and None; or None, and the start of a comment, CDATA section, instruction or DOCTYPE that does
            not end; or twice None.
        """
        match = self.at_once.match(data, at, end)
        if match and self._is_record(match[1], data, match.start(1) - 1):
            return match.start(1) - 1, None

        for token in self.anywhere.finditer(data, at, end):
            if token["start"] is not None:
                if self._is_record(token["start"], data, token.start()):
                    return token.start(), None
            elif token["unfinished"] is not None:
                return None, token.start()
        return None, None

    def has_more(self, chunk: bytes | bytearray, start: int) -> bool:
        """Return whether another record may start in a chunk after `start`, or something in it may not end."""
        if self.prefixed.search(chunk, start + 1 + len(self.tag)):  # an expression: `find` takes four times as long
            return True
        at = start + 1
        while match := self.marks.search(chunk, at):
            marks = hidden_at(chunk, match.start())
            at = chunk.find(marks[1], match.start() + len(marks[0])) if marks else -1
            if at < 0:
                return True
        return False

    def _is_record(self, spelled: bytes, data: bytes | bytearray, start: int) -> bool:
        """Return whether a start tag is a record's: spelled as in the head, or of the same namespace."""
        if spelled == self.tag:
            return True
        prefix = spelled.rpartition(b":")[0]
        tag = self.open_tag.match(data, start)
        declaration = re.search(_DECLARATION % (b":" + re.escape(prefix) if prefix else b""), tag[0]) if tag else None
        uri = (
            (declaration[1] or declaration[2] or b"")
            if declaration
            else self._uris.get(prefix, self._uri if prefix else b"")
        )
        return uri == self._uri and bool(uri or not prefix)

    def explain(self, body: bytes) -> str:
        """Explain why a malformed record was cut at the wrong place, if its tags show it; else return an empty text."""
        for token in self.anywhere.finditer(body, 1):
            if token["start"] is not None:
                return "another record starts before the end tag: one is inside the other, or an end tag is missing"
            if token["unfinished"] is not None:
                return "a comment, CDATA section or instruction holds the end tag, or is not closed"
        return ""

    def parse(self, body: bytes, closing: bytes, *, declares: bool = False) -> etree._Element:
        """Parse a record in UTF-8 that begins with its start tag and lacks `closing`.

        With `declares`, the prefixes in it are declared, in case an element around it did that; names are local.

        Raises:
            etree.XMLSyntaxError: if the record is not well-formed.
            ValueError: if there are several.
        """
        root_open = self.root_open(body, declares=declares)
        root = etree.fromstring(b"".join((root_open, body, closing, self.root_close)), _PARSER)
        if len(root) != 1:
            raise ValueError("several records before one end tag")
        return root[0]


_last: dict[str, tuple[str, tuple[tuple[str, str], ...], Wrapper]] = {}

_wrapper_of = lru_cache(maxsize=256)(Wrapper)

# CDATA sections hold no references; elsewhere XML's own references are kept.
_CDATA = re.compile(rb"(<!\[CDATA\[.*?(?:\]\]>|\Z))", re.DOTALL)

_CDATA_START = "<![CDATA["
_WRITTEN_CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
"""A field whose CDATA section was escaped, as in some feeds: it would be a comment in a page."""

_STRAY = re.compile(rb"&(?!(?:[A-Za-z]\w*+|#[0-9]++|#[xX][0-9a-fA-F]++);)")

_NO_TAG = re.compile(rb"<(?=[\s0-9=<.,;)-])")
_NO_END = re.compile(rb"<(?![!?])(?=[^<>]*+<)")
"""As in `p < 0.05` or `<3`; and, when these are repaired, as in `a<b` before another tag."""

_NAMED = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z]\w*+);")

_TEXT_START = re.compile(
    rb"<[^\s<>/]++(?P<attributes>(?:\s++[\w:.-]++=\"[^\"<>]*+\")*+\s*+>|[^\r\n]{0,4096}+(?<=>)(?=[\r\n]))"
)
_TEXT_ATTRIBUTE = re.compile(rb"\s([\w:.-]++)=\"(.*?)\"(?=\s++[\w:.-]++=\"|\s*+>?\s*+\Z)", re.DOTALL)
"""The start tag of a record of WikiExtractor, which fills its line if its values are not escaped; its attributes."""

# Characters that XML 1.0 forbids, as such or as a reference. (Surrogates are no UTF-8.)
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")

_REFERENCE = re.compile(rb"&#(?:0*+([0-9]*+)|[xX]0*+([0-9a-fA-F]*+));")

_CHARACTERS = ((9, 10), (13, 13), (0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF))

_UNKNOWN = "\ufffd".encode()

_INSTEAD = {
    "sic": ("choice", "corr"), "orig": ("choice", "reg"), "abbr": ("choice", "expan"),
    "tex-math": ("alternatives", "math"), "annotation": ("semantics", ""), "annotation-xml": ("semantics", ""),
}  # fmt: skip
"""Elements that are left out: what stands around each, and what beside it, empty for anything.

Forms of a word in TEI for which an editor gives another; the TeX of a formula, of JATS with a preamble for each.
"""

Node = etree._Element | str  # noqa: SLF001 - an attribute is its value

Field = tuple[Value, bool | None]

_TAG = re.compile(
    rf"{SKIPPED}|</(?P<end>[^\s<>]++)\s*+>|<(?P<start>[^\s<>/!?=\"'&]++)(?=[\s/>]){ATTRIBUTES}>".encode(), re.DOTALL
)

_ATTRIBUTE = re.compile(rb"=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")


def hidden_at(data: bytes | bytearray, place: int) -> tuple[bytes, bytes] | None:
    """Return how what may hide tags begins and ends at a place; its end may not overlap its beginning, as in `<?>`."""
    return next((marks for marks in HIDDEN.items() if data.startswith(marks[0], place)), None)


def wrapper_of(tag: str, namespaces: tuple[tuple[str, str], ...]) -> Wrapper:
    """Return the wrapper of a file, cached per process; the last one is found without a look at its namespaces."""
    last = _last.get("wrapper")
    if last is None or last[0] != tag or last[1] is not namespaces:
        last = (tag, namespaces, _wrapper_of(tag, namespaces))
        _last["wrapper"] = last
    return last[2]


def _plain(uri: str) -> str:
    """Return a namespace URI with XML's five predefined references resolved."""
    for reference, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")):
        uri = uri.replace(reference, character)
    return uri


def repair(body: bytes) -> bytes:
    r"""Escape stray `&` and `<`, and replace what XML forbids as a character, raw or as a reference, by U+FFFD.

    Cost: linear.

    Example:
        >>> repair(b"a & b < 5 &#x1F; &#65; \x0b <![CDATA[& < &#1;]]>").decode()
        'a &amp; b &lt; 5 \ufffd &#65; \ufffd <![CDATA[& < &#1;]]>'
    """
    parts = _CDATA.split(_FORBIDDEN.sub(_UNKNOWN, body))
    parts[::2] = [_NO_END.sub(b"&lt;", _NO_TAG.sub(b"&lt;", part)) for part in parts[::2]]
    parts[::2] = [_REFERENCE.sub(_allowed, escape_ampersands(part)) if b"&" in part else part for part in parts[::2]]
    return b"".join(parts)


def _allowed(match: re.Match[bytes]) -> bytes:
    """Keep a numeric reference to a character that XML allows; replace any other."""
    digits, base = (match[1], 10) if match[1] is not None else (match[2], 16)
    code = int(digits or b"0", base) if len(digits or b"") < 8 else -1  # noqa: PLR2004 - more digits than any character
    is_allowed = any(low <= code <= high for low, high in _CHARACTERS)
    return match[0] if is_allowed else _UNKNOWN


def _number(match: re.Match[bytes]) -> bytes:
    """Replace an HTML named reference by numeric ones; unchanged if HTML has no such name."""
    characters = html5.get(match[1].decode("ascii", "replace") + ";")
    return "".join(f"&#{ord(c)};" for c in characters).encode() if characters else match[0]


def escape_ampersands(body: bytes) -> bytes:
    """Escape every `&` that does not begin a reference, outside CDATA sections.

    HTML's named references (`&nbsp;`) become numeric ones. References to other entities are kept; the parser refuses
    them.

    Cost: linear; an unclosed CDATA section reaches to the end.

    Example:
        >>> escape_ampersands(b"?x=1&b=2 &amp; <![CDATA[&]]>")
        b'?x=1&amp;b=2 &amp; <![CDATA[&]]>'
    """
    parts = _CDATA.split(body)
    parts[::2] = [_NAMED.sub(_number, _STRAY.sub(b"&amp;", part)) for part in parts[::2]]
    return b"".join(parts)


def parse_xml(body: bytes, wrapper: Wrapper, closing: bytes, declared: Format, *, is_last: bool) -> Record | Reject:
    """Parse a record in UTF-8 that begins with its start tag and lacks `closing`.

    Args:
        closing: its end tag; empty for a row.
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
    if element is None and _is_plain_text(declared):
        element, _ = _element(_as_text(body, wrapper), wrapper, closing or b"</%s>" % wrapper.tag)
    if element is None:
        detail = wrapper.explain(body) or detail
        if is_last:
            return Reject("truncated", f"the file ends inside this record ({detail})", start)
        return Reject("malformed", detail, start)

    doc_id = _first_text(element, declared.id)
    content = _content(element, declared, is_last=is_last)
    if isinstance(content, tuple):
        return Reject(*content, start, doc_id)
    url = _first_text(element, declared.url)
    url = _plain_url(url) if url and declared.may_encode_url else url
    policy = tuple(_first_text(element, path) for path in declared.policy)
    return make_record(doc_id, url, content, start=start, policy=policy)


def _content(element: etree._Element, declared: Format, *, is_last: bool) -> list[Field] | tuple[str, str]:
    """Return the fields of a record, titles first; or the reason and detail of a reject."""
    if declared.deleted and _select(element, parse_path(declared.deleted)):
        return "deleted", f"marked as deleted ({declared.deleted})"

    content = [_nodes(element, path) for path in declared.content]
    if is_last and not all(nodes for _, nodes in content):
        return "truncated", f"the file ends inside this record, without {' or '.join(declared.content)}"
    if not any(nodes for _, nodes in content):
        return "no content", f"no {' or '.join(declared.content)}"

    fields: list[Field] = []
    for kind, nodes in (*_titles(element, declared, content), *content):
        for node in nodes:
            field = _field(node, kind, declared.is_markup)
            if field is None:
                return "bad base64", f"in {node[:100] if isinstance(node, str) else _local(node.tag)}"
            fields.append(field)
    return fields


def _titles(
    element: etree._Element, declared: Format, content: list[tuple[FieldKind, list[Node]]]
) -> list[tuple[FieldKind, list[Node]]]:
    """Return the nodes of the titles. A title inside the content is already part of it."""
    titles = [_nodes(element, path) for path in declared.title]
    if any(nodes for _, nodes in titles):
        inside = {node for _, nodes in content for node in nodes if not isinstance(node, str)}
        titles = [(kind, [node for node in nodes if not _is_within(node, inside)]) for kind, nodes in titles]
    return titles


def find_contents(body: bytes, wrapper: Wrapper, closing: bytes, declared: Format) -> list[tuple[int, int]]:
    """Return where in a record the contents stand that `parse_xml` takes as its fields: inside their tags, or quotes.

    Args:
        body: a record that `parse_xml` reads, as given to it.
    """
    element, _ = _element(body, wrapper, closing)
    if element is None:
        return []
    numbers = {node: number for number, node in enumerate(element.iter(etree.Element))}
    tags, ends = _find_tags(body + closing)
    content = [_nodes(element, path) for path in declared.content]
    places: list[tuple[int, int]] = []
    for _, nodes in (*_titles(element, declared, content), *content):
        for node in nodes:
            if not isinstance(node, str):
                number, tag = numbers[node], tags[numbers[node]]
                end = tag.end() if tag[0].endswith(b"/>") else ends.get(number, len(body))
                places.append((tag.end(), end))
                continue
            values = (place for tag in tags for place in _values(tag) if place not in places)
            places.append(
                next(place for place in values if _value(body[slice(*place)], body[place[0] - 1 :][:1]) == node)
            )
    return [place for place in places if place[0] < place[1]] or places[:1]  # as `make_record`


def _find_tags(body: bytes) -> tuple[list[re.Match[bytes]], dict[int, int]]:
    """Return the start tags of a record in order, and where the end tags of those begin that have one."""
    tags: list[re.Match[bytes]] = []
    ends: dict[int, int] = {}
    is_open: list[int] = []
    for token in _TAG.finditer(body):
        if token["start"]:
            if not token[0].endswith(b"/>"):
                is_open.append(len(tags))
            tags.append(token)
        elif token["end"] and is_open:
            ends[is_open.pop()] = token.start()
    return tags, ends


def _values(tag: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield where the values of the attributes of a start tag stand, without their quotes."""
    for match in _ATTRIBUTE.finditer(tag[0]):
        low, high = match.span(match.lastindex or 1)
        yield tag.start() + low, tag.start() + high


def _value(raw: bytes, quote: bytes) -> str:
    """Return the value of an attribute, as a parser reads it."""
    return str(etree.fromstring(b"<a v=" + quote + repair(raw) + quote + b"/>", _PARSER).get("v"))


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


def _is_plain_text(declared: Format) -> bool:
    """Return whether records are those of WikiExtractor, whose tags only part them: what is between is no XML."""
    names = declared.name, declared.record, declared.id, declared.url, declared.content
    return names == ("xml", "doc", "@id", "@url", (".",))


def _as_text(body: bytes, wrapper: Wrapper) -> bytes:
    """Escape all tags in a record, and quotes in the values of its own; without its end tag."""
    ends = list(wrapper.any_end.finditer(body))
    start = _TEXT_START.match(body)
    if start is None:
        return body
    inside = body[start.end() : ends[-1].start() if ends else len(body)]
    values = b"".join(
        b' %s="%s"' % (name, value.replace(b"<", b"&lt;").replace(b'"', b"&quot;"))
        for name, value in _TEXT_ATTRIBUTE.findall(start["attributes"])
    )
    return b"<%s%s>%s" % (wrapper.tag, values, inside.replace(b"<", b"&lt;"))


@lru_cache(maxsize=1024)
def _read_field(path: str) -> tuple[FieldKind, tuple[Path, ...]]:
    kind, alternatives = split_field(path)
    return kind, tuple(parse_path(alternative) for alternative in alternatives)


def _nodes(element: etree._Element, path: str) -> tuple[FieldKind, list[Node]]:
    kind, alternatives = _read_field(path)
    return kind, _choose(element, alternatives)


def _choose(element: etree._Element, alternatives: tuple[Path, ...]) -> list[Node]:
    """Return what is at the first path where there is some text, else at the first where anything is."""
    present: list[Node] = []
    for alternative in alternatives:
        nodes = _select(element, alternative)
        if len(alternatives) == 1 or any(_has_text(node) for node in nodes):
            return nodes
        present = present or nodes
    return present


def _select(element: etree._Element, path: Path) -> list[Node]:
    nodes: list[Any] = [element]
    for step in path:
        if step.is_attribute:
            return [value for node in nodes for value in _values_at(node, step.name)]
        if step.choices:
            nodes = [chosen for node in nodes for chosen in _choose(node, step.choices)]
            continue
        nodes = _children(nodes[0], step) if len(nodes) == 1 else [c for node in nodes for c in _children(node, step)]
    return nodes


def _values_at(node: etree._Element, name: str) -> list[str]:
    """Return the values of an attribute; of a word that ALTO divides at a line end, all of it at its first half."""
    whole = str(node.get("SUBS_CONTENT", "")) if name == "CONTENT" else ""
    if whole and node.get("SUBS_TYPE") in ("HypPart1", "HypPart2"):
        return [whole] if node.get("SUBS_TYPE") == "HypPart1" else []
    return [str(value) for key, value in node.attrib.items() if name in ("*", _local(str(key)))]


def _children(node: etree._Element, step: Step) -> list[etree._Element]:
    below = node.iterdescendants(f"{{*}}{step.name}") if step.is_deep else node
    children = [child for child in below if isinstance(child.tag, str) and step.name in ("*", _local(child.tag))]
    if step.where is not None:
        name, value = step.where
        children = [child for child in children if _attribute(child, name) == value]
    if step.position is None:
        return children
    if step.position < 0 and len(children) > 1:  # as of a page of a wiki, whose revisions may stand in any order
        times = [_first_text(child, "timestamp") or "" for child in children]
        children = (
            [child for _, child in sorted(zip(times, children, strict=True), key=itemgetter(0))]
            if all(times)
            else children
        )
    space = _space(node.tag)  # as `title` is of RSS itself, beside a `media:title`
    return ([child for child in children if _space(child.tag) == space] or children)[step.position :][:1]


def _attribute(node: etree._Element, name: str) -> str:
    return next((str(value) for key, value in node.attrib.items() if _local(str(key)) == name), "")


def _space(tag: str) -> str:
    return tag.rpartition("}")[0]


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
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, node in walk:
        if event == "start" and node is not element and _is_left(node):
            walk.skip_subtree()
            continue
        if node is not element and _local(str(node.tag)).lower() not in INLINE:
            is_apart |= node.get("break") != "no"  # as a line of TEI that ends inside a word
        text = node.text if event == "start" else node.tail if node is not element else None
        if text:
            if is_apart and parts:
                parts.append(" ")
            parts.append(text)
            is_apart = False
    return "".join(parts)


def _is_left(node: etree._Element) -> bool:
    """Return whether an element is one of `_INSTEAD`."""
    around, beside = _INSTEAD.get(_local(str(node.tag)), ("", ""))
    above = node.getparent() if around else None
    if above is None or _local(str(above.tag)) != around:
        return False
    return any(_local(str(one.tag)) == beside if beside else one is not node for one in above)


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
        is_encoded = _attribute(node, "mode").strip().lower() == "base64"  # of Atom 0.3
        kind = "base64" if is_encoded else _kind_of_type(_attribute(node, "type").strip().lower())
        if kind == "base64":
            return declared_value(_text(node), kind, is_markup)
    text = _text_apart(node)
    inside = _WRITTEN_CDATA.fullmatch(text) if _CDATA_START in text else None
    return declared_value(inside[1] if inside else text, kind, is_markup)


def _kind_of_type(name: str) -> FieldKind:
    """Return the kind of an Atom element by its attribute `type`: text or plain, html, xhtml, or a media type."""
    if name in ("html", "text/html"):
        return "html"
    is_text = name in ("", "text", "plain", "xhtml") or name.startswith("text/") or name.endswith(("+xml", "/xml"))
    return "text" if is_text else "base64"


def _plain_url(url: str) -> str:
    raw = decode_base64(url) if len("".join(url.split())) % 4 == 0 else None
    if not raw:
        return url

    try:
        decoded = raw.decode()
    except UnicodeDecodeError:
        decoded = raw.decode("cp1251", "replace") if raw.startswith((b"http://", b"https://")) else ""

    decoded = decoded.strip()
    return decoded if decoded and decoded.isprintable() else url
